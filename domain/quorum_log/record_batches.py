"""Kafka's record batches as they lie in the quorum's log, their frames, not what they mean."""

import struct
from dataclasses import dataclass

from crc32c import crc32c

from domain.errors import Unsafe

ID_BYTES = 16
HEADER = struct.Struct(">qiibIhiqqqhii")
"""Base offset, length, leader epoch, magic, crc, attributes, last offset delta, timestamps, producer, sequence, count."""
LENGTH_FROM = 12
"""The length counts the bytes after itself."""
CRC_FROM = 21
"""The checksum covers all that follows it."""
MAGIC = 2
CODEC_BITS, CONTROL_BIT = 0x07, 0x20
MAX_BATCH = 64 * 1024 * 1024
"""Bytes. The quorum writes at most 8 MiB (KafkaRaftClient.MAX_BATCH_SIZE_BYTES): a larger length is no length."""
FRAME_VERSION = 1
UNTOLD = -1
"""Stands for the kind of records that only a checkpoint tells of: there may have been that many, of any kind."""
SNAPSHOT_FOOTER = 4
"""Type of the control record that ends a complete checkpoint."""


@dataclass(frozen=True)
class Record:
    """One metadata record: its message is `body`. Offsets in a checkpoint are the checkpoint's own."""

    offset: int
    api_key: int
    version: int
    body: bytes


@dataclass(frozen=True)
class Batch:
    """`control`: the types of its control records; then it has no others."""

    base_offset: int
    last_offset: int
    records: tuple[Record, ...] = ()
    control: tuple[int, ...] = ()


def read_batches(data: bytes, wanted_from: int = 0) -> tuple[list[Batch], int]:
    """The complete batches at the beginning of `data`, and how many bytes they take. What follows them is incomplete.

    Batches that end before offset `wanted_from` are passed over. Raises `Unsafe` on what cannot be a batch of this log.
    """
    found: list[Batch] = []
    position = 0
    while (size := size_of_first(data, position)) is not None and position + size <= len(data):
        base_offset, last_delta = _offsets(data, position)
        if base_offset + last_delta >= wanted_from:
            found.append(_batch(data[position : position + size]))
        position += size
    return found, position


def size_of_first(data: bytes, position: int = 0) -> int | None:
    """Bytes of the batch that begins here; `None` when there is too little to tell."""
    if len(data) - position < HEADER.size:
        return None
    base_offset, length, _, magic = struct.unpack_from(">qiib", data, position)
    if magic != MAGIC or not HEADER.size - LENGTH_FROM <= length <= MAX_BATCH or base_offset < 0:
        raise Unsafe(f"metadata log: what follows is no record batch (offset {base_offset}, length {length}, magic {magic})")
    return LENGTH_FROM + int(length)


def _offsets(data: bytes, position: int) -> tuple[int, int]:
    header = HEADER.unpack_from(data, position)
    return int(header[0]), int(header[6])


def _batch(data: bytes) -> Batch:
    base_offset, _, _, _, crc, attributes, last_delta, *_, count = HEADER.unpack_from(data)
    if crc32c(data[CRC_FROM:]) != crc:
        raise Unsafe(f"metadata log: the batch at offset {base_offset} is damaged (wrong checksum). Check the node's disk.")
    if attributes & CODEC_BITS:
        raise Unsafe(f"metadata log: the batch at offset {base_offset} is compressed, which the quorum never does")
    plain = _plain_records(data, count)
    if attributes & CONTROL_BIT:
        return Batch(base_offset, base_offset + last_delta, control=tuple(_control_type(key) for _, key, _ in plain))
    records = tuple(_record(base_offset + delta, value) for delta, _, value in plain)
    return Batch(base_offset, base_offset + last_delta, records)


def _plain_records(data: bytes, count: int) -> list[tuple[int, bytes, bytes]]:
    """Offset delta, key and value of each record."""
    found: list[tuple[int, bytes, bytes]] = []
    position = HEADER.size
    for _ in range(count):
        length, start = _signed(data, position)
        _, at = _signed(data, start + 1)
        delta, at = _signed(data, at)
        key, at = _bytes(data, at)
        value, at = _bytes(data, at)
        found.append((delta, key, value))
        position = start + length
    return found


def _control_type(key: bytes) -> int:
    return int.from_bytes(key[2:4], "big")


def _record(offset: int, value: bytes) -> Record:
    frame, at = unsigned(value, 0)
    if frame != FRAME_VERSION:
        raise Unsafe(f"metadata log: the record at offset {offset} has frame version {frame}, expected {FRAME_VERSION}")
    api_key, at = unsigned(value, at)
    version, at = unsigned(value, at)
    return Record(offset, api_key, version, value[at:])


def unsigned(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _signed(data: bytes, at: int) -> tuple[int, int]:
    value, at = unsigned(data, at)
    return (value >> 1) ^ -(value & 1), at


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    """A length and as many bytes; a length of -1, null, reads as empty."""
    length, at = _signed(data, at)
    end = at + max(0, length)
    return data[at:end], end
