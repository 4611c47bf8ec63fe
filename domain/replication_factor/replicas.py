"""Brokers and partitions as a planner needs them, and what is to become of a partition."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Broker:
    """A registered broker. `rack`: `broker.rack`. `is_open`: it may be given replicas: it is alive, not fenced, not shutting
    down, and has a log directory that is not cordoned."""

    id: int
    rack: str | None
    is_open: bool = True


@dataclass(frozen=True, slots=True)
class Partition:
    """`replicas`: in order, the preferred leader first, without those that a running reassignment adds. `leader`: `None` where
    it has none. `in_sync`: its ISR. `size`: bytes of its leader's log."""

    topic: str
    number: int
    replicas: tuple[int, ...]
    leader: int | None
    in_sync: tuple[int, ...]
    size: int = 0

    @property
    def name(self) -> str:
        """As its directory: `orders-3`."""
        return f"{self.topic}-{self.number}"


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one partition. `after`: its replicas then, in order. `whys`: why each broker joins or leaves."""

    partition: Partition
    after: tuple[int, ...]
    whys: tuple[tuple[int, str], ...] = ()

    @property
    def added(self) -> tuple[int, ...]:
        return tuple(i for i in self.after if i not in self.partition.replicas)

    @property
    def removed(self) -> tuple[int, ...]:
        return tuple(i for i in self.partition.replicas if i not in self.after)


class Racks:
    """The racks of brokers. They count only where every broker has one, as for Kafka's own placement of new topics."""

    def __init__(self, brokers: Iterable[Broker]) -> None:
        known = {broker.id: broker.rack for broker in brokers}
        self._of: Mapping[int, str | None] = known if None not in known.values() else {}

    def __bool__(self) -> bool:
        return bool(self._of)

    def __getitem__(self, broker_id: int) -> str | None:
        """`None` where racks do not count, and for a broker that is not registered."""
        return self._of.get(broker_id)

    def used(self, replicas: Iterable[int]) -> Counter[str]:
        """How many of these replicas each rack has."""
        return Counter(rack for i in replicas if (rack := self[i]) is not None)
