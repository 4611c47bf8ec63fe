"""A session with ZooKeeper for as long as something is asked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from activities.ports.zookeeper import ZooKeepers, ZooKeeperTree
from domain.records import ClusterRecord


@asynccontextmanager
async def session(zookeepers: ZooKeepers, cluster: ClusterRecord) -> AsyncIterator[ZooKeeperTree]:
    """Closed whatever happens."""
    tree = await zookeepers.connect(cluster)
    try:
        yield tree
    finally:
        await tree.close()
