"""`/plans`: what a migration would do, before anything is touched."""

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

import uuid_utils
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import JSONResponse

from api.answers.links import plan_url
from api.answers.negotiation import form_for
from api.answers.plans import PlanAnswer, PlanList, PlanSummary
from api.answers.problems import Problem, ProblemKind
from api.answers.spec_errors import ensure_attainable
from api.by_kind import ByKind
from api.pages import markdown as pages
from api.pages.markdown import HEADERS, HTML, JSON, MARKDOWN, described
from api.pages.plan_page import page_of, page_without_plan
from api.people.access import ensure_in_scope, may, principal_of
from api.people.idempotency import IdempotentRoute
from api.requests import ClusterName, Limit, PlanOrder
from api.routes.clusters import registered
from api.running.activity_progress import ActivityProgress, StandingState
from api.running.audit import call_of
from api.running.planning import PlanInMaking, find_plan, plans_in_making, start_plan
from api.running.temporal import TemporalRefused, TemporalUnavailable
from api.wiring import UsableWiring, Wiring
from domain.kinds import Kinds
from domain.plans import Plan
from domain.principals import Permission, Principal
from domain.questions import PlanRequest

NamedPlan = Annotated[UUID, Path(alias="plan_id")]
Before = Annotated[UUID | None, Query(alias="cursor", description="`next_cursor` of the page before.")]

router = APIRouter(prefix="/plans", tags=["plans"], route_class=IdempotentRoute)


def router_of(kinds: Kinds) -> APIRouter:
    """All calls; a plan is made as its kind has it."""
    order = ByKind.of(PlanOrder, kinds)
    ordering = APIRouter(prefix="/plans", tags=["plans"], route_class=IdempotentRoute)

    @ordering.post("", status_code=202, dependencies=[may(Permission.OPERATE)])
    async def make_plan(
        asked: Annotated[PlanOrder, order], request: Request, response: Response, wiring: UsableWiring
    ) -> PlanAnswer:
        """Make a plan: findings, waves, the difference of every file, restarts, what cannot be undone, what it will take.

        Nothing is changed. What comes of it has the address in `Location`.
        """
        call = call_of(request)
        call.cluster = asked.cluster
        ensure_in_scope(principal_of(request), asked.cluster)
        cluster = await registered(wiring, asked.cluster)
        ensure_attainable(kinds[asked.kind], cluster.spec, asked.wanted)
        order = PlanRequest(
            plan_id=str(uuid_utils.uuid7()),
            cluster=asked.cluster,
            kind=asked.kind,
            policy=asked.policy,
            wanted=asked.wanted,
            requested_by=call.by,
            requested_at=datetime.now(UTC),
        )
        standing = await start_plan(wiring.temporal, order, is_rehearsed=asked.rehearse)
        response.headers["Location"] = plan_url(order.plan_id)
        return PlanAnswer.without_plan(order.plan_id, standing)

    ordering.routes.extend(router.routes)
    return ordering


@router.get("")
async def list_plans(
    request: Request,
    wiring: UsableWiring,
    cluster: Annotated[ClusterName | None, Query()] = None,
    limit: Limit = 50,
    before: Before = None,
) -> PlanList:
    """Plans, newest first: what tells them apart. The whole of one has the address in its links."""
    if cluster is not None:
        await registered(wiring, cluster)
    making, unlooked = await _in_making(wiring, cluster) if before is None else ([], [])
    found = await wiring.ledger.plans(cluster, limit + 1, None if before is None else str(before))
    next_cursor = found[limit - 1].id if len(found) > limit else None
    made = {plan.id for plan in found}
    items = [PlanSummary.in_making(plan) for plan in making if plan.id not in made]
    items += [PlanSummary.of(plan) for plan in found[:limit]]
    principal = principal_of(request)
    items = [item for item in items if principal.is_in_scope(item.cluster)]
    return PlanList(items=items, next_cursor=next_cursor, unlooked=unlooked)


@router.get("/{plan_id}", response_model=PlanAnswer, responses=described(MARKDOWN, HTML))
async def get_plan(plan_id: NamedPlan, request: Request, wiring: UsableWiring) -> Response:
    """Where a plan stands: `running`, `failed` with the reason, or `ended` with the plan.

    A page with `Accept: text/markdown`, or in a browser.
    """
    found = await _found(wiring, plan_id, principal_of(request))
    form = form_for(request, (JSON, MARKDOWN, HTML))
    if form != JSON:
        return pages.page(page_of(found) if isinstance(found, Plan) else page_without_plan(str(plan_id), found), form)
    answer = PlanAnswer.of(found) if isinstance(found, Plan) else PlanAnswer.without_plan(str(plan_id), found)
    return JSONResponse(answer.model_dump(mode="json"), headers=HEADERS)


async def _in_making(wiring: Wiring, cluster: str | None) -> tuple[list[PlanInMaking], list[str]]:
    """Plans that have been made are readable without Temporal."""
    try:
        return await plans_in_making(wiring.temporal, cluster), []
    except (TemporalUnavailable, TemporalRefused) as error:
        return [], [f"Plans that are being made are not listed: {error}"]


async def existing_plan(wiring: Wiring, plan_id: UUID, principal: Principal) -> Plan:
    """The plan; a `Problem` where there is none, or none yet, or where it is of a cluster out of the principal's scope."""
    found = await _found(wiring, plan_id, principal)
    if isinstance(found, Plan):
        return found
    is_running = found.state is StandingState.RUNNING
    what = "It is still being made, or waits for that. Follow its link until its state is ended, then ask again."
    detail = what if is_running else f"It could not be made, and will not be: {found.detail} Make a new one with POST /plans."
    raise Problem(ProblemKind.PLAN_NOT_MADE, detail, links={"plan": plan_url(str(plan_id))})


async def _found(wiring: Wiring, plan_id: UUID, principal: Principal) -> Plan | ActivityProgress:
    """In the principal's scope, which the ledger alone does not know while a plan is being made."""
    found = await _known(wiring, plan_id)
    ensure_in_scope(principal, found.cluster)
    return found


async def _known(wiring: Wiring, plan_id: UUID) -> Plan | ActivityProgress:
    """The plan, or where it stands; a `Problem` where nobody knows of it."""
    plan = await wiring.plan(str(plan_id))
    if plan is not None:
        return plan
    standing = await find_plan(wiring.temporal, str(plan_id))
    if standing is None:
        raise Problem(ProblemKind.PLAN_NOT_FOUND, "GET /plans lists those that exist.")
    # It may have been published while Temporal was asked.
    published = await wiring.plan(str(plan_id)) if standing.is_over else None
    return published or standing
