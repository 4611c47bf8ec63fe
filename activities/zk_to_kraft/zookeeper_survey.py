"""What the preflight asks of ZooKeeper beyond the view: what the copy reads, who is connected, who may write."""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence

from activities.observing.coordinators import made_at
from activities.observing.present_ensemble import lines_of_srvr
from activities.observing.topics import topic_znodes
from activities.observing.zookeeper_view import (
    ACL_GROUPS,
    BROKER_CONFIGS,
    BROKER_IDS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    NOTIFICATIONS,
    TOPIC_CONFIGS,
    TOPICS,
    USER_CONFIGS,
    bytes_of_names,
)
from activities.ports.zookeeper import (
    Access,
    DeleteZnode,
    SetZnode,
    Znode,
    ZnodeChange,
    ZooKeepers,
    ZooKeeperTree,
    as_object,
    object_in,
    objects_below,
)
from activities.zk_to_kraft.poison import ACL_STORES, DEFAULT_ENTITY, TOKENS, poisoned_znodes, unelectable
from domain.canaries import Leftovers, is_reserved
from domain.cluster import servers_in
from domain.errors import Permanent, Transient
from domain.observed.survey import ClientSession, EnsembleServer, Registration, ZooKeeperSurvey
from domain.observed.topic_directories import TopicZnode

CLIENT_METRICS = "/config/client-metrics"
PREFIXED = ACL_STORES[1]
WRITTEN_IN_DUAL_WRITE = (
    "/",
    "/admin",
    "/brokers",
    "/brokers/ids",
    "/brokers/topics",
    "/cluster",
    "/config",
    "/config/brokers",
    "/config/changes",
    "/config/clients",
    "/config/topics",
    "/config/users",
    CONTROLLER,
    CONTROLLER_EPOCH,
    "/isr_change_notification",
    "/kafka-acl",
    "/kafka-acl-changes",
    "/latest_producer_id_block",
)
"""Where a controller creates, sets or deletes (kafka.zk.KafkaZkClient, kafka.zk.migration)."""
THROTTLED = re.compile(r"\.replication\.throttled\.")
SESSION = re.compile(r"^\s*/?(?P<client>\S+?)\[\d+\]\(.*\bsid=(?P<id>0x[0-9a-fA-F]+)", re.MULTILINE)


class Remembered:
    """A tree that reads each znode once: one picture for all that is asked of it, and the size of what was read."""

    def __init__(self, tree: ZooKeeperTree) -> None:
        self._tree = tree
        self._znodes: dict[str, Znode | None] = {}
        self._children: dict[str, tuple[str, ...] | None] = {}

    async def get(self, path: str) -> Znode | None:
        (found,) = await self.get_many((path,))
        return found

    async def get_many(self, paths: Sequence[str]) -> tuple[Znode | None, ...]:
        unread = [path for path in dict.fromkeys(paths) if path not in self._znodes]
        if unread:
            self._znodes |= dict(zip(unread, await self._tree.get_many(unread), strict=True))
        return tuple(self._znodes[path] for path in paths)

    async def children(self, path: str) -> tuple[str, ...] | None:
        if path not in self._children:
            self._children[path] = await self._tree.children(path)
        return self._children[path]

    async def access(self, path: str) -> tuple[Access, ...] | None:
        return await self._tree.access(path)

    async def sync(self) -> None:
        await self._tree.sync()

    async def commit(self, changes: Sequence[ZnodeChange]) -> bool:
        raise PermissionError(f"a survey changes nothing: {changes}")

    async def rehearse(self, changes: Sequence[SetZnode | DeleteZnode]) -> None:
        await self._tree.rehearse(changes)

    async def has_room(self, path: str) -> bool:
        return await self._tree.has_room(path)

    async def close(self) -> None:
        await self._tree.close()

    @property
    def largest(self) -> tuple[str, int]:
        sizes = {path: len(znode.data) for path, znode in self._znodes.items() if znode is not None}
        return max(sizes.items(), key=lambda each: each[1], default=("/", 0))

    @property
    def longest(self) -> tuple[str, int]:
        """The parent whose children's names take most bytes in an answer."""
        lists = self._children.items()
        sizes = {path: bytes_of_names(names or ()) for path, names in lists}
        return max(sizes.items(), key=lambda each: each[1], default=("/", 0))


async def survey_zookeeper(tree: ZooKeeperTree) -> tuple[ZooKeeperSurvey, tuple[TopicZnode, ...]]:
    """The survey, and all topics, which are held against what lies on the brokers' disks."""
    remembered = Remembered(tree)
    suspects = (*await poisoned_znodes(remembered), *await unelectable(remembered))
    topics = await objects_below(remembered, TOPICS)
    configs = await objects_below(remembered, TOPIC_CONFIGS)
    brokers = await objects_below(remembered, BROKER_CONFIGS)
    protected = await _protected(remembered)
    acls = await asyncio.gather(*(_grandchildren(remembered, store) for store in ACL_STORES))
    prefixed = await _grandchildren(remembered, PREFIXED)
    left = await _left(remembered, topics)
    await asyncio.gather(*(remembered.children(path) for path in NOTIFICATIONS))
    (largest, size), (longest, length) = remembered.largest, remembered.longest
    survey = ZooKeeperSurvey(
        registrations=tuple(await _registrations(remembered)),
        protected=protected,
        refused=await _refused(remembered) if protected else None,
        suspects=suspects,
        single_replica_topics=tuple(sorted(name for name, topic in topics.items() if _has_single_replicas(topic))),
        broker_configs={name: tuple(sorted(as_object(found.get("config")))) for name, found in brokers.items()},
        throttled_topics=tuple(
            sorted(name for name, found in configs.items() if any(map(THROTTLED.search, as_object(found.get("config")))))
        ),
        orphan_configs=tuple(sorted(configs.keys() - topics.keys() - {DEFAULT_ENTITY})),
        prefixed_wildcards=tuple(path for path in prefixed if path.endswith("/*")),
        client_metrics=await remembered.children(CLIENT_METRICS) or (),
        tokens=len(await remembered.children(TOKENS) or ()),
        acls=sum(map(len, acls)),
        largest=largest,
        largest_bytes=size,
        longest_list=longest,
        longest_list_bytes=length,
        left=left,
        coordinators=await made_at(remembered),
    )
    return survey, await topic_znodes(remembered, topics)


async def _left(tree: ZooKeeperTree, topics: Iterable[str]) -> Leftovers:
    """What has the reserved prefix: nothing of it belongs to a migration that has yet to start."""
    users = {name: user for name, user in (await objects_below(tree, USER_CONFIGS)).items() if is_reserved(name)}
    return Leftovers(
        topics=tuple(sorted(filter(is_reserved, topics))),
        groups=tuple(sorted(filter(is_reserved, await tree.children(ACL_GROUPS) or ()))),
        users=tuple(sorted(name for name, user in users.items() if user.get("config"))),
        znodes=tuple(sorted(f"{USER_CONFIGS}/{name}" for name, user in users.items() if not user.get("config"))),
    )


def _has_single_replicas(topic: Mapping[str, object]) -> bool:
    return any(isinstance(replicas, list) and len(replicas) == 1 for replicas in as_object(topic.get("partitions")).values())


async def _grandchildren(tree: ZooKeeperTree, path: str) -> list[str]:
    kinds = [f"{path}/{name}" for name in await tree.children(path) or ()]
    return [f"{kind}/{name}" for kind in kinds for name in await tree.children(kind) or ()]


async def _registrations(tree: ZooKeeperTree) -> list[Registration]:
    names = [name for name in await tree.children(BROKER_IDS) or () if name.isdecimal()]
    znodes = await tree.get_many([f"{BROKER_IDS}/{name}" for name in names])
    return [_registration(int(name), znode) for name, znode in zip(names, znodes, strict=True) if znode is not None]


def _registration(broker_id: int, znode: Znode) -> Registration:
    """kafka.zk.BrokerIdZNode: `endpoints` as `INTERNAL://host:9092`, and a map of protocols from version 4 on."""
    content = object_in(znode)
    endpoints = content.get("endpoints")
    found = [str(endpoint).partition("://") for endpoint in endpoints] if isinstance(endpoints, list) else []
    protocols = as_object(content.get("listener_security_protocol_map"))
    return Registration(
        broker_id=broker_id,
        session=znode.ephemeral_owner,
        addresses={name.upper(): address for name, _, address in found},
        protocols={name.upper(): str(protocol).upper() for name, protocol in protocols.items()},
    )


async def _protected(tree: ZooKeeperTree) -> tuple[str, ...]:
    """Those that not everybody may change."""
    lists = await asyncio.gather(*(tree.access(path) for path in WRITTEN_IN_DUAL_WRITE))
    return tuple(
        path
        for path, access in zip(WRITTEN_IN_DUAL_WRITE, lists, strict=True)
        if access is not None and not any(entry.scheme == "world" and entry.is_everything for entry in access)
    )


async def _refused(tree: ZooKeeperTree) -> str | None:
    """Why ZooKeeper would refuse us what the way back has to do, or `None`. Nothing is changed."""
    controller, epoch = await tree.get_many((CONTROLLER, CONTROLLER_EPOCH))
    changes: list[SetZnode | DeleteZnode] = []
    if epoch is not None:
        changes.append(SetZnode(CONTROLLER_EPOCH, epoch.data, epoch.version))
    if controller is not None:
        changes.append(DeleteZnode(CONTROLLER, controller.version))
    try:
        await tree.rehearse(changes)
    except Permanent as error:
        return str(error)
    return None


async def survey_servers(zookeepers: ZooKeepers, connect: str) -> tuple[EnsembleServer, ...]:
    """Each server by itself. Asked while no session of this look is open: it would be among the clients."""
    return tuple(await asyncio.gather(*(_server(zookeepers, address) for address in servers_in(connect))))


async def _server(zookeepers: ZooKeepers, address: str) -> EnsembleServer:
    try:
        status, clients = await asyncio.gather(zookeepers.ask(address, "srvr"), zookeepers.ask(address, "cons"))
    except Transient as error:
        return EnsembleServer(address=address, problem=str(error))
    lines = lines_of_srvr(status or "")
    latency = lines.get("Latency min/avg/max", "").split("/")
    return EnsembleServer(
        address=address,
        mode=lines.get("Mode", "not serving") if status is not None else None,
        outstanding=int(lines["Outstanding"]) if lines.get("Outstanding", "").isdecimal() else None,
        latency=float(latency[1]) if len(latency) > 1 else None,
        sessions=None if clients is None else sessions_in(clients),
    )


def sessions_in(clients: str) -> tuple[ClientSession, ...]:
    """Of `cons`: one line for each connection, with `sid` where it has a session (ServerCnxn.java)."""
    return tuple(ClientSession(id=int(found["id"], 16), client=found["client"]) for found in SESSION.finditer(clients))
