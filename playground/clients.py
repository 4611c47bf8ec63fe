"""Kafka clients of the playground: quiet ones, whose complaints about restarting brokers go to logging."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

log = logging.getLogger("playground.kafka")


@dataclass(frozen=True)
class ClusterView:
    """What one metadata answer says."""

    cluster_id: str
    broker_ids: frozenset[int]
    topics: frozenset[str]
    under_replicated: tuple[str, ...]
    """`topic-partition` of those whose ISR is smaller than their assignment."""


def admin_client(bootstrap_servers: Sequence[str]) -> AdminClient:
    return AdminClient(client_configuration(bootstrap_servers), logger=log)


def client_configuration(bootstrap_servers: Sequence[str]) -> dict[str, str | int | float | bool]:
    """Settings shared by every client; reconnects are quick because brokers here are back within seconds."""
    return {
        "bootstrap.servers": ",".join(bootstrap_servers),
        "client.id": "playground",
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 500,
        "topic.metadata.refresh.interval.ms": 5000,
    }


def cluster_view(admin: AdminClient, timeout_seconds: float = 2.0) -> ClusterView | None:
    """None while no broker answers."""
    try:
        metadata = admin.list_topics(timeout=timeout_seconds)
    except KafkaException:
        return None
    under = tuple(
        f"{name}-{partition.id}"
        for name, topic in metadata.topics.items()
        for partition in topic.partitions.values()
        if len(partition.isrs) < len(partition.replicas)
    )
    return ClusterView(metadata.cluster_id or "", frozenset(metadata.brokers), frozenset(metadata.topics), under)
