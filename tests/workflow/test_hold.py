"""Hold and resume, whenever they come: the node in hand is finished, no other is started."""

import asyncio
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowUpdateFailedError

from domain.contracts import HoldMessage
from domain.errors import Permanent
from domain.records import CommandKind
from domain.zk_to_kraft.phases import Phase
from tests.unit.fake_way_back import take_flag


async def test_a_hold_in_the_middle_of_a_roll_finishes_the_node_and_starts_no_other(small: Any) -> None:
    await small.lead_to(Phase.DUAL_WRITE)
    pause = small.drivers.of[1].pause("start")
    await small.begin()
    await pause.is_reached.wait()
    before = small.cluster.restarts
    assert await small.hold() == "held"
    await small.until(lambda: is_in_hand(small))
    small.drivers.of[1].release("start")
    progress = await small.until_waiting("held")
    assert (progress.state, progress.in_hand) == ("held", None)
    assert "held by olga: lunch" in progress.waiting.detail
    assert small.cluster.restarts == before | {"broker-1": before["broker-1"] + 1}
    assert [e.data["node"] for e in await small.events("step-done")] == ["broker-1"]
    await small.resume()
    await small.approve_gate()
    assert await small.result() == "succeeded"


async def is_in_hand(small: Any) -> bool:
    """The record tells of the step while it is carried out."""
    step = (await small.progress()).in_hand
    begun = await small.events("step-started")
    if step is None or not begun:
        return False
    return (step.action, step.nodes, step.since) == ("roll-node", ("broker-1",), begun[-1].at)


async def test_a_hold_right_after_a_resume_leaves_no_node_stopped_that_a_failed_step_had_stopped(small: Any) -> None:
    """The step that failed is over: another one finishes the node, though the hold was there before it could begin."""
    await small.lead_to(Phase.DUAL_WRITE)
    broker = small.drivers.of[1]
    broker.faults["start"] = Permanent("no such program")
    before = small.cluster.restarts
    await small.begin()
    waiting = (await small.until_waiting("held")).waiting
    assert "no such program" in waiting.detail
    assert waiting.means.startswith("Keeperless holds the migration itself")
    broker.faults.clear()
    pause = small.kafka.pause("view")
    await small.resume()
    await pause.is_reached.wait()
    await small.hold()
    small.kafka.release("view")
    await small.until_told("step-done", node="broker-1")
    waiting = (await small.until_waiting("held")).waiting
    assert "held by olga: lunch" in waiting.detail
    assert waiting.means == "olga holds the migration. Resume it when ready."
    assert small.cluster.restarts == before | {"broker-1": before["broker-1"] + 1}
    assert {e.data["node"] for e in await small.events("step-started")} == {"broker-1"}
    await small.resume()
    await small.approve_gate()
    assert await small.result() == "succeeded"


async def test_a_hold_that_arrives_while_we_look_starts_no_further_node(small: Any) -> None:
    await small.lead_to(Phase.DUAL_WRITE)
    pause = small.kafka.pause("view")
    await small.begin()
    await pause.is_reached.wait()
    before = small.cluster.restarts
    assert await small.hold() == "held"
    small.kafka.release("view")
    await small.until_waiting("held")
    assert small.cluster.restarts == before
    assert not await small.events("step-started")


async def test_a_hold_that_comes_together_with_the_end_of_a_wait_starts_no_node(small: Any) -> None:
    """Both reach the workflow in one task: nobody was there to take the first alone."""
    await small.lead_to(Phase.DUAL_WRITE)
    small.cluster.faults.silent_zookeeper = True
    await small.register()
    await small.start_activity_workers()
    async with asyncio.TaskGroup() as group:
        async with small.make_workflow_worker():
            await small.start()
            await small.until_waiting("part-unknown")
        small.cluster.faults.silent_zookeeper = False
        await small.until(small.has_watch_ended)
        held = group.create_task(small.hold(command_id="the-hold"))
        await small.until(lambda: small.is_update_waiting("the-hold"))
        before = small.cluster.restarts
        await small.start_workflow_worker()
    assert held.result() == "held"
    await small.until_waiting("held")
    assert small.cluster.restarts == before
    assert not await small.events("step-started")


async def test_a_held_migration_shows_why_and_cannot_be_held_twice_nor_resumed_twice(small: Any) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    with pytest.raises(WorkflowUpdateFailedError) as not_held:
        await small.resume()
    assert "nothing to resume" in str(not_held.value.cause)
    await small.hold("waiting for the night")
    with pytest.raises(WorkflowUpdateFailedError) as held:
        await small.hold()
    assert "waiting for the night" in str(held.value.cause)
    progress = await small.until_waiting("held")
    assert progress.gate is not None
    assert progress.waiting.for_people


async def test_a_hold_is_over_as_soon_as_it_is_resumed_however_long_the_look_takes(small: Any) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin(is_held=True)
    await small.until_waiting("held")
    pause = small.kafka.pause("view")
    await small.resume()
    await pause.is_reached.wait()

    async def running() -> Any:
        found = await small.progress()
        return found if found.state == "running" else None

    progress = await small.until(running)
    assert (progress.waiting, progress.phase, len(progress.nodes)) == (None, "SOAK", 4)
    assert [event.data["by"] for event in await small.events("resumed")] == ["olga"]
    await small.hold("lunch")
    small.kafka.release("view")
    assert (await small.until_waiting("held")).waiting.detail == "held by olga: lunch"
    await small.resume()
    await small.approve_gate()
    assert await small.result() == "succeeded"


async def test_an_order_after_tasks_without_commands_stands_in_history_as_it_is_read(small: Any) -> None:
    """A worker that reads the run anew is given the last of them together with the order, and later, by history, one by one."""
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    pause = small.ledger.pause("record")
    await small.hold()
    await pause.is_reached.wait()
    await small.until(lambda: small.has_task_without_commands(EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED))
    small.ledger.release("record")
    await small.until(lambda: small.has_task_without_commands(EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED))
    await small.resume()
    await small.approve_gate()
    assert await small.result() == "succeeded"
    for history in await small.histories():
        assert EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED not in [event.event_type for event in history.events]


async def test_messages_around_the_end_of_a_phase_are_not_lost(small: Any, ledger_is_down: Exception) -> None:
    """The ledger is slow just when a run hands over to the next; a hold and a resume and a hold come in that moment."""
    await small.lead_to(Phase.DUAL_WRITE)
    await small.begin()
    await small.until_told("step-started")
    pause = small.ledger.pause("record")
    await pause.is_reached.wait()
    await small.hold("one")
    await small.resume()
    await small.hold("two")
    small.ledger.release("record")
    progress = await small.until_waiting("held")
    assert progress.waiting.detail == "held by olga: two"
    assert [e.data["reason"] for e in await small.events("held")] == ["one", "two"]
    await small.resume()
    await small.approve_gate()
    assert await small.result() == "succeeded"
    assert len(await small.histories()) > 2


async def test_a_migration_that_starts_held_looks_and_touches_nothing_until_resume(small: Any) -> None:
    await small.begin(is_held=True)
    progress = await small.until_waiting("held")
    assert (progress.state, progress.phase, progress.waiting.detail) == ("held", "PREFLIGHT", "started held")
    (told,) = await small.events("held")
    assert (told.data["by"], told.data["reason"]) == ("keeperless", "started held")
    assert not any(small.cluster.restarts.values())
    assert not await small.events("step-started")
    await small.resume()
    await small.approve_gate()
    assert await small.result() == "succeeded"


async def test_a_hold_within_a_finalisation_takes_effect_after_it_and_says_so(world: Any) -> None:
    await world.lead_to(Phase.SOAK)
    await world.begin()
    pause = world.drivers.of[3003].pause("stop")
    await world.approve_gate()
    await pause.is_reached.wait()
    await world.until(lambda: world.has_phase("FINALIZING"))
    assert await world.hold() == "held"
    assert (await world.until_told("held")).data["takes_effect"] == "after-section"
    world.drivers.of[3003].release("stop")
    progress = await world.until_waiting("held")
    assert (progress.phase, progress.hold.takes_effect) == ("KRAFT", "after-section")
    assert await world.resume() == "resumed"
    assert await world.result() == "succeeded"


@pytest.mark.parametrize("lifting", [CommandKind.RESUME, CommandKind.ROLLBACK])
async def test_what_ends_a_hold_and_has_not_arrived_yet_lets_no_step_through(small: Any, lifting: CommandKind) -> None:
    """Both orders are in the ledger, and the migration knows of neither: the step was decided before them."""
    await small.lead_to(Phase.DUAL_WRITE)
    pause = small.ledger.pause("commands")
    await small.begin()
    await pause.is_reached.wait()
    before = small.cluster.restarts
    hold = await small.command(CommandKind.HOLD, reason="lunch")
    late = await small.command(lifting, reason="back")
    small.ledger.release("commands")
    assert "held" in (await small.until_told("step-blocked")).data["why"]
    await small.say("hold", HoldMessage(by="olga", reason="lunch", command_id=hold.id))
    await small.until_waiting("held")
    assert small.cluster.restarts == before
    await small.book.mark_refused(late.id, "no preview")  # else nothing irreversible would begin
    await small.resume()
    await small.approve_gate()
    assert await small.result() == "succeeded"


async def test_a_hold_after_the_first_write_of_a_finalisation_takes_effect_after_it(small: Any) -> None:
    """The phase is the old one until a controller shows that it has begun: the ledger knows."""
    await small.lead_to(Phase.SOAK)
    await small.begin()
    pause = small.drivers.of[3001].pause("stop")
    await small.approve_gate()
    await pause.is_reached.wait()
    assert await small.has_phase("SOAK")
    assert await small.hold() == "held"
    small.drivers.of[3001].release("stop")
    assert (await small.until_waiting("held")).phase == "KRAFT"
    assert await small.resume() == "resumed"
    assert await small.result() == "succeeded"


async def test_a_flag_that_was_lost_is_no_finalisation_and_can_be_held(world: Any) -> None:
    """The phase says FINALIZING, and nobody has approved anything."""
    await world.lead_to(Phase.SOAK)
    take_flag(world.cluster, 3003, restart=True)
    pause = world.drivers.of[3003].pause("stop")
    await world.begin()
    await pause.is_reached.wait()
    await world.until(lambda: world.has_phase("FINALIZING"))
    assert await world.hold() == "held"
    world.drivers.of[3003].release("stop")
    assert (await world.until_waiting("held")).phase == "SOAK"
    await world.resume()
    await world.approve_gate()
    assert await world.result() == "succeeded"
