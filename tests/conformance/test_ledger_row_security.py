"""Row-level security on the ledger's tables, which are a DBA's: what it hides is never told as what never was."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import make_url

from api.answers.problems import ProblemKind
from api.answers.translation import problem_of
from api.routes.health import _has_ledger
from api.routes.migrations import existing
from domain.cluster import ClusterSpec
from domain.drift.report import CheckName
from domain.records import Command, CommandKind, EventDraft, MigrationRecord, MigrationState
from ledger.database import Database, Timeouts
from ledger.errors import LedgerUnavailable, NoSuchMigration
from ledger.ledger import SqlLedger
from ledger.schema import upgrade
from ledger.tables import metadata
from tests.conformance.conftest import is_current

NOW = datetime(2026, 3, 1, 3, 0, 0, 123456, tzinfo=UTC)
PATIENT = Timeouts(call=timedelta(minutes=1), lock=timedelta(seconds=30))
TABLES = (*metadata.tables, "alembic_version")
Sql = Callable[[str], None]


@pytest.fixture
def dba(postgres: Any) -> Iterator[psycopg.Connection[Any]]:
    """The owner of an empty database. `eve` owns nothing in it."""
    name = f"t{uuid4().hex}"
    with psycopg.connect(postgres.get_uri(), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}".encode())
        server.execute("CREATE ROLE eve LOGIN")
        try:
            with psycopg.connect(postgres.get_uri(name), autocommit=True) as connection:
                yield connection
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
            server.execute("DROP ROLE eve")


@pytest.fixture
def url(dba: psycopg.Connection[Any], postgres: Any) -> str:
    return str(postgres.get_uri(dba.info.dbname))


@pytest.fixture
def eves_url(url: str) -> str:
    return make_url(url).set(username="eve", password=None).render_as_string()


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[SqlLedger]:
    database = Database(url, PATIENT)
    try:
        yield SqlLedger(database)
    finally:
        await database.close()


@pytest.fixture
async def stored(
    dba: psycopg.Connection[Any],
    url: str,
    make_spec: Callable[..., ClusterSpec],
    make_migration: Callable[..., MigrationRecord],
) -> MigrationRecord:
    """A migration in a ledger of which `eve` may use all tables."""
    await upgrade(url)
    async with opened(url) as ledger:
        await ledger.put_cluster(make_spec(), NOW)
        await ledger.create_migration(migration := make_migration())
    dba.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO eve")
    return migration


@pytest.fixture
async def eves(stored: MigrationRecord, eves_url: str) -> AsyncIterator[SqlLedger]:
    async with opened(eves_url) as ledger:
        yield ledger


@pytest.fixture
def on_all_tables(dba: psycopg.Connection[Any]) -> Sql:
    def execute(sql: str) -> None:
        for table in TABLES:
            dba.execute(sql.replace("{}", table).encode())

    return execute


SECURED = "ALTER TABLE {} ENABLE ROW LEVEL SECURITY"
UNSECURED = "ALTER TABLE {} DISABLE ROW LEVEL SECURITY"


def command_of(migration: MigrationRecord) -> Command:
    return Command(id="c1", migration_id=migration.id, kind=CommandKind.HOLD, by="ann", via="api", at=NOW)


Call = Callable[[SqlLedger, MigrationRecord], Any]
CALLS: dict[str, Call] = {
    "cluster": lambda ledger, m: ledger.cluster(m.cluster),
    "clusters": lambda ledger, m: ledger.clusters(),
    "cluster_spec": lambda ledger, m: ledger.cluster_spec(m.cluster, 1),
    "generation": lambda ledger, m: ledger.generation(m.cluster),
    "migration": lambda ledger, m: ledger.migration(m.id),
    "active_migration": lambda ledger, m: ledger.active_migration(m.cluster),
    "migrations": lambda ledger, m: ledger.migrations(),
    "command": lambda ledger, m: ledger.command("c1"),
    "commands": lambda ledger, m: ledger.commands(m.id),
    "with_undelivered_commands": lambda ledger, m: ledger.with_undelivered_commands(),
    "report": lambda ledger, m: ledger.report("r1"),
    "newest_reports": lambda ledger, m: ledger.newest_reports(m.cluster, CheckName.METADATA),
    "baseline": lambda ledger, m: ledger.baseline(m.cluster),
    "drifts_found": lambda ledger, m: ledger.drifts_found(m.cluster, CheckName.METADATA),
    "plan": lambda ledger, m: ledger.plan("p1"),
    "measured_steps": lambda ledger, m: ledger.measured_steps(m.cluster),
    "note": lambda ledger, m: ledger.note(m.id, "orders-1"),
    "noted": lambda ledger, m: ledger.noted(m.id),
    "events": lambda ledger, m: ledger.events(),
    "verify_chain": lambda ledger, m: ledger.verify_chain(),
    "ping": lambda ledger, m: ledger.ping(),
    "create_migration": lambda ledger, m: ledger.create_migration(m),
    "claim": lambda ledger, m: ledger.claim(m.id, "run", NOW),
    "end_unstarted": lambda ledger, m: ledger.end_unstarted(m.id, MigrationState.FAILED, "no", NOW),
    "add_command": lambda ledger, m: ledger.add_command(command_of(m)),
    "mark_delivered": lambda ledger, m: ledger.mark_delivered("c1", NOW),
    "record": lambda ledger, m: ledger.record(m.id, [], m.progress),
    "prove_writable": lambda ledger, m: ledger.prove_writable(m.id),
    "record_event": lambda ledger, m: ledger.record_event(EventDraft(key="a", kind="test", cluster="orders", at=NOW)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=[f"ledger.{name}" for name in CALLS])
async def test_what_row_security_hides_is_not_told_as_absent(
    call: Call, eves: SqlLedger, stored: MigrationRecord, on_all_tables: Sql
) -> None:
    on_all_tables(SECURED)
    with pytest.raises(LedgerUnavailable, match=r"may hide rows of .* from its role eve: of .*migrations") as error:
        await call(eves, stored)
    assert "DISABLE ROW LEVEL SECURITY" in error.value.fix
    on_all_tables(UNSECURED)
    assert await eves.migration(stored.id) == stored


async def test_the_api_does_not_answer_404_and_is_not_ready(
    eves: SqlLedger, stored: MigrationRecord, on_all_tables: Sql
) -> None:
    wiring: Any = SimpleNamespace(ledger=eves, schema=SimpleNamespace(is_current=True))
    assert await _has_ledger(wiring)
    on_all_tables(SECURED)
    with pytest.raises(LedgerUnavailable) as error:
        await existing(wiring, stored.id)
    assert problem_of(error.value).kind is ProblemKind.LEDGER_UNAVAILABLE
    assert not await _has_ledger(wiring)


@pytest.mark.parametrize("table", ["clusters", "cluster_revisions", "migrations", "events"])
async def test_a_row_that_row_security_refuses_is_no_lack_of_a_grant(
    table: str, eves: SqlLedger, dba: psycopg.Connection[Any], make_spec: Callable[..., ClusterSpec], make_migration: Any
) -> None:
    dba.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY".encode())

    async def write() -> None:
        await eves.put_cluster(make_spec(name="other", cluster_id="kafka-2"), NOW)
        await eves.create_migration(make_migration(cluster="other", cluster_id="kafka-2"))
        await eves.record_event(EventDraft(key="a", kind="test", cluster="orders", at=NOW))

    with pytest.raises(LedgerUnavailable, match=f'row-level security policy for table "{table}"') as error:
        await write()
    assert "DISABLE ROW LEVEL SECURITY" in error.value.fix
    assert "GRANT" not in error.value.fix


async def test_a_key_that_is_hidden_was_not_written_by_somebody_else(
    eves: SqlLedger, dba: psycopg.Connection[Any], stored: MigrationRecord, make_spec: Callable[..., ClusterSpec]
) -> None:
    dba.execute("ALTER TABLE clusters ENABLE ROW LEVEL SECURITY")
    dba.execute("CREATE POLICY adds ON clusters FOR INSERT WITH CHECK (true)")
    with pytest.raises(LedgerUnavailable, match="from its role eve: of clusters") as error:
        await eves.put_cluster(make_spec(), NOW)
    assert "DISABLE ROW LEVEL SECURITY" in error.value.fix


async def test_where_row_security_is_to_refuse_instead_of_to_hide_it_is_told_the_same(
    eves_url: str, dba: psycopg.Connection[Any], stored: MigrationRecord, on_all_tables: Sql
) -> None:
    on_all_tables(SECURED)
    dba.execute("ALTER ROLE eve SET row_security = off")
    async with opened(eves_url) as ledger:
        with pytest.raises(LedgerUnavailable, match='row-level security policy for table "migrations"') as error:
            await ledger.migration(stored.id)
    assert "DISABLE ROW LEVEL SECURITY" in error.value.fix


async def test_a_right_that_lacks_is_told_as_such_under_row_security_too(
    eves: SqlLedger, dba: psycopg.Connection[Any], stored: MigrationRecord, on_all_tables: Sql
) -> None:
    on_all_tables(SECURED)
    dba.execute("REVOKE SELECT ON migrations FROM eve")
    with pytest.raises(LedgerUnavailable, match="permission denied for table migrations") as error:
        await eves.migration(stored.id)
    assert "GRANT" in error.value.fix


@pytest.mark.parametrize(
    "mended",
    [
        "ALTER ROLE eve BYPASSRLS",
        "CREATE POLICY keeperless ON {} TO eve USING (true) WITH CHECK (true)",
        "CREATE POLICY r ON {} FOR SELECT USING (true); CREATE POLICY i ON {} FOR INSERT WITH CHECK (true); "
        "CREATE POLICY u ON {} FOR UPDATE USING (true)",
        UNSECURED,
    ],
)
async def test_what_the_fix_says_mends_it_and_absence_is_absence_again(
    mended: str, eves: SqlLedger, stored: MigrationRecord, on_all_tables: Sql
) -> None:
    on_all_tables(SECURED)
    on_all_tables(mended)
    await eves.ping()
    assert await eves.migration(stored.id) == stored
    assert await eves.migration("none") is None
    assert await eves.events() == []
    with pytest.raises(NoSuchMigration):
        await eves.prove_writable("none")
    await eves.record(stored.id, [EventDraft(key="a", kind="test", cluster="orders", at=NOW)], stored.progress)
    assert await eves.verify_chain() is None


@pytest.mark.parametrize(
    "policies",
    [
        "CREATE POLICY reads ON {} FOR SELECT USING (true)",
        "CREATE POLICY others ON {} TO pg_monitor USING (true)",
        "CREATE POLICY part ON {} USING (current_user <> 'eve')",
        "CREATE POLICY yes ON {} USING (true); CREATE POLICY no ON {} AS RESTRICTIVE USING (current_user <> 'eve')",
    ],
)
async def test_a_policy_that_does_not_let_it_see_and_change_all_is_not_enough(
    policies: str, eves: SqlLedger, stored: MigrationRecord, on_all_tables: Sql
) -> None:
    on_all_tables(SECURED)
    on_all_tables(policies)
    for call in (CALLS["ping"], CALLS["prove_writable"]):
        with pytest.raises(LedgerUnavailable, match="row-level security may hide rows"):
            await call(eves, stored)


async def test_a_program_that_starts_meanwhile_waits_with_the_same_words(
    stored: MigrationRecord, eves_url: str, on_all_tables: Sql
) -> None:
    """Without the row of its version the ledger would look like one that has to be created."""
    on_all_tables(SECURED)
    with pytest.raises(LedgerUnavailable, match=r"may hide rows of .* from its role eve: of alembic_version") as error:
        await upgrade(eves_url)
    assert "DISABLE ROW LEVEL SECURITY" in error.value.fix
    on_all_tables(UNSECURED)
    await upgrade(eves_url)
    assert is_current(eves_url)
