"""Topics' znodes and their partitions' states, read: many at once.

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

from domain.drift.normalise import uuid_bytes
from spark.sources.zookeeper_forms import json_object

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
ROW = np.int64(2**32)
"""A pair of numbers as one: the first times this, plus the second."""


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


def assigned_of(found: Topics, unread: list[Unread]) -> Assigned:
    """What cannot be read is appended to `unread`."""
    return _assigned_quickly(found, unread) or _assigned_slowly(found, _never, unread)


def _assigned_quickly(found: Topics, unread: list[Unread]) -> Assigned | None:
    """`None` where one of the topics only seems to have Kafka's spelling, or names a partition twice: the last counts then."""
    known = len(unread)
    try:
        assigned = _assigned_slowly(found, _in_kafkas_spelling, unread)
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
    ordered = np.sort(keys_of(assigned.topics, assigned.partitions))
    return not bool((ordered[1:] == ordered[:-1]).any())


def _assigned_slowly(found: Topics, quickly: Callable[[bytes], tuple[str, bytes] | None], unread: list[Unread]) -> Assigned:
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
    partitions: Ints = whole(table["p"].fill_null(-1)).to_numpy()
    return Assigned(ids, np.repeat(np.arange(len(counts)), counts), partitions, whole(table["r"]), moving)


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
    told = json_object(content)
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


def states_of(found: Topics, unread: list[Unread]) -> tuple[pa.Table, Ints]:
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
    told = json_object(content)
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


def keys_of(topics: Ints, partitions: Ints) -> Ints:
    return topics * ROW + partitions


def whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()
