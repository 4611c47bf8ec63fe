"""What brokers say through the Kafka protocol, by librdkafka's admin client. Works in ZooKeeper, hybrid and KRaft mode.

Metadata is one broker's answer, as every client gets it: a broker cut off from the controller can be behind and not know it.
So a fresh client asks for each view (nothing is cached between views), a second request, usually to another broker, must
agree about the cluster's id and its living brokers, and whoever decides also looks at each broker's own gauges.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ClusterMetadata,
    ConfigResource,
    ResourceType,
)

from activities.ports import SecretStore
from domain.cluster import KafkaClientSpec
from domain.errors import Permanent, Transient
from domain.observation import KafkaView, PartitionFault
from domain.records import ClusterRecord

T = TypeVar("T")

CONFIG_BATCH = 500
"""Topics whose configuration is asked for in one request: about 1 MiB of answer."""

MIN_ISR = "min.insync.replicas"

NEVER_WORKS = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    }
)


class LibrdkafkaAdmin:
    """`KafkaAdmin`. `seconds` limits each request."""

    def __init__(self, secrets: SecretStore, seconds: float = 5.0) -> None:
        self._secrets = secrets
        self._seconds = seconds

    async def view(self, cluster: ClusterRecord) -> KafkaView:
        return await asyncio.to_thread(self._view, cluster)

    def _view(self, cluster: ClusterRecord) -> KafkaView:
        """The client frees its threads and sockets when it goes out of scope here, in this thread."""
        spec = cluster.spec.kafka
        where = ",".join(spec.bootstrap_servers)
        client = _Client(where, _settings(spec, self._secrets), self._seconds)
        metadata = client.metadata()
        second = client.brokers()
        if second != (metadata.cluster_id, set(metadata.brokers)):
            raise Transient(f"Kafka at {where}: two answers name different brokers; the cluster is changing, look again")
        return view_of(metadata, client.min_isr(sorted(metadata.topics)))


class _Client:
    """One librdkafka client; its errors become ours."""

    def __init__(self, where: str, settings: Mapping[str, str], seconds: float) -> None:
        self._where = where
        self._seconds = seconds
        self._last_errors: set[int] = set()
        try:
            self._client = AdminClient({**settings, "error_cb": self._remember})  # type: ignore[dict-item]
        except KafkaException as error:
            names = ", ".join(sorted(settings))
            raise Permanent(f"Kafka at {where}: a client property is not valid; given were {names}") from _bare(error)

    def _remember(self, error: KafkaError) -> None:
        self._last_errors.add(error.code())

    def metadata(self) -> ClusterMetadata:
        return self._call(lambda: self._client.list_topics(timeout=self._seconds))

    def brokers(self) -> tuple[object, set[int]]:
        answer = self._call(self._client.describe_cluster(request_timeout=self._seconds).result)
        return answer.cluster_id, {node.id for node in answer.nodes}

    def min_isr(self, topics: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for start in range(0, len(topics), CONFIG_BATCH):
            resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics[start : start + CONFIG_BATCH]]
            answers = self._client.describe_configs(resources, request_timeout=self._seconds)
            found |= {resource.name: int(self._call(answer.result)[MIN_ISR].value) for resource, answer in answers.items()}
        return found

    def _call(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except KafkaException as error:
            self._client.poll(0)  # delivers why connections failed, to error_cb
            codes = {error.args[0].code(), *self._last_errors}
            name = error.args[0].name()
            if codes & NEVER_WORKS:
                raise Permanent(f"Kafka at {self._where}: refused us ({name}); correct client_properties or ACLs") from error
            raise Transient(f"Kafka at {self._where}: does not answer as expected ({name})") from error


def _bare(error: KafkaException) -> Exception:
    """librdkafka quotes the value of a bad property: keep the code, not the text."""
    return RuntimeError(error.args[0].name())


def _settings(spec: KafkaClientSpec, secrets: SecretStore) -> dict[str, str]:
    """librdkafka's names of properties (`security.protocol`, `sasl.username`, `ssl.ca.location` …)."""
    text = "" if spec.client_properties is None else secrets.resolve(spec.client_properties).reveal()
    own = {"bootstrap.servers": ",".join(spec.bootstrap_servers), "client.id": "keeperless", "log_level": "0"}
    return {**_properties(text), **own}


def _properties(text: str) -> dict[str, str]:
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith(("#", "!")))
    return {key.strip(): value.strip() for key, _, value in pairs}


@dataclass(frozen=True)
class Partition:
    """A partition as one metadata answer has it. `in_sync`: members of the ISR that are alive."""

    name: str
    replicas: frozenset[int]
    in_sync: frozenset[int]
    has_leader: bool
    min_isr: int

    def needs(self, broker: int) -> bool:
        """Whether it would fall below what it can hold if this broker stopped now.

        With `min.insync.replicas` above the number of replicas no `acks=all` write succeeds, whoever runs; what a restart can
        still take away is the last replica in sync, so one must stay. A partition with one replica needs its broker always.
        """
        must_stay = self.min_isr if self.min_isr <= len(self.replicas) else 1
        return broker in self.in_sync and len(self.in_sync) - 1 < must_stay


def view_of(metadata: ClusterMetadata, min_isr: Mapping[str, int]) -> KafkaView:
    """From librdkafka's `ClusterMetadata` and each topic's `min.insync.replicas`."""
    partitions = list(_partitions(metadata, min_isr))
    return KafkaView(
        cluster_id=metadata.cluster_id,
        broker_ids=tuple(sorted(metadata.brokers)),
        topic_count=len(metadata.topics),
        partition_count=len(partitions),
        under_replicated=tuple(
            PartitionFault(partition=p.name, missing=tuple(sorted(p.replicas - p.in_sync)))
            for p in partitions
            if p.replicas - p.in_sync
        ),
        offline=tuple(p.name for p in partitions if not p.has_leader),
        needs={broker: tuple(p.name for p in partitions if p.needs(broker)) for broker in sorted(metadata.brokers)},
    )


def _partitions(metadata: ClusterMetadata, min_isr: Mapping[str, int]) -> Iterator[Partition]:
    """A dead broker leaves the list of brokers before it leaves ISR and leadership: who is not listed is in neither."""
    alive = frozenset(metadata.brokers)
    for topic, found in sorted(metadata.topics.items()):
        if found.error is not None:
            raise Transient(f"topic {topic}: its metadata cannot be read now ({found.error.name()})")
        for number, partition in sorted(found.partitions.items()):
            yield Partition(
                name=f"{topic}-{number}",
                replicas=frozenset(partition.replicas),
                in_sync=alive.intersection(partition.isrs),
                has_leader=partition.leader in alive,
                min_isr=min_isr[topic],
            )
