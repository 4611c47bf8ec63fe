"""Findings as Arrow tables: their columns, their order, which are tolerated, and how many there are of each."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from domain.drift.explaining import DUPLICATE_RULE
from domain.drift.records import Severity
from domain.drift.report import DriftFinding, FindingKind
from domain.drift.tolerations import Toleration

MISSING_RULE = "missing-row"

FINDINGS_SCHEMA = pa.schema(
    [
        pa.field("record", pa.string(), nullable=False),
        pa.field("finding", pa.string(), nullable=False),
        pa.field("severity", pa.string(), nullable=False),
        pa.field("rule", pa.string(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("field", pa.string(), nullable=False),
        pa.field("left", pa.string()),
        pa.field("right", pa.string()),
        pa.field("left_at", pa.string(), nullable=False),
        pa.field("right_at", pa.string(), nullable=False),
        pa.field("is_redacted", pa.bool_(), nullable=False),
        pa.field("tolerated_by", pa.string(), nullable=False),
    ]
)

ORDER = ("gravity", "record", "key", "field", "finding", "left", "right", "left_at", "right_at")
"""What findings are sorted by: bytes of text, null like empty. `gravity` is no column, see `gravity_of`."""

DRIFTS = (FindingKind.MISSING_LEFT, FindingKind.MISSING_RIGHT, FindingKind.DIFFERS)
GRAVITY: dict[str, int] = {Severity.BLOCK: 0, Severity.WARN: 1, Severity.INFO: 2}
UNVERIFIABLE_GRAVITY = 3
TOLERATED_GRAVITY = 4


def tolerate(findings: pa.Table, tolerations: Sequence[Toleration]) -> pa.Table:
    """Drift that the policy names becomes `tolerated`, with who accepted it and why. The first that fits is named."""
    is_drift = pc.is_in(findings.column("finding"), pa.array([str(kind) for kind in DRIFTS]))
    may_be = pc.and_(is_drift, pc.not_equal(findings.column("rule"), DUPLICATE_RULE))
    by = findings.column("tolerated_by")
    for toleration in reversed(tolerations):
        fits = pc.and_(may_be, pc.equal(findings.column("record"), toleration.record))
        for column, wanted in (("key", toleration.key), ("field", toleration.field)):
            if wanted:
                fits = pc.and_(fits, pc.equal(findings.column(column), wanted))
        by = pc.if_else(fits, toleration.named, by)
    kinds = pc.if_else(pc.not_equal(by, ""), str(FindingKind.TOLERATED), findings.column("finding"))
    return _with(_with(findings, "finding", kinds), "tolerated_by", by)


def _with(table: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at), column)


def in_order(findings: pa.Table) -> pa.Table:
    """The gravest first, and always the same for the same findings."""
    sortable = findings.append_column("gravity", gravity_of(findings))
    for name in ("left", "right"):
        at = sortable.schema.get_field_index(name)
        sortable = sortable.set_column(at, name, pc.fill_null(sortable.column(name), ""))
    return findings.take(pc.sort_indices(sortable, sort_keys=[(name, "ascending") for name in ORDER]))


def gravity_of(findings: pa.Table) -> pa.ChunkedArray:
    """0 for a drift that blocks, 1 for one that warns, 2 for one to be known; then what is unverifiable, then tolerated."""
    gravity = pc.index_in(findings.column("severity"), pa.array(list(GRAVITY)))
    is_kind = {kind: pc.equal(findings.column("finding"), str(kind)) for kind in FindingKind}
    gravity = pc.if_else(is_kind[FindingKind.UNVERIFIABLE], UNVERIFIABLE_GRAVITY, gravity)
    return pc.if_else(is_kind[FindingKind.TOLERATED], TOLERATED_GRAVITY, gravity).cast(pa.int32())


def finding_counts(findings: pa.Table) -> dict[tuple[str, str], int]:
    """How many there are, by record and kind of finding."""
    grouped = findings.group_by(["record", "finding"]).aggregate([([], "count_all")])
    columns = (grouped.column(name).to_pylist() for name in ("record", "finding", "count_all"))
    return {(record, finding): count for record, finding, count in zip(*columns, strict=True)}


def tolerated_in(findings: pa.Table) -> set[tuple[str, str]]:
    """Which tolerations were used: the record, and the toleration as it is named."""
    used = findings.filter(pc.equal(findings.column("finding"), str(FindingKind.TOLERATED)))
    grouped = used.group_by(["record", "tolerated_by"]).aggregate([])
    return {(row["record"], row["tolerated_by"]) for row in grouped.to_pylist()}


def as_models(findings: pa.Table | pa.RecordBatch) -> tuple[DriftFinding, ...]:
    return tuple(DriftFinding.model_validate(row) for row in findings.to_pylist())
