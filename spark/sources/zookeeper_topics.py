"""Topics and partitions of ZooKeeper as rows, many at once.

A topic's znode has the assignment of all its partitions, each partition's state is a znode of its own. Nearly all that there
is to read is of these two forms, in Kafka's own spelling, so that spelling is read with few calls for many znodes. What is
spelt otherwise is read the slow way, and what cannot be read at all is named. Arrow's JSON reader sees nothing but that
spelling: it believes much that is no JSON, and on `null` it takes the process down.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from domain.drift.normalise import uuid_bytes, uuid_text
from spark.rows import schema_of

Ints = npt.NDArray[np.int64]

_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_BROKERS = rf"\[(?:{_NUMBER}(?:,{_NUMBER})*)?\]"
_NEXT = r'(?:,(?=")|(?=\}))'
KAFKAS_SPELLING = re.compile(
    (
        r'\{(?:(?:"(?:adding|removing)_replicas":\{\}|"version":3|"topic_id":"(?P<id>[\w-]{22})"'
        rf'|"partitions":\{{(?P<partitions>(?:"{_NUMBER}":{_BROKERS}{_NEXT})*)\}}){_NEXT})*\}}'
    ).encode()
)
"""A topic's content without white space and without a reassignment. Key order is that of a Scala map: any."""
KAFKAS_STATE = re.compile(
    (
        rf'\{{(?:"(?:(?:version|controller_epoch|leader_epoch|leader_recovery_state)":{_NUMBER}'
        rf'|leader":(?:-1|{_NUMBER})|isr":{_BROKERS}){_NEXT})+\}}'
    ).encode()
)
"""A partition's state without white space, its keys in any order."""

WITHOUT_ID = "has no topic_id, so it cannot be compared: a controller of Kafka 2.8 or newer gives it one"
ASSIGNMENT = pa.schema([("p", pa.int64()), ("r", pa.list_(pa.int32()))])
STATE = pa.schema(
    [
        ("leader", pa.int32()),
        ("leader_epoch", pa.int32()),
        ("isr", pa.list_(pa.int32())),
        ("leader_recovery_state", pa.int32()),
    ]
)
MOST_PARTITION = 2**31 - 1
_ROW = np.int64(2**32)


@dataclass
class Topics:
    """Some topics, each whole, in the order they were read: what lies in parallel lists belongs together.

    `positions` of live znodes are -1. `state_topics`: index into `names`.
    """

    names: list[str] = field(default_factory=list)
    contents: list[bytes] = field(default_factory=list)
    zxids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    state_topics: list[int] = field(default_factory=list)
    state_partitions: list[int] = field(default_factory=list)
    states: list[bytes] = field(default_factory=list)
    state_zxids: list[int] = field(default_factory=list)
    state_positions: list[int] = field(default_factory=list)

    @property
    def whole_count(self) -> int:
        """Of the znodes that `taken` would take."""
        last, states = self._whole()
        return last + states

    def _whole(self) -> tuple[int, int]:
        last = max(len(self.names) - 1, 0)
        return last, bisect_left(self.state_topics, last)

    def taken(self) -> "Topics":
        """All but the last one, whose states may still come: it stays."""
        last, states = self._whole()
        columns = self._columns()
        taken = Topics(*(column[: last if number < 4 else states] for number, column in enumerate(columns)))
        for number, column in enumerate(columns):
            del column[: last if number < 4 else states]
        self.state_topics[:] = [0] * len(self.state_topics)
        return taken

    def _columns(self) -> tuple[list[Any], ...]:
        """Those of topics first, four of them."""
        of_topics = (self.names, self.contents, self.zxids, self.positions)
        return (
            *of_topics,
            self.state_topics,
            self.state_partitions,
            self.states,
            self.state_zxids,
            self.state_positions,
        )


@dataclass(frozen=True)
class Unread:
    """A znode that could not be read, and why, in words without any of its values."""

    path: str
    why: str
    position: int
    is_without_id: bool = False


@dataclass(frozen=True)
class Assigned:
    """The partitions of some topics: which topic, which number, which replicas. `ids` by topic; `None`: not readable.

    `moving`: adding and removing replicas, of the partitions that have any.
    """

    ids: list[bytes | None]
    topics: Ints
    partitions: Ints
    replicas: pa.Array
    moving: dict[tuple[int, int], tuple[list[int], list[int]]]


@dataclass(frozen=True)
class TopicRows:
    topics: pa.RecordBatch
    partitions: pa.RecordBatch
    unread: tuple[Unread, ...]


def topic_rows(found: Topics, segment: str, is_before_dual_write: bool) -> TopicRows:
    unread: list[Unread] = []
    assigned = _assigned_quickly(found, unread) or _assigned(found, _never, unread)
    states, has_state = _states(found, unread)
    at = _match(found, assigned, has_state)
    told = _told(states, at, assigned.replicas, is_before_dual_write)
    partitions = _partitions(found, assigned, has_state, at, told, segment)
    return TopicRows(_topics(found, assigned, segment), partitions, tuple(unread))


def _assigned_quickly(found: Topics, unread: list[Unread]) -> Assigned | None:
    """`None` where one of the topics only seems to have Kafka's spelling, or names a partition twice: the last counts then."""
    known = len(unread)
    try:
        assigned = _assigned(found, _in_kafkas_spelling, unread)
    except pa.ArrowInvalid:
        assigned = None
    if assigned is None or not _has_each_once(assigned):
        del unread[known:]
        return None
    return assigned


def _has_each_once(assigned: Assigned) -> bool:
    if len(assigned.topics) != len(assigned.partitions) or bool((assigned.partitions < 0).any()):
        return False
    if assigned.replicas.null_count or assigned.replicas.values.null_count:
        return False
    ordered = np.sort(_keys(assigned.topics, assigned.partitions))
    return not bool((ordered[1:] == ordered[:-1]).any())


def _assigned(found: Topics, quickly: Callable[[bytes], tuple[str, bytes] | None], unread: list[Unread]) -> Assigned:
    ids: list[bytes | None] = [None] * len(found.names)
    moving: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    lines: list[bytes] = []
    counts = np.zeros(len(found.names), np.int64)
    for number, content in enumerate(found.contents):
        try:
            id_, body = quickly(content) or _spelt_otherwise(content, number, moving)
            ids[number] = uuid_bytes(id_)
        except ValueError as error:
            path = f"/brokers/topics/{found.names[number]}"
            unread.append(Unread(path, str(error), found.positions[number], is_without_id(content)))
            continue
        if body:
            lines.append(body)
            counts[number] = body.count(b"\n") + 1
    table = _parsed(b"\n".join(lines), ASSIGNMENT)
    partitions: Ints = _whole(table["p"].fill_null(-1)).to_numpy()
    return Assigned(ids, np.repeat(np.arange(len(counts)), counts), partitions, _whole(table["r"]), moving)


def is_without_id(content: bytes) -> bool:
    """Of a controller before Kafka 2.8. Seen without reading the content."""
    return b'"topic_id"' not in content


def _never(_: bytes) -> tuple[str, bytes] | None:
    return None


def _in_kafkas_spelling(content: bytes) -> tuple[str, bytes] | None:
    """The id, and a line for each partition: `{"p":0,"r":[1,2]}`."""
    found = KAFKAS_SPELLING.fullmatch(content)
    if found is None or found["id"] is None or found["partitions"] is None:
        return None
    body = found["partitions"]
    if not body:
        return found["id"].decode(), b""
    return found["id"].decode(), b'{"p":' + body[1:].replace(b'],"', b']}\n{"p":').replace(b'":[', b',"r":[') + b"}"


def _spelt_otherwise(
    content: bytes, number: int, moving: dict[tuple[int, int], tuple[list[int], list[int]]]
) -> tuple[str, bytes]:
    """Also versions 1 and 2, and topics that are being reassigned."""
    told = _object(content)
    if "topic_id" not in told:
        raise ValueError(WITHOUT_ID)
    replicas = _replicas_by_partition(told.get("partitions"), "partitions")
    adding = _replicas_by_partition(told.get("adding_replicas", {}), "adding_replicas")
    removing = _replicas_by_partition(told.get("removing_replicas", {}), "removing_replicas")
    for partition in adding.keys() | removing.keys():
        moves = (sorted(set(adding.get(partition, []))), sorted(set(removing.get(partition, []))))
        moving[number, partition] = moves
    lines = (json.dumps({"p": partition, "r": assigned}).encode() for partition, assigned in replicas.items())
    return str(told["topic_id"]), b"\n".join(lines)


def _replicas_by_partition(value: object, key: str) -> dict[int, list[int]]:
    if not isinstance(value, dict):
        raise ValueError(f"{key} is no JSON object")  # noqa: TRY004 - told as the znode's fault
    found = {int(partition): replicas for partition, replicas in value.items() if re.fullmatch(r"[0-9]{1,10}", partition)}
    if len(found) != len(value) or not _is_list_of_ints([*found]) or not all(map(_is_list_of_ints, found.values())):
        raise ValueError(f"{key} has something else than lists of broker ids by partition")
    return found


def _is_list_of_ints(value: object) -> bool:
    return isinstance(value, list) and all(type(i) is int and -(2**31) <= i < 2**31 for i in value)


def _object(content: bytes) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError("is no JSON") from None
    if not isinstance(value, dict):
        raise ValueError("is no JSON object")  # noqa: TRY004 - told as the znode's fault
    return value


def _states(found: Topics, unread: list[Unread]) -> tuple[pa.Table, Ints]:
    """Rows of `STATE`, and of which of the states they are: those that can be read, and are not empty."""
    told = [number for number, content in enumerate(found.states) if content]
    quick = [number for number in told if KAFKAS_STATE.fullmatch(found.states[number])]
    table = _states_quickly(found, quick)
    if table is None:
        return _states_one_by_one(found, told, unread)
    if len(quick) == len(told):
        return table, np.array(quick, np.int64)
    others, read = _states_one_by_one(found, sorted(set(told) - set(quick)), unread)
    return pa.concat_tables([table, others]), np.append(np.array(quick, np.int64), read)


def _states_quickly(found: Topics, quick: Sequence[int]) -> pa.Table | None:
    """`None` where one of the states lacks a key, or has one twice: the last counts then."""
    try:
        table = _parsed(b"\n".join([found.states[number] for number in quick]), STATE)
    except pa.ArrowInvalid:
        return None
    return table if len(table) == len(quick) and not _has_nulls(table) else None


def _has_nulls(table: pa.Table) -> bool:
    return any(table[name].null_count for name in STATE.names[:3]) or bool(pc.list_flatten(table["isr"]).null_count)


def _states_one_by_one(found: Topics, which: Sequence[int], unread: list[Unread]) -> tuple[pa.Table, Ints]:
    told, read = [], []
    for number in which:
        try:
            told.append(_state(found.states[number]))
            read.append(number)
        except ValueError as error:
            topic, partition = found.names[found.state_topics[number]], found.state_partitions[number]
            path = f"/brokers/topics/{topic}/partitions/{partition}/state"
            unread.append(Unread(path, str(error), found.state_positions[number]))
    return pa.Table.from_pylist(told, schema=STATE), np.array(read, np.int64)


def _state(content: bytes) -> dict[str, Any]:
    told = _object(content)
    state = {name: told.get(name) for name in STATE.names} | {"leader_recovery_state": told.get("leader_recovery_state", 0)}
    numbers = [value for name, value in state.items() if name != "isr"]
    if not _is_list_of_ints(state["isr"]) or not _is_list_of_ints(numbers):
        raise ValueError("lacks leader, leader_epoch or isr, or has something else than numbers in them")
    return state


def _parsed(lines: bytes, schema: pa.Schema) -> pa.Table:
    if not lines:
        return schema.empty_table()
    options = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    reading = pyarrow.json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    return pyarrow.json.read_json(pa.BufferReader(lines), read_options=reading, parse_options=options)


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
    has = pa.array(at >= 0)
    picked = states.take(pa.array(np.where(at >= 0, at, 0), mask=at < 0))
    told = [
        pc.if_else(has, _whole(picked["leader"]), _first(replicas)),
        sorted_sets(pc.if_else(has, _whole(picked["isr"]), replicas)),
        pc.fill_null(_whole(picked["leader_epoch"]), 0),
        pc.fill_null(_whole(picked["leader_recovery_state"]), 0),
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
        _either(at, found.state_positions, znode, found.positions, assigned.topics),
        _either(at, found.state_zxids, znode, found.zxids, assigned.topics),
    )
    return record_batch("partition", columns)


def _keys(topics: Ints, partitions: Ints) -> Ints:
    return topics * _ROW + partitions


def _match(found: Topics, assigned: Assigned, read: Ints) -> Ints:
    """For each partition the row of its state, -1 without one."""
    topics, partitions = np.array(found.state_topics, np.int64)[read], np.array(found.state_partitions, np.int64)[read]
    known, wanted = _keys(topics, partitions), _keys(assigned.topics, assigned.partitions)
    if len(known) == len(wanted) and bool((known == wanted).all()):
        return np.arange(len(known))
    order = np.argsort(known, kind="stable")
    place = np.searchsorted(known, wanted, sorter=order)
    row = order[np.minimum(place, len(order) - 1)] if len(order) else np.zeros(len(wanted), np.int64)
    is_there = (place < len(order)) & (known[row] == wanted) if len(order) else np.zeros(len(wanted), np.bool_)
    return np.where(is_there, row, -1)


def _either(at: Ints, of_states: list[int], znode: Ints, of_topics: list[int], topics: Ints) -> Ints:
    states = np.array(of_states or [-1], np.int64)[znode]
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
    keys = rows * _ROW + values
    if len(keys) and not bool((keys[1:] > keys[:-1]).all()):
        keys = np.sort(keys)
        keys = keys[np.append(True, keys[1:] != keys[:-1])]
    kept = (keys + 2**31) // _ROW
    bounds = np.searchsorted(kept, np.arange(len(lists) + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(bounds, pa.array((keys - kept * _ROW).astype(np.int32)))


def record_batch(kind: str, columns: Sequence[Any]) -> pa.RecordBatch:
    schema = schema_of(kind)
    arrays = [_column(column, column_field.type) for column, column_field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(values: Any, type_: pa.DataType) -> pa.Array:  # noqa: ANN401 - a list, of NumPy or of Arrow
    array = values if isinstance(values, pa.Array) else pa.array(values, type_)
    return array if array.type == type_ else array.cast(type_)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()
