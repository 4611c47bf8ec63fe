"""An approval between its giving and its use: the ledger is the one arbiter, whatever comes at the same moment."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError

from domain.contracts import ApprovalMessage, HoldMessage
from domain.errors import Transient
from domain.records import Command, CommandKind
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.steps import GateName

MakeApproval = Callable[..., ApprovalMessage]
NOTHING_FINAL = {"controller-3001": 1}
"""Started once, when it was created: not restarted."""


@pytest.fixture
async def gated(small: Any) -> Any:
    """A world whose gate is open."""
    await small.lead_to(Phase.SOAK)
    await small.begin(are_signals_trusted=True)
    await small.until_gate()
    return small


def is_untouched(world: Any) -> bool:
    return bool(world.cluster.restarts | NOTHING_FINAL == world.cluster.restarts)


async def approval_of(world: Any) -> Command:
    """The newest in the ledger."""
    found: list[Command] = [c for c in await world.book.commands(world.migration_id) if c.kind is CommandKind.APPROVE]
    return found[-1]


async def is_shown_armed(world: Any) -> bool:
    return "Approval of finalize by anna" in await world.current_details()


async def give(world: Any, kind: CommandKind, make_approval: MakeApproval, evidence_hash: str, name: str) -> Any:
    """Written into the ledger as the API does; what is left is to send it."""
    if kind is CommandKind.APPROVE:
        await world.command(kind, id=name, gate=GateName.FINALIZE, evidence_hash=evidence_hash)
        return world.say("approve", make_approval(evidence_hash, command_id=name))
    await world.command(kind, id=name, reason="wait")
    return world.say("hold", HoldMessage(by="olga", reason="wait", command_id=name))


@pytest.mark.parametrize("first", [CommandKind.APPROVE, CommandKind.HOLD])
async def test_an_approval_and_a_hold_in_one_workflow_task(small: Any, make_approval: MakeApproval, first: CommandKind) -> None:
    """Approved first, it is void with the hold. Held first, it is armed, and begins with the resume that names it."""
    await small.lead_to(Phase.SOAK)
    await small.register()
    await small.start_activity_workers()
    await small.start_checks_worker()
    second = CommandKind.HOLD if first is CommandKind.APPROVE else CommandKind.APPROVE
    async with asyncio.TaskGroup() as group:
        async with small.make_workflow_worker():
            await small.start()
            evidence_hash = (await small.until_gate()).evidence_hash
        for name, kind in (("one", first), ("two", second)):
            group.create_task(await give(small, kind, make_approval, evidence_hash, name))
            await small.until(lambda name=name: small.is_update_waiting(name))
        await small.start_workflow_worker()
    await small.until_waiting("held")
    is_void = first is CommandKind.APPROVE
    assert (await approval_of(small)).closed_as == ("void" if is_void else None)
    assert len(await small.events("approval-void")) == is_void
    if is_void:
        assert await small.resume() == "resumed"
        await small.until_gate()
        assert is_untouched(small)
        assert await small.approve_gate() == "approved"
    else:
        await small.until(lambda: is_shown_armed(small))
        assert '"begin": "finalize"' in await small.resume(), "a plain resume begins nothing"
        assert is_untouched(small)
        assert (await small.progress()).state == "held"
        assert await small.resume("finalize") == "resumed"
    assert await small.result() == "succeeded"
    assert (await approval_of(small)).closed_as == "done"


async def test_a_rejection_before_the_write_wins(gated: Any) -> None:
    gate = await gated.until_gate()
    pause = gated.ledger.pause("consume_approval")
    await gated.approve(gate.evidence_hash)
    await pause.is_reached.wait()
    assert await gated.reject(gate) == "rejected"
    gated.ledger.release("consume_approval")
    assert "is withdrawn: rejected by anna" in (await gated.until_told("step-blocked")).data["why"]
    assert "finalize rejected" in (await gated.until_waiting("held")).waiting.detail
    assert is_untouched(gated)
    approval = await approval_of(gated)
    assert (approval.closed_as, approval.consumed_at) == ("withdrawn", None)
    assert await gated.resume() == "resumed"
    assert await gated.approve_gate() == "approved"
    assert await gated.result() == "succeeded"


async def test_a_rejection_after_the_write_comes_too_late_and_says_since_when(gated: Any) -> None:
    gate = await gated.until_gate()
    pause = gated.drivers.of[3001].pause("stop")
    await gated.approve(gate.evidence_hash)
    await pause.is_reached.wait()
    rejection = await gated.command(CommandKind.REJECT, gate=gate.name, evidence_hash=gate.evidence_hash)
    assert "was consumed at" in (rejection.refused_because or "")
    gated.drivers.of[3001].release("stop")
    assert await gated.result() == "succeeded"
    assert not await gated.events("held")


async def test_a_rollback_that_was_asked_for_before_the_write_wins(gated: Any) -> None:
    """The migration has not been told of it yet: it is in the ledger, and that is enough."""
    gate = await gated.until_gate()
    pause = gated.ledger.pause("consume_approval")
    await gated.approve(gate.evidence_hash)
    await pause.is_reached.wait()
    command = await gated.command(CommandKind.ROLLBACK, reason="too slow")
    gated.ledger.release("consume_approval")
    assert "a rollback was asked for" in (await gated.until_told("step-blocked")).data["why"]
    assert is_untouched(gated)
    await gated.book.mark_refused(command.id, "no preview")
    assert await gated.result() == "succeeded", "one that is refused stops nothing"


async def test_an_approval_delivered_again_after_its_withdrawal_begins_nothing(gated: Any, make_approval: MakeApproval) -> None:
    gate = await gated.until_gate()
    pause = gated.ledger.pause("consume_approval")
    await gated.approve(gate.evidence_hash)
    given = await approval_of(gated)
    await pause.is_reached.wait()
    await gated.reject(gate)
    gated.ledger.release("consume_approval")
    await gated.until_waiting("held")
    await gated.resume()
    await gated.until_gate()
    assert (await gated.book.add_command(given)).closed_as == "withdrawn", "the same key has the same answer"
    message = make_approval(gate.evidence_hash, command_id=given.id)
    assert await gated.handle.execute_update("approve", message, id="again") == "approved before"
    await gated.until(lambda: gated.is_quiet(0.5))
    assert is_untouched(gated)
    assert (await gated.until_gate()).name == "finalize"
    assert await gated.approve_gate() == "approved"
    assert await gated.result() == "succeeded"


async def test_without_the_ledger_nothing_irreversible_is_written(gated: Any, ledger_is_down: Exception) -> None:
    """The step waits for it, by name, and goes on as the same attempt."""
    file = gated.cluster.nodes[3001].machine.read(gated.cluster.nodes[3001].spec.properties_file)
    pause = gated.ledger.pause("consume_approval")
    await gated.approve_gate()
    await pause.is_reached.wait()
    gated.ledger.faults["consume_approval"] = ledger_is_down
    gated.ledger.release("consume_approval")
    await gated.until(lambda: gated.has_asked(gated.ledger, "consume_approval", 2))
    assert gated.cluster.nodes[3001].machine.read(gated.cluster.nodes[3001].spec.properties_file) == file
    assert is_untouched(gated)
    gated.ledger.faults.clear()
    assert await gated.result() == "succeeded"
    started = [e.data["step"] for e in await gated.events("step-started") if e.data["node"] == "controller-3001"]
    assert (await approval_of(gated)).consumed_by == f"{gated.migration_id}/{started[0]}"
    assert len(started) == 1


async def test_an_attempt_that_was_lost_after_it_consumed_goes_on_under_a_hold(gated: Any) -> None:
    """The hold takes effect after the irreversible section, and says so; no approval is asked for a second time."""
    is_lost = asyncio.Event()

    def lose(answer: str | None) -> str | None:
        if is_lost.is_set():
            return answer
        is_lost.set()
        raise Transient("the worker was killed")

    gated.ledger.changes["consume_approval"] = lose
    pause = gated.kafka
    await gated.approve_gate()
    await is_lost.wait()
    looking = pause.pause("view")
    hold = await gated.command(CommandKind.HOLD, reason="wait")
    assert hold.gate == "finalize", "the ledger says after what it takes effect"
    message = HoldMessage(by="olga", reason="wait", after="finalize", command_id=hold.id)
    assert await gated.say("hold", message) == "held"
    assert (await gated.until_told("held")).data["takes_effect"] == "after-section"
    await looking.is_reached.wait()
    gated.kafka.release("view")
    progress = await gated.until_waiting("held")
    assert progress.phase == "KRAFT"
    assert len(await gated.events("gate-opened")) == 1
    assert len(await gated.events("approval-done")) == 1
    assert await gated.resume() == "resumed"
    assert await gated.result() == "succeeded"


async def test_a_hold_is_shown_from_its_acceptance_on(small: Any) -> None:
    await small.lead_to(Phase.DUAL_WRITE)
    pause = small.drivers.of[1].pause("start")
    await small.begin()
    await pause.is_reached.wait()
    await small.hold()

    async def shown() -> Any:
        return (await small.progress()).hold

    hold = await small.until(shown)
    assert (hold.by, hold.reason, hold.takes_effect) == ("olga", "lunch", "after-step")
    assert (await small.progress()).state != "held"
    small.drivers.of[1].release("start")
    await small.until_waiting("held")
    assert await shown() == hold
    await small.resume()
    await small.until_gate()
    assert await shown() is None


async def test_a_resume_by_signal_begins_nothing_and_names_the_update_to_send(gated: Any) -> None:
    await gated.hold()
    gate = await gated.until(lambda: gate_behind_hold(gated))
    await gated.approve(gate.evidence_hash)
    await gated.handle.signal("resume", {"by": "zoe", "reason": "go", "begin": "finalize"})
    told = await gated.until_told("signal-ignored")
    assert told.data["order"] == "resume"
    assert 'update resume with {"by": …, "reason": …, "begin": "finalize"}' in told.data["why"]
    assert (await gated.progress()).state == "held"
    assert is_untouched(gated)
    with pytest.raises(WorkflowUpdateFailedError):
        await gated.say("resume", HoldMessage(by="zoe", reason="go"))
    assert await gated.say("resume", HoldMessage(by="zoe", reason="go", begin="finalize")) == "resumed"
    assert await gated.result() == "succeeded"


async def gate_behind_hold(world: Any) -> Any:
    progress = await world.progress()
    return progress.gate if progress.state == "held" else None


async def test_a_resume_by_signal_lifts_a_hold_that_hides_nothing(gated: Any) -> None:
    await gated.hold()
    await gated.until_waiting("held")
    await gated.handle.signal("resume", {"by": "zoe", "reason": "go"})
    await gated.until_told("resumed", by="zoe")
    assert await gated.approve_gate() == "approved"
    assert await gated.result() == "succeeded"


async def test_an_approval_that_nothing_uses_expires_and_the_gate_asks_again(small: Any) -> None:
    """While it is held: a resume without a name begins nothing any more, and has nothing to name."""
    small.policy = small.policy.model_copy(update={"approval_expires_after": timedelta(seconds=3)})
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    await small.hold()
    gate = await small.until(lambda: gate_behind_hold(small))
    await small.approve(gate.evidence_hash)
    await small.until_told("approval-expired")
    assert (await approval_of(small)).closed_as == "expired"
    assert await small.resume() == "resumed"
    await small.until_gate()
    assert is_untouched(small)


async def test_a_failovers_approval_is_for_one_attempt(small: Any) -> None:
    await small.lead_to(Phase.SOAK)
    small.cluster.faults.is_dual_write_stuck = True
    small.cluster.advance(40)
    await small.begin()
    gate = await small.until_gate()
    await small.approve(gate.evidence_hash, GateName.FAIL_OVER)
    await small.until_told("approval-done", gate="fail-over")
    step = await small.until_told("step-done", action="fail-over")
    approval = await approval_of(small)
    assert (approval.closed_as, approval.consumed_by) == ("done", f"{small.migration_id}/{step.data['step']}")
    (consumed,) = await small.events("approval-consumed")
    assert consumed.data["attempt"] == approval.consumed_by
    await small.until_told("gate-opened", gate="finalize")
