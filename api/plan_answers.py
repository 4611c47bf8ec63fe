"""What goes out about plans."""

from datetime import datetime

from api.answers import Outgoing
from api.links import cluster_url, plan_url
from api.standing import Standing, StandingState
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


class PlanList(Outgoing):
    """Plans that have been made, newest first. `next_cursor`: for the next page; `null` at the end."""

    items: list[PlanAnswer]
    next_cursor: str | None
