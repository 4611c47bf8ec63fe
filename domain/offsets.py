"""What brokers say of offsets: where each partition's log begins and ends, and how far consumer groups have committed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """One partition as its leader sees it. `end`: the high watermark, exclusive: all that is below it is acknowledged for good.

    `topic_id`: 22 characters of base 64 for URLs; empty where the cluster gives topics none. `is_compacted`: the topic's
    `cleanup.policy` has `compact` in it, so that the cleaner rewrites batches.
    """

    topic: str
    topic_id: str
    partition: int
    start: int
    end: int
    is_compacted: bool


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """The next offset that a consumer group wants of a partition."""

    group: str
    topic: str
    partition: int
    committed: int
