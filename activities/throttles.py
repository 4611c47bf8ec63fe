"""Replication throttles, which hold back replicas that have to catch up. Looked for where some lag, for people only."""

import json

from activities.poison import BROKER_CONFIGS
from activities.ports.zookeeper import Znode, ZooKeeperTree

RATE = ".replication.throttled.rate"
"""The end of a broker's two keys. Without a rate the lists of throttled replicas, which topics have, hold nothing back."""


async def throttles(tree: ZooKeeperTree) -> tuple[str, ...]:
    """The znodes of the brokers that have one."""
    paths = [f"{BROKER_CONFIGS}/{name}" for name in await tree.children(BROKER_CONFIGS) or ()]
    znodes = await tree.get_many(paths)
    return tuple(path for path, znode in zip(paths, znodes, strict=True) if znode is not None and _has_rate(znode))


def _has_rate(znode: Znode) -> bool:
    """What cannot be parsed is not ours to judge here: Kafka does not read it either."""
    try:
        content = json.loads(znode.data)
    except ValueError:
        return False
    config = content.get("config") if isinstance(content, dict) else None
    return isinstance(config, dict) and any(key.endswith(RATE) for key in config)
