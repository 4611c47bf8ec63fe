"""Bad days of the ledger's database: slow, locked, frozen, gone, and callers that give up."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from sqlalchemy import text

from domain.cluster import ClusterSpec
from domain.errors import Transient
from domain.records import EventDraft, MigrationRecord
from ledger.database import Database, Timeouts
from ledger.errors import LedgerMisuse, LedgerUnavailable
from ledger.ledger import SqlLedger
from ledger.schema import upgrade

NOW = datetime(2026, 3, 1, 3, 0, 0, 123456, tzinfo=UTC)
IMPATIENT = Timeouts(call=timedelta(seconds=1), lock=timedelta(seconds=0.3))
EVENT_MAKER = Callable[..., EventDraft]


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """Impatient, with its schema."""
    await upgrade(database_url)
    opened = Database(database_url, IMPATIENT)
    yield opened
    await opened.close()
    assert opened.engine.pool.checkedout() == 0, "a call has lost its connection"  # type: ignore[attr-defined]


@pytest.fixture
def patient(database: Database) -> SqlLedger:
    return SqlLedger(database)


async def seconds_until_unavailable(call: Any) -> float:
    start = time.monotonic()
    with pytest.raises(LedgerUnavailable) as error:
        await call
    assert isinstance(error.value, Transient)
    return time.monotonic() - start


async def test_a_writer_that_holds_the_lock_too_long(database: Database, database_url: str, make_event: EVENT_MAKER) -> None:
    ledger, other = SqlLedger(database), Database(database_url)
    begin = "BEGIN IMMEDIATE" if database.dialect == "sqlite" else "SELECT * FROM chain_head FOR UPDATE"
    async with other.engine.connect() as connection:
        await connection.execute(text(begin))
        waited = await seconds_until_unavailable(ledger.record_event(make_event("a")))
        assert await ledger.events() == []  # Readers do not wait for writers.
        await connection.rollback()
    await other.close()
    print(f"waited {waited:.2f} s for the lock")
    assert 0.2 < waited < 1.5
    await ledger.record_event(make_event("a"))
    assert len(await ledger.events()) == 1


async def test_callers_that_give_up_at_any_moment(database: Database, make_event: EVENT_MAKER) -> None:
    ledger = SqlLedger(database)
    await ledger.record_event(make_event("warm"))
    outcomes: dict[str, str] = {}
    for n in range(60):
        key = f"e{n}"
        call = asyncio.create_task(ledger.record_event(make_event(key)))
        await asyncio.sleep(n * 0.00015)
        call.cancel()
        try:
            await call
        except asyncio.CancelledError:
            outcomes[key] = "gave up"
        else:
            outcomes[key] = "done"
    await asyncio.gather(*[ledger.record_event(make_event(f"e{n}")) for n in range(60)])
    events = await ledger.events()
    print(f"{sum(outcome == 'gave up' for outcome in outcomes.values())} of 60 gave up")
    assert "gave up" in outcomes.values()
    assert {event.key for event in events} == {"warm", *outcomes}
    assert [event.seq for event in events] == list(range(1, 62))
    assert await ledger.verify_chain() is None


async def test_more_callers_than_connections(database: Database, make_event: EVENT_MAKER) -> None:
    ledger = SqlLedger(database)
    await asyncio.gather(*[ledger.record_event(make_event(f"e{n}")) for n in range(60)])
    assert len(await ledger.events()) == 60


async def test_errors_show_no_values(
    ledger: SqlLedger, make_spec: Callable[..., ClusterSpec], make_migration: Callable[..., MigrationRecord]
) -> None:
    await ledger.put_cluster(make_spec(), NOW)
    with pytest.raises(LedgerMisuse) as error:
        await ledger.create_migration(make_migration(requested_by="swordfish", created_at=NOW.replace(tzinfo=None)))
    assert "swordfish" not in f"{error.value} {error.value.__cause__}"


class TestPostgreSQLOnly:
    @pytest.fixture
    def database_url(self, postgres: Any) -> Iterator[str]:
        with psycopg.connect(postgres.get_uri(), autocommit=True) as connection:
            connection.execute("DROP DATABASE IF EXISTS failures")
            connection.execute("CREATE DATABASE failures")
            yield postgres.get_uri("failures")
            connection.execute("DROP DATABASE failures WITH (FORCE)")

    async def test_a_frozen_server(self, database: Database, postgres: Any, make_event: EVENT_MAKER) -> None:
        ledger = SqlLedger(database)
        await ledger.record_event(make_event("before"))
        with frozen(postgres.get_pid()):
            for call in (ledger.record_event(make_event("during")), ledger.events(), ledger.ping()):
                assert await seconds_until_unavailable(call) < 1.5
        await eventually(ledger.ping)
        await ledger.record_event(make_event("during"))
        assert [event.key for event in await ledger.events()] == ["before", "during"]
        assert await ledger.verify_chain() is None

    async def test_a_server_that_dropped_its_connections(
        self, database: Database, postgres: Any, make_event: EVENT_MAKER
    ) -> None:
        ledger = SqlLedger(database)
        await asyncio.gather(*[ledger.record_event(make_event(f"e{n}")) for n in range(5)])
        with psycopg.connect(postgres.get_uri(), autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'failures'")
        await ledger.record_event(make_event("after"))
        assert len(await ledger.events()) == 6

    async def test_a_server_that_is_not_there(self, tmp_path: Path) -> None:
        url = f"postgresql://postgres:swordfish@/postgres?host={tmp_path}"
        database = Database(url, IMPATIENT)
        assert await seconds_until_unavailable(SqlLedger(database).ping()) < 1.5
        await database.close()
        with pytest.raises(LedgerUnavailable) as error:
            await upgrade(url, IMPATIENT)
        assert "swordfish" not in str(error.value)

    async def test_a_server_that_only_reads(self, database: Database, postgres: Any, make_event: EVENT_MAKER) -> None:
        """As a standby does, right after a failover."""
        with psycopg.connect(postgres.get_uri(), autocommit=True) as connection:
            connection.execute("ALTER DATABASE failures SET default_transaction_read_only = on")
        with pytest.raises(LedgerUnavailable):
            await SqlLedger(database).record_event(make_event("a"))


class TestSqliteOnly:
    @pytest.fixture
    def database_url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/ledger.db"

    async def test_a_path_that_cannot_be(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        database = Database(f"sqlite:///{tmp_path}/file/ledger.db", IMPATIENT)
        with pytest.raises(LedgerUnavailable):
            await SqlLedger(database).ping()
        await database.close()

    async def test_it_writes_ahead_and_survives_power_cuts(self, database: Database) -> None:
        async with database.engine.connect() as connection:
            pragmas = [await connection.scalar(text(f"PRAGMA {p}")) for p in ("journal_mode", "synchronous", "foreign_keys")]
        assert pragmas == ["wal", 2, 1]


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """A server whose processes are all stopped: it accepts connections, through the kernel, and answers nothing."""
    server = psutil.Process(pid)
    processes = [server, *server.children(recursive=True)]
    try:
        for process in processes:
            process.suspend()
        yield
    finally:
        for process in processes:
            process.resume()


async def eventually(call: Callable[[], Any], deadline: float = 15) -> None:
    end = time.monotonic() + deadline
    while time.monotonic() < end:
        with suppress(LedgerUnavailable):
            await call()
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"still unavailable after {deadline} s")
