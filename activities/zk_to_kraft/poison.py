"""Which znode Kafka's copy cannot read. Kafka itself does not say: the controllers die, and their log names no znode.

Looked for when the copy cannot finish, when somebody has to know what to mend before the next attempt. Reads all that the copy
reads (kafka.zk.ZkMigrationClient.readAllMetadata) and nothing else, in its order; `znode_forms` says what is well formed.
What only makes the copy wait, dead brokers in assignments, comes last.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress

from activities.observing.zookeeper_view import (
    BROKER_CONFIGS,
    BROKER_IDS,
    DELETE_TOPICS,
    IP_CONFIGS,
    QUOTAS,
    TOPIC_CONFIGS,
    TOPICS,
    USER_CONFIGS,
)
from activities.ports.zookeeper import ZooKeeperTree, paths_below, present
from activities.zk_to_kraft import znode_forms as forms
from domain.observed.observation import Suspect

ACL_STORES = ("/kafka-acl", "/kafka-acl-extended/prefixed")
TOKENS = "/delegation_token/tokens"
PRODUCER_IDS, FEATURE = "/latest_producer_id_block", "/feature"
DEFAULT_ENTITY = "<default>"

SLASH = "the resource's name has a slash"

MOST_NAMED = 50
"""Suspects that are named; whoever has broken more has broken a kind."""


async def poisoned_znodes(tree: ZooKeeperTree, most: int = MOST_NAMED) -> tuple[Suspect, ...]:
    """Each znode that Kafka's copy cannot read, or would read wrongly, with why; none is a clean tree. `most`: named."""
    topics = await _topics(tree)
    return _first([*await _unreadable(tree, topics), *unregistered(topics, await tree.children(BROKER_IDS))], most)


async def unreadable_znodes(tree: ZooKeeperTree) -> tuple[Suspect, ...]:
    """The same without what only makes the copy wait: for who looks before it begins."""
    return _first(await _unreadable(tree, await _topics(tree)))


async def _unreadable(tree: ZooKeeperTree, topics: dict[str, bytes]) -> list[Suspect]:
    return [
        *suspects_in(topics, forms.topic),
        *twins(topics),
        *await _read(tree, state_paths(topics), forms.partition_state),
        *await _read(tree, [f"{TOPIC_CONFIGS}/{_name(path)}" for path in topics], forms.configs),
        *await _broker_configs(tree),
        *await _quotas(tree),
        *await _read(tree, [PRODUCER_IDS], forms.producer_ids),
        *await _acls(tree),
        *await _read(tree, await paths_below(tree, TOKENS), forms.token),
    ]


async def unelectable(tree: ZooKeeperTree) -> list[Suspect]:
    """Without which nobody becomes the controller in ZooKeeper mode, though the copy does not read it."""
    return await _read(tree, [FEATURE], forms.feature)


def _first(found: Sequence[Suspect], most: int = MOST_NAMED) -> tuple[Suspect, ...]:
    if len(found) <= most:
        return tuple(found)
    rest = Suspect(what=f"{len(found) - most} further znodes", why="cannot be read either")
    return (*found[:most], rest)


def suspects_in(znodes: dict[str, bytes], form: forms.Form) -> Iterator[Suspect]:
    """Those of `znodes` (path → content) that are not of this form."""
    for path, data in znodes.items():
        try:
            form(data)
        except forms.Unreadable as error:
            yield Suspect(what=path, why=str(error))


def twins(topics: dict[str, bytes]) -> Iterator[Suspect]:
    """Topics with the id of another, as when somebody has copied a znode: the copy takes them for one, without a word."""
    first: dict[bytes, str] = {}
    for path, data in topics.items():
        with suppress(forms.Unreadable):  # That is told of it already.
            other = first.setdefault(forms.topic_id(data), path)
            if other != path:
                yield Suspect(what=path, why=f"has the topic_id of {other}: KRaft takes both for one topic, and loses one")


def unregistered(topics: dict[str, bytes], names: Sequence[str] | None) -> Iterator[Suspect]:
    """What the copy waits for without an end: brokers that are in assignments and not in `/brokers/ids`, which has to exist."""
    if names is None:
        yield Suspect(what=BROKER_IDS, why="does not exist: no broker is known")
        return
    for name in names:
        if not name.isdecimal():
            yield Suspect(what=f"{BROKER_IDS}/{name}", why="its name is no broker id")
    for broker_id, partitions in sorted(_assigned(topics).items()):
        if str(broker_id) not in names:
            why = f"is not registered, and has replicas of {len(partitions)} partitions, such as {partitions[0]}"
            yield Suspect(what=f"{BROKER_IDS}/{broker_id}", why=why)


def _assigned(topics: dict[str, bytes]) -> dict[int, list[str]]:
    """The partitions of each broker id in assignments that can be read."""
    found = defaultdict(list)
    for path, data in topics.items():
        for partition, replicas in _partitions(data).items():
            for broker_id in replicas:
                found[broker_id].append(f"{_name(path)}-{partition}")
    return found


def _partitions(data: bytes) -> dict[int, list[int]]:
    try:
        return forms.topic(data)
    except forms.Unreadable:
        return {}


def state_paths(topics: dict[str, bytes]) -> list[str]:
    return [f"{path}/partitions/{number}/state" for path, data in topics.items() for number in _partitions(data)]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


async def _topics(tree: ZooKeeperTree) -> dict[str, bytes]:
    """Without those that wait for their deletion: the copy leaves them out."""
    leaving = await tree.children(DELETE_TOPICS) or ()
    return await _contents(tree, [path for path in await paths_below(tree, TOPICS) if _name(path) not in leaving])


async def _broker_configs(tree: ZooKeeperTree) -> list[Suspect]:
    paths = await paths_below(tree, BROKER_CONFIGS)
    strange = [path for path in paths if not (_name(path).isdecimal() or _name(path) == DEFAULT_ENTITY)]
    why = f"its name is neither a broker id nor {DEFAULT_ENTITY}"
    return [Suspect(what=path, why=why) for path in strange] + await _read(tree, paths, forms.broker_configs)


async def _quotas(tree: ZooKeeperTree) -> list[Suspect]:
    entities = [path for kind in QUOTAS for path in await paths_below(tree, kind)]
    of_clients = await _all_below(tree, [f"{path}/clients" for path in entities if path.startswith(USER_CONFIGS)])
    strange = [path for path in (*entities, *of_clients) if not forms.is_name_escaped_well(_name(path))]
    return [
        *(Suspect(what=path, why="its name is not URL-encoded as Kafka does it") for path in strange),
        *await _read(tree, [path for path in entities if not path.startswith(IP_CONFIGS)], forms.quotas),
        *await _read(tree, [path for path in entities if path.startswith(IP_CONFIGS)], forms.quotas_of_an_address),
        *await _read(tree, of_clients, forms.quotas_of_a_users_client),
    ]


async def _acls(tree: ZooKeeperTree) -> list[Suspect]:
    """An unknown type of resource is left out by the copy, with a warning: what was denied there is allowed afterwards. So is
    the rest of a name with a slash, without one; and the new controller then fails to delete the znode above it.
    """
    types = await _all_below(tree, ACL_STORES)
    known = [path for path in types if forms.is_resource_type(_name(path))]
    unknown = await _all_below(tree, [path for path in types if path not in known])
    resources = await _all_below(tree, known)
    return [
        *(Suspect(what=path, why="ACLs of a type that Kafka does not know: they are not copied") for path in unknown),
        *(Suspect(what=path, why=f"{SLASH}: the copy reads no deeper") for path in await _all_below(tree, resources)),
        *await _read(tree, resources, forms.acls),
    ]


async def _read(tree: ZooKeeperTree, paths: Sequence[str], form: forms.Form) -> list[Suspect]:
    return list(suspects_in(await _contents(tree, paths), form))


async def _contents(tree: ZooKeeperTree, paths: Sequence[str]) -> dict[str, bytes]:
    """Those that exist: a cluster in use deletes topics while we read, and absence is well formed everywhere."""
    return {path: znode.data for path, znode in (await present(tree, paths)).items()}


async def _all_below(tree: ZooKeeperTree, paths: Sequence[str]) -> list[str]:
    """Asked at once: there may be thousands of users."""
    found = await asyncio.gather(*(paths_below(tree, path) for path in paths))
    return [path for below in found for path in below]
