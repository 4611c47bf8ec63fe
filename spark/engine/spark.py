"""The engine on Spark: the same tasks and kernels as the local one, carried out by executors, with the same result.

Two jobs. The first stages what is not staged yet. The second compares ranges of buckets: each task reads its ranges of both
sides and writes what it found, so nothing is shuffled and no row passes the JVM. Findings are put in order in this process, as
the local engine does. Executors and this process share the storage of `out`. `SparkSession` is one of Spark Connect, or a
classic one.
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
from spark.engine.progress import OnProgress, Progress, ignore
from spark.engine.remote import TOLD_SCHEMA, comparing, staging, unpacked
from spark.engine.sides import Side, Sources, look_at, publish_all, stage_tasks_of
from spark.engine.tasks import NO_ROWS, RowCounts, added, circumstances_of, compare_tasks
from spark.engine.watched import watched
from spark.findings import FINDINGS_SCHEMA, in_order, tolerate
from spark.job import CheckJob


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
            rows, findings = self._compare(job, sides, on_progress)
        seconds = {"stage": staged - begun, "compare": time.monotonic() - staged}
        on_progress(Progress("conclude", 0, 1))
        not_read = sides[0].not_read + sides[1].not_read
        return conclude(job, [in_order(tolerate(findings, job.tolerated))], Measured(self.name, rows, not_read, seconds))

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
        tasks, told = stage_tasks_of(sides, job.kinds), TOLD_SCHEMA.empty_table()
        if tasks:
            with watched(self.session, "stage", on_progress):
                told = staging(self.session, tasks).toArrow()
        publish_all(sides, map(unpacked, told.column("told").to_pylist()))

    def _compare(self, job: CheckJob, sides: tuple[Side, Side], on_progress: OnProgress) -> tuple[RowCounts, pa.Table]:
        tasks = compare_tasks(sides[0].directory, sides[1].directory, job.kinds, circumstances_of(job))
        directory = job.out / "compared"
        directory.mkdir()
        with watched(self.session, "compare", on_progress):
            told = comparing(self.session, tasks, directory).toArrow()
        rows: RowCounts = {}
        findings = [FINDINGS_SCHEMA.empty_table()]
        for name, counts in map(unpacked, told.column("told").to_pylist()):
            rows |= {kind: added(rows.get(kind, NO_ROWS), count) for kind, count in counts.items()}
            findings.append(_findings(directory / name))
        shutil.rmtree(directory)
        return rows, pa.concat_tables(findings)


def _findings(path: Path) -> pa.Table:
    try:
        with pq.ParquetFile(path) as parquet:
            return parquet.read()
    except FileNotFoundError as lacking:
        raise Transient(f"a task of Spark's wrote {path}, which is not here: is it storage that both of us see?") from lacking
