"""The record of what a run tells, in the moment in which the run ends."""

import pytest
from temporalio import workflow
from temporalio.exceptions import ActivityError, CancelledError

from domain.contracts import CarriedState
from domain.records import EventDraft
from workflows.outbox import Outbox
from workflows.turns import Turn


async def test_a_record_that_ends_with_the_run_is_no_error_that_nobody_awaits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cancellation comes as an error of its activity."""

    async def at_once(_condition: object) -> None:
        return None

    async def record(_events: tuple[EventDraft, ...]) -> None:
        cancelled = ActivityError(
            "Activity cancelled",
            scheduled_event_id=7,
            started_event_id=8,
            identity="7@host",
            activity_type="record",
            activity_id="1",
            retry_state=None,
        )
        raise cancelled from CancelledError()

    monkeypatch.setattr(workflow, "wait_condition", at_once)
    outbox = Outbox("orders", "m1", CarriedState(generation=1), Turn())
    outbox.send_soon()
    await outbox.deliver(record)
    assert not outbox.is_told, "what it was at is handed on to the next run, or sent again"
