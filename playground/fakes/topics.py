"""Topics of a simulated cluster and what `KafkaAdmin` says of them."""

from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from uuid import NAMESPACE_OID, uuid5

from domain.observed.observation import KafkaView, PartitionFault
from domain.rolling.waves import shared_partitions


@dataclass(frozen=True)
class FakeTopic:
    """`assignment`: the replicas of each partition. `has_id`: Kafka before 2.8 gave none."""

    name: str
    assignment: tuple[tuple[int, ...], ...]
    min_isr: int = 2
    has_id: bool = True

    @property
    def topic_id(self) -> str | None:
        """Its own, and the same whenever it is made."""
        return urlsafe_b64encode(uuid5(NAMESPACE_OID, self.name).bytes).decode().rstrip("=") if self.has_id else None


def spread(name: str, partitions: int, brokers: tuple[int, ...], replicas: int = 3, min_isr: int = 2) -> FakeTopic:
    """Replicas in turn over the brokers."""
    count = min(replicas, len(brokers))
    return FakeTopic(
        name,
        tuple(tuple(brokers[(p + r) % len(brokers)] for r in range(count)) for p in range(partitions)),
        min(min_isr, count),
    )


def kafka_view(
    cluster_id: str,
    topics: Collection[FakeTopic],
    brokers: Collection[int],
    in_sync: Collection[int],
    leaders: Mapping[str, int],
) -> KafkaView:
    """`brokers` are alive, those `in_sync` have caught up. A partition whose last replica died is offline."""
    partitions = list(_partitions(topics))
    return KafkaView(
        cluster_id=cluster_id,
        broker_ids=tuple(sorted(brokers)),
        topic_count=len(topics),
        partition_count=len(partitions),
        under_replicated=tuple(
            PartitionFault(partition=name, missing=missing, leader=leaders[name] if leaders.get(name) in brokers else None)
            for name, replicas, _ in partitions
            if (missing := tuple(sorted(set(replicas) - set(in_sync))))
        ),
        offline=tuple(name for name, replicas, _ in partitions if not set(replicas) & set(brokers)),
        needs={
            broker: tuple(
                name
                for name, replicas, min_isr in partitions
                if broker in replicas and broker in in_sync and len(set(replicas) & set(in_sync)) - 1 < min_isr
            )
            for broker in sorted(brokers)
        },
        shared=shared_partitions((name, replicas) for name, replicas, _ in partitions),
        last_in_sync={name: tuple(sorted(replicas)) for name, replicas, _ in partitions if not set(replicas) & set(brokers)},
    )


def _partitions(topics: Collection[FakeTopic]) -> Iterator[tuple[str, tuple[int, ...], int]]:
    for topic in topics:
        must_stay = topic.min_isr if topic.min_isr <= min(map(len, topic.assignment), default=0) else 1
        yield from ((f"{topic.name}-{p}", replicas, must_stay) for p, replicas in enumerate(topic.assignment))
