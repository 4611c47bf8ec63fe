"""Whether the nodes that stay while brokers restart get on: who stands still in the kernel is in sync for half a minute still.

An in-sync set is as old as replica.lag.time.max.ms (30 s), and gauges are answered from memory: a broker whose disk hangs looks
well by both, and with another one's stop no partition of theirs could be written any more (promise 5). A controller one thread
of which stands may lead on, and answer no broker that asks to go, or to come back.
"""

import asyncio
from collections.abc import Collection

from activities.observing.node_survey import CannotLook, watch_process
from activities.ports.nodes import NodeDrivers
from domain.cluster import ClusterSpec, NodeSpec
from domain.errors import KeeperlessError
from domain.machines.standstill_signs import of_standstill

AT_ONCE = 12
"""Nodes that are looked at, each for a second."""
PATIENCE = 6.0
"""Seconds for all: who is not heard by then has nothing said of him, and the look before the stop grows old meanwhile."""


async def why_others_stand_still(spec: ClusterSpec, stopped: Collection[int], drivers: NodeDrivers) -> str | None:
    """`stopped`: brokers that are to be. `None` where no other one is seen to stand still; a machine that cannot be asked says
    nothing, for its node is looked at in all other ways."""
    free = asyncio.Semaphore(AT_ONCE)

    async def why(node: NodeSpec) -> str | None:
        async with free:
            return await _why(spec, node, drivers)

    asked = [asyncio.ensure_future(why(node)) for node in spec.nodes if node.id not in stopped]
    if not asked:
        return None
    try:
        done, _ = await asyncio.wait(asked, timeout=PATIENCE)
    finally:
        for one in asked:
            one.cancel()
    return next((found for one in asked if one in done and (found := one.result()) is not None), None)


async def _why(spec: ClusterSpec, node: NodeSpec, drivers: NodeDrivers) -> str | None:
    driver = drivers.driver(node)
    try:
        process = await driver.process()
        if not process.is_running or process.identity is None:
            return None
        signs = await watch_process(driver, node, int(process.pid))
    except (CannotLook, KeeperlessError):
        return None
    alone = signs.model_copy(update={"tracer": None, "debugger": None})  # who may only watch
    found = next(of_standstill(alone), None)
    if found is None:
        return None
    return f"{spec.node_name(node.id)} stands still: {found.observed}. Nothing was stopped: {found.fix}"
