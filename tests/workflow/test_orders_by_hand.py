"""Hold, resume and reject that came with Temporal's own UI or CLI: they are written down, and count as the settings say."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.testing import WorkflowEnvironment

from api.app import create_app
from api.running.caretaker import Caretaker
from api.running.commands import CommandStatus, status_of
from api.running.temporal import Temporal
from api.settings import ApiSettings
from domain.contracts import HoldMessage
from domain.errors import Permanent
from domain.zk_to_kraft.phases import Phase

BY_HAND = HoldMessage(by="zoe", reason="by hand")


@pytest.fixture
async def caretaker(tmp_path: Path, temporal: WorkflowEnvironment, ledger: Any) -> AsyncIterator[Caretaker]:
    """The API's, on the world's own ledger and Temporal: it does a round when a test says so."""
    settings = ApiSettings(ledger_url=f"sqlite:///{tmp_path}/ledger.db", care_interval=3600)  # type: ignore[arg-type]
    app = create_app(settings, Temporal({"target_host": temporal.client.service_client.config.target_host}))
    async with app.router.lifespan_context(app):
        yield app.state.wiring.caretaker


async def begin_as_the_api_does(world: Any) -> None:
    """The row names its run, so that commands can be delivered to it."""
    record = await world.register()
    await world.start_workers(are_signals_trusted=True)
    handle = await world.start(record.workflow_id)
    description = await handle.describe()
    await world.book.set_run(record.id, description.run_id, record.created_at)


async def is_shown(world: Any, detail: str) -> bool:
    waiting = (await world.progress()).waiting
    return waiting is not None and waiting.detail == detail


async def approve_once_open(small: Any) -> None:
    """The ledger may still show the gate of before the hold: then the workflow refuses, and a person looks again."""
    while True:
        try:
            await small.approve_gate()
        except WorkflowUpdateFailedError:
            continue
        return


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
    assert "held again meanwhile" in await becomes_refused(small)


async def becomes_refused(world: Any) -> str:
    """Why the one command that came by hand does not count, as whoever lists the commands reads it."""

    async def reason() -> str:
        by_hand = [c for c in await world.book.commands(world.migration_id) if c.via == "temporal-signal"]
        refused = [c.refused_because for c in by_hand if status_of(c) is CommandStatus.REFUSED]
        return refused[0] or "" if refused else ""

    return str(await world.until(reason))


async def test_an_approval_by_hand_whose_gate_was_closed_meanwhile_is_refused_in_the_ledger_too(
    small: Any, make_approval: Any
) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin(are_signals_trusted=True)
    gate = await small.until_gate()
    pause = small.ledger.pause("add_command")
    await small.handle.signal("approve", make_approval(gate.evidence_hash))
    await pause.is_reached.wait()
    small.cluster.faults.silent_kafka = True
    await small.until_waiting("part-unknown")
    small.ledger.release("add_command")
    assert "was closed meanwhile" in await becomes_refused(small)
    small.cluster.faults.silent_kafka = False
    await small.approve_gate()
    assert await small.result() == "succeeded"


@pytest.mark.parametrize("door", ["signal", "update"])
async def test_a_rollback_by_hand_that_does_not_fit_what_is_seen_is_refused_in_the_ledger_too(
    small: Any, make_rollback: Any, door: str
) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin(are_signals_trusted=True)
    await small.until_gate()
    stale = make_rollback(preview_hash="0" * 64)
    if door == "signal":
        await small.handle.signal("rollback", stale)
    else:
        with pytest.raises(WorkflowUpdateFailedError):
            await small.say("rollback", stale)
    assert "has changed since the preview" in await becomes_refused(small)
    assert await small.say("rollback", make_rollback()) == "accepted"
    assert await small.result() == "reverted"
    first, second = await small.book.commands(small.migration_id)
    assert (status_of(first), status_of(second)) == (CommandStatus.REFUSED, CommandStatus.DELIVERED)


async def test_a_refusal_that_cannot_be_written_down_is_told(small: Any, make_rollback: Any) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin(are_signals_trusted=True)
    await small.until_gate()
    small.ledger.faults["mark_refused"] = Permanent("the schema is older than this program")
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await small.say("rollback", make_rollback(preview_hash="0" * 64))
    assert "has changed since the preview" in str(refused.value.cause)
    assert "older than this program" in (await small.until_told("not-written-down", order="rollback")).data["why"]


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
    await approve_once_open(small)
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


@pytest.mark.parametrize("order", ["approve", "hold", "resume", "reject"])
async def test_what_came_by_hand_is_not_delivered_once_more(
    small: Any, make_approval: Any, caretaker: Caretaker, order: str
) -> None:
    """The caretaker looks for commands that have not arrived. These came from where they would go."""
    await small.lead_to(Phase.SOAK)
    await begin_as_the_api_does(small)
    gate = await small.until_gate()
    pause = small.drivers.of[3001].pause("stop")
    if order == "approve":
        await small.handle.signal("approve", make_approval(gate.evidence_hash))
    elif order == "reject":
        await small.say("reject", make_approval(gate.evidence_hash))
        await small.resume()
        await approve_once_open(small)
    else:
        await (small.say("hold", BY_HAND) if order == "hold" else small.hold())
        await (small.say("resume", BY_HAND) if order == "resume" else small.resume())
        await approve_once_open(small)
    await pause.is_reached.wait()
    await caretaker.round()
    commands = await small.book.commands(small.migration_id)
    last = {command.kind: command.refused_because for command in commands}
    assert set(last.values()) == {None}, "an approval that came before the gate was open again was followed by another"
    (by_hand,) = [command for command in commands if command.via == "temporal-signal"]
    assert by_hand.delivered_at is not None
    assert by_hand.id in (await small.status()).applied_commands
    small.drivers.of[3001].release("stop")
    assert await small.result() == "succeeded"
    assert len(await small.events("held")) == (order in {"hold", "resume"})


async def test_a_rollback_by_hand_is_not_delivered_once_more(small: Any, make_rollback: Any, caretaker: Caretaker) -> None:
    await small.lead_to(Phase.SOAK)
    await begin_as_the_api_does(small)
    await small.until_gate()
    pause = small.drivers.of[1].pause("stop")
    assert await small.say("rollback", make_rollback()) == "accepted"
    await pause.is_reached.wait()
    await caretaker.round()
    (by_hand,) = await small.book.commands(small.migration_id)
    assert (by_hand.refused_because, by_hand.delivered_at is not None) == (None, True)
    assert by_hand.id in (await small.status()).applied_commands
    small.drivers.of[1].release("stop")
    assert await small.result() == "reverted"


async def test_a_migration_that_has_done_nothing_ends_where_the_cluster_is_another_one(small: Any) -> None:
    """Its specification cannot be corrected as long as it lives; and nothing that it waits for would come."""
    await small.lead_to(Phase.SOAK)
    spec = small.cluster.spec
    small.cluster.spec = spec.model_copy(update={"cluster_id": "AAAAAAAAAAAAAAAAAAAAAA"})
    await small.register()
    await small.start_workers()
    small.cluster.spec = spec
    before = dict(small.cluster.restarts)
    await small.start()
    assert await small.result() == "refused"
    assert small.cluster.restarts == before
