"""Topics as ZooKeeper has them, and the ids that the brokers' disks have of those that have none there."""

from collections.abc import Iterable

from activities.observing.zookeeper_view import TOPICS, json_object
from activities.ports.zookeeper import ZooKeeperTree
from domain.topic_directories import TopicZnode


async def topic_znodes(tree: ZooKeeperTree, names: Iterable[str]) -> tuple[TopicZnode, ...]:
    """Deleted meanwhile: left out."""
    asked = list(names)
    znodes = await tree.get_many([f"{TOPICS}/{name}" for name in asked])
    return tuple(
        TopicZnode(name=name, content=znode.data.decode() if json_object(znode) else "", version=znode.version)
        for name, znode in zip(asked, znodes, strict=True)
        if znode is not None
    )
