"""`SqlLedger`: what API and activities ask of the ledger. One call is one transaction, and may be repeated.

Every call raises `LedgerUnavailable` (`Transient`) when the database does not answer within the time limit.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from uuid import uuid4

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.approvals import Attempt
from domain.cluster import ClusterSpec
from domain.diagnosis.machines.notes import MachineNote
from domain.drift.report import CheckName, DriftReport
from domain.plans import MeasuredStep, Plan
from domain.records import (
    ACTIVE_STATES,
    SPECIFICATION_REVISED,
    ClusterRecord,
    Command,
    Event,
    EventDraft,
    MigrationRecord,
    MigrationState,
    Progress,
    Sample,
)
from domain.restored_history import ToldByRuns
from domain.worker_health import WorkerHealth
from ledger import approvals, chain, clusters, commands, migrations, notes, plans, reports, samples, worker_health
from ledger.database import DEFAULT_TIMEOUTS, Database, Timeouts, place_of
from ledger.errors import (
    ActiveMigration,
    LedgerDamaged,
    LedgerMisuse,
    LedgerUnavailable,
    NoSuchCluster,
    NoSuchMigration,
    RowUnreadable,
    SpecHasChanged,
)
from ledger.fixes import FOREIGN_RULE
from ledger.row_security import ensure_all_is_seen
from ledger.schema import upgrade
from ledger.tables import commands as command_table

VERIFIED_AT_ONCE = 1000
"""Events. Bounds memory, and the time of one query."""


@asynccontextmanager
async def open_ledger(url: str, timeouts: Timeouts = DEFAULT_TIMEOUTS) -> "AsyncIterator[SqlLedger]":
    """The ledger at `url`, with its schema at the newest version. For one event loop."""
    await upgrade(url)
    database = Database(url, timeouts)
    try:
        yield SqlLedger(database)
    finally:
        await database.close()


class SqlLedger:
    """The ledger in a SQL database. Satisfies the port `Ledger` of activities."""

    def __init__(self, database: Database, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._database = database
        self._now = now

    @property
    def place(self) -> str:
        """Where it is, for people: the database's URL without its password and options."""
        return place_of(self._database.engine.url)

    async def ping(self) -> None:
        """Ask the database for an answer, and whether it hides rows."""

        async def ask(connection: AsyncConnection) -> bool:
            await connection.execute(text("SELECT 1"))
            await connection.run_sync(ensure_all_is_seen)
            return True

        await self._database.read(ask)

    # Clusters

    async def put_cluster(
        self, spec: ClusterSpec, at: datetime, aimed: clusters.Aimed = lambda _, spec: spec
    ) -> tuple[ClusterRecord, bool]:
        """Register a cluster, or give it a new revision where the spec differs. Also says whether it is new.

        Raises `ActiveMigration` (the spec differs, and a migration runs on it) or `ClusterIdTaken`. While a migration is held,
        what only says how to look may differ. `aimed`: a spec as a migration sees it.
        """
        return await self._database.write(lambda connection: clusters.put(connection, spec, at, aimed))

    async def cluster(self, name: str) -> ClusterRecord | None:
        """The cluster with its newest spec."""
        return await self._database.read(lambda connection: clusters.find(connection, name))

    async def clusters(self) -> list[ClusterRecord]:
        """All clusters, by name."""
        return await self._database.read(clusters.find_all)

    async def cluster_spec(self, name: str, revision: int) -> ClusterSpec | None:
        """An older spec of a cluster: what a migration was planned on."""
        return await self._database.read(lambda connection: clusters.find_revision(connection, name, revision))

    async def generation(self, cluster: str) -> int:
        """The generation that holds the cluster now; 0 before the first. Raises `NoSuchCluster`."""
        return await self._database.read(lambda connection: clusters.generation(connection, cluster))

    # Migrations

    async def create_migration(self, record: MigrationRecord) -> None:
        """Store a new migration. The same id again changes nothing.

        Raises `ActiveMigration` with the id of the one in the way, `SpecHasChanged`, or `NoSuchCluster`.
        """

        async def create(connection: AsyncConnection) -> None:
            cluster = await clusters.lock(connection, record.cluster)
            if cluster is None:
                raise NoSuchCluster(record.cluster)
            if await migrations.find(connection, record.id) is not None:
                return
            active = await migrations.find_active(connection, record.cluster)
            if active is not None:
                raise ActiveMigration(record.cluster, active.id)
            if cluster.revision != record.spec_revision:
                raise SpecHasChanged(record.cluster, record.spec_revision, cluster.revision)
            await migrations.insert(connection, record)

        await self._database.write(create)

    async def set_run(self, migration_id: str, run_id: str, started_at: datetime) -> None:
        """Note the run that was started for a migration. What a claim wrote stands. Raises `NoSuchMigration`."""

        async def note(connection: AsyncConnection) -> None:
            if (await migrations.lock(connection, migration_id)).run_id is None:
                await migrations.change(connection, migration_id, run_id=run_id, started_at=started_at)

        await self._database.write(note)

    async def end_unstarted(self, migration_id: str, state: MigrationState, outcome: str, at: datetime) -> bool:
        """End a migration whose start failed. False, and no change, when a run claimed it after all, or it ended otherwise.

        Once it has ended so, no run can claim it any more. Raises `NoSuchMigration`.
        """
        if state in ACTIVE_STATES:
            raise LedgerMisuse(f"migration {migration_id} cannot end as {state}: that is an active state")

        async def end(connection: AsyncConnection) -> bool:
            migration = await migrations.lock(connection, migration_id)
            if migration.ended_at is not None or migration.generation is not None:
                return migration.progress.state == state
            ended = migration.progress.ended(state, outcome)
            await migrations.set_progress(connection, migration, ended, at, self._now())
            return True

        return await self._database.write(end)

    async def claim(self, migration_id: str, run_id: str, at: datetime) -> int | None:
        """Take the cluster for this run: its generation. The same run gets the same answer again.

        `None` when the migration belongs to another run or has ended. Raises `NoSuchMigration`.
        """

        async def take(connection: AsyncConnection) -> int | None:
            known = await migrations.find(connection, migration_id)
            if known is None:
                raise NoSuchMigration(migration_id)
            await clusters.lock(connection, known.cluster)
            migration = await migrations.lock(connection, migration_id)
            if migration.ended_at is not None:
                return None
            if migration.generation is not None:
                return migration.generation if migration.run_id == run_id else None
            generation = await clusters.next_generation(connection, migration.cluster)
            await migrations.claim(connection, migration, run_id, generation, at)
            return generation

        return await self._database.write(take)

    async def migration(self, migration_id: str) -> MigrationRecord | None:
        return await self._database.read(lambda connection: migrations.find(connection, migration_id))

    async def active_migration(self, cluster: str) -> MigrationRecord | None:
        """The cluster's only migration that has not ended."""
        return await self._database.read(lambda connection: migrations.find_active(connection, cluster))

    async def migrations(
        self,
        clusters: Collection[str] | None = None,
        kind: str | None = None,
        state: MigrationState | None = None,
        limit: int = 100,
    ) -> list[MigrationRecord]:
        """Migrations, newest first, at most `limit`. `None`: any."""
        return await self._database.read(lambda c: migrations.find_all(c, clusters, kind, state, limit))

    # Commands

    async def add_command(self, command: Command) -> Command:
        """Store what a person asked for, and what it does to approvals (`domain.approvals`): the command as it is stored.

        The same id again changes nothing. Raises `NoSuchMigration`.
        """
        return await self._database.write(lambda connection: approvals.add(connection, command, self._now()))

    async def command(self, command_id: str) -> Command | None:
        return await self._database.read(lambda connection: commands.find(connection, command_id))

    async def commands(self, migration_id: str) -> list[Command]:
        """A migration's commands, oldest first."""
        return await self._database.read(lambda connection: commands.find_all(connection, migration_id))

    async def with_undelivered_commands(self) -> list[str]:
        """Migrations, ended ones too, with a command that has neither been delivered nor refused."""
        return await self._database.read(commands.find_undelivered)

    async def mark_delivered(self, command_id: str, at: datetime) -> None:
        """The workflow has accepted the command. The first time stands. Raises `NoSuchCommand`."""
        await self._database.write(lambda c: commands.mark_once(c, command_id, command_table.c.delivered_at, at))

    async def mark_refused(self, command_id: str, because: str) -> None:
        """The workflow has refused the command. The first reason stands. Raises `NoSuchCommand`."""
        await self._database.write(lambda c: commands.mark_once(c, command_id, command_table.c.refused_because, because))

    async def consume_approval(self, attempt: Attempt) -> str | None:
        """Consume an approval for an irreversible write: why it does not allow it, or `None` where it does. A retry of the
        attempt goes on. Raises `NoSuchCluster` or `NoSuchMigration`."""
        return await self._database.write(lambda connection: approvals.consume(connection, attempt, self._now()))

    async def open_approvals(self, migration_ids: Sequence[str]) -> list[Command]:
        """Approvals of these migrations that are armed or consumed, oldest first."""
        return await self._database.read(lambda connection: approvals.find_open(connection, migration_ids, self._now()))

    # Reports

    async def add_report(self, report: DriftReport) -> DriftReport:
        """Publish a check's report, with its event, once: where one with this id is there that one stands, and is the answer.

        Raises `NoSuchCluster` or `NoSuchMigration`.
        """
        return await self._database.write(lambda connection: reports.publish(connection, report))

    async def report(self, report_id: str) -> DriftReport | None:
        return await self._database.read(lambda connection: reports.find(connection, report_id))

    async def newest_reports(self, cluster: str, check: CheckName) -> list[DriftReport]:
        """Those of this check, whoever asked for them, of which one has looked last; among the conclusive ones too."""
        return await self._database.read(lambda connection: reports.find_newest(connection, cluster, check))

    async def newest_report(self, migration_id: str, check: CheckName) -> DriftReport | None:
        """The one of this check that this migration has had last."""
        return await self._database.read(lambda connection: reports.find_last(connection, migration_id, check))

    async def baseline(self, cluster: str, migration_id: str | None = None) -> DriftReport | None:
        """What clients' data was compared with: the first one that this migration has kept, or the cluster's newest."""
        return await self._database.read(lambda connection: reports.find_baseline(connection, cluster, migration_id))

    async def drifts_found(self, cluster: str, check: CheckName) -> int:
        """How many reports of this check ever found a drift. It only grows."""
        return await self._database.read(lambda connection: reports.count_drifts(connection, cluster, check))

    async def reports(
        self,
        cluster: str | None = None,
        migration_id: str | None = None,
        content_hash: str | None = None,
        limit: int = 100,
        before: str | None = None,
    ) -> list[DriftReport]:
        """Reports, newest first, at most `limit`. `None`: any. `before`: id of the last report that was read."""
        return await self._database.read(lambda c: reports.find_all(c, cluster, migration_id, content_hash, limit, before))

    # Plans

    async def add_plan(self, plan: Plan) -> Plan:
        """Publish a plan, with its event, once: where one with this id is there that one stands, and is the answer.

        Raises `NoSuchCluster`.
        """
        return await self._database.write(lambda connection: plans.publish(connection, plan))

    async def plan(self, plan_id: str) -> Plan | None:
        return await self._database.read(lambda connection: plans.find(connection, plan_id))

    async def plans(self, cluster: str | None = None, limit: int = 100, before: str | None = None) -> list[Plan]:
        """Plans, newest first, at most `limit`. `None`: any. `before`: id of the last plan that was read."""
        return await self._database.read(lambda connection: plans.find_all(connection, cluster, limit, before))

    async def measured_steps(self, cluster: str) -> list[MeasuredStep]:
        """How long restarts of this cluster's nodes have taken in its migrations, the newest first."""
        return await self._database.read(lambda connection: plans.measured_steps(connection, cluster))

    # Notes of machines

    async def put_note(self, migration_id: str, note: MachineNote) -> None:
        """Keep how a machine was set, in place of what was kept of it before. Raises `NoSuchMigration`."""
        await self._database.write(lambda connection: notes.put(connection, migration_id, note))

    async def note(self, migration_id: str, about: str) -> MachineNote | None:
        return await self._database.read(lambda connection: notes.find(connection, migration_id, about))

    async def noted(self, migration_id: str) -> Mapping[str, str | None]:
        """About whom there are notes, and of which process of his."""
        return await self._database.read(lambda connection: notes.identities(connection, migration_id))

    # Numbers over time

    async def add_sample(self, migration_id: str, sample: Sample) -> None:
        """Keep the numbers of an observation that changes nothing else. Raises `NoSuchMigration`."""

        async def add(connection: AsyncConnection) -> None:
            if (await migrations.lock(connection, migration_id)).ended_at is None:
                await samples.add(connection, migration_id, sample)

        await self._database.write(add)

    async def samples(self, migration_id: str) -> list[Sample]:
        """A migration's numbers over time, oldest first, spread over its whole duration."""
        return await self._database.read(lambda connection: samples.find_all(connection, migration_id))

    # Workers

    async def beat(self, worker: WorkerHealth) -> None:
        """Write what a worker process says of itself now, in place of what it said before."""
        await self._database.write(lambda connection: worker_health.put(connection, worker))

    async def workers(self) -> list[WorkerHealth]:
        """Every worker process that has beaten within a day, the newest beat last."""
        return await self._database.read(lambda connection: worker_health.find_all(connection, self._now()))

    # Events

    async def record(
        self,
        migration_id: str,
        events: Sequence[EventDraft],
        progress: Progress | None,
        as_of: datetime | None = None,
        achieved: ClusterSpec | None = None,
    ) -> None:
        """Append events (a key seen before is skipped), close the approvals that they tell of, and set the progress, in one
        transaction.

        Progress that was true (`as_of`) before what is stored is passed over. A terminal state ends the migration at the last
        event's time. Raises `NoSuchMigration`, or `MigrationHasEnded` when it has ended in another state than `progress` has:
        then no event is appended either. `achieved`: the cluster as it is from now on: its next revision, told as an event.
        """
        drafts = [_of_migration(draft, migration_id) for draft in events]
        at = drafts[-1].at if drafts else self._now()

        async def write(connection: AsyncConnection) -> None:
            cluster = None if achieved is None else await clusters.lock(connection, achieved.name)
            migration = await migrations.lock(connection, migration_id)
            told = drafts
            if achieved is not None and cluster is not None and migration.ended_at is None:
                revised = await clusters.revise(connection, cluster, achieved, at)
                told = [_revised_by(migration, revised.revision, at), *drafts]
            await chain.append(connection, await approvals.as_known(connection, told))
            await approvals.close_told(connection, drafts)
            if progress is not None:
                await migrations.set_progress(connection, migration, progress, at, self._now(), as_of)
                if progress.sample is not None:
                    await samples.add(connection, migration_id, progress.sample)
                if progress.state not in ACTIVE_STATES:
                    await notes.forget(connection, migration_id)

        await self._database.write(write)

    async def prove_writable(self, migration_id: str) -> None:
        """Write what whoever records writes, and take it back: nobody else ever sees it. `LedgerUnavailable` says why nothing
        can be written."""

        async def prove(connection: AsyncConnection) -> None:
            record = await migrations.lock(connection, migration_id)
            proof = EventDraft(key=f"proof/{uuid4()}", kind="proof", cluster=record.cluster, at=datetime.now(UTC))
            async with connection.begin_nested() as savepoint:
                await migrations.touch(connection, migration_id)
                await chain.append(connection, [proof])
                await savepoint.rollback()

        try:
            await self._database.write(prove)
        except LedgerMisuse as error:  # it is a right call, always
            raise LedgerUnavailable(str(error), FOREIGN_RULE) from error

    async def record_event(self, draft: EventDraft) -> None:
        """Append an event that belongs to no migration's progress: a call, refused ones too."""
        await self._database.write(lambda connection: chain.append(connection, [draft]))

    async def told_by_runs(self, migration_id: str, before: datetime) -> ToldByRuns:
        """What the migration's runs have told of what was before that time."""
        return await self._database.read(lambda connection: chain.told_by_runs(connection, migration_id, before))

    async def events(self, migration_id: str | None = None, after_seq: int = 0, limit: int = 1000) -> list[Event]:
        """Events after `after_seq`, in order, at most `limit`. No event below one that was read appears later."""
        return await self._database.read(lambda c: chain.find_all(c, migration_id, after_seq, limit))

    async def newest_events(self, migration_id: str, limit: int) -> list[Event]:
        """A migration's last events, the newest first."""
        return await self._database.read(lambda c: chain.find_newest(c, migration_id, limit))

    async def events_of_kinds(self, migration_id: str, kinds: Collection[str]) -> list[Event]:
        """All of a migration's events of these kinds, in order."""
        return await self._database.read(lambda c: chain.find_kinds(c, migration_id, kinds))

    async def verify_chain(self) -> int | None:
        """The first place where the log is not what was appended; `None` when all is well."""
        walk = chain.Verification(*await self._database.read(chain.head))
        limit = VERIFIED_AT_ONCE
        while walk.first_bad is None:
            try:
                entries = await self.events(after_seq=walk.seq, limit=limit)
            except (LedgerDamaged, RowUnreadable):  # Which row it is, is seen by reading them one by one.
                if limit == 1:
                    return walk.seq + 1
                limit = 1
                continue
            walk.follow(entries)
            if not entries:
                walk.end()
                break
        return walk.first_bad


def _revised_by(migration: MigrationRecord, revision: int, at: datetime) -> EventDraft:
    return EventDraft(
        key=f"migration/{migration.id}/{SPECIFICATION_REVISED}",
        kind=SPECIFICATION_REVISED,
        cluster=migration.cluster,
        migration_id=migration.id,
        at=at,
        data={"revision": revision},
    )


def _of_migration(draft: EventDraft, migration_id: str) -> EventDraft:
    if draft.migration_id not in {None, migration_id}:
        raise LedgerMisuse(f"event {draft.key} belongs to migration {draft.migration_id}, not to {migration_id}")
    return draft.model_copy(update={"migration_id": migration_id})
