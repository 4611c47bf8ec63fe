#!/bin/sh
# Runs a command, such as `docker compose up`, with the images that .env names; if no registry has them, with stand-ins that
# deploy/without-registry builds.
set -eu
# In a shell of its own: a variable of the caller takes precedence over a line of .env.
image=$(. "$(dirname "$0")/../.env"; echo "$POSTGRES_IMAGE:$POSTGRES_VERSION")
if ! docker image inspect "$image" > /dev/null 2>&1 && ! docker pull --quiet "$image"; then
    echo "No registry has $image: building stand-ins" >&2
    here=$(cd "$(dirname "$0")" && pwd)
    sh "$here/without-registry/build.sh"
    export COMPOSE_ENV_FILES="$here/../.env,$here/without-registry/images.env"
    docker compose version > /dev/null 2>&1 || export DOCKER_CONFIG="$here/../.tools/without-registry"
fi
exec "$@"
