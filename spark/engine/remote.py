"""Tasks on Spark's executors: what they run, and what they tell. Nothing here needs a session.

What a task tells is a row with a packed text. Errors of ours come back so too: Spark would try again what can never work, and
tells nobody what kind of error it was. All others are Spark's to repeat.
"""

import base64
import pickle
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from domain.errors import KeeperlessError
from spark.engine.tasks import NO_ROWS, CompareTask, RowCounts, StageTask, added
from spark.findings import FINDINGS_SCHEMA
from spark.staging import StagedFile

TOLD_SCHEMA = pa.schema([pa.field("told", pa.string())])

MORE_THAN_CORES = 1024
"""Rows, which Spark spreads over as many tasks as it has cores."""

T = TypeVar("T")


def staging(session: SparkSession, tasks: Sequence[StageTask]) -> DataFrame:
    """Each task writes its own files, under names of this attempt, and tells what they are. Rows never pass the JVM."""
    return _on_executors(session, _stage, tasks)


def comparing(session: SparkSession, tasks: Sequence[CompareTask], directory: Path) -> DataFrame:
    """Each task writes its findings as one file, and tells the file's name and how many rows of each kind it saw."""
    return _on_executors(session, partial(_compare, directory), tasks)


def warm_up(session: SparkSession) -> None:
    """Have Spark's Python import all that tasks need, in a process for each of its cores, and the JVM load what reads a file
    and shuffles. Whether both see the same files is for the checks to find.
    """
    session.range(MORE_THAN_CORES).mapInArrow(_import_only, columns_of(TOLD_SCHEMA)).toArrow()
    with tempfile.TemporaryDirectory(prefix="keeperless-spark-") as folder, suppress(AnalysisException):
        pq.write_table(TOLD_SCHEMA.empty_table(), Path(folder) / "none.parquet")
        session.read.parquet(folder).repartition(2, "told").mapInArrow(_import_only, columns_of(TOLD_SCHEMA)).toArrow()


def _import_only(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What this module imports is there before it is called."""
    for _ in batches:
        yield from ()


def _on_executors(session: SparkSession, run: Callable[[T], object], tasks: Sequence[T]) -> DataFrame:
    """One Spark task for each of ours, by its number."""
    numbers = session.range(0, len(tasks), 1, max(1, len(tasks)))
    return numbers.mapInArrow(partial(_by_number, run, tuple(tasks)), columns_of(TOLD_SCHEMA))


def columns_of(schema: pa.Schema) -> StructType:
    """As Spark declares them. It would ask the server what they mean, were they text."""
    types = {pa.bool_(): BooleanType(), pa.string(): StringType()}
    return StructType([StructField(field.name, types[field.type]) for field in schema])


def _by_number(run: Callable[[T], object], tasks: Sequence[T], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        told = [{"told": packed(_told(run, tasks[number]))} for number in batch.column("id").to_pylist()]
        yield pa.RecordBatch.from_pylist(told, TOLD_SCHEMA)


def _told(run: Callable[[T], object], task: T) -> object:
    try:
        return run(task)
    except KeeperlessError as error:
        return error


def _stage(task: StageTask) -> tuple[str, tuple[StagedFile, ...]]:
    return str(task.directory), task.run(uuid4().hex, _never)


def _compare(directory: Path, task: CompareTask) -> tuple[str, RowCounts]:
    """The file's name is this attempt's own: what a dead attempt has written is told by nobody, and stays unread."""
    rows: RowCounts = {}
    name = f"{uuid4().hex}.parquet"
    with pq.ParquetWriter(directory / name, FINDINGS_SCHEMA) as writer:
        for kind, compared in task.run(_never):
            rows[kind] = added(rows.get(kind, NO_ROWS), (compared.left, compared.right, compared.equal))
            writer.write_table(compared.findings)
    return name, rows


def _never() -> None:
    """Spark itself ends tasks that nobody wants any more."""


def packed(told: object) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(told))).decode()


def unpacked(text: str) -> Any:  # noqa: ANN401
    """What a task of ours told, or the error that ended it."""
    told = pickle.loads(zlib.decompress(base64.b64decode(text)))  # noqa: S301
    if isinstance(told, KeeperlessError):
        raise told
    return told
