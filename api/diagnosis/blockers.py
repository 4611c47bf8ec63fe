"""Why nothing happens: what a worker finds in the cluster, what the ledger knows, and what Temporal says of our own processes.

Each of the three may be missing, and then says so as an entry: an answer that names the missing part is what was asked for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

from pydantic import Field

from api.answers.outgoing import Outgoing
from api.diagnosis.missing_workers import heard_of, in_time, missing, unserved_queue, workers_of
from api.diagnosis.pending import RunSeen, run_seen
from api.diagnosis.pollers import Poller, machines_of
from api.diagnosis.temporal_causes import without_temporal
from api.diagnosis.temporal_proxy import asking, is_unanswered, of_proxy, silent_for_all
from api.running.observing import NoWorker, ObservationFailed, Observer, blockers, observer_of
from api.running.temporal import TemporalRefused, TemporalUnavailable
from api.wiring import Wiring
from domain.clocks import is_over
from domain.contracts import PROGRAM_OF, ActivityName, TaskQueue
from domain.diagnosis import pending_tasks, recorded_causes, refused_steps
from domain.diagnosis.blocker import (
    APPROVAL,
    LEDGER_UNAVAILABLE,
    NO_WORKER,
    OBSERVATION_FAILED,
    SLOW_ACTIVITY,
    TEMPORAL_UNAVAILABLE,
    Blocker,
    blocker,
)
from domain.diagnosis.causes.case import USUAL_RESTART
from domain.diagnosis.pending_tasks import PendingTask
from domain.diagnosis.refused_steps import Tries
from domain.questions import BlockersSeen
from domain.records import ACTIVE_STATES, Command, Event, MigrationRecord, MigrationState
from domain.waits import WaitReason
from domain.worker_health import ended_lately, of_unlike_copies
from ledger.errors import LedgerUnavailable

Row = TypeVar("Row", Event, Command)


ANSWER_SECONDS = 14.5
"""For all that is looked up: who asks gets an answer within fifteen."""
NO_TROUBLE = frozenset({APPROVAL, SLOW_ACTIVITY, WaitReason.HELD, WaitReason.SOAK_NOT_OVER})
"""What waits for people, or for time, or has much to do."""
AS_NEW = timedelta(seconds=5)
"""What was begun no longer than that before a look may have come while that was at it."""
PAGE = 1000
"""Events read at a time."""


class BlockersAnswer(Outgoing):
    """Why nothing happens: one entry for each cause. None, and nothing is in the way.

    `phase`: as the migration has it; before it has one, as this observation does. `observed_at`: when the cluster was observed;
    `null` where no worker could, or the migration has ended. `unlooked`: what could not be looked up for this answer, so that a
    cause may be missing.
    """

    migration_id: str
    state: MigrationState
    phase: str | None
    observed_at: datetime | None
    items: list[Blocker]
    unlooked: list[str] = Field(description="Parts of the search that gave no answer.")


async def find(wiring: Wiring, record: MigrationRecord) -> BlockersAnswer:
    """The answer, in whatever state the migration is."""
    if record.progress.state not in ACTIVE_STATES:
        items = recorded_causes.of_refused(record) if record.progress.state is MigrationState.REFUSED else ()
        return _answer(record, None, items)
    now, until = datetime.now(UTC), asyncio.get_running_loop().time() + ANSWER_SECONDS
    (events, untold), (commands, unasked) = await asyncio.gather(
        _read(partial(_events, wiring, record.id), now), _read(partial(wiring.ledger.commands, record.id), now)
    )
    (looked, observer), (run, unled, both), unwritable, askers, workers = await asyncio.gather(
        _looked(wiring, record, events, now, until),
        _run(wiring, record, now, until),
        _unwritable(wiring, record, now),
        _askers(wiring),
        workers_of(wiring),
    )
    between = [of_proxy(both, wiring.temporal.address, now)] if both and is_unanswered(looked, run, now) else []
    if between:
        unled, run = None, silent_for_all(run, now)
    seen = looked if isinstance(looked, BlockersSeen) else None
    asked = recorded_causes.of_commands(commands, now, wiring.courier.unsent) if run.is_led else ()
    written = _known(record, seen, run, events, commands, now, observer.ahead, is_mute=unwritable is not None)
    known = [*written, *asked, *([unled] if unled is not None else [])]
    own = [entry for entry in (untold, unasked, unwritable, looked) if isinstance(entry, Blocker)]
    own = [entry for entry in own if not between or entry.code != NO_WORKER]
    # Nobody is missing where the API asks in the wrong place: that it may comes first.
    told = [*known, *own] if run.unserved else [*own, *known]
    found = [*between, *(seen.blockers if seen is not None else ()), *told]
    is_hanging = False
    if not found and seen is not None:
        found = [*seen.late] or await _awaited_since(wiring, record, seen, events, now)
        found = found or await _refused_just_now(wiring, record, events, now, until)
        if not found and not _is_restarting(events, now):
            found = [*pending_tasks.of_standing(run.tasks, now - observer.ahead)]
            # A comparison may well take its time: nothing that has changed anywhere is told with that.
            is_hanging = any(entry.object != ActivityName.RUN_CHECK for entry in found)
    unlooked = list(seen.unlooked) if seen is not None else []
    if is_hanging or any(entry.code not in NO_TROUBLE for entry in found):
        machines = [poller.identity for poller in machines_of(askers).values()]
        ended = ended_lately(workers, PROGRAM_OF[TaskQueue.CLUSTER], now)
        found = [*recorded_causes.of_machines(machines, observer.by, now), *recorded_causes.of_restarts(ended, now), *found]
        found += [*(seen.changed if seen is not None else ()), *of_unlike_copies(workers, now)]
    return _answer(record, seen, _once(found), unlooked)


async def _awaited_since(
    wiring: Wiring, record: MigrationRecord, seen: BlockersSeen, events: Sequence[Event], now: datetime
) -> list[Blocker]:
    """Of a look that found nothing: what the migration has begun to wait for since, or so shortly before that it knows more."""
    try:
        newest = await wiring.ledger.migration(record.id) or record
    except LedgerUnavailable:  # which is an entry of its own the next time
        newest = record
    waiting = newest.progress.waiting
    if waiting is None or waiting.since < seen.observed_at - AS_NEW:
        return []
    return [*recorded_causes.of_waiting(newest, None, events, now)]


async def _refused_just_now(
    wiring: Wiring, record: MigrationRecord, events: Sequence[Event], now: datetime, until: float
) -> list[Blocker]:
    """By what was written down since the look that found nothing, too, as far as there is time for it."""
    if record.progress.waiting is not None:
        return []
    newer: list[Event] = []
    async with in_time(until):
        newer, _ = await _read(partial(_events, wiring, record.id, events[-1].seq if events else 0), now)
    tries = Tries(record.policy.poll_interval, is_clear=True)
    return [*refused_steps.of_any_refusal([*events, *newer], datetime.now(UTC), tries)]


def _answer(
    record: MigrationRecord, seen: BlockersSeen | None, items: Sequence[Blocker], unlooked: Sequence[str] = ()
) -> BlockersAnswer:
    return BlockersAnswer(
        migration_id=record.id,
        state=record.progress.state,
        phase=record.progress.phase or (seen.phase if seen is not None else None),
        observed_at=seen.observed_at if seen is not None else None,
        items=list(items),
        unlooked=list(unlooked),
    )


def _known(
    record: MigrationRecord,
    seen: BlockersSeen | None,
    run: RunSeen,
    events: Sequence[Event],
    commands: Sequence[Command],
    now: datetime,
    ahead: timedelta,
    *,
    is_mute: bool,
) -> Iterator[Blocker]:
    if run.is_running is not False:  # else nobody is left to take an answer
        explained = frozenset(seen.explained) if seen is not None else None
        yield from recorded_causes.of_waiting(record, explained, events, now, commands, is_mute=is_mute)
    yield from (alert for alert in record.progress.alerts if alert.code == "GF15")
    yield from recorded_causes.of_run(run.is_running, recorded_causes.set_back(events) or run.ended, record, now, run.unserved)
    yield from pending_tasks.of_tasks(run.tasks, now - ahead)
    yield from pending_tasks.of_clock_here(ahead, now)
    yield from pending_tasks.of_clock(events, record.progress.waiting, run.tasks, now)
    if record.progress.waiting is None:
        is_clear = seen is not None and not seen.blockers
        yield from refused_steps.of_steps(events, now, Tries(record.policy.poll_interval, is_clear))


def _once(found: Sequence[Blocker]) -> list[Blocker]:
    """Of those with one code and one object the first."""
    return list({(entry.code, entry.object): entry for entry in reversed(found)}.values())[::-1]


def _in_hand(events: Sequence[Event], record: MigrationRecord, now: datetime) -> recorded_causes.InHand | None:
    """The step that works on nodes, as long as their stop and their start may take."""
    step = recorded_causes.in_hand(events)
    if step is None or is_over(step.began_at, now, record.policy.stop_deadline + record.policy.restart_deadline):
        return None
    return step


def _is_restarting(events: Sequence[Event], now: datetime) -> bool:
    """Whether a step works on nodes for no longer than a restart usually takes."""
    step = recorded_causes.in_hand(events)
    usual = max(USUAL_RESTART, timedelta(seconds=recorded_causes.longest_restart(events)))
    return step is not None and not is_over(step.began_at, now, usual)


async def _read(read: Callable[[], Awaitable[list[Row]]], now: datetime) -> tuple[list[Row], Blocker | None]:
    """What the ledger has, or nothing and the entry that says why: what else is found needs no ledger."""
    try:
        return await read(), None
    except LedgerUnavailable as error:
        return [], _of_ledger(error, "it can be read", now)


async def _events(wiring: Wiring, migration_id: str, after: int = 0) -> list[Event]:
    """Those with a number above `after`."""
    found: list[Event] = []
    while page := await wiring.ledger.events(migration_id, found[-1].seq if found else after, PAGE):
        found += page
        if len(page) < PAGE:
            break
    return found


async def _run(wiring: Wiring, record: MigrationRecord, now: datetime, until: float) -> tuple[RunSeen, Blocker | None, str]:
    """What Temporal says of the run, and where nobody leads it the entry of the worker that is missing, and who asks although
    nothing of them comes."""
    run = await run_seen(wiring.temporal, record)
    if run.is_led:
        tasks = await asyncio.gather(*(_with_signs(wiring, task, now, until) for task in run.tasks))
        return replace(run, tasks=tuple(tasks)), None, ""
    unled = "no worker answers a query to the migration's workflow"
    entry, both = await asyncio.gather(missing(wiring, TaskQueue.MIGRATIONS, unled, now, until), asking(wiring, until))
    return run, entry, both


async def _with_signs(wiring: Wiring, task: PendingTask, now: datetime, until: float) -> PendingTask:
    """What is known in time of the workers of a queue on which it lies for longer than most things do."""
    if task.queue not in set(TaskQueue) or task.paused or not pending_tasks.is_untaken(task, now):
        return task
    absence = await unserved_queue(wiring, TaskQueue(task.queue), now, until, task.due_at)
    asked = absence.asked_since(task.due_at)
    return replace(task, signs=absence.signs, asked_by=asked, last_asked=". ".join(absence.words))


async def _looked(
    wiring: Wiring, record: MigrationRecord, events: Sequence[Event], now: datetime, until: float
) -> tuple[BlockersSeen | Blocker, Observer]:
    asked_at = datetime.now(UTC)
    looked = await _look(wiring, record, events, now, until)
    observer = Observer()
    if isinstance(looked, BlockersSeen) or looked.code != TEMPORAL_UNAVAILABLE:
        async with in_time(until):
            answered_at = datetime.now(UTC) if isinstance(looked, BlockersSeen) else None
            observer = await observer_of(wiring.temporal, record.id, asked_at, answered_at)
    return looked, observer


async def _askers(wiring: Wiring) -> list[Poller]:
    """Who has asked lately for tasks that have to be done on the machine of the nodes."""
    heard = await asyncio.gather(*(heard_of(wiring, queue) for queue in (TaskQueue.CLUSTER, TaskQueue.WATCH)))
    return [poller for pollers in heard if isinstance(pollers, tuple) for poller in pollers]


async def _look(
    wiring: Wiring, record: MigrationRecord, events: Sequence[Event], now: datetime, until: float
) -> BlockersSeen | Blocker:
    """What a worker finds, or the entry that says why none does."""
    try:
        step, restart_seconds = _in_hand(events, record, now), recorded_causes.longest_restart(events)
        return await blockers(wiring.temporal, record, step, recorded_causes.rolled(events), restart_seconds)
    except NoWorker as error:
        took = "a worker took the task to observe the cluster, and has not returned"
        nobody = "no worker took the task to observe the cluster"
        observed = took if error.was_taken else nobody
        return await missing(wiring, TaskQueue.WATCH, observed, now, until, was_taken=error.was_taken)
    except ObservationFailed as error:
        return blocker(
            OBSERVATION_FAILED,
            "the observation of the cluster",
            observed=str(error),
            expected="a worker can observe it",
            fix=error.fix,
            since=now,
        )
    except (TemporalUnavailable, TemporalRefused) as error:
        return await without_temporal(wiring.temporal, error, now)


async def _unwritable(wiring: Wiring, record: MigrationRecord, now: datetime) -> Blocker | None:
    """What can be read may still be locked by somebody, or be a standby's. A migration that is held would not find out.

    Asked twice: where much is written, or the machine is busy, a lock that is kept for a moment is no trouble.
    """
    for is_last in (False, True):
        try:
            await wiring.ledger.prove_writable(record.id)
        except LedgerUnavailable as error:
            if is_last:
                return _of_ledger(error, "migrations can record what they do", now)
        else:
            break
    return None


def _of_ledger(error: LedgerUnavailable, expected: str, now: datetime) -> Blocker:
    return blocker(LEDGER_UNAVAILABLE, "the ledger", observed=str(error), expected=expected, fix=error.fix, since=now)
