"""What both engines run, piece by piece and anywhere: stage one split, compare some ranges of buckets."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, groupby
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from domain.drift.records import KINDS, TOPIC
from domain.errors import Permanent
from spark.comparing.compare import Compared, compare
from spark.comparing.fields import Circumstances
from spark.comparing.rest import Sides
from spark.digest import BUCKETS
from spark.job import CheckJob
from spark.sources.source import Rows, Source, Split
from spark.sources.staged import StagedRange, read_manifest
from spark.staging import Manifest, StagedFile, stage_part

ROWS_PER_TASK = 1_000_000
"""About as many. A task of Spark's costs 50 to 100 ms, whatever is in it."""
PIECES_PER_TASK = 2
"""A piece is in memory as a whole."""
RowCounts = dict[str, tuple[int, int, int]]
"""Left, right and equal rows of each kind."""
NO_ROWS = (0, 0, 0)
Tick = Callable[[], None]
"""Called between two batches. What it raises ends the task."""


class SourceMaker(Protocol):
    def build(self) -> Source:
        """The source, in the process that reads it."""


@dataclass(frozen=True)
class Given:
    """A source that is there already."""

    source: Source

    def build(self) -> Source:
        return self.source


@dataclass(frozen=True)
class StageTask:
    maker: SourceMaker
    split: Split
    name: str
    directory: Path
    kinds: frozenset[str]

    def run(self, attempt: str, tick: Tick) -> tuple[StagedFile, ...]:
        """`attempt`: makes the files' names this attempt's own."""
        rows = self.maker.build().read(self.split, self.kinds)
        return stage_part(self.directory, f"{self.name}-{attempt}", _watched(rows, tick))


def _watched(rows: Iterator[Rows], tick: Tick) -> Iterator[Rows]:
    for part in rows:
        tick()
        yield part


@dataclass(frozen=True)
class Piece:
    """Buckets of one kind, and about how many rows both sides have in them."""

    kind: str
    begin: int
    end: int
    rows: int


@dataclass(frozen=True)
class CompareTask:
    left: Path
    right: Path
    pieces: tuple[Piece, ...]
    when: Circumstances

    def run(self, tick: Tick) -> Iterator[tuple[str, Compared]]:
        left, right = read_manifest(self.left), read_manifest(self.right)
        names = TopicNames(((self.left, left), (self.right, right)))
        for piece in self.pieces:
            tick()
            span = (piece.kind, piece.begin, piece.end)
            sides = Sides(
                StagedRange(self.left, left, *span),
                StagedRange(self.right, right, *span),
                StagedRange(self.right, right, *span, is_journal=True),
            )
            yield piece.kind, compare(KINDS[piece.kind], sides, self.when, names)


@dataclass(frozen=True)
class TopicNames:
    """By id, from the topics of the left side, then of the right one, then of its journal."""

    sides: Sequence[tuple[Path, Manifest]]

    def __call__(self, ids: frozenset[str]) -> Mapping[str, str]:
        names: dict[str, str] = {}
        wanted = pa.array(sorted(ids), pa.string())
        for rows in self._topics:
            found = rows.filter(pc.is_in(rows.column("topic_id"), wanted))
            pairs = zip(*(column.to_pylist() for column in found.columns), strict=True)
            for name, text in sorted(pairs):
                names.setdefault(text, name)
        return names

    @property
    def _topics(self) -> Iterator[pa.Table]:
        for is_journal in (False, True):
            for directory, manifest in self.sides:
                files = tuple(f for f in manifest.files if (f.kind, f.is_journal) == (TOPIC.name, is_journal))
                if files:
                    yield _topics_of(directory, files)


@lru_cache(maxsize=8)
def _topics_of(directory: Path, files: tuple[StagedFile, ...]) -> pa.Table:
    """Names and ids, which every task of a comparison may ask for. Files are named by their sha256."""
    staged = Manifest(layout="", files=files)
    return StagedRange(directory, staged, TOPIC.name, 0, BUCKETS, files[0].is_journal).columns(("topic", "topic_id"))


def circumstances_of(job: CheckJob) -> Circumstances:
    return Circumstances(job.is_before_dual_write, job.is_left_older)


def compare_tasks(left: Path, right: Path, kinds: Sequence[str], when: Circumstances) -> list[CompareTask]:
    """Ranges of buckets of similar size; what is small goes together."""
    manifests = read_manifest(left), read_manifest(right)
    _refuse_journal(left, manifests[0])
    pieces = [piece for kind in kinds for piece in _pieces(kind, sum(manifest.rows_of(kind) for manifest in manifests))]
    return [CompareTask(left, right, held, when) for held in _shared_out(pieces)]


def _shared_out(pieces: Sequence[Piece]) -> list[tuple[Piece, ...]]:
    """To tasks of similar size, in order."""
    ends = list(accumulate(piece.rows for piece in pieces))
    total = max(1, sum(piece.rows for piece in pieces))
    count = max(1, round(total / ROWS_PER_TASK))
    of_pieces = [min(count - 1, int((end - piece.rows / 2) * count / total)) for piece, end in zip(pieces, ends, strict=True)]
    numbered = zip(of_pieces, pieces, strict=True)
    return [tuple(piece for _, piece in held) for _, held in groupby(numbered, lambda pair: pair[0])]


def _refuse_journal(left: Path, manifest: Manifest) -> None:
    if any(file.is_journal for file in manifest.files):
        raise Permanent(f"{left} has a journal: the left side is one state, only the right one may change while it is compared")


def _pieces(kind: str, rows: int) -> Iterator[Piece]:
    ranges = 1
    while ranges * ROWS_PER_TASK < rows * PIECES_PER_TASK and ranges < BUCKETS:
        ranges *= 2
    width = BUCKETS // ranges
    for at in range(0, BUCKETS, width):
        yield Piece(kind, at, at + width, rows // ranges)


def added(one: tuple[int, int, int], other: tuple[int, int, int]) -> tuple[int, int, int]:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]
