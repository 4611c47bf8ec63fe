"""What is looked for only at some times: hazards of a failover and poisoned znodes when something is wrong, for it means to
read everything; before the copy whether every controller has registered.

And whether it is: a look at a large cluster takes seconds, in which an idle quorum writes more records than dual write may be
behind. So who seems dead is looked at once more, log end and offset within moments.
"""

import asyncio
import math

from activities.node_files import storage_of
from activities.observing.epochs import TOPICS_AT_ONCE
from activities.observing.in_time import time_for
from activities.observing.zookeeper_view import TOPICS, claim_and_offset
from activities.ports.kafka import ClusterMetrics
from activities.ports.nodes import NodeDrivers
from activities.ports.ports import Ports
from activities.ports.zookeeper import ZooKeepers, ZooKeeperTree, session
from activities.zk_to_kraft.poison import poisoned_znodes, state_paths
from activities.zk_to_kraft.quorum_log import open_log, read_on, registered_controllers
from domain.errors import KeeperlessError, Transient
from domain.health.quorum import quorum_leader
from domain.observed.observation import Observation, Suspect, Unanswered
from domain.observed.parts import no_answer
from domain.policy import MigrationPolicy
from domain.records import ClusterRecord
from domain.zk_to_kraft.probed import with_probed
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.situation import Claim, DualWrite, QuorumState

WHY_HARMFUL = "a new leader cannot compare it with ZooKeeper, and retries for ever: dual write would not begin. Delete it"

WHY_NO_ZNODE = (
    "its name cannot be a znode's: KRaft accepts such an ACL, but it never reaches ZooKeeper (KAFKA-13983). Brokers in "
    "ZooKeeper or migration mode do not have it, a rollback loses it, and the next active controller fails on it for ever. "
    "Remove it with kafka-acls.sh --remove, through a broker, or create it for another name; restart no active controller "
    "before that. After finalisation it may be created again"
)

WHY_HALF_WRITTEN = (
    "a controller died while it wrote this topic: a new leader sets a state that does not exist, fails, and retries for "
    "ever. Create the state, or roll back: the rollback creates it"
)

POISON_SECONDS = 10.0
"""For the search for poisoned znodes. The cluster has no controller meanwhile: the way back begins without their names."""


async def with_suspects(
    observation: Observation,
    cluster: ClusterRecord,
    ports: Ports,
    policy: MigrationPolicy,
    names_seconds: float | None = None,
) -> Observation:
    """The observation, with what could be found. What cannot be read stays `None`, and is named among what did not answer."""
    drivers, zookeepers = ports.drivers, ports.zookeepers
    poison_seconds = POISON_SECONDS if names_seconds is None else names_seconds
    situation = situation_of(observation, cluster.spec, policy)
    is_before_copy = situation.quorum is QuorumState.PRE_MIGRATION and situation.claim is not Claim.KRAFT
    what, limit = "registrations" if is_before_copy else "suspects", time_for(math.inf)
    try:
        async with asyncio.timeout(None if limit == math.inf else limit):
            if is_before_copy:
                return await _with_unregistered(observation, cluster, drivers)
            if situation.dual_write is DualWrite.DEAD:
                observation = await _with_offset_of_now(observation, cluster, zookeepers, ports.metrics)
                situation = situation_of(observation, cluster.spec, policy)
            if situation.dual_write is DualWrite.DEAD:
                hazards = (*await strays_in_log(observation, cluster, drivers), *await _half_written(cluster, zookeepers))
                return with_probed(observation, failover_hazards=hazards)
            if situation.is_copy_failed and poison_seconds:
                return with_probed(observation, poisoned_znodes=await _poisoned(cluster, zookeepers, poison_seconds))
            return observation
    except KeeperlessError as error:
        missing = Unanswered(what=what, why=str(error))
    except TimeoutError:
        missing = Unanswered(what=what, why=no_answer(limit), is_cut_short=True)
    return observation.model_copy(update={"unanswered": (*observation.unanswered, missing)})


async def _with_unregistered(observation: Observation, cluster: ClusterRecord, drivers: NodeDrivers) -> Observation:
    """A registration that was not answered is never sent again (KAFKA-20247), and the copy waits for it for ever.

    A leader whose files give no answer is waited for already.
    """
    leader = quorum_leader(observation, cluster.spec)
    if leader is None or observation.node(leader.id).disk is None:
        return observation
    node, ids = cluster.spec.node(leader.id), [controller.id for controller in cluster.spec.controllers]
    driver = drivers.driver(node)
    registered = await registered_controllers(driver, (await storage_of(driver, node)).metadata_log, ids)
    if registered is None:
        return observation
    return with_probed(observation, unregistered=tuple(i for i in ids if i not in registered))


async def _with_offset_of_now(
    observation: Observation, cluster: ClusterRecord, zookeepers: ZooKeepers, metrics: ClusterMetrics
) -> Observation:
    """The log's end first: so the offset is no older than it is."""
    leader = quorum_leader(observation, cluster.spec)
    if leader is None or observation.zookeeper is None:
        return observation
    async with session(zookeepers, cluster) as tree:
        gauges = await metrics.read(cluster.spec.node(leader.id).metrics)
        znodes = await claim_and_offset(tree)
    gauges = gauges.model_copy(update={"kafka_version": leader.metrics.kafka_version})
    nodes = (n if n.id != leader.id else n.model_copy(update={"metrics": gauges}) for n in observation.nodes)
    zookeeper = observation.zookeeper.model_copy(update=znodes)
    return observation.model_copy(update={"nodes": tuple(nodes), "zookeeper": zookeeper})


async def strays_in_log(observation: Observation, cluster: ClusterRecord, drivers: NodeDrivers) -> tuple[Suspect, ...]:
    """What is in the leader's log, and ZooKeeper cannot hold, each by its name."""
    leader = quorum_leader(observation, cluster.spec)
    if leader is None:
        raise Transient("no controller is active, so no log can be searched for hazards")
    if observation.node(leader.id).disk is None:
        raise Transient(f"the files of {cluster.spec.node_name(leader.id)}, which leads, cannot be read")
    node = cluster.spec.node(leader.id)
    driver = drivers.driver(node)
    directory = (await storage_of(driver, node)).metadata_log
    reading = await open_log(driver, directory)
    if reading is None:
        raise Transient(f"{directory}: there is no log, although {cluster.spec.node_name(leader.id)} is active")
    strays = (await read_on(driver, reading)).facts.strays
    return tuple(
        Suspect(what=s.what, why=WHY_NO_ZNODE, is_lost_change=True, offset=s.offset)
        if s.is_acl
        else Suspect(what=s.what, why=WHY_HARMFUL)
        for s in strays
    )


async def _half_written(cluster: ClusterRecord, zookeepers: ZooKeepers) -> tuple[Suspect, ...]:
    """Topics of which ZooKeeper has not every partition's state, each by its first one (`window.half_written`)."""
    async with session(zookeepers, cluster) as tree:
        lacking = await _states_that_lack(tree)
    first = {path.removeprefix(f"{TOPICS}/").partition("/")[0]: path for path in reversed(lacking)}
    return tuple(
        Suspect(what=f"topic {name} without {first[name]}", why=WHY_HALF_WRITTEN, is_mended_by_window=True)
        for name in sorted(first)
    )


async def _states_that_lack(tree: ZooKeeperTree) -> list[str]:
    paths = [f"{TOPICS}/{name}" for name in await tree.children(TOPICS) or ()]
    lacking: list[str] = []
    for start in range(0, len(paths), TOPICS_AT_ONCE):
        some = paths[start : start + TOPICS_AT_ONCE]
        found = zip(some, await tree.get_many(some), strict=True)
        states = state_paths({path: topic.data for path, topic in found if topic is not None})
        lacking += [path for path, state in zip(states, await tree.get_many(states), strict=True) if state is None]
    return lacking


async def _poisoned(cluster: ClusterRecord, zookeepers: ZooKeepers, seconds: float) -> tuple[Suspect, ...]:
    try:
        async with asyncio.timeout(seconds):
            async with session(zookeepers, cluster) as tree:
                return await poisoned_znodes(tree)
    except TimeoutError as error:
        raise Transient(f"the search for znodes that kill the copy took longer than {seconds:g} s") from error
