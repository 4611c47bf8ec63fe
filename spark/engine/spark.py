"""The engine on Spark: the same tasks and kernels as the local one, carried out by executors, with the same result.

Two jobs. The first stages what is not staged yet. The second compares ranges of buckets: each task reads its ranges of both
sides, so nothing is shuffled but what was found, and that is sorted into one file. Executors and this process share the
storage of `out`. `SparkSession` is one of Spark Connect, or a classic one.
"""

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from domain.drift.explaining import DUPLICATE_RULE
from domain.drift.report import CheckResult, FindingKind
from domain.drift.tolerations import Toleration
from domain.errors import Transient
from spark.conclude import Measured, conclude
from spark.engine.progress import OnProgress, Progress, ignore
from spark.engine.remote import OUTCOME_SCHEMA, TOLD_SCHEMA, comparing, staging, unpacked
from spark.engine.sides import Side, Sources, look_at, publish_all, stage_tasks_of
from spark.engine.tasks import circumstances_of, compare_tasks
from spark.engine.watched import watched
from spark.findings import DRIFTS, FINDINGS_SCHEMA, GRAVITY, ORDER, TOLERATED_GRAVITY, UNVERIFIABLE_GRAVITY
from spark.job import CheckJob

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
        tasks, told = stage_tasks_of(sides, job.kinds), TOLD_SCHEMA.empty_table()
        if tasks:
            with watched(self.session, "stage", on_progress):
                told = staging(self.session, tasks).toArrow()
        publish_all(sides, map(unpacked, told.column("told").to_pylist()))

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


def functions_for(frame: DataFrame) -> Any:  # noqa: ANN401
    """Connect has functions of its own, and takes no others."""
    if type(frame).__module__.startswith("pyspark.sql.connect."):
        from pyspark.sql.connect.functions import builtin

        return builtin
    from pyspark.sql import functions

    return functions


def tolerate(frame: DataFrame, tolerations: Sequence[Toleration]) -> DataFrame:
    """Drift that the policy names becomes `tolerated`, with who accepted it and why. The first that fits is named."""
    f = functions_for(frame)
    may_be = f.col("finding").isin([str(kind) for kind in DRIFTS]) & (f.col("rule") != DUPLICATE_RULE)
    by = f.col("tolerated_by")
    for toleration in reversed(tolerations):
        wanted = {"record": toleration.record, "key": toleration.key, "field": toleration.field}
        fits = reduce(lambda one, two: one & two, [f.col(name) == text for name, text in wanted.items() if text], may_be)
        by = f.when(fits, toleration.named).otherwise(by)
    named_by = frame.withColumn("tolerated_by", by)
    kinds = f.when(f.col("tolerated_by") != "", str(FindingKind.TOLERATED)).otherwise(f.col("finding"))
    return named_by.withColumn("finding", kinds)


def in_order(frame: DataFrame) -> DataFrame:
    """What tasks tell besides findings first, then the gravest. One partition: it becomes one file."""
    f = functions_for(frame)
    gravity = f.when(f.col("finding") == str(FindingKind.UNVERIFIABLE), UNVERIFIABLE_GRAVITY)
    gravity = gravity.when(f.col("finding") == str(FindingKind.TOLERATED), TOLERATED_GRAVITY)
    for severity, grave in GRAVITY.items():
        gravity = gravity.when(f.col("severity") == severity, grave)
    ordered = {"gravity": gravity.otherwise(-1), "left": f.coalesce("left", f.lit("")), "right": f.coalesce("right", f.lit(""))}
    return frame.repartition(1).sortWithinPartitions(*(ordered.get(name, f.col(name)) for name in ORDER))
