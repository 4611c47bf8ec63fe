"""What does not answer, does not come up, or goes wrong for good: the migration waits, says why, and goes on."""

import asyncio
import itertools
import re
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowUpdateFailedError

from domain.checks.acceptance import blockers_in
from domain.errors import Permanent, Transient, Unsafe
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.steps import GateName

pytestmark = pytest.mark.chaos


async def test_a_refused_preflight_touches_nothing(small: Any) -> None:
    small.cluster.znodes["/admin/delete_topics/orders"] = b""
    before = {i: dict(node.machine.files) for i, node in small.cluster.nodes.items()}
    await small.begin()
    assert await small.result() == "refused"
    record = await small.record()
    assert record.progress.state == "refused"
    first, *rest = record.progress.findings
    assert first.code == "PF13"
    assert blockers_in(rest, small.policy) == (), "what stops nothing comes after what does"
    assert record.ended_at is not None
    assert {i: dict(node.machine.files) for i, node in small.cluster.nodes.items()} == before
    assert not any(small.cluster.restarts.values())
    (told,) = await small.events("refused")
    assert told.data["findings"][0]["object"] == "/admin/delete_topics"


async def test_what_only_the_survey_finds_refuses_too(small: Any) -> None:
    small.cluster.faults.silent_servers.add("zk-3:2181")
    await small.begin()
    assert await small.result() == "refused"
    first = (await small.record()).progress.findings[0]
    assert (first.code, first.object) == ("PF09", "ZooKeeper zk-3:2181")
    assert not any(small.cluster.restarts.values())


@pytest.mark.parametrize("part", ["zookeeper", "metrics of broker-2", "process of controller-3001"])
async def test_a_part_that_does_not_answer_is_waited_for_by_name(small: Any, part: str) -> None:
    faults = small.cluster.faults
    await small.lead_to(Phase.DUAL_WRITE)
    if part == "zookeeper":
        faults.silent_zookeeper = True
    elif part.startswith("metrics"):
        faults.silent_metrics.add(2)
    else:
        faults.silent_nodes.add(3001)
    before = small.cluster.restarts
    await small.begin()
    progress = await small.until_waiting("part-unknown")
    assert progress.state == "waiting"
    assert part in progress.waiting.objects
    assert "does not answer" in progress.waiting.detail or "no session" in progress.waiting.detail
    assert small.cluster.restarts == before
    faults.silent_zookeeper = False
    faults.silent_metrics.clear()
    faults.silent_nodes.clear()
    await small.approve_gate()
    assert await small.result() == "succeeded"


async def test_a_broker_that_does_not_come_up_stops_all_until_it_is_started_by_hand(small: Any) -> None:
    await small.lead_to(Phase.DUAL_WRITE)
    small.cluster.faults.dies_at_start[2] = ("ERROR Exiting Kafka due to fatal exception", "FATAL no space left on device")
    await small.begin()
    progress = await small.until_waiting("node-down")
    assert progress.waiting.objects == ("broker-2",)
    assert "no space left on device" in progress.waiting.detail
    (blocked,) = await small.events("step-blocked")
    assert "no space left on device" in blocked.data["why"]
    untouched = {name: starts for name, starts in small.cluster.restarts.items() if name != "broker-2"}
    del small.cluster.faults.dies_at_start[2]
    small.cluster.nodes[2].start()
    await small.approve_gate()
    assert await small.result() == "succeeded"
    final = small.cluster.restarts
    assert {name: final[name] - n for name, n in untouched.items()} == {"broker-1": 0, "broker-3": 1, "controller-3001": 1}
    told = {node.name: node.restarts for node in (await small.progress()).nodes}
    assert told["broker-2"] == 1, "the start by hand is not ours"


@pytest.mark.parametrize("error", [Unsafe("the archive does not read back"), Permanent("no such program")])
async def test_an_error_that_nothing_mends_holds_the_migration_until_resume(small: Any, error: Exception) -> None:
    await small.lead_to(Phase.DUAL_WRITE)
    small.drivers.of[1].faults["write_file"] = error
    before = small.cluster.restarts
    await small.begin()
    progress = await small.until_waiting("held")
    assert progress.state == "held"
    assert str(error) in progress.waiting.detail
    assert "broker-1" in progress.waiting.detail
    assert small.cluster.restarts == before
    (told,) = await small.events("held")
    assert (told.data["by"], told.data["error"]) == ("keeperless", type(error).__name__)
    small.drivers.of[1].faults.clear()
    await small.resume()
    await small.approve_gate()
    assert await small.result() == "succeeded"


async def test_an_error_in_finalisation_is_not_tried_in_a_circle(small: Any, count_events: Any) -> None:
    """The error itself stops the run. Nothing could be written, so the approval has not been used up either."""
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    controller = small.drivers.of[3001]
    controller.faults["write_file"] = Unsafe("the disk is read-only")
    controller.calls.clear()
    await small.approve_gate()
    progress = await small.until_waiting("held")
    assert "read-only" in progress.waiting.detail
    await small.until(lambda: small.is_quiet(0.5))
    assert controller.calls.count("write_file") == 1
    (command,) = await small.book.commands(small.migration_id)
    assert command.consumed_at is None
    controller.faults.clear()
    assert '"begin": "finalize"' in await small.resume()
    assert await small.resume(GateName.FINALIZE) == "resumed"
    assert await small.result() == "succeeded"
    assert len(await small.events("held")) == 1


async def test_an_error_while_looking_shows_as_held_everywhere(small: Any) -> None:
    await small.lead_to(Phase.DUAL_WRITE)
    small.ledger.faults["cluster"] = Permanent("cluster orders is not registered")
    await small.begin()
    progress = await small.until_waiting("held")
    assert re.search(r"not registered \(at \d+@\S+\)$", progress.waiting.detail), "who has failed, of several workers"
    assert await small.until(lambda: small.search_attribute("Waiting")) == "held"
    assert "not registered" in await small.current_details()
    small.ledger.faults.clear()
    await small.resume()
    await small.approve_gate()
    assert await small.result() == "succeeded"


async def test_a_step_that_is_refused_again_and_again_is_asked_for_ever_more_slowly(small: Any) -> None:
    """A look says go, the look right before the effect says no, and so on: a cluster that flickers. It must not spin."""
    await small.lead_to(Phase.DUAL_WRITE)
    small.flicker()
    await small.begin()
    await small.until_told("step-blocked", 4)
    timers = [
        event.timer_started_event_attributes.start_to_fire_timeout.ToTimedelta()
        for event in (await small.handle.fetch_history()).events
        if event.event_type == EventType.EVENT_TYPE_TIMER_STARTED
    ]
    print(f"pauses between steps that were refused: {[pause.total_seconds() for pause in timers]}")
    assert all(later == 2 * earlier for earlier, later in itertools.pairwise(timers))
    assert len(timers) > 2
    small.kafka.changes.clear()
    await small.approve_gate()
    assert await small.result() == "succeeded"
    assert small.drivers.of[1].calls.count("stop") == 1


async def test_a_superseded_run_ends_without_effect(small: Any) -> None:
    await small.lead_to(Phase.DUAL_WRITE)
    pause = small.kafka.pause("view")
    await small.begin()
    await pause.is_reached.wait()
    before = small.cluster.restarts
    await small.supersede()
    small.kafka.release("view")
    assert await small.result() == "superseded"
    assert small.cluster.restarts == before


async def test_a_superseded_run_answers_who_had_asked_it_something(small: Any) -> None:
    """A run that closes before it answers would leave its command without an answer for ever."""
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    pause = small.ledger.pause("command")
    asked = asyncio.create_task(small.roll_back())
    await pause.is_reached.wait()
    await small.supersede()
    await small.until(lambda: small.is_quiet(1))
    small.ledger.release("command")
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await asked
    assert "the migration has ended meanwhile" in str(refused.value.cause)
    assert await small.result() == "superseded"


async def test_a_second_run_of_one_migration_ends_at_once(small: Any) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    first = small.handle
    await small.start()
    assert await small.result() == "superseded"
    small.handles.reverse()
    assert small.handle.id == first.id
    await small.approve_gate()
    assert await small.result() == "succeeded"


async def test_a_ledger_that_is_down_delays_and_loses_nothing(small: Any, ledger_is_down: Exception) -> None:
    await small.lead_to(Phase.DUAL_WRITE)
    await small.begin()
    await small.until_told("step-started")
    small.ledger.faults["*"] = ledger_is_down
    started = len(small.ledger.calls)
    await small.until(lambda: small.has_asked(small.ledger, "*", started + 4))
    small.ledger.faults.clear()
    await small.approve_gate()
    assert await small.result() == "succeeded"
    assert await small.book.verify_chain() is None
    steps = [e.data["step"] for e in await small.events("step-started")]
    blocked = [e.data["step"] for e in await small.events("step-blocked")]
    assert steps == sorted([*blocked, *(e.data["step"] for e in await small.events("step-done"))])
    assert set(blocked) <= {steps[0]}, "what had not begun when the ledger went silent is looked at anew"


async def test_a_ledger_that_refuses_the_record_costs_no_history(small: Any, count_events: Any) -> None:
    await small.lead_to(Phase.SOAK)
    small.ledger.faults["record"] = Permanent("the schema is older than this program")
    await small.begin()
    await small.until(lambda: small.has_asked(small.ledger, "record", 3))
    before = len((await small.handle.fetch_history()).events)
    await small.until(lambda: small.has_asked(small.ledger, "record", 4))
    assert len((await small.handle.fetch_history()).events) <= before + 2
    small.ledger.faults.clear()
    await small.approve_gate()
    assert await small.result() == "succeeded"


async def test_a_node_that_does_not_answer_during_its_roll_is_waited_for(small: Any) -> None:
    await small.lead_to(Phase.DUAL_WRITE)
    small.drivers.of[1].faults["stop"] = Transient("broker-1: no answer")
    await small.begin()
    await small.until(lambda: small.has_asked(small.drivers.of[1], "stop", 2))
    small.drivers.of[1].faults.clear()
    await small.approve_gate()
    assert await small.result() == "succeeded"
