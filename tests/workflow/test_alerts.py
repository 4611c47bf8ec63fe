"""What somebody should know though nothing waits for it is told once, as an event, and changes nothing else."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from domain.zk_to_kraft.phases import Phase


async def alerts(world: Any) -> list[str]:
    return [event.data["object"] for event in await world.events("alert")]


async def test_an_edit_of_a_node_that_we_changed_is_told_once_and_ends_with_it(small: Any) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    node = small.cluster.nodes[2]
    path = node.spec.properties_file
    before = node.machine.read(path)
    node.machine.write(path, type(before)(before.content + b"\n# somebody\n", before.mode, before.uid, before.gid))
    told = await small.until_told("alert")
    assert (told.data["code"], told.data["object"]) == ("GF14", "file of broker-2")
    assert told.data["docs"] == "docs/guards.md#gf14"

    async def has_alerts(count: int) -> bool:
        return len((await small.progress()).alerts) == count

    assert await small.until(lambda: has_alerts(1))
    node.machine.write(path, before)
    assert await small.until(lambda: has_alerts(0))
    await small.until_gate()
    assert await alerts(small) == ["file of broker-2"]
    await small.approve_gate()
    assert await small.result() == "succeeded"


async def test_a_restart_by_somebody_else_is_told(small: Any) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    small.cluster.nodes[1].die()
    small.cluster.nodes[1].start()
    told = await small.until_told("alert")
    assert (told.data["code"], told.data["object"]) == ("GF14", "process of broker-1")
    await small.until_gate()
    await small.approve_gate()
    assert await small.result() == "succeeded"


async def test_a_standstill_is_told_once_and_nothing_follows_from_it(make_world: Callable[..., Any]) -> None:
    world = make_world(controllers=1)
    world.policy = world.policy.model_copy(
        update={"stage_deadline": timedelta(seconds=1), "restart_deadline": timedelta(seconds=2)}
    )
    await world.lead_to(Phase.BROKERS_TO_HYBRID)
    world.cluster.faults.never_registers = {1, 2}
    await world.begin()
    await world.until_waiting("brokers-not-registered")
    told = await world.until_told("alert")
    assert (told.data["code"], told.data["object"]) == ("GF15", "progress")
    assert await world.until(lambda: world.is_quiet(1.5))
    assert (await world.progress()).waiting.reason == "brokers-not-registered"
    world.cluster.faults.never_registers = set()
    await world.until_gate()
    assert set(await alerts(world)) == {"progress"}
