"""The schema: one way to create it, whoever comes first, and the same as the code believes."""

import asyncio
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect, make_url, text

import ledger
from domain.cluster import ClusterSpec
from domain.records import CommandKind, MigrationRecord, MigrationState, Progress
from ledger.database import DEFAULT_TIMEOUTS, Database, Timeouts, sync_engine
from ledger.errors import LedgerMisuse, LedgerUnavailable
from ledger.ledger import SqlLedger, open_ledger
from ledger.schema import ADVISORY_LOCK, SCRIPTS, _config, upgrade
from ledger.tables import clusters, metadata, migrations
from tests.conformance.conftest import is_current

NOW = datetime(2026, 3, 1, 3, 0, 0, tzinfo=UTC)

STARTS_ON_A_SIGN = """
import asyncio, sys
from datetime import UTC, datetime
from domain.records import EventDraft
from ledger.ledger import open_ledger

async def main(url, name):
    async with open_ledger(url) as ledger:
        await ledger.record_event(EventDraft(key=name, kind="started", cluster="orders", at=datetime.now(UTC)))

print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main(*sys.argv[1:]))
"""


async def test_it_is_current_after_an_upgrade_and_stays_so(database_url: str) -> None:
    if database_url.startswith("postgresql"):
        assert not is_current(database_url)
    for _ in range(2):
        await upgrade(database_url)
        assert is_current(database_url)


async def test_processes_that_start_at_once_on_an_empty_database(database_url: str) -> None:
    names = [f"process-{n}" for n in range(4)]
    processes = [await waiting_process(database_url, name) for name in names]
    try:
        for process in processes:
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
        await asyncio.gather(*[process.communicate(b"go\n") for process in processes])
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
                await process.communicate()
    assert [process.returncode for process in processes] == [0] * 4
    async with open_ledger(database_url) as opened:
        assert {event.key for event in await opened.events()} == set(names)
        assert await opened.verify_chain() is None


async def test_on_postgresql_upgrades_wait_for_each_other(postgres: Any) -> None:
    """What the test above meets only by luck: there, two upgrades seldom hit the same moment."""
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    async with await psycopg.AsyncConnection.connect(postgres.get_uri()) as connection:
        await connection.execute(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})".encode())
        upgrades = asyncio.gather(*[asyncio.create_task(upgrade(postgres.get_uri())) for _ in range(2)])
        async with asyncio.timeout(10):
            count = 0
            while count != 1:  # In one process the upgrades queue before the database.
                await asyncio.sleep(0.01)
                (count,) = await (await connection.execute(waiting.encode())).fetchone() or (0,)
        assert not upgrades.done()
        await connection.commit()
        await upgrades
    assert is_current(postgres.get_uri())


async def test_on_sqlite_an_upgrade_waits_for_who_writes_before_the_write_ahead_log(tmp_path: Path) -> None:
    """SQLite itself does not wait here: changing the journal's mode fails at once."""
    with closing(sqlite3.connect(path := tmp_path / "ledger.db", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        impatient = Timeouts(lock=timedelta(seconds=0.2))
        with pytest.raises(LedgerUnavailable):
            await upgrade(f"sqlite:///{path}", impatient)
        patient_upgrade = asyncio.create_task(upgrade(f"sqlite:///{path}"))
        await asyncio.wait({patient_upgrade}, timeout=0.3)
        assert not patient_upgrade.done()
        writer.execute("ROLLBACK")
        await patient_upgrade
    assert is_current(f"sqlite:///{path}")


async def waiting_process(url: str, name: str) -> asyncio.subprocess.Process:
    """A process that has imported everything, and opens the ledger when told to go."""
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(sys.executable, "-c", STARTS_ON_A_SIGN, url, name, stdin=pipe, stdout=pipe)


async def test_ledgers_that_open_at_once_in_one_process(database_url: str) -> None:
    await asyncio.gather(*[upgrade(database_url) for _ in range(4)])
    assert is_current(database_url)


async def test_models_and_versions_agree(database_url: str) -> None:
    await upgrade(database_url)

    def differences(connection: Connection) -> list[object]:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return list(compare_metadata(context, metadata))

    def condition_of_active(connection: Connection) -> str:
        """Alembic does not compare the conditions of partial indexes."""
        indexes = {index["name"]: index for index in inspect(connection).get_indexes("migrations")}
        condition = indexes["uq_migrations_active"]["dialect_options"][f"{connection.dialect.name}_where"]
        return str(condition).strip("()").lower()

    (active_index,) = (index for index in migrations.indexes if index.name == "uq_migrations_active")
    engine = sync_engine(database_url, DEFAULT_TIMEOUTS)
    try:
        with engine.connect() as connection:
            assert differences(connection) == []
            assert condition_of_active(connection) == "ended_at is null"
            assert str(active_index.dialect_options[connection.dialect.name]["where"]).lower() == "ended_at is null"
    finally:
        engine.dispose()


async def test_what_an_older_version_wrote_is_read_by_this_one(
    database_url: str, make_spec: Callable[..., ClusterSpec], make_migration: Callable[..., MigrationRecord]
) -> None:
    """A database that was made by the first version, with a migration under way and a command given."""
    Path(make_url(database_url).database or "").parent.mkdir(exist_ok=True)
    engine = sync_engine(database_url, DEFAULT_TIMEOUTS)
    try:
        with engine.begin() as connection:
            command.upgrade(_config(connection), "0001")
            connection.execute(clusters.insert().values(name="orders", cluster_id="kafka-1", **cluster_values(make_spec())))
            record = make_migration()
            row = {name: getattr(record, name) for name in MigrationRecord.model_fields if name not in {"plan_id", "wanted"}}
            connection.execute(migrations.insert().values(state=record.progress.state, **row))
            connection.execute(
                text(
                    "INSERT INTO commands (id, migration_id, kind, gate, evidence_hash, reason, by, via, at) "
                    "VALUES ('c1', :id, 'approve', 'finalize', 'e', 'well', 'bea', 'api', '2026-03-01 03:00:00+00:00')"
                ),
                {"id": record.id},
            )
    finally:
        engine.dispose()
    assert not is_current(database_url)
    async with open_ledger(database_url) as opened:
        (old,) = await opened.commands(record.id)
        assert (old.kind, old.preview_hash, old.accept_loss) == (CommandKind.APPROVE, None, ())
        newer = Progress(state=MigrationState.RUNNING, steps_done=1)
        await opened.record(record.id, [], newer, NOW)
        stored = await opened.migration(record.id)
        assert stored is not None
        assert stored.progress == newer


def cluster_values(spec: ClusterSpec) -> dict[str, object]:
    return {"spec": spec, "revision": 1, "generation": 0, "created_at": NOW, "updated_at": NOW}


async def test_a_ledger_of_a_newer_release_says_so(database_url: str) -> None:
    """As after a release that was taken back."""
    await upgrade(database_url)
    engine = sync_engine(database_url, DEFAULT_TIMEOUTS)
    try:
        with engine.begin() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    finally:
        engine.dispose()
    with pytest.raises(
        LedgerUnavailable, match="written by a newer release than this one, which knows no version 9999"
    ) as error:
        await upgrade(database_url)
    assert error.value.fix.startswith("Start the newer release again")
    assert not is_current(database_url)


async def test_a_database_without_the_schema_is_named_as_such(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "ledger").mkdir()
    database = Database(database_url)
    try:
        with pytest.raises(LedgerUnavailable, match=r'no such table|relation "clusters" does not exist') as error:
            await SqlLedger(database).clusters()
        assert "search_path" in error.value.fix
    finally:
        await database.close()


def test_the_versions_travel_with_the_package() -> None:
    assert ledger.__file__ is not None
    assert SCRIPTS.is_relative_to(Path(ledger.__file__).parent)
    assert list((SCRIPTS / "versions").glob("*.py"))


@pytest.mark.parametrize("url", ["mysql://h/x", "sqlite://", "sqlite:///:memory:", "nonsense", ""])
async def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(LedgerMisuse):
        Database(url)
    with pytest.raises(LedgerMisuse):
        await upgrade(url)
