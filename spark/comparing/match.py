"""Which rows belong together: by hash where that is proof, by the true key everywhere else."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark.digest import Words, digest_of

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Hashes:
    keys: Words
    rows: Words

    @classmethod
    def of(cls, table: pa.Table) -> "Hashes":
        return cls(*(table.column(name).to_numpy().view(np.uint64) for name in ("key_hash", "row_hash")))

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True)
class Unsettled:
    """What hashes alone do not prove equal: indices of rows on each side. `equal`: how many rows they do."""

    left: Indices
    right: Indices
    equal: int


def settle(left: Hashes, right: Hashes) -> Unsettled:
    """Equal are rows whose both hashes, 128 bits, agree, and whose key no other row of a side has."""
    if _are_same(left, right):
        nothing = np.array([], dtype=np.int64)
        return Unsettled(nothing, nothing, len(left))
    left_order, right_order = np.argsort(left.keys), np.argsort(right.keys)
    left_keys, right_keys = left.keys[left_order], right.keys[right_order]
    met = np.searchsorted(right_keys, left_keys)
    met[met == len(right_keys)] = 0
    is_met = (right_keys[met] == left_keys) if len(right_keys) else np.zeros(len(left_keys), dtype=np.bool_)
    rows = np.flatnonzero(is_met & _is_alone(left_keys))
    rows = rows[_is_alone(right_keys)[met[rows]]]
    rows = rows[left.rows[left_order][rows] == right.rows[right_order][met[rows]]]
    return Unsettled(_others(left_order, rows), _others(right_order, met[rows]), len(rows))


def _are_same(left: Hashes, right: Hashes) -> bool:
    """Without any key twice, else nobody would ever hear of it."""
    if len(left) != len(right) or digest_of(left.keys, left.rows) != digest_of(right.keys, right.rows):
        return False
    keys = np.sort(left.keys)
    return not bool((keys[1:] == keys[:-1]).any())


def _is_alone(ordered: Words) -> npt.NDArray[np.bool_]:
    is_first = np.ones(len(ordered) + 1, dtype=np.bool_)
    is_first[1:-1] = ordered[1:] != ordered[:-1]
    return is_first[:-1] & is_first[1:]


def _others(order: Indices, settled: Indices) -> Indices:
    is_left_over = np.ones(len(order), dtype=np.bool_)
    is_left_over[settled] = False
    return np.sort(order[is_left_over])


def group_by_key(keys: pa.Table, hashes: Words) -> Indices:
    """A number for each row: the same for equal keys, and for no others. Numbers begin at 0 and none is left out."""
    _, first, groups = np.unique(hashes, return_index=True, return_inverse=True)
    representatives = pa.array(first[groups])
    if all(pc.all(pc.equal(column, column.take(representatives)), min_count=0).as_py() for column in keys.columns):
        return groups.astype(np.int64)
    return _group_one_by_one(keys)


def _group_one_by_one(keys: pa.Table) -> Indices:
    """Two different keys have the same hash: in five million rows that happens once in a million comparisons."""
    numbers: dict[tuple[object, ...], int] = {}
    rows = zip(*(column.to_pylist() for column in keys.columns), strict=True)
    return np.fromiter((numbers.setdefault(row, len(numbers)) for row in rows), dtype=np.int64, count=keys.num_rows)
