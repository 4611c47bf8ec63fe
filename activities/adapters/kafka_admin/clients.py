"""What clients do, request by request, so that it is known which broker has answered. No library's producer or consumer: theirs
hide what they try again, and where.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from kafka.errors import (
    KafkaError,
    NoError,
    ResourceNotFoundError,
    SecurityDisabledError,
    TopicAlreadyExistsError,
    TopicDeletionDisabledError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.protocol.admin import (
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    CreateTopicsRequest,
    DeleteAclsRequest,
    DeleteTopicsRequest,
    DescribeAclsRequest,
    DescribeConfigsRequest,
    DescribeUserScramCredentialsRequest,
    IncrementalAlterConfigsRequest,
)
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import ProduceRequest
from kafka.record import MemoryRecords
from kafka.record.memory_records import MemoryRecordsBuilder

from activities.ports.kafka import Led
from domain.errors import Permanent, Transient

T = TypeVar("T")

TOPIC, BROKER = 2, 4
"""Types of config resources."""
GROUP, LITERAL, DENY, READ = 3, 3, 2, 3
"""Of the ACL that is tried: nobody has this group, and it gives nobody anything."""
SCRAM_SHA_512, SCRAM_ITERATIONS = 2, 4096
SET = 0
"""Of IncrementalAlterConfigs."""
ALL_IN_SYNC = -1
CONTROLLER_MS, PRODUCE_MS = 5000, 1500
FETCH_BYTES = 1 << 20
NAMES_PRODUCE, NAMES_FETCH = 11, 12
"""The last versions that name topics; later ones need their ids. Kafka 2.7 and later know one of each from 3, or 4, on."""


class RequestingClient:
    """`KafkaClient`. `send`: the answer to a request of a broker, or of any; blocks. `errors`: translates kafka-python's."""

    def __init__(
        self,
        send: Callable[[object, int | None], Any],
        errors: Callable[[], AbstractContextManager[None]],
        close: Callable[[], None],
    ) -> None:
        self._ask, self._errors, self._close = send, errors, close

    async def alive(self) -> tuple[int, ...]:
        return await self._do(lambda: tuple(sorted(b.node_id for b in self._metadata([], None).brokers)))

    async def topics(self, broker: int) -> tuple[str, ...]:
        return await self._do(lambda: tuple(sorted(topic.name for topic in self._metadata(None, broker).topics)))

    async def led(self, topic: str, broker: int | None = None) -> Led | None:
        return await self._do(lambda: _led(self._metadata([topic], broker)))

    async def create_topic(
        self,
        broker: int,
        topic: str,
        assignment: Sequence[Sequence[int]],
        configs: Mapping[str, str],
        *,
        is_trial: bool = False,
    ) -> None:
        kind = CreateTopicsRequest.CreatableTopic
        wanted = kind(
            name=topic,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                kind.CreatableReplicaAssignment(partition_index=number, broker_ids=list(replicas))
                for number, replicas in enumerate(assignment)
            ],
            configs=[kind.CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=CONTROLLER_MS, validate_only=is_trial)
        await self._do(lambda: _ensure(self._ask_controller(request, broker).topics, topic, TopicAlreadyExistsError))

    async def delete_topic(self, broker: int, topic: str) -> None:
        request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=CONTROLLER_MS, max_version=5)

        def delete() -> None:
            try:
                _ensure(self._ask_controller(request, broker).responses, topic, UnknownTopicOrPartitionError)
            except TopicDeletionDisabledError as error:
                raise Permanent(f"{topic} cannot be deleted: delete.topic.enable is false at the controller") from error

        await self._do(delete)

    async def set_topic_config(self, broker: int, topic: str, name: str, value: str) -> None:
        kind = IncrementalAlterConfigsRequest.AlterConfigsResource
        change = kind.AlterableConfig(name=name, config_operation=SET, value=value)
        resource = kind(resource_type=TOPIC, resource_name=topic, configs=[change])
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        await self._do(lambda: _ensure(self._ask(request, broker).responses, f"{name} of {topic}"))

    async def topic_config(self, broker: int, topic: str, name: str) -> str | None:
        return await self._do(lambda: self._config(broker, TOPIC, topic, name))

    async def broker_config(self, broker: int, name: str) -> str | None:
        return await self._do(lambda: self._config(broker, BROKER, str(broker), name))

    async def produce(self, broker: int, topic: str, partition: int, value: bytes) -> int:
        return await self._do(lambda: self._produce(broker, topic, partition, value))

    async def fetch(self, broker: int, topic: str, partition: int, offset: int) -> tuple[bytes, ...]:
        return await self._do(lambda: self._fetch(broker, topic, partition, offset))

    async def denied_groups(self, broker: int) -> tuple[str, ...] | None:
        return await self._do(lambda: self._denied_groups(broker))

    async def deny_group(self, broker: int, group: str) -> None:
        acl = CreateAclsRequest.AclCreation(
            resource_type=GROUP,
            resource_name=group,
            resource_pattern_type=LITERAL,
            principal=f"User:{group}",
            host="*",
            operation=READ,
            permission_type=DENY,
        )
        request = CreateAclsRequest(creations=[acl])
        await self._do(lambda: _ensure(self._ask_controller(request, broker).results, f"the ACL of group {group}"))

    async def forget_group(self, broker: int, group: str) -> None:
        wanted = DeleteAclsRequest.DeleteAclsFilter(
            resource_type_filter=GROUP,
            resource_name_filter=group,
            pattern_type_filter=LITERAL,
            principal_filter=f"User:{group}",
            host_filter="*",
            operation=READ,
            permission_type=DENY,
        )
        request = DeleteAclsRequest(filters=[wanted])
        await self._do(lambda: _ensure(self._ask_controller(request, broker).filter_results, f"the ACL of group {group}"))

    async def scram_users(self, broker: int) -> tuple[str, ...]:
        return await self._do(lambda: self._scram_users(broker))

    async def give_scram(self, broker: int, user: str) -> None:
        given = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            name=user,
            mechanism=SCRAM_SHA_512,
            iterations=SCRAM_ITERATIONS,
            salt=secrets.token_bytes(32),
            salted_password=secrets.token_bytes(64),
        )
        request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[given])
        await self._do(lambda: _ensure(self._ask_controller(request, broker).results, user))

    async def take_scram(self, broker: int, user: str) -> None:
        taken = AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=user, mechanism=SCRAM_SHA_512)
        request = AlterUserScramCredentialsRequest(deletions=[taken], upsertions=[])
        await self._do(lambda: _ensure(self._ask_controller(request, broker).results, user, ResourceNotFoundError))

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    async def _do(self, blocking: Callable[[], T]) -> T:
        return await asyncio.to_thread(self._translated, blocking)

    def _translated(self, blocking: Callable[[], T]) -> T:
        with self._errors():
            return blocking()

    def _metadata(self, topics: list[str] | None, broker: int | None) -> Any:  # noqa: ANN401 - kafka-python has no types
        """`None` means all topics."""
        asked = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        return self._ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False), broker)

    def _ask_controller(self, request: object, broker: int) -> Any:  # noqa: ANN401
        """In ZooKeeper mode it must be the controller itself; in KRaft mode the broker names one that passes it on.

        Also for what any broker would do in ZooKeeper mode: a hybrid one passes ACLs on, to a controller that, as long as it
        is in ZooKeeper mode itself, closes the connection (3.9.2, seen: CreateAcls times out at hybrid brokers in roll 1).
        """
        controller = self._metadata([], broker).controller_id
        if controller < 0:
            raise Transient(f"broker {broker} knows no controller")
        return self._ask(request, controller)

    def _config(self, broker: int, kind: int, resource: str, name: str) -> str | None:
        request = DescribeConfigsRequest(resources=[(kind, resource, [name])])
        (found,) = self._ask(request, broker).results
        _ensure([found], resource)
        return next((entry.value for entry in found.configs if entry.name == name), None)

    def _produce(self, broker: int, topic: str, partition: int, value: bytes) -> int:
        builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=len(value) + 1024)
        builder.append(timestamp=int(time.time() * 1000), key=None, value=value)
        builder.close()
        kind = ProduceRequest.TopicProduceData
        part = kind.PartitionProduceData(index=partition, records=bytes(builder.buffer()))
        request = ProduceRequest(
            transactional_id=None,
            acks=ALL_IN_SYNC,
            timeout_ms=PRODUCE_MS,
            topic_data=[kind(name=topic, partition_data=[part])],
            min_version=3,
            max_version=NAMES_PRODUCE,
        )
        (told,) = self._ask(request, broker).responses[0].partition_responses
        _ensure([told], f"{topic}-{partition}")
        return int(told.base_offset)

    def _fetch(self, broker: int, topic: str, partition: int, offset: int) -> tuple[bytes, ...]:
        kind = FetchRequest.FetchTopic
        part = kind.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=[kind(topic=topic, partitions=[part])],
            forgotten_topics_data=[],
            rack_id="",
            min_version=4,
            max_version=NAMES_FETCH,
        )
        (told,) = self._ask(request, broker).responses[0].partitions
        _ensure([told], f"{topic}-{partition}")
        batches = MemoryRecords(bytes(told.records or b""))
        values: list[bytes] = []
        while batches.has_next():
            values += [bytes(record.value or b"") for record in batches.next_batch() if record.offset >= offset]
        return tuple(values)

    def _denied_groups(self, broker: int) -> tuple[str, ...] | None:
        request = DescribeAclsRequest(
            resource_type_filter=GROUP,
            resource_name_filter=None,
            pattern_type_filter=LITERAL,
            principal_filter=None,
            host_filter="*",
            operation=READ,
            permission_type=DENY,
        )
        answer = self._ask(request, broker)
        if for_code(answer.error_code) is SecurityDisabledError:
            return None
        _ensure([answer], "ACLs of groups")
        found = [(found.resource_name, acl.principal) for found in answer.resources for acl in found.acls]
        return tuple(sorted(name for name, principal in found if principal == f"User:{name}"))

    def _scram_users(self, broker: int) -> tuple[str, ...]:
        answer = self._ask(DescribeUserScramCredentialsRequest(users=None), broker)
        _ensure([answer], "users with a SCRAM credential")
        return tuple(sorted(found.user for found in answer.results if found.credential_infos))


def _led(metadata: Any) -> Led | None:  # noqa: ANN401
    alive = {broker.node_id for broker in metadata.brokers}
    (topic,) = metadata.topics
    if for_code(topic.error_code) is UnknownTopicOrPartitionError:
        return None
    leaders = {p.partition_index: p.leader_id if p.leader_id in alive else None for p in topic.partitions}
    return Led(leaders, {p.partition_index: tuple(p.replica_nodes) for p in topic.partitions})


def _ensure(results: Sequence[Any], what: str, *allowed: type[KafkaError]) -> None:
    """Raise what a broker has answered, unless it is one of those allowed."""
    for result in results:
        error = for_code(result.error_code)
        if error is not NoError and error not in allowed:
            raise error(f"{what}: {getattr(result, 'error_message', None) or ''}")
