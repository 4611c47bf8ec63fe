"""What the walk of a node's segments has told (`activities/on_node/walk_segments.py`), as rows.

Its batches come as packed rows, so that a node needs no library: here they become an Arrow table, in the schema that
`domain.drift.messages.BATCH_ROWS` declares. An answer without its last line is not whole, and not believed.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from domain.drift.messages import BATCH_ROWS, ReplicaLog
from domain.errors import Transient
from spark.rows import ARROW_TYPES

PACKED = np.dtype(
    [
        ("base_offset", "<i8"),
        ("delta", "<i4"),
        ("crc", "<u4"),
        ("count", "<i4"),
        ("producer_id", "<i8"),
        ("producer_epoch", "<i2"),
        ("base_sequence", "<i4"),
        ("max_timestamp", "<i8"),
        ("size", "<i4"),
        ("segment", "<i8"),
        ("position", "<i8"),
        ("state", "u1"),
    ]
)
VERIFIED, DAMAGED = 1, 2

BATCH_SCHEMA = pa.schema([pa.field(one.name, ARROW_TYPES[one.type], nullable=False) for one in BATCH_ROWS.fields])


@dataclass(frozen=True)
class NodeWalk:
    """`moved`: logs whose files were deleted again and again while they were read. `told`: the walk's last line."""

    replicas: tuple[ReplicaLog, ...]
    batches: pa.Table = field(repr=False)
    moved: tuple[str, ...]
    told: Mapping[str, Any]


def read_walk(broker: int, output: str) -> NodeWalk:
    """From a walk's standard output."""
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if not lines or not lines[-1].get("done"):
        raise Transient(f"broker-{broker}: the walk of its segments has ended before it was done; look again")
    logs = [line for line in lines[:-1] if not line.get("moved")]
    tables = [_batches(broker, line) for line in logs if line.get("rows")]
    return NodeWalk(
        tuple(_replica(broker, line) for line in logs),
        pa.concat_tables([BATCH_SCHEMA.empty_table(), *tables]).combine_chunks(),
        tuple(line["log"] for line in lines[:-1] if line.get("moved")),
        lines[-1],
    )


def place_of(log: str) -> tuple[str, int]:
    """Topic and partition of a log's name."""
    topic, _, number = log.rpartition("-")
    return topic, int(number)


def _replica(broker: int, line: Mapping[str, Any]) -> ReplicaLog:
    topic, partition = place_of(line["log"])
    told = {name: line[name] for name in ("topic_id", "start", "end", "walked_from", "walked_until")}
    return ReplicaLog(
        topic=topic, partition=partition, broker=broker, broken=line.get("broken", ""), why_not=line.get("why_not", ""), **told
    )


def _batches(broker: int, line: Mapping[str, Any]) -> pa.Table:
    rows = np.frombuffer(zlib.decompress(base64.b64decode(line["rows"])), dtype=PACKED)
    topic, partition = place_of(line["log"])
    return batch_table(topic, partition, broker, rows)


def batch_table(topic: str, partition: int, broker: int, rows: "np.ndarray[Any, np.dtype[Any]]") -> pa.Table:
    columns: dict[str, Any] = {name: rows[name] for name in rows.dtype.names or ()}
    columns |= {
        "topic": pa.repeat(topic, len(rows)),
        "partition": pa.repeat(partition, len(rows)),
        "broker": pa.repeat(broker, len(rows)),
        "last_offset": rows["base_offset"] + rows["delta"],
        "is_verified": rows["state"] == VERIFIED,
        "is_damaged": rows["state"] == DAMAGED,
    }
    arrays = [_array(columns[one.name], one.type) for one in BATCH_SCHEMA]
    return pa.Table.from_arrays(arrays, schema=BATCH_SCHEMA)


def _array(column: object, kind: pa.DataType) -> pa.Array:
    return (column if isinstance(column, pa.Array) else pa.array(np.ascontiguousarray(column))).cast(kind)
