"""What Temporal says of a migration's run: whether it runs, whether somebody leads it, and which of its tasks wait, fail, or
were paused by somebody.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.deployment.v1 import WorkerDeploymentVersion
from temporalio.api.enums.v1 import (
    EventType,
    PendingWorkflowTaskState,
    TaskQueueType,
)
from temporalio.api.taskqueue.v1 import TaskQueue as TaskQueueName
from temporalio.api.workflow.v1 import PendingWorkflowTaskInfo
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeWorkflowExecutionResponse,
    GetWorkflowExecutionHistoryReverseRequest,
)
from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCStatusCode

from api.diagnosis.pending_activities import UNPAUSE, said_by, task_of
from api.diagnosis.pollers import unserved
from api.diagnosis.workflow_task_failures import why_failed
from api.running.runs import described, run_of
from api.running.temporal import Temporal, TemporalRefused, TemporalUnavailable
from domain.contracts import TaskQueue
from domain.diagnosis import pending_tasks
from domain.diagnosis.pending_tasks import PendingTask
from domain.records import MigrationRecord

QUESTION_LIMIT = timedelta(seconds=6)
"""For a worker to answer for a run. It may have to read the run's history first."""

WORKFLOW = "the migration's workflow"

UNLIMIT = (
    "If it was not intended, remove it: `temporal task-queue config set --task-queue {} --task-queue-type activity "
    "--queue-rps-limit default`. The migration then continues by itself."
)

UNPIN = (
    "Remove it: `temporal workflow update-options --workflow-id '{}' --versioning-override-behavior unspecified`. The "
    "migration then continues by itself. No worker is missing, and starting more does not help."
)

UNVERSION = (
    "Give the queue back to workers without a version: `temporal worker deployment set-current-version --deployment-name {} "
    "--unversioned` (and set-ramping-version --delete). Nothing else helps, and no log shows it. If that deployment has to "
    "stay, it must not poll task queue {}."
)

ENDED: dict[int, str] = {
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT: "it ran into a time limit that was set from outside",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED: "it was canceled from outside",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED: "it has ended by itself, and the ledger does not show it",
}


SUPERSEDED = b'"superseded"'
"""What a run gives that has lost its claim to the cluster, as JSON."""
BEATEN = (
    "it has ended by itself, because in the ledger another run holds the cluster: another migration of it was started, or "
    "the ledger was restored from a backup from before this one's start"
)


@dataclass(frozen=True)
class RunSeen:
    """What Temporal says of a migration's run. `is_running` is `None` where it does not answer. `unserved`: where it does not
    know the run, which queues nobody asks for tasks, and where: it may be another Temporal than the run's.

    `ended`: how it has ended, in Temporal's words, where it is there still. `is_led`: a worker answers for the run. One that
    waits has no task that would show that nobody leads it.
    """

    is_running: bool | None
    ended: str = ""
    is_led: bool = True
    tasks: tuple[PendingTask, ...] = ()
    unserved: str = ""


async def run_seen(temporal: Temporal, record: MigrationRecord) -> RunSeen:
    """Temporal's silence is told by the look already."""
    try:
        async with temporal.answering() as client:
            description = await described(client, record.workflow_id)
            tasks = [await _withheld(client, task) async for task in _tasks(client, description)]
    except TemporalRefused as error:
        return await _unknown(temporal) if error.status is RPCStatusCode.NOT_FOUND else RunSeen(is_running=None)
    except TemporalUnavailable:
        return RunSeen(is_running=None)
    run = run_of(description)
    if run.migration_id != record.id:
        return RunSeen(is_running=False)
    if not run.is_running:
        return RunSeen(is_running=False, ended=await _how_ended(temporal, description.workflow_execution_info.execution))
    if any(task.queue == TaskQueue.MIGRATIONS and (task.paused or task.error) for task in tasks):
        return RunSeen(is_running=True, tasks=tuple(tasks))
    unasked = await _unasked(temporal, record)
    if unasked is not None and unasked.paused:
        tasks = [unasked, *(task for task in tasks if task.queue != TaskQueue.MIGRATIONS)]
        return RunSeen(is_running=True, tasks=tuple(tasks))
    return RunSeen(is_running=True, is_led=unasked is None, tasks=tuple(tasks))


async def in_work(temporal: Temporal, records: Sequence[MigrationRecord], queue: TaskQueue) -> list[tuple[str, PendingTask]]:
    """What workers of a queue have in work of these migrations' runs, each with its cluster. Nothing where Temporal does not
    say.
    """
    with suppress(TemporalRefused, TemporalUnavailable):
        async with temporal.answering() as client:
            asked = (described(client, record.workflow_id) for record in records)
            runs = await asyncio.gather(*asked, return_exceptions=True)
        found = [
            (record.cluster, task_of(activity, record.workflow_id))
            for record, run in zip(records, runs, strict=True)
            if not isinstance(run, BaseException)
            for activity in run.pending_activities
        ]
        return [(cluster, task) for cluster, task in found if task.queue == queue and task.worker]
    return []


async def tasks_of(temporal: Temporal, record: MigrationRecord, limit: timedelta) -> list[PendingTask]:
    """Those of its run that nobody has paused, as Temporal tells them. Raises `TemporalUnavailable`, `TemporalRefused`."""
    async with temporal.answering(limit) as client:
        description = await described(client, record.workflow_id)
    if run_of(description).migration_id != record.id or description.workflow_extended_info.HasField("pause_info"):
        return []
    tasks = [task_of(activity, record.workflow_id) for activity in description.pending_activities]
    if description.HasField("pending_workflow_task"):
        again = ("", "") if description.pending_workflow_task.attempt > 1 else None
        tasks.append(_workflow_task(description.pending_workflow_task, again))
    return [task for task in tasks if not task.paused]


async def _how_ended(temporal: Temporal, execution: WorkflowExecution) -> str:
    """By whom and why, where somebody has terminated it, as the server itself does with what it cannot go on with."""
    asked = GetWorkflowExecutionHistoryReverseRequest(execution=execution, maximum_page_size=1)
    with suppress(TemporalRefused, TemporalUnavailable):
        async with temporal.answering() as client:
            asked.namespace = client.namespace
            events = (await client.workflow_service.get_workflow_execution_history_reverse(asked)).history.events
        for event in events:
            if event.HasField("workflow_execution_terminated_event_attributes"):
                found = event.workflow_execution_terminated_event_attributes
                return f"terminated {said_by(found.identity, found.reason)}"
            if event.HasField("workflow_execution_failed_event_attributes"):
                failure = event.workflow_execution_failed_event_attributes.failure
                return f"it failed: {failure.message}" if failure.HasField("server_failure_info") else "it failed"
            result = event.workflow_execution_completed_event_attributes.result.payloads
            return BEATEN if result and result[0].data == SUPERSEDED else ENDED.get(event.event_type, "")
    return ""


async def _unasked(temporal: Temporal, record: MigrationRecord) -> PendingTask | None:
    """A question that nobody takes, with what keeps it from our workers; `None` where the run answers it, whatever it says."""
    question = PendingTask(what=WORKFLOW, queue=TaskQueue.MIGRATIONS, begun_at=datetime.now(UTC), due_at=record.created_at)
    try:
        async with temporal.answering(QUESTION_LIMIT) as client:
            await client.get_workflow_handle(record.workflow_id).query("status")
    except WorkflowQueryFailedError:
        return None
    except (TemporalRefused, TemporalUnavailable):
        with suppress(TemporalRefused, TemporalUnavailable):
            async with temporal.answering() as client:
                return await _withheld(client, question)
        return question
    return None


async def _unknown(temporal: Temporal) -> RunSeen:
    """Of a run that it does not know. Without its namespace, what was asked for was not even looked for."""
    try:
        await temporal.ping()
        return RunSeen(is_running=False, unserved=await unserved(temporal))
    except (TemporalRefused, TemporalUnavailable):
        return RunSeen(is_running=None)


async def _tasks(client: Client, description: DescribeWorkflowExecutionResponse) -> AsyncIterator[PendingTask]:
    execution = description.workflow_execution_info.execution
    pinned = description.workflow_execution_info.versioning_info.versioning_override.pinned.version
    if pinned.deployment_name:
        yield _pinned(description, pinned)
    if description.workflow_extended_info.HasField("pause_info"):
        pause = description.workflow_extended_info.pause_info
        yield PendingTask(
            what=WORKFLOW,
            queue=TaskQueue.MIGRATIONS,
            begun_at=pause.paused_time.ToDatetime(UTC),
            due_at=pause.paused_time.ToDatetime(UTC),
            paused=said_by(pause.identity, pause.reason),
            fix=UNPAUSE.format(f"workflow unpause --workflow-id '{execution.workflow_id}'"),
        )
    elif not pinned.deployment_name and description.HasField("pending_workflow_task"):
        task = description.pending_workflow_task
        failure = await why_failed(client, execution) if task.attempt > 1 else None
        yield _workflow_task(task, failure)
    for activity in description.pending_activities:
        yield task_of(activity, execution.workflow_id)


def _pinned(description: DescribeWorkflowExecutionResponse, to: WorkerDeploymentVersion) -> PendingTask:
    """Of a run that is given to workers of one version only, which ours are none of; since when, nothing tells."""
    is_waiting, waiting = description.HasField("pending_workflow_task"), description.pending_workflow_task
    since = waiting.original_scheduled_time.ToDatetime(UTC) if is_waiting else datetime.now(UTC)
    where = f"its run is pinned to version {to.build_id} of the Worker Deployment {to.deployment_name}"
    return PendingTask(
        what=WORKFLOW,
        queue=TaskQueue.MIGRATIONS,
        begun_at=since,
        due_at=since,
        paused=f"from outside: {where} (a versioning override), and Keeperless' workers have no version",
        fix=UNPIN.format(description.workflow_execution_info.execution.workflow_id),
    )


async def _withheld(client: Client, task: PendingTask) -> PendingTask:
    """Of a task that nobody takes, whether its queue keeps it from our workers (since Temporal 1.28): somebody has limited how
    many it gives away, or has given it to a version of a Worker Deployment, which ours have none of.
    """
    is_waiting = task.taken_at is None and datetime.now(UTC) - task.due_at > pending_tasks.UNTAKEN
    if not is_waiting or task.paused:
        return task
    kind = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW if task.what == WORKFLOW else TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
    asked = DescribeTaskQueueRequest(
        namespace=client.namespace, task_queue=TaskQueueName(name=task.queue), task_queue_type=kind, report_config=True
    )
    queue = await client.workflow_service.describe_task_queue(asked)
    versioning = queue.versioning_info
    is_ramped = versioning.ramping_version_percentage >= 100  # else ours get the rest
    versions = (versioning.current_deployment_version, *([versioning.ramping_deployment_version] if is_ramped else []))
    given = next((version for version in versions if version.deployment_name), None)
    if given is not None:
        name = given.deployment_name
        to = f"from outside: task queue {task.queue} is assigned to version {given.build_id} of the Worker Deployment {name}"
        return replace(task, paused=f"{to}, and Keeperless' workers have no version", fix=UNVERSION.format(name, task.queue))
    found = queue.config.queue_rate_limit
    if not found.HasField("rate_limit"):
        return task
    limit = f"by a limit of {found.rate_limit.requests_per_second:g} tasks a second on task queue {task.queue}"
    by = said_by(found.metadata.update_identity, found.metadata.reason)
    return replace(task, paused=f"{limit}, set {by}", fix=UNLIMIT.format(task.queue))


def _workflow_task(task: PendingWorkflowTaskInfo, failure: tuple[str, str] | None) -> PendingTask:
    is_taken = task.state == PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_STARTED
    error, fix = failure if failure is not None else ("", "")
    due = task.scheduled_time if failure is not None else task.original_scheduled_time
    return PendingTask(
        what=WORKFLOW,
        queue=TaskQueue.MIGRATIONS,
        begun_at=task.original_scheduled_time.ToDatetime(UTC),
        due_at=due.ToDatetime(UTC),
        taken_at=task.started_time.ToDatetime(UTC) if is_taken else None,
        attempt=task.attempt,
        error=error,
        fix=fix,
    )
