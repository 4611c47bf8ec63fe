"""Causes that no look at a cluster finds: what people have said, what the ledger has written down, and who of us is missing.
Pure.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.blocker import Blocker, blocker
from domain.clocks import AHEAD, is_ahead, is_over
from domain.contracts import TaskQueue
from domain.decisions import StepAction, WaitReason
from domain.records import Command, Event, MigrationRecord, MigrationState, Waiting
from domain.vital_signs import Sign, signed

APPROVAL, STEP_FAILING, NO_WORKER, RUN_GONE = "approval", "step-failing", "no-worker", "run-gone"
TEMPORAL_UNAVAILABLE, OBSERVATION_FAILED, COMMAND_PENDING = "temporal-unavailable", "observation-failed", "command-pending"
LEDGER_UNAVAILABLE, PAUSED, MACHINE, SLOW_ACTIVITY = "ledger-unavailable", "paused", "machine", "slow-activity"

CODES: dict[str, str] = {
    APPROVAL: "A gate is open: a person has to decide.",
    STEP_FAILING: "A step, or one of our activities, is tried again and again. `observed` has its last error.",
    SLOW_ACTIVITY: "One of our activities lives, and is at one and the same for long. `observed` says at what.",
    NO_WORKER: "Nobody takes what is asked on one of the task queues: a process of ours is missing, "
    "cannot reach Temporal, or is not given it.",
    PAUSED: "Somebody has paused the migration's workflow, or one of its activities, in Temporal.",
    RUN_GONE: "The migration's workflow is not there any more, though the migration has not ended.",
    TEMPORAL_UNAVAILABLE: "Temporal does not answer the API: what is shown is what the ledger knows.",
    LEDGER_UNAVAILABLE: "The ledger cannot be written, or not even read: nothing could be written down, so nothing is done.",
    OBSERVATION_FAILED: "A worker tried to look at the cluster and could not: what is shown is what the ledger knows.",
    MACHINE: "A node's process is kept from its work by its machine, or by the network there; or something was changed there.",
    COMMAND_PENDING: "Somebody asked for something that the migration has not taken yet.",
}
"""Codes that are neither a wait's reason, nor a guard, nor a check."""

PROGRAM_OF: dict[str, str] = {
    TaskQueue.MIGRATIONS: "keeperless-workflows",
    TaskQueue.CLUSTER: "keeperless-activities",
    TaskQueue.WATCH: "keeperless-activities",
    TaskQueue.CHECKS: "keeperless-checks",
}

MOST_OBSERVED = 1000
"""Characters of what is told of one cause."""

UNTAKEN = timedelta(seconds=5)
"""How long a task may lie before nobody is there to take it. A busy worker takes one within moments."""

REFUSALS = 2
"""From how many refusals in a row on a step does not get on."""

MOVED = frozenset({"held", "resumed", "phase-entered"})
"""Events after which what was refused before is asked anew."""

SILENT = timedelta(seconds=10)
"""A worker that is at a task says so every seven seconds at the latest."""

MOST_TOLD = 4
"""Of tasks in work."""

STANDS = timedelta(minutes=2)
"""How long an attempt may be at one and the same before it is told what that is."""

SETTLED = timedelta(seconds=20)
"""An attempt that has been in work for so long goes well so far, whatever the one before came to."""

LONGEST_PAUSE = timedelta(seconds=30)
"""Between two attempts at an activity: 15 s, and what Temporal and its clock add."""

OF_PEOPLE = frozenset({WaitReason.HELD, APPROVAL, WaitReason.CHECKS_WORKER_MISSING})
"""Waits that only the migration itself knows of; every other one a fresh look finds again, or it is over."""


@dataclass(frozen=True)
class PendingTask:
    """What Temporal says of one activity of the run, or of its workflow task.

    `begun_at`: since when it is so; of what is between two attempts, when the last one ended. `due_at`: from when on this
    attempt could be taken. `taken_at`: since when it is in work, at `worker`; `None` while it is not. `heard_at`: when that
    worker said last that it is at it; `None` where it need not. `signs`: what keeps workers from it. `at`: what that worker
    said last that it is at, and `at_since` since when; empty and `None` where it does not say. `error`: of the last attempt;
    empty where that was the loss of a worker. `paused`: by whom and why; empty where it is not. `fix`: where there is a better
    one than that of all such tasks. `named`: an activity, as Temporal's command line wants it. `asked_by`: who asks for tasks
    there since it could be taken, and is not given it; empty where nobody does.
    """

    what: str
    queue: str
    begun_at: datetime
    due_at: datetime
    taken_at: datetime | None = None
    worker: str = ""
    heard_at: datetime | None = None
    signs: tuple[Sign, ...] = ()
    at: str = ""
    at_since: datetime | None = None
    attempt: int = 1
    error: str = ""
    paused: str = ""
    fix: str = ""
    named: str = ""
    asked_by: str = ""


@dataclass(frozen=True)
class InHand:
    """The step that the last events tell of as begun and not ended."""

    nodes: tuple[str, ...]
    began_at: datetime


def in_hand(events: Sequence[Event]) -> InHand | None:
    """The nodes that a step works on, all of a wave. A person's hold leaves it to be finished; an error of its own ends it."""
    for event in reversed(events):
        is_stopped = event.kind == "held" and "error" in event.data
        if event.kind in {"step-done", "step-blocked"} or is_stopped:
            return None
        if event.kind == "step-started":
            return InHand(tuple(event.data.get("together") or [event.data.get("node", "")]), event.at)
    return None


def rolled(events: Sequence[Event]) -> tuple[str, ...]:
    """The nodes whose files this migration has changed, and has told of."""
    done = (event.data for event in events if event.kind == "step-done")
    return tuple(sorted({data["node"] for data in done if data.get("action") == StepAction.ROLL_NODE}))


def of_refused(record: MigrationRecord) -> tuple[Blocker, ...]:
    """Why it did not start: the preflight's findings, but for those that somebody has accepted."""
    at = record.ended_at or record.created_at
    return tuple(
        blocker(f.code, f.object, observed=f.observed, expected=f.expected, fix=f.fix, since=at)
        for f in record.progress.findings
        if f.accepted is None
    )


TOO_LARGE = re.compile(r"exceeds (size )?limit")
"""Of Temporal, for one thing that it is given, and for all of a run: its history's size and count, its state."""
UNLIMITED = (
    "First have that limit of Temporal's dynamic configuration raised to what it is without it, or what is started now ends in "
    "the same: limit.blobSize.error (2 MB), limit.historySize.error (50 MB), limit.historyCount.error (51200), "
    "limit.mutableStateSize.error (8 MB), each with its .warn. "
)

SURVEYED = ("survey", "look at ", "settings of ", "log directories")
"""Parts that only the look before the start asks for: the look that explains a wait knows nothing of them."""


def of_waiting(record: MigrationRecord, explained: frozenset[str] | None, blocked: Sequence[Event]) -> Iterator[Blocker]:
    """The wait that the migration itself tells. `explained`: what a look has found already; `None` where there was no look."""
    waiting = record.progress.waiting
    if waiting is None:
        return
    is_looked_at = explained is not None and not any(about.startswith(SURVEYED) for about in waiting.objects)
    is_known = is_looked_at and (waiting.reason not in OF_PEOPLE or waiting.reason in (explained or ()))
    if waiting.reason == APPROVAL:
        yield _approval(record, waiting)
    elif waiting.reason == WaitReason.HELD:
        yield _held(waiting, blocked)
    elif not is_known:
        yield blocker(
            waiting.reason,
            ", ".join(waiting.objects[:5]) or "the migration",
            observed=waiting.detail or "the migration waits for it",
            expected="it is over",
            fix=waiting.means,
            since=waiting.since,
        )


def _approval(record: MigrationRecord, waiting: Waiting) -> Blocker:
    gate = record.progress.gate
    name = gate.name if gate is not None else ", ".join(waiting.objects)
    evidence = gate.evidence_hash if gate is not None else ""
    return blocker(
        APPROVAL,
        f"gate {name}",
        observed=f"nobody has decided, on the evidence {evidence[:12]}…",
        expected="a person approves or rejects",
        fix=f"POST /migrations/{record.id}/approvals with gate {name}, a decision, a reason and evidence_hash {evidence}.",
        since=gate.since if gate is not None else waiting.since,
    )


def _held(waiting: Waiting, events: Sequence[Event]) -> Blocker:
    """By whom, as the migration itself tells it: a person, or ourselves after an error that trying again cannot mend."""
    holds = [event for event in events if event.kind == "held"]
    has_failed = bool(holds) and "error" in holds[-1].data
    mend = "Mend what is named, then resume it, or ask for a rollback" if has_failed else "Resume it when ready"
    return blocker(
        WaitReason.HELD,
        "the migration",
        observed=waiting.detail or "it is held, and nobody has said why",
        expected="nobody holds it",
        fix=f"{UNLIMITED if TOO_LARGE.search(waiting.detail) else ''}{mend}: POST /migrations/{{id}}/resume or /rollback.",
        since=waiting.since,
    )


def of_steps(events: Sequence[Event]) -> Iterator[Blocker]:
    """A step that a guard refuses again and again, or that cannot be proved: the run of equal refusals at the end.

    One refusal is what guards are for. Where the migration waits since, the wait says why; where it has been held, or has gone
    on, they are over.
    """
    steps = [event for event in events if event.kind in {"step-done", "step-blocked", *MOVED}]
    refused: list[Event] = []
    for event in reversed(steps):
        if event.kind != "step-blocked" or (refused and not _is_same_step(event, refused[0])):
            break
        refused.append(event)
    if len(refused) < REFUSALS:
        return
    data = refused[0].data
    yield blocker(
        STEP_FAILING,
        f"{data.get('action')} of {data.get('node')}",
        observed=f"refused {len(refused)} times; the last time: {data.get('why')}"[:MOST_OBSERVED],
        expected="the step is taken, and proved",
        fix="It is tried again by itself, with ever longer pauses. Mend what the reason names.",
        since=refused[-1].at,
    )


def _is_same_step(one: Event, other: Event) -> bool:
    return all(one.data.get(key) == other.data.get(key) for key in ("action", "node", "stage"))


def of_tasks(tasks: Sequence[PendingTask], now: datetime) -> Iterator[Blocker]:
    """Tasks that nobody takes, one entry for each program that is missing; what is paused; what fails again and again."""
    missing: dict[str, PendingTask] = {}
    for task in tasks:
        is_in_work = task.taken_at is not None and now - task.taken_at > SETTLED
        if task.paused and task.taken_at is None:
            yield blocker(
                PAUSED,
                task.what,
                observed=f"paused in Temporal {task.paused}"[:MOST_OBSERVED],
                expected="it goes on",
                fix=task.fix,
                since=task.begun_at,
            )
        elif task.named and (kept := _kept_by_temporal(task, now)) is not None:
            yield kept
        elif is_untaken(task, now):
            missing.setdefault(PROGRAM_OF.get(task.queue, task.queue), task)
        elif task.heard_at is not None and now - task.heard_at > SILENT:
            yield _silent(task, now - task.heard_at)
        elif task.taken_at is not None and any(not sign.is_slight for sign in task.signs):
            yield _kept(task)
        elif task.taken_at is not None and task.at_since is not None and is_over(task.at_since, now, STANDS):
            yield _standing_still(task, task.at_since, now)
        elif task.error and task.attempt > 1 and not is_in_work:
            yield blocker(
                STEP_FAILING,
                task.what,
                observed=f"attempt {task.attempt}; the last one failed: {task.error}"[:MOST_OBSERVED],
                expected="it succeeds",
                fix=task.fix or "It is tried again by itself. Mend what the error names; Temporal's UI has it whole.",
                since=task.begun_at,
            )
    for task in missing.values():
        said = f". The attempt before failed: {task.error}" if task.error else ""
        entry = no_worker(task.queue, f"{task.what} waits there for a worker{said}", task.due_at)
        yield signed(entry, task.signs, MOST_OBSERVED)


def is_untaken(task: PendingTask, now: datetime) -> bool:
    """Whether it lies there for too long. An attempt after another may be due later: Temporal pauses before it."""
    is_due = task.attempt == 1 or task.due_at <= now
    return task.taken_at is None and is_due and is_over(task.due_at, now, UNTAKEN)


RESET = "`temporal activity reset {} --restore-original-options`"
"""It runs at once what is between two attempts, and hands out anew what nobody has."""


def _kept_by_temporal(task: PendingTask, now: datetime) -> Blocker | None:
    """Of an activity that is not given to who asks, or comes later than ours ever do: not only by a clock that was set back."""
    is_between = task.taken_at is None and task.attempt > 1 and task.due_at - now > UNTAKEN
    if is_between and task.due_at - task.begun_at > LONGEST_PAUSE:
        return _put_off(task, now)
    return _not_given(task) if task.asked_by and is_untaken(task, now) else None


def _put_off(task: PendingTask, now: datetime) -> Blocker:
    pause, left = _in_words(task.due_at - task.begun_at), _in_words(task.due_at - now)
    failed = f"failed: {task.error}" if task.error else "has failed, and Temporal does not tell any more at what"
    return blocker(
        STEP_FAILING,
        task.what,
        observed=f"attempt {task.attempt} is due at {task.due_at:%H:%M:%S} UTC, in {left}: Temporal pauses for {pause}, "
        f"because somebody has changed this activity's options. The last one {failed}"[:MOST_OBSERVED],
        expected="it is tried again within 15 s",
        fix=f"{RESET.format(task.named)} runs it now, and gives it its own pauses back. Before that mend what it failed at, if "
        f"that is there still; the log of {PROGRAM_OF.get(task.queue, task.queue)} has it too.",
        since=task.begun_at,
    )


def _in_words(time: timedelta) -> str:
    seconds = time.total_seconds()
    return f"{seconds / 60:.0f} minutes" if seconds >= 100 else f"{seconds:.0f} s"


def _not_given(task: PendingTask) -> Blocker:
    """Not an order to start a worker: Temporal may have lost it, or somebody has put it on another queue."""
    said = f". The attempt before failed: {task.error}" if task.error else ""
    return blocker(
        NO_WORKER,
        task.what,
        observed=f"nobody has it since {task.due_at:%H:%M:%S} UTC, although {task.asked_by} asks for tasks on task queue "
        f"{task.queue}, and is not given it{said}"[:MOST_OBSERVED],
        expected="Temporal gives it to who asks",
        fix="Do not restart a worker for this. If that lasts for longer than ten seconds, Temporal has lost it, as it may when "
        f"it or its database was restarted or restored: {RESET.format(task.named)} hands it out anew.",
        since=task.due_at,
    )


def of_work(tasks: Sequence[tuple[str, PendingTask]], now: datetime) -> Sign | None:
    """Workers that live, and take no more: they have as many in work as they do at once. `tasks`: with their clusters. Of who
    is silent nobody knows whether he lives.
    """
    alive = [(cluster, task) for cluster, task in tasks if task.heard_at and not is_over(task.heard_at, now, SILENT)]
    if not alive:
        return None
    told = [f"{task.worker} at {task.what} of {cluster} since {task.taken_at:%H:%M:%S} UTC" for cluster, task in alive]
    return Sign(
        f"Who takes tasks there lives, and has {len(told)} in work: {'; '.join(told[:MOST_TOLD])}",
        "Do not restart it for this: if it has as many in work as it does at once (KEEPERLESS_MAX_EFFECTS of "
        "keeperless-activities, 8 where nothing is set; keeperless-checks does 4), it takes the next when one of them ends. "
        "Mend what those wait for, which the blockers of their migrations tell, or give it more at once.",
        is_cure=True,
    )


def _silent(task: PendingTask, since: timedelta) -> Blocker:
    taken = f"{task.worker} has taken {task.what}, and has said nothing of it for {since.total_seconds():.0f} s by this clock"
    return signed(no_worker(task.queue, taken, task.heard_at or task.due_at), task.signs, MOST_OBSERVED)


def _kept(task: PendingTask) -> Blocker:
    """It says that it is at it, and something keeps it, or what it has started, from going on."""
    program = PROGRAM_OF.get(task.queue, task.queue)
    expected = f"nothing keeps {program} from its work"
    since = task.taken_at or task.due_at
    entry = blocker(MACHINE, program, observed=f"it is at {task.what}", expected=expected, fix="", since=since)
    return signed(entry, task.signs, MOST_OBSERVED)


def _standing_still(task: PendingTask, since: datetime, now: datetime) -> Blocker:
    """It lives, and works or waits for something: only the other side of that could tell which."""
    program = PROGRAM_OF.get(task.queue, task.queue)
    last = f". The attempt before failed: {task.error}" if task.error else ""
    return blocker(
        SLOW_ACTIVITY,
        task.what,
        observed=f"it is at the same for {(now - since).total_seconds():.0f} s: {task.at}{last}"[:MOST_OBSERVED],
        expected=f"{program} gets on with it",
        fix="Look at what it is at: Spark, where the checks run on a server of yours (whether it accepts the session, and has "
        f"executors free), the disk and the processors of {program}, its log. Where it reads or compares much, let it. "
        "Restarting that program begins it anew, and costs nothing but the time.",
        since=since,
    )


TEMPORAL_SAID = "Temporal answered"
"""How an order begins to be refused that never came to the migration."""
REFUSED_LATELY = timedelta(hours=1)


def of_clock(
    events: Sequence[Event], waiting: Waiting | None, tasks: Sequence[PendingTask], now: datetime
) -> Iterator[Blocker]:
    """Times of ours that have not come yet: what waits by them stands still, and nobody knows how old it is."""
    written = [*(event.at for event in events), *([waiting.since] if waiting is not None else [])]
    kept = [time for task in tasks for time in (task.begun_at, task.taken_at, task.heard_at)]
    latest = max([*written, *(time for time in kept if time is not None)], default=now)
    if is_ahead(latest, now):
        yield blocker(
            MACHINE,
            "the clock of Keeperless' or Temporal's machine",
            observed=f"what has happened already has the time {latest:%Y-%m-%d %H:%M:%S} UTC, and by the clock of the API that "
            f"comes in {(latest - now).total_seconds():.0f} s: a clock was set back, or that of one machine is wrong",
            expected="clocks that agree, and only go forward",
            fix="Compare them (`timedatectl`, `chronyc tracking`), and set right the one that is wrong. What waits by a time "
            "of before (a retry, a pause, the limit after which a lost worker is missed) goes on by itself at "
            f"{latest:%H:%M:%S} UTC by Temporal's clock. To restart workers or Temporal changes nothing: times are kept "
            "as they were written. POST /migrations/{id}/hold, then /resume, ends a pause between two tries of a step.",
            since=now,
        )


def of_clock_here(ahead: timedelta, now: datetime) -> Iterator[Blocker]:
    """Of an API whose clock is ahead of Temporal's all that is told by its clock would seem old."""
    if ahead > AHEAD:
        yield blocker(
            MACHINE,
            "the clock of the API's machine",
            observed=f"it is {ahead.total_seconds():.0f} s ahead of that of Temporal's machine",
            expected="clocks that agree",
            fix="Compare both with a third one (`timedatectl`, `chronyc tracking`), and set right the one that is wrong. Times "
            "that the API writes down are off by so much until then; migrations go by Temporal's.",
            since=now,
        )


def of_machines(workers: Sequence[str], looker: str, now: datetime) -> Iterator[Blocker]:
    """`workers`: one of each machine from which keeperless-activities asks for tasks, and `looker` the one that has looked. It
    looks at its own machine, so that on another one every node seems down.
    """
    if len(workers) > 1:
        looked = f". What is told here was seen by {looker}" if looker else ""
        yield blocker(
            MACHINE,
            "keeperless-activities",
            observed=f"tasks for the nodes go to machines of several names: {', '.join(workers)}{looked}"[:MOST_OBSERVED],
            expected="keeperless-activities on the machine of the nodes only",
            fix="Ask again in a minute: who was replaced is not listed any more then. Before anything is done to a node: stop "
            "the one that is not on the nodes' machine, for it sees none of them. Where it belongs to another installation of "
            "Keeperless, give each installation a namespace of Temporal's of its own (TEMPORAL_NAMESPACE). Containers of one "
            "machine that all see the nodes may go on.",
            since=now,
        )


def of_commands(commands: Sequence[Command], now: datetime, unsent: Mapping[str, str]) -> Iterator[Blocker]:
    """What was asked for, and has not been taken: a workflow that answers takes it within a moment. And the last order, where
    Temporal has not let it through. `unsent`: what Temporal has said of orders that it did not take when they were sent last.
    """
    last = commands[-1] if commands else None
    if last is not None and (last.refused_because or "").startswith(TEMPORAL_SAID) and now - last.at < REFUSED_LATELY:
        yield blocker(
            COMMAND_PENDING,
            f"{last.kind} by {last.by}",
            observed=f"it never came to the migration: {last.refused_because}"[:MOST_OBSERVED],
            expected="Temporal lets orders through",
            fix="Mend what Temporal says, then ask again: this one is not tried any more.",
            since=last.at,
        )
    for command in commands:
        is_open = command.delivered_at is None and command.refused_because is None
        said = unsent.get(command.id, "")
        if is_open and is_over(command.at, now, UNTAKEN):
            yield blocker(
                COMMAND_PENDING,
                f"{command.kind} by {command.by}",
                observed=f"it has not come to the migration yet: {said}" if said else "the migration has not taken it yet",
                expected="it is taken, or refused with a reason",
                fix="Mend what Temporal says. It is delivered by itself then."
                if said
                else "Start keeperless-workflows; if it runs, the migration is still looking at the cluster before it "
                "answers. It is "
                "delivered by itself.",
                since=command.at,
            )


def no_worker(queue: str, observed: str, since: datetime) -> Blocker:
    program = PROGRAM_OF.get(queue, queue)
    return blocker(
        NO_WORKER,
        f"task queue {queue}",
        observed=observed,
        expected=f"{program} takes what is asked there",
        fix=f"Start {program}; if it runs, its log says why it does not reach Temporal, or what it is busy with.",
        since=since,
    )


def of_run(is_running: bool | None, ended: str, record: MigrationRecord, now: datetime) -> Iterator[Blocker]:
    """`is_running`: whether Temporal has the migration's own run; `None` where that is not known. `ended`: how it has ended."""
    if is_running is not False or record.progress.state is MigrationState.PLANNING:
        return
    how = ended or "it was terminated, or its history is gone"
    yield blocker(
        RUN_GONE,
        "the migration's workflow",
        observed=f"Temporal has no running workflow of this migration: {how}"[:MOST_OBSERVED],
        expected=f"a running workflow with the id {record.workflow_id}",
        fix=(UNLIMITED if TOO_LARGE.search(ended) else "")
        + 'The cluster stays as it is. Start another migration of it with `"hold": true`: it finds out where it is, and '
        "can be resumed or led back. This one is then closed.",
        since=now,
    )
