"""Why nothing happens: every wait has an entry, every cause has one and no more, and all causes are told at once."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest

from activities.worth_looking import worth_reading
from domain.blocker import Blocker
from domain.decisions import WAIT_MEANS, NodeStage, Wait, WaitReason
from domain.drift.report import Verdict
from domain.errors import Obstacle
from domain.machine_notes import ZOOKEEPER, MachineChanges
from domain.node_output import NodeOutput
from domain.observation import (
    ControllerZnode,
    LogDir,
    MigrationZnode,
    NodeView,
    Observation,
    PartitionFault,
    Process,
    RollMark,
    StorageState,
    Suspect,
    Unanswered,
)
from domain.policy import MigrationPolicy
from domain.records import Waiting
from domain.start_place import StartPlace, StartUnit
from domain.vital_signs import VitalSigns
from domain.zk_to_kraft.assessment import assess
from domain.zk_to_kraft.blockers import EXPECTED, blockers_of
from domain.zk_to_kraft.causes import Hints, Looked, MemberFiles, Serving, Unwritten, settled
from domain.zk_to_kraft.guards import fenced
from domain.zk_to_kraft.member_trees import MemberTree
from domain.zk_to_kraft.ruling import Ruling
from domain.zk_to_kraft.situation import situation_of
from tests.unit.conftest import (
    CLUSTER_ID,
    LEADER,
    LOG_END,
    NOW,
    Point,
    cluster_spec,
    mark_of,
    observation,
    report_of,
    signs_of,
    stopped,
    with_file,
    with_kafka,
    with_metrics,
    with_node,
    with_part,
    with_zookeeper,
)

SPEC = cluster_spec()
POLICY = MigrationPolicy(compare_copy=False, compare_messages=False)
STANDBY = 3001
STARTED = "[2026-11-20 02:59:00,000] INFO Registered `kafka:type=kafka.Log4jController` MBean"
SAID = "[2026-11-20 02:59:30,000]"
FRAMES = tuple(f"\tat kafka.raft.KafkaRaftManager.start{n}(RaftManager.scala:{n})" for n in range(90))
SERVERS = ("127.0.0.1:2181", "127.0.0.1:2182", "127.0.0.1:2183")


def looked_at(seen: Observation, policy: MigrationPolicy = POLICY, **more: object) -> Looked:
    return Looked(seen, SPEC, policy, situation_of(seen, SPEC, policy), **more)  # type: ignore[arg-type]


def found(seen: Observation, ruling: Ruling | None = None, policy: MigrationPolicy = POLICY, **more: object) -> list[Blocker]:
    """The entries, with what is decided of this very look."""
    assessment = assess(seen, SPEC, policy, ruling or Ruling(), "")
    return list(blockers_of(looked_at(seen, policy, **more), assessment.decision, assessment.stands)[0])


def keys(entries: list[Blocker]) -> list[tuple[str, str]]:
    return [(entry.code, entry.object) for entry in entries]


def dead(seen: Observation, node_id: int, *lines: str) -> Observation:
    return with_part(seen, node_id, process=stopped(f"pid-{node_id}"), metrics=None, last_output=lines)


def silent(seen: Observation, node_id: int, *, is_paused: bool = False, obstacle: Obstacle | None = None) -> Observation:
    name = SPEC.node_name(node_id)
    begun = NOW - timedelta(minutes=2)
    process = Process(is_running=True, identity="77@1", last_identity="77@1", started_at=begun, is_paused=is_paused)
    seen = with_part(seen, node_id, process=process, metrics=None)
    part = Unanswered(what=f"metrics of {name}", why="timed out", obstacle=obstacle)
    return seen.model_copy(update={"unanswered": (*seen.unanswered, part)})


def without(seen: Observation, part: str, why: str = "no answer") -> Observation:
    return seen.model_copy(update={part: None, "unanswered": (*seen.unanswered, Unanswered(what=part, why=why))})


def unclaimed(seen: Observation) -> Observation:
    return with_zookeeper(seen, controller=None).model_copy(update={"failover_hazards": ()})


def edited(seen: Observation, node_id: int, *, is_proven: bool = True) -> Observation:
    """As far as `stage_of_disk` is concerned it is nobody's stage any more."""
    return with_file(seen, node_id, "process.roles=nonsense\n", mark_of("w" * 64, is_proven=is_proven))


# --- every wait has an entry -----------------------------------------------------------------------------------------

BEFORE = observation(Point.BEFORE)
HYBRID, DUAL, SOAK = observation(Point.HYBRID), observation(Point.DUAL_WRITE), observation(Point.SOAK)
GAPS = (PartitionFault(partition="orders-3", missing=(2,)),)
STALE_COPY = MigrationZnode(controller_id=3001, controller_epoch=1, offset=LOG_END + 400)

NATURAL: dict[WaitReason, tuple[Observation, Ruling]] = {
    WaitReason.HELD: (DUAL, Ruling(is_held=True)),
    WaitReason.PART_UNKNOWN: (silent(DUAL, 2), Ruling()),
    WaitReason.NODE_DOWN: (dead(DUAL, 2), Ruling()),
    WaitReason.NODE_NOT_READY: (with_metrics(DUAL, 2, broker_state=2), Ruling()),
    WaitReason.FILE_CHANGED: (edited(DUAL, 1), Ruling()),
    WaitReason.CONTROLLERS_NOT_READY: (with_metrics(DUAL, STANDBY, raft_log_end=LOG_END - 400), Ruling()),
    WaitReason.BROKERS_NOT_REGISTERED: (with_metrics(DUAL, LEADER, migrating_broker_count=2), Ruling()),
    WaitReason.PARTITIONS_NOT_IN_SYNC: (with_kafka(DUAL, under_replicated=GAPS), Ruling()),
    WaitReason.PARTITIONS_WOULD_STOP: (with_kafka(DUAL, needs={1: ("single-0",), 2: (), 3: ()}), Ruling()),
    WaitReason.COPY_LEFT_OVER: (
        with_zookeeper(HYBRID, migration=STALE_COPY),
        Ruling(),
    ),
    WaitReason.COPY_NOT_COMPLETE: (HYBRID, Ruling()),
    WaitReason.DUAL_WRITE_NOT_CURRENT: (
        with_metrics(with_zookeeper(DUAL, migration=STALE_COPY.model_copy(update={"offset": 1})), LEADER, write_behind_lag=9),
        Ruling(),
    ),
    WaitReason.SOAK_NOT_OVER: (SOAK, Ruling()),
    WaitReason.DRIFT_FOUND: (SOAK, Ruling(reports=(report_of(SOAK, Verdict.DRIFT),), drifts=1)),
    WaitReason.CHECK_INCONCLUSIVE: (SOAK, Ruling(reports=(report_of(SOAK, Verdict.INCONCLUSIVE),))),
    WaitReason.CHECKS_WORKER_MISSING: (SOAK, Ruling(unchecked_since=NOW)),
}
"""Looks of which `assess` makes that very wait."""


@pytest.mark.parametrize("reason", WaitReason)
def test_every_wait_gives_an_entry_that_says_what_to_do(reason: WaitReason) -> None:
    """Whatever the look shows: one that shows nothing is told in the wait's own words."""
    for seen in (DUAL, HYBRID, SOAK, NATURAL.get(reason, (DUAL, Ruling()))[0]):
        entries, explained = blockers_of(looked_at(seen), Wait(reason=reason, objects=("broker-2",)))
        if reason is not WaitReason.PREFLIGHT_BLOCKERS:
            assert reason in explained
        for entry in entries:
            assert all((entry.code, entry.object, entry.observed, entry.expected, entry.fix, entry.docs))
            assert entry.since <= seen.ended_at


@pytest.mark.parametrize("reason", NATURAL)
def test_a_look_that_makes_a_wait_gives_its_entry(reason: WaitReason) -> None:
    seen, ruling = NATURAL[reason]
    policy = POLICY.model_copy(update={"min_soak": timedelta(days=7)}) if reason is WaitReason.SOAK_NOT_OVER else POLICY
    assessment = assess(seen, SPEC, policy, ruling, "")
    told = [d.reason for d in (assessment.decision, assessment.stands) if isinstance(d, Wait)]
    if reason is not WaitReason.COPY_LEFT_OVER:
        assert told == [reason]
    entries, explained = blockers_of(looked_at(seen, policy), assessment.decision, assessment.stands)
    assert entries
    assert set(told) <= set(explained)
    assert reason in {entry.code for entry in entries}


def test_every_wait_has_its_own_words() -> None:
    assert EXPECTED.keys() == set(WaitReason)


@pytest.mark.parametrize("point", Point)
def test_a_healthy_cluster_has_no_cause_but_what_is_decided(point: Point) -> None:
    assert list(blockers_of(looked_at(observation(point)))[0]) == []


# --- all at once, each once ------------------------------------------------------------------------------------------

FAULTS: dict[tuple[str, str], Callable[[Observation], Observation]] = {
    ("node-down", "broker-2"): lambda seen: dead(seen, 2),
    ("node-down", "broker-3"): lambda seen: dead(seen, 3),
    ("file-changed", "broker-1"): lambda seen: edited(seen, 1),
    ("part-unknown", "controller-3001"): lambda seen: silent(seen, STANDBY),
    ("node-down", "controller-3003"): lambda seen: dead(seen, 3003),
    ("dual-write-not-current", "/controller"): unclaimed,
    ("GF10", f"controller-{LEADER}"): lambda seen: with_metrics(seen, LEADER, metadata_error_count=2),
}


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_faults_together_are_told_together(number: int) -> None:
    """However many there are: each has its entry, and none has another one beside it."""
    for chosen in combinations(FAULTS, number):
        seen = DUAL
        for fault in chosen:
            seen = FAULTS[fault](seen)
        assert sorted(keys(found(seen))) == sorted(chosen)


def test_two_dead_brokers_a_changed_file_and_a_member_of_the_ensemble_are_four_entries() -> None:
    seen = edited(dead(dead(DUAL, 2), 3), 1)
    lagging = tuple(PartitionFault(partition=f"orders-{n}", missing=(2, 3)) for n in range(9))
    seen = with_kafka(seen, under_replicated=lagging, offline=("orders-9",), broker_ids=(1,))
    seen = with_metrics(seen, LEADER, active_broker_count=1, fenced_broker_count=2, migrating_broker_count=1)
    servers = dict.fromkeys(SERVERS, Serving.YES) | {SERVERS[1]: Serving.REFUSED}
    assert keys(found(seen, hints=Hints(servers=servers))) == [
        ("file-changed", "broker-1"),
        ("node-down", "broker-2"),
        ("node-down", "broker-3"),
        ("GF11", f"zookeeper {SERVERS[1]}"),
    ]


def test_what_lags_elsewhere_is_a_cause_of_its_own() -> None:
    faults = (PartitionFault(partition="a-0", missing=(2,)), PartitionFault(partition="b-0", missing=(2, 3)))
    seen = with_kafka(dead(DUAL, 2), under_replicated=faults)
    assert keys(found(seen)) == [("node-down", "broker-2"), ("partitions-not-in-sync", "broker-3")]


def test_replicas_that_a_throttle_holds_back_do_not_catch_up_by_themselves() -> None:
    (entry,) = found(with_kafka(DUAL, under_replicated=GAPS), hints=Hints(throttles=("/config/brokers/2",)))
    assert (entry.code, entry.object) == ("partitions-not-in-sync", "broker-2")
    assert "/config/brokers/2" in entry.observed
    assert "--delete-config" in entry.fix


def test_while_a_broker_is_dead_what_the_others_cannot_tell_is_no_cause_of_its_own() -> None:
    assert keys(found(without(dead(DUAL, 2), "kafka"))) == [("node-down", "broker-2")]
    assert keys(found(without(DUAL, "kafka"))) == [("part-unknown", "kafka")]


def test_a_node_in_our_hands_is_no_blocker() -> None:
    seen = with_kafka(dead(DUAL, 2), under_replicated=GAPS, broker_ids=(1, 3))
    assert list(blockers_of(looked_at(seen, in_hand=frozenset({"broker-2"})))[0]) == []


def test_a_node_in_our_hands_that_stands_still_is_told_for_the_step_does_too() -> None:
    seen = silent(DUAL, 2, is_paused=True)
    (entry,), _ = blockers_of(looked_at(seen, in_hand=frozenset({"broker-2"})))
    assert (entry.object, "kill -CONT 77" in entry.fix) == ("broker-2", True)


@pytest.mark.parametrize(("seconds", "is_told"), [(5, False), (20, True)])
@pytest.mark.parametrize("before", ["old", "77@1"])
def test_a_node_that_a_step_of_ours_has_started_and_that_does_not_come_up_is_told(
    seconds: int, is_told: bool, before: str
) -> None:
    """Its start script waits for somebody. Before it is restarted its process is none of the step's."""
    seen = silent(with_file(DUAL, 2, "broker.id=2\n", mark_of("b", before_identity=before)), 2)
    process = seen.node(2).process
    assert process is not None
    seen = with_part(seen, 2, process=process.model_copy(update={"started_at": seen.ended_at - timedelta(seconds=seconds)}))
    hints = Hints(logs={2: ("02:54:04 start-kafka: waiting for the secrets agent",)})
    entries, _ = blockers_of(looked_at(seen, in_hand=frozenset({"broker-2"}), hints=hints))
    assert bool(entries) == (is_told and before == "old")
    assert all("for the secrets agent" in entry.observed for entry in entries)


def lagging_in_hand(age: int, log: str = "") -> tuple[Observation, Hints]:
    """As where broker-2 was restarted so many seconds ago, and its replicas are not in sync yet."""
    seen = with_kafka(rolling(DUAL, 2, "old"), under_replicated=GAPS)
    process = seen.node(2).process
    assert process is not None
    seen = with_part(seen, 2, process=process.model_copy(update={"started_at": seen.ended_at - timedelta(seconds=age)}))
    return seen, Hints(logs={2: (log,)})


@pytest.mark.parametrize(("age", "told"), [(5, []), (20, [("partitions-not-in-sync", "broker-2")])])
def test_what_a_node_lacks_is_told_once_most_would_be_well(age: int, told: list[tuple[str, str]]) -> None:
    other = "Topic ID in memory: WUR1tvXZRoWzjjEWbIJC9w does not match the topic ID for partition {} received: {}."
    line = f"{SAID} ERROR [Broker id=2] {other.format(GAPS[0].partition, 'jRlSXXUVQGmuAq3eN5FHnA')} (state.change.logger)"
    seen, hints = lagging_in_hand(age, line)
    entries, _ = blockers_of(looked_at(seen, in_hand=frozenset({"broker-2"}), hints=hints))
    assert keys(entries) == told
    assert all("Topic ID in memory: WUR1" in entry.observed for entry in entries)
    assert all("partition.metadata" in entry.fix for entry in entries)


def test_a_proof_that_nothing_known_explains_is_told_with_what_the_node_complains_of() -> None:
    """Another mode than the one that the step was to bring it to: somebody else has started it, with another file."""
    seen, hints = lagging_in_hand(40, f"{SAID} WARN the moon is in the way (kafka.server.KafkaServer)")
    assert seen.kafka is not None
    seen = with_stage(with_kafka(seen, under_replicated=()), 2, NodeStage.KRAFT)
    (entry,), _ = blockers_of(looked_at(seen, in_hand=frozenset({"broker-2"}), hints=hints))
    assert (entry.code, entry.object) == ("node-not-ready", "broker-2")
    assert entry.observed.startswith("it was restarted, and is not proven well: broker-2 is hybrid, expected final or kraft")
    assert "--override" in entry.fix
    assert "the moon is in the way" in entry.observed
    proven = with_stage(seen, 2, NodeStage.KRAFT, is_proven=True)
    assert found(proven, in_hand=frozenset({"broker-2"})) == []


def test_what_the_process_before_it_has_complained_of_is_nothing_of_its_own() -> None:
    """It has printed nothing yet: the last lines in the file are the other one's."""
    before = "[2026-11-20 02:59:00,000]"
    seen, hints = lagging_in_hand(20, f"{before} WARN the moon is in the way (kafka.server.KafkaServer)")
    seen = with_stage(with_kafka(seen, under_replicated=()), 2, NodeStage.KRAFT)
    (entry,), _ = blockers_of(looked_at(seen, in_hand=frozenset({"broker-2"}), hints=hints))
    assert entry.observed.startswith("it was restarted, and is not proven well")
    assert "the moon" not in entry.observed


@pytest.mark.parametrize("seconds", [1, 6, 25])
def test_what_a_node_has_printed_while_it_was_looked_at_is_not_of_the_process_before(seconds: int) -> None:
    """Its log is read after the look, on a machine with much to do seconds after: such a line is the newest, not the oldest."""
    at = (NOW + timedelta(seconds=seconds)).strftime("[%Y-%m-%d %H:%M:%S,000]")
    seen = silent(DUAL, 2)
    process = seen.node(2).process
    assert process is not None
    seen = with_part(seen, 2, process=process.model_copy(update={"started_at": seen.ended_at - timedelta(seconds=40)}))
    (entry,) = [
        e for e in found(seen, hints=Hints(logs={2: (f"{at} INFO [BrokerServer id=2] starting",)})) if e.object == "broker-2"
    ]
    assert "It has printed nothing" not in entry.observed


def with_stage(seen: Observation, node_id: int, stage: NodeStage, *, is_proven: bool = False) -> Observation:
    disk = seen.node(node_id).disk
    assert disk is not None
    assert disk.file is not None
    assert disk.file.mark is not None
    mark = disk.file.mark.model_copy(update={"stage": stage, "is_proven": is_proven})
    file = disk.file.model_copy(update={"mark": mark})
    return with_part(seen, node_id, disk=disk.model_copy(update={"file": file}))


@pytest.mark.parametrize(("seconds", "is_told"), [(5, False), (20, True)])
def test_a_broker_that_does_not_end_is_told_once_most_would_have(seconds: int, is_told: bool) -> None:
    process = DUAL.node(2).process
    assert process is not None
    seen = with_metrics(rolling(DUAL, 2, process.identity), 2, broker_state=6)
    since = seen.ended_at - timedelta(seconds=seconds)
    hints = Hints(logs={2: (f"{SAID} WARN Retrying controlled shutdown (kafka.server.KafkaServer)",)})
    entries, _ = blockers_of(looked_at(seen, in_hand=frozenset({"broker-2"}), step_since=since, hints=hints))
    assert [(entry.code, entry.object) for entry in entries] == ([("node-not-ready", "broker-2")] if is_told else [])
    assert all("has told it to stop, or is about to, and its process" in entry.observed for entry in entries)
    assert all("runs still, BrokerState 6" in entry.observed for entry in entries)
    assert all("Retrying controlled shutdown" in entry.observed for entry in entries)


ASKS = f"{SAID} INFO [KafkaServer id=3] Starting controlled shutdown (kafka.server.KafkaServer)"
NO_ANSWER = (
    f"{SAID} WARN [KafkaServer id=3] Error during controlled shutdown, possibly because leader movement took longer than the "
    "configured controller.socket.timeout.ms and/or request.timeout.ms: Connection to 1 was disconnected before the response "
    "was read (kafka.server.KafkaServer)"
)
STILL_WAITS = (
    f"{SAID} INFO [BrokerLifecycleManager id=3] The broker is in PENDING_CONTROLLED_SHUTDOWN state, still waiting for the "
    "active controller. (kafka.server.BrokerLifecycleManager)"
)
ANSWERED = f"{SAID} INFO [KafkaServer id=3] Controlled shutdown request returned successfully after 141ms (kafka.server.X)"
GAVE_UP = f"{SAID} WARN [KafkaServer id=3] Proceeding to do an unclean shutdown as all the controlled shutdown attempts failed"
MOVES = f"{SAID} INFO [ReplicaFetcherManager on broker 3] Removed fetcher for partitions Set(orders-1) (kafka.server.X)"


@pytest.mark.parametrize(
    ("seen", "lines", "controller", "thread"),
    [
        (BEFORE, (ASKS,), "broker-2", "controller-event-thread"),
        (BEFORE, (ASKS, NO_ANSWER, MOVES), "broker-2", "controller-event-thread"),
        (HYBRID, (MOVES, NO_ANSWER), "broker-2", "controller-event-thread"),
        (DUAL, (STILL_WAITS,), f"controller-{LEADER}", f"quorum-controller-{LEADER}-event-handler"),
        (BEFORE, (ASKS, ANSWERED), "", ""),
        (BEFORE, (ASKS, NO_ANSWER, GAVE_UP), "", ""),
        (BEFORE, (MOVES,), "", ""),
    ],
)
def test_a_broker_that_asks_to_go_is_told_with_the_controller_that_has_to_let_it(
    seen: Observation, lines: tuple[str, ...], controller: str, thread: str
) -> None:
    process = seen.node(3).process
    assert process is not None
    seen = rolling(seen, 3, process.identity)
    since = seen.ended_at - timedelta(seconds=20)
    entries, _ = blockers_of(looked_at(seen, in_hand=frozenset({"broker-3"}), step_since=since, hints=Hints(logs={3: lines})))
    (entry,) = [entry for entry in entries if entry.object == "broker-3"]
    assert (f"It asks {controller}, the controller, to move its leaders to others, since 02:59:30" in entry.observed) is bool(
        controller
    )
    assert entry.fix.startswith(f"Look at {controller} first" if controller else "Give a broker's controlled shutdown its time")
    assert thread in entry.fix
    assert ("delete /controller" in entry.fix) is (thread == "controller-event-thread")


@pytest.mark.parametrize("node_id", [2, LEADER])
@pytest.mark.parametrize(
    ("ends_by", "words"), [(("INT", "HUP"), "Then `kill -INT"), ((), "Once every partition of it that has other replicas")]
)
def test_a_node_that_ignores_what_it_is_told_to_stop_by_is_not_waited_for(
    node_id: int, ends_by: tuple[str, ...], words: str
) -> None:
    process, name = DUAL.node(node_id).process, SPEC.node_name(node_id)
    assert process is not None
    hints = Hints(signs={name: signs_of(ends_by=ends_by)})
    assert found(DUAL, hints=hints) == [], "nobody waits for it to end"
    seen = with_metrics(rolling(DUAL, node_id, process.identity), node_id, broker_state=3)
    more = {"in_hand": frozenset({name}), "step_since": seen.ended_at - timedelta(seconds=20), "hints": hints}
    (entry,) = found(seen, **more)
    assert f"its process {process.pid} ignores SIGTERM" in entry.observed
    assert entry.fix.startswith("First mend what starts it")
    assert words in entry.fix
    assert "Give a broker's controlled shutdown its time" not in entry.fix
    (entry,) = found(with_metrics(seen, node_id, broker_state=6), **more)
    assert "ignores SIGTERM" not in entry.observed, "somebody has sent another signal"


def test_a_heap_dump_is_what_keeps_a_broker_from_an_answer() -> None:
    writes = signs_of(heap_dump=("/var/dumps/b.hprof", 5 << 30, 9 << 30), unaccepted=((30582, 14, "127.0.0.1"),))
    (entry,) = found(silent(DUAL, 2), hints=Hints(signs={"broker-2": writes}))
    assert "it writes a heap dump to /var/dumps/b.hprof, 5120 MiB so far" in entry.observed
    assert entry.fix.startswith("Let the dump come to its end")
    assert "includeObjectNames" not in entry.fix
    assert "connections wait" not in entry.observed


def test_a_node_whose_file_the_step_could_not_write_is_not_being_stopped() -> None:
    """As where its file is a mount of its own: the step fails before it stops anything."""
    process = DUAL.node(2).process
    assert process is not None
    seen = rolling(DUAL, 2, process.identity)
    disk = seen.node(2).disk
    assert disk is not None
    assert disk.file is not None
    assert disk.file.mark is not None
    mark = disk.file.mark.model_copy(update={"before_sha256": disk.file.sha256, "written_sha256": "another"})
    seen = with_part(seen, 2, disk=disk.model_copy(update={"file": disk.file.model_copy(update={"mark": mark})}))
    since = seen.ended_at - timedelta(seconds=20)
    assert found(seen, in_hand=frozenset({"broker-2"}), step_since=since) == []


def test_a_step_that_began_by_a_clock_that_was_set_back_since_excuses_nobody() -> None:
    process = DUAL.node(2).process
    assert process is not None
    seen = with_metrics(rolling(DUAL, 2, process.identity), 2, broker_state=6)
    since = seen.ended_at + timedelta(hours=1)
    entries, _ = blockers_of(looked_at(seen, in_hand=frozenset({"broker-2"}), step_since=since))
    assert [(entry.code, entry.object) for entry in entries] == [("node-not-ready", "broker-2")]


@pytest.mark.parametrize("node_id", [2, LEADER])
@pytest.mark.parametrize("is_silent", [False, True])
def test_who_is_told_to_stop_is_not_told_to_serve(node_id: int, is_silent: bool) -> None:
    """Its gauges go before it does, and its endpoint."""
    process = DUAL.node(node_id).process
    assert process is not None
    seen = rolling(DUAL, node_id, process.identity)
    seen = with_part(seen, node_id, metrics=None) if is_silent else with_metrics(seen, node_id, broker_state=None)
    name = SPEC.node_name(node_id)
    since = seen.ended_at - timedelta(seconds=40)
    entries = found(seen, in_hand=frozenset({name}), step_since=since)
    (entry,) = [entry for entry in entries if entry.object == name]
    assert entry.observed.startswith("the step that restarts it has told it to stop")


def test_between_stop_and_start_a_node_is_no_entry() -> None:
    seen = rolling(dead(DUAL, 2), 2, "77@1")
    since = seen.ended_at - timedelta(minutes=1)
    assert found(seen, in_hand=frozenset({"broker-2"}), step_since=since) == []


# --- nodes -----------------------------------------------------------------------------------------------------------


def test_an_active_controller_that_is_silent_is_not_missing_where_others_follow_it() -> None:
    assert keys(found(silent(DUAL, LEADER))) == [("part-unknown", SPEC.node_name(LEADER))]
    lost = silent(DUAL, LEADER)
    for node in SPEC.nodes:
        lost = with_metrics(lost, node.id, raft_leader=None) if node.id != LEADER else lost
    assert ("controllers-not-ready", "the quorum") in keys(found(lost)), "where nobody follows anybody, there is none"


def test_a_process_that_stands_still_is_told_as_such() -> None:
    (entry,) = found(silent(DUAL, 2, is_paused=True))
    assert (entry.code, entry.object) == ("part-unknown", "broker-2")
    assert "kill -CONT 77" in entry.fix
    (entry,) = found(silent(DUAL, 2))
    assert "kill" not in entry.fix


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (("Could not start Jolokia agent: java.net.BindException: Address already in use", STARTED), "ss -ltnp"),
        ((STARTED, "java.io.IOException: Too many open files"), "LimitNOFILE"),
        ((STARTED, "java.lang.OutOfMemoryError: Java heap space"), "-Xmx"),
        ((STARTED, "WARNING: A JVM TI agent has been loaded dynamically (/opt/apm/libagent.so)"), "an APM agent"),
        (("java.lang.OutOfMemoryError: Java heap space", STARTED), "exporter's port"),
    ],
)
def test_a_node_whose_metrics_are_silent_says_why_in_its_log(lines: tuple[str, ...], told: str) -> None:
    """The agent speaks before Kafka does; what a process before this one said is no news."""
    (entry,) = found(silent(DUAL, 2), hints=Hints(logs={2: lines}))
    assert (entry.code, entry.object) == ("part-unknown", "broker-2")
    assert told in entry.fix


@pytest.mark.parametrize(
    ("obstacle", "about", "says", "fix"),
    [
        (Obstacle.TLS, "broker-2", "no TLS", "SSL_CERT_FILE"),
        (Obstacle.FORBIDDEN, "broker-2", "refuses us", "jolokia-access.xml"),
        (Obstacle.ANOTHERS, "broker-2", "not its gauges", "another program"),
        (Obstacle.LATE, "broker-2", "takes our connection", "includeObjectNames"),
        (None, "broker-2", "gives no answer", "exporter's port"),
        (Obstacle.OURS, "keeperless-activities", "timed out", "restart none of them"),
        (Obstacle.UNRESOLVED, "keeperless-activities", "timed out", "resolvectl status"),
    ],
)
def test_an_endpoint_that_does_not_hang_is_told_by_what_it_does(
    obstacle: Obstacle | None, about: str, says: str, fix: str
) -> None:
    (entry,) = found(silent(DUAL, 2, obstacle=obstacle))
    assert (entry.code, entry.object) == ("part-unknown" if about == "broker-2" else "machine", about)
    assert says in entry.observed
    assert fix in entry.fix
    assert ("a heap that is full" in entry.fix) == (obstacle is None)


def test_who_has_the_port_in_place_of_the_agent_is_told_by_the_agent() -> None:
    lines = ("Could not start Jolokia agent: java.net.BindException: Address already in use", STARTED)
    (entry,) = found(silent(DUAL, 2, obstacle=Obstacle.ANOTHERS), hints=Hints(logs={2: lines}))
    assert "ss -ltnp" in entry.fix


@pytest.mark.parametrize(
    ("lines", "says", "fix"),
    [
        (
            ("09:05:11 start-kafka: waiting for secrets agent",),
            "for secrets agent",
            "--forest",
        ),
        ((), "It has printed nothing", "--forest"),
        (("{now} INFO starting",), "gives no answer", "exporter's port"),
    ],
)
def test_of_a_process_that_is_new_what_the_one_before_said_is_no_news(lines: tuple[str, ...], says: str, fix: str) -> None:
    """Its start script waits for something, below the errors with which the process before it went."""
    seen = silent(DUAL, 2)
    process = seen.node(2).process
    assert process is not None
    seen = with_part(seen, 2, process=process.model_copy(update={"started_at": seen.ended_at - timedelta(seconds=20)}))
    old, end, now = (f"[{seen.ended_at - timedelta(seconds=ago):%Y-%m-%d %H:%M:%S},123]" for ago in (22, 20, 10))
    before = (
        f"{old} ERROR java.lang.OutOfMemoryError: Java heap space",
        f"{end} WARN Partition x-5 marked as failed",
        f"{end} INFO [KafkaServer id=2] shut down completed (kafka.server.KafkaServer)",
    )
    hints = Hints(logs={2: (*before, *(line.format(now=now) for line in lines))})
    (entry,) = found(seen, hints=hints)
    assert says in entry.observed
    assert fix in entry.fix
    assert "OutOfMemoryError" not in entry.observed


def test_a_dead_node_says_why_where_its_last_words_are_known() -> None:
    (entry,) = found(dead(DUAL, 2, "[x] ERROR", "java.net.BindException: Address already in use"))
    assert "Address already in use" in entry.observed
    assert "ss -tanp" in entry.fix
    (entry,) = found(dead(DUAL, 2, "something nobody has seen before"))
    assert "something nobody has seen before" in entry.observed


STOPPED_SAID = ("INFO Terminating process due to signal SIGTERM (x)", "INFO x shut down completed (kafka.server.KafkaServer)")


@pytest.mark.parametrize("output", [(), ("start.sh: line 3: numactl: command not found",)])
@pytest.mark.parametrize("is_started", [True, False])
def test_a_start_of_ours_that_fails_before_kafka_is_not_told_as_a_stop(output: tuple[str, ...], is_started: bool) -> None:
    """The log ends with the orderly stop of the process before; only who knows that another was started tells them apart."""
    said = (STARTED, *(f"[{NOW - timedelta(seconds=20):%Y-%m-%d %H:%M:%S},000] {line}" for line in STOPPED_SAID), *output)
    process = Process(
        is_running=False, identity=None, last_identity="78@2" if is_started else "77@1", started_at=NOW - timedelta(seconds=12)
    )
    marked = with_file(DUAL, 2, "broker.id=2\n", mark_of("b", before_identity="77@1"))
    seen = with_part(marked, 2, process=process, metrics=None)
    (entry,) = [one for one in found(seen, hints=Hints(logs={2: said})) if one.code == "node-down"]
    assert ("ended before Kafka began" in entry.observed) is is_started
    assert ("stopped in order" in entry.observed) is not is_started
    assert "numactl" in entry.observed or not output
    assert "by hand" in entry.fix or not (output or is_started)


@pytest.mark.parametrize(
    ("lines", "observed", "fix"),
    [
        ((), "It printed nothing", "by hand"),
        ((f"{SAID} INFO all is well (kafka.X)",), "it was killed", "dmesg"),
        ((f"{SAID} INFO Terminating process due to signal SIGTERM (x)",), "stopped in order", "Start it."),
        (
            (f"{SAID} ERROR no (x)", "my.Exception: the moon is full", *FRAMES, f"{SAID} INFO closing (x)"),
            "the moon is full",
            "log",
        ),
        ((f"{SAID} ERROR no (x)", "java.io.IOException: No space left on device", *FRAMES), "No space left", "Make room"),
    ],
)
def test_a_dead_node_is_told_by_how_it_ended(lines: tuple[str, ...], observed: str, fix: str) -> None:
    """From its log where it could be read, which may be long, or from its last words."""
    for seen, hints in ((dead(DUAL, 2, *lines), Hints()), (dead(DUAL, 2), Hints(logs={2: lines}))):
        (entry,) = found(seen, hints=hints)
        assert (entry.code, entry.object) == ("node-down", "broker-2")
        assert observed in entry.observed
        assert "\tat" not in entry.observed
        assert fix in entry.fix
        assert entry.expected.startswith("broker-2 runs")


def file_entry(seen: Observation) -> Blocker:
    (entry,) = (e for e in found(seen) if e.code == "file-changed")
    return entry


def test_a_file_that_this_migration_never_wrote_is_not_told_as_written_by_it() -> None:
    entry = file_entry(with_file(DUAL, 1, "process.roles=nonsense\n"))
    assert "This migration has not written it" in entry.observed
    assert "configuration management or a backup" in entry.fix
    assert "what this migration wrote" not in entry.fix
    assert entry.expected == "the file as it was when the migration began"
    entry = file_entry(edited(DUAL, 1))
    assert "this migration left wwwwwwwwwwww…" in entry.observed
    assert "what this migration wrote" in entry.fix
    assert entry.expected == "the file as this migration left it"


@pytest.mark.parametrize(
    ("mark", "fix"), [(None, "a backup"), (mark_of("w" * 64, is_proven=True), "what this migration wrote")]
)
def test_an_empty_file_is_told_as_empty(mark: RollMark | None, fix: str) -> None:
    entry = file_entry(with_file(DUAL, 1, "", mark))
    assert entry.observed.startswith("/etc/kafka/1.properties is empty")
    assert fix in entry.fix
    assert ".keeperless" in entry.fix


def test_a_file_that_is_gone_is_told_as_gone() -> None:
    disk = DUAL.node(1).disk
    assert disk is not None
    seen = with_part(DUAL, 1, disk=disk.model_copy(update={"file": None}))
    (entry,) = (e for e in found(seen) if e.code == "file-changed")
    assert entry.observed == "/etc/kafka/1.properties does not exist, or is a link to nothing"
    assert "if it has" in entry.fix, "nothing of ours lies beside a file that we have not come to yet"


def test_a_controller_without_its_flag_is_an_alarm_until_the_end() -> None:
    seen = with_metrics(DUAL, STANDBY, write_behind_lag=None)
    assert ("controller-lost-its-flag", "controller-3001") in keys(found(seen))
    assert keys(found(observation(Point.FINAL))) == []


def test_a_broker_that_serves_and_is_refused_says_so_in_its_log() -> None:
    line = "[2026-11-20 03:00:00,1] INFO Unable to register broker 2 because the controller returned error UNSUPPORTED_VERSION"
    seen = with_metrics(DUAL, LEADER, migrating_broker_count=2, active_broker_count=2)
    (entry,) = found(seen, hints=Hints(logs={2: (line,)}))
    assert (entry.code, entry.object) == ("brokers-not-registered", "broker-2")
    assert "inter.broker.protocol.version" in entry.fix


def test_a_time_that_its_last_words_name_is_told_with_the_setting_that_it_is() -> None:
    """Seconds where milliseconds are meant."""
    file = "broker.id=2\nzookeeper.connection.timeout.ms=18\nzookeeper.session.timeout.ms=18000\nport=18\n"
    said = f"{SAID} ERROR Timed out after waiting for 18ms for FeatureCache to be updated. (kafka.server.KafkaServer)"
    entry = next(e for e in found(dead(with_file(DUAL, 2, file), 2, STARTED, said)) if e.code == "node-down")
    assert "Its file has zookeeper.connection.timeout.ms=18" in entry.observed
    assert "18000" not in entry.observed


def test_a_way_to_the_controllers_that_is_open_again_is_no_reason() -> None:
    """Another broker is not registered: who has got through for half a minute is not blamed for it."""
    said = f"{SAID} WARN [NodeToControllerChannelManager] Connection to node 3001 (/127.0.0.1:9093) could not be established."
    later = "[2026-11-20 03:01:00,000] INFO [Broker id=2] Transitioned partition orders-9 (state.change.logger)"
    seen = with_metrics(DUAL, LEADER, active_broker_count=2, migrating_broker_count=2)
    assert [entry.object for entry in found(seen, hints=Hints(logs={2: (STARTED, said)}))] == ["broker-2"]
    assert "broker-2" not in {entry.object for entry in found(seen, hints=Hints(logs={2: (STARTED, said, later)}))}


def test_what_a_broker_said_of_a_peer_is_no_reason_while_all_that_serve_are_counted() -> None:
    """One has died, and its own lines of a controller that was restarted earlier are nobody else's."""
    said = f"{SAID} WARN [NodeToControllerChannelManager] Connection to node 3001 (/127.0.0.1:9093) could not be established."
    seen = dead(with_metrics(DUAL, LEADER, active_broker_count=2, migrating_broker_count=3), 1)
    assert [entry.object for entry in found(seen, hints=Hints(logs={2: (STARTED, said), 3: (STARTED, said)}))] == ["broker-1"]


def test_what_a_broker_said_before_the_controllers_took_it_is_over() -> None:
    refused = (
        "[2026-11-20 03:00:00,1] INFO Unable to register broker 2 because the controller returned error UNSUPPORTED_VERSION"
    )
    taken = "[2026-11-20 03:00:01,1] INFO [BrokerLifecycleManager id=2] Successfully registered broker 2 with broker epoch 175"
    seen = with_metrics(DUAL, LEADER, migrating_broker_count=2, active_broker_count=2)
    assert "broker-2" not in {entry.object for entry in found(seen, hints=Hints(logs={2: (refused, taken)}))}
    assert "broker-2" in {entry.object for entry in found(seen, hints=Hints(logs={2: (taken, refused)}))}


@pytest.mark.parametrize(("counted", "told"), [(2, "has not registered"), (4, "until its session is over")])
def test_counts_that_differ_say_whether_a_broker_is_missing_or_still_counted(counted: int, told: str) -> None:
    (entry,) = found(with_metrics(DUAL, LEADER, migrating_broker_count=counted, active_broker_count=counted))
    assert (entry.code, entry.object) == ("brokers-not-registered", SPEC.node_name(LEADER))
    assert told in entry.fix


def test_what_the_controller_has_against_a_broker_is_quoted_from_its_own_log() -> None:
    refused = f"{SAID} INFO Unable to register broker 2 because the controller returned error INVALID_REGISTRATION"
    told = (
        f"{SAID} INFO [QuorumController id=3001] registerBroker: event failed with InvalidRegistrationException in 9 us. "
        "Exception message: Broker 1 is already registered with directory"
    )
    seen = with_metrics(DUAL, LEADER, migrating_broker_count=2, active_broker_count=2)
    hints = Hints(logs={2: (refused,), LEADER: (told,)})
    entry = next(e for e in found(seen, hints=hints) if e.object == "broker-2")
    assert "Broker 1 is already registered" in entry.observed
    assert SPEC.node_name(LEADER) in entry.observed


@pytest.mark.parametrize(("times", "is_told"), [(1, False), (2, True)])
def test_a_broker_that_is_fenced_again_and_again_is_named_between_as_well(times: int, is_told: bool) -> None:
    """Once is what a broker leaves that was killed; at the moment of a look it may be registered."""
    lines = (f"{SAID} INFO Fencing broker 2 because its session has timed out. (x)",) * times
    entries = [e for e in found(DUAL, hints=Hints(logs={LEADER: lines})) if e.object == "broker-2"]
    assert bool(entries) is is_told
    assert all("broker.heartbeat.interval.ms" in entry.fix for entry in entries)


@pytest.mark.parametrize(("epochs", "is_told"), [(2, False), (9, True)])
def test_elections_without_an_end_are_told_also_while_somebody_leads(epochs: int, is_told: bool) -> None:
    line = "[2026-11-20 03:01:{:02},123] INFO Completed transition to CandidateState(localId=3001, epoch={}, "
    lines = (STARTED, line.format(1, 0), *(line.format(10 + n, 40 + n) for n in range(epochs)))
    hints = Hints(logs={STANDBY: lines})
    entries = [e for e in found(since(DUAL, 150), hints=hints) if e.object == "the quorum"]
    assert bool(entries) is is_told
    assert all("election.timeout.ms" in entry.fix for entry in entries)
    assert found(since(DUAL, 30), hints=hints) == [], "before a majority runs, whoever does stands again and again"
    assert found(since(DUAL, 7200), hints=hints) == [], "those are over"
    assert found(since(DUAL, 160), hints=hints) == [], "the last one lasts"


def since(seen: Observation, seconds: int) -> Observation:
    """With controllers that have run for so long."""
    for controller in SPEC.controllers:
        process = seen.node(controller.id).process
        assert process is not None
        begun = seen.ended_at - timedelta(seconds=seconds)
        seen = with_part(seen, controller.id, process=process.model_copy(update={"started_at": begun}))
    return seen


def test_a_wait_that_nothing_explains_is_told_with_what_the_nodes_complain_of() -> None:
    hints = Hints(logs={LEADER: (f"{SAID} ERROR the moon is in the way (x)",)})
    (entry,), _ = blockers_of(looked_at(DUAL, hints=hints), Wait(reason=WaitReason.FINALIZATION_NOT_SEEN))
    assert "the moon is in the way" in entry.observed
    (entry,), _ = blockers_of(looked_at(DUAL, hints=hints), Wait(reason=WaitReason.HELD))
    assert "moon" not in entry.observed


@pytest.mark.parametrize(
    ("znode", "observed", "fix"),
    [
        (None, "no broker is the controller", "getAcl /"),
        (ControllerZnode(broker_id=1, kraft_epoch=None, is_ephemeral=False), "is persistent", "delete /controller"),
        (ControllerZnode(broker_id=9, kraft_epoch=-1, is_ephemeral=True), "not registered", "ephemeralOwner"),
    ],
)
def test_who_holds_the_controllers_znode_is_told_as_long_as_zookeeper_has_the_metadata(
    znode: ControllerZnode | None, observed: str, fix: str
) -> None:
    seen = with_zookeeper(observation(Point.CONTROLLERS_UP), controller=znode)
    (entry,) = found(seen)
    assert (entry.code, entry.object) == ("GF11", "/controller")
    assert observed in entry.observed
    assert fix in entry.fix


def test_a_leader_whose_thread_has_died_is_to_be_restarted_though_its_partitions_cannot_spare_it() -> None:
    """As seen on a way back: waiting does not bring the replica that could stand in for it."""
    said = (
        f"{SAID} ERROR [zk-broker-1-to-controller-alter-partition-channel-manager]: Error due to (kafka.server.X)",
        "java.lang.IllegalArgumentException: A metric named 'MetricName [name=successful-reauthentication-total]' already "
        "exists",
    )
    lags = (PartitionFault(partition="orders-3", missing=(2,), leader=1),)
    seen = with_kafka(DUAL, under_replicated=lags, needs={1: ("orders-3",), 2: (), 3: ()})
    entry = next(e for e in found(seen, hints=Hints(logs={1: (STARTED, *said)})) if e.code == "partitions-not-in-sync")
    assert entry.object == "broker-1"
    assert "channel-manager]: Error due to" in entry.observed
    assert "Restart broker-1: orders-3 cannot be written meanwhile, and nothing that was acknowledged is lost" in entry.fix


def test_an_order_in_zookeeper_is_nobodys_once_kraft_has_the_metadata() -> None:
    (entry,) = found(with_zookeeper(DUAL, pending_deletions=("orders",)))
    assert (entry.code, entry.object) == ("GF02", "topic deletion")
    assert "nobody takes orders" in entry.observed
    assert "Delete that znode" in entry.fix
    (entry,) = [e for e in found(with_zookeeper(BEFORE, pending_deletions=("orders",))) if e.code == "GF02"]
    assert "Let it finish" in entry.fix


# --- ZooKeeper -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("states", "named"),
    [
        ((Serving.YES, Serving.YES, Serving.YES), []),
        ((Serving.UNKNOWN, Serving.UNKNOWN, Serving.UNKNOWN), []),
        ((Serving.SILENT, Serving.YES, Serving.YES), [0]),
        ((Serving.YES, Serving.NO, Serving.YES), [1]),
        ((Serving.YES, Serving.BUSY, Serving.YES), [1]),
        ((Serving.YES, Serving.STUCK, Serving.NO), [1, 2]),
        ((Serving.UNREACHED, Serving.NO, Serving.UNREACHED), [0, 2]),
        ((Serving.REFUSED, Serving.SILENT, Serving.NO), [0, 1]),
        ((Serving.REFUSED, Serving.REFUSED, Serving.REFUSED), [0, 1, 2]),
    ],
)
def test_the_members_that_are_gone_are_named_and_who_waits_for_them_is_not(
    states: tuple[Serving, ...], named: list[int]
) -> None:
    hints = Hints(servers=dict(zip(SERVERS, states, strict=True)))
    is_lost = len(named) > 1
    seen = without(DUAL, "zookeeper") if is_lost else DUAL
    assert keys(found(seen, hints=hints)) == [("GF11", f"zookeeper {SERVERS[i]}") for i in named]


def test_an_ensemble_that_answers_and_commits_nothing_has_its_quorum() -> None:
    """As where a thread of the leader stands in a lock."""
    entries = found(without(DUAL, "zookeeper"), hints=Hints(servers=dict.fromkeys(SERVERS, Serving.STUCK)))
    assert all("The ensemble has its quorum, and commits nothing" in entry.observed for entry in entries)
    assert all("Thread.print" in entry.fix and "restart that one server" in entry.fix for entry in entries)
    (_, *others) = found(
        without(DUAL, "zookeeper"), hints=Hints(servers=dict(zip(SERVERS, (Serving.STUCK,) * 2 + (Serving.NO,), strict=True)))
    )
    assert all("has its quorum" not in entry.observed for entry in others)


def test_a_silent_ensemble_whose_servers_all_serve_is_told_by_its_error() -> None:
    seen = without(DUAL, "zookeeper", "NoAuth for /brokers")
    (entry,) = found(seen, hints=Hints(servers=dict.fromkeys(SERVERS, Serving.YES)))
    assert (entry.code, entry.object, entry.observed) == ("GF11", "ZooKeeper", "NoAuth for /brokers")


def test_after_the_end_nobody_needs_zookeeper() -> None:
    hints = Hints(servers=dict.fromkeys(SERVERS, Serving.REFUSED))
    assert found(without(observation(Point.FINAL), "zookeeper"), hints=hints) == []


# --- the copy --------------------------------------------------------------------------------------------------------

WAITING = "[2026-11-20 03:00:00,100] INFO Still waiting for ZK brokers [9] found in metadata to register with KRaft."


def test_an_id_that_nobody_has_is_named_with_its_partitions_and_the_controllers_own_words() -> None:
    seen = with_zookeeper(HYBRID, assigned_broker_ids=(1, 2, 3, 9))
    entries = found(seen, hints=Hints(logs={LEADER: (WAITING,)}, assigned={9: ("orders-0", "orders-1")}))
    assert keys(entries) == [("copy-not-complete", "broker 9")]
    assert "orders-0, orders-1" in entries[0].observed
    assert "Still waiting for ZK brokers [9]" in entries[0].observed


def test_an_id_that_has_been_reassigned_is_over_whatever_the_log_still_says() -> None:
    assert ("copy-not-complete", "broker 9") not in keys(found(HYBRID, hints=Hints(logs={LEADER: (WAITING,)})))


def test_a_stranger_that_is_registered_is_waited_for_too() -> None:
    entries = found(with_zookeeper(HYBRID, broker_ids=(1, 2, 3, 7)))
    assert keys(entries) == [("copy-not-complete", "broker 7")]
    assert "not in the cluster's specification" in entries[0].observed


def test_a_controller_that_never_had_the_flag_is_named_by_the_active_one() -> None:
    line = "WARN Not ready due to:Controller 3003 has not enabled zookeeper.metadata.migration.enable"
    entries = found(HYBRID, hints=Hints(logs={LEADER: (line,)}))
    assert keys(entries) == [("controller-lost-its-flag", "controller-3003")]


def test_a_controller_that_never_registered_is_named_with_what_helps() -> None:
    seen = observation(Point.CONTROLLERS_UP).model_copy(update={"unregistered": (STANDBY,)})
    (entry,) = found(seen)
    assert (entry.code, entry.object) == ("controllers-not-ready", SPEC.node_name(STANDBY))
    assert f"restart {SPEC.node_name(STANDBY)}" in entry.fix


@pytest.mark.parametrize(("what", "said"), [("registrations", "registered"), ("suspects", "failover")])
def test_a_search_that_could_not_be_made_says_what_is_not_known(what: str, said: str) -> None:
    missing = Unanswered(what=what, why="the log may not be read")
    (entry,) = found(observation(Point.CONTROLLERS_UP).model_copy(update={"unanswered": (missing,)}))
    assert (entry.code, entry.observed) == ("part-unknown", missing.why)
    assert said in entry.object


def test_poisoned_znodes_are_each_an_entry() -> None:
    suspects = tuple(Suspect(what=f"/config/users/{n}", why="not a number") for n in range(2))
    seen = HYBRID.model_copy(update={"poisoned_znodes": suspects})
    assert {("copy-cannot-finish", s.what) for s in suspects} <= set(keys(found(seen)))


# --- dual write ------------------------------------------------------------------------------------------------------


def test_a_claim_that_a_broker_has_taken_is_named() -> None:
    claim = ControllerZnode(broker_id=2, kraft_epoch=None, is_ephemeral=True)
    (entry,) = found(with_zookeeper(DUAL, controller=claim))
    assert (entry.code, entry.object) == ("dual-write-not-current", "/controller")
    assert "broker 2" in entry.observed


def test_zookeeper_with_data_from_before_the_copy_is_told_as_such() -> None:
    old = MigrationZnode(controller_id=-1, controller_epoch=-1, offset=-1)
    entries = found(with_zookeeper(DUAL, controller=None, migration=old))
    assert keys(entries) == [("dual-write-not-current", "ZooKeeper")]
    assert "newest dataDir" in entries[0].fix


def test_a_dual_write_that_has_died_quotes_its_controller() -> None:
    seen = with_zookeeper(DUAL, migration=STALE_COPY.model_copy(update={"offset": 3}))
    seen = seen.model_copy(update={"failover_hazards": ()})
    line = "[2026-11-20 03:00:00,1] INFO Check op on KRaft Migration ZNode failed. Sent zkVersion = 5."
    entry = next(e for e in found(seen, hints=Hints(logs={LEADER: (line,)})) if e.object == "/migration")
    assert "Check op on KRaft Migration ZNode failed" in entry.observed
    assert "fail-over" in entry.fix


def test_a_stray_config_is_named_before_any_failover() -> None:
    stray = Suspect(what="client metrics config interval.ms of all", why="a new leader cannot compare it")
    entries = found(DUAL, hints=Hints(strays=(stray,)))
    assert ("failover-would-hurt", stray.what) in keys(entries)


def test_an_acl_that_zookeeper_cannot_hold_is_told_in_place_of_the_error_that_names_nothing() -> None:
    """Its printed fix, another active controller, is what would end dual write for good."""
    line = (
        f"{SAID} INFO [KRaftMigrationDriver id={LEADER}] Encountered ZooKeeper error during event MetadataChangeEvent{{"
        "provenance=MetadataProvenance(lastContainedOffset=1237)}. Will retry. (org.apache.kafka.metadata.migration.X)"
    )
    logs = {LEADER: (line,)}
    assert ("dual-write-not-current", SPEC.node_name(LEADER)) in keys(found(DUAL, hints=Hints(logs=logs)))
    acl = Suspect(what="ACL of User:alice for group team-a/loader", why="no znode", is_lost_change=True, offset=1236)
    (entry,) = found(DUAL, hints=Hints(logs=logs, strays=(acl,)))
    assert (entry.code, entry.object) == ("failover-would-hurt", acl.what)
    older = acl.model_copy(update={"offset": 7})
    told = keys(found(DUAL, hints=Hints(logs=logs, strays=(older,))))
    assert ("dual-write-not-current", SPEC.node_name(LEADER)) in told, "that was another change"


# --- since when ------------------------------------------------------------------------------------------------------


def test_since_is_when_the_wait_began_and_else_this_look() -> None:
    began = NOW - timedelta(hours=3)
    waiting = Waiting(reason=WaitReason.NODE_DOWN, means="-", since=began, objects=("broker-2",))
    entries = found(dead(dead(DUAL, 2), 3), waiting=waiting)
    assert [(e.object, e.since) for e in entries] == [("broker-2", began), ("broker-3", NOW)]


# --- on the way back -------------------------------------------------------------------------------------------------


def test_the_way_back_has_its_causes_too() -> None:
    ruling = Ruling(accepted_losses=tuple(f"original-of-broker-{n}" for n in (1, 2, 3)))
    assert keys(found(dead(SOAK, 2), ruling)) == [("node-down", "broker-2")]


# --- what nothing waits for yet --------------------------------------------------------------------------------------


def test_a_node_that_serves_without_a_pid_file_is_told_as_such() -> None:
    (entry,) = found(with_part(dead(DUAL, 2), 2, is_unowned=True))
    assert (entry.code, entry.object) == ("part-unknown", "broker-2")
    assert "/run/2.pid" in entry.observed
    assert "start it" not in entry.fix, "a second process beside the first is the last thing that helps"


def test_where_nobody_s_process_can_be_seen_whoever_looks_is_to_blame() -> None:
    seen = DUAL
    for node in SPEC.nodes:
        seen = with_part(dead(seen, node.id), node.id, is_unowned=True)
    (entry,) = found(seen)
    assert (entry.code, entry.object) == ("part-unknown", "keeperless-activities")
    assert "PID namespace" in entry.fix


@pytest.mark.parametrize(("session", "told"), [("CONNECTING", ["broker-2"]), ("CONNECTED", []), (None, [])])
def test_a_broker_that_has_lost_zookeeper_by_itself_is_named(session: str | None, told: list[str]) -> None:
    assert [about for _, about in keys(found(with_metrics(DUAL, 2, zookeeper_session=session)))] == told


def test_in_an_outage_of_zookeeper_no_broker_is_blamed_for_its_session() -> None:
    seen = without(with_metrics(DUAL, 2, zookeeper_session="CONNECTING"), "zookeeper")
    hints = Hints(servers=dict.fromkeys(SERVERS, Serving.REFUSED))
    assert keys(found(seen, hints=hints)) == [("GF11", f"zookeeper {address}") for address in SERVERS]


def test_whom_nobody_reaches_from_here_may_have_a_quorum_all_the_same() -> None:
    seen = without(DUAL, "zookeeper")
    entries = found(seen, hints=Hints(servers=dict.fromkeys(SERVERS, Serving.UNREACHED)))
    assert all("cannot be seen from the host" in entry.observed for entry in entries)
    (gone, *_) = found(seen, hints=Hints(servers=dict.fromkeys(SERVERS, Serving.REFUSED)))
    assert "The ensemble has no quorum" in gone.observed


@pytest.mark.parametrize(("state", "told"), [(1, "does not serve yet"), (6, "it is ending"), (7, "it is ending")])
def test_a_broker_that_ends_is_told_apart_from_one_that_begins(state: int, told: str) -> None:
    entry = next(e for e in found(with_metrics(DUAL, 2, broker_state=state)) if e.object == "broker-2")
    assert entry.code == "node-not-ready"
    assert told in entry.observed


def test_a_broker_that_recovers_its_logs_says_how_far_it_is() -> None:
    """For hours perhaps, after a kill: nothing is wrong, and a restart would make it worse."""
    segment = "INFO [LogLoader partition=orders-3, dir=/data] Recovering unflushed segment 4711. 2/9 recovered for orders-3."
    hints = Hints(logs={2: ("INFO Recovering 59 logs from /data since no clean shutdown file was found", segment)})
    entry = next(e for e in found(with_metrics(DUAL, 2, broker_state=2), hints=hints) if e.object == "broker-2")
    assert "2/9 recovered for orders-3" in entry.observed
    assert "a restart would begin anew" in entry.fix


@pytest.mark.parametrize(
    ("parts", "about", "fix"),
    [
        ({"reassignments": ("orders-1",)}, "partition reassignment", "--cancel"),
        ({"pending_deletions": ("old",)}, "topic deletion", "every broker that holds a replica"),
        ({"is_preferred_election_pending": True}, "election", "delete its znode"),
    ],
)
def test_work_under_way_is_told_with_its_own_fix(parts: dict[str, object], about: str, fix: str) -> None:
    (entry,) = [one for one in found(with_zookeeper(BEFORE, **parts)) if one.code == "GF02"]
    assert entry.object == about
    assert fix in entry.fix


def test_a_znode_that_would_kill_the_copy_is_told_before_it_begins() -> None:
    suspect = Suspect(what="/config/users/u", why="its quota is no number")
    entries = found(HYBRID, hints=Hints(unreadable=(suspect,)))
    assert keys(entries) == [("copy-cannot-finish", "/config/users/u")]
    assert "has not begun" in entries[0].observed


@pytest.mark.parametrize(
    ("znode", "says"),
    [(None, "no such znode"), (MigrationZnode(controller_id=None, controller_epoch=None, offset=None), "cannot be parsed")],
)
def test_a_migration_znode_that_somebody_touched_is_told_as_such(znode: MigrationZnode | None, says: str) -> None:
    (entry,) = found(with_zookeeper(DUAL, migration=znode))
    assert (entry.code, entry.object) == ("dual-write-not-current", "/migration")
    assert says in entry.observed


def test_a_stranger_in_dual_write_is_not_of_the_copy() -> None:
    assert keys(found(with_zookeeper(DUAL, broker_ids=(1, 2, 3, 7)))) == [("brokers-not-registered", "broker 7")]


def test_a_broker_that_somebody_has_taken_out_of_zookeeper_is_named() -> None:
    """Where it is the controller itself, nothing else shows it."""
    for seen in (HYBRID, DUAL):
        gone = with_zookeeper(seen, broker_ids=(1, 3))
        entries, _ = blockers_of(looked_at(gone))
        assert ("brokers-not-registered", "broker-2") in keys(list(entries))
        apart = Unanswered(what="kafka", why="broker 3 lists brokers [1, 3], another one [1, 2, 3]", broker_id=3)
        entries, _ = blockers_of(looked_at(gone.model_copy(update={"kafka": None, "unanswered": (apart,)})))
        assert keys(list(entries)) == [("brokers-not-registered", "broker-2")], "whoever tells of it is well"
    in_kraft, _ = blockers_of(looked_at(SOAK))
    assert "brokers-not-registered" not in {entry.code for entry in in_kraft}


def test_a_broker_that_loses_its_session_again_and_again_registers_without_a_restart() -> None:
    gone = with_zookeeper(HYBRID, broker_ids=(1, 3))
    lost = f"{SAID} WARN Unable to reconnect to ZooKeeper service, session 0x100000d23 has expired (org.apache.z.ClientCnxn)"
    made = f"{SAID} INFO Session establishment complete on server zk1/10.0.0.1:2181, id = 0x1, negotiated timeout = {{}} (X)"
    told = {}
    for name, lines in {"lost": (lost,), "short": (made.format(40), lost), "usual": (made.format(18000),)}.items():
        entries, _ = blockers_of(looked_at(gone, hints=Hints(logs={2: lines})))
        (told[name],) = (entry for entry in entries if (entry.code, entry.object) == ("brokers-not-registered", "broker-2"))
    assert told["lost"].fix.startswith("Do not restart broker-2")
    assert "negotiated timeout = 40" in told["short"].observed
    assert "maxSessionTimeout" in told["short"].fix
    assert told["usual"].fix.startswith("Restart broker-2")


def test_a_log_directory_that_is_somebody_elses_now_is_named_before_the_broker_restarts() -> None:
    def change(node: NodeView) -> NodeView:
        foreign = LogDir(path="/data/2", state=StorageState.FOREIGN, cluster_id="another", node_id=2)
        return node.model_copy(update={"disk": node.disk.model_copy(update={"log_dirs": (foreign,)})})

    entries, _ = blockers_of(looked_at(with_node(DUAL, 2, change)))
    (entry,) = (entry for entry in entries if entry.code == "PF03")
    assert (entry.object, "another" in entry.observed, entry.docs) == ("broker-2 /data/2", True, "docs/checks.md#pf03")


@pytest.mark.parametrize("state", [StorageState.EMPTY, StorageState.ABSENT])
def test_a_log_directory_without_anything_under_a_broker_that_runs_is_no_place_for_meta_properties(state: StorageState) -> None:
    def change(node: NodeView) -> NodeView:
        empty = LogDir(path="/data/2", state=state, cluster_id=None, node_id=None)
        return node.model_copy(update={"disk": node.disk.model_copy(update={"log_dirs": (empty,)})})

    (entry,) = (entry for entry in found(with_node(DUAL, 2, change)) if entry.code == "PF03")
    assert "findmnt" in entry.fix
    assert "Put no meta.properties there" in entry.fix


def test_a_write_that_zookeeper_refused_is_told_although_every_gauge_looks_well() -> None:
    said = "ERROR Encountered zk migration fault: Encountered ZooKeeper authentication in MetadataChangeEvent{"
    (entry,) = found(DUAL, hints=Hints(logs={LEADER: (said,)}))
    assert (entry.code, entry.object) == ("dual-write-not-current", f"controller-{LEADER}")
    assert "is not tried again" in entry.fix
    assert found(observation(Point.FINAL), hints=Hints(logs={LEADER: (said,)})) == []


def test_a_broker_that_was_put_back_into_zookeeper_mode_in_dual_write_is_named_and_nobody_else() -> None:
    """It serves, gets no metadata from anybody, and lists nobody: what it lacks is told of the others by turns."""
    plain = with_node(DUAL, 3, lambda _: BEFORE.node(3))
    plain = with_metrics(plain, LEADER, migrating_broker_count=2, active_broker_count=2)
    for seen in (with_kafka(plain, broker_ids=()), without(plain, "kafka", "broker 3 lists brokers [], another one [1, 2, 3]")):
        (entry,) = found(seen)
        assert (entry.code, entry.object) == ("brokers-not-registered", "broker-3")
        assert "ZooKeeper mode" in entry.observed
        assert "/etc/kafka/3.properties" in entry.fix


@pytest.mark.parametrize("seen", [BEFORE, observation(Point.CONTROLLERS_UP)])
def test_before_the_copy_a_broker_in_zookeeper_mode_is_what_is_wanted(seen: Observation) -> None:
    assert list(blockers_of(looked_at(seen))[0]) == []


@pytest.mark.parametrize("cluster_id", [None, "another"])
def test_the_clusters_id_that_somebody_has_taken_away_is_named_before_a_broker_dies_of_it(cluster_id: str | None) -> None:
    (entry,) = found(with_zookeeper(DUAL, cluster_id=cluster_id))
    assert (entry.code, entry.object) == ("PF03", "/cluster/id")
    assert CLUSTER_ID in entry.fix
    final = with_zookeeper(observation(Point.FINAL), cluster_id=cluster_id)
    assert found(final) == [], "nobody needs ZooKeeper any more"


@pytest.mark.parametrize(("peer", "told"), [(3002, True), (1, False)])
def test_a_broker_that_cannot_reach_another_broker_is_registered_all_the_same(peer: int, told: bool) -> None:
    line = f"Connection to node {peer} (/10.0.0.1:9092) could not be established. Node may not be available."
    seen = with_metrics(DUAL, LEADER, migrating_broker_count=2, active_broker_count=2)
    entries = found(seen, hints=Hints(logs={2: (line,)}))
    assert ("broker-2" in {entry.object for entry in entries}) is told


def test_a_controller_that_is_answered_with_another_cluster_s_id_is_named() -> None:
    said = "[x] ERROR [RaftManager id=3001] Unexpected error INCONSISTENT_CLUSTER_ID in FETCH response: InboundResponse(secret)"
    seen = with_metrics(observation(Point.CONTROLLERS_UP), STANDBY, raft_leader=-1)
    entries, _ = blockers_of(looked_at(seen, hints=Hints(logs={STANDBY: (said,)})))
    (entry,) = (entry for entry in entries if entry.object == "controller-3001")
    assert (entry.code, "INCONSISTENT_CLUSTER_ID in FETCH" in entry.observed) == ("controllers-not-ready", True)
    assert "secret" not in entry.observed
    assert "meta.properties" in entry.fix


def test_files_that_cannot_be_used_are_no_reason_to_look_for_the_host() -> None:
    why = "server.properties.mark cannot be read: it is ours. Restore it"
    unread = with_part(DUAL, 2, disk=None).model_copy(update={"unanswered": (Unanswered(what="files of broker-2", why=why),)})
    entries, _ = blockers_of(looked_at(unread))
    (entry,) = (entry for entry in entries if entry.object == "broker-2")
    assert (why in entry.observed, "mend what is named" in entry.fix, "reachable" in entry.fix) == (True, True, False)


def test_a_member_that_is_standalone_is_split_brain_whoever_asks() -> None:
    torn = dict(zip(SERVERS, (Serving.ALONE, Serving.YES, Serving.YES), strict=True))
    lost = DUAL.model_copy(update={"zookeeper": None})
    for seen in (DUAL, lost):
        (entry,) = [e for e in blockers_of(looked_at(seen, hints=Hints(servers=torn)))[0] if e.code == "GF11"]
        assert (entry.object, "version-2" in entry.fix) == (f"zookeeper {SERVERS[0]}", True)
    single = {SERVERS[0]: Serving.ALONE}
    assert blockers_of(looked_at(DUAL, hints=Hints(servers=single)))[0] == ()


@pytest.mark.parametrize(("seen", "number"), [(DUAL, "the epoch of KRaft's claim"), (HYBRID, "or a larger one")])
def test_a_controller_epoch_that_is_gone_is_told_before_the_next_election(seen: Observation, number: str) -> None:
    gone = with_zookeeper(seen, controller_epoch=None)
    (entry,) = [e for e in blockers_of(looked_at(gone))[0] if e.object == "/controller_epoch"]
    assert (entry.code, number in entry.fix) == ("PF11", True)


def behind(lag: int = 390, **hints: object) -> Blocker:
    """Dual write is 400 records behind, and lives, where it has a lag."""
    distant = with_metrics(DUAL, LEADER, raft_log_end=LOG_END + 400, write_behind_lag=lag)
    (entry,) = [e for e in blockers_of(looked_at(distant, hints=Hints(**hints)))[0] if e.object == "/migration"]
    return entry


def test_a_flood_of_changes_is_told_with_what_is_changed() -> None:
    lacking = Unwritten(("390 config", "2 topic"), ("topic orders", "topic payments"), more=53, seconds=1.1)
    entry = behind(unwritten=lacking)
    assert "ZooKeeper lacks 390 config, 2 topic (topic orders, topic payments); 53 more came in 1.1 s" in entry.observed
    assert "Pause it until finalize" in entry.fix


@pytest.mark.parametrize(
    ("more", "first"), [(0, "Its write was lost"), (5, "Changes come all the time"), (None, "Look again first")]
)
def test_that_dual_write_is_dead_is_said_at_once_only_where_nothing_is_changed(more: int | None, first: str) -> None:
    """Its offset is read before the log's end: while somebody makes topics all the time it is always behind."""
    assert behind(lag=0, unwritten=None if more is None else Unwritten(("15 topic",), (), more, 1.6)).fix.startswith(first)


def test_a_burst_that_is_over_needs_time_only() -> None:
    entry = behind(unwritten=Unwritten(("390 config",), ("topic orders",), more=0, seconds=1.1))
    assert "0 more came" in entry.observed
    assert "look again in a moment" in entry.fix


@pytest.mark.parametrize(("holder", "fix"), [(LEADER, "has another epoch"), (STANDBY, "Ask for a rollback now")])
def test_a_claim_whose_answer_was_lost_is_made_again_by_the_next_epoch(holder: int, fix: str) -> None:
    said = f"{SAID} ERROR Cannot register KRaft controller {LEADER} with epoch 7 as the current controller register in ZK has "
    claim = ControllerZnode(broker_id=holder, kraft_epoch=7, is_ephemeral=False)
    seen = with_zookeeper(HYBRID, controller=claim)
    entries = found(seen, hints=Hints(logs={LEADER: (STARTED, f"{said}the same or newer epoch")}))
    assert any(fix in entry.fix for entry in entries)


def test_access_lists_that_no_znode_can_hold_are_told() -> None:
    entry = behind(
        unwritten=Unwritten(("600 access control entry",), (), 0, 2.0), crowded=("/kafka-acl/Topic/t (1,044,104 bytes)",)
    )
    assert "/kafka-acl/Topic/t (1,044,104 bytes)" in entry.observed
    assert "jute.maxbuffer" in entry.fix


def test_why_dual_write_does_not_go_on_is_told_before_how_much_it_lacks() -> None:
    said = "[2026-11-20 03:00:00,000] ERROR Check op on KRaft Migration ZNode failed. Expected zkVersion = 7"
    entry = behind(logs={LEADER: (said,)}, unwritten=Unwritten(("390 config",), (), more=53, seconds=1.1))
    assert "Check op on KRaft Migration ZNode failed" in entry.observed
    assert "Pause it" not in entry.fix


def without_gauges(seen: Observation, node_id: int, seconds_ago: float) -> Observation:
    seen = with_metrics(seen, node_id, broker_state=None, migration_gauge=None, raft_log_end=None, raft_leader=None)
    process = seen.node(node_id).process
    assert process is not None
    begun = process.model_copy(update={"started_at": seen.ended_at - timedelta(seconds=seconds_ago)})
    return with_part(seen, node_id, process=begun)


@pytest.mark.parametrize(("node_id", "gauge"), [(2, "BrokerState"), (3001, "raft-metrics")])
def test_an_agent_that_leaves_kafkas_gauges_out_is_no_node_that_does_not_serve(node_id: int, gauge: str) -> None:
    seen, name = without_gauges(DUAL, node_id, 600), SPEC.node_name(node_id)
    complains = {node_id: ("[2026-11-20 03:00:00,000] WARN [X] Connection to node 1 (/10.0.0.7:1) could not be established",)}
    (entry,) = [e for e in blockers_of(looked_at(seen, hints=Hints(logs=complains)))[0] if e.object == name]
    assert (entry.code, gauge in entry.observed, "includeObjectNames" in entry.fix) == ("node-not-ready", True, True)


def test_a_node_that_has_just_started_may_not_have_its_gauges_yet() -> None:
    (entry,) = blockers_of(looked_at(without_gauges(DUAL, 2, 20)))[0]
    assert "does not serve yet" in entry.observed


@pytest.mark.parametrize(
    ("seen", "node_id", "stage", "gauges", "lacks"),
    [
        (DUAL, 1, NodeStage.MIGRATION, {"migration_gauge": None}, "name=ZkMigrationState"),
        (DUAL, 1, NodeStage.MIGRATION, {"raft_epoch": None}, "type=raft-metrics"),
        (SOAK, 1, NodeStage.KRAFT, {"raft_epoch": None}, "type=raft-metrics"),
        (DUAL, STANDBY, NodeStage.MIGRATION, {"write_behind_lag": None}, "name=ZkWriteBehindLag"),
    ],
)
def test_a_proven_process_of_which_a_gauge_is_not_shown_any_more_is_not_taken_for_another(
    seen: Observation, node_id: int, stage: NodeStage, gauges: dict[str, None], lacks: str
) -> None:
    """Without the mark it would be a broker in KRaft or ZooKeeper mode, and a controller that has lost its flag."""
    view = seen.node(node_id)
    assert view.process is not None
    assert view.disk is not None
    assert view.disk.file is not None
    marked = mark_of(view.disk.file.sha256, is_proven=True).model_copy(
        update={"stage": stage, "proven_identity": view.process.identity}
    )
    disk = view.disk.model_copy(update={"file": view.disk.file.model_copy(update={"mark": marked})})
    seen = with_part(seen, node_id, disk=disk)
    assert keys(found(seen)) == keys(found(observation(Point.DUAL_WRITE if stage is NodeStage.MIGRATION else Point.SOAK)))
    entries = found(with_metrics(seen, node_id, **gauges))
    assert keys(entries) == [("part-unknown", SPEC.node_name(node_id))]
    assert lacks in entries[0].observed
    assert "JMX exporter" in entries[0].fix
    name, ended_at = SPEC.node_name(node_id), seen.ended_at
    ours = {"in_hand": frozenset({name}), "step_since": ended_at - timedelta(seconds=15)}
    told = keys(found(with_metrics(seen, node_id, **gauges), **ours))
    assert ("part-unknown", name) not in told, "the step may have told it to stop since: its gauges go one by one"
    ours["step_since"] = ended_at - timedelta(minutes=1)
    assert ("part-unknown", name) in keys(found(with_metrics(seen, node_id, **gauges), **ours))


def test_a_controller_that_runs_on_storage_that_is_gone_is_told_and_not_taken_for_fenced() -> None:
    """Somebody has emptied its directory: it runs on, and is not to be started again and again."""
    view = DUAL.node(STANDBY)
    assert view.disk is not None
    gone = tuple(one.model_copy(update={"state": StorageState.EMPTY}) for one in view.disk.log_dirs)
    seen = with_part(DUAL, STANDBY, disk=view.disk.model_copy(update={"log_dirs": gone}))
    assert not fenced(situation_of(seen, SPEC, POLICY))
    entries = [entry for entry in found(seen) if entry.code == "PF03"]
    assert [entry.object.split()[0] for entry in entries] == [SPEC.node_name(STANDBY)]
    assert "kafka-storage.sh format --cluster-id" in entries[0].fix


@pytest.mark.parametrize(
    "line",
    [
        f"{SAID} INFO [KafkaServer id=1] shut down completed (kafka.server.KafkaServer)",
        f"{SAID} INFO [BrokerServer id=1] shut down completed (kafka.server.BrokerServer)",
    ],
)
def test_a_process_that_outlives_kafka_is_told_while_our_step_waits_for_it(line: str) -> None:
    (entry,) = of_who_is_to_end(STARTED, line)
    assert (entry.code, entry.object) == ("node-not-ready", "broker-1")
    assert "jstack" in entry.fix
    assert not any("kill -9" in entry.fix for entry in of_who_is_to_end(line, *[STARTED] * 30))


HALF_A_MINUTE_AGO = BEFORE.ended_at - timedelta(seconds=30)


@pytest.mark.parametrize("minutes", [15, 60, 24 * 60, 24 * 60 + 1])
def test_nobody_is_told_to_kill_a_process_by_what_an_earlier_one_has_said(minutes: int) -> None:
    """Somebody has started it by hand, and its output goes elsewhere: the file has the shutdown of the process before, and the
    quarters of an hour in which zones differ make it seem new."""
    line = "INFO [KafkaServer id=1] shut down completed (kafka.server.KafkaServer)"
    said = BEFORE.ended_at - timedelta(minutes=minutes, seconds=30)
    old = f"[{said:%Y-%m-%d %H:%M:%S},000] {line}"
    for changed_at in (None, said, BEFORE.ended_at - timedelta(seconds=7)):
        assert not any("kill -9" in entry.fix for entry in of_who_is_to_end(old, changed_at=changed_at)), changed_at
    later = f"[{HALF_A_MINUTE_AGO:%Y-%m-%d %H:%M:%S},000] WARN it ends (x)"
    for last in (later, "waiting for the secrets agent"):
        assert not any("kill -9" in entry.fix for entry in of_who_is_to_end(old, last))


def of_who_is_to_end(*lines: str, changed_at: datetime | None = HALF_A_MINUTE_AGO) -> list[Blocker]:
    """What is told of broker-1 a minute after a step has begun that is to stop it."""
    process = BEFORE.node(1).process
    assert process is not None
    hints = Hints(logs={1: lines}, outputs={"broker-1": NodeOutput(lines, changed_at)})
    since = BEFORE.ended_at - timedelta(minutes=1)
    return found(rolling(BEFORE, 1, process.identity), hints=hints, in_hand=frozenset({"broker-1"}), step_since=since)


def test_what_the_step_has_started_since_did_not_say_it() -> None:
    """A start script that waits stands below the last words of the process before it."""
    lines = (f"{SAID} INFO [KafkaServer id=1] shut down completed (kafka.server.KafkaServer)",)
    hints = Hints(logs={1: lines}, outputs={"broker-1": NodeOutput(lines, BEFORE.ended_at - timedelta(seconds=30))})
    assert found(rolling(BEFORE, 1, "another"), hints=hints, in_hand=frozenset({"broker-1"})) == []


@pytest.mark.parametrize("zone", [timedelta(0), timedelta(hours=5, minutes=45), timedelta(hours=-8)])
def test_a_process_that_is_just_ending_is_no_entry(zone: timedelta) -> None:
    def entries(age: timedelta) -> list[Blocker]:
        line = f"[{BEFORE.ended_at - age + zone:%Y-%m-%d %H:%M:%S},000] INFO [KafkaServer id=1] shut down completed"
        return of_who_is_to_end(line, changed_at=BEFORE.ended_at - age)

    assert not any("kill -9" in entry.fix for entry in entries(timedelta(seconds=2)))
    (entry,) = entries(timedelta(seconds=9))
    assert "kill -9" in entry.fix


def rolling(seen: Observation, node_id: int, before: str | None) -> Observation:
    """As while a step of ours takes it through a restart: its mark names the process that ran before."""
    view = seen.node(node_id)
    assert view.disk is not None
    assert view.disk.file is not None
    marked = mark_of(view.disk.file.sha256, is_proven=False).model_copy(update={"before_identity": before})
    return with_part(
        seen, node_id, disk=view.disk.model_copy(update={"file": view.disk.file.model_copy(update={"mark": marked})})
    )


@pytest.mark.parametrize(
    ("last", "age", "is_told"),
    [("2@2", 10, True), ("2@unknown", 10, True), ("1@unknown", 10, False), ("2@2", 90, False), ("2@2", None, False)],
)
def test_a_node_in_hand_is_told_of_once_the_process_has_ended_that_the_step_has_started(
    *, last: str, age: int | None, is_told: bool
) -> None:
    """And not only once the step has given it up; of one that it has not started it is the step's to do so."""
    begun = None if age is None else BEFORE.ended_at - timedelta(seconds=age)
    process = Process(is_running=False, identity=None, last_identity=last, started_at=begun)
    seen = with_part(rolling(BEFORE, 1, "1@1"), 1, process=process, metrics=None)
    entries = found(seen, in_hand=frozenset({"broker-1"}), step_since=BEFORE.ended_at - timedelta(minutes=1))
    assert [(entry.code, entry.object) for entry in entries] == ([("node-down", "broker-1")] if is_told else [])


@pytest.mark.parametrize(("partitions", "is_small"), [(68, True), (200_000, False), (None, False)])
def test_a_heap_that_the_metadata_do_not_fill_is_not_to_be_raised_first(*, partitions: int | None, is_small: bool) -> None:
    """It dies of the next probe as well."""
    seen = dead(
        BEFORE,
        2,
        "[2026-11-26 05:08:05,000] INFO [KafkaServer id=2] started (k)",
        "java.lang.OutOfMemoryError: Java heap space",
    )
    assert seen.kafka is not None
    kafka = seen.kafka.model_copy(update={"partition_count": partitions}) if partitions is not None else None
    entries = {entry.object: entry for entry in found(seen.model_copy(update={"kafka": kafka}))}
    fix = entries["broker-2"].fix
    assert fix.startswith("The metadata of 68 partitions do not fill a heap" if is_small else "Raise -Xmx")
    assert ("socket.request.max.bytes" in fix, "Raise -Xmx" in fix) == (is_small, True)


def test_what_a_machine_says_is_told_with_what_is_told_of_the_node() -> None:
    seen = silent(BEFORE, 1)
    signs = {"broker-1": signs_of(stuck_threads=4), "broker-2": signs_of()}
    (entry,) = found(seen, hints=Hints(signs=signs))
    assert (entry.code, entry.object) == ("part-unknown", "broker-1")
    assert "gives no answer" in entry.observed
    assert "4 of its threads wait in the kernel" in entry.observed
    assert entry.fix.startswith("Look at the disk of its data")


@pytest.mark.parametrize(("most", "unread", "is_told"), [("20971520", 4, True), ("-1", 4, False), ("20971520", 1, False)])
def test_a_broker_whose_memory_for_requests_is_used_up(most: str, unread: int, *, is_told: bool) -> None:
    """KIP-72: whoever has begun to send a large request, and stands still, keeps all others from being read."""
    seen = with_file(HYBRID, 2, f"broker.id=2\nqueued.max.request.bytes={most}\n", None)
    entries = found(seen, hints=Hints(signs={"broker-2": signs_of(unread=unread, on_cpu=0.1)}))
    assert any("queued.max.request.bytes=20971520" in one.observed for one in entries) is is_told
    assert not is_told or not any("has not read for a second" in one.observed for one in entries), "once is enough"
    assert all(one.object == "broker-2" for one in entries if "queued" in one.observed)
    as_a_whole = signs_of(unread=unread, on_cpu=0.1, unaccepted=((9092, 8, ""),))
    assert not any("queued.max" in one.observed for one in found(seen, hints=Hints(signs={"broker-2": as_a_whole})))


def test_where_a_node_prints_is_told_where_it_is_in_trouble() -> None:
    by_hand = {"broker-1": NodeOutput((), elsewhere="/opt/kafka/logs/kafkaServer.out")}
    (entry,) = found(silent(BEFORE, 1), hints=Hints(outputs=by_hand))
    assert "its process prints to /opt/kafka/logs/kafkaServer.out, and not to /log/1" in entry.observed
    assert found(BEFORE, hints=Hints(outputs=by_hand)) == []


@pytest.mark.parametrize("line", ["[2026-11-20 02:59:30,000] INFO Rolled new log segment (kafka.log.UnifiedLog)", ""])
def test_a_node_whose_last_words_had_no_room_is_not_told_to_be_killed_or_to_say_nothing(line: str) -> None:
    lines = (line,)
    hints = Hints(logs={1: lines}, outputs={"broker-1": NodeOutput(lines, full=("/log/1", "/run/1.pid"))})
    (entry,) = found(dead(BEFORE, 1), hints=hints)
    assert "it was killed" not in entry.observed
    assert "It printed nothing" not in entry.observed
    assert "no room left for /log/1, /run/1.pid" in entry.observed
    assert entry.fix.startswith("Make room")


@pytest.mark.parametrize(("full", "is_below"), [((), True), (("/data/1",), False)])
def test_where_a_file_system_that_refused_has_room_what_lies_below_it_has_none(full: tuple[str, ...], is_below: bool) -> None:
    """As on a thin pool, or in a datastore: `df` shows room, and a larger volume makes it worse."""
    lines = ("[2026-11-20 02:59:30,000] ERROR Error while flushing log: java.io.IOException: No space left on device (x.Y)",)
    hints = Hints(logs={1: lines}, outputs={"broker-1": NodeOutput(lines, full=full)})
    (entry,) = found(dead(BEFORE, 1), hints=hints)
    assert ("its file system has room now" in entry.observed) is is_below
    assert ("thin pool" in entry.fix) is is_below
    assert ("grow the volume" in entry.fix) is not is_below
    assert "Then start it" in entry.fix


def test_a_cause_that_was_written_before_there_was_no_room_is_told() -> None:
    lines = (
        "[2026-11-20 02:59:30,000] ERROR Shutdown broker because all log dirs in /data/1 have failed (kafka.log.LogManager)",
    )
    hints = Hints(logs={1: lines}, outputs={"broker-1": NodeOutput(lines, full=("/log/1",))})
    (entry,) = found(dead(BEFORE, 1), hints=hints)
    assert "all log dirs" in entry.observed


@pytest.mark.parametrize(
    ("below", "printed", "told"),
    [
        ((), None, "printed, 90 s ago: [2026-11-20 02:58:30,000]"),
        ((), timedelta(seconds=30), "printed, 90 s ago: [2026-11-20 02:58:30,000]"),
        (("Waiting for the vault",), timedelta(seconds=30), "printed, 30 s ago: Waiting"),
        (("Waiting for the vault",), timedelta(seconds=3), "printed: Waiting"),
        (("Waiting for the vault",), None, "printed: Waiting"),
    ],
)
def test_of_a_line_without_a_time_the_one_above_tells_no_age(
    below: tuple[str, ...], printed: timedelta | None, told: str
) -> None:
    seen = with_metrics(DUAL, 2, broker_state=2)
    ended = seen.ended_at
    lines = (f"[{ended - timedelta(seconds=90):%Y-%m-%d %H:%M:%S},000] INFO starting (kafka.server.KafkaServer)", *below)
    output = NodeOutput(lines, changed_at=ended - printed if printed is not None else None)
    (entry,) = found(seen, hints=Hints(logs={2: lines}, outputs={"broker-2": output}))
    assert f"The last that it {told}" in entry.observed


def test_who_is_traced_is_not_told_to_go_on_by_a_signal() -> None:
    (entry,) = found(silent(DUAL, 2, is_paused=True), hints=Hints(signs={"broker-2": signs_of(tracer="21247 (gdb)")}))
    assert "process 21247 (gdb) traces it" in entry.observed
    assert "kill 21247" in entry.fix
    assert "kill -CONT" not in entry.fix


def test_of_who_is_stopped_again_and_again_the_program_is_told_that_does_it() -> None:
    """To let it go on helps for a moment only."""
    signs = signs_of(stops=(0.97, 12, ("4711 (cpulimit)",)))
    (entry,) = found(silent(DUAL, 2, is_paused=True), hints=Hints(signs={"broker-2": signs}))
    assert entry.object == "broker-2"
    assert entry.fix.startswith("End that program, and what starts it anew (a unit, cron): kill 4711. ")
    assert "Let it go on" not in entry.fix


def test_servers_that_ask_everybody_for_a_login_are_told_as_such() -> None:
    refused = Unanswered(what="zookeeper", why="ZooKeeper 127.0.0.1:1: SessionClosedRequireSaslError")
    seen = without(BEFORE, "zookeeper").model_copy(update={"unanswered": (refused,)})
    entries = found(seen, hints=Hints(servers=dict.fromkeys(SERVERS, Serving.YES)))
    (entry,) = [entry for entry in entries if entry.object == "ZooKeeper"]
    assert entry.fix.startswith("The servers ask every client for a login")


def test_what_our_own_machine_says_is_an_entry() -> None:
    seen = silent(BEFORE, 1)
    entries = found(seen, hints=Hints(own_signs=signs_of(tracked=(100, 100))))
    assert keys(entries) == [("part-unknown", "broker-1"), ("machine", "keeperless-activities")]
    assert "nf_conntrack" in entries[1].observed


def metrics_address(node_id: int) -> str:
    return SPEC.node(node_id).metrics.url.split("/")[2]


@pytest.mark.parametrize(
    ("theirs", "is_told"), [(signs_of(), True), (signs_of(unaccepted=((9092, 17, ""),)), False), (signs_of(unread=1), True)]
)
def test_who_hangs_and_acknowledges_nothing_is_no_trouble_of_our_own_machine(theirs: VitalSigns, *, is_told: bool) -> None:
    """A JVM that a debugger holds accepts nobody: its queue is full, and its kernel lets who knocks wait."""
    own = signs_of(unheard=(metrics_address(2),))
    entries = found(silent(DUAL, 2), hints=Hints(signs={"broker-2": theirs}, own_signs=own))
    assert keys(entries) == [("part-unknown", "broker-2")]
    assert (f"what keeperless-activities sends to it at {metrics_address(2)}" in entries[0].observed) is is_told


def test_what_nobody_in_trouble_owns_is_unheard_of_by_our_own_machine() -> None:
    own = signs_of(unheard=(metrics_address(2), "10.9.9.9:5432"))
    entries = found(silent(DUAL, 2), hints=Hints(own_signs=own))
    assert keys(entries) == [("part-unknown", "broker-2"), ("machine", "keeperless-activities")]
    assert "what it sends to 10.9.9.9:5432 is not acknowledged" in entries[1].observed
    (entry,) = found(DUAL, hints=Hints(own_signs=signs_of(unheard=(metrics_address(2),))))
    assert entry.object == "keeperless-activities"


@pytest.mark.parametrize("written", ["SASL_SSL://10.0.0.2:9093", "PLAINTEXT://[::1:9092, CLIENT_TLS://10.0.0.2:9093"])
def test_addresses_are_known_of_listeners_however_they_are_called_and_whatever_else_stands_there(written: str) -> None:
    seen = with_file(silent(DUAL, 2), 2, f"broker.id=2\nadvertised.listeners={written}\n")
    entries = {entry.code: entry for entry in found(seen, hints=Hints(own_signs=signs_of(unheard=("10.0.0.2:9093",))))}
    assert set(entries) == {"part-unknown", "file-changed"}
    assert "what keeperless-activities sends to it at 10.0.0.2:9093" in entries["part-unknown"].observed


def test_of_nodes_with_names_the_numbers_tell_whose_an_address_is() -> None:
    """All have one port: it says nothing."""
    nodes = [
        node.model_copy(update={"metrics": node.metrics.model_copy(update={"url": f"http://kafka-{node.id}:7071/metrics"})})
        for node in SPEC.brokers
    ]
    named = SPEC.model_copy(update={"brokers": tuple(nodes)})
    numbers = {f"kafka-{number}": (f"10.0.0.{number}",) for number in (1, 2, 3)}
    assessment = assess(silent(DUAL, 2), named, POLICY, Ruling(), "")
    for unheard, objects in (("10.0.0.2:7071", ["broker-2"]), ("10.0.0.3:7071", ["broker-2", "keeperless-activities"])):
        hints = Hints(own_signs=signs_of(unheard=(unheard,)), numbers=numbers)
        looked = replace(looked_at(silent(DUAL, 2), hints=hints), spec=named)
        entries, _ = blockers_of(looked, assessment.decision, assessment.stands)
        assert [entry.object for entry in entries] == objects
        assert "is not acknowledged" in entries[-1].observed


@pytest.mark.parametrize("node_id", [2, STANDBY])
def test_a_directory_that_a_mount_covers_is_to_be_uncovered_and_not_formatted(node_id: int) -> None:
    path, view = "/data/x", DUAL.node(node_id)
    assert view.disk is not None
    empty = LogDir(path=path, state=StorageState.EMPTY, cluster_id=None, node_id=None)
    seen = with_part(DUAL, node_id, disk=view.disk.model_copy(update={"log_dirs": (empty,)}))
    name = SPEC.node_name(node_id)
    (entry,) = (one for one in found(seen) if one.code == "PF03")
    assert "umount" not in entry.fix
    covered = {name: signs_of(covered=((path, "/dev/sdb1 (ext4) at /data/x"),))}
    (entry,) = (one for one in found(seen, hints=Hints(signs=covered)) if one.code == "PF03")
    assert "/dev/sdb1 (ext4) at /data/x" in entry.observed
    assert entry.fix.startswith("Unmount that (`umount /data/x`")
    assert "kafka-storage.sh" not in entry.fix


def test_where_min_insync_replicas_was_raised_for_all_brokers_no_topic_is_to_be_changed() -> None:
    """By no topic's config, and in no file."""
    seen = with_kafka(DUAL, needs={1: ("customers-0",), 2: (), 3: ()})
    line = "min.insync.replicas in /config/brokers/<default> is new: 3"
    changes = {ZOOKEEPER: MachineChanges(since=datetime(2026, 11, 26, tzinfo=UTC), where="there", changes=(line,))}
    (entry,) = (one for one in found(seen, hints=Hints(changes=changes)) if one.code == WaitReason.PARTITIONS_WOULD_STOP)
    assert line in entry.observed
    assert "--entity-default" in entry.fix
    (entry,) = found(seen)
    assert entry.fix == WAIT_MEANS[WaitReason.PARTITIONS_WOULD_STOP]


def test_a_queue_that_is_full_is_no_entry_of_a_node_that_is_well() -> None:
    """Whoever sends much fills it; where something else is wrong with the node it says why."""
    full = {"broker-2": signs_of(unsent=(("127.0.0.1:4711", 70_000, None),))}
    assert found(BEFORE, hints=Hints(signs=full)) == []
    (entry,) = found(silent(BEFORE, 2), hints=Hints(signs=full))
    assert "waits in its machine's queues" in entry.observed


@pytest.mark.parametrize("is_silent", [True, False])
def test_who_else_asks_a_metrics_endpoint_is_told_where_it_does_not_answer(*, is_silent: bool) -> None:
    part = Unanswered(what="metrics of broker-2" if is_silent else "files of broker-2", why="no answer in 3 s")
    seen = silent(BEFORE, 2).model_copy(update={"unanswered": (part,)})
    (entry,) = found(seen, hints=Hints(signs={"broker-2": signs_of(askers=(("10.1.2.3", 7),))}))
    assert ("10.1.2.3 (7)" in entry.observed) is is_silent


def test_what_keeps_a_server_of_zookeeper_is_told_with_it() -> None:
    seen = without(BEFORE, "zookeeper")
    of_servers = dict.fromkeys(SERVERS, Serving.NO)
    signs = {f"zookeeper {SERVERS[0]}": signs_of(unaccepted=((3888, 51, "10.9.9.9"),))}
    entries = {entry.object: entry for entry in found(seen, hints=Hints(servers=of_servers, signs=signs))}
    entry = entries[f"zookeeper {SERVERS[0]}"]
    assert "51 connections wait at its port 3888" in entry.observed
    assert entry.fix.startswith("Find who makes them")
    assert "connections wait" not in entries[f"zookeeper {SERVERS[1]}"].observed


def test_a_machine_that_nothing_else_is_told_of_has_an_entry_of_its_own() -> None:
    seen = BEFORE
    signs = {"broker-2": signs_of(unheard=(SERVERS[0], "10.9.9.9:1"))}
    (entry,) = found(seen, hints=Hints(signs=signs))
    assert (entry.code, entry.object) == ("machine", "broker-2")
    assert entry.docs.endswith("blockers.md#machine")
    assert "not acknowledged" in entry.observed


@pytest.mark.parametrize(("serving", "is_cured"), [(Serving.NO, True), (Serving.SILENT, False), (Serving.STUCK, False)])
def test_a_member_that_runs_and_does_not_serve_is_told_with_what_its_log_complains_of(serving: Serving, is_cured: bool) -> None:
    log = (
        "[2026-11-23 08:26:36,822] WARN Exception when following the leader (org.apache.zookeeper.server.quorum.Follower)",
        "java.net.SocketTimeoutException: Read timed out",
        "\tat java.base/java.net.SocketInputStream.socketRead0(Native Method)",
    )
    hints = Hints(servers={**dict.fromkeys(SERVERS, Serving.YES), SERVERS[0]: serving}, server_logs={SERVERS[0]: log})
    (entry,) = found(DUAL, hints=hints)
    assert "SocketTimeoutException: Read timed out" in entry.observed
    assert ("initLimit" in entry.fix) is is_cured


EMPTY = {"cluster_id": None, "controller_epoch": None, "controller": None, "migration": None, "broker_ids": ()}
"""Of an ensemble that came back without its data."""
KEPT = ("/brokers/ids", "/brokers/topics", "/brokers/seqid", "/config/changes", "/config/topics", "/admin/delete_topics")


@pytest.mark.parametrize("seen", [BEFORE, HYBRID, DUAL, SOAK], ids=["before", "hybrid", "dual write", "soak"])
def test_an_ensemble_that_came_back_empty_is_one_entry_that_keeps_everybody_from_making_it_anew(seen: Observation) -> None:
    empty = with_zookeeper(seen, **EMPTY, assigned_broker_ids=(), topics_without_id=())
    cut = with_metrics(empty, 2, zookeeper_session="CONNECTING")
    hints = Hints(missing=KEPT, forgotten=("orders",), servers=dict.fromkeys(SERVERS, Serving.YES))
    entries = [e for e in found(cut, hints=hints) if e.code in {"GF02", "GF11", "PF03", "PF11", "dual-write-not-current"}]
    assert keys(entries) == [("GF11", "ZooKeeper")]
    assert entries[0].fix.startswith("Create nothing there, restart no broker")
    assert "highest zxid" in entries[0].fix


@pytest.mark.parametrize(
    ("seen", "forgotten"),
    [
        (with_zookeeper(HYBRID, cluster_id="another", broker_ids=(7, 8), assigned_broker_ids=(7, 8)), ()),
        (with_zookeeper(HYBRID, cluster_id="another"), ("orders",)),
        (with_zookeeper(unclaimed(DUAL), cluster_id="another"), ()),
    ],
    ids=["its brokers", "its topics", "its controller"],
)
def test_where_another_ensemble_answers_nobody_is_told_to_write_there(seen: Observation, forgotten: tuple[str, ...]) -> None:
    entries = found(seen, hints=Hints(forgotten=forgotten))
    (entry,) = [entry for entry in entries if entry.code in {"GF02", "GF11", "PF03", "PF11", "dual-write-not-current"}]
    assert (entry.object, "Write nothing there" in entry.fix, "zookeeper.connect" in entry.fix) == ("ZooKeeper", True, True)


def test_an_identifier_that_is_missing_is_still_told_by_itself() -> None:
    entries = found(with_zookeeper(HYBRID, cluster_id=None, controller_epoch=None))
    assert keys(entries)[:2] == [("PF03", "/cluster/id"), ("PF11", "/controller_epoch")]


@pytest.mark.parametrize(("is_lost", "is_warned"), [(True, True), (False, False)])
def test_a_member_without_data_is_not_started_while_the_others_have_no_quorum(is_lost: bool, is_warned: bool) -> None:
    states = dict(zip(SERVERS, (Serving.REFUSED, Serving.REFUSED if is_lost else Serving.YES, Serving.YES), strict=True))
    files = {SERVERS[0]: MemberFiles(myid="1", has_snapshot=False), SERVERS[1]: MemberFiles(myid="2")}
    seen = without(DUAL, "zookeeper") if is_lost else DUAL
    entries = {entry.object: entry for entry in found(seen, hints=Hints(servers=states, server_files=files))}
    bare = entries[f"zookeeper {SERVERS[0]}"]
    assert ("no snapshot" in bare.observed, bare.fix.startswith("Do not start it as it is")) == (is_warned, is_warned)
    if is_lost:
        assert entries[f"zookeeper {SERVERS[1]}"].fix.startswith("Start it")


def test_two_members_with_one_myid_are_told_and_nobody_is_told_to_end_the_one_that_is_well() -> None:
    states = dict(zip(SERVERS, (Serving.YES, Serving.REFUSED, Serving.YES), strict=True))
    files = {SERVERS[0]: MemberFiles(myid="1"), SERVERS[1]: MemberFiles(myid="1"), SERVERS[2]: MemberFiles(myid="3")}
    log = (
        "[2026-11-23 08:26:36,822] ERROR Exception while listening to address zk1/10.0.0.1:3888 (…QuorumCnxManager)",
        "java.net.BindException: Address already in use",
    )
    hints = Hints(servers=states, server_files=files, server_logs={SERVERS[1]: log})
    (entry,) = found(DUAL, hints=hints)
    assert f"Its dataDir/myid says 1, and so does that of {SERVERS[0]}" in entry.observed
    assert ("end it" in entry.fix, "myid of all members" in entry.fix) == (False, True)


def test_a_member_that_listens_at_another_port_is_not_to_be_started_again() -> None:
    name = f"zookeeper {SERVERS[0]}"
    states = {**dict.fromkeys(SERVERS, Serving.YES), SERVERS[0]: Serving.REFUSED}
    (entry,) = found(DUAL, hints=Hints(servers=states, signs={name: signs_of(elsewhere=(4711, ("0.0.0.0:2182",)))}))
    assert "its process 4711 runs, and listens at 0.0.0.0:2182" in entry.observed
    assert entry.fix.startswith("Do not start another one")
    assert "Start it" not in entry.fix


@pytest.mark.parametrize(
    ("line", "words", "fix"),
    [
        ("WARN Session 0x1 for server zk1/10.0.0.1:2181, Closing socket connection. Packet len 4194312 is out of range!",
         "Packet len 4194312 is out of range", "jute.maxbuffer"),
        ("ERROR SASL authentication with Zookeeper Quorum member failed: javax.security.sasl.SaslException: no mechanism (x)",
         "SASL authentication with Zookeeper Quorum member failed", "Look at the way"),
    ],
)  # fmt: skip
def test_why_a_broker_alone_has_lost_zookeeper_is_told_by_its_log(line: str, words: str, fix: str) -> None:
    seen = with_metrics(DUAL, 2, zookeeper_session="CONNECTING")
    (entry,) = found(seen, hints=Hints(logs={2: (STARTED, f"{SAID} {line}")}))
    assert (words in entry.observed, fix in entry.fix) == (True, True)


@pytest.mark.parametrize(
    ("thrown", "fix"),
    [
        ("java.net.BindException: Cannot assign requested address", "ip_local_port_range"),
        ("java.net.UnknownHostException: zk1: Temporary failure in name resolution", "getent hosts"),
        (
            "EndOfStreamException: Unable to read additional data from server sessionid 0x0, likely server has closed socket",
            "maxClientCnxns",
        ),
    ],
)
def test_why_a_running_broker_gets_no_connection_is_told_by_the_exception_below_its_warning(thrown: str, fix: str) -> None:
    session = (
        f"{SAID} WARN Session 0x0 for server zk1/10.0.0.1:2181, Closing socket connection. (org.apache.zookeeper.ClientCnxn)"
    )
    lines = (STARTED, session, thrown, *FRAMES)
    (entry,) = found(with_metrics(DUAL, 2, zookeeper_session="CONNECTING"), hints=Hints(logs={2: lines}))
    assert (entry.code, entry.object) == ("GF11", "broker-2")
    assert thrown in entry.observed
    assert fix in entry.fix


@pytest.mark.parametrize("is_dead", [True, False])
def test_whom_a_member_that_serves_turns_away_is_told_with_what_that_member_says(is_dead: bool) -> None:
    closed = "EndOfStreamException: Unable to read additional data from server sessionid 0x0, likely server has closed socket"
    session = f"{SAID} WARN Session 0x0 for server zk1/10.0.0.1:2181, Closing socket connection. (x.ClientCnxn)"
    timeout = "kafka.zookeeper.ZooKeeperClientTimeoutException: Timed out waiting for connection while in state: CONNECTING"
    died = (f"{SAID} ERROR Fatal error during KafkaServer startup. (x)", timeout) if is_dead else ()
    full = (
        "[2026-11-20 05:59:30,000] WARN Message:Error accepting new connection: Too many connections from /10.0.0.1 - max is 60"
    )
    seen = dead(DUAL, 2) if is_dead else with_metrics(DUAL, 2, zookeeper_session="CONNECTING")
    logs = {2: (STARTED, session, closed, *FRAMES, *died)}
    servers = dict.fromkeys(SERVERS, Serving.YES)
    (entry,) = found(seen, hints=Hints(logs=logs, servers=servers, server_logs={SERVERS[1]: (full,)}))
    assert entry.object == "broker-2"
    assert f"zookeeper {SERVERS[1]}, which serves, says: Too many connections from /10.0.0.1 - max is 6" in entry.observed
    assert entry.fix.startswith("Raise maxClientCnxns")
    (entry,) = found(seen, hints=Hints(logs=logs, servers=servers))
    assert "which serves" not in entry.observed


def test_why_a_controller_does_not_follow_is_told_by_the_exception_below_its_warning() -> None:
    behind = with_metrics(DUAL, STANDBY, raft_log_end=LOG_END - 400)
    warned = f"{SAID} WARN [RaftManager id=3001] Error connecting to node kafka-c2:9093 (id: 3002 rack: null) (x.NetworkClient)"
    thrown = "java.net.UnknownHostException: kafka-c2: Temporary failure in name resolution"
    (entry,) = found(behind, hints=Hints(logs={STANDBY: (STARTED, warned, thrown, *FRAMES)}))
    assert thrown in entry.observed
    assert "getent hosts" in entry.fix


def test_a_broker_whose_partitions_files_somebody_has_deleted_is_told_so() -> None:
    root = next(found.path for found in DUAL.node(2).disk.log_dirs)  # type: ignore[union-attr]
    failed = (
        f"{SAID} ERROR Error while deleting segments for orders-0 (x)",
        f"java.nio.file.NoSuchFileException: {root}/o-0/0.log",
    )
    (entry,) = found(dead(DUAL, 2, *failed))
    assert "tmpreaper" in entry.fix


@pytest.mark.parametrize(
    ("answers", "are_well"),
    [
        ((Serving.NO, Serving.YES, Serving.YES), True),
        ((Serving.LEADS, Serving.YES, Serving.YES), True),
        ((Serving.NO, Serving.LEADS, Serving.YES), False),
        ((Serving.NO, Serving.NO, Serving.YES), False),
        ((Serving.NO, Serving.UNKNOWN, Serving.YES), False),
        ((Serving.NO,), False),
    ],
)
def test_a_leader_that_is_told_to_serve_no_client_is_whom_all_others_follow(
    answers: tuple[Serving, ...], are_well: bool
) -> None:
    given = dict(zip(SERVERS, answers, strict=False))
    assert (set(settled(given).values()) == {Serving.YES}) is are_well
    assert Serving.LEADS not in settled(given).values()


def test_a_member_that_serves_what_is_no_longer_on_its_disk_is_told_before_it_restarts() -> None:
    files = {SERVERS[0]: MemberFiles(myid="1", has_snapshot=False), SERVERS[1]: MemberFiles(myid="2")}
    (entry,) = found(DUAL, hints=Hints(servers=dict.fromkeys(SERVERS, Serving.YES), server_files=files))
    assert (entry.code, entry.object) == ("GF11", f"zookeeper {SERVERS[0]}")
    assert entry.fix.startswith("Stop no member yet")


def trees_of(*znodes: int | None, leader: int) -> dict[str, MemberTree]:
    """Of members that are equally far; `None`: it does not tell."""
    given = enumerate(zip(SERVERS, znodes, strict=True))
    return {address: MemberTree(0x10000002F, n, index == leader) for index, (address, n) in given if n is not None}


@pytest.mark.parametrize(
    ("trees", "named", "is_to_be_mended"),
    [
        (trees_of(31, 31, 28, leader=0), SERVERS[2], True),
        (trees_of(31, 28, 28, leader=0), SERVERS[0], False),
        (trees_of(31, None, 28, leader=0), f"{SERVERS[0]}, {SERVERS[2]}", False),
        (trees_of(31, 30, 28, leader=0), ", ".join(SERVERS), False),
        (trees_of(31, 31, 28, leader=-1), SERVERS[2], False),
    ],
    ids=["outvoted", "the leader", "no majority", "none alike", "leader unseen"],
)
def test_a_member_with_another_tree_is_mended_only_where_it_is_outvoted_and_follows(
    trees: dict[str, MemberTree], named: str, is_to_be_mended: bool
) -> None:
    (entry,) = found(DUAL, hints=Hints(servers=dict.fromkeys(SERVERS, Serving.YES), trees=trees))
    assert (entry.code, entry.object) == ("GF11", f"zookeeper {named}")
    assert "zxid 0x10000002f" in entry.observed
    assert all(f"has {tree.znodes}" in entry.observed for tree in trees.values())
    assert ("Move nothing aside yet" not in entry.fix) is is_to_be_mended
    assert ("takes a snapshot from the leader" in entry.fix) is is_to_be_mended


DIGEST = "[2026-11-24 04:34:23,896] WARN Message:Digests are not matching. Value is Zxid. Value:8589934593 (x.DataTree)"


@pytest.mark.parametrize("serving", [Serving.YES, Serving.REFUSED])
def test_a_member_that_differs_from_its_leader_by_its_log_is_not_cleaned_before_it_is_known_who_is_right(
    serving: Serving,
) -> None:
    servers = {**dict.fromkeys(SERVERS, Serving.YES), SERVERS[1]: serving}
    (entry,) = found(DUAL, hints=Hints(servers=servers, server_logs={SERVERS[1]: (DIGEST,)}))
    assert entry.object == f"zookeeper {SERVERS[1]}"
    assert ("Value:8589934593" in entry.observed) is (serving is Serving.YES)
    assert ("Move nothing aside yet" in entry.fix) is (serving is Serving.YES)
    assert entry.fix.count("Move nothing aside yet") < 2


def test_what_a_log_says_of_trees_is_told_with_their_numbers() -> None:
    servers = dict.fromkeys(SERVERS, Serving.YES)
    hints = Hints(servers=servers, server_logs={SERVERS[2]: (DIGEST,)}, trees=trees_of(31, 31, 28, leader=0))
    (entry,) = found(DUAL, hints=hints)
    assert "has 28 znodes" in entry.observed
    assert f"The log of {SERVERS[2]} says: Digests are not matching" in entry.observed


def test_trees_that_are_alike_are_no_entry() -> None:
    servers = dict.fromkeys(SERVERS, Serving.YES)
    for trees in ({}, trees_of(31, 31, 31, leader=0), trees_of(31, None, None, leader=0)):
        assert found(DUAL, hints=Hints(servers=servers, trees=trees)) == []


def test_a_broker_that_has_died_of_an_empty_ensemble_is_not_to_be_started_on_it() -> None:
    made_anew = with_zookeeper(HYBRID, **EMPTY | {"cluster_id": "another"}, assigned_broker_ids=(), topics_without_id=())
    line = "kafka.common.InconsistentClusterIdException: The Cluster ID x doesn't match stored clusterId Some(y) in meta"
    entries = {entry.object: entry for entry in found(dead(made_anew, 2, "[x] ERROR Exiting Kafka", line))}
    assert "Its data is gone" in entries["ZooKeeper"].observed
    assert entries["broker-2"].fix.startswith("Start it only once ZooKeeper has this cluster's data again")
    assert "/cluster/id" not in entries


def test_who_asks_zookeeper_most_is_told_where_it_does_not_keep_up() -> None:
    busiest = ("10.9.9.9:4000 (5400 requests a second)",)
    states = {**dict.fromkeys(SERVERS, Serving.YES), SERVERS[0]: Serving.BUSY}
    (entry,) = found(DUAL, hints=Hints(servers=states, busiest=busiest))
    assert "10.9.9.9:4000 (5400 requests a second)" in entry.observed
    assert "10.9.9.9:4000 (5400 requests a second)" in behind(busiest=busiest).observed


FAILED = (
    f"{SAID} INFO [KRaftMigrationDriver id={LEADER}] Encountered ZooKeeper error during event MetadataChangeEvent{{}}. Will "
    "retry.",
    "org.apache.zookeeper.KeeperException$NoNodeException: KeeperErrorCode = NoNode for /config/users/x",
)
BEHIND = with_metrics(with_zookeeper(DUAL, migration=STALE_COPY.model_copy(update={"offset": 1})), LEADER, write_behind_lag=9)


@pytest.mark.parametrize("seen", [HYBRID, BEHIND])
def test_what_zookeeper_has_answered_the_driver_is_told_though_it_says_so_in_passing(seen: Observation) -> None:
    (entry,) = [entry for entry in found(seen, hints=Hints(logs={LEADER: FAILED})) if "says" in entry.observed]
    assert "NoNode for /config/users/x" in entry.observed
    assert "NoNode" in entry.fix


def test_a_change_that_was_lost_is_told_although_every_gauge_looks_well() -> None:
    (entry,) = found(DUAL, hints=Hints(logs={LEADER: FAILED}))
    assert entry.object == f"controller-{LEADER}"
    assert "ZooKeeper lacks that change" in entry.observed
    claiming = (FAILED[0].replace("MetadataChangeEvent", "BecomeZkControllerEvent"), FAILED[1])
    assert found(DUAL, hints=Hints(logs={LEADER: claiming})) == []


BATCH = FAILED[0].replace("{}", "{provenance=MetadataProvenance(lastContainedOffset=445, lastContainedEpoch=2)}")
OUT_OF_SYNC = (PartitionFault(partition="orders-3", missing=(2,), leader=1),)


def test_of_a_batch_that_failed_it_is_told_that_kafka_names_no_znode_and_how_to_find_it() -> None:
    (entry,) = found(DUAL, hints=Hints(logs={LEADER: (BATCH,)}))
    assert "MetadataChangeEvent (up to offset 445 of the quorum's log)" in entry.observed
    assert "Kafka leaves that out" in entry.observed
    assert "brokers in migration mode were not told of it" in entry.observed
    assert "kafka-dump-log.sh" in entry.fix
    (entry,) = found(SOAK, hints=Hints(logs={LEADER: FAILED}))
    assert "migration mode" not in entry.observed
    assert "kafka-dump-log.sh" not in entry.fix


def test_a_write_that_failed_and_members_of_different_trees_are_told_of_each_other() -> None:
    hints = Hints(logs={LEADER: FAILED}, servers=dict.fromkeys(SERVERS, Serving.YES), trees=trees_of(31, 31, 28, leader=0))
    entries = {entry.code: entry for entry in found(DUAL, hints=hints)}
    assert entries["dual-write-not-current"].fix.startswith("First mend the member that has another tree, as the entry GF11")
    assert entries["GF11"].fix.endswith(f"controller-{LEADER}: ZooKeeper has refused what it wrote (dual-write-not-current).")


UNREACHED = next(f"{c.host}:{c.port}" for c in SPEC.controllers if c.id == STANDBY)
STRAY = Suspect(what="CLIENT_METRICS config interval.ms of slow", why="a new leader cannot compare it")
NOT_BEFORE = "restart the active controller not before this is so"


@pytest.mark.parametrize(
    ("changed", "hints", "first"),
    [
        (lambda seen: seen, {"shut": frozenset({UNREACHED})}, "controller-3001 runs, follows and accepts connections"),
        (lambda seen: with_metrics(seen, STANDBY, raft_log_end=LOG_END - 400), {}, "controller-3001 runs, follows"),
        (lambda seen: with_part(seen, STANDBY, process=stopped("x"), metrics=None), {}, "controller-3001 runs, follows"),
        (lambda seen: seen, {"strays": (STRAY,)}, f"{STRAY.what} is mended"),
        (lambda seen: with_file(seen, STANDBY, "process.roles=controller\n"), {}, "controller-3001 has the flag"),
    ],
)
def test_nobody_is_told_to_restart_the_active_controller_where_that_would_hurt(
    changed: Callable[[Observation], Observation], hints: dict[str, object], first: str
) -> None:
    """What our own failover is held up by."""
    trees = {"servers": dict.fromkeys(SERVERS, Serving.YES), "trees": trees_of(31, 31, 28, leader=0)}
    seen = with_kafka(changed(DUAL), under_replicated=OUT_OF_SYNC)
    told = [entry for entry in found(seen, hints=Hints(logs={LEADER: (BATCH,)}, **trees, **hints)) if NOT_BEFORE in entry.fix]
    assert {"dual-write-not-current", "partitions-not-in-sync", "GF11"} == {entry.code for entry in told}
    assert all(first in entry.fix for entry in told)
    well = found(with_kafka(DUAL, under_replicated=OUT_OF_SYNC), hints=Hints(logs={LEADER: (BATCH,)}, **trees))
    assert not [entry for entry in well if NOT_BEFORE in entry.fix]


def test_replicas_that_lag_since_a_change_was_lost_are_no_reason_to_restart_a_broker() -> None:
    seen = with_kafka(DUAL, under_replicated=OUT_OF_SYNC)
    entries = {entry.code: entry for entry in found(seen, hints=Hints(logs={LEADER: (BATCH,)}))}
    assert set(entries) == {"dual-write-not-current", "partitions-not-in-sync"}
    restart = f"Restart the active controller, controller-{LEADER}, and no broker"
    assert entries["partitions-not-in-sync"].fix.startswith(restart)
    (entry,) = [one for one in found(seen) if one.code == "partitions-not-in-sync"]
    assert "Restart the active controller" not in entry.fix
    on_disk = f"{SAID} ERROR [ReplicaManager broker=2] Error processing append: java.io.IOException: Input/output error"
    entries = {entry.code: entry for entry in found(seen, hints=Hints(logs={LEADER: (BATCH,), 2: (on_disk,)}))}
    assert "Input/output error" in entries["partitions-not-in-sync"].observed, "it may have been lost long ago"
    assert entries["partitions-not-in-sync"].fix.startswith(
        f"Where one of the complaints explains it, mend that. Else: {restart}"
    )


def test_a_flood_is_told_beside_a_write_that_has_failed_before() -> None:
    hints = Hints(logs={LEADER: FAILED}, unwritten=Unwritten(("300 config",), (), 50, 1.0))
    (entry,) = found(BEHIND, hints=hints)
    assert "NoNode" in entry.fix
    assert "Somebody changes the cluster's metadata without pause" in entry.fix


def test_a_controller_that_does_not_get_through_to_a_broker_is_whose_fault_it_is() -> None:
    lines = (
        f"{SAID} WARN [RequestSendThread controllerId={LEADER}] Controller {LEADER}'s connection to broker b2:9092 (id: "
        "2 rack: null) was unsuccessful (kafka.controller.RequestSendThread)",
        "org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed: Invalid username or password",
    )
    seen = with_kafka(DUAL, under_replicated=(PartitionFault(partition="orders-3", missing=(2,), leader=1),))
    (entry,) = found(seen, hints=Hints(logs={LEADER: lines}))
    assert entry.object == f"controller-{LEADER}"
    assert "SaslAuthenticationException" in entry.observed
    assert "restart broker" not in entry.fix
    (unlisted,) = found(with_kafka(DUAL, broker_ids=(1, 3)), hints=Hints(logs={LEADER: lines}))
    assert "Invalid username or password" in unlisted.observed


def test_a_controller_without_its_session_keeps_the_copy_waiting() -> None:
    lines = (f"{SAID} WARN Session 0x0 for server zk1/10.0.0.1:2181, Closing socket connection. Attempting reconnect",)
    seen = with_metrics(HYBRID, LEADER, zookeeper_session="CONNECTING")
    (entry,) = found(seen, hints=Hints(logs={LEADER: lines}))
    assert (entry.code, entry.object) == ("GF11", f"controller-{LEADER}")
    assert "Closing socket connection" in entry.observed


def test_an_error_in_applying_metadata_is_told_with_its_words() -> None:
    fault = (
        "Encountered metadata publishing fault: Error updating topic orders with new configuration: secret=hunter2 in "
        "MetadataDelta up to 900 (org.apache.kafka.server.fault.LoggingFaultHandler)"
    )
    lines = (f"{SAID} ERROR {fault}", "java.lang.IllegalArgumentException: the moon is full")
    (entry,) = found(with_metrics(DUAL, 2, metadata_error_count=1), hints=Hints(logs={2: lines}))
    assert "Error updating topic orders with new configuration: java.lang.IllegalArgumentException: the moon" in entry.observed
    assert "hunter2" not in entry.observed


def test_what_a_node_waits_for_does_not_hide_what_it_complains_of() -> None:
    lines = (
        f"{SAID} INFO [BrokerServer id=2] Waiting for the broker to be unfenced (kafka.server.BrokerServer)",
        f"{SAID} WARN Broker 2 sent a heartbeat request but received error NOT_CONTROLLER. (kafka.server.X)",
    )
    (entry,) = found(with_metrics(DUAL, 2, broker_state=2), hints=Hints(logs={2: lines}))
    assert "It waits for broker to be unfenced" in entry.observed
    assert "received error NOT_CONTROLLER" in entry.observed
    assert "unfences it" in entry.fix


def test_a_write_that_was_refused_is_told_until_another_controller_has_written_it() -> None:
    refused = (
        f"{STARTED[:26]} ERROR Encountered zk migration fault: Encountered ZooKeeper authentication in MetadataChangeEvent{{}}"
    )
    later = f"{SAID[:12]} 05:00:00,000] INFO all is well"
    step = f"{SAID[:12]} 04:00:00,000] INFO x transitioning from SYNC_KRAFT_TO_ZK to KRAFT_CONTROLLER_TO_BROKER_COMM state"
    assert keys(found(DUAL, hints=Hints(logs={LEADER: (refused, later)}))) == [
        ("dual-write-not-current", f"controller-{LEADER}")
    ]
    assert found(DUAL, hints=Hints(logs={LEADER: (refused, step, later)})) == []


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_sandbox_that_a_node_has_inherited_is_no_disk_to_be_replaced(*, is_ours: bool) -> None:
    """Where a step of ours has started it, and nobody else since."""
    seen = dead(DUAL, 2, "java.nio.file.FileSystemException: /data/.lock: Read-only file system")
    process = seen.node(2).process
    assert process is not None
    seen = rolling(seen, 2, "another" if is_ours else process.last_identity)
    unit = StartUnit(name="k.service", kill_mode="process", inherits=("ProtectSystem=strict",))
    (entry,) = found(seen, hints=Hints(places={"broker-2": StartPlace(unit=unit, read_only=("/data",))}))
    assert ("in which /data can only be read" in entry.observed) is is_ours
    assert ("replace the disk" in entry.fix) is not is_ours


def test_a_node_that_a_step_has_stopped_and_could_not_start_is_told_as_such() -> None:
    """Its mark is of the step, and the process of which it tells was the last."""
    ended = "[2026-11-20 04:00:00,373] INFO Terminating process due to signal SIGTERM (org.apache.kafka.common.utils.X)"
    seen = dead(DUAL, 2, ended)
    process = seen.node(2).process
    assert process is not None
    why = (("/var/log/kafka.out", "Permission denied"),)
    hints = Hints(places={"broker-2": StartPlace(unit=None, unopened=why)})
    (entry,) = found(rolling(seen, 2, process.last_identity), hints=hints)
    assert "The step of this migration that restarts it has not started it again" in entry.observed
    assert "appends to what it cannot open: /var/log/kafka.out: Permission denied" in entry.observed
    (entry,) = found(rolling(seen, 2, "another"))
    assert "The step of this migration" not in entry.observed
    wrong = (
        f"{SAID} ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)",
        "org.apache.kafka.common.config.ConfigException: Invalid value abc for configuration num.io.threads: Not a number",
    )
    (entry,) = found(dead(DUAL, 2, *wrong), hints=hints)
    assert "chown" in entry.fix
    assert "Correct the named property" in entry.fix, "or it dies again of the same"


def signalled(at: str) -> tuple[str, ...]:
    return (
        f"[2026-11-20 {at},373] INFO Terminating process due to signal SIGTERM (org.apache.kafka.common.utils.X)",
        f"[2026-11-20 {at},900] INFO [KafkaServer id=1] shut down completed (kafka.server.KafkaServer)",
    )


def test_nodes_of_one_machine_that_one_hand_has_ended_are_one_entry() -> None:
    seen = dead(dead(BEFORE, 1, *signalled("03:00:43")), 2, *signalled("03:00:44"))
    (entry,) = found(seen)
    assert keys([entry]) == [("node-down", "broker-1, broker-2")]
    assert "all 2 got a signal at 03:00:43" in entry.observed
    assert entry.fix.startswith("Find what has ended all of them")


def test_nodes_that_have_ended_at_other_times_or_otherwise_are_an_entry_each() -> None:
    each = [("node-down", "broker-1"), ("node-down", "broker-2")]
    for last in (signalled("03:09:43"), ("java.io.IOException: No space left on device",)):
        seen = dead(dead(BEFORE, 1, *signalled("03:00:43")), 2, *last)
        assert keys(found(seen)) == each
    seen = dead(dead(BEFORE, 1, *signalled("03:00:43")), 2, *signalled("03:00:43"), "exec: java: not found")
    assert keys(found(seen)) == each, "where a start has failed below that, what it printed is told"


def test_partitions_without_a_leader_are_told_with_whose_directory_has_failed() -> None:
    lines = (f"{SAID} WARN [ReplicaManager broker=2] Stopping serving replicas in dir /d2 with uuid Some(x) because the log",)
    seen = with_kafka(DUAL, offline=("orders-3", "orders-4"), last_in_sync={"orders-3": (2,), "orders-4": (3,)})
    failed, other = found(seen, hints=Hints(logs={2: lines}))
    assert failed.object == "broker-2"
    assert "orders-3" in failed.observed
    assert "/d2" in failed.observed
    assert "Mend that directory" in failed.fix
    assert other.object == "orders-4"
    assert "in sync last: broker-3" in other.observed
    assert {2, 3} <= set(worth_reading(SPEC, seen, situation_of(seen, SPEC, POLICY)))
