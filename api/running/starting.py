"""`POST /migrations`: the row first, then the run, whatever crashes in between.

    1 insert the row (planning, no run)          a crash here leaves a row without a run
      and the hold, where it is to start held    (before the run: its first step looks for it in the ledger)
    2 start the run                              a crash here leaves a run that the row does not name
    3 note the run in the row

A row left by 1 is ended once it is older than any start takes, when the next `POST` meets it or the caretaker does. A run
left by 2 names itself when it claims the row; its row is found to be running. A start that was given up (Temporal did not
answer in time) and happens later finds its row ended, cannot claim it, and ends without having touched anything.
"""

from datetime import UTC, datetime, timedelta

from api.diagnosis.pollers import unserved
from api.running.runs import ClusterHeld, Run, newest_run, start_run
from api.running.temporal import Temporal, TemporalRefused, TemporalUnavailable
from domain.diagnosis.recorded_causes import ELSEWHERE
from domain.errors import Permanent
from domain.records import Command, EventDraft, MigrationRecord, MigrationState
from ledger.errors import ActiveMigration, MigrationHasEnded, NoSuchMigration
from ledger.ledger import SqlLedger

NO_ANSWER = "Temporal did not start it, so nothing was changed. Ask again."
HELD_BY_ANOTHER = "Another run holds the cluster, so nothing was changed."
NEVER_STARTED = "It was never started, because the API ended before it could. Nothing was changed. Ask again."
RUN_IS_GONE = (
    "Its run was ended from outside (terminated, cancelled or failed in Temporal), and the cluster is as it was left. A new "
    "migration observes the cluster and continues from there."
)
RUN_IS_FORGOTTEN = (
    "Temporal no longer knows its run (its retention is over, or its database was created again), and the cluster is as it "
    "was left. A new migration observes the cluster and continues from there."
)


class RunUnknown(Permanent):
    """Temporal does not know the run of a claimed migration, and nobody works there for any: it may be another Temporal."""

    def __init__(self, migration_id: str, unserved: str) -> None:
        super().__init__(f"This Temporal does not know the run of migration {migration_id}. {ELSEWHERE.format(unserved)}")
        self.migration_id = migration_id


class Starter:
    """Starts migrations, and puts right what an interrupted start left. `patience`: longer than any start takes."""

    def __init__(self, ledger: SqlLedger, temporal: Temporal, patience: timedelta) -> None:
        self._ledger = ledger
        self._temporal = temporal
        self._patience = patience

    async def start(self, record: MigrationRecord, hold: Command | None = None) -> None:
        """Raises what `create_migration` raises, `ClusterHeld`, `TemporalUnavailable` or `TemporalRefused`."""
        await self._create(record)
        if hold is not None:
            await self._ledger.add_command(hold)
        try:
            run_id = await start_run(self._temporal, record, is_held=hold is not None)
        except (TemporalUnavailable, TemporalRefused, ClusterHeld) as error:
            outcome = HELD_BY_ANOTHER if isinstance(error, ClusterHeld) else NO_ANSWER
            if await self._end_unclaimed(record, outcome):
                raise
            return  # It was started after all: its run was faster than the answer, and has claimed the row.
        await self._ledger.set_run(record.id, run_id, datetime.now(UTC))

    async def ensure_free(self, cluster: str) -> None:
        """Raises `ActiveMigration` where a migration of the cluster is in the way; ends what only seems to be.

        Raises what `settle` does, too.
        """
        active = await self._ledger.active_migration(cluster)
        if active is not None and not await self.settle(active.id):
            raise ActiveMigration(cluster, active.id)

    async def settle(self, migration_id: str) -> bool:
        """Whether a migration is out of the way of a new one. Ends it when its run never came to be, or is gone.

        Raises `RunUnknown`, `TemporalUnavailable` or `TemporalRefused` where nobody knows which.
        """
        record = await self._ledger.migration(migration_id)
        if record is None:
            raise NoSuchMigration(migration_id)
        if record.ended_at is not None:
            return True
        run = await self._run_of(record)
        if run is not None and run.is_running:
            await self._ledger.set_run(record.id, run.run_id, datetime.now(UTC))
            return False
        if record.generation is not None:
            return await self._end_orphan(record, RUN_IS_GONE if run is not None else await self._forgotten(record))
        is_being_started = datetime.now(UTC) - record.created_at < self._patience
        return not is_being_started and await self._end_unclaimed(record, NEVER_STARTED)

    async def _create(self, record: MigrationRecord) -> None:
        try:
            await self._ledger.create_migration(record)
        except ActiveMigration as busy:
            if not await self.settle(busy.migration_id):
                raise
            await self._ledger.create_migration(record)

    async def _run_of(self, record: MigrationRecord) -> Run | None:
        """The migration's own run, if Temporal knows it. While Temporal is silent, a claimed migration counts as running."""
        try:
            run = await newest_run(self._temporal, record.workflow_id)
        except TemporalUnavailable:
            if record.generation is None or record.run_id is None:
                raise
            return Run(record.id, record.run_id, is_running=True)
        is_ours = run is not None and (run.migration_id == record.id or run.run_id == record.run_id)
        return run if is_ours else None

    async def _end_unclaimed(self, record: MigrationRecord, outcome: str) -> bool:
        at = datetime.now(UTC)
        is_ended = await self._ledger.end_unstarted(record.id, MigrationState.FAILED, outcome, at)
        if is_ended:
            await self._ledger.record_event(_ended(record, outcome, at))
        return is_ended

    async def _forgotten(self, record: MigrationRecord) -> str:
        """Why a claimed migration is over that Temporal does not know. A namespace that is not there has nothing to say of it:
        raises `TemporalRefused`. Nor has one in which nobody works: raises `RunUnknown`. A new migration needs workers there
        anyway, and with them it is let through."""
        await self._temporal.ping()
        if where := await unserved(self._temporal):
            raise RunUnknown(record.id, where)
        return RUN_IS_FORGOTTEN

    async def _end_orphan(self, record: MigrationRecord, outcome: str) -> bool:
        """End a migration that was claimed, and whose run is over without having said so. New runs fence its effects."""
        ended = record.progress.ended(MigrationState.FAILED, outcome)
        try:
            await self._ledger.record(record.id, [_ended(record, outcome, datetime.now(UTC))], ended)
        except MigrationHasEnded:
            return True  # It said so a moment ago.
        return True


def _ended(record: MigrationRecord, outcome: str, at: datetime) -> EventDraft:
    return EventDraft(
        key=f"migration/{record.id}/ended-by-api",
        kind="migration-ended",
        cluster=record.cluster,
        migration_id=record.id,
        at=at,
        data={"state": MigrationState.FAILED.value, "outcome": outcome},
    )
