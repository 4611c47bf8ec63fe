"""Temporal forgets: its database is restored from a backup, or the run is reset. A run that has forgotten what it did ends."""

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest

from domain.records import EventDraft
from domain.restored_history import KIND
from domain.zk_to_kraft.phases import Phase


async def reset(small: Any) -> None:
    """To before the first thing that the run that goes on now has done."""
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


async def is_told(small: Any) -> list[str]:
    return [e.data["why"] for e in await small.events(KIND)]


async def test_a_run_that_was_reset_ends_before_it_does_anything_again(small: Any) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    before = small.cluster.restarts
    await reset(small)
    (why,) = await small.until(lambda: is_told(small))
    assert "the run has forgotten what it did" in why
    assert "the newest waiting" in why
    assert await small.result() == "superseded"
    assert small.cluster.restarts == before


@pytest.mark.parametrize("is_later_run", [False, True])
async def test_a_run_of_a_restored_temporal_takes_no_step_and_opens_no_gate(small: Any, is_later_run: bool) -> None:
    """What it has forgotten is in the ledger: told by itself, or by a run that continued it as new. Here a way back."""
    await small.lead_to(Phase.SOAK)
    await small.begin()
    gate = await small.until_gate()
    run = str(uuid4()) if is_later_run else (await small.handle.describe()).run_id
    count = len(await small.events())
    forgotten = EventDraft(
        key=f"{run}:{count + 1}",
        kind="rollback-accepted",
        cluster=small.cluster.spec.name,
        migration_id=small.migration_id,
        at=datetime.now(UTC),
    )
    await small.book.record(small.migration_id, [forgotten], None)
    before = small.cluster.restarts
    await small.approve(gate.evidence_hash)
    assert await small.result() == "superseded"
    (why,) = await is_told(small)
    assert "the newest rollback-accepted" in why
    assert small.cluster.restarts == before


@pytest.mark.parametrize("kind", ["step-blocked", "step-started"])
async def test_a_step_that_a_restored_temporal_has_done_once_more_is_not_taken(small: Any, kind: str) -> None:
    """It was asked for before the backup, so that all that was forgotten is of later than its position."""
    await small.lead_to(Phase.DUAL_WRITE)
    small.drivers.of[1].pause("run")  # the trial of its java, before the look that allows the stop
    await small.begin()
    await small.until(lambda: small.events("step-started"))
    (begun,) = await small.events("step-started")
    run = (await small.handle.describe()).run_id
    forgotten = EventDraft(
        key=f"{run}:{len(await small.events()) + 1}",
        kind=kind,
        cluster=small.cluster.spec.name,
        migration_id=small.migration_id,
        at=datetime.now(UTC),
        data={**begun.data, "step": begun.data["step"] + (kind == "step-started")},
    )
    await small.book.record(small.migration_id, [forgotten], None)
    before = small.cluster.restarts
    small.drivers.of[1].release("run")
    assert await small.result() == "superseded"
    assert "is about to take step" in (await is_told(small))[0]
    assert small.cluster.restarts == before


async def test_what_is_said_while_a_step_is_in_work_was_not_forgotten(small: Any) -> None:
    """The ledger has it sooner than the step is done, which asks for its fence until then."""
    await small.lead_to(Phase.DUAL_WRITE)
    pause = small.drivers.of[1].pause("start")
    await small.begin()
    await pause.is_reached.wait()
    assert await small.hold() == "held"
    small.drivers.of[1].release("start")
    await small.until_waiting("held")
    assert [e.data["node"] for e in await small.events("step-done")] == ["broker-1"]
    assert not await is_told(small)


# ---- The ledger, restored from a backup of before the first irreversible write ----


@pytest.mark.parametrize("backup", ["UPDATE commands SET consumed_at = NULL, consumed_by = NULL", "DELETE FROM commands"])
async def test_a_ledger_of_before_an_approval_was_used_leaves_nothing_half_done(
    world: Any, tmp_path: Path, backup: str
) -> None:
    """One controller has lost its flag already. It gets it back, and the finalisation begins again: under the approval, if the
    backup has it, else under another one. Where the cluster says that it is final, it goes forward without any."""
    await world.lead_to(Phase.SOAK)
    await world.begin()
    controllers = world.cluster.controller_ids[1:]
    reached = [asyncio.ensure_future(world.drivers.of[one].pause("start").is_reached.wait()) for one in controllers]
    assert await world.approve_gate() == "approved"
    await asyncio.wait(reached, return_when=asyncio.FIRST_COMPLETED)
    with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as database:
        database.execute(f"{backup} WHERE kind = 'approve'")
    for one in controllers:
        world.drivers.of[one].release("start")
    back = await world.until_told("step-done", stage="migration", action="roll-node")
    assert back.data["node"].startswith("controller-")
    if backup.startswith("DELETE"):
        await world.until_told("gate-opened", count=2)
        assert await world.approve_gate() == "approved"
    assert await world.result() == "succeeded"
    for waiting in reached:
        waiting.cancel()
