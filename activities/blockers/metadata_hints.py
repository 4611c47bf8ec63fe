"""`MetadataHints`: what is in ZooKeeper and in the quorum's log, or is not, and may explain why nothing happens."""

import asyncio
from collections.abc import Mapping
from functools import partial

from activities.blockers.busy_clients import busy_clients
from activities.blockers.throttles import connection_limits, throttles
from activities.blockers.unwritten import crowded, unwritten
from activities.blockers.worth_looking import is_write_behind
from activities.blockers.written import written
from activities.observing.coordinators import made_at
from activities.observing.forgotten_topics import forgotten_topics
from activities.observing.in_time import in_time
from activities.observing.member_trees import ALL_SECONDS, differing_trees, torn_trees
from activities.observing.topic_ids import topics_on_disk
from activities.observing.zookeeper_view import assigned_to, missing_paths
from activities.ports.ports import Ports
from activities.ports.zookeeper import ZooKeeperServers
from activities.sessions import session
from activities.zk_to_kraft.poison import unreadable_znodes
from activities.zk_to_kraft.suspects import strays_in_log
from domain.cluster import host_and_port
from domain.diagnosis.causes.bulk_loads import Pace
from domain.diagnosis.causes.connection_limits import ConnectionLimit
from domain.diagnosis.causes.hints import Hints, Serving, Unwritten
from domain.errors import Obstacle
from domain.health.quorum import quorum_leader
from domain.observed.coordinators import Miscount, counters_seen, miscounts
from domain.observed.ensemble import Trees
from domain.observed.observation import Observation, Suspect
from domain.observed.topic_directories import TopicOnDisk
from domain.records import ClusterRecord
from domain.zk_to_kraft.causes.topic_ids import MOST_TOPICS
from domain.zk_to_kraft.modes import BrokerMode
from domain.zk_to_kraft.situation import Claim, QuorumState, Situation

Brakes = tuple[tuple[str, ...], tuple[ConnectionLimit, ...]]
"""Znodes with throttles of replication, and limits of connections."""

NOTHING_ASSIGNED: dict[int, tuple[str, ...]] = {}
NOTHING: tuple[str, ...] = ()
NO_TOPICS: tuple[TopicOnDisk, ...] = ()
NO_SUSPECT: tuple[Suspect, ...] = ()
NO_MISCOUNT: tuple[Miscount, ...] = ()
NO_TREES: Trees = {}
NO_BRAKES: Brakes = ((), ())
NOTHING_WRITTEN: tuple[Pace, ...] = ()


class MetadataHints:
    """Each in the time in which somebody waits for an answer, as in `hints`."""

    def __init__(self, ports: Ports, servers: ZooKeeperServers) -> None:
        self._ports, self._servers = ports, servers

    async def of(
        self,
        cluster: ClusterRecord,
        observation: Observation,
        situation: Situation,
        servers: Mapping[str, Serving],
        silent: list[str],
    ) -> Hints:
        """`servers`: what each of the ensemble has said of itself. `silent`: takes what did not answer in time."""
        theirs = (cluster, observation, situation)
        well = [address for address, serving in servers.items() if serving in {Serving.YES, Serving.ALONE}]
        trees = partial(differing_trees, lambda address: self._servers.tree(*host_and_port(address)), well)
        asked = asyncio.gather(
            in_time("assignments in ZooKeeper", partial(self._assigned, *theirs), silent, NOTHING_ASSIGNED),
            in_time("what ZooKeeper cannot hold of the quorum's log", partial(self._strays, *theirs), silent, NO_SUSPECT),
            in_time("znodes that the copy reads", partial(self._unreadable, *theirs), silent, NO_SUSPECT),
            in_time("the trees of ZooKeeper's members", trees, silent, NO_TREES, ALL_SECONDS),
            in_time("the sides of ZooKeeper's members", partial(self._torn, observation, well), silent, NO_TREES, ALL_SECONDS),
            in_time("how many partitions coordinate", partial(self._miscounts, *theirs), silent, NO_MISCOUNT),
        )
        of_lag = asyncio.gather(
            in_time("throttles, and limits of connections", partial(self._brakes, cluster, observation), silent, NO_BRAKES),
            in_time("how fast what lags is written", partial(self._written, cluster, observation), silent, NOTHING_WRITTEN),
        )
        further = asyncio.gather(
            in_time("topics in ZooKeeper", partial(self._forgotten, *theirs), silent, NOTHING),
            in_time("topic ids on brokers' disks", partial(self._topics, *theirs), silent, NO_TOPICS),
            in_time("what Kafka keeps in ZooKeeper", partial(self._missing, *theirs), silent, NOTHING),
            in_time("what ZooKeeper lacks", partial(self._unwritten, *theirs), silent, None),
            in_time("how large znodes are", partial(self._crowded, cluster, situation), silent, NOTHING),
            in_time("who asks ZooKeeper most", partial(self._busiest, cluster, situation, servers), silent, NOTHING),
        )
        found, lag, more = await asyncio.gather(asked, of_lag, further)
        assigned, strays, unreadable, differing, torn, miscounted = found
        (throttled, limits), paces = lag
        forgotten, topics, missing, lacking, large, busiest = more
        return Hints(
            assigned=assigned,
            strays=strays,
            unreadable=unreadable,
            trees=differing,
            torn=torn,
            throttles=throttled,
            limits=limits,
            forgotten=forgotten,
            topics=topics,
            missing=missing,
            unwritten=lacking,
            crowded=large,
            miscounts=miscounted,
            busiest=busiest,
            written=paces,
        )

    async def _torn(self, observation: Observation, well: list[str]) -> Trees:
        """Where the look has found them so."""
        if not any(part.obstacle is Obstacle.TORN for part in observation.unanswered):
            return NO_TREES
        return await torn_trees(lambda address: self._servers.tree(*host_and_port(address)), well)

    async def _brakes(self, cluster: ClusterRecord, observation: Observation) -> Brakes:
        """What keeps replicas from catching up, where some have to, and connections from being taken."""
        kafka = observation.kafka
        if observation.zookeeper is None or (kafka is not None and not kafka.under_replicated):
            return NO_BRAKES
        async with session(self._ports.zookeepers, cluster) as tree:
            return await throttles(tree), await connection_limits(tree)

    async def _written(self, cluster: ClusterRecord, observation: Observation) -> tuple[Pace, ...]:
        kafka = observation.kafka
        return await written(self._ports.kafka, cluster, kafka.under_replicated) if kafka is not None else ()

    async def _unreadable(self, cluster: ClusterRecord, observation: Observation, situation: Situation) -> tuple[Suspect, ...]:
        """What would kill the copy, or be lost in it, as long as it has not begun."""
        is_claimed = observation.zookeeper is None or situation.claim is not Claim.ZOOKEEPER
        if is_claimed or situation.quorum is not QuorumState.PRE_MIGRATION:
            return ()
        async with session(self._ports.zookeepers, cluster) as tree:
            return await unreadable_znodes(tree)

    async def _assigned(
        self, cluster: ClusterRecord, observation: Observation, situation: Situation
    ) -> dict[int, tuple[str, ...]]:
        """Where ids are assigned that nobody is registered with, before the copy: Kafka waits for them for ever."""
        zookeeper = observation.zookeeper
        if zookeeper is None or situation.quorum not in {QuorumState.PRE_MIGRATION, QuorumState.ABSENT}:
            return {}
        gone = set(zookeeper.assigned_broker_ids) - set(zookeeper.broker_ids) - {b.id for b in cluster.spec.brokers}
        if not gone:
            return {}
        async with session(self._ports.zookeepers, cluster) as tree:
            return await assigned_to(tree, gone)

    async def _forgotten(self, cluster: ClusterRecord, observation: Observation, situation: Situation) -> tuple[str, ...]:
        has_the_metadata = situation.quorum in {QuorumState.ABSENT, QuorumState.PRE_MIGRATION}
        if not has_the_metadata or observation.zookeeper is None or observation.kafka is None:
            return ()
        return await forgotten_topics(cluster, self._ports)

    async def _topics(self, cluster: ClusterRecord, observation: Observation, situation: Situation) -> tuple[TopicOnDisk, ...]:
        """Where the next ZooKeeper controller would make up an id."""
        if situation.quorum is QuorumState.POST_MIGRATION or observation.zookeeper is None:
            return NO_TOPICS
        lacking = observation.zookeeper.topics_without_id[:MOST_TOPICS]
        return await topics_on_disk(cluster, self._ports, lacking) if lacking else NO_TOPICS

    async def _miscounts(self, cluster: ClusterRecord, observation: Observation, situation: Situation) -> tuple[Miscount, ...]:
        """As long as brokers are to be restarted."""
        is_over = situation.quorum is QuorumState.POST_MIGRATION or all(b.mode is BrokerMode.KRAFT for b in situation.brokers)
        if is_over or observation.zookeeper is None:
            return ()
        async with session(self._ports.zookeepers, cluster) as tree:
            made = await made_at(tree)
        return miscounts(made, counters_seen(observation, cluster.spec))

    async def _missing(self, cluster: ClusterRecord, observation: Observation, situation: Situation) -> tuple[str, ...]:
        if situation.quorum is QuorumState.POST_MIGRATION or observation.zookeeper is None:
            return ()
        async with session(self._ports.zookeepers, cluster) as tree:
            return await missing_paths(tree)

    async def _unwritten(self, cluster: ClusterRecord, observation: Observation, situation: Situation) -> Unwritten | None:
        return await unwritten(observation, cluster, self._ports.drivers) if is_write_behind(situation) else None

    async def _crowded(self, cluster: ClusterRecord, situation: Situation) -> tuple[str, ...]:
        if not is_write_behind(situation):
            return ()
        async with session(self._ports.zookeepers, cluster) as tree:
            return await crowded(tree)

    async def _busiest(self, cluster: ClusterRecord, situation: Situation, servers: Mapping[str, Serving]) -> tuple[str, ...]:
        is_slow = not {Serving.BUSY, Serving.STUCK}.isdisjoint(servers.values())
        if not is_slow and not is_write_behind(situation):
            return ()
        return await busy_clients(self._ports.zookeepers, cluster.spec.zookeeper.connect)

    async def _strays(self, cluster: ClusterRecord, observation: Observation, situation: Situation) -> tuple[Suspect, ...]:
        """What a failover would choke on, before there is one."""
        if situation.quorum is not QuorumState.MIGRATION or quorum_leader(observation, cluster.spec) is None:
            return ()
        return await strays_in_log(observation, cluster, self._ports.drivers)
