"""What both engines do before rows are read: look at both sides, and name the tasks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.drift.records import KINDS
from domain.errors import Permanent
from spark.engine.tasks import Given, SourceMaker, StageTask
from spark.job import CheckJob, SourceSpec, StagedRows
from spark.sources.build import Recipe
from spark.sources.source import Source, Split
from spark.sources.staged import open_staged
from spark.staging import StagedFile, publish

SPLITS_PER_TASK = 2
"""Splits are not all equally long to read: with more of them than tasks, nobody waits long for the last one."""


LARGE_ROWS = 20_000_000
"""Rows that are staged already: of ten million, two processes were no faster than one, and took half as much again."""
LARGE_BYTES = 512 << 20
"""Bytes that have to be staged: a snapshot of some 1.5 million partitions, which one process stages in some six seconds."""


@dataclass(frozen=True)
class Side:
    """`splits`: what is to be staged into `directory`. Without `maker` the rows are there already, `rows` of them."""

    directory: Path
    not_read: tuple[str, ...]
    maker: SourceMaker | None = None
    splits: tuple[Split, ...] = ()

    rows: int = 0

    @property
    def is_large(self) -> bool:
        """So much that several processes are worth their start."""
        return self.rows > LARGE_ROWS or sum(split.end - split.begin for split in self.splits) > LARGE_BYTES

    def stage_tasks(self, kinds: Sequence[str]) -> list[StageTask]:
        if self.maker is None:
            return []
        wanted = frozenset(kinds)
        numbered = enumerate(self.splits)
        return [StageTask(self.maker, split, f"part-{n:05}", self.directory, wanted) for n, split in numbered]

    def publish(self, files: Iterable[StagedFile]) -> None:
        """Nothing, where the rows were staged before."""
        if self.maker is not None:
            publish(self.directory, files, self.not_read)


Sources = tuple[Source, Source]


def stage_tasks_of(sides: tuple[Side, Side], kinds: Sequence[str]) -> list[StageTask]:
    return [task for side in sides for task in side.stage_tasks(kinds)]


def publish_all(sides: tuple[Side, Side], written: Iterable[tuple[str, Iterable[StagedFile]]]) -> None:
    """`written`: the files of each task, with their directory."""
    files: dict[str, list[StagedFile]] = {}
    for directory, some in written:
        files.setdefault(directory, []).extend(some)
    for side in sides:
        side.publish(files.get(str(side.directory), []))


def look_at(job: CheckJob, sources: Sources | None) -> tuple[Side, Side]:
    """Both sides, checked as far as that goes without reading rows. Makes the directories that tasks write into.

    They make none above their own: what a check that was ended has removed stays away, and a task that comes late fails.
    """
    _check(job)
    given = sources or (None, None)
    return _side(job, "left", job.left, given[0]), _side(job, "right", job.right, given[1])


def _check(job: CheckJob) -> None:
    unknown = [kind for kind in job.kinds if kind not in KINDS]
    if unknown:
        raise Permanent(f"no such kinds of rows: {', '.join(unknown)}; there are {', '.join(KINDS)}")
    job.out.mkdir(exist_ok=True)
    if any(job.out.iterdir()):
        raise Permanent(f"{job.out} is not empty: every attempt writes into a directory of its own")


def _side(job: CheckJob, name: str, spec: SourceSpec, given: Source | None) -> Side:
    if given is None and isinstance(spec, StagedRows):
        manifest = open_staged(spec.directory)
        return Side(spec.directory, manifest.not_read, rows=sum(file.rows for file in manifest.files))
    maker: SourceMaker = Given(given) if given is not None else Recipe.of(job, spec)
    source = maker.build()
    splits = tuple(source.splits(job.tasks * SPLITS_PER_TASK))
    directory = job.out / name
    directory.mkdir()
    return Side(directory, source.not_read(), maker, splits)
