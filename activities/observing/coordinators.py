"""When the partitions were made by whose number brokers find coordinators, as ZooKeeper has it."""

from datetime import datetime

from activities.concurrently import all_of
from activities.node_files import properties_of
from activities.observing.zookeeper_view import TOPICS
from activities.ports.ports import Ports
from activities.ports.zookeeper import ZooKeeperTree, session
from domain.observed.coordinators import COORDINATED, Miscount, counters, miscounts
from domain.records import ClusterRecord


async def made_at(tree: ZooKeeperTree) -> dict[str, dict[int, datetime]]:
    """By topic and number; of topics that are there."""
    found = {topic: await _made_at(tree, f"{TOPICS}/{topic}/partitions") for topic in COORDINATED}
    return {topic: made for topic, made in found.items() if made}


async def _made_at(tree: ZooKeeperTree, folder: str) -> dict[int, datetime]:
    names = [name for name in await tree.children(folder) or () if name.isdecimal()]
    znodes = await tree.get_many([f"{folder}/{name}" for name in names])
    made = {int(name): znode.created_at for name, znode in zip(names, znodes, strict=True) if znode is not None}
    return {number: at for number, at in made.items() if at is not None}


async def counted_by_brokers(cluster: ClusterRecord, ports: Ports) -> tuple[Miscount, ...]:
    """Who of the brokers that run counts fewer than there are, by their files as they are now."""
    brokers, drivers = cluster.spec.brokers, [ports.drivers.driver(broker) for broker in cluster.spec.brokers]
    processes = await all_of(*(driver.process() for driver in drivers))
    files = await all_of(*(properties_of(driver, broker) for driver, broker in zip(drivers, brokers, strict=True)))
    async with session(ports.zookeepers, cluster) as tree:
        made = await made_at(tree)
    seen = zip(brokers, processes, files, strict=True)
    return miscounts(made, counters({broker.id: (process, properties) for broker, process, properties in seen}))
