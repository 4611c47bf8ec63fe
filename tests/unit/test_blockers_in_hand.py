"""What is told of nodes that a step of ours works on."""

from datetime import datetime, timedelta

import pytest

from domain.diagnosis.blocker import Blocker
from domain.diagnosis.causes.hints import Hints
from domain.diagnosis.machines.node_output import NodeOutput
from domain.observed.observation import (
    Observation,
    Process,
)
from domain.zk_to_kraft.blockers import blockers_of
from domain.zk_to_kraft.steps import NodeStage
from tests.unit.blocked import BEFORE, DUAL, GAPS, HYBRID, SAID, SPEC, STARTED, dead, found, keys, looked_at, rolling, silent
from tests.unit.conftest import (
    LEADER,
    NOW,
    mark_of,
    signs_of,
    with_file,
    with_kafka,
    with_metrics,
    with_part,
)


def test_a_node_in_our_hands_is_no_blocker() -> None:
    seen = with_kafka(dead(DUAL, 2), under_replicated=GAPS, broker_ids=(1, 3))
    assert list(blockers_of(looked_at(seen, in_hand=frozenset({"broker-2"})))[0]) == []


def test_a_node_in_our_hands_that_stands_still_is_told_for_the_step_does_too() -> None:
    seen = silent(DUAL, 2, is_paused=True)
    (entry,), _ = blockers_of(looked_at(seen, in_hand=frozenset({"broker-2"})))
    assert (entry.object, "kill -CONT 77" in entry.fix) == ("broker-2", True)


@pytest.mark.parametrize(("seconds", "is_told"), [(5, False), (20, False), (40, True)])
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


NOISE = f"{SAID} WARN [BrokerToControllerChannelManager id=2] Connection to node 3000 could not be established (NetworkClient)"


@pytest.mark.parametrize(("age", "longest", "is_told"), [(20, 0, False), (40, 0, True), (40, 60, False), (80, 60, True)])
def test_a_plain_restart_is_no_blocker_for_its_usual_time(age: int, longest: int, is_told: bool) -> None:
    """Whatever its log complains of meanwhile: replicas that catch up, a state that is not yet 3. `longest`: as measured."""
    usual = {"usual_restart": timedelta(seconds=longest)} if longest else {}
    seen, hints = lagging_in_hand(age, NOISE)
    for state in (with_metrics(seen, 2, broker_state=1), seen):
        entries, _ = blockers_of(looked_at(state, in_hand=frozenset({"broker-2"}), hints=hints, **usual))
        assert bool(entries) is is_told
        assert not is_told or any("could not be established" in entry.observed for entry in entries)


def test_a_start_that_has_failed_is_told_at_once() -> None:
    """Its new process has ended, a second after it was started."""
    seen, hints = lagging_in_hand(1, NOISE)
    process = seen.node(2).process
    assert process is not None
    ended = process.model_copy(update={"is_running": False, "identity": None, "last_identity": "4711@9"})
    seen = with_metrics(with_part(seen, 2, process=ended, metrics=None), 1)
    since = seen.ended_at - timedelta(seconds=2)
    entries, _ = blockers_of(looked_at(seen, in_hand=frozenset({"broker-2"}), step_since=since, hints=hints))
    assert ("node-down", "broker-2") in keys(entries)


def test_a_proof_that_nothing_known_explains_is_told_with_what_the_node_complains_of() -> None:
    """Another mode than the one that the step was to bring it to: somebody else has started it, with another file."""
    seen, hints = lagging_in_hand(40, f"{SAID} WARN the moon is in the way (kafka.server.KafkaServer)")
    assert seen.kafka is not None
    seen = with_stage(with_kafka(seen, under_replicated=()), 2, NodeStage.KRAFT)
    (entry,), _ = blockers_of(looked_at(seen, in_hand=frozenset({"broker-2"}), hints=hints))
    assert (entry.code, entry.object) == ("node-not-ready", "broker-2")
    assert entry.observed.startswith("it was restarted and is not proven healthy: broker-2 is hybrid, expected final or kraft")
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
    assert entry.observed.startswith("it was restarted and is not proven healthy")
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
    assert all("has asked it to stop, or is about to, and its process" in entry.observed for entry in entries)
    assert all("still runs, BrokerState 6" in entry.observed for entry in entries)
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
    since = seen.ended_at - timedelta(seconds=40)
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
    assert entry.fix.startswith("First fix what starts it")
    assert words in entry.fix
    assert "Give a broker's controlled shutdown its time" not in entry.fix
    assert found(with_metrics(seen, node_id, broker_state=6), **more) == [], "it ends, within the usual time"
    more["step_since"] = seen.ended_at - timedelta(seconds=40)
    (entry,) = found(with_metrics(seen, node_id, broker_state=6), **more)
    assert "ignores SIGTERM" not in entry.observed, "somebody has sent another signal"


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
    assert entry.observed.startswith("the step that restarts it has asked it to stop")


def test_between_stop_and_start_a_node_is_no_entry() -> None:
    seen = rolling(dead(DUAL, 2), 2, "77@1")
    since = seen.ended_at - timedelta(minutes=1)
    assert found(seen, in_hand=frozenset({"broker-2"}), step_since=since) == []


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
    assert "a restart would begin again" in entry.fix


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
