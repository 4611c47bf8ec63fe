"""Health rows of worker processes. All functions work in the caller's transaction."""

from datetime import datetime

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.worker_health import KEPT, WorkerHealth
from ledger.tables import worker_health


async def put(connection: AsyncConnection, worker: WorkerHealth) -> None:
    """The first beat of a process also removes the rows of those that have been silent for a day."""
    values = worker.model_dump()
    done = await connection.execute(update(worker_health).where(worker_health.c.id == worker.id).values(values))
    if done.rowcount == 0:
        await connection.execute(delete(worker_health).where(worker_health.c.beat_at < worker.beat_at - KEPT))
        await connection.execute(worker_health.insert().values(values))


async def find_all(connection: AsyncConnection, now: datetime) -> list[WorkerHealth]:
    query = select(worker_health).where(worker_health.c.beat_at >= now - KEPT).order_by(worker_health.c.beat_at)
    rows = (await connection.execute(query)).mappings()
    return [WorkerHealth.model_validate(dict(row)) for row in rows]
