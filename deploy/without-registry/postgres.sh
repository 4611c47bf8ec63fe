#!/bin/sh
# What the entry point of the image postgres does at its first start: a cluster with a password, then its start scripts.
set -eu
user=${POSTGRES_USER:-postgres} method=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    umask 077
    [ -n "${POSTGRES_PASSWORD_FILE:-}" ] || echo "${POSTGRES_PASSWORD:?}" > /tmp/password
    initdb --username="$user" --pwfile="${POSTGRES_PASSWORD_FILE:-/tmp/password}" --auth-local=trust --auth-host="$method" \
        --encoding=UTF8
    echo "host all all all $method" >> "$PGDATA/pg_hba.conf"
    pg_ctl --wait --options="-c listen_addresses=''" start
    [ "${POSTGRES_DB:-$user}" = postgres ] || createdb --username="$user" "${POSTGRES_DB:-$user}"
    for script in /docker-entrypoint-initdb.d/*.sh; do
        [ ! -e "$script" ] || sh "$script"
    done
    pg_ctl --wait --mode=fast stop
fi
[ "$1" = postgres ] && set -- "$@" -c "listen_addresses=*"
exec "$@"
