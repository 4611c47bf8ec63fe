"""Notes of machines: of each the newest, for its migration. On both databases."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from domain.diagnosis.machines.notes import MachineNote
from domain.records import MigrationRecord, MigrationState, Progress
from ledger.errors import NoSuchMigration
from ledger.ledger import SqlLedger

NOTE = MachineNote(
    about="broker-1",
    at=datetime(2026, 3, 1, 3, 0, 0, 123456, tzinfo=UTC),
    identity="4711@99",
    facts={"mount": {"/data/été": "/dev/sdb (ext4), rw"}, "process": {"program": "NUL \0 in it"}},
)


async def test_the_newest_note_of_each_stands(ledger: SqlLedger, migration: MigrationRecord) -> None:
    assert await ledger.note(migration.id, "broker-1") is None
    assert await ledger.noted(migration.id) == {}
    await ledger.put_note(migration.id, NOTE)
    await ledger.put_note(migration.id, NOTE.model_copy(update={"about": "keeperless-activities", "identity": None}))
    assert await ledger.note(migration.id, "broker-1") == NOTE
    newer = NOTE.model_copy(update={"at": NOTE.at + timedelta(minutes=1), "identity": "4712@100"})
    await ledger.put_note(migration.id, newer)
    assert await ledger.note(migration.id, "broker-1") == newer
    assert await ledger.noted(migration.id) == {"broker-1": "4712@100", "keeperless-activities": None}
    assert await ledger.verify_chain() is None


async def test_notes_end_with_their_migration(ledger: SqlLedger, migration: MigrationRecord) -> None:
    await ledger.put_note(migration.id, NOTE)
    await ledger.record(migration.id, [], Progress(state=MigrationState.RUNNING))
    assert await ledger.note(migration.id, "broker-1") == NOTE
    await ledger.record(migration.id, [], Progress(state=MigrationState.SUCCEEDED))
    assert await ledger.noted(migration.id) == {}
    await ledger.put_note(migration.id, NOTE)
    assert await ledger.noted(migration.id) == {}


async def test_two_writers_leave_one_note(ledger: SqlLedger, migration: MigrationRecord) -> None:
    await asyncio.gather(*[ledger.put_note(migration.id, NOTE) for _ in range(4)])
    assert await ledger.note(migration.id, "broker-1") == NOTE


async def test_there_is_no_note_for_nobodys_migration(ledger: SqlLedger) -> None:
    with pytest.raises(NoSuchMigration):
        await ledger.put_note("no-such", NOTE)
    assert await ledger.note("no-such", "broker-1") is None
