"""Another cluster's id: a blocker before the start, a wait in flight, and no way back that would not come to its end."""

import pytest

from domain.decisions import Decision, Refuse, Step, Wait
from domain.observed.observation import LogDir, NodeDisk, NodeView, Observation, StorageState
from domain.rulings import Ruling
from domain.waits import WaitReason
from domain.zk_to_kraft.assessment import assess
from domain.zk_to_kraft.blockers import blockers_of
from domain.zk_to_kraft.causes.case import case_of
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.preflight import preflight
from domain.zk_to_kraft.preview import preview_of
from domain.zk_to_kraft.steps import NodeStage, StepAction
from tests.unit.conftest import (
    CLUSTER_ID,
    Point,
    cluster_spec,
    observation,
    stopped,
    text_at,
    with_file,
    with_kafka,
    with_node,
    with_part,
    with_zookeeper,
)

SPEC = cluster_spec()
POLICY = ZkToKraftPolicy(compare_copy=False, compare_messages=False)
OTHER = "AAAAAAAAAAAAAAAAAAAAAA"
FILE = "/data/3001/meta.properties"
IN_FLIGHT = [Point.CONTROLLERS_UP, Point.HYBRID, Point.DUAL_WRITE, Point.SOAK]


def with_storage_of(seen: Observation, cluster_id: str | None, node_id: int = 3001) -> Observation:
    """Controller 3001 was formatted by somebody else."""
    found = LogDir(path="/data/3001", state=StorageState.FOREIGN, cluster_id=cluster_id, node_id=node_id)

    def change(node: NodeView) -> NodeView:
        disk = node.disk or NodeDisk(file=None, log_dirs=())
        return node.model_copy(update={"disk": disk.model_copy(update={"log_dirs": (found,)})})

    return with_node(seen, 3001, change)


def decided(seen: Observation, *, is_back: bool = False) -> Decision:
    return assess(seen, SPEC, POLICY, Ruling(accepted_losses=() if is_back else None), "name").decision


@pytest.mark.parametrize("point", IN_FLIGHT)
def test_in_flight_a_controller_of_another_cluster_is_waited_for_by_name(point: Point) -> None:
    seen = with_storage_of(observation(point), OTHER)
    decision = decided(seen)
    assert isinstance(decision, Wait)
    assert (decision.reason, decision.objects) == (WaitReason.PREFLIGHT_BLOCKERS, ("PF03",))
    assert all(word in decision.detail for word in ("controller-3001", FILE, OTHER, CLUSTER_ID))
    looked = case_of(seen, SPEC, POLICY)
    entries, explained = blockers_of(looked, decision)
    assert decision.reason in explained
    (entry,) = (entry for entry in entries if entry.object == f"controller-3001 {FILE}")
    assert (entry.code, OTHER in entry.observed, CLUSTER_ID in entry.expected) == ("PF03", True, True)
    assert all(entry.code == "PF03" for entry in entries), "what else the preflight asks is over"


@pytest.mark.parametrize("point", [*IN_FLIGHT, Point.FINAL])
def test_in_flight_nothing_is_done_for_another_cluster(point: Point) -> None:
    """A record of the same cluster with another id: ZooKeeper and the brokers are none of its own."""
    seen = with_kafka(with_zookeeper(observation(point), cluster_id=OTHER), cluster_id=OTHER)
    for foreign in (seen, with_kafka(observation(point), cluster_id=OTHER)):
        decision = decided(foreign)
        assert isinstance(decision, Wait)
        assert OTHER in decision.detail
    flagless = decided(with_file(seen, 3002, text_at(SPEC, 3002, NodeStage.KRAFT)))
    assert isinstance(flagless, Wait), "not even what cannot wait is ours to do"


@pytest.mark.parametrize("point", [*IN_FLIGHT, Point.FINAL])
def test_who_has_done_nothing_yet_ends_where_it_is_another_cluster(point: Point) -> None:
    """Its specification cannot be corrected as long as it lives."""
    seen = with_kafka(observation(point), cluster_id=OTHER)
    decision = assess(seen, SPEC, POLICY, Ruling(has_begun=False), "name").decision
    assert isinstance(decision, Refuse)
    assert [finding.code for finding in decision.findings] == ["PF03"]
    ours = assess(observation(point), SPEC, POLICY, Ruling(has_begun=False), "name").decision
    if point is Point.FINAL:
        assert ours.decision == "done", "what it has not done is not compared"
    else:
        assert ours == assess(observation(point), SPEC, POLICY, Ruling(), "name").decision


def test_an_id_that_somebody_wrote_into_zookeeper_is_no_other_cluster() -> None:
    """Then only what stops a broker is refused, right before it."""
    seen = with_zookeeper(observation(Point.SOAK), cluster_id=OTHER)
    assert decided(seen) == decided(observation(Point.SOAK))
    silent = decided(seen.model_copy(update={"kafka": None}))
    assert isinstance(silent, Wait)
    assert OTHER in silent.detail


def test_a_hold_stays_a_hold() -> None:
    held = assess(with_storage_of(observation(Point.SOAK), OTHER), SPEC, POLICY, Ruling(is_held=True), "name").decision
    assert isinstance(held, Wait)
    assert held.reason == WaitReason.HELD


def test_no_other_wait_hides_it() -> None:
    """A controller of another cluster is in no quorum: that it is not ready is no news."""
    seen = with_part(with_storage_of(observation(Point.CONTROLLERS_UP), OTHER), 3001, process=stopped("x"), metrics=None)
    decision = decided(seen)
    assert isinstance(decision, Wait)
    assert FILE in decision.detail


def test_before_the_start_it_is_a_blocker_of_which_cluster_this_is() -> None:
    seen = with_storage_of(observation(Point.BEFORE), OTHER)
    decision = decided(seen)
    assert isinstance(decision, Refuse)
    assert [(f.code, f.object) for f in decision.findings] == [
        ("PF03", f"controller-3001 {FILE}"),
        ("PF07", "controller-3001 /data/3001"),
    ]
    data = with_storage_of(observation(Point.BEFORE), None)
    assert [f.code for f in preflight(data, SPEC, POLICY)] == ["PF07"], "what names no cluster is no other cluster"


def test_a_flag_that_is_lost_comes_back_first() -> None:
    seen = with_storage_of(observation(Point.SOAK), OTHER)
    seen = with_zookeeper(seen, cluster_id=OTHER)
    decision = decided(with_file(seen, 3002, text_at(SPEC, 3002, NodeStage.KRAFT)))
    assert decision == Step(action=StepAction.ROLL_NODE, node_id=3002, stage=NodeStage.MIGRATION)


def test_after_the_end_only_forward_leads_out() -> None:
    decision = decided(with_storage_of(observation(Point.FINAL), OTHER))
    assert isinstance(decision, Step)
    assert decision.action == StepAction.COMPARE_END


@pytest.mark.parametrize("point", IN_FLIGHT)
@pytest.mark.parametrize(("cluster_id", "node_id"), [(OTHER, 3001), (CLUSTER_ID, 1)])
def test_a_way_back_that_would_not_remove_it_is_not_promised(point: Point, cluster_id: str, node_id: int) -> None:
    preview = preview_of(with_storage_of(observation(point), cluster_id, node_id), SPEC, POLICY, {})
    assert (preview.is_possible, preview.steps) == (False, ())
    words = (FILE, "controller-3001", f"node {node_id} of cluster {cluster_id}", f"node 3001 of cluster {CLUSTER_ID}")
    assert all(word in preview.why_not for word in words), preview.why_not


def test_what_lies_in_the_place_of_a_controller_that_was_never_made_is_left_alone() -> None:
    assert preview_of(with_storage_of(observation(Point.BEFORE), OTHER), SPEC, POLICY, {}).is_possible


def test_what_did_not_answer_names_no_other_cluster() -> None:
    blind = with_part(observation(Point.SOAK), 3001, disk=None)
    decision = decided(blind)
    assert isinstance(decision, Wait)
    assert decision.reason == WaitReason.PART_UNKNOWN
