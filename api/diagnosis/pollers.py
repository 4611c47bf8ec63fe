"""Who takes tasks of a queue, as Temporal has heard last; and where that runs on this machine, what keeps it from its work."""

import asyncio
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue as TaskQueueName
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, PollActivityTaskQueueRequest
from temporalio.service import RPCError, RPCStatusCode

from api.running.temporal import SAID, Temporal, TemporalRefused, TemporalUnavailable
from domain.contracts import TaskQueue
from domain.diagnosis.machines.vital_signs import Sign

IDENTITY = re.compile(r"(\d+)@(.+)")
"""Of a worker, as `temporalio` makes it: its process and its host."""
NOBODYS = "keeperless-nobodys"
"""A task queue on which nothing is ever put: who asks there takes nothing from a worker."""
POLL = timedelta(seconds=1)
QUESTION = timedelta(seconds=65)
"""For how long a worker waits for an answer before it asks again, and is heard of."""
REFUSED = frozenset({RPCStatusCode.RESOURCE_EXHAUSTED, RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED})
"""Said before the question is looked at. Where it may be asked, Temporal finds that a second is too short to wait."""
MEND = (
    "Fix what Temporal reports: a limit of its dynamic configuration (frontend.namespaceCount for concurrent polls, "
    "frontend.namespaceRPS for calls), or a permission. Workers then continue by themselves."
)


@dataclass(frozen=True)
class Poller:
    """A worker that has asked for tasks."""

    identity: str
    heard_at: datetime

    def in_words(self, now: datetime) -> str:
        return f"Temporal last heard of {self.identity} there {self._ago(now)}"

    def in_brief(self, now: datetime) -> str:
        return f"{self.identity} (heard {self._ago(now)})"

    def _ago(self, now: datetime) -> str:
        return f"{max((now - self.heard_at).total_seconds(), 0):.0f} s ago"


async def pollers_of(temporal: Temporal, queue: TaskQueue) -> tuple[Poller, ...]:
    """Of the last five minutes, as long as Temporal remembers them; the one heard last at the end.

    Raises `TemporalUnavailable`, as where its service that gives tasks away does not answer, or `TemporalRefused`.
    """
    of_workflows = queue is TaskQueue.MIGRATIONS
    kind = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW if of_workflows else TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
    async with temporal.answering() as client:
        asked = DescribeTaskQueueRequest(namespace=client.namespace, task_queue=TaskQueueName(name=queue), task_queue_type=kind)
        told = (await client.workflow_service.describe_task_queue(asked)).pollers
    known = (Poller(one.identity, one.last_access_time.ToDatetime(UTC)) for one in told)
    return tuple(sorted(known, key=lambda one: one.heard_at))


LEADING = (TaskQueue.MIGRATIONS, TaskQueue.CLUSTER)
"""Without whose workers no migration gets on."""


async def unserved(temporal: Temporal) -> str:
    """Which of those queues nobody asks for tasks, and where, in words; empty where somebody asks of each. As `pollers_of`."""
    heard = await asyncio.gather(*(pollers_of(temporal, queue) for queue in LEADING))
    unasked = [queue.value for queue, pollers in zip(LEADING, heard, strict=True) if not pollers]
    where = f"in namespace {temporal.namespace} at {temporal.address}"
    return f"task queue {' and '.join(unasked)} {where}" if unasked else ""


def machines_of(pollers: Iterable[Poller]) -> dict[str, Poller]:
    """By the name of its machine who was heard last of each from which somebody asks now: a question lasts a minute."""
    known = sorted(pollers, key=lambda one: one.heard_at)
    asking = (one for one in known if known[-1].heard_at - one.heard_at < QUESTION)
    return {named[2]: one for one in asking if (named := IDENTITY.fullmatch(one.identity)) is not None}


async def refusal(temporal: Temporal) -> Sign | None:
    """What Temporal says to who asks for tasks, in case it refuses everybody: found by asking, for tasks that nobody gives."""
    asked = PollActivityTaskQueueRequest(task_queue=TaskQueueName(name=NOBODYS), identity="keeperless-api")
    with suppress(TemporalRefused, TemporalUnavailable):
        async with temporal.answering() as client:
            asked.namespace = client.namespace
            try:
                await client.workflow_service.poll_activity_task_queue(asked, retry=False, timeout=POLL)
            except RPCError as error:
                if error.status in REFUSED:
                    return Sign(f"Temporal refuses polls: {error.message[:SAID]}", MEND)
    return None
