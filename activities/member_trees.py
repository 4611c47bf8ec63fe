"""Asks the members of the ensemble, all at once and a few times, how many znodes each has."""

import asyncio
from collections.abc import Mapping

from activities.ports.zookeeper import ZooKeeperServers
from domain.cluster import host_and_port
from domain.zk_to_kraft.causes import Serving
from domain.zk_to_kraft.member_trees import Trees, are_alike, equally_far, is_seen_before

LOOKS = 5
PAUSE_SECONDS = 0.3
ALL_SECONDS = 2.0
"""For all looks together. Where members agree the first one is enough."""


async def differing_trees(servers: ZooKeeperServers, serving: Mapping[str, Serving]) -> Trees:
    """Members with one zxid and different numbers of znodes, seen so twice; empty where they agree, or nobody can tell."""
    asked = [address for address, state in serving.items() if state is Serving.YES]
    earlier: list[Trees] = []
    for _ in range(LOOKS if len(asked) > 1 else 0):
        if earlier:
            await asyncio.sleep(PAUSE_SECONDS)
        told = await _told(servers, asked)
        if are_alike(told):
            return {}
        trees = equally_far(told)
        if is_seen_before(trees, earlier):
            return trees
        earlier.append(trees)
    return {}


async def _told(servers: ZooKeeperServers, addresses: list[str]) -> Trees:
    answers = await asyncio.gather(*(servers.tree(*host_and_port(address)) for address in addresses))
    return {address: tree for address, tree in zip(addresses, answers, strict=True) if tree is not None}
