"""Why is nothing happening?"""

from uuid import UUID

from fastapi import APIRouter, Request, Response

from api.answers.problems import Problem, ProblemKind
from api.diagnosis.blockers import BlockersAnswer, find
from api.pages.markdown import HTML, as_json, described
from api.pages.web_pages import is_for_browser, web_page
from api.requests import NamedMigration
from api.routes.migrations import existing
from api.running.other_ledger import why_unknown
from api.wiring import UsableWiring, Wiring
from domain.records import MigrationRecord
from ledger.errors import LedgerUnavailable, NoSuchMigration

router = APIRouter(prefix="/migrations/{migration_id}", tags=["migrations"])


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
