"""One look at a cluster, by a worker: a standalone activity, so that Temporal's list of workflows stays readable.

Who asks while a look is under way gets the same one.
"""

from datetime import timedelta

from temporalio.client import ActivityFailureError
from temporalio.common import ActivityIDConflictPolicy, RetryPolicy
from temporalio.exceptions import ApplicationError
from temporalio.exceptions import TimeoutError as ActivityTimeout

from api.temporal import Temporal
from domain.contracts import ActivityName, ClusterSight, ObserveRequest, TaskQueue
from domain.errors import KeeperlessError, Permanent, Transient

WORKER_LIMIT = timedelta(seconds=10)
"""Until a worker takes the task."""

LOOK_LIMIT = timedelta(seconds=30)
"""For the look itself. Every part of it has a shorter limit of its own, and is unknown after that."""


class NoWorker(Transient):
    """No activity worker took the task in time, or the one that did is gone."""

    def __init__(self) -> None:
        super().__init__("No activity worker answered on the task queue `watch`. Start keeperless-activities, and ask again.")


class ObservationFailed(Permanent):
    """A worker looked, and failed as a whole. (What does not answer is no failure, but unknown.)"""


async def observe(temporal: Temporal, cluster: str) -> ClusterSight:
    """What is seen now. Raises `NoWorker`, `ObservationFailed`, `TemporalUnavailable` or `TemporalRefused`."""
    async with temporal.answering() as client:
        handle = await client.start_activity(
            ActivityName.OBSERVE.value,
            ObserveRequest(cluster=cluster),
            id=f"observe/{cluster}",
            id_conflict_policy=ActivityIDConflictPolicy.USE_EXISTING,
            task_queue=TaskQueue.WATCH,
            result_type=ClusterSight,
            schedule_to_start_timeout=WORKER_LIMIT,
            start_to_close_timeout=LOOK_LIMIT,
            retry_policy=RetryPolicy(maximum_attempts=1),
            summary=f"GET /clusters/{cluster}/observation",
        )
    try:
        async with temporal.answering(WORKER_LIMIT + LOOK_LIMIT):
            sight: ClusterSight = await handle.result()
            return sight
    except ActivityFailureError as error:
        raise _told(error.cause) from error


def _names_below(kind: type[Exception]) -> set[str]:
    """The names of an error's class and of all below it: what `activities.failures` gives as a failure's type."""
    return {kind.__name__}.union(*(_names_below(child) for child in kind.__subclasses__()))


def _told(cause: BaseException) -> NoWorker | ObservationFailed:
    if isinstance(cause, ActivityTimeout):
        return NoWorker()
    # Only our own errors are worded for people. Others are bugs, whose text may hold anything.
    if isinstance(cause, ApplicationError) and cause.type in _names_below(KeeperlessError):
        return ObservationFailed(cause.message)
    return ObservationFailed("The activity failed in a way that nobody foresaw: the activity worker's log has the cause.")
