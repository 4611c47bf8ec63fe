"""Partitions: columns of those that were only written once, and the few with changes replayed one by one.

A change (`PartitionChangeRecord`) says what is different, so it needs the state before it. It is applied where that state is
read: by whichever split has the partition's `PartitionRecord`. A topic's id is never used again after its removal.
"""

from collections import defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from domain.errors import Permanent
from spark.codec.metadata_partitions import UUID_BYTES, Partitions, partition_marks, topic_marks
from spark.codec.metadata_records import Origin, Record, Values
from spark.sources.kraft_image import Key, Version

NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1


class State(NamedTuple):
    """The values of a partition's row, in their order."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    leader: int
    isr: tuple[int, ...]
    leader_epoch: int
    recovery: int

    def changed(self, told: Values) -> "State":
        """As PartitionRegistration.merge does. A leader that is named again still begins another epoch."""
        has_leader = told["leader"] != NO_LEADER_CHANGE
        recovery = told["leaderRecoveryState"]
        return State(
            replicas=self.replicas if told["replicas"] is None else told["replicas"],
            adding=_set_or(told["addingReplicas"], self.adding),
            removing=_set_or(told["removingReplicas"], self.removing),
            leader=told["leader"] if has_leader else self.leader,
            isr=_set_or(told["isr"], self.isr),
            leader_epoch=self.leader_epoch + 1 if has_leader else self.leader_epoch,
            recovery=self.recovery if recovery == NO_RECOVERY_CHANGE else recovery,
        )


def _set_or(changed: tuple[int, ...] | None, before: tuple[int, ...]) -> tuple[int, ...]:
    return before if changed is None else tuple(sorted(set(changed)))


class Op(NamedTuple):
    """What happens to one partition: a whole state, or a change of it. `is_after`: after the cut, so it is a version."""

    origin: Origin
    is_after: bool
    state: State | None
    change: Values | None


class Removal(NamedTuple):
    origin: Origin
    is_after: bool


@dataclass
class Ops:
    """All that happens to partitions in a part of the log, by key, in order; and to whole topics."""

    by_key: dict[Key, list[Op]] = field(default_factory=lambda: defaultdict(list))
    removed: dict[bytes, Removal] = field(default_factory=dict)

    def change(self, record: Record, *, is_after: bool) -> None:
        key = (record.values["topicId"], record.values["partitionId"])
        self.by_key[key].append(Op(record.origin, is_after, None, record.values))

    def remove(self, record: Record, *, is_after: bool) -> None:
        self.removed[record.values["topicId"]] = Removal(record.origin, is_after)

    def create(self, partitions: Partitions) -> None:
        """After the cut, where each becomes a version."""
        for row in range(len(partitions)):
            key, state, origin = state_of(partitions, row)
            self.by_key[key].append(Op(origin, is_after=True, state=state, change=None))

    @cached_property
    def marks(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Of the partitions that have ops, and of the topics that are removed. To be asked for when all of them are there."""
        ids = np.frombuffer(b"".join(key[0] for key in self.by_key), dtype=np.uint8).reshape(-1, UUID_BYTES)
        numbers = np.array([key[1] for key in self.by_key], dtype=np.int32)
        removed = np.frombuffer(b"".join(self.removed), dtype=np.uint8).reshape(-1, UUID_BYTES)
        return partition_marks(topic_marks(ids), numbers), topic_marks(removed)


def state_of(partitions: Partitions, row: int) -> tuple[Key, State, Origin]:
    key = (partitions.topic_ids[row].tobytes(), int(partitions.numbers[row]))
    state = State(
        replicas=partitions.replicas.row(row),
        adding=partitions.adding.row(row),
        removing=partitions.removing.row(row),
        leader=int(partitions.leaders[row]),
        isr=partitions.isr.row(row),
        leader_epoch=int(partitions.leader_epochs[row]),
        recovery=int(partitions.recovery[row]),
    )
    return key, state, Origin(partitions.file, int(partitions.batch[row]), int(partitions.offsets[row]))


@dataclass(frozen=True)
class Settled:
    """`plain`: rows that nothing happened to. `rows`, `journal`: of the others at the cut and after it; `known`: their keys."""

    plain: Partitions
    rows: list[Version]
    journal: list[Version]
    known: frozenset[Key]


def settled(partitions: Partitions, ops: Ops) -> Settled:
    """The partitions as they are at the cut, and what becomes of them."""
    of_partitions, of_topics = ops.marks
    is_touched = np.isin(partitions.marks(), of_partitions) | np.isin(partitions.topic_marks(), of_topics)
    rows: list[Version] = []
    journal: list[Version] = []
    known: list[Key] = []
    for row in np.flatnonzero(is_touched).tolist():
        key, state, origin = state_of(partitions, row)
        known.append(key)
        at_cut, versions = history(key, Version(key, state, origin), ops)
        rows += at_cut
        journal += versions
    plain = partitions.where(np.flatnonzero(~is_touched)) if known else partitions
    return Settled(plain, rows, journal, frozenset(known))


def refuse_twice(here: Partitions, others: Iterable[Partitions]) -> None:
    """A partition is created once. `others` may have `here` among them."""
    marks = np.sort(np.concatenate([here.marks(), *(part.marks() for part in others if part is not here)]))
    if (marks[1:] != marks[:-1]).all():
        return
    twice = marks[1:][marks[1:] == marks[:-1]]
    seen: set[Key] = set()
    for part in (here, *(part for part in others if part is not here)):
        for row in np.flatnonzero(np.isin(part.marks(), twice)).tolist():
            key, _, origin = state_of(part, row)
            if key in seen:
                raise Permanent(f"{origin} creates partition {_name(key)} again: {_CONTRADICTS}")
            seen.add(key)


def history(key: Key, begun: Version | None, ops: Ops) -> tuple[list[Version], list[Version]]:
    """One partition's row at the cut, if there is one, and its versions after it."""
    now, journal = begun, []
    at_cut = now
    for op in ops.by_key.get(key, ()):
        before, now = now, _after(now, op, key)
        if not op.is_after:
            at_cut = now
        elif before is None or before.values != now.values:
            journal.append(now)
    removal = ops.removed.get(key[0])
    if removal is not None and not removal.is_after:
        return [], []
    if removal is not None and now is not None:
        journal.append(Version(key, None, removal.origin))
    return [] if at_cut is None else [at_cut], journal


def _after(before: Version | None, op: Op, key: Key) -> Version:
    if op.change is None:
        if before is not None:
            raise Permanent(f"{op.origin} creates partition {_name(key)} again: {_CONTRADICTS}")
        return Version(key, op.state, op.origin)
    if before is None or not isinstance(before.values, State):
        raise Permanent(f"{op.origin} changes partition {_name(key)}, which nothing has created: {_CONTRADICTS}")
    return Version(key, before.values.changed(op.change), op.origin)


_CONTRADICTS = "the files do not belong together, or something is missing. Copy the directory again"


def _name(key: Key) -> str:
    return f"{key[1]} of topic {key[0].hex()}"


def born_after(ops: Ops, known: Set[Key], *, may_be_elsewhere: bool) -> list[Version]:
    """The versions of partitions that are created after the cut, and of no others.

    `known`: keys whose creation was seen. `may_be_elsewhere`: others may have been created where somebody else reads.
    """
    journal: list[Version] = []
    for key in ops.by_key.keys() - known:
        if ops.by_key[key][0].change is None or not may_be_elsewhere:
            journal += history(key, None, ops)[1]
    return journal
