"""Rows of the KRaft side as Arrow batches."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from domain.drift.records import KINDS, PARTITION
from spark.codec.metadata_partitions import UUID_BYTES, Lists, Partitions
from spark.rows import journal_schema_of, schema_of
from spark.sources.kraft_image import Version
from spark.sources.source import Rows

BATCH_ROWS = 100_000


def rows_of(kind: str, versions: Sequence[Version]) -> list[Rows]:
    """Rows at the cut, in batches."""
    parts = (versions[at : at + BATCH_ROWS] for at in range(0, len(versions), BATCH_ROWS))
    return [Rows(kind, _batch(schema_of(kind), kind, part, [])) for part in parts]


def journal_of(kind: str, versions: Sequence[Version]) -> list[Rows]:
    """Versions after the cut, in batches."""
    parts = (versions[at : at + BATCH_ROWS] for at in range(0, len(versions), BATCH_ROWS))
    return [
        Rows(kind, _batch(journal_schema_of(kind), kind, part, [[v.values is None for v in part]]), is_journal=True)
        for part in parts
    ]


def _batch(schema: pa.Schema, kind: str, versions: Sequence[Version], more: list[list[bool]]) -> pa.RecordBatch:
    absent = (None,) * len(KINDS[kind].values)
    told = [(*v.key, *(absent if v.values is None else v.values), *v.origin) for v in versions]
    columns: list[Sequence[Any]] = [*zip(*told, strict=True), *more]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def partition_rows(partitions: Partitions) -> list[Rows]:
    """All at once, without a Python object for any of them."""
    if not len(partitions):
        return []
    ids = pa.py_buffer(np.ascontiguousarray(partitions.topic_ids))
    columns = [
        pa.FixedSizeBinaryArray.from_buffers(pa.binary(UUID_BYTES), len(partitions), [None, ids]),
        pa.array(partitions.numbers),
        _lists(partitions.replicas),
        _lists(partitions.adding),
        _lists(partitions.removing),
        pa.array(partitions.leaders),
        _lists(partitions.isr),
        pa.array(partitions.leader_epochs),
        pa.array(partitions.recovery),
        pa.repeat(pa.scalar(partitions.file), len(partitions)),
        pa.array(partitions.batch),
        pa.array(partitions.offsets),
    ]
    return [Rows(PARTITION.name, pa.RecordBatch.from_arrays(columns, schema=schema_of(PARTITION.name)))]


def _lists(lists: Lists) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(lists.offsets.astype(np.int32)), pa.array(lists.values))
