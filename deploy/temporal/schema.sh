#!/bin/sh
# Creates Temporal's tables, or brings them to the version of this release. May run again.
set -eu
SQL_PASSWORD=$(cat /run/secrets/temporal_password)
export SQL_PASSWORD
for pair in temporal:temporal temporal_visibility:visibility; do
    export SQL_DATABASE="${pair%:*}"
    temporal-sql-tool setup-schema --version 0.0
    temporal-sql-tool update-schema --schema-name "postgresql/v12/${pair#*:}"
done
