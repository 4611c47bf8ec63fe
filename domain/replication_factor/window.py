"""Which changes run, which come next, which replicas are slowed meanwhile: from the plan and what is seen, nothing else.

An attempt that follows one that died comes to the same answer.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from domain.observed.replicas import LISTS, Layout, Partition
from domain.replication_factor.change import Change


class Standing(StrEnum):
    """What has become of one change."""

    WAITING = "waiting"
    """As it was before: not asked for yet, or cancelled."""
    MOVING = "moving"
    """Kafka works on it."""
    LAGGING = "lagging"
    """Kafka has it as planned, and a replica is not in sync."""
    DONE = "done"
    GONE = "gone"
    """The partition does not exist any more, or its topic was deleted and made again."""
    OTHERS = "others"
    """Its replicas are neither those of before nor those of the plan: somebody else changes it, or has."""


def standing_of(change: Change, now: Partition | None) -> Standing:
    """`now`: the partition as it is seen, `None` where there is none."""
    if now is None or now.topic_id != change.partition.topic_id:
        return Standing.GONE
    if now.target == change.after:
        if now.is_moving:
            return Standing.MOVING
        return Standing.DONE if set(change.after) <= set(now.in_sync) else Standing.LAGGING
    is_swap = bool(change.added) and bool(change.removed)
    if is_swap and not now.is_moving and set(now.replicas) == {*change.partition.replicas, *change.after}:
        return Standing.MOVING  # It ended between the two questions that a look asks.
    return Standing.WAITING if not now.is_moving and now.replicas == change.partition.replicas else Standing.OTHERS


@dataclass(frozen=True, slots=True)
class Progress:
    """Changes by what has become of them, each in the plan's order."""

    by_standing: Mapping[Standing, Sequence[Change]]

    def __getitem__(self, standing: Standing) -> Sequence[Change]:
        return self.by_standing.get(standing, ())

    @property
    def bytes_left(self) -> int:
        """What is still to be copied. A partition that moves counts as a whole."""
        return sum(_copied(change) for which in (Standing.WAITING, Standing.MOVING) for change in self[which])


def progress_of(changes: Iterable[Change], now: Layout) -> Progress:
    seen = {(one.topic, one.number): one for one in now.partitions}
    found = defaultdict[Standing, list[Change]](list)
    for change in changes:
        found[standing_of(change, seen.get((change.partition.topic, change.partition.number)))].append(change)
    return Progress(found)


def next_batch(progress: Progress, limit: int, most: int) -> list[Change]:
    """What may begin now: the largest first, as long as no broker sends or receives more than `limit` bytes, and never
    more than `most` partitions. What is larger by itself goes alone. What copies nothing waits for nothing.
    """
    load = Counter[int]()
    for change in progress[Standing.MOVING]:
        load.update(_load(change))
    batch = list[Change]()
    waiting = sorted(progress[Standing.WAITING], key=lambda one: (-_copied(one), one.partition.topic, one.partition.number))
    for change in waiting:
        own = _load(change)
        if len(batch) < most and all(not load[broker] or load[broker] + size <= limit for broker, size in own.items()):
            batch.append(change)
            load.update(own)
    return batch


def _copied(change: Change) -> int:
    return change.partition.size * len(change.added)


def _load(change: Change) -> dict[int, int]:
    """Bytes that each broker sends or receives for it."""
    one = change.partition
    if one.leader is None or not _copied(change):
        return {}
    return {one.leader: _copied(change), **dict.fromkeys(change.added, one.size)}


def slowed(changes: Iterable[Change]) -> dict[str, dict[str, str]]:
    """The throttle lists of each topic while these move: who sends, which is every replica of before, since each may come to
    lead; and who receives, which is those that are added, and no other: a follower that is listed may fall out of sync.
    """
    sending, receiving = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for change in changes:
        one = change.partition
        sending[one.topic] += [f"{one.number}:{i}" for i in one.replicas]
        receiving[one.topic] += [f"{one.number}:{i}" for i in change.added]
    return {
        topic: {LISTS[0]: ",".join(sending[topic]), LISTS[1]: ",".join(numbers)}
        for topic, numbers in receiving.items()
        if numbers
    }
