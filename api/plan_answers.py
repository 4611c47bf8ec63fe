"""What goes out about plans."""

from datetime import datetime

from api.links import cluster_url, plan_url
from api.outgoing import Outgoing
from api.standing import Standing, StandingState
from domain.decisions import Severity
from domain.plans import Plan


class PlanLinks(Outgoing):
    self: str
    cluster: str | None


class PlanAnswer(Outgoing):
    """A plan once it is made. `detail`: what it waits for, or why it failed. Its id goes into `POST /migrations`."""

    id: str
    state: StandingState
    detail: str
    started_at: datetime
    plan: Plan | None
    links: PlanLinks

    @classmethod
    def of(cls, plan: Plan) -> "PlanAnswer":
        return cls(
            id=plan.id,
            state=StandingState.ENDED,
            detail="",
            started_at=plan.requested_at,
            plan=plan,
            links=PlanLinks(self=plan_url(plan.id), cluster=cluster_url(plan.cluster)),
        )

    @classmethod
    def without_plan(cls, plan_id: str, standing: Standing) -> "PlanAnswer":
        return cls(
            id=plan_id,
            state=standing.state,
            detail=standing.detail,
            started_at=standing.started_at,
            plan=None,
            links=PlanLinks(self=plan_url(plan_id), cluster=None),
        )


class PlanSummary(Outgoing):
    """What tells plans apart. `blockers`, `warnings`: how many were found, accepted ones too. `is_rehearsed`: it was run."""

    id: str
    cluster: str
    kind: str
    made_at: datetime
    phase: str | None
    is_blocked: bool
    blockers: int
    warnings: int
    is_rehearsed: bool
    links: PlanLinks

    @classmethod
    def of(cls, plan: Plan) -> "PlanSummary":
        return cls(
            id=plan.id,
            cluster=plan.cluster,
            kind=plan.kind,
            made_at=plan.made_at,
            phase=plan.phase,
            is_blocked=plan.is_blocked,
            blockers=_count(plan, Severity.BLOCKER),
            warnings=_count(plan, Severity.WARNING),
            is_rehearsed=plan.rehearsal is not None and plan.rehearsal.ran,
            links=PlanLinks(self=plan_url(plan.id), cluster=cluster_url(plan.cluster)),
        )


def _count(plan: Plan, severity: Severity) -> int:
    return sum(finding.severity is severity for finding in plan.findings)


class PlanList(Outgoing):
    """Plans that have been made, newest first. `next_cursor`: for the next page; `null` at the end."""

    items: list[PlanSummary]
    next_cursor: str | None
