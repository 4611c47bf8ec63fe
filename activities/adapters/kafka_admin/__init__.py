"""What brokers say through the Kafka protocol, by kafka-python. Works in ZooKeeper, hybrid and KRaft mode.

Metadata is one broker's answer, and a broker cut off from the controller can be behind without knowing it. So nothing is kept
between two views, and every broker that the answer lists must itself name the same brokers: else the view is `Transient`.
"""

import asyncio
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from kafka.errors import KafkaError
from kafka.protocol.metadata import MetadataResponse

from activities.adapters.kafka_admin.clients import RequestingClient
from activities.adapters.kafka_admin.connections import (
    ANYBODY_THERE_SECONDS,
    CLEANUP,
    ELECTIONS_BATCH,
    OFFSETS_BATCH,
    Client,
    connected,
    is_anybody_there,
    obstacle_at_one,
    translated_errors,
)
from activities.adapters.kafka_admin.metadata import brokers_in, displaced, leaders_of, view_of
from activities.adapters.kafka_admin.settings import settings_of
from activities.ports.stores import SecretStore
from activities.reaching import Unresolved
from domain.canaries import is_reserved
from domain.cluster import KafkaClientSpec
from domain.errors import BrokerApart, Obstacle, Transient
from domain.observation import KafkaView
from domain.offsets import GroupOffset, PartitionOffsets
from domain.records import ClusterRecord
from domain.survey import BrokerLogDir

EARLIEST, LATEST = -2, -1
"""Timestamps that mean a log's first offset and its high watermark (ListOffsetsRequest)."""
GROUP_COORDINATION = "__consumer_offsets"
NO_TOPIC_ID = bytes(16)
CLIENT_SECONDS = 2.0
"""Limits each request of a client that is kept open: it is asked again, at another broker if need be."""


class BrokerAdmin:
    """`KafkaAdmin`. `seconds` limits each request; a view is at most four of them and one for each broker."""

    def __init__(self, secrets: SecretStore, seconds: float = 5.0) -> None:
        self._secrets = secrets
        self._seconds = seconds

    async def view(self, cluster: ClusterRecord) -> KafkaView:
        return await asyncio.to_thread(self._view, cluster.spec.kafka)

    async def ask_broker(self, cluster: ClusterRecord, address: str, seconds: float) -> None:
        await asyncio.to_thread(self._ask_broker, cluster.spec.kafka, address, seconds)

    def _ask_broker(self, spec: KafkaClientSpec, address: str, seconds: float) -> None:
        settings, until = settings_of(spec, self._secrets), time.monotonic() + seconds
        if not is_anybody_there(address):
            raise Transient(f"it accepts no connection within {ANYBODY_THERE_SECONDS:g} s")
        client = Client(address, settings, seconds)
        try:
            client.ask()
        except KafkaError as error:
            if time.monotonic() >= until:
                words = f"it takes our connection, and answers no request within {seconds:g} s"
                raise Transient(words, obstacle=Obstacle.LATE) from error
            obstacle, words = obstacle_at_one(error)
            raise Transient(words or f"it answers with an error ({type(error).__name__})", obstacle=obstacle) from error
        finally:
            client.close()

    async def log_dirs(self, cluster: ClusterRecord) -> tuple[BrokerLogDir, ...]:
        return await asyncio.to_thread(self._log_dirs, cluster.spec.kafka)

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

    def _log_dirs(self, spec: KafkaClientSpec) -> tuple[BrokerLogDir, ...]:
        with self._agreed(spec) as (client, metadata):
            brokers = sorted(broker.node_id for broker in metadata.brokers)
            return tuple(found for broker in brokers for found in client.log_dirs(broker))

    def _offsets(self, spec: KafkaClientSpec) -> tuple[PartitionOffsets, ...]:
        with self._agreed(spec) as (client, metadata):
            starts, ends = (_ask_leaders(client, metadata, when) for when in (EARLIEST, LATEST))
            policies = client.topic_configs([topic.name for topic in metadata.topics], CLEANUP)
            return tuple(
                PartitionOffsets(topic.name, _topic_id(topic), number, *bounds, "compact" in policies.get(topic.name, ""))
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
            return view_of(metadata, client.min_isr([topic.name for topic in metadata.topics]))


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
                raise BrokerApart(f"{who} is listed as alive and does not listen at {address}", broker.node_id, address)
            seen = brokers_in(client.metadata(topics=[], node_id=broker.node_id))
        except Unresolved as error:
            raise BrokerApart(f"{who} at {address}: {error}", broker.node_id, address, obstacle=error.obstacle) from error
        except KafkaError as error:
            obstacle, words = obstacle_at_one(error)
            if obstacle is None:
                raise
            raise BrokerApart(f"{who} at {address}: {words}", broker.node_id, obstacle=obstacle) from error
        if seen != expected:
            said = f"{who} lists brokers {sorted(seen[1])}, another one {sorted(expected[1])}; look again"
            raise BrokerApart(said, broker.node_id, listed=frozenset(seen[1] | expected[1]))
