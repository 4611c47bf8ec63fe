"""Cancelling in Temporal: the node in hand is finished, and everybody is told."""

from typing import Any

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import CancelledError

from domain.errors import Unsafe
from domain.zk_to_kraft.phases import Phase


async def ensure_cancelled(world: Any) -> None:
    with pytest.raises(WorkflowFailureError) as ended:
        await world.result()
    assert isinstance(ended.value.cause, CancelledError)
    record = await world.record()
    assert record.progress.state == "cancelled"
    assert record.ended_at is not None
    assert len(await world.events("cancelled")) == 1


async def test_a_cancel_in_a_roll_finishes_the_node(small: Any) -> None:
    await small.lead_to(Phase.DUAL_WRITE)
    pause = small.drivers.of[1].pause("start")
    await small.begin()
    await pause.is_reached.wait()
    before = small.cluster.restarts
    await small.handle.cancel()
    await small.until(small.is_cancel_requested)
    small.drivers.of[1].release("start")
    await ensure_cancelled(small)
    assert small.cluster.restarts == before | {"broker-1": before["broker-1"] + 1}
    view = await small.cluster.view(small.cluster.record())
    assert view.broker_ids == (1, 2, 3)
    assert (view.under_replicated, view.offline) == ((), ())
    assert [e.data["node"] for e in await small.events("step-done")] == ["broker-1"]


async def test_a_cancel_in_a_roll_that_then_fails_is_a_cancel_all_the_same(small: Any) -> None:
    await small.lead_to(Phase.DUAL_WRITE)
    pause = small.drivers.of[1].pause("write_file")
    await small.begin()
    await pause.is_reached.wait()
    await small.handle.cancel()
    await small.until(small.is_cancel_requested)
    small.drivers.of[1].faults["write_file"] = Unsafe("the disk is read-only")
    small.drivers.of[1].release("write_file")
    await ensure_cancelled(small)


@pytest.mark.parametrize("moment", ["looking", "waiting", "held after an error"])
async def test_a_cancel_at_any_other_moment_is_told_too(small: Any, moment: str) -> None:
    await small.lead_to(Phase.SOAK)
    if moment == "looking":
        pause = small.kafka.pause("view")
        await small.begin()
        await pause.is_reached.wait()
    elif moment == "waiting":
        await small.begin()
        await small.until_gate()
    else:
        small.ledger.faults["cluster"] = Unsafe("somebody else is here")
        await small.begin()
        await small.until_waiting("held")
    await small.handle.cancel()
    await ensure_cancelled(small)
    if moment == "looking":
        small.kafka.release("view")


async def test_a_cancel_after_the_end_does_not_undo_it(small: Any, ledger_is_down: Exception) -> None:
    """The cluster is on KRaft, and the ledger cannot be told yet: the run waits for it, and is cancelled."""
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    small.checks.is_free.clear()
    await small.approve_gate()
    await small.until_told("step-started", action="compare-end")
    small.ledger.faults["record"] = ledger_is_down
    small.checks.is_free.set()
    await small.until(lambda: small.has_ended_inside("succeeded"))
    await small.handle.cancel()
    await small.until(small.is_cancel_requested)
    small.ledger.faults.clear()
    with pytest.raises(WorkflowFailureError):
        await small.result()
    assert (await small.progress()).state == "succeeded"
    assert not await small.events("cancelled")
