"""Migrations, from their creation to their end. All functions work in the caller's transaction.

Order of locks, the same everywhere: the cluster, then its migration, then the chain of events.
"""

from collections.abc import Collection
from datetime import datetime, timedelta

from sqlalchemy import RowMapping, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.clocks import is_ahead
from domain.records import ACTIVE_STATES, MigrationRecord, MigrationState, Progress
from ledger.errors import LedgerMisuse, MigrationHasEnded, NoSuchMigration
from ledger.tables import migrations

LATE = timedelta(minutes=5)
"""By how much what an attempt writes that is late may be older than what its successor has written."""


async def find(connection: AsyncConnection, migration_id: str) -> MigrationRecord | None:
    row = (await connection.execute(select(migrations).where(migrations.c.id == migration_id))).mappings().one_or_none()
    return None if row is None else _record(row)


async def find_active(connection: AsyncConnection, cluster: str) -> MigrationRecord | None:
    is_active = (migrations.c.cluster == cluster) & migrations.c.ended_at.is_(None)
    row = (await connection.execute(select(migrations).where(is_active))).mappings().one_or_none()
    return None if row is None else _record(row)


async def find_all(
    connection: AsyncConnection,
    clusters: Collection[str] | None,
    kind: str | None,
    state: MigrationState | None,
    limit: int,
) -> list[MigrationRecord]:
    """Newest first."""
    query = select(migrations).order_by(migrations.c.created_at.desc(), migrations.c.id.desc()).limit(limit)
    query = query if clusters is None else query.where(migrations.c.cluster.in_(clusters))
    wanted = ((migrations.c.kind, kind), (migrations.c.state, state))
    for column, value in wanted:
        query = query if value is None else query.where(column == value)
    return [_record(row) for row in (await connection.execute(query)).mappings()]


async def lock(connection: AsyncConnection, migration_id: str) -> MigrationRecord:
    """The migration, kept as it is until the transaction ends."""
    query = select(migrations).where(migrations.c.id == migration_id).with_for_update(key_share=True)
    row = (await connection.execute(query)).mappings().one_or_none()
    if row is None:
        raise NoSuchMigration(migration_id)
    return _record(row)


async def touch(connection: AsyncConnection, migration_id: str) -> None:
    """Write its row, as it is."""
    await connection.execute(update(migrations).where(migrations.c.id == migration_id).values(id=migration_id))


async def insert(connection: AsyncConnection, record: MigrationRecord) -> None:
    """The unique index refuses a second active migration of the cluster."""
    if (record.progress.state in ACTIVE_STATES) != (record.ended_at is None):
        raise LedgerMisuse(f"migration {record.id} is {record.progress.state}: ended_at is given exactly when it has ended")
    values = {name: getattr(record, name) for name in MigrationRecord.model_fields}
    await connection.execute(migrations.insert().values(state=record.progress.state, **values))


async def change(connection: AsyncConnection, migration_id: str, **values: object) -> None:
    await connection.execute(update(migrations).where(migrations.c.id == migration_id).values(**values))


async def claim(connection: AsyncConnection, migration: MigrationRecord, run_id: str, generation: int, at: datetime) -> None:
    """Make the migration the one of this run."""
    progress = migration.progress.model_copy(update={"state": MigrationState.RUNNING})
    await change(
        connection,
        migration.id,
        run_id=run_id,
        generation=generation,
        started_at=migration.started_at or at,
        state=progress.state,
        progress=progress,
    )


async def set_progress(
    connection: AsyncConnection,
    migration: MigrationRecord,
    progress: Progress,
    at: datetime,
    now: datetime,
    as_of: datetime | None = None,
) -> None:
    """Store where the migration stands. A terminal state ends it, at `at`, and stays: raises `MigrationHasEnded`.

    The same terminal state again is a repeated call, and changes nothing. Nor does what was true before that which is
    stored: a worker that was only asleep may wake up and write what its successor has written long since. What is stored of a
    time that has not come yet, and long after `as_of`, is of a clock that was set back, and proves nothing: less may lie
    between an attempt that is late and its successor, by the clock of Temporal, which need not be that of `now`.
    """
    if migration.ended_at is not None:
        if progress.state != migration.progress.state:
            raise MigrationHasEnded(migration.id, migration.progress.state)
        return
    has_ended = progress.state not in ACTIVE_STATES
    known_as_of = await connection.scalar(select(migrations.c.progress_as_of).where(migrations.c.id == migration.id))
    if as_of is not None and known_as_of is not None and is_ahead(known_as_of, now) and known_as_of - as_of > LATE:
        known_as_of = None
    if not has_ended and as_of is not None and known_as_of is not None and as_of < known_as_of:
        return
    await change(
        connection,
        migration.id,
        state=progress.state,
        progress=progress,
        progress_as_of=as_of or known_as_of,
        ended_at=at if has_ended else None,
    )


def _record(row: RowMapping) -> MigrationRecord:
    return MigrationRecord.model_validate(dict(row))
