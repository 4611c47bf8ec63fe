"""Record batches of magic 2, as Kafka's segments and checkpoints hold them: one row of an array for each header.

Nothing here knows what is in a record: the quorum's log and users' segments are walked alike. The chain of lengths is followed
in Python, headers are taken in one gather, and each batch's CRC-32C is computed by the processor (DefaultRecordBatch.java).
A file is read piece by piece, never mapped: its broker may truncate it meanwhile, which would kill who has it mapped.
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from domain.errors import Permanent, Transient

HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)
HEADER_BYTES = 61
LENGTH_FROM = 12
"""The length counts the bytes after itself."""
CRC_FROM = 21
"""The checksum covers all that follows it. The leader's epoch is before it: brokers write that."""
MAGIC = 2
CODEC_BITS, TRANSACTION_BIT, CONTROL_BIT = 0x07, 0x10, 0x20
PIECE = 4 * 1024 * 1024
"""Bytes read at once: enough to make calls cheap, and little enough to stay in the processor's cache."""

Ints = NDArray[np.int64]
_BEFORE_CRC = struct.Struct(">qiib")
_LENGTH = struct.Struct(">i")


@dataclass(frozen=True)
class Batches:
    """Whole batches in their order. `positions`: of their first bytes in `file`. `headers`: an array of type `HEADER`."""

    file: str
    positions: Ints
    headers: NDArray[Any]

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def base_offsets(self) -> Ints:
        return self.headers["base_offset"].astype(np.int64)

    @property
    def last_offsets(self) -> Ints:
        return np.asarray(self.base_offsets + self.headers["last_offset_delta"], dtype=np.int64)

    @property
    def sizes(self) -> Ints:
        """Bytes, the header included."""
        return self.headers["length"].astype(np.int64) + LENGTH_FROM

    @property
    def is_control(self) -> NDArray[np.bool_]:
        return np.asarray(self.headers["attributes"] & CONTROL_BIT, dtype=bool)

    @property
    def codecs(self) -> NDArray[np.int16]:
        """0 for batches that are not compressed."""
        return (self.headers["attributes"] & CODEC_BITS).astype(np.int16)


@dataclass(frozen=True)
class Piece:
    """Some of a file's batches with their bytes. `data` begins at byte `begin` of the file and ends with the last of them."""

    begin: int
    data: bytes
    batches: Batches


def walk(data: bytes, file: str, begin: int = 0, *, verify: bool = True) -> tuple[Batches, int]:
    """The whole batches at the beginning of `data`, and how many bytes they take. What follows them is incomplete.

    `begin`: where `data` is in `file`. Raises `Permanent` at the first byte that cannot begin a batch, at a wrong checksum, at
    offsets that go back. An incomplete last batch, and the zeros of a file that was allocated beforehand, are left to callers.
    """
    positions, end = _chain(data, file, begin)
    at = np.array(positions, dtype=np.int64)
    raw = np.frombuffer(data, dtype=np.uint8)
    headers = raw[at[:, None] + np.arange(HEADER_BYTES)].reshape(-1).view(HEADER)
    batches = Batches(file, at + begin, headers)
    _check(batches)
    if verify:
        _verify(data, positions, batches)
    return batches, end


def _chain(data: bytes, file: str, begin: int) -> tuple[list[int], int]:
    """Where each whole batch begins, and where the last one ends."""
    positions: list[int] = []
    at, last, unpack, append = 0, len(data) - HEADER_BYTES, _LENGTH.unpack_from, positions.append
    size = len(data)
    while at <= last:
        length = unpack(data, at + 8)[0]
        after = at + LENGTH_FROM + length
        if length < HEADER_BYTES - LENGTH_FROM or data[at + 16] != MAGIC:
            if not any(data[at : at + HEADER_BYTES]):
                break
            raise _no_batch(data, at, file, begin)
        if after > size:
            break
        append(at)
        at = after
    return positions, at


def _no_batch(data: bytes, at: int, file: str, begin: int) -> Permanent:
    offset, length, _, magic = _BEFORE_CRC.unpack_from(data, at)
    return Permanent(
        f"{file}: at byte {begin + at} is no record batch of magic 2 (offset {offset}, length {length}, magic {magic}). "
        "The file is damaged, is no segment, or is older than Kafka 0.11"
    )


def _check(batches: Batches) -> None:
    """What every batch of every log has: counts that fit its offsets, and offsets that rise."""
    deltas, counts = batches.headers["last_offset_delta"], batches.headers["count"]
    _refuse(batches, (deltas < 0) | (counts < 0) | (counts > deltas.astype(np.int64) + 1), "has a count that cannot be")
    _refuse(batches, batches.base_offsets < 0, "has a negative offset")
    goes_back = np.zeros(len(batches), dtype=bool)
    goes_back[1:] = batches.base_offsets[1:] <= batches.last_offsets[:-1]
    _refuse(batches, goes_back, "begins before the batch in front of it has ended")


def _refuse(batches: Batches, is_wrong: NDArray[np.bool_], what: str) -> None:
    if is_wrong.any():
        first = int(np.argmax(is_wrong))
        raise damaged(batches, first, what)


def damaged(batches: Batches, index: int, what: str) -> Permanent:
    """The error for one batch."""
    offset, position = int(batches.base_offsets[index]), int(batches.positions[index])
    return Permanent(
        f"{batches.file}: the batch at byte {position} (offset {offset}) {what}. Check the file's disk, copy it again"
    )


def _verify(data: bytes, positions: list[int], batches: Batches) -> None:
    view = memoryview(data)
    ends = [at + size for at, size in zip(positions, batches.sizes.tolist(), strict=True)]
    found = [crc32c(view[at + CRC_FROM : end]) for at, end in zip(positions, ends, strict=True)]
    _refuse(batches, np.array(found, dtype=np.uint32) != batches.headers["crc"], "has a wrong checksum")


def pieces(path: Path, begin: int = 0, end: int | None = None, *, verify: bool = True, size: int = PIECE) -> Iterator[Piece]:
    """The whole batches between two bytes of a file, in pieces of about `size` bytes, or of one batch that is larger.

    Stops before an incomplete batch: callers compare the last piece's end with where they expect it. Reads no byte twice.
    """
    with path.open("rb", buffering=0) as file:
        rest, at = b"", begin
        stop = os.fstat(file.fileno()).st_size if end is None else end
        while (wanted := _missing(rest, at, stop, size)) > 0:
            read = os.pread(file.fileno(), wanted, at + len(rest))
            if not read:
                raise Transient(f"{path}: ends at byte {at + len(rest)}, expected {stop}: it was cut meanwhile. Read it again")
            rest += read
            batches, used = walk(rest, path.name, at, verify=verify)
            if used:
                yield Piece(at, rest[:used], batches)
            rest, at = rest[used:], at + used


def _missing(rest: bytes, at: int, stop: int, size: int) -> int:
    """How many bytes to read next; none where no whole batch can follow."""
    left = stop - at - len(rest)
    if len(rest) < HEADER_BYTES:
        return min(left, size)
    needed = LENGTH_FROM + int(_LENGTH.unpack_from(rest, 8)[0]) - len(rest)
    is_complete_somewhere = any(rest[:HEADER_BYTES]) and needed <= left
    return min(left, max(size, needed)) if is_complete_somewhere else 0


def headers_of(path: Path, begin: int = 0, end: int | None = None) -> tuple[Batches, int]:
    """The headers alone, one small read each, no checksum: for few large batches. And the byte after the last whole batch."""
    positions, found, at = [], [], begin
    with path.open("rb", buffering=0) as file:
        stop = os.fstat(file.fileno()).st_size if end is None else end
        while at + HEADER_BYTES <= stop:
            header = os.pread(file.fileno(), HEADER_BYTES, at)
            _chain(header, path.name, at)
            if not any(header):
                break
            after = at + LENGTH_FROM + int(_LENGTH.unpack_from(header, 8)[0])
            if after > stop:
                break
            positions.append(at)
            found.append(header)
            at = after
    batches = Batches(path.name, np.array(positions, dtype=np.int64), np.frombuffer(b"".join(found), dtype=HEADER))
    _check(batches)
    return batches, at
