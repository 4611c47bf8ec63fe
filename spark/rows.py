"""Arrow schemas of the rows of each kind, from their declaration in `domain.drift.records`."""

from functools import cache

import pyarrow as pa

from domain.drift.records import KINDS, ORIGIN, FieldType

ARROW_TYPES: dict[FieldType, pa.DataType] = {
    FieldType.INT: pa.int32(),
    FieldType.LONG: pa.int64(),
    FieldType.DOUBLE: pa.float64(),
    FieldType.TEXT: pa.string(),
    FieldType.FLAG: pa.bool_(),
    FieldType.INTS: pa.list_(pa.int32()),
    FieldType.UUID: pa.binary(16),
}

VERSION_FIELDS = (pa.field("is_deleted", pa.bool_(), nullable=False),)
"""Rows of a journal have these besides: what a key was at some offset between two points, its absence included."""


@cache
def schema_of(kind: str) -> pa.Schema:
    """Keys, values, origin."""
    fields = (*KINDS[kind].fields, *ORIGIN)
    return pa.schema([pa.field(f.name, ARROW_TYPES[f.type], nullable=f.is_nullable) for f in fields])


@cache
def journal_schema_of(kind: str) -> pa.Schema:
    return pa.schema([*schema_of(kind), *VERSION_FIELDS])
