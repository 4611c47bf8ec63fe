"""Topics that brokers serve and ZooKeeper has forgotten: somebody has deleted their znodes, which deletes no topic.

While ZooKeeper has the metadata nobody sees it: brokers go by what they heard when they started. Whoever restarts hears of the
topic no more, and takes its replicas for strays; and the copy leaves it out.
"""

import asyncio

from activities.observing.zookeeper_view import DELETE_TOPICS, TOPICS
from activities.ports.ports import Ports
from activities.sessions import session
from domain.records import ClusterRecord

SETTLED_SECONDS = 1.0
"""Brokers hear of a deletion in order within moments."""


async def forgotten_topics(cluster: ClusterRecord, ports: Ports) -> tuple[str, ...]:
    """By what one broker knows, before and after ZooKeeper is looked at: what is made or deleted meanwhile is none of them."""
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
