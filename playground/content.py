"""What a cluster keeps besides messages, as its brokers tell it: to compare before and after.

Not in it: quotas, for which no client has a question, and the topics that Kafka itself makes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import TopicCollection
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ConfigSource,
    ResourcePatternType,
    ResourceType,
)

from playground.clients import admin_client

TIMEOUT_SECONDS = 20.0


@dataclass(frozen=True)
class TopicContent:
    """A topic's identity, its assignment in the order of partitions, and the configs that were set for it."""

    id: str
    replicas: tuple[tuple[int, ...], ...]
    config: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Content:
    """`scram`: user and mechanisms. Comparable as a whole."""

    topics: dict[str, TopicContent]
    acls: frozenset[AclBinding]
    scram: frozenset[tuple[str, tuple[str, ...]]]


def content_of(bootstrap_servers: Sequence[str]) -> Content:
    """As the broker tells it that is asked: one that has just started in ZooKeeper mode knows of no topic for a moment."""
    admin = admin_client(bootstrap_servers)
    names = sorted(name for name in admin.list_topics(timeout=TIMEOUT_SECONDS).topics if not name.startswith("__"))
    return Content(_topics(admin, names) if names else {}, _acls(admin), _scram(admin))


def _topics(admin: AdminClient, names: list[str]) -> dict[str, TopicContent]:
    configs = _configs(admin, names)
    topics = {}
    for name, future in admin.describe_topics(TopicCollection(names)).items():
        told = future.result(TIMEOUT_SECONDS)
        replicas = tuple(tuple(node.id for node in partition.replicas) for partition in told.partitions)
        topics[name] = TopicContent(str(told.topic_id), replicas, configs[name])
    return topics


def _configs(admin: AdminClient, names: Sequence[str]) -> dict[str, frozenset[tuple[str, str]]]:
    asked = admin.describe_configs([ConfigResource(ResourceType.TOPIC, name) for name in names])
    of_topics = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {
        resource.name: frozenset((e.name, e.value) for e in future.result(TIMEOUT_SECONDS).values() if e.source == of_topics)
        for resource, future in asked.items()
    }


def _acls(admin: AdminClient) -> frozenset[AclBinding]:
    everything = AclBindingFilter(
        ResourceType.ANY,
        None,  # type: ignore[arg-type]  # any name: so it is documented, and typed otherwise
        ResourcePatternType.ANY,
        None,  # type: ignore[arg-type]
        None,  # type: ignore[arg-type]
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    return frozenset(admin.describe_acls(everything).result(TIMEOUT_SECONDS))


def _scram(admin: AdminClient) -> frozenset[tuple[str, tuple[str, ...]]]:
    asked = admin.describe_user_scram_credentials()
    if isinstance(asked, dict):
        raise TypeError("asked for all users together, and answered one by one")
    return frozenset(
        (user, tuple(sorted(info.mechanism.name for info in description.scram_credential_infos)))
        for user, description in asked.result(TIMEOUT_SECONDS).items()
    )
