"""Whose the addresses are that connections lead to: what is not acknowledged at one that is in trouble is its own trouble."""

from collections.abc import Collection, Iterator
from urllib.parse import urlsplit

from domain.cluster import servers_in
from domain.zk_to_kraft.causes import Looked

LISTENERS = ("advertised.listeners", "listeners")


def listening(looked: Looked) -> Iterator[tuple[str, str]]:
    """`host:port` of nodes and of ZooKeeper's servers, with their names; a kernel knows only those that are numbers."""
    for server in servers_in(looked.spec.zookeeper.connect):
        yield server, "ZooKeeper"
    for controller in looked.spec.controllers:
        yield f"{controller.host}:{controller.port}", looked.name(controller.id)
    for broker in looked.spec.brokers:
        kept = looked.properties(broker.id)
        for listener in ",".join(kept.get(name, "") for name in LISTENERS).split(","):
            yield urlsplit(listener.strip()).netloc, looked.name(broker.id)


def owned_by(looked: Looked, troubled: Collection[str]) -> dict[str, str]:
    """The addresses of these, metrics endpoints too, with who it is. Of a server of ZooKeeper also where the ensemble is."""
    places = list(listening(looked))
    places += [(server, f"zookeeper {server}") for server in servers_in(looked.spec.zookeeper.connect)]
    places += [(urlsplit(node.metrics.url).netloc.rpartition("@")[2], looked.name(node.id)) for node in looked.spec.nodes]
    return {address: name for address, name in places if name in troubled}
