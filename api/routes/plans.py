"""`/plans`: what a migration would do, before anything is touched."""

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

import uuid_utils
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import JSONResponse

from api.audit import PRINCIPAL, call_of
from api.links import plan_url
from api.negotiation import preferred
from api.plan_answers import PlanAnswer, PlanList
from api.plan_page import page_of
from api.planning import find_plan, start_plan
from api.problems import Problem, ProblemKind
from api.requests import ClusterName, Limit, PlanOrder
from api.routes.clusters import registered
from api.wiring import UsableWiring, Wiring
from domain.contracts import PlanRequest
from domain.plans import Plan

NamedPlan = Annotated[UUID, Path(alias="plan_id")]
Before = Annotated[UUID | None, Query(alias="cursor", description="`next_cursor` of the page before.")]

JSON, MARKDOWN = "application/json", "text/markdown"
VARY = {"Vary": "Accept"}

router = APIRouter(prefix="/plans", tags=["plans"])


@router.post("", status_code=202)
async def make_plan(asked: PlanOrder, request: Request, response: Response, wiring: UsableWiring) -> PlanAnswer:
    """Make a plan: findings, waves, the difference of every file, restarts, what cannot be undone, what it will take.

    Nothing is changed. What comes of it has the address in `Location`.
    """
    call_of(request).cluster = asked.cluster
    await registered(wiring, asked.cluster)
    order = PlanRequest(
        plan_id=str(uuid_utils.uuid7()),
        cluster=asked.cluster,
        kind=asked.kind,
        policy=asked.policy,
        requested_by=PRINCIPAL,
        requested_at=datetime.now(UTC),
    )
    standing = await start_plan(wiring.temporal, order)
    response.headers["Location"] = plan_url(order.plan_id)
    return PlanAnswer.without_plan(order.plan_id, standing)


@router.get("")
async def list_plans(
    wiring: UsableWiring,
    cluster: Annotated[ClusterName | None, Query()] = None,
    limit: Limit = 50,
    before: Before = None,
) -> PlanList:
    """Plans that have been made, newest first."""
    found = await wiring.ledger.plans(cluster, limit + 1, None if before is None else str(before))
    next_cursor = found[limit - 1].id if len(found) > limit else None
    return PlanList(items=[PlanAnswer.of(plan) for plan in found[:limit]], next_cursor=next_cursor)


@router.get("/{plan_id}", response_model=PlanAnswer, responses={200: {"content": {MARKDOWN: {"schema": {"type": "string"}}}}})
async def get_plan(plan_id: NamedPlan, request: Request, wiring: UsableWiring) -> Response:
    """Where a plan stands: `running`, `failed` with the reason, or `ended` with the plan.

    A page with `Accept: text/markdown`.
    """
    plan = await wiring.ledger.plan(str(plan_id))
    if plan is not None:
        return _in_form(request, plan)
    standing = await find_plan(wiring.temporal, str(plan_id))
    if standing is None:
        raise no_such_plan()
    # It may have been published while Temporal was asked.
    published = await wiring.ledger.plan(str(plan_id)) if standing.is_over else None
    if published is not None:
        return _in_form(request, published)
    return JSONResponse(PlanAnswer.without_plan(str(plan_id), standing).model_dump(mode="json"), headers=VARY)


def _in_form(request: Request, plan: Plan) -> Response:
    if preferred(request.headers.get("accept", "*/*"), (JSON, MARKDOWN)) == MARKDOWN:
        return Response(page_of(plan), media_type=f"{MARKDOWN}; charset=utf-8", headers=VARY)
    return JSONResponse(PlanAnswer.of(plan).model_dump(mode="json"), headers=VARY)


async def existing_plan(wiring: Wiring, plan_id: UUID) -> Plan:
    plan = await wiring.ledger.plan(str(plan_id))
    if plan is None:
        raise no_such_plan()
    return plan


def no_such_plan() -> Problem:
    return Problem(
        ProblemKind.PLAN_NOT_FOUND, "GET /plans lists those that there are; one that is being made is not there yet."
    )
