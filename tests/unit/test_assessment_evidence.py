"""Evidence, digests, and any observation whatever: what an approval binds to, what a watch wakes for, what never raises."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.contracts import Assessment
from domain.decisions import Decision, Done, Gate, Revert, Step, Wait
from domain.evidence import hash_of
from domain.observed.observation import (
    ControllerZnode,
    MigrationGauge,
    MigrationZnode,
    NodeMetrics,
    NodeView,
    Observation,
    PartitionFault,
    Process,
    Suspect,
    Unanswered,
)
from domain.rulings import GivenApproval, Ruling
from domain.waits import WaitReason
from domain.zk_to_kraft.assessment import assess, sight_of
from domain.zk_to_kraft.evidence import evidence_of
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.node_config import MIGRATION_FLAG
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.probed import with_probed
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.steps import GateName, NodeStage, StepAction
from domain.zk_to_kraft.waits import ZkWait
from domain.zk_to_kraft.way_back import OUTCOME
from tests.unit.conftest import (
    LEADER,
    LOG_END,
    NOW,
    Point,
    cluster_spec,
    observation,
    report_of,
    seen_file,
    stopped,
    text_at,
    with_file,
    with_kafka,
    with_metrics,
    with_part,
    with_zookeeper,
)
from workflows.telling import waiting_of

SPEC = cluster_spec()
POLICY = ZkToKraftPolicy()
SOAK = observation(Point.SOAK)


def judged(seen: Observation, ruling: Ruling | None = None, policy: ZkToKraftPolicy = POLICY) -> Assessment:
    """With a comparison that was clean a moment ago, where the ruling says nothing of any."""
    ruling = ruling or Ruling()
    return assess(seen, SPEC, policy, replace(ruling, reports=ruling.reports or (report_of(seen),)), "artefact")


def approved(hash_: str | None, *, is_consumed: bool = False, is_held: bool = False) -> Ruling:
    given = GivenApproval(evidence_hash=hash_, is_consumed=is_consumed)
    return Ruling(approvals={GateName.FINALIZE: given}, is_held=is_held)


def evidence_hash(seen: Observation) -> str:
    return hash_of(evidence_of(seen, SPEC, POLICY, situation_of(seen, SPEC, POLICY), Ruling(reports=(report_of(seen),))))


# Evidence


def later(seen: Observation) -> Observation:
    """The same cluster a week later: every offset, time and count has moved."""
    for node in (*SPEC.brokers, *SPEC.controllers):
        seen = with_metrics(seen, node.id, raft_log_end=LOG_END + 9000, raft_high_watermark=LOG_END + 8999)
    seen = with_metrics(seen, LEADER, write_behind_lag=3)
    seen = with_zookeeper(seen, migration=MigrationZnode(controller_id=LEADER, controller_epoch=7, offset=LOG_END + 8998))
    seen = with_kafka(seen, topic_count=9, partition_count=99)
    moved = {"started_at": seen.started_at + timedelta(days=7), "ended_at": seen.ended_at + timedelta(days=7)}
    return seen.model_copy(update=moved)


def reordered(seen: Observation) -> Observation:
    seen = seen.model_copy(update={"nodes": tuple(reversed(seen.nodes))})
    seen = with_zookeeper(seen, assigned_broker_ids=(3, 1, 2))
    return with_kafka(seen, broker_ids=(2, 3, 1), needs={3: (), 1: (), 2: ()})


@pytest.mark.parametrize("change", [later, reordered])
def test_evidence_and_digest_do_not_depend_on_offsets_times_counts_or_order(change: Any) -> None:
    for point in Point:
        seen = observation(point)
        if change is later and point is not Point.SOAK:
            continue
        assert evidence_hash(change(seen)) == evidence_hash(seen)
        assert judged(change(seen)).digest == judged(seen).digest


MATERIAL = {
    "a broker's file": with_file(SOAK, 1, text_at(SPEC, 1, NodeStage.KRAFT) + "# by hand\n"),
    "a controller's file": with_file(SOAK, 3001, text_at(SPEC, 3001, NodeStage.MIGRATION) + "# by hand\n"),
    "a broker's mode": with_metrics(SOAK, 1, broker_state=6),
    "a controller's mode": with_metrics(SOAK, 3001, write_behind_lag=None),
    "the claim's epoch": with_zookeeper(SOAK, controller=ControllerZnode(broker_id=LEADER, kraft_epoch=8, is_ephemeral=False)),
    "who claims": with_zookeeper(SOAK, controller=ControllerZnode(broker_id=1, kraft_epoch=None, is_ephemeral=True)),
    "no claim": with_zookeeper(SOAK, controller=None),
    "a file that did not answer": with_part(SOAK, 1, disk=None),
    "the specification": SOAK.model_copy(update={"spec_revision": 2}),
    "the log's state": with_metrics(SOAK, 3001, migration_gauge=MigrationGauge.POST_MIGRATION),
    "dual write": with_zookeeper(SOAK, migration=MigrationZnode(controller_id=LEADER, controller_epoch=7, offset=9)),
    "a registration": with_metrics(SOAK, LEADER, active_broker_count=2),
    "a replica": with_kafka(SOAK, under_replicated=(PartitionFault(partition="t-0", missing=(1,)),)),
    "zookeeper": SOAK.model_copy(update={"zookeeper": None}),
}


@pytest.mark.parametrize("what", MATERIAL)
def test_material_changes_change_the_evidence(what: str) -> None:
    assert evidence_hash(MATERIAL[what]) != evidence_hash(SOAK)


def test_a_mode_alone_changes_the_evidence() -> None:
    seen = observation(Point.DUAL_WRITE)
    booting = with_metrics(seen, 3001, active_controller_count=None)
    before, after = (evidence_of(each, SPEC, POLICY, situation_of(each, SPEC, POLICY)) for each in (seen, booting))
    assert {key for key in before if before[key] != after[key]} == {"nodes"}


def test_all_material_changes_differ_from_each_other() -> None:
    assert len({evidence_hash(seen) for seen in MATERIAL.values()}) == len(MATERIAL)


def test_the_policy_is_part_of_the_evidence() -> None:
    situation = situation_of(SOAK, SPEC, POLICY)
    hashes = {hash_of(evidence_of(SOAK, SPEC, ZkToKraftPolicy(stable_samples=n), situation)) for n in (1, 2)}
    assert len(hashes) == 2


# The gate


def test_the_gate_shows_the_evidence_that_an_approval_binds_to() -> None:
    assessment = judged(SOAK)
    assert isinstance(assessment.decision, Gate)
    assert assessment.gate is not None
    assert assessment.decision.evidence_hash == assessment.gate.evidence_hash == hash_of(assessment.gate.evidence)
    assert assessment.phase == Phase.SOAK


def test_an_approval_on_the_evidence_as_it_is_opens_the_gate() -> None:
    opened = judged(SOAK, approved(evidence_hash(SOAK)))
    assert opened.decision.decision == "step"
    assert opened.gate is None
    assert judged(later(SOAK), approved(evidence_hash(SOAK))).decision == opened.decision


def test_an_approval_on_evidence_that_has_changed_opens_nothing() -> None:
    moved = with_zookeeper(SOAK, controller=ControllerZnode(broker_id=LEADER, kraft_epoch=8, is_ephemeral=False))
    assessment = judged(moved, approved(evidence_hash(SOAK)))
    assert isinstance(assessment.decision, Gate)
    assert assessment.decision.evidence_hash != evidence_hash(SOAK)


def test_a_consumed_approval_is_bound_to_its_evidence_until_a_controller_shows_its_effect() -> None:
    """The attempt that consumed it may have died before the first write: new evidence still matters. A hold comes too late."""
    moved = with_zookeeper(SOAK, controller=ControllerZnode(broker_id=LEADER, kraft_epoch=8, is_ephemeral=False))
    ruling = approved(evidence_hash(SOAK), is_consumed=True)
    assert judged(SOAK, ruling).decision.decision == "step"
    assert isinstance(judged(moved, ruling).decision, Gate)
    assert judged(SOAK, replace(ruling, is_held=True)).decision.decision == "step"
    held = judged(moved, replace(ruling, is_held=True))
    assert isinstance(held.decision, Wait)
    assert held.decision.reason == WaitReason.HELD
    assert held.gate is not None, "a person can decide on the new evidence while it is held"


def test_a_gate_behind_a_hold_is_open_and_an_approval_closes_it() -> None:
    held = judged(SOAK, Ruling(is_held=True))
    assert held.gate is not None
    assert held.gate.evidence_hash == evidence_hash(SOAK) == held.evidence_hash
    armed = judged(SOAK, replace(approved(evidence_hash(SOAK)), is_held=True))
    assert (armed.gate, armed.decision.decision) == (None, "wait")
    assert armed.digest != held.digest


def test_a_consumed_approval_needs_no_evidence_once_finalisation_has_begun() -> None:
    """The first standby has its new file, and runs as before: a kill between write and stop."""
    standby = next(c.id for c in SPEC.controllers if c.id != LEADER)
    begun = with_file(SOAK, standby, text_at(SPEC, standby, NodeStage.KRAFT))
    ruling = approved(evidence_hash(SOAK), is_consumed=True, is_held=True)
    decision = judged(begun, ruling).decision
    assert (decision.decision, getattr(decision, "node_id", None)) == ("step", standby)
    unapproved = judged(begun).decision
    assert unapproved == Step(action=StepAction.ROLL_NODE, node_id=standby, stage=NodeStage.MIGRATION)


def test_the_soak_is_awaited() -> None:
    policy = ZkToKraftPolicy(min_soak=timedelta(hours=2))
    decision = judged(SOAK, policy=policy).decision
    assert isinstance(decision, Wait)
    assert decision.reason == WaitReason.SOAK_NOT_OVER
    assert isinstance(judged(later(SOAK), policy=policy).decision, Gate)


# What people are told


def test_waits_name_nodes_partitions_and_parts() -> None:
    down = with_part(SOAK, 2, process=stopped("pid-2"), metrics=None, last_output=("Exception in thread main",))
    decision = judged(down).decision
    assert isinstance(decision, Wait)
    assert (decision.reason, decision.objects) == (WaitReason.NODE_DOWN, ("broker-2",))
    assert "Exception in thread main" in decision.detail
    lagging = judged(with_kafka(SOAK, under_replicated=(PartitionFault(partition="orders-3", missing=(2,)),))).decision
    assert isinstance(lagging, Wait)
    assert lagging.objects == ("orders-3",)
    needed = judged(with_kafka(observation(Point.DUAL_WRITE), needs={1: ("orders-3",), 2: (), 3: ()})).decision
    assert isinstance(needed, Wait)
    assert (needed.reason, needed.objects, needed.detail) == (WaitReason.PARTITIONS_WOULD_STOP, ("broker-1",), "orders-3")


def test_dead_dual_write_is_named_behind_every_other_wait_and_wakes_a_watch() -> None:
    dead_znode = MigrationZnode(controller_id=LEADER, controller_epoch=7, offset=LOG_END - 500)
    lagging = with_kafka(SOAK, under_replicated=(PartitionFault(partition="orders-3", missing=(2,)),))
    for seen, ruling in ((SOAK, Ruling(is_held=True)), (lagging, Ruling()), (lagging, reverting(*ORIGINALS))):
        well = judged(seen, ruling)
        dead = judged(with_zookeeper(seen, migration=dead_znode), ruling)
        assert dead.digest != well.digest
        assert isinstance(dead.decision, Wait)
        assert isinstance(well.decision, Wait)
        assert dead.decision.reason == well.decision.reason
        assert "dual write has died" in dead.decision.detail
        assert "dual write has died" not in well.decision.detail
        waiting = waiting_of(dead, NOW, "held by anna")
        assert waiting is not None
        assert "dual write has died" in waiting.detail
        assert ("held by anna" in waiting.detail) is ruling.is_held


def test_a_left_over_copy_is_named() -> None:
    left = MigrationZnode(controller_id=9, controller_epoch=1, offset=105)
    decision = judged(with_zookeeper(observation(Point.CONTROLLERS_UP), migration=left)).decision
    assert isinstance(decision, Wait)
    assert (decision.reason, decision.objects) == (ZkWait.COPY_LEFT_OVER, ("/migration",))


def test_a_wait_names_at_most_twenty_objects_and_stays_small() -> None:
    faults = tuple(PartitionFault(partition=f"a-long-topic-name-{i}-{i}", missing=(2,)) for i in range(20_000))
    assessment = judged(with_kafka(SOAK, under_replicated=faults))
    assert isinstance(assessment.decision, Wait)
    assert len(assessment.decision.objects) == 20
    assert len(assessment.model_dump_json()) < 64 * 1024


def test_a_watch_does_not_wake_for_numbers() -> None:
    def lagging(partition: str) -> Observation:
        return with_kafka(SOAK, under_replicated=(PartitionFault(partition=partition, missing=(2,)),))

    assert judged(lagging("a-1")).digest == judged(lagging("b-2")).digest
    silent = [SOAK.model_copy(update={"kafka": None, "unanswered": (Unanswered(what="kafka", why=w),)}) for w in "ab"]
    assert judged(silent[0]).digest == judged(silent[1]).digest


def test_a_watch_wakes_for_what_matters() -> None:
    digests = {
        judged(seen).digest for seen in (SOAK, observation(Point.FINAL), MATERIAL["a broker's mode"], MATERIAL["zookeeper"])
    }
    assert len(digests) == 4
    assert judged(SOAK, Ruling(is_held=True)).digest != judged(SOAK).digest


def test_a_watch_wakes_for_a_node_in_a_hold_which_hides_every_other_wait() -> None:
    held, seen = Ruling(is_held=True), observation(Point.DUAL_WRITE)
    booting = with_metrics(seen, 3001, active_controller_count=None)
    assert judged(booting, held).decision == judged(seen, held).decision
    assert judged(booting, held).digest != judged(seen, held).digest
    assert judged(later(SOAK), held).digest == judged(SOAK, held).digest


def test_a_lost_flag_is_given_back_whatever_is_held_or_silent() -> None:
    lost = with_metrics(SOAK, 3001, write_behind_lag=None)
    for seen, ruling in ((lost, Ruling(is_held=True)), (lost.model_copy(update={"kafka": None}), Ruling())):
        decision = judged(seen, ruling).decision
        assert decision == Step(action=StepAction.ROLL_NODE, node_id=3001, stage=NodeStage.MIGRATION)
    silent = with_part(with_file(SOAK, 3001, text_at(SPEC, 3001, NodeStage.KRAFT)), 3001, metrics=None)
    alarm = judged(silent).decision
    assert isinstance(alarm, Wait)
    assert (alarm.reason, alarm.objects) == (ZkWait.CONTROLLER_LOST_ITS_FLAG, ("controller-3001",))


def test_steps_are_counted_up_to_their_number() -> None:
    done = [judged(observation(point)).steps_done for point in Point]
    assert done == [0, 3, 6, 6, 9, 12]
    assert judged(SOAK).steps_total == 12


# The way back


def reverting(*accepted: str, is_held: bool = False) -> Ruling:
    return Ruling(accepted_losses=accepted, is_held=is_held)


ORIGINALS = tuple(f"original-of-broker-{b.id}" for b in SPEC.brokers)


def test_progress_goes_up_on_the_way_back_too() -> None:
    """From all brokers in KRaft mode: roll A, the window, roll B, the wipe. From anywhere else less of it is left."""
    points = (Point.SOAK, Point.DUAL_WRITE, Point.BEFORE)
    progress = [(a.steps_done, a.steps_total) for a in (judged(observation(point), reverting()) for point in points)]
    assert progress == [(0, 8), (3, 8), (8, 8)]


def test_a_final_log_counts_forward_again() -> None:
    assessment = judged(observation(Point.FINAL), reverting())
    assert (assessment.steps_done, assessment.steps_total) == (12, 12)
    assert assessment.decision == Done(outcome=Phase.KRAFT)


def test_the_way_back_begins_with_the_brokers_in_kraft_mode() -> None:
    decision = judged(SOAK, reverting(*ORIGINALS)).decision
    assert decision == Step(action=StepAction.ROLL_NODE, node_id=1, stage=NodeStage.MIGRATION)
    assert judged(observation(Point.BEFORE), reverting()).decision == Done(outcome=OUTCOME)


def test_a_loss_that_nobody_accepted_is_named() -> None:
    decision = judged(SOAK, reverting("original-of-broker-1")).decision
    assert isinstance(decision, Wait)
    assert (decision.reason, decision.objects) == (WaitReason.FILE_CHANGED, ("broker-2", "broker-3"))
    assert "original-of-broker-2: " in decision.detail
    behind = MigrationZnode(controller_id=LEADER, controller_epoch=7, offset=LOG_END - 500)
    catching_up = with_metrics(with_zookeeper(observation(Point.DUAL_WRITE), migration=behind), LEADER, write_behind_lag=498)
    waiting = judged(catching_up, reverting(*ORIGINALS)).decision
    assert isinstance(waiting, Wait)
    assert waiting.reason == ZkWait.DUAL_WRITE_NOT_CURRENT
    assert "metadata-changes: " in waiting.detail
    accepted = judged(catching_up, reverting(*ORIGINALS, "metadata-changes")).decision
    assert accepted == Step(action=StepAction.LEAVE_KRAFT, stage=NodeStage.ZOOKEEPER)


HALF = Suspect(what="topic orders without its state", why="a controller died while it wrote it", is_mended_by_window=True)
STRAY = Suspect(what="client metrics config k of all", why="cannot be compared")


@pytest.mark.parametrize("hazards", [(HALF,), (HALF, STRAY), (STRAY,), None])
def test_only_what_the_window_mends_by_itself_is_left_to_it(hazards: tuple[Suspect, ...] | None) -> None:
    """A topic that a controller's death has cut in two makes dual write die, and no failover cures it."""
    behind = MigrationZnode(controller_id=LEADER, controller_epoch=7, offset=LOG_END - 500)
    dead = with_zookeeper(observation(Point.DUAL_WRITE), migration=behind)
    dead = with_probed(dead, failover_hazards=hazards)
    forward = judged(dead).decision
    assert isinstance(forward, Wait)
    assert forward.reason == ZkWait.FAILOVER_WOULD_HURT
    assert hazards is None or forward.objects == tuple(hazard.what for hazard in hazards)
    back = judged(dead, reverting(*ORIGINALS)).decision
    if hazards == (HALF,):
        assert back == Step(action=StepAction.LEAVE_KRAFT, stage=NodeStage.ZOOKEEPER)
    else:
        assert isinstance(back, Wait)
        assert back.reason == ZkWait.FAILOVER_WOULD_HURT


def test_an_approved_finalize_means_nothing_on_the_way_back() -> None:
    ruling = replace(approved(evidence_hash(SOAK), is_consumed=True), accepted_losses=ORIGINALS)
    begun = with_file(SOAK, 3001, text_at(SPEC, 3001, NodeStage.KRAFT))
    assert judged(begun, ruling).decision == Step(action=StepAction.ROLL_NODE, node_id=3001, stage=NodeStage.MIGRATION)


def test_what_turns_us_round_is_named() -> None:
    claim = ControllerZnode(broker_id=LEADER, kraft_epoch=7, is_ephemeral=False)
    left = MigrationZnode(controller_id=9, controller_epoch=1, offset=LOG_END + 105)
    stale = judged(with_zookeeper(observation(Point.HYBRID), controller=claim, migration=left)).decision
    assert stale == Revert(reason=ZkWait.COPY_LEFT_OVER, objects=("/migration",))
    begun = MigrationZnode(controller_id=LEADER, controller_epoch=7, offset=-1)
    failed = with_zookeeper(observation(Point.HYBRID), controller=claim, migration=begun)
    for controller in SPEC.controllers:
        failed = with_part(failed, controller.id, process=stopped(f"pid-{controller.id}"), metrics=None)
    poison = Suspect(what="/config/users/bob", why="its SCRAM credential cannot be read")
    failed = with_probed(failed, poisoned_znodes=(poison,))
    decision = judged(failed).decision
    assert isinstance(decision, Revert)
    assert (decision.reason, decision.objects) == (ZkWait.COPY_CANNOT_FINISH, ("/config/users/bob",))
    assert "SCRAM" in decision.detail
    asked = judged(failed, policy=ZkToKraftPolicy(revert_failed_copy=False)).decision
    assert isinstance(asked, Wait)
    assert (asked.reason, asked.objects) == (decision.reason, decision.objects)


# Any observation whatever

INTS = st.one_of(st.none(), st.integers(-1, 3), st.just(LEADER), st.integers(LOG_END - 30, LOG_END + 30))
METRICS = st.builds(
    NodeMetrics,
    broker_state=st.sampled_from([None, 0, 1, 2, 3, 6, 7, 127]),
    migration_gauge=st.one_of(st.none(), st.sampled_from(MigrationGauge)),
    active_controller_count=st.sampled_from([None, 0, 1]),
    migrating_broker_count=INTS,
    active_broker_count=INTS,
    fenced_broker_count=INTS,
    write_behind_lag=INTS,
    zookeeper_session=st.sampled_from([None, "CONNECTED", "CONNECTING"]),
    raft_leader=st.sampled_from([None, -1, 3001, 3002, 3003]),
    raft_epoch=INTS,
    raft_log_end=INTS,
    kafka_version=st.sampled_from([None, "3.9.2", "x"]),
)
PROCESSES = st.builds(
    Process,
    is_running=st.booleans(),
    identity=st.sampled_from([None, "old", "new"]),
    last_identity=st.sampled_from([None, "old", "new"]),
    started_at=st.sampled_from([None, NOW - timedelta(hours=1)]),
)
CONTROLLER_ZNODES = st.builds(
    ControllerZnode, broker_id=st.sampled_from([1, 9, LEADER]), kraft_epoch=INTS, is_ephemeral=st.booleans()
)
MIGRATION_ZNODES = st.builds(MigrationZnode, controller_id=INTS, controller_epoch=INTS, offset=INTS)
NODE_IDS = [node.id for node in SPEC.nodes]


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    """Every part of a healthy observation replaced by another point's, by nonsense, or by nothing."""
    seen = observation(draw(st.sampled_from(Point)))
    nodes: list[NodeView] = []
    for node_id in NODE_IDS:
        view = observation(draw(st.sampled_from(Point))).node(node_id)
        parts = {
            "process": draw(st.one_of(st.just(view.process), st.none(), PROCESSES)),
            "disk": draw(st.sampled_from([view.disk, None, observation(Point.BEFORE).node(node_id).disk])),
            "metrics": draw(st.one_of(st.just(view.metrics), st.none(), METRICS)),
        }
        nodes.append(view.model_copy(update=parts))
    seen = with_zookeeper(
        seen,
        controller=draw(st.one_of(st.none(), CONTROLLER_ZNODES)),
        migration=draw(st.one_of(st.none(), MIGRATION_ZNODES)),
        controller_epoch=draw(INTS),
    )
    faults = (PartitionFault(partition="t-0", missing=(1,)),)
    seen = with_kafka(
        seen, under_replicated=draw(st.sampled_from([(), faults])), broker_ids=draw(st.sampled_from([(), (1, 2, 3)]))
    )
    whole = {"nodes": tuple(draw(st.permutations(nodes)))}
    for part in ("zookeeper", "kafka"):
        if draw(st.booleans()):
            whole[part] = None  # type: ignore[assignment]
    return seen.model_copy(update=whole)


@settings(deadline=None, max_examples=300)
@given(seen=observations(), held=st.booleans(), hash_=st.sampled_from([None, "x"]), consumed=st.booleans())
def test_any_observation_has_a_situation_and_a_decision(
    seen: Observation, held: bool, hash_: str | None, consumed: bool
) -> None:
    situation = situation_of(seen, SPEC, POLICY)
    for view in seen.nodes:
        node = next(node for node in situation.nodes if node.id == view.id)
        if view.process is None or view.disk is None or (view.process.is_running and view.metrics is None):
            assert node.mode == "unknown", "missing is never healthy"
        elif not view.process.is_running:
            assert node.mode in {"absent", "interrupted", "fenced", "down"}
    if seen.kafka is None:
        assert situation.replication == "unknown"
    if seen.zookeeper is None:
        assert (situation.claim, situation.dual_write) == ("unknown", "unknown")
    ruling = approved(hash_, is_consumed=consumed, is_held=held)
    assessment = judged(seen, ruling)
    assert Assessment.model_validate_json(assessment.model_dump_json()) == assessment
    assert len(assessment.model_dump_json()) < 64 * 1024
    sight_of(seen, SPEC, POLICY)
    unknown = {BrokerMode.UNKNOWN, ControllerMode.UNKNOWN}
    if any(node.mode in unknown for node in situation.nodes) and not gives_a_flag_back(assessment.decision):
        assert assessment.decision.decision in {"wait", "refuse", "revert"}


def gives_a_flag_back(decision: Decision) -> bool:
    """The one thing that waits for no answer: an election would make the migration final."""
    is_roll = isinstance(decision, Step) and decision.action == StepAction.ROLL_NODE
    return is_roll and decision.node > 3000 and decision.stage == NodeStage.MIGRATION


@settings(deadline=None, max_examples=100)
@given(seen=observations())
def test_the_order_of_parts_changes_neither_digest_nor_evidence(seen: Observation) -> None:
    assert judged(reordered_nodes(seen)).digest == judged(seen).digest
    assert evidence_hash(reordered_nodes(seen)) == evidence_hash(seen)


def reordered_nodes(seen: Observation) -> Observation:
    return seen.model_copy(update={"nodes": tuple(reversed(seen.nodes))})


@settings(deadline=None, max_examples=50)
@given(seen=observations())
def test_an_observation_survives_its_artefact(seen: Observation) -> None:
    assert Observation.model_validate_json(seen.model_dump_json()) == seen


def test_a_file_hash_is_the_hash_of_its_bytes() -> None:
    assert seen_file("a=1\n").sha256 != seen_file("a=1\r\n").sha256


@pytest.mark.parametrize("is_held", [False, True])
@pytest.mark.parametrize("node_id", [3001, 3002])
def test_an_end_too_early_is_led_forward_whatever_is_held_or_half_edited(node_id: int, is_held: bool) -> None:
    """Somebody deletes the flag's line and nothing else: the file fits no stage, and the log is final."""
    text = text_at(SPEC, node_id, NodeStage.MIGRATION).replace(f"{MIGRATION_FLAG}=true\n", "")
    seen = with_file(observation(Point.DUAL_WRITE), node_id, text)
    assert situation_of(seen, SPEC, POLICY).controllers[node_id - 3001].stage is None
    final = with_metrics(seen, node_id, migration_gauge=MigrationGauge.POST_MIGRATION, write_behind_lag=None)
    decision = judged(final, Ruling(is_held=is_held)).decision
    assert isinstance(decision, Step), decision
    assert (decision.action, decision.node_id, decision.stage) == (StepAction.ROLL_NODE, 1, NodeStage.KRAFT)
