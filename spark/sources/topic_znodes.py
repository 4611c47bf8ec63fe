"""Topics' znodes and their partitions' states, read: many at once.

A topic's znode has the assignment of all its partitions, each partition's state is a znode of its own. Nearly all that there
is to read is of these two forms, in Kafka's own spelling, so that spelling is read with few calls for many znodes. What is
spelt otherwise is read the slow way, and what cannot be read at all is named.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from domain.drift.normalise import uuid_bytes
from spark.codec.octets import Bytes
from spark.sources.state_layout import BROKERS, MARGIN, NEXT, NUMBER, STATE, Layout, lists_by_key
from spark.sources.zookeeper_forms import json_object

Ints = npt.NDArray[np.int64]

KAFKAS_SPELLING = re.compile(
    (
        r'\{(?:(?:"(?:adding|removing)_replicas":\{\}|"version":3|"topic_id":"(?P<id>[\w-]{22})"'
        rf'|"partitions":\{{(?P<partitions>(?:"{NUMBER}":{BROKERS}{NEXT})*)\}}){NEXT})*\}}'
    ).encode()
)
"""A topic's content without white space and without a reassignment. Key order is that of a Scala map: any."""
WITHOUT_ID = "has no topic_id, so it cannot be compared: a controller of Kafka 2.8 or newer gives it one"
MOST_PARTITION = 2**31 - 1
MOST_LAYOUTS = 8
"""Of states that were read together. A real tree has one for each version of Kafka that has written them."""
ROW = np.int64(2**32)
"""A pair of numbers as one: the first times this, plus the second."""


@dataclass(frozen=True)
class States:
    """Partitions' states in the order they were read, one row each; `MARGIN` bytes of `window` follow the last one.

    `topics`: index into the names of their `Topics`.
    """

    window: Bytes
    begins: Ints
    lengths: Ints
    topics: Ints
    partitions: Ints
    zxids: Ints
    positions: Ints

    @classmethod
    def of(cls, contents: Sequence[bytes], *columns: Sequence[int]) -> "States":
        lengths = np.fromiter(map(len, contents), np.int64, len(contents))
        window = np.frombuffer(b"".join(contents) + bytes(MARGIN), np.uint8)
        return cls(window, np.cumsum(lengths) - lengths, lengths, *(np.array(column, np.int64) for column in columns))

    def __len__(self) -> int:
        return len(self.begins)

    def rows(self, which: slice) -> "States":
        columns = (self.begins, self.lengths, self.topics, self.partitions, self.zxids, self.positions)
        return States(self.window, *(column[which] for column in columns))

    def content(self, number: int) -> bytes:
        begin = int(self.begins[number])
        return self.window[begin : begin + int(self.lengths[number])].tobytes()


@dataclass
class Topics:
    """Some topics, each whole, in the order they were read: what lies in parallel lists belongs together.

    `positions` of live znodes are -1. `states`: in the order of their topics. `waiting`: rows of states that are to follow.
    """

    names: list[str] = field(default_factory=list)
    contents: list[bytes] = field(default_factory=list)
    zxids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    states: list[States] = field(default_factory=list)
    waiting: list[tuple[bytes, int, int, int, int]] = field(default_factory=list)
    of_last: int = 0
    """States of the last topic; so many more may come that nothing is to be taken for each of them."""
    count: int = 0
    """Of all states."""

    @property
    def whole_count(self) -> int:
        """Of the znodes that `taken` would take."""
        return max(len(self.names) - 1, 0) + self.count - self.of_last

    def add_topics(self, names: list[str], contents: list[bytes], zxids: list[int], positions: list[int]) -> None:
        self.names += names
        self.contents += contents
        self.zxids += zxids
        self.positions += positions
        self.of_last = 0 if names else self.of_last

    def add_state(self, content: bytes, partition: int, zxid: int, position: int) -> None:
        """Of the last topic."""
        self.waiting.append((content, len(self.names) - 1, partition, zxid, position))
        self.of_last += 1
        self.count += 1

    def add_states(self, states: States) -> None:
        self.states.append(states)
        self.of_last += int((states.topics == len(self.names) - 1).sum())
        self.count += len(states)

    def taken(self) -> "Topics":
        """All but the last one, whose states may still come: it stays."""
        last, parts = max(len(self.names) - 1, 0), self.all_states()
        cuts = [int(np.searchsorted(part.topics, last)) for part in parts]
        whole = [part.rows(slice(cut)) for part, cut in zip(parts, cuts, strict=True)]
        taken = Topics(self.names[:last], self.contents[:last], self.zxids[:last], self.positions[:last], whole)
        del self.names[:last], self.contents[:last], self.zxids[:last], self.positions[:last]
        left = [part.rows(slice(cut, None)) for part, cut in zip(parts, cuts, strict=True) if cut < len(part)]
        self.states = [replace(part, topics=np.zeros(len(part), np.int64)) for part in left]
        self.count = self.of_last
        return taken

    def all_states(self) -> list[States]:
        if self.waiting:
            self.states.append(States.of(*zip(*self.waiting, strict=True)))
            self.waiting = []
        return self.states

    def of_states(self, column: Callable[[States], Ints]) -> Ints:
        return np.concatenate([np.zeros(0, np.int64), *map(column, self.all_states())])


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
    """`None` where one of the topics names a partition twice: the last counts then."""
    known = len(unread)
    assigned = _assigned_slowly(found, _in_kafkas_spelling, unread)
    ordered = np.sort(keys_of(assigned.topics, assigned.partitions))
    if bool((ordered[1:] == ordered[:-1]).any()):
        del unread[known:]
        return None
    return assigned


def _assigned_slowly(found: Topics, quickly: Callable[[bytes], tuple[str, bytes] | None], unread: list[Unread]) -> Assigned:
    ids: list[bytes | None] = [None] * len(found.names)
    moving: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    bodies: list[bytes] = []
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
            bodies.append(body)
            counts[number] = body.count(b'":')
    partitions, replicas = lists_by_key(b",".join(bodies))
    return Assigned(ids, np.repeat(np.arange(len(counts)), counts), partitions, replicas, moving)


def is_without_id(content: bytes) -> bool:
    """Of a controller before Kafka 2.8. Seen without reading the content."""
    return b'"topic_id"' not in content


def _never(_: bytes) -> tuple[str, bytes] | None:
    return None


def _in_kafkas_spelling(content: bytes) -> tuple[str, bytes] | None:
    """The id, and the partitions as they stand there."""
    found = KAFKAS_SPELLING.fullmatch(content)
    if found is None or found["id"] is None or found["partitions"] is None:
        return None
    return found["id"].decode(), found["partitions"]


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
    body = json.dumps(replicas, separators=(",", ":"))
    return str(told["topic_id"]), body[1:-1].encode()


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
    tables, read, before = [STATE.empty_table()], [np.zeros(0, np.int64)], 0
    for states in found.all_states():
        for table, rows in _tables_of(states, found.names, unread):
            tables.append(table)
            read.append(rows + before)
        before += len(states)
    return pa.concat_tables(tables), np.concatenate(read)


def _tables_of(states: States, names: list[str], unread: list[Unread]) -> Iterator[tuple[pa.Table, Ints]]:
    left, odd = np.flatnonzero(states.lengths), np.zeros(0, np.int64)
    for _ in range(MOST_LAYOUTS):
        layout = Layout.of(states.content(int(left[0]))) if len(left) else None
        if layout is None:
            left, odd = left[1:], np.append(odd, left[:1])
            continue
        table, rows = layout.read(states.window, states.begins[left], states.lengths[left])
        yield table, left[rows]
        left = np.delete(left, rows)
    yield _states_one_by_one(states, names, np.append(odd, left).tolist(), unread)


def _states_one_by_one(states: States, names: list[str], which: Sequence[int], unread: list[Unread]) -> tuple[pa.Table, Ints]:
    told, read = [], []
    for number in which:
        try:
            told.append(_state(states.content(number)))
            read.append(number)
        except ValueError as error:
            topic, partition = names[states.topics[number]], states.partitions[number]
            path = f"/brokers/topics/{topic}/partitions/{partition}/state"
            unread.append(Unread(path, str(error), int(states.positions[number])))
    return pa.Table.from_pylist(told, schema=STATE), np.array(read, np.int64)


def _state(content: bytes) -> dict[str, Any]:
    told = json_object(content)
    state = {name: told.get(name) for name in STATE.names} | {"leader_recovery_state": told.get("leader_recovery_state", 0)}
    numbers = [value for name, value in state.items() if name != "isr"]
    if not _is_list_of_ints(state["isr"]) or not _is_list_of_ints(numbers):
        raise ValueError("lacks leader, leader_epoch or isr, or has something else than numbers in them")
    return state


def keys_of(topics: Ints, partitions: Ints) -> Ints:
    return topics * ROW + partitions


def whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()
