"""Files of the quorum's log as Kafka would write them: any record from its fields, and whole checkpoints of millions.

`message` and `batch_of` write what a test spells out. `write_checkpoint` and `write_log` write a `SyntheticCluster`, whose
values all follow from its numbers, in Kafka's order: 1,024 records to a batch, each topic before its partitions.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from domain.quorum_log.record_types import RecordType
from spark.codec.metadata_schema import SCHEMAS, SchemaField

CONTROL = 0x20
LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER = 2, 3, 4
SOME_TIME = 1_700_000_000_000
BATCH_RECORDS = 1024
"""As RaftSnapshotWriter hands them over (MetadataImage.write)."""
TOPIC_RESOURCE = 2
_BEFORE_CRC = struct.Struct(">qiib")
_AFTER_CRC = struct.Struct(">hiqqqhii")
_FIXED = {"bool": ">?", "int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "int64": ">q", "float64": ">d"}

# ---- single records ----


def message(kind: int, version: int, values: Mapping[str, Any]) -> bytes:
    """A record's value: frame version 1, kind, version, fields. Tagged fields are written unless they have their default."""
    return b"\x01" + varint(kind) + varint(version) + _structure(SCHEMAS[kind].fields, version, values)


def _structure(fields: tuple[SchemaField, ...], version: int, values: Mapping[str, Any]) -> bytes:
    present = [field for field in fields if field.since <= version]
    plain = b"".join(_field(field, version, values[field.name]) for field in present if field.tag is None)
    told = [f for f in present if f.tag is not None and values.get(f.name, f.default) != f.default]
    tagged = [(f.tag or 0, _field(f, version, values[f.name])) for f in told]
    return plain + varint(len(tagged)) + b"".join(varint(tag) + varint(len(body)) + body for tag, body in sorted(tagged))


def _field(field: SchemaField, version: int, value: Any) -> bytes:  # noqa: ANN401 - whatever its type says
    if value is None:
        return b"\0"
    if field.type.startswith("[]"):
        element = SchemaField("", field.type[2:], fields=field.fields)
        return varint(len(value) + 1) + b"".join(_element(element, version, item) for item in value)
    return _element(field, version, value)


def _element(field: SchemaField, version: int, value: Any) -> bytes:  # noqa: ANN401 - whatever its type says
    if field.fields:
        return _structure(field.fields, version, value)
    if field.type == "uuid":
        return bytes(value)
    if field.type in _FIXED:
        return struct.pack(_FIXED[field.type], value)
    octets = value.encode() if isinstance(value, str) else value
    return varint(len(octets) + 1) + bytes(octets)


def varint(value: int) -> bytes:
    """Unsigned."""
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def zigzag(value: int) -> bytes:
    return varint((value << 1) ^ (value >> 63))


def batch_of(base_offset: int, values: Sequence[bytes], epoch: int = 1) -> bytes:
    """A batch of data records, each without a key."""
    records = (record(delta, None, value) for delta, value in enumerate(values))
    return batch(base_offset, len(values), b"".join(records), epoch=epoch)


def control_batch(base_offset: int, kind: int, epoch: int = 1) -> bytes:
    """A batch with one record of raft's own."""
    body = record(0, struct.pack(">hh", 0, kind), struct.pack(">h", 0) + b"\0")
    return batch(base_offset, 1, body, CONTROL, epoch)


def record(delta: int, key: bytes | None, value: bytes) -> bytes:
    if key is None:
        return _before_value(delta, len(value)) + value + b"\0"
    body = b"\0\0" + zigzag(delta) + zigzag(len(key)) + key + zigzag(len(value)) + value + b"\0"
    return zigzag(len(body)) + body


@lru_cache(maxsize=1 << 16)
def _before_value(delta: int, size: int) -> bytes:
    """All of a record without a key that comes before its value: few of them differ."""
    body = b"\0\0" + zigzag(delta) + zigzag(-1) + zigzag(size)
    return zigzag(len(body) + size + 1) + body


def batch(base_offset: int, count: int, records: bytes, attributes: int = 0, epoch: int = 1) -> bytes:
    """The header before records that are spelled out already."""
    checked = _AFTER_CRC.pack(attributes, count - 1, SOME_TIME, SOME_TIME, -1, -1, -1, count) + records
    return _BEFORE_CRC.pack(base_offset, 9 + len(checked), epoch, 2) + struct.pack(">I", crc32c(checked)) + checked


# ---- whole files ----


@dataclass(frozen=True)
class SyntheticCluster:
    """Topics of the same size. Everything follows from the numbers, so that other files can tell of the same cluster.

    `configs`: for each topic. `version`: of its `PartitionRecord`s; from 1 on they name directories.
    """

    topics: int
    partitions: int
    replication: int = 3
    brokers: int = 6
    configs: int = 1
    version: int = 0

    def name(self, topic: int) -> str:
        return f"topic-{topic:07}"

    @cached_property
    def ids(self) -> NDArray[np.uint8]:
        """16 bytes for each topic."""
        halves = np.arange(self.topics, dtype=np.uint64)[:, None] + np.array([1, 2**40], dtype=np.uint64)
        return (halves * np.uint64(0x9E3779B97F4A7C15)).astype(">u8").view(np.uint8).reshape(-1, 16)

    @cached_property
    def replicas(self) -> NDArray[np.int32]:
        """Of each partition, topic by topic. The first one leads, and all are in sync."""
        firsts = np.arange(self.topics * self.partitions, dtype=np.int32)[:, None] * 7
        return ((firsts + np.arange(self.replication, dtype=np.int32)) % self.brokers).astype(np.int32)

    @cached_property
    def leader_epochs(self) -> NDArray[np.int32]:
        return np.arange(self.topics * self.partitions, dtype=np.int32) % 23

    def config(self, index: int) -> tuple[str, str]:
        return f"config.{index}", str(1_000_000 + index)

    def values(self) -> Iterator[bytes]:
        """Record by record, each topic with its partitions, then all configs: as in a checkpoint."""
        partitions = self._partition_values()
        for topic in range(self.topics):
            yield self._topic_value(topic)
            yield from partitions[topic * self.partitions : (topic + 1) * self.partitions]
        for topic in range(self.topics):
            yield from self._config_values(topic)

    def values_as_copied(self) -> Iterator[bytes]:
        """Record by record as the copy from ZooKeeper writes them: each topic with its configs and partitions."""
        partitions = self._partition_values()
        for topic in range(self.topics):
            yield self._topic_value(topic)
            yield from self._config_values(topic)
            yield from partitions[topic * self.partitions : (topic + 1) * self.partitions]

    def _topic_value(self, topic: int) -> bytes:
        return message(RecordType.TOPIC, 0, {"name": self.name(topic), "topicId": self.ids[topic].tobytes()})

    def _config_values(self, topic: int) -> Iterator[bytes]:
        for index in range(self.configs):
            name, value = self.config(index)
            told = {"resourceType": TOPIC_RESOURCE, "resourceName": self.name(topic), "name": name, "value": value}
            yield message(RecordType.CONFIG, 0, told)

    def _partition_values(self) -> list[bytes]:
        """All at once: they have the same size."""
        count = self.topics * self.partitions
        replicas = self.replicas.astype(">i4").view(np.uint8).reshape(count, -1)
        length = _octets(count, self.replication + 1)
        none, end = _octets(count, 1), _octets(count, 0)
        epochs = self.leader_epochs.astype(">i4").view(np.uint8).reshape(count, 4)
        numbers = np.tile(np.arange(self.partitions, dtype=">i4"), self.topics).view(np.uint8).reshape(count, 4)
        ids, leaders = np.repeat(self.ids, self.partitions, axis=0), replicas[:, :4]
        directories = [length, _octets(count, *([0x11] * 16 * self.replication))] if self.version else []
        head = _octets(count, 1, RecordType.PARTITION, self.version)
        state = [length, replicas, length, replicas, none, none, leaders, epochs, epochs, *directories, end]
        matrix = np.ascontiguousarray(np.concatenate([head, numbers, ids, *state], axis=1))
        return [bytes(row) for row in matrix.view(f"V{matrix.shape[1]}").reshape(-1).tolist()]


def _octets(count: int, *values: int) -> NDArray[np.uint8]:
    return np.tile(np.array(values, dtype=np.uint8), (count, 1))


def write_checkpoint(directory: Path, cluster: SyntheticCluster, end: int, epoch: int = 1) -> Path:
    """`<end>-<epoch>.checkpoint` with all of the cluster. Its offsets are its own, from 0."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{end:020}-{epoch:010}.checkpoint"
    with path.open("wb") as file:
        file.write(control_batch(0, SNAPSHOT_HEADER))
        offset = _write_batches(file.write, 1, cluster.values())
        file.write(control_batch(offset, SNAPSHOT_FOOTER))
    return path


def write_log(directory: Path, cluster: SyntheticCluster, *, is_aborted: bool = False) -> int:
    """The first segment, with the cluster as the copy writes it: one transaction. Gives the offset after it."""
    directory.mkdir(parents=True, exist_ok=True)
    end = RecordType.ABORT_TRANSACTION if is_aborted else RecordType.END_TRANSACTION
    with (directory / f"{0:020}.log").open("wb") as file:
        file.write(control_batch(0, LEADER_CHANGE))
        file.write(batch_of(1, [message(RecordType.BEGIN_TRANSACTION, 0, {"name": "ZK Migration"})]))
        offset = _write_batches(file.write, 2, cluster.values_as_copied())
        file.write(batch_of(offset, [message(RecordType.ZK_MIGRATION_STATE, 0, {"zkMigrationState": 1}), message(end, 0, {})]))
    return offset + 2


def append(segment: Path, base_offset: int, values: Sequence[bytes]) -> int:
    """One more batch at the end of a segment. Gives the offset after it."""
    with segment.open("ab") as file:
        file.write(batch_of(base_offset, values))
    return base_offset + len(values)


def _write_batches(write: Any, offset: int, values: Iterable[bytes]) -> int:  # noqa: ANN401 - a file's method
    waiting: list[bytes] = []
    for value in values:
        waiting.append(value)
        if len(waiting) == BATCH_RECORDS:
            write(batch_of(offset, waiting))
            offset, waiting = offset + len(waiting), []
    if waiting:
        write(batch_of(offset, waiting))
    return offset + len(waiting)
