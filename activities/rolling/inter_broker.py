"""Whether a broker that starts with its file as it lies there would find the others where it asks them.

A change of inter.broker.listener.name is written into all files, and comes into force with whatever restarts a broker first: it
fetches from nobody (Kafka has no node at a listener that a leader has not got), and nobody says why.
"""

from collections.abc import Sequence

from activities.node_files import properties_of
from activities.observing.addresses import given_addresses
from activities.ports.ports import Ports
from activities.ports.zookeeper import session
from domain.checks.check import some
from domain.cluster import NodeSpec
from domain.configuration.listener_security import inter_broker_listener
from domain.errors import KeeperlessError
from domain.records import ClusterRecord

PROVIDED = "${"
"""Of a value that a config provider gives (KIP-421)."""
TWO_ROLLS = (
    "Restore that line in all files until the migration has ended. A listener comes in two rolls: first every broker gets "
    "it (listeners, advertised.listeners, listener.security.protocol.map) and is restarted, and only then "
    "inter.broker.listener.name."
)


async def why_others_not_found(cluster: ClusterRecord, brokers: Sequence[NodeSpec], ports: Ports) -> str | None:
    """`brokers`: that are to be restarted. Of brokers in KRaft mode ZooKeeper has no registration, and after the end nobody
    needs ZooKeeper: who is not registered there has nothing said against him."""
    others = [broker.id for broker in cluster.spec.brokers if broker not in brokers]
    try:
        async with session(ports.zookeepers, cluster) as tree:
            registered = (await given_addresses(tree, others)).registered
    except KeeperlessError:
        return None
    for broker in brokers:
        properties = await properties_of(ports.drivers.driver(broker), broker)
        listener = inter_broker_listener(properties)
        lacking = [cluster.spec.node_name(i) for i, known in registered.items() if listener not in map(str.upper, known)]
        if properties and lacking and not listener.startswith(PROVIDED):
            return (
                f"{cluster.spec.node_name(broker.id)}: by {broker.properties_file} it would connect to the other brokers' "
                f"listener {listener}, and {some(lacking)} {'has' if len(lacking) == 1 else 'have'} none of that name "
                "(endpoints in /brokers/ids). Nothing was stopped: the broker runs, and would no longer catch up. "
                f"{TWO_ROLLS}"
            )
    return None
