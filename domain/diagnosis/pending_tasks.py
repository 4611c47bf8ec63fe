"""Causes that lie in what Temporal says of tasks: who takes none, what is paused or put off, and clocks that disagree. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from domain.amounts import counted
from domain.clocks import AHEAD, is_ahead, is_over
from domain.contracts import PROGRAM_OF, TaskQueue
from domain.diagnosis.blocker import MACHINE, MOST_OBSERVED, NO_WORKER, PAUSED, SLOW_ACTIVITY, STEP_FAILING, Blocker, blocker
from domain.diagnosis.machines.signs import signed
from domain.diagnosis.machines.vital_signs import Sign
from domain.records import Event, Waiting

UNTAKEN = timedelta(seconds=5)
"""How long a task may lie before nobody is there to take it. A busy worker takes one within moments."""

SILENT = timedelta(seconds=10)
"""A worker that is at a task says so every seven seconds at the latest."""

MOST_TOLD = 4
"""Of tasks in work."""

STANDS = timedelta(minutes=2)
"""How long an attempt may be at one and the same before it is told what that is."""

STANDS_QUIETLY = timedelta(seconds=8)
"""The same where nothing else is known that would be in the way."""

WORKING = frozenset({TaskQueue.CLUSTER, TaskQueue.CHECKS})
"""Queues of tasks that come to an end soon, as a rule."""

OF_CHECKS = (
    "Check what it works on. If the checks run on a Spark server of yours, check whether it accepts the session and has "
    "free executors (its web UI; KEEPERLESS_SPARK=off in the environment of {0}, and a restart of it, compares without "
    "Spark). Check the disk and CPU of {0}, and its log. If it reads or compares much, let it. Restarting that program "
    "begins it again, and costs only time."
)
OF_EFFECTS = (
    "Wait a moment: it ends by itself, or is given up and reported. If it lasts, see there what it has started (`ps "
    "--forest` below {0}), and what that waits for."
)

SETTLED = timedelta(seconds=20)
"""An attempt that has been in work for so long goes well so far, whatever the one before came to."""

LONGEST_PAUSE = timedelta(seconds=30)
"""Between two attempts at an activity: 15 s, and what Temporal and its clock add."""

RESET = "`temporal activity reset {} --restore-original-options`"
"""It runs at once what is between two attempts, and hands out anew what nobody has."""


@dataclass(frozen=True)
class PendingTask:
    """What Temporal says of one activity of the run, or of its workflow task.

    `begun_at`: since when it is so; of what is between two attempts, when the last one ended. `due_at`: from when on this
    attempt could be taken. `taken_at`: since when it is in work, at `worker`; `None` while it is not. `heard_at`: when that
    worker said last that it is at it; `None` where it need not. `signs`: what keeps workers from it. `at`: what that worker
    said last that it is at, and `at_since` since when; empty and `None` where it does not say. `error`: of the last attempt;
    empty where that was the loss of a worker. `paused`: by whom and why; empty where it is not. `fix`: where there is a better
    one than that of all such tasks. `named`: an activity, as Temporal's command line wants it. `asked_by`: who asks for tasks
    there since it could be taken, and is not given it; empty where nobody does. `last_asked`: who has asked there last, as a
    sentence without a stop; empty where that is not known. `has_run_out`: the attempt before ran out of its time, so that this
    one may be in work for long and yet not go well.
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
    last_asked: str = ""
    has_run_out: bool = False


def of_tasks(tasks: Sequence[PendingTask], now: datetime) -> Iterator[Blocker]:
    """Tasks that nobody takes, one entry for each program that is missing; what is paused; what fails again and again."""
    missing: dict[str, PendingTask] = {}
    for task in tasks:
        is_in_work = task.taken_at is not None and now - task.taken_at > SETTLED and not task.has_run_out
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
        elif task.heard_at is not None and is_silent(task, now):
            yield _silent(task, now - task.heard_at)
        elif (standing := _standing_still(task, now, STANDS)) is not None:
            yield standing
        elif task.error and task.attempt > 1 and not is_in_work:
            yield blocker(
                STEP_FAILING,
                task.what,
                observed=f"attempt {task.attempt}; the last one failed: {task.error}"[:MOST_OBSERVED],
                expected="it succeeds",
                fix=task.fix or "It is retried by itself. Fix what the error names; the Temporal UI has the whole error.",
                since=task.begun_at,
            )
    for task in missing.values():
        said = f". The attempt before failed: {task.error}" if task.error else ""
        heard = f". {task.last_asked}" if task.last_asked else ""
        entry = no_worker(task.queue, f"{task.what} waits there for a worker{said}{heard}", task.due_at)
        yield signed(entry, task.signs, MOST_OBSERVED)


def of_standing(tasks: Sequence[PendingTask], now: datetime) -> Iterator[Blocker]:
    """What attempts are at for a moment longer than usual: to be told only where nothing else is found."""
    for task in tasks:
        if (entry := _standing_still(task, now, STANDS_QUIETLY) or _wordless(task, now)) is not None:
            yield entry.model_copy(update={"fix": f"Nothing is known to be wrong, and all may be well. {entry.fix}"})


def is_untaken(task: PendingTask, now: datetime, patience: timedelta | None = None) -> bool:
    """Whether it lies there for too long. An attempt after another may be due later: Temporal pauses before it."""
    is_due = task.attempt == 1 or task.due_at <= now
    return task.taken_at is None and is_due and is_over(task.due_at, now, UNTAKEN if patience is None else patience)


def is_silent(task: PendingTask, now: datetime) -> bool:
    """Whether who is at it has not said so for too long."""
    return task.heard_at is not None and now - task.heard_at > SILENT


def _kept_by_temporal(task: PendingTask, now: datetime) -> Blocker | None:
    """Of an activity that is not given to who asks, or comes later than ours ever do: not only by a clock that was set back."""
    is_between = task.taken_at is None and task.attempt > 1 and task.due_at - now > UNTAKEN
    if is_between and task.due_at - task.begun_at > LONGEST_PAUSE:
        return _put_off(task, now)
    return _not_given(task) if task.asked_by and is_untaken(task, now) else None


def _put_off(task: PendingTask, now: datetime) -> Blocker:
    pause, left = _in_words(task.due_at - task.begun_at), _in_words(task.due_at - now)
    failed = f"failed: {task.error}" if task.error else "has failed, and Temporal no longer shows at what"
    return blocker(
        STEP_FAILING,
        task.what,
        observed=f"attempt {task.attempt} is due at {task.due_at:%H:%M:%S} UTC, in {left}: Temporal pauses for {pause}, "
        f"because this activity's options were changed. The last one {failed}"[:MOST_OBSERVED],
        expected="it is retried within 15 s",
        fix=f"{RESET.format(task.named)} runs it now, and restores its own pauses. Before that, fix its failure if it still "
        f"exists; the log of {PROGRAM_OF.get(task.queue, task.queue)} has it too.",
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
        observed=f"no worker has it since {task.due_at:%H:%M:%S} UTC, although {task.asked_by} polls task queue "
        f"{task.queue}, and is not given it{said}"[:MOST_OBSERVED],
        expected="Temporal gives it to a worker that polls",
        fix="Do not restart a worker for this. If it lasts longer than ten seconds, Temporal has lost the task, as it may "
        f"when it or its database was restarted or restored: {RESET.format(task.named)} hands it out again.",
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
        f"The worker there is alive, and has {counted(len(told), 'task')} in work: {'; '.join(told[:MOST_TOLD])}",
        "Do not restart it for this. If it has as many tasks in work as it takes at the same time (KEEPERLESS_MAX_EFFECTS "
        "of keeperless-activities, 8 by default; keeperless-checks takes 4), it takes the next when one of them ends. Fix "
        "what those wait for, which the blockers of their migrations show, or raise the limit.",
        is_cure=True,
    )


def _silent(task: PendingTask, since: timedelta) -> Blocker:
    taken = f"{task.worker} has taken {task.what}, and has not reported for {since.total_seconds():.0f} s by this clock"
    return no_worker(task.queue, taken, task.heard_at or task.due_at)


def _standing_still(task: PendingTask, now: datetime, limit: timedelta) -> Blocker | None:
    """At one and the same for longer than that, it lives, and works or waits for something: only the other side of that could
    tell which."""
    since = task.at_since
    if task.taken_at is None or since is None or not is_over(since, now, limit):
        return None
    program = PROGRAM_OF.get(task.queue, task.queue)
    last = f". The attempt before failed: {task.error}" if task.error else ""
    return blocker(
        SLOW_ACTIVITY,
        task.what,
        observed=f"it has reported the same for {(now - since).total_seconds():.0f} s: {task.at}{last}"[:MOST_OBSERVED],
        expected=f"{program} makes progress with it",
        fix=(OF_CHECKS if task.queue == TaskQueue.CHECKS else OF_EFFECTS).format(program),
        since=since,
    )


def _wordless(task: PendingTask, now: datetime) -> Blocker | None:
    """Of an attempt that does not say what it is at, whatever hangs would never show. A watch is in work for hours."""
    if task.at_since is not None or task.taken_at is None or task.queue not in WORKING:
        return None
    entry = _standing_still(replace(task, at="it does not report at what", at_since=task.taken_at), now, STANDS)
    lasts = f"in work for {(now - task.taken_at).total_seconds():.0f} s: it does not report at what"
    return entry.model_copy(update={"observed": lasts}) if entry is not None else None


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
            observed=f"recorded events have the time {latest:%Y-%m-%d %H:%M:%S} UTC, which by the clock of the API is "
            f"{(latest - now).total_seconds():.0f} s ahead: a clock was set back, or that of one machine is wrong",
            expected="clocks that agree, and never go back",
            fix="Compare them (`timedatectl`, `chronyc tracking`), and correct the one that is wrong. What waits by an "
            "earlier time (a retry, a pause, the limit after which a lost worker is missed) continues by itself at "
            f"{latest:%H:%M:%S} UTC by Temporal's clock. Restarting workers or Temporal changes nothing: times are kept "
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
            fix="Compare both with a third one (`timedatectl`, `chronyc tracking`), and correct the one that is wrong. "
            "Until then times that the API records are off by that much; migrations use Temporal's.",
            since=now,
        )


def no_worker(queue: str, observed: str, since: datetime, *, was_taken: bool = False) -> Blocker:
    """`was_taken`: the worker lives, and does not come to the end of what it took."""
    program = PROGRAM_OF.get(queue, queue)
    hangs = (
        f"Check the machine of that {program}: files and disks that hang (`ps -eo pid,stat,wchan:32,cmd | grep ' D'`), "
        "its load (top), and its log. Start it only if no process of it is left."
    )
    start = f"Start {program}. If it runs, its log shows why it does not reach Temporal, or what it is busy with."
    return blocker(
        NO_WORKER,
        f"task queue {queue}",
        observed=observed,
        expected=f"{program} {'finishes what it takes' if was_taken else 'takes the tasks there'}",
        fix=hangs if was_taken else start,
        since=since,
    )
