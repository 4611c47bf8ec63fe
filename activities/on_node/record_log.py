"""One partition's log: its segments, its index, and the headers of its batches. A part of walk_segments."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from activities.on_node.slow_reader import Moved, Reader, opened

BEFORE_CRC = struct.Struct(">qiibI")
"""Base offset, length, leader's epoch, magic, CRC-32C: of all that follows (DefaultRecordBatch.java)."""
AFTER_CRC = struct.Struct(">hiqqqhii")
"""Attributes, last offset's delta, first and last timestamp, producer's id and epoch, first sequence, count."""
CRC_FROM, HEADER_BYTES, LENGTH_FROM, MAGIC = 21, 61, 12, 2
PIECE = 1 << 20
INDEX_ENTRY = struct.Struct(">ii")
"""Last offset of a batch, relative to the segment; the batch's position (OffsetIndex.java)."""
SEGMENT = re.compile(r"(\d{20})\.log")


class Broken(Exception):
    """No batch can begin here. `old`: one does, of a format that has another header."""

    def __init__(self, segment: int, position: int, why: str, old: bool = False) -> None:
        super().__init__(why)
        self.segment, self.position, self.why, self.old = segment, position, why, old


class Batch(NamedTuple):
    """`data` is empty where only the header was read."""

    segment: int
    position: int
    base: int
    last: int
    size: int
    header: bytes
    data: bytes


class Log:
    """One partition's directory."""

    def __init__(self, directory: str, reader: Reader) -> None:
        self.directory, self.reader = directory, reader
        names = os.listdir(directory)  # noqa: PTH208 - names are wanted, not paths
        self.segments = sorted(int(found.group(1)) for found in map(SEGMENT.fullmatch, names) if found)
        if not self.segments:
            raise Moved(directory)

    def path(self, segment: int, suffix: str) -> str:
        return f"{self.directory}/{segment:020}.{suffix}"

    def size(self, segment: int) -> int:
        try:
            return os.stat(self.path(segment, "log")).st_size  # noqa: PTH116
        except FileNotFoundError as error:
            raise Moved(self.directory) from error

    def topic_id(self) -> str:
        try:
            with open(f"{self.directory}/partition.metadata", encoding="ascii") as file:  # noqa: PTH123
                found = re.search(r"topic_id: (\S+)", file.read())
        except FileNotFoundError:
            return ""
        return found.group(1) if found else ""

    def end(self) -> int:
        """The offset that the next record will get, as far as whole batches say so."""
        segment = self.segments[-1]
        entries = list(self.index(segment))
        for begin in ([entries[-1][1]] if entries else []) + [0]:
            end = segment
            try:
                for batch in self.batches(segment, begin, is_verifying=never):
                    end = batch.last + 1
            except Broken:
                if begin:
                    continue
            return end
        return segment

    def index(self, segment: int) -> Iterator[tuple[int, int]]:
        """Offsets of batches, with where they are in the file, ascending. What is behind the last entry is zeros, and what
        lies beyond the file's end is of a file that was longer.
        """
        size = self.size(segment)
        try:
            with open(self.path(segment, "index"), "rb") as file:  # noqa: PTH123
                content = file.read()
        except FileNotFoundError:
            return
        before = -1
        for offset, position in INDEX_ENTRY.iter_unpack(content[: len(content) // INDEX_ENTRY.size * INDEX_ENTRY.size]):
            if offset <= before or not 0 <= position < size:
                return
            yield segment + offset, position
            before = offset

    def place_of(self, offset: int) -> tuple[int, int]:
        """The segment with this offset, and a batch in it that is at the offset or before it."""
        segment = max((base for base in self.segments if base <= offset), default=self.segments[0])
        return segment, max((position for last, position in self.index(segment) if last <= offset), default=0)

    def recent_place(self, recent_bytes: int) -> tuple[int, int]:
        """From where the last bytes are read: at most so many, or the newest segment where it has no index."""
        left, newer = recent_bytes, self.segments[-1]
        for segment in reversed(self.segments):
            size = self.size(segment)
            if size > left:
                places = [at for _, at in self.index(segment) if at >= size - left]
                return (segment, places[0]) if places else (newer, 0)
            left, newer = left - size, segment
        return newer, 0

    def from_place(self, segment: int, position: int, is_verifying: Callable[[], bool]) -> Iterator[Batch]:
        """All batches from there on. An index that points between batches is not believed: then from the segment's begin."""
        begin, reached = position, -1
        for base in (one for one in self.segments if one >= segment):
            try:
                for batch in self.batches(base, begin if base == segment else 0, is_verifying):
                    reached = batch.last
                    yield batch
            except Broken:
                if base != segment or begin == 0 or reached >= 0:
                    raise
                for batch in self.batches(base, 0, is_verifying):
                    yield batch

    def batches(self, segment: int, begin: int, is_verifying: Callable[[], bool]) -> Iterator[Batch]:
        """Whole batches of one file. The newest segment may end in one that is being written, no other may."""
        file = opened(self.path(segment, "log"))
        try:
            size, at, held, held_at, reached = os.fstat(file).st_size, begin, b"", begin, segment - 1
            while at + HEADER_BYTES <= size:
                wants_data = is_verifying()
                header, held, held_at = self._held(file, at, HEADER_BYTES, held, held_at, wants_data)
                found = batch_of(segment, at, header, reached)
                if found is None:
                    return
                if at + found.size > size:
                    break
                if wants_data:
                    data, held, held_at = self._held(file, at, found.size, held, held_at, wants_data)
                    found = found._replace(data=data)
                yield found
                at, reached = at + found.size, found.last
            if at < size and segment != self.segments[-1]:
                raise Broken(segment, at, "the file ends within a batch")
        finally:
            os.close(file)

    def _held(self, file: int, at: int, length: int, held: bytes, held_at: int, is_ahead: bool) -> tuple[bytes, bytes, int]:
        """Bytes of the piece at hand, or of the next one, and that piece. Only what will be looked at is read ahead."""
        if not held_at <= at <= at + length <= held_at + len(held):
            held, held_at = self.reader.read(file, at, max(length, PIECE) if is_ahead else length), at
        data = held[at - held_at : at - held_at + length]
        if len(data) < length:
            raise Moved(self.directory)
        return data, held, held_at

    def again(self, batch: Batch) -> bytes:
        file = opened(self.path(batch.segment, "log"))
        try:
            return self.reader.read(file, batch.position, batch.size)
        finally:
            os.close(file)


def never() -> bool:
    return False


def batch_of(segment: int, at: int, header: bytes, reached: int) -> Batch | None:
    """None: zeros, of a file that was allocated beforehand."""
    base, length, _, magic, _ = BEFORE_CRC.unpack_from(header)
    _, delta, _, _, _, _, _, count = AFTER_CRC.unpack_from(header, CRC_FROM)
    if magic in (0, 1) and length > 0:
        raise Broken(segment, at, "its batches are of a format older than Kafka 0.11", old=True)
    if magic != MAGIC or length < HEADER_BYTES - LENGTH_FROM:
        if not any(header):
            return None
        raise Broken(segment, at, f"no batch begins here (length {length}, magic {magic})")
    if base <= reached or delta < 0 or not 0 <= count <= delta + 1:
        raise Broken(segment, at, f"the batch at offset {base} cannot follow offset {reached}")
    return Batch(segment, at, base, base + delta, length + LENGTH_FROM, header, b"")
