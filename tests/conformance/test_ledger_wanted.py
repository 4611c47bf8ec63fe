"""Version 0010 takes what is wanted out of specifications, in a ledger that is full of data, and puts it back."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from sqlalchemy import (
    JSON,
    Boolean,
    Connection,
    DateTime,
    Engine,
    Integer,
    MetaData,
    Table,
    func,
    make_url,
    select,
    text,
    update,
)

from domain.cluster import ClusterSpec
from domain.zk_to_kraft.wanted import ZkToKraftWanted
from ledger.database import DEFAULT_TIMEOUTS, sync_engine
from ledger.ledger import open_ledger
from ledger.schema import _config
from playground.wanted import before, wanted_json, wanted_of
from tests.conformance.conftest import NOW

MANY = 20
"""Rows of each table that can have them: those that a copied table would lose."""


@pytest.fixture
def spec(make_spec: Callable[..., ClusterSpec]) -> ClusterSpec:
    return make_spec()


@pytest.fixture
def engine(database_url: str, spec: ClusterSpec) -> Iterator[Engine]:
    """A ledger of the version before, with rows in every table."""
    Path(make_url(database_url).database or "").parent.mkdir(exist_ok=True)
    engine = sync_engine(database_url, DEFAULT_TIMEOUTS)
    try:
        with engine.begin() as connection:
            command.upgrade(_config(connection), "0009")
            fill(connection, spec)
        yield engine
    finally:
        engine.dispose()


def old_form(spec: ClusterSpec) -> dict[str, Any]:
    return before(spec).model_dump(mode="json", exclude={"quorum"}) | wanted_json(spec)


def tables_of(connection: Connection) -> list[Table]:
    reflected = MetaData()
    reflected.reflect(connection)
    return [table for table in reflected.sorted_tables if table.name != "alembic_version"]


def fill(connection: Connection, spec: ClusterSpec) -> None:
    """Values by their columns' types; what this version converts is as releases have written it."""
    own = {
        "clusters": {"spec": old_form(spec)},
        "cluster_revisions": {"spec": old_form(spec)},
        "plans": {"plan": {"cluster": "orders", "spec_revision": 1, "kind": "zk-to-kraft"}},
    }
    for table in tables_of(connection):
        if table.name == "chain_head":
            continue
        count = 1 if table.name in {"clusters", "migrations", "cluster_revisions"} else MANY
        rows = [{column.name: value_of(column, number) for column in table.columns} for number in range(1, count + 1)]
        connection.execute(table.insert(), [row | own.get(table.name, {}) for row in rows])


def value_of(column: Any, number: int) -> Any:
    named = {"cluster": "orders", "name": "orders", "migration_id": "1", "key_id": "1"}
    if column.name in named:
        return named[column.name]
    moment = NOW + timedelta(minutes=number)
    values: tuple[tuple[type, Any], ...] = ((JSON, {}), (Boolean, False), (Integer, number), (DateTime, moment))
    return next((value for kind, value in values if isinstance(column.type, kind)), str(number))


def counted(connection: Connection) -> dict[str, int]:
    return {
        table.name: connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables_of(connection)
    }


def triggers(connection: Connection) -> list[str]:
    of_sqlite = "SELECT name FROM sqlite_master WHERE type = 'trigger' ORDER BY name"
    of_postgresql = "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal ORDER BY tgname"
    is_sqlite = connection.dialect.name == "sqlite"
    return list(connection.execute(text(of_sqlite if is_sqlite else of_postgresql)).scalars())


def everything(connection: Connection) -> dict[str, list[tuple[Any, ...]]]:
    return {
        table.name: sorted((tuple(row) for row in connection.execute(select(table))), key=str)
        for table in tables_of(connection)
    }


def move(engine: Engine, there: Callable[..., None], version: str) -> None:
    with engine.begin() as connection:
        there(_config(connection), version)


def test_a_full_ledger_goes_up_and_down_without_a_loss(engine: Engine) -> None:
    with engine.connect() as connection:
        rows, fired, old = counted(connection), triggers(connection), everything(connection)
    print(rows, fired)
    assert min(rows.values()) >= 1
    assert fired
    move(engine, command.upgrade, "0010")
    with engine.connect() as connection:
        assert (counted(connection), triggers(connection)) == (rows, fired)
    move(engine, command.downgrade, "0009")
    with engine.connect() as connection:
        assert (counted(connection), triggers(connection)) == (rows, fired)
        assert everything(connection) == old


async def test_migrations_and_plans_get_what_their_revision_had(engine: Engine, database_url: str, spec: ClusterSpec) -> None:
    move(engine, command.upgrade, "0010")
    with engine.connect() as connection:
        found = {table.name: table for table in tables_of(connection)}
        wanted = connection.execute(select(found["migrations"].c.wanted)).scalar_one()
        plans = list(connection.execute(select(found["plans"].c.plan)).scalars())
    assert ZkToKraftWanted.model_validate(wanted) == wanted_of(spec)
    assert [plan["wanted"] for plan in plans] == [wanted] * MANY
    async with open_ledger(database_url) as ledger:
        record = await ledger.cluster("orders")
        assert record is not None
        assert (record.spec, record.revision) == (before(spec), 1)
        assert await ledger.cluster_spec("orders", 1) == before(spec)


@pytest.mark.parametrize("missing", ["zookeeper", "wanted"])
def test_what_an_older_release_cannot_read_is_not_taken_down(engine: Engine, missing: str) -> None:
    move(engine, command.upgrade, "0010")
    with engine.begin() as connection:
        found = {table.name: table for table in tables_of(connection)}
        clusters, migrations, plans = (found[name] for name in ("clusters", "migrations", "plans"))
        spec = connection.execute(select(clusters.c.spec)).scalar_one()
        if missing == "zookeeper":
            connection.execute(update(clusters).values(spec=spec | {"zookeeper": None}))
        else:
            connection.execute(update(migrations).values(wanted={}))
            connection.execute(update(plans).values(plan={"cluster": "orders", "spec_revision": 1, "wanted": {}}))
        present = everything(connection)
    with pytest.raises(
        ValueError, match="revision 1 of cluster orders has no ZooKeeper, or the ledger does not have its controllers"
    ):
        move(engine, command.downgrade, "0009")
    with engine.connect() as connection:
        assert everything(connection) == present
