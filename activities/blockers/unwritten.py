"""What the quorum's log has and ZooKeeper has not got yet: how many changes, of what, and how many more come meanwhile.

Asked where dual write is behind, for people: a flood of changes and a slow ZooKeeper look the same in every gauge.
"""

import asyncio
import time

from activities.ports.nodes import NodeDrivers
from activities.ports.zookeeper import ZooKeeperTree
from activities.storage import storage_of
from activities.zk_to_kraft.quorum_log import read_on, read_tail
from domain.diagnosis.causes.hints import Unwritten
from domain.health.quorum import quorum_leader
from domain.observed.observation import Observation
from domain.records import ClusterRecord

MEANWHILE_SECONDS = 1.0

ACCESS = ("/kafka-acl", "/kafka-acl-extended/prefixed")
LARGE = 900_000
"""Bytes. ZooKeeper takes no request over jute.maxbuffer, 1,048,575 by default, and KRaft has a record for each ACL."""


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


async def crowded(tree: ZooKeeperTree) -> tuple[str, ...]:
    """Znodes of ACLs that hardly take one more: each has all of one resource."""
    kinds = [f"{root}/{kind}" for root in ACCESS for kind in await tree.children(root) or ()]
    paths = [f"{kind}/{name}" for kind in kinds for name in await tree.children(kind) or ()]
    found = zip(paths, await tree.get_many(paths), strict=True)
    return tuple(
        f"{path} ({len(znode.data):,} bytes)" for path, znode in found if znode is not None and len(znode.data) > LARGE
    )
