"""A controller's log of metadata, read from its disk, whether the controller runs or not.

    <metadata.log.dir, or the first of log.dirs>/__cluster_metadata-0/
        00000000000000000042-0000000003.checkpoint     all before offset 42, in short
        00000000000000000000.log                       a segment, up to 1 GiB, named by its first offset
        00000000000000000000.index                     last offset of a batch → where the batch begins

Reading begins with the newest checkpoint and goes on in the segment that holds its end, at most a few MiB at once. A reading
can be continued: what costs time is read while the controllers still run, and only the rest once they are dead.
"""

import asyncio
import struct
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, replace

from activities.comparison.log_copy import CHECKPOINT, SEGMENT
from activities.ports.nodes import NodeDriver
from domain.errors import Transient, Unsafe
from domain.observed.observation import MigrationGauge
from domain.quorum_log.metadata_log import LogFacts
from domain.quorum_log.partition_epochs import PartitionEpochs
from domain.quorum_log.record_batches import SNAPSHOT_FOOTER, Batch, read_batches, size_of_first

CHUNK = 1024 * 1024
FIRST_CHUNK = 64 * 1024
"""Where what is looked for stands near the beginning."""
INDEX_ENTRY = struct.Struct(">ii")
"""Offset within the segment, position in it (OffsetIndex.java). The file of a living segment ends in zeros."""


@dataclass(frozen=True)
class Reading:
    """How far a log was read: what it said so far; where to go on, in bytes of the segment that begins at offset `segment`."""

    directory: str
    facts: LogFacts
    epochs: PartitionEpochs
    segment: int
    position: int

    @property
    def path(self) -> str:
        return f"{self.directory}/{self.segment:020}.log"


async def open_log(driver: NodeDriver, directory: str) -> Reading | None:
    """Begin with the newest checkpoint; `None` where there is no log at all."""
    names = await driver.list_dir(directory) or ()
    segments = _segments(names)
    if not segments:
        return None
    facts, epochs = LogFacts(), PartitionEpochs()
    checkpoints = sorted(name for name in names if CHECKPOINT.fullmatch(name))
    if checkpoints:
        facts, epochs = await _checkpoint(driver, f"{directory}/{checkpoints[-1]}", int(checkpoints[-1][:20]))
    elif segments[0] > 0:
        raise Unsafe(f"{directory}: the log begins at offset {segments[0]}, and there is no checkpoint of what was before")
    segment = max((base for base in segments if base <= facts.end), default=segments[0])
    position = await _position(driver, f"{directory}/{segment:020}.index", facts.end - segment)
    return Reading(directory, facts, epochs, segment, position)


async def read_on(
    driver: NodeDriver, reading: Reading, until: int | None = None, registered: Collection[int] = (), chunk: int | None = None
) -> Reading:
    """Read all that is there, or all batches that end at offset `until` or before it, or until these controllers
    have `registered`."""
    while not registered or not reading.facts.controllers.issuperset(registered):
        async for batches, position in _batches(driver, reading.path, reading.position, reading.facts.end, chunk):
            wanted = [batch for batch in batches if until is None or batch.last_offset <= until]
            facts = await asyncio.to_thread(reading.facts.after, wanted)
            reading = replace(reading, facts=facts, epochs=await asyncio.to_thread(reading.epochs.after, wanted))
            if len(wanted) < len(batches):
                return reading
            reading = replace(reading, position=position)
            if registered and reading.facts.controllers.issuperset(registered):
                return reading
        later = [base for base in _segments(await driver.list_dir(reading.directory) or ()) if base > reading.segment]
        if not later:
            return reading
        reading = replace(reading, segment=later[0], position=0)
    return reading


async def registered_controllers(driver: NodeDriver, directory: str, wanted: Collection[int]) -> frozenset[int] | None:
    """Of whom there is a registration, at least of these where there is; `None` where there is no log.

    They register within seconds of the quorum's first election, so that little is read.
    """
    reading = await open_log(driver, directory)
    if reading is None:
        return None
    return (await read_on(driver, reading, registered=wanted, chunk=FIRST_CHUNK)).facts.controllers


async def read_tail(driver: NodeDriver, directory: str, offset: int | None, ahead: Reading | None = None) -> Reading | None:
    """All of a dead controller's log, with its changes beyond `offset` counted; `None` where there is no log.

    Without an offset, ZooKeeper has what the copy took from it, and nothing after. `ahead`: what was read while it lived.
    """
    if offset is None:
        whole = await _whole(driver, directory)
        if whole is None or whole.facts.state is not MigrationGauge.MIGRATION:
            return whole
        offset, ahead = whole.facts.state_at, None
    reading = ahead if ahead is not None and ahead.facts.end <= offset + 1 else await open_log(driver, directory)
    if reading is None:
        return None
    reading = await read_on(driver, reading, until=offset)
    counting = replace(reading, facts=reading.facts.counting_beyond(offset))
    return await read_on(driver, counting)


async def _whole(driver: NodeDriver, directory: str) -> Reading | None:
    reading = await open_log(driver, directory)
    return await read_on(driver, reading) if reading is not None else None


def _segments(names: tuple[str, ...]) -> list[int]:
    return sorted(int(match[1]) for name in names if (match := SEGMENT.fullmatch(name)))


async def _checkpoint(driver: NodeDriver, path: str, end: int) -> tuple[LogFacts, PartitionEpochs]:
    """All of a checkpoint. Kafka renames it into place when it is whole, so one without its last record is damaged."""
    facts, epochs, last = LogFacts(), PartitionEpochs(), None
    async for batches, _ in _batches(driver, path, 0, 0):
        facts = await asyncio.to_thread(facts.after_checkpoint, batches, end)
        epochs = await asyncio.to_thread(epochs.after_checkpoint, batches, end)
        last = batches[-1] if batches else last
    if last is None or SNAPSHOT_FOOTER not in last.control:
        raise Unsafe(f"{path}: the checkpoint has no footer, so it is incomplete. Check the node's disk.")
    return facts, epochs


async def _batches(
    driver: NodeDriver, path: str, position: int, wanted_from: int, chunk: int | None = None
) -> AsyncIterator[tuple[list[Batch], int]]:
    """The complete batches of a file from a position on, chunk by chunk, each with the position after it."""
    length = chunk = chunk or CHUNK
    while True:
        data = await driver.read_part(path, position, length)
        if data is None:
            raise Transient(f"{path}: gone while it was being read; read it again")
        first = size_of_first(data)
        if first is None or (first > len(data) and len(data) < length):
            return
        if first > len(data):
            length = first
            continue
        batches, used = await asyncio.to_thread(read_batches, data, wanted_from)
        position += used
        yield batches, position
        if len(data) < length:
            return
        length = chunk


async def _position(driver: NodeDriver, path: str, offset: int) -> int:
    """Where to begin to read for an offset of the segment: at the last batch in its index that ends before it, or at 0."""

    async def entry(number: int) -> tuple[int, int] | None:
        data = await driver.read_part(path, number * INDEX_ENTRY.size, INDEX_ENTRY.size)
        found = INDEX_ENTRY.unpack(data) if data is not None and len(data) == INDEX_ENTRY.size else (0, 0)
        return found if 0 < found[0] < offset else None

    low, high, position = -1, 0, 0
    while (found := await entry(high)) is not None:
        low, high, position = high, 2 * high + 1, found[1]
    while high - low > 1:
        middle = (low + high) // 2
        found = await entry(middle)
        low, high, position = (middle, high, found[1]) if found is not None else (low, middle, position)
    return position
