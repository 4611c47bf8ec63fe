"""Hold, resume and reject that came with Temporal's own UI or CLI: they are written down, and count as the settings say."""

import asyncio
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError

from domain.contracts import HoldMessage
from domain.errors import Permanent
from domain.zk_to_kraft.phases import Phase

BY_HAND = HoldMessage(by="zoe", reason="by hand")


async def is_shown(world: Any, detail: str) -> bool:
    waiting = (await world.progress()).waiting
    return waiting is not None and waiting.detail == detail


@pytest.mark.parametrize("are_signals_trusted", [True, False])
async def test_a_hold_by_hand_counts_always_and_is_in_the_ledger(small: Any, are_signals_trusted: bool) -> None:
    await small.lead_to(Phase.DUAL_WRITE)
    pause = small.drivers.of[1].pause("start")
    await small.begin(are_signals_trusted=are_signals_trusted)
    await pause.is_reached.wait()
    assert await small.say("hold", BY_HAND) == "held"
    (command,) = await small.book.commands(small.migration_id)
    assert (command.kind, command.by, command.via, command.refused_because) == ("hold", "zoe", "temporal-signal", None)
    small.drivers.of[1].release("start")
    progress = await small.until_waiting("held")
    assert progress.waiting.detail == "held by zoe: by hand"
    assert [e.data["node"] for e in await small.events("step-done")] == ["broker-1"]


async def test_a_step_that_waits_for_a_worker_sees_a_hold_by_hand(small: Any) -> None:
    """The workflow has told a step to begin, and no worker has taken it yet: it asks the ledger right before the effect."""
    await small.lead_to(Phase.DUAL_WRITE)
    await small.begin()
    pause = small.ledger.pause("commands")
    await pause.is_reached.wait()
    before = small.cluster.restarts
    assert await small.say("hold", BY_HAND) == "held"
    small.ledger.release("commands")
    assert "held" in (await small.until_told("step-blocked")).data["why"]
    await small.until_waiting("held")
    assert small.cluster.restarts == before


async def test_a_resume_by_hand_lifts_a_hold_of_the_api_where_signals_are_trusted(small: Any) -> None:
    await small.lead_to(Phase.DUAL_WRITE)
    pause = small.kafka.pause("view")
    await small.begin(are_signals_trusted=True)
    await pause.is_reached.wait()
    await small.hold()
    small.kafka.release("view")
    await small.until_waiting("held")
    assert await small.say("resume", BY_HAND) == "resumed"
    await small.approve_gate()
    assert await small.result() == "succeeded"
    assert not await small.events("step-blocked"), "the newest order in the ledger is the resume"


async def test_a_resume_by_hand_is_told_and_ignored_where_signals_are_not(small: Any) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin(is_held=True)
    await small.until_waiting("held")
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await small.say("resume", BY_HAND)
    assert "signal_approvals is off: resume through the API" in str(refused.value.cause)
    told = await small.until_told("signal-ignored")
    assert (told.data["order"], told.data["by"]) == ("resume", "zoe")
    assert (await small.progress()).state == "held"
    assert not await small.events("resumed")
    await small.resume()
    await small.approve_gate()
    assert await small.result() == "succeeded"


async def test_a_hold_that_comes_while_a_resume_is_written_down_stands(small: Any) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin(are_signals_trusted=True, is_held=True)
    await small.until_waiting("held")
    pause = small.ledger.pause("add_command")
    resumed = asyncio.create_task(small.say("resume", BY_HAND))
    await pause.is_reached.wait()
    await small.say("resume", HoldMessage(by="olga", command_id="one"))
    await small.say("hold", HoldMessage(by="olga", reason="no", command_id="two"))
    small.ledger.release("add_command")
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await resumed
    assert "held again meanwhile: held by olga: no" in str(refused.value.cause)
    await small.until(lambda: is_shown(small, "held by olga: no"))
    assert len(await small.events("resumed")) == 1


async def test_orders_by_hand_are_written_down_in_the_order_in_which_they_came(small: Any) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin(are_signals_trusted=True)
    await small.until_gate()
    pause = small.ledger.pause("add_command")
    held = asyncio.create_task(small.say("hold", BY_HAND))
    await pause.is_reached.wait()
    resumed = asyncio.create_task(small.say("resume", BY_HAND))
    await small.until(lambda: small.has_updates(2))
    small.ledger.release("add_command")
    assert (await held, await resumed) == ("held", "resumed")
    assert [command.kind for command in await small.book.commands(small.migration_id)] == ["hold", "resume"]
    await small.approve_gate()
    assert await small.result() == "succeeded"


async def test_a_rejection_by_hand_counts_and_is_in_the_ledger(small: Any, make_approval: Any) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin()
    gate = await small.until_gate()
    assert await small.say("reject", make_approval(gate.evidence_hash)) == "rejected"
    await small.until_waiting("held")
    (command,) = await small.book.commands(small.migration_id)
    assert (command.kind, command.gate, command.evidence_hash) == ("reject", "finalize", gate.evidence_hash)


async def test_a_hold_that_cannot_be_written_down_holds_all_the_same(small: Any) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    small.ledger.faults["add_command"] = Permanent("the schema is older than this program")
    assert await small.say("hold", BY_HAND) == "held"
    await small.until_waiting("held")
    told = await small.until_told("not-written-down")
    assert "older than this program" in told.data["why"]
