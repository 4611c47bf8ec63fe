"""Registered clusters: their specs, revisions and generations. All functions work in the caller's transaction."""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import RowMapping, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.cluster import ClusterSpec
from domain.records import ClusterRecord, MigrationRecord, MigrationState
from ledger import migrations
from ledger.errors import ActiveMigration, ClusterIdTaken, NoSuchCluster
from ledger.tables import cluster_revisions, clusters

Aimed = Callable[[MigrationRecord, ClusterSpec], ClusterSpec]


async def find(connection: AsyncConnection, name: str) -> ClusterRecord | None:
    row = (await connection.execute(select(clusters).where(clusters.c.name == name))).mappings().one_or_none()
    return None if row is None else _record(row)


async def find_all(connection: AsyncConnection) -> list[ClusterRecord]:
    rows = (await connection.execute(select(clusters))).mappings()
    return sorted((_record(row) for row in rows), key=lambda cluster: cluster.spec.name)


async def find_revision(connection: AsyncConnection, name: str, revision: int) -> ClusterSpec | None:
    key = (cluster_revisions.c.cluster == name) & (cluster_revisions.c.revision == revision)
    spec: ClusterSpec | None = await connection.scalar(select(cluster_revisions.c.spec).where(key))
    return spec


async def lock(connection: AsyncConnection, name: str) -> ClusterRecord | None:
    """The cluster, kept as it is until the transaction ends. Taken before any lock on its migrations."""
    query = select(clusters).where(clusters.c.name == name).with_for_update(key_share=True)
    row = (await connection.execute(query)).mappings().one_or_none()
    return None if row is None else _record(row)


async def put(connection: AsyncConnection, spec: ClusterSpec, at: datetime, aimed: Aimed) -> tuple[ClusterRecord, bool]:
    """Register a cluster, or give it a new revision where the spec differs. Also says whether the cluster is new.

    `aimed`: a spec as an active migration sees it.
    """
    present = await lock(connection, spec.name)
    if present is not None and present.spec == spec:
        return present, False
    await _refuse_taken_id(connection, spec)
    if present is None:
        record = ClusterRecord(spec=spec, revision=1, generation=0, created_at=at, updated_at=at)
        await connection.execute(clusters.insert().values(name=spec.name, cluster_id=spec.cluster_id, **_values(record)))
    else:
        await _refuse_active_migration(connection, present.spec, spec, aimed)
        return await revise(connection, present, spec, at), False
    await _keep_revision(connection, record)
    return record, True


async def revise(connection: AsyncConnection, present: ClusterRecord, spec: ClusterSpec, at: datetime) -> ClusterRecord:
    """Give a cluster its next revision; the present one where the spec is the same. The caller has locked it."""
    if present.spec == spec:
        return present
    record = present.model_copy(update={"spec": spec, "revision": present.revision + 1, "updated_at": at})
    row = clusters.c.name == spec.name
    await connection.execute(update(clusters).where(row).values(cluster_id=spec.cluster_id, **_values(record)))
    await _keep_revision(connection, record)
    return record


async def _keep_revision(connection: AsyncConnection, record: ClusterRecord) -> None:
    revision = {"cluster": record.spec.name, "revision": record.revision, "spec": record.spec, "at": record.updated_at}
    await connection.execute(cluster_revisions.insert().values(revision))


async def generation(connection: AsyncConnection, name: str) -> int:
    """The newest generation. 0 where no migration ever claimed the cluster."""
    number: int | None = await connection.scalar(select(clusters.c.generation).where(clusters.c.name == name))
    if number is None:
        raise NoSuchCluster(name)
    return number


async def next_generation(connection: AsyncConnection, name: str) -> int:
    """Make all older generations void."""
    query = update(clusters).where(clusters.c.name == name).values(generation=clusters.c.generation + 1)
    number: int = (await connection.execute(query.returning(clusters.c.generation))).scalar_one()
    return number


async def _refuse_taken_id(connection: AsyncConnection, spec: ClusterSpec) -> None:
    same_cluster = (clusters.c.cluster_id == spec.cluster_id) & (clusters.c.name != spec.name)
    holder = await connection.scalar(select(clusters.c.name).where(same_cluster))
    if holder is not None:
        raise ClusterIdTaken(spec.cluster_id, holder)


async def _refuse_active_migration(connection: AsyncConnection, present: ClusterSpec, spec: ClusterSpec, aimed: Aimed) -> None:
    """One that is held touches nothing, and may wait for this very correction of how the cluster is looked at."""
    active = await migrations.find_active(connection, spec.name)
    if active is None:
        return
    if active.progress.state is not MigrationState.HELD or not _looks_alike(aimed, active, spec, present):
        raise ActiveMigration(spec.name, active.id)


def _looks_alike(aimed: Aimed, active: MigrationRecord, spec: ClusterSpec, present: ClusterSpec) -> bool:
    try:
        return aimed(active, spec).looks_otherwise_at_the_same_as(aimed(active, present))
    except ValueError:  # it cannot be what the migration wants
        return False


def _record(row: RowMapping) -> ClusterRecord:
    return ClusterRecord.model_validate(dict(row))


def _values(record: ClusterRecord) -> dict[str, object]:
    return {name: getattr(record, name) for name in ClusterRecord.model_fields}
