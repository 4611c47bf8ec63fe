"""Runs on a broker's machine: says what record batches its logs hold, by their headers, and verifies checksums.

    python3 walk_segments.py REQUEST.json

The request names log directories, limits, and for each log (`orders-3`) the offsets to look at: `until`, exclusive, and
`from`, or none for the last `recent_bytes`. The answer goes to standard output: a line of JSON for each log, with its batches
as packed rows (`ROW`), and a last line that says what was done. Without that line the answer is not whole.

It shares the machine with a broker. It reads slowly (`bytes_per_second`), and forgets what it has read unless the page cache
had it before. It writes nothing, and ends by itself after `seconds`. Python 3.7 or later, one file.
"""

from __future__ import annotations

import array
import base64
import ctypes
import importlib
import itertools
import json
import mmap
import os
import re
import struct
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

BEFORE_CRC = struct.Struct(">qiibI")
"""Base offset, length, leader's epoch, magic, CRC-32C: of all that follows (DefaultRecordBatch.java)."""
AFTER_CRC = struct.Struct(">hiqqqhii")
"""Attributes, last offset's delta, first and last timestamp, producer's id and epoch, first sequence, count."""
CRC_FROM, HEADER_BYTES, LENGTH_FROM, MAGIC = 21, 61, 12, 2
ROW = struct.Struct("<qiIiqhiqiqqB")
"""Base offset, last offset's delta, crc, count, producer's id, epoch and first sequence, last timestamp, size, segment (its
first offset), position in it, state."""
NOT_VERIFIED, VERIFIED, DAMAGED = 0, 1, 2
PIECE = 1 << 20
STEP = 1 << 16
"""The page cache is asked, and told to forget, this much at a time."""
PAGE = os.sysconf("SC_PAGE_SIZE")
INDEX_ENTRY = struct.Struct(">ii")
"""Last offset of a batch, relative to the segment; the batch's position (OffsetIndex.java)."""
SEGMENT = re.compile(r"(\d{20})\.log")
ATTEMPTS = 3
"""How often a log is begun anew whose segments are deleted while they are read."""
POLYNOMIAL = 0x82F63B78


class Moved(Exception):
    """A file was deleted, or cut, while it was read."""


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


# ---- CRC-32C ----


def checksum() -> tuple[str, Callable[[bytes], int]]:
    """The fastest there is on this machine. Python alone computes some 11 MB in a second."""
    for module, name in (("crc32c", "crc32c"), ("google_crc32c", "value")):
        try:
            return module, getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    return "python", table_crc()


def table_crc() -> Callable[[bytes], int]:
    """Two bytes a step, by a table of 65,536."""
    ones = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (POLYNOMIAL if value & 1 else 0)
        ones.append(value)
    twos = [ones[(ones[pair & 0xFF] ^ (pair >> 8)) & 0xFF] ^ (ones[pair & 0xFF] >> 8) for pair in range(65536)]

    def crc(data: bytes) -> int:
        value = 0xFFFFFFFF
        pairs = array.array("H", data[: len(data) & ~1])
        if sys.byteorder == "big":
            pairs.byteswap()
        for pair in pairs:
            value = twos[(value ^ pair) & 0xFFFF] ^ (value >> 16)
        if len(data) & 1:
            value = ones[(value ^ data[-1]) & 0xFF] ^ (value >> 8)
        return value ^ 0xFFFFFFFF

    return crc


# ---- reading beside a broker ----


class Reader:
    """Reads slowly, and leaves the page cache as it was."""

    def __init__(self, bytes_per_second: float) -> None:
        self._rate = bytes_per_second
        self._began = time.monotonic()
        self.bytes = 0
        self.forgotten = 0
        self.can_ask = True
        """Whether this system tells what is in the page cache. Where it does not, nothing is forgotten; nor to somebody who is
        neither a file's owner nor may write to it, to whom the kernel says that it has all."""

    def read(self, file: int, at: int, length: int) -> bytes:
        """Fewer bytes at the file's end."""
        parts, end = [], at + length
        while at < end:
            wanted = min(end, (at // STEP + 1) * STEP) - at
            part = self._step(file, at, wanted)
            parts.append(part)
            at += len(part)
            if len(part) < wanted:
                break
        self.bytes += sum(map(len, parts))
        early = self.bytes / self._rate - (time.monotonic() - self._began)
        if early > 0.01:
            time.sleep(early)
        return b"".join(parts)

    def _step(self, file: int, at: int, length: int) -> bytes:
        cached = self._cached(file, at, length)
        data = os.pread(file, length, at)
        page = at // PAGE
        for was_there, run in itertools.groupby(cached, key=lambda state: state & 1):
            count = len(list(run))
            if not was_there:
                os.posix_fadvise(file, page * PAGE, count * PAGE, os.POSIX_FADV_DONTNEED)
                self.forgotten += count * PAGE
            page += count
        return data

    def _cached(self, file: int, at: int, length: int) -> bytes:
        """One byte for each page that has a part of it; its lowest bit: the page cache has that page (mincore(2)).

        Reading without waiting (RWF_NOWAIT) would not do: newer kernels begin to read what they say they do not have.
        """
        begin, end = at // PAGE * PAGE, min(at + length, os.fstat(file).st_size)
        if not self.can_ask or begin >= end:
            return b""
        pages = (ctypes.c_ubyte * -(-(end - begin) // PAGE))()
        try:
            with mmap.mmap(file, end - begin, access=mmap.ACCESS_COPY, offset=begin) as mapped:
                address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
                self.can_ask = not ctypes.CDLL(None).mincore(ctypes.c_void_p(address), ctypes.c_size_t(end - begin), pages)
        except ValueError:  # the file was cut in this moment
            return b""
        except (OSError, AttributeError):  # this file system, or this system, does not say
            self.can_ask = False
        return bytes(pages) if self.can_ask else b""


def opened(path: str) -> int:
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError as error:
        raise Moved(path) from error
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)  # nothing is read ahead
    return file


# ---- one log ----


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


# ---- the whole request ----


class Walk:
    """`totals`: what the last line tells."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.reader = Reader(request["bytes_per_second"])
        self.method, self._crc = checksum()
        self._began = time.monotonic()
        self._verifying = 0.0
        self.totals = {"verified": 0, "not_verified": 0, "damaged": 0, "verified_bytes": 0}

    def run(self) -> Iterator[dict[str, Any]]:
        logs = self.request["logs"]
        for directory in self.request["log_dirs"]:
            starts = checkpoints(directory)
            for name in sorted(logs.keys() & set(os.listdir(directory))):  # noqa: PTH208
                found = self._whole(f"{directory}/{name}", starts.get(name, 0), logs[name])
                if found is not None:
                    yield {"log": name, **found}
        seconds = round(time.monotonic() - self._began, 3)
        done = {"method": self.method, "read_bytes": self.reader.bytes, "forgotten_bytes": self.reader.forgotten}
        yield {"done": True, "seconds": seconds, "knows_page_cache": self.reader.can_ask, **done, **self.totals}

    def _whole(self, directory: str, start: int, wanted: dict[str, Any]) -> dict[str, Any] | None:
        """The same log is begun anew where its files are deleted meanwhile. `None`: the log itself was."""
        for _ in range(ATTEMPTS):
            kept = dict(self.totals)
            try:
                log = Log(directory, self.reader)
                return {"topic_id": log.topic_id(), **self._one(log, start, wanted)}
            except (Moved, FileNotFoundError):
                self.totals = kept
        return {"moved": True} if os.path.isdir(directory) else None  # noqa: PTH112

    def _one(self, log: Log, start: int, wanted: dict[str, Any]) -> dict[str, Any]:
        start, end = max(start, log.segments[0]), log.end()
        told: dict[str, Any] = {"start": start, "end": end, "walked_from": start, "walked_until": start}
        if wanted.get("is_bounds_only"):
            return told
        if self._is_late():
            return {**told, "why_not": "the time for this machine was over"}
        rows: list[bytes] = []
        begin = wanted.get("from")
        place = log.recent_place(self.request["recent_bytes"]) if begin is None else log.place_of(begin)
        told["walked_from"] = told["walked_until"] = None
        try:
            for batch in log.from_place(*place, self._is_verifying):
                if batch.last < (start if begin is None else begin):
                    continue
                if batch.last >= wanted["until"]:
                    break
                if self._is_late():
                    told["why_not"] = "the time for this machine was over"
                    break
                if told["walked_from"] is None:
                    told["walked_from"] = batch.base
                rows.append(self._row(log, batch))
                told["walked_until"] = batch.last + 1
        except Broken as error:
            told["why_not" if error.old else "broken"] = f"{error.segment:020}.log byte {error.position}: {error.why}"
        if told["walked_from"] is None:
            told["walked_from"] = told["walked_until"] = max(start, wanted["until"] if begin is None else begin)
        return {**told, "rows": base64.b64encode(zlib.compress(b"".join(rows), 1)).decode("ascii")}

    def _row(self, log: Log, batch: Batch) -> bytes:
        crc = BEFORE_CRC.unpack_from(batch.header)[4]
        _, delta, _, last_time, producer, epoch, sequence, count = AFTER_CRC.unpack_from(batch.header, CRC_FROM)
        state = self._state(log, batch, crc)
        return ROW.pack(
            batch.base,
            delta,
            crc,
            count,
            producer,
            epoch,
            sequence,
            last_time,
            batch.size,
            batch.segment,
            batch.position,
            state,
        )

    def _state(self, log: Log, batch: Batch, crc: int) -> int:
        """What does not fit is read once more: it may have been cut and written anew in between."""
        if not batch.data:
            self.totals["not_verified"] += 1
            return NOT_VERIFIED
        began = time.process_time()
        is_right = self._crc(batch.data[CRC_FROM:]) == crc or self._crc(log.again(batch)[CRC_FROM:]) == crc
        self._verifying += time.process_time() - began
        self.totals["verified" if is_right else "damaged"] += 1
        self.totals["verified_bytes"] += batch.size
        return VERIFIED if is_right else DAMAGED

    def _is_verifying(self) -> bool:
        return self._verifying < float(self.request["verify_seconds"])

    def _is_late(self) -> bool:
        return time.monotonic() - self._began > float(self.request["seconds"])


def checkpoints(directory: str) -> dict[str, int]:
    """Where logs begin that somebody has deleted records of, by name: within a segment, unlike what retention leaves."""
    try:
        with open(f"{directory}/log-start-offset-checkpoint", encoding="utf-8") as file:  # noqa: PTH123
            lines = file.read().splitlines()[2:]
    except FileNotFoundError:
        return {}
    found = (line.rsplit(" ", 2) for line in lines)
    return {f"{parts[0]}-{parts[1]}": int(parts[2]) for parts in found if len(parts) == 3}


def main(path: str) -> None:
    if hasattr(os, "nice"):
        os.nice(10)
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        request = json.load(file)
    for line in Walk(request).run():
        sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
