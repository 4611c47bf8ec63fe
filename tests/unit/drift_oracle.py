"""What a comparison has to say, worked out row by row in plain Python from the declaration alone: no Arrow, no hash, no bucket.

A side is a list of rows, each a dict of all columns of its kind. Written independently of `spark.comparing`, and slow.
"""

import json
from base64 import urlsafe_b64encode
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from domain.drift.records import KINDS, Field, RowKind, Rule
from domain.drift.tolerations import Toleration
from spark.comparing.fields import Circumstances

Row = dict[str, Any]
Side = Mapping[str, Sequence[Row]]
Key = tuple[Any, ...]
ByKey = dict[Key, list[Row]]
HIDDEN = "(redacted)"
NOW = Circumstances()


@dataclass(frozen=True)
class Told:
    """A finding, without the places where rows were read."""

    record: str
    finding: str
    severity: str
    rule: str
    key: str
    field: str = ""
    left: str | None = None
    right: str | None = None
    tolerated_by: str = ""


@dataclass
class Answer:
    """`rows`: of each kind left ones, right ones, and keys of which nothing was found."""

    findings: list[Told] = field(default_factory=list)
    rows: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        kinds = {told.finding for told in self.findings if told.severity != "info"}
        return "drift" if kinds & {"missing_left", "missing_right", "differs"} else "clean"


def ask_oracle(
    left: Side, right: Side, journal: Side, tolerated: Sequence[Toleration] = (), when: Circumstances = NOW
) -> Answer:
    """`when`: right after the copy KRaft's next producer id is the end of ZooKeeper's block."""
    answer = Answer()
    names = names_of(left, right, journal)
    for kind in KINDS.values():
        ours, theirs, versions = (_by_key(kind, side.get(kind.name, ())) for side in (left, right, journal))
        keys = ours.keys() | theirs.keys()
        found = {key: list(_judge(kind, ours[key], theirs[key], versions[key], when)) for key in keys}
        for key, tellings in found.items():
            text = key_text(kind, key, names)
            answer.findings.extend(_tolerate(replace(told, key=text), tolerated) for told in tellings)
        equal = sum(not tellings for tellings in found.values())
        answer.rows[kind.name] = (len(left.get(kind.name, ())), len(right.get(kind.name, ())), equal)
    return answer


def _by_key(kind: RowKind, rows: Sequence[Row]) -> ByKey:
    found: ByKey = defaultdict(list)
    for row in rows:
        found[tuple(row[key.name] for key in kind.keys)].append(row)
    return found


def _judge(
    kind: RowKind, ours: Sequence[Row], theirs: Sequence[Row], versions: Sequence[Row], when: Circumstances
) -> Iterator[Told]:
    if len(ours) > 1 or len(theirs) > 1:
        yield Told(kind.name, "differs", "block", "duplicate-key", "", "", _times(ours), _times(theirs))
    elif ours:
        alive = sorted((version for version in versions if not version["is_deleted"]), key=lambda version: version["at"])
        yield from _judge_left(kind, ours[0], [*theirs, *alive], bool(theirs), when)
    elif not any(version["is_deleted"] for version in versions):
        severity = "info" if when.is_left_older else kind.missing
        yield Told(kind.name, "missing_left", severity, "missing-row", "", right=_row_text(kind, theirs[0]))


def _times(rows: Sequence[Row]) -> str:
    return "1 row" if len(rows) == 1 else f"{len(rows)} rows"


def _judge_left(
    kind: RowKind, row: Row, candidates: Sequence[Row], has_row_of_cut: bool, when: Circumstances
) -> Iterator[Told]:
    outcomes = [list(_differences(kind, row, other, when)) for other in candidates]
    agreeing = [told for told in outcomes if all(one.finding == "unverifiable" for one in told)]
    if agreeing:
        yield from min(agreeing, key=len)
    elif has_row_of_cut:
        yield from outcomes[0]
    else:
        yield Told(kind.name, "missing_right", kind.missing, "missing-row", "", left=_row_text(kind, row))


def _differences(kind: RowKind, ours: Row, theirs: Row, when: Circumstances) -> Iterator[Told]:
    is_secret = kind.name == "broker-config" and (ours["digest"] != "" or theirs["digest"] != "")
    for one in kind.values:
        mine = ours["next"] if one.rule is Rule.PRODUCER_BLOCK and when.is_before_dual_write else ours[one.name]
        texts = _text(one, mine, is_secret), _text(one, theirs[one.name], is_secret)
        if one.rule is Rule.DIGEST and (mine is None or theirs[one.name] is None):
            yield Told(kind.name, "unverifiable", "info", one.rule, "", one.name, *texts)
        elif one.rule is Rule.PRODUCER_BLOCK and _agrees(one, ours["next"], theirs[one.name]):
            continue  # as the copy has left it, until KRaft hands out its next block
        elif when.is_left_older and _may_be_since(kind, one, ours, mine, theirs):
            continue
        elif not _agrees(one, mine, theirs[one.name]):
            yield Told(kind.name, "differs", one.severity, one.rule, "", one.name, *texts)


def _may_be_since(kind: RowKind, one: Field, ours: Row, mine: Any, theirs: Row) -> bool:
    """Changed after the left side was read, and before what it is compared with."""
    if kind.name == "token" and one.name == "expires":
        return bool(ours["at"] == -1)
    if kind.name == "partition" and any(row[name] for row in (ours, theirs) for name in ("adding", "removing")):
        return bool(ours["at"] == -1)
    if one.rule is Rule.PRODUCER_BLOCK:
        return mine is not None and theirs[one.name] is not None and theirs[one.name] >= mine
    return one.severity == "warn" and ours["at"] == -1


def _agrees(one: Field, mine: Any, other: Any) -> bool:
    if one.rule is Rule.NOT_COMPARED:
        return True
    if mine is None or other is None:
        return mine is other
    if one.rule is Rule.SET:
        return _set(mine) == _set(other)
    if one.rule is Rule.NUMBER:
        return mine == other or abs(mine - other) <= 1e-6 * max(abs(mine), abs(other)) < float("inf")
    return bool(mine == other)


def _set(value: Any) -> Any:
    return set(json.loads(value)) if isinstance(value, str) else set(value)


def _text(one: Field, value: Any, is_secret: bool) -> str | None:
    if value is None:
        return None
    if one.rule is Rule.DIGEST:
        return HIDDEN if value else ""
    if is_secret and one.name == "value":
        return HIDDEN
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _row_text(kind: RowKind, row: Row) -> str:
    compared = [one for one in kind.values if one.rule is not Rule.NOT_COMPARED]
    is_secret = kind.name == "broker-config" and row["digest"] != ""
    texts = ((one.name, _text(one, row[one.name], is_secret)) for one in compared)
    return " ".join(f"{name}={'null' if text is None else text}" for name, text in texts) or "present"


def names_of(*sides: Side) -> dict[str, str]:
    """Names of topics by id: those of the first side that has one, of several the first."""
    names: dict[str, str] = {}
    for side in sides:
        here = sorted((row["topic"], row["topic_id"]) for row in side.get("topic", ()) if row["topic_id"] is not None)
        for name, topic_id in here:
            names.setdefault(topic_id, name)
    return names


def key_text(kind: RowKind, key: Key, names: Mapping[str, str]) -> str:
    if kind.name == "partition":
        topic_id = urlsafe_b64encode(key[0]).decode().rstrip("=")
        return f"{names.get(topic_id, topic_id)}-{key[1]}"
    return key[0] if len(key) == 1 else "/".join(_escaped(part) for part in key)


def _escaped(part: str) -> str:
    if part in ("", "<default>"):
        return "<default>" if part == "" else "\\<default>"
    return part.replace("\\", "\\\\").replace("/", "\\/")


def _tolerate(told: Told, tolerated: Sequence[Toleration]) -> Told:
    if told.finding == "unverifiable" or told.rule == "duplicate-key":
        return told
    for one in tolerated:
        if one.record == told.record and one.key in ("", told.key) and one.field in ("", told.field):
            return replace(told, finding="tolerated", tolerated_by=one.named)
    return told
