"""Why nothing happens: what a worker finds in the cluster, what the ledger knows, and what Temporal says of our own processes.

Each of the three may be missing, and then says so as an entry: an answer that names the missing part is what was asked for.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import structlog
from pydantic import Field

from api.answers import Outgoing
from api.changes import changed_here
from api.observing import NoWorker, ObservationFailed, blockers
from api.pending import RunSeen, run_seen
from api.pollers import Poller, last_poller, refusal, signs_of
from api.temporal import Temporal, TemporalRefused, TemporalUnavailable
from api.wiring import Wiring
from domain import standing
from domain.blocker import Blocker, blocker
from domain.contracts import TaskQueue
from domain.decisions import WaitReason
from domain.questions import BlockersSeen
from domain.records import ACTIVE_STATES, Command, Event, MigrationRecord, MigrationState
from domain.vital_signs import Sign, signed
from ledger.errors import RESTORE, LedgerDamaged, LedgerUnavailable

log = structlog.get_logger()

ANSWER_SECONDS = 14.5
"""For all that is looked up: who asks gets an answer within fifteen."""
NO_TROUBLE = frozenset({standing.APPROVAL, WaitReason.HELD, WaitReason.SOAK_NOT_OVER})
"""What waits for people, or for time."""
PAGE = 1000
"""Events read at a time."""


class BlockersAnswer(Outgoing):
    """Why nothing happens: one entry for each cause. None, and nothing is in the way.

    `observed_at`: when the cluster was looked at; `null` where no worker could, or the migration has ended. `unlooked`: what
    could not be looked up for this answer, so that a cause may be missing.
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
        items = standing.of_refused(record) if record.progress.state is MigrationState.REFUSED else ()
        return _answer(record, None, items)
    try:
        return await _find(wiring, record, datetime.now(UTC))
    except LedgerDamaged as error:
        return _answer(record, None, [_of_ledger(error, "it can be read", datetime.now(UTC))])


async def _find(wiring: Wiring, record: MigrationRecord, now: datetime) -> BlockersAnswer:
    events = await _events(wiring, record.id)
    until = asyncio.get_running_loop().time() + ANSWER_SECONDS
    looked, (run, unled), unwritable = await asyncio.gather(
        _look(wiring.temporal, record, events, now, until),
        _run(wiring.temporal, record, now, until),
        _unwritable(wiring, record, now),
    )
    seen = looked if isinstance(looked, BlockersSeen) else None
    commands = await wiring.ledger.commands(record.id)
    known = [*_known(record, seen, run, events, commands, now), *([unled] if unled is not None else [])]
    own = [entry for entry in (unwritable, looked) if isinstance(entry, Blocker)]
    found = [*(seen.blockers if seen is not None else ()), *own, *known]
    unlooked = list(seen.unlooked) if seen is not None else []
    if any(entry.code not in NO_TROUBLE for entry in found):
        if seen is not None:
            found += seen.changed
        else:
            changed, why_not = await changed_here(wiring, record, now, until)
            found += [changed] if changed is not None else []
            unlooked += [why_not] if why_not else []
    return _answer(record, seen, _once(found), unlooked)


def _answer(
    record: MigrationRecord, seen: BlockersSeen | None, items: Sequence[Blocker], unlooked: Sequence[str] = ()
) -> BlockersAnswer:
    return BlockersAnswer(
        migration_id=record.id,
        state=record.progress.state,
        phase=(seen.phase if seen is not None else None) or record.progress.phase,
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
) -> Iterator[Blocker]:
    if run.is_running is not False:  # else nobody is left to take an answer
        yield from standing.of_waiting(record, frozenset(seen.explained) if seen is not None else None, events)
    yield from (alert for alert in record.progress.alerts if alert.code == "GF15")
    yield from standing.of_run(run.is_running, run.ended, record, now)
    yield from standing.of_tasks(run.tasks, now)
    if record.progress.waiting is None:
        yield from standing.of_steps(events)
    if run.is_led:
        yield from standing.of_commands(commands, now)


def _once(found: Sequence[Blocker]) -> list[Blocker]:
    """Of those with one code and one object the first."""
    return list({(entry.code, entry.object): entry for entry in reversed(found)}.values())[::-1]


WORKS_NOT = (
    "It runs, and cannot work, mostly for its database: locked by a backup or by another process, full, out of connections, "
    "not to be reached. Mend that; Temporal's own log has more. Nothing is lost meanwhile: migrations go on where they stood."
)


def _in_hand(events: Sequence[Event], record: MigrationRecord, now: datetime) -> standing.InHand | None:
    """The step that works on nodes, as long as their stop and their start may take."""
    step = standing.in_hand(events)
    if step is None or now - step.began_at > record.policy.stop_deadline + record.policy.restart_deadline:
        return None
    return step


async def _events(wiring: Wiring, migration_id: str) -> list[Event]:
    found: list[Event] = []
    while page := await wiring.ledger.events(migration_id, found[-1].seq if found else 0, PAGE):
        found += page
        if len(page) < PAGE:
            break
    return found


async def _run(temporal: Temporal, record: MigrationRecord, now: datetime, until: float) -> tuple[RunSeen, Blocker | None]:
    """What Temporal says of the run, and the entry of the worker that is missing."""
    run = await run_seen(temporal, record)
    if run.is_led:
        tasks = await asyncio.gather(*(_with_signs(task, now, until) for task in run.tasks))
        return run.model_copy(update={"tasks": tuple(tasks)}), None
    unled = "nobody answers a question to the migration's workflow"
    return run, await _missing(temporal, TaskQueue.MIGRATIONS, unled, now, until)


async def _with_signs(task: standing.PendingTask, now: datetime, until: float) -> standing.PendingTask:
    """Of what is in work for longer than most things take, what keeps its worker, where that can be seen from here in time."""
    if task.taken_at is None or now - task.taken_at < standing.UNTAKEN or not task.worker:
        return task
    signs: tuple[Sign, ...] = ()
    async with _in_time(until):
        signs = await signs_of(task.worker, TaskQueue(task.queue))
    return replace(task, signs=signs)


@asynccontextmanager
async def _in_time(until: float) -> AsyncIterator[None]:
    """For what is asked besides: what it lacks is not told, and a bug in it costs nobody the answer."""
    try:
        async with asyncio.timeout_at(until):
            yield
    except TimeoutError:
        pass
    except Exception:
        log.exception("a worker could not be looked at")


async def _look(
    temporal: Temporal, record: MigrationRecord, events: Sequence[Event], now: datetime, until: float
) -> BlockersSeen | Blocker:
    """What a worker finds, or the entry that says why none does."""
    try:
        return await blockers(temporal, record, _in_hand(events, record, now), standing.rolled(events))
    except NoWorker as error:
        took = "somebody took the task to look at the cluster, and has not come back: gone, or too busy"
        nobody = "nobody took the task to look at the cluster"
        return await _missing(temporal, TaskQueue.WATCH, took if error.was_taken else nobody, now, until)
    except ObservationFailed as error:
        return _unseen(standing.OBSERVATION_FAILED, "the look at the cluster", str(error), "a worker can look at it", now)
    except (TemporalUnavailable, TemporalRefused) as error:
        return await _without_temporal(temporal, error, now)


async def _without_temporal(temporal: Temporal, error: TemporalUnavailable | TemporalRefused, now: datetime) -> Blocker:
    """Asked for its namespace it names what it lacks, of anything else it may only say that it cannot."""
    try:
        await temporal.ping()
    except (TemporalUnavailable, TemporalRefused) as simplest:
        error = simplest
    seen = _unseen(standing.TEMPORAL_UNAVAILABLE, "Temporal", str(error), "it answers the API", now)
    return seen.model_copy(update={"fix": WORKS_NOT}) if isinstance(error, TemporalUnavailable) and error.said else seen


async def _unwritable(wiring: Wiring, record: MigrationRecord, now: datetime) -> Blocker | None:
    """What can be read may still be locked by somebody, or be a standby's. A migration that is held would not find out."""
    try:
        await wiring.ledger.prove_writable(record.id)
    except LedgerUnavailable as error:
        return _of_ledger(error, "migrations can write down what they do", now)
    return None


def _of_ledger(error: LedgerUnavailable, expected: str, now: datetime) -> Blocker:
    unseen = _unseen(standing.LEDGER_UNAVAILABLE, "the ledger", str(error), expected, now)
    return unseen.model_copy(update={"fix": RESTORE}) if isinstance(error, LedgerDamaged) else unseen


async def _missing(temporal: Temporal, queue: TaskQueue, observed: str, now: datetime, until: float) -> Blocker:
    """With who was there last, and what keeps it from its work where that can be seen from here, and in time."""
    poller: Poller | None = None
    signs: tuple[Sign, ...] = ()
    async with _in_time(until):
        poller, refused = await asyncio.gather(last_poller(temporal, queue), refusal(temporal))
        signs = (refused,) if refused is not None else ()
        signs += await signs_of(poller.identity, queue) if poller is not None else ()
    words = ". ".join([observed, *([poller.in_words(now)] if poller is not None else [])])
    return signed(standing.no_worker(queue, words, now), signs, standing.MOST_OBSERVED)


def _unseen(code: str, about: str, observed: str, expected: str, now: datetime) -> Blocker:
    fix = {
        standing.OBSERVATION_FAILED: "Mend what is named. The log of keeperless-activities has it whole.",
        standing.TEMPORAL_UNAVAILABLE: "Start Temporal, or make it reachable. Nothing is lost meanwhile: migrations go "
        "on where they stood.",
        standing.LEDGER_UNAVAILABLE: "Find who keeps its lock, and end that session: `fuser` on the file of SQLite, "
        "pg_stat_activity and pg_locks of PostgreSQL. Or it takes no writes: its file system is full or read-only, it is "
        "a standby (pg_is_in_recovery). Nothing is lost meanwhile: migrations go on where they stood.",
    }[code]
    return blocker(code, about, observed=observed, expected=expected, fix=fix, since=now)
