"""Health rows of worker processes. On both databases."""

from datetime import UTC, datetime, timedelta

from domain.worker_health import KEPT, WorkerHealth
from ledger.ledger import SqlLedger

NOW = datetime.now(UTC)
WORKER = WorkerHealth(
    id="1",
    program="keeperless-activities",
    host="kafka-1",
    pid=7,
    release="0.1.0",
    settings_fingerprint="abc",
    started_at=NOW - timedelta(minutes=5),
    beat_at=NOW,
)


async def test_a_beat_takes_the_place_of_the_one_before(ledger: SqlLedger) -> None:
    await ledger.beat(WORKER)
    assert await ledger.workers() == [WORKER]
    told = {"beat_at": NOW + timedelta(seconds=5), "last_error": "NUL is no text: é", "last_error_at": NOW, "stopped_at": NOW}
    newer = WORKER.model_copy(update=told)
    await ledger.beat(newer)
    assert await ledger.workers() == [newer]


async def test_the_newest_beat_comes_last(ledger: SqlLedger) -> None:
    older = WORKER.model_copy(update={"id": "2", "beat_at": NOW - timedelta(minutes=1)})
    for worker in (WORKER, older):
        await ledger.beat(worker)
    assert await ledger.workers() == [older, WORKER]


async def test_a_new_process_removes_the_rows_of_those_silent_for_a_day(ledger: SqlLedger) -> None:
    silent = WORKER.model_copy(update={"id": "2", "beat_at": NOW - KEPT - timedelta(minutes=1)})
    await ledger.beat(silent)
    assert await ledger.workers() == [], "it says nothing any more"
    await ledger.beat(WORKER)
    assert await ledger.workers() == [WORKER]
    assert await count(ledger) == 1


async def count(ledger: SqlLedger) -> int:
    """Rows, also those that are not told any more."""
    ledger._now = lambda: NOW - 10 * KEPT
    return len(await ledger.workers())
