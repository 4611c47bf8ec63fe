"""The rows that hashes did not prove equal, grouped by their true keys, and what each left row may be equal to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from domain.drift.records import RowKind
from spark.comparing.fields import FieldMarks, Mask
from spark.comparing.match import Hashes, Indices, Unsettled, group_by_key


class RowSet(Protocol):
    """Staged rows of one kind. Their order is the same whichever columns are asked for."""

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Of all rows, these columns."""

    def whole(self) -> pa.Table:
        """All rows with all columns."""


@dataclass(frozen=True)
class Sides:
    """`journal`: versions of right rows after the cut."""

    left: RowSet
    right: RowSet
    journal: RowSet


@dataclass(frozen=True)
class Rest:
    """`*_groups`: the number of its key for each row. `versions` are in the order in which they were made."""

    left: pa.Table
    right: pa.Table
    versions: pa.Table
    left_groups: Indices
    right_groups: Indices
    version_groups: Indices
    is_deletion: Mask
    count: int

    @classmethod
    def read(cls, kind: RowKind, sides: Sides, unsettled: Unsettled) -> "Rest":
        left = sides.left.whole().take(pa.array(unsettled.left))
        right = sides.right.whole().take(pa.array(unsettled.right))
        versions = _versions_of(sides.journal, left, right)
        is_deletion = versions.column("is_deleted").to_numpy().astype(np.bool_)
        versions = versions.select(right.column_names)
        together = pa.concat_tables([left, right, versions])
        groups = group_by_key(together.select([key.name for key in kind.keys]), Hashes.of(together).keys)
        of_left, of_right, of_versions = np.split(groups, np.cumsum([left.num_rows, right.num_rows]))
        return cls(left, right, versions, of_left, of_right, of_versions, is_deletion, int(groups.max()) + 1)

    @property
    def left_counts(self) -> Indices:
        return np.bincount(self.left_groups, minlength=self.count)

    @property
    def right_counts(self) -> Indices:
        return np.bincount(self.right_groups, minlength=self.count)

    @property
    def is_double(self) -> Mask:
        """Keys that one side has more than once."""
        return (self.left_counts > 1) | (self.right_counts > 1)

    @property
    def was_deleted(self) -> Mask:
        is_deleted = np.zeros(self.count, dtype=np.bool_)
        is_deleted[self.version_groups[self.is_deletion]] = True
        return is_deleted


def _versions_of(journal: RowSet, left: pa.Table, right: pa.Table) -> pa.Table:
    """Of the keys that are left over, in the order in which the quorum made them."""
    wanted = np.concatenate([Hashes.of(left).keys, Hashes.of(right).keys])
    hashes = Hashes.of(journal.columns(("key_hash", "row_hash")))
    versions = journal.whole().take(pa.array(np.flatnonzero(np.isin(hashes.keys, wanted))))
    return versions.sort_by([("at", "ascending"), ("row_hash", "ascending")])


@dataclass(frozen=True)
class Candidates:
    """Pairs of a left row and a row that it may be equal to: the cut's row of its key first, then the versions in order.

    `left`: rows of `Rest.left`. `other`: rows of `Rest.right` followed by those of `Rest.versions`.
    """

    groups: Indices
    left: Indices
    other: Indices
    is_of_cut: Mask

    @classmethod
    def of(cls, rest: Rest) -> "Candidates":
        left_of, right_of = (np.full(rest.count, -1) for _ in range(2))
        left_of[rest.left_groups] = np.arange(rest.left.num_rows)
        right_of[rest.right_groups] = np.arange(rest.right.num_rows)
        is_asked = (left_of >= 0) & ~rest.is_double
        paired = np.flatnonzero(is_asked & (right_of >= 0))
        versions = np.flatnonzero(is_asked[rest.version_groups] & ~rest.is_deletion)
        groups = np.concatenate([paired, rest.version_groups[versions]])
        other = np.concatenate([right_of[paired], rest.right.num_rows + versions])
        return cls(groups, left_of[groups], other, np.arange(len(groups)) < len(paired))

    def rows(self, rest: Rest) -> tuple[pa.Table, pa.Table]:
        others = pa.concat_tables([rest.right, rest.versions])
        return rest.left.take(pa.array(self.left)), others.take(pa.array(self.other))

    def answers(self, marks: Sequence[FieldMarks]) -> Indices:
        """One candidate at most for each key: one that agrees, best without anything unknown; else the row of the cut."""
        unknown = sum_of([mark.is_unknown for mark in marks], len(self.groups))
        differs = sum_of([mark.differs for mark in marks], len(self.groups)) > 0
        order = np.lexsort((np.arange(len(self.groups)), np.where(differs, 0, unknown), differs, self.groups))
        groups = self.groups[order]
        is_first = np.ones(len(order), dtype=np.bool_)
        is_first[1:] = groups[1:] != groups[:-1]
        best = order[is_first]
        answers: Indices = best[self.is_of_cut[best] | ~differs[best]]
        return answers


def sum_of(masks: Sequence[Mask], length: int) -> npt.NDArray[np.int64]:
    """How many of them are set, for each row."""
    counts: npt.NDArray[np.int64] = np.sum([np.zeros(length, dtype=np.int64), *masks], axis=0, dtype=np.int64)
    return counts
