"""Where replicas are placed, and which are removed, when the factor of a partition changes.

- A partition keeps its order and its leader. What need not move does not move.
- A new replica goes to the rack that has the fewest replicas of the partition, there to the broker with the fewest replicas
  of all, of these to the one with the fewest bytes, and goes to the end of the list.
- The replica that is removed is the first one of these: out of sync; one of several in its rack; not the preferred leader;
  on the broker with the most replicas. The leader stays.
- In the end new replicas are exchanged between brokers, over others if need be, until no broker has two more than one that
  could take one of its own.

The same input, in any order, gives the same plan. Brokers that are not open take nothing.
"""

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from domain.observed.replicas import Broker, Partition
from domain.replication_factor.change import Change, Racks

LEAST_RACK, LEAST_LOADED = "its rack has the fewest replicas of this partition", "it has the fewest replicas of all brokers"
OUT_OF_SYNC, CROWDED = "it is out of sync", "its rack has another replica of this partition"
MOST_LOADED, ANOTHER_LEADS = "it has the most replicas of these brokers", "another replica leads"


class CannotPlace(Exception):
    """There are fewer open brokers than replicas are wanted."""


def plan(partitions: Iterable[Partition], factors: Mapping[str, int], brokers: Collection[Broker]) -> list[Change]:
    """What changes so that each topic in `factors` has that factor, by topic and number. Partitions without a leader are left
    as they are. `partitions`: all of the cluster, since each replica counts as load. Raises `CannotPlace`.
    """
    everything = sorted(partitions, key=lambda one: (one.topic, one.number))
    loads = _Loads(brokers, everything)
    changing = [one for one in everything if one.leader is not None and factors.get(one.topic, 0) > 0]
    drafts = [_Draft(one, list(one.replicas), factors[one.topic]) for one in changing]
    for draft in drafts:
        _remove(draft, loads)
    growing = [draft for draft in drafts if len(draft.after) < draft.factor]
    for draft in growing:
        _add(draft, loads)
    _even_out(growing, loads)
    return [draft.change for draft in drafts if tuple(draft.after) != draft.partition.replicas]


@dataclass(slots=True)
class _Draft:
    partition: Partition
    after: list[int]
    factor: int
    whys: dict[int, str] = field(default_factory=dict)

    @property
    def kept(self) -> int:
        """Of so many the list has been made before anything is added."""
        return sum(i in self.partition.replicas for i in self.after)

    @property
    def change(self) -> Change:
        return Change(self.partition, tuple(self.after), tuple(self.whys.items()))


class _Loads:
    """Replicas and bytes of every broker, and the open brokers in the order in which they take replicas."""

    def __init__(self, brokers: Collection[Broker], partitions: Sequence[Partition]) -> None:
        self.racks = Racks(brokers)
        self.open = frozenset(broker.id for broker in brokers if broker.is_open)
        self.replicas, self._bytes = Counter[int](), Counter[int]()
        for one in partitions:
            for broker_id in one.replicas:
                self.replicas[broker_id] += 1
                self._bytes[broker_id] += one.size
        self.order = sorted(self._key(broker_id) for broker_id in self.open)
        self._racks_open = {rack for i in self.open if (rack := self.racks[i]) is not None}

    def _key(self, broker_id: int) -> tuple[int, int, int]:
        return self.replicas[broker_id], self._bytes[broker_id], broker_id

    def give(self, broker_id: int, size: int, count: int = 1) -> None:
        """`count`: -1 takes one away."""
        is_open = broker_id in self.open
        if is_open:
            del self.order[bisect_left(self.order, self._key(broker_id))]
        self.replicas[broker_id] += count
        self._bytes[broker_id] += count * size
        if is_open:
            insort(self.order, self._key(broker_id))

    def best_for(self, replicas: Sequence[int]) -> int | None:
        """The least loaded open broker of the least used rack; `None` where every open broker has a replica."""
        used = self.racks.used(replicas)
        least = min((used[rack] for rack in self._racks_open), default=0)
        best: tuple[int, int] | None = None
        for _, _, broker_id in self.order:
            if broker_id in replicas:
                continue
            crowd = self.crowd(broker_id, used)
            if crowd == least:
                return broker_id
            if best is None or crowd < best[0]:
                best = crowd, broker_id
        return None if best is None else best[1]

    def crowd(self, broker_id: int, used: Mapping[str, int]) -> int:
        """How many replicas its rack has already; 0 where racks do not count."""
        return used.get(rack, 0) if (rack := self.racks[broker_id]) is not None else 0


def _remove(draft: _Draft, loads: _Loads) -> None:
    one = draft.partition
    while len(draft.after) > draft.factor:
        used = loads.racks.used(draft.after)

        def rank(i: int, used: Mapping[str, int] = used) -> tuple[bool, bool, bool, int, int]:
            """The greatest goes."""
            is_crowded, is_preferred = loads.crowd(i, used) > 1, i == one.replicas[0]
            return i not in one.in_sync, is_crowded, not is_preferred, loads.replicas[i], draft.after.index(i)

        gone = max((i for i in draft.after if i != one.leader), key=rank)
        is_out, is_crowded, is_other, *_ = rank(gone)
        draft.whys[gone] = OUT_OF_SYNC if is_out else CROWDED if is_crowded else MOST_LOADED if is_other else ANOTHER_LEADS
        draft.after.remove(gone)
        loads.give(gone, one.size, -1)


def _add(draft: _Draft, loads: _Loads) -> None:
    while len(draft.after) < draft.factor:
        found = loads.best_for(draft.after)
        if found is None:
            raise CannotPlace(
                f"{draft.partition.name}: a factor of {draft.factor} needs {draft.factor} brokers that take replicas or have "
                f"one; {len(loads.open | set(draft.after))} do"
            )
        draft.whys[found] = LEAST_RACK if loads.racks else LEAST_LOADED
        draft.after.append(found)
        loads.give(found, draft.partition.size)


def _even_out(drafts: Sequence[_Draft], loads: _Loads) -> None:
    """Pass added replicas on, along the shortest chain of brokers, from the fullest to one that has at least two fewer."""
    added = defaultdict[int, dict[int, None]](dict)
    for number, draft in enumerate(drafts):
        for broker_id in draft.after[draft.kept :]:
            added[broker_id][number] = None
    stuck = set[int]()
    while True:
        full = max((i for i in added if added[i] and i not in stuck), key=lambda i: (loads.replicas[i], i), default=None)
        if full is None:
            return
        chain, reached = _chain(full, drafts, added, loads)
        if not chain:
            stuck.update(reached)
            continue
        stuck.clear()
        for number, giver, taker in chain:
            draft = drafts[number]
            draft.after[draft.after.index(giver)] = taker
            draft.whys[taker] = draft.whys.pop(giver)
            del added[giver][number]
            added[taker][number] = None
            loads.give(giver, draft.partition.size, -1)
            loads.give(taker, draft.partition.size)


_Link = tuple[int, int, int]
"""Number of a draft, who gives its replica up, who takes it."""


def _chain(
    full: int, drafts: Sequence[_Draft], added: Mapping[int, Mapping[int, None]], loads: _Loads
) -> tuple[list[_Link], Collection[int]]:
    """Breadth first: the shortest chain, the last link first; no draft is in it twice. Without one, whoever was reached: none
    of these has a chain either, since `full` has the most replicas of those that are left to try.
    """
    most = loads.replicas[full] - 2
    came: dict[int, tuple[int, int] | None] = {full: None}
    left = {i for _, _, i in loads.order if i != full}
    if not any(loads.replicas[i] <= most for i in left):
        return [], came
    queue = [full]
    for giver in queue:
        passed = {number for number, *_ in _back(giver, came)}
        numbers = (number for number in added.get(giver, ()) if number not in passed)
        for number, taker in _takers(giver, drafts, numbers, loads, left):
            came[taker] = giver, number
            if loads.replicas[taker] <= most:
                return _back(taker, came), came
            queue.append(taker)
    return [], came


def _takers(
    giver: int, drafts: Sequence[_Draft], numbers: Iterable[int], loads: _Loads, left: set[int]
) -> Iterator[tuple[int, int]]:
    """Brokers in `left` that could have one of the giver's added replicas, and which one. Each is taken out of `left`."""
    seen = set[tuple[str, ...]]()
    for number in numbers:
        if not left:
            return
        others = [i for i in drafts[number].after if i != giver]
        used = loads.racks.used(others)
        own, alike = loads.crowd(giver, used), tuple(sorted(used))
        if own == 0 and alike in seen:
            continue  # Every broker in a rack beside these has been found.
        if loads.racks:
            seen.add(alike)
        for taker in sorted(left.difference(others), key=lambda i: (loads.replicas[i], i)):
            if loads.crowd(taker, used) <= own:
                left.discard(taker)
                yield number, taker


def _back(taker: int, came: Mapping[int, tuple[int, int] | None]) -> list[_Link]:
    """The links from the last one to the first."""
    links, at = list[_Link](), taker
    while (link := came[at]) is not None:
        giver, number = link
        links.append((number, giver, at))
        at = giver
    return links
