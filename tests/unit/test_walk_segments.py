"""The walk of segments as a node runs it: a program of its own, held against the batches that were written."""

import ctypes
import errno
import json
import mmap
import os
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c

from activities.on_node import checksums, program, walk_segments
from domain.errors import Transient
from playground.log_bytes import raw_batch
from spark.codec.record_batch import walk
from spark.codec.segment_manifest import BATCH_SCHEMA, NodeWalk, read_walk

PROGRAM = program("walk_segments")
LIMITS = {"recent_bytes": 1 << 30, "bytes_per_second": 1 << 40, "verify_seconds": 60, "seconds": 60}
RECORDS = 5


def segment(base: int, batches: int, size: int = 200) -> bytes:
    found = [raw_batch(base + RECORDS * n, [(None, bytes(size))] * RECORDS) for n in range(batches)]
    return b"".join(found)


class Disk:
    """Log directories of a broker."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.request: dict[str, Any] = {**LIMITS, "log_dirs": [str(root)], "logs": {}}

    def write(self, log: str, base: int, content: bytes, index: bytes = b"") -> Path:
        folder = self.root / log
        folder.mkdir(exist_ok=True)
        (folder / f"{base:020}.index").write_bytes(index)
        (folder / "partition.metadata").write_text("version: 0\ntopic_id: Zm9vYmFyZm9vYmFyZm9vYg\n")
        path = folder / f"{base:020}.log"
        path.write_bytes(content)
        self.request["logs"].setdefault(log, {"from": None, "until": 1 << 40})
        return path

    def walked(self) -> NodeWalk:
        """By the program itself, as a node runs it: without our packages."""
        request = self.root / "request.json"
        request.write_text(json.dumps(self.request))
        command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(request)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        return read_walk(1, ran.stdout)

    def here(self) -> NodeWalk:
        """In this process, which has a fast checksum."""
        return read_walk(1, "\n".join(json.dumps(line) for line in walk_segments.Walk(self.request).run()))


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def offsets(found: NodeWalk) -> list[int]:
    return list(found.batches.column("base_offset").to_pylist())


def states(found: NodeWalk) -> set[tuple[bool, bool]]:
    rows = found.batches.select(["is_verified", "is_damaged"]).to_pylist()
    return {(row["is_verified"], row["is_damaged"]) for row in rows}


@pytest.mark.parametrize("length", [0, 1, 2, 3, 255, 256, 70_001])
def test_the_checksum_without_a_library_is_the_same(length: int) -> None:
    data = random.Random(length).randbytes(length)  # noqa: S311
    assert checksums.table_crc()(data) == crc32c(data)


def test_every_batch_is_told_as_the_reader_of_files_tells_it(disk: Disk) -> None:
    """Two readers that share nothing: the node's, and the one for copies of files."""
    first, second = segment(100, 7), segment(135, 3, size=5000)
    disk.write("a.topic-with-dashes-3", 100, first)
    disk.write("a.topic-with-dashes-3", 135, second)
    (disk.root / "a.topic-with-dashes-3" / "00000000000000000090.log.deleted").write_bytes(b"no")
    found = disk.walked()
    (log,) = found.replicas
    assert (log.topic, log.partition, log.broker, log.topic_id) == ("a.topic-with-dashes", 3, 1, "Zm9vYmFyZm9vYmFyZm9vYg")
    assert (log.start, log.end, log.walked_from, log.walked_until) == (100, 150, 100, 150)
    assert found.batches.schema == BATCH_SCHEMA
    expected = [walk(content, "f")[0] for content in (first, second)]
    for name in ("count", "crc", "producer_id", "producer_epoch", "base_sequence", "max_timestamp"):
        told = [int(value) for batches in expected for value in batches.headers[name]]
        assert found.batches.column(name).to_pylist() == told, name
    for name, column in (
        ("base_offset", "base_offsets"),
        ("last_offset", "last_offsets"),
        ("size", "sizes"),
        ("position", "positions"),
    ):
        assert found.batches.column(name).to_pylist() == [v for b in expected for v in getattr(b, column).tolist()], name
    assert found.batches.column("segment").to_pylist() == [100] * 7 + [135] * 3
    assert states(found) == {(True, False)}
    assert (found.told["verified"], found.told["method"]) == (10, "python")
    assert disk.here().batches.equals(found.batches)
    assert disk.here().told["method"] == "crc32c"


@pytest.mark.parametrize("at", [21, 61, 400])
def test_a_byte_that_turned_is_damage_at_its_place(disk: Disk, at: int) -> None:
    content = bytearray(segment(0, 4))
    size = len(content) // 4
    content[2 * size + at] ^= 1
    disk.write("orders-0", 0, bytes(content))
    rows = disk.here().batches.to_pylist()
    assert [row["is_damaged"] for row in rows] == [False, False, True, False]
    assert rows[2]["position"] == 2 * size


def test_the_leaders_epoch_is_not_covered(disk: Disk) -> None:
    content = bytearray(segment(0, 1))
    struct.pack_into(">i", content, 12, 77)
    disk.write("orders-0", 0, bytes(content))
    assert states(disk.here()) == {(True, False)}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda content: content[:1000] + content[1001:], "no batch begins here"),
        (lambda content: content[:-30], "ends within a batch"),
        (lambda content: content[: len(content) // 4 * 2] + content[: len(content) // 4], "cannot follow"),
    ],
)
def test_a_closed_segment_that_cannot_be_read_is_broken(disk: Disk, change: Callable[[bytes], bytes], why: str) -> None:
    disk.write("orders-0", 0, change(segment(0, 4)))
    disk.write("orders-0", 20, segment(20, 1))
    (log,) = disk.here().replicas
    assert why in log.broken
    assert "00000000000000000000.log byte" in log.broken
    assert log.end == 25
    assert log.walked_until < 20


def test_what_is_being_written_is_not_there_yet(disk: Disk) -> None:
    whole = segment(0, 3)
    disk.write("torn-0", 0, whole[:-1])
    disk.write("begun-0", 0, whole + segment(15, 1)[:30])
    disk.write("allocated-0", 0, whole + bytes(4096))
    disk.write("empty-0", 40, b"")
    found = disk.here()
    assert {log.topic: (log.end, log.broken) for log in found.replicas} == {
        "torn": (10, ""),
        "begun": (15, ""),
        "allocated": (15, ""),
        "empty": (40, ""),
    }


@pytest.mark.parametrize(("until", "told"), [(15, [5, 10]), (16, [5, 10]), (14, [5]), (20, [5, 10, 15])])
def test_nothing_at_or_beyond_the_high_watermark_is_told(disk: Disk, until: int, told: list[int]) -> None:
    disk.write("orders-0", 0, segment(0, 4))
    disk.request["logs"]["orders-0"] = {"from": 7, "until": until}
    found = disk.here()
    assert offsets(found) == told, "the batch with the first offset belongs to it"
    (log,) = found.replicas
    assert (log.start, log.end, log.walked_from, log.walked_until) == (0, 20, 5, told[-1] + RECORDS)


def entries(*pairs: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", *pair) for pair in pairs) + bytes(64)


@pytest.mark.parametrize("index", [b"", entries((9, 1), (14, 2)), entries((99, 100_000))])
def test_an_index_that_is_wrong_or_gone_hides_nothing(disk: Disk, index: bytes) -> None:
    disk.write("orders-0", 0, segment(0, 4), index)
    disk.request["logs"]["orders-0"] = {"from": 10, "until": 20}
    found = disk.here()
    assert offsets(found) == [10, 15]
    assert [(log.end, log.broken) for log in found.replicas] == [(20, "")]


def test_an_index_saves_reading(disk: Disk) -> None:
    content = segment(0, 1000)
    size = len(content) // 1000
    index = entries(*((RECORDS * n + RECORDS - 1, size * n) for n in range(10, 1000, 10)))
    disk.write("orders-0", 0, content, index)
    disk.request["logs"]["orders-0"] = {"from": 4900, "until": 5000}
    disk.request["verify_seconds"] = 0
    found = disk.here()
    assert offsets(found) == list(range(4900, 5000, RECORDS))
    assert found.told["read_bytes"] < 61 * 60


def test_only_the_last_bytes_are_read_by_default(disk: Disk) -> None:
    disk.write("orders-0", 0, segment(0, 100))
    for base in (500, 1000):
        disk.write("orders-0", base, segment(base, 100))
    disk.request["recent_bytes"] = len(segment(1000, 100))
    found = disk.here()
    (log,) = found.replicas
    assert (log.start, log.walked_from, log.walked_until, log.end) == (0, 1000, 1500, 1500)


def test_what_does_not_fit_its_time_is_told_as_not_verified(disk: Disk) -> None:
    disk.write("orders-0", 0, segment(0, 4))
    disk.request["verify_seconds"] = 0
    found = disk.here()
    assert offsets(found) == [0, 5, 10, 15]
    assert states(found) == {(False, False)}
    assert (found.told["verified"], found.told["not_verified"]) == (0, 4)
    disk.request["seconds"] = -1
    late = disk.here()
    assert [(log.end, "time" in log.why_not) for log in late.replicas] == [(20, True)]
    assert late.batches.num_rows == 0


def test_deleted_records_are_behind_the_start(disk: Disk) -> None:
    disk.write("orders-0", 0, segment(0, 4))
    (disk.root / "log-start-offset-checkpoint").write_text("0\n1\norders 0 12\n")
    found = disk.here()
    assert [(log.start, log.walked_from) for log in found.replicas] == [(12, 10)]
    assert offsets(found) == [10, 15]


def test_compacted_logs_are_asked_for_their_bounds_only(disk: Disk) -> None:
    disk.write("table-0", 0, segment(0, 4))
    disk.request["logs"]["table-0"]["is_bounds_only"] = True
    found = disk.here()
    assert [(log.start, log.end, log.walked_until) for log in found.replicas] == [(0, 20, 0)]
    assert found.batches.num_rows == 0


def test_a_log_without_a_segment_and_one_that_nobody_asked_for(disk: Disk) -> None:
    disk.write("orders-0", 0, segment(0, 1)).unlink()
    disk.write("later-0", 0, segment(0, 1))
    del disk.request["logs"]["later-0"]
    found = disk.here()
    assert (found.replicas, found.moved) == ((), ("orders-0",))


def test_reading_is_slow_on_request(disk: Disk) -> None:
    disk.write("orders-0", 0, segment(0, 400, 1000))
    disk.request["bytes_per_second"] = 8_000_000
    found = disk.here()
    assert found.told["seconds"] >= found.told["read_bytes"] / 8_000_000 - 0.05
    assert found.told["read_bytes"] > 2_000_000


def test_an_answer_that_was_cut_is_not_believed() -> None:
    with pytest.raises(Transient, match="broker-7"):
        read_walk(7, '{"log":"orders-0","moved":true}\n')


def cached_pages(path: Path) -> tuple[int, int]:
    """How many of a file's pages the page cache has, of how many. Asking brings none in, unlike reading without waiting."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
        pages = -(-len(mapped) // mmap.PAGESIZE)
        found = (ctypes.c_ubyte * pages)()
        first = ctypes.c_char.from_buffer(mapped)
        failed = ctypes.CDLL(None).mincore(ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(len(mapped)), found)
        del first
        assert not failed
        return sum(state & 1 for state in found), pages


def forget(path: Path) -> None:
    file = os.open(path, os.O_RDWR)
    try:
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


@pytest.mark.parametrize(
    ("error", "knows"),
    [
        pytest.param(OSError(errno.ENODEV, "no mmap"), False, id="a file system that maps no files"),
        pytest.param(ValueError("mmap length is greater than file size"), True, id="cut in this moment"),
    ],
)
def test_where_nothing_tells_what_is_cached_all_is_read_and_nothing_forgotten(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, error: Exception, knows: bool
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    disk.write("orders-0", 0, segment(0, 300, 1000))
    monkeypatch.setattr(mmap, "mmap", refuse)
    told = disk.here().told
    assert (told["verified"], told["forgotten_bytes"], told["knows_page_cache"]) == (300, 0, knows)


def test_the_page_cache_is_left_as_it_was(disk: Disk) -> None:
    """What the broker's page cache has stays there, and what it has not does not come in."""
    cold, warm = (disk.write(log, 0, segment(0, 300, 1000)) for log in ("cold-0", "warm-0"))
    for path in (cold, warm):
        forget(path)
    warm.read_bytes()
    (cold_before, pages), (warm_before, _) = cached_pages(cold), cached_pages(warm)
    assert (cold_before, warm_before) == (0, pages)
    found = disk.here()
    assert found.told["verified"] == 600
    assert found.told["forgotten_bytes"] >= cold.stat().st_size / 2
    assert cached_pages(warm)[0] == pages
    assert cached_pages(cold)[0] < pages / 10
