"""Which steps of a migration become waves, and which never do."""

from itertools import pairwise

import pytest

from domain.decisions import Decision, Step, Wait
from domain.observed.observation import KafkaView, Observation, RollMark, SharedPartitions
from domain.rolling.waves import shared_partitions
from domain.rulings import Ruling
from domain.waits import WaitReason
from domain.zk_to_kraft.assessment import assess
from domain.zk_to_kraft.invariant import ensure_allowed_by
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.roll_waves import in_waves, is_leadership_returned, planned_waves
from domain.zk_to_kraft.steps import NodeStage, StepAction
from tests.unit.conftest import (
    NOW,
    ZOOKEEPER_CONTROLLER,
    Point,
    broker_metrics,
    broker_view,
    cluster_spec,
    mark_of,
    observation,
    stopped,
    text_at,
    with_file,
    with_kafka,
    with_metrics,
    with_node,
    with_part,
)

SPEC = cluster_spec(brokers=6)
RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
ASSIGNMENT = {f"orders-{p}": (1 + 3 * (p % 2), 2 + 3 * (p // 2 % 2), 3 + 3 * (p // 4 % 2)) for p in range(8)}
SHARED = shared_partitions(ASSIGNMENT.items())
POLICY = ZkToKraftPolicy(max_parallel=4, compare_copy=False, compare_messages=False)
SERIAL = POLICY.model_copy(update={"max_parallel": 1})


def seen(point: Point, rolled: tuple[int, ...] = (), **kafka: object) -> Observation:
    """Six brokers in three racks, some of which have been rolled further than the point says."""
    found = with_kafka(observation(point, brokers=6), **({"shared": SHARED, "racks": RACKS} | kafka))
    stage = NodeStage.MIGRATION if point is Point.CONTROLLERS_UP else NodeStage.KRAFT
    for broker in rolled:
        found = with_node(found, broker, lambda node: broker_view(SPEC, node.id, stage))
    in_kraft = {Point.CONTROLLERS_UP: 0, Point.SOAK: 6}.get(point, len(rolled))
    hybrid = len(rolled) if point is Point.CONTROLLERS_UP else 6 - in_kraft
    for controller in SPEC.controllers if point is not Point.BEFORE else ():
        found = with_metrics(found, controller.id, migrating_broker_count=hybrid, active_broker_count=hybrid + in_kraft)
    return found


def decided(found: Observation, policy: ZkToKraftPolicy = POLICY, ruling: Ruling | None = None) -> Decision:
    return assess(found, SPEC, policy, ruling or Ruling(), "artefact").decision


def wave(found: Observation, policy: ZkToKraftPolicy = POLICY) -> tuple[int, ...]:
    decision = decided(found, policy)
    assert isinstance(decision, Step), decision
    assert decision.action == StepAction.ROLL_NODE
    ensure_allowed_by(found, SPEC, policy, Ruling(), decision)
    return decision.nodes


@pytest.mark.parametrize(
    ("point", "waves"),
    [
        (Point.CONTROLLERS_UP, [(5,), (1, 4), (3, 6), (2,)]),
        (Point.DUAL_WRITE, [(1,), (2, 5), (3, 6), (4,)]),
    ],
)
def test_both_rolls_go_in_the_waves_that_the_plan_shows(point: Point, waves: list[tuple[int, ...]]) -> None:
    """Broker 2 is ZooKeeper's controller: its neighbour is the canary, and it goes last. In roll 2 nobody is last."""
    assert ZOOKEEPER_CONTROLLER == 2
    stage = NodeStage.MIGRATION if point is Point.CONTROLLERS_UP else NodeStage.KRAFT
    assert [w.node_ids for w in planned_waves(stage, seen(point), SPEC, POLICY)] == waves
    rolled: tuple[int, ...] = ()
    for expected in waves:
        assert wave(seen(point, rolled)) == expected
        rolled += expected


def test_a_plan_before_anything_is_touched_has_both_rolls() -> None:
    before = seen(Point.BEFORE)
    first = planned_waves(NodeStage.MIGRATION, before, SPEC, POLICY)
    second = planned_waves(NodeStage.KRAFT, before, SPEC, POLICY)
    assert [w.node_ids for w in first] == [(5,), (1, 4), (3, 6), (2,)]
    assert [w.node_ids for w in second] == [(1,), (2, 5), (3, 6), (4,)]


def test_the_specification_says_the_racks_of_brokers_that_say_nothing() -> None:
    """In the specification each has a rack of its own, and what brokers say themselves counts more."""
    assert wave(seen(Point.DUAL_WRITE, (1,), racks={})) == (2,)
    assert wave(seen(Point.DUAL_WRITE, (1,), racks={2: "b", 5: "b"})) == (2, 5)


@pytest.mark.parametrize(
    ("point", "order"), [(Point.CONTROLLERS_UP, (1, 3, 4, 5, 6, 2)), (Point.DUAL_WRITE, (1, 2, 3, 4, 5, 6))]
)
@pytest.mark.parametrize("rolled", [(), (5,), (5, 1)])
def test_one_at_a_time_is_what_it_always_was(point: Point, order: tuple[int, ...], rolled: tuple[int, ...]) -> None:
    """By policy, and where nobody knows who shares partitions: the broker that `decide` names, and no company."""
    found = seen(point, rolled)
    alone = decided(found, SERIAL)
    assert isinstance(alone, Step)
    assert alone.nodes == (next(broker for broker in order if broker not in rolled),)
    assert decided(with_kafka(found, shared=None)) == alone
    assert alone.model_dump() == alone.model_dump() | {"companions": ()}


def test_an_older_observation_knows_nothing_of_shared_partitions() -> None:
    told = seen(Point.DUAL_WRITE).model_dump(mode="json")
    for name in ("shared", "racks"):
        del told["kafka"][name]
    old = Observation.model_validate(told)
    assert old.kafka is not None
    assert (old.kafka.shared, old.kafka.racks) == (None, {})
    assert KafkaView.model_validate_json(old.kafka.model_dump_json()) == old.kafka


def test_nobody_goes_along_who_is_needed() -> None:
    """Broker 5 is; when it is its own turn that is a wait, as ever."""
    needs = {broker: ("single-0",) if broker == 5 else () for broker in RACKS}
    assert wave(seen(Point.DUAL_WRITE, (1,), needs=needs)) == (3, 6)
    found = decided(seen(Point.DUAL_WRITE, (1, 2, 3, 4, 6), needs=needs))
    assert isinstance(found, Wait)
    assert found.reason == WaitReason.PARTITIONS_WOULD_STOP
    given_up = POLICY.model_copy(update={"may_be_unavailable": ("single",)})
    assert wave(seen(Point.DUAL_WRITE, (1,), needs=needs), given_up) == (2, 5)


def test_two_that_share_a_partition_stay_apart_though_it_could_spare_both() -> None:
    shared = (*SHARED, SharedPartitions(brokers=(2, 5), count=1, example="wide-0"))
    assert wave(seen(Point.DUAL_WRITE, (1,), shared=shared)) == (3, 6)


def test_what_was_interrupted_is_finished_alone() -> None:
    """Two brokers of a wave were stopped, and the worker died: one after the other is started, without company."""
    found = seen(Point.CONTROLLERS_UP, (5,))
    text = text_at(SPEC, 1, NodeStage.MIGRATION)
    for broker in (1, 4):
        text = text_at(SPEC, broker, NodeStage.MIGRATION)
        found = with_file(found, broker, text)
        file = found.node(broker).disk.file  # type: ignore[union-attr]
        mark = mark_of(file.sha256, before_identity=f"pid-{broker}")  # type: ignore[union-attr]
        found = with_part(with_file(found, broker, text, mark), broker, process=stopped(f"pid-{broker}"), metrics=None)
    found = with_kafka(found, broker_ids=(2, 3, 5, 6))
    assert wave(found) == (1,)


def test_a_file_that_is_ahead_of_its_process_is_rolled_alone() -> None:
    """A roll of ours wrote it."""
    edited = with_file(seen(Point.CONTROLLERS_UP, (5,)), 1, text_at(SPEC, 1, NodeStage.MIGRATION))
    disk = edited.node(1).disk
    assert disk is not None
    assert disk.file is not None
    mark = RollMark(
        step_id="a/1",
        generation=1,
        stage=NodeStage.MIGRATION,
        before_identity="1@1",
        before_sha256="",
        written_sha256=disk.file.sha256,
    )
    ours = disk.model_copy(update={"file": disk.file.model_copy(update={"mark": mark})})
    found = with_node(edited, 1, lambda node: node.model_copy(update={"disk": ours}))
    assert wave(found) == (1,)
    assert found.node(1).metrics == broker_metrics(NodeStage.ZOOKEEPER)


def test_the_end_of_the_first_roll_is_one_broker_whatever_may_go_together() -> None:
    """With nothing shared and no racks all others go at once, and the last registration is still one broker's."""
    roomy = POLICY.model_copy(update={"max_parallel": 9})
    spec_racks = dict.fromkeys(RACKS, "same")
    assert wave(seen(Point.CONTROLLERS_UP, (5,), shared=(), racks=spec_racks), roomy) == (1, 3, 4, 6)
    assert wave(seen(Point.CONTROLLERS_UP, (5, 1, 3, 4, 6), shared=(), racks=spec_racks), roomy) == (2,)
    without_controller = seen(Point.CONTROLLERS_UP, (5, 2), shared=(), racks=spec_racks)
    assert wave(without_controller, roomy) == (1, 3, 4), "the controller has been restarted already: somebody is still last"


def test_what_is_kept_before_the_copy_is_kept_before_that_one_broker() -> None:
    keeping = POLICY.model_copy(update={"compare_copy": True})
    assert wave(seen(Point.CONTROLLERS_UP, (5, 1, 4)), keeping) == (3, 6)
    last = decided(seen(Point.CONTROLLERS_UP, (1, 3, 4, 5, 6)), keeping)
    assert isinstance(last, Step)
    assert last.action == StepAction.KEEP_METADATA


def test_the_way_back_and_an_end_too_early_stay_one_by_one() -> None:
    for found in (seen(Point.SOAK), seen(Point.DUAL_WRITE, (1, 2))):
        losses = tuple(f"original-of-broker-{broker}" for broker in RACKS)
        back = decided(found, ruling=Ruling(accepted_losses=losses))
        assert isinstance(back, Step), back
        assert back.companions == ()
    early = with_metrics(seen(Point.DUAL_WRITE, (1,)), 3001, migration_gauge=3)
    assert wave(early) == (2,)


def test_steps_of_controllers_and_of_the_cluster_are_left_as_they_are() -> None:
    found = seen(Point.DUAL_WRITE, (1,))
    for step in (
        Step(action=StepAction.ROLL_NODE, node_id=3001, stage=NodeStage.KRAFT),
        Step(action=StepAction.FAIL_OVER, node_id=3001, stage=NodeStage.MIGRATION),
        Step(action=StepAction.COMPARE_COPY, stage=NodeStage.MIGRATION),
        Wait(reason=WaitReason.HELD),
    ):
        assert in_waves(step, situation_of(found, SPEC, POLICY), found, SPEC, POLICY) is step


def test_leadership_is_returned_between_waves_and_not_while_the_copy_begins() -> None:
    def is_returned(found: Observation, stage: NodeStage, policy: ZkToKraftPolicy = POLICY, node: int = 1) -> bool:
        return is_leadership_returned(Step(action=StepAction.ROLL_NODE, node_id=node, stage=stage), found, SPEC, policy)

    first, second = NodeStage.MIGRATION, NodeStage.KRAFT
    assert is_returned(seen(Point.CONTROLLERS_UP, (5, 1)), first)
    assert not is_returned(seen(Point.CONTROLLERS_UP, (1, 2, 3, 4, 5, 6)), first)
    assert not is_returned(seen(Point.DUAL_WRITE), first), "on the way back"
    assert is_returned(seen(Point.DUAL_WRITE, (1,)), second)
    assert is_returned(seen(Point.SOAK), second)
    assert not is_returned(seen(Point.SOAK), second, node=3001)
    assert not is_returned(seen(Point.DUAL_WRITE, (1,)), second, SERIAL)


def test_the_same_facts_give_the_same_wave() -> None:
    """A step is taken only when a fresh look decides the very same one: order of nodes and all."""
    looks = [decided(seen(Point.DUAL_WRITE, (1,)).model_copy(update={"ended_at": NOW})) for _ in range(3)]
    assert all(one == other for one, other in pairwise(looks))
