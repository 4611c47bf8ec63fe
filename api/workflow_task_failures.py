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

from api.observing import unforeseen
from api.temporal import Temporal, TemporalRefused, TemporalUnavailable
from api.wrong_workers import OF_ITS_FILES, UNDECODED, replaced, wrong_worker_behind

LAST_EVENTS = 10
"""Of a run's history, in which the failure of a workflow task is looked for: after a failed one nothing is written but what
comes from outside."""

UNTIL_WRITTEN_SECONDS = (0.0, 0.3, 1.0)
"""An order is refused for the failure of its task a moment before that stands in the history (seen on a busy machine)."""

TASK_FAILED: Final = "workflow_task_failed_event_attributes"

WHERE = "the worker's log has the cause"

BY_HAND = "an activity was completed by {}, and not by the worker that was at it: what was given for it cannot be read"
BY_HAND_FIX = (
    "Somebody has completed it by hand (`temporal activity complete`, or Temporal's UI). Take that back: `temporal workflow "
    "reset --workflow-id '{}' --type LastWorkflowTask --reason \"completed by hand\"`. The activity is then asked again, and "
    "looks first how far it had come."
)

TWO_RELEASES = "what {} gave for an activity cannot be read by {}, who leads the run: they run code of two releases"
TWO_RELEASES_FIX = (
    "What was given stands in the run's history, and only who can read it goes on: mostly an upgrade that has not restarted "
    "keeperless-workflows. Compare the versions of both programs, and start all of Keeperless' programs of the newer one. "
    "Nothing is lost; it goes on by itself."
)

OTHER_CODE = "its worker runs another release's code than what began this run, and cannot continue it"
TAKE_OVER = (
    'terminate the run, and take over: POST /migrations with "hold": true finds out where the cluster is, and can be resumed '
    "or led back."
)
OTHER_CODE_FIX = f"Start keeperless-workflows of the release that began this run, and stop the other one. Or {TAKE_OVER}"

MACHINES = "workflow machines"
"""What Temporal's core says where a history's events do not come in the order of the commands; a reset of the run ends in the
same."""
OUT_OF_STEP = "its history is not what the code of its worker gives, in that order"
OUT_OF_STEP_FIX = (
    "Do not reset it: that ends in the same. Start keeperless-workflows of the newest release, which may read it, and stop "
    f"the other one. Or {TAKE_OVER}"
)

DEADLOCK = "_DeadlockError"
"""Of `temporalio`, where a workflow's code does not give way within two seconds."""
STARVED = "its worker had no processor for it within two seconds, or stood still meanwhile ([TMPRL1101])"
STARVED_FIX = (
    "Look who takes the processors of the machine of keeperless-workflows (`top`, CPUQuota= of its unit, the limit of its "
    "container), and whether it swaps; give it more, or start it on another machine. It is tried again by itself."
)

SEARCH_ATTRIBUTES_FIX = (
    "Somebody has removed a search attribute from Temporal's namespace. Create what is named there again: `temporal operator "
    "search-attribute create --name NAME --type Keyword`, for Cluster, MigrationKind, Phase, MigrationId and Waiting. It goes "
    "on by itself."
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
