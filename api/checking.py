"""A check that a person asks for: a standalone activity of the checks' worker, whose report the ledger gets.

Each call is a check of its own, with an id of its own, under which its report is published. Two at once do no harm: they look,
and the worker takes as many at a time as it can carry. What became of one that published nothing, Temporal knows, as long as it
keeps what is over.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from temporalio.client import ActivityExecutionDescription, ActivityExecutionStatus, PendingActivityState
from temporalio.common import RetryPolicy
from temporalio.exceptions import TimeoutError as ActivityTimeout
from temporalio.exceptions import TimeoutType
from temporalio.service import RPCStatusCode

from api.links import check_url
from api.observing import is_worded
from api.temporal import Temporal, TemporalRefused
from domain.contracts import ActivityName, CheckOutcome, CheckRequest, TaskQueue

QUEUE_LIMIT = timedelta(minutes=10)
"""Until a worker takes the task: another check may have to end first."""

CHECK_LIMIT = timedelta(hours=2)
"""For all attempts together."""

SILENCE_LIMIT = timedelta(seconds=30)
"""Without a heartbeat the worker is dead, and another takes the check up."""

RETRIES = RetryPolicy(maximum_interval=timedelta(seconds=30))

NO_WORKER = "No worker took it from the task queue `checks`. Start keeperless-checks, and ask again."
UNFORESEEN = "It failed in a way that nobody foresaw: the log of keeperless-checks has the cause."


class CheckState(StrEnum):
    """Where a check stands."""

    RUNNING = "running"
    """It waits for the worker, or is being made, perhaps not for the first time: `detail` says."""
    FAILED = "failed"
    """There is no report, and there will be none: `detail` says why."""
    ENDED = "ended"
    """There is a report. Its verdict says what was found."""


@dataclass(frozen=True)
class Standing:
    """Where a check is that has published nothing yet. `is_over`: it says that it has published."""

    state: CheckState
    detail: str
    started_at: datetime
    is_over: bool = False


async def start_check(temporal: Temporal, asked: CheckRequest) -> Standing:
    """Start it; does not wait. Raises `TemporalUnavailable` or `TemporalRefused`."""
    async with temporal.answering() as client:
        handle = await client.start_activity(
            ActivityName.RUN_CHECK.value,
            asked,
            id=_activity_id(asked.cluster, asked.report_id),
            task_queue=TaskQueue.CHECKS,
            result_type=CheckOutcome,
            schedule_to_start_timeout=QUEUE_LIMIT,
            schedule_to_close_timeout=CHECK_LIMIT,
            heartbeat_timeout=SILENCE_LIMIT,
            retry_policy=RETRIES,
            summary=f"POST {check_url(asked.cluster, asked.report_id)}",
        )
        return await _standing_of(await handle.describe())


async def find_check(temporal: Temporal, cluster: str, report_id: str) -> Standing | None:
    """Where a check stands; `None` where Temporal knows of none. Raises as above."""
    try:
        async with temporal.answering() as client:
            handle = client.get_activity_handle(_activity_id(cluster, report_id))
            return await _standing_of(
                await handle.describe(include_outcome=True, include_last_failure=True, include_heartbeat_details=True)
            )
    except TemporalRefused as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise


def _activity_id(cluster: str, report_id: str) -> str:
    return f"check/{cluster}/{report_id}"


async def _standing_of(seen: ActivityExecutionDescription) -> Standing:
    if seen.status is ActivityExecutionStatus.COMPLETED:
        return Standing(CheckState.FAILED, "It ended without a report.", seen.schedule_time, is_over=True)
    if seen.status in {ActivityExecutionStatus.RUNNING, ActivityExecutionStatus.PAUSED}:
        return Standing(CheckState.RUNNING, await _progress_of(seen), seen.schedule_time)
    if seen.status in {ActivityExecutionStatus.CANCELED, ActivityExecutionStatus.TERMINATED}:
        return Standing(CheckState.FAILED, "Somebody cancelled it in Temporal.", seen.schedule_time)
    return Standing(CheckState.FAILED, _reason_of(await seen.outcome_failure()), seen.schedule_time)


async def _progress_of(seen: ActivityExecutionDescription) -> str:
    if seen.attempt > 1:
        return f"Attempt {seen.attempt}. The one before: {_reason_of(await seen.last_failure())}"
    if seen.run_state is PendingActivityState.SCHEDULED:
        return "It waits for a worker on the task queue `checks`."
    told = await seen.heartbeat_details()
    return f"A worker makes it{_as_told(told[0]) if told else ''}."


def _as_told(told: object) -> str:
    """How far it is, from the worker's last heartbeat (`activities.beating`); empty while it has told nothing of it."""
    if not isinstance(told, dict) or not {"look", "stage", "done", "total"} <= told.keys():
        return ""
    look = f" look {told['look']}," if told["look"] else ""
    return f":{look} {told['stage']}, {told['done']} of {told['total']}"


def _reason_of(failure: BaseException | None) -> str:
    """In our own words, or in the worker's where it worded them for people: nobody else's text is passed on."""
    if isinstance(failure, ActivityTimeout):
        is_untaken = failure.type is TimeoutType.SCHEDULE_TO_START
        return NO_WORKER if is_untaken else "Its worker fell silent, or took too long."
    return failure.message if is_worded(failure) else UNFORESEEN
