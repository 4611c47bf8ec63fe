"""Clusters that are drawn at random, and what can go wrong between two sides of one: every field of every kind, and the traps.

Keys hold the cluster's `tag`, so that many clusters can be compared in one go and have nothing to do with each other.
"""

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from domain.drift.records import KINDS, Field, FieldType, RowKind, Rule
from domain.drift.tolerations import Toleration
from spark.rows import journal_schema_of, schema_of
from spark.sources.source import Rows
from spark.staging import write_rows
from tests.unit.drift_oracle import Row, key_text, names_of

NAMES = ["a", "b", "a-1", "a.b", "ä", "ключ", "🙂", "a b", "*", "%2A", "<default>", "", "a/b", "a\\/b", "a\\", "'\"", "\x00"]
NAMES.append("a" * 300)
TEXTS = ["", "a", "b", "aa", "1024", "1024.0", "true", "<default>", "null", " ", "x" * 1000, "ü", "(redacted)"]
INTS = [0, 1, -1, 2, 3, 100, 2**31 - 1, -(2**31)]
LONGS = [0, 1, -1, 1000, 2000, 2**63 - 1, -(2**63), 1_700_000_000_000]
NUMBERS = [0.0, 1.0, -1.0, 1024.0, 0.1, 1234.5, 1000000.0, 1000001.5, 1000000.5]
DIGESTS = [None, "", "0" * 32, "f" * 32, "0123456789abcdef" * 2]
LISTS = [[], [1], [2], [1, 2], [2, 1], [1, 2, 3], [3, 2, 1], [4], [1, 1], [2, 1, 2], [0], [-1], [1, 2, 3, 4, 5, 6, 7]]
MEMBERS = ["[]", '["a"]', '["a","b"]', '["b","a"]', '["a","a"]', '["ä"]', '["\\u00e4"]']


@dataclass
class Cluster:
    left: dict[str, list[Row]] = field(default_factory=dict)
    right: dict[str, list[Row]] = field(default_factory=dict)
    journal: dict[str, list[Row]] = field(default_factory=dict)

    def side(self, name: str) -> dict[str, list[Row]]:
        return {"left": self.left, "right": self.right, "journal": self.journal}[name]

    def add(self, other: "Cluster") -> None:
        for name in ("left", "right", "journal"):
            for kind, rows in other.side(name).items():
                self.side(name).setdefault(kind, []).extend(rows)


def generate(random: Random, tag: str = "", most: int = 4) -> Cluster:
    """`most`: rows of a kind. Without a tag also those rows of which there can be one set only."""
    cluster = Cluster()
    for kind in KINDS.values():
        for key in _keys(random, kind, tag, most):
            _put(random, kind, key, cluster)
    for side in (cluster.left, cluster.right, cluster.journal):
        for rows in side.values():
            random.shuffle(rows)
    return cluster


def _keys(random: Random, kind: RowKind, tag: str, most: int) -> list[Row]:
    count = random.randint(0, most)
    if kind.name == "claim":
        return [{"name": name} for name in random.sample(["cluster-id", "controller", "migration"], min(count, 3))] * (not tag)
    if kind.name == "producer-ids":
        return [{"scope": tag or "cluster"}]
    keys = [{one.name: _key_value(random, kind, one, tag) for one in kind.keys} for _ in range(count)]
    return list({repr(key): key for key in keys}.values())


def _key_value(random: Random, kind: RowKind, one: Field, tag: str) -> Any:
    if one.name == "topic_id":
        return topic_id(tag, random.randint(0, 3))
    if one.type is FieldType.INT:
        return random.choice([0, 1, 2, 10])
    choices: dict[str, list[str]] = {
        "entity": [json.dumps([["user", tag + random.choice(NAMES)]]), json.dumps([["client-id", None], ["user", tag + "a"]])],
        "resource_type": ["Topic", "Group", "User"],
        "pattern": ["LITERAL", "PREFIXED"],
        "permission": ["ALLOW", "DENY"],
        "operation": ["READ", "WRITE"],
    }
    if one.name in choices:
        return random.choice(choices[one.name])
    return tag + random.choice(NAMES) if one is kind.keys[min(1, len(kind.keys) - 1)] else _plain_name(random, kind, tag)


def _plain_name(random: Random, kind: RowKind, tag: str) -> str:
    return random.choice(["", "0", "1"]) if kind.name == "broker-config" else tag + random.choice(NAMES)


def topic_id(tag: str, number: int) -> bytes:
    return (tag.encode() + bytes([number])).rjust(16, b"\x07")[-16:]


def _id_text(id_: bytes) -> str:
    return urlsafe_b64encode(id_).decode().rstrip("=")


def _value(random: Random, kind: RowKind, one: Field, key: Row) -> Any:
    if one.name == "topic_id":
        known = next(iter(key.values()))
        return random.choice([None, *(_id_text(topic_id(known[:3] if known[:1] == "c" else "", n)) for n in range(4))])
    if one.rule is Rule.DIGEST:
        return random.choice(DIGESTS)
    if random.random() < 0.1:
        return None
    if one.rule is Rule.SET and one.type is FieldType.TEXT:
        return random.choice(MEMBERS)
    choices: dict[FieldType, list[Any]] = {
        FieldType.INT: INTS,
        FieldType.LONG: LONGS,
        FieldType.DOUBLE: NUMBERS,
        FieldType.TEXT: TEXTS,
        FieldType.INTS: LISTS,
    }
    return random.choice(choices[one.type])


def _row(random: Random, kind: RowKind, key: Row) -> Row:
    origin = {"segment": random.choice(["", "snapshot.5", "00000000000000000000.log"]), "batch": random.choice([-1, 61])}
    return {
        **key,
        **{one.name: _value(random, kind, one, key) for one in kind.values},
        **origin,
        "at": random.randint(-1, 9999) if random.random() < 0.5 else -1,
    }


def _put(random: Random, kind: RowKind, key: Row, cluster: Cluster) -> None:
    """A row of one key: on the left as it is, on the right as something makes it."""
    row = _row(random, kind, key)
    left, right = random.choices(FATES, WEIGHTS)[0](random, kind, row)
    cluster.left.setdefault(kind.name, []).extend(left)
    cluster.right.setdefault(kind.name, []).extend(right)
    if random.random() < 0.3:
        cluster.journal.setdefault(kind.name, []).extend(_versions(random, kind, row))


Fate = Callable[[Random, RowKind, Row], tuple[list[Row], list[Row]]]


def _elsewhere(random: Random, row: Row) -> Row:
    return {**row, "at": random.randint(0, 9999), "segment": "00000000000000000042.log", "batch": 61}


def _stays(random: Random, kind: RowKind, row: Row) -> tuple[list[Row], list[Row]]:
    return [row], [_elsewhere(random, row)]


def _mutates(random: Random, kind: RowKind, row: Row) -> tuple[list[Row], list[Row]]:
    return [row], [_elsewhere(random, mutated(random, kind, row))]


def mutated(random: Random, kind: RowKind, row: Row) -> Row:
    """One field, drawn anew: mostly another value, sometimes one that only looks like another."""
    if not kind.values:
        return row
    one = random.choice(kind.values)
    value = row[one.name]
    if isinstance(value, list) and random.random() < 0.5:
        changed: Any = random.sample(value, len(value)) + value[: random.randint(0, 1)]
    elif isinstance(value, float) and random.random() < 0.5:
        changed = value * random.choice([1 + 5e-7, 1 + 3e-6, 1 - 5e-7])
    else:
        changed = _value(random, kind, one, row)
    return {**row, one.name: changed}


def _shifts(random: Random, kind: RowKind, row: Row) -> tuple[list[Row], list[Row]]:
    """`[4], []` against `[], [4]`, `a, bc` against `ab, c`, null against empty: what a careless hash takes for equal."""
    by_sort: dict[tuple[FieldType, Rule], list[Field]] = {}
    for one in kind.values:
        by_sort.setdefault((one.type, one.rule), []).append(one)
    pair = next((fields for (_, rule), fields in by_sort.items() if len(fields) > 1 and rule is not Rule.DIGEST), None)
    if pair is None:
        nullable = [one for one in kind.values if one.type is FieldType.TEXT and one.rule is Rule.EXACT]
        return [{**row, **{one.name: "" for one in nullable}}], [{**row, **{one.name: None for one in nullable}}]
    first, second = pair[0].name, pair[1].name
    empty: Any = [] if pair[0].type is FieldType.INTS else None
    value = row[first] or row[second]
    return [{**row, first: value, second: empty}], [{**row, first: empty, second: value}]


def _left_only(random: Random, kind: RowKind, row: Row) -> tuple[list[Row], list[Row]]:
    return [row], []


def _right_only(random: Random, kind: RowKind, row: Row) -> tuple[list[Row], list[Row]]:
    return [], [row]


def _doubles(random: Random, kind: RowKind, row: Row) -> tuple[list[Row], list[Row]]:
    other = random.choice([row, mutated(random, kind, row)])
    return random.choice([([row, other], [row]), ([row], [row, other]), ([row, other], [row, other]), ([], [row, row])])


FATES: list[Fate] = [_stays, _mutates, _shifts, _left_only, _right_only, _doubles]
WEIGHTS = [8, 6, 2, 1, 1, 1]


def _versions(random: Random, kind: RowKind, row: Row) -> Iterator[Row]:
    """Of a journal: each at its own offset; some are what the left side has, some are deletions."""
    for at in random.sample(range(10_000, 20_000), random.randint(1, 3)):
        version = random.choice([row, mutated(random, kind, row), _row(random, kind, {k.name: row[k.name] for k in kind.keys})])
        yield {**version, "at": at, "segment": "00000000000000000042.log", "batch": 99, "is_deleted": random.random() < 0.3}


def tolerations(random: Random, cluster: Cluster) -> tuple[Toleration, ...]:
    names = names_of(cluster.left, cluster.right, cluster.journal)
    drawn = []
    for number in range(random.randint(0, 3)):
        kind = random.choice(list(KINDS.values()))
        rows = [*cluster.left.get(kind.name, ()), *cluster.right.get(kind.name, ())]
        keys = [key_text(kind, tuple(row[key.name] for key in kind.keys), names) for row in rows]
        fields = ["", *(one.name for one in kind.values)]
        told = {"key": random.choice(["", *keys]), "field": random.choice(fields)}
        drawn.append(Toleration(record=kind.name, by=f"person {number}", reason="it is known", **told))
    return tuple(drawn)


def stage(cluster: Cluster, directory: Path) -> None:
    """Both sides, below `directory`; the journal belongs to the right one."""
    write_rows(directory / "left", rows_of(cluster.left))
    write_rows(directory / "right", [*rows_of(cluster.right), *rows_of(cluster.journal, is_journal=True)])


def rows_of(side: dict[str, list[Row]], is_journal: bool = False) -> Iterator[Rows]:
    for kind, rows in side.items():
        if rows:
            schema = journal_schema_of(kind) if is_journal else schema_of(kind)
            yield Rows(kind, pa.RecordBatch.from_pylist(rows, schema), is_journal)
