"""Why nothing happens: the waits that every kind of migration can have, each with its words for people."""

from dataclasses import dataclass
from enum import StrEnum


class WaitReason(StrEnum):
    """The same word in log, API, page and Temporal's UI. A kind of migration adds its own, and their texts."""

    HELD = "held"
    PART_UNKNOWN = "part-unknown"
    NODE_DOWN = "node-down"
    NODE_NOT_READY = "node-not-ready"
    FILE_CHANGED = "file-changed"
    CONFIGURATION_RUNS = "configuration-runs"
    CONTROLLERS_NOT_READY = "controllers-not-ready"
    BROKERS_NOT_REGISTERED = "brokers-not-registered"
    PARTITIONS_NOT_IN_SYNC = "partitions-not-in-sync"
    PARTITIONS_WOULD_STOP = "partitions-would-stop"
    QUORUM_TOO_THIN = "quorum-too-thin"
    PREFLIGHT_BLOCKERS = "preflight-blockers"
    ROLLBACK_NOT_VERIFIED = "rollback-not-verified"
    SOAK_NOT_OVER = "soak-not-over"
    MESSAGES_DIFFER = "messages-differ"
    CHECK_INCONCLUSIVE = "check-inconclusive"
    CHECKS_WORKER_MISSING = "checks-worker-missing"
    STATE_NOT_UNDERSTOOD = "state-not-understood"


@dataclass(frozen=True)
class WaitText:
    """`means`: what it means and what to do. `about`: what it is about, if it names nothing itself. `expected`: what ends it.
    `for_people`: only a person ends it.
    """

    means: str
    about: str
    expected: str
    for_people: bool = False


WAITS: dict[str, WaitText] = {
    WaitReason.HELD: WaitText(
        "The migration is held, by a person or by Keeperless itself: the detail says by whom and why. Fix what it names, "
        "if anything. Then resume the migration, or ask for a rollback.",
        "the migration is held",
        "the migration is not held",
        for_people=True,
    ),
    WaitReason.PART_UNKNOWN: WaitText(
        "Something did not answer, and unknown is never healthy. Make it reachable; it goes on by itself.",
        "a part of the cluster does not answer",
        "every part answers",
    ),
    WaitReason.NODE_DOWN: WaitText(
        "A node is not running. Nothing else is touched. Look in `blockers` and in its log for why, repair that, and "
        "start the node from its present file.",
        "a node does not run",
        "every node runs",
    ),
    WaitReason.NODE_NOT_READY: WaitText(
        "A node runs and does not serve yet.",
        "a node does not serve yet",
        "every node serves",
    ),
    WaitReason.FILE_CHANGED: WaitText(
        "The file of a node is not what this migration left there, or not what its process runs with. It is not "
        "overwritten, and the node is not restarted from it. `blockers` shows what differs and how to put it back.",
        "a node's file is not as this migration left it",
        "files as this migration left them",
    ),
    WaitReason.CONFIGURATION_RUNS: WaitText(
        "Configuration management that was paused for this migration runs again, or does not say whether it does: it may "
        "write files back. Pause it there, and it goes on by itself; or ask for a rollback.",
        "configuration management that was paused runs again",
        "it stays paused until the migration has released it",
    ),
    WaitReason.CONTROLLERS_NOT_READY: WaitText(
        "The controller quorum is not ready for the migration yet.",
        "the quorum is not ready",
        "all controllers follow one leader",
    ),
    WaitReason.BROKERS_NOT_REGISTERED: WaitText(
        "A broker has not registered with the controller quorum, or a broker has that is not in the specification. If one "
        "is missing, look in its log: the usual cause is a wrong inter.broker.protocol.version. If one is too many and "
        "not needed: reassign its replicas, stop it, unregister it.",
        "a broker is not registered",
        "every broker is registered with the controllers",
    ),
    WaitReason.PARTITIONS_NOT_IN_SYNC: WaitText(
        "Replicas are catching up. No node restarts before all are in sync.",
        "replicas lag",
        "every replica in sync",
    ),
    WaitReason.PARTITIONS_WOULD_STOP: WaitText(
        "A restart would take partitions below min.insync.replicas. Raise their replication factor, or lower "
        "min.insync.replicas where it is set: kafka-configs.sh --describe --all --entity-type topics --entity-name NAME "
        "tells whether that is the topic, all brokers, or a file.",
        "partitions cannot spare this broker",
        "every partition keeps min.insync.replicas while one broker restarts",
    ),
    WaitReason.QUORUM_TOO_THIN: WaitText(
        "Without this controller no majority would be caught up.",
        "no majority would be left without it",
        "a majority is caught up without this controller",
    ),
    WaitReason.PREFLIGHT_BLOCKERS: WaitText(
        "Somebody else has begun this migration, or has had a hand in it since, and what the preflight asks does not "
        "hold. No broker is touched before that is mended.",
        "the preflight finds blockers",
        "no blocker, or each accepted by name",
    ),
    WaitReason.ROLLBACK_NOT_VERIFIED: WaitText(
        "Somebody has asked for a rollback, and it is not verified yet. No step that cannot be undone is taken before "
        "that. Verifying needs the ledger, ZooKeeper and every node: `blockers` says which does not answer.",
        "a rollback was asked for",
        "it is accepted, or refused",
    ),
    WaitReason.SOAK_NOT_OVER: WaitText("The policy asks for a longer soak.", "the soak", "the soak that the policy asks for"),
    WaitReason.MESSAGES_DIFFER: WaitText(
        "Clients' data is not what it was before the first restart, and no retention or compaction explains it: the "
        "report names each place. Finalize cannot be approved. It is compared again every recheck_interval; where it is "
        "meant, tolerate it by name in the policy of a migration that takes over.",
        "clients' data",
        "clients' data as before the first restart",
    ),
    WaitReason.CHECK_INCONCLUSIVE: WaitText(
        "Whether both sides say the same could not be told, and unknown is never healthy. The report says what was not "
        "read; it is looked at again every recheck_interval. What answers keeperless-activities, and not "
        "keeperless-checks, lies with that one: its machine, its network, its environment (proxies), its rights.",
        "a comparison was inconclusive",
        "a comparison that could read both sides",
    ),
    WaitReason.CHECKS_WORKER_MISSING: WaitText(
        "Nobody looks at what has to be compared: no worker takes what is asked on the task queue checks. Start "
        "keeperless-checks; it goes on once that has looked.",
        "task queue checks",
        "keeperless-checks takes what is asked there",
    ),
    WaitReason.STATE_NOT_UNDERSTOOD: WaitText(
        "What is seen fits no state of this migration. Nothing is touched.",
        "the cluster's state",
        "a state of this migration",
    ),
}

KEEPERLESS = "keeperless"
"""The name of the holder in events and in `Hold.by`, if the product itself holds."""


def means_of_hold(by: str) -> str:
    """What a hold means, by who holds."""
    if by == KEEPERLESS:
        return (
            "Keeperless holds the migration itself, for the reason in the detail. Fix what that names. Then resume the "
            "migration, or ask for a rollback."
        )
    return f"{by} holds the migration. Resume it when ready." if by else WAITS[WaitReason.HELD].means
