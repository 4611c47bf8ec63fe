#!/bin/sh
# Creates the namespace of Keeperless, and the search attributes that its workflows set. May run again.
set -eu
namespace=${TEMPORAL_NAMESPACE:-default}
temporal operator namespace describe --namespace "$namespace" > /dev/null 2>&1 ||
    temporal operator namespace create --namespace "$namespace" --retention "$RETENTION"
# A new namespace is known everywhere after a moment.
until known=$(temporal operator search-attribute list --namespace "$namespace"); do sleep 1; done
for name in Cluster MigrationKind Phase MigrationId Waiting; do
    echo "$known" | grep -qw "$name" ||
        temporal operator search-attribute create --namespace "$namespace" --name "$name" --type Keyword
done
