"""datacompy's comparison for Spark, on a Spark of its own with what memory it needs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from datacompy import SparkSQLCompare

from bench.contenders import Play
from bench.contenders.fields import compared
from bench.contenders.spark_server import own_server
from bench.raw import KINDS
from domain.drift import records
from spark.session.connect import new_session_id, session

MEMORY = "3g"


@contextmanager
def compared_by_datacompy(inputs: Path, own: Path) -> Iterator[Play]:
    with own_server(inputs, own, MEMORY) as endpoint, session(endpoint, new_session_id()) as spark:

        def play(out: Path) -> dict[str, int]:
            found = {"missing_left": 0, "missing_right": 0, "differs": 0}
            for kind in KINDS:
                for what, count in _told(spark, inputs / "staged", kind).items():
                    found[what] += count
            spark.catalog.clearCache()
            return found

        yield play


def _told(spark: Any, staged: Path, name: str) -> dict[str, int]:  # noqa: ANN401 - PySpark has no types here
    """The comparison itself has counted, column by column, and the rows that one side lacks are counted from it."""
    kind = records.KINDS[name]
    keys, values = [key.name for key in kind.keys], compared(kind)
    left, right = (spark.read.parquet(str(staged / side / name)).select(*keys, *values) for side in ("left", "right"))
    comparison = SparkSQLCompare(spark, left, right, join_columns=keys)
    return {
        "missing_left": comparison.df2_unq_rows.count(),
        "missing_right": comparison.df1_unq_rows.count(),
        "differs": sum(column["unequal_cnt"] for column in comparison.column_stats),
    }
