"""Keys and values as the texts that a report shows. A secret is never a text."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from domain.drift.normalise import DEFAULT_ENTITY, uuid_text
from domain.drift.records import Field, FieldType, RowKind, Rule
from domain.drift.znode_paths import own_paths_of

REDACTED = "(redacted)"
PRESENT = "present"

Origin = tuple[str, int, int]
"""Segment, batch and `at` of a row."""


def key_texts(kind: RowKind, rows: pa.Table, names: Mapping[str, str]) -> pa.Array:
    """No two keys of a kind have the same text, as long as no two topics have the same name."""
    if kind.name == "partition":
        return _partition_texts(rows, names)
    parts = [_escaped(_column(rows, field), is_only=len(kind.keys) == 1) for field in kind.keys]
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "/")


def _partition_texts(rows: pa.Table, names: Mapping[str, str]) -> pa.Array:
    """Kafka's own way: topic, hyphen, number. A topic without a known name is shown by its id."""
    ids = [uuid_text(topic) for topic in rows.column("topic_id").to_pylist()]
    topics = [names.get(topic, topic) for topic in ids]
    numbers = rows.column("partition").combine_chunks().cast(pa.string())
    return pc.binary_join_element_wise(pa.array(topics, pa.string()), numbers, "-")


def _escaped(part: pa.Array, is_only: bool) -> pa.Array:
    if is_only:
        return part
    escaped = pc.replace_substring(pc.replace_substring(part, "\\", "\\\\"), "/", "\\/")
    escaped = pc.if_else(pc.equal(part, DEFAULT_ENTITY), "\\" + DEFAULT_ENTITY, escaped)
    return pc.if_else(pc.equal(part, ""), DEFAULT_ENTITY, escaped)


def _column(rows: pa.Table, field: Field) -> pa.Array:
    return rows.column(field.name).combine_chunks()


def value_texts(field: Field, rows: pa.Table, is_secret: npt.NDArray[np.bool_]) -> pa.Array:
    """Null stays null. `is_secret`: rows whose value would give a secret away, whatever the field."""
    texts = _plain_texts(field, _column(rows, field))
    is_hidden = pc.not_equal(texts, "") if field.rule is Rule.DIGEST else pc.and_(pa.array(is_secret), texts.is_valid())
    return pc.if_else(is_hidden, REDACTED, texts)


def _plain_texts(field: Field, column: pa.Array) -> pa.Array:
    if field.type is not FieldType.INTS:
        return column.cast(pa.string())
    words = pa.ListArray.from_arrays(_offsets(column), column.flatten().cast(pa.string()))
    texts = pc.binary_join_element_wise("[", pc.binary_join(words, ", "), "]", "")
    return pc.if_else(column.is_valid(), texts, pa.scalar(None, pa.string()))


def _offsets(lists: pa.Array) -> pa.Array:
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate(([0], np.cumsum(sizes))).astype(np.int32))


def secrets_in(kind: RowKind, *sides: pa.Table) -> npt.NDArray[np.bool_]:
    """Rows of a config that one side at least holds for a secret: its value is null, and its digest says there is one."""
    is_secret = np.zeros(sides[0].num_rows, dtype=np.bool_)
    if kind.name == "broker-config":
        for side in sides:
            is_plain = pc.fill_null(pc.equal(side.column("digest"), ""), False)
            is_secret |= ~np.asarray(is_plain)
    return is_secret


def row_texts(kind: RowKind, rows: pa.Table) -> pa.Array:
    """All compared fields of a row, for a side that lacks it."""
    fields: Sequence[Field] = [field for field in kind.values if field.rule is not Rule.NOT_COMPARED]
    if not fields:
        return pa.array([PRESENT] * rows.num_rows, pa.string())
    nobody = secrets_in(kind, rows)
    parts: list[pa.Array | str] = []
    for field in fields:
        parts.extend((f"{field.name}=", pc.fill_null(value_texts(field, rows, nobody), "null"), " "))
    return pc.binary_join_element_wise(*parts[:-1], "")


def places(kind: RowKind, rows: pa.Table, names: Mapping[str, str]) -> pa.Array:
    """One text for each row. `names`: of topics, by id."""
    origins = zip(*(rows.column(name).to_pylist() for name in ("segment", "batch", "at")), strict=True)
    keys = zip(*(rows.column(field.name).to_pylist() for field in kind.keys), strict=True)
    return pa.array([_place(kind, key, origin, names) for key, origin in zip(keys, origins, strict=True)], pa.string())


def _place(kind: RowKind, key: tuple[object, ...], origin: Origin, names: Mapping[str, str]) -> str:
    segment, batch, at = origin
    if segment and not segment.startswith("snapshot."):
        return f"{segment} at byte {batch}, offset {at}"
    place = _znode(kind, key, names) + (f" mzxid {hex(at)}" if at >= 0 else "")
    return f"{place}, {segment} at byte {batch}" if segment else place


def _znode(kind: RowKind, key: tuple[object, ...], names: Mapping[str, str]) -> str:
    """The one that is the row's own, as Kafka spells it."""
    return next(iter(own_paths_of(kind.name, key, names)), "a topic without a name")
