"""Bad days of the ledger's database: slow, locked, frozen, gone, and callers that give up."""

import asyncio
import gc
import os
import resource
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import psycopg
import pytest
from sqlalchemy import exc, text

from domain.errors import Transient
from domain.records import Command, CommandKind, EventDraft, MigrationState
from ledger import commands
from ledger.database import Database, Timeouts, _postgresql_arguments
from ledger.errors import LedgerDamaged, LedgerMisuse, LedgerUnavailable, RowUnreadable
from ledger.fixes import Stage, fix_of_silence
from ledger.ledger import SqlLedger
from ledger.refusals import translated
from ledger.schema import upgrade

NOW = datetime(2026, 3, 1, 3, 0, 0, 123456, tzinfo=UTC)
PATIENT = Timeouts(call=timedelta(minutes=1), lock=timedelta(seconds=30))
IMPATIENT = Timeouts(call=timedelta(seconds=2), lock=timedelta(seconds=0.3))
BRIEF = Timeouts(call=timedelta(seconds=0.3))
SOON = 7.0
"""Seconds. Well below the ten that PostgreSQL's driver takes to give up by itself, and enough for a busy machine."""
EVENT_MAKER = Callable[..., EventDraft]


@asynccontextmanager
async def opened(url: str, timeouts: Timeouts) -> AsyncIterator[Database]:
    database = Database(url, timeouts)
    try:
        yield database
    finally:
        await database.close()
        assert database.engine.pool.checkedout() == 0, "a call has lost its connection"  # type: ignore[attr-defined]


@pytest.fixture
async def patient(database_url: str) -> AsyncIterator[SqlLedger]:
    await upgrade(database_url)
    async with opened(database_url, PATIENT) as database:
        yield SqlLedger(database)


@pytest.fixture
async def impatient(database_url: str) -> AsyncIterator[SqlLedger]:
    await upgrade(database_url)
    async with opened(database_url, IMPATIENT) as database:
        yield SqlLedger(database)


async def seconds_until_unavailable(call: Coroutine[Any, Any, Any]) -> float:
    start = time.monotonic()
    with pytest.raises(LedgerUnavailable) as error:
        await call
    assert isinstance(error.value, Transient)
    return time.monotonic() - start


async def test_a_writer_that_holds_the_lock_too_long(
    impatient: SqlLedger, patient: SqlLedger, database_url: str, make_event: EVENT_MAKER, make_spec: Any, make_migration: Any
) -> None:
    await patient.put_cluster(make_spec(), NOW)
    await patient.create_migration(migration := make_migration())
    is_sqlite = database_url.startswith("sqlite")
    lock = "BEGIN IMMEDIATE" if is_sqlite else "SELECT * FROM chain_head FOR UPDATE"
    async with opened(database_url, PATIENT) as other, other.engine.connect() as connection:
        await connection.execute(text(lock))
        waited = await seconds_until_unavailable(impatient.record_event(make_event("a")))
        assert 0.2 < await seconds_until_unavailable(impatient.prove_writable(migration.id)) < SOON
        assert await patient.events() == []  # Readers do not wait for writers.
        await connection.rollback()
    print(f"waited {waited:.2f} s for the lock")
    assert 0.2 < waited < SOON
    await impatient.prove_writable(migration.id)
    await patient.record_event(make_event("a"))
    assert len(await patient.events()) == 1


REFUSING = {
    "sqlite": "CREATE TRIGGER refusing BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'not today'); END",
    "postgresql": "ALTER TABLE events ADD CONSTRAINT refusing CHECK (kind = 'not today') NOT VALID",
}
"""What somebody else has put on a table of ours."""


async def test_a_constraint_of_somebody_elses_is_no_wrong_call_of_ours(
    patient: SqlLedger, database_url: str, make_spec: Any, make_migration: Any
) -> None:
    """`prove_writable` is a right call always: who looks for what is in the way gets an answer to it."""
    await patient.put_cluster(make_spec(), NOW)
    await patient.create_migration(migration := make_migration())
    async with opened(database_url, PATIENT) as database:
        dialect = database.engine.dialect.name
        await database.write(lambda connection: connection.exec_driver_sql(REFUSING[dialect]))
        with pytest.raises(LedgerUnavailable, match=r"not today|refusing") as error:
            await patient.prove_writable(migration.id)
    assert "Undo the change of the ledger's tables" in error.value.fix


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Nothing is cleaned up because it happens to be found."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
async def test_callers_that_give_up_at_any_moment(patient: SqlLedger, make_event: EVENT_MAKER) -> None:
    await patient.record_event(make_event("warm"))
    keys = [f"e{n}" for n in range(60)]
    gave_up = 0
    for n, key in enumerate(keys):
        call = asyncio.create_task(patient.record_event(make_event(key)))
        await asyncio.sleep(n * 0.00015)
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call
        gave_up += call.cancelled()
    await asyncio.gather(*[patient.record_event(make_event(key)) for key in keys])
    events = await patient.events()
    print(f"{gave_up} of 60 gave up")
    assert gave_up > 0
    assert {event.key for event in events} == {"warm", *keys}
    assert [event.seq for event in events] == list(range(1, 62))
    assert await patient.verify_chain() is None


async def test_more_callers_than_connections(patient: SqlLedger, make_event: EVENT_MAKER) -> None:
    await asyncio.gather(*[patient.record_event(make_event(f"e{n}")) for n in range(60)])
    assert len(await patient.events()) == 60


@pytest.mark.parametrize("what", ["pages", "header"])
async def test_a_file_that_is_damaged_is_told_as_such_and_may_be_restored_under_who_asks(
    what: str, tmp_path: Path, make_event: EVENT_MAKER
) -> None:
    """Torn by a bad restore. Whoever asks may go on once the file is whole again."""
    path = tmp_path / "ledger.db"
    await upgrade(f"sqlite:///{path}")
    async with opened(f"sqlite:///{path}", PATIENT) as database:
        await asyncio.gather(*[SqlLedger(database).record_event(make_event(f"e{n}")) for n in range(200)])
    whole = path.read_bytes()
    begin, end = (0, 100) if what == "header" else (len(whole) // 4, len(whole))
    path.write_bytes(whole[:begin] + bytes(end - begin) + whole[end:])
    async with opened(f"sqlite:///{path}", PATIENT) as database:
        with pytest.raises(LedgerDamaged, match=r"damaged \(DatabaseError: (database disk image is malformed|file is not)"):
            await SqlLedger(database).events()
    path.write_bytes(whole)
    async with opened(f"sqlite:///{path}", PATIENT) as database:
        assert await SqlLedger(database).verify_chain() is None


async def test_where_all_connections_are_in_use_it_is_told_what_the_oldest_waits_for(tmp_path: Path) -> None:
    ended, begun = asyncio.Event(), asyncio.Barrier(12)

    async def endless(_: object) -> None:
        """As one that cleans up after it was given up, which against a frozen server takes long."""
        await begun.wait()
        while not ended.is_set():
            with suppress(asyncio.CancelledError):
                await ended.wait()

    database = Database(f"sqlite:///{tmp_path}/ledger.db", BRIEF, pool_size=1)
    try:
        others = [asyncio.create_task(database.read(endless)) for _ in range(11)]
        await begun.wait()
        with pytest.raises(LedgerUnavailable, match=r"all 11 connections of this process are in use, .*: no answer") as error:
            await database.read(endless)
        assert "session" not in error.value.fix
        ended.set()
        await asyncio.gather(*others, return_exceptions=True)
    finally:
        await database.close()


@pytest.mark.parametrize("stage", [Stage.CONNECTING, Stage.WORKING, Stage.COMMITTING])
def test_a_slow_disk_is_no_reason_to_move_the_ledger(stage: Stage) -> None:
    fix = fix_of_silence(stage, "sqlite")
    assert "iostat -x" in fix
    assert "the ledger stays where it is" in fix
    assert "PostgreSQL" not in fix


class Refused(Exception):
    """Of a driver, with the code that it has for it."""

    def __init__(self, code: str | int | None, context: str = "") -> None:
        super().__init__("no")
        self.diag = SimpleNamespace(context=context)
        self.sqlstate = code if isinstance(code, str) else None
        self.sqlite_errorcode = code if isinstance(code, int) else None


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        (sqlite3.SQLITE_IOERR, "findmnt"),
        (sqlite3.SQLITE_IOERR | 19 << 8, "findmnt"),  # SQLITE_IOERR_SHMSIZE
        (sqlite3.SQLITE_PROTOCOL, "findmnt"),
        (sqlite3.SQLITE_FULL, "df -i"),
        (sqlite3.SQLITE_BUSY, "fuser"),
        ("55P03", "pg_blocking_pids"),
        ("40P01", "pg_blocking_pids"),
        ("57014", "iostat"),
        ("53100", "pg_replication_slots"),
        ("53200", "lacks memory"),
        ("54000", "VACUUM"),
        ("57P01", "wait for it"),
        ("58030", "dmesg"),
        ("08P01", "was probably cut"),
        (None, "was probably cut"),
        ("0A000", "Fix what it says"),
    ],
)
def test_only_a_lock_is_told_as_a_lock(code: str | int | None, fix: str) -> None:
    told = translated(exc.OperationalError("SELECT 1", {}, Refused(code)))
    assert isinstance(told, LedgerUnavailable)
    assert fix in told.fix


@pytest.mark.parametrize(
    ("said", "fix"),
    [
        ('connection to server at "10.0.0.5", port 5432 failed: SSL error: certificate verify failed', "openssl s_client"),
        ('root certificate file "/root/.postgresql/root.crt" does not exist', "sslrootcert, sslcert and sslkey"),
        ('private key file "/k.pem" has group or world access; file must have permissions u=rw (0600)', "chmod 600"),
        ("connection failed: server does not support SSL, but SSL was required", "not offered there"),
        ('FATAL:  no pg_hba.conf entry for host "10.0.0.7", user "k", database "ledger", no encryption', "hostssl"),
        ("failed to resolve host 'db': [Errno -2] Name or service not known", "getent hosts"),
        ('FATAL:  password authentication failed for user "keeperless"', "VALID UNTIL"),
        ("FATAL:  sorry, too many clients already", "pg_stat_activity"),
        ("FATAL:  query_wait_timeout", "SHOW POOLS"),
        ("could not create socket: Too many open files", "LimitNOFILE="),
        ("connection refused", "If the server is not reached, start it"),
    ],
)
def test_a_connection_that_is_not_made_is_told_with_what_mends_just_that(said: str, fix: str) -> None:
    told = translated(exc.OperationalError(None, None, psycopg.OperationalError(f"connection failed: {said}")))  # type: ignore[arg-type]
    assert isinstance(told, LedgerUnavailable)
    assert fix in told.fix
    assert "If the server is not reached, start it" not in told.fix or said == "connection refused"


def test_a_process_without_a_file_left_to_open_has_lost_no_file(tmp_path: Path) -> None:
    """SQLite says of each that it cannot open it; whoever moved files for that would harm a ledger that is well."""
    (file := tmp_path / "ledger.db").touch()
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, 256), most))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        told = cannot_open(file)
    finally:
        for number in taken:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))
    assert "Too many open files); process" in str(told)
    assert "LimitNOFILE=" in told.fix
    file.unlink()
    told = cannot_open(file)
    assert str(told).endswith("unable to open database file: No such file or directory)")
    assert "restore the file" in told.fix


def cannot_open(file: Path) -> LedgerUnavailable:
    error = sqlite3.OperationalError("unable to open database file")
    error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
    told = translated(exc.OperationalError(None, None, error), str(file))
    assert isinstance(told, LedgerUnavailable)
    return told


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        ("23514", "DISABLE TRIGGER"),
        ("23505", "DISABLE TRIGGER"),
        ("P0001", "DISABLE TRIGGER"),
        ("40P01", "pg_blocking_pids"),
        ("55P03", "pg_blocking_pids"),
        ("57014", "iostat"),
        ("53100", "pg_replication_slots"),
        ("XX002", "backup"),
    ],
)
def test_no_trigger_is_taken_away_for_what_the_server_lacks(code: str, fix: str) -> None:
    context = 'SQL statement "INSERT INTO audit.log"\nPL/pgSQL function audit.log_change() line 3 at SQL statement'
    told = translated(exc.DBAPIError("INSERT", {}, Refused(code, context)))
    assert isinstance(told, LedgerUnavailable)
    assert fix in told.fix


async def test_a_row_of_another_release_is_no_damage(patient: SqlLedger, database_url: str) -> None:
    """Who restored a backup for it would lose what is good."""

    async def of_a_newer_release(_: object) -> None:
        MigrationState("of a newer release")

    async with opened(database_url, PATIENT) as database:
        with pytest.raises(RowUnreadable, match=r"cannot be read by this release \(ValueError\)") as error:
            await database.read(of_a_newer_release)
        assert error.value.fix.startswith("Compare the versions")
        with pytest.raises(ValueError, match="is not a valid MigrationState"):
            await database.write(of_a_newer_release)


async def test_a_question_with_half_a_character_is_no_row_that_cannot_be_read(patient: SqlLedger) -> None:
    with pytest.raises(UnicodeEncodeError):
        await patient.migration("\ud800")


async def test_errors_show_no_values(database_url: str) -> None:
    await upgrade(database_url)
    orphan = Command(id="c1", migration_id="none", kind=CommandKind.HOLD, by="swordfish", via="api", at=NOW)
    async with opened(database_url, PATIENT) as database:
        with pytest.raises(LedgerMisuse) as error:
            await database.write(lambda connection: commands.insert(connection, orphan))
    assert isinstance(error.value.__cause__, exc.IntegrityError)
    assert "swordfish" not in f"{error.value} {error.value.__cause__}"


AUDIT = """
    CREATE SCHEMA audit;
    CREATE TABLE audit.logged (at timestamptz, op text) PARTITION BY RANGE (at);
    CREATE TABLE audit.of_this_month PARTITION OF audit.logged FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
    CREATE FUNCTION audit.log_it() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO audit.logged (at, op) VALUES (now(), TG_OP); RETURN NULL; END $$;
    CREATE TRIGGER audited AFTER INSERT OR UPDATE ON events FOR EACH ROW EXECUTE FUNCTION audit.log_it();
"""


class TestPostgreSQLOnly:
    @pytest.fixture
    def database_url(self, postgres: Any) -> Iterator[str]:
        with psycopg.connect(postgres.get_uri(), autocommit=True) as connection:
            connection.execute("DROP DATABASE IF EXISTS failures")
            connection.execute("CREATE DATABASE failures")
            yield postgres.get_uri("failures")
            connection.execute("DROP DATABASE failures WITH (FORCE)")

    @pytest.fixture
    def server_processes(self, database_url: str) -> Iterator[list[psutil.Process]]:
        """Those of this moment. Resumed in any case, before the database is dropped: also when the test is aborted."""
        processes: list[psutil.Process] = []
        yield processes
        resume(processes)

    async def test_a_frozen_server(
        self,
        impatient: SqlLedger,
        patient: SqlLedger,
        postgres: Any,
        server_processes: list[psutil.Process],
        make_event: EVENT_MAKER,
    ) -> None:
        await impatient.record_event(make_event("before"))
        server_processes += family_of(postgres.get_pid())
        suspend(server_processes)
        for call in (impatient.record_event(make_event("during")), impatient.events(), impatient.ping()):
            assert await seconds_until_unavailable(call) < SOON
        resume(server_processes)
        await patient.record_event(make_event("during"))
        await eventually(impatient.ping)
        assert [event.key for event in await patient.events()] == ["before", "during"]
        assert await patient.verify_chain() is None

    async def test_a_server_that_dropped_its_connections(
        self, patient: SqlLedger, postgres: Any, make_event: EVENT_MAKER
    ) -> None:
        await asyncio.gather(*[patient.record_event(make_event(f"e{n}")) for n in range(5)])
        with psycopg.connect(postgres.get_uri(), autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'failures'")
        await patient.record_event(make_event("after"))
        assert len(await patient.events()) == 6

    async def test_a_server_that_is_not_there(self, tmp_path: Path) -> None:
        url = f"postgresql://postgres:swordfish@/postgres?host={tmp_path}"
        async with opened(url, IMPATIENT) as database:
            assert await seconds_until_unavailable(SqlLedger(database).ping()) < SOON
        with pytest.raises(LedgerUnavailable) as error:
            await upgrade(url, IMPATIENT)
        assert "swordfish" not in str(error.value)

    @pytest.mark.parametrize("asked", ["read", "write"])
    async def test_a_host_that_says_nothing_is_no_lock(self, asked: str) -> None:
        """As behind a firewall that drops: the port takes what comes, and nobody reads it."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            async with opened(f"postgresql://keeper:hunter2@127.0.0.1:{port}/ledger?sslpassword=hunter3", BRIEF) as database:
                ledger = SqlLedger(database)
                call = ledger.ping() if asked == "read" else ledger.prove_writable("1")
                with pytest.raises(LedgerUnavailable) as error:
                    await call
        assert str(error.value) == f"ledger at 127.0.0.1:{port}: no connection within 0.3 s; try again"
        assert "pg_isready" in error.value.fix
        assert "pg_blocking_pids" not in error.value.fix

    async def test_a_commit_that_waits_for_a_standby_is_told_and_nobody_is_to_end_it(
        self, impatient: SqlLedger, patient: SqlLedger, postgres: Any, make_event: EVENT_MAKER
    ) -> None:
        await impatient.ping()
        with psycopg.connect(postgres.get_uri(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
            connection.execute("SELECT pg_reload_conf()")
            try:
                with pytest.raises(LedgerUnavailable, match="its commit was not confirmed within 2 s") as error:
                    await impatient.record_event(make_event("a"))
                assert await impatient.events() is not None
            finally:
                connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
                connection.execute("SELECT pg_reload_conf()")
        assert "SyncRep" in error.value.fix
        assert "End no session" in error.value.fix
        await patient.record_event(make_event("a"))
        assert len(await patient.events()) == 1

    async def test_no_setting_is_sent_with_the_start_which_poolers_refuse(self, database_url: str) -> None:
        """PgBouncer: "unsupported startup parameter: options". The limits are there nonetheless."""
        async with opened(database_url, IMPATIENT) as database:
            _, given = database.engine.dialect.create_connect_args(database.engine.url)
            assert "options" not in {**given, **_postgresql_arguments(IMPATIENT)}
            for name, value in {"statement_timeout": "2s", "lock_timeout": "300ms", "timezone": "UTC"}.items():
                shown = await database.read(lambda c, name=name: c.scalar(text(f"SHOW {name}")))
                assert shown == value

    async def test_a_server_that_only_reads(self, patient: SqlLedger, postgres: Any, make_event: EVENT_MAKER) -> None:
        """As a standby does, right after a failover."""
        with psycopg.connect(postgres.get_uri(), autocommit=True) as connection:
            connection.execute("ALTER DATABASE failures SET default_transaction_read_only = on")
        with pytest.raises(LedgerUnavailable) as error:
            await patient.record_event(make_event("a"))
        assert "pg_is_in_recovery" in error.value.fix

    @pytest.mark.parametrize(
        ("lacks", "says"),
        [
            ("DETACH PARTITION audit.of_this_month", 'no partition of relation "logged" found for row'),
            ("DROP COLUMN op", 'column "op" of relation "logged" does not exist'),
        ],
    )
    async def test_a_trigger_of_somebody_elses_that_fails_is_named(
        self,
        patient: SqlLedger,
        make_event: EVENT_MAKER,
        make_spec: Any,
        make_migration: Any,
        postgres: Any,
        lacks: str,
        says: str,
    ) -> None:
        """As of an audit whose table has no partition for the new month."""
        await patient.put_cluster(make_spec(), NOW)
        await patient.create_migration(migration := make_migration())
        with psycopg.connect(postgres.get_uri("failures"), autocommit=True) as connection:
            connection.execute(AUDIT)
            await patient.record_event(make_event("a"))
            await patient.prove_writable(migration.id)
            connection.execute(f"ALTER TABLE audit.logged {lacks}".encode())
            for call in (patient.prove_writable(migration.id), patient.record_event(make_event("b"))):
                with pytest.raises(LedgerUnavailable) as error:
                    await call
                assert "refuses a write in audit.log_it" in str(error.value)
                assert says in str(error.value)
                assert "DISABLE TRIGGER" in error.value.fix
            connection.execute("DROP SCHEMA audit CASCADE")

    async def test_how_dates_are_shown_to_people_is_no_matter(
        self, patient: SqlLedger, postgres: Any, database_url: str, make_event: EVENT_MAKER
    ) -> None:
        """A report for accountants: the driver reads times of one style only."""
        await patient.record_event(make_event("a"))
        with psycopg.connect(postgres.get_uri("failures"), autocommit=True) as connection:
            connection.execute("ALTER DATABASE failures SET datestyle = 'SQL, DMY'")
            try:
                async with opened(database_url, PATIENT) as database:
                    assert [event.key for event in await SqlLedger(database).events()] == ["a"]
            finally:
                connection.execute("ALTER DATABASE failures RESET datestyle")

    @pytest.mark.parametrize(
        ("done", "says", "fix"),
        [
            ("REVOKE UPDATE ON migrations FROM eve", "permission denied for table migrations", "GRANT"),
            ("REVOKE USAGE ON SCHEMA public FROM eve, PUBLIC", "", "search_path"),
            ("ALTER ROLE eve SET search_path = nowhere", 'relation "migrations" does not exist', "search_path"),
            ("ALTER ROLE eve CONNECTION LIMIT 0", 'too many connections for role "eve"', "max_connections"),
            ("ALTER ROLE eve NOLOGIN", 'role "eve" is not permitted to log in', "pg_hba.conf"),
        ],
    )
    async def test_a_server_that_refuses_is_told_in_its_words_with_what_mends_it(
        self, patient: SqlLedger, postgres: Any, database_url: str, done: str, says: str, fix: str
    ) -> None:
        with psycopg.connect(postgres.get_uri("failures"), autocommit=True) as connection:
            connection.execute("DROP ROLE IF EXISTS eve")
            connection.execute("CREATE ROLE eve LOGIN")
            try:
                connection.execute("GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO eve")
                connection.execute(done.encode())
                async with opened(database_url.replace("postgres:@", "eve:@"), PATIENT) as database:
                    with pytest.raises(LedgerUnavailable) as error:
                        await SqlLedger(database).prove_writable("1")
            finally:
                connection.execute("GRANT USAGE ON SCHEMA public TO PUBLIC")
                connection.execute("DROP OWNED BY eve")
                connection.execute("DROP ROLE eve")
        assert says in str(error.value)
        assert fix in error.value.fix

    async def test_a_pooler_that_mixes_sessions_up_is_told(self, patient: SqlLedger, database_url: str) -> None:
        async with opened(database_url, PATIENT) as database:
            for statement in ("PREPARE p AS SELECT 1; PREPARE p AS SELECT 1", "EXECUTE q"):
                with pytest.raises(LedgerUnavailable, match="prepared statement") as error:
                    await database.write(lambda connection, said=statement: connection.exec_driver_sql(said))
                assert "pool_mode = session" in error.value.fix


class TestSqliteOnly:
    async def test_a_path_that_cannot_be(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        async with opened(f"sqlite:///{tmp_path}/file/ledger.db", IMPATIENT) as database:
            with pytest.raises(LedgerUnavailable):
                await SqlLedger(database).ping()

    async def test_it_writes_ahead_and_survives_power_cuts(self, tmp_path: Path) -> None:
        await upgrade(url := f"sqlite:///{tmp_path}/ledger.db")
        async with opened(url, PATIENT) as database, database.engine.connect() as connection:
            pragmas = [await connection.scalar(text(f"PRAGMA {p}")) for p in ("journal_mode", "synchronous", "foreign_keys")]
        assert pragmas == ["wal", 2, 1]

    async def test_nobody_writes_or_opens_it_after_its_files_were_deleted_and_an_orderly_end_brings_all_back(
        self, tmp_path: Path, make_event: EVENT_MAKER
    ) -> None:
        """As a clean-up of temporary files does: what was committed last is in a file without a name."""
        await upgrade(url := f"sqlite:///{tmp_path}/ledger.db")
        opens = (sys.executable, "-c", OPENS, url)
        async with opened(url, PATIENT) as database:
            ledger = SqlLedger(database)
            await ledger.record_event(make_event("before"))
            for name in ("ledger.db-wal", "ledger.db-shm"):
                (tmp_path / name).unlink()
            with pytest.raises(
                LedgerUnavailable, match=r"deleted or replaced .*ledger.db-wal, .*ledger.db-shm, which process \d+ has"
            ) as error:
                await ledger.record_event(make_event("after"))
            assert "with SIGTERM" in error.value.fix
            other = await asyncio.to_thread(subprocess.run, opens, capture_output=True, text=True, check=False)
            assert f"processes {os.getpid()} have open" in other.stderr
            assert [event.key for event in await ledger.events()] == ["before"]
            answers = await asyncio.gather(*(ledger.events() for _ in range(4)), return_exceptions=True)
            refused = [one for one in answers if isinstance(one, BaseException)]
            assert {getattr(one, "fix", one) for one in refused} == {error.value.fix}, (
                "no connection with another -wal is opened"
            )
        async with opened(url, PATIENT) as database:
            await SqlLedger(database).record_event(make_event("after"))
            assert [event.key for event in await SqlLedger(database).events()] == ["before", "after"]

    async def test_what_is_left_of_a_ledger_whose_file_was_replaced_is_copied_before_anything_ends(
        self, tmp_path: Path, make_event: EVENT_MAKER
    ) -> None:
        """Its end would write nothing back: the file has no name to be found by."""
        await upgrade(url := f"sqlite:///{tmp_path}/ledger.db")
        aside = tmp_path / "aside"
        aside.mkdir()
        async with opened(url, PATIENT) as database:
            await SqlLedger(database).record_event(make_event("before"))
            (tmp_path / "backup").touch()
            (tmp_path / "backup").rename(tmp_path / "ledger.db")
            with pytest.raises(LedgerUnavailable, match=r"deleted or replaced .*ledger\.db, which") as error:
                await SqlLedger(database).record_event(make_event("after"))
            assert error.value.fix.startswith("Do not stop any program")
            own = opened_as(f"{tmp_path}/ledger.db (deleted)")
            (aside / "ledger.db").write_bytes(own.read_bytes())
            (aside / "ledger.db-wal").write_bytes((tmp_path / "ledger.db-wal").read_bytes())
        async with opened(f"sqlite:///{aside}/ledger.db", PATIENT) as database:
            assert [event.key for event in await SqlLedger(database).events()] == ["before"]


def opened_as(target: str) -> Path:
    return next(fd for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink() and str(fd.readlink()) == target)


OPENS = """
import asyncio, sys
from ledger.database import Database
from ledger.ledger import SqlLedger
asyncio.run(SqlLedger(Database(sys.argv[1])).events())
"""


def family_of(pid: int) -> list[psutil.Process]:
    server = psutil.Process(pid)
    return [server, *server.children(recursive=True)]


def suspend(processes: list[psutil.Process]) -> None:
    """A frozen server accepts connections, through the kernel, and answers nothing."""
    for process in processes:
        process.suspend()


def resume(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.resume()


async def eventually(call: Callable[[], Any], deadline: float = 15) -> None:
    end = time.monotonic() + deadline
    while time.monotonic() < end:
        with suppress(LedgerUnavailable):
            await call()
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"still unavailable after {deadline} s")
