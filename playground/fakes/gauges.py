"""Which gauges a simulated node shows, by the mode of its process (internals, section 2)."""

from domain.observed.observation import MigrationGauge, NodeMetrics
from playground.fakes.node import VERSION, Mode
from playground.fakes.quorum import Quorum

RUNNING, STARTING = 3, 1
NO_LEADER = -1


def broker_gauges(
    node_id: int,
    mode: Mode,
    *,
    is_serving: bool,
    is_zookeeper_controller: bool,
    zookeeper_brokers: int,
    behind: int,
    quorum: Quorum,
) -> NodeMetrics:
    """`behind`: under-replicated partitions that it reports."""
    found = NodeMetrics(
        node_id=node_id,
        broker_state=RUNNING if is_serving else STARTING,
        under_replicated_partitions=behind,
        kafka_version=VERSION,
    )
    if mode is not Mode.KRAFT:
        zookeeper = {
            "migration_gauge": MigrationGauge.ZK,
            "active_controller_count": int(is_zookeeper_controller),
            "active_broker_count": zookeeper_brokers,
            "fenced_broker_count": 0,
            "zookeeper_session": "CONNECTED",
        }
        found = found.model_copy(update=zookeeper)
    return found if mode is Mode.ZOOKEEPER else found.model_copy(update=_raft(quorum))


def controller_gauges(node_id: int, mode: Mode, active: int, quorum: Quorum) -> NodeMetrics:
    """`active`: unfenced registrations. The lag and the session exist only where the flag is on."""
    is_leading = quorum.leader == node_id
    found = NodeMetrics(
        node_id=node_id,
        migration_gauge=MigrationGauge.BOOTING if quorum.leader is None or quorum.log_state is None else quorum.log_state,
        active_controller_count=int(is_leading),
        migrating_broker_count=sum(found.mode is Mode.HYBRID for found in quorum.registered.values()),
        active_broker_count=active,
        fenced_broker_count=len(quorum.registered) - active,
        metadata_error_count=0,
        kafka_version=VERSION,
    ).model_copy(update=_raft(quorum))
    if mode is Mode.FINAL_CONTROLLER:
        return found
    return found.model_copy(update={"write_behind_lag": 0, "zookeeper_session": "CONNECTED"})


def _raft(quorum: Quorum) -> dict[str, int]:
    return {
        "raft_leader": NO_LEADER if quorum.leader is None else quorum.leader,
        "raft_epoch": quorum.epoch,
        "raft_log_end": quorum.log_end,
        "raft_high_watermark": quorum.log_end,
    }
