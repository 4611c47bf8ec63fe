"""At which addresses brokers are to be found: as they are registered, as somebody has set them, and whether anybody is there.

Looked for where Kafka does not answer or replicas lag, for people only.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from activities.observing.in_time import in_time
from activities.observing.zookeeper_view import BROKER_CONFIGS, BROKER_IDS
from activities.ports.kafka import Listeners, LookedUp
from activities.ports.zookeeper import Znode, ZooKeeperTree, config_in, object_in
from domain.cluster import ClusterSpec, NodeSpec, addresses_of, host_and_port, host_of, servers_in
from domain.observed.observation import NodeView

ADVERTISED = "advertised.listeners"

Addresses = Mapping[str, str]
"""Of one broker: `host:port` by the listener's name."""


@dataclass(frozen=True)
class Given:
    """By broker id what ZooKeeper has: `registered`, which clients and brokers go by, and `set_dynamically`, which wins over
    a broker's file in ZooKeeper and hybrid mode."""

    registered: Mapping[int, Addresses] = field(default_factory=dict)
    set_dynamically: Mapping[int, Addresses] = field(default_factory=dict)


async def given_addresses(tree: ZooKeeperTree, broker_ids: Sequence[int]) -> Given:
    registrations = await tree.get_many([f"{BROKER_IDS}/{broker_id}" for broker_id in broker_ids])
    configs = await tree.get_many([f"{BROKER_CONFIGS}/{broker_id}" for broker_id in broker_ids])
    return Given(
        registered=_known(broker_ids, [_registered(znode) for znode in registrations]),
        set_dynamically=_known(broker_ids, [_set(znode) for znode in configs]),
    )


def written_addresses(node: NodeSpec, view: NodeView) -> Addresses:
    """By the broker's file, which is all that tells of a broker in KRaft mode."""
    properties = view.disk.file.properties if view.disk is not None and view.disk.file is not None else {}
    found = addresses_of(properties.get(ADVERTISED) or properties.get("listeners", ""))
    return {name: _of_host(address, node.host) for name, address in found.items()}


KNOCKS = 8
"""At one address at once, each from a port of its own. Where half of all ports are lost, all eight meet with the same fate less
than once in a hundred looks."""

AT_ONCE = 200
"""Of all knocks together: each takes a socket."""


@dataclass(frozen=True)
class Knocked:
    """By broker id. `unheard`: addresses that accept no connection from us, while another broker's listener of the same name
    does; one that accepts us nowhere may be none for us. `partly`: those that accept some, and how many of how many. `cut`: of
    both, those at which connections are reset as soon as they are made."""

    unheard: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    partly: Mapping[int, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    cut: frozenset[str] = frozenset()


async def knocked_at(addresses: Mapping[int, Addresses], listeners: Listeners, silent: list[str]) -> Knocked:
    """All of them at once."""
    places = [(broker_id, name, address) for broker_id, known in addresses.items() for name, address in known.items()]
    times = max(1, min(KNOCKS, AT_ONCE // max(1, len(places))))
    counts = await asyncio.gather(*(_knocks(listeners, address, times, silent) for _, _, address in places))
    heard = {name for (_, name, _), count in zip(places, counts, strict=True) if count}
    unheard: dict[int, tuple[str, ...]] = {}
    partly: dict[int, dict[str, tuple[int, int]]] = {}
    for (broker_id, name, address), count in zip(places, counts, strict=True):
        if 0 < count < times:
            partly.setdefault(broker_id, {})[address] = (count, times)
        elif not count and name in heard:
            unheard[broker_id] = (*unheard.get(broker_id, ()), address)
    odd = sorted({address for known in (*unheard.values(), *partly.values()) for address in known})
    cut = await asyncio.gather(*(_is_cut_off(listeners, address, silent) for address in odd))
    return Knocked(unheard, partly, frozenset(address for address, is_cut in zip(odd, cut, strict=True) if is_cut))


async def _is_cut_off(listeners: Listeners, address: str, silent: list[str]) -> bool:
    what = f"whether connections to {address} are reset"
    return await in_time(what, lambda: listeners.is_cut_off(*host_and_port(address)), silent, default=False)


async def _knocks(listeners: Listeners, address: str, times: int, silent: list[str]) -> int:
    """How many of them were answered. A name is looked up once."""
    host, port = host_and_port(address)
    numbers = (await listeners.look_up(host)).numbers
    at = f"{numbers[0]}:{port}" if numbers else address
    told: list[str] = []
    answers = await asyncio.gather(*(knock(listeners, at, told) for _ in range(times)))
    silent.extend(line.replace(at, address) for line in dict.fromkeys(told))
    return sum(answers)


async def knock(listeners: Listeners, address: str, silent: list[str]) -> bool:
    """Whether anybody accepts connections there. Where we cannot even ask, nothing is said against him."""
    return await in_time(f"a knock at {address}", lambda: listeners.is_answering(*host_and_port(address)), silent, default=True)


async def names_of(spec: ClusterSpec, listeners: Listeners) -> dict[str, LookedUp]:
    """All that the specification has, looked up on this machine."""
    addresses = [
        *(node.metrics.url for node in spec.nodes),
        *(f"{controller.host}:{controller.port}" for controller in spec.controllers),
        *spec.kafka.bootstrap_servers,
        *servers_in(spec.ensemble.connect),
    ]
    names = sorted({host_of(address) for address in addresses})
    answers = await asyncio.gather(*(listeners.look_up(name) for name in names))
    return dict(zip(names, answers, strict=True))


def _known(broker_ids: Sequence[int], found: Sequence[Addresses]) -> dict[int, Addresses]:
    return {broker_id: addresses for broker_id, addresses in zip(broker_ids, found, strict=True) if addresses}


def _registered(znode: Znode | None) -> Addresses:
    endpoints = object_in(znode).get("endpoints")
    return addresses_of(",".join(map(str, endpoints))) if isinstance(endpoints, list) else {}


def _set(znode: Znode | None) -> Addresses:
    return addresses_of(str(config_in(znode).get(ADVERTISED, ""))) if znode is not None else {}


def _of_host(address: str, host: str) -> str:
    """A listener on every interface is reached at the node's own name."""
    name, port = host_and_port(address)
    return f"{host}:{port}" if name in {"", "0.0.0.0", "::"} else address  # noqa: S104 - compared, not bound to
