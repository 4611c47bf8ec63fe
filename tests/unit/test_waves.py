"""Waves against brute force: whatever shares what, nobody restarts together who may not, and nobody is left out."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.rolling.waves import Fleet, Wave, largest_set, next_wave, shared_partitions, waves_of

Assignment = dict[str, tuple[int, ...]]

RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}


def fleet_of(assignment: Assignment, brokers: tuple[int, ...], **more: object) -> Fleet:
    shared = shared_partitions(assignment.items())
    return replace(Fleet(brokers, shared, max_parallel=9, is_canary_proven=True), **more)  # type: ignore[arg-type]


def spread(racks: Mapping[int, str], partitions: int) -> Assignment:
    """Each partition has one replica in every rack."""
    by_rack = [[b for b in racks if racks[b] == rack] for rack in dict.fromkeys(racks.values())]
    return {f"orders-{p}": tuple(rack[(p // 3 + i) % len(rack)] for i, rack in enumerate(by_rack)) for p in range(partitions)}


def ids(waves: tuple[Wave, ...]) -> list[tuple[int, ...]]:
    return [wave.node_ids for wave in waves]


def test_who_shares_partitions_is_counted_with_one_example() -> None:
    found = shared_partitions([("a-0", (3, 1)), ("a-1", (1, 3, 2)), ("b-0", (2,))])
    assert [(pair.brokers, pair.count, pair.example) for pair in found] == [
        ((1, 2), 1, "a-1"),
        ((1, 3), 2, "a-0"),
        ((2, 3), 1, "a-1"),
    ]


def test_six_brokers_in_three_racks() -> None:
    """Roll 1: the controller, broker 1, is kept for the end; its neighbour is the canary. Roll 2: nobody is kept."""
    fleet = fleet_of(spread(RACKS, 12), (2, 3, 4, 5, 6, 1), racks=RACKS, is_canary_proven=False)
    assert ids(waves_of(replace(fleet, last_because="it begins the copy"))) == [(4,), (2, 5), (3, 6), (1,)]
    assert ids(waves_of(replace(fleet, waiting=(1, 2, 3, 4, 5, 6)))) == [(1,), (2, 5), (3, 6), (4,)]
    assert ids(waves_of(replace(fleet, max_parallel=1))) == [(2,), (3,), (4,), (5,), (6,), (1,)]
    assert ids(waves_of(replace(fleet, shared=None))) == [(2,), (3,), (4,), (5,), (6,), (1,)]


def test_every_wave_has_a_reason_in_words() -> None:
    fleet = fleet_of(
        spread(RACKS, 12), (2, 3, 4, 5, 6, 1), racks=RACKS, is_canary_proven=False, last_because="it begins the copy"
    )
    canary, pair, other, last = (wave.reason for wave in waves_of(fleet))
    assert canary == "the canary: broker-4 goes alone before any others go together"
    assert pair == (
        "broker-2, broker-5 share no partition and are in rack b; not along: "
        "broker-3 is in rack c, broker-2 in b; broker-2 and broker-6 share 6 partitions, such as orders-3"
    )
    assert other == "broker-3, broker-6 share no partition and are in rack c"
    assert last == "broker-1 goes last, and alone: it begins the copy"
    *_, of_roll_2 = waves_of(replace(fleet, last_because=""))
    assert of_roll_2.reason == "broker-5 is the only one left"


@pytest.mark.parametrize(
    ("fleet", "reason"),
    [
        (fleet_of({"t-0": (1, 2), "t-1": (1, 2)}, (1, 2)), "broker-1 and broker-2 share 2 partitions, such as t-0"),
        (fleet_of({"t-0": (1, 2)}, (1, 2)), "broker-1 and broker-2 share partition t-0"),
        (fleet_of({}, (1, 2), racks={1: "a", 2: "b"}), "broker-2 is in rack b, broker-1 in a"),
        (fleet_of({}, (1, 2), needed={2: ("t-0",)}), "t-0 cannot spare broker-2"),
        (fleet_of({}, (1, 2), last_because="it begins the copy"), "broker-2 is kept for the end: it begins the copy"),
    ],
)
def test_why_a_broker_goes_alone(fleet: Fleet, reason: str) -> None:
    assert next_wave(fleet).reason == f"broker-1 goes alone: {reason}"


def test_partitions_that_cannot_spare_a_replica_are_named_and_their_broker_joins_nobody() -> None:
    names = tuple(f"single-{n}" for n in range(7))
    fleet = fleet_of({}, (1, 2, 3), needed={2: names}, given_up={3: ("scratch-0",)})
    waves = waves_of(fleet)
    assert ids(waves) == [(1, 3), (2,)]
    assert (waves[0].without, waves[1].cannot_spare) == (("scratch-0",), names)
    assert "scratch-0 would be without enough replicas meanwhile, as the policy allows" in waves[0].reason
    assert "single-3, single-4 and 2 more cannot spare broker-2" in waves[1].reason


def test_a_pair_shares_a_partition_however_many_replicas_that_has() -> None:
    """Six replicas, two of which must be in sync: two restarts at once would leave four, and go apart all the same."""
    assert ids(waves_of(fleet_of({"wide-0": (1, 2, 3, 4, 5, 6)}, (1, 2)))) == [(1,), (2,)]


def test_a_broker_without_a_rack_is_judged_by_partitions_alone() -> None:
    fleet = fleet_of({"t-0": (1, 4)}, (1, 2, 3, 4), racks={2: "b", 3: "b", 4: "c"})
    assert ids(waves_of(fleet)) == [(1, 2, 3), (4,)]


def test_the_search_gives_up_in_the_end_and_says_what_it_has() -> None:
    """A hundred pairs, each of which excludes itself: 3^100 sets."""
    brokers = tuple(range(200))
    apart = {b: {b ^ 1: "pair"} for b in brokers}
    assert len(largest_set(brokers, apart, 150, tries=1000)) == 100
    assert largest_set(brokers, apart, 3) == (0, 2, 4)


BROKERS = st.integers(2, 7)
RACK = st.sampled_from(["a", "b", None])


@st.composite
def fleets(draw: st.DrawFn) -> tuple[Fleet, Assignment, dict[str, int]]:
    """A cluster with all in sync: its fleet, who has which partition, and each partition's `min.insync.replicas`."""
    brokers = tuple(range(1, draw(BROKERS) + 1))
    replicas = st.lists(st.sampled_from(brokers), min_size=1, max_size=4, unique=True).map(tuple)
    assignment = {f"t-{n}": found for n, found in enumerate(draw(st.lists(replicas, max_size=8)))}
    min_isr = {name: draw(st.integers(1, len(found))) for name, found in assignment.items()}
    needed = {b: tuple(p for p, r in assignment.items() if b in r and len(r) - 1 < min_isr[p]) for b in brokers}
    fleet = Fleet(
        waiting=tuple(draw(st.permutations(brokers))),
        shared=shared_partitions(assignment.items()),
        racks={b: rack for b in brokers if (rack := draw(RACK)) is not None},
        needed=needed,
        max_parallel=draw(st.integers(1, 5)),
        is_canary_proven=draw(st.booleans()),
        last_because=draw(st.sampled_from(["", "it begins the copy"])),
    )
    return fleet, assignment, min_isr


def may_go_together(fleet: Fleet, assignment: Assignment, wave: tuple[int, ...]) -> bool:
    """From the assignment itself, not from what waves are made of."""
    are_needed = any(fleet.needed[broker] for broker in wave)
    share = any(len(set(wave) & set(replicas)) > 1 for replicas in assignment.values())
    racks = {fleet.racks[broker] for broker in wave if broker in fleet.racks}
    return not are_needed and not share and len(racks) <= 1


@settings(max_examples=600, deadline=None)
@given(fleets())
def test_no_plan_breaks_the_promise(drawn: tuple[Fleet, Assignment, dict[str, int]]) -> None:
    """Promise 5, and the order: each broker once, the canary first, the one that is kept for the end last."""
    fleet, assignment, min_isr = drawn
    waves = waves_of(fleet)
    assert sorted(b for wave in waves for b in wave.node_ids) == sorted(fleet.waiting)
    assert fleet.is_canary_proven or len(waves[0].node_ids) == 1
    assert not fleet.last_because or waves[-1].node_ids == fleet.waiting[-1:]
    for wave in waves:
        assert wave.reason
        assert len(wave.node_ids) <= fleet.max_parallel
        assert len(wave.node_ids) == 1 or may_go_together(fleet, assignment, wave.node_ids)
        if not wave.cannot_spare:
            left = {p: [b for b in replicas if b not in wave.node_ids] for p, replicas in assignment.items()}
            assert all(len(alive) >= min_isr[p] for p, alive in left.items())


@settings(max_examples=600, deadline=None)
@given(fleets())
def test_each_wave_after_the_canary_is_as_large_as_any_could_be(drawn: tuple[Fleet, Assignment, dict[str, int]]) -> None:
    fleet, assignment, _ = drawn
    fleet = replace(fleet, is_canary_proven=True)
    while fleet.waiting:
        wave = next_wave(fleet).node_ids
        free = fleet.waiting[:-1] if fleet.last_because else fleet.waiting
        sizes = [
            size
            for size in range(1, fleet.max_parallel + 1)
            for some in combinations(free, size)
            if may_go_together(fleet, assignment, some)
        ]
        assert len(wave) == max(sizes, default=1)
        fleet = replace(fleet, waiting=tuple(b for b in fleet.waiting if b not in wave))
