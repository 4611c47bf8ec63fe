#!/bin/sh
# Run once by the image, when the volume is empty: a role for Temporal and one for Keeperless, each owns only its own databases.
# It stays executable: the image would read any other file into its own shell.
set -eu
create() { # ROLE PASSWORD_FILE DATABASE…
    role=$1 password=$(cat "$2")
    shift 2
    echo "CREATE ROLE $role LOGIN PASSWORD '$password';"
    for database in "$@"; do
        echo "CREATE DATABASE $database OWNER $role;"
        echo "REVOKE CONNECT ON DATABASE $database FROM PUBLIC;"
    done
}
{
    create temporal /run/secrets/temporal_password temporal temporal_visibility
    create keeperless /run/secrets/keeperless_password keeperless
} | psql --quiet --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres
