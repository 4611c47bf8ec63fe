"""Tasks on Spark's executors: what they run, and what they tell. Nothing here needs a session.

What a task tells is a row with a packed text. Errors of ours come back so too: Spark would try again what can never work, and
tells nobody what kind of error it was. All others are Spark's to repeat.
"""

import base64
import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from domain.errors import KeeperlessError
from spark.engine.tasks import CompareTask, StageTask, added
from spark.findings import FINDINGS_SCHEMA

TOLD_SCHEMA = pa.schema([pa.field("told", pa.string())])
OUTCOME_SCHEMA = pa.schema([*(pa.field(field.name, field.type) for field in FINDINGS_SCHEMA), *TOLD_SCHEMA])
"""Findings, whose `told` is null, and one row for each task that has nothing but that."""

T = TypeVar("T")
Batches = Iterator[pa.RecordBatch]


def staging(session: SparkSession, tasks: Sequence[StageTask]) -> DataFrame:
    """Each task writes its own files, under names of this attempt, and tells what they are. Rows never pass the JVM."""
    return _on_executors(session, _stage, tasks, TOLD_SCHEMA)


def comparing(session: SparkSession, tasks: Sequence[CompareTask]) -> DataFrame:
    """All findings, and for each task how many rows of each kind it saw."""
    return _on_executors(session, _compare, tasks, OUTCOME_SCHEMA)


def _on_executors(session: SparkSession, run: Callable[[T], Batches], tasks: Sequence[T], schema: pa.Schema) -> DataFrame:
    """One Spark task for each of ours, by its number."""
    numbers = session.range(0, len(tasks), 1, max(1, len(tasks)))
    return numbers.mapInArrow(partial(_by_number, run, tuple(tasks)), columns_of(schema))


def columns_of(schema: pa.Schema) -> str:
    """As Spark declares them."""
    return ", ".join(f"`{field.name}` {'boolean' if field.type == pa.bool_() else 'string'}" for field in schema)


def _by_number(run: Callable[[T], Batches], tasks: Sequence[T], batches: Iterable[pa.RecordBatch]) -> Batches:
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield from run(tasks[number])


def _stage(task: StageTask) -> Batches:
    try:
        told: object = (str(task.directory), task.run(uuid4().hex, _never))
    except KeeperlessError as error:
        told = error
    yield pa.RecordBatch.from_pylist([{"told": packed(told)}], TOLD_SCHEMA)


def _compare(task: CompareTask) -> Batches:
    rows: dict[str, tuple[int, int, int]] = {}
    try:
        for kind, compared in task.run(_never):
            rows[kind] = added(rows.get(kind, (0, 0, 0)), compared)
            untold = pa.nulls(compared.findings.num_rows, pa.string())
            yield from compared.findings.append_column("told", untold).cast(OUTCOME_SCHEMA).to_batches()
        yield _telling(rows)
    except KeeperlessError as error:
        yield _telling(error)


def _telling(told: object) -> pa.RecordBatch:
    """A row that is no finding."""
    empty = {field.name: "" for field in FINDINGS_SCHEMA if field.type == pa.string()}
    return pa.RecordBatch.from_pylist([{**empty, "is_redacted": False, "told": packed(told)}], OUTCOME_SCHEMA)


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
