"""A consumer group's offsets, committed without consuming."""

import logging
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaException, TopicPartition

from playground.clients import client_configuration
from playground.processes import wait_until

log = logging.getLogger("playground.kafka")


def commit_offsets(bootstrap_servers: Sequence[str], group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Tried again while there is no coordinator: the first group makes the coordinator's topic, which takes a moment."""
    wanted = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
    consumer = Consumer({**client_configuration(bootstrap_servers), "group.id": group}, logger=log)

    def is_committed() -> bool:
        try:
            answered = consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException:
            return False
        return all(one.error is None for one in answered or [])

    try:
        wait_until(is_committed, f"the offsets of {group} to be committed", 60)
    finally:
        consumer.close()
