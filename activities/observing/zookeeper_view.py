"""What the ensemble says about a cluster, read through `ZooKeeperTree` alone.

Layouts: kafka.zk.ZkData (Kafka 3.9). A znode that decides something and cannot be parsed makes the whole view `Transient`, by
name: unknown is never healthy. Two kinds are shown instead, because they can lie there for years: a `/migration` that cannot be
parsed has `None` fields, and a topic that cannot be parsed counts as one without an id.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from activities.ports.zookeeper import Znode, ZooKeeperTree, as_object, object_in, objects_below
from domain.errors import Transient
from domain.observed.observation import ControllerZnode, MigrationZnode, ZooKeeperView

NAME_OVERHEAD = 4
CLUSTER_ID = "/cluster/id"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
MIGRATION = "/migration"
REASSIGN = "/admin/reassign_partitions"
PREFERRED_ELECTION = "/admin/preferred_replica_election"
BROKER_IDS = "/brokers/ids"
DELETE_TOPICS = "/admin/delete_topics"
TOPICS = "/brokers/topics"
NOTIFICATIONS = (
    "/kafka-acl-changes",
    "/kafka-acl-extended-changes",
    "/config/changes",
    "/isr_change_notification",
    "/log_dir_event_notification",
    "/delegation_token/token_changes",
)
"""Below them one znode for each change that brokers are to hear of (ZkData.scala). A broker in ZooKeeper mode asks for all of
them, and the controller of ZooKeeper, or every broker, deletes them after a while; where none is left nobody does."""
KEPT_PATHS = (
    "/brokers/ids",
    TOPICS,
    "/brokers/seqid",
    "/config/changes",
    "/config/brokers",
    "/config/clients",
    "/config/topics",
    "/config/users",
    DELETE_TOPICS,
    "/isr_change_notification",
    "/log_dir_event_notification",
)
"""Of what every broker makes as it starts (ZkData.PersistentZkPaths), that without which something does not work any more:
watches are set there, and what is made below cannot be made without its parent."""
BROKER_CONFIGS = "/config/brokers"
TOPIC_CONFIGS = "/config/topics"
USER_CONFIGS = "/config/users"
IP_CONFIGS = "/config/ips"
QUOTAS = (USER_CONFIGS, "/config/clients", IP_CONFIGS)
ACL_GROUPS = "/kafka-acl/Group"


async def view_of(tree: ZooKeeperTree) -> ZooKeeperView:
    paths = (CLUSTER_ID, CONTROLLER, CONTROLLER_EPOCH, MIGRATION, REASSIGN, PREFERRED_ELECTION)
    cluster_id, controller, epoch, migration, reassign, election = await tree.get_many(paths)
    topics = await objects_below(tree, TOPICS)
    return ZooKeeperView(
        cluster_id=_cluster_id(cluster_id),
        controller=controller_of(controller),
        controller_epoch=_epoch(epoch),
        migration=_migration(migration),
        broker_ids=_broker_ids(await tree.children(BROKER_IDS) or ()),
        pending_deletions=await tree.children(DELETE_TOPICS) or (),
        reassignments=tuple(sorted({*_requested(reassign), *_reassigning(topics)})),
        is_preferred_election_pending=election is not None,
        assigned_broker_ids=_assigned(topics.values()),
        topics_without_id=tuple(name for name, topic in topics.items() if not topic.get("topic_id")),
    )


async def assigned_to(tree: ZooKeeperTree, broker_ids: Iterable[int]) -> dict[int, tuple[str, ...]]:
    """The partitions that are assigned to each of these brokers, by name."""
    found: dict[int, list[str]] = {broker_id: [] for broker_id in broker_ids}
    for name, topic in (await objects_below(tree, TOPICS)).items():
        for partition, replicas in as_object(topic.get("partitions")).items():
            for broker_id in set(replicas if isinstance(replicas, list) else ()) & set(found):
                found[broker_id].append(f"{name}-{partition}")
    return {broker_id: tuple(sorted(partitions)) for broker_id, partitions in found.items()}


async def cluster_id_in(tree: ZooKeeperTree) -> str | None:
    """Of a view only this."""
    return _cluster_id(await tree.get(CLUSTER_ID))


async def claim_and_offset(tree: ZooKeeperTree) -> dict[str, ControllerZnode | MigrationZnode | None]:
    """Of a view only what dual write is judged by: two znodes, to be had within moments."""
    controller, migration = await tree.get_many((CONTROLLER, MIGRATION))
    return {"controller": controller_of(controller), "migration": _migration(migration)}


def bytes_of_names(names: Iterable[str]) -> int:
    """Of an answer that lists them: each has its length before it (jute)."""
    return sum(NAME_OVERHEAD + len(name.encode()) for name in names)


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _unreadable(path: str) -> Transient:
    return Transient(f"znode {path}: its content cannot be parsed; expected what Kafka writes there")


def _cluster_id(znode: Znode | None) -> str | None:
    if znode is None:
        return None
    value = object_in(znode).get("id")
    if not isinstance(value, str):
        raise _unreadable(CLUSTER_ID)
    return value


def controller_of(znode: Znode | None) -> ControllerZnode | None:
    """What `/controller` says; `None` where it is not there."""
    if znode is None:
        return None
    content = object_in(znode)
    broker_id = _integer(content.get("brokerid"))
    if broker_id is None:
        raise _unreadable(CONTROLLER)
    return ControllerZnode(
        broker_id=broker_id,
        kraft_epoch=_integer(content.get("kraftControllerEpoch")),
        is_ephemeral=znode.ephemeral_owner != 0,
        claimed_at=znode.created_at,
    )


def _epoch(znode: Znode | None) -> int | None:
    if znode is None:
        return None
    try:
        return int(znode.data)
    except ValueError as error:
        raise _unreadable(CONTROLLER_EPOCH) from error


def _migration(znode: Znode | None) -> MigrationZnode | None:
    if znode is None:
        return None
    content = object_in(znode)
    return MigrationZnode(
        controller_id=_integer(content.get("kraft_controller_id")),
        controller_epoch=_integer(content.get("kraft_controller_epoch")),
        offset=_integer(content.get("kraft_metadata_offset")),
    )


def _broker_ids(names: Sequence[str]) -> tuple[int, ...]:
    try:
        return tuple(sorted(int(name) for name in names))
    except ValueError as error:
        raise _unreadable(BROKER_IDS) from error


def _requested(znode: Znode | None) -> tuple[str, ...]:
    """Reassignments asked for through the znode; the znode's own name if it cannot be parsed."""
    if znode is None:
        return ()
    partitions = object_in(znode).get("partitions")
    if not isinstance(partitions, list) or not all(isinstance(entry, dict) for entry in partitions):
        return (REASSIGN,)
    return tuple(f"{entry.get('topic')}-{entry.get('partition')}" for entry in partitions)


def _reassigning(topics: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    """Reassignments asked for through the Kafka protocol (KIP-455): they live in the topic's znode, from version 2 on."""
    return tuple(
        f"{name}-{partition}"
        for name, topic in topics.items()
        for key in ("adding_replicas", "removing_replicas")
        for partition, replicas in as_object(topic.get(key)).items()
        if replicas
    )


def _assigned(topics: Iterable[dict[str, Any]]) -> tuple[int, ...]:
    """All broker ids in assignments. `partitions` is the same in versions 1 to 3."""
    lists = (replicas for topic in topics for replicas in as_object(topic.get("partitions")).values())
    found = {_integer(replica) for replicas in lists if isinstance(replicas, list) for replica in replicas}
    return tuple(sorted(broker_id for broker_id in found if broker_id is not None))


async def missing_paths(tree: ZooKeeperTree) -> tuple[str, ...]:
    """Parents that Kafka keeps, and that somebody has deleted."""
    found = await tree.get_many(KEPT_PATHS)
    return tuple(path for path, znode in zip(KEPT_PATHS, found, strict=True) if znode is None)
