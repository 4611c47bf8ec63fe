#!/bin/sh
# Writes the passwords that docker-compose.yml mounts, each once: deploy/secrets/. What is there already stays.
# The directory is for its owner only; its files can be read by all, because the users in the containers are others.
set -eu
cd "$(dirname "$0")"
mkdir -p -m 0700 secrets
umask 022
for name in postgres_password temporal_password keeperless_password grafana_password; do
    [ -s "secrets/$name" ] || od -An -N24 -tx1 /dev/urandom | tr -d ' \n' > "secrets/$name"
done
# A viewer's key goes here, once the API has made one (docs/deployment.md, Watch it).
[ -e secrets/prometheus_key ] || : > secrets/prometheus_key
[ -s secrets/keeperless_ledger_url ] || \
    echo "postgresql://keeperless:$(cat secrets/keeperless_password)@postgresql/keeperless" > secrets/keeperless_ledger_url
