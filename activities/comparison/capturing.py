"""Reading a live ZooKeeper tree for a comparison: all that Kafka keeps there and KRaft has too, in bounded memory.

The tree goes on changing meanwhile: what is read late is newer than what was read early. So where rows differ, another look
reads it all again. Each reading begins with a sync: nothing that was written before it is missed.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from activities.ports.zookeeper import Captured, CapturedZnode, ZooKeeperTree, paths_below, present

CHUNK = 2000
"""Znodes that are held at a time."""
AT_ONCE = 16
"""Folders that are listed at a time."""

DELETED_TOPICS, TOPICS, USERS = "/admin/delete_topics", "/brokers/topics", "/config/users"
FLAT = ("/config/topics", "/config/brokers", "/config/clients", "/config/ips", "/delegation_token/tokens", "/brokers/ids")
"""Folders of znodes that have nothing below them."""
DEEP = ("/kafka-acl", "/kafka-acl-extended/prefixed")
"""The name of an ACL's resource may have slashes: then its znode lies deeper, below one that may be a name as well."""
SINGLE = ("/latest_producer_id_block", "/cluster/id")


async def crawl(tree: ZooKeeperTree) -> Captured:
    """Chunks of znodes, in the order that rows are made of them: the topics being deleted, each topic before the states of
    its partitions, then everything else.
    """
    await tree.sync()
    async for chunk in _flat(tree, DELETED_TOPICS):
        yield chunk
    async for chunk in _topics(tree):
        yield chunk
    for folder in FLAT:
        async for chunk in _flat(tree, folder):
            yield chunk
    async for chunk in _users(tree):
        yield chunk
    for folder in DEEP:
        async for chunk in _deep(tree, folder):
            yield chunk
    yield await _read(tree, SINGLE)


async def _topics(tree: ZooKeeperTree) -> Captured:
    for part in _parts(await paths_below(tree, TOPICS)):
        for group in _groups(await _read(tree, part)):
            paths = [path for states in group.values() for path in states]
            found = {znode.path: znode for chunk in _parts(paths) for znode in await _read(tree, chunk)}
            yield tuple(
                znode
                for topic, states in group.items()
                for znode in (topic, *(found[path] for path in states if path in found))
            )


def _groups(topics: Iterable[CapturedZnode]) -> Iterator[dict[CapturedZnode, list[str]]]:
    """Topics with the paths of their states, some `CHUNK` of these together: at most one topic's more, and a topic's content
    is one znode, which is small.
    """
    group: dict[CapturedZnode, list[str]] = {}
    count = 0
    for topic in topics:
        group[topic] = [f"{topic.path}/partitions/{number}/state" for number in _partitions(topic)]
        count += len(group[topic])
        if count >= CHUNK:
            yield group
            group, count = {}, 0
    yield group


def _partitions(topic: CapturedZnode) -> list[str]:
    """None of a content that cannot be read: whoever makes rows of it names the topic."""
    try:
        content = json.loads(topic.data)
    except (ValueError, RecursionError):
        return []
    partitions = content.get("partitions") if isinstance(content, dict) else None
    return [name for name in partitions if name.isdecimal()] if isinstance(partitions, dict) else []


async def _users(tree: ZooKeeperTree) -> Captured:
    """Users, and the clients that some of them have."""
    for users in _parts(await paths_below(tree, USERS)):
        yield await _read(tree, users)
        for folder in await _read(tree, [f"{user}/clients" for user in users]):
            async for chunk in _flat(tree, folder.path):
                yield chunk


async def _flat(tree: ZooKeeperTree, folder: str) -> Captured:
    for part in _parts(await paths_below(tree, folder)):
        yield await _read(tree, part)


async def _deep(tree: ZooKeeperTree, folder: str) -> Captured:
    level = await paths_below(tree, folder)
    while level:
        for part in _parts(level):
            yield await _read(tree, part)
        below = [await asyncio.gather(*(paths_below(tree, path) for path in part)) for part in _parts(level, AT_ONCE)]
        level = [path for part in below for paths in part for path in paths]


async def _read(tree: ZooKeeperTree, paths: Sequence[str]) -> tuple[CapturedZnode, ...]:
    found = await present(tree, paths)
    return tuple(CapturedZnode(path, znode.data, znode.modified_zxid) for path, znode in found.items())


def _parts(paths: Iterable[str], size: int = CHUNK) -> Iterator[list[str]]:
    rest = iter(paths)
    while part := list(islice(rest, size)):
        yield part
