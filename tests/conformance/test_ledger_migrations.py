"""Migrations in the ledger, from their creation to their end: the same on SQLite and on a real PostgreSQL."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

import pytest
from sqlalchemy import exc
from temporalio.testing import ActivityEnvironment

from activities.ports.ports import Ports
from activities.recording import Recording
from domain.cluster import ClusterSpec
from domain.contracts import RecordRequest
from domain.decisions import Finding
from domain.records import (
    ACTIVE_STATES,
    EventDraft,
    MigrationRecord,
    MigrationState,
    NodeStatus,
    OpenGate,
    Progress,
    Waiting,
)
from domain.waits import WaitReason
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.steps import GateName
from ledger import migrations
from ledger.database import Database, Timeouts
from ledger.errors import (
    ActiveMigration,
    LedgerMisuse,
    MigrationHasEnded,
    NoSuchCluster,
    NoSuchMigration,
    SpecHasChanged,
)
from ledger.ledger import SqlLedger, open_ledger

NOW = datetime(2026, 3, 1, 3, 0, 0, 123456, tzinfo=UTC)
PATIENT = Timeouts(call=timedelta(minutes=1), lock=timedelta(seconds=30))
LATER = NOW + timedelta(minutes=7)
SPEC_MAKER = Callable[..., ClusterSpec]
MIGRATION_MAKER = Callable[..., MigrationRecord]


class TestCreatingMigrations:
    async def test_what_is_stored_is_read_back(
        self, ledger: SqlLedger, make_spec: SPEC_MAKER, make_migration: MIGRATION_MAKER
    ) -> None:
        await ledger.put_cluster(make_spec(), NOW)
        in_delhi = NOW.astimezone(timezone(timedelta(hours=5, minutes=30)))
        record = make_migration(created_at=in_delhi, policy=ZkToKraftPolicy(min_soak=timedelta(days=2, seconds=0.5)))
        await ledger.create_migration(record)
        stored = await ledger.migration(record.id)
        assert stored == record
        assert stored is not None
        assert stored.created_at.tzinfo is UTC

    async def test_a_second_active_migration_is_refused(
        self, ledger: SqlLedger, migration: MigrationRecord, make_migration: MIGRATION_MAKER
    ) -> None:
        with pytest.raises(ActiveMigration) as refusal:
            await ledger.create_migration(make_migration())
        assert refusal.value.migration_id == migration.id
        assert await ledger.active_migration("orders") == migration

    async def test_the_same_migration_again_changes_nothing(self, ledger: SqlLedger, migration: MigrationRecord) -> None:
        await ledger.claim(migration.id, "run-1", NOW)
        claimed = await ledger.migration(migration.id)
        await ledger.create_migration(migration)
        assert await ledger.migration(migration.id) == claimed

    async def test_of_racing_migrations_one_is_created(
        self, ledger: SqlLedger, database_url: str, make_spec: SPEC_MAKER, make_migration: MIGRATION_MAKER
    ) -> None:
        await ledger.put_cluster(make_spec(), NOW)
        async with open_ledger(database_url, PATIENT) as other:
            doors = [ledger, other] * 10
            results = await asyncio.gather(*[d.create_migration(make_migration()) for d in doors], return_exceptions=True)
        created = await ledger.migrations()
        assert len(created) == 1
        refusals = [result for result in results if isinstance(result, ActiveMigration)]
        assert [refusal.migration_id for refusal in refusals] == [created[0].id] * 19

    async def test_the_database_itself_refuses_a_second_active_migration(
        self, migration: MigrationRecord, database_url: str, make_migration: MIGRATION_MAKER
    ) -> None:
        database = Database(database_url)
        try:
            for state in ACTIVE_STATES:
                async with database.engine.connect() as connection:
                    with pytest.raises(exc.IntegrityError):
                        await migrations.insert(connection, make_migration(progress=Progress(state=state)))
        finally:
            await database.close()

    async def test_after_the_end_another_may_come(
        self, ledger: SqlLedger, migration: MigrationRecord, make_migration: MIGRATION_MAKER
    ) -> None:
        await ledger.record(migration.id, [], Progress(state=MigrationState.FAILED))
        assert await ledger.active_migration("orders") is None
        await ledger.create_migration(make_migration())

    async def test_other_clusters_are_free(
        self, ledger: SqlLedger, migration: MigrationRecord, make_spec: SPEC_MAKER, make_migration: MIGRATION_MAKER
    ) -> None:
        await ledger.put_cluster(make_spec("payments", "kafka-2"), NOW)
        await ledger.create_migration(make_migration(cluster="payments", cluster_id="kafka-2"))

    async def test_a_migration_prepared_for_an_older_spec_is_refused(
        self, ledger: SqlLedger, make_spec: SPEC_MAKER, make_migration: MIGRATION_MAKER
    ) -> None:
        await ledger.put_cluster(make_spec(), NOW)
        await ledger.put_cluster(make_spec(rack="b"), LATER)
        with pytest.raises(SpecHasChanged) as refusal:
            await ledger.create_migration(make_migration(spec_revision=1))
        assert refusal.value.revision == 2

    async def test_a_changed_spec_and_a_migration_never_both_win(
        self, ledger: SqlLedger, make_spec: SPEC_MAKER, make_migration: MIGRATION_MAKER
    ) -> None:
        for n in range(20):
            await ledger.put_cluster(make_spec(name := f"c{n}", name), NOW)
            change, start = await asyncio.gather(
                ledger.put_cluster(make_spec(name, name, rack="b"), LATER),
                ledger.create_migration(make_migration(cluster=name, cluster_id=name)),
                return_exceptions=True,
            )
            assert isinstance(change, ActiveMigration) != isinstance(start, SpecHasChanged), (change, start)

    async def test_the_cluster_must_be_registered(self, ledger: SqlLedger, make_migration: MIGRATION_MAKER) -> None:
        with pytest.raises(NoSuchCluster):
            await ledger.create_migration(make_migration())

    async def test_an_ended_migration_without_its_end_is_refused(
        self, ledger: SqlLedger, make_spec: SPEC_MAKER, make_migration: MIGRATION_MAKER
    ) -> None:
        await ledger.put_cluster(make_spec(), NOW)
        with pytest.raises(LedgerMisuse):
            await ledger.create_migration(make_migration(progress=Progress(state=MigrationState.REFUSED)))

    async def test_naive_times_are_refused(
        self, ledger: SqlLedger, make_spec: SPEC_MAKER, make_migration: MIGRATION_MAKER
    ) -> None:
        await ledger.put_cluster(make_spec(), NOW)
        with pytest.raises(LedgerMisuse):
            await ledger.create_migration(make_migration(created_at=NOW.replace(tzinfo=None)))


class TestListingMigrations:
    async def test_newest_first_filtered_and_limited(
        self, ledger: SqlLedger, make_spec: SPEC_MAKER, make_migration: MIGRATION_MAKER
    ) -> None:
        ids = {}
        for cluster in ("orders", "payments"):
            await ledger.put_cluster(make_spec(cluster, cluster), NOW)
            for age in (1, 2, 3):
                record = make_migration(cluster=cluster, created_at=NOW - timedelta(days=age))
                ids[cluster, age] = record.id
                await ledger.create_migration(record)
                await ledger.record(record.id, [], Progress(state=MigrationState.FAILED))
        running = make_migration(created_at=NOW)
        await ledger.create_migration(running)

        async def listed(**filters: object) -> list[str]:
            return [record.id for record in await ledger.migrations(**filters)]  # type: ignore[arg-type]

        orders = [running.id, ids["orders", 1], ids["orders", 2], ids["orders", 3]]
        assert await listed(clusters=["orders"]) == orders
        assert await listed(clusters=["orders"], limit=2) == orders[:2]
        assert await listed(state=MigrationState.PLANNING) == [running.id]
        assert await listed(clusters=["orders"], state=MigrationState.FAILED) == orders[1:]
        assert len(await listed(kind="zk-to-kraft")) == 7
        assert await listed(clusters=["nobody"]) == []

    async def test_the_same_moment_is_ordered_by_id(
        self, ledger: SqlLedger, make_spec: SPEC_MAKER, make_migration: MIGRATION_MAKER
    ) -> None:
        for name in ("a", "b", "c"):
            await ledger.put_cluster(make_spec(name, name), NOW)
            await ledger.create_migration(make_migration(id=f"0{name}", cluster=name))
        assert [record.id for record in await ledger.migrations()] == ["0c", "0b", "0a"]


class TestClaims:
    async def test_a_claim_takes_the_next_generation(self, ledger: SqlLedger, migration: MigrationRecord) -> None:
        assert await ledger.generation("orders") == 0
        assert await ledger.claim(migration.id, "run-1", LATER) == 1
        assert await ledger.generation("orders") == 1
        claimed = await ledger.migration(migration.id)
        assert claimed is not None
        assert (claimed.run_id, claimed.started_at, claimed.generation) == ("run-1", LATER, 1)
        assert claimed.progress.state is MigrationState.RUNNING

    async def test_the_same_run_gets_the_same_answer(self, ledger: SqlLedger, migration: MigrationRecord) -> None:
        await ledger.claim(migration.id, "run-1", NOW)
        waits = Progress(state=MigrationState.WAITING, steps_done=4)
        await ledger.record(migration.id, [], waits)
        assert await ledger.claim(migration.id, "run-1", LATER) == 1
        stored = await ledger.migration(migration.id)
        assert stored is not None
        assert (stored.progress, stored.started_at) == (waits, NOW)

    async def test_another_run_gets_none(self, ledger: SqlLedger, migration: MigrationRecord) -> None:
        await ledger.claim(migration.id, "run-1", NOW)
        assert await ledger.claim(migration.id, "run-2", LATER) is None
        assert await ledger.generation("orders") == 1

    @pytest.mark.parametrize("state", sorted(set(MigrationState) - ACTIVE_STATES))
    async def test_an_ended_migration_is_not_claimed(
        self, ledger: SqlLedger, migration: MigrationRecord, state: MigrationState
    ) -> None:
        await ledger.claim(migration.id, "run-1", NOW)
        await ledger.record(migration.id, [], Progress(state=state))
        assert await ledger.claim(migration.id, "run-1", LATER) is None

    async def test_of_racing_runs_one_claims(self, ledger: SqlLedger, migration: MigrationRecord, database_url: str) -> None:
        async with open_ledger(database_url, PATIENT) as other:
            claims = [door.claim(migration.id, f"run-{n}", NOW) for n in range(6) for door in (ledger, other)]
            answers = await asyncio.gather(*claims)
        assert sorted(answers, key=str) == [1, 1] + [None] * 10
        assert await ledger.generation("orders") == 1

    async def test_each_migration_has_a_generation_of_its_own(
        self, ledger: SqlLedger, migration: MigrationRecord, make_migration: MIGRATION_MAKER
    ) -> None:
        await ledger.claim(migration.id, "run-1", NOW)
        await ledger.record(migration.id, [], Progress(state=MigrationState.FAILED))
        await ledger.create_migration(second := make_migration())
        assert await ledger.claim(second.id, "run-2", LATER) == 2
        assert await ledger.generation("orders") == 2

    async def test_an_unknown_migration(self, ledger: SqlLedger) -> None:
        assert await ledger.migration("nothing") is None
        with pytest.raises(NoSuchMigration):
            await ledger.claim("nothing", "run-1", NOW)


class TestStarts:
    async def test_the_run_is_noted_before_the_claim(self, ledger: SqlLedger, migration: MigrationRecord) -> None:
        await ledger.set_run(migration.id, "run-1", NOW)
        assert await ledger.claim(migration.id, "run-1", LATER) == 1
        stored = await ledger.migration(migration.id)
        assert stored is not None
        assert (stored.run_id, stored.started_at) == ("run-1", NOW)

    async def test_what_a_claim_wrote_stands(self, ledger: SqlLedger, migration: MigrationRecord) -> None:
        await ledger.claim(migration.id, "run-1", NOW)
        await ledger.set_run(migration.id, "run-2", LATER)
        stored = await ledger.migration(migration.id)
        assert stored is not None
        assert (stored.run_id, stored.started_at) == ("run-1", NOW)

    async def test_a_start_that_failed_ends_the_migration(self, ledger: SqlLedger, migration: MigrationRecord) -> None:
        for _ in range(2):
            assert await ledger.end_unstarted(migration.id, MigrationState.FAILED, "Temporal said no", LATER)
        ended = await ledger.migration(migration.id)
        assert ended is not None
        assert (ended.progress.state, ended.progress.outcome) == (MigrationState.FAILED, "Temporal said no")
        assert ended.ended_at == LATER
        assert await ledger.claim(migration.id, "run-1", LATER) is None

    async def test_a_start_that_succeeded_after_all_is_not_ended(self, ledger: SqlLedger, migration: MigrationRecord) -> None:
        await ledger.claim(migration.id, "run-1", NOW)
        assert not await ledger.end_unstarted(migration.id, MigrationState.FAILED, "no answer", LATER)
        stored = await ledger.migration(migration.id)
        assert stored is not None
        assert stored.ended_at is None

    async def test_a_claim_and_a_failed_start_never_both_win(
        self, ledger: SqlLedger, make_spec: SPEC_MAKER, make_migration: MIGRATION_MAKER
    ) -> None:
        for n in range(20):
            await ledger.put_cluster(make_spec(name := f"c{n}", name), NOW)
            await ledger.create_migration(record := make_migration(cluster=name, cluster_id=name))
            generation, has_ended = await asyncio.gather(
                ledger.claim(record.id, "run-1", NOW),
                ledger.end_unstarted(record.id, MigrationState.FAILED, "no answer", NOW),
            )
            assert has_ended == (generation is None)
            assert has_ended == (await ledger.active_migration(name) is None)

    async def test_an_end_is_a_terminal_state(self, ledger: SqlLedger, migration: MigrationRecord) -> None:
        with pytest.raises(LedgerMisuse):
            await ledger.end_unstarted(migration.id, MigrationState.HELD, "", NOW)


class TestProgress:
    async def test_all_of_it_is_read_back(self, ledger: SqlLedger, migration: MigrationRecord) -> None:
        progress = Progress(
            state=MigrationState.WAITING,
            phase="DUAL_WRITE",
            waiting=Waiting(reason=WaitReason.NODE_DOWN, means="…", since=LATER, objects=("broker-2",), for_people=True),
            nodes=(NodeStatus(name="broker-1", role="broker", mode="kraft", stage="kraft", is_ready=True, restarts=2),),
            gate=OpenGate(name=GateName.FINALIZE, evidence_hash="e" * 64, since=NOW, evidence={"plan": [1, None, "ü\0"]}),
            steps_done=3,
            steps_total=9,
            findings=(Finding(code="PF01", object="broker-1", observed="a", expected="b", fix="c"),),
        )
        await ledger.record(migration.id, [], progress)
        stored = await ledger.migration(migration.id)
        assert stored is not None
        assert stored.progress == progress
        assert stored.ended_at is None

    @pytest.mark.parametrize("state", sorted(set(MigrationState) - ACTIVE_STATES))
    async def test_a_terminal_state_is_the_end(
        self, ledger: SqlLedger, migration: MigrationRecord, make_event: Callable[..., EventDraft], state: MigrationState
    ) -> None:
        await ledger.record(migration.id, [make_event("end", at=LATER)], Progress(state=state))
        ended = await ledger.migration(migration.id)
        assert ended is not None
        assert ended.ended_at == LATER
        for other in set(MigrationState) - {state}:
            with pytest.raises(MigrationHasEnded) as refusal:
                await ledger.record(migration.id, [make_event(f"after-{other}")], Progress(state=other))
            assert refusal.value.state == state
        assert await ledger.migration(migration.id) == ended
        assert [event.key for event in await ledger.events()] == ["end"]

    async def test_the_same_end_again_is_a_repeated_call(
        self, ledger: SqlLedger, migration: MigrationRecord, make_event: Callable[..., EventDraft]
    ) -> None:
        end = Progress(state=MigrationState.SUCCEEDED, outcome="KRAFT")
        await ledger.record(migration.id, [make_event("end", at=NOW)], end)
        await ledger.record(migration.id, [make_event("end", at=NOW), make_event("late", at=LATER)], end)
        stored = await ledger.migration(migration.id)
        assert stored is not None
        assert stored.ended_at == NOW
        assert [event.key for event in await ledger.events()] == ["end", "late"]

    async def test_what_was_true_earlier_and_arrives_later_does_not_replace_what_is_newer(
        self, ledger: SqlLedger, migration: MigrationRecord, make_event: Callable[..., EventDraft]
    ) -> None:
        """An attempt that was given up, by a worker that was only asleep: its events are kept, its progress is not."""
        newer = Progress(state=MigrationState.WAITING, steps_done=5)
        await ledger.record(migration.id, [], newer, LATER)
        late = Progress(state=MigrationState.RUNNING, steps_done=4)
        await ledger.record(migration.id, [make_event("late")], late, NOW)
        stored = await ledger.migration(migration.id)
        assert stored is not None
        assert stored.progress == newer
        assert [event.key for event in await ledger.events()] == ["late"]
        await ledger.record(migration.id, [], late, LATER + timedelta(microseconds=1))
        stored = await ledger.migration(migration.id)
        assert stored is not None
        assert stored.progress == late

    async def test_what_a_clock_wrote_that_was_set_back_since_does_not_hide_what_is_shown_now(
        self, ledger: SqlLedger, migration: MigrationRecord
    ) -> None:
        now = datetime.now(UTC)
        await ledger.record(migration.id, [], Progress(state=MigrationState.WAITING), now + timedelta(hours=1))
        newer = Progress(state=MigrationState.RUNNING, steps_done=4)
        await ledger.record(migration.id, [], newer, now)
        stored = await ledger.migration(migration.id)
        assert stored is not None
        assert stored.progress == newer
        await ledger.record(migration.id, [], Progress(state=MigrationState.WAITING), now - timedelta(seconds=1))
        assert await ledger.migration(migration.id) == stored

    async def test_a_late_attempt_replaces_nothing_newer_where_temporals_clock_is_ahead_of_ours(
        self, ledger: SqlLedger, migration: MigrationRecord
    ) -> None:
        scheduled = datetime.now(UTC) + timedelta(seconds=30)
        newer = Progress(state=MigrationState.WAITING, steps_done=5)
        await ledger.record(migration.id, [], newer, scheduled)
        await ledger.record(migration.id, [], Progress(state=MigrationState.RUNNING), scheduled - timedelta(seconds=20))
        stored = await ledger.migration(migration.id)
        assert stored is not None
        assert stored.progress == newer

    async def test_an_attempt_that_wakes_up_late_shows_nothing_older(
        self, ledger: SqlLedger, migration: MigrationRecord
    ) -> None:
        """As the activity does it: what orders progress is when it was first asked for, the same for every attempt."""
        ports = Ports(ledger, *[cast("Any", None)] * 5)
        for state, scheduled_at in ((MigrationState.WAITING, LATER), (MigrationState.RUNNING, NOW)):
            environment = ActivityEnvironment()
            environment.info = replace(environment.info, scheduled_time=scheduled_at, current_attempt_scheduled_time=LATER)
            request = RecordRequest(migration_id=migration.id, cluster="orders", generation=1, progress=Progress(state=state))
            await environment.run(Recording(ports).record_progress, request)
        stored = await ledger.migration(migration.id)
        assert stored is not None
        assert stored.progress.state is MigrationState.WAITING

    async def test_the_end_counts_whenever_it_was_true(self, ledger: SqlLedger, migration: MigrationRecord) -> None:
        """Whoever ends a migration may have a clock that is behind."""
        await ledger.record(migration.id, [], Progress(state=MigrationState.REVERTING), LATER)
        await ledger.record(migration.id, [], Progress(state=MigrationState.REVERTED), NOW)
        assert await ledger.active_migration("orders") is None

    async def test_the_first_end_stands_in_every_word(self, ledger: SqlLedger, migration: MigrationRecord) -> None:
        end = Progress(state=MigrationState.FAILED, outcome="its run is gone")
        await ledger.record(migration.id, [], end, NOW)
        await ledger.record(migration.id, [], end.model_copy(update={"outcome": None}), LATER)
        stored = await ledger.migration(migration.id)
        assert stored is not None
        assert stored.progress == end
