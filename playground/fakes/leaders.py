"""Who leads a partition of a simulated cluster: the preferred replica at first, another one in sync when that is gone."""

from collections.abc import Collection, Iterator

from playground.fakes.topics import FakeTopic


class Leaders:
    """By partition. Leadership stays where it is until its broker is gone, or somebody asks for an election."""

    def __init__(self) -> None:
        self.of: dict[str, int] = {}

    def advance(self, topics: Collection[FakeTopic], serving: Collection[int], in_sync: Collection[int]) -> None:
        for name, replicas in _partitions(topics):
            if self.of.setdefault(name, replicas[0]) not in serving:
                self.of[name] = next((replica for replica in replicas if replica in in_sync), self.of[name])

    def elect_preferred(self, topics: Collection[FakeTopic], in_sync: Collection[int]) -> int:
        wanted = [
            (name, replicas[0])
            for name, replicas in _partitions(topics)
            if replicas[0] in in_sync and self.of.get(name, replicas[0]) != replicas[0]
        ]
        self.of.update(wanted)
        return len(wanted)

    def led_by(self, broker: int) -> int:
        return sum(leader == broker for leader in self.of.values())


def _partitions(topics: Collection[FakeTopic]) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield from ((f"{topic.name}-{p}", replicas) for topic in topics for p, replicas in enumerate(topic.assignment))
