"""What brokers say through the Kafka protocol, by kafka-python. Works in ZooKeeper, hybrid and KRaft mode.

Metadata is one broker's answer, and a broker cut off from the controller can be behind without knowing it. So nothing is kept
between two views, and every broker that the answer lists must itself name the same brokers: else the view is `Transient`.
"""

import asyncio
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, TypeVar

from kafka.errors import KafkaError
from kafka.protocol.metadata import MetadataResponse

from activities.adapters.kafka_admin.clients import RequestingClient
from activities.adapters.kafka_admin.connections import (
    ANYBODY_THERE_SECONDS,
    CLEANUP,
    ELECTIONS_BATCH,
    MIN_ISR,
    OFFSETS_BATCH,
    Client,
    connected,
    is_anybody_there,
)
from activities.adapters.kafka_admin.errors import obstacle_at_one, translated_errors
from activities.adapters.kafka_admin.metadata import brokers_in, displaced, leaders_of, view_of
from activities.adapters.kafka_admin.replicas import layout_of, reassign, set_throttles, throttles
from activities.adapters.kafka_admin.settings import settings_of
from activities.own_network import Unresolved
from activities.ports.replicas import Targets
from activities.ports.stores import SecretStore
from domain.canaries import is_reserved
from domain.cluster import KafkaClientSpec
from domain.errors import BrokerApart, Obstacle, Transient
from domain.observed.observation import KafkaView
from domain.observed.replicas import Layout, Throttles
from domain.observed.survey import BrokerLogDir, StartedWith
from domain.offsets import GroupOffset, PartitionOffsets
from domain.records import ClusterRecord

T = TypeVar("T")

EARLIEST, LATEST = -2, -1
"""Timestamps that mean a log's first offset and its high watermark (ListOffsetsRequest)."""
GROUP_COORDINATION = "__consumer_offsets"
NO_TOPIC_ID = bytes(16)
UNSETTLED_LOOKS, UNSETTLED_SECONDS = 3, 0.2
"""At topics that were made or deleted while they were looked at: a broker knows of both within milliseconds, as a rule."""
MOST_NAMED = 5
CLIENT_SECONDS = 2.0
"""Limits each request of a client that is kept open: it is asked again, at another broker if need be."""


class BrokerAdmin:
    """`KafkaAdmin` and `ReplicaAdmin`. `seconds` limits each request; a view is at most four of them and one for each broker, a
    layout one and two for each broker."""

    def __init__(self, secrets: SecretStore, seconds: float = 5.0) -> None:
        self._secrets = secrets
        self._seconds = seconds

    async def view(self, cluster: ClusterRecord) -> KafkaView:
        return await asyncio.to_thread(self._view, cluster.spec.kafka)

    async def ask_broker(self, cluster: ClusterRecord, broker_id: int, address: str, seconds: float) -> None:
        await asyncio.to_thread(self._ask_broker, cluster.spec.kafka, broker_id, address, seconds)

    def _ask_broker(self, spec: KafkaClientSpec, broker_id: int, address: str, seconds: float) -> None:
        settings, until = settings_of(spec, self._secrets), time.monotonic() + seconds
        if not is_anybody_there(address):
            raise Transient(f"it accepts no connection within {ANYBODY_THERE_SECONDS:g} s")
        client = Client(address, settings, seconds)
        try:
            other = client.ask(broker_id)
        except KafkaError as error:
            if time.monotonic() >= until:
                words = f"it accepts the connection, but answers no request within {seconds:g} s"
                raise Transient(words, obstacle=Obstacle.LATE) from error
            obstacle, words = obstacle_at_one(error)
            raise Transient(words or f"it answers with an error ({type(error).__name__})", obstacle=obstacle) from error
        finally:
            client.close()
        if other is not None:
            raise Transient(f"broker {other} answers, and not broker {broker_id}", obstacle=Obstacle.ANOTHERS)

    async def log_dirs(self, cluster: ClusterRecord) -> tuple[BrokerLogDir, ...]:
        return await asyncio.to_thread(self._log_dirs, cluster.spec.kafka)

    async def sizes(self, cluster: ClusterRecord, partitions: Mapping[int, Sequence[str]]) -> dict[str, int]:
        return await self._do(
            cluster, lambda client: {name: size for i, wanted in partitions.items() for name, size in client.sizes(i, wanted)}
        )

    async def started_with(self, cluster: ClusterRecord, brokers: Sequence[int]) -> dict[int, StartedWith]:
        return await self._do(cluster, lambda client: {broker: client.started_with(broker) for broker in brokers})

    async def open_client(self, cluster: ClusterRecord) -> RequestingClient:
        return await asyncio.to_thread(self._open_client, cluster.spec.kafka)

    def _open_client(self, spec: KafkaClientSpec) -> RequestingClient:
        settings = settings_of(spec, self._secrets)
        with ExitStack() as stack, translated_errors(spec):
            client = stack.enter_context(connected(spec, settings, min(self._seconds, CLIENT_SECONDS)))
            return RequestingClient(client.send, partial(translated_errors, spec), stack.pop_all().close)

    async def offsets(self, cluster: ClusterRecord) -> tuple[PartitionOffsets, ...]:
        return await asyncio.to_thread(self._offsets, cluster.spec.kafka)

    async def group_offsets(self, cluster: ClusterRecord) -> tuple[GroupOffset, ...]:
        return await asyncio.to_thread(self._group_offsets, cluster.spec.kafka)

    async def elect_preferred(self, cluster: ClusterRecord) -> int:
        return await asyncio.to_thread(self._elect_preferred, cluster.spec.kafka)

    def _elect_preferred(self, spec: KafkaClientSpec) -> int:
        """In KRaft mode metadata names any broker as controller: each passes it on."""
        with self._agreed(spec) as (client, metadata):
            wanted = displaced(metadata)
            batches = [wanted[start : start + ELECTIONS_BATCH] for start in range(0, len(wanted), ELECTIONS_BATCH)]
            return sum(client.elect_preferred(metadata.controller_id, batch) for batch in batches)

    async def layout(self, cluster: ClusterRecord) -> Layout:
        return await asyncio.to_thread(self._layout, cluster.spec.kafka)

    def _layout(self, spec: KafkaClientSpec) -> Layout:
        with self._agreed(spec) as (client, metadata):
            return layout_of(client.send, metadata, _topic_id)

    async def reassign(self, cluster: ClusterRecord, targets: Targets) -> dict[tuple[str, int], str]:
        """In KRaft mode metadata names any broker as controller: each passes it on."""
        return await self._do(cluster, lambda one: reassign(one.send, one.metadata(topics=[]).controller_id, targets))

    async def throttles(self, cluster: ClusterRecord, brokers: Collection[int], topics: Collection[str]) -> Throttles:
        return await self._do(cluster, lambda client: throttles(client.send, brokers, topics))

    async def set_throttles(self, cluster: ClusterRecord, wanted: Throttles) -> None:
        await self._do(cluster, lambda client: set_throttles(client.send, wanted))

    async def _do(self, cluster: ClusterRecord, ask: Callable[[Client], T]) -> T:
        """With a client of its own, in a thread."""

        def do() -> T:
            spec = cluster.spec.kafka
            with translated_errors(spec), connected(spec, settings_of(spec, self._secrets), self._seconds) as client:
                return ask(client)

        return await asyncio.to_thread(do)

    def _log_dirs(self, spec: KafkaClientSpec) -> tuple[BrokerLogDir, ...]:
        with self._agreed(spec) as (client, metadata):
            brokers = sorted(broker.node_id for broker in metadata.brokers)
            return tuple(found for broker in brokers for found in client.log_dirs(broker))

    def _offsets(self, spec: KafkaClientSpec) -> tuple[PartitionOffsets, ...]:
        with self._agreed(spec) as (client, metadata):
            policies = _settled(client, metadata, CLEANUP)
            starts, ends = (_ask_leaders(client, metadata, when) for when in (EARLIEST, LATEST))
            _leave_out_gone(client, metadata, {*starts} & {*ends})
            return tuple(
                PartitionOffsets(topic.name, _topic_id(topic), number, *bounds, "compact" in policies[topic.name])
                for topic in sorted(metadata.topics, key=lambda found: found.name)
                for number in sorted(partition.partition_index for partition in topic.partitions)
                for bounds in [(starts[topic.name, number], ends[topic.name, number])]
            )

    def _group_offsets(self, spec: KafkaClientSpec) -> tuple[GroupOffset, ...]:
        """Each broker lists the groups that it coordinates, and so tells their offsets."""
        with self._agreed(spec) as (client, metadata):
            leaders_of(metadata, lambda topic: topic == GROUP_COORDINATION)
            brokers = sorted(broker.node_id for broker in metadata.brokers)
            found = {one for broker in brokers for one in client.committed(broker, client.groups(broker))}
            return tuple(sorted(found, key=lambda one: (one.group, one.topic, one.partition)))

    @contextmanager
    def _agreed(self, spec: KafkaClientSpec) -> Iterator[tuple["Client", MetadataResponse]]:
        """Metadata of all topics that every broker agrees with, as far as brokers go. Those of ours are nobody's loss."""
        settings = settings_of(spec, self._secrets)
        with translated_errors(spec), connected(spec, settings, self._seconds) as client:
            metadata = client.metadata(topics=None)
            ensure_agreement(spec, client, metadata)
            metadata.topics = [topic for topic in metadata.topics if not is_reserved(topic.name)]
            yield client, metadata

    def _view(self, spec: KafkaClientSpec) -> KafkaView:
        with self._agreed(spec) as (client, metadata):
            min_isr = {topic: int(value) for topic, value in _settled(client, metadata, MIN_ISR).items()}
            return view_of(metadata, min_isr)


def _settled(client: Client, metadata: MetadataResponse, config: str) -> dict[str, str]:
    """This config of each topic. What comes or goes meanwhile is asked for again: a topic that is listed no more is gone, and
    left out of `metadata`. One that is listed, and not known, stays unknown: `Transient`.
    """
    found = client.topic_configs([topic.name for topic in metadata.topics], config)
    for _ in range(UNSETTLED_LOOKS):
        unsettled = _unsettled(metadata, found)
        if not unsettled:
            return found
        time.sleep(UNSETTLED_SECONDS)
        now = {topic.name: topic for topic in client.metadata(topics=None).topics if topic.name in unsettled}
        metadata.topics = [now.get(t.name, t) for t in metadata.topics if t.name in now or t.name not in unsettled]
        found |= client.topic_configs(sorted(now), config)
    if left := _unsettled(metadata, found):
        raise Transient(
            f"topics {', '.join(sorted(left)[:MOST_NAMED])}: their metadata cannot be read now, though they are listed. They "
            "may have been created this moment: if a program creates and deletes topics all the time (tests, a topic "
            "operator), pause it"
        )
    return found


def _unsettled(metadata: MetadataResponse, configs: Container[str]) -> set[str]:
    return {topic.name for topic in metadata.topics if topic.error_code or topic.name not in configs}


def _leave_out_gone(client: Client, metadata: MetadataResponse, known: Container[tuple[str, int]]) -> None:
    """Topics of which no offset is known because they were deleted meanwhile."""
    lacking = {t.name for t in metadata.topics if any((t.name, p.partition_index) not in known for p in t.partitions)}
    listed = lacking & {topic.name for topic in client.metadata(topics=None).topics} if lacking else set()
    if listed:
        raise Transient(
            f"topics {', '.join(sorted(listed)[:MOST_NAMED])}: their offsets cannot be read now, though they are listed"
        )
    metadata.topics = [topic for topic in metadata.topics if topic.name not in lacking]


def _ask_leaders(client: Client, metadata: MetadataResponse, when: int) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    for leader, partitions in leaders_of(metadata, lambda _: True).items():
        for start in range(0, len(partitions), OFFSETS_BATCH):
            found |= client.offsets(leader, partitions[start : start + OFFSETS_BATCH], when)
    return found


def _topic_id(topic: Any) -> str:  # noqa: ANN401
    """22 characters of base 64 for URLs, as Kafka writes it; empty where it has none."""
    given = topic.topic_id.bytes if topic.topic_id is not None else NO_TOPIC_ID
    return "" if given == NO_TOPIC_ID else urlsafe_b64encode(given).rstrip(b"=").decode()


def ensure_agreement(spec: KafkaClientSpec, client: Client, metadata: MetadataResponse) -> None:
    """Every listed broker answers, and lists the same brokers of the same cluster."""
    expected = brokers_in(metadata)
    for broker in sorted(metadata.brokers, key=lambda listed: listed.node_id):
        who = f"Kafka at {','.join(spec.bootstrap_servers)}: broker {broker.node_id}"
        address = f"{broker.host}:{broker.port}"
        try:
            if not is_anybody_there(address):
                words = f"{who} is listed as alive, but accepts no connection of Keeperless at {address}"
                raise BrokerApart(f"{words} within {ANYBODY_THERE_SECONDS:g} s", broker.node_id, address)
            seen = brokers_in(client.metadata(topics=[], node_id=broker.node_id))
        except Unresolved as error:
            raise BrokerApart(f"{who} at {address}: {error}", broker.node_id, address, obstacle=error.obstacle) from error
        except KafkaError as error:
            obstacle, words = obstacle_at_one(error)
            if obstacle is None:
                raise
            raise BrokerApart(f"{who} at {address}: {words}", broker.node_id, obstacle=obstacle) from error
        if seen != expected:
            said = f"{who} lists brokers {sorted(seen[1])}, another one {sorted(expected[1])}; observe again"
            raise BrokerApart(said, broker.node_id, listed=frozenset(seen[1] | expected[1]))
