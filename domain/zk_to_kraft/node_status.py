"""A cluster as people see it: nodes in words, numbers of the moment, how much of the way is done."""

from domain.cluster import ClusterSpec, NodeSpec, original_path
from domain.decisions import Intent
from domain.health.quorum import quorum_leader
from domain.observed.observation import MigrationGauge, NodeView, Observation
from domain.questions import Gauges
from domain.records import Measured, NodeStatus
from domain.rolling.configuration_management import state_of
from domain.zk_to_kraft.guards import STAGE_OF_MODE
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.reduction import offset_distance
from domain.zk_to_kraft.situation import QuorumState, Situation
from domain.zk_to_kraft.steps import NodeStage

SERVING = frozenset({BrokerMode.ZOOKEEPER, BrokerMode.HYBRID, BrokerMode.KRAFT})


def node_statuses(situation: Situation, spec: ClusterSpec, observation: Observation) -> tuple[NodeStatus, ...]:
    """Every node in the words that people see."""
    brokers = tuple(
        NodeStatus(
            name=spec.node_name(b.id), role="broker", mode=b.mode, stage=b.stage or "unknown", is_ready=b.mode in SERVING
        )
        for b in situation.brokers
    )
    controllers = tuple(
        NodeStatus(
            name=spec.node_name(c.id),
            role="controller",
            mode=c.mode,
            stage=c.stage or ("absent" if c.mode is ControllerMode.ABSENT else "unknown"),
            is_ready=c.is_caught_up,
        )
        for c in situation.controllers
    )
    return tuple(
        status.model_copy(update=_kept_on(observation.node(node.id), spec.node(node.id)))
        for status, node in zip(brokers + controllers, situation.nodes, strict=True)
    )


def _kept_on(view: NodeView, node: NodeSpec) -> dict[str, str | None]:
    """What is known of a node beside its mode and its stage."""
    file = view.disk.file if view.disk is not None else None
    sha256 = file.original_sha256 if file is not None else None
    original = original_path(node.properties_file, sha256) if sha256 is not None else None
    return {"configuration_management": state_of(view, node), "original": original}


def gauges_of(observation: Observation, spec: ClusterSpec) -> Gauges:
    """The numbers of this moment, as the active controller reports them."""
    leader = quorum_leader(observation, spec)
    zookeeper, kafka = observation.zookeeper, observation.kafka
    controller = zookeeper.controller if zookeeper is not None else None
    gauges = leader.metrics if leader is not None else None
    return Gauges(
        migration_state=_migration_state(observation, spec),
        migrating_brokers=gauges.migrating_broker_count if gauges is not None else None,
        write_behind_lag=gauges.write_behind_lag if gauges is not None else None,
        offset_distance=offset_distance(zookeeper, leader),
        under_replicated=len(kafka.under_replicated) if kafka is not None else None,
        quorum_leader=spec.node_name(leader.id) if leader is not None else None,
        zookeeper_controller=str(controller.broker_id) if controller is not None else None,
    )


def numbers_of(gauges: Gauges) -> tuple[Measured, ...]:
    """What is plotted over time, under Kafka's own names."""
    state = gauges.migration_state
    return (
        Measured(name="ZkMigrationState", value=MigrationGauge[state] if state is not None else None, says=state or ""),
        Measured(name="ZkWriteBehindLag", value=gauges.write_behind_lag),
    )


def is_over(phase: Phase | None, gauges: Gauges) -> bool:
    """Whether the quorum's log says that the migration is final: then there is no rollback, whatever has been ordered."""
    return phase in {Phase.KRAFT, Phase.FINALIZED_EARLY} or gauges.migration_state == MigrationGauge.POST_MIGRATION.name


def title_of(heading: Intent) -> str:
    return "back to ZooKeeper" if heading is Intent.REVERT else "from ZooKeeper to KRaft"


def readings_of(gauges: Gauges) -> str:
    """The numbers of the moment in one line."""
    lag = "unknown" if gauges.write_behind_lag is None else gauges.write_behind_lag
    state, leader = gauges.migration_state or "unknown", gauges.quorum_leader or "none"
    return f"ZkMigrationState {state}, ZkWriteBehindLag {lag}, quorum leader {leader}"


def _migration_state(observation: Observation, spec: ClusterSpec) -> str | None:
    leader = quorum_leader(observation, spec)
    if leader is not None and leader.metrics.migration_gauge is not None:
        return leader.metrics.migration_gauge.name
    brokers = [m.migration_gauge for b in spec.brokers if (m := observation.node(b.id).metrics) is not None]
    return MigrationGauge.ZK.name if MigrationGauge.ZK in brokers else None


def steps_of(situation: Situation, intent: Intent) -> tuple[int, int]:
    """How many steps are done, of how many, on the way that is being gone; it may have been begun anywhere."""
    is_back = intent is Intent.REVERT and situation.quorum is not QuorumState.POST_MIGRATION
    return _steps_back(situation) if is_back else _steps_forward(situation)


def _steps_forward(s: Situation) -> tuple[int, int]:
    stages = [STAGE_OF_MODE.get(b.mode) for b in s.brokers]
    provisioned = sum(c.mode is not ControllerMode.ABSENT for c in s.controllers)
    finalized = sum(c.mode is ControllerMode.FINAL for c in s.controllers)
    hybrid = sum(stage in {NodeStage.MIGRATION, NodeStage.KRAFT} for stage in stages)
    in_kraft = sum(stage is NodeStage.KRAFT for stage in stages)
    return provisioned + finalized + hybrid + in_kraft, 2 * len(s.brokers) + 2 * len(s.controllers)


def _steps_back(s: Situation) -> tuple[int, int]:
    """Roll A, the window, roll B, the wipe. Who never was in KRaft mode has its part of roll A behind it."""
    stages = [STAGE_OF_MODE.get(b.mode) for b in s.brokers]
    out_of_kraft = sum(stage in {NodeStage.ZOOKEEPER, NodeStage.MIGRATION} for stage in stages)
    back = sum(stage is NodeStage.ZOOKEEPER for stage in stages)
    has_window = (
        all(c.mode in {ControllerMode.FENCED, ControllerMode.ABSENT} for c in s.controllers) and not s.has_migration_znode
    )
    is_wiped = all(c.mode is ControllerMode.ABSENT for c in s.controllers) and not any(b.has_metadata_log for b in s.brokers)
    return out_of_kraft + has_window + back + is_wiped, 2 * len(s.brokers) + 2
