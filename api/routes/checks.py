"""`/clusters/{name}/checks`: compare at any time, with a migration or without; and all that was found of a cluster."""

import uuid_utils
from fastapi import APIRouter, Request, Response

from api.answers.links import check_url
from api.answers.reports import CheckAnswer, CheckList, FindingPage
from api.people.access import may
from api.people.idempotency import IdempotentRoute
from api.requests import CheckOrder, Limit, NamedCluster, NamedReport
from api.routes.clusters import registered
from api.routes.reports import PAGES, Before, WantedFindings, in_form, next_of, no_such_report, page_of
from api.running.audit import call_of
from api.running.checking import find_check, start_check
from api.wiring import UsableWiring, Wiring
from domain.contracts import CheckRequest
from domain.drift.report import DriftReport
from domain.principals import Permission

router = APIRouter(prefix="/clusters/{name}/checks", tags=["checks"], route_class=IdempotentRoute)


@router.post("", status_code=202, dependencies=[may(Permission.OPERATE)])
async def run_check(
    name: NamedCluster, asked: CheckOrder, request: Request, response: Response, wiring: UsableWiring
) -> CheckAnswer:
    """Compare both sides of a cluster now. Nothing is changed. What is found has the address in `Location`.

    While a migration is active the check is one of its own: by its policy, among its reports, and in its events.
    """
    call = call_of(request)
    call.cluster = name
    await registered(wiring, name)
    migration = await wiring.ledger.active_migration(name)
    call.migration_id = None if migration is None else migration.id
    kind = next(iter(wiring.kinds)) if migration is None else migration.kind
    order = CheckRequest(
        report_id=str(uuid_utils.uuid7()),
        kind=kind,
        cluster=name,
        check=asked.check,
        migration_id=call.migration_id,
        policy=wiring.kinds[kind].policy() if migration is None else migration.policy,
        is_asked_for=True,
    )
    standing = await start_check(wiring.temporal, order)
    response.headers["Location"] = check_url(name, order.report_id)
    return CheckAnswer.without_report(name, order.report_id, standing)


@router.get("")
async def list_checks(name: NamedCluster, wiring: UsableWiring, limit: Limit = 50, before: Before = None) -> CheckList:
    """All checks of a cluster that have a report, whoever asked for them, newest first."""
    await registered(wiring, name)
    found = await wiring.ledger.reports(cluster=name, limit=limit + 1, before=before)
    return CheckList(items=[CheckAnswer.of(report) for report in found[:limit]], next_cursor=next_of(found, limit))


@router.get("/{report_id}", response_model=CheckAnswer, responses=PAGES)
async def get_check(name: NamedCluster, report_id: NamedReport, request: Request, wiring: UsableWiring) -> Response:
    """Where a check stands: `running`, `failed` with the reason, or `ended` with the report, which `Accept: text/plain` or
    `text/html` shows as a page."""
    await registered(wiring, name)
    report = await _of_cluster(wiring, name, report_id)
    if report is None:
        standing = await find_check(wiring.temporal, name, report_id)
        if standing is None:
            raise no_such_report()
        # It may have published while Temporal was asked.
        report = await _of_cluster(wiring, name, report_id) if standing.is_over else None
        if report is None:
            answer = CheckAnswer.without_report(name, report_id, standing)
            return Response(answer.model_dump_json(), media_type="application/json")
    return in_form(request, report, CheckAnswer.of(report))


@router.get("/{report_id}/findings")
async def list_check_findings(
    name: NamedCluster, report_id: NamedReport, wiring: UsableWiring, wanted: WantedFindings
) -> FindingPage:
    """All findings of a check that has ended, page by page."""
    await registered(wiring, name)
    report = await _of_cluster(wiring, name, report_id)
    if report is None:
        raise no_such_report()
    return await page_of(wiring, report, wanted)


async def _of_cluster(wiring: Wiring, name: str, report_id: str) -> DriftReport | None:
    report = await wiring.ledger.report(report_id)
    return report if report is not None and report.cluster == name else None
