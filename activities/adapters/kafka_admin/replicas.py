"""Where replicas are and how they are moved, in requests of the Kafka protocol."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from kafka.errors import KafkaStorageError, NoReassignmentInProgressError, UnknownTopicOrPartitionError, for_code
from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    IncrementalAlterConfigsRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.metadata import MetadataResponse

from activities.adapters.kafka_admin.connections import BROKER_RESOURCE, TOPIC_RESOURCE, told
from activities.adapters.kafka_admin.metadata import brokers_in
from activities.ports.replicas import Targets
from domain.errors import Transient
from domain.observed.replicas import LISTS, RATES, Broker, Layout, Partition, Throttles

Send = Callable[[object, int | None], Any]
"""The answer of a broker, or of any; blocks."""
BATCH = 1000
"""Partitions of one request: the controller writes them as one batch of records, and allows 10,000."""
TIMEOUT_MS = 30_000
OF_TOPIC, OF_BROKER, OF_ALL_BROKERS = 1, 2, 3
"""Where a config is set (DescribeConfigsResponse.ConfigSource)."""
SET, DELETE = 0, 1


def layout_of(send: Send, metadata: MetadataResponse, topic_id: Callable[[Any], str]) -> Layout:
    """`metadata`: of all topics, as all brokers agree on it."""
    running = _running(send, metadata.controller_id)
    brokers, sizes = list[Broker](), dict[tuple[int, str, int], int]()
    for broker in sorted(metadata.brokers, key=lambda one: one.node_id):
        is_open = False
        for found in _log_dirs(send, broker.node_id):
            is_open |= not found.error_code and not getattr(found, "is_cordoned", False)
            for topic in found.topics:
                for one in topic.partitions:
                    if not one.is_future_key:
                        sizes[broker.node_id, topic.name, one.partition_index] = one.partition_size
        brokers.append(Broker(broker.node_id, broker.rack or None, is_open))
    return Layout(tuple(brokers), tuple(_partitions(metadata, running, sizes, topic_id)))


def _partitions(
    metadata: MetadataResponse,
    running: Mapping[tuple[str, int], Any],
    sizes: Mapping[tuple[int, str, int], int],
    topic_id: Callable[[Any], str],
) -> Iterator[Partition]:
    _, alive = brokers_in(metadata)
    for topic in sorted(metadata.topics, key=lambda one: one.name):
        if topic.error_code:
            raise Transient(f"topic {topic.name}: its metadata cannot be read now (error {topic.error_code})")
        for one in sorted(topic.partitions, key=lambda found: found.partition_index):
            moving = running.get((topic.name, one.partition_index))
            leader = one.leader_id if one.leader_id in alive else None
            yield Partition(
                topic=topic.name,
                number=one.partition_index,
                replicas=tuple(moving.replicas if moving else one.replica_nodes),
                leader=leader,
                in_sync=tuple(one.isr_nodes),
                size=sizes.get((leader, topic.name, one.partition_index), 0) if leader is not None else 0,
                topic_id=topic_id(topic),
                adding=tuple(moving.adding_replicas) if moving else (),
                removing=tuple(moving.removing_replicas) if moving else (),
            )


def _running(send: Send, controller: int) -> dict[tuple[str, int], Any]:
    answer = told(send(ListPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=None), controller), "reassignments")
    return {(topic.name, one.partition_index): one for topic in answer.topics for one in topic.partitions}


def _log_dirs(send: Send, broker: int) -> Iterable[Any]:
    answer = told(send(DescribeLogDirsRequest(topics=None), broker), f"log directories of broker {broker}")
    for found in answer.results:
        if found.error_code != KafkaStorageError.errno:
            told(found, f"{found.log_dir} of broker {broker}")
        yield found


def reassign(send: Send, controller: int, targets: Targets) -> dict[tuple[str, int], str]:
    """Refusals by partition. That nothing runs which could be cancelled is none."""
    wanted, refused = sorted(targets), dict[tuple[str, int], str]()
    for start in range(0, len(wanted), BATCH):
        refused |= _refusals(send(_request(wanted[start : start + BATCH], targets), controller))
    return refused


def _request(partitions: Sequence[tuple[str, int]], targets: Targets) -> AlterPartitionReassignmentsRequest:
    kind = AlterPartitionReassignmentsRequest.ReassignableTopic
    return AlterPartitionReassignmentsRequest(
        timeout_ms=TIMEOUT_MS,
        topics=[
            kind(
                name=topic,
                partitions=[
                    kind.ReassignablePartition(partition_index=one[1], replicas=_listed(targets[one])) for one in numbers
                ],
            )
            for topic, numbers in groupby(partitions, key=lambda one: one[0])
        ],
    )


def _listed(replicas: tuple[int, ...] | None) -> list[int] | None:
    return None if replicas is None else list(replicas)


def _refusals(answer: Any) -> dict[tuple[str, int], str]:  # noqa: ANN401 - kafka-python has no types
    return {
        (topic.name, one.partition_index): one.error_message or for_code(one.error_code).__name__
        for topic in told(answer, "reassignments").responses
        for one in topic.partitions
        if one.error_code not in {0, NoReassignmentInProgressError.errno}
    }


def throttles(send: Send, brokers: Collection[int], topics: Collection[str]) -> Throttles:
    own, default = dict[int, dict[str, str]](), dict[str, str]()
    for broker in sorted(brokers):
        (found,) = _described(send, [(BROKER_RESOURCE, str(broker), list(RATES))], broker)
        set_here = told(found, f"configuration of broker {broker}").configs
        own[broker] = _values(set_here, OF_BROKER)
        default |= _values(set_here, OF_ALL_BROKERS)
    by_name = dict[str, dict[str, str]]()
    names = sorted(topics)
    for start in range(0, len(names), BATCH):
        resources = [(TOPIC_RESOURCE, name, list(LISTS)) for name in names[start : start + BATCH]]
        for found in _described(send, resources, None):
            if found.error_code != UnknownTopicOrPartitionError.errno:
                by_name[found.resource_name] = _values(
                    told(found, f"configuration of topic {found.resource_name}").configs, OF_TOPIC
                )
    return Throttles(own, default, by_name)


def _described(send: Send, resources: Sequence[tuple[int, str, list[str]]], broker: int | None) -> Iterable[Any]:
    found: Iterable[Any] = send(DescribeConfigsRequest(resources=resources, include_synonyms=True), broker).results
    return found


def _values(entries: Iterable[Any], source: int) -> dict[str, str]:
    """What is set there, also where something else covers it."""
    return {entry.name: one.value for entry in entries for one in entry.synonyms if one.source == source and one.value}


def set_throttles(send: Send, wanted: Throttles) -> None:
    """Each broker is asked for its own: in ZooKeeper mode no other takes them."""
    for broker, values in sorted(wanted.brokers.items()):
        _alter(send, [(BROKER_RESOURCE, str(broker), values)], broker)
    names = sorted(wanted.topics)
    for start in range(0, len(names), BATCH):
        _alter(send, [(TOPIC_RESOURCE, name, wanted.topics[name]) for name in names[start : start + BATCH]], None)


def _alter(send: Send, resources: Sequence[tuple[int, str, Mapping[str, str]]], broker: int | None) -> None:
    kind = IncrementalAlterConfigsRequest.AlterConfigsResource
    request = IncrementalAlterConfigsRequest(
        validate_only=False,
        resources=[
            kind(
                resource_type=type_,
                resource_name=name,
                configs=[
                    kind.AlterableConfig(name=key, config_operation=SET if value else DELETE, value=value or None)
                    for key, value in sorted(values.items())
                ],
            )
            for type_, name, values in resources
            if values
        ],
    )
    if request.resources:
        for answer in send(request, broker).responses:
            told(answer, f"throttles of {answer.resource_name}")
