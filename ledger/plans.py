"""Plans, published once, and what earlier migrations tell of how long things take. All functions work in the caller's
transaction."""

from sqlalchemy import select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.plans import MeasuredStep, Plan
from domain.records import EventDraft
from ledger import chain, clusters
from ledger.errors import NoSuchCluster
from ledger.tables import events, plans

PUBLISHED = "plan-made"
"""Kind of the event."""

STEP_DONE = "step-done"
NEWEST_STEPS = 200
"""Steps that are looked at: of the last few migrations, on the hardware of today."""


async def publish(connection: AsyncConnection, plan: Plan) -> Plan:
    """Store the plan and tell of it. The first with an id stands: the lock on the cluster makes a second one wait for it."""
    if await clusters.lock(connection, plan.cluster) is None:
        raise NoSuchCluster(plan.cluster)
    present = await find(connection, plan.id)
    if present is not None:
        return present
    searched = {name: getattr(plan, name) for name in ("id", "cluster", "made_at", "plan_hash")}
    await connection.execute(plans.insert().values(plan=plan, **searched))
    await chain.append(connection, [_event(plan)])
    return plan


async def find(connection: AsyncConnection, plan_id: str) -> Plan | None:
    found: Plan | None = await connection.scalar(select(plans.c.plan).where(plans.c.id == plan_id))
    return found


async def find_all(connection: AsyncConnection, cluster: str | None, limit: int, before: str | None) -> list[Plan]:
    """Newest first. Nothing comes before a plan that is not there."""
    query = select(plans.c.plan).order_by(plans.c.made_at.desc(), plans.c.id.desc()).limit(limit)
    query = query if cluster is None else query.where(plans.c.cluster == cluster)
    if before is not None:
        place = select(plans.c.made_at, plans.c.id).where(plans.c.id == before).scalar_subquery()
        query = query.where(tuple_(plans.c.made_at, plans.c.id) < place)
    return list(await connection.scalars(query))


async def measured_steps(connection: AsyncConnection, cluster: str) -> list[MeasuredStep]:
    """Of one node each, the newest first. Steps of the whole cluster are no restarts."""
    query = (
        select(events.c.data)
        .where((events.c.cluster == cluster) & (events.c.kind == STEP_DONE))
        .order_by(events.c.seq.desc())
        .limit(NEWEST_STEPS)
    )
    return [
        MeasuredStep(action=data["action"], role=data["node"].rpartition("-")[0], stage=data["stage"], seconds=data["seconds"])
        for data in await connection.scalars(query)
        if "seconds" in data and "-" in data["node"]
    ]


def _event(plan: Plan) -> EventDraft:
    return EventDraft(
        key=f"plan/{plan.id}",
        kind=PUBLISHED,
        cluster=plan.cluster,
        at=plan.made_at,
        data={"plan_id": plan.id, "plan_hash": plan.plan_hash, "is_blocked": plan.is_blocked, "by": plan.requested_by},
    )
