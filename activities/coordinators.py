"""When the partitions were made by whose number brokers find coordinators, as ZooKeeper has it."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from activities.observe import Ports
from activities.ports.zookeeper import ZooKeeperTree
from activities.sessions import session
from activities.together import all_of
from activities.zookeeper_view import TOPICS
from domain.cluster import NodeSpec
from domain.coordinators import COORDINATED, Miscount, miscounts
from domain.observation import Process
from domain.records import ClusterRecord


async def made_at(tree: ZooKeeperTree) -> dict[str, tuple[datetime, ...]]:
    """By topic; of those that are there."""
    found = {}
    for topic in COORDINATED:
        folder = f"{TOPICS}/{topic}/partitions"
        znodes = await tree.get_many([f"{folder}/{name}" for name in await tree.children(folder) or ()])
        found[topic] = tuple(znode.created_at for znode in znodes if znode is not None and znode.created_at is not None)
    return {topic: times for topic, times in found.items() if times}


async def counted_by_brokers(cluster: ClusterRecord, ports: Ports) -> tuple[Miscount, ...]:
    """Who of the brokers that run counts fewer than there are."""
    brokers: Sequence[NodeSpec] = cluster.spec.brokers
    processes = await all_of(*(ports.drivers.driver(broker).process() for broker in brokers))
    async with session(ports.zookeepers, cluster) as tree:
        made = await made_at(tree)
    return miscounts(made, starts({broker.id: process for broker, process in zip(brokers, processes, strict=True)}))


def starts(processes: Mapping[int, Process | None]) -> dict[int, datetime]:
    """Of those that run, and of which it is known."""
    running = {broker: process for broker, process in processes.items() if process is not None and process.is_running}
    return {broker: process.started_at for broker, process in running.items() if process.started_at is not None}
