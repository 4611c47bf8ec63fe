"""What goes out about plans."""

from datetime import datetime

from api.answers.links import cluster_url, plan_url
from api.answers.outgoing import Outgoing
from api.running.activity_progress import ActivityProgress, StandingState
from api.running.planning import PlanInMaking
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
    def without_plan(cls, plan_id: str, standing: ActivityProgress) -> "PlanAnswer":
        return cls(
            id=plan_id,
            state=standing.state,
            detail=standing.detail,
            started_at=standing.started_at,
            plan=None,
            links=PlanLinks(self=plan_url(plan_id), cluster=None),
        )


class PlanSummary(Outgoing):
    """What tells plans apart. `detail`: what one that is being made waits for, or is at; what is not known yet is `null` then.
    `blockers`, `warnings`: how many were found, accepted ones too. `is_rehearsed`: its rehearsal was run, or was asked for.
    """

    id: str
    cluster: str
    kind: str
    state: StandingState
    detail: str
    started_at: datetime
    made_at: datetime | None
    phase: str | None
    is_blocked: bool | None
    blockers: int | None
    warnings: int | None
    is_rehearsed: bool
    links: PlanLinks

    @classmethod
    def of(cls, plan: Plan) -> "PlanSummary":
        return cls(
            id=plan.id,
            cluster=plan.cluster,
            kind=plan.kind,
            state=StandingState.ENDED,
            detail="",
            started_at=plan.requested_at,
            made_at=plan.made_at,
            phase=plan.phase,
            is_blocked=plan.is_blocked,
            blockers=_count(plan, Severity.BLOCKER),
            warnings=_count(plan, Severity.WARNING),
            is_rehearsed=plan.rehearsal is not None and plan.rehearsal.ran,
            links=PlanLinks(self=plan_url(plan.id), cluster=cluster_url(plan.cluster)),
        )

    @classmethod
    def in_making(cls, plan: PlanInMaking) -> "PlanSummary":
        return cls(
            id=plan.id,
            cluster=plan.cluster,
            kind=plan.kind,
            state=plan.standing.state,
            detail=plan.standing.detail,
            started_at=plan.standing.started_at,
            made_at=None,
            phase=None,
            is_blocked=None,
            blockers=None,
            warnings=None,
            is_rehearsed=plan.is_rehearsed,
            links=PlanLinks(self=plan_url(plan.id), cluster=cluster_url(plan.cluster)),
        )


def _count(plan: Plan, severity: Severity) -> int:
    return sum(finding.severity is severity for finding in plan.findings)


class PlanList(Outgoing):
    """Newest first; on the first page those that are being made come before. `next_cursor`: for the next page; `null` at the
    end. `unlooked`: why plans that are being made are missing."""

    items: list[PlanSummary]
    next_cursor: str | None
    unlooked: list[str]
