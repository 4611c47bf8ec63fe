"""What one metadata answer says of brokers, partitions and their leaders."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from kafka.protocol.metadata import MetadataResponse

from domain.errors import Transient
from domain.observed.observation import KafkaView, PartitionFault
from domain.rolling.waves import shared_partitions


def brokers_in(metadata: MetadataResponse) -> tuple[str, frozenset[int]]:
    return metadata.cluster_id, frozenset(broker.node_id for broker in metadata.brokers)


def leaders_of(metadata: MetadataResponse, is_wanted: Callable[[str], bool]) -> dict[int, list[tuple[str, int]]]:
    """Partitions by leader. `Transient` where one has none that is alive: what it holds cannot be known now."""
    _, alive = brokers_in(metadata)
    found: dict[int, list[tuple[str, int]]] = {}
    for topic in metadata.topics:
        if not is_wanted(topic.name):
            continue
        for partition in topic.partitions:
            if topic.error_code or partition.leader_id not in alive:
                raise Transient(f"partition {topic.name}-{partition.partition_index}: has no leader now; observe again")
            found.setdefault(partition.leader_id, []).append((topic.name, partition.partition_index))
    return found


def displaced(metadata: MetadataResponse) -> list[tuple[str, int]]:
    """Partitions whose preferred leader, the first of their replicas, is alive and in sync, and does not lead."""
    _, alive = brokers_in(metadata)
    return [
        (topic.name, partition.partition_index)
        for topic in sorted(metadata.topics, key=lambda found: found.name)
        for partition in sorted(topic.partitions, key=lambda found: found.partition_index)
        for preferred in partition.replica_nodes[:1]
        if preferred in alive and preferred in partition.isr_nodes and partition.leader_id != preferred
    ]


@dataclass(frozen=True)
class Partition:
    """A partition as one metadata answer has it. `in_sync`: members of `isr` that are alive; `leader`: likewise."""

    name: str
    replicas: frozenset[int]
    in_sync: frozenset[int]
    leader: int | None
    min_isr: int
    isr: frozenset[int] = frozenset()

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
    cluster_id, alive = brokers_in(metadata)
    return KafkaView(
        cluster_id=cluster_id,
        broker_ids=tuple(sorted(alive)),
        topic_count=len(metadata.topics),
        partition_count=len(partitions),
        under_replicated=tuple(
            PartitionFault(partition=p.name, missing=tuple(sorted(p.replicas - p.in_sync)), leader=p.leader)
            for p in partitions
            if p.replicas - p.in_sync
        ),
        offline=tuple(p.name for p in partitions if p.leader is None),
        needs={broker: tuple(p.name for p in partitions if p.needs(broker)) for broker in sorted(alive)},
        shared=shared_partitions((p.name, p.replicas) for p in partitions),
        racks={broker.node_id: broker.rack for broker in metadata.brokers if broker.rack},
        last_in_sync={p.name: tuple(sorted(p.isr or p.replicas)) for p in partitions if p.leader is None},
    )


def _partitions(metadata: MetadataResponse, min_isr: Mapping[str, int]) -> Iterator[Partition]:
    """A dead broker leaves the list of brokers before it leaves ISR and leadership: who is not listed is in neither."""
    _, alive = brokers_in(metadata)
    for topic in sorted(metadata.topics, key=lambda found: found.name):
        if topic.error_code or topic.name not in min_isr:
            raise Transient(f"topic {topic.name}: its metadata cannot be read now (error {topic.error_code})")
        for partition in sorted(topic.partitions, key=lambda found: found.partition_index):
            yield Partition(
                name=f"{topic.name}-{partition.partition_index}",
                replicas=frozenset(partition.replica_nodes),
                in_sync=alive.intersection(partition.isr_nodes),
                leader=partition.leader_id if partition.leader_id in alive else None,
                min_isr=min_isr[topic.name],
                isr=frozenset(partition.isr_nodes),
            )
