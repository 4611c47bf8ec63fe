"""What people set in ZooKeeper, by way of Kafka or not: dynamic configs, quotas, credentials, ACLs, orders to the controller.

To be kept when all is well, and held against later, for people only. In dual write the quorum writes the same there.
"""

import json
import re
from collections.abc import Sequence

from activities.poison import BROKER_CONFIGS, QUOTAS, TOPIC_CONFIGS
from activities.ports.zookeeper import Znode, ZooKeeperTree

CONFIGS = (BROKER_CONFIGS, TOPIC_CONFIGS, *QUOTAS)
ACL_ROOTS = ("/kafka-acl", "/kafka-acl-extended/prefixed")
ORDERS = "/admin"
"""Reassignments, elections, deletions that somebody has asked for (ZkData.scala)."""
KEPT_ALIVE = frozenset({"delete_topics"})
MOST_ZNODES = 5000
"""More are not looked at: it would take longer than anybody waits."""
SECRET = re.compile(r"password|secret|jaas|credential|scram|token|\.key", re.IGNORECASE)


async def metadata_facts(tree: ZooKeeperTree) -> dict[str, dict[str, str]]:
    """By kind and name. No value of a secret."""
    return {
        "config": {name: value for path, znode in await _below(tree, CONFIGS) for name, value in _configs(path, znode).items()},
        "acl": {path: _rules(znode) for path, znode in await _below(tree, await _kinds(tree))},
        "order": {f"{ORDERS}/{name}": "there" for name in await tree.children(ORDERS) or () if name not in KEPT_ALIVE},
        "deletion": dict.fromkeys(await tree.children(f"{ORDERS}/delete_topics") or (), "there"),
    }


async def _kinds(tree: ZooKeeperTree) -> list[str]:
    return [f"{root}/{kind}" for root in ACL_ROOTS for kind in await tree.children(root) or ()]


async def _below(tree: ZooKeeperTree, parents: Sequence[str]) -> list[tuple[str, Znode]]:
    paths = [f"{parent}/{name}" for parent in parents for name in await tree.children(parent) or ()][:MOST_ZNODES]
    found = zip(paths, await tree.get_many(paths), strict=True)
    return [(path, znode) for path, znode in found if znode is not None]


def _configs(path: str, znode: Znode) -> dict[str, str]:
    """Each key with where it is set. What is no JSON of Kafka's is told elsewhere."""
    try:
        content = json.loads(znode.data)
    except ValueError:
        return {}
    config = content.get("config") if isinstance(content, dict) else None
    if not isinstance(config, dict):
        return {}
    return {f"{key} in {path}": "(not shown)" if SECRET.search(key) else str(value) for key, value in config.items()}


def _rules(znode: Znode) -> str:
    try:
        rules = json.loads(znode.data)["acls"]
        return ", ".join(sorted(f"{r['permissionType']} {r['operation']} to {r['principal']} from {r['host']}" for r in rules))
    except (ValueError, KeyError, TypeError):
        return f"{len(znode.data)} bytes"
