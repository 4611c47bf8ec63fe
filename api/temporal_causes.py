"""Why Temporal does not do what the API asks, as an entry: by the status that it answers, and by who is at its address."""

import asyncio
import re
from contextlib import suppress
from datetime import datetime
from enum import StrEnum

from temporalio.api.enums.v1 import ResourceExhaustedCause
from temporalio.service import RPCStatusCode

from api.temporal import Temporal, TemporalRefused, TemporalUnavailable
from domain.cluster import host_and_port
from domain.diagnosis.blocker import Blocker, blocker
from domain.diagnosis.blocker_codes import TEMPORAL_UNAVAILABLE

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
    "Start Temporal, or make it reachable; TEMPORAL_ADDRESS of the API. Nothing is lost meanwhile: migrations go on where they "
    "stood."
)
SAYS_NOTHING = (
    "Do not start a second one: something has that port, takes connections, and says nothing on them. It stands still, has no "
    "processor, or waits for its disk: find it (`ss -ltnp`), and let it go on (`ps -o pid,stat,wchan:32,cmd -p PID`: T is "
    "stopped, kill -CONT; its CPUQuota= and memory limits; whether the machine swaps). Else something else has that port: "
    "correct TEMPORAL_ADDRESS. Nothing is lost meanwhile: migrations go on where they stood."
)
DROPPED = (
    "Nobody answers at that address, not even with a refusal: its host is down or stands still, or a firewall or a security "
    "group drops what is sent. Look there before anything is started; or correct TEMPORAL_ADDRESS. Nothing is lost meanwhile: "
    "migrations go on where they stood."
)
BY_DOOR = {Door.OPEN: SAYS_NOTHING, Door.SHUT: NOT_REACHED, Door.SILENT: DROPPED}
CERTIFICATE = (
    "Temporal runs, and the API does not trust the certificate shown there. It has run out: renew it at Temporal, or at a "
    "proxy before it; look at the clock here too. Its authority is another one: give the API and the workers its own "
    "certificate (TEMPORAL_TLS_SERVER_CA_CERT_PATH), and restart them. Its name is another one: TEMPORAL_ADDRESS, or "
    "TEMPORAL_TLS_SERVER_NAME. Nothing is lost meanwhile."
)
OWN_KEY = (
    "Put the files of TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH right: PEM, readable, and of one pair. "
    "Then restart the API and the workers. Nothing is lost meanwhile."
)
CUT_OFF = (
    "Something at that address ends the connection. Either it refuses our certificate, or misses one: see when it runs out "
    "(`openssl x509 -noout -dates -in` the file of TEMPORAL_TLS_CLIENT_CERT_PATH), renew it, and restart the API and the "
    "workers, which read it once. Or TLS was switched on there, or at a proxy before it, and not here (TEMPORAL_TLS). Nothing "
    "is lost meanwhile."
)
NO_TLS = (
    "TLS is switched on here and not there: switch it on at Temporal or the proxy before it again, or off here (TEMPORAL_TLS, "
    "an API key switches it on), and restart the API and the workers. Nothing is lost meanwhile."
)
NO_NAME = (
    "The API's machine does not resolve that name: `getent hosts NAME`, /etc/resolv.conf, /etc/hosts; else correct "
    "TEMPORAL_ADDRESS and restart the API. Nothing is lost meanwhile: migrations go on where they stood."
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
    "It runs, and cannot work, mostly for its database: locked by a backup or by another process, full, out of connections, "
    "standing still, not to be reached; else one of its services (history, matching) is away. "
    "Mend that; Temporal's own log has more. Nothing is lost meanwhile: migrations go on where they stood."
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
    "Have the limit that is named raised (of calls: dynamic configuration frontend.namespaceRPS and its kin, a quota of the "
    "service; of a message's size: where a proxy or the server sets it), or find who else asks so much in this namespace. "
    "Migrations go on by themselves."
)
POLLERS_LIMIT = (
    "Have dynamic configuration frontend.namespaceCount raised, which limits calls at once, or find who else waits for tasks "
    "in this namespace, and end what nobody needs. Migrations go on by themselves."
)
DATABASE_LIMIT = (
    "Temporal asks its database as much as it may: find what makes it (its metrics, by operation), or have "
    "history.persistenceMaxQPS, frontend.persistenceMaxQPS and their kin raised, where the database bears it. Migrations go on "
    "by themselves."
)
DATABASE_FULL = "The storage of Temporal's database is full: make room there. Migrations go on by themselves."
OVERLOADED = (
    "Temporal has more to do than it can: look at its services' processors and at its database (its own log and metrics say "
    "which of them is slow). Migrations go on by themselves."
)
BUSY_RUN = (
    "More is asked of one run at once than Temporal takes: find who sends it signals, updates or questions again and again. It "
    "passes by itself."
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
    "This Temporal has not all that Keeperless asks of it: standalone activities, by which the API has the cluster looked at. "
    "Set activity.enableStandalone: true in its dynamic configuration; where it is too old for that, upgrade it; and let a "
    "proxy before it pass StartActivityExecution. Migrations go on meanwhile; only what the API asks of workers fails."
)
NO_TEMPORAL = (
    "What answers there does not know what every Temporal knows: it is something else, or a proxy that does not pass its "
    "WorkflowService. Correct TEMPORAL_ADDRESS and restart the API, or mend the proxy. Nothing is lost meanwhile."
)
OTHER_CLUSTER = (
    "Mend what Temporal says. Where it names another cluster of Temporal as the active one, the namespace was failed over: let "
    "TEMPORAL_ADDRESS of the API and of the workers lead there, and restart them, or fail it back. Nothing is lost meanwhile."
)
NO_MATCHING = (
    "Its frontend answers, and its matching service, which gives tasks to workers, does not: look whether that runs and is "
    "reached (its processes or pods, membership in its log), and at its database. Workers need no restart: they go on by "
    "themselves."
)
FIXES: dict[RPCStatusCode | None, str] = {
    RPCStatusCode.UNAUTHENTICATED: LOGIN,
    RPCStatusCode.PERMISSION_DENIED: LOGIN,
    RPCStatusCode.NOT_FOUND: NAMESPACE,
    RPCStatusCode.UNIMPLEMENTED: NOT_SERVED,
    RPCStatusCode.FAILED_PRECONDITION: OTHER_CLUSTER,
}
REFUSES = "Mend what Temporal says; its own log has more. Nothing is lost meanwhile: migrations go on where they stood."

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
    return _entry(
        temporal, f"it gives nobody the tasks of queue {queue}, nor says who asks for them: {error}", NO_MATCHING, now
    )


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
