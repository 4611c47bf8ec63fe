"""Canaries: what Keeperless makes in a cluster to see whether clients still can, and removes again. Names, and what they mean.

All of it has one reserved prefix. A migration's names say whose they are, so that a step removes what an earlier attempt at it
has left, and what a migration left that is gone, and never what another broker's step is using.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from domain.cluster import ClusterSpec
from domain.observed.parts import ObservedPart
from domain.policy import ClientPolicy

PREFIX = "keeperless-canary-"
PAUSE_SUFFIX = "-pause"
CONFIG, CONFIG_VALUE = "retention.ms", "3600000"
"""What a canary's topic is given."""

REPLICAS = 3
"""Of the topic that the longest pause is measured on, where there are as many brokers."""
MAX_PARTITIONS = 6
"""Of that topic: one write of each is on its way at any time."""


class Canary(StrEnum):
    """What is tried at each broker, in this order."""

    TOPIC = "topic"
    """Create one, whose only replica is on this broker."""
    MESSAGES = "messages"
    """Write to it with acks=all, and read it back, both at this broker."""
    CONFIG = "config"
    """Change a config of it."""
    ACL = "acl"
    """Add one, of a principal and a group that nobody uses. Only where the broker has an authorizer."""
    SCRAM = "scram"
    """Give a user that nobody uses a credential that nobody knows."""
    REMOVAL = "removal"
    """Remove all of it, and see it gone."""


WHAT_TO_DO: Mapping[Canary, str] = {
    Canary.TOPIC: "Check that this broker reaches the controller, and that create.topic.policy.class.name does not refuse "
    "the topic.",
    Canary.MESSAGES: "Check the broker's log, its listeners and its quotas: clients cannot write to it, or cannot read.",
    Canary.CONFIG: "Check that alter.config.policy.class.name does not refuse the config, and read the active controller's "
    "log.",
    Canary.ACL: "Compare authorizer.class.name and super.users in the files of this broker and of the controllers.",
    Canary.SCRAM: "Read the active controller's log. SCRAM in KRaft mode needs inter.broker.protocol.version 3.5 or later.",
    Canary.REMOVAL: "Check that delete.topic.enable is true on every broker and controller, and that client_properties has "
    "the rights to delete topics, ACLs and users with this prefix.",
}


LIFT_QUOTA = (
    "Remove that quota: it slows down everything that the migration creates and deletes. kafka-configs.sh --alter "
    "--entity-type users --entity-default (or --entity-name USER; and --entity-type clients, if it is a client's) "
    "--delete-config controller_mutation_rate."
)

LET_PASS = (
    f"Let the plug-in accept what is named {PREFIX}…: one partition with one replica, deleted again soon. The plug-in is "
    "named in the files of brokers and controllers (create.topic.policy.class.name, alter.config.policy.class.name). The "
    "broker is not at fault, and a restart helps only if the plug-in reads its rules at start."
)

STOP_DELETING = (
    "Find what deletes topics: a tool that keeps only those that are declared to it (a topic operator, GitOps, a clean-up "
    f"script). Let it ignore those that begin with {PREFIX}, or stop it until the migration has ended. The broker itself did "
    "what it was asked."
)

WAY_ON = (
    "It is retried until it succeeds. Or ask for a rollback, which does not wait for it. Or terminate this run in Temporal, "
    "and start a migration whose policy has neither canaries nor max_client_pause: it takes over, and reports what it "
    "leaves."
)
"""For whom that is not to be mended now."""


class Leftovers(ObservedPart):
    """Reserved names that are there. `znodes`: paths of users without any credential, which only ZooKeeper knows of."""

    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    znodes: tuple[str, ...] = ()


def is_anything_made(policy: ClientPolicy) -> bool:
    return policy.canaries or policy.max_client_pause is not None


def is_reserved(name: str) -> bool:
    """Whether a topic, a user or a group is one that only Keeperless makes."""
    return name.startswith(PREFIX)


def canary_of(migration_id: str, broker_id: int) -> str:
    """The name of the topic, the user, the ACL's principal and its group."""
    return f"{PREFIX}{migration_id}-{broker_id}"


def pause_topic_of(migration_id: str, broker_id: int) -> str:
    """The topic that is written to while this broker restarts."""
    return canary_of(migration_id, broker_id) + PAUSE_SUFFIX


def to_remove(names: Iterable[str], migration_id: str, broker_id: int) -> tuple[str, ...]:
    """Which of the names that were found a step of this broker removes: its own, and those of migrations that are gone."""
    own = {canary_of(migration_id, broker_id), pause_topic_of(migration_id, broker_id)}
    living = f"{PREFIX}{migration_id}-"
    return tuple(sorted(name for name in names if is_reserved(name) and (name in own or not name.startswith(living))))


def pause_assignment(brokers: Sequence[int], together: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Replicas of the topic that the longest pause is measured on. `brokers`: those that serve now, in order.

    Each of those that restart `together` leads a partition, and so do others. No two of them share one: no partition of a
    client's would have both, and one that has cannot spare both.
    """
    rest = [broker for broker in brokers if broker not in together]
    turns = [sum(broker < target for broker in rest) for target in together]
    rings = [(target, *rest[turn:], *rest[:turn]) for target, turn in zip(together, turns, strict=True)]
    count = min(REPLICAS, len(rings[0]))
    most = max(1, MAX_PARTITIONS // len(rings))
    return tuple(tuple(ring[(p + r) % len(ring)] for r in range(count)) for ring in rings for p in range(min(most, len(ring))))


def pause_min_isr(replicas: int, default: int) -> int:
    """As the cluster's topics by default, as far as that allows one replica to be missing."""
    return max(1, min(default, replicas - 1))


def announced(policy: ClientPolicy, spec: ClusterSpec) -> tuple[str, ...]:
    """For a plan: what will be made, when, and under which names."""
    brokers = ", ".join(spec.node_name(broker.id) for broker in spec.brokers)
    every = f"{PREFIX}<migration>-<broker>"
    told: list[str] = []
    if policy.canaries:
        told += [
            f"After each restart of each of {brokers}, on the way forward: topic {every} with one replica on that broker, "
            "written to, read from and given a config.",
            f"Then user {every} with a SCRAM credential and, where the broker has an authorizer, an ACL that denies principal "
            f"User:{every} to read group {every}.",
        ]
    if policy.max_client_pause is not None:
        told += [
            f"During each of these restarts: topic {every}{PAUSE_SUFFIX}, with replicas on up to {REPLICAS} brokers, written "
            "to ten times a second with acks=all. A write that waits for over "
            f"{policy.max_client_pause.total_seconds():g} s holds the migration.",
        ]
    if told:
        told += [
            f"All of it is removed before the next broker is restarted, and seen gone. {PREFIX}* is reserved for Keeperless."
        ]
    return tuple(told)
