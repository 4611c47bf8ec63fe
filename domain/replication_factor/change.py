"""What is to become of a partition's replicas, and the racks that they are in."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from domain.observed.replicas import Broker, Partition


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
