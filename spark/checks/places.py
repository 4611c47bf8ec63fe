"""Where a row was read, in words: the znode's path with its mzxid, or the segment with the batch's and the record's place."""

from collections.abc import Mapping

import pyarrow as pa

from domain.drift.records import Kind
from domain.drift.znode_paths import own_paths_of

Origin = tuple[str, int, int]
"""Segment, batch and `at` of a row."""


def places(kind: Kind, rows: pa.Table, names: Mapping[str, str]) -> pa.Array:
    """One text for each row. `names`: of topics, by id."""
    origins = zip(*(rows.column(name).to_pylist() for name in ("segment", "batch", "at")), strict=True)
    keys = zip(*(rows.column(field.name).to_pylist() for field in kind.keys), strict=True)
    return pa.array([_place(kind, key, origin, names) for key, origin in zip(keys, origins, strict=True)], pa.string())


def _place(kind: Kind, key: tuple[object, ...], origin: Origin, names: Mapping[str, str]) -> str:
    segment, batch, at = origin
    if segment and not segment.startswith("snapshot."):
        return f"{segment} at byte {batch}, offset {at}"
    place = _znode(kind, key, names) + (f" mzxid {hex(at)}" if at >= 0 else "")
    return f"{place}, {segment} at byte {batch}" if segment else place


def _znode(kind: Kind, key: tuple[object, ...], names: Mapping[str, str]) -> str:
    """The one that is the row's own, as Kafka spells it."""
    return next(iter(own_paths_of(kind.name, key, names)), "a topic without a name")
