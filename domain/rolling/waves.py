"""Waves: which brokers of one roll restart together. Pure; computed anew before every wave from what was seen just then.

    1. the canary: one broker, until one of this roll runs in its new mode
    2. the largest set of at most `max_parallel` brokers, each pair of which
         - shares no partition, however many replicas that has: after two such restarts one more fault would do harm
         - is of one rack; a broker without a rack is judged by shared partitions alone, beside whatever rack
         - and of which none is needed by a partition that cannot spare it
    3. where the end of a roll counts, its last broker: alone

Brokers of one rack share nothing where replicas are spread over racks, and what a rack holds is held by the others too: so
it is with topics that are made between the look and the stop, which nobody has seen. Where it is not known who shares
partitions, every wave is one broker.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

from pydantic import BaseModel, ConfigDict

from domain.observed.observation import SharedPartitions

MAX_TRIES = 20_000
"""Brokers that are tried in the search for the largest set. Enough for any cluster whose replicas are spread over racks, and
for a few dozen brokers where they are not; beyond it the largest set found so far is taken."""

MAX_REASONS = 3
"""How many of the brokers that do not go along are named."""

MAX_NAMED = 5
"""How many partitions are named."""


class Wave(BaseModel):
    """Brokers that restart together, and why these. `cannot_spare`: partitions that would fall below `min.insync.replicas`,
    so that this wave does not begin. `without`: the same where the policy gives them up while their broker restarts.
    """

    model_config = ConfigDict(frozen=True)

    node_ids: tuple[int, ...]
    reason: str
    cannot_spare: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fleet:
    """Brokers that one roll has still to restart, in the order of their turn, and what decides who may go together.

    `needed`: by broker, partitions that cannot spare it; `given_up`: those of them that the policy gives up. `last_because`:
    why the last of `waiting` is kept for a wave of its own; empty where it is not.
    """

    waiting: tuple[int, ...]
    shared: tuple[SharedPartitions, ...] | None
    racks: Mapping[int, str] = field(default_factory=dict)
    needed: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    given_up: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    max_parallel: int = 1
    is_canary_proven: bool = False
    last_because: str = ""


def shared_partitions(assignment: Iterable[tuple[str, Collection[int]]]) -> tuple[SharedPartitions, ...]:
    """Every pair of brokers that have replicas of the same partition. `assignment`: partitions by name, with their replicas.

    Made once a second of all partitions, which have few different sets of replicas: those are counted first.
    """
    counts: Counter[frozenset[int]] = Counter()
    firsts: dict[frozenset[int], str] = {}
    for partition, replicas in assignment:
        together = frozenset(replicas)
        counts[together] += 1
        firsts.setdefault(together, partition)
    pairs: Counter[tuple[int, int]] = Counter()
    examples: dict[tuple[int, int], str] = {}
    for together, first in firsts.items():
        for pair in combinations(sorted(together), 2):
            pairs[pair] += counts[together]
            examples.setdefault(pair, first)
    return tuple(SharedPartitions(brokers=pair, count=pairs[pair], example=examples[pair]) for pair in sorted(pairs))


def waves_of(fleet: Fleet) -> tuple[Wave, ...]:
    """All waves of a roll, as they would be if nothing changed but that each wave is restarted: what a plan shows."""
    waves: list[Wave] = []
    while fleet.waiting:
        wave = next_wave(fleet)
        waves.append(wave)
        rest = tuple(broker for broker in fleet.waiting if broker not in wave.node_ids)
        fleet = replace(fleet, waiting=rest, is_canary_proven=True)
    return tuple(waves)


def next_wave(fleet: Fleet) -> Wave:
    """The wave that is next. There must be somebody waiting."""
    apart = _apart(fleet)
    together = _together(fleet, apart)
    if len(together) > 1:
        reason = f"{_names(together)} share no partition{_place(fleet, together)}"
        left = [broker for broker in _candidates(fleet) if broker not in together]
        return _wave(fleet, together, _sentence(reason, _why_not(fleet, apart, together, left)))
    alone = _alone(fleet, apart, together)
    return _wave(fleet, (alone,), _why_alone(fleet, apart, alone))


def largest_set(
    brokers: Collection[int], apart: Mapping[int, Mapping[int, str]], most: int, tries: int = MAX_TRIES
) -> tuple[int, ...]:
    """The largest set, of at most `most`, no two of which are apart; of several the one that begins first.

    Branch and bound: a branch that cannot become larger than the best is left. Exact within `tries`.
    """
    best: tuple[int, ...] = ()

    def grow(chosen: tuple[int, ...], left: list[int]) -> None:
        nonlocal best, tries
        best = chosen if len(chosen) > len(best) else best
        for index, broker in enumerate(left):
            can_grow_to = min(most, len(chosen) + len(left) - index)
            if can_grow_to <= len(best) or tries <= 0:
                return
            tries -= 1
            grow((*chosen, broker), [other for other in left[index + 1 :] if other not in apart[broker]])

    grow((), list(brokers))
    return best


def _together(fleet: Fleet, apart: Mapping[int, Mapping[int, str]]) -> tuple[int, ...]:
    """Who could go together now; nobody before the canary."""
    if not fleet.is_canary_proven or fleet.max_parallel == 1 or fleet.shared is None:
        return ()
    free = [broker for broker in _candidates(fleet) if not fleet.needed.get(broker)]
    return largest_set(free, apart, fleet.max_parallel)


def _candidates(fleet: Fleet) -> tuple[int, ...]:
    """All but the one that is kept for the end."""
    return fleet.waiting[:-1] if fleet.last_because and len(fleet.waiting) > 1 else fleet.waiting


def _alone(fleet: Fleet, apart: Mapping[int, Mapping[int, str]], together: tuple[int, ...]) -> int:
    """The one whose turn it is. As canary rather one that could have gone with the last, which goes alone anyway: so the
    other racks stay whole."""
    candidates, last = _candidates(fleet), fleet.waiting[-1]
    is_canary = not fleet.is_canary_proven and fleet.max_parallel > 1 and fleet.shared is not None
    if is_canary and fleet.last_because:
        beside = [b for b in candidates if b != last and b not in apart[last] and not fleet.needed.get(b)]
        return beside[0] if beside else candidates[0]
    return together[0] if together else candidates[0]


def _apart(fleet: Fleet) -> dict[int, dict[int, str]]:
    """For each broker those that it does not go together with, and why."""
    apart: dict[int, dict[int, str]] = {broker: {} for broker in fleet.waiting}

    def separate(one: int, other: int, why: str) -> None:
        apart[one][other] = apart[other][one] = why

    for one, other in combinations(fleet.waiting, 2):
        racks = fleet.racks.get(one), fleet.racks.get(other)
        if None not in racks and racks[0] != racks[1]:
            separate(one, other, f"broker-{other} is in rack {racks[1]}, broker-{one} in {racks[0]}")
    for pair in fleet.shared or ():
        one, other = pair.brokers
        if one in apart and other in apart:
            separate(one, other, _sharing(pair))
    return apart


def _sharing(pair: SharedPartitions) -> str:
    one, other = pair.brokers
    what = f"partition {pair.example}" if pair.count == 1 else f"{pair.count} partitions, such as {pair.example}"
    return f"broker-{one} and broker-{other} share {what}"


def _wave(fleet: Fleet, node_ids: tuple[int, ...], reason: str) -> Wave:
    cannot_spare = tuple(partition for broker in node_ids for partition in fleet.needed.get(broker, ()))
    without = tuple(partition for broker in node_ids for partition in fleet.given_up.get(broker, ()))
    if cannot_spare:
        reason = f"{reason}; it waits, because {_partitions(cannot_spare)} cannot spare {_names(node_ids)}"
    if without:
        reason = f"{reason}; {_partitions(without)} would be without enough replicas meanwhile, as the policy allows"
    return Wave(node_ids=node_ids, reason=reason, cannot_spare=cannot_spare, without=without)


def _why_alone(fleet: Fleet, apart: Mapping[int, Mapping[int, str]], broker: int) -> str:
    if fleet.last_because and len(fleet.waiting) == 1:
        return f"broker-{broker} goes last, and alone: {fleet.last_because}"
    if fleet.max_parallel == 1:
        return "one broker at a time, as the policy says"
    if len(fleet.waiting) == 1:
        return f"broker-{broker} is the only one left"
    if not fleet.is_canary_proven:
        return f"the canary: broker-{broker} goes alone before any others go together"
    if fleet.shared is None:
        return "one broker at a time: it is not known which brokers share partitions"
    left = [other for other in _candidates(fleet) if other != broker]
    why = _why_not(fleet, apart, (broker,), left) or _kept(fleet)
    return f"broker-{broker} goes alone: {why}"


def _kept(fleet: Fleet) -> str:
    return f"broker-{fleet.waiting[-1]} is kept for the end: {fleet.last_because}"


def _why_not(fleet: Fleet, apart: Mapping[int, Mapping[int, str]], wave: tuple[int, ...], left: Collection[int]) -> str:
    """Why others do not go along, for the first few of them."""
    reasons = [_why_not_this(fleet, apart, wave, other) for other in left]
    return "; ".join(dict.fromkeys(reasons[:MAX_REASONS]))


def _why_not_this(fleet: Fleet, apart: Mapping[int, Mapping[int, str]], wave: tuple[int, ...], other: int) -> str:
    if needed := fleet.needed.get(other):
        return f"{_partitions(needed)} cannot spare broker-{other}"
    why = next((apart[member][other] for member in wave if other in apart[member]), None)
    return why or f"at most {fleet.max_parallel} go together"


def _place(fleet: Fleet, wave: tuple[int, ...]) -> str:
    racks = {fleet.racks.get(broker) for broker in wave}
    rack = racks.pop()
    return f" and are in rack {rack}" if not racks and rack is not None else ""


def _sentence(what: str, others: str) -> str:
    return f"{what}; not along: {others}" if others else what


def _names(node_ids: Iterable[int]) -> str:
    return ", ".join(f"broker-{node_id}" for node_id in node_ids)


def _partitions(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"{', '.join(names[:MAX_NAMED])}{more}"
