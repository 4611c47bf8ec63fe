"""Transactions with a time limit.

A call runs in a task of its own. When its time is over, or the caller is cancelled, the caller is told at once; the task
is cancelled, or comes to its end, and cleans up by itself, which against a frozen server takes the driver up to ten seconds.
Whether the change was made is then unknown, as with any answer that did not arrive: every call of the ledger may be repeated.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from ledger.errors import LedgerMisuse, LedgerUnavailable, NotFound, RowUnreadable
from ledger.fixes import DELETED, FILE_DELETED, Stage, fix_of_silence
from ledger.own_files import deleted_elsewhere, deleted_here
from ledger.refusals import Outrun, translated
from ledger.row_security import ensure_all_is_seen

T = TypeVar("T")
Work = Callable[[AsyncConnection], Awaitable[T]]

PORT = 5432
"""Of PostgreSQL, where a URL names none."""

DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+psycopg"}
OF_WHAT_IS_HIDDEN = (NotFound, exc.NoResultFound, exc.IntegrityError)
"""What a call may end with because there are rows that it was not shown."""

IN_TRANSACTION = frozenset({Stage.WORKING, Stage.COMMITTING})

ATTEMPTS = 3
OVERFLOW = 10
"""Connections of one process besides those that its pool keeps."""


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


@dataclass(eq=False)
class _Call:
    """How far a call is, for those who give it up."""

    stage: Stage = Stage.WAITING


class Database:
    """One pool of connections, for one event loop. `write` excludes other writers of the rows it touches, `read` nobody."""

    def __init__(self, url: str, timeouts: Timeouts = DEFAULT_TIMEOUTS, pool_size: int = 5) -> None:
        parsed = parse_url(url)
        self.dialect = parsed.get_backend_name()
        self._place = _place_in_words(parsed)
        self._file = parsed.database or "" if self.dialect == "sqlite" else ""
        options = _engine_options(self.dialect, timeouts)
        self.engine = create_async_engine(parsed, pool_size=pool_size, max_overflow=OVERFLOW, **options)
        self._timeouts, self._most = timeouts, pool_size + OVERFLOW
        prepare(self.engine.sync_engine, timeouts)
        if self.dialect == "sqlite":
            self._reader, self._writer = self.engine, self.engine.execution_options(is_writer=True)
        else:
            self._reader, self._writer = self.engine.execution_options(isolation_level="AUTOCOMMIT"), self.engine
        # SQLite has one writer at a time. Those of one process queue here, because waiting in SQLite means polling.
        self._turn = asyncio.Lock() if self.dialect == "sqlite" else nullcontext()
        self._calls: dict[asyncio.Task[Any], _Call] = {}

    async def read(self, work: Work[T]) -> T:
        """Run queries; each sees its own moment. `LedgerUnavailable` where nothing is found because rows are hidden."""

        async def find(connection: AsyncConnection) -> T:
            found = await work(connection)
            if not found:
                await connection.run_sync(ensure_all_is_seen)
            return found

        return await self._within_time(lambda call: self._readable(find, call))

    async def write(self, work: Work[T]) -> T:
        """Run `work` in one transaction: all of it happens, or nothing does. It starts anew where somebody was faster.

        Raises `LedgerUnavailable` or `LedgerMisuse`.
        """
        return await self._within_time(lambda call: self._run_until_first(work, call))

    async def close(self) -> None:
        """Let unfinished calls end, then close all connections."""
        if self._calls:
            await asyncio.wait(self._calls, timeout=self._timeouts.call.total_seconds())
        await self.engine.dispose()

    async def _readable(self, work: Work[T], call: _Call) -> T:
        try:
            return await self._run(self._reader, nullcontext(), work, call)
        except UnicodeEncodeError:  # Of what was asked for, and of no row.
            raise
        except ValueError as error:
            raise RowUnreadable(f"a row of the ledger cannot be read by this release ({type(error).__name__})") from error

    async def _run_until_first(self, work: Work[T], call: _Call) -> T:
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._run(self._writer, self._turn, work, call)
            except Outrun:
                continue
        return await self._run(self._writer, self._turn, work, call)

    async def _run(self, engine: AsyncEngine, turn: "asyncio.Lock | nullcontext[None]", work: Work[T], call: _Call) -> T:
        call.stage = Stage.WAITING
        try:
            async with turn:
                call.stage = Stage.CONNECTING
                async with engine.connect() as connection:
                    return await _committed(connection, work, call)
        except exc.SQLAlchemyError as error:
            raise translated(error, self._file) from error

    async def _within_time(self, run: Callable[[_Call], Coroutine[Any, Any, T]]) -> T:
        call = _Call()
        task = asyncio.create_task(run(call))
        self._calls[task] = call
        task.add_done_callback(self._forget)
        try:
            await asyncio.wait({task}, timeout=self._timeouts.call.total_seconds())
        except asyncio.CancelledError:
            self._give_up(task, call)
            raise
        if not task.done():
            self._give_up(task, call)
            raise self._unanswered(call)
        return task.result()

    def _give_up(self, task: "asyncio.Task[T]", call: _Call) -> None:
        """Not in the middle of a transaction of SQLite's, which ends by itself, and soon: broken off between two statements it
        would stay open, and keep everybody else from writing, until Python's collector finds what is left of it.
        """
        if self.dialect != "sqlite" or call.stage not in IN_TRANSACTION:
            task.cancel()

    def _unanswered(self, call: _Call) -> LedgerUnavailable:
        """By where it stood still; where other calls of this process have all connections, or their turn, by the oldest."""
        before = [other.stage for other in self._calls.values() if other.stage in IN_TRANSACTION]
        is_full = call.stage is Stage.CONNECTING and len(before) >= self._most
        is_behind = is_full or (call.stage is Stage.WAITING and bool(before))
        queued = f"all {self._most} connections of this process are in use, of one of which: " if is_full else ""
        stage = before[0] if is_behind else call.stage
        said = f"{queued}{stage.value} within {self._timeouts.call.total_seconds():g} s"
        return LedgerUnavailable(f"ledger at {self._place}: {said}; try again", fix_of_silence(stage, self.dialect))

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        del self._calls[task]
        if not task.cancelled():
            task.exception()  # Looked at, so that asyncio does not report an abandoned call's error as unseen.


async def _committed(connection: AsyncConnection, work: Work[T], call: _Call) -> T:
    call.stage = Stage.WORKING
    try:
        async with connection.begin():
            done = await work(connection)
            call.stage = Stage.COMMITTING
    except OF_WHAT_IS_HIDDEN:
        await connection.run_sync(ensure_all_is_seen)
        raise
    return done


def parse_url(url: str | URL) -> URL:
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


def place_of(url: str | URL) -> str:
    """Where a ledger is, for people: without a password, and without options, which may hold one. `LedgerMisuse` as above."""
    return parse_url(url).set(query={}).render_as_string(hide_password=True)


def _server_of(url: URL) -> tuple[object, object]:
    return url.query.get("host", url.host), url.query.get("port", str(url.port or PORT))


def _place_in_words(url: URL) -> str:
    return url.database or "" if url.get_backend_name() == "sqlite" else "{}:{}".format(*_server_of(url))


def sync_engine(url: str, timeouts: Timeouts) -> Engine:
    """The same database through a synchronous driver, for Alembic. Dispose of it."""
    parsed = parse_url(url)
    dialect = parsed.get_backend_name()
    # Both PostgreSQL doors use psycopg under one name; SQLite's synchronous driver is Python's own.
    engine = create_engine(
        parsed.set(drivername="sqlite") if dialect == "sqlite" else parsed, **_engine_options(dialect, timeouts)
    )
    prepare(engine, timeouts)
    return engine.execution_options(is_writer=True)


def prepare(engine: Engine, timeouts: Timeouts) -> None:
    """Whatever a connection needs before its first use."""
    if engine.dialect.name == "sqlite":
        _prepare_sqlite(engine)
    else:
        _prepare_postgresql(engine, timeouts)


def _prepare_sqlite(engine: Engine) -> None:
    """Foreign keys on, commits that survive a power cut, and writers that take their lock when they begin; and nobody goes on
    with files that were deleted under us (`own_files`)."""
    path = engine.url.database or ""

    @event.listens_for(engine, "do_connect")
    def _open_no_other(*_: object) -> None:
        if lost := deleted_here(path):  # a further connection would begin another -wal
            raise _without_name(path, lost, f"process {os.getpid()} has")
        if others := deleted_elsewhere(path):
            names = sorted({name for lost in others.values() for name in lost})
            raise _without_name(path, names, f"processes {', '.join(map(str, sorted(others)))} have")

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
            if lost := deleted_here(path):
                raise _without_name(path, lost, f"process {os.getpid()} has")
            connection.exec_driver_sql("BEGIN IMMEDIATE")


def _without_name(path: str, lost: Sequence[str], who_has: str) -> LedgerUnavailable:
    """SQLite writes nothing back as it closes a file that has lost its own name: that one has to be copied before."""
    said = f"deleted or replaced from outside: {', '.join(lost)}, which {who_has} open: nothing more is written"
    return LedgerUnavailable(said, FILE_DELETED if path in lost else DELETED)


def _prepare_postgresql(engine: Engine, timeouts: Timeouts) -> None:
    """The server ends what we no longer wait for, also when this process was stopped or lost: locks must not outlive us.

    Not as a start-up parameter, which PgBouncer refuses.
    """
    call, lock = (f"{limit.total_seconds() * 1000:.0f}" for limit in (timeouts.call, timeouts.lock))
    twice = f"{2 * timeouts.call.total_seconds() * 1000:.0f}"
    settings = {
        "statement_timeout": call,
        "lock_timeout": lock,
        "idle_in_transaction_session_timeout": twice,
        "timezone": "UTC",
        "datestyle": "ISO, YMD",  # the only one that psycopg reads; a database or a role may have another for people
    }
    chosen = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in settings.items())

    @event.listens_for(engine, "connect")
    def _set_limits(connection: DBAPIConnection, _record: object) -> None:
        cursor = connection.cursor()
        cursor.execute(f"SELECT {chosen}")
        cursor.close()
        connection.commit()


def _engine_options(dialect: str, timeouts: Timeouts) -> dict[str, Any]:
    connect_args = _sqlite_arguments(timeouts) if dialect == "sqlite" else _postgresql_arguments(timeouts)
    return {
        "connect_args": connect_args,
        "hide_parameters": True,
        "pool_pre_ping": dialect != "sqlite",
        "pool_timeout": 2 * timeouts.call.total_seconds(),  # never over: who waits gives up before
    }


def _sqlite_arguments(timeouts: Timeouts) -> dict[str, Any]:
    # `isolation_level=None`: Python's driver begins no transactions of its own; `_begin` does.
    return {"isolation_level": None, "timeout": timeouts.lock.total_seconds()}


def _postgresql_arguments(timeouts: Timeouts) -> dict[str, Any]:
    return {
        "application_name": "keeperless",
        "connect_timeout": max(2, round(timeouts.connect.total_seconds())),
        "keepalives_idle": 10,
        "tcp_user_timeout": int(2 * timeouts.call.total_seconds() * 1000),
    }
