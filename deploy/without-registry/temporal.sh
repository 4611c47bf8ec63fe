#!/bin/sh
# What the entry point of temporalio/server does: it tells the other services of the server where this one is.
set -eu
TEMPORAL_BROADCAST_ADDRESS=$(getent hosts "$(hostname)" | cut -d ' ' -f 1)
export TEMPORAL_BROADCAST_ADDRESS
exec temporal-server start
