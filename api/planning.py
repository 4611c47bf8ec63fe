"""A plan that a person asks for, and the review of one before a migration starts with it: standalone activities.

Each call is a plan of its own, with an id of its own, under which it is published.
"""

from datetime import timedelta

from temporalio.common import RetryPolicy

from api import observing
from api.links import plan_url
from api.observing import look
from api.problems import Problem, ProblemKind
from api.standing import Standing, find_standing, standing_of
from api.temporal import Temporal
from domain.contracts import ActivityName, TaskQueue
from domain.plans import Plan
from domain.questions import PlanOutcome, PlanRequest, PlanReview, ReviewRequest
from domain.zk_to_kraft.rehearsal.outcome import RehearsalLimits

QUEUE_LIMIT = timedelta(minutes=1)
"""Until a worker takes the task."""

PLAN_LIMIT = timedelta(minutes=30)
"""For all attempts together."""

REHEARSED_PLAN_LIMIT = RehearsalLimits().deadline + PLAN_LIMIT
"""The same with a rehearsal, which ends by itself before: then the plan is published, and says so."""

SILENCE_LIMIT = timedelta(seconds=30)
"""Without a heartbeat the worker is dead, and another takes it up."""

REVIEW_LIMIT = timedelta(minutes=2)
"""For the look before a start: as thorough as the plan's own."""

RETRIES = RetryPolicy(maximum_interval=timedelta(seconds=15))


async def start_plan(temporal: Temporal, asked: PlanRequest, *, is_rehearsed: bool = False) -> Standing:
    """Start making it; does not wait. Raises `TemporalUnavailable` or `TemporalRefused`.

    A rehearsal is work for the checks' worker.
    """
    name = ActivityName.REHEARSE_PLAN if is_rehearsed else ActivityName.MAKE_PLAN
    queue = TaskQueue.CHECKS if is_rehearsed else TaskQueue.WATCH
    async with temporal.answering() as client:
        handle = await client.start_activity(
            name.value,
            asked,
            id=_activity_id(asked.plan_id),
            task_queue=queue,
            result_type=PlanOutcome,
            schedule_to_start_timeout=QUEUE_LIMIT,
            schedule_to_close_timeout=REHEARSED_PLAN_LIMIT if is_rehearsed else PLAN_LIMIT,
            heartbeat_timeout=SILENCE_LIMIT,
            retry_policy=RETRIES,
            summary=f"POST /plans: {asked.kind} of {asked.cluster}",
        )
        return await standing_of(await handle.describe(), queue)


async def find_plan(temporal: Temporal, plan_id: str) -> Standing | None:
    """Where a plan stands that is not published; `None` where Temporal knows of none. Raises as above."""
    return await find_standing(temporal, _activity_id(plan_id))


async def ensure_still_good(temporal: Temporal, plan: Plan) -> None:
    """A fresh look: raises a `Problem` where blockers stand, or the cluster has moved away from the plan. As `look` else."""
    if plan.is_blocked:
        raise _refused(ProblemKind.PLAN_BLOCKED, plan, PlanReview(blockers=plan.findings, unknown=plan.unknown))
    asked = ReviewRequest(plan_id=plan.id, cluster=plan.cluster)
    call, limits = f"{plan_url(plan.id)} (review)", (observing.WORKER_LIMIT, REVIEW_LIMIT)
    review = await look(temporal, ActivityName.REVIEW_PLAN, asked, PlanReview, f"review/{plan.id}", call, limits)
    if review.moved:
        raise _refused(ProblemKind.PLAN_OUTDATED, plan, review)
    if review.blockers or review.unknown:
        raise _refused(ProblemKind.PLAN_BLOCKED, plan, review)


DETAILS = {
    ProblemKind.PLAN_BLOCKED: "Nothing was started. Mend what is named in findings and unknown, then make a new plan.",
    ProblemKind.PLAN_OUTDATED: "Nothing was started. Read in findings what has changed, make a new plan, and start with that.",
}


def _refused(kind: ProblemKind, plan: Plan, review: PlanReview) -> Problem:
    findings = [finding.model_dump(mode="json") for finding in (*review.moved, *review.blockers)]
    return Problem(kind, DETAILS[kind], findings=findings, unknown=list(review.unknown), links={"plan": plan_url(plan.id)})


def _activity_id(plan_id: str) -> str:
    return f"plan/{plan_id}"
