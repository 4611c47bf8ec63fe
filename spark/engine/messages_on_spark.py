"""Batches compared by Spark: the same kernel, on as many executors as there are.

Rows of one replica meet in one task, whichever side they are of: one shuffle, and no join in the JVM. Spans are few and
travel with the code. Executors and this process share the storage of the files.
"""

import json
from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from domain.drift.message_manifest import MessageComparison
from domain.drift.messages import Span
from spark.codec.segment_manifest import BATCH_SCHEMA
from spark.comparing.messages import REPLICA, ComparedBatches, compare_batches, span_table
from spark.engine.progress import OnProgress
from spark.engine.remote import TOLD_SCHEMA, columns_of
from spark.engine.watched import watched
from spark.findings import FINDINGS_SCHEMA

SIDE = "is_after"
OUTCOME_SCHEMA = pa.schema([*(pa.field(field.name, field.type) for field in FINDINGS_SCHEMA), *TOLD_SCHEMA])
"""Findings, whose `told` is null, and one row for each task that has nothing but that."""


def compare_on_spark(
    session: SparkSession, tasks: int, on_progress: OnProgress, job: MessageComparison, spans: tuple[Span, ...]
) -> ComparedBatches:
    """A `Compare`, once session, number of tasks and `on_progress` are given."""
    sides = _side(session, job.before_batches, False).unionByName(_side(session, job.after_batches, True))
    compared = sides.repartition(tasks, *REPLICA).mapInArrow(partial(_compare, span_table(spans)), columns_of(OUTCOME_SCHEMA))
    with watched(session, "compare", on_progress):
        table = compared.toArrow().cast(OUTCOME_SCHEMA)
    told = [json.loads(text) for text in table.column("told").drop_null().to_pylist()]
    left, right, equal = (sum(one[place] for one in told) for place in range(3))
    findings = table.filter(table.column("told").is_null()).select(FINDINGS_SCHEMA.names).cast(FINDINGS_SCHEMA)
    return ComparedBatches(left, right, equal, findings)


def _side(session: SparkSession, files: Iterable[object], is_after: bool) -> DataFrame:
    paths = [str(file) for file in files]
    names = {"int32": "int", "int64": "bigint", "string": "string", "bool": "boolean"}
    ddl = ", ".join(f"`{one.name}` {names[str(one.type)]}" for one in BATCH_SCHEMA)
    rows = session.read.schema(ddl).parquet(*paths) if paths else session.createDataFrame([], ddl)
    return rows.selectExpr("*", f"{str(is_after).lower()} AS {SIDE}")


def _compare(spans: pa.Table, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One task: all rows of some replicas. What it tells besides is a row that is no finding."""
    held = list(batches)
    if not held:
        return
    rows = pa.Table.from_batches(held)
    is_after = rows.column(SIDE)
    before, after = (rows.filter(mask).select(BATCH_SCHEMA.names) for mask in (pc.invert(is_after), is_after))
    compared = compare_batches(_of_schema(before), _of_schema(after), spans)
    untold = pa.nulls(compared.findings.num_rows, pa.string())
    yield from compared.findings.append_column("told", untold).cast(OUTCOME_SCHEMA).to_batches()
    told = json.dumps([compared.left, compared.right, compared.equal])
    yield pa.RecordBatch.from_pylist([{"told": told}], schema=OUTCOME_SCHEMA)


def _of_schema(table: pa.Table) -> pa.Table:
    """Spark makes every column nullable."""
    return pa.Table.from_arrays([table.column(one.name).cast(one.type) for one in BATCH_SCHEMA], schema=BATCH_SCHEMA)
