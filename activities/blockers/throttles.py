"""Throttles of replication, and limits of connections, that somebody has set in ZooKeeper: they hold back who has to catch up,
and who asks. Looked for where replicas lag or Kafka is silent, for people only."""

from collections.abc import Mapping

from activities.observing.zookeeper_view import BROKER_CONFIGS, IP_CONFIGS, json_object
from activities.ports.zookeeper import Znode, ZooKeeperTree
from domain.diagnosis.causes.connection_limits import ConnectionLimit, limits_in

RATE = ".replication.throttled.rate"
"""The end of a broker's two keys. Without a rate the lists of throttled replicas, which topics have, hold nothing back."""


async def throttles(tree: ZooKeeperTree) -> tuple[str, ...]:
    """The znodes of the brokers that have one."""
    found = await _configs(tree, BROKER_CONFIGS)
    return tuple(path for path, config in found.items() if any(key.endswith(RATE) for key in config))


async def connection_limits(tree: ZooKeeperTree) -> tuple[ConnectionLimit, ...]:
    """Of addresses (KIP-612), and of brokers and their listeners."""
    found = {**await _configs(tree, IP_CONFIGS), **await _configs(tree, BROKER_CONFIGS)}
    return tuple(limit for path, config in found.items() for limit in limits_in(path, config))


async def _configs(tree: ZooKeeperTree, parent: str) -> dict[str, Mapping[str, str]]:
    """By path."""
    paths = [f"{parent}/{name}" for name in await tree.children(parent) or ()]
    found = zip(paths, await tree.get_many(paths), strict=True)
    return {path: _config(znode) for path, znode in found if znode is not None}


def _config(znode: Znode) -> Mapping[str, str]:
    """What cannot be parsed is not ours to judge here: Kafka does not read it either."""
    config = (json_object(znode) or {}).get("config")
    return config if isinstance(config, dict) else {}
