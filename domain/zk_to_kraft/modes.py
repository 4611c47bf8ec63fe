"""What one node is in this migration: its process by the MBeans that it has, its file by its features.

Modes are judged by the running process, stages by the file, and neither by the other: a roll is precisely the time in which
they differ. What did not answer is UNKNOWN and stays so.
"""

from enum import StrEnum

from domain.cluster import Role
from domain.health.liveness import Liveness, broker_liveness, controller_liveness
from domain.observed.observation import MigrationGauge, NodeDisk, NodeView
from domain.zk_to_kraft.node_config import has_migration_flag, stage_of
from domain.zk_to_kraft.steps import NodeStage


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


MODE_OF_STAGE: dict[NodeStage, set[BrokerMode | ControllerMode]] = {
    NodeStage.ZOOKEEPER: {BrokerMode.ZOOKEEPER},
    NodeStage.MIGRATION: {BrokerMode.HYBRID, ControllerMode.MIGRATING},
    NodeStage.KRAFT: {BrokerMode.KRAFT, ControllerMode.FINAL},
}


def broker_mode(node: NodeView) -> BrokerMode:
    """The mode of a broker's process: which MBeans it has says which code it runs (internals, section 2)."""
    liveness = broker_liveness(node)
    if liveness is not Liveness.SERVING:
        return BrokerMode(liveness)
    if node.metrics is None or left_out(node):
        return BrokerMode.UNKNOWN
    if node.metrics.raft_epoch is None:
        return BrokerMode.ZOOKEEPER
    return BrokerMode.HYBRID if node.metrics.migration_gauge is MigrationGauge.ZK else BrokerMode.KRAFT


def controller_mode(node: NodeView) -> ControllerMode:
    """The mode of a controller's process. `ZkWriteBehindLag` is registered only where the flag is on."""
    liveness = controller_liveness(node)
    if liveness is not Liveness.SERVING:
        return ControllerMode(liveness)
    if node.metrics is None:
        return ControllerMode.UNKNOWN
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


def is_flag_in_file(disk: NodeDisk | None) -> bool:
    return disk is None or disk.file is None or has_migration_flag(disk.file.properties)
