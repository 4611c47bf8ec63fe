"""All `PartitionRecord`s of a piece at once, as columns: there may be millions, and each varies in its lists only.

A cursor for each record moves over its bytes, all of them in step, so a record costs some gathers and no Python of its own.
Only the rare tagged fields (a leader that recovers, eligible leaders of 4.x) are read one by one.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domain.errors import Permanent
from spark.codec.metadata_records import Frames, Malformed, decoded, place_of, varints
from spark.codec.octets import Bytes, each_from
from spark.codec.record_batch import Ints

UUID_BYTES = 16


@dataclass(frozen=True)
class Lists:
    """A list of int32 for each row: row i has `values[offsets[i]:offsets[i + 1]]`."""

    offsets: Ints
    values: NDArray[np.int32]

    def row(self, index: int) -> tuple[int, ...]:
        return tuple(self.values[self.offsets[index] : self.offsets[index + 1]].tolist())

    def where(self, rows: Ints) -> "Lists":
        lengths = np.diff(self.offsets)[rows]
        return Lists(_offsets(lengths), self.values[_spread(self.offsets[:-1][rows], lengths)])

    def as_sets(self) -> "Lists":
        """Each row sorted and without repetitions."""
        row = np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int64), np.diff(self.offsets))
        ranked = (row << 32) | (self.values.astype(np.int64) + 2**31)
        if (ranked[1:] > ranked[:-1]).all():
            return self
        ranked.sort()
        ranked = ranked[np.diff(ranked, prepend=-1) != 0]
        lengths = np.bincount(ranked >> 32, minlength=len(self.offsets) - 1)
        return Lists(_offsets(lengths), ((ranked & 0xFFFFFFFF) - 2**31).astype(np.int32))


@dataclass(frozen=True)
class Partitions:
    """One row for each record. `topic_ids`: 16 bytes a row. `removing`, `adding` and `isr` are sets."""

    file: str
    topic_ids: Bytes
    numbers: NDArray[np.int32]
    replicas: Lists
    isr: Lists
    removing: Lists
    adding: Lists
    leaders: NDArray[np.int32]
    leader_epochs: NDArray[np.int32]
    recovery: NDArray[np.int32]
    offsets: Ints
    batch: Ints

    def __len__(self) -> int:
        return len(self.numbers)

    def where(self, rows: Ints) -> "Partitions":
        return Partitions(
            self.file,
            self.topic_ids[rows],
            self.numbers[rows],
            self.replicas.where(rows),
            self.isr.where(rows),
            self.removing.where(rows),
            self.adding.where(rows),
            self.leaders[rows],
            self.leader_epochs[rows],
            self.recovery[rows],
            self.offsets[rows],
            self.batch[rows],
        )

    def topic_marks(self) -> NDArray[np.uint64]:
        return topic_marks(self.topic_ids)

    def marks(self) -> NDArray[np.uint64]:
        """A number for each key, the same for the same key, so that few are left whose keys must be looked at."""
        return partition_marks(self.topic_marks(), self.numbers)


def topic_marks(ids: Bytes) -> NDArray[np.uint64]:
    halves = np.ascontiguousarray(ids).view(np.uint64)
    return np.asarray(halves[:, 0] ^ (halves[:, 1] * np.uint64(0x9E3779B97F4A7C15)), dtype=np.uint64)


def partition_marks(topics: NDArray[np.uint64], numbers: NDArray[np.int32]) -> NDArray[np.uint64]:
    return topics * np.uint64(0xD6E8FEB86659FD93) + numbers.astype(np.uint64)


def partitions_of(frames: Frames) -> Partitions:
    """The columns of `frames`, which are all `PartitionRecord`s."""
    try:
        return _columns(frames)
    except (IndexError, Malformed) as error:
        raise Permanent(f"{place_of(frames, 0)} or a PartitionRecord after it cannot be read: {error}") from error


def _columns(frames: Frames) -> Partitions:
    octets, at = frames.octets, frames.starts
    numbers, at = _int32(octets, at), at + 4
    topic_ids, at = each_from(octets, f"V{UUID_BYTES}")[at].view(np.uint8).reshape(-1, UUID_BYTES), at + UUID_BYTES
    lists = []
    for _ in range(4):
        found, at = _int_lists(octets, at, frames.ends)
        lists.append(found)
    replicas, isr, removing, adding = lists
    leaders, leader_epochs, at = _int32(octets, at), _int32(octets, at + 4), at + 12
    at = _after_directories(octets, at, frames)
    tags, at = varints(octets, at)
    recovery = np.zeros(len(frames), dtype=np.int32)
    tagged = np.flatnonzero(tags)
    recovery[tagged] = [record.values["leaderRecoveryState"] for record in decoded(frames, tagged)]
    if (at[tags == 0] != frames.ends[tags == 0]).any():
        raise Malformed("its fields do not fill it")
    return Partitions(
        frames.piece.batches.file,
        topic_ids,
        numbers,
        replicas,
        isr.as_sets(),
        removing.as_sets(),
        adding.as_sets(),
        leaders,
        leader_epochs,
        recovery,
        frames.offsets,
        frames.batch,
    )


def _after_directories(octets: Bytes, at: Ints, frames: Frames) -> Ints:
    """Since version 1; ZooKeeper has no counterpart."""
    with_them = np.flatnonzero(frames.versions >= 1)
    if with_them.size:
        counts, after = varints(octets, at[with_them])
        _check_lengths(counts, after, UUID_BYTES, frames.ends[with_them])
        at = at.copy()
        at[with_them] = after + (counts - 1) * UUID_BYTES
    return at


def _int_lists(octets: Bytes, at: Ints, ends: Ints) -> tuple[Lists, Ints]:
    counts, at = varints(octets, at)
    _check_lengths(counts, at, 4, ends)
    lengths = counts - 1
    return Lists(_offsets(lengths), _int32(octets, _spread(at, lengths, 4))), at + 4 * lengths


def _check_lengths(counts: Ints, at: Ints, width: int, ends: Ints) -> None:
    """Before anything is allocated for them."""
    if (counts == 0).any():
        raise Malformed("null where there must be a list")
    if (counts - 1 > (ends - at) // width).any():
        raise Malformed("a list reaches beyond the record")


def _offsets(lengths: NDArray[Any]) -> Ints:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _spread(starts: Ints, lengths: Ints, step: int = 1) -> Ints:
    """`start, start + step, …` of each row, its length long, one after another."""
    offsets = _offsets(lengths)
    within = np.arange(offsets[-1], dtype=np.int64) - np.repeat(offsets[:-1], lengths)
    return np.asarray(np.repeat(starts, lengths) + step * within, dtype=np.int64)


def _int32(octets: Bytes, at: Ints) -> NDArray[np.int32]:
    return np.asarray(each_from(octets, ">i4")[at].astype(np.int32))
