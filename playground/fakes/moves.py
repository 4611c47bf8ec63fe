"""Reassignments of a simulated cluster: they begin when they are asked for, and end when the new replicas have caught up."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from activities.ports.replicas import Targets
from playground.fakes.topics import FakeTopic

LOOKS_TO_COPY = 2
UNKNOWN = "This server does not host this topic-partition."
INVALID = "The manual partition assignment includes a broker that is not registered, or one twice."


class Moves:
    """By topic and number: the replicas before, the target, and looks since the begin."""

    def __init__(self) -> None:
        self.of: dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...], int]] = {}

    def ask(
        self, topics: Iterable[FakeTopic], targets: Targets, registered: Collection[int]
    ) -> tuple[tuple[FakeTopic, ...], dict[tuple[str, int], str]]:
        """The topics as they are then, and why a target is refused."""
        found = {topic.name: topic for topic in topics}
        refused = dict[tuple[str, int], str]()
        for (name, number), target in targets.items():
            topic = found.get(name)
            if topic is None or number >= len(topic.assignment):
                refused[name, number] = UNKNOWN
            elif target is not None and (not set(target) <= set(registered) or len(set(target)) < len(target) or not target):
                refused[name, number] = INVALID
            else:
                found[name] = self._asked(topic, number, target)
        return tuple(found.values()), refused

    def advance(self, topics: Iterable[FakeTopic], in_sync: Collection[int]) -> tuple[FakeTopic, ...]:
        return tuple(self._advanced(topics, in_sync))

    def parts(self, topic: str, number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What is added, and what is removed."""
        before, target, _ = self.of.get((topic, number), ((), (), 0))
        return tuple(i for i in target if i not in before), tuple(i for i in before if i not in target)

    def _asked(self, topic: FakeTopic, number: int, target: tuple[int, ...] | None) -> FakeTopic:
        before = self.of.pop((topic.name, number), (topic.assignment[number], (), 0))[0]
        if target is None or set(target) <= set(before):
            return _with(topic, number, before if target is None else target)
        self.of[topic.name, number] = before, target, 0
        return _with(topic, number, (*target, *(i for i in before if i not in target)))

    def _advanced(self, topics: Iterable[FakeTopic], in_sync: Collection[int]) -> Iterator[FakeTopic]:
        for topic in topics:
            now = topic
            for number in range(len(topic.assignment)):
                move = self.of.get((topic.name, number))
                if move is None or not set(move[1]) <= set(in_sync):
                    continue
                before, target, looks = move
                if looks < LOOKS_TO_COPY:
                    self.of[topic.name, number] = before, target, looks + 1
                else:
                    del self.of[topic.name, number]
                    now = _with(now, number, target)
            yield now


def _with(topic: FakeTopic, number: int, replicas: tuple[int, ...]) -> FakeTopic:
    return replace(topic, assignment=(*topic.assignment[:number], replicas, *topic.assignment[number + 1 :]))
