"""What only ZooKeeper to KRaft looks up to tell why nothing happens: what the copy and dual write meet, or lack."""

import asyncio
import time
from functools import partial

from activities.node_files import storage_of
from activities.observing.in_time import in_time
from activities.observing.topics import topics_on_disk
from activities.observing.zookeeper_view import assigned_to
from activities.ports.ports import Ports
from activities.ports.zookeeper import ZooKeeperTree, paths_below, present, session
from activities.zk_to_kraft.poison import unreadable_znodes
from activities.zk_to_kraft.quorum_log import read_on, read_tail
from activities.zk_to_kraft.suspects import strays_in_log
from domain.health.quorum import quorum_leader
from domain.observed.observation import Suspect
from domain.observed.topic_directories import TopicOnDisk
from domain.records import ClusterRecord
from domain.zk_to_kraft.causes.case import MigrationCase, MigrationLookups, Unwritten
from domain.zk_to_kraft.causes.znodes import MOST_TOPICS
from domain.zk_to_kraft.situation import Claim, DualWrite, QuorumState

NOTHING_ASSIGNED: dict[int, tuple[str, ...]] = {}
NOTHING: tuple[str, ...] = ()
NO_TOPICS: tuple[TopicOnDisk, ...] = ()
NO_SUSPECT: tuple[Suspect, ...] = ()
MEANWHILE_SECONDS = 1.0
ACCESS = ("/kafka-acl", "/kafka-acl-extended/prefixed")
LARGE = 900_000
"""Bytes. ZooKeeper takes no request over jute.maxbuffer, 1,048,575 by default, and KRaft has a record for each ACL."""


async def migration_lookups(cluster: ClusterRecord, case: MigrationCase, ports: Ports, silent: list[str]) -> MigrationLookups:
    """Each in the time in which somebody waits for an answer. `silent`: takes what did not answer in time."""
    theirs = (cluster, case, ports)
    assigned, strays, unreadable, topics, lacking, large = await asyncio.gather(
        in_time("assignments in ZooKeeper", partial(_assigned, *theirs), silent, NOTHING_ASSIGNED),
        in_time("what ZooKeeper cannot hold of the quorum's log", partial(_strays, *theirs), silent, NO_SUSPECT),
        in_time("znodes that the copy reads", partial(_unreadable, *theirs), silent, NO_SUSPECT),
        in_time("topic ids on brokers' disks", partial(_topics, *theirs), silent, NO_TOPICS),
        in_time("what ZooKeeper lacks", partial(_unwritten, *theirs), silent, None),
        in_time("how large znodes are", partial(_crowded, *theirs), silent, NOTHING),
    )
    return MigrationLookups(assigned, strays, unreadable, topics, lacking, large)


def _is_write_behind(case: MigrationCase) -> bool:
    """Dual write, by the quorum that ZooKeeper knows."""
    is_ours = case.facts.is_kraft_in_charge and case.situation.claim is Claim.KRAFT
    return is_ours and case.situation.dual_write is not DualWrite.CURRENT


async def _unreadable(cluster: ClusterRecord, case: MigrationCase, ports: Ports) -> tuple[Suspect, ...]:
    """What would kill the copy, or be lost in it, as long as it has not begun."""
    is_claimed = case.observation.zookeeper is None or case.situation.claim is not Claim.ZOOKEEPER
    if is_claimed or case.situation.quorum is not QuorumState.PRE_MIGRATION:
        return ()
    async with session(ports.zookeepers, cluster) as tree:
        return await unreadable_znodes(tree)


async def _assigned(cluster: ClusterRecord, case: MigrationCase, ports: Ports) -> dict[int, tuple[str, ...]]:
    """Where ids are assigned that nobody is registered with, before the copy: Kafka waits for them for ever."""
    zookeeper = case.observation.zookeeper
    if zookeeper is None or not case.facts.is_zookeeper_in_charge:
        return {}
    gone = set(zookeeper.assigned_broker_ids) - set(zookeeper.broker_ids) - {b.id for b in cluster.spec.brokers}
    if not gone:
        return {}
    async with session(ports.zookeepers, cluster) as tree:
        return await assigned_to(tree, gone)


async def _topics(cluster: ClusterRecord, case: MigrationCase, ports: Ports) -> tuple[TopicOnDisk, ...]:
    """Where the next ZooKeeper controller would make up an id."""
    zookeeper = case.observation.zookeeper
    lacking = zookeeper.topics_without_id[:MOST_TOPICS] if zookeeper is not None and case.facts.uses_zookeeper else ()
    return await topics_on_disk(cluster, ports, lacking) if lacking else NO_TOPICS


async def _strays(cluster: ClusterRecord, case: MigrationCase, ports: Ports) -> tuple[Suspect, ...]:
    """What a failover would choke on, before there is one."""
    if not case.facts.is_kraft_in_charge or quorum_leader(case.observation, cluster.spec) is None:
        return ()
    return await strays_in_log(case.observation, cluster, ports.drivers)


async def _unwritten(cluster: ClusterRecord, case: MigrationCase, ports: Ports) -> Unwritten | None:
    """From the leader's log on its disk, read twice: a flood of changes and a slow ZooKeeper look the same in every gauge.
    `None` where dual write keeps up, nobody leads, or ZooKeeper's offset is not known."""
    leader = quorum_leader(case.observation, cluster.spec) if _is_write_behind(case) else None
    znode = case.observation.zookeeper.migration if case.observation.zookeeper is not None else None
    if leader is None or znode is None or znode.offset is None:
        return None
    node = cluster.spec.node(leader.id)
    driver = ports.drivers.driver(node)
    began = time.monotonic()
    first = await read_tail(driver, (await storage_of(driver, node)).metadata_log, znode.offset)
    if first is None:
        return None
    await asyncio.sleep(MEANWHILE_SECONDS)
    then = await read_on(driver, first)
    more = sum(then.facts.changes.values()) - sum(first.facts.changes.values())
    return Unwritten(then.facts.change_names, then.facts.most_configured, more, time.monotonic() - began)


async def _crowded(cluster: ClusterRecord, case: MigrationCase, ports: Ports) -> tuple[str, ...]:
    """Znodes of ACLs that hardly take one more, where dual write is behind: each has all of one resource."""
    if not _is_write_behind(case):
        return ()
    async with session(ports.zookeepers, cluster) as tree:
        return await crowded(tree)


async def crowded(tree: ZooKeeperTree) -> tuple[str, ...]:
    kinds = [kind for root in ACCESS for kind in await paths_below(tree, root)]
    found = await present(tree, [path for kind in kinds for path in await paths_below(tree, kind)])
    return tuple(f"{path} ({len(znode.data):,} bytes)" for path, znode in found.items() if len(znode.data) > LARGE)
