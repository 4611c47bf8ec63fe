"""What keeps keeperless-activities from asking at an address that it was given, wherever it is met. Pure."""

from domain.diagnosis.blocker_codes import MACHINE
from domain.diagnosis.machines.notes import OURS
from domain.errors import Obstacle
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.case import Cause, Looked, cause

HOW_TO_CORRECT = (
    "hold the migration (POST /migrations/{id}/hold). While it is held, PUT /clusters/{name} takes another `kafka`, `metrics`, "
    "`zookeeper.members` and `session_timeout_seconds`; then resume it. Where it cannot be held, because it is at work on a "
    'node, terminate its run in Temporal, PUT /clusters/{name}, and POST /migrations with "hold": true, which looks where '
    "the cluster is."
)
"""How to change the specification of a cluster whose migration waits for that."""

OF_OTHERS = (
    WaitReason.CONTROLLERS_NOT_READY,
    WaitReason.QUORUM_TOO_THIN,
    WaitReason.PARTITIONS_NOT_IN_SYNC,
    WaitReason.BROKERS_NOT_REGISTERED,
)
"""What is not known of who cannot be asked."""


def _said(looked: Looked, obstacle: Obstacle) -> list[str]:
    """By what did not answer, and by brokers that were asked by themselves."""
    parts = [part.why for part in looked.observation.unanswered if part.obstacle is obstacle]
    asked = [f"{found.address}: {found.why}" for found in looked.hints.asked.values() if found.obstacle is obstacle]
    return [*parts, *asked]


def unresolved_cause(looked: Looked) -> Cause:
    """One entry, whatever is asked at names that are not resolved here: nothing is known of who has them."""
    parts = _said(looked, Obstacle.UNRESOLVED)
    known = looked.hints.unresolved
    names = "; ".join(f"{host}: {words}" for host, words in sorted(known.items()))
    more = [why for why in parts if not any(host in why.lower() for host in known)]
    told = ". ".join(filter(None, [f"names are not resolved there: {names}" if names else "", *more]))
    nodes = [*(node.metrics.url for node in looked.spec.nodes), *(f"{c.host}:{c.port}" for c in looked.spec.controllers)]
    return cause(
        looked,
        MACHINE,
        OURS,
        *([WaitReason.PART_UNKNOWN] if looked.observation.unanswered else []),
        *(OF_OTHERS if parts or any(map(looked.is_unresolved, nodes)) else ()),
        observed=told[:1000],
        expected="its machine resolves every name that it is to ask at, at once",
        fix="Nothing is known of who has that name; restart nobody. On the machine of keeperless-activities: `getent hosts "
        "NAME`, `resolvectl status`, /etc/resolv.conf (a first nameserver that is dead makes every name late), /etc/hosts, the "
        "zone. Clients and nodes may have the same trouble. If the name is wrong where it was given to us: "
        f"{HOW_TO_CORRECT}",
    )


def lacking_cause(looked: Looked) -> Cause:
    """One entry, whomever it could not ask for that."""
    parts = _said(looked, Obstacle.OURS)
    return cause(
        looked,
        MACHINE,
        OURS,
        WaitReason.PART_UNKNOWN,
        *OF_OTHERS,
        observed="; ".join(parts)[:1000],
        expected="it can connect to every node",
        fix="Nothing is known of who is asked; restart none of them. It goes on by itself once keeperless-activities has what "
        "it lacks: look what uses that up on its machine.",
    )


def cause_of_ours(looked: Looked, obstacle: Obstacle | None, *addresses: str) -> Cause | None:
    """Where it lies with us that nobody answers at any of these."""
    if obstacle is Obstacle.UNRESOLVED or all(map(looked.is_unresolved, addresses)):
        return unresolved_cause(looked)
    return lacking_cause(looked) if obstacle is Obstacle.OURS else None


CORRECT_ENDPOINT = f"Where its address is wrong: {HOW_TO_CORRECT}"
ENDPOINTS = {
    Obstacle.TLS: (
        "comes to no TLS with us",
        "Where its certificate is not trusted, give the authority that has signed it to keeperless-activities (the system's "
        "store, or SSL_CERT_FILE; read when it starts); renew one that has expired, or has not the host's name. Where the "
        "agent speaks plain HTTP now, its configuration has lost its TLS (httpServer.ssl of the JMX exporter): put it back. "
        f"{CORRECT_ENDPOINT}",
    ),
    Obstacle.FORBIDDEN: (
        "answers, and refuses us",
        "Let keeperless-activities read it, which has no login for it: take authentication off for that address "
        "(httpServer.authentication of the JMX exporter, user and password of Jolokia's agent), or allow its host and the "
        "MBean in Jolokia's access rules (jolokia-access.xml). It only reads.",
    ),
    Obstacle.ANOTHERS: (
        "answers with what are not its gauges",
        "Look who has that port and path (`curl` the address): another node's agent, another program, a proxy before it, or "
        "an agent whose path has changed. Put back the agent's configuration of before. "
        f"{CORRECT_ENDPOINT}",
    ),
}
"""How the endpoint of a node's metrics behaves where nobody hangs, and what to do."""
LATE = (
    "Either the page takes longer than that: narrow what the agent reads to what is asked (includeObjectNames of the JMX "
    "exporter: kafka.server:type=KafkaServer,*, kafka.server:type=ReplicaManager,*, kafka.server:type=raft-metrics, "
    "kafka.server:type=app-info,*, kafka.controller:type=KafkaController,*), and let fewer others ask at a time (`ss -tn` "
    "shows them). Where most of the page is client ids, an application makes one of its own for each connection: have it use "
    "one for all, or take the quota of all clients away; what it has made goes an hour after. Or the node hangs: look at its "
    "log, and whether its heap is full."
)
NOBODY_THERE = (
    "Look whether it hangs (its log, a heap that is full), and whether the exporter's port is open from the host of "
    f"keeperless-activities. {CORRECT_ENDPOINT}"
)
