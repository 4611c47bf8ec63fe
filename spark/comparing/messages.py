"""Batches before and after: in the offsets that both looks have read of a replica, they are the same (rule 2 of
`domain.drift.messages`).

Pure functions on Arrow tables. Two looks at one replica need no other's rows, so any split by topic, partition and broker
gives the same findings: that is how Spark carries it out.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from domain.drift.messages import BATCH, BATCH_ROWS, COMPARED, SEVERITY, MessageRule, Span
from domain.drift.records import Severity
from domain.drift.report import DriftFinding, FindingKind
from spark.findings import FINDINGS_SCHEMA

REPLICA = ["topic", "partition", "broker"]
KEYS = [one.name for one in BATCH_ROWS.keys]
COLUMNS = [one.name for one in COMPARED]
CARRIED = [*COLUMNS, "is_damaged", "segment", "position"]
SPAN_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("broker", pa.int32(), nullable=False),
        pa.field("begin", pa.int64(), nullable=False),
        pa.field("end", pa.int64(), nullable=False),
    ]
)
CRC = "checksum"


@dataclass(frozen=True)
class ComparedBatches:
    """Batches on each side in the spans, those that are the same and whole, and the findings."""

    left: int
    right: int
    equal: int
    findings: pa.Table = field(repr=False)


def span_table(spans: Iterable[Span]) -> pa.Table:
    rows = [{name: getattr(span, name) for name in SPAN_SCHEMA.names} for span in spans]
    return pa.Table.from_pylist(rows, schema=SPAN_SCHEMA)


def finding_table(findings: Iterable[DriftFinding]) -> pa.Table:
    return pa.Table.from_pylist([one.model_dump(mode="json") for one in findings], schema=FINDINGS_SCHEMA)


def compare_batches(before: pa.Table, after: pa.Table, spans: pa.Table) -> ComparedBatches:
    """`spans`: of at least all replicas that have batches to be compared here."""
    left, right = _within(before, spans), _within(after, spans)
    both = _renamed(left, "left").join(_renamed(right, "right"), KEYS, join_type="full outer").combine_chunks()
    has_left, has_right = pc.is_valid(both.column("left_crc")), pc.is_valid(both.column("right_crc"))
    is_pair = pc.and_(has_left, has_right)
    differs = {name: _all(is_pair, pc.not_equal(both.column(f"left_{name}"), both.column(f"right_{name}"))) for name in COLUMNS}
    is_damaged = pc.fill_null(both.column("right_is_damaged"), False)
    parts = [
        _findings(both, pc.invert(has_right), FindingKind.MISSING_RIGHT),
        _findings(both, pc.invert(has_left), FindingKind.MISSING_LEFT),
        *(_findings(both, mask, FindingKind.DIFFERS, name) for name, mask in differs.items()),
        _damage(both, is_damaged),
    ]
    is_wrong = is_damaged
    for mask in (*differs.values(), pc.invert(is_pair)):
        is_wrong = pc.or_(is_wrong, mask)
    equal = both.num_rows - int(pc.sum(is_wrong, min_count=0).as_py())
    return ComparedBatches(left.num_rows, right.num_rows, equal, pa.concat_tables(parts))


def _within(batches: pa.Table, spans: pa.Table) -> pa.Table:
    """Batches of the spans: all of whose records lie below their ends, and some at their begins or behind them."""
    found = batches.select([*KEYS, *CARRIED]).join(spans, REPLICA, join_type="inner")
    last = found.column("last_offset")
    is_inside = pc.and_(pc.greater_equal(last, found.column("begin")), pc.less(last, found.column("end")))
    return found.filter(is_inside).select([*KEYS, *CARRIED])


def _renamed(batches: pa.Table, side: str) -> pa.Table:
    return batches.rename_columns([name if name in KEYS else f"{side}_{name}" for name in batches.column_names])


def _all(first: pa.ChunkedArray, second: pa.ChunkedArray) -> pa.ChunkedArray:
    """Null means no: there is nothing to compare with."""
    return pc.fill_null(pc.and_kleene(first, second), False)


def _findings(both: pa.Table, mask: pa.ChunkedArray, kind: FindingKind, name: str = "") -> pa.Table:
    found = both.filter(mask)
    values = [found.column(f"{side}_{name}").cast(pa.string()) if name else _nulls(found) for side in ("left", "right")]
    severity = _constant(found, SEVERITY[MessageRule.BATCH])
    return _table(found, kind, severity, MessageRule.BATCH, name, values)


def _damage(both: pa.Table, is_damaged: pa.ChunkedArray) -> pa.Table:
    """Damage that was there before warns only."""
    found = both.filter(is_damaged)
    was_damaged = pc.fill_null(found.column("left_is_damaged"), False)
    severity = pc.if_else(was_damaged, str(Severity.WARN), str(SEVERITY[MessageRule.CHECKSUM]))
    left = pc.if_else(was_damaged, "wrong", "not seen to be wrong")
    return _table(found, FindingKind.DIFFERS, severity, MessageRule.CHECKSUM, CRC, [left, _constant(found, "wrong")])


def _table(
    found: pa.Table, kind: FindingKind, severity: pa.ChunkedArray, rule: MessageRule, name: str, values: list[pa.ChunkedArray]
) -> pa.Table:
    constants = {"record": BATCH, "finding": str(kind), "rule": str(rule), "field": name, "tolerated_by": ""}
    columns = {column: _constant(found, text) for column, text in constants.items()}
    columns |= {"key": _key(found), "severity": severity, "left": values[0], "right": values[1]}
    columns |= {"left_at": _place(found, "left"), "right_at": _place(found, "right")}
    columns["is_redacted"] = pa.repeat(False, found.num_rows)
    return pa.table([columns[one.name] for one in FINDINGS_SCHEMA], schema=FINDINGS_SCHEMA)


def _key(found: pa.Table) -> pa.ChunkedArray:
    """As `orders-3 broker-1 offset 1200`."""
    topic, partition, broker, offset = (found.column(name).cast(pa.string()) for name in KEYS)
    return pc.binary_join_element_wise(topic, "-", partition, " broker-", broker, " offset ", offset, "")


def _place(found: pa.Table, side: str) -> pa.ChunkedArray:
    """As `00000000000000001200.log byte 0`; empty where there is no such batch."""
    segment, position = (found.column(f"{side}_{name}").cast(pa.string()) for name in ("segment", "position"))
    named = pc.binary_join_element_wise(pc.utf8_lpad(segment, 20, "0"), ".log byte ", position, "")
    return pc.fill_null(named, "")


def _constant(found: pa.Table, text: str) -> pa.Array:
    return pa.repeat(str(text), found.num_rows)


def _nulls(found: pa.Table) -> pa.Array:
    return pa.nulls(found.num_rows, pa.string())
