"""A controller's log on disk: segments, checkpoints and indexes, read in chunks and read on later."""

import struct
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from activities.adapters.nodes.local import LocalMachine
from activities.zk_to_kraft import quorum_log
from activities.zk_to_kraft.quorum_log import open_log, read_on, registered_controllers
from domain.errors import Transient, Unsafe
from domain.observed.observation import MigrationGauge
from domain.quorum_log.metadata_log import GROUP
from domain.quorum_log.record_types import RecordType
from playground.log_bytes import batch, control, registration

NO_OP = (20, b"\0")
TOPIC = (2, b"a topic")
MIGRATION = (21, b"\1\0")
STRAY = (4, bytes((GROUP,)) + b"\2g\2k\2v\0")


class Counting:
    """A driver on real files that remembers what was read of each file."""

    def __init__(self) -> None:
        self._machine = LocalMachine()
        self.read: list[tuple[str, int, int]] = []

    async def list_dir(self, path: str) -> tuple[str, ...] | None:
        return await self._machine.list_dir(path)

    async def read_part(self, path: str, offset: int, length: int) -> bytes | None:
        self.read.append((Path(path).name, offset, length))
        return await self._machine.read_part(path, offset, length)

    def bytes_of(self, suffix: str) -> int:
        return sum(length for name, _, length in self.read if name.endswith(suffix))


def write_segment(directory: Path, batches: list[bytes], every: int = 4096) -> None:
    """A segment with the index that Kafka would write beside it: an entry for each `every` bytes, then zeros."""
    base = struct.unpack(">q", batches[0][:8])[0]
    path = directory / f"{base:020}.log"
    directory.mkdir(parents=True, exist_ok=True)
    entries, position, since = [], 0, 0
    for content in batches:
        last = struct.unpack(">q", content[:8])[0] + struct.unpack(">i", content[23:27])[0]
        if since > every:
            entries.append(struct.pack(">ii", last - base, position))
            since = 0
        position, since = position + len(content), since + len(content)
    path.write_bytes(b"".join(batches))
    path.with_suffix(".index").write_bytes(b"".join(entries) + b"\0" * 800)


async def all_of(driver: Any, directory: Path, until: int | None = None) -> Any:
    reading = await open_log(driver, str(directory))
    assert reading is not None
    return await read_on(driver, reading, until)


async def test_no_log_is_no_log(tmp_path: Path) -> None:
    assert await open_log(Counting(), str(tmp_path / "nothing")) is None
    assert await open_log(Counting(), str(tmp_path)) is None


async def test_segments_follow_each_other(tmp_path: Path) -> None:
    write_segment(tmp_path, [batch(0, [MIGRATION, NO_OP]), batch(2, [TOPIC])])
    write_segment(tmp_path, [batch(3, [NO_OP] * 4)])
    reading = await all_of(Counting(), tmp_path)
    assert (reading.facts.end, reading.segment, reading.facts.state) == (7, 3, MigrationGauge.MIGRATION)
    (tmp_path / f"{3:020}.log").unlink()
    write_segment(tmp_path, [batch(5, [NO_OP] * 4)])
    with pytest.raises(Unsafe, match="missing"):
        await all_of(Counting(), tmp_path)


async def test_reading_goes_on_where_it_stopped(tmp_path: Path) -> None:
    write_segment(tmp_path, [batch(i, [NO_OP]) for i in range(10)])
    first = await all_of(Counting(), tmp_path, until=6)
    assert first.facts.end == 7
    write_segment(tmp_path, [batch(i, [NO_OP]) for i in range(10)] + [batch(10, [TOPIC, TOPIC]), batch(12, [TOPIC])[:-1]])
    second = await read_on(Counting(), first)
    assert (second.facts.end, dict(second.facts.changes)) == (12, {RecordType.TOPIC: 2}), "the torn batch is not read"
    counted = await read_on(Counting(), replace(first, facts=first.facts.counting_beyond(10)))
    assert dict(counted.facts.changes) == {RecordType.TOPIC: 1}


async def test_a_log_is_begun_at_its_newest_checkpoint(tmp_path: Path) -> None:
    """Half a million bytes before it are not read: the index tells where its end is."""
    write_segment(tmp_path, [batch(i, [TOPIC] * 2) for i in range(0, 10_000, 2)])
    old, new = tmp_path / f"{400:020}-{1:010}.checkpoint", tmp_path / f"{9000:020}-{2:010}.checkpoint"
    old.write_bytes(b"not to be read")
    new.write_bytes(control(0, 3) + batch(1, [MIGRATION, STRAY]) + control(3, 4))
    driver = Counting()
    reading = await all_of(driver, tmp_path)
    assert (reading.facts.end, reading.facts.state) == (10_000, MigrationGauge.MIGRATION)
    assert reading.facts.stray_configs == {(GROUP, "g", "k")}
    (first,) = [offset for name, offset, _ in driver.read if name.endswith(".log")]
    size = (tmp_path / f"{0:020}.log").stat().st_size
    assert 0.85 * size < first <= 0.9 * size
    assert driver.bytes_of(".index") < 40 * 8


async def test_the_place_is_found_for_every_offset(tmp_path: Path) -> None:
    batches = [batch(i, [TOPIC] * 3) for i in range(1000, 1600, 3)]
    write_segment(tmp_path, batches, every=200)
    path = f"{tmp_path}/{1000:020}.index"
    found = [await quorum_log._position(Counting(), path, offset) for offset in range(600)]
    starts = [sum(map(len, batches[:n])) for n in range(len(batches))]
    assert all(a <= b for a, b in pairwise(found))
    assert all(position <= starts[offset // 3] for offset, position in enumerate(found))
    assert all(starts[offset // 3] - position < 800 for offset, position in enumerate(found)), "and not far before it"


async def test_a_batch_that_is_larger_than_a_chunk_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quorum_log, "CHUNK", 150)
    write_segment(
        tmp_path, [batch(0, [TOPIC]), batch(1, [TOPIC] * 100), batch(101, [TOPIC] * 3), batch(104, [TOPIC] * 20)[:-5]]
    )
    assert (await all_of(Counting(), tmp_path)).facts.end == 104


async def test_who_has_registered_is_read_no_further_than_needed(tmp_path: Path) -> None:
    assert await registered_controllers(Counting(), str(tmp_path), {3001}) is None
    write_segment(tmp_path, [batch(0, [registration(3001), registration(3002)]), *(batch(n, [NO_OP]) for n in range(2, 3000))])
    driver = Counting()
    assert await registered_controllers(driver, str(tmp_path), {3001, 3002}) == {3001, 3002}
    read = driver.bytes_of(".log")
    assert await registered_controllers(driver, str(tmp_path), {3003}) == {3001, 3002}
    assert driver.bytes_of(".log") > 2 * read


async def test_who_has_registered_after_a_new_segment_was_begun_is_found(tmp_path: Path) -> None:
    write_segment(tmp_path, [batch(0, [registration(3001)])])
    write_segment(tmp_path, [batch(1, [registration(3002)])])
    assert await registered_controllers(Counting(), str(tmp_path), {3001, 3002}) == {3001, 3002}


async def test_what_cannot_be_trusted_is_said(tmp_path: Path) -> None:
    write_segment(tmp_path, [batch(5, [NO_OP])])
    with pytest.raises(Unsafe, match="no checkpoint"):
        await open_log(Counting(), str(tmp_path))
    checkpoint = tmp_path / f"{5:020}-{1:010}.checkpoint"
    for content in (b"", control(0, 3), control(0, 3) + batch(1, [MIGRATION])):
        checkpoint.write_bytes(content)
        with pytest.raises(Unsafe, match="no footer"):
            await open_log(Counting(), str(tmp_path))
    checkpoint.write_bytes(control(0, 3) + control(1, 4))
    reading = await open_log(Counting(), str(tmp_path))
    (tmp_path / f"{5:020}.log").unlink()
    with pytest.raises(Transient, match="gone"):
        await read_on(Counting(), reading)
