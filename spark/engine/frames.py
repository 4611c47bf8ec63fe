"""What is done with findings in Spark: pure functions from DataFrame to DataFrame, the same as those of `spark.findings`."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame

from domain.drift.explaining import DUPLICATE_RULE
from domain.drift.report import FindingKind
from domain.drift.tolerations import Toleration
from spark.findings import DRIFTS, GRAVITY, ORDER, TOLERATED_GRAVITY, UNVERIFIABLE_GRAVITY


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
