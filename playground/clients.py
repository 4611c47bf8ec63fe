"""Kafka clients of the playground: quiet ones, whose complaints about restarting brokers go to logging."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

log = logging.getLogger("playground.kafka")

GONE_ON_THE_WAY = frozenset({KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError.NOT_CONTROLLER})
"""The broker that was asked went away, or is the controller no more: librdkafka asks once, and what was done is unknown."""


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


def change_topics(ask: Callable[[], Mapping[str, Future[None]]], done_already: int, timeout_seconds: float) -> None:
    """Creates or deletes, and asks again where the broker that was asked goes away before it has answered.

    Args:
        ask: Sends the request for what is wanted, and gives a future for each topic.
        done_already: Kafka's error code of what an earlier try, whose answer was lost, has done.

    Raises KafkaException for what Kafka refuses, and for what is still without an answer after `timeout_seconds`.
    """
    deadline = time.monotonic() + timeout_seconds
    tries = 0
    while True:
        tries += 1
        errors = [error for future in ask().values() if (error := _error_of(future, timeout_seconds)) is not None]
        open_still = [e for e in errors if tries == 1 or e.args[0].code() != done_already]
        if not open_still:
            return
        refused = [e for e in open_still if e.args[0].code() not in GONE_ON_THE_WAY]
        if refused or time.monotonic() > deadline:
            raise (refused or open_still)[0]
        time.sleep(0.2)


def _error_of(future: Future[None], timeout_seconds: float) -> KafkaException | None:
    try:
        future.result(timeout_seconds)
    except KafkaException as error:
        return error
    return None
