"""How often each partition was changed, read from records that another encoder has written, against a count of one's own."""

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import Unsafe
from domain.quorum_log.partition_epochs import PartitionEpochs
from domain.quorum_log.record_batches import read_batches
from domain.quorum_log.record_types import RecordType
from playground.log_bytes import batch
from playground.metadata_files import batch_of, message

TOPICS = [bytes([number]) * 16 for number in range(1, 4)]
NO_OP = (RecordType.NO_OP, b"\0")
Told = tuple[int, bytes, int, int]
"""Kind, topic, partition, epoch (of a partition record only)."""


def value_of(kind: int, topic: bytes, partition: int, epoch: int, version: int, brokers: list[int]) -> bytes:
    """The bytes of one record."""
    place = {"partitionId": partition, "topicId": topic}
    tagged: dict[str, Any] = {"leaderRecoveryState": 0 if kind == RecordType.PARTITION else -1}
    tagged |= {"eligibleLeaderReplicas": None, "lastKnownElr": None}
    if kind == RecordType.REMOVE_TOPIC:
        return message(kind, 0, {"topicId": topic})
    if kind == RecordType.PARTITION_CHANGE:
        nothing = {"replicas": None, "removingReplicas": None, "addingReplicas": None, "directories": None}
        return message(kind, version, place | tagged | nothing | {"isr": brokers, "leader": brokers[0] if brokers else -2})
    lists = {"replicas": brokers, "isr": brokers[1:], "removingReplicas": [], "addingReplicas": brokers[:1]}
    directories = {"directories": [topic] * len(brokers)} if version else {}
    return message(
        kind, version, place | tagged | lists | directories | {"leader": 1, "leaderEpoch": 7, "partitionEpoch": epoch}
    )


KINDS = st.sampled_from([RecordType.PARTITION, *[RecordType.PARTITION_CHANGE] * 5, RecordType.REMOVE_TOPIC])
TOLD = st.tuples(KINDS, st.sampled_from(TOPICS), st.integers(0, 5), st.integers(0, 100))
SHAPES = st.tuples(st.integers(0, 2), st.lists(st.integers(0, 2**31 - 1), max_size=4))


@given(st.lists(st.lists(st.tuples(TOLD, SHAPES), min_size=1, max_size=6), max_size=8), st.integers(0, 8))
def test_epochs_are_counted_however_the_log_is_cut(told: list[list[tuple[Told, Any]]], cut: int) -> None:
    expected: dict[tuple[bytes, int], int] = defaultdict(int)
    data, end = b"", 0
    for together in told:
        data += batch_of(end, [value_of(*record, *shape) for record, shape in together])
        end += len(together)
        for (kind, topic, partition, epoch), _ in together:
            if kind == RecordType.REMOVE_TOPIC:
                for key in [key for key in expected if key[0] == topic]:
                    del expected[key]
            else:
                expected[topic, partition] = epoch if kind == RecordType.PARTITION else expected[topic, partition] + 1
    batches, _ = read_batches(data)
    first = PartitionEpochs().after(batches[:cut])
    keys = [(topic, partition) for topic in TOPICS for partition in range(6)]
    kept = {key: first.of(*key) for key in keys}
    second = first.after(batches)  # Some of them for the second time.
    assert {(t, p): second.of(t, p) for t in TOPICS for p in range(6)} == {
        (t, p): expected[t, p] for t in TOPICS for p in range(6)
    }
    assert second.end == end
    assert kept == {key: first.of(*key) for key in keys}, "what was read before is still what it was"
    changed = {topic for topic in TOPICS if any(first.of(topic, p) != second.of(topic, p) for p in range(6))}
    gone = {topic for topic in TOPICS if not any(second.of(topic, p) for p in range(6))}
    assert changed - gone <= second.changed_since(first)
    assert second.changed_since(second) == frozenset()


def test_a_checkpoint_is_the_beginning() -> None:
    topic = TOPICS[0]
    checkpoint, _ = read_batches(batch_of(0, [value_of(RecordType.PARTITION, topic, 2, 41, 1, [1, 2])]))
    log, _ = read_batches(batch_of(500, [value_of(RecordType.PARTITION_CHANGE, topic, 2, 0, 0, [1])]))
    epochs = PartitionEpochs().after_checkpoint(checkpoint, 500)
    assert (epochs.end, epochs.of(topic, 2), epochs.of(topic, 3)) == (500, 41, 0)
    assert epochs.after(log).of(topic, 2) == 42


@pytest.mark.parametrize("body", [b"", b"\0" * 10, b"\xff" * 20 + b"\0" * 40, b"\0" * 20 + b"\x05"])
def test_what_cannot_be_read_is_named(body: bytes) -> None:
    batches, _ = read_batches(batch(7, [NO_OP, (RecordType.PARTITION, body)]))
    with pytest.raises(Unsafe, match="partition record at offset 8 cannot be read"):
        PartitionEpochs().after(batches)
