"""What situations real servers' answers become: one test for each trap that reference/proven-facts.md names."""

from datetime import datetime
from typing import Any

import pytest

from domain.decisions import Wait
from domain.health.quorum import quorum_leader
from domain.health.replication import partitions_needing
from domain.observed.observation import (
    ControllerZnode,
    MigrationGauge,
    MigrationZnode,
    NodeMetrics,
    NodeView,
    Observation,
    PartitionFault,
    Process,
    StorageState,
)
from domain.rulings import Ruling
from domain.waits import WaitReason
from domain.zk_to_kraft.assessment import assess
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode, broker_mode, controller_mode
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.reduction import offset_distance, situation_of, soaked_for
from domain.zk_to_kraft.situation import (
    Claim,
    ControllerSituation,
    DualWrite,
    QuorumState,
    Registration,
    Replication,
    Situation,
)
from domain.zk_to_kraft.steps import NodeStage
from tests.unit.conftest import (
    LEADER,
    LOG_END,
    NOW,
    ZOOKEEPER_CONTROLLER,
    Point,
    broker_metrics,
    cluster_spec,
    mark_of,
    observation,
    seen_file,
    stopped,
    text_at,
    with_file,
    with_kafka,
    with_metrics,
    with_part,
    with_zookeeper,
)

SPEC = cluster_spec()
POLICY = ZkToKraftPolicy()
STANDBY = 3001


def look(seen: Observation) -> Situation:
    return situation_of(seen, SPEC, POLICY)


def modes(situation: Situation) -> set[str]:
    return {str(node.mode) for node in situation.nodes}


# The points at which a healthy cluster rests


@pytest.mark.parametrize(
    ("point", "broker", "controller", "quorum", "claim", "dual_write"),
    [
        (Point.BEFORE, "zookeeper", "absent", "absent", "zookeeper", "unknown"),
        (Point.CONTROLLERS_UP, "zookeeper", "migrating", "pre-migration", "zookeeper", "not-current"),
        (Point.HYBRID, "hybrid", "migrating", "pre-migration", "zookeeper", "not-current"),
        (Point.DUAL_WRITE, "hybrid", "migrating", "migration", "kraft", "current"),
        (Point.SOAK, "kraft", "migrating", "migration", "kraft", "current"),
        (Point.FINAL, "kraft", "final", "post-migration", "kraft", "not-current"),
    ],
)
def test_a_healthy_cluster(point: Point, broker: str, controller: str, quorum: str, claim: str, dual_write: str) -> None:
    situation = look(observation(point))
    assert modes(situation) == {broker, controller}
    assert (situation.quorum, situation.claim, situation.dual_write) == (quorum, claim, dual_write)
    assert situation.registration is (Registration.UNKNOWN if point is Point.BEFORE else Registration.AGREES)
    assert situation.replication is Replication.IN_SYNC
    assert [c.id for c in situation.controllers if c.is_leader] == ([] if point is Point.BEFORE else [LEADER])
    assert all(c.is_caught_up for c in situation.controllers) is (point is not Point.BEFORE)


def test_the_zookeeper_controller_is_known_while_there_is_one() -> None:
    assert [b.id for b in look(observation(Point.HYBRID)).brokers if b.is_zookeeper_controller] == [ZOOKEEPER_CONTROLLER]
    assert not any(b.is_zookeeper_controller for b in look(observation(Point.DUAL_WRITE)).brokers)


# Gauges as they are


@pytest.mark.parametrize("point", [Point.CONTROLLERS_UP, Point.HYBRID, Point.DUAL_WRITE, Point.SOAK])
def test_a_log_without_the_flag_is_known_as_that(point: Point) -> None:
    """Kafka's number for it is 0, which is not an absent gauge."""
    assert look(with_metrics(observation(point), LEADER, migration_gauge=MigrationGauge.NONE)).quorum is QuorumState.NONE


def test_brokers_report_gauge_4_always_so_it_says_nothing_of_the_quorum() -> None:
    seen = observation(Point.DUAL_WRITE)
    assert all(seen.node(b.id).metrics.migration_gauge is MigrationGauge.ZK for b in SPEC.brokers)  # type: ignore[union-attr]
    assert look(seen).quorum is QuorumState.MIGRATION


def test_a_standby_reports_one_sample_late() -> None:
    seen = with_metrics(observation(Point.DUAL_WRITE), STANDBY, migration_gauge=MigrationGauge.PRE_MIGRATION)
    assert look(seen).quorum is QuorumState.MIGRATION, "the active controller's gauge counts"
    seen = with_metrics(observation(Point.CONTROLLERS_UP), STANDBY, migration_gauge=MigrationGauge.NONE)
    assert look(seen).quorum is QuorumState.PRE_MIGRATION, "one was seen at 0 for a second"


def test_two_active_controllers_in_pre_migration_are_no_contradiction() -> None:
    seen = with_metrics(observation(Point.HYBRID), ZOOKEEPER_CONTROLLER, active_controller_count=1)
    situation = look(seen)
    assert situation.quorum is QuorumState.PRE_MIGRATION
    assert [c.id for c in situation.controllers if c.is_leader] == [LEADER]


def test_a_controller_that_boots_is_not_caught_up() -> None:
    seen = with_metrics(observation(Point.CONTROLLERS_UP), STANDBY, migration_gauge=MigrationGauge.BOOTING)
    assert not next(c for c in look(seen).controllers if c.id == STANDBY).is_caught_up
    seen = with_metrics(observation(Point.CONTROLLERS_UP), LEADER, migration_gauge=MigrationGauge.BOOTING)
    assert look(seen).quorum is QuorumState.UNKNOWN


def test_a_controller_that_boots_has_not_lost_its_flag() -> None:
    """Seen on 3.9.2: for a moment it shows whether it is active, and not yet the gauge that exists only with the flag."""
    seen = with_metrics(
        observation(Point.CONTROLLERS_UP), STANDBY, write_behind_lag=None, migration_gauge=MigrationGauge.BOOTING
    )
    assert controller_mode(seen.node(STANDBY)) is ControllerMode.IN_TRANSITION
    seen = with_metrics(observation(Point.CONTROLLERS_UP), STANDBY, write_behind_lag=None)
    assert controller_mode(seen.node(STANDBY)) is ControllerMode.FINAL


def test_of_two_that_say_they_lead_the_higher_epoch_leads() -> None:
    seen = with_metrics(observation(Point.DUAL_WRITE), STANDBY, active_controller_count=1, raft_leader=STANDBY, raft_epoch=6)
    leader = quorum_leader(seen, SPEC)
    assert leader is not None
    assert leader.id == LEADER


def test_nobody_leads_when_the_active_one_and_raft_disagree() -> None:
    seen = with_metrics(observation(Point.DUAL_WRITE), LEADER, raft_leader=STANDBY)
    assert quorum_leader(seen, SPEC) is None
    assert look(seen).quorum is QuorumState.ABSENT
    assert not any(c.is_caught_up for c in look(seen).controllers)


def test_no_leader_is_unknown_as_long_as_a_controller_does_not_answer() -> None:
    seen = with_part(observation(Point.DUAL_WRITE), LEADER, metrics=None)
    assert look(seen).quorum is QuorumState.UNKNOWN


@pytest.mark.parametrize("who", [STANDBY, LEADER])
def test_one_controller_that_says_final_is_enough(who: int) -> None:
    seen = with_metrics(observation(Point.DUAL_WRITE), who, migration_gauge=MigrationGauge.POST_MIGRATION)
    assert look(seen).quorum is QuorumState.POST_MIGRATION


def test_a_standby_far_behind_or_without_a_log_is_not_caught_up() -> None:
    for end in (LOG_END - 21, None):
        seen = with_metrics(observation(Point.DUAL_WRITE), STANDBY, raft_log_end=end)
        assert not next(c for c in look(seen).controllers if c.id == STANDBY).is_caught_up
    seen = with_metrics(observation(Point.DUAL_WRITE), STANDBY, raft_log_end=LOG_END - 20)
    assert next(c for c in look(seen).controllers if c.id == STANDBY).is_caught_up


# Dual write


def test_dual_write_that_died_silently_is_dead() -> None:
    """State 1, lag 0, session CONNECTED, and the offset stands while the log goes on."""
    seen = with_zookeeper(
        observation(Point.SOAK), migration=MigrationZnode(controller_id=LEADER, controller_epoch=7, offset=LOG_END - 200)
    )
    assert seen.node(LEADER).metrics.write_behind_lag == 0  # type: ignore[union-attr]
    assert look(seen).dual_write is DualWrite.DEAD
    assert look(with_metrics(seen, LEADER, write_behind_lag=198)).dual_write is DualWrite.NOT_CURRENT, "it is catching up"


def test_split_brain_is_not_current() -> None:
    """A hybrid broker took over while the quorum goes on to report state 1, lag 0, and a moving offset."""
    stolen = ControllerZnode(broker_id=1, kraft_epoch=None, is_ephemeral=True)
    situation = look(with_zookeeper(observation(Point.DUAL_WRITE), controller=stolen))
    assert (situation.dual_write, situation.claim) == (DualWrite.NOT_CURRENT, Claim.ZOOKEEPER)


def test_a_claim_that_is_not_the_leaders_is_not_current() -> None:
    another = ControllerZnode(broker_id=STANDBY, kraft_epoch=6, is_ephemeral=False)
    assert look(with_zookeeper(observation(Point.SOAK), controller=another)).dual_write is DualWrite.NOT_CURRENT


def test_a_claim_that_was_deleted_comes_back_with_the_next_controller_only() -> None:
    assert look(with_zookeeper(observation(Point.SOAK), controller=None)).dual_write is DualWrite.DEAD


@pytest.mark.parametrize("gauge", [MigrationGauge.PRE_MIGRATION, MigrationGauge.BOOTING, None])
def test_a_leader_in_another_state_is_not_current(gauge: MigrationGauge | None) -> None:
    assert look(with_metrics(observation(Point.SOAK), LEADER, migration_gauge=gauge)).dual_write is DualWrite.NOT_CURRENT


def test_a_lost_session_is_not_current() -> None:
    seen = with_metrics(observation(Point.SOAK), LEADER, zookeeper_session="CONNECTING")
    assert look(seen).dual_write is DualWrite.NOT_CURRENT


def test_an_offset_ahead_of_the_log_is_another_quorums() -> None:
    """A wiped quorum and a `/migration` left behind: its offset means nothing in this log (Strimzi 11262)."""
    left = MigrationZnode(controller_id=LEADER, controller_epoch=3, offset=LOG_END + 400)
    seen = with_zookeeper(observation(Point.SOAK), migration=left)
    assert look(seen).dual_write is DualWrite.NOT_CURRENT


def test_an_offset_read_a_moment_after_the_log_is_fine() -> None:
    later = MigrationZnode(controller_id=LEADER, controller_epoch=7, offset=LOG_END + 3)
    assert look(with_zookeeper(observation(Point.SOAK), migration=later)).dual_write is DualWrite.CURRENT


@pytest.mark.parametrize("offset", [None, -1])
def test_an_offset_that_is_none_has_no_distance(offset: int | None) -> None:
    znode = MigrationZnode(controller_id=None, controller_epoch=None, offset=offset)
    seen = with_zookeeper(observation(Point.SOAK), migration=znode)
    assert offset_distance(seen.zookeeper, quorum_leader(seen, SPEC)) is None
    assert look(seen).dual_write is DualWrite.NOT_CURRENT


def test_dual_write_is_unknown_without_zookeeper_or_leader() -> None:
    assert look(observation(Point.SOAK).model_copy(update={"zookeeper": None})).dual_write is DualWrite.UNKNOWN
    assert look(with_part(observation(Point.SOAK), LEADER, metrics=None)).dual_write is DualWrite.UNKNOWN


# A copy that was there before: /migration before the first broker is hybrid


@pytest.mark.parametrize(("offset", "is_left_over"), [(-1, False), (105, True), (None, True)])
def test_a_migration_znode_of_an_earlier_attempt_is_seen(offset: int | None, is_left_over: bool) -> None:
    znode = MigrationZnode(controller_id=9, controller_epoch=1, offset=offset)
    assert look(with_zookeeper(observation(Point.CONTROLLERS_UP), migration=znode)).is_copy_left_over is is_left_over


def test_in_dual_write_the_offset_is_this_attempts() -> None:
    for point in (Point.BEFORE, Point.DUAL_WRITE, Point.SOAK, Point.FINAL):
        assert not look(observation(point)).is_copy_left_over


# Registration


def test_a_broker_that_serves_and_never_registers_differs() -> None:
    """The IBP trap: BrokerState 3, nothing under-replicated, and no registration."""
    seen = with_metrics(observation(Point.HYBRID), LEADER, migrating_broker_count=2, active_broker_count=2)
    assert modes(look(seen)) == {"hybrid", "migrating"}
    assert look(seen).registration is Registration.DIFFERS


@pytest.mark.parametrize("gauges", [{"fenced_broker_count": 1}, {"active_broker_count": 2}, {"active_broker_count": None}])
def test_fenced_or_missing_registrations_differ(gauges: dict[str, int | None]) -> None:
    assert look(with_metrics(observation(Point.DUAL_WRITE), LEADER, **gauges)).registration is Registration.DIFFERS


def test_registrations_are_the_leaders() -> None:
    seen = with_metrics(observation(Point.DUAL_WRITE), STANDBY, migrating_broker_count=0)
    assert look(seen).registration is Registration.AGREES
    assert look(with_metrics(seen, LEADER, migrating_broker_count=None)).registration is Registration.UNKNOWN


# Replication


def test_replication() -> None:
    seen = observation(Point.SOAK)
    fault = PartitionFault(partition="orders-3", missing=(2,))
    assert look(with_kafka(seen, under_replicated=(fault,))).replication is Replication.CATCHING_UP
    assert look(with_kafka(seen, offline=("orders-3",))).replication is Replication.CATCHING_UP
    assert look(with_kafka(seen, broker_ids=(1, 2))).replication is Replication.CATCHING_UP
    assert look(seen.model_copy(update={"kafka": None})).replication is Replication.UNKNOWN


def test_partitions_that_the_policy_gives_up_do_not_need_their_broker() -> None:
    seen = with_kafka(observation(Point.SOAK), needs={1: ("my-logs-0", "orders-2"), 2: ("my-logs-1",), 3: ()})
    policy = ZkToKraftPolicy(may_be_unavailable=("my-logs",))
    assert partitions_needing(seen.kafka, 1, policy) == ("orders-2",)
    assert [b.is_needed for b in situation_of(seen, SPEC, policy).brokers] == [True, False, False]
    assert partitions_needing(None, 1, policy) == ()


# Modes


@pytest.mark.parametrize(
    ("gauges", "mode"),
    [
        ({"broker_state": 1}, BrokerMode.IN_TRANSITION),
        ({"broker_state": 2}, BrokerMode.IN_TRANSITION),
        ({"broker_state": 6}, BrokerMode.IN_TRANSITION),
        ({"broker_state": 127}, BrokerMode.IN_TRANSITION),
        ({"broker_state": None}, BrokerMode.IN_TRANSITION),
        ({}, BrokerMode.HYBRID),
        ({"migration_gauge": None}, BrokerMode.KRAFT),
        ({"raft_epoch": None}, BrokerMode.ZOOKEEPER),
    ],
)
def test_the_mode_of_a_running_broker(gauges: dict[str, int | None], mode: BrokerMode) -> None:
    assert broker_mode(with_metrics(observation(Point.HYBRID), 1, **gauges).node(1)) is mode


@pytest.mark.parametrize("part", ["process", "disk", "metrics"])
@pytest.mark.parametrize("node_id", [1, STANDBY])
def test_a_part_that_did_not_answer_leaves_the_mode_unknown(part: str, node_id: int) -> None:
    """Also the files: a node of whose file nothing is known has not been changed by somebody, it is unknown."""
    situation = look(with_part(observation(Point.DUAL_WRITE), node_id, **{part: None}))
    assert next(node for node in situation.nodes if node.id == node_id).mode == "unknown"


def test_a_node_that_nobody_asked_is_unknown() -> None:
    assert broker_mode(NodeView(id=1)) is BrokerMode.UNKNOWN
    assert controller_mode(NodeView(id=3001)) is ControllerMode.UNKNOWN


def test_a_controller_without_the_lag_gauge_runs_without_the_flag() -> None:
    seen = with_metrics(observation(Point.DUAL_WRITE), STANDBY, write_behind_lag=None)
    assert controller_mode(seen.node(STANDBY)) is ControllerMode.FINAL, "whatever its file says"


def test_a_controller_that_has_no_gauges_yet_is_in_transition() -> None:
    seen = with_part(observation(Point.CONTROLLERS_UP), STANDBY, metrics=NodeMetrics())
    assert controller_mode(seen.node(STANDBY)) is ControllerMode.IN_TRANSITION


# Stopped nodes: interrupted by us, or down


def half_rolled(last_identity: str | None, *, is_written: bool = True, is_proven: bool = False) -> Observation:
    """Broker 1 in roll 1: marked (it ran as `pid-1` then), and not running now."""
    before, after = (text_at(SPEC, 1, stage) for stage in (NodeStage.ZOOKEEPER, NodeStage.MIGRATION))
    mark = mark_of(seen_file(after).sha256, seen_file(before).sha256, before_identity="pid-1", is_proven=is_proven)
    seen = with_file(observation(Point.CONTROLLERS_UP), 1, after if is_written else before, mark)
    return with_part(seen, 1, process=stopped(last_identity), metrics=None)


def test_a_broker_that_we_stopped_and_did_not_start_is_interrupted() -> None:
    situation = look(half_rolled("pid-1"))
    assert (situation.brokers[0].mode, situation.brokers[0].stage) == (BrokerMode.INTERRUPTED, NodeStage.MIGRATION)


def test_a_broker_that_died_after_we_started_it_is_down() -> None:
    assert look(half_rolled("pid-new")).brokers[0].mode is BrokerMode.DOWN


def test_a_broker_that_was_proven_and_died_is_down() -> None:
    assert look(half_rolled("pid-1", is_proven=True)).brokers[0].mode is BrokerMode.DOWN


def test_a_broker_that_died_before_we_wrote_its_file_is_down() -> None:
    """A roll stops a node only after it has written its file: this one was not stopped by us."""
    assert look(half_rolled("pid-1", is_written=False)).brokers[0].mode is BrokerMode.DOWN


def test_a_broker_that_stopped_without_any_mark_is_down() -> None:
    seen = with_part(observation(Point.SOAK), 1, process=stopped("pid-1"), metrics=None)
    assert look(seen).brokers[0].mode is BrokerMode.DOWN


def test_a_controller_with_our_file_that_never_ran_is_interrupted() -> None:
    seen = with_part(observation(Point.CONTROLLERS_UP), STANDBY, process=stopped(None), metrics=None)
    assert controller_mode(seen.node(STANDBY)) is ControllerMode.INTERRUPTED


@pytest.mark.parametrize(
    "told",
    [{"is_proven": True}, {"has_run": True, "before_identity": "pid-3001"}],
    ids=["proven", "in a roll"],
)
@pytest.mark.parametrize("state", [StorageState.ABSENT, StorageState.EMPTY, StorageState.OURS])
def test_a_controller_whose_mark_says_that_it_ran_is_down_where_nothing_else_does(state: StorageState, told: Any) -> None:
    """After a reboot: `/run` is empty, and its volume may not be mounted. It is no new controller, so it is never formatted."""
    seen = with_part(observation(Point.CONTROLLERS_UP), STANDBY, process=stopped(None), metrics=None)
    disk = seen.node(STANDBY).disk
    assert disk is not None
    assert disk.file is not None
    assert disk.file.mark is not None
    mark = disk.file.mark.model_copy(update=told)
    dirs = tuple(log_dir.model_copy(update={"state": state}) for log_dir in disk.log_dirs)
    proven = disk.model_copy(update={"file": disk.file.model_copy(update={"mark": mark}), "log_dirs": dirs})
    assert controller_mode(with_part(seen, STANDBY, disk=proven).node(STANDBY)) is ControllerMode.DOWN


def test_a_controller_that_ran_and_stopped_is_down() -> None:
    seen = with_part(observation(Point.CONTROLLERS_UP), STANDBY, process=stopped("pid-3001"), metrics=None)
    assert controller_mode(seen.node(STANDBY)) is ControllerMode.DOWN


def test_a_controllers_file_that_is_not_ours_is_not_ours_to_start() -> None:
    """Somebody's file where a controller is to be made: the preflight has to refuse it, so it must be asked."""
    seen = with_file(observation(Point.BEFORE), STANDBY, text_at(SPEC, STANDBY, NodeStage.MIGRATION))
    assert controller_mode(seen.node(STANDBY)) is ControllerMode.ABSENT


def test_storage_of_an_earlier_attempt_is_not_ours_to_start() -> None:
    dirs = observation(Point.CONTROLLERS_UP).node(STANDBY).disk.log_dirs  # type: ignore[union-attr]
    disk = observation(Point.BEFORE).node(STANDBY).disk.model_copy(update={"log_dirs": dirs})  # type: ignore[union-attr]
    assert controller_mode(with_part(observation(Point.BEFORE), STANDBY, disk=disk).node(STANDBY)) is ControllerMode.ABSENT


# Stages, and the flag


def test_a_file_that_is_neither_as_found_nor_as_written_nor_in_the_stage_we_left_fits_no_stage() -> None:
    text = text_at(SPEC, 1, NodeStage.KRAFT)
    mark = mark_of(seen_file("other").sha256)
    assert look(with_file(observation(Point.HYBRID), 1, text, mark)).brokers[0].stage is None
    assert look(with_file(observation(Point.HYBRID), 1, text)).brokers[0].stage is NodeStage.KRAFT, "without any mark of ours"


def test_an_edit_that_leaves_ours_alone_keeps_the_stage() -> None:
    text = text_at(SPEC, 1, NodeStage.MIGRATION)
    mark = mark_of(seen_file(text).sha256).model_copy(update={"stage": NodeStage.MIGRATION})
    theirs = with_file(observation(Point.HYBRID), 1, text + "num.partitions=6\n", mark)
    assert look(theirs).brokers[0].stage is NodeStage.MIGRATION
    undone = text.replace("controller.listener.names", "#controller.listener.names")
    assert look(with_file(observation(Point.HYBRID), 1, undone, mark)).brokers[0].stage is None


@pytest.mark.parametrize("line", ["", "zookeeper.metadata.migration.enable=false\n"])
def test_a_controllers_file_without_the_flag_is_seen_though_it_fits_no_stage(line: str) -> None:
    """The process still has the flag; its next restart, by whomever, would not."""
    text = text_at(SPEC, STANDBY, NodeStage.MIGRATION)
    mark = mark_of(seen_file(text).sha256)
    kept = "".join(each for each in text.splitlines(keepends=True) if not each.startswith("zookeeper.metadata.migration"))
    situation = look(with_file(observation(Point.SOAK), STANDBY, kept + line, mark))
    controller = next(c for c in situation.controllers if c.id == STANDBY)
    assert (controller.mode, controller.stage, controller.is_flag_in_file) == (ControllerMode.MIGRATING, None, False)


def test_flags_at_each_point() -> None:
    for point in (Point.CONTROLLERS_UP, Point.DUAL_WRITE, Point.SOAK):
        assert all(c.is_flag_in_file for c in look(observation(point)).controllers)
    assert not any(c.is_flag_in_file for c in look(observation(Point.FINAL)).controllers)
    assert all(c.is_flag_in_file for c in look(observation(Point.BEFORE)).controllers), "no file has lost nothing"


# The soak


def test_the_soak_counts_from_the_last_start() -> None:
    soaked = soaked_for(observation(Point.SOAK), SPEC, NOW)
    assert soaked is not None
    assert soaked.total_seconds() == 3600
    just_started = Process(is_running=True, identity="new", last_identity="new", started_at=NOW)
    fresh = with_part(observation(Point.SOAK), 2, process=just_started)
    assert soaked_for(fresh, SPEC, NOW).total_seconds() == 0  # type: ignore[union-attr]
    assert soaked_for(with_part(observation(Point.SOAK), 2, process=None), SPEC, NOW) is None


def test_metrics_of_the_builders_are_those_of_real_brokers() -> None:
    assert broker_metrics(NodeStage.KRAFT).migration_gauge is None


# A copy that fails, or is another's: false alarms would revert a healthy migration

COPY_BEGUN = MigrationZnode(controller_id=LEADER, controller_epoch=7, offset=-1)
LONG_AGO = NOW - POLICY.copy_deadline * 2


def copying(claimed_at: datetime = NOW, offset: int = -1) -> Observation:
    """All brokers hybrid, KRaft has claimed `/controller`, PRE_MIGRATION in the log."""
    claim = ControllerZnode(broker_id=LEADER, kraft_epoch=7, is_ephemeral=False, claimed_at=claimed_at)
    znode = COPY_BEGUN.model_copy(update={"offset": offset})
    return with_zookeeper(observation(Point.HYBRID), controller=claim, migration=znode)


def without(seen: Observation, *controllers: int) -> Observation:
    """Controllers that have died; the others have not elected anybody yet."""
    for node_id in controllers:
        seen = with_part(seen, node_id, process=stopped(f"pid-{node_id}"), metrics=None)
    for node_id in {c.id for c in SPEC.controllers} - set(controllers):
        seen = with_metrics(seen, node_id, active_controller_count=0, raft_leader=-1)
    return seen


HEALTHY_COPIES = {
    "just claimed": copying(),
    "long, and still copying": copying(LONG_AGO),
    "its leader has just died": without(copying(), LEADER),
    "long, and its leader has just died": without(copying(LONG_AGO), LEADER),
    "long, and its leader does not answer": with_part(copying(LONG_AGO), LEADER, metrics=None),
    "long, and no controller answers": with_part(
        with_part(with_part(copying(LONG_AGO), 3001, metrics=None), 3002, metrics=None), 3003, metrics=None
    ),
    "complete": observation(Point.DUAL_WRITE),
    "complete, and all controllers dead": without(observation(Point.DUAL_WRITE), 3001, 3002, 3003),
    "brokers in KRaft mode, /migration made anew, and all controllers dead": with_zookeeper(
        without(observation(Point.SOAK), 3001, 3002, 3003), migration=COPY_BEGUN
    ),
    "not begun, and all controllers dead": without(observation(Point.HYBRID), 3001, 3002, 3003),
    "/migration cannot be read, and all controllers dead": with_zookeeper(
        without(copying(), 3001, 3002, 3003), migration=MigrationZnode(controller_id=None, controller_epoch=None, offset=None)
    ),
}


@pytest.mark.parametrize("what", HEALTHY_COPIES)
def test_a_copy_that_may_still_succeed_has_not_failed(what: str) -> None:
    situation = look(HEALTHY_COPIES[what])
    assert (situation.is_copy_failed, situation.is_copy_stale) == (False, False)


@pytest.mark.parametrize(
    "seen",
    [
        without(copying(), 3001, 3002),
        without(copying(), 3001, 3002, 3003),
        with_metrics(without(copying(LONG_AGO), 3001), 3002, active_controller_count=None),
    ],
    ids=["most are dead", "all are dead", "old, one dead, one only starting"],
)
def test_a_copy_without_a_majority_to_complete_it_has_failed(seen: Observation) -> None:
    assert look(seen).is_copy_failed


def test_an_offset_that_this_quorum_cannot_have_written_is_anothers() -> None:
    assert look(copying(offset=LOG_END + 100)).is_copy_stale
    assert look(copying(offset=LOG_END)).is_copy_stale
    assert not look(copying(offset=LOG_END - 1)).is_copy_stale, "the gauge is a moment late"
    assert not look(copying(LONG_AGO, offset=LOG_END - 1)).is_copy_stale, "a long copy has an old claim"


# Fenced storage


def fenced(seen: Observation, node_id: int) -> Observation:
    disk = seen.node(node_id).disk
    assert disk is not None
    dirs = tuple(log_dir.model_copy(update={"is_fenced": True}) for log_dir in disk.log_dirs)
    return with_part(seen, node_id, disk=disk.model_copy(update={"log_dirs": dirs}))


def controller(situation: Situation, node_id: int) -> ControllerSituation:
    return next(c for c in situation.controllers if c.id == node_id)


def test_a_fenced_controller_that_still_runs_is_seen_to_be_unable_to_come_back() -> None:
    running_on = controller(look(fenced(observation(Point.DUAL_WRITE), 3001)), 3001)
    assert (running_on.mode, running_on.is_startable) == (ControllerMode.MIGRATING, False)
    dead = controller(look(without(fenced(observation(Point.DUAL_WRITE), 3001), 3001)), 3001)
    assert (dead.mode, dead.is_startable) == (ControllerMode.FENCED, False)


def test_half_a_fence_is_none() -> None:
    """The window's worker died between two directories: the step is taken again until every one is fenced."""
    seen = without(observation(Point.DUAL_WRITE), 3001)
    disk = seen.node(3001).disk
    assert disk is not None
    dirs = (disk.log_dirs[0].model_copy(update={"is_fenced": True}), disk.log_dirs[0])
    half = controller(look(with_part(seen, 3001, disk=disk.model_copy(update={"log_dirs": dirs}))), 3001)
    assert (half.mode, half.is_startable) == (ControllerMode.DOWN, True)


def test_a_controller_that_was_never_formatted_cannot_start() -> None:
    seen = with_part(observation(Point.CONTROLLERS_UP), STANDBY, process=stopped(None), metrics=None)
    disk = seen.node(STANDBY).disk
    empty = observation(Point.BEFORE).node(STANDBY).disk
    assert disk is not None
    assert empty is not None
    unformatted = with_part(seen, STANDBY, disk=disk.model_copy(update={"log_dirs": empty.log_dirs}))
    assert controller(look(unformatted), STANDBY).mode is ControllerMode.INTERRUPTED
    assert not controller(look(unformatted), STANDBY).is_startable
    assert controller(look(seen), STANDBY).is_startable


@pytest.mark.parametrize("point", [Point.BEFORE, Point.HYBRID, Point.DUAL_WRITE])
def test_a_broker_that_somebody_has_taken_out_of_zookeeper_is_not_counted_on(point: Point) -> None:
    """The metadata of others goes on naming it where it is the controller."""
    seen = observation(point)
    gone = with_zookeeper(seen, broker_ids=(1, 3))
    assert situation_of(seen, SPEC, POLICY).replication is Replication.IN_SYNC
    assert situation_of(gone, SPEC, POLICY).replication is Replication.CATCHING_UP
    decided = assess(gone, SPEC, POLICY, Ruling(), "observation").decision
    if point is not Point.BEFORE:
        assert isinstance(decided, Wait)
        assert (decided.reason, decided.objects) == (WaitReason.PARTITIONS_NOT_IN_SYNC, ("broker-2",))
