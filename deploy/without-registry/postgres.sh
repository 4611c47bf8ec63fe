#!/bin/sh
# What the entry point of the image postgres does at its first start: a cluster with a password, then its start scripts.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    initdb --username="${POSTGRES_USER:-postgres}" --pwfile="$POSTGRES_PASSWORD_FILE" --auth-host=scram-sha-256 \
        --auth-local=trust --encoding=UTF8
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    pg_ctl --wait --options="-c listen_addresses=''" start
    for script in /docker-entrypoint-initdb.d/*.sh; do
        sh "$script"
    done
    pg_ctl --wait --mode=fast stop
fi
[ "$1" = postgres ] && set -- "$@" -c "listen_addresses=*"
exec "$@"
