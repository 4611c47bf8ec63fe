"""Why a migration from ZooKeeper to KRaft does nothing: the waits of this kind, beside those that every kind has."""

from enum import StrEnum

from domain.waits import WAITS as OF_EVERY_KIND
from domain.waits import WaitReason, WaitText


class ZkWait(StrEnum):
    """Waits that only this kind has."""

    QUORUM_CANNOT_MIGRATE = "quorum-cannot-migrate"
    TOPIC_WITHOUT_ID = "topic-without-id"
    COPY_LEFT_OVER = "copy-left-over"
    COPY_NOT_COMPLETE = "copy-not-complete"
    DUAL_WRITE_NOT_CURRENT = "dual-write-not-current"
    FAILOVER_WOULD_HURT = "failover-would-hurt"
    COPY_CANNOT_FINISH = "copy-cannot-finish"
    HALF_REVERTED = "half-reverted"
    NO_CONTROLLER = "no-controller"
    CONTROLLER_LOST_ITS_FLAG = "controller-lost-its-flag"
    FINALIZATION_NOT_SEEN = "finalization-not-seen"
    DRIFT_FOUND = "drift-found"
    COPY_DIFFERS = "copy-differs"


WAITS: dict[str, WaitText] = OF_EVERY_KIND | {
    ZkWait.QUORUM_CANNOT_MIGRATE: WaitText(
        "The quorum's log says NONE: its first active controller ran without the migration flag, and no migration can "
        "ever start from this log. If KRaft has /controller or a broker runs in KRaft mode, the controllers' storage was "
        "emptied in the middle of a migration: stop the controllers and put their old metadata.log.dir back. Otherwise "
        "ask for a rollback, which wipes the controllers; then start another migration.",
        "the quorum's log says NONE",
        "a log that was begun with zookeeper.metadata.migration.enable",
    ),
    ZkWait.TOPIC_WITHOUT_ID: WaitText(
        "A topic has no topic_id in ZooKeeper. The next ZooKeeper controller makes up another id, and brokers refuse the "
        "topic. Elect no controller and restart no broker: `blockers` says which id to put back, and how.",
        "a topic has no topic_id in ZooKeeper",
        "a topic_id in the znode of every topic",
    ),
    ZkWait.COPY_LEFT_OVER: WaitText(
        "/migration describes a copy that this quorum has not made, or cannot be read. If /controller is KRaft's or the "
        "controllers' log says MIGRATION, it is this quorum's own: delete nothing. Otherwise stop the controllers, delete "
        "/migration, and start the controllers again. If it stays, metadata is deleted from ZooKeeper when the last "
        "broker registers.",
        "/migration tells of another copy",
        "no such znode, or one with offset -1",
    ),
    ZkWait.COPY_NOT_COMPLETE: WaitText(
        "All brokers are hybrid; Kafka copies the metadata from ZooKeeper by itself. The active controller's log says "
        "what it waits for.",
        "the copy",
        "Kafka's copy is complete: ZkMigrationState MIGRATION",
    ),
    ZkWait.DUAL_WRITE_NOT_CURRENT: WaitText(
        "The controller does not keep ZooKeeper up to date: the way back would lose changes. It may be catching up after "
        "a burst of changes: look again in a moment.",
        "/migration",
        "ZooKeeper has what the quorum has",
    ),
    ZkWait.FAILOVER_WOULD_HURT: WaitText(
        "Dual write has died, and a failover, which would cure it, would make it worse now. Mend what is named first.",
        "a failover would hurt",
        "nothing that a new leader would choke on",
    ),
    ZkWait.COPY_CANNOT_FINISH: WaitText(
        "ALARM: the copy kills one controller after another, and the cluster has no controller. The policy says not to go "
        "back by itself: ask for a rollback now.",
        "the copy kills its controllers",
        "a copy that every znode lets through",
    ),
    ZkWait.HALF_REVERTED: WaitText(
        "A way back was begun here and not ended: its controllers are fenced. Ask for a rollback; forward again starts "
        "from plain ZooKeeper.",
        "a way back stands half-done",
        "controllers that are not fenced",
    ),
    ZkWait.NO_CONTROLLER: WaitText(
        "ALARM: no broker has become controller since the KRaft controllers gave way. `blockers` names the znode if one "
        "cannot be read: repair that first. Otherwise restart one hybrid broker by hand if this lasts, from the file that "
        "it has.",
        "the cluster has no controller",
        "a broker holds /controller",
    ),
    ZkWait.CONTROLLER_LOST_ITS_FLAG: WaitText(
        "ALARM: a controller runs without zookeeper.metadata.migration.enable before finalize was approved. If it becomes "
        "active, the migration is final. Give it the flag back and restart it now.",
        "a controller without its flag",
        "every controller has the migration flag",
    ),
    ZkWait.FINALIZATION_NOT_SEEN: WaitText(
        "The controllers run without the flag; the quorum does not report it yet.",
        "the quorum's log",
        "ZkMigrationState POST_MIGRATION",
    ),
    WaitReason.SOAK_NOT_OVER: WaitText(
        "All brokers run in KRaft mode, in dual write. The policy asks for a longer soak.",
        "the soak",
        "all brokers in KRaft mode for policy.min_soak",
    ),
    ZkWait.DRIFT_FOUND: WaitText(
        "ZooKeeper and KRaft differ: the report names each object. Finalize cannot be approved, and an approval given "
        "before does not count. Repair what differs; it is compared again every recheck_interval.",
        "ZooKeeper and KRaft differ",
        "a comparison without drift",
    ),
    ZkWait.COPY_DIFFERS: WaitText(
        "Kafka's copy is not what ZooKeeper had right before it: the report names each object. Either the copy has lost "
        "it, or somebody has changed it in the minute between the two looks, and since, as a tool does that sets it again "
        "and again. Look what it is now, and ask who uses it. No broker goes on into KRaft mode meanwhile. What was "
        "changed or deleted on purpose, tolerate by name in the policy of a migration that takes over; for what is lost "
        "ask for a rollback, and repair ZooKeeper.",
        "Kafka's copy",
        "the copy has all that ZooKeeper had",
    ),
}
"""All that this kind can wait for."""
