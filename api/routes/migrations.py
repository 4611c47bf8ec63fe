"""`/migrations`: start one, and see where it stands."""

from datetime import UTC, datetime
from typing import Annotated, cast
from uuid import UUID

import uuid_utils
from fastapi import APIRouter, Query, Request, Response

from api.answers.links import migration_url
from api.answers.problems import FieldError, invalid_request
from api.answers.resources import MigrationAnswer, MigrationList, SampleList
from api.answers.spec_errors import ensure_attainable
from api.answers.summaries import summary_answer
from api.by_kind import ByKind
from api.pages.markdown import HTML, as_json, described
from api.pages.migration_page import list_page, migration_page
from api.pages.web_pages import is_for_browser
from api.people.access import ensure_in_scope, may, principal_of
from api.people.idempotency import IdempotentRoute
from api.requests import ClusterName, Limit, MigrationRequest, NamedMigration
from api.routes.clusters import registered
from api.routes.plans import existing_plan
from api.running.audit import Call, call_of
from api.running.planning import ensure_startable
from api.wiring import UsableWiring, Wiring
from domain.contracts import workflow_id
from domain.drift.report import DriftReport
from domain.kinds import Kinds
from domain.of_kind import Wanted
from domain.plans import Plan
from domain.principals import Permission, Principal
from domain.records import (
    ClusterRecord,
    Command,
    CommandKind,
    InHand,
    MigrationRecord,
    MigrationState,
    Progress,
)
from ledger.errors import NoSuchMigration

router = APIRouter(prefix="/migrations", tags=["migrations"], route_class=IdempotentRoute)


def router_of(kinds: Kinds) -> APIRouter:
    """All calls; a migration is started as its kind has it."""
    order = ByKind.of(MigrationRequest, kinds)
    starting = APIRouter(prefix="/migrations", tags=["migrations"], route_class=IdempotentRoute)

    @starting.post("", status_code=202, dependencies=[may(Permission.OPERATE)])
    async def start_migration(
        asked: Annotated[MigrationRequest, order], request: Request, response: Response, wiring: UsableWiring
    ) -> MigrationAnswer:
        """Start a migration. It first observes the cluster, and ends as `refused`, with findings, where a check finds a
        blocker.

        With `plan_id` it also ends as `refused` where the cluster has moved away from the plan. A plan with blockers, of
        another revision of the specification, or that is too old starts nothing. With `hold` it starts held: how somebody
        takes over what was left half-way, in order to look first, or to lead it back.
        """
        call = call_of(request)
        call.cluster = asked.cluster
        ensure_in_scope(principal_of(request), asked.cluster)
        cluster = await registered(wiring, asked.cluster)
        if asked.wanted is not None:
            ensure_attainable(kinds[asked.kind], cluster.spec, asked.wanted)
        record = _planned(asked, cluster, await _plan_of(asked, cluster, principal_of(request), wiring), call)
        hold = _hold_of(record, call) if asked.hold else None
        await wiring.starter.start(record, hold)
        call.migration_id, call.command_id = record.id, hold.id if hold is not None else None
        response.headers["Location"] = migration_url(record.id)
        return await _answer(await existing(wiring, record.id), wiring)

    starting.routes.extend(router.routes)
    return starting


@router.get("", response_model=MigrationList, responses=described(HTML))
async def list_migrations(
    request: Request,
    wiring: UsableWiring,
    cluster: Annotated[ClusterName | None, Query()] = None,
    kind: Annotated[str | None, Query()] = None,
    state: Annotated[MigrationState | None, Query()] = None,
    limit: Limit = 50,
) -> Response:
    """Migrations, newest first. A page in a browser."""
    if kind is not None and kind not in wiring.kinds:
        expected = " or ".join(map(repr, wiring.kinds))
        raise invalid_request([FieldError(where="query", field="kind", message=f"Expected {expected}")])
    clusters = principal_of(request).clusters if cluster is None else {cluster}
    records = await wiring.ledger.migrations(clusters, kind, state, limit)
    answer = MigrationList(items=[await _answer(record, wiring) for record in records])
    return list_page(answer) if is_for_browser(request) else as_json(answer)


@router.get("/{migration_id}", response_model=MigrationAnswer, responses=described(HTML))
async def get_migration(migration_id: NamedMigration, request: Request, wiring: UsableWiring) -> Response:
    """Where a migration stands, what it waits for, and what has to be decided. A page in a browser."""
    record = await existing(wiring, migration_id)
    progress = record.progress.model_copy(update={"waiting": await wiring.unattended.waiting_of(record)})
    answer = await _answer(record.model_copy(update={"progress": progress}), wiring)
    return await migration_page(answer, wiring.ledger, principal_of(request)) if is_for_browser(request) else as_json(answer)


@router.get("/{migration_id}/samples")
async def list_samples(migration_id: NamedMigration, wiring: UsableWiring) -> SampleList:
    """The numbers of a migration over time: at most 600 samples, spread over its whole duration."""
    record = await existing(wiring, migration_id)
    return SampleList(items=await wiring.ledger.samples(record.id))


async def _answer(record: MigrationRecord, wiring: Wiring) -> MigrationAnswer:
    """With the reports that its open gate is bound to and the approvals that are open, or the summary once it has ended."""
    reports, summary = await _reports_of_gate(record, wiring), await summary_answer(record, wiring.ledger, wiring.kinds)
    approvals = await wiring.ledger.open_approvals([record.id]) if record.ended_at is None else []
    return MigrationAnswer.of(record, wiring, reports, approvals, summary)


async def _reports_of_gate(record: MigrationRecord, wiring: Wiring) -> list[DriftReport]:
    """Evidence names each by what it says: another one may say the same."""
    evidence = record.progress.gate.evidence if record.progress.gate is not None else {}
    hashes = [named["content_hash"] for named in evidence.values() if isinstance(named, dict) and "content_hash" in named]
    found = [await wiring.ledger.reports(cluster=record.cluster, content_hash=said, limit=1) for said in hashes]
    return [report for newest in found for report in newest]


async def existing(wiring: UsableWiring, migration_id: UUID | str) -> MigrationRecord:
    """The migration, or `NoSuchMigration`."""
    record = await wiring.ledger.migration(str(migration_id))
    if record is None:
        raise NoSuchMigration(str(migration_id))
    return record


async def _plan_of(asked: MigrationRequest, cluster: ClusterRecord, principal: Principal, wiring: Wiring) -> Plan | None:
    """The plan that was named, if a migration may start with it."""
    if asked.plan_id is None:
        return None
    plan = await existing_plan(wiring, asked.plan_id, principal)
    if (plan.cluster, plan.kind) != (cluster.spec.name, asked.kind):
        error = FieldError(where="body", field="plan_id", message=f"This is a plan of {plan.kind} for cluster {plan.cluster}")
        raise invalid_request([error])
    # A migration in the way is why the cluster is not what the plan saw.
    await wiring.starter.ensure_free(plan.cluster)
    ensure_startable(plan, cluster, datetime.now(UTC), wiring.settings.plan_life)
    return plan


def _planned(asked: MigrationRequest, cluster: ClusterRecord, plan: Plan | None, call: Call) -> MigrationRecord:
    now = datetime.now(UTC)
    return MigrationRecord(
        id=str(uuid_utils.uuid7()),
        cluster=cluster.spec.name,
        cluster_id=cluster.spec.cluster_id,
        kind=asked.kind,
        policy=asked.policy if plan is None else plan.policy,
        wanted=cast("Wanted", asked.wanted) if plan is None else plan.wanted,  # a request has it that names no plan
        spec_revision=cluster.revision,
        requested_by=call.by,
        created_at=now,
        workflow_id=workflow_id(cluster.spec.cluster_id),
        plan_id=None if plan is None else plan.id,
        progress=Progress(state=MigrationState.PLANNING, in_hand=InHand.observing(now)),
    )


def _hold_of(record: MigrationRecord, call: Call) -> Command:
    """The hold with which a migration starts: delivered, because the start says it."""
    return Command(
        id=str(uuid_utils.uuid7()),
        migration_id=record.id,
        kind=CommandKind.HOLD,
        reason="started held",
        by=record.requested_by,
        via=call.via,
        at=record.created_at,
        delivered_at=record.created_at,
    )
