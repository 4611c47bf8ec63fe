"""KRaft's side: the metadata image at an offset of the quorum's log, and its versions after that, from files.

A checkpoint's topics and partitions, which may be millions, are read in byte ranges. The split `tail` has everything else: all
other kinds, and the log after the checkpoint. What the log says of a partition in the checkpoint is applied where its record
is read, so each reader replays the log's part about partitions; it is short, because checkpoints are frequent.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from domain.drift import normalise
from domain.drift.digests import Digester
from domain.drift.records import KINDS, PARTITION, TOPIC
from domain.errors import Permanent
from domain.quorum_log.record_types import RecordType
from spark.codec.metadata_files import TOPICS, Bulk, LogFiles, bulk_of, files_before, grouped
from spark.codec.metadata_partitions import UUID_BYTES, Lists, Partitions, partitions_of
from spark.codec.metadata_records import Frames, decoded, place_of
from spark.codec.metadata_schema import SCHEMAS
from spark.job import KraftFiles
from spark.rows import journal_schema_of, schema_of
from spark.sources.kraft_image import Image, Version
from spark.sources.kraft_partitions import Ops, born_after, refuse_twice, settled
from spark.sources.kraft_replay import Replay, frames_between, log_of
from spark.sources.source import Rows, Split

TAIL = "tail"
Stamp = tuple[tuple[int, int], ...]

BATCH_ROWS = 100_000


@dataclass(frozen=True)
class KraftSource:
    """One copy of `__cluster_metadata-0`. See `KraftFiles` for what `cut` and `end` mean."""

    files: KraftFiles
    digester: Digester

    def splits(self, wanted: int) -> Sequence[Split]:
        log = self._log()
        groups = grouped(_bulk(log).pure, wanted)
        return [Split(TAIL), *(Split(f"base-{n:04}", str(log.checkpoint), *group) for n, group in enumerate(groups))]

    def read(self, split: Split, kinds: frozenset[str]) -> Iterator[Rows]:
        return self._base(split, kinds) if split.path else self._tail(kinds)

    def not_read(self) -> tuple[str, ...]:
        return ()

    def _log(self) -> LogFiles:
        cut, end = self.files.cut, self.files.end
        if cut is not None and end is not None and cut > end:
            raise Permanent(f"{self.files.directory}: the cut {cut} is beyond the high watermark {end}")
        return files_before(self.files.directory, end if cut is None else cut)

    def _feed(self, replay: Replay, log: LogFiles) -> Replay:
        """All of the log after the checkpoint."""
        end, cut = self.files.end, self.files.cut
        with _uncollected():
            for frames in log_of(log, end, cut if end is None else end):
                replay.feed(frames)
            replay.finish()
        return replay

    # ---- a checkpoint's topics and partitions ----

    def _base(self, split: Split, kinds: frozenset[str]) -> Iterator[Rows]:
        log = self._log()
        changes = _changes(self.files, log, _stamp(log))
        for frames in frames_between(Path(split.path), split.begin, split.end):
            _refuse_others(frames)
            if PARTITION.name in kinds:
                yield from _partition_rows(frames, changes)
            if TOPIC.name in kinds:
                yield from _topic_rows(frames, changes.ops)

    # ---- all other kinds, and the log ----

    def _tail(self, kinds: frozenset[str]) -> Iterator[Rows]:
        log = self._log()
        bulk = _bulk(log)
        image = Image(self.digester, _names(log.checkpoint, bulk.pure))
        replay = Replay(self.files.cut, image if kinds - {PARTITION.name} else None, wants_partitions=PARTITION.name in kinds)
        with _uncollected():
            for frames in _frames_of(log.checkpoint, bulk.others):
                replay.apply(frames)
        self._feed(replay, log)
        if PARTITION.name in kinds:
            yield from _own_partitions(replay, has_others=bool(bulk.pure))
        present = image.rows if image.at_cut is None else image.at_cut
        for kind in sorted(kinds & KINDS.keys() - {PARTITION.name}):
            yield from rows_of(kind, list(present.get(kind, {}).values()))
            yield from journal_of(kind, image.journal.get(kind, []))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Hundreds of thousands of small objects that stay: looking for garbage among them again and again takes longer than all
    the rest.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _bulk(log: LogFiles) -> Bulk:
    return bulk_of(log.checkpoint) if log.checkpoint else Bulk((), ())


def _frames_of(checkpoint: Path | None, spans: tuple[tuple[int, int], ...]) -> Iterator[Frames]:
    if checkpoint is None:
        return
    for span in grouped(spans, 1):
        yield from frames_between(checkpoint, *span)


def _stamp(log: LogFiles) -> Stamp:
    """Tells the files apart from others that had their names before."""
    told = (path.stat() for path in (*((log.checkpoint,) if log.checkpoint else ()), *log.segments))
    return tuple((stat.st_size, stat.st_mtime_ns) for stat in told)


@lru_cache(maxsize=2)
def _changes(files: KraftFiles, log: LogFiles, _stamp: Stamp) -> Replay:
    """What the log says of partitions: read once for all the splits that a process reads."""
    return KraftSource(files, Digester(b""))._feed(Replay(files.cut, None), log)


def _refuse_others(frames: Frames) -> None:
    is_other = ~np.isin(frames.kinds, list(TOPICS))
    if is_other.any():
        row = int(np.argmax(is_other))
        kind = SCHEMAS[int(frames.kinds[row])].name
        raise Permanent(f"{place_of(frames, row)} is a {kind} among topics: Kafka writes no such checkpoints")


def _partition_rows(frames: Frames, changes: Replay) -> Iterator[Rows]:
    partitions = partitions_of(frames.where(frames.kinds == RecordType.PARTITION))
    refuse_twice(partitions, changes.partitions)
    found = settled(partitions, changes.ops)
    yield from partition_rows(found.plain)
    yield from rows_of(PARTITION.name, found.rows)
    yield from journal_of(PARTITION.name, found.journal)


def _own_partitions(replay: Replay, *, has_others: bool) -> Iterator[Rows]:
    """Those that the tail has read itself."""
    known: set[tuple[object, ...]] = set()
    if replay.partitions:
        refuse_twice(replay.partitions[0], replay.partitions)
    for partitions in replay.partitions:
        found = settled(partitions, replay.ops)
        known |= found.known
        yield from partition_rows(found.plain)
        yield from rows_of(PARTITION.name, found.rows)
        yield from journal_of(PARTITION.name, found.journal)
    yield from journal_of(PARTITION.name, born_after(replay.ops, known, may_be_elsewhere=has_others))


def _topic_rows(frames: Frames, ops: Ops) -> Iterator[Rows]:
    rows: list[Version] = []
    journal: list[Version] = []
    for _, told, origin in decoded(frames, frames.kinds == RecordType.TOPIC):
        removal = ops.removed.get(told["topicId"])
        if removal is None or removal.is_after:
            rows.append(Version((told["name"],), (normalise.uuid_text(told["topicId"]),), origin))
        if removal is not None and removal.is_after:
            journal.append(Version((told["name"],), None, removal.origin))
    yield from rows_of(TOPIC.name, rows)
    yield from journal_of(TOPIC.name, journal)


def _names(checkpoint: Path | None, spans: tuple[tuple[int, int], ...]) -> Callable[[bytes], str | None]:
    """Names of a checkpoint's topics, by id. They are read when somebody asks for the first: a topic has been removed."""

    @cache
    def names() -> dict[bytes, str]:
        found: dict[bytes, str] = {}
        for frames in _frames_of(checkpoint, spans):
            topics = decoded(frames, frames.kinds == RecordType.TOPIC)
            found |= {topic.values["topicId"]: topic.values["name"] for topic in topics}
        return found

    return lambda id_: names().get(id_)


def rows_of(kind: str, versions: Sequence[Version]) -> list[Rows]:
    """Rows at the cut, in batches."""
    parts = (versions[at : at + BATCH_ROWS] for at in range(0, len(versions), BATCH_ROWS))
    return [Rows(kind, _batch(schema_of(kind), kind, part, [])) for part in parts]


def journal_of(kind: str, versions: Sequence[Version]) -> list[Rows]:
    """Versions after the cut, in batches."""
    parts = (versions[at : at + BATCH_ROWS] for at in range(0, len(versions), BATCH_ROWS))
    return [
        Rows(kind, _batch(journal_schema_of(kind), kind, part, [[v.values is None for v in part]]), is_journal=True)
        for part in parts
    ]


def _batch(schema: pa.Schema, kind: str, versions: Sequence[Version], more: list[list[bool]]) -> pa.RecordBatch:
    absent = (None,) * len(KINDS[kind].values)
    told = [(*v.key, *(absent if v.values is None else v.values), *v.origin) for v in versions]
    columns: list[Sequence[Any]] = [*zip(*told, strict=True), *more]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def partition_rows(partitions: Partitions) -> list[Rows]:
    """All in one batch, without a Python object for any of them."""
    if not len(partitions):
        return []
    ids = pa.py_buffer(np.ascontiguousarray(partitions.topic_ids))
    columns = [
        pa.FixedSizeBinaryArray.from_buffers(pa.binary(UUID_BYTES), len(partitions), [None, ids]),
        pa.array(partitions.numbers),
        _lists(partitions.replicas),
        _lists(partitions.adding),
        _lists(partitions.removing),
        pa.array(partitions.leaders),
        _lists(partitions.isr),
        pa.array(partitions.leader_epochs),
        pa.array(partitions.recovery),
        pa.repeat(pa.scalar(partitions.file), len(partitions)),
        pa.array(partitions.batch),
        pa.array(partitions.offsets),
    ]
    return [Rows(PARTITION.name, pa.RecordBatch.from_arrays(columns, schema=schema_of(PARTITION.name)))]


def _lists(lists: Lists) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(lists.offsets.astype(np.int32)), pa.array(lists.values))
