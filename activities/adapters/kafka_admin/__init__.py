"""What brokers say through the Kafka protocol, by kafka-python. Works in ZooKeeper, hybrid and KRaft mode.

Not librdkafka: its admin requests end the whole process by an assertion when a broker answers with an empty list of brokers,
as one does that has just started in KRaft mode (`rd_kafka_admin_response_parse`, 2.16.1, seen in a migration).

Metadata is one broker's answer, and a broker cut off from the controller can be behind without knowing it. So nothing is kept
between two views, and every broker that the answer lists must itself name the same brokers: else the view is `Transient`.
"""

import asyncio
import logging
import socket
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafka.errors import (
    AuthorizationError,
    ClusterAuthorizationFailedError,
    ElectionNotNeededError,
    KafkaError,
    KafkaStorageError,
    PreferredLeaderNotAvailableError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
    for_code,
)
from kafka.net.inet import KafkaNetSocket
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.admin import (
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    ElectionType,
    ElectLeadersRequest,
    ListGroupsRequest,
)
from kafka.protocol.consumer import ListOffsetsRequest, OffsetFetchRequest
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from activities.adapters.kafka_admin.clients import RequestingClient
from activities.ports import SecretStore
from domain.canaries import is_reserved
from domain.cluster import KafkaClientSpec
from domain.errors import Permanent, Transient
from domain.observation import KafkaView, PartitionFault
from domain.offsets import GroupOffset, PartitionOffsets
from domain.records import ClusterRecord
from domain.survey import BrokerLogDir
from domain.waves import shared_partitions

logging.getLogger("kafka").propagate = False  # each refused connection is an error there; what matters reaches the caller

MIN_ISR = "min.insync.replicas"
CLEANUP = "cleanup.policy"
EARLIEST, LATEST = -2, -1
"""Timestamps that mean a log's first offset and its high watermark (ListOffsetsRequest)."""
OFFSETS_BATCH = 5000
"""Partitions whose offsets are asked for in one request."""
GROUPS_BATCH = 200
ELECTIONS_BATCH = 1000
"""Partitions whose leaders are elected by one request."""
NO_ELECTION = frozenset({ElectionNotNeededError.errno, PreferredLeaderNotAvailableError.errno})
GROUP_COORDINATION = "__consumer_offsets"
NO_TOPIC_ID = bytes(16)
TOPIC_RESOURCE = 2
CLIENT_SECONDS = 2.0
"""Limits each request of a client that is kept open: it is asked again, at another broker if need be."""
RECONNECT_MS = 250
"""The longest pause before a broker that did not answer is tried again. kafka-python's own goes up to half a minute."""
CONFIG_BATCH = 1000
"""Topics whose `min.insync.replicas` is asked for in one request: about 100 KiB of answer."""

MAX_ANSWER_BYTES = 100_000_000
ANYBODY_THERE_SECONDS = 1.0

NEVER_WORKS = (
    AuthorizationError,
    ClusterAuthorizationFailedError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
)

SETTINGS = frozenset(
    {
        "security.protocol",
        "sasl.mechanism",
        "sasl.plain.username",
        "sasl.plain.password",
        "ssl.cafile",
        "ssl.certfile",
        "ssl.keyfile",
        "ssl.password",
        "ssl.crlfile",
    }
)
"""What `client_properties` may hold: kafka-python's settings with dots. SCRAM takes its user from `sasl.plain.*`, too."""

PROTOCOLS = frozenset({"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"})


class BrokerAdmin:
    """`KafkaAdmin`. `seconds` limits each request; a view is at most four of them and one for each broker."""

    def __init__(self, secrets: SecretStore, seconds: float = 5.0) -> None:
        self._secrets = secrets
        self._seconds = seconds

    async def view(self, cluster: ClusterRecord) -> KafkaView:
        return await asyncio.to_thread(self._view, cluster.spec.kafka)

    async def open_client(self, cluster: ClusterRecord) -> RequestingClient:
        return await asyncio.to_thread(self._open_client, cluster.spec.kafka)

    def _open_client(self, spec: KafkaClientSpec) -> RequestingClient:
        settings = _settings(spec, self._secrets)
        with ExitStack() as stack, _errors(spec):
            client = stack.enter_context(_connected(spec, settings, min(self._seconds, CLIENT_SECONDS)))
            return RequestingClient(client.send, partial(_errors, spec), stack.pop_all().close)

    async def log_dirs(self, cluster: ClusterRecord) -> tuple[BrokerLogDir, ...]:
        return await asyncio.to_thread(self._log_dirs, cluster.spec.kafka)

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
    def _agreed(self, spec: KafkaClientSpec) -> Iterator[tuple["_Client", MetadataResponse]]:
        """Metadata of all topics that every broker agrees with, as far as brokers go. Those of ours are nobody's loss."""
        settings = _settings(spec, self._secrets)
        with _errors(spec), _connected(spec, settings, self._seconds) as client:
            metadata = client.metadata(topics=None)
            ensure_agreement(spec, client, metadata)
            metadata.topics = [topic for topic in metadata.topics if not is_reserved(topic.name)]
            yield client, metadata

    def _view(self, spec: KafkaClientSpec) -> KafkaView:
        with self._agreed(spec) as (client, metadata):
            return view_of(metadata, client.min_isr([topic.name for topic in metadata.topics]))


class _DirectSocket(KafkaNetSocket):  # type: ignore[misc]  # kafka-python has no types
    """Connects as kafka-python does, and closes the socket when nobody lets it in, which kafka-python forgets."""

    SCHEMES = ("direct",)

    async def sock_connect(
        self, net: NetworkSelector, sock: socket.socket, sockaddr: object, timeout_at: float | None = None
    ) -> object:
        try:
            return await super().sock_connect(net, sock, sockaddr, timeout_at=timeout_at)
        except BaseException:
            sock.close()
            raise


DIRECTLY = "direct://"
"""Makes kafka-python use `_DirectSocket`: it finds connectors by the scheme of `proxy_url`."""


class _Client:
    """Connections to one cluster, driven by a thread of kafka-python's own. Its errors pass through."""

    def __init__(self, server: str, settings: Mapping[str, str], seconds: float) -> None:
        limit = int(seconds * 1000)
        configs: dict[str, Any] = {
            **settings,
            "client_id": "keeperless",
            "bootstrap_servers": [server],
            "request_timeout_ms": limit,
            "socket_connection_setup_timeout_ms": limit,
            "receive_message_max_bytes": MAX_ANSWER_BYTES,
            "proxy_url": DIRECTLY,
            "reconnect_backoff_max_ms": RECONNECT_MS,
        }
        self._limit = limit
        self._net = NetworkSelector(**configs)
        self._manager = KafkaConnectionManager(self._net, **configs)

    def open(self) -> None:
        self._net.start()
        self._manager.bootstrap(self._limit)

    def close(self) -> None:
        self._manager.close()
        self._net.close()

    def send(self, request: object, broker: int | None) -> Any:  # noqa: ANN401
        """The answer of this broker, or of any. One that does not answer may have moved: addresses are asked for again."""
        try:
            return self._manager.run(self._manager.send, request, broker)
        except KafkaError:
            self._manager.cluster.request_update()
            raise

    def metadata(self, topics: Sequence[str] | None, node_id: int | None = None) -> MetadataResponse:
        """`None` means all topics. Without `node_id` any broker answers."""
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        return self._manager.run(self._manager.send, request, node_id)

    def min_isr(self, topics: Sequence[str]) -> dict[str, int]:
        return {topic: int(value) for topic, value in self.topic_configs(topics, MIN_ISR).items()}

    def topic_configs(self, topics: Sequence[str], wanted: str) -> dict[str, str]:
        """One config of many topics, the default where a topic has none of its own."""
        found: dict[str, str] = {}
        for start in range(0, len(topics), CONFIG_BATCH):
            resources = [(TOPIC_RESOURCE, name, [wanted]) for name in topics[start : start + CONFIG_BATCH]]
            answer = self._manager.run(self._manager.send, DescribeConfigsRequest(resources=resources))
            for result in answer.results:
                if result.error_code:
                    raise for_code(result.error_code)(f"configuration of topic {result.resource_name}")
                found.update((result.resource_name, entry.value) for entry in result.configs if entry.name == wanted)
        return found

    def offsets(self, leader: int, partitions: Sequence[tuple[str, int]], when: int) -> dict[tuple[str, int], int]:
        """From the partitions' leader."""
        asked: dict[str, list[object]] = {}
        topic_type = ListOffsetsRequest.ListOffsetsTopic
        for topic, number in partitions:
            asked.setdefault(topic, []).append(topic_type.ListOffsetsPartition(partition_index=number, timestamp=when))
        topics = [topic_type(name=name, partitions=found) for name, found in asked.items()]
        request = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics)
        answer = self._manager.run(self._manager.send, request, leader)
        return {
            (topic.name, one.partition_index): _told(one, f"offsets of {topic.name}-{one.partition_index}").offset
            for topic in answer.topics
            for one in topic.partitions
        }

    def elect_preferred(self, controller: int, partitions: Sequence[tuple[str, int]]) -> int:
        """How many have got their preferred leader. One that led already, or cannot lead any more, is no error."""
        asked: dict[str, list[int]] = {}
        for topic, number in partitions:
            asked.setdefault(topic, []).append(number)
        request = ElectLeadersRequest(
            election_type=ElectionType.PREFERRED,
            topic_partitions=[
                ElectLeadersRequest.TopicPartitions(topic=topic, partitions=numbers) for topic, numbers in asked.items()
            ],
            timeout_ms=self._limit,
        )
        answer = _told(self._manager.run(self._manager.send, request, controller), "election of preferred leaders")
        found = [
            one.partition_id
            for topic in answer.replica_election_results
            for one in topic.partition_result
            if one.error_code not in NO_ELECTION and _told(one, f"leader of {topic.topic}-{one.partition_id}")
        ]
        return len(found)

    def log_dirs(self, broker: int) -> Iterator[BrokerLogDir]:
        """Of each log directory its error tells whether it is online. No partition's size is asked for."""
        answer = self._manager.run(self._manager.send, DescribeLogDirsRequest(topics=[]), broker)
        for found in _told(answer, f"log directories of broker {broker}").results:
            is_offline = found.error_code == KafkaStorageError.errno
            if not is_offline:
                _told(found, f"{found.log_dir} of broker {broker}")
            yield BrokerLogDir(broker_id=broker, path=found.log_dir, is_offline=is_offline)

    def groups(self, broker: int) -> list[str]:
        """Groups that this broker coordinates."""
        answer = _told(self._manager.run(self._manager.send, ListGroupsRequest(), broker), f"groups of broker {broker}")
        return sorted(group.group_id for group in answer.groups)

    def committed(self, broker: int, groups: Sequence[str]) -> Iterator[GroupOffset]:
        """Of groups that this broker coordinates. Kafka 3.0 or later."""
        for start in range(0, len(groups), GROUPS_BATCH):
            asked = [
                OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)
                for group in groups[start : start + GROUPS_BATCH]
            ]
            request = OffsetFetchRequest(groups=asked, require_stable=False, min_version=8, max_version=9)
            for group in self._manager.run(self._manager.send, request, broker).groups:
                yield from _committed(group)


def _told(answer: Any, what: str) -> Any:  # noqa: ANN401 - kafka-python has no types
    if answer.error_code:
        raise for_code(answer.error_code)(what)
    return answer


def _committed(group: Any) -> Iterator[GroupOffset]:  # noqa: ANN401
    for topic in _told(group, f"group {group.group_id}").topics:
        for one in topic.partitions:
            _told(one, f"group {group.group_id} on {topic.name}-{one.partition_index}")
            if one.committed_offset >= 0:
                yield GroupOffset(group.group_id, topic.name, one.partition_index, one.committed_offset)


def leaders_of(metadata: MetadataResponse, is_wanted: Callable[[str], bool]) -> dict[int, list[tuple[str, int]]]:
    """Partitions by leader. `Transient` where one has none that is alive: what it holds cannot be known now."""
    _, alive = _brokers(metadata)
    found: dict[int, list[tuple[str, int]]] = {}
    for topic in metadata.topics:
        if not is_wanted(topic.name):
            continue
        for partition in topic.partitions:
            if topic.error_code or partition.leader_id not in alive:
                raise Transient(f"partition {topic.name}-{partition.partition_index}: has no leader now; look again")
            found.setdefault(partition.leader_id, []).append((topic.name, partition.partition_index))
    return found


def displaced(metadata: MetadataResponse) -> list[tuple[str, int]]:
    """Partitions whose preferred leader, the first of their replicas, is alive and in sync, and does not lead."""
    _, alive = _brokers(metadata)
    return [
        (topic.name, partition.partition_index)
        for topic in sorted(metadata.topics, key=lambda found: found.name)
        for partition in sorted(topic.partitions, key=lambda found: found.partition_index)
        for preferred in partition.replica_nodes[:1]
        if preferred in alive and preferred in partition.isr_nodes and partition.leader_id != preferred
    ]


def _ask_leaders(client: _Client, metadata: MetadataResponse, when: int) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    for leader, partitions in leaders_of(metadata, lambda _: True).items():
        for start in range(0, len(partitions), OFFSETS_BATCH):
            found |= client.offsets(leader, partitions[start : start + OFFSETS_BATCH], when)
    return found


def _topic_id(topic: Any) -> str:  # noqa: ANN401
    """22 characters of base 64 for URLs, as Kafka writes it; empty where it has none."""
    given = topic.topic_id.bytes if topic.topic_id is not None else NO_TOPIC_ID
    return "" if given == NO_TOPIC_ID else urlsafe_b64encode(given).rstrip(b"=").decode()


@contextmanager
def _connected(spec: KafkaClientSpec, settings: Mapping[str, str], seconds: float) -> Iterator[_Client]:
    """A client that one of the bootstrap servers let in; they are tried in turn, so that a frozen one costs its share only."""
    failure: KafkaError | None = None
    for server in filter(_is_anybody_there, spec.bootstrap_servers):
        client = _Client(server, settings, seconds)
        try:
            client.open()
        except KafkaError as error:
            failure = error
            client.close()
            continue
        try:
            yield client
        finally:
            client.close()
        return
    if failure is not None:
        raise failure
    raise Transient(f"Kafka at {','.join(spec.bootstrap_servers)}: nobody listens")


def _is_anybody_there(server: str) -> bool:
    """Looked at first, because kafka-python tries a refused connection again until its time is over."""
    host, _, port = server.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANYBODY_THERE_SECONDS).close()
    except OSError:
        return False
    return True


@contextmanager
def _errors(spec: KafkaClientSpec) -> Iterator[None]:
    where = f"Kafka at {','.join(spec.bootstrap_servers)}"
    try:
        yield
    except NEVER_WORKS as error:
        raise Permanent(f"{where}: refused us ({type(error).__name__}); correct client_properties or the ACLs") from error
    except KafkaError as error:
        raise Transient(f"{where}: does not answer as expected ({type(error).__name__})") from error


def ensure_agreement(spec: KafkaClientSpec, client: _Client, metadata: MetadataResponse) -> None:
    """Every listed broker answers, and lists the same brokers of the same cluster."""
    expected = _brokers(metadata)
    for broker in sorted(metadata.brokers, key=lambda listed: listed.node_id):
        who = f"Kafka at {','.join(spec.bootstrap_servers)}: broker {broker.node_id}"
        if not _is_anybody_there(f"{broker.host}:{broker.port}"):
            raise Transient(f"{who} is listed as alive and does not listen at {broker.host}:{broker.port}")
        seen = _brokers(client.metadata(topics=[], node_id=broker.node_id))
        if seen != expected:
            raise Transient(f"{who} lists brokers {sorted(seen[1])}, another one {sorted(expected[1])}; look again")


def _brokers(metadata: MetadataResponse) -> tuple[str, frozenset[int]]:
    return metadata.cluster_id, frozenset(broker.node_id for broker in metadata.brokers)


def _settings(spec: KafkaClientSpec, secrets: SecretStore) -> dict[str, str]:
    """kafka-python's settings from `key=value` lines. Names may show in an error, values never do."""
    text = "" if spec.client_properties is None else secrets.resolve(spec.client_properties).reveal()
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith(("#", "!")))
    given = {key.strip(): value.strip() for key, _, value in pairs}
    unknown = sorted(given.keys() - SETTINGS)
    if unknown:
        raise Permanent(f"{spec.client_properties}: unknown properties {unknown}; expected some of {sorted(SETTINGS)}")
    if given.get("security.protocol", "PLAINTEXT") not in PROTOCOLS:
        raise Permanent(f"{spec.client_properties}: security.protocol is none of {sorted(PROTOCOLS)}")
    return {key.replace(".", "_"): value for key, value in given.items()}


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


def view_of(metadata: MetadataResponse, min_isr: Mapping[str, int]) -> KafkaView:
    """From one answer about all topics, and each topic's `min.insync.replicas`."""
    partitions = list(_partitions(metadata, min_isr))
    cluster_id, alive = _brokers(metadata)
    return KafkaView(
        cluster_id=cluster_id,
        broker_ids=tuple(sorted(alive)),
        topic_count=len(metadata.topics),
        partition_count=len(partitions),
        under_replicated=tuple(
            PartitionFault(partition=p.name, missing=tuple(sorted(p.replicas - p.in_sync)))
            for p in partitions
            if p.replicas - p.in_sync
        ),
        offline=tuple(p.name for p in partitions if not p.has_leader),
        needs={broker: tuple(p.name for p in partitions if p.needs(broker)) for broker in sorted(alive)},
        shared=shared_partitions((p.name, p.replicas) for p in partitions),
        racks={broker.node_id: broker.rack for broker in metadata.brokers if broker.rack},
    )


def _partitions(metadata: MetadataResponse, min_isr: Mapping[str, int]) -> Iterator[Partition]:
    """A dead broker leaves the list of brokers before it leaves ISR and leadership: who is not listed is in neither."""
    _, alive = _brokers(metadata)
    for topic in sorted(metadata.topics, key=lambda found: found.name):
        if topic.error_code or topic.name not in min_isr:
            raise Transient(f"topic {topic.name}: its metadata cannot be read now (error {topic.error_code})")
        for partition in sorted(topic.partitions, key=lambda found: found.partition_index):
            yield Partition(
                name=f"{topic.name}-{partition.partition_index}",
                replicas=frozenset(partition.replica_nodes),
                in_sync=alive.intersection(partition.isr_nodes),
                has_leader=partition.leader_id in alive,
                min_isr=min_isr[topic.name],
            )
