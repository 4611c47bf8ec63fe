"""Where an activity stands that a person asked for and that nobody waits for.

What became of one that published nothing, Temporal knows, as long as it keeps what is over.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from temporalio.client import ActivityExecutionDescription, ActivityExecutionStatus, PendingActivityState
from temporalio.exceptions import ApplicationError, TimeoutType
from temporalio.exceptions import TimeoutError as ActivityTimeout
from temporalio.service import RPCStatusCode

from api.running.observing import is_worded, unforeseen
from api.running.runs import CLUSTER
from api.running.temporal import Temporal, TemporalRefused
from domain.contracts import PROGRAM_OF, TaskQueue


class StandingState(StrEnum):
    """Where it stands."""

    RUNNING = "running"
    """It waits for the worker, or is being made, perhaps not for the first time: `detail` says."""
    FAILED = "failed"
    """Nothing was published, and nothing will be: `detail` says why."""
    ENDED = "ended"
    """It is published."""


@dataclass(frozen=True)
class ActivityProgress:
    """Where something is that was asked for and has published nothing yet. `is_over`: it says that it has published.
    `cluster`: of which cluster; empty where Temporal does not say."""

    state: StandingState
    detail: str
    started_at: datetime
    is_over: bool = False
    cluster: str = ""


async def find_progress(temporal: Temporal, activity_id: str) -> ActivityProgress | None:
    """Where it stands; `None` where Temporal knows of none. Raises `TemporalUnavailable` or `TemporalRefused`."""
    try:
        async with temporal.answering() as client:
            handle = client.get_activity_handle(activity_id)
            seen = await handle.describe(include_outcome=True, include_last_failure=True, include_heartbeat_details=True)
            cluster = seen.typed_search_attributes.get(CLUSTER) or ""
            return replace(await progress_of(seen, TaskQueue(seen.task_queue)), cluster=cluster)
    except TemporalRefused as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise


async def progress_of(seen: ActivityExecutionDescription, queue: TaskQueue) -> ActivityProgress:
    if seen.status is ActivityExecutionStatus.COMPLETED:
        return ActivityProgress(StandingState.FAILED, "It ended without a result.", seen.schedule_time, is_over=True)
    if seen.status in {ActivityExecutionStatus.RUNNING, ActivityExecutionStatus.PAUSED}:
        return ActivityProgress(StandingState.RUNNING, await _how_far(seen, queue), seen.schedule_time)
    if seen.status in {ActivityExecutionStatus.CANCELED, ActivityExecutionStatus.TERMINATED}:
        return ActivityProgress(StandingState.FAILED, "It was cancelled in Temporal.", seen.schedule_time)
    return ActivityProgress(StandingState.FAILED, _reason_of(await seen.outcome_failure(), queue), seen.schedule_time)


async def _how_far(seen: ActivityExecutionDescription, queue: TaskQueue) -> str:
    if seen.attempt > 1:
        return f"Attempt {seen.attempt}. The one before: {_reason_of(await seen.last_failure(), queue)}"
    if seen.run_state is PendingActivityState.SCHEDULED:
        return f"It waits for a worker on the task queue `{queue}`."
    told = await seen.heartbeat_details()
    return f"A worker makes it{_as_told(told[0]) if told else ''}."


def _as_told(told: object) -> str:
    """How far it is, from the worker's last heartbeat (`activities.check_heartbeat`); empty while it has told nothing of it."""
    if not isinstance(told, dict) or not {"look", "stage", "done", "total"} <= told.keys():
        return ""
    look = f" look {told['look']}," if told["look"] else ""
    parts = f", {told['done']} of {told['total']}" if told["total"] != 1 else ""
    since = str(told.get("since", ""))[11:19]
    return f":{look} {told['stage']}{parts}{f', since {since} UTC' if since else ''}"


def _reason_of(failure: BaseException | None, queue: TaskQueue) -> str:
    """In our own words, or in the worker's where it worded them for people: nobody else's text is passed on."""
    if isinstance(failure, ActivityTimeout):
        is_untaken = failure.type is TimeoutType.SCHEDULE_TO_START
        return _nobody_took_it(queue) if is_untaken else "Its worker stopped reporting, or took too long."
    if is_worded(failure):
        return failure.message
    kind = failure.type if isinstance(failure, ApplicationError) else None
    return f"It failed {unforeseen(kind)}: the log of {PROGRAM_OF[queue]} has the cause."


def _nobody_took_it(queue: TaskQueue) -> str:
    return f"No worker took it from the task queue `{queue}`. Start {PROGRAM_OF[queue]}, and ask again."
