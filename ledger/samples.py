"""The numbers of a migration over time. All functions work in the caller's transaction, which has locked the migration."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.records import Sample
from ledger.tables import samples

MOST = 600
"""Kept of one migration: more than a plot has room for."""


async def add(connection: AsyncConnection, migration_id: str, sample: Sample) -> None:
    """Keep a sample that is newer than all others; an attempt that is late or repeated adds nothing."""
    is_its = samples.c.migration_id == migration_id
    newest, count = (await connection.execute(select(func.max(samples.c.at), func.count()).where(is_its))).one()
    if newest is not None and sample.at <= newest:
        return
    if count >= MOST:
        times = (await connection.execute(select(samples.c.at).where(is_its).order_by(samples.c.at))).scalars().all()
        await connection.execute(delete(samples).where(is_its & samples.c.at.in_(superfluous(times))))
    await connection.execute(samples.insert().values(migration_id=migration_id, at=sample.at, sample=sample))


def superfluous(times: Sequence[datetime]) -> list[datetime]:
    """All but the first of each of `MOST / 2` equal parts of the whole duration, and the newest: so that the whole stays
    covered evenly, however long the migration waits. `times`: in order."""
    part = (times[-1] - times[0]) / (MOST // 2)
    found: dict[int, datetime] = {}
    for at in times:
        found.setdefault((at - times[0]) // part, at)
    kept = {*found.values(), times[-1]}
    return [at for at in times if at not in kept]


async def find_all(connection: AsyncConnection, migration_id: str) -> list[Sample]:
    """A migration's samples, oldest first."""
    query = select(samples.c.sample).where(samples.c.migration_id == migration_id).order_by(samples.c.at)
    return list((await connection.execute(query)).scalars())
