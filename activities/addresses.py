"""At which addresses brokers are to be found: as they are registered, as somebody has set them, and whether anybody is there.

Looked for where Kafka does not answer or replicas lag, for people only.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from activities.in_time import in_time
from activities.poison import BROKER_CONFIGS
from activities.ports.kafka import Listeners, LookedUp
from activities.ports.zookeeper import Znode, ZooKeeperTree
from activities.zookeeper_view import BROKER_IDS
from domain.cluster import ClusterSpec, NodeSpec, addresses_of, host_and_port, host_of, servers_in
from domain.observation import NodeView

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


async def unheard_addresses(
    addresses: Mapping[int, Addresses], listeners: Listeners, silent: list[str]
) -> dict[int, tuple[str, ...]]:
    """By broker id those that accept no connection from us, while another broker's listener of the same name does.

    A listener that accepts us nowhere may be none for us: nothing is said of it.
    """
    places = [(broker_id, name, address) for broker_id, known in addresses.items() for name, address in known.items()]
    answers = await asyncio.gather(*(knock(listeners, address, silent) for _, _, address in places))
    heard = {name for (_, name, _), answers_us in zip(places, answers, strict=True) if answers_us}
    found: dict[int, tuple[str, ...]] = {}
    for (broker_id, name, address), answers_us in zip(places, answers, strict=True):
        if not answers_us and name in heard:
            found[broker_id] = (*found.get(broker_id, ()), address)
    return found


async def knock(listeners: Listeners, address: str, silent: list[str]) -> bool:
    """Whether anybody accepts connections there. Where we cannot even ask, nothing is said against him."""
    return await in_time(f"a knock at {address}", lambda: listeners.is_answering(*host_and_port(address)), silent, default=True)


async def names_of(spec: ClusterSpec, listeners: Listeners) -> dict[str, LookedUp]:
    """All that the specification has, looked up on this machine."""
    addresses = [
        *(node.metrics.url for node in spec.nodes),
        *(f"{controller.host}:{controller.port}" for controller in spec.controllers),
        *spec.kafka.bootstrap_servers,
        *servers_in(spec.zookeeper.connect),
    ]
    names = sorted({host_of(address) for address in addresses})
    answers = await asyncio.gather(*(listeners.look_up(name) for name in names))
    return dict(zip(names, answers, strict=True))


def _known(broker_ids: Sequence[int], found: Sequence[Addresses]) -> dict[int, Addresses]:
    return {broker_id: addresses for broker_id, addresses in zip(broker_ids, found, strict=True) if addresses}


def _registered(znode: Znode | None) -> Addresses:
    endpoints = _content(znode).get("endpoints")
    return addresses_of(",".join(map(str, endpoints))) if isinstance(endpoints, list) else {}


def _set(znode: Znode | None) -> Addresses:
    config = _content(znode).get("config")
    return addresses_of(str(config.get(ADVERTISED, ""))) if isinstance(config, dict) else {}


def _content(znode: Znode | None) -> dict[str, Any]:
    """What cannot be parsed tells no address."""
    try:
        content = json.loads(znode.data) if znode is not None else None
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _of_host(address: str, host: str) -> str:
    """A listener on every interface is reached at the node's own name."""
    name, port = host_and_port(address)
    return f"{host}:{port}" if name in {"", "0.0.0.0", "::"} else address  # noqa: S104 - compared, not bound to
