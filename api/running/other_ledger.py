"""Of a migration that the API's ledger does not know: whether another ledger does, as far as that is seen from here."""

from api.running.runs import of_migration
from api.running.temporal import TemporalRefused, TemporalUnavailable
from api.wiring import Wiring
from ledger.database import place_of

LISTED = "GET /migrations lists those that exist."
MEANS = (
    "Register no cluster and start nothing here before this is fixed. Compare KEEPERLESS_LEDGER_URL of this API with that "
    "of the workers (its EnvironmentFile, and the HOME of its user), and start the API with the right one. If the URL is "
    "right, the ledger was created again or restored from an older backup: restore the one that knows the migration."
)


async def why_unknown(wiring: Wiring, migration_id: str) -> str:
    """In sentences, for who asked for it."""
    has_not = f"The ledger of this API, {place_of(wiring.settings.ledger_url)}, has no such migration."
    run = await _run(wiring, migration_id)
    return f"{has_not} Temporal has a run of it, {run}. {MEANS}" if run else f"{has_not} {LISTED}"


async def _run(wiring: Wiring, migration_id: str) -> str:
    """Its workflow's id; empty where there is none, or Temporal does not say."""
    try:
        return await of_migration(wiring.temporal, migration_id)
    except (TemporalUnavailable, TemporalRefused):
        return ""
