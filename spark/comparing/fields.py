"""When two values agree: one function for each rule, over two columns of the same length. True equality, no hashes."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from domain.drift.records import PARTITION, TOKEN, Field, RowKind, Rule, Severity

Mask = npt.NDArray[np.bool_]

NUMBER_TOLERANCE = 1e-6
OLDER = -1
"""`at` of a row that may have changed between its reading and the moment that is compared."""


@dataclass(frozen=True)
class Circumstances:
    """When the sides were read: see `spark.job.CheckJob`."""

    is_before_dual_write: bool = False
    is_left_older: bool = False


@dataclass(frozen=True)
class FieldMarks:
    """For each pair of rows: does this field differ, or can it not be known. `expected_from`: the left row's field."""

    field: Field
    expected_from: Field
    differs: Mask
    is_unknown: Mask

    def of_rows(self, rows: npt.NDArray[np.int64]) -> "FieldMarks":
        return replace(self, differs=self.differs[rows], is_unknown=self.is_unknown[rows])


def compare_fields(kind: RowKind, left: pa.Table, right: pa.Table, when: Circumstances) -> list[FieldMarks]:
    """`left`, `right`: rows of the same keys, in the same order."""
    compared = [field for field in kind.values if field.rule is not Rule.NOT_COMPARED]
    marks = [_compare(field, _expected_from(kind, field, when), left, right) for field in compared]
    return [_at_that_time(kind, mark, left, right) for mark in marks] if when.is_left_older else marks


def _at_that_time(kind: RowKind, mark: FieldMarks, left: pa.Table, right: pa.Table) -> FieldMarks:
    """What changes by itself is compared only where the row is known to be of that time; so is an assignment where a
    reassignment was under way on either side; and producer ids only go up.
    """
    is_older = left.column("at").to_numpy() == OLDER
    if mark.field.severity is Severity.WARN or (kind is TOKEN and mark.field.name == "expires"):
        return replace(mark, differs=mark.differs & ~is_older)
    if kind is PARTITION:
        return replace(mark, differs=mark.differs & ~(is_older & (_is_moving(left) | _is_moving(right))))
    if mark.field.rule is Rule.PRODUCER_BLOCK:
        went_down = pc.less(right.column(mark.field.name), left.column(mark.expected_from.name))
        return replace(mark, differs=mark.differs & np.asarray(pc.fill_null(went_down, True)))
    return mark


def _is_moving(partitions: pa.Table) -> Mask:
    lists = (partitions.column(name).combine_chunks() for name in ("adding", "removing"))
    adding, removing = (_sizes(each) > 0 for each in lists)
    return np.asarray(adding | removing)


def _expected_from(kind: RowKind, field: Field, when: Circumstances) -> Field:
    """Kafka's copy goes on behind ZooKeeper's newest block of producer ids; dual write makes it begin there, in time."""
    if field.rule is Rule.PRODUCER_BLOCK and when.is_before_dual_write:
        return next(other for other in kind.values if other.name == "next")
    return field


def _compare(field: Field, expected_from: Field, left_rows: pa.Table, right_rows: pa.Table) -> FieldMarks:
    left, right = (rows.column(one.name).combine_chunks() for rows, one in ((left_rows, expected_from), (right_rows, field)))
    is_unknown = np.zeros(len(left), dtype=np.bool_)
    if field.rule is Rule.DIGEST:
        is_unknown = ~(_valid(left) & _valid(right))
    differs = _DIFFER[field.rule](left, right)
    if field.rule is Rule.PRODUCER_BLOCK:
        # Dual write writes ZooKeeper's block when KRaft hands out its next one: until then it is as the copy has found it.
        differs &= _differ_exactly(left_rows.column("next").combine_chunks(), right)
    return FieldMarks(field, expected_from, differs & ~is_unknown, is_unknown)


def _valid(column: pa.Array) -> Mask:
    return np.asarray(column.is_valid())


def _differ_exactly(left: pa.Array, right: pa.Array) -> Mask:
    """Null equals null and nothing else."""
    have, also = _valid(left), _valid(right)
    if pa.types.is_list(left.type):
        unequal = _lists_differ(left, right)
    else:
        unequal = np.asarray(pc.fill_null(pc.not_equal(left, right), False))
    differs: Mask = (have != also) | (have & also & unequal)
    return differs


def _lists_differ(left: pa.Array, right: pa.Array) -> Mask:
    sizes, others = _sizes(left), _sizes(right)
    differs: Mask = sizes != others
    rows = np.flatnonzero(~differs)
    unequal = np.asarray(pc.not_equal(left.take(pa.array(rows)).flatten(), right.take(pa.array(rows)).flatten()))
    owners = np.repeat(rows, sizes[rows])
    differs[owners[unequal]] = True
    return differs


def _sizes(lists: pa.Array) -> npt.NDArray[np.int64]:
    sizes: npt.NDArray[np.int64] = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return sizes


def _sets_differ(left: pa.Array, right: pa.Array) -> Mask:
    differs = _differ_exactly(left, right)
    rows = np.flatnonzero(differs & _valid(left) & _valid(right))
    if rows.size:
        some = pa.array(rows)
        as_sets = _number_sets_differ if pa.types.is_list(left.type) else _text_sets_differ
        differs[rows] = as_sets(left.take(some), right.take(some))
    return differs


def _number_sets_differ(left: pa.Array, right: pa.Array) -> Mask:
    return _lists_differ(_as_sets(left), _as_sets(right))


def _as_sets(lists: pa.Array) -> pa.Array:
    """Sorted, each number once."""
    owners = np.repeat(np.arange(len(lists)), _sizes(lists))
    values = lists.flatten().to_numpy()
    order = np.lexsort((values, owners))
    owners, values = owners[order], values[order]
    is_new = np.ones(len(values), dtype=np.bool_)
    is_new[1:] = (owners[1:] != owners[:-1]) | (values[1:] != values[:-1])
    sizes = np.bincount(owners[is_new], minlength=len(lists))
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values[is_new]))


def _text_sets_differ(left: pa.Array, right: pa.Array) -> Mask:
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    return np.fromiter((_members(one) != _members(other) for one, other in pairs), dtype=np.bool_, count=len(left))


def _members(text: str) -> frozenset[str] | str:
    """Of a JSON array. What is none is compared as it stands."""
    try:
        told = json.loads(text)
    except ValueError:
        return text
    return frozenset(json.dumps(member, sort_keys=True) for member in told) if isinstance(told, list) else text


def _numbers_differ(left: pa.Array, right: pa.Array) -> Mask:
    have, also = _valid(left), _valid(right)
    one, other = (column.fill_null(0.0).to_numpy(zero_copy_only=False) for column in (left, right))
    with np.errstate(invalid="ignore", over="ignore"):
        is_near = np.abs(one - other) <= NUMBER_TOLERANCE * np.maximum(np.abs(one), np.abs(other))
    is_endless = np.isinf(one) | np.isinf(other)
    agrees = (one == other) | (is_near & ~is_endless) | (np.isnan(one) & np.isnan(other))
    differs: Mask = (have != also) | (have & also & ~agrees)
    return differs


_DIFFER: dict[Rule, Callable[[pa.Array, pa.Array], Mask]] = {
    Rule.EXACT: _differ_exactly,
    Rule.SET: _sets_differ,
    Rule.NUMBER: _numbers_differ,
    Rule.DIGEST: _differ_exactly,
    Rule.PRODUCER_BLOCK: _differ_exactly,
}


def is_settled_by_hash(kind: RowKind) -> bool:
    """Whether equal hashes are equal rows: not where a null is no value, or where sides are not meant to look the same."""
    return not any(field.rule in (Rule.DIGEST, Rule.PRODUCER_BLOCK) for field in kind.values)
