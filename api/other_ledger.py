"""Of a migration that the API's ledger does not know: whether another ledger does, as far as that is seen from here."""

import asyncio

from api.absences import in_time
from api.programs import Apart, apart_from
from api.runs import of_migration
from api.temporal import TemporalRefused, TemporalUnavailable
from api.wiring import Wiring
from ledger.database import place_of

SECONDS = 2.0
"""For both that are asked, at once."""
LISTED = "GET /migrations lists those that there are."
MEANS = (
    "This API was started with another KEEPERLESS_LEDGER_URL than the one that knows it (compare its EnvironmentFile, and the "
    "HOME of its user, with those of the workers), or its ledger was made anew, or restored from a backup of before. Start it "
    "with the right one, or restore that; register no cluster and start nothing here before."
)


async def why_unknown(wiring: Wiring, migration_id: str) -> str:
    """In sentences, for who asked for it."""
    has_not = f"The ledger of this API, {place_of(wiring.settings.ledger_url)}, has no such migration."
    run, apart = await asyncio.gather(_run(wiring, migration_id), _apart(wiring))
    seen = [f"Temporal has a run of it, {run}."] if run else []
    seen += [
        f"Process {one.pid} ({one.program}) takes tasks from the same Temporal, and goes by {one.ledger}." for one in apart
    ]
    return " ".join([has_not, *seen, MEANS if seen else LISTED])


async def _run(wiring: Wiring, migration_id: str) -> str:
    """Its workflow's id; empty where there is none, or Temporal does not say."""
    try:
        return await of_migration(wiring.temporal, migration_id)
    except (TemporalUnavailable, TemporalRefused):
        return ""


async def _apart(wiring: Wiring) -> list[Apart]:
    async with in_time(asyncio.get_running_loop().time() + SECONDS):
        return await apart_from(wiring.temporal, wiring.settings.ledger_url)
    return []
