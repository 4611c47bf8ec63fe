"""Clients' data, before and after: what is looked at, and the rules by which it is the same.

A migration moves no message, so what was acknowledged before must be there afterwards, in the very same batches. Looked at are
partitions as their leaders see them, each replica's log on its own disk, record batches in it, and what groups committed.

1. A partition's log never ends before the high watermark that it had, and begins no earlier than it began. Retention and
   deletions by clients let it begin later: how much of what each topic had is gone so, the report says. The same for each
   replica: it had all that was below both its own end and the high watermark, which is acknowledged; what is beyond may be cut
   when another leader is elected.
2. In the offsets that both looks have read of one replica, there are the same batches: first and last offset, count, size,
   CRC-32C. The leader's epoch is not compared: it lies outside the checksum, for brokers write it. What the checksum covers
   is the same when the checksum is, where that was verified (`checksum`).
3. The cleaner rewrites and merges the batches of compacted topics: there only rule 1 holds, and the report says so.
4. Deleted topics, and those made anew under their old name, are named once, and nothing else is said of them.
5. A group's committed offset never goes back, and is not beyond the partition's end. A group that is gone may have expired.
6. Logs that cannot be read are named: as a loss, when they could be read before. Nodes that could not look are named.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from domain.drift.records import Field, FieldType, RowKind, Rule, Severity
from domain.drift.report import DriftFinding, FindingKind
from domain.offsets import GroupOffset, PartitionOffsets

RULES_VERSION = 2
"""Rises whenever messages are compared another way."""


class MessageRule(StrEnum):
    """Each has a name that a report shows."""

    END = "end"
    START = "start"
    MISSING = "missing-row"
    TOPIC_DELETED = "topic-deleted"
    TOPIC_RECREATED = "topic-recreated"
    REPLICA_GONE = "replica-gone"
    UNREADABLE = "unreadable"
    BATCH = "batch"
    CHECKSUM = "checksum"
    COMMITTED = "committed"
    BEYOND_END = "committed-beyond-end"
    GROUP_GONE = "group-gone"
    COMPACTED = "compacted"
    REMOVED = "removed"
    NOT_WALKED = "not-walked"
    NOT_VERIFIED = "not-verified"
    OFFSETS_ONLY = "offsets-only"


SEVERITY: dict[MessageRule, Severity] = {
    MessageRule.END: Severity.BLOCK,
    MessageRule.START: Severity.WARN,
    MessageRule.MISSING: Severity.BLOCK,
    MessageRule.TOPIC_DELETED: Severity.WARN,
    MessageRule.TOPIC_RECREATED: Severity.WARN,
    MessageRule.REPLICA_GONE: Severity.WARN,
    MessageRule.UNREADABLE: Severity.BLOCK,
    MessageRule.BATCH: Severity.BLOCK,
    MessageRule.CHECKSUM: Severity.BLOCK,
    MessageRule.COMMITTED: Severity.BLOCK,
    MessageRule.BEYOND_END: Severity.BLOCK,
    MessageRule.GROUP_GONE: Severity.WARN,
    MessageRule.COMPACTED: Severity.INFO,
    MessageRule.REMOVED: Severity.INFO,
    MessageRule.NOT_WALKED: Severity.INFO,
    MessageRule.NOT_VERIFIED: Severity.INFO,
    MessageRule.OFFSETS_ONLY: Severity.INFO,
}
"""Of a finding by this rule; damage that was there before warns only: the migration has not done it."""

PARTITION_LOG, REPLICA_LOG, BATCH, GROUP_OFFSET = "partition-log", "replica-log", "batch", "group-offset"


@dataclass(frozen=True, slots=True)
class ReplicaLog:
    """One replica's log, on the disk of `broker`.

    `walked_from`, `walked_until`: the offsets whose batches are known, the latter exclusive. `broken`: where it cannot be read,
    and why; empty for a whole one. `why_not`: why less was walked than was asked for.
    """

    topic: str
    topic_id: str
    partition: int
    broker: int
    start: int
    end: int
    walked_from: int
    walked_until: int
    broken: str = ""
    why_not: str = ""


def _column(name: str, kind: FieldType, means: str) -> Field:
    return Field(name, kind, Rule.EXACT, means)


_PLACE = (
    _column("topic", FieldType.TEXT, "Topic."),
    _column("partition", FieldType.INT, "Number."),
    _column("broker", FieldType.INT, "Whose replica."),
)
COMPARED = (
    _column("last_offset", FieldType.LONG, "Offset of the last record."),
    _column("count", FieldType.INT, "Records."),
    _column("size", FieldType.LONG, "Bytes, the header included."),
    _column("crc", FieldType.LONG, "CRC-32C as the header has it."),
)
"""What makes a batch the same (rule 2)."""
BATCH_ROWS = RowKind(
    BATCH,
    (*_PLACE, _column("base_offset", FieldType.LONG, "Offset of the first record.")),
    (
        *COMPARED,
        _column("producer_id", FieldType.LONG, "Producer's id, -1 for none."),
        _column("producer_epoch", FieldType.INT, "Its epoch."),
        _column("base_sequence", FieldType.INT, "Number of the first record among the producer's."),
        _column("max_timestamp", FieldType.LONG, "Newest record's time, milliseconds."),
        _column("is_verified", FieldType.FLAG, "The checksum was computed, and fits."),
        _column("is_damaged", FieldType.FLAG, "The checksum was computed, and does not fit."),
        _column("segment", FieldType.LONG, "First offset of the segment."),
        _column("position", FieldType.LONG, "Byte position in it."),
    ),
    "",
    "RecordBatch",
)
"""Declared like a kind of metadata: Arrow's schema comes from it. It is not among `KINDS`: no quorum has such rows."""


class LogKey(NamedTuple):
    topic: str
    partition: int


class ReplicaKey(NamedTuple):
    topic: str
    partition: int
    broker: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} broker-{self.broker}"


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets of one replica that both looks have read, the end exclusive."""

    topic: str
    partition: int
    broker: int
    begin: int
    end: int


@dataclass(frozen=True)
class Sight:
    """One look, without its batches. `offsets_only`: brokers whose disks could not be looked at, with the reason.

    `not_verified`: brokers with batches whose checksum was not computed: how many of how many.
    """

    partitions: tuple[PartitionOffsets, ...]
    replicas: tuple[ReplicaLog, ...] = ()
    groups: tuple[GroupOffset, ...] = ()
    offsets_only: Mapping[int, str] = field(default_factory=dict)
    not_verified: Mapping[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Judged:
    """What two looks say without their batches, and in which spans these are to be compared."""

    findings: tuple[DriftFinding, ...]
    spans: tuple[Span, ...]


def rules_fingerprint() -> str:
    """Of all that decides a comparison of messages."""
    compared = [one.name for one in COMPARED]
    told = {"messages": RULES_VERSION, "severities": SEVERITY, "batch": compared}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def judge(before: Sight, after: Sight) -> Judged:
    """Rules 1 and 3 to 6."""
    pair = _Pair.of(before, after)
    findings: list[DriftFinding] = [
        *_topics(pair),
        *_removed(pair),
        *_partitions(pair),
        *_brokers(before, after),
        *_groups(pair),
    ]
    spans: list[Span] = []
    logs = {_key(log): log for log in after.replicas}
    for log in before.replicas:
        if pair.is_settled(log.topic) or log.broker in after.offsets_only:
            continue
        found, span = _replica(pair, log, logs.get(_key(log)))
        findings.extend(found)
        spans.extend(span)
    return Judged(tuple(findings), tuple(spans))


@dataclass(frozen=True)
class _Pair:
    """Both looks by key. `settled`: topics that are not what they were, with the rule that says so."""

    before: dict[LogKey, PartitionOffsets]
    after: dict[LogKey, PartitionOffsets]
    groups: tuple[Mapping[tuple[str, LogKey], int], Mapping[tuple[str, LogKey], int]]
    settled: dict[str, MessageRule]
    compacted: frozenset[str]

    @classmethod
    def of(cls, before: Sight, after: Sight) -> "_Pair":
        ids = {one.topic: one.topic_id for one in before.partitions}
        ids_now = {one.topic: one.topic_id for one in after.partitions}
        settled = {topic: MessageRule.TOPIC_DELETED for topic in ids if topic not in ids_now}
        settled |= {
            topic: MessageRule.TOPIC_RECREATED
            for topic, found in ids.items()
            if found and ids_now.get(topic) and ids_now[topic] != found
        }
        return cls(
            _by_key(before.partitions),
            _by_key(after.partitions),
            (_committed(before.groups), _committed(after.groups)),
            settled,
            frozenset(one.topic for one in (*before.partitions, *after.partitions) if one.is_compacted),
        )

    def is_settled(self, topic: str) -> bool:
        return topic in self.settled


def _by_key(partitions: Iterable[PartitionOffsets]) -> dict[LogKey, PartitionOffsets]:
    return {LogKey(one.topic, one.partition): one for one in partitions}


def _committed(groups: Iterable[GroupOffset]) -> dict[tuple[str, LogKey], int]:
    return {(one.group, LogKey(one.topic, one.partition)): one.committed for one in groups}


def _key(log: ReplicaLog) -> ReplicaKey:
    return ReplicaKey(log.topic, log.partition, log.broker)


def _finding(
    record: str,
    rule: MessageRule,
    key: str,
    kind: FindingKind = FindingKind.DIFFERS,
    name: str = "",
    values: tuple[object, object] = (None, None),
    *,
    was_there_before: bool = False,
) -> DriftFinding:
    left, right = (None if value is None else str(value) for value in values)
    severity = Severity.WARN if was_there_before else SEVERITY[rule]
    return DriftFinding(record=record, finding=kind, severity=severity, rule=rule, key=key, field=name, left=left, right=right)


def _topics(pair: _Pair) -> Iterator[DriftFinding]:
    ids = {one.topic: one.topic_id for one in pair.before.values()}
    now = {one.topic: one.topic_id for one in pair.after.values()}
    for topic, rule in sorted(pair.settled.items()):
        is_gone = rule is MessageRule.TOPIC_DELETED
        kind = FindingKind.MISSING_RIGHT if is_gone else FindingKind.DIFFERS
        values = (None, None) if is_gone else (ids[topic], now[topic])
        yield _finding(PARTITION_LOG, rule, topic, kind, "" if is_gone else "topic_id", values)
    for topic in sorted(pair.compacted & ids.keys() - pair.settled.keys()):
        yield _finding(PARTITION_LOG, MessageRule.COMPACTED, topic, FindingKind.UNVERIFIABLE, "batches")


def _removed(pair: _Pair) -> Iterator[DriftFinding]:
    """By topic how many offsets there were, and how many of them still are, where some went from the beginning."""
    had, has = Counter[str](), Counter[str]()
    for key, one in pair.before.items():
        if key in pair.after and not pair.is_settled(key.topic) and key.topic not in pair.compacted:
            had[key.topic] += one.end - one.start
            has[key.topic] += max(one.end - max(one.start, pair.after[key].start), 0)
    for topic in sorted(topic for topic, number in had.items() if has[topic] < number):
        values = (had[topic], has[topic])
        yield _finding(PARTITION_LOG, MessageRule.REMOVED, topic, FindingKind.UNVERIFIABLE, "start", values)


def _partitions(pair: _Pair) -> Iterator[DriftFinding]:
    for key, one in pair.before.items():
        if pair.is_settled(key.topic):
            continue
        name, now = f"{key.topic}-{key.partition}", pair.after.get(key)
        if now is None:
            yield _finding(PARTITION_LOG, MessageRule.MISSING, name, FindingKind.MISSING_RIGHT)
            continue
        yield from _bounds(PARTITION_LOG, name, (one.start, now.start), (one.end, now.end))


def _bounds(record: str, key: str, starts: tuple[int, int], ends: tuple[int, int]) -> Iterator[DriftFinding]:
    """Rule 1."""
    if ends[1] < ends[0]:
        yield _finding(record, MessageRule.END, key, name="end", values=ends)
    if starts[1] < starts[0]:
        yield _finding(record, MessageRule.START, key, name="start", values=starts)


def _replica(pair: _Pair, log: ReplicaLog, now: ReplicaLog | None) -> tuple[list[DriftFinding], list[Span]]:
    key = str(_key(log))
    if now is None or (log.topic_id and now.topic_id and log.topic_id != now.topic_id):
        return [_finding(REPLICA_LOG, MessageRule.REPLICA_GONE, key, FindingKind.MISSING_RIGHT)], []
    watermark = pair.before[LogKey(log.topic, log.partition)].end
    findings = list(_bounds(REPLICA_LOG, key, (log.start, now.start), (min(log.end, watermark), now.end)))
    if now.broken:
        values = (log.broken or "whole", now.broken)
        was_broken = bool(log.broken)
        findings.append(
            _finding(REPLICA_LOG, MessageRule.UNREADABLE, key, name="batches", values=values, was_there_before=was_broken)
        )
    if log.topic in pair.compacted:
        return findings, []
    span, why_not = _span(log, now, watermark)
    if why_not:
        findings.append(
            _finding(REPLICA_LOG, MessageRule.NOT_WALKED, key, FindingKind.UNVERIFIABLE, "batches", (log.why_not, why_not))
        )
    return findings, [span] if span.begin < span.end else []


def _span(log: ReplicaLog, now: ReplicaLog, watermark: int) -> tuple[Span, str]:
    """What can be compared, and why it is not all that could be."""
    wanted_from = max(log.start, now.start, log.walked_from)
    wanted_until = min(log.walked_until, watermark, now.end)
    begin, end = max(wanted_from, now.walked_from), min(wanted_until, now.walked_until)
    span = Span(log.topic, log.partition, log.broker, begin, end)
    is_all = (begin <= wanted_from and end >= wanted_until) or wanted_from >= wanted_until
    if now.broken or (is_all and not log.why_not):
        return span, ""
    if not is_all:
        return span, now.why_not or f"offsets {begin} to {end} of {wanted_from} to {wanted_until}"
    return span, "the snapshot before was not complete"


def _brokers(before: Sight, after: Sight) -> Iterator[DriftFinding]:
    for broker in sorted(before.offsets_only.keys() | after.offsets_only.keys()):
        values = (before.offsets_only.get(broker), after.offsets_only.get(broker))
        yield _finding(REPLICA_LOG, MessageRule.OFFSETS_ONLY, f"broker-{broker}", FindingKind.UNVERIFIABLE, "batches", values)
    for broker, (count, of) in sorted(after.not_verified.items()):
        told = f"not computed for {count} of {of} batches"
        key = f"broker-{broker}"
        yield _finding(BATCH, MessageRule.NOT_VERIFIED, key, FindingKind.UNVERIFIABLE, "checksum", (None, told))


def _groups(pair: _Pair) -> Iterator[DriftFinding]:
    """Rule 5."""
    before, after = pair.groups
    for (group, log), committed in before.items():
        if pair.is_settled(log.topic):
            continue
        key, now = f"{group} {log.topic}-{log.partition}", after.get((group, log))
        if now is None:
            yield _finding(GROUP_OFFSET, MessageRule.GROUP_GONE, key, FindingKind.MISSING_RIGHT, values=(committed, None))
        elif now < committed:
            yield _finding(GROUP_OFFSET, MessageRule.COMMITTED, key, name="committed", values=(committed, now))
    for (group, log), committed in after.items():
        end = pair.after[log].end if log in pair.after else None
        if end is not None and committed > end:
            was_before = before.get((group, log), -1) == committed and log in pair.before and committed > pair.before[log].end
            key = f"{group} {log.topic}-{log.partition}"
            yield _finding(
                GROUP_OFFSET,
                MessageRule.BEYOND_END,
                key,
                name="committed",
                values=(end, committed),
                was_there_before=was_before,
            )
