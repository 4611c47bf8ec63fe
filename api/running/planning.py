"""A plan that a person asks for: a standalone activity. And whether a migration may start with one.

Each call is a plan of its own, with an id of its own, under which it is published.
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

from temporalio.common import RetryPolicy, SearchAttributePair, TypedSearchAttributes

from api.answers.links import plan_url
from api.answers.problems import Problem, ProblemKind
from api.running.activity_progress import ActivityProgress, StandingState, find_progress, progress_of
from api.running.runs import CLUSTER, MIGRATION_KIND
from api.running.temporal import Temporal
from domain.checks.acceptance import blockers_in
from domain.contracts import ActivityName, TaskQueue
from domain.decisions import Finding
from domain.plans import Plan, moved_since, of_specification, too_old
from domain.questions import PlanOutcome, PlanRequest
from domain.records import ClusterRecord
from domain.rehearsal import RehearsalLimits

QUEUE_LIMIT = timedelta(minutes=1)
"""Until a worker takes the task."""

PLAN_LIMIT = timedelta(minutes=30)
"""For all attempts together."""

REHEARSED_PLAN_LIMIT = RehearsalLimits().deadline + PLAN_LIMIT
"""The same with a rehearsal, which ends by itself before: then the plan is published, and says so."""

SILENCE_LIMIT = timedelta(seconds=30)
"""Without a heartbeat the worker is dead, and another takes it up."""

MOST_IN_MAKING = 20
"""Plans in the making that a list has."""

RETRIES = RetryPolicy(maximum_interval=timedelta(seconds=15))


async def start_plan(temporal: Temporal, asked: PlanRequest, *, is_rehearsed: bool = False) -> ActivityProgress:
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
            search_attributes=TypedSearchAttributes(
                [SearchAttributePair(CLUSTER, asked.cluster), SearchAttributePair(MIGRATION_KIND, asked.kind)]
            ),
            summary=f"POST /plans: {asked.kind} of {asked.cluster}",
        )
        return await progress_of(await handle.describe(), queue)


@dataclass(frozen=True)
class PlanInMaking:
    """A plan that is being made, or waits for that."""

    id: str
    cluster: str
    kind: str
    is_rehearsed: bool
    standing: ActivityProgress


async def plans_in_making(temporal: Temporal, cluster: str | None) -> list[PlanInMaking]:
    """Newest first. Raises as `start_plan` does. Temporal lists one within about a second."""
    query = f"ActivityType IN ('{ActivityName.MAKE_PLAN}', '{ActivityName.REHEARSE_PLAN}') AND ExecutionStatus = 'Running'"
    query += f" AND {CLUSTER.name} = '{cluster}'" if cluster is not None else ""
    async with temporal.answering() as client:
        listed = [found async for found in client.list_activities(query, limit=MOST_IN_MAKING)]
    standings = await asyncio.gather(*(find_progress(temporal, found.activity_id) for found in listed))
    found = [
        PlanInMaking(
            id=seen.activity_id.removeprefix(_activity_id("")),
            cluster=seen.typed_search_attributes.get(CLUSTER) or "",
            kind=seen.typed_search_attributes.get(MIGRATION_KIND) or "",
            is_rehearsed=seen.activity_type == ActivityName.REHEARSE_PLAN,
            standing=standing,
        )
        for seen, standing in zip(listed, standings, strict=True)
        if standing is not None and standing.state is StandingState.RUNNING
    ]
    return sorted(found, key=lambda one: one.standing.started_at, reverse=True)


async def find_plan(temporal: Temporal, plan_id: str) -> ActivityProgress | None:
    """Where a plan stands that is not published; `None` where Temporal knows of none. Raises as above."""
    return await find_progress(temporal, _activity_id(plan_id))


def ensure_startable(plan: Plan, cluster: ClusterRecord, now: datetime, plan_life: timedelta) -> None:
    """Raises a `Problem` where the ledger alone rules a start out. Whether the cluster has moved on since is asked by the
    migration's first look, which takes longer than a caller waits."""
    if plan.is_blocked:
        raise _refused(ProblemKind.PLAN_BLOCKED, plan, blockers_in(plan.findings, plan.policy), plan.unknown)
    expected = of_specification(plan.spec_revision)
    outdated = moved_since(expected, of_specification(cluster.revision)) or too_old(plan, now, plan_life)
    if outdated:
        raise _refused(ProblemKind.PLAN_OUTDATED, plan, outdated)


DETAILS = {
    ProblemKind.PLAN_BLOCKED: "Nothing was started. Fix what is named in findings and unknown, then make a new plan.",
    ProblemKind.PLAN_OUTDATED: "Nothing was started. The findings show what has changed. Make a new plan, and start with that.",
}


def _refused(kind: ProblemKind, plan: Plan, found: tuple[Finding, ...], unknown: tuple[str, ...] = ()) -> Problem:
    findings = [finding.model_dump(mode="json") for finding in found]
    return Problem(kind, DETAILS[kind], findings=findings, unknown=list(unknown), links={"plan": plan_url(plan.id)})


def _activity_id(plan_id: str) -> str:
    return f"plan/{plan_id}"
