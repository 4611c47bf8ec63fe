"""Why is nothing happening?"""

from uuid import UUID

from fastapi import APIRouter, Request, Response

from api.answers.problems import Problem, ProblemKind
from api.diagnosis.blockers import BlockersAnswer, find
from api.pages.markdown import HTML, as_json, described
from api.pages.web_pages import is_for_browser, web_page
from api.requests import NamedMigration
from api.routes.migrations import existing
from api.running.runs import of_migration
from api.running.temporal import TemporalRefused, TemporalUnavailable
from api.wiring import UsableWiring, Wiring
from domain.records import MigrationRecord
from ledger.database import place_of
from ledger.errors import LedgerUnavailable, NoSuchMigration

router = APIRouter(prefix="/migrations/{migration_id}", tags=["migrations"])

LISTED = "GET /migrations lists those that exist."
MEANS = (
    "Register no cluster and start nothing here before this is fixed. Compare KEEPERLESS_LEDGER_URL of this API with that "
    "of the workers (its EnvironmentFile, and the HOME of its user), and start the API with the right one. If the URL is "
    "right, the ledger was created again or restored from an older backup: restore the one that knows the migration."
)


@router.get("/blockers", response_model=BlockersAnswer, responses=described(HTML))
async def get_blockers(migration_id: NamedMigration, request: Request, wiring: UsableWiring) -> Response:
    """Every cause why nothing happens, each with its object, what to do, and since when: from a fresh look at the cluster,
    from the ledger, and from Temporal. Answers within fifteen seconds, also where no worker does. Changes nothing.
    A page in a browser.
    """
    answer = await find(wiring, await _last_known(wiring, migration_id))
    return web_page("blockers.html", found=answer) if is_for_browser(request) else as_json(answer)


async def _last_known(wiring: Wiring, migration_id: UUID) -> MigrationRecord:
    """As it was moments ago, where the ledger cannot be read: why it cannot is then told as a cause like others. Where it does
    not know it, another one may."""
    try:
        return await existing(wiring, migration_id)
    except NoSuchMigration as error:
        raise Problem(ProblemKind.MIGRATION_NOT_FOUND, await why_unknown(wiring, str(migration_id))) from error
    except LedgerUnavailable:
        if (record := wiring.caretaker.last_read.get(str(migration_id))) is None:
            raise
        return record


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
