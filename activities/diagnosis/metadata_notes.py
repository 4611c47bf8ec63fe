"""What people set in ZooKeeper, by way of Kafka or not: dynamic configs, quotas, credentials, ACLs, orders to the controller,
and topics' ids and partitions; and which lists of names have grown long.

To be kept when all is well, and held against later, for people only. In dual write the quorum writes the same there.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Iterable

from activities.observing.zookeeper_view import (
    BROKER_CONFIGS,
    NOTIFICATIONS,
    QUOTAS,
    TOPIC_CONFIGS,
    TOPICS,
    USER_CONFIGS,
    bytes_of_names,
)
from activities.ports.zookeeper import Znode, ZooKeeperTree, config_in, object_in, present
from domain.canaries import is_reserved
from domain.drift.normalise import is_secret_broker_config, is_secret_config

ACL_ROOTS = ("/kafka-acl", "/kafka-acl-extended/prefixed")
OF_THE_CLUSTER = "/Cluster"
"""What nodes may do, of all else."""
ORDERS = "/admin"
"""Reassignments, elections, deletions that somebody has asked for (ZkData.scala)."""
DELETIONS = "delete_topics"
MOST_ZNODES = 5000
"""Of a kind: where there are more it is left out whole, for it would take longer than anybody waits."""
MOST_CHARACTERS = 200
TOPICS_SECONDS = 1.0
LONG_LIST_BYTES = 400_000
"""A tenth of the packet that a client of ZooKeeper takes (4 MB; jute.maxbuffer). Who asks for a longer list loses its session
with the answer, and its log has only how long that was."""
LARGE_TOPIC = 300
"""Partitions. Others come and go every day; a new one of these every broker of the cluster is to hear of, and to open."""
HIDDEN, IN_A_LIST = "(not shown)", "***"
SALTED = re.compile(r"\bsalt[=:][^,]*,|\bencryptedPassword:")
"""A SCRAM credential, or a password as brokers encode it (ScramCredentialUtils, EncryptingPasswordEncoder)."""
DIGEST_CHARACTERS = 8


async def metadata_facts(tree: ZooKeeperTree) -> dict[str, dict[str, str]]:
    """By kind and name. No value of a secret."""
    users = await _children(tree, [USER_CONFIGS])
    entities = [
        *await _children(tree, [BROKER_CONFIGS, *QUOTAS]),
        *await _children(tree, [f"{user}/clients" for user in users]),
    ]
    kinds = await _children(tree, ACL_ROOTS)
    facts = {
        "list": await _long_lists(tree, [*NOTIFICATIONS, TOPICS, TOPIC_CONFIGS, *QUOTAS, *kinds, f"{ORDERS}/{DELETIONS}"]),
        "config": await _configs(tree, entities),
        "topic": await _topic_configs(tree, await _children(tree, [TOPIC_CONFIGS])),
        "cluster acl": await _rules(tree, await _children(tree, [kind for kind in kinds if kind.endswith(OF_THE_CLUSTER)])),
        "acl rule": await _rules(tree, await _children(tree, [kind for kind in kinds if not kind.endswith(OF_THE_CLUSTER)])),
        "order": {f"{ORDERS}/{name}": "there" for name in await tree.children(ORDERS) or () if name != DELETIONS},
        "deletion": dict.fromkeys(await _names(tree, f"{ORDERS}/{DELETIONS}"), "there"),
        **await _topics_in_time(tree),
    }
    return {kind: found for kind, found in facts.items() if found is not None}


async def _children(tree: ZooKeeperTree, parents: Iterable[str]) -> list[str]:
    return [f"{parent}/{name}" for parent in parents for name in await _names(tree, parent)]


async def _names(tree: ZooKeeperTree, parent: str) -> list[str]:
    """But for those of our own canaries: they come and go."""
    return [name for name in await tree.children(parent) or () if not is_reserved(name)]


async def _long_lists(tree: ZooKeeperTree, parents: Iterable[str]) -> dict[str, str]:
    lists = {parent: await tree.children(parent) or () for parent in parents}
    sizes = {parent: bytes_of_names(names) for parent, names in lists.items()}
    return {parent: f"{len(lists[parent]):,} names, {size:,} bytes" for parent, size in sizes.items() if size > LONG_LIST_BYTES}


async def _configs(tree: ZooKeeperTree, paths: list[str]) -> dict[str, str] | None:
    if len(paths) > MOST_ZNODES:
        return None
    found = await present(tree, paths)
    return {name: value for path, znode in found.items() for name, value in _config(path, znode).items()}


async def _topics_in_time(tree: ZooKeeperTree) -> dict[str, dict[str, str]]:
    """All that is to be known lies in every assignment: where there are many nobody waits for them."""
    try:
        async with asyncio.timeout(TOPICS_SECONDS):
            return await _topics(tree, await _children(tree, [TOPICS]))
    except TimeoutError:
        return {}


async def _topics(tree: ZooKeeperTree, paths: list[str]) -> dict[str, dict[str, str]]:
    """By which id brokers know a topic's data: a tool that rewrites the znode may leave it out, and a controller makes another.
    And how many partitions it has: where those of an internal topic become more, who coordinates which group moves."""
    if len(paths) > MOST_ZNODES:
        return {}
    told = {path: object_in(znode) for path, znode in (await present(tree, paths)).items()}
    partitions = {path: len(known) for path, topic in told.items() if isinstance(known := topic.get("partitions"), dict)}
    return {
        "topic id": {f"topic_id in {path}": str(topic["topic_id"]) for path, topic in told.items() if topic.get("topic_id")},
        "partitions": {f"partitions of {path}": str(count) for path, count in partitions.items()},
        "large topic": {path: f"{count} partitions" for path, count in partitions.items() if count >= LARGE_TOPIC},
    }


async def _topic_configs(tree: ZooKeeperTree, paths: list[str]) -> dict[str, str] | None:
    """All of a topic's in one: what it had none of before counts, and a topic that is new does not."""
    if len(paths) > MOST_ZNODES:
        return None
    found = await present(tree, paths)
    configs = ((path, _entries(znode, _is_credential, IN_A_LIST)) for path, znode in found.items())
    return {path: ",".join(f"{key}={value}" for key, value in sorted(config.items())) for path, config in configs}


def _config(path: str, znode: Znode) -> dict[str, str]:
    """Each key with where it is set."""
    is_secret = is_secret_broker_config if path.startswith(BROKER_CONFIGS) else _is_credential
    return {f"{key} in {path}": value for key, value in _entries(znode, is_secret).items()}


def _entries(znode: Znode, is_secret: Callable[[str], bool], hidden: str = HIDDEN) -> dict[str, str]:
    """What is no JSON of Kafka's is told elsewhere."""
    told = config_in(znode).items()
    return {key: _hidden(str(value), hidden) if is_secret(key) else str(value)[:MOST_CHARACTERS] for key, value in told}


def _hidden(value: str, hidden: str) -> str:
    """With a digest of what holds a secret salted or encrypted: that it was set anew is seen, and nothing else."""
    if SALTED.search(value) is None:
        return hidden
    return f"{hidden}, digest {hashlib.sha256(value.encode()).hexdigest()[:DIGEST_CHARACTERS]}"


def _is_credential(name: str) -> bool:
    return name.startswith("SCRAM") or is_secret_config(name)


async def _rules(tree: ZooKeeperTree, paths: list[str]) -> dict[str, str] | None:
    """Each by itself: a resource may have more than anybody reads."""
    if len(paths) > MOST_ZNODES:
        return None
    found = await present(tree, paths)
    rules = {name: value for path, znode in found.items() for name, value in _told(path, znode).items()}
    return rules if len(rules) <= MOST_ZNODES else None


def _told(path: str, znode: Znode) -> dict[str, str]:
    try:
        rules = json.loads(znode.data)["acls"]
        words = [f"{r['permissionType']} {r['operation']} to {r['principal']} from {r['host']}" for r in rules]
        return {f"of {path}: {rule}": "there" for rule in words}
    except (ValueError, KeyError, TypeError):
        return {f"of {path}": f"{len(znode.data)} bytes"}
