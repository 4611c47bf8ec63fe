"""What one node is: its process by the MBeans that it has, its file by its features, and how the file could be brought back.

Modes are judged by the running process, stages by the file, and neither by the other: a roll is precisely the time in which
they differ. What did not answer is UNKNOWN and stays so.
"""

from enum import StrEnum

from domain.cluster import Role
from domain.decisions import NodeStage
from domain.observation import MigrationGauge, NodeDisk, NodeView, RollMark, StorageState
from domain.zk_to_kraft.node_config import has_migration_flag, stage_of

BROKER_STATE_RUNNING = 3
"""Kafka's BrokerState RUNNING (BrokerState.java)."""


class BrokerMode(StrEnum):
    """What a broker's process is. The first three serve; the others do not, or cannot be told."""

    ZOOKEEPER = "zookeeper"
    HYBRID = "hybrid"
    KRAFT = "kraft"
    IN_TRANSITION = "in-transition"
    """Runs, and is starting or stopping."""
    INTERRUPTED = "interrupted"
    """Not running: a roll of ours stopped it and did not get to start it."""
    DOWN = "down"
    """Not running, for a reason that is not ours, or it died after we started it."""
    UNKNOWN = "unknown"


class ControllerMode(StrEnum):
    """What a controller's process is."""

    ABSENT = "absent"
    """Not provisioned by us yet. A file or data that somebody else left there is the preflight's business."""
    MIGRATING = "migrating"
    """Runs with the migration flag."""
    FINAL = "final"
    """Runs without it: the migration is final as soon as this controller becomes active."""
    IN_TRANSITION = "in-transition"
    INTERRUPTED = "interrupted"
    """Provisioned or stopped by us, and not started."""
    FENCED = "fenced"
    """Stopped by the way back, and unable to start: its storage has been put aside."""
    DOWN = "down"
    UNKNOWN = "unknown"


NOT_SERVING = frozenset({"in-transition", "interrupted", "down"})
"""Modes in which a node is known not to serve."""


MODE_OF_STAGE: dict[NodeStage, set[BrokerMode | ControllerMode]] = {
    NodeStage.ZOOKEEPER: {BrokerMode.ZOOKEEPER},
    NodeStage.MIGRATION: {BrokerMode.HYBRID, ControllerMode.MIGRATING},
    NodeStage.KRAFT: {BrokerMode.KRAFT, ControllerMode.FINAL},
}


class Restoration(StrEnum):
    """How the file of a node that we changed can be brought back."""

    ARCHIVE = "archive"
    """The original lies beside it, and the file is as this product left it."""
    EDITED = "edited"
    """The original lies beside it; somebody has changed the file since, and would lose that."""
    INVERSE = "inverse"
    """No original: only by taking back, key by key, what a migration adds."""
    UNKNOWN = "unknown"


def broker_mode(node: NodeView) -> BrokerMode:
    """The mode of a broker's process: which MBeans it has says which code it runs (internals, section 2)."""
    if node.process is None or node.disk is None or node.is_unowned:
        return BrokerMode.UNKNOWN
    if not node.process.is_running:
        return BrokerMode.INTERRUPTED if _is_interrupted(node) else BrokerMode.DOWN
    metrics = node.metrics
    if metrics is None:
        return BrokerMode.UNKNOWN
    if metrics.broker_state != BROKER_STATE_RUNNING:
        return BrokerMode.IN_TRANSITION
    if left_out(node):
        return BrokerMode.UNKNOWN
    if metrics.raft_epoch is None:
        return BrokerMode.ZOOKEEPER
    return BrokerMode.HYBRID if metrics.migration_gauge is MigrationGauge.ZK else BrokerMode.KRAFT


def controller_mode(node: NodeView) -> ControllerMode:
    """The mode of a controller's process. `ZkWriteBehindLag` is registered only where the flag is on."""
    if node.process is None or node.disk is None or node.is_unowned:
        return ControllerMode.UNKNOWN
    if not node.process.is_running:
        return _mode_of_stopped_controller(node)
    if node.metrics is None:
        return ControllerMode.UNKNOWN
    if node.metrics.active_controller_count is None:
        return ControllerMode.IN_TRANSITION
    if node.metrics.write_behind_lag is not None:
        return ControllerMode.MIGRATING
    if left_out(node):
        return ControllerMode.UNKNOWN
    # A controller that is booting registers its gauges one after the other: not yet there is not without the flag.
    is_booting = node.metrics.migration_gauge in {None, MigrationGauge.BOOTING}
    return ControllerMode.IN_TRANSITION if is_booting else ControllerMode.FINAL


def left_out(node: NodeView) -> str:
    """An MBean that this process had when it was proven and that is not shown to us any more, by its JMX name; else empty.

    No process loses one. Without it the node would be taken for what it is not: a hybrid broker for one in KRaft mode.
    """
    mark, metrics = node.mark, node.metrics
    if mark is None or metrics is None or node.process is None or mark.proven_identity is None:
        return ""
    if node.process.identity != mark.proven_identity:
        return ""
    is_broker, is_hybrid = metrics.broker_state is not None, mark.stage == NodeStage.MIGRATION
    if is_broker and mark.stage != NodeStage.ZOOKEEPER and metrics.raft_epoch is None:
        return "kafka.server:type=raft-metrics"
    if is_broker and is_hybrid and metrics.migration_gauge is None:
        return "kafka.controller:type=KafkaController,name=ZkMigrationState"
    if not is_broker and is_hybrid and metrics.active_controller_count is not None and metrics.write_behind_lag is None:
        return "kafka.controller:type=KafkaController,name=ZkWriteBehindLag"
    return ""


def _mode_of_stopped_controller(node: NodeView) -> ControllerMode:
    assert node.process is not None  # noqa: S101 - the caller has looked
    assert node.disk is not None  # noqa: S101
    if any(log_dir.is_fenced for log_dir in node.disk.log_dirs) and not is_startable(node.disk):
        return ControllerMode.FENCED
    if node.disk.file is None:
        return ControllerMode.ABSENT
    mark = node.disk.file.mark
    has_run = node.process.last_identity is not None or is_known_to_have_run(mark)
    if not has_run and mark is None:
        return ControllerMode.ABSENT
    return ControllerMode.INTERRUPTED if not has_run or _is_interrupted(node) else ControllerMode.DOWN


def is_known_to_have_run(mark: RollMark | None) -> bool:
    """By its mark, whatever has become of its storage and of what tells of its process: a reboot empties `/run`, and the volume
    may not be mounted.

    Empty storage of such a controller is never formatted: with a majority of those an empty quorum would find `/migration`,
    go on from it, and delete what ZooKeeper has (internals, finding 7).
    """
    return mark is not None and (mark.is_proven or mark.has_run)


def _is_interrupted(node: NodeView) -> bool:
    """A roll of ours stopped the process it had found, and nobody has started another since.

    A roll writes the file before it stops the process: with another file the process ended by itself, unless it had been
    stopped before the roll.
    """
    file = node.disk.file if node.disk is not None else None
    mark = file.mark if file is not None else None
    return (
        file is not None
        and mark is not None
        and not mark.is_proven
        and (file.sha256 == mark.written_sha256 or (mark.was_stopped and file.sha256 == mark.before_sha256))
        and node.process is not None
        and mark.before_identity == node.process.last_identity
    )


def stage_of_disk(disk: NodeDisk | None, role: Role) -> NodeStage | None:
    """The stage that the file fits. Edits of others since our last write are theirs, as long as they leave ours alone:
    the next stage is an edit of the file as it is then, so that nothing of theirs is overwritten. One in stage `zookeeper` is
    theirs in any case: whoever put it back by hand begins anew, whatever mark an earlier migration has left.
    """
    if disk is None or disk.file is None:
        return None
    stage, mark = stage_of(disk.file.properties, role), disk.file.mark
    if mark is None or stage in {NodeStage.ZOOKEEPER, mark.stage}:
        return stage
    return stage if disk.file.sha256 in {mark.written_sha256, mark.before_sha256, mark.original_sha256} else None


def restoration_of(disk: NodeDisk | None) -> Restoration:
    """How the file of a node could be brought back to what it was before the migration."""
    if disk is None or disk.file is None:
        return Restoration.UNKNOWN
    if disk.file.original_sha256 is None:
        return Restoration.INVERSE
    mark = disk.file.mark
    ours = {mark.written_sha256, mark.before_sha256} if mark is not None and not mark.has_edits else set()
    return Restoration.ARCHIVE if disk.file.sha256 in {*ours, disk.file.original_sha256} else Restoration.EDITED


def is_file_ours(disk: NodeDisk | None) -> bool:
    file = disk.file if disk is not None else None
    return file is not None and file.mark is not None and file.sha256 == file.mark.written_sha256


class CanaryDebt(StrEnum):
    """What our last roll of a broker owes: to try clients' ways, and to remove what was made for that."""

    NONE = "none"
    UNUSED = "unused"
    """The roll has not restarted it yet: nothing is to be tried, and something may be there already."""
    DUE = "due"


def canary_debt(node: NodeView) -> CanaryDebt:
    mark = node.mark
    if mark is None or not mark.are_canaries_due:
        return CanaryDebt.NONE
    is_used = node.process is None or node.process.identity != mark.before_identity
    return CanaryDebt.DUE if is_used else CanaryDebt.UNUSED


def has_metadata_log(disk: NodeDisk | None) -> bool:
    return disk is not None and any(log_dir.has_metadata_log for log_dir in disk.log_dirs)


def is_startable(disk: NodeDisk | None) -> bool:
    """Whether a controller could start: KRaft refuses storage that was never formatted, or is fenced in every directory.

    Also asked of a controller that runs: half-way into the window it runs on storage that is fenced already.
    """
    if disk is None:
        return True
    unformatted = {StorageState.ABSENT, StorageState.EMPTY}
    return any(log_dir.state not in unformatted and not log_dir.is_fenced for log_dir in disk.log_dirs)


def is_flag_in_file(disk: NodeDisk | None) -> bool:
    return disk is None or disk.file is None or has_migration_flag(disk.file.properties)
