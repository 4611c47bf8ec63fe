"""How often the quorum has changed each partition, from the batches of its log. Pure.

A broker passes over what a controller says of a partition with a smaller partition epoch than it knows (Partition.makeLeader,
makeFollower). For a ZooKeeper controller that epoch is the version of the state's znode. Dual write sets the znode once for
each image of the metadata, and an image may hold several changes of one partition: then the znode is behind for good. Handed
over like that, the partition's next leader never leads, and nobody follows it (seen on 3.9.2).

Counted are uncommitted records too, and those of an aborted transaction: an epoch that is too large does no such harm.
"""

import struct
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from domain.errors import Unsafe
from domain.quorum_log.record_batches import Batch, Record, unsigned
from domain.quorum_log.record_types import RecordType

UUID_BYTES = 16
PARTITION_AND_TOPIC = struct.Struct(f">i{UUID_BYTES}s")
LEADER_AND_EPOCHS = struct.Struct(">iii")
"""Leader, leader epoch, partition epoch: what follows a `PartitionRecord`'s lists, in versions 0 to 2."""
LISTS = 4
"""Replicas, ISR, removing and adding ones."""
MOST_PARTITIONS = 1_000_000
"""Of one topic. A larger number is no partition's."""


@dataclass(frozen=True)
class PartitionEpochs:
    """Epochs by topic id (16 bytes) and partition. `end`: the offset that the next batch must have."""

    end: int = 0
    _topics: Mapping[bytes, "array[int]"] = field(default_factory=dict)

    def of(self, topic_id: bytes, partition: int) -> int:
        """A partition's epoch, 0 for one that is not known."""
        epochs = self._topics.get(topic_id)
        return epochs[partition] if epochs is not None and partition < len(epochs) else 0

    def changed_since(self, earlier: "PartitionEpochs") -> frozenset[bytes]:
        """Ids of the topics of which a partition has another epoch now."""
        return frozenset(topic for topic, epochs in self._topics.items() if earlier._topics.get(topic) != epochs)

    def after(self, batches: Iterable[Batch]) -> "PartitionEpochs":
        """With these batches of the log. Those read before are passed over."""
        new = [batch for batch in batches if batch.last_offset >= self.end]
        return self._with([record for batch in new for record in batch.records], new[-1].last_offset + 1 if new else self.end)

    def after_checkpoint(self, batches: Iterable[Batch], end: int) -> "PartitionEpochs":
        """With batches of a checkpoint, which stands for all of the log before offset `end`."""
        return self._with([record for batch in batches for record in batch.records], end)

    def _with(self, records: Iterable[Record], end: int) -> "PartitionEpochs":
        topics, own = dict(self._topics), set[bytes]()
        for record in records:
            if record.api_key == RecordType.REMOVE_TOPIC:
                topics.pop(record.body[:UUID_BYTES], None)
            elif record.api_key in (RecordType.PARTITION, RecordType.PARTITION_CHANGE):
                try:
                    partition, topic = PARTITION_AND_TOPIC.unpack_from(record.body)
                    epoch = _epoch(record.body) if record.api_key == RecordType.PARTITION else None
                except (struct.error, IndexError) as error:
                    raise _unreadable(record) from error
                if not 0 <= partition < MOST_PARTITIONS:
                    raise _unreadable(record)
                if topic not in own or topic not in topics:
                    own.add(topic)
                    topics[topic] = array("i", topics.get(topic, ()))
                epochs = topics[topic]
                epochs.extend([0] * (partition + 1 - len(epochs)))
                epochs[partition] = epoch if epoch is not None else epochs[partition] + 1
        return PartitionEpochs(end, topics)


def _epoch(body: bytes) -> int:
    """The partition epoch of a `PartitionRecord`."""
    at = PARTITION_AND_TOPIC.size
    for _ in range(LISTS):
        length, at = unsigned(body, at)
        at += 4 * max(0, length - 1)
    return int(LEADER_AND_EPOCHS.unpack_from(body, at)[2])


def _unreadable(record: Record) -> Unsafe:
    kind = RecordType(record.api_key).name.lower().replace("_", " ")
    return Unsafe(f"metadata log: the {kind} record at offset {record.offset} cannot be read (version {record.version})")
