"""Why is nothing happening?"""

from fastapi import APIRouter

from api.blockers import BlockersAnswer, find
from api.requests import NamedMigration
from api.routes.migrations import existing
from api.wiring import UsableWiring

router = APIRouter(prefix="/migrations/{migration_id}", tags=["migrations"])


@router.get("/blockers")
async def get_blockers(migration_id: NamedMigration, wiring: UsableWiring) -> BlockersAnswer:
    """Every cause why nothing happens, each with its object, what to do, and since when: from a fresh look at the cluster,
    from the ledger, and from Temporal. Answers within fifteen seconds, also where no worker does. Changes nothing.
    """
    return await find(wiring, await existing(wiring, migration_id))
