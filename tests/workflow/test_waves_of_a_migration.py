"""A migration in waves, as Temporal, the ledger and a person see it: one activity for a wave, and events of each broker."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from domain.records import Event

RESTARTS = {f"broker-{i}": 2 for i in range(1, 7)} | {"controller-3001": 1}
WAVES = {
    "migration": [["broker-4"], ["broker-2", "broker-5"], ["broker-3", "broker-6"], ["broker-1"]],
    "kraft": [["broker-1"], ["broker-2", "broker-5"], ["broker-3", "broker-6"], ["broker-4"]],
}
"""Broker 1 is ZooKeeper's controller, and brokers 1 and 4, 2 and 5, 3 and 6 stand in the same rack."""


@pytest.fixture
def racked(make_world: Callable[..., Any]) -> Any:
    """Six brokers in three racks and one controller, with a policy that lets three restart together."""
    world = make_world(brokers=6, controllers=1, racks=3, boot_looks=2)
    world.policy = world.policy.model_copy(update={"max_parallel": 3})
    return world


def by_step(events: list[Event]) -> list[list[str]]:
    steps: defaultdict[int, list[str]] = defaultdict(list)
    for event in events:
        steps[event.data["step"]].append(event.data["node"])
    return list(steps.values())


async def test_both_rolls_go_in_waves_and_each_broker_is_told_of(racked: Any) -> None:
    await racked.begin()
    await racked.approve_gate()
    assert await racked.result() == "succeeded"
    progress = await racked.progress()
    assert {node.name: node.restarts for node in progress.nodes} == RESTARTS
    for kind in ("step-started", "step-done"):
        rolls = [e for e in await racked.events(kind) if e.data["node"].startswith("broker")]
        told = {stage: by_step([e for e in rolls if e.data["stage"] == stage]) for stage in WAVES}
        assert told == WAVES
        assert all(e.data.get("together", [e.data["node"]]) in WAVES[e.data["stage"]] for e in rolls)
    returned = [e.data["node"] for e in await racked.events("step-done") if "leadership" in e.data]
    assert {"broker-2", "broker-3"} <= set(returned), "of a wave its first broker says it"

    histories = await racked.histories()
    summaries = [summary for history in histories for summary in racked.summaries(history)]
    assert summaries.count("Restart broker-2, broker-5 into stage migration") == 1
    assert summaries.count("Restart broker-2, broker-5 into stage kraft") == 1
    print(f"events in each run: {[len(history.events) for history in histories]}")


async def test_one_that_does_not_stop_is_told_left_out_and_rolled_later(racked: Any) -> None:
    racked.cluster.faults.ignores_stop.add(5)
    await racked.begin()
    left_out = await racked.until_told("step-blocked", node="broker-5")
    assert "decided again" in left_out.data["why"]
    assert not left_out.data["restarted"]
    (done,) = [e for e in await racked.events("step-done") if e.data["node"] == "broker-2"]
    assert (done.data["step"], done.data["restarted"]) == (left_out.data["step"], True)
    assert done.data["attempt"] > 1
    racked.cluster.faults.ignores_stop.clear()
    await racked.approve_gate()
    assert await racked.result() == "succeeded"
    assert {node.name: node.restarts for node in (await racked.progress()).nodes} == RESTARTS
    alone = [e.data for e in await racked.events("step-started") if e.data["node"] == "broker-5"]
    assert "together" not in alone[1]
