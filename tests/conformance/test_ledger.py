"""The port, clusters and commands in the ledger: the same on SQLite and on a real PostgreSQL."""

import asyncio
import inspect
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from temporalio.testing import ActivityEnvironment

from activities.ports.ports import Ports
from activities.ports.stores import Ledger
from activities.recording import Recording
from activities.shipped_kinds import SHIPPED_KINDS
from domain.cluster import ClusterSpec, JolokiaEndpoint, KafkaClientSpec
from domain.contracts import RecordRequest
from domain.records import (
    Command,
    CommandKind,
    MigrationRecord,
    MigrationState,
    Progress,
)
from domain.zk_to_kraft.kind import ZK_TO_KRAFT
from domain.zk_to_kraft.steps import GateName
from ledger.errors import (
    ActiveMigration,
    ClusterIdTaken,
    NoSuchCluster,
    NoSuchCommand,
    NoSuchMigration,
)
from ledger.ledger import SqlLedger
from playground.wanted import before, wanted_of

NOW = datetime(2026, 3, 1, 3, 0, 0, 123456, tzinfo=UTC)
LATER = NOW + timedelta(minutes=7)
SPEC_MAKER = Callable[..., ClusterSpec]
MIGRATION_MAKER = Callable[..., MigrationRecord]


def aimed(migration: MigrationRecord, spec: ClusterSpec) -> ClusterSpec:
    return ZK_TO_KRAFT.aimed(spec, migration.wanted)


def a_command(migration_id: str, command_id: str = "c1", at: datetime = NOW) -> Command:
    return Command(
        id=command_id,
        migration_id=migration_id,
        kind=CommandKind.APPROVE,
        gate=GateName.FINALIZE,
        evidence_hash="e" * 64,
        reason="soaked a week; all clean — “go”",
        by="bea",
        via="api",
        at=at,
    )


class TestPort:
    async def test_it_is_what_activities_ask_for(self, ledger: SqlLedger) -> None:
        port: Ledger = ledger  # mypy holds the types to the port
        for name, asked in inspect.getmembers(Ledger, inspect.isfunction):
            if not name.startswith("_"):
                given = inspect.signature(getattr(type(port), name))
                assert given == inspect.signature(asked), name

    async def test_it_answers(self, ledger: SqlLedger) -> None:
        await ledger.ping()


class TestClusters:
    async def test_the_first_put_registers(self, ledger: SqlLedger, make_spec: SPEC_MAKER) -> None:
        record, created = await ledger.put_cluster(make_spec(), NOW)
        assert created
        assert (record.revision, record.generation, record.created_at, record.updated_at) == (1, 0, NOW, NOW)
        assert await ledger.cluster("orders") == record

    async def test_the_same_spec_again_changes_nothing(self, ledger: SqlLedger, make_spec: SPEC_MAKER) -> None:
        first, _ = await ledger.put_cluster(make_spec(), NOW)
        assert await ledger.put_cluster(make_spec(), LATER) == (first, False)

    async def test_a_changed_spec_is_a_revision_and_the_old_one_is_kept(self, ledger: SqlLedger, make_spec: SPEC_MAKER) -> None:
        await ledger.put_cluster(make_spec(), NOW)
        record, created = await ledger.put_cluster(make_spec(rack="b"), LATER)
        assert not created
        assert (record.revision, record.created_at, record.updated_at) == (2, NOW, LATER)
        assert await ledger.cluster("orders") == record
        assert await ledger.cluster_spec("orders", 1) == make_spec()
        assert await ledger.cluster_spec("orders", 2) == make_spec(rack="b")
        assert await ledger.cluster_spec("orders", 3) is None

    async def test_a_revision_keeps_the_generation(
        self, ledger: SqlLedger, migration: MigrationRecord, make_spec: SPEC_MAKER
    ) -> None:
        await ledger.claim(migration.id, "run-1", NOW)
        await ledger.record(migration.id, [], Progress(state=MigrationState.SUCCEEDED))
        record, _ = await ledger.put_cluster(make_spec(rack="b"), LATER)
        assert record.generation == 1

    async def test_an_active_migration_keeps_the_spec_as_it_is(
        self, ledger: SqlLedger, migration: MigrationRecord, make_spec: SPEC_MAKER
    ) -> None:
        with pytest.raises(ActiveMigration) as refusal:
            await ledger.put_cluster(make_spec(rack="b"), LATER)
        assert refusal.value.migration_id == migration.id
        assert (await ledger.put_cluster(make_spec(), LATER))[0].revision == 1

    async def test_while_a_migration_is_held_how_to_look_may_be_corrected(
        self, ledger: SqlLedger, migration: MigrationRecord, make_spec: SPEC_MAKER
    ) -> None:
        spec = make_spec()
        moved = spec.model_copy(update={"kafka": KafkaClientSpec(bootstrap_servers=("elsewhere:9092",))})
        await ledger.claim(migration.id, "run-1", NOW)
        await ledger.record(migration.id, [], Progress(state=MigrationState.WAITING))
        with pytest.raises(ActiveMigration):
            await ledger.put_cluster(moved, LATER)
        await ledger.record(migration.id, [], Progress(state=MigrationState.HELD))
        assert (await ledger.put_cluster(moved, LATER))[0].revision == 2
        with pytest.raises(ActiveMigration):
            await ledger.put_cluster(make_spec(rack="b"), LATER)

    async def test_while_a_migration_is_held_its_controllers_may_be_reached_otherwise(
        self, ledger: SqlLedger, make_spec: SPEC_MAKER, make_migration: Callable[..., MigrationRecord]
    ) -> None:
        """They are wanted, and no part of the specification before somebody registers them."""
        spec = make_spec()
        await ledger.put_cluster(before(spec), NOW)
        await ledger.create_migration(migration := make_migration(wanted=wanted_of(spec)))
        await ledger.claim(migration.id, "run-1", NOW)
        await ledger.record(migration.id, [], Progress(state=MigrationState.HELD))
        elsewhere = JolokiaEndpoint(url="http://elsewhere:1/jolokia")
        for change, is_taken in (({"port": 9099}, False), ({"metrics": elsewhere}, True)):
            controllers = tuple(controller.model_copy(update=change) for controller in spec.controllers)
            put = ledger.put_cluster(spec.with_quorum_changed(controllers=controllers), LATER, aimed)
            if is_taken:
                assert (await put)[0].revision == 2
            else:
                with pytest.raises(ActiveMigration):
                    await put

    async def test_a_migration_registers_at_its_end_what_it_has_achieved(
        self, ledger: SqlLedger, make_spec: SPEC_MAKER, make_migration: Callable[..., MigrationRecord]
    ) -> None:
        spec = make_spec()
        await ledger.put_cluster(before(spec), NOW)
        await ledger.create_migration(migration := make_migration(wanted=wanted_of(spec)))
        await ledger.claim(migration.id, "run-1", NOW)
        environment, recording = ActivityEnvironment(), Recording(Ports(ledger, *[cast("Any", None)] * 5, kinds=SHIPPED_KINDS))
        for state in (MigrationState.RUNNING, MigrationState.SUCCEEDED, MigrationState.SUCCEEDED):
            request = RecordRequest(migration_id=migration.id, cluster="orders", generation=1, progress=Progress(state=state))
            await environment.run(recording.record_progress, request)
            present = await ledger.cluster("orders")
            assert present is not None
            assert present.revision == (1 if state is MigrationState.RUNNING else 2)
        assert present.spec == spec.model_copy(update={"zookeeper": None})
        assert await ledger.cluster_spec("orders", 1) == before(spec)
        (event,) = await ledger.events(migration.id)
        assert (event.kind, event.data) == ("specification-revised", {"revision": 2})

    async def test_a_rollback_registers_nothing(
        self, ledger: SqlLedger, migration: MigrationRecord, make_spec: SPEC_MAKER
    ) -> None:
        progress = Progress(state=MigrationState.REVERTED)
        request = RecordRequest(migration_id=migration.id, cluster="orders", generation=1, progress=progress)
        await ActivityEnvironment().run(
            Recording(Ports(ledger, *[cast("Any", None)] * 5, kinds=SHIPPED_KINDS)).record_progress, request
        )
        present = await ledger.cluster("orders")
        assert present is not None
        assert (present.spec, present.revision) == (make_spec(), 1)

    async def test_one_kafka_cluster_has_one_name(self, ledger: SqlLedger, make_spec: SPEC_MAKER) -> None:
        await ledger.put_cluster(make_spec("orders", "kafka-1"), NOW)
        await ledger.put_cluster(make_spec("payments", "kafka-2"), NOW)
        for name in ("copy-of-orders", "payments"):
            with pytest.raises(ClusterIdTaken) as refusal:
                await ledger.put_cluster(make_spec(name, "kafka-1"), LATER)
            assert refusal.value.holder == "orders"

    async def test_of_racing_names_one_gets_the_kafka_cluster(self, ledger: SqlLedger, make_spec: SPEC_MAKER) -> None:
        puts = [ledger.put_cluster(make_spec(f"name-{n}", "kafka-1"), NOW) for n in range(8)]
        results = await asyncio.gather(*puts, return_exceptions=True)
        assert sum(isinstance(result, tuple) for result in results) == 1
        assert sum(isinstance(result, ClusterIdTaken) for result in results) == 7

    async def test_racing_puts_of_one_name_are_one_cluster(self, ledger: SqlLedger, make_spec: SPEC_MAKER) -> None:
        results = await asyncio.gather(*[ledger.put_cluster(make_spec(), NOW) for _ in range(8)])
        assert sorted(created for _, created in results) == [False] * 7 + [True]
        assert {record.revision for record, _ in results} == {1}

    async def test_clusters_are_listed_by_name(self, ledger: SqlLedger, make_spec: SPEC_MAKER) -> None:
        for name in ("b-2", "b2", "a", "b"):
            await ledger.put_cluster(make_spec(name, f"id-{name}"), NOW)
        assert [record.spec.name for record in await ledger.clusters()] == ["a", "b", "b-2", "b2"]

    async def test_what_is_unknown(self, ledger: SqlLedger) -> None:
        assert await ledger.cluster("nobody") is None
        assert await ledger.clusters() == []
        with pytest.raises(NoSuchCluster):
            await ledger.generation("nobody")


class TestCommands:
    async def test_commands_are_kept_in_their_order(self, ledger: SqlLedger, migration: MigrationRecord) -> None:
        later, first = a_command(migration.id, "c1", LATER), a_command(migration.id, "c2", NOW)
        stored = [await ledger.add_command(command) for command in (later, first)]
        assert await ledger.commands(migration.id) == [*reversed(stored)]
        assert stored[0].refused_because is None
        assert (stored[1].refused_because or "").startswith("finalize is approved already, by bea")

    async def test_the_same_command_again_changes_nothing(self, ledger: SqlLedger, migration: MigrationRecord) -> None:
        await ledger.add_command(a_command(migration.id))
        await ledger.mark_delivered("c1", NOW)
        await asyncio.gather(*[ledger.add_command(a_command(migration.id)) for _ in range(5)])
        stored = await ledger.command("c1")
        assert stored is not None
        assert stored.delivered_at == NOW

    async def test_a_rollback_keeps_what_it_is_bound_to(self, ledger: SqlLedger, migration: MigrationRecord) -> None:
        changes = {"kind": CommandKind.ROLLBACK, "gate": None, "evidence_hash": None}
        names = ("metadata-changes", "edits-of-broker-1")
        bound = a_command(migration.id, "c1").model_copy(update=changes | {"preview_hash": "p" * 64})
        forced = a_command(migration.id, "c2").model_copy(update=changes | {"accept_loss": names})
        for command in (bound, forced):
            await ledger.add_command(command)
            assert await ledger.command(command.id) == command
        assert await ledger.commands(migration.id) == [bound, forced]

    async def test_who_has_commands_that_are_on_their_way(self, ledger: SqlLedger, migration: MigrationRecord) -> None:
        assert await ledger.with_undelivered_commands() == []
        for name in ("c1", "c2", "c3"):
            resume = {"kind": CommandKind.RESUME, "gate": None, "evidence_hash": None}
            await ledger.add_command(a_command(migration.id, name).model_copy(update=resume))
        assert await ledger.with_undelivered_commands() == [migration.id]
        await ledger.mark_delivered("c1", NOW)
        await ledger.mark_refused("c2", "the gate is not open")
        assert await ledger.with_undelivered_commands() == [migration.id]
        await ledger.record(migration.id, [], Progress(state=MigrationState.SUCCEEDED))
        assert await ledger.with_undelivered_commands() == [migration.id], "it has ended, and still owes an answer"
        await ledger.mark_refused("c3", "too late")
        assert await ledger.with_undelivered_commands() == []

    async def test_the_first_mark_stands(self, ledger: SqlLedger, migration: MigrationRecord) -> None:
        await ledger.add_command(a_command(migration.id))
        for at in (NOW, LATER):
            await ledger.mark_delivered("c1", at)
            await ledger.mark_refused("c1", f"because of {at}")
        stored = await ledger.command("c1")
        assert stored is not None
        assert stored.delivered_at == NOW
        assert stored.refused_because == f"because of {NOW}"

    async def test_what_is_unknown(self, ledger: SqlLedger) -> None:
        assert await ledger.command("c1") is None
        assert await ledger.commands("m1") == []
        with pytest.raises(NoSuchMigration):
            await ledger.add_command(a_command("m1"))
        with pytest.raises(NoSuchCommand):
            await ledger.mark_delivered("c1", NOW)
        with pytest.raises(NoSuchCommand):
            await ledger.mark_refused("c1", "")
