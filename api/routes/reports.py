"""`/migrations/{id}/reports`: what the comparisons of a migration found, in the form that the caller likes best."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse

from api.answers.findings import Wanted
from api.answers.negotiation import form_for
from api.answers.outgoing import Outgoing
from api.answers.problems import Problem, ProblemKind
from api.answers.reports import FindingAnswer, FindingPage, ReportAnswer, ReportList
from api.pages import markdown as pages
from api.pages.markdown import HEADERS, HTML, JSON, TEXT, described
from api.requests import Limit, NamedMigration, NamedReport, ReportId
from api.routes.migrations import existing
from api.wiring import UsableWiring, Wiring
from domain.drift.rendering import as_html, as_text
from domain.drift.report import DriftReport, FindingKind

PAGES = described(TEXT, HTML)

Before = Annotated[ReportId | None, Query(alias="cursor", description="`next_cursor` of the page before.")]
Start = Annotated[int, Query(alias="cursor", ge=0, le=2**40, description="`next_cursor` of the page before.")]
Record = Annotated[str | None, Query(max_length=100, description="Only of this kind of row, such as `topic-config`.")]


def _wanted(limit: Limit = 100, start: Start = 0, record: Record = None, finding: FindingKind | None = None) -> Wanted:
    return Wanted(limit, start, record, finding)


WantedFindings = Annotated[Wanted, Depends(_wanted)]
"""Which findings of a report, as every page of them is asked for."""

router = APIRouter(prefix="/migrations/{migration_id}/reports", tags=["reports"])


@router.get("")
async def list_reports(
    migration_id: NamedMigration, wiring: UsableWiring, limit: Limit = 50, before: Before = None
) -> ReportList:
    """A migration's reports, newest first."""
    record = await existing(wiring, migration_id)
    found = await wiring.ledger.reports(migration_id=record.id, limit=limit + 1, before=before)
    return ReportList(items=[ReportAnswer.of(report) for report in found[:limit]], next_cursor=next_of(found, limit))


@router.get("/{report_id}", response_model=ReportAnswer, responses=PAGES)
async def get_report(migration_id: NamedMigration, report_id: NamedReport, request: Request, wiring: UsableWiring) -> Response:
    """A report: JSON, or a page with `Accept: text/plain` or `text/html`. It never changes."""
    report = await _of_migration(wiring, migration_id, report_id)
    return in_form(request, report, ReportAnswer.of(report))


@router.get("/{report_id}/findings")
async def list_findings(
    migration_id: NamedMigration, report_id: NamedReport, wiring: UsableWiring, wanted: WantedFindings
) -> FindingPage:
    """All findings of a report, page by page."""
    report = await _of_migration(wiring, migration_id, report_id)
    return await page_of(wiring, report, wanted)


async def _of_migration(wiring: Wiring, migration_id: NamedMigration, report_id: str) -> DriftReport:
    record = await existing(wiring, migration_id)
    report = await wiring.ledger.report(report_id)
    if report is None or report.migration_id != record.id:
        raise no_such_report()
    return report


def no_such_report() -> Problem:
    return Problem(
        ProblemKind.REPORT_NOT_FOUND, "GET /migrations/{id}/reports and /clusters/{name}/checks list those that exist."
    )


def next_of(found: list[DriftReport], limit: int) -> str | None:
    """Where the next page starts, if one more was found than is shown."""
    return found[limit - 1].id if len(found) > limit else None


def in_form(request: Request, report: DriftReport, answer: Outgoing) -> Response:
    """JSON, unless the caller likes a page better."""
    form = form_for(request, (JSON, TEXT, HTML))
    if form == JSON:
        return JSONResponse(answer.model_dump(mode="json"), headers=HEADERS)
    return pages.in_form(as_html(report) if form == HTML else as_text(report), form)


async def page_of(wiring: Wiring, report: DriftReport, wanted: Wanted) -> FindingPage:
    page = await wiring.findings.page(report, wanted)
    return FindingPage(
        items=[FindingAnswer.of(found, report.check) for found in page.findings],
        next_cursor=None if page.next_start is None else str(page.next_start),
    )
