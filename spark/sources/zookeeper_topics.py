"""Topics and partitions of ZooKeeper as rows, many at once: what `topic_znodes` has read, put together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from domain.drift.normalise import uuid_text
from spark.rows import schema_of
from spark.sources.state_layout import STATE
from spark.sources.topic_znodes import ROW, Assigned, Ints, Topics, Unread, assigned_of, keys_of, states_of, whole


@dataclass(frozen=True)
class TopicRows:
    topics: pa.RecordBatch
    partitions: pa.RecordBatch
    unread: tuple[Unread, ...]


def topic_rows(found: Topics, segment: str, is_before_dual_write: bool) -> TopicRows:
    unread: list[Unread] = []
    assigned = assigned_of(found, unread)
    states, has_state = states_of(found, unread)
    at = _match(found, assigned, has_state)
    told = _told(states, at, assigned.replicas, is_before_dual_write)
    partitions = _partitions(found, assigned, has_state, at, told, segment)
    return TopicRows(_topics(found, assigned, segment), partitions, tuple(unread))


def _topics(found: Topics, assigned: Assigned, segment: str) -> pa.RecordBatch:
    read = [number for number, id_ in enumerate(assigned.ids) if id_ is not None]
    columns = (
        [found.names[number] for number in read],
        [uuid_text(assigned.ids[number] or b"") for number in read],
        [segment] * len(read),
        [found.positions[number] for number in read],
        [found.zxids[number] for number in read],
    )
    return record_batch("topic", columns)


def _told(states: pa.Table, at: Ints, replicas: pa.Array, is_before_dual_write: bool) -> list[pa.Array]:
    """Leader, in-sync replicas, epoch and recovery. A partition without a state has what Kafka's copy gives it: all replicas
    in sync, the first leads, epochs 0. In dual write Kafka keeps states: one that is missing is nothing, and so differs.
    """
    if len(at) == len(states) and bool((at == np.arange(len(at))).all()):
        leader, epoch, isr, recovery = (whole(states[name]) for name in STATE.names)
        return [leader, sorted_sets(isr), epoch, recovery]
    has = pa.array(at >= 0)
    picked = states.take(pa.array(np.where(at >= 0, at, 0), mask=at < 0))
    told = [
        pc.if_else(has, whole(picked["leader"]), _first(replicas)),
        sorted_sets(pc.if_else(has, whole(picked["isr"]), replicas)),
        pc.fill_null(whole(picked["leader_epoch"]), 0),
        pc.fill_null(whole(picked["leader_recovery_state"]), 0),
    ]
    if is_before_dual_write or not bool((at < 0).any()):
        return told
    return [pc.if_else(has, column, pa.scalar(None, column.type)) for column in told]


def _partitions(found: Topics, assigned: Assigned, read: Ints, at: Ints, told: list[pa.Array], segment: str) -> pa.RecordBatch:
    znode = np.where(at >= 0, read[at] if len(read) else 0, 0)
    columns = (
        _ids(assigned),
        assigned.partitions,
        assigned.replicas,
        *_moving(assigned),
        *told,
        pa.repeat(segment, len(assigned.partitions)),
        _either(at, found.of_states(lambda s: s.positions), znode, found.positions, assigned.topics),
        _either(at, found.of_states(lambda s: s.zxids), znode, found.zxids, assigned.topics),
    )
    return record_batch("partition", columns)


def _match(found: Topics, assigned: Assigned, read: Ints) -> Ints:
    """For each partition the row of its state, -1 without one."""
    topics, partitions = (found.of_states(column)[read] for column in (lambda s: s.topics, lambda s: s.partitions))
    known, wanted = keys_of(topics, partitions), keys_of(assigned.topics, assigned.partitions)
    if len(known) == len(wanted) and bool((known == wanted).all()):
        return np.arange(len(known))
    order = np.argsort(known, kind="stable")
    place = np.searchsorted(known, wanted, sorter=order)
    row = order[np.minimum(place, len(order) - 1)] if len(order) else np.zeros(len(wanted), np.int64)
    is_there = (place < len(order)) & (known[row] == wanted) if len(order) else np.zeros(len(wanted), np.bool_)
    return np.where(is_there, row, -1)


def _either(at: Ints, of_states: Ints, znode: Ints, of_topics: list[int], topics: Ints) -> Ints:
    states = (of_states if len(of_states) else np.array([-1]))[znode]
    return np.where(at >= 0, states, np.array(of_topics, np.int64)[topics] if of_topics else states)


def _ids(assigned: Assigned) -> pa.Array:
    whole = np.frombuffer(b"".join(id_ or bytes(16) for id_ in assigned.ids), np.uint8).reshape(-1, 16)
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), len(assigned.topics), [None, pa.py_buffer(whole[assigned.topics].tobytes())]
    )


def _moving(assigned: Assigned) -> tuple[pa.Array, pa.Array]:
    count = len(assigned.topics)
    if not assigned.moving:
        none = pa.ListArray.from_arrays(np.zeros(count + 1, np.int32), pa.array([], pa.int32()))
        return none, none
    keys = zip(assigned.topics.tolist(), assigned.partitions.tolist(), strict=True)
    pairs = [assigned.moving.get(key, ([], [])) for key in keys]
    type_ = pa.list_(pa.int32())
    return pa.array([adding for adding, _ in pairs], type_), pa.array([removing for _, removing in pairs], type_)


def _first(lists: pa.Array) -> pa.Array:
    """The first of each list, -1 of an empty one."""
    offsets, values = lists.offsets.to_numpy().astype(np.int64), lists.values.to_numpy()
    padded = np.append(values, np.int32(-1))
    return pa.array(np.where(np.diff(offsets) > 0, padded[offsets[:-1]], -1).astype(np.int32))


def sorted_sets(lists: pa.Array) -> pa.Array:
    """Each list sorted and without repetitions."""
    offsets = lists.offsets.to_numpy().astype(np.int64)
    values = lists.values.to_numpy().astype(np.int64)[offsets[0] : offsets[-1]]
    rows = np.repeat(np.arange(len(lists)), np.diff(offsets))
    keys = rows * ROW + values
    if len(keys) and not bool((keys[1:] > keys[:-1]).all()):
        keys = np.sort(keys)
        keys = keys[np.append(True, keys[1:] != keys[:-1])]
    kept = (keys + 2**31) // ROW
    bounds = np.searchsorted(kept, np.arange(len(lists) + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(bounds, pa.array((keys - kept * ROW).astype(np.int32)))


def record_batch(kind: str, columns: Sequence[Any]) -> pa.RecordBatch:
    schema = schema_of(kind)
    arrays = [_column(column, column_field.type) for column, column_field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(values: Any, type_: pa.DataType) -> pa.Array:  # noqa: ANN401 - a list, of NumPy or of Arrow
    array = values if isinstance(values, pa.Array) else pa.array(values, type_)
    return array if array.type == type_ else array.cast(type_)
