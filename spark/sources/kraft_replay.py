"""The quorum's log as it takes effect: transactions whole or not at all, an image at the cut, the versions after it.

Records between `BeginTransaction` and `EndTransaction` take effect at its end, those before `AbortTransaction` never
(KIP-868, MetadataBatchLoader.java). One that is open at the cut takes effect after it, as a whole.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from domain.errors import Permanent, Transient
from domain.quorum_log.record_types import RecordType
from spark.codec.metadata_files import LogFiles, refuse_gaps
from spark.codec.metadata_partitions import Partitions, partitions_of
from spark.codec.metadata_records import Frames, decoded, frames_of, place_of
from spark.codec.metadata_schema import SCHEMAS, TRANSACTION_MARKERS
from spark.codec.record_batch import Piece, pieces
from spark.sources.kraft_image import REPLAYED, Image
from spark.sources.kraft_partitions import Ops

PIECE = 8 * 1024 * 1024
"""Bytes of a piece: some 100,000 partitions."""


class Replay:
    """What has been fed so far. `partitions`: written before the cut; `ops`: what happens to partitions, these and others.

    `image`: of everything else; without one, only partitions are replayed. `cut`: `None` where there is none.
    """

    def __init__(self, cut: int | None, image: Image | None, *, wants_partitions: bool = True) -> None:
        self.partitions: list[Partitions] = []
        self.ops = Ops()
        self.image = image
        self.is_after_cut = False
        self._cut = cut
        self._open: list[Frames] | None = None
        self._kinds = (*(REPLAYED if image is not None else ()), RecordType.PARTITION_CHANGE, RecordType.REMOVE_TOPIC)
        self._wants_partitions = wants_partitions

    def feed(self, frames: Frames) -> None:
        """More records, in the log's order."""
        for begin, end in self._parts(frames):
            part = frames.where(np.arange(begin, end))
            self._pass_cut(int(part.offsets[0]))
            self._take(part)

    def finish(self) -> None:
        """No more records."""
        if self._cut is not None:
            self._pass_cut(self._cut)

    def apply(self, frames: Frames) -> None:
        """Records that take effect here and now."""
        if self._wants_partitions:
            self._create(frames.where(frames.kinds == RecordType.PARTITION))
        chosen = np.flatnonzero(np.isin(frames.kinds, self._kinds))
        for record in decoded(frames, chosen):
            if record.kind == RecordType.PARTITION_CHANGE:
                self.ops.change(record, is_after=self.is_after_cut)
                continue
            if record.kind == RecordType.REMOVE_TOPIC:
                self.ops.remove(record, is_after=self.is_after_cut)
            if self.image is not None:
                self.image.replay(record)

    def _create(self, frames: Frames) -> None:
        if not len(frames):
            return
        created = partitions_of(frames)
        if self.is_after_cut:
            self.ops.create(created)
        else:
            self.partitions.append(created)

    def _parts(self, frames: Frames) -> Iterator[tuple[int, int]]:
        """Where a transaction's markers and the cut divide them; each marker is a part of its own."""
        markers = np.flatnonzero(np.isin(frames.kinds, TRANSACTION_MARKERS))
        cut = [] if self._cut is None else [int(np.searchsorted(frames.offsets, self._cut))]
        bounds = sorted({0, len(frames), *cut, *markers.tolist(), *(markers + 1).tolist()})
        return pairwise(bounds)

    def _pass_cut(self, offset: int) -> None:
        if self._cut is None or self.is_after_cut or offset < self._cut:
            return
        self.is_after_cut = True
        if self.image is not None:
            self.image.follow()

    def _take(self, part: Frames) -> None:
        kind = int(part.kinds[0])
        if kind not in TRANSACTION_MARKERS:
            if self._open is None:
                self.apply(part)
            else:
                self._open.append(part)
            return
        if (kind == RecordType.BEGIN_TRANSACTION) != (self._open is None):
            raise Permanent(f"{place_of(part, 0)} is a {SCHEMAS[kind].name} where a transaction {_IS[self._open is None]}")
        pending, self._open = self._open or [], [] if kind == RecordType.BEGIN_TRANSACTION else None
        for waiting in pending if kind == RecordType.END_TRANSACTION else ():
            self.apply(waiting)


_IS = {True: "is not open", False: "is open already"}


def log_of(files: LogFiles, end: int | None, needed: int | None) -> Iterator[Frames]:
    """The records of the segments after the checkpoint and before `end`, the high watermark.

    Raises `Permanent` where something is missing between them, `Transient` where they end before offset `needed`.
    """
    reached = files.begin
    for index, segment in enumerate(files.segments):
        if end is not None and reached >= end:
            return
        for piece in pieces(segment, size=PIECE):
            reached = _next(piece, reached)
            yield _between(frames_of(piece), files.begin, end)
        _refuse_cut_segment(files, index, reached)
    if needed is not None and reached < needed:
        last = files.segments[-1] if files.segments else files.checkpoint
        raise Transient(f"{last}: whole batches end at offset {reached}, expected {needed}. Copy the directory again")


def _refuse_cut_segment(files: LogFiles, index: int, reached: int) -> None:
    following = files.segments[index + 1 :]
    if following and int(following[0].stem) > reached:
        raise Permanent(f"{files.segments[index]}: ends at offset {reached}, but {following[0].name} comes next: copy it again")


def _next(piece: Piece, reached: int) -> int:
    """The offset after a piece."""
    batches = piece.batches
    refuse_gaps(batches, reached)
    return max(reached, int(batches.last_offsets[-1]) + 1)


def _between(frames: Frames, begin: int, end: int | None) -> Frames:
    is_within = frames.offsets >= begin
    if end is not None:
        is_within &= frames.offsets < end
    return frames if is_within.all() else frames.where(is_within)


def frames_between(checkpoint: Path, begin: int, end: int) -> Iterator[Frames]:
    """The records of a checkpoint's batches between two bytes, all of them."""
    reached = begin
    for piece in pieces(checkpoint, begin, end, size=PIECE):
        reached = piece.begin + len(piece.data)
        yield frames_of(piece)
    if reached != end:
        raise Permanent(f"{checkpoint}: no batch ends at byte {end}, the last one ends at {reached}: copy it again")
