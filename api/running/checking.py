"""A check that a person asks for: a standalone activity of the checks' worker, whose report the ledger gets.

Each call is a check of its own, with an id of its own, under which its report is published. Two at once do no harm: they look,
and the worker takes as many at a time as it can carry.
"""

from datetime import timedelta

from temporalio.common import RetryPolicy

from api.answers.links import check_url
from api.running.activity_progress import ActivityProgress, find_progress, progress_of
from api.running.temporal import Temporal
from domain.contracts import ActivityName, CheckOutcome, CheckRequest, TaskQueue

QUEUE_LIMIT = timedelta(minutes=10)
"""Until a worker takes the task: another check may have to end first."""

CHECK_LIMIT = timedelta(hours=2)
"""For all attempts together."""

SILENCE_LIMIT = timedelta(seconds=30)
"""Without a heartbeat the worker is dead, and another takes the check up."""

RETRIES = RetryPolicy(maximum_interval=timedelta(seconds=30))


async def start_check(temporal: Temporal, asked: CheckRequest) -> ActivityProgress:
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
        return await progress_of(await handle.describe(), TaskQueue.CHECKS)


async def find_check(temporal: Temporal, cluster: str, report_id: str) -> ActivityProgress | None:
    """Where a check stands; `None` where Temporal knows of none. Raises as above."""
    return await find_progress(temporal, _activity_id(cluster, report_id))


def _activity_id(cluster: str, report_id: str) -> str:
    return f"check/{cluster}/{report_id}"
