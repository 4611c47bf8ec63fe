"""Whether the nodes that stay while brokers restart get on: who stands still in the kernel is in sync for half a minute still.

An in-sync set is as old as replica.lag.time.max.ms (30 s), and gauges are answered from memory: a broker whose disk hangs looks
well by both, and with another one's stop no partition of theirs could be written any more (promise 5). A controller one thread
of which stands may lead on, and answer no broker that asks to go, or to come back. Whose packets to the others are lost is
in sync as long, too.
"""

import asyncio
import time
from collections.abc import Callable, Collection

from activities.node_files import properties_of
from activities.observing.node_survey import CannotLook
from activities.own_network import Unresolved, resolve
from activities.ports.kafka import Listeners
from activities.ports.nodes import NodeDriver, NodeDrivers
from activities.ports.ports import Ports
from domain.cluster import ClusterSpec, ControllerSpec, NodeSpec, address_at, addresses_of, host_and_port
from domain.configuration.listener_security import LISTENERS
from domain.diagnosis.machines.signs import of_standstill
from domain.diagnosis.machines.vital_signs import VitalSigns
from domain.errors import KeeperlessError, Transient

AT_ONCE = 12
"""Nodes that are looked at, each for a second."""
PATIENCE = 6.0
"""Seconds for all: who is not heard by then has nothing said of him, and the look before the stop grows old meanwhile."""
MAX_AGE_OF_SIGNS = 10.0
"""Seconds in which another stop may rest on them: they tell of what lasts."""
RESOLVED_IN = 1.0
THE_WAY = (
    "Check the network path there from its machine: a firewall, a route, a link that loses packets, an address that has "
    "changed. With one more node away, partitions could become unwritable. The migration then continues by itself."
)


class Watched:
    """What machines say of nodes that stay, each asked for more than a second. A proof begins it, as it has to wait anyway; the
    stop that follows within seconds finds it done. Kept in this process alone, and by the nodes' processes.
    """

    def __init__(self, ports: Ports, clock: Callable[[], float] = time.monotonic) -> None:
        self._ports, self._clock = ports, clock
        self._free = asyncio.Semaphore(AT_ONCE)
        self._told: dict[tuple[str, int, str], tuple[float, asyncio.Task[VitalSigns | None]]] = {}
        self._begun = set[asyncio.Task[VitalSigns | None]]()

    def begin(self, spec: ClusterSpec) -> None:
        """Ask of all nodes again, and wait for none. What fails is asked again when it is needed."""
        for node in spec.nodes:
            asking = asyncio.create_task(self.signs(spec, node, 0.0))
            self._begun.add(asking)
            asking.add_done_callback(self._begun.discard)
            asking.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def signs(self, spec: ClusterSpec, node: NodeSpec, max_age: float = MAX_AGE_OF_SIGNS) -> VitalSigns | None:
        """As told within the last seconds, or now. `None` where nothing can be told. Raises `CannotLook`, `KeeperlessError`."""
        driver = self._ports.drivers.driver(node)
        process = await driver.process()
        if not process.is_running or process.identity is None:
            return None
        now, key = self._clock(), (spec.name, node.id, process.identity)
        self._told = {one: kept for one, kept in self._told.items() if now - kept[0] <= MAX_AGE_OF_SIGNS}
        found = self._told.get(key)
        if found is None or _has_failed(found[1]) or (found[1].done() and now - found[0] > max_age):
            self._told[key] = now, asyncio.create_task(self._ask(driver, node, int(process.pid)))
        return await asyncio.shield(self._told[key][1])

    async def _ask(self, driver: NodeDriver, node: NodeSpec, pid: int) -> VitalSigns | None:
        async with self._free:
            return await self._ports.doctor.watch(driver, node, pid)


def _has_failed(asking: "asyncio.Task[VitalSigns | None]") -> bool:
    return asking.done() and (asking.cancelled() or asking.exception() is not None)


async def why_others_do_not_get_on(spec: ClusterSpec, stopped: Collection[int], ports: Ports, watched: Watched) -> str | None:
    """`stopped`: brokers that are to be. `None` where no other one is seen to stand still, or to be cut off; a machine that
    cannot be asked says nothing, for its node is looked at in all other ways."""
    others = [node for node in spec.nodes if node.id not in stopped]
    asked = [asyncio.ensure_future(_why(spec, node, stopped, ports, watched)) for node in others]
    if not asked:
        return None
    try:
        done, _ = await asyncio.wait(asked, timeout=PATIENCE)
    finally:
        for one in asked:
            one.cancel()
    return next((found for one in asked if one in done and (found := one.result()) is not None), None)


async def _missed(spec: ClusterSpec, unheard: Collection[str], stopped: Collection[int], drivers: NodeDrivers) -> list[str]:
    """Those of these addresses at which nodes that stay listen: by the port, for an address may have changed under a node that
    has kept the one of before. Those that are to be stopped others may miss."""
    if not unheard:
        return []
    ports, going = set[int](), set[str]()
    for node in spec.nodes:
        for host, port in await _listening(node, drivers):
            if node.id not in stopped:
                ports.add(port)
            else:
                going.update(address_at(number, port) for number in await _numbers(host))
    return [where for where in unheard if host_and_port(where)[1] in ports and where not in going]


async def _listening(node: NodeSpec, drivers: NodeDrivers) -> list[tuple[str, int]]:
    if isinstance(node, ControllerSpec):
        return [(node.host, node.port)]
    try:
        kept = await properties_of(drivers.driver(node), node)
    except KeeperlessError:
        return []
    return [host_and_port(address) for key in LISTENERS for address in addresses_of(kept.get(key, "")).values()]


async def _numbers(host: str) -> tuple[str, ...]:
    try:
        return (await resolve(host, RESOLVED_IN)).numbers if host else ()
    except (Unresolved, Transient):
        return ()


async def _why(spec: ClusterSpec, node: NodeSpec, stopped: Collection[int], ports: Ports, watched: Watched) -> str | None:
    try:
        signs = await watched.signs(spec, node)
    except (CannotLook, KeeperlessError):
        return None
    if signs is None:
        return None
    found = next(of_standstill(signs), None)
    if found is not None:
        return f"{spec.node_name(node.id)} is unresponsive: {found.observed}. Nothing was stopped: {found.fix}"
    missed = await _missed(spec, signs.unheard, stopped, ports.drivers)
    if not missed:
        return None
    sent = f"what it sends to {', '.join(missed)} is not acknowledged"
    return f"{spec.node_name(node.id)}: {sent}. Nothing was stopped: {THE_WAY}"


async def why_no_quorum_would_stay(spec: ClusterSpec, stopped: Collection[int], listeners: Listeners) -> str | None:
    """Whether a quorum stays while controllers restart. One whose listener is shut fetches from the leader, has every record,
    and looks well by all of its gauges. It cannot be asked for its vote, and cannot be followed, so it does not count in the
    majority that has to stay (promise 5).

    `stopped`: controllers that are to be. `None` where the others that are reached are a majority of all, or there is none.

    Where none accepts us, those to be stopped neither, it is our own way that is shut, and nothing is said of theirs.
    """
    others = [c for c in spec.controllers if c.id not in stopped]
    names = ", ".join(spec.node_name(i) for i in stopped)
    try:
        answers = await asyncio.gather(*(listeners.is_answering(c.host, c.port) for c in spec.controllers))
    except Transient as error:
        return f"{names}: whether the other controllers can be reached is not known: {error}"
    reached = {c.id for c, answers_us in zip(spec.controllers, answers, strict=True) if answers_us}
    shut = [c for c in others if c.id not in reached]
    if not others or not reached or 2 * (len(others) - len(shut)) > len(spec.controllers):
        return None
    return (
        f"{_places(spec, shut)}: no connection is accepted there within two seconds. Without {names} no majority of the "
        "controllers could vote and be followed. Nothing was stopped. Open the network path: a firewall, an IPsec policy, "
        "the listener's address"
    )


def _places(spec: ClusterSpec, shut: Collection[ControllerSpec]) -> str:
    return ", ".join(f"{spec.node_name(c.id)} at {c.host}:{c.port}" for c in shut)
