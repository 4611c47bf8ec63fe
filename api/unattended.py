"""Of a migration that tells no wait: whether anybody leads it. Who is gone writes nothing down: Temporal knows."""

from datetime import UTC, datetime, timedelta

from api.pending import untaken
from api.temporal import Temporal, TemporalRefused, TemporalUnavailable
from domain.blocker_codes import CODES, NO_WORKER, PROGRAM_OF, TEMPORAL_UNAVAILABLE
from domain.records import ACTIVE_STATES, MigrationRecord, Waiting

SOON = timedelta(seconds=1)
"""Of an answer that mostly needs nothing of Temporal."""


async def waiting_of(temporal: Temporal, record: MigrationRecord) -> Waiting | None:
    """What the ledger says; else which program takes no task of the run, or that Temporal does not say."""
    if record.progress.waiting is not None or record.progress.state not in ACTIVE_STATES:
        return record.progress.waiting
    now = datetime.now(UTC)
    try:
        task = await untaken(temporal, record, now, SOON)
    except TemporalUnavailable as error:
        return _wait(TEMPORAL_UNAVAILABLE, now, "Temporal", str(error))
    except TemporalRefused:  # there is no such run yet, or no more: that is told by what brings it back
        return None
    if task is None:
        return None
    program = PROGRAM_OF.get(task.queue, task.queue)
    return _wait(NO_WORKER, task.due_at, program, f"{task.what} waits on task queue {task.queue}, and nobody takes it")


def _wait(reason: str, since: datetime, who: str, said: str) -> Waiting:
    detail = f"{said}. What keeps it from that, and what to do, is among the blockers."
    return Waiting(reason=reason, means=CODES[reason], since=since, objects=(who,), detail=detail, for_people=True)
