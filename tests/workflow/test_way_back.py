"""The way back to ZooKeeper, asked for at any moment, and led to its end whatever fails meanwhile."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowFailureError, WorkflowHistory
from temporalio.exceptions import CancelledError

from domain.errors import Unsafe
from domain.zk_to_kraft.phases import Phase

STORY = [
    ("rollback-accepted", "too slow"),
    ("step-done", "broker-1"),
    ("phase-entered", Phase.BROKERS_TO_KRAFT),
    ("step-done", "broker-2"),
    ("step-done", "broker-3"),
    ("phase-entered", Phase.DUAL_WRITE),
    ("step-done", "cluster"),
    ("phase-entered", Phase.BROKERS_TO_HYBRID),
    ("step-done", "broker-2"),
    ("step-done", "broker-3"),
    ("step-done", "broker-1"),
    ("phase-entered", Phase.CONTROLLERS_UP),
    ("step-done", "cluster"),
    ("phase-entered", Phase.PREFLIGHT),
    ("reverted", None),
]
"""Roll A, the window, roll B with ZooKeeper's controller last, the wipe."""

WHAT = ("phase", "node", "reason")
PASSING = {"controllers-not-ready", "node-not-ready", "partitions-not-in-sync", "no-controller", "dual-write-not-current"}
"""Waits that last a look or two: whether they are seen depends on the moment."""


def files_of_brokers(world: Any) -> dict[int, Any]:
    return {b.id: world.cluster.nodes[b.id].machine.read(b.properties_file) for b in world.cluster.spec.brokers}


@pytest.fixture
def originals(small: Any) -> dict[int, Any]:
    """The brokers' files before anything was done: bytes, mode and owner."""
    return files_of_brokers(small)


async def ensure_back(world: Any, files: dict[int, Any]) -> None:
    """On ZooKeeper, with every file as it was, nothing left of the controllers, and all of it recorded."""
    assert await world.result() == "reverted", await world.story()
    progress = (await world.record()).progress
    assert (progress.state, progress.intent, progress.outcome) == ("reverted", "revert", "ZOOKEEPER")
    assert {n.mode for n in progress.nodes if n.role == "broker"} == {"zookeeper"}
    assert files_of_brokers(world) == files
    assert "/migration" not in world.cluster.znodes
    assert not [c for c in world.cluster.spec.controllers if world.cluster.nodes[c.id].machine.read(c.properties_file)]
    assert await world.book.verify_chain() is None
    await ensure_serving(world)


async def ensure_serving(world: Any) -> None:
    view = await world.cluster.view(world.cluster.record())
    assert (view.broker_ids, view.under_replicated, view.offline) == ((1, 2, 3), (), ())


async def test_a_cluster_goes_back_from_the_gate_to_zookeeper(world: Any, keep_histories: Callable[..., None]) -> None:
    files = files_of_brokers(world)
    await world.begin()
    await world.until_gate()
    assert await world.roll_back() == "accepted"
    await ensure_back(world, files)
    events = [(e.kind, next((e.data[key] for key in WHAT if e.data.get(key)), None)) for e in await world.events()]
    told = events[events.index(("rollback-accepted", "too slow")) :]
    assert [t for t in told if t[0] != "step-started" and t[1] not in PASSING] == STORY
    assert world.cluster.restarts == {f"broker-{i}": 4 for i in (1, 2, 3)} | {f"controller-{i}": 1 for i in (3001, 3002, 3003)}
    histories = [history for history in await world.histories() if is_of_way_back(history)]
    keep_histories("way-back", histories)
    print(f"runs {len(histories)}, events in each {[len(h.events) for h in histories]}")
    assert len(histories) > 4, "a run for each phase, on the way back too"


def is_of_way_back(history: WorkflowHistory) -> bool:
    """The run in which it was accepted, or one that was handed it."""
    accepted = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED
    started = history.events[0].workflow_execution_started_event_attributes.input.payloads[0].data
    return any(event.event_type == accepted for event in history.events) or b'"revert":{' in started


async def test_people_see_where_it_goes(small: Any, originals: dict[int, Any]) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    pause = small.drivers.of[1].pause("stop")
    await small.roll_back()
    await pause.is_reached.wait()
    progress = await small.until(lambda: small.has_state("reverting"))
    assert (progress.intent, progress.waiting, progress.gate) == ("revert", None, None)
    assert (await small.status()).intent == "revert"
    assert "### Cluster orders, back to ZooKeeper: SOAK" in await small.current_details()
    small.drivers.of[1].release("stop")
    await ensure_back(small, originals)
    summaries = [summary for history in await small.histories() for summary in small.summaries(history)]
    assert summaries.count("Revert window: KRaft gives way to ZooKeeper") == 1


# ---- at any moment ----


async def test_while_a_broker_is_rolled_forward_that_is_finished_first(small: Any, originals: dict[int, Any]) -> None:
    await small.lead_to(Phase.DUAL_WRITE)
    pause = small.drivers.of[1].pause("start")
    await small.begin()
    await pause.is_reached.wait()
    asked = asyncio.create_task(small.roll_back(accept_loss=("metadata-changes",)))
    await small.until_told("rollback-accepted")
    assert await asked == "accepted"
    assert (await small.status()).progress.intent == "revert"
    small.drivers.of[1].release("start")
    await ensure_back(small, originals)
    steps = [(e.data["node"], e.data["stage"]) for e in await small.events("step-done")]
    assert steps[:2] == [("broker-1", "kraft"), ("broker-1", "migration")]


async def test_from_an_accepted_rollback_on_nobody_is_told_to_decide_at_a_gate(small: Any, originals: dict[int, Any]) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    asking = asyncio.create_task(small.roll_back())
    await small.until_told("rollback-accepted")
    pause = small.kafka.pause("view")
    await pause.is_reached.wait()

    async def is_shown() -> bool:
        return (await small.progress()).intent == "revert"

    await small.until(is_shown)
    progress = await small.progress()
    assert (progress.gate, progress.state) == (None, "reverting")
    assert progress.waiting is None or progress.waiting.reason != "approval"
    small.kafka.release("view")
    await asking
    await ensure_back(small, originals)


async def test_a_hold_is_lifted(small: Any, originals: dict[int, Any]) -> None:
    await small.lead_to(Phase.BROKERS_TO_KRAFT)
    await small.begin(is_held=True)
    await small.until_waiting("held")
    assert await small.roll_back() == "accepted"
    await ensure_back(small, originals)
    assert small.cluster.restarts["broker-1"] == 4


async def test_a_stop_after_an_error_is_lifted(small: Any, originals: dict[int, Any]) -> None:
    await small.lead_to(Phase.DUAL_WRITE)
    small.drivers.of[1].faults["write_file"] = Unsafe("the disk is read-only")
    await small.begin()
    await small.until_waiting("held")
    small.drivers.of[1].faults.clear()
    assert await small.roll_back() == "accepted"
    await ensure_back(small, originals)


async def test_the_way_back_is_held_and_resumed(small: Any, originals: dict[int, Any]) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    pause = small.drivers.of[1].pause("start")
    await small.roll_back()
    await pause.is_reached.wait()
    await small.hold()
    small.drivers.of[1].release("start")
    progress = await small.until_waiting("held")
    assert (progress.state, progress.intent) == ("held", "revert")
    assert [e.data["node"] for e in await small.events("step-done")] == ["cluster", "broker-1"]
    await small.resume()
    await ensure_back(small, originals)


async def test_a_step_of_the_way_back_that_fails_stops_it_until_resume(small: Any, originals: dict[int, Any]) -> None:
    await small.lead_to(Phase.SOAK)
    small.drivers.of[2].faults["write_file"] = Unsafe("the disk is read-only")
    await small.begin()
    await small.until_gate()
    await small.roll_back()
    progress = await small.until_waiting("held")
    assert "read-only" in progress.waiting.detail
    small.drivers.of[2].faults.clear()
    await small.resume()
    await ensure_back(small, originals)


# ---- whatever fails ----


async def test_the_way_back_waits_for_no_ledger(small: Any, originals: dict[int, Any], ledger_is_down: Exception) -> None:
    """It ends on ZooKeeper with the ledger down all the time, over several runs; the record follows when that is back."""
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    pause = small.drivers.of[1].pause("stop")
    await small.roll_back()
    await pause.is_reached.wait()
    small.ledger.faults["*"] = ledger_is_down
    small.drivers.of[1].release("stop")
    await small.until(lambda: small.has_ended_inside("reverted"))
    await ensure_serving(small)
    assert not await small.events("reverted")
    assert not [e for e in await small.events("step-done") if e.data["action"] == "leave-kraft"]
    small.ledger.faults.clear()
    await ensure_back(small, originals)
    assert len(await small.histories()) > 3
    steps = [e.data["step"] for e in await small.events("step-started")]
    assert steps == [e.data["step"] for e in await small.events("step-done")] == list(range(1, len(steps) + 1))


async def test_a_rollback_is_not_kept_by_a_ledger_that_goes_down_at_the_end_of_a_phase(
    small: Any, originals: dict[int, Any], ledger_is_down: Exception
) -> None:
    """The run waits for the ledger before it hands over; a way back that is accepted in that moment does not."""
    await small.lead_to(Phase.DUAL_WRITE)
    await small.begin()
    pause = small.ledger.pause("record")
    await pause.is_reached.wait()
    await small.until(lambda: small.has_phase("BROKERS_TO_KRAFT"))
    assert await small.roll_back() == "accepted"
    small.ledger.faults["*"] = ledger_is_down
    await small.until(lambda: small.has_ended_inside("reverted"))
    small.ledger.faults.clear()
    small.ledger.release("record")
    await ensure_back(small, originals)


async def test_workers_that_die_on_the_way_back_lose_nothing(small: Any, originals: dict[int, Any]) -> None:
    """In a roll and in the window: other workers take the same steps up where they stood."""
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    for node, call in ((1, "start"), (3001, "rename")):
        pause = small.drivers.of[node].pause(call)
        if node == 1:
            await small.roll_back()
        await pause.is_reached.wait()
        await small.workers.aclose()
        small.drivers.of[node].release(call)
        await small.start_workers()
    await ensure_back(small, originals)
    attempts = [(e.data["node"], e.data.get("attempt", 1)) for e in await small.events("step-done")]
    print(f"attempts at each step: {attempts}")
    assert {node for node, attempt in attempts if attempt > 1} == {"broker-1", "cluster"}
    assert small.cluster.restarts["broker-1"] == 4


async def test_a_cancel_on_the_way_back_finishes_the_step_and_leaves_the_cluster_serving(small: Any) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    pause = small.drivers.of[3001].pause("kill")
    await small.roll_back()
    await pause.is_reached.wait()
    await small.handle.cancel()
    await small.until(small.is_cancel_requested)
    small.drivers.of[3001].release("kill")
    with pytest.raises(WorkflowFailureError) as ended:
        await small.result()
    assert isinstance(ended.value.cause, CancelledError)
    (told,) = await small.events("cancelled")
    assert told.data["intent"] == "revert"
    assert (await small.events("step-done"))[-1].data["action"] == "leave-kraft"
    small.cluster.advance()
    await ensure_serving(small)
    assert small.cluster.side.controller is not None


async def test_a_window_that_is_refused_again_and_again_is_not_asked_for_ever_more_slowly(small: Any) -> None:
    """Its cluster may be without a controller: whoever mends what refuses it must not wait for minutes."""
    await small.lead_to(Phase.DUAL_WRITE)
    small.cluster.faults.forbidden_znodes = {"/controller"}
    await small.begin(is_held=True)
    await small.roll_back()
    await small.until_told("step-blocked", 5)
    blocked = [event.data["action"] for event in await small.events("step-blocked")]
    assert set(blocked) == {"leave-kraft"}
    timers = [
        event.timer_started_event_attributes.start_to_fire_timeout.ToTimedelta()
        for event in (await small.handle.fetch_history()).events
        if event.event_type == EventType.EVENT_TYPE_TIMER_STARTED
    ]
    print(f"pauses between windows that were refused: {[pause.total_seconds() for pause in timers]}")
    assert len(timers) > 3
    assert set(timers) == {small.policy.poll_interval}
    small.cluster.faults.forbidden_znodes = set()
    assert await small.result() == "reverted"


# ---- where nobody asked ----


async def test_a_copy_that_cannot_finish_turns_the_migration_round(small: Any, originals: dict[int, Any]) -> None:
    small.cluster.faults.poisoned_copy = True
    small.policy = small.policy.model_copy(update={"copy_deadline": small.policy.poll_interval})
    await small.begin()
    await ensure_back(small, originals)
    (told,) = await small.events("reverting")
    assert told.data["reason"] == "copy-cannot-finish"
    assert not await small.events("rollback-accepted")
    assert (await small.status()).intent == "revert"


# ---- where there is no way back any more ----


async def test_a_log_that_turns_out_final_leads_on_to_kraft(small: Any) -> None:
    """Accepted while the only controller was down on its way to the end: its log says MIGRATION no more when it is back."""
    await small.lead_to(Phase.SOAK)
    await small.begin()
    pause = small.drivers.of[3001].pause("start")
    await small.approve_gate()
    await pause.is_reached.wait()
    assert await small.roll_back() == "accepted"
    small.drivers.of[3001].release("start")
    assert await small.result() == "succeeded"
    (told,) = await small.events("way-back-closed")
    assert "final" in told.data["why"]
    progress = await small.progress()
    assert (progress.state, progress.intent, progress.outcome) == ("succeeded", "forward", "KRAFT")
