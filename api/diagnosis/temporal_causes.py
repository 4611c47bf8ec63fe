"""Why Temporal does not do what the API asks, as an entry: by the status that it answers, and by who is at its address."""

import asyncio
import re
from contextlib import suppress
from datetime import datetime
from enum import StrEnum

from temporalio.api.enums.v1 import ResourceExhaustedCause
from temporalio.service import RPCStatusCode

from api.running.temporal import Temporal, TemporalRefused, TemporalUnavailable
from domain.cluster import host_and_port
from domain.diagnosis.blocker import TEMPORAL_UNAVAILABLE, Blocker, blocker

CONNECT_SECONDS = 0.5


class Door(StrEnum):
    """What becomes of a connection before anything is said on it."""

    OPEN = "open"
    """It is taken: by the kernel, also where the process behind it stands still."""
    SHUT = "shut"
    """It is refused, the name is not resolved, or there is no port in the address."""
    SILENT = "silent"
    """Neither."""


NOT_REACHED = (
    "Start Temporal, restore the network path to it, or correct TEMPORAL_ADDRESS of the API. Nothing is lost: migrations "
    "continue where they were."
)
SAYS_NOTHING = (
    "Do not start a second one: a process has that port, accepts connections, and does not answer on them. Find it (`ss "
    "-ltnp`), and see why it is unresponsive (`ps -o pid,stat,wchan:32,cmd -p PID`). State T is stopped: kill -CONT PID. "
    "Otherwise check its CPUQuota= and memory limits, its disk, and whether the machine swaps. If it is not Temporal, "
    "correct TEMPORAL_ADDRESS. Nothing is lost: migrations continue where they were."
)
DROPPED = (
    "Check the host at that address, and the firewall or security group in front of it: it does not even refuse "
    "connections, so the host is down or packets are dropped. Start nothing before that. Or correct TEMPORAL_ADDRESS. "
    "Nothing is lost: migrations continue where they were."
)
BY_DOOR = {Door.OPEN: SAYS_NOTHING, Door.SHUT: NOT_REACHED, Door.SILENT: DROPPED}
CERTIFICATE = (
    "Temporal runs, but the API does not trust its certificate. If it has expired, renew it at Temporal or the proxy in "
    "front of it, and check the clock here. If its authority is unknown, give it to the API and the workers "
    "(TEMPORAL_TLS_SERVER_CA_CERT_PATH), and restart them. If its name differs, correct TEMPORAL_ADDRESS or "
    "TEMPORAL_TLS_SERVER_NAME. Nothing is lost."
)
OWN_KEY = (
    "Correct the files of TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH: PEM, readable, and of one pair. "
    "Then restart the API and the workers. Nothing is lost."
)
CUT_OFF = (
    "Check when the client certificate expires (`openssl x509 -noout -dates -in` the file of "
    "TEMPORAL_TLS_CLIENT_CERT_PATH), renew it, and restart the API and the workers, which read it once. The server at that "
    "address ends the connection: it refuses the certificate, or requires one. If TLS was switched on there, or at a proxy, "
    "and not here, set TEMPORAL_TLS. Nothing is lost."
)
NO_TLS = (
    "TLS is on here and off there. Switch it on again at Temporal or the proxy, or switch it off here (TEMPORAL_TLS; an API "
    "key switches it on). Then restart the API and the workers. Nothing is lost."
)
NO_NAME = (
    "The API's machine cannot resolve that name: check `getent hosts NAME`, /etc/resolv.conf and /etc/hosts. Or correct "
    "TEMPORAL_ADDRESS and restart the API. Nothing is lost: migrations continue where they were."
)
OF_CONNECTING = {
    re.compile(r"InvalidCertificate|invalid peer certificate"): CERTIFICATE,
    re.compile(r"PrivateKeyParseError|CertificateParseError|KeyMismatch"): OWN_KEY,
    re.compile(r"InvalidContentType"): NO_TLS,
    re.compile(r"AlertReceived|received fatal alert|: transport error"): CUT_OFF,
    re.compile(r"dns error|failed to lookup address"): NO_NAME,
    re.compile(r"ConnectionRefused"): NOT_REACHED,
}
"""By what the SDK says of a connection that was not made, which it does in words only."""
WORKS_NOT = (
    "Temporal runs but cannot work. Check its database first: locked by a backup or another process, full, out of "
    "connections, unresponsive, unreachable. Then check its services (history, matching). Temporal's own log has more. "
    "Nothing is lost: migrations continue where they were."
)
LOGIN = (
    "Temporal refuses the API's identity. Renew its credentials (TEMPORAL_API_KEY, the client certificate of TEMPORAL_TLS), "
    "or give that identity its role in the namespace again. Then restart the API and the workers. Nothing is lost."
)
NAMESPACE = (
    "Compare TEMPORAL_NAMESPACE of the API with `temporal operator namespace list`: correct it and restart the API. If the "
    "namespace was deleted, or Temporal was set up again: register it with Keeperless' search attributes, start the "
    'workers, and start another migration of the cluster with `"hold": true`.'
)
LIMIT = (
    "Have the named limit raised. For calls it is frontend.namespaceRPS and related dynamic configuration, or a quota of "
    "the service; for a message's size, a proxy or the server. Or find what else sends so many requests in this namespace. "
    "Migrations continue by themselves."
)
POLLERS_LIMIT = (
    "Have dynamic configuration frontend.namespaceCount raised, which limits concurrent calls. Or find what else polls in "
    "this namespace, and stop what is not needed. Migrations continue by themselves."
)
DATABASE_LIMIT = (
    "Temporal uses its whole quota of database requests. Find the cause (its metrics, by operation), or have "
    "history.persistenceMaxQPS, frontend.persistenceMaxQPS and related settings raised, if the database can bear it. "
    "Migrations continue by themselves."
)
DATABASE_FULL = "The storage of Temporal's database is full: free some space there. Migrations continue by themselves."
OVERLOADED = (
    "Temporal is overloaded: check the CPU of its services and its database (its own log and metrics show which one is "
    "slow). Migrations continue by themselves."
)
BUSY_RUN = (
    "One run gets more requests at the same time than Temporal accepts: find what keeps sending it signals, updates or "
    "queries. It passes by itself."
)
LIMITS: dict[int, str] = {
    ResourceExhaustedCause.RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT: POLLERS_LIMIT,
    ResourceExhaustedCause.RESOURCE_EXHAUSTED_CAUSE_PERSISTENCE_LIMIT: DATABASE_LIMIT,
    ResourceExhaustedCause.RESOURCE_EXHAUSTED_CAUSE_PERSISTENCE_STORAGE_LIMIT: DATABASE_FULL,
    ResourceExhaustedCause.RESOURCE_EXHAUSTED_CAUSE_SYSTEM_OVERLOADED: OVERLOADED,
    ResourceExhaustedCause.RESOURCE_EXHAUSTED_CAUSE_CIRCUIT_BREAKER_OPEN: OVERLOADED,
    ResourceExhaustedCause.RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW: BUSY_RUN,
}
NOT_SERVED = (
    "Set activity.enableStandalone: true in Temporal's dynamic configuration: the API needs standalone activities to "
    "observe the cluster. If this Temporal is too old for that, upgrade it. If a proxy is in front of it, let it pass "
    "StartActivityExecution. Migrations continue meanwhile; only what the API asks of workers fails."
)
NO_TEMPORAL = (
    "The server at that address does not know calls that every Temporal knows: it is another service, or a proxy that does "
    "not pass WorkflowService. Correct TEMPORAL_ADDRESS and restart the API, or fix the proxy. Nothing is lost."
)
OTHER_CLUSTER = (
    "Fix what Temporal reports. If it names another Temporal cluster as the active one, the namespace was failed over: "
    "point TEMPORAL_ADDRESS of the API and of the workers there, and restart them, or fail it back. Nothing is lost."
)
NO_MATCHING = (
    "Temporal's frontend answers, but its matching service, which gives tasks to workers, does not. Check whether that runs "
    "and can be reached (its processes or pods, membership in its log), and its database. Do not restart workers: they "
    "continue by themselves."
)
FIXES: dict[RPCStatusCode | None, str] = {
    RPCStatusCode.UNAUTHENTICATED: LOGIN,
    RPCStatusCode.PERMISSION_DENIED: LOGIN,
    RPCStatusCode.NOT_FOUND: NAMESPACE,
    RPCStatusCode.UNIMPLEMENTED: NOT_SERVED,
    RPCStatusCode.FAILED_PRECONDITION: OTHER_CLUSTER,
}
REFUSES = "Fix what Temporal reports; its own log has more. Nothing is lost: migrations continue where they were."

Fault = TemporalUnavailable | TemporalRefused


async def without_temporal(temporal: Temporal, error: Fault, now: datetime) -> Blocker:
    """Asked for its namespace it names what it lacks, of anything else it may only say that it cannot."""
    try:
        await temporal.ping()
    except (TemporalUnavailable, TemporalRefused) as simplest:
        error = simplest
        if error.status is RPCStatusCode.UNIMPLEMENTED:
            return _entry(temporal, str(error), NO_TEMPORAL, now)
    error, fix = await _with_fix(temporal, error)
    return _entry(temporal, str(error), fix, now)


async def without_matching(temporal: Temporal, queue: str, error: TemporalUnavailable, now: datetime) -> Blocker:
    """Nobody takes tasks, and Temporal does not say who asks for them: what it lacks is no worker."""
    try:
        await temporal.ping()
    except (TemporalUnavailable, TemporalRefused):
        return await without_temporal(temporal, error, now)
    return _entry(temporal, f"it hands out no tasks of queue {queue}, and does not list its pollers: {error}", NO_MATCHING, now)


def _entry(temporal: Temporal, observed: str, fix: str, now: datetime) -> Blocker:
    return blocker(
        TEMPORAL_UNAVAILABLE,
        "Temporal",
        observed=f"{observed} (asked at {temporal.address}, of its namespace {temporal.namespace})",
        expected="it answers the API",
        fix=fix,
        since=now,
    )


async def _with_fix(temporal: Temporal, error: Fault) -> tuple[Fault, str]:
    """What a new connection stumbles over says more than one that has broken."""
    if isinstance(error, TemporalUnavailable) and error.status is RPCStatusCode.RESOURCE_EXHAUSTED:
        return error, LIMITS.get(error.limit, LIMIT)
    if error.status in FIXES:
        return error, FIXES[error.status]
    if isinstance(error, TemporalRefused):
        return error, REFUSES
    unserved = await temporal.why_unserved()
    if unserved is None:
        return error, WORKS_NOT
    known = next((fix for words, fix in OF_CONNECTING.items() if words.search(str(unserved))), None)
    return unserved, known or BY_DOOR[await door_of(temporal.address)]


async def door_of(at: str) -> Door:
    """Whether anybody takes connections at an address."""
    try:
        host, port = host_and_port(at.rpartition("//")[2])
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError:
        return Door.SILENT
    except (OSError, ValueError):  # the latter, UnicodeError too, of an address that cannot be read
        return Door.SHUT
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return Door.OPEN
