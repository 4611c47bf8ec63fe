"""Somebody resets the run, in Temporal's web UI or by its command line: what is done again is a step of its own."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest

from domain.records import Event
from domain.zk_to_kraft.phases import Phase


async def reset(small: Any) -> None:
    """To before the first step of the run that goes on now."""
    run = (await small.handle.describe()).run_id
    history = await small.client.get_workflow_handle(small.handle.id, run_id=run).fetch_history()
    first = next(e.event_id for e in history.events if e.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED)
    await small.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=small.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=small.handle.id, run_id=run),
            reason="an operator's reset",
            workflow_task_finish_event_id=first,
            request_id=str(uuid4()),
        )
    )


async def compared(small: Any) -> list[Event]:
    return [e for e in await small.events("step-done") if e.data["action"] == "compare-metadata"]


async def test_a_comparison_that_is_made_again_after_a_reset_is_a_report_of_its_own(small: Any) -> None:
    """It was told with the number of the first one, and a report is published once: the old one would be its answer."""
    small.policy = small.policy.model_copy(update={"max_report_age": timedelta(seconds=5)})
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_waiting("approval")
    (first,) = await compared(small)
    await reset(small)

    async def is_made_again() -> bool:
        return len(await compared(small)) > 1

    await small.until(is_made_again)
    again = (await compared(small))[1]
    assert again.data["step"] == first.data["step"], "the run counts anew"
    assert again.data["report"] != first.data["report"]
    assert await small.book.report(again.data["report"])
    await small.approve_gate()
    assert await small.result() == "succeeded"
