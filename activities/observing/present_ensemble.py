"""How the living ensemble is right before a server's files are copied: who is registered, and how new the files have to be.

    1. a session is opened             (a transaction of this very epoch: the files of whoever follows have it a moment later)
    2. its server catches up with the leader, and some znodes are read
    3. every server is asked by itself which transaction it has processed last (`srvr`, "Zxid")

What the leader has processed counts. A follower's counts where each server that may be the one of our session has told: that
one has caught up. A server that is cut off serves nobody, or says "read-only". Where nobody can be asked, what is known is
what a few znodes tell, which change seldom: a server that lags for hours may have those, so that is told as not verified.
"""

import asyncio
from dataclasses import dataclass

from activities.observing.zookeeper_view import BROKER_IDS, CONTROLLER, CONTROLLER_EPOCH
from activities.ports.zookeeper import ZooKeepers, ZooKeeperTree, session
from domain.cluster import servers_in
from domain.errors import Transient
from domain.records import ClusterRecord

LEADING = frozenset({"leader", "standalone"})
SERVING = LEADING | {"follower", "observer"}
"""Modes in `srvr` of servers that are part of a quorum, or need none."""


@dataclass(frozen=True)
class Newest:
    """`zxid`: what a copy has to have. `why_unsure`: why the ensemble may be newer; empty where servers have told."""

    zxid: int
    why_unsure: str = ""


@dataclass(frozen=True)
class Present:
    """`brokers`: what those that live have registered."""

    brokers: dict[int, str]
    newest: Newest


async def present_ensemble(zookeepers: ZooKeepers, cluster: ClusterRecord) -> Present:
    """Only reads."""
    async with session(zookeepers, cluster) as tree:
        await tree.sync()
        brokers, known = await _registered(tree)
        told = await newest_told(zookeepers, cluster.spec.ensemble.connect)
    return Present(brokers, Newest(max(known, told.zxid), told.why_unsure))


async def _registered(tree: ZooKeeperTree) -> tuple[dict[int, str], int]:
    """The brokers, and the newest transaction that they and the controller's znodes tell of."""
    ids = [name for name in await tree.children(BROKER_IDS) or () if name.isdecimal()]
    rule = await tree.get_many([CONTROLLER, CONTROLLER_EPOCH])
    brokers = dict(zip(ids, await tree.get_many([f"{BROKER_IDS}/{name}" for name in ids]), strict=True))
    known = max((znode.modified_zxid for znode in (*rule, *brokers.values()) if znode is not None), default=0)
    return {int(name): znode.data.decode(errors="replace") for name, znode in brokers.items() if znode is not None}, known


async def newest_told(zookeepers: ZooKeepers, connect: str) -> Newest:
    """What the servers themselves say."""
    addresses = servers_in(connect)
    told = dict(zip(addresses, await asyncio.gather(*(said_of_itself(zookeepers, each) for each in addresses)), strict=True))
    serving = [lines for lines in told.values() if lines and zxid_in(lines) is not None]
    zxid = max((zxid_in(lines) or 0 for lines in serving), default=0)
    mute = [address for address, lines in told.items() if lines is None]
    if any(lines["Mode"] in LEADING for lines in serving) or (serving and not mute):
        return Newest(zxid)
    who = (
        f"{', '.join(mute)} does not report its mode, and no other one leads"
        if mute
        else f"none of {', '.join(addresses)} answers"
    )
    return Newest(zxid, f"no server reports how new the ensemble is (srvr): {who}")


async def said_of_itself(zookeepers: ZooKeepers, address: str) -> dict[str, str] | None:
    """Of `srvr`; empty where nobody serves at that address, and `None` where somebody may, and does not say."""
    try:
        answer = await zookeepers.ask(address, "srvr")
    except Transient:
        return {}
    if not answer:
        return None
    return lines_of_srvr(answer)


def lines_of_srvr(answer: str) -> dict[str, str]:
    """Of `srvr`, by their names: `Mode`, `Zxid` …"""
    return {name: value.strip() for name, _, value in (line.partition(":") for line in answer.splitlines())}


def zxid_in(said: dict[str, str]) -> int | None:
    """The last transaction that it has processed; `None` where it does not serve."""
    return int(said["Zxid"], 16) if said.get("Mode") in SERVING and "Zxid" in said else None
