"""Connections to one cluster, and the requests that an admin sends over them.

Not librdkafka: its admin requests end the whole process by an assertion when a broker answers with an empty list of brokers,
as one does that has just started in KRaft mode (`rd_kafka_admin_response_parse`, 2.16.1, seen in a migration).
"""

import logging
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kafka.errors import (
    ElectionNotNeededError,
    IncompatibleBrokerVersion,
    KafkaError,
    KafkaStorageError,
    PreferredLeaderNotAvailableError,
    UnknownTopicOrPartitionError,
    for_code,
)
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

from activities.adapters.kafka_admin.transport import DIRECTLY, Manager
from activities.own_network import Unresolved, own_fault, words_of
from domain.cluster import KafkaClientSpec, host_and_port
from domain.errors import Transient
from domain.observed.survey import BrokerLogDir, StartedWith
from domain.offsets import GroupOffset

logging.getLogger("kafka").propagate = False  # each refused connection is an error there; what matters reaches the caller

MIN_ISR = "min.insync.replicas"
CLEANUP = "cleanup.policy"
OFFSETS_BATCH = 5000
"""Partitions whose offsets are asked for in one request."""
GROUPS_BATCH = 200
ANOTHER = re.compile(r"Unexpected broker id, expected (\d+)")
"""Of a broker that is asked for another one's settings (ConfigHelper)."""
ELECTIONS_BATCH = 1000
"""Partitions whose leaders are elected by one request."""
NO_ELECTION = frozenset({ElectionNotNeededError.errno, PreferredLeaderNotAvailableError.errno})
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
FROM_FILE = 4
"""STATIC_BROKER_CONFIG, of DescribeConfigsResponse.ConfigSource."""
RECONNECT_MS = 250
"""The longest pause before a broker that did not answer is tried again. kafka-python's own goes up to half a minute."""
CONFIG_BATCH = 1000
"""Topics whose `min.insync.replicas` is asked for in one request: about 100 KiB of answer."""

MAX_ANSWER_BYTES = 100_000_000
ANYBODY_THERE_SECONDS = 1.0


def by_topic(partitions: Sequence[tuple[str, int]]) -> dict[str, list[int]]:
    """As requests have them."""
    found: dict[str, list[int]] = {}
    for topic, number in partitions:
        found.setdefault(topic, []).append(number)
    return found


class Client:
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
        self._server, self._limit = server, limit
        self._net = NetworkSelector(**configs)
        self._manager = Manager(self._net, **configs)

    def open(self) -> None:
        self._net.start()
        self._manager.bootstrap(self._limit)

    def ask(self, broker_id: int) -> int | None:
        """Our server, and once only, unlike `open`: for the brokers that it knows, though that may be none, and for what only
        that broker tells. Which one it is, where it says that it is another."""
        self._net.start()
        other: int | None = self._manager.run(self._asked, broker_id)
        return other

    async def _asked(self, broker_id: int) -> int | None:
        (server,) = self._manager.cluster.bootstrap_brokers()
        request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
        await self._manager.wait_for(self._manager.send(request, server.node_id), self._limit)
        configs = DescribeConfigsRequest(resources=[(BROKER_RESOURCE, str(broker_id), [])])
        try:
            answer = await self._manager.wait_for(self._manager.send(configs, server.node_id), self._limit)
        except IncompatibleBrokerVersion:
            return None
        refused = next((ANOTHER.search(found.error_message or "") for found in answer.results), None)
        return int(refused[1]) if refused else None

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
        """`None` means all topics. Without `node_id` the broker at our bootstrap server answers: always the same one, so that
        brokers that disagree do not look otherwise with every look. Any, where that address is no broker's own."""
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        return self._manager.run(self._manager.send, request, self._at_server() if node_id is None else node_id)

    def _at_server(self) -> int | None:
        known = self._manager.cluster.brokers()
        return next((broker.node_id for broker in known if f"{broker.host}:{broker.port}" == self._server), None)

    def topic_configs(self, topics: Sequence[str], wanted: str) -> dict[str, str]:
        """One config of many topics, the default where a topic has none of its own; nothing of topics that do not exist."""
        found: dict[str, str] = {}
        for start in range(0, len(topics), CONFIG_BATCH):
            resources = [(TOPIC_RESOURCE, name, [wanted]) for name in topics[start : start + CONFIG_BATCH]]
            answer = self._manager.run(self._manager.send, DescribeConfigsRequest(resources=resources))
            for result in answer.results:
                if result.error_code == UnknownTopicOrPartitionError.errno:
                    continue
                if result.error_code:
                    raise for_code(result.error_code)(f"configuration of topic {result.resource_name}")
                found.update((result.resource_name, entry.value) for entry in result.configs if entry.name == wanted)
        return found

    def offsets(self, leader: int, partitions: Sequence[tuple[str, int]], when: int) -> dict[tuple[str, int], int]:
        """From the partitions' leader; nothing of topics that do not exist."""
        topic_type = ListOffsetsRequest.ListOffsetsTopic
        topics = [
            topic_type(
                name=name,
                partitions=[topic_type.ListOffsetsPartition(partition_index=number, timestamp=when) for number in numbers],
            )
            for name, numbers in by_topic(partitions).items()
        ]
        request = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics)
        answer = self._manager.run(self._manager.send, request, leader)
        return {
            (topic.name, one.partition_index): told(one, f"offsets of {topic.name}-{one.partition_index}").offset
            for topic in answer.topics
            for one in topic.partitions
            if one.error_code != UnknownTopicOrPartitionError.errno
        }

    def elect_preferred(self, controller: int, partitions: Sequence[tuple[str, int]]) -> int:
        """How many have got their preferred leader. One that led already, or cannot lead any more, is no error."""
        request = ElectLeadersRequest(
            election_type=ElectionType.PREFERRED,
            topic_partitions=[
                ElectLeadersRequest.TopicPartitions(topic=topic, partitions=numbers)
                for topic, numbers in by_topic(partitions).items()
            ],
            timeout_ms=self._limit,
        )
        answer = told(self._manager.run(self._manager.send, request, controller), "election of preferred leaders")
        found = [
            one.partition_id
            for topic in answer.replica_election_results
            for one in topic.partition_result
            if one.error_code not in NO_ELECTION and told(one, f"leader of {topic.topic}-{one.partition_id}")
        ]
        return len(found)

    def log_dirs(self, broker: int) -> Iterator[BrokerLogDir]:
        """Of each log directory its error tells whether it is online. No partition's size is asked for."""
        answer = self._manager.run(self._manager.send, DescribeLogDirsRequest(topics=[]), broker)
        for found in told(answer, f"log directories of broker {broker}").results:
            is_offline = found.error_code == KafkaStorageError.errno
            if not is_offline:
                told(found, f"{found.log_dir} of broker {broker}")
            yield BrokerLogDir(broker_id=broker, path=found.log_dir, is_offline=is_offline)

    def sizes(self, broker: int, partitions: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Bytes of each that the broker has, in whichever directory. A replica that moves to another one is in two."""
        asked = by_topic([(topic, int(number)) for topic, _, number in (name.rpartition("-") for name in partitions)])
        topic_type = DescribeLogDirsRequest.DescribableLogDirTopic
        topics = [topic_type(topic=topic, partitions=numbers) for topic, numbers in asked.items()]
        answer = self._manager.run(self._manager.send, DescribeLogDirsRequest(topics=topics), broker)
        for found in told(answer, f"sizes of partitions of broker {broker}").results:
            for topic in found.topics:
                for one in topic.partitions:
                    if not one.is_future_key:
                        yield f"{topic.name}-{one.partition_index}", one.partition_size

    def started_with(self, broker: int) -> StartedWith:
        """Each entry tells where its value comes from, what it covers as `synonyms` (KIP-226); of a secret no value."""
        request = DescribeConfigsRequest(resources=[(BROKER_RESOURCE, str(broker), None)], include_synonyms=True)
        (found,) = self._manager.run(self._manager.send, request, broker).results
        entries = told(found, f"configuration of broker {broker}").configs
        return StartedWith(
            values={
                entry.name: None if entry.is_sensitive else given.value or ""
                for entry in entries
                for given in entry.synonyms
                if given.name == entry.name and given.source == FROM_FILE
            },
            public=frozenset(entry.name for entry in entries if not entry.is_sensitive),
        )

    def groups(self, broker: int) -> list[str]:
        """Groups that this broker coordinates."""
        answer = told(self._manager.run(self._manager.send, ListGroupsRequest(), broker), f"groups of broker {broker}")
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


def told(answer: Any, what: str) -> Any:  # noqa: ANN401 - kafka-python has no types
    if answer.error_code:
        raise for_code(answer.error_code)(what)
    return answer


def _committed(group: Any) -> Iterator[GroupOffset]:  # noqa: ANN401
    for topic in told(group, f"group {group.group_id}").topics:
        for one in topic.partitions:
            told(one, f"group {group.group_id} on {topic.name}-{one.partition_index}")
            if one.committed_offset >= 0:
                yield GroupOffset(group.group_id, topic.name, one.partition_index, one.committed_offset)


@contextmanager
def connected(spec: KafkaClientSpec, settings: Mapping[str, str], seconds: float) -> Iterator[Client]:
    """A client that one of the bootstrap servers let in; they are tried in turn, so that a frozen one costs its share only."""
    failure: KafkaError | Unresolved | None = None
    for server in spec.bootstrap_servers:
        try:
            if not is_anybody_there(server):
                continue
        except Unresolved as error:
            failure = failure or error
            continue
        client = Client(server, settings, seconds)
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
    raise Transient(f"Kafka at {','.join(spec.bootstrap_servers)}: connection refused")


def is_anybody_there(server: str) -> bool:
    """Looked at first, because kafka-python tries a refused connection again until its time is over. Raises `Transient` where
    this host cannot even ask.
    """
    host, port = host_and_port(server)
    try:
        socket.create_connection((host, port), timeout=ANYBODY_THERE_SECONDS).close()
    except (socket.gaierror, UnicodeError) as error:
        raise Unresolved(host, words_of(error)) from error
    except OSError as error:
        if (fault := own_fault(error, server)) is not None:
            raise fault from error
        return False
    return True
