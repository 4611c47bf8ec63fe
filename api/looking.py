"""Who looked, and by how much the clock of this machine is ahead of Temporal's: both are known of the look's own activity."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from api.observing import blockers_id
from api.temporal import CALL_LIMIT, Temporal, TemporalRefused, TemporalUnavailable


@dataclass(frozen=True)
class Looker:
    """`by`: the worker that took it, empty where none did. `ahead`: at most; nothing where it is not known, or behind."""

    by: str = ""
    ahead: timedelta = timedelta(0)


async def looker_of(temporal: Temporal, migration_id: str, asked_at: datetime, answered_at: datetime | None) -> Looker:
    """Of the newest look, asked for and answered by our clock: it came to Temporal after the one, and ended before the other.
    Who asks while it is under way came later than it did: so it takes both to know. Nothing without an answer.
    """
    with suppress(TemporalRefused, TemporalUnavailable):
        async with temporal.answering() as client:
            seen = await client.get_activity_handle(blockers_id(migration_id)).describe()
        if seen.close_time is None or answered_at is None:
            return Looker(seen.last_worker_identity or "")
        ahead = min(answered_at - seen.close_time, asked_at + CALL_LIMIT - seen.schedule_time)
        return Looker(seen.last_worker_identity or "", max(ahead, timedelta(0)))
    return Looker()
