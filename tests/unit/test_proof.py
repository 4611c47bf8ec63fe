"""Why a restarted node is not proven well, in the words that lead people to the cause."""

from domain.observed.observation import Observation, RollMark
from domain.waits import WAITS, WaitReason
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.proof import dead_besides, why_not_proven
from domain.zk_to_kraft.steps import NodeStage
from tests.unit.conftest import LEADER, Point, cluster_spec, observation, stopped, with_kafka, with_metrics, with_part

SPEC = cluster_spec()
STANDBY = 3003


def why(seen: Observation, node_id: int = STANDBY, stage: NodeStage = NodeStage.MIGRATION) -> str:
    missing = why_not_proven(seen, SPEC, ZkToKraftPolicy(), node_id, stage)
    return missing.words if missing is not None else ""


def with_fenced(seen: Observation, broker_id: int) -> Observation:
    """As the quorum sees a broker whose session has ended."""
    in_sync = tuple(b.id for b in SPEC.brokers if b.id != broker_id)
    seen = with_metrics(seen, LEADER, active_broker_count=len(in_sync), fenced_broker_count=1)
    return with_kafka(seen, broker_ids=in_sync)


def test_a_healthy_cluster_proves_its_nodes() -> None:
    assert why(observation(Point.SOAK)) == ""
    assert why(observation(Point.SOAK), 1, NodeStage.KRAFT) == ""


def test_a_file_that_its_start_command_has_overwritten_is_named() -> None:
    seen = observation(Point.BEFORE)
    assert why(seen, 1) == "broker-1 is zookeeper, expected hybrid or migrating"
    file = seen.node(1).disk.file  # type: ignore[union-attr]
    assert file is not None
    mark = RollMark(
        step_id="m/1", generation=1, stage="migration", before_identity="1@1", before_sha256="a", written_sha256="b"
    )
    disk = seen.node(1).disk.model_copy(update={"file": file.model_copy(update={"mark": mark})})  # type: ignore[union-attr]
    told = why(with_part(seen, 1, disk=disk), 1)
    assert told.startswith("broker-1 is zookeeper, expected hybrid or migrating. ")
    assert f"{SPEC.node(1).properties_file} is not what this step wrote" in told


def test_a_node_that_died_meanwhile_is_named_and_the_rolled_one_itself_is_not() -> None:
    for node_id, name in ((3, "broker-3"), (3002, "controller-3002")):
        dead = with_part(observation(Point.SOAK), node_id, process=stopped("old"), metrics=None)
        assert dead_besides(dead, SPEC, ZkToKraftPolicy(), {1}, NodeStage.KRAFT) == name
        assert dead_besides(dead, SPEC, ZkToKraftPolicy(), {node_id}, NodeStage.KRAFT) == ""
    both = with_part(
        with_part(observation(Point.SOAK), 1, process=stopped("a"), metrics=None), 2, process=stopped("b"), metrics=None
    )
    assert dead_besides(both, SPEC, ZkToKraftPolicy(), {1, 2}, NodeStage.KRAFT) == ""
    assert dead_besides(observation(Point.SOAK), SPEC, ZkToKraftPolicy(), {1}, NodeStage.KRAFT) == ""


def test_back_in_zookeeper_mode_nobody_misses_a_controller() -> None:
    dead = with_part(observation(Point.SOAK), 3002, process=stopped("old"), metrics=None)
    assert dead_besides(dead, SPEC, ZkToKraftPolicy(), {1}, NodeStage.ZOOKEEPER) == ""
    dead = with_part(dead, 2, process=stopped("old"), metrics=None)
    assert dead_besides(dead, SPEC, ZkToKraftPolicy(), {1}, NodeStage.ZOOKEEPER) == "broker-2"


def test_a_broker_that_runs_and_does_not_register_is_the_registrations_affair() -> None:
    assert why(with_fenced(observation(Point.SOAK), 3)) == WAITS[WaitReason.BROKERS_NOT_REGISTERED].means


def test_replicas_that_catch_up_are_waited_for() -> None:
    seen = with_kafka(observation(Point.SOAK), broker_ids=(1, 2))
    assert why(seen) == WAITS[WaitReason.PARTITIONS_NOT_IN_SYNC].means
