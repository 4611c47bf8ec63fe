"""Registered clusters: their specs, revisions and generations. All functions work in the caller's transaction."""

from datetime import datetime

from sqlalchemy import RowMapping, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.cluster import ClusterSpec
from domain.records import ClusterRecord, MigrationState
from ledger import migrations
from ledger.errors import ActiveMigration, ClusterIdTaken, NoSuchCluster
from ledger.tables import cluster_revisions, clusters


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


async def put(connection: AsyncConnection, spec: ClusterSpec, at: datetime) -> tuple[ClusterRecord, bool]:
    """Register a cluster, or give it a new revision where the spec differs. Also says whether the cluster is new."""
    present = await lock(connection, spec.name)
    if present is not None and present.spec == spec:
        return present, False
    await _refuse_taken_id(connection, spec)
    if present is None:
        record = ClusterRecord(spec=spec, revision=1, generation=0, created_at=at, updated_at=at)
        await connection.execute(clusters.insert().values(name=spec.name, cluster_id=spec.cluster_id, **_values(record)))
    else:
        await _refuse_active_migration(connection, present.spec, spec)
        record = present.model_copy(update={"spec": spec, "revision": present.revision + 1, "updated_at": at})
        row = clusters.c.name == spec.name
        await connection.execute(update(clusters).where(row).values(cluster_id=spec.cluster_id, **_values(record)))
    revision = {"cluster": spec.name, "revision": record.revision, "spec": spec, "at": at}
    await connection.execute(cluster_revisions.insert().values(revision))
    return record, present is None


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


async def _refuse_active_migration(connection: AsyncConnection, present: ClusterSpec, spec: ClusterSpec) -> None:
    """One that is held touches nothing, and may wait for this very correction of how the cluster is looked at."""
    active = await migrations.find_active(connection, spec.name)
    is_held = active is not None and active.progress.state is MigrationState.HELD
    if active is not None and not (is_held and spec.looks_otherwise_at_the_same_as(present)):
        raise ActiveMigration(spec.name, active.id)


def _record(row: RowMapping) -> ClusterRecord:
    return ClusterRecord.model_validate(dict(row))


def _values(record: ClusterRecord) -> dict[str, object]:
    return {name: getattr(record, name) for name in ClusterRecord.model_fields}
