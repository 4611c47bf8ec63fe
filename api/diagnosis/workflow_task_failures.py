"""What the workflow task of a run failed at, by the newest of its history."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Final

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent, WorkflowTaskFailedEventAttributes
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client

from api.diagnosis.wrong_workers import OF_ITS_FILES, UNDECODED, replaced, wrong_worker_behind
from api.running.observing import unforeseen
from api.running.temporal import Temporal, TemporalRefused, TemporalUnavailable

LAST_EVENTS = 10
"""Of a run's history, in which the failure of a workflow task is looked for: after a failed one nothing is written but what
comes from outside."""

UNTIL_WRITTEN_SECONDS = (0.0, 0.3, 1.0)
"""An order is refused for the failure of its task a moment before that stands in the history (seen on a busy machine)."""

TASK_FAILED: Final = "workflow_task_failed_event_attributes"

WHERE = "the worker's log has the cause"

BY_HAND = "an activity was completed by {}, and not by the worker that ran it: its result cannot be read"
BY_HAND_FIX = (
    "It was completed by hand (`temporal activity complete`, or the Temporal UI). Undo that: `temporal workflow reset "
    "--workflow-id '{}' --type LastWorkflowTask --reason \"completed by hand\"`. The activity then runs again, and first "
    "checks how far it had come."
)

TWO_RELEASES = "the result of an activity that ran on {} cannot be read by {}, which runs the workflow: they run two releases"
TWO_RELEASES_FIX = (
    "Compare the versions of both programs, and start all programs of Keeperless at the newer one. The result is in the "
    "run's history, and only code that can read it can continue. The usual cause is an upgrade that did not restart "
    "keeperless-workflows. Nothing is lost; the migration continues by itself."
)

OTHER_CODE = "its worker runs another release than the one that began this run, and cannot continue it"
TAKE_OVER = (
    'terminate the run, and take over: POST /migrations with "hold": true finds out where the cluster is, and can be '
    "resumed or rolled back."
)
OTHER_CODE_FIX = f"Start keeperless-workflows of the release that began this run, and stop the other one. Or {TAKE_OVER}"

MACHINES = "workflow machines"
"""What Temporal's core says where a history's events do not come in the order of the commands; a reset of the run ends in the
same."""
OUT_OF_STEP = "its history is not what its worker's code produces"
OUT_OF_STEP_FIX = (
    "Do not reset it: that ends in the same error. Start keeperless-workflows of the newest release, which may read it, and "
    f"stop the other one. Or {TAKE_OVER}"
)

DEADLOCK = "_DeadlockError"
"""Of `temporalio`, where a workflow's code does not give way within two seconds."""
STARVED = "its worker had no CPU for it within two seconds, or was stopped meanwhile ([TMPRL1101])"
STARVED_FIX = (
    "Find what uses the CPU on the machine of keeperless-workflows (`top`, CPUQuota= of its unit, the limit of its "
    "container), and check whether it swaps. Give it more, or start it on another machine. The task is retried by itself."
)

SEARCH_ATTRIBUTES_FIX = (
    "A search attribute was removed from Temporal's namespace. Create the one that is named again: `temporal operator "
    "search-attribute create --name NAME --type Keyword`, for Cluster, MigrationKind, Phase, MigrationId and Waiting. The "
    "migration then continues by itself."
)


async def why_failed(client: Client, execution: WorkflowExecution) -> tuple[str, str] | None:
    """What ends the workflow's task since one was last done, and its fix: the server's own word where there is one, for what a
    worker stumbles over later may follow from that. Of later attempts at a task the history tells nothing.
    """
    events = await _newest(client, execution)
    since = list(takewhile(lambda event: not event.HasField("workflow_task_completed_event_attributes"), events))
    failed = _failed(since)
    told = next((one for one in failed if one.failure.HasField("server_failure_info")), next(iter(failed), None))
    if told is not None and told.failure.message == UNDECODED and (by := _completed_by_hand(since)):
        return BY_HAND.format(by), BY_HAND_FIX.format(execution.workflow_id)
    if told is not None and told.failure.message == UNDECODED and (giver := next(iter(_givers(since)), "")):
        return TWO_RELEASES.format(giver, told.identity), TWO_RELEASES_FIX
    return words_of(told) if told is not None else None


async def last_task_failure(temporal: Temporal, workflow_id: str) -> str:
    """What a workflow task failed at last, also where others have gone well since; empty where nothing tells."""
    execution = WorkflowExecution(workflow_id=workflow_id)
    with suppress(TemporalRefused, TemporalUnavailable):
        for pause in UNTIL_WRITTEN_SECONDS:
            await asyncio.sleep(pause)
            async with temporal.answering() as client:
                failed = _failed(await _newest(client, execution))
            if failed:
                return words_of(failed[0])[0]
    return ""


async def _newest(client: Client, execution: WorkflowExecution) -> Sequence[HistoryEvent]:
    asked = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace, execution=execution, maximum_page_size=LAST_EVENTS
    )
    return (await client.workflow_service.get_workflow_execution_history_reverse(asked)).history.events


def _failed(events: Sequence[HistoryEvent]) -> list[WorkflowTaskFailedEventAttributes]:
    return [event.workflow_task_failed_event_attributes for event in events if event.HasField(TASK_FAILED)]


def _completed_by_hand(events: Sequence[HistoryEvent]) -> str:
    """Who has given an activity's result besides the worker that was at it; empty where nobody has."""
    at_it = {e.activity_task_started_event_attributes.identity for e in events}
    return next((by for by in _givers(events) if by not in at_it), "")


def _givers(events: Sequence[HistoryEvent]) -> list[str]:
    """Of activities' results."""
    given = (event.activity_task_completed_event_attributes.identity for event in events)
    return [by for by in given if by]


def words_of(failed: WorkflowTaskFailedEventAttributes) -> tuple[str, str]:
    """The error and its fix, of what lies in a worker with its name. What the server itself says tells no value of ours."""
    kind = failed.failure.application_failure_info.type
    stray = wrong_worker_behind(failed.failure.message) if failed.failure.message != UNDECODED else None
    if stray is not None:
        return f"{stray.what} (it is {failed.identity})", stray.fix
    if kind in OF_ITS_FILES:
        stray = replaced(kind, "keeperless-workflows")
        return f"{stray.what} (it is {failed.identity})", stray.fix
    if failed.cause == WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR:
        return OTHER_CODE, OTHER_CODE_FIX
    if failed.cause == WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES:
        return failed.failure.message, SEARCH_ATTRIBUTES_FIX
    if MACHINES in failed.failure.message:
        return OUT_OF_STEP, OUT_OF_STEP_FIX
    if kind == DEADLOCK:
        return STARVED, STARVED_FIX
    return (failed.failure.message if failed.failure.HasField("server_failure_info") else f"{unforeseen(kind)}: {WHERE}"), ""
