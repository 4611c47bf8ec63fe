"""Numbers over time: as many as a plot has room for, spread over the whole duration. On both databases."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from domain.records import EventDraft, Measured, MigrationRecord, MigrationState, Progress, Sample
from ledger.errors import NoSuchMigration
from ledger.ledger import SqlLedger
from ledger.samples import MOST, superfluous

BEGIN = datetime(2026, 3, 1, 3, 0, 0, 123456, tzinfo=UTC)


def sample(seconds: float, value: float | None = 0) -> Sample:
    numbers = (Measured(name="lag", value=value), Measured(name="state", value=1, says="MIGRATION"))
    return Sample(at=BEGIN + timedelta(seconds=seconds), numbers=numbers)


def running(of: Sample) -> Progress:
    return Progress(state=MigrationState.RUNNING, sample=of)


async def test_a_sample_is_kept_with_the_progress_once(ledger: SqlLedger, migration: MigrationRecord) -> None:
    for each in (sample(0), sample(0, 7), sample(1, None), sample(0.5)):
        await ledger.record(migration.id, [], running(each))
    await ledger.record(migration.id, [], Progress(state=MigrationState.RUNNING))
    assert await ledger.samples(migration.id) == [sample(0), sample(1, None)]
    assert await ledger.verify_chain() is None


async def test_what_is_recorded_late_adds_nothing(ledger: SqlLedger, migration: MigrationRecord) -> None:
    await ledger.record(migration.id, [], running(sample(1)), BEGIN)
    await ledger.record(migration.id, [], running(sample(0)), BEGIN - timedelta(hours=1))
    assert await ledger.samples(migration.id) == [sample(1)]


async def test_samples_cover_the_whole_duration_evenly(
    ledger: SqlLedger, migration: MigrationRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.samples.MOST", most := 40)
    count = 10 * most
    for second in range(count):
        await ledger.add_sample(migration.id, sample(second, second))
    kept = await ledger.samples(migration.id)
    seconds = [(one.at - BEGIN).total_seconds() for one in kept]
    gaps = [later - earlier for earlier, later in pairwise(seconds)]
    print(f"{count} samples, {len(kept)} kept, gaps from {min(gaps):g} to {max(gaps):g} s")
    assert most // 2 <= len(kept) <= most
    assert (seconds[0], seconds[-1]) == (0, count - 1)
    assert max(gaps) <= 3 * count / (most / 2)
    assert [one.numbers[0].value for one in kept] == seconds


def test_a_month_of_samples_fits_a_plot() -> None:
    """What is left of a full table has room for as many again, and both ends."""
    times = [BEGIN + timedelta(minutes=n) for n in range(MOST)]
    gone = superfluous(times)
    assert MOST // 2 <= MOST - len(gone) <= MOST // 2 + 2
    assert {times[0], times[-1]}.isdisjoint(gone)


async def test_an_ended_migration_takes_no_more(ledger: SqlLedger, migration: MigrationRecord) -> None:
    await ledger.add_sample(migration.id, sample(0))
    await ledger.record(migration.id, [], Progress(state=MigrationState.SUCCEEDED, sample=sample(1)))
    await ledger.add_sample(migration.id, sample(2))
    assert await ledger.samples(migration.id) == [sample(0), sample(1)]


async def test_two_writers_of_one_sample_leave_one(ledger: SqlLedger, migration: MigrationRecord) -> None:
    await asyncio.gather(*[ledger.add_sample(migration.id, sample(0)) for _ in range(4)])
    assert await ledger.samples(migration.id) == [sample(0)]


async def test_there_is_no_sample_of_nobodys_migration(ledger: SqlLedger) -> None:
    with pytest.raises(NoSuchMigration):
        await ledger.add_sample("no-such", sample(0))
    assert await ledger.samples("no-such") == []


async def test_the_newest_events_come_first(ledger: SqlLedger, migration: MigrationRecord) -> None:
    drafts = [EventDraft(key=f"k{n}", kind="held", cluster=migration.cluster, at=BEGIN, data={"n": n}) for n in range(5)]
    await ledger.record(migration.id, drafts, None)
    assert [event.data["n"] for event in await ledger.newest_events(migration.id, 2)] == [4, 3]
