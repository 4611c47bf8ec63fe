"""The chain of events: append-only, dense, whole after kills, and betraying every change."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import exc, text
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.records import Event, EventDraft, MigrationRecord, MigrationState, Progress
from domain.restored_history import ToldByRuns
from ledger import chain
from ledger.database import Database, Timeouts
from ledger.errors import LedgerMisuse, LedgerUnavailable, NoSuchMigration
from ledger.ledger import SqlLedger, open_ledger
from ledger.tables import events as event_table

NOW = datetime(2026, 3, 1, 3, 0, 0, 123456, tzinfo=UTC)
RUNNING = Progress(state=MigrationState.RUNNING)
PATIENT = Timeouts(call=timedelta(minutes=1), lock=timedelta(seconds=30))
IMPATIENT = Timeouts(call=timedelta(seconds=1), lock=timedelta(seconds=0.3))
EVENT_MAKER = Callable[..., EventDraft]

STOPS_INSIDE_ITS_TRANSACTION = """
import asyncio, sys, time
from datetime import UTC, datetime
from sqlalchemy import event
from domain.records import EventDraft, MigrationState, Progress
from ledger.database import Database
from ledger.ledger import SqlLedger

async def main(url, migration_id):
    database = Database(url)

    @event.listens_for(database.engine.sync_engine, "after_cursor_execute")
    def stop(connection, cursor, statement, *rest):
        if statement.startswith("INSERT INTO events"):
            print("inside", flush=True)
            time.sleep(600)

    drafts = [EventDraft(key=f"torn-{n}", kind="t", cluster="orders", at=datetime.now(UTC)) for n in range(5)]
    await SqlLedger(database).record(migration_id, drafts, Progress(state=MigrationState.SUCCEEDED))

asyncio.run(main(*sys.argv[1:]))
"""

RECORDS_WITHOUT_END = """
import asyncio, itertools, sys
from datetime import UTC, datetime
from domain.records import EventDraft, MigrationState, Progress
from ledger.ledger import open_ledger

async def main(url, migration_id, name):
    async with open_ledger(url) as ledger:
        for n in itertools.count():
            drafts = [EventDraft(key=f"{name}-{n}-{i}", kind="t", cluster="orders", at=datetime.now(UTC)) for i in range(3)]
            await ledger.record(migration_id, drafts, Progress(state=MigrationState.RUNNING, steps_done=n))
            print(n, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


@contextmanager
def program(source: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A Python program in a process of its own, killed at the end in any case."""
    command = [sys.executable, "-c", source, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


async def a_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return (await asyncio.to_thread(process.stdout.readline)).strip()


async def all_events(ledger: SqlLedger) -> list[Event]:
    return await ledger.events(limit=100_000)


def assert_dense(events: Sequence[Event]) -> None:
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


class TestAppending:
    async def test_events_follow_each_other(
        self, ledger: SqlLedger, migration: MigrationRecord, make_event: EVENT_MAKER
    ) -> None:
        await ledger.record(migration.id, [make_event("a"), make_event("b")], None)
        await ledger.record_event(make_event("call", cluster="nobody", data={"refused": "no such cluster"}))
        await ledger.record(migration.id, [make_event("c")], RUNNING)
        events = await all_events(ledger)
        assert [(e.key, e.migration_id) for e in events] == [
            ("a", migration.id),
            ("b", migration.id),
            ("call", None),
            ("c", migration.id),
        ]
        assert_dense(events)
        assert [e.prev_hash for e in events] == ["0" * 64, *[e.hash for e in events[:-1]]]
        assert await ledger.verify_chain() is None

    async def test_reading_on(self, ledger: SqlLedger, migration: MigrationRecord, make_event: EVENT_MAKER) -> None:
        await ledger.record(migration.id, [make_event(f"e{n}") for n in range(5)], None)
        await ledger.record_event(make_event("other"))
        assert [e.seq for e in await ledger.events(after_seq=2, limit=2)] == [3, 4]
        assert [e.seq for e in await ledger.events(migration.id, after_seq=4)] == [5]
        assert await ledger.events(after_seq=6) == []

    async def test_reading_some_kinds_only(
        self, ledger: SqlLedger, migration: MigrationRecord, make_event: EVENT_MAKER
    ) -> None:
        drafts = [make_event(f"e{n}").model_copy(update={"kind": kind}) for n, kind in enumerate(("a", "b", "a", "c"))]
        await ledger.record(migration.id, drafts, None)
        await ledger.record_event(make_event("other").model_copy(update={"kind": "a"}))
        assert [(e.seq, e.kind) for e in await ledger.events_of_kinds(migration.id, {"a", "c"})] == [
            (1, "a"),
            (3, "a"),
            (4, "c"),
        ]

    async def test_a_key_that_was_seen_is_skipped(
        self, ledger: SqlLedger, migration: MigrationRecord, make_event: EVENT_MAKER
    ) -> None:
        await ledger.record(migration.id, [make_event("a", data={"n": 1})], None)
        again = [make_event("a", data={"n": 2}), make_event("b"), make_event("b", data={"n": 3}), make_event("A")]
        for steps_done in (1, 2):
            await ledger.record(migration.id, again, RUNNING.model_copy(update={"steps_done": steps_done}))
        assert [(e.key, e.data) for e in await all_events(ledger)] == [("a", {"n": 1}), ("b", {}), ("A", {})]
        stored = await ledger.migration(migration.id)
        assert stored is not None
        assert stored.progress.steps_done == 2

    async def test_any_data_keeps_its_hash(self, ledger: SqlLedger, make_event: EVENT_MAKER) -> None:
        data: dict[str, Any] = {
            "text": "ü“\0\u2028\U0001f600",
            "numbers": [1e100, 1.0, -0.0, 10**30, 0.1, float("nan"), float("-inf")],
            "when": NOW,
            "deep": {"b": [{"a": None}], "a": True},
        }
        in_lima = NOW.astimezone(timezone(timedelta(hours=-5)))
        await ledger.record_event(make_event("odd", data=data, at=in_lima))
        (event,) = await all_events(ledger)
        assert event.at == NOW
        assert event.data["text"] == data["text"]
        assert event.data["numbers"] == [1e100, 1.0, -0.0, 10**30, 0.1, None, None]
        assert await ledger.verify_chain() is None

    async def test_what_is_refused_leaves_nothing(
        self, ledger: SqlLedger, migration: MigrationRecord, make_event: EVENT_MAKER
    ) -> None:
        with pytest.raises(NoSuchMigration):
            await ledger.record("nothing", [make_event("a")], None)
        with pytest.raises(LedgerMisuse, match="belongs to"):
            await ledger.record(migration.id, [make_event("a", migration_id="other")], None)
        with pytest.raises(LedgerMisuse, match="time zone"):
            await ledger.record(migration.id, [make_event("a", at=NOW.replace(tzinfo=None))], None)
        with pytest.raises(LedgerMisuse, match="JSON"):
            await ledger.record(migration.id, [make_event("a"), make_event("b", data={"x": "\ud800"})], None)
        assert await all_events(ledger) == []


class TestManyWriters:
    async def test_places_are_dense_and_the_chain_is_whole(
        self, ledger: SqlLedger, migration: MigrationRecord, database_url: str, make_event: EVENT_MAKER
    ) -> None:
        async def write(door: SqlLedger, name: str) -> None:
            for n in range(15):
                await door.record(migration.id, [make_event(f"{name}-{n}-a"), make_event(f"{name}-{n}-b")], RUNNING)
                await door.record_event(make_event(f"{name}-{n}-call", migration_id=migration.id))

        async with AsyncExitStack() as stack:
            doors = [ledger, *[await stack.enter_async_context(open_ledger(database_url, PATIENT)) for _ in range(3)]]
            writers = asyncio.gather(*[write(door, f"{i}-{j}") for i, door in enumerate(doors) for j in range(2)])
            seen = await self.read_until_done(ledger, writers)
        assert len(seen) == len(await all_events(ledger)) == 8 * 15 * 3
        assert_dense(seen)
        assert await ledger.verify_chain() is None

    async def read_until_done(self, ledger: SqlLedger, writers: "asyncio.Future[Any]") -> list[Event]:
        """What a stream would have sent: it reads on from the last place it saw."""
        seen: list[Event] = []
        is_last_look = False
        while not is_last_look:
            is_last_look = writers.done()
            seen += await ledger.events(after_seq=seen[-1].seq if seen else 0, limit=7 if not is_last_look else 100_000)
        await writers
        return seen


class TestKills:
    async def test_a_kill_inside_a_record_leaves_nothing_of_it(
        self, ledger: SqlLedger, migration: MigrationRecord, database_url: str, make_event: EVENT_MAKER
    ) -> None:
        await ledger.record(migration.id, [make_event("before")], RUNNING)
        other = Database(database_url, IMPATIENT)
        try:
            with program(STOPS_INSIDE_ITS_TRANSACTION, database_url, migration.id) as process:
                assert await a_line(process) == "inside"
                with pytest.raises(LedgerUnavailable):  # It holds its locks: the kill hits the middle of a transaction.
                    await SqlLedger(other).record(migration.id, [make_event("in the way")], None)
                process.send_signal(signal.SIGKILL)
                process.wait()
        finally:
            await other.close()
        await ledger.record(migration.id, [make_event("after")], None)
        assert [e.key for e in await all_events(ledger)] == ["before", "after"]
        assert (await ledger.migrations())[0].progress == RUNNING
        assert await ledger.verify_chain() is None

    async def test_kills_at_any_moment_lose_nothing_that_was_acknowledged(
        self, ledger: SqlLedger, migration: MigrationRecord, database_url: str
    ) -> None:
        acknowledged: set[str] = set()
        for round_ in range(3):
            with program(RECORDS_WITHOUT_END, database_url, migration.id, f"r{round_}") as process:
                for _ in range(10 + round_):
                    n = await a_line(process)
                    acknowledged |= {f"r{round_}-{n}-{i}" for i in range(3)}
                process.send_signal(signal.SIGKILL)
                process.wait()
        events = await all_events(ledger)
        assert acknowledged <= {event.key for event in events}
        assert len(events) % 3 == 0
        assert_dense(events)
        assert await ledger.verify_chain() is None


class TestTampering:
    """What somebody with rights on the database could do, and what becomes of it."""

    @pytest.fixture
    async def full(self, ledger: SqlLedger, make_event: EVENT_MAKER) -> SqlLedger:
        for n in range(1, 6):
            await ledger.record_event(make_event(f"e{n}", data={"n": n}))
        return ledger

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE events SET kind = 'x' WHERE seq = 2",
            "UPDATE events SET seq = 9 WHERE seq = 2",
            "DELETE FROM events WHERE seq = 5",
            "DELETE FROM events",
        ],
    )
    async def test_the_database_refuses_it(self, full: SqlLedger, database_url: str, statement: str) -> None:
        with pytest.raises(exc.IntegrityError):
            await execute(database_url, statement)
        assert await full.verify_chain() is None
        assert len(await all_events(full)) == 5

    async def test_it_refuses_each_databases_own_ways_around(self, full: SqlLedger, database_url: str) -> None:
        ways = {
            "sqlite": ("INSERT OR REPLACE " + SECOND_AGAIN_AT.format("seq"), "REPLACE " + SECOND_AGAIN_AT.format(6)),
            "postgresql": ("TRUNCATE events",),
        }
        for statement in ways[dialect_of(database_url)]:
            with pytest.raises(exc.IntegrityError):
                await execute(database_url, statement)
        assert len(await all_events(full)) == 5

    @pytest.mark.parametrize(
        ("statement", "first_bad"),
        [
            ("UPDATE events SET data = '{\"n\": 7}' WHERE seq = 3", 3),
            ("UPDATE events SET data = '7' WHERE seq = 3", 3),
            ("UPDATE events SET at = '2026-03-01 03:00:00.123457' WHERE seq = 1", 1),
            ("UPDATE events SET kind = 'x' WHERE seq = 2", 2),
            ("UPDATE events SET key = 'x' WHERE seq = 5", 5),
            ("UPDATE events SET migration_id = 'x' WHERE seq = 4", 4),
            ("UPDATE events SET hash = prev_hash WHERE seq = 4", 4),
            ("UPDATE events SET seq = 9 WHERE seq = 5", 5),
            ("DELETE FROM events WHERE seq = 1", 1),
            ("DELETE FROM events WHERE seq = 3", 3),
            ("DELETE FROM events WHERE seq >= 4", 4),
            ("DELETE FROM events", 1),
        ],
    )
    async def test_it_is_found_without_the_triggers(
        self, full: SqlLedger, database_url: str, statement: str, first_bad: int
    ) -> None:
        await execute(database_url, *WITHOUT_TRIGGERS[dialect_of(database_url)], statement)
        assert await full.verify_chain() == first_bad

    async def test_an_end_that_was_written_anew_is_found(
        self, full: SqlLedger, database_url: str, make_event: EVENT_MAKER
    ) -> None:
        third = (await all_events(full))[2]
        forged = chain.linked([make_event("e4"), make_event("e5")], third.seq, third.hash)
        await execute(database_url, *WITHOUT_TRIGGERS[dialect_of(database_url)], "DELETE FROM events WHERE seq > 3")

        async def insert(connection: AsyncConnection) -> None:
            await connection.execute(event_table.insert(), [event.model_dump() for event in forged])

        await in_database(database_url, insert)
        assert await full.verify_chain() == 5

    async def test_an_empty_chain_is_whole(self, ledger: SqlLedger) -> None:
        assert await ledger.verify_chain() is None

    async def test_a_long_chain_is_read_in_pieces(
        self, ledger: SqlLedger, migration: MigrationRecord, make_event: EVENT_MAKER
    ) -> None:
        await ledger.record(migration.id, [make_event(f"e{n}") for n in range(2_345)], None)
        assert await ledger.verify_chain() is None
        assert len(await all_events(ledger)) == 2_345


# SQLite's REPLACE deletes the row that is in the way of the same place, or the same key, without its delete trigger.
SECOND_AGAIN_AT = (
    "INTO events (seq, key, kind, cluster, at, data, prev_hash, hash) "
    "SELECT {}, key, 'x', cluster, at, data, prev_hash, hash FROM events WHERE seq = 2"
)
WITHOUT_TRIGGERS = {
    "sqlite": ("DROP TRIGGER events_no_update", "DROP TRIGGER events_no_delete", "DROP TRIGGER events_no_replace"),
    "postgresql": ("ALTER TABLE events DISABLE TRIGGER ALL",),
}


def dialect_of(url: str) -> str:
    return url.split(":", maxsplit=1)[0]


async def in_database(url: str, work: Callable[[AsyncConnection], Any]) -> None:
    """Past the ledger, with the database's own errors."""
    database = Database(url)
    try:
        async with database.engine.begin() as connection:
            await work(connection)
    finally:
        await database.close()


async def execute(url: str, *statements: str) -> None:
    async def run(connection: AsyncConnection) -> None:
        for statement in statements:
            await connection.execute(text(statement.replace(":", r"\:")))

    await in_database(url, run)


RUN, LATER = "0f851fdf-3b45-4cd6-9fbb-0579466cebdf", "1a2b3c4d-3b45-4cd6-9fbb-0579466cebdf"


async def test_what_a_run_tells_again_under_a_number_is_kept_where_it_is_something_else(
    ledger: SqlLedger, migration: MigrationRecord, make_event: Callable[..., EventDraft]
) -> None:
    """Temporal was set back, and the run does not know of the first. A record that is sent twice is still one."""
    first, other = make_event(f"{RUN}:7", data={"step": 1}), make_event(f"{RUN}:7", data={"step": 2})
    for told in (first, other, first, other):
        await ledger.record(migration.id, [told, make_event("not/a/run", data={"step": 1})], None)
    await ledger.record(migration.id, [make_event("not/a/run", data={"step": 2})], None)
    found = [(event.key.partition("~")[0], event.data["step"]) for event in await ledger.events(migration.id)]
    assert found == [(f"{RUN}:7", 1), ("not/a/run", 1), (f"{RUN}:7", 2)]
    assert await ledger.verify_chain() is None


async def test_what_runs_have_told_of_the_time_before(
    ledger: SqlLedger, migration: MigrationRecord, make_event: Callable[..., EventDraft]
) -> None:
    at = datetime(2026, 11, 20, 3, tzinfo=UTC)
    assert await ledger.told_by_runs(migration.id, at) == ToldByRuns(count=0)
    drafts = [
        make_event(f"{RUN}:1", at=at),
        make_event(f"{RUN}:2", at=at + timedelta(microseconds=1)),
        make_event(f"{LATER}:3", at=at + timedelta(seconds=1), kind="held"),
        make_event(f"{RUN}/set-back", at=at),
        make_event("command/1", at=at),
    ]
    await ledger.record(migration.id, drafts, None)
    assert (await ledger.told_by_runs(migration.id, at + timedelta(microseconds=1))).count == 1
    told = await ledger.told_by_runs(migration.id, at + timedelta(minutes=1))
    assert told == ToldByRuns(count=3, newest_kind="held", newest_at=at + timedelta(seconds=1))
    step = {"step": 7, "node": "broker-1"}
    await ledger.record(migration.id, [make_event(f"{LATER}:4", at=at, kind="step-started", data=step)], None)
    told = await ledger.told_by_runs(migration.id, at)
    assert (told.last_step, told.is_step_over) == (7, False), "whenever that was"
    await ledger.record(migration.id, [make_event(f"{LATER}:5", at=at, kind="step-blocked", data=step)], None)
    told = await ledger.told_by_runs(migration.id, at)
    assert (told.last_step, told.is_step_over) == (7, True)
