"""Topics as ZooKeeper has them, and the ids that the brokers' disks have of those that have none there."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence

from activities.observing.node_survey import CannotLook, disk_ids, run_program
from activities.observing.zookeeper_view import DELETE_TOPICS, TOPICS
from activities.on_node import command_of
from activities.ports.ports import Ports
from activities.ports.zookeeper import ZooKeeperTree, object_in, session
from domain.cluster import BrokerSpec
from domain.errors import KeeperlessError
from domain.observed.topic_directories import DiskIds, TopicOnDisk, TopicZnode, on_disk
from domain.records import ClusterRecord

SETTLED_SECONDS = 1.0
"""Brokers hear of a deletion in order within moments."""


async def topic_znodes(tree: ZooKeeperTree, names: Iterable[str]) -> tuple[TopicZnode, ...]:
    """Deleted meanwhile: left out."""
    asked = list(names)
    znodes = await tree.get_many([f"{TOPICS}/{name}" for name in asked])
    return tuple(
        TopicZnode(name=name, content=znode.data.decode() if object_in(znode) else "", version=znode.version)
        for name, znode in zip(asked, znodes, strict=True)
        if znode is not None
    )


async def topics_on_disk(cluster: ClusterRecord, ports: Ports, names: Sequence[str]) -> tuple[TopicOnDisk, ...]:
    """These topics, beside what every broker's disk has of them."""
    async with session(ports.zookeepers, cluster) as tree:
        znodes = await topic_znodes(tree, names)
    asked = {znode.name: znode.id or "" for znode in znodes}
    brokers = cluster.spec.brokers
    disks = await asyncio.gather(*(_disk_of(broker, ports, asked) for broker in brokers))
    by_broker = dict(zip((broker.id for broker in brokers), disks, strict=True))
    return tuple(on_disk(znode, by_broker) for znode in znodes if znode.id is None)


async def _disk_of(broker: BrokerSpec, ports: Ports, topic_ids: Mapping[str, str]) -> DiskIds | None:
    """`None`: it could not be looked at."""
    asked = {"log_dirs": broker.log_dirs, "topics": sorted(topic_ids)}
    try:
        answer = json.loads(await run_program(ports.drivers.driver(broker), command_of("look_at_topics", asked)))
    except (CannotLook, KeeperlessError):
        return None
    return disk_ids(answer["without_id"], answer["topic_ids"], topic_ids)


async def forgotten_topics(cluster: ClusterRecord, ports: Ports) -> tuple[str, ...]:
    """Topics that brokers serve and ZooKeeper has forgotten: somebody has deleted their znodes, which deletes no topic.

    While ZooKeeper has the metadata this is invisible: brokers go by what they read when they started. A broker that restarts
    does not know the topic any more, and takes its replicas for strays; and the copy leaves it out.

    By what one broker knows, before and after ZooKeeper is looked at: what is made or deleted meanwhile is none of them.
    """
    client = await ports.kafka.open_client(cluster)
    try:
        brokers = await client.alive()
        known = set(await client.topics(brokers[0])) if brokers else set()
        async with session(ports.zookeepers, cluster) as tree:
            kept = {*(await tree.children(TOPICS) or ()), *(await tree.children(DELETE_TOPICS) or ())}
        if not known - kept:
            return ()
        await asyncio.sleep(SETTLED_SECONDS)
        return tuple(sorted((known - kept).intersection(await client.topics(brokers[0]))))
    finally:
        await client.close()
