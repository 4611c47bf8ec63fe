"""The engine on Spark: the same tasks and kernels as the local one, carried out by executors, with the same result.

Two jobs. The first stages what is not staged yet. The second compares ranges of buckets: each task reads its ranges of both
sides, so nothing is shuffled but what was found, and that is sorted into one file. Executors and this process share the
storage of `out`. `SparkSession` is one of Spark Connect, or a classic one.
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from domain.drift.report import CheckResult
from domain.errors import Transient
from spark.conclude import Measured, conclude
from spark.engine.frames import in_order, tolerate
from spark.engine.progress import OnProgress, Progress, ignore
from spark.engine.remote import OUTCOME_SCHEMA, comparing, staging, unpacked
from spark.engine.sides import Side, Sources, look_at
from spark.engine.tasks import circumstances_of, compare_tasks
from spark.engine.watched import watched
from spark.findings import FINDINGS_SCHEMA
from spark.job import CheckJob
from spark.staging import StagedFile

RowCounts = dict[str, tuple[int, int, int]]


@dataclass(frozen=True)
class SparkEngine:
    """`tag`: operations carry it, so that whoever has the session can interrupt this check and nothing else."""

    session: SparkSession
    tag: str
    name: str = "spark"

    def run(self, job: CheckJob, sources: Sources | None = None, on_progress: OnProgress = ignore) -> CheckResult:
        """As the local engine's. Given `sources` travel to Spark as they are, so they must hold no secret."""
        begun = time.monotonic()
        sides = look_at(job, sources)
        with self._tagged():
            self._stage(job, sides, on_progress)
            staged = time.monotonic()
            self._compare(job, sides, on_progress)
        rows, findings = _outcome(job.out / "compared")
        seconds = {"stage": staged - begun, "compare": time.monotonic() - staged}
        on_progress(Progress("conclude", 0, 1))
        not_read = sides[0].not_read + sides[1].not_read
        result = conclude(job, findings, Measured(self.name, rows, not_read, seconds))
        shutil.rmtree(job.out / "compared")
        return result

    @contextmanager
    def _tagged(self) -> Iterator[None]:
        """Whatever ends this check ends its operations."""
        self.session.addTag(self.tag)
        try:
            yield
        except BaseException:
            self.session.interruptTag(self.tag)
            raise
        finally:
            self.session.removeTag(self.tag)

    def _stage(self, job: CheckJob, sides: tuple[Side, Side], on_progress: OnProgress) -> None:
        tasks = [task for side in sides for task in side.stage_tasks(job.kinds)]
        files: dict[str, list[StagedFile]] = {}
        if tasks:
            with watched(self.session, "stage", on_progress):
                told = staging(self.session, tasks).toArrow()
            for directory, written in map(unpacked, told.column("told").to_pylist()):
                files.setdefault(directory, []).extend(written)
        for side in sides:
            side.publish(files.get(str(side.directory), []))

    def _compare(self, job: CheckJob, sides: tuple[Side, Side], on_progress: OnProgress) -> None:
        tasks = compare_tasks(sides[0].directory, sides[1].directory, job.kinds, circumstances_of(job))
        found = in_order(tolerate(comparing(self.session, tasks), job.tolerated))
        with watched(self.session, "compare", on_progress):
            found.write.parquet(str(job.out / "compared"))


def _outcome(directory: Path) -> tuple[RowCounts, Iterator[pa.Table]]:
    """What tasks have told, and the findings behind that, in order."""
    files = sorted(directory.glob("*.parquet"))
    if len(files) != 1:
        raise Transient(f"Spark wrote {len(files)} files into {directory}, expected one: is it storage that both of us see?")
    rows: RowCounts = {}
    for table in _tables(files[0], ["told"]):
        for text in table.column("told").drop_null().to_pylist():
            for kind, counts in unpacked(text).items():
                one = rows.get(kind, (0, 0, 0))
                rows[kind] = (one[0] + counts[0], one[1] + counts[1], one[2] + counts[2])
    return rows, _findings(files[0])


def _findings(path: Path) -> Iterator[pa.Table]:
    for table in _tables(path, OUTCOME_SCHEMA.names):
        findings = table.filter(table.column("told").is_null())
        yield findings.select(FINDINGS_SCHEMA.names).cast(FINDINGS_SCHEMA)


def _tables(path: Path, columns: list[str]) -> Iterator[pa.Table]:
    with pq.ParquetFile(path) as parquet:
        for batch in parquet.iter_batches(columns=columns):
            yield pa.Table.from_batches([batch])
