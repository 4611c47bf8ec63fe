"""Of a migration that tells no wait: whether anybody leads it. Who is gone writes nothing down: Temporal knows."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from api.diagnosis.pending import tasks_of
from api.running.temporal import Temporal, TemporalRefused, TemporalUnavailable
from domain.contracts import PROGRAM_OF
from domain.diagnosis.blocker import CODES, NO_WORKER, TEMPORAL_UNAVAILABLE
from domain.diagnosis.pending_tasks import PendingTask, is_silent, is_untaken
from domain.records import ACTIVE_STATES, MigrationRecord, Waiting

SOON = timedelta(seconds=1)
"""Of an answer that mostly needs nothing of Temporal."""
REMEMBERED = timedelta(seconds=30)
"""Since it was told last. Temporal hands out anew what nobody has taken, as if it had just come."""
MOST_REMEMBERED = 1000
AGAIN = timedelta(seconds=1)
"""How long a task lies that is one more of who was gone a moment ago."""


@dataclass(frozen=True)
class _Told:
    """Who was told to be gone, since when, and when that was told last."""

    who: str
    since: datetime
    at: datetime


class Unattended:
    """Keeps in mind who was gone, so that this is told as one wait and not as many."""

    def __init__(self, temporal: Temporal) -> None:
        self._temporal = temporal
        self._told: dict[str, _Told] = {}

    async def waiting_of(self, record: MigrationRecord) -> Waiting | None:
        """What the ledger says; else which program takes no task of the run, or is silent, or that Temporal does not answer."""
        if record.progress.waiting is not None or record.progress.state not in ACTIVE_STATES:
            self._told.pop(record.id, None)
            return record.progress.waiting
        now = datetime.now(UTC)
        try:
            tasks = await tasks_of(self._temporal, record, SOON)
        except TemporalUnavailable as error:
            return self._wait(record.id, TEMPORAL_UNAVAILABLE, now, now, "Temporal", str(error))
        except TemporalRefused:  # there is no such run yet, or no more: that is told by what brings it back
            return None
        lying = [task for task in tasks if self._lies(record.id, task, now)]
        if not lying:
            return None
        task = min(lying, key=_since)
        said = f"{task.what} waits on task queue {task.queue}, and no worker takes it"
        if task.heard_at is not None:
            said = f"{task.worker} has taken {task.what}, and has not reported since {task.heard_at:%H:%M:%S} UTC"
        return self._wait(record.id, NO_WORKER, _since(task), now, _program(task), said)

    def _lies(self, migration_id: str, task: PendingTask, now: datetime) -> bool:
        """Of a program that was gone a moment ago a task need not lie for long."""
        before = self._before(migration_id, now)
        is_gone_still = before is not None and before.who == _program(task) and is_untaken(task, now, AGAIN)
        return is_gone_still or is_untaken(task, now) or is_silent(task, now)

    def _before(self, migration_id: str, now: datetime) -> _Told | None:
        told = self._told.get(migration_id)
        return told if told is not None and now - told.at <= REMEMBERED else None

    def _wait(self, migration_id: str, reason: str, since: datetime, now: datetime, who: str, said: str) -> Waiting:
        before = self._before(migration_id, now)
        since = min(since, before.since) if before is not None and before.who == who else since
        if migration_id not in self._told and len(self._told) >= MOST_REMEMBERED:
            self._told.clear()
        self._told[migration_id] = _Told(who, since, now)
        detail = f"{said}. The blockers name the cause, and what to do."
        return Waiting(reason=reason, means=CODES[reason], since=since, objects=(who,), detail=detail, for_people=True)


def _program(task: PendingTask) -> str:
    return PROGRAM_OF.get(task.queue, task.queue)


def _since(task: PendingTask) -> datetime:
    return task.heard_at or task.due_at
