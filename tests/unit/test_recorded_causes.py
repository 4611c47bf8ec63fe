"""What no look at a cluster finds: holds, gates, refused steps, orders that nobody takes, and who of us is missing."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from domain.contracts import PROGRAM_OF, TaskQueue, workflow_id
from domain.decisions import Acceptance, Finding
from domain.diagnosis import recorded_causes, refused_steps
from domain.diagnosis.blocker import Blocker
from domain.diagnosis.machines.vital_signs import Sign
from domain.diagnosis.pending_tasks import PendingTask, of_clock, of_clock_here, of_standing, of_tasks, of_work
from domain.diagnosis.recorded_causes import (
    in_hand,
    of_commands,
    of_machines,
    of_refused,
    of_restarts,
    of_run,
    of_waiting,
    rolled,
)
from domain.diagnosis.refused_steps import Tries
from domain.of_kind import Wanted
from domain.records import (
    Command,
    CommandKind,
    Event,
    MigrationRecord,
    MigrationState,
    OpenGate,
    Progress,
    Waiting,
)
from domain.waits import WaitReason
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.steps import LAST_RESORT, GateName
from tests.unit.conftest import NOW

AN_HOUR_AGO = NOW - timedelta(hours=1)


def a_migration(state: MigrationState = MigrationState.WAITING, **progress: Any) -> MigrationRecord:
    return MigrationRecord(
        id="m1",
        cluster="orders",
        cluster_id="c",
        kind="zk-to-kraft",
        policy=ZkToKraftPolicy(),
        wanted=Wanted(),
        spec_revision=1,
        requested_by="olga",
        created_at=AN_HOUR_AGO,
        workflow_id=workflow_id("c"),
        progress=Progress(state=state, **progress),
    )


def event(kind: str, minutes_ago: float = 1, **data: Any) -> Event:
    at = NOW - timedelta(minutes=minutes_ago)
    return Event(seq=1, key="k", kind=kind, cluster="orders", migration_id="m1", at=at, data=data, prev_hash="", hash="")


def waiting(reason: str, **more: Any) -> Waiting:
    return Waiting(reason=reason, means="what it means", since=AN_HOUR_AGO, **more)


def told(record: MigrationRecord, explained: frozenset[str] | None = frozenset()) -> list[tuple[str, str]]:
    return [(entry.code, entry.object) for entry in of_waiting(record, explained, (), NOW)]


def test_a_refused_migration_tells_its_findings() -> None:
    finding = Finding(code="PF12", object="broker 9", observed="not live", expected="live", fix="start it")
    accepted = finding.model_copy(update={"code": "PF06", "accepted": Acceptance(by="ann", reason="a test cluster")})
    (entry,) = of_refused(a_migration(MigrationState.REFUSED, findings=(finding, accepted)))
    assert (entry.code, entry.object, entry.fix) == ("PF12", "broker 9", "start it")
    assert entry.docs == "docs/checks.md#pf12"


def test_a_hold_is_told_with_who_and_since_when() -> None:
    record = a_migration(MigrationState.HELD, waiting=waiting(WaitReason.HELD, detail="held by anna: lunch", for_people=True))
    (entry,) = of_waiting(record, frozenset(), (), NOW)
    assert (entry.code, entry.observed, entry.since) == ("held", "held by anna: lunch", AN_HOUR_AGO)
    assert "resume" in entry.fix


@pytest.mark.parametrize(
    "error", [{"error": "Unsafe"}, {}], ids=["after an error", "after a step that a person has to look at"]
)
def test_a_hold_of_our_own_is_told_as_ours(error: dict[str, str]) -> None:
    ours = event("held", by="keeperless", reason="format failed", **error)
    record = a_migration(MigrationState.HELD, waiting=waiting(WaitReason.HELD, detail="format failed", for_people=True))
    (entry,) = of_waiting(record, frozenset(), (ours,), NOW)
    assert entry.observed == "Keeperless holds it itself: format failed"
    assert entry.fix.startswith("Fix what is named, then resume it")
    for theirs in (event("held", by="anna", reason="lunch"), event("rejected", by="anna", gate="finalize")):
        (entry,) = of_waiting(record, frozenset(), (ours, theirs), NOW)
        assert entry.observed == "format failed", "a person holds since"
        assert entry.fix.startswith("Resume it when ready")


@pytest.mark.parametrize(
    ("kinds", "is_told"),
    [
        (("held", "resumed", "held"), "held again 2 s later"),
        (("resumed", "held", "resumed", "held"), "held again 2 s later; 2 times so far"),
        (("held",), ""),
        (("resumed", "held", "resumed"), ""),
    ],
)
def test_a_hold_that_follows_each_resume_is_told_as_such(kinds: tuple[str, ...], is_told: str) -> None:
    record = a_migration(MigrationState.HELD, waiting=waiting(WaitReason.HELD, detail="held by bot: freeze", for_people=True))
    events = [event(kind, 1 - number / 30, by="bot", reason="freeze") for number, kind in enumerate(kinds)]
    (entry,) = of_waiting(record, frozenset(), events, NOW)
    assert is_told in entry.observed
    assert entry.fix.startswith("If that was not you") is bool(is_told)


def test_who_is_restarted_again_and_again_is_told_as_that() -> None:
    assert list(of_restarts(["7@a"], NOW)) == [], "one may have been replaced"
    (entry,) = of_restarts(["7@a", "8@a"], NOW)
    assert (entry.code, entry.object) == ("no-worker", "keeperless-activities")
    assert "(7@a, 8@a)" in entry.observed


def test_a_hold_long_after_a_resume_and_one_of_our_own_are_holds_like_any_other() -> None:
    record = a_migration(MigrationState.HELD, waiting=waiting(WaitReason.HELD, detail="held by anna: lunch", for_people=True))
    resumed = event("resumed", 20, by="anna", reason="")
    for held in (
        event("held", 10, by="anna", reason="lunch"),
        event("held", 19.6, by="anna", reason="lunch"),
        event("held", 19.9, by="keeperless", reason="roll: no", error="Unsafe"),
    ):
        (entry,) = of_waiting(record, frozenset(), (resumed, held), NOW)
        assert "If that was not you" not in entry.fix


@pytest.mark.parametrize(
    ("decided", "is_told"),
    [
        ({}, True),
        ({"delivered_at": NOW}, True),
        ({"delivered_at": NOW - timedelta(minutes=2)}, False),
        ({"evidence_hash": "0" * 64}, False),
        ({"refused_because": "the gate is not open"}, False),
    ],
    ids=["on its way", "just taken", "long done", "other evidence", "refused"],
)
def test_a_gate_that_somebody_has_decided_says_so(*, decided: dict[str, Any], is_told: bool) -> None:
    """As where the workflow fails with each task, so that it takes nothing."""
    gate = OpenGate(name=GateName.FINALIZE, evidence_hash="f" * 64, since=AN_HOUR_AGO, evidence={})
    record = a_migration(MigrationState.WAITING, waiting=waiting("approval", for_people=True), gate=gate)
    asked = {"kind": CommandKind.APPROVE, "gate": gate.name, "evidence_hash": gate.evidence_hash, "at": NOW}
    (entry,) = of_waiting(record, frozenset(), (), NOW, (a_command(**(asked | decided)),))
    assert ("anna sent approve" in entry.observed, entry.fix.startswith("Do not decide again")) == (is_told, is_told)
    assert ("there is no decision yet" in entry.observed) is not is_told


def a_command(**more: Any) -> Command:
    given = {"id": "1", "migration_id": "m1", "kind": CommandKind.RESUME, "by": "anna", "via": "api", "at": AN_HOUR_AGO}
    return Command(**(given | more))


def held_since(minutes: float) -> MigrationRecord:
    since = NOW - timedelta(minutes=minutes)
    held = waiting(WaitReason.HELD, detail="held by anna: lunch", for_people=True).model_copy(update={"since": since})
    return a_migration(MigrationState.HELD, waiting=held)


def ordered(kind: CommandKind, minutes: float, **more: Any) -> Command:
    return a_command(kind=kind, at=NOW - timedelta(minutes=minutes), **more)


@pytest.mark.parametrize(
    ("delivered", "told"), [(None, "has not taken that yet"), (NOW, "has taken that, and has not reported since")]
)
@pytest.mark.parametrize("kind", [CommandKind.RESUME, CommandKind.ROLLBACK])
def test_a_hold_that_somebody_has_asked_to_end_says_so(kind: CommandKind, delivered: datetime | None, told: str) -> None:
    (entry,) = of_waiting(held_since(9), frozenset(), (), NOW, (ordered(kind, 2, delivered_at=delivered),))
    assert entry.observed == f"held by anna: lunch. anna asked for {kind} at 02:58:00 UTC, and the migration {told}"
    assert entry.fix.startswith("Do not send it again")


@pytest.mark.parametrize(
    "commands",
    [
        (),
        (ordered(CommandKind.RESUME, 20, delivered_at=NOW),),
        (ordered(CommandKind.RESUME, 2, refused_because="no"),),
        (ordered(CommandKind.RESUME, 2, delivered_at=NOW - timedelta(minutes=2)),),
        (ordered(CommandKind.RESUME, 2, delivered_at=NOW), ordered(CommandKind.HOLD, 1)),
        (ordered(CommandKind.RESUME, 2, delivered_at=NOW), ordered(CommandKind.REJECT, 1, delivered_at=NOW)),
    ],
    ids=["none", "before the hold", "refused", "long done", "held again", "rejected"],
)
def test_a_hold_that_no_resume_has_ended_is_told(commands: tuple[Command, ...]) -> None:
    (entry,) = of_waiting(held_since(9), frozenset(), (), NOW, commands)
    assert (entry.observed, entry.fix.startswith("Resume it")) == ("held by anna: lunch", True)


def test_a_hold_in_a_ledger_that_takes_no_writes_may_be_long_over() -> None:
    """The migration goes on, and cannot tell it."""
    resumed = (ordered(CommandKind.RESUME, 8, delivered_at=NOW - timedelta(minutes=8)),)
    (entry,) = of_waiting(held_since(9), frozenset(), (), NOW, resumed, is_mute=True)
    assert "anna asked for resume" in entry.observed
    assert entry.fix.startswith("Do not send it again")
    (entry,) = of_waiting(held_since(9), frozenset(), (), NOW, (), is_mute=True)
    assert entry.fix.startswith("Resume it")


def test_an_open_gate_is_told_with_what_it_binds_to() -> None:
    gate = OpenGate(name=GateName.FINALIZE, evidence_hash="e" * 64, since=AN_HOUR_AGO, evidence={})
    record = a_migration(waiting=waiting("approval", objects=("finalize",), for_people=True), gate=gate)
    (entry,) = of_waiting(record, None, (), NOW)
    assert (entry.code, entry.object) == ("approval", "gate finalize")
    assert "e" * 64 in entry.fix
    assert entry.fix.startswith("POST ")


def test_the_gate_that_gives_up_the_way_back_is_no_ordinary_one() -> None:
    """Whoever reads it at night is told first to bring ZooKeeper back."""
    asked = {"evidence_hash": "e" * 64, "since": AN_HOUR_AGO, "evidence": {}, "caution": LAST_RESORT}
    gate = OpenGate(name=GateName.FINALIZE_WITHOUT_RETURN, **asked)
    record = a_migration(waiting=waiting("approval", objects=("finalize-without-return",), for_people=True), gate=gate)
    (entry,) = of_waiting(record, None, (), NOW)
    assert entry.fix.startswith("Use it only if ZooKeeper cannot be restored")


@pytest.mark.parametrize(
    ("reason", "explained", "is_told"),
    [
        (WaitReason.NODE_DOWN, None, True),
        (WaitReason.NODE_DOWN, frozenset[str](), False),
        (WaitReason.CHECKS_WORKER_MISSING, frozenset[str](), True),
        (WaitReason.CHECKS_WORKER_MISSING, frozenset({"checks-worker-missing"}), False),
    ],
    ids=["nobody could look", "a look finds it over", "only the migration knows", "told already"],
)
def test_a_wait_is_told_where_no_look_knows_better(reason: WaitReason, explained: frozenset[str] | None, is_told: bool) -> None:
    record = a_migration(waiting=waiting(reason, objects=("broker-2",)))
    assert told(record, explained) == ([(reason, "broker-2")] if is_told else [])


def test_no_wait_is_no_entry() -> None:
    assert told(a_migration()) == []


# --- steps -----------------------------------------------------------------------------------------------------------

POLLING = Tries(timedelta(seconds=1))
STEP = {"action": "roll-node", "node": "broker-1", "stage": "kraft"}


def of_steps(events: Sequence[Event]) -> list[Blocker]:
    return list(refused_steps.of_steps(events, NOW, POLLING))


def refused(number: int, why: str = "b", **other: Any) -> Event:
    return event("step-blocked", 10 - number, step=number, why=why, **STEP | other)


def test_a_step_that_is_refused_again_and_again_is_told_with_its_last_reason_and_first_time() -> None:
    (entry,) = of_steps([event("step-done", 9, step=1, **STEP), refused(2, "a"), refused(8)])
    assert entry.code == "step-failing"
    assert entry.object == "roll-node of broker-1"
    assert entry.observed == "refused 2 times; the last time: b. Before that: a"
    assert entry.since == NOW - timedelta(minutes=8)


def test_what_a_step_was_refused_for_is_not_hidden_by_what_passes() -> None:
    """A busy machine: what does not answer right before the effect says nothing of an edit that is there all the time."""
    tries = [refused(2, "an edit"), refused(5, "an edit"), refused(7, "part-unknown"), refused(8, "part-unknown")]
    (entry,) = of_steps(tries)
    assert entry.observed == "refused 4 times; the last time: part-unknown. Before that: an edit"
    (entry,) = of_steps([refused(7), refused(8)])
    assert "Before that" not in entry.observed


def test_where_the_guards_took_long_the_next_try_is_told_for_as_long() -> None:
    slow = [refused(2), event("step-started", 2 + 80 / 60, step=8, **STEP), refused(8)]
    (entry,) = of_steps([*slow, event("step-started", 1, step=9, **STEP)])
    assert "it is being retried since" in entry.observed
    assert of_steps([*slow, event("step-started", 2.1, step=9, **STEP)]) == []


def test_a_try_that_lay_there_for_want_of_a_worker_is_no_measure() -> None:
    waited = [refused(-3000), event("step-started", 1000, step=8, **STEP), refused(8)]
    assert of_steps([*waited, event("step-started", 3.1, step=9, **STEP)]) == []
    others = [refused(2), event("step-started", 2 + 80 / 60, step=7, **STEP), refused(8)]
    assert of_steps([*others, event("step-started", 1, step=9, **STEP)]) == [], "another step's begin"


def test_the_next_try_of_a_refused_step_is_told_until_guards_have_had_their_time() -> None:
    """Then it is under way, and what it was refused for is over."""
    (entry,) = of_steps([refused(2), refused(8), event("step-started", 0.1, step=9, **STEP)])
    since = NOW - timedelta(minutes=0.1)
    assert entry.observed == f"refused 2 times; the last time: b; it is being retried since {since:%H:%M:%S} UTC"
    assert of_steps([refused(2), refused(8), event("step-started", 1, step=9, **STEP)]) == []


def test_refusals_of_a_step_are_over_once_another_one_is_in_hand() -> None:
    other = event("step-started", 1, step=9, **STEP | {"node": "broker-2"})
    assert of_steps([refused(2), refused(8), other]) == []


def test_a_wave_that_is_refused_again_and_again_is_told_with_all_its_nodes() -> None:
    """Each node has its own event."""
    waves = [refused(n, why, node=f"broker-{node}") for n in (2, 8) for node, why in ((1, "a"), (2, "b"), (3, "a"))]
    (entry,) = of_steps(waves)
    assert entry.object == "roll-node of broker-1, broker-2, broker-3"
    assert entry.observed == "refused 2 times; the last time: a; b"


def test_a_wave_of_which_a_node_came_through_has_got_on() -> None:
    done = event("step-done", 2, step=8, **STEP | {"node": "broker-2"})
    assert of_steps([refused(2), refused(7), refused(8), done]) == []


def test_a_step_that_went_through_afterwards_is_no_entry() -> None:
    assert of_steps([refused(2), event("step-done", 2, step=8, **STEP)]) == []
    assert of_steps([]) == []
    assert of_steps([event("step-started", 0.1, step=1, **STEP)]) == []


@pytest.mark.parametrize("kind", ["held", "resumed", "phase-entered"])
def test_refusals_before_a_hold_or_another_phase_are_over(kind: str) -> None:
    tries = [refused(1), refused(2)]
    assert of_steps([*tries, event(kind, 2)]) == []
    assert len(of_steps([event(kind, 12), *tries])) == 1


def test_another_steps_refusals_are_not_counted() -> None:
    (entry,) = of_steps([refused(1, "a", node="broker-2"), refused(7), refused(8)])
    assert entry.observed.startswith("refused 2 times")


def test_a_step_that_pauses_after_refusals_is_told_with_its_next_try_and_how_to_hasten_it() -> None:
    """The pause doubles with each: who has mended the cause would look at a migration that does nothing."""
    tries = [refused(number) for number in range(9)]  # the last one two minutes ago, and 2^8 s till the next
    (entry,) = of_steps(tries)
    due = NOW - timedelta(minutes=2) + timedelta(seconds=256)
    assert entry.observed == f"refused 9 times; the last time: b; the next try is due at {due:%H:%M:%S} UTC at the latest"
    assert "POST /migrations/{id}/hold, then /resume, tries it immediately" in entry.fix
    (entry,) = refused_steps.of_steps(tries, NOW, replace(POLLING, is_clear=True))
    assert "; an observation finds nothing that blocks it now; the next try" in entry.observed
    (entry,) = of_steps([*tries[:-2], event("held", 3.5), event("resumed", 3.4), *tries[-2:]])
    assert f"due at {due:%H:%M:%S}" in entry.observed, "a hold does not make the pause shorter"
    for passed in ([event("step-done", 4, step=6, **STEP), *tries[-2:]], [refused(n, urgent=True) for n in range(9)]):
        (entry,) = of_steps(passed)
        assert "the next try" not in entry.observed, "the pause is over"


def test_one_refusal_is_what_guards_are_for() -> None:
    assert of_steps([refused(8)]) == []


def test_one_refusal_is_told_until_guards_have_had_their_time_with_the_next_try() -> None:
    """Pauses are short at first, and most of the time the next try is in hand."""

    def told(*events: Event) -> list[Blocker]:
        return list(refused_steps.of_any_refusal(events, NOW, POLLING))

    (entry,) = told(refused(8))
    assert (entry.code, entry.observed) == ("step-failing", "refused once: b")
    (entry,) = told(refused(8), event("step-started", 0.1, step=9, **STEP))
    assert entry.observed.startswith("refused once: b; it is being retried since")
    assert told(refused(8), event("step-started", 1, step=9, **STEP)) == []
    (entry,) = told(refused(9.9), event("phase-entered", 0))
    assert entry.observed == "refused once: b", "the step that was refused has changed what the phase is read from"
    (entry,) = told(refused(7), refused(8))
    assert entry.observed.startswith("refused 2 times"), "the second may have been written down since the look began"
    assert told(refused(8), event("step-started", 0.1, step=9, **STEP | {"node": "broker-2"})) == []


@pytest.mark.parametrize(
    ("kinds", "node"),
    [
        (["step-started"], "broker-1"),
        (["step-started", "waiting", "alert"], "broker-1"),
        (["step-started", "step-done"], None),
        (["step-started", "step-blocked"], None),
        ([], None),
    ],
)
def test_what_is_in_hand_is_told_by_the_last_events(kinds: list[str], node: str | None) -> None:
    step = in_hand([event(kind, **STEP) for kind in kinds])
    assert (step.nodes if step is not None else (None,)) == (node,)


def test_of_a_wave_all_nodes_are_in_hand() -> None:
    """Each has its own event; whoever was told that one of them is down would start it beside us."""
    wave = [event("step-started", **STEP | {"node": f"broker-{n}", "together": ["broker-1", "broker-2"]}) for n in (1, 2)]
    step = in_hand(wave)
    assert step is not None
    assert step.nodes == ("broker-1", "broker-2")


def test_rolled_is_what_we_have_told_of() -> None:
    def done(action: str, node: str) -> Event:
        return event("step-done", **{**STEP, "action": action, "node": node})

    events = [done("roll-node", "broker-2"), done("provision-controller", "c-1"), done("roll-node", "broker-2")]
    assert rolled([*events, event("step-blocked", **STEP)]) == ("broker-2",)


def test_a_hold_by_a_person_leaves_the_step_in_hand() -> None:
    """The node in hand is finished."""
    step = in_hand([event("step-started", **STEP), event("held", by="anna", reason="lunch")])
    assert step is not None
    assert in_hand([event("step-started", **STEP), event("held", by="keeperless", reason="no", error="Unsafe")]) is None


# --- our own processes -----------------------------------------------------------------------------------------------


def task(queue: TaskQueue = TaskQueue.CHECKS, seconds: float = 30, **more: Any) -> PendingTask:
    at = NOW - timedelta(seconds=seconds)
    return PendingTask(**({"what": "run_check", "queue": queue, "begun_at": at, "due_at": at} | more))


def test_what_an_attempt_is_at_is_told_after_a_moment_where_nothing_else_is_known() -> None:
    """A JVM that hangs in a guard, a Spark without executors: nothing has failed, and nothing moves."""
    begun = {"taken_at": AN_HOUR_AGO, "heard_at": NOW, "at": "a JVM is tried"}
    soon, late = (task(at_since=NOW - timedelta(seconds=seconds), **begun) for seconds in (7, 9))
    assert list(of_standing([soon, task(taken_at=NOW - timedelta(minutes=1))], NOW)) == []
    (entry,) = of_standing([late], NOW)
    assert (entry.code, entry.object) == ("slow-activity", "run_check")
    assert "it has reported the same for 9 s: a JVM is tried" in entry.observed
    assert "executors" in entry.fix
    (of_a_node,) = of_standing([task(TaskQueue.CLUSTER, at_since=NOW - timedelta(seconds=9), **begun)], NOW)
    assert "ps --forest" in of_a_node.fix
    assert of(late) == [], "beside other entries only what lasts"


@pytest.mark.parametrize("queue", [TaskQueue.CHECKS, TaskQueue.CLUSTER])
def test_an_attempt_that_does_not_say_what_it_is_at_is_told_in_the_end(queue: TaskQueue) -> None:
    quiet = task(queue, taken_at=NOW - timedelta(minutes=3), heard_at=NOW)
    (entry,) = of_standing([quiet], NOW)
    assert (entry.code, entry.observed) == ("slow-activity", "in work for 180 s: it does not report at what")
    assert of(quiet) == [], "not beside other entries"
    assert list(of_standing([replace(quiet, queue=TaskQueue.WATCH)], NOW)) == [], "a watch is in work for hours"


def of(*tasks: PendingTask) -> list[tuple[str, str]]:
    return [(entry.code, entry.object) for entry in of_tasks(tasks, NOW)]


@pytest.mark.parametrize("queue", TaskQueue)
def test_a_task_that_nobody_takes_names_the_program_that_is_missing(queue: TaskQueue) -> None:
    (entry,) = of_tasks([task(queue)], NOW)
    assert (entry.code, entry.object) == ("no-worker", f"task queue {queue}")
    assert PROGRAM_OF[queue] in entry.fix


def test_what_the_last_one_that_took_it_stumbled_over_is_told() -> None:
    (entry,) = of_tasks([task(attempt=2, error="it can start no thread")], NOW)
    assert entry.code == "no-worker"
    assert entry.observed.endswith("The attempt before failed: it can start no thread")


def test_a_task_that_has_just_come_or_is_in_work_is_no_entry() -> None:
    assert of(task(seconds=2)) == []
    assert of(task(taken_at=NOW)) == []


def test_one_program_that_is_missing_is_one_entry() -> None:
    assert of(task(TaskQueue.CLUSTER), task(TaskQueue.WATCH)) == [("no-worker", "task queue cluster")]


def test_an_activity_that_fails_again_and_again_is_told_with_its_error() -> None:
    soon = NOW + timedelta(seconds=5)
    (entry,) = of_tasks([task(TaskQueue.CLUSTER, attempt=4, error="no answer", due_at=soon)], NOW)
    assert entry.code == "step-failing"
    assert "attempt 4" in entry.observed
    assert "no answer" in entry.observed


def test_an_attempt_that_goes_well_for_a_while_is_no_entry_whatever_the_one_before_came_to() -> None:
    failed = task(TaskQueue.WATCH, attempt=3, error="no answer")
    assert of(PendingTask(**{**vars(failed), "taken_at": NOW - timedelta(minutes=5)})) == []
    assert of(PendingTask(**{**vars(failed), "taken_at": NOW - timedelta(seconds=3)})) == [("step-failing", "run_check")]


def test_what_has_a_time_that_has_not_come_yet_is_overdue_and_never_fresh() -> None:
    """As after a clock was set back by an hour."""
    later = NOW + timedelta(hours=1)
    assert of(task(begun_at=later, due_at=later)) == [("no-worker", "task queue checks")]
    assert of(task(due_at=NOW + timedelta(seconds=4))) == [], "clocks of two machines differ"
    assert [entry.code for entry in of_commands([a_command(at=later)], NOW, {})] == ["command-pending"]
    failed = task(TaskQueue.WATCH, attempt=3, error="no answer", taken_at=later)
    assert of(failed) == [("step-failing", "run_check")]


@pytest.mark.parametrize(
    ("tasks", "minutes"),
    [
        ([], -60),
        ([task(taken_at=NOW + timedelta(hours=1))], 1),
        ([task(heard_at=NOW + timedelta(hours=1))], 1),
        ([task(attempt=2, begun_at=NOW + timedelta(hours=1), due_at=NOW + timedelta(hours=1, seconds=15))], 1),
    ],
)
def test_a_clock_that_was_set_back_is_told_with_when_what_waits_goes_on(tasks: list[PendingTask], minutes: float) -> None:
    (entry,) = of_clock([event("claimed", minutes)], None, tasks, NOW)
    assert entry.code == "machine"
    assert "is 3600 s ahead" in entry.observed
    assert f"continues by itself at {NOW + timedelta(hours=1):%H:%M:%S} UTC" in entry.fix
    assert "changes nothing" in entry.fix


def test_a_worker_that_has_all_that_it_does_at_once_is_told_with_what_that_is() -> None:
    busy = task(what="roll_node", worker="812@a", taken_at=AN_HOUR_AGO, heard_at=NOW - timedelta(seconds=3))
    sign = of_work([("orders", busy), ("other", replace(busy, heard_at=NOW - timedelta(minutes=1)))], NOW)
    assert sign is not None
    assert f"has 1 task in work: 812@a at roll_node of orders since {AN_HOUR_AGO:%H:%M:%S} UTC" in sign.observed
    assert "KEEPERLESS_MAX_EFFECTS" in sign.fix
    assert of_work([("orders", replace(busy, heard_at=None))], NOW) is None
    assert of_work([], NOW) is None


def test_an_api_whose_clock_is_ahead_is_told_once_it_matters() -> None:
    (entry,) = of_clock_here(timedelta(seconds=60), NOW)
    assert (entry.code, entry.object) == ("machine", "the clock of the API's machine")
    assert entry.observed == "it is 60 s ahead of that of Temporal's machine"
    assert "chronyc" in entry.fix
    assert list(of_clock_here(timedelta(seconds=4), NOW)) == []


def test_tasks_of_nodes_that_go_to_several_machines_are_told_with_who_has_looked() -> None:
    (entry,) = of_machines(["812@kafka-a", "77@laptop"], "77@laptop", NOW)
    assert (entry.code, entry.object) == ("machine", "keeperless-activities")
    assert "812@kafka-a, 77@laptop. This was seen by 77@laptop" in entry.observed
    assert "TEMPORAL_NAMESPACE" in entry.fix
    assert list(of_machines(["812@kafka-a"], "812@kafka-a", NOW)) == []


def test_a_retry_that_is_due_soon_and_clocks_that_agree_are_no_entry() -> None:
    soon = task(attempt=2, due_at=NOW + timedelta(seconds=15), taken_at=NOW + timedelta(seconds=2))
    assert list(of_clock([event("claimed")], None, [soon], NOW)) == []
    assert list(of_clock([], None, [], NOW)) == []


@pytest.mark.parametrize(("error", "says"), [("file.txt: busy", "failed: file.txt: busy"), ("", "no longer shows")])
def test_an_attempt_that_is_put_off_by_an_hour_is_told_with_what_runs_it_now(error: str, says: str) -> None:
    """As after `temporal activity update-options`, which also makes Temporal forget the last failure. No clock is wrong."""
    late = task(TaskQueue.CLUSTER, 5, attempt=3, error=error, due_at=NOW + timedelta(minutes=59), named="-w 'w' -a '8'")
    (entry,) = of_tasks([late], NOW)
    assert (entry.code, entry.object) == ("step-failing", "run_check")
    assert f"attempt 3 is due at {late.due_at:%H:%M:%S} UTC, in 59 minutes" in entry.observed
    assert says in entry.observed
    assert "`temporal activity reset -w 'w' -a '8' --restore-original-options`" in entry.fix
    assert list(of_clock([], None, [late], NOW)) == []


def test_a_retry_within_our_own_pauses_is_not_put_off_by_anybody() -> None:
    soon = task(TaskQueue.CLUSTER, 1, attempt=3, due_at=NOW + timedelta(seconds=18), named="-w 'w' -a '8'")
    set_back = replace(soon, begun_at=NOW + timedelta(hours=1), due_at=NOW + timedelta(hours=1, seconds=15))
    assert of(soon, set_back) == []


def test_a_task_that_is_not_given_to_who_asks_for_it_misses_no_worker() -> None:
    (entry,) = of_tasks([task(TaskQueue.CLUSTER, named="-w 'w' -a '8'", asked_by="7@h (heard 3 s ago)")], NOW)
    assert (entry.code, entry.object) == ("no-worker", "run_check")
    assert "although 7@h (heard 3 s ago) polls task queue cluster, and is not given it" in entry.observed
    assert "`temporal activity reset -w 'w' -a '8' --restore-original-options`" in entry.fix
    assert "Start" not in entry.fix


def test_an_order_that_nobody_takes_is_told() -> None:
    open_, taken, refused, fresh = (
        a_command(),
        a_command(delivered_at=NOW),
        a_command(refused_because="no"),
        a_command(at=NOW - timedelta(seconds=1)),
    )
    (entry,) = of_commands([open_, taken, refused, fresh], NOW, {})
    assert (entry.code, entry.object, entry.since) == ("command-pending", "resume by anna", AN_HOUR_AGO)


@pytest.mark.parametrize(
    ("is_running", "state", "is_told"),
    [
        (True, MigrationState.RUNNING, False),
        (None, MigrationState.RUNNING, False),
        (False, MigrationState.RUNNING, True),
        (False, MigrationState.HELD, True),
        (False, MigrationState.PLANNING, False),
    ],
)
def test_a_run_that_is_gone_is_told(is_running: bool | None, state: MigrationState, is_told: bool) -> None:
    assert [entry.code for entry in of_run(is_running, "", a_migration(state), NOW)] == (["run-gone"] if is_told else [])


def test_a_temporal_in_which_nobody_works_may_be_another_one_than_the_runs() -> None:
    where = "task queue migrations and cluster in namespace default at localhost:7233"
    (entry,) = of_run(False, "", a_migration(), NOW, where)
    assert entry.code == "run-gone"
    assert entry.fix.startswith("First make sure that this is the Temporal in which the migration was started")
    assert where in entry.fix
    assert "Start no other migration of this cluster before" in entry.fix


BEATING = PendingTask("run_check", "checks", NOW, NOW, taken_at=NOW, worker="7@h", heard_at=NOW)


@pytest.mark.parametrize(("seconds", "is_told"), [(8, False), (15, True)])
def test_a_worker_that_says_nothing_of_what_it_has_taken_is_missing(seconds: int, is_told: bool) -> None:
    found = list(of_tasks([BEATING], NOW + timedelta(seconds=seconds)))
    assert [(entry.code, entry.object) for entry in found] == ([("no-worker", "task queue checks")] if is_told else [])
    assert list(of_tasks([replace(BEATING, heard_at=None)], NOW + timedelta(seconds=seconds))) == []


@pytest.mark.parametrize(("seconds", "is_told"), [(110, False), (130, True)])
def test_what_lives_and_is_at_the_same_for_long_is_told_with_what_that_is(seconds: int, is_told: bool) -> None:
    """As a check whose Spark accepts the session, and has nobody to work for it."""
    begun = NOW - timedelta(minutes=5)
    task = replace(BEATING, taken_at=begun, heard_at=NOW, at="stage, 0 of 12", at_since=NOW - timedelta(seconds=seconds))
    found = list(of_tasks([task], NOW))
    assert [(entry.code, entry.object) for entry in found] == ([("slow-activity", "run_check")] if is_told else [])
    assert all(entry.observed == "it has reported the same for 130 s: stage, 0 of 12" for entry in found)


def test_what_lies_there_for_a_moment_only_is_nobodys_work() -> None:
    """By a clock that is ahead it has lain there for long, and programs were looked for."""
    sign = Sign("Process 7 asks another Temporal", "Start it with TEMPORAL_ADDRESS.")
    assert list(of_tasks([replace(BEATING, taken_at=None, worker="", heard_at=None, signs=(sign,))], NOW)) == []


def test_a_slight_sign_of_who_works_is_no_entry() -> None:
    sign = Sign("what it sends waits", "Look.", is_slight=True)
    assert list(of_tasks([replace(BEATING, signs=(sign,))], NOW)) == []


@pytest.mark.parametrize(
    "said",
    [
        "BadScheduleActivityAttributes: Input exceeds size limit.",
        "Workflow history size exceeds limit.",
        "Workflow history count exceeds limit.",
        "Workflow mutable state size exceeds limit.",
    ],
)
def test_what_temporal_has_refused_for_its_size_is_told_with_its_setting(said: str) -> None:
    ended = f"terminated by history-service: {said}"
    (gone,) = of_run(False, ended, a_migration(), NOW)
    assert ended in gone.observed
    assert gone.fix.startswith("First have that limit of Temporal's dynamic configuration raised")
    record = a_migration(waiting=waiting(WaitReason.HELD, detail="assess: Complete result exceeds size limit."))
    (held,) = of_waiting(record, frozenset(), [], NOW)
    assert held.fix.startswith("First have that limit of Temporal's dynamic configuration raised")


def test_an_order_that_temporal_takes_from_nobody_now_is_told_in_its_words() -> None:
    said = "Temporal answered RESOURCE_EXHAUSTED: limit on number of concurrent in-flight updates has been reached (10)"
    (entry,) = of_commands([a_command(id="c1", at=NOW - timedelta(minutes=5))], NOW, {"c1": said})
    assert entry.code == "command-pending"
    assert "in-flight updates" in entry.observed
    assert "keeperless-workflows" not in entry.fix


def test_an_order_that_temporal_did_not_let_through_is_told_until_another_is_taken() -> None:
    said = "Temporal answered PERMISSION_DENIED: UpdateWorkflowExecution operation is disabled on this namespace"
    refused = a_command(refused_because=said, at=NOW - timedelta(minutes=5))
    (entry,) = of_commands([refused], NOW, {})
    assert (entry.code, entry.object) == ("command-pending", "resume by anna")
    assert said in entry.observed
    taken = a_command(delivered_at=NOW)
    assert list(of_commands([refused, taken], NOW, {})) == []
    assert list(of_commands([a_command(refused_because="it is not held", at=NOW)], NOW, {})) == []
    assert list(of_commands([refused], NOW + timedelta(hours=2), {})) == []


def test_why_a_run_has_ended_itself_is_told_unless_it_goes_on() -> None:
    """A frozen attempt that wakes up beside its successor says the same, and nobody listens."""
    ended = event("run-set-back", 5, why="the run has forgotten what it did")
    earlier, later = (replaced(event("held", minutes), f"{uuid4()}:7") for minutes in (6, 4))
    assert recorded_causes.set_back([earlier, ended]) == "the run has forgotten what it did"
    assert recorded_causes.set_back([earlier, ended, later]) == ""
    assert recorded_causes.set_back([earlier]) == ""


def replaced(seen: Event, key: str) -> Event:
    return seen.model_copy(update={"key": key})
