"""Transactions with a time limit, and the one place where a database's errors become ours.

A call runs in a task of its own. When its time is over, or the caller is cancelled, the caller is told at once; the task
is cancelled and cleans up by itself, which against a frozen server takes the driver up to ten seconds. Whether
the change was made is then unknown, as with any answer that did not arrive: every call of the ledger may be repeated.
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from domain.errors import KeeperlessError
from ledger.errors import LedgerDamaged, LedgerMisuse, LedgerUnavailable

T = TypeVar("T")
Work = Callable[[AsyncConnection], Awaitable[T]]

DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+psycopg"}
UNIQUE_VIOLATED = frozenset({"23505", sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY})

DAMAGED = frozenset({"XX001", "XX002", sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
"""PostgreSQL's data_corrupted and index_corrupted; SQLite's "disk image is malformed" and "file is not a database"."""

ATTEMPTS = 3


@dataclass(frozen=True)
class Timeouts:
    """How long the database may take."""

    call: timedelta = timedelta(seconds=5)
    """A whole call: waiting for a connection, for locks, and all statements. The API, which must answer within
    two seconds, sets less."""
    lock: timedelta = timedelta(seconds=3)
    """Waiting for another writer. Less than `call`, so that the database's own word is heard."""
    connect: timedelta = timedelta(seconds=2)
    """Opening a connection to PostgreSQL, in whole seconds; its driver allows no less than two."""


DEFAULT_TIMEOUTS = Timeouts()


class Outrun(LedgerUnavailable):
    """Somebody else wrote the same unique value in this moment: looking again shows what they wrote."""


class Database:
    """One pool of connections, for one event loop. `write` excludes other writers of the rows it touches, `read` nobody."""

    def __init__(self, url: str, timeouts: Timeouts = DEFAULT_TIMEOUTS, pool_size: int = 5) -> None:
        parsed = parse_url(url)
        self.dialect = parsed.get_backend_name()
        self.engine = create_async_engine(parsed, pool_size=pool_size, **_engine_options(self.dialect, timeouts))
        self._timeouts = timeouts
        if self.dialect == "sqlite":
            prepare_sqlite(self.engine.sync_engine)
            self._reader, self._writer = self.engine, self.engine.execution_options(is_writer=True)
        else:
            self._reader, self._writer = self.engine.execution_options(isolation_level="AUTOCOMMIT"), self.engine
        # SQLite has one writer at a time. Those of one process queue here, because waiting in SQLite means polling.
        self._turn = asyncio.Lock() if self.dialect == "sqlite" else nullcontext()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def read(self, work: Work[T]) -> T:
        """Run queries; each sees its own moment."""
        return await self._within_time(self._run(self._reader, nullcontext(), work))

    async def write(self, work: Work[T]) -> T:
        """Run `work` in one transaction: all of it happens, or nothing does. It starts anew where somebody was faster.

        Raises `LedgerUnavailable` or `LedgerMisuse`.
        """
        return await self._within_time(self._run_until_first(work))

    async def close(self) -> None:
        """Let unfinished calls end, then close all connections."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._timeouts.call.total_seconds())
        await self.engine.dispose()

    async def _run_until_first(self, work: Work[T]) -> T:
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._run(self._writer, self._turn, work)
            except Outrun:
                continue
        return await self._run(self._writer, self._turn, work)

    async def _run(self, engine: AsyncEngine, turn: "asyncio.Lock | nullcontext[None]", work: Work[T]) -> T:
        try:
            async with turn, engine.begin() as connection:
                return await work(connection)
        except exc.SQLAlchemyError as error:
            raise translated(error) from error

    async def _within_time(self, call: Coroutine[Any, Any, T]) -> T:
        task = asyncio.create_task(call)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        try:
            await asyncio.wait({task}, timeout=self._timeouts.call.total_seconds())
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not task.done():
            task.cancel()
            raise LedgerUnavailable(f"{self._name}: no answer within {self._timeouts.call.total_seconds():g} s; try again")
        return task.result()

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # Looked at, so that asyncio does not report an abandoned call's error as unseen.

    @property
    def _name(self) -> str:
        return f"ledger {self.engine.url.render_as_string(hide_password=True)}"


def parse_url(url: str) -> URL:
    """The URL with the driver we use.

    `LedgerMisuse` for other databases, and for SQLite in memory, which no two connections see.
    """
    try:
        parsed = make_url(url)
    except exc.ArgumentError as error:
        raise LedgerMisuse("the ledger's URL cannot be read: expected sqlite:////path or postgresql://…") from error
    backend = parsed.get_backend_name()
    if backend not in DRIVERS or (backend == "sqlite" and parsed.database in {None, "", ":memory:"}):
        raise LedgerMisuse(f"a ledger cannot be in {parsed.drivername}: expected sqlite:////path or postgresql://…")
    return parsed.set(drivername=DRIVERS[backend])


def sync_engine(url: str, timeouts: Timeouts) -> Engine:
    """The same database through a synchronous driver, for Alembic. Dispose of it."""
    parsed = parse_url(url)
    dialect = parsed.get_backend_name()
    # Both PostgreSQL doors use psycopg under one name; SQLite's synchronous driver is Python's own.
    engine = create_engine(
        parsed.set(drivername="sqlite") if dialect == "sqlite" else parsed, **_engine_options(dialect, timeouts)
    )
    if dialect == "sqlite":
        prepare_sqlite(engine)
    return engine.execution_options(is_writer=True)


def prepare_sqlite(engine: Engine) -> None:
    """Foreign keys on, commits that survive a power cut, and writers that take their lock when they begin."""

    @event.listens_for(engine, "connect")
    def _set_pragmas(connection: DBAPIConnection, _record: object) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # Without IMMEDIATE two readers that both turn writers fail at once, whatever the busy timeout.
        if connection.get_execution_options().get("is_writer"):
            connection.exec_driver_sql("BEGIN IMMEDIATE")


def _engine_options(dialect: str, timeouts: Timeouts) -> dict[str, Any]:
    connect_args = _sqlite_arguments(timeouts) if dialect == "sqlite" else _postgresql_arguments(timeouts)
    return {
        "connect_args": connect_args,
        "hide_parameters": True,
        "pool_pre_ping": dialect != "sqlite",
        "pool_timeout": timeouts.call.total_seconds(),
    }


def _sqlite_arguments(timeouts: Timeouts) -> dict[str, Any]:
    # `isolation_level=None`: Python's driver begins no transactions of its own; `_begin` does.
    return {"isolation_level": None, "timeout": timeouts.lock.total_seconds()}


def _postgresql_arguments(timeouts: Timeouts) -> dict[str, Any]:
    """The server ends what we no longer wait for, also when this process was stopped or lost: locks must not outlive us."""
    call, lock = (int(limit.total_seconds() * 1000) for limit in (timeouts.call, timeouts.lock))
    settings = {
        "statement_timeout": call,
        "lock_timeout": lock,
        "idle_in_transaction_session_timeout": 2 * call,
        "timezone": "UTC",
    }
    return {
        "application_name": "keeperless",
        "connect_timeout": max(2, round(timeouts.connect.total_seconds())),
        "keepalives_idle": 10,
        "tcp_user_timeout": 2 * call,
        "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
    }


def translated(error: exc.SQLAlchemyError) -> KeeperlessError:
    """What a caller may do about an error of the database. Decided by class and code, never by text."""
    cause = error.orig if isinstance(error, exc.DBAPIError) else None
    code = getattr(cause, "sqlstate", None) or getattr(cause, "sqlite_errorcode", None)
    # The first line only: PostgreSQL's details may show the row.
    said = f"{type(cause or error).__name__}: {cause or error}".partition("\n")[0]
    if code in UNIQUE_VIOLATED:
        return Outrun(f"the ledger was written by somebody else at the same moment ({said}); try again")
    if code in DAMAGED or (isinstance(code, int) and code & 0xFF in DAMAGED):
        return LedgerDamaged(f"the ledger's database is damaged ({said})")
    # SQLITE_ERROR is how SQLite says "no such table", although Python files it under OperationalError.
    # InternalError: a standby that refuses to write after a failover, a session that was ended for idling.
    may_pass = (exc.OperationalError, exc.InterfaceError, exc.InternalError, exc.TimeoutError)
    if isinstance(error, may_pass) and code != sqlite3.SQLITE_ERROR:
        return LedgerUnavailable(f"the ledger's database does not answer as it should ({said}); try again")
    return LedgerMisuse(f"the ledger refused a call ({said}); is the schema at its newest version?")
