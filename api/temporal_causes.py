"""Why Temporal does not do what the API asks, as an entry: by the status that it answers, and by who is at its address."""

from datetime import datetime

from temporalio.service import RPCStatusCode

from api.temporal import Temporal, TemporalRefused, TemporalUnavailable
from domain import standing
from domain.blocker import Blocker, blocker

NOT_REACHED = (
    "Start Temporal, or make it reachable; TEMPORAL_ADDRESS of the API, and whether TLS was switched on or off there or at "
    "a proxy before it. Nothing is lost meanwhile: migrations go on where they stood."
)
WORKS_NOT = (
    "It runs, and cannot work, mostly for its database: locked by a backup or by another process, full, out of connections, "
    "not to be reached. Mend that; Temporal's own log has more. Nothing is lost meanwhile: migrations go on where they stood."
)
LOGIN = (
    "Temporal lets the API not in. Renew what it knows us by (TEMPORAL_API_KEY, the client certificate of TEMPORAL_TLS), "
    "or give that identity its role in the namespace again; then restart the API and the workers with it. Nothing is lost "
    "meanwhile."
)
NAMESPACE = (
    "Compare TEMPORAL_NAMESPACE of the API with `temporal operator namespace list`: correct it and restart the API. Where the "
    "namespace was deleted, or Temporal was set up anew: register it with Keeperless' search attributes, start the workers, "
    'and start another migration of the cluster with `"hold": true`.'
)
LIMIT = (
    "Have that limit raised (dynamic configuration frontend.namespaceRPS and its kin, a quota of the service), or find who "
    "else asks so much in this namespace. Migrations go on by themselves."
)
FIXES: dict[RPCStatusCode | None, str] = {
    RPCStatusCode.UNAUTHENTICATED: LOGIN,
    RPCStatusCode.PERMISSION_DENIED: LOGIN,
    RPCStatusCode.NOT_FOUND: NAMESPACE,
    RPCStatusCode.RESOURCE_EXHAUSTED: LIMIT,
}
REFUSES = "Mend what Temporal says; its own log has more. Nothing is lost meanwhile: migrations go on where they stood."


async def without_temporal(temporal: Temporal, error: TemporalUnavailable | TemporalRefused, now: datetime) -> Blocker:
    """Asked for its namespace it names what it lacks, of anything else it may only say that it cannot."""
    try:
        await temporal.ping()
    except (TemporalUnavailable, TemporalRefused) as simplest:
        error = simplest
    return blocker(
        standing.TEMPORAL_UNAVAILABLE,
        "Temporal",
        observed=_observed(temporal, error),
        expected="it answers the API",
        fix=await _fix(temporal, error),
        since=now,
    )


async def _fix(temporal: Temporal, error: TemporalUnavailable | TemporalRefused) -> str:
    if error.status in FIXES:
        return FIXES[error.status]
    if isinstance(error, TemporalRefused):
        return REFUSES
    return WORKS_NOT if error.said and await temporal.is_served() else NOT_REACHED


def _observed(temporal: Temporal, error: TemporalUnavailable | TemporalRefused) -> str:
    return f"{error} (asked at {temporal.address}, of its namespace {temporal.namespace})"
