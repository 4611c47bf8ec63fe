"""Generated looks at clients' data, what may happen between two of them, and what a report must then say.

Everything is in plain rows. `expected_batches` compares them one by one: what the kernels must find, made another way.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from domain.drift.messages import ReplicaLog, Sight
from domain.offsets import GroupOffset, PartitionOffsets
from spark.codec.segment_manifest import BATCH_SCHEMA

TOPIC_ID = "Zm9vYmFyZm9vYmFyZm9vYg"
BROKERS = (1, 2)
SEGMENT = 40
"""Offsets in a segment."""

Row = dict[str, Any]
Finding = tuple[str, str, str, str, str]
"""Record, finding, severity, rule, key."""


@dataclass
class Look:
    """What one look found. A replica by topic, partition and broker."""

    partitions: dict[tuple[str, int], PartitionOffsets] = field(default_factory=dict)
    replicas: dict[tuple[str, int, int], ReplicaLog] = field(default_factory=dict)
    batches: list[Row] = field(default_factory=list)
    groups: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def sight(self) -> Sight:
        groups = tuple(GroupOffset(group, topic, number, at) for (group, topic, number), at in self.groups.items())
        return Sight(tuple(self.partitions.values()), tuple(self.replicas.values()), groups)

    def table(self) -> pa.Table:
        return pa.Table.from_pylist(self.batches, schema=BATCH_SCHEMA)

    def write(self, path: Path) -> Path:
        pq.write_table(self.table(), path)
        return path

    def copy(self) -> "Look":
        return copy.deepcopy(self)

    def of(self, replica: tuple[str, int, int]) -> list[Row]:
        return [row for row in self.batches if (row["topic"], row["partition"], row["broker"]) == replica]

    def cut(self, replica: tuple[str, int, int], end: int) -> None:
        """A replica's log ends there, at the end of a batch."""
        log = self.replicas[replica]
        self.replicas[replica] = replace(log, end=end, walked_until=min(log.walked_until, end))
        gone = [row for row in self.of(replica) if row["last_offset"] >= end]
        self.batches = [row for row in self.batches if row not in gone]


def rows_of(topic: str, partition: int, counts: list[int], start: int) -> list[Row]:
    """Batches of so many records, the first at `start`."""
    found, at = [], start
    for number, count in enumerate(counts):
        found.append(
            {
                "topic": topic,
                "partition": partition,
                "base_offset": at,
                "last_offset": at + count - 1,
                "count": count,
                "size": 61 + 10 * count,
                "crc": (2654435761 * (at + 1) + partition) % (1 << 32),
                "producer_id": -1,
                "producer_epoch": -1,
                "base_sequence": -1,
                "max_timestamp": at,
                "is_verified": True,
                "is_damaged": False,
                "segment": at // SEGMENT * SEGMENT,
                "position": 100 * number,
            }
        )
        at += count
    return found


@st.composite
def looks(draw: st.DrawFn) -> Look:
    """A whole cluster: each replica has all batches, and a follower may be behind what is not acknowledged yet."""
    look = Look()
    for topic in draw(st.lists(st.sampled_from(["orders", "a-1", "ключ.é", "orders-1"]), min_size=1, max_size=3, unique=True)):
        is_compacted = draw(st.sampled_from([False, False, False, True]))
        for number in range(draw(st.integers(1, 2))):
            counts = draw(st.lists(st.integers(1, 9), min_size=2, max_size=8))
            start = draw(st.integers(0, 50))
            rows = rows_of(topic, number, counts, start)
            watermark = draw(st.sampled_from([row["last_offset"] + 1 for row in rows]))
            look.partitions[topic, number] = PartitionOffsets(topic, TOPIC_ID, number, start, watermark, is_compacted)
            for broker in BROKERS:
                end = draw(st.sampled_from([row["last_offset"] + 1 for row in rows if row["last_offset"] + 1 >= watermark]))
                until = start if is_compacted else watermark
                look.replicas[topic, number, broker] = ReplicaLog(topic, TOPIC_ID, number, broker, start, end, start, until)
                look.batches += [{**row, "broker": broker} for row in rows if row["last_offset"] < until]
            look.groups["billing", topic, number] = draw(st.integers(start, watermark))
    return look


@dataclass
class Story:
    """Two looks, and what must be said of the second: these findings, and no other but `unverifiable` ones."""

    before: Look
    after: Look
    expected: set[Finding] = field(default_factory=set)


def _any_batch(draw: st.DrawFn, look: Look) -> Row | None:
    return draw(st.sampled_from(look.batches)) if look.batches else None


def name(row: Row) -> str:
    return f"{row['topic']}-{row['partition']} broker-{row['broker']} offset {row['base_offset']}"


def grow(draw: st.DrawFn, story: Story) -> None:
    """Clients go on: ends rise, and what was not acknowledged may have been cut and written anew."""
    for key, one in story.after.partitions.items():
        end = one.end + draw(st.integers(0, 30))
        story.after.partitions[key] = replace(one, end=end)
        for broker in BROKERS:
            log = story.after.replicas[*key, broker]
            story.after.replicas[*key, broker] = replace(log, end=max(end, one.end))
    for group, at in story.after.groups.items():
        story.after.groups[group] = draw(st.integers(at, story.after.partitions[group[1:]].end))


def retain(draw: st.DrawFn, story: Story) -> None:
    """Retention takes the oldest segments, on one replica before the other."""
    for key, one in story.after.partitions.items():
        start = draw(st.integers(one.start, one.end))
        story.after.partitions[key] = replace(one, start=start)
        for broker in BROKERS:
            log = story.after.replicas[*key, broker]
            kept = draw(st.integers(log.start, start))
            story.after.replicas[*key, broker] = replace(
                log, start=kept, walked_from=max(kept, log.walked_from), walked_until=max(kept, log.walked_until)
            )
            gone = [row for row in story.after.of((*key, broker)) if row["last_offset"] < kept]
            story.after.batches = [row for row in story.after.batches if row not in gone]


def other_leader(_draw: st.DrawFn, story: Story) -> None:
    """Rows in another order are the same rows."""
    story.after.batches.reverse()


def forge(field_name: str) -> Callable[[st.DrawFn, Story], None]:
    def mutate(draw: st.DrawFn, story: Story) -> None:
        row = _any_batch(draw, story.after)
        if row is not None:
            row[field_name] += draw(st.sampled_from([1, 7]))
            if field_name == "last_offset":
                row[field_name] -= row[field_name] - row["base_offset"]  # shorter, so that it stays in its span
                if row["count"] == 1:
                    return
            story.expected.add(("batch", "differs", "block", "batch", name(row)))

    mutate.__name__ = f"forge_{field_name}"
    return mutate


def damage(draw: st.DrawFn, story: Story) -> None:
    row = _any_batch(draw, story.after)
    if row is not None:
        row["is_damaged"], row["is_verified"] = True, False
        story.expected.add(("batch", "differs", "block", "checksum", name(row)))


def lose_batch(draw: st.DrawFn, story: Story) -> None:
    row = _any_batch(draw, story.after)
    if row is not None:
        story.after.batches.remove(row)
        story.expected.add(("batch", "missing_right", "block", "batch", name(row)))


def invent_batch(draw: st.DrawFn, story: Story) -> None:
    row = _any_batch(draw, story.before)
    if row is not None:
        story.before.batches.remove(row)
        story.expected.add(("batch", "missing_left", "block", "batch", name(row)))


def cut_replica(draw: st.DrawFn, story: Story) -> None:
    """It ends before what was acknowledged."""
    key = draw(st.sampled_from(sorted(story.after.replicas)))
    log = story.after.replicas[key]
    watermark = story.before.partitions[key[:2]].end
    rows = rows_before = story.after.of(key)
    if not rows_before or log.walked_until <= log.walked_from:
        return
    story.after.cut(key, draw(st.sampled_from(rows))["base_offset"])
    assert story.after.replicas[key].end < watermark
    story.expected.add(("replica-log", "differs", "block", "end", f"{key[0]}-{key[1]} broker-{key[2]}"))


def lose_end(draw: st.DrawFn, story: Story) -> None:
    """The partition itself goes back: an unclean election."""
    key = draw(st.sampled_from(sorted(story.after.partitions)))
    one = story.after.partitions[key]
    story.after.partitions[key] = replace(one, end=story.before.partitions[key].end - 1)
    story.after.groups = {group: at for group, at in story.after.groups.items() if group[1:] != key}
    story.before.groups = {group: at for group, at in story.before.groups.items() if group[1:] != key}
    story.expected.add(("partition-log", "differs", "block", "end", f"{key[0]}-{key[1]}"))


def rewind_start(draw: st.DrawFn, story: Story) -> None:
    key = draw(st.sampled_from(sorted(story.after.partitions)))
    one = story.before.partitions[key]
    story.before.partitions[key] = replace(one, start=one.start + 1)
    story.after.partitions[key] = replace(story.after.partitions[key], start=one.start)
    story.expected.add(("partition-log", "differs", "warn", "start", f"{key[0]}-{key[1]}"))


def lose_partition(draw: st.DrawFn, story: Story) -> None:
    keys = [key for key in story.after.partitions if (key[0], 1 - key[1]) in story.after.partitions]
    if keys:
        key = draw(st.sampled_from(sorted(keys)))
        del story.after.partitions[key]
        story.expected.add(("partition-log", "missing_right", "block", "missing-row", f"{key[0]}-{key[1]}"))


def lose_replica(draw: st.DrawFn, story: Story) -> None:
    key = draw(st.sampled_from(sorted(story.after.replicas)))
    del story.after.replicas[key]
    story.after.batches = [row for row in story.after.batches if row not in story.after.of(key)]
    story.expected.add(("replica-log", "missing_right", "warn", "replica-gone", f"{key[0]}-{key[1]} broker-{key[2]}"))


def delete_topic(draw: st.DrawFn, story: Story) -> None:
    topic = draw(st.sampled_from(sorted({key[0] for key in story.after.partitions})))
    _forget(story.after, topic)
    story.expected.add(("partition-log", "missing_right", "warn", "topic-deleted", topic))


def recreate_topic(draw: st.DrawFn, story: Story) -> None:
    """The same name, and nothing else is the same."""
    topic = draw(st.sampled_from(sorted({key[0] for key in story.after.partitions})))
    one = next(one for one in story.after.partitions.values() if one.topic == topic)
    _forget(story.after, topic)
    story.after.partitions[topic, 0] = replace(one, partition=0, topic_id="AAAAAAAAAAAAAAAAAAAAAQ", start=0, end=0)
    story.expected.add(("partition-log", "differs", "warn", "topic-recreated", topic))


def _forget(look: Look, topic: str) -> None:
    look.partitions = {key: one for key, one in look.partitions.items() if key[0] != topic}
    look.replicas = {key: one for key, one in look.replicas.items() if key[0] != topic}
    look.groups = {key: at for key, at in look.groups.items() if key[1] != topic}
    look.batches = [row for row in look.batches if row["topic"] != topic]


def rewind_group(draw: st.DrawFn, story: Story) -> None:
    key = draw(st.sampled_from(sorted(story.after.groups)))
    story.after.groups[key] = story.before.groups[key] - 1
    story.expected.add(("group-offset", "differs", "block", "committed", f"{key[0]} {key[1]}-{key[2]}"))


def lose_group(draw: st.DrawFn, story: Story) -> None:
    key = draw(st.sampled_from(sorted(story.after.groups)))
    del story.after.groups[key]
    story.expected.add(("group-offset", "missing_right", "warn", "group-gone", f"{key[0]} {key[1]}-{key[2]}"))


def commit_too_far(draw: st.DrawFn, story: Story) -> None:
    key = draw(st.sampled_from(sorted(story.after.groups)))
    story.after.groups[key] = story.after.partitions[key[1:]].end + 1
    story.expected.add(("group-offset", "differs", "block", "committed-beyond-end", f"{key[0]} {key[1]}-{key[2]}"))


def break_log(draw: st.DrawFn, story: Story) -> None:
    """The walk came to a place where it could not go on."""
    key = draw(st.sampled_from(sorted(story.after.replicas)))
    log, rows = story.after.replicas[key], story.after.of(key)
    if rows:
        at = draw(st.sampled_from(rows))["base_offset"]
        story.after.batches = [row for row in story.after.batches if row not in rows or row["last_offset"] < at]
        story.after.replicas[key] = replace(log, walked_until=at, broken="no batch begins here")
        story.expected.add(("replica-log", "differs", "block", "unreadable", f"{key[0]}-{key[1]} broker-{key[2]}"))


LAWFUL = (grow, retain, other_leader)
LOSSES = (
    *(forge(name) for name in ("crc", "count", "size", "last_offset")),
    damage,
    lose_batch,
    invent_batch,
    cut_replica,
    lose_end,
    rewind_start,
    lose_partition,
    lose_replica,
    delete_topic,
    recreate_topic,
    rewind_group,
    lose_group,
    commit_too_far,
    break_log,
)


@st.composite
def stories(draw: st.DrawFn, losses: tuple[Callable[[st.DrawFn, Story], None], ...] = ()) -> Story:
    """What is lawful, some of it, and then one loss."""
    before = draw(looks())
    story = Story(before, before.copy())
    if losses:
        draw(st.sampled_from(losses))(draw, story)
        return story
    for happens in draw(st.lists(st.sampled_from(LAWFUL), max_size=3)):
        happens(draw, story)
    return story


def expected_batches(before: list[Row], after: list[Row], spans: list[Any]) -> set[tuple[str, str, str]]:
    """Key, finding and field of every difference, row by row."""
    found = set()
    for span in spans:
        sides = [
            {
                row["base_offset"]: row
                for row in rows
                if (row["topic"], row["partition"], row["broker"]) == (span.topic, span.partition, span.broker)
                and span.begin <= row["last_offset"] < span.end
            }
            for rows in (before, after)
        ]
        for offset in sides[0].keys() | sides[1].keys():
            left, right = (side.get(offset) for side in sides)
            key = f"{span.topic}-{span.partition} broker-{span.broker} offset {offset}"
            if left is None or right is None:
                found.add((key, "missing_left" if left is None else "missing_right", ""))
            elif left is not None:
                names = ("last_offset", "count", "size", "crc")
                found |= {(key, "differs", name) for name in names if left[name] != right[name]}
            if right is not None and right["is_damaged"]:
                found.add((key, "differs", "checksum"))
    return found
