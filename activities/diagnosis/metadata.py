"""What is in ZooKeeper, or is not, and may explain why nothing happens: trees, throttles, limits, topics, who asks most."""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from activities.diagnosis.brokers import written
from activities.observing.coordinators import made_at
from activities.observing.in_time import in_time
from activities.observing.member_trees import ALL_SECONDS, differing_trees, torn_trees
from activities.observing.topics import forgotten_topics
from activities.observing.zookeeper_view import BROKER_CONFIGS, IP_CONFIGS, missing_paths
from activities.ports.ports import Ports
from activities.ports.zookeeper import (
    ZooKeepers,
    ZooKeeperServers,
    ZooKeeperTree,
    config_in,
    paths_below,
    present,
    session,
)
from domain.cluster import host_and_port, servers_in
from domain.diagnosis.causes.case import Case
from domain.diagnosis.causes.hints import ConnectionLimit, Hints, Pace, Serving, limits_in
from domain.errors import Obstacle, Transient
from domain.observed.coordinators import Miscount, counters_seen, miscounts
from domain.observed.ensemble import Trees
from domain.records import ClusterRecord

Brakes = tuple[tuple[str, ...], tuple[ConnectionLimit, ...]]
"""Znodes with throttles of replication, and limits of connections."""
NOTHING: tuple[str, ...] = ()
NO_MISCOUNT: tuple[Miscount, ...] = ()
NO_TREES: Trees = {}
NOTHING_WRITTEN: tuple[Pace, ...] = ()
NO_BRAKES: Brakes = ((), ())


@dataclass(frozen=True)
class MetadataHints:
    """Each in the time in which somebody waits for an answer. `serving`: what each server of the ensemble has said of itself.
    `silent`: takes what did not answer in time."""

    ports: Ports
    servers: ZooKeeperServers
    cluster: ClusterRecord
    case: Case
    serving: Mapping[str, Serving]
    silent: list[str]

    async def found(self) -> Hints:
        silent, well = self.silent, [a for a, said in self.serving.items() if said in {Serving.YES, Serving.ALONE}]
        trees = partial(differing_trees, lambda address: self.servers.tree(*host_and_port(address)), well)
        of_members = asyncio.gather(
            in_time("the trees of ZooKeeper's members", trees, silent, NO_TREES, ALL_SECONDS),
            in_time("the sides of ZooKeeper's members", partial(self._torn, well), silent, NO_TREES, ALL_SECONDS),
            in_time("who asks ZooKeeper most", self._busiest, silent, NOTHING),
            in_time("how fast what lags is written", self._written, silent, NOTHING_WRITTEN),
        )
        of_znodes = asyncio.gather(
            in_time("how many partitions coordinate", self._miscounts, silent, NO_MISCOUNT),
            in_time("throttles, and limits of connections", self._brakes, silent, NO_BRAKES),
            in_time("topics in ZooKeeper", self._forgotten, silent, NOTHING),
            in_time("what Kafka keeps in ZooKeeper", self._missing, silent, NOTHING),
        )
        (differing, torn, busiest, paces), (miscounted, (throttled, limits), forgotten, missing) = await asyncio.gather(
            of_members, of_znodes
        )
        return Hints(
            trees=differing,
            torn=torn,
            busiest=busiest,
            written=paces,
            miscounts=miscounted,
            throttles=throttled,
            limits=limits,
            forgotten=forgotten,
            missing=missing,
        )

    async def _torn(self, well: list[str]) -> Trees:
        """Where the look has found them so."""
        if not any(part.obstacle is Obstacle.TORN for part in self.case.observation.unanswered):
            return NO_TREES
        return await torn_trees(lambda address: self.servers.tree(*host_and_port(address)), well)

    async def _busiest(self) -> tuple[str, ...]:
        is_slow = not {Serving.BUSY, Serving.STUCK}.isdisjoint(self.serving.values())
        if not is_slow and not self.case.facts.is_leader_stuck:
            return ()
        return await busy_clients(self.ports.zookeepers, self.cluster.spec.ensemble.connect)

    async def _written(self) -> tuple[Pace, ...]:
        kafka = self.case.observation.kafka
        return await written(self.ports.kafka, self.cluster, kafka.under_replicated) if kafka is not None else ()

    async def _brakes(self) -> Brakes:
        """What keeps replicas from catching up, where some have to, and connections from being taken."""
        kafka = self.case.observation.kafka
        if self.case.observation.zookeeper is None or (kafka is not None and not kafka.under_replicated):
            return NO_BRAKES
        async with session(self.ports.zookeepers, self.cluster) as tree:
            return await throttles(tree), await connection_limits(tree)

    async def _forgotten(self) -> tuple[str, ...]:
        observation = self.case.observation
        if not self.case.facts.is_zookeeper_in_charge or observation.zookeeper is None or observation.kafka is None:
            return ()
        return await forgotten_topics(self.cluster, self.ports)

    async def _miscounts(self) -> tuple[Miscount, ...]:
        """As long as brokers are to be restarted."""
        facts, observation = self.case.facts, self.case.observation
        if not facts.uses_zookeeper or not facts.started_with_zookeeper or observation.zookeeper is None:
            return ()
        async with session(self.ports.zookeepers, self.cluster) as tree:
            made = await made_at(tree)
        return miscounts(made, counters_seen(observation, self.cluster.spec))

    async def _missing(self) -> tuple[str, ...]:
        if not self.case.facts.uses_zookeeper or self.case.observation.zookeeper is None:
            return ()
        async with session(self.ports.zookeepers, self.cluster) as tree:
            return await missing_paths(tree)


RATE = ".replication.throttled.rate"
"""The end of a broker's two keys. Without a rate the lists of throttled replicas, which topics have, hold nothing back."""


async def throttles(tree: ZooKeeperTree) -> tuple[str, ...]:
    """The znodes of the brokers that have one."""
    found = await _configs(tree, BROKER_CONFIGS)
    return tuple(path for path, config in found.items() if any(key.endswith(RATE) for key in config))


async def connection_limits(tree: ZooKeeperTree) -> tuple[ConnectionLimit, ...]:
    """Of addresses (KIP-612), and of brokers and their listeners."""
    found = {**await _configs(tree, IP_CONFIGS), **await _configs(tree, BROKER_CONFIGS)}
    return tuple(limit for path, config in found.items() for limit in limits_in(path, config))


async def _configs(tree: ZooKeeperTree, parent: str) -> dict[str, Mapping[str, str]]:
    """By path."""
    found = await present(tree, await paths_below(tree, parent))
    return {path: config_in(znode) for path, znode in found.items()}


SECONDS_BETWEEN = 1.0
MANY_REQUESTS, MANY_CONNECTIONS = 200.0, 50
"""A second: more than a broker or controller that is well comes to."""
MOST_NAMED = 3
CONNECTION = re.compile(r"^\s*/?(?P<client>\S+)\[\d+\]\(.*?\brecved=(?P<received>\d+)", re.MULTILINE)


async def busy_clients(zookeepers: ZooKeepers, connect: str) -> tuple[str, ...]:
    """In words, the busiest first: connections that ask much, and hosts that connect anew all the time."""
    before = await _received(zookeepers, connect)
    if not before:
        return ()
    began = asyncio.get_running_loop().time()
    await asyncio.sleep(SECONDS_BETWEEN)
    now = await _received(zookeepers, connect)
    seconds = asyncio.get_running_loop().time() - began
    rates = Counter({client: (count - before[client]) / seconds for client, count in now.items() if client in before})
    fresh = Counter(client.rpartition(":")[0] for client in now if client not in before)
    asking = [f"{client} ({rate:.0f} requests a second)" for client, rate in rates.most_common() if rate >= MANY_REQUESTS]
    connecting = [f"{host} ({count} new connections)" for host, count in fresh.most_common() if count >= MANY_CONNECTIONS]
    return (*asking[:MOST_NAMED], *connecting[:MOST_NAMED])


async def _received(zookeepers: ZooKeepers, connect: str) -> dict[str, int]:
    """By client, over all servers."""
    told = await asyncio.gather(*(_connections(zookeepers, address) for address in servers_in(connect)))
    return {found["client"]: int(found["received"]) for answer in told for found in CONNECTION.finditer(answer)}


async def _connections(zookeepers: ZooKeepers, address: str) -> str:
    try:
        return await zookeepers.ask(address, "cons") or ""
    except Transient:
        return ""  # who does not answer is told elsewhere
