"""Whose the addresses are that connections lead to: what is not acknowledged at one that is in trouble is its own trouble."""

from collections.abc import Collection, Iterable, Iterator

from domain.cluster import address_at, address_in, addresses_of, host_of, servers_in
from domain.configuration.listener_security import LISTENERS
from domain.zk_to_kraft.causes.case import Looked


def listening(looked: Looked) -> Iterator[tuple[str, str]]:
    """`host:port` of nodes and of ZooKeeper's servers, with their names; a kernel knows only those that are numbers."""
    places = [(server, "ZooKeeper") for server in servers_in(looked.spec.zookeeper.connect)]
    places += [(f"{controller.host}:{controller.port}", looked.name(controller.id)) for controller in looked.spec.controllers]
    for broker in looked.spec.brokers:
        kept = looked.properties(broker.id)
        addresses = [address for key in LISTENERS for address in addresses_of(kept.get(key, "")).values()]
        places += [(address, looked.name(broker.id)) for address in addresses]
    return _with_numbers(looked, places)


def owned_by(looked: Looked, troubled: Collection[str]) -> dict[str, str]:
    """The addresses of these, metrics endpoints too, with who it is. Of a server of ZooKeeper also where the ensemble is."""
    places = [(server, f"zookeeper {server}") for server in servers_in(looked.spec.zookeeper.connect)]
    places += [(address_in(node.metrics.url), looked.name(node.id)) for node in looked.spec.nodes]
    known = (*listening(looked), *_with_numbers(looked, places))
    return {address: name for address, name in known if name in troubled}


def _with_numbers(looked: Looked, places: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for address, name in places:
        yield address, name
        for number in looked.hints.numbers.get(host_of(address), ()):
            yield address_at(number, address.rpartition(":")[2]), name
