"""What changes cost: bytes that brokers send, receive and keep, and how long that takes under a throttle."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from domain.replication_factor.change import Change


@dataclass(frozen=True, slots=True)
class Cost:
    """Bytes, by broker. `grows`: what each has more on disk in the end; less where it is negative. `back`: what the way back
    would copy, for replicas that are removed.
    """

    sent: Mapping[int, int] = field(default_factory=dict)
    received: Mapping[int, int] = field(default_factory=dict)
    grows: Mapping[int, int] = field(default_factory=dict)
    back: int = 0

    @property
    def copied(self) -> int:
        return sum(self.received.values())


def cost_of(changes: Iterable[Change]) -> Cost:
    sent, received, grows = defaultdict[int, int](int), defaultdict[int, int](int), defaultdict[int, int](int)
    back = 0
    for change in changes:
        one = change.partition
        for broker in change.added:
            received[broker] += one.size
            grows[broker] += one.size
        for broker in change.removed:
            grows[broker] -= one.size
            back += one.size
        if one.leader is not None and change.added:
            sent[one.leader] += one.size * len(change.added)
    return Cost(dict(sent), dict(received), dict(grows), back)


@dataclass(frozen=True, slots=True)
class Endless:
    """What never ends: new messages come at least as fast as the throttle lets this broker copy. `inbound`: bytes a second."""

    broker: int
    is_receiver: bool
    inbound: float


def seconds_of(
    changes: Sequence[Change], rate: int, in_flight: int, inbound: Mapping[str, float]
) -> tuple[float, tuple[Endless, ...]]:
    """How long the slowest broker needs at `rate` bytes a second, and what would never end.

    What a replica copies grows meanwhile, so new messages take their part of the rate. Only what moves at the same time counts,
    which is at most `in_flight` bytes at a broker. `inbound`: bytes a second by partition name; 0 where it is not known.
    """
    longest, endless = 0.0, list[Endless]()
    for is_receiver in (False, True):
        for broker, own in sorted(_by_broker(changes, is_receiver=is_receiver).items()):
            seconds = 0.0
            for size, coming in _rounds(own, in_flight, inbound):
                if coming >= rate:
                    endless.append(Endless(broker, is_receiver, coming))
                    break
                seconds += size / (rate - coming)
            longest = max(longest, seconds)
    return longest, tuple(endless)


def _by_broker(changes: Iterable[Change], *, is_receiver: bool) -> dict[int, list[tuple[Change, int]]]:
    """What each broker sends, or receives, and how many times."""
    found = defaultdict[int, list[tuple[Change, int]]](list)
    for change in changes:
        if is_receiver:
            for broker in change.added:
                found[broker].append((change, 1))
        elif change.added and change.partition.leader is not None:
            found[change.partition.leader].append((change, len(change.added)))
    return found


def _rounds(own: Sequence[tuple[Change, int]], in_flight: int, inbound: Mapping[str, float]) -> Iterator[tuple[int, float]]:
    """Bytes, and new ones a second, of what moves at the same time: the largest first, as in `window.next_batch`."""
    size, coming = 0, 0.0
    for change, times in sorted(own, key=lambda one: -one[0].partition.size * one[1]):
        more = change.partition.size * times
        if size and size + more > in_flight:
            yield size, coming
            size, coming = 0, 0.0
        size, coming = size + more, coming + times * inbound.get(change.partition.name, 0.0)
    if own:
        yield size, coming
