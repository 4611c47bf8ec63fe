"""What the quorum's log has and ZooKeeper has not got yet: how many changes, of what, and how many more come meanwhile.

Asked where dual write is behind, for people: a flood of changes and a slow ZooKeeper look the same in every gauge.
"""

import asyncio
import time

from activities.ports.nodes import NodeDrivers
from activities.quorum_log import read_on, read_tail
from activities.storage import storage_of
from domain.observation import Observation
from domain.records import ClusterRecord
from domain.zk_to_kraft.causes import Unwritten
from domain.zk_to_kraft.situation import quorum_leader

MEANWHILE_SECONDS = 1.0


async def unwritten(observation: Observation, cluster: ClusterRecord, drivers: NodeDrivers) -> Unwritten | None:
    """From the leader's log on its disk, read twice. `None` where nobody leads, or ZooKeeper's offset is not known."""
    leader = quorum_leader(observation, cluster.spec)
    znode = observation.zookeeper.migration if observation.zookeeper is not None else None
    if leader is None or znode is None or znode.offset is None:
        return None
    node = cluster.spec.node(leader.id)
    driver = drivers.driver(node)
    began = time.monotonic()
    first = await read_tail(driver, (await storage_of(driver, node)).metadata_log, znode.offset)
    if first is None:
        return None
    await asyncio.sleep(MEANWHILE_SECONDS)
    then = await read_on(driver, first)
    more = sum(then.facts.changes.values()) - sum(first.facts.changes.values())
    return Unwritten(then.facts.change_names, then.facts.most_configured, more, time.monotonic() - began)
