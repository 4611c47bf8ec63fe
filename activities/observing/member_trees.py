"""Asks the members of the ensemble, all at once and a few times, how many znodes each has."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial

from activities.concurrently import all_of
from activities.ports.kafka import ClusterMetrics
from activities.ports.zookeeper import ZooKeepers
from domain.cluster import ClusterSpec, NodeSpec, Role, servers_in
from domain.diagnosis.causes.ensemble import ARE_TWO, are_torn, is_doubtful, sides_of
from domain.errors import KeeperlessError, Obstacle, Transient
from domain.observed.ensemble import MemberTree, Trees, are_alike, counts_of, equally_far, is_seen_before, tree_in
from domain.observed.observation import MigrationGauge
from domain.records import ClusterRecord

Ask = Callable[[str], Awaitable[MemberTree | None]]
"""By `host:port`."""

LOOKS = 5
PAUSE_SECONDS = 0.3
ALL_SECONDS = 2.0
"""For all looks together. Where members agree the first one is enough."""
ASK_SECONDS = 1.0
"""Before a roll. Who does not answer by then is not compared."""


async def differing_trees(ask: Ask, addresses: Sequence[str]) -> Trees:
    """Members with one zxid and different numbers of znodes, seen so twice; empty where they agree, or nobody can tell."""
    earlier: list[Trees] = []
    for _ in range(LOOKS if len(addresses) > 1 else 0):
        if earlier:
            await asyncio.sleep(PAUSE_SECONDS)
        told = {address: tree for address, tree in (await _told(ask, addresses)).items() if not tree.is_alone}
        if are_alike(told):
            return {}
        trees = equally_far(told)
        if is_seen_before(trees, earlier):
            return trees
        earlier.append(trees)
    return {}


async def torn_trees(ask: Ask, addresses: Sequence[str]) -> Trees:
    """What all say where they are two ensembles, seen so twice; empty where they are one, or nobody can tell."""
    first = await _told(ask, addresses)
    if not is_doubtful(first):
        return {}
    await asyncio.sleep(PAUSE_SECONDS)
    then = await _told(ask, addresses)
    return then if are_torn(first, then) else {}


async def ensure_not_torn(cluster: ClusterRecord, zookeepers: ZooKeepers) -> None:
    """`Transient` where a session shows one tree of two."""
    trees = await torn_trees(partial(_tree_of, zookeepers), servers_in(cluster.spec.ensemble.connect))
    if trees:
        sides = " against ".join(side.in_words for side in sides_of(trees))
        raise Transient(f"{ARE_TWO}: {sides}", obstacle=Obstacle.TORN)


async def _told(ask: Ask, addresses: Sequence[str]) -> Trees:
    answers = await asyncio.gather(*(ask(address) for address in addresses))
    return {address: tree for address, tree in zip(addresses, answers, strict=True) if tree is not None}


async def why_trees_differ(
    cluster: ClusterRecord, nodes: Sequence[NodeSpec], urgent: Collection[Role], zookeepers: ZooKeepers, metrics: ClusterMetrics
) -> str | None:
    """Why nodes are not to be rolled forward: the last hybrid broker's roll has its controller copy what one session shows,
    every broker's makes writes that fail at a member which lacks their znodes, and after finalize nobody has the other tree.

    What looks the same through one session is not compared with the others' by any check. The flag that a controller has lost
    is given back whatever ZooKeeper has; after the end nobody needs it.
    """
    is_due = any(cluster.spec.role(node.id) not in urgent for node in nodes)
    if not is_due or await _is_final(cluster.spec, metrics):
        return None
    trees = await differing_trees(partial(_tree_of, zookeepers), servers_in(cluster.spec.ensemble.connect))
    if not trees:
        return None
    return f"ZooKeeper's members have different trees: {counts_of(trees)}. Nothing was stopped. GET blockers says what to do."


async def _tree_of(zookeepers: ZooKeepers, address: str) -> MemberTree | None:
    try:
        async with asyncio.timeout(ASK_SECONDS):
            answer = await zookeepers.ask(address, "srvr")
    except (KeeperlessError, TimeoutError):
        return None
    return tree_in(answer.encode()) if answer else None


async def _is_final(spec: ClusterSpec, metrics: ClusterMetrics) -> bool:
    async def said(node: NodeSpec) -> bool:
        try:
            return (await metrics.read(node.metrics)).migration_gauge is MigrationGauge.POST_MIGRATION
        except KeeperlessError:
            return False

    return any(await all_of(*(said(node) for node in spec.controllers)))
