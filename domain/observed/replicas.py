"""Where the replicas of partitions are, as brokers tell it. Plain records: a large cluster has hundreds of thousands."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that is alive. `rack`: `broker.rack`. `is_open`: it may be given replicas, since it has a log directory that is
    neither offline nor cordoned."""

    id: int
    rack: str | None
    is_open: bool = True


@dataclass(frozen=True, slots=True)
class Partition:
    """`replicas`: in order, the preferred leader first, with all that a running reassignment adds or removes. `leader`: `None`
    where it has none that is alive. `in_sync`: its ISR. `size`: bytes of its leader's log. `topic_id`: empty where the topic
    has none."""

    topic: str
    number: int
    replicas: tuple[int, ...]
    leader: int | None
    in_sync: tuple[int, ...]
    size: int = 0
    topic_id: str = ""
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """As its directory: `orders-3`."""
        return f"{self.topic}-{self.number}"

    @property
    def is_moving(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...]:
        """Its replicas once its running reassignment has ended."""
        return tuple(i for i in self.replicas if i not in self.removing)


@dataclass(frozen=True, slots=True)
class Layout:
    """All brokers that are alive, and all partitions but those of reserved topics, in order."""

    brokers: tuple[Broker, ...]
    partitions: tuple[Partition, ...]


RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
"""Configs of a broker: bytes a second that it sends to throttled replicas, and receives for them."""
LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
"""Configs of a topic: the partition:broker pairs that count, by comma; `*` is all of them."""


@dataclass(frozen=True, slots=True)
class Throttles:
    """Configs of `RATES` and `LISTS` that are set, by key. `brokers`: of each broker by itself. `default`: for all brokers that
    have none of their own. `topics`: by name."""

    brokers: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    default: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
