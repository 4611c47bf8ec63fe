"""A rollback as a message: what is accepted, what is refused and why, and through which door."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from domain.contracts import RollbackMessage
from domain.records import CommandKind
from domain.zk_to_kraft.phases import Phase

MakeRollback = Callable[..., RollbackMessage]


async def refusal_of(asked: Any) -> str:
    with pytest.raises(WorkflowUpdateFailedError) as failed:
        await asked
    cause = failed.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == "RollbackRefused"
    return cause.message


@pytest.fixture
async def gated(small: Any) -> Any:
    """A world at the gate `finalize`, all brokers in KRaft mode."""
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    return small


async def ensure_going_on(world: Any) -> None:
    """What was refused has changed nothing."""
    assert (await world.status()).intent == "forward"
    assert not await world.events("rollback-accepted")
    await world.approve_gate()
    assert await world.result() == "succeeded"


async def test_a_command_that_is_delivered_twice_is_one_rollback(gated: Any, make_rollback: MakeRollback) -> None:
    pause = gated.drivers.of[1].pause("stop")
    command = await gated.command(CommandKind.ROLLBACK)
    message = make_rollback(command_id=command.id)
    assert await gated.handle.execute_update("rollback", message, id="first") == "accepted"
    await pause.is_reached.wait()
    assert await gated.handle.execute_update("rollback", message, id="second") == "accepted before"
    assert "on its way back already: too slow" in await refusal_of(gated.roll_back())
    gated.drivers.of[1].release("stop")
    assert await gated.result() == "reverted"
    (told,) = await gated.events("rollback-accepted")
    assert (told.data["by"], told.data["reason"], told.data["command"]) == ("anna", "too slow", command.id)


async def test_of_two_rollbacks_at_once_one_is_accepted(gated: Any, make_rollback: MakeRollback) -> None:
    """The same command twice and another one, all while the first is being verified."""
    pause = gated.ledger.pause("command")
    first, other = await gated.command(CommandKind.ROLLBACK), await gated.command(CommandKind.ROLLBACK)
    messages = [make_rollback(command_id=first.id), make_rollback(command_id=first.id), make_rollback(command_id=other.id)]
    asked = [
        asyncio.create_task(gated.handle.execute_update("rollback", message, id=f"update-{number}"))
        for number, message in enumerate(messages)
    ]
    await pause.is_reached.wait()
    await gated.until(lambda: gated.has_updates(3))
    gated.ledger.release("command")
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(answer == "accepted" for answer in answers) == 1, answers
    assert await gated.result() == "reverted"
    assert len(await gated.events("rollback-accepted")) == 1


@pytest.mark.parametrize("is_accepted", [True, False])
async def test_nothing_irreversible_is_done_before_a_rollback_is_verified(
    gated: Any, make_rollback: MakeRollback, is_accepted: bool
) -> None:
    """It stands in the ledger, and has not reached the migration yet."""
    command = await gated.command(CommandKind.ROLLBACK)
    await gated.approve_gate()
    assert (await gated.until_waiting("rollback-not-verified")).phase == Phase.SOAK
    if is_accepted:
        assert await gated.say("rollback", make_rollback(command_id=command.id)) == "accepted"
        assert await gated.result() == "reverted"
        assert not await gated.events("approval-consumed")
    else:
        await gated.book.mark_refused(command.id, "no way back")
        assert await gated.result() == "succeeded"


async def test_a_rollback_that_the_ledger_does_not_know_is_refused(gated: Any, make_rollback: MakeRollback) -> None:
    why = await refusal_of(
        gated.say("rollback", make_rollback(command_id="no-such-command", accept_loss=("metadata-changes",)))
    )
    assert "no rollback of this migration" in why
    told = await gated.until_told("rollback-refused")
    assert (told.data["by"], told.data["losses"], told.data["why"]) == ("anna", ["metadata-changes"], why)
    await ensure_going_on(gated)


async def test_a_loss_that_nobody_accepted_is_refused_and_by_its_name_accepted(gated: Any) -> None:
    broker = gated.cluster.nodes[2]
    path = broker.spec.properties_file
    file = broker.machine.read(path)
    broker.machine.write(path, type(file)(file.content + b"num.io.threads=9\n", file.mode, file.uid, file.gid))
    assert "edits-of-broker-2" in await refusal_of(gated.roll_back())
    assert await gated.roll_back(accept_loss=("edits-of-broker-2",)) == "accepted"
    assert await gated.result() == "reverted"
    (told,) = await gated.events("rollback-accepted")
    assert told.data["losses"] == ["edits-of-broker-2"]


async def test_a_command_that_was_refused_stays_refused(world: Any, make_rollback: MakeRollback) -> None:
    """Who was told that it is refused has gone home: whatever kept it from being accepted may be over by then."""
    await world.lead_to(Phase.SOAK)
    await world.begin()
    gate = await world.until_gate()
    broker = world.cluster.nodes[2]
    path = broker.spec.properties_file
    file = broker.machine.read(path)
    broker.machine.write(path, type(file)(file.content + b"num.io.threads=9\n", file.mode, file.uid, file.gid))
    await world.until_evidence(lambda evidence_hash: evidence_hash != gate.evidence_hash)
    command = await world.command(CommandKind.ROLLBACK)
    message = make_rollback(command_id=command.id)
    why = await refusal_of(world.handle.execute_update("rollback", message, id="first"))
    broker.machine.write(path, file)
    assert await refusal_of(world.handle.execute_update("rollback", message, id="second")) == why
    assert (await world.status()).refused_commands == {command.id: why}
    await world.until_evidence(lambda evidence_hash: evidence_hash == gate.evidence_hash)
    assert not await world.events("rollback-refused"), "the API tells what becomes of its own commands: one event"
    await world.book.mark_refused(command.id, why)  # as the API does with the answer: else nothing irreversible would begin
    pause = world.drivers.of[3001].pause("stop")
    await world.approve(gate.evidence_hash)
    await world.until_told("step-done", node="controller-3003")
    await pause.is_reached.wait()
    assert (await world.status()).progress.phase == Phase.FINALIZING, "which is another run"
    assert await refusal_of(world.handle.execute_update("rollback", message, id="third")) == why
    world.drivers.of[3001].release("stop")
    assert await world.result() == "succeeded"


async def test_a_loss_that_shows_later_can_still_be_accepted(gated: Any) -> None:
    """Somebody edits a file on the way back: it waits, and a second rollback says what may be lost."""
    pause = gated.drivers.of[1].pause("stop")
    await gated.roll_back()
    await pause.is_reached.wait()
    broker = gated.cluster.nodes[2]
    path = broker.spec.properties_file
    file = broker.machine.read(path)
    broker.machine.write(path, type(file)(file.content + b"num.io.threads=9\n", file.mode, file.uid, file.gid))
    gated.drivers.of[1].release("stop")
    progress = await gated.until_waiting("file-changed")
    assert (progress.state, progress.waiting.objects) == ("reverting", ("broker-2",))
    assert "already" in await refusal_of(gated.roll_back())
    assert await gated.roll_back(accept_loss=("edits-of-broker-2",)) == "accepted"
    assert await gated.result() == "reverted"


async def test_there_is_no_way_back_once_the_log_is_final(world: Any, make_rollback: MakeRollback) -> None:
    """First asked of the log, by an activity; then known to the workflow, by the phase."""
    await world.lead_to(Phase.SOAK)
    await world.begin()
    pause = world.drivers.of[3001].pause("stop")
    await world.approve_gate()
    await world.until_told("step-done", node="controller-3003")
    await pause.is_reached.wait()
    world.cluster.quorum.log_state = type(world.cluster.quorum.log_state).POST_MIGRATION
    assert "POST_MIGRATION" in await refusal_of(world.roll_back())
    world.checks.is_free.clear()
    world.drivers.of[3001].release("stop")
    await world.until_told("step-started", action="compare-end")
    world.ledger.pause("record")
    world.checks.is_free.set()
    await world.until(lambda: world.has_ended_inside("succeeded"))
    assert "the migration is final" in await refusal_of(world.say("rollback", make_rollback(command_id="late")))
    world.ledger.release("record")
    assert await world.result() == "succeeded"


# ---- the second door ----


async def test_a_bare_signal_counts_where_signals_are_trusted(small: Any, make_rollback: MakeRollback) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin(are_signals_trusted=True)
    await small.until_gate()
    await small.handle.signal("rollback", make_rollback(accept_loss=("metadata-changes",)))
    assert await small.result() == "reverted"
    (command,) = await small.book.commands(small.migration_id)
    assert (command.kind, command.via, command.by, command.refused_because) == ("rollback", "temporal-signal", "anna", None)
    assert command.accept_loss == ("metadata-changes",)
    (told,) = await small.events("rollback-accepted")
    assert told.data["command"] == command.id


async def test_a_bare_signal_is_told_and_refused_where_they_are_not(gated: Any, make_rollback: MakeRollback) -> None:
    await gated.handle.signal("rollback", make_rollback())
    told = await gated.until_told("rollback-refused")
    assert "signal_approvals is off: rollback through the API" in told.data["why"]
    assert "signal_approvals is off" in await refusal_of(gated.say("rollback", make_rollback()))
    await ensure_going_on(gated)


async def test_a_signal_with_a_command_is_verified_like_an_update(gated: Any, make_rollback: MakeRollback) -> None:
    await gated.handle.signal("rollback", make_rollback(command_id="no-such-command"))
    await gated.until_told("rollback-refused")
    command = await gated.command(CommandKind.ROLLBACK)
    await gated.handle.signal("rollback", make_rollback(command_id=command.id))
    assert await gated.result() == "reverted"


async def test_signals_that_make_no_sense_are_told_and_harm_nothing(gated: Any, make_rollback: MakeRollback) -> None:
    await gated.handle.signal("rollback", "not even an object")
    await gated.handle.signal("rollback", {"by": ["not", "text"]})
    await gated.handle.signal("rollback", {"by": "x\0" * 20_000, "accept_loss": ["\0" * 600] * 200})
    told = await gated.until_told("rollback-refused")
    assert len(str(told.data)) < 60_000
    assert "\0" not in str(told.data)
    pause = gated.drivers.of[1].pause("stop")
    await gated.roll_back()
    await pause.is_reached.wait()
    await gated.handle.signal("rollback", make_rollback())
    gated.drivers.of[1].release("stop")
    assert "already" in (await gated.until_told("signal-ignored", 3, order="rollback")).data["why"]
    assert await gated.result() == "reverted"


async def test_a_rollback_in_flight_between_two_runs_is_not_lost(small: Any) -> None:
    """It is being verified when the phase ends: the run waits for its answer before it hands over."""
    await small.lead_to(Phase.DUAL_WRITE)
    pause = small.drivers.of[1].pause("start")
    await small.begin()
    await pause.is_reached.wait()
    verifying = small.ledger.pause("command")
    asked = asyncio.create_task(small.roll_back(accept_loss=("metadata-changes",)))
    await verifying.is_reached.wait()
    small.drivers.of[1].release("start")
    await small.until(lambda: small.has_phase("BROKERS_TO_KRAFT"))
    await small.until(lambda: small.is_quiet(1))
    assert len(await small.histories()) == 1
    small.ledger.release("command")
    assert await asked == "accepted"
    assert await small.result() == "reverted"
    assert [e.data["stage"] for e in await small.events("step-done")][:2] == ["kraft", "migration"]
