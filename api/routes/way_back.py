"""Before anybody goes back: what it would do and cost; and the way by hand, for when we are gone."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from api.answers.links import migration_url
from api.answers.negotiation import form_for
from api.answers.problems import Problem, ProblemKind
from api.pages import markdown as pages
from api.pages.markdown import HEADERS, HTML, JSON, MARKDOWN, described
from api.pages.runbook_page import page_of
from api.pages.web_pages import is_for_browser, web_page
from api.requests import NamedMigration
from api.routes.migrations import existing
from api.running.observing import preview, runbook
from api.wiring import UsableWiring
from domain.questions import RollbackPreview, Runbook

router = APIRouter(prefix="/migrations/{migration_id}", tags=["rollback"])


@router.get("/rollback-preview", response_model=RollbackPreview, responses=described(HTML))
async def preview_rollback(migration_id: NamedMigration, request: Request, wiring: UsableWiring) -> Response:
    """What a rollback would do, from what a worker sees now: steps, restarts, losses by name, files. Changes nothing. A page in
    a browser."""
    record = await existing(wiring, migration_id)
    seen = await preview(wiring.temporal, record)
    if not seen.is_possible:
        raise Problem(
            ProblemKind.NO_WAY_BACK,
            seen.why_not or "The observation gave no reason; GET the cluster's observation to see where it is.",
            phase=seen.phase,
            unknown=list(seen.unknown),
            links={"runbook": f"{migration_url(record.id)}/runbook"},
        )
    if is_for_browser(request):
        return web_page("rollback_preview.html", preview=seen, url=migration_url(record.id))
    return JSONResponse(seen.model_dump(mode="json"), headers={"Vary": "Accept"})


@router.get("/runbook", response_model=Runbook, responses=described(MARKDOWN, HTML))
async def get_runbook(migration_id: NamedMigration, request: Request, wiring: UsableWiring) -> Response:
    """The way by hand from this very state, forward and back, with the tools of Kafka and ZooKeeper only.

    A page in Markdown, or in a browser; JSON with `Accept: application/json`.
    """
    record = await existing(wiring, migration_id)
    seen = await runbook(wiring.temporal, record)
    form = form_for(request, (MARKDOWN, JSON, HTML))
    if form == JSON:
        return JSONResponse(seen.model_dump(mode="json"), headers=HEADERS)
    return pages.page(page_of(seen), form)
