"""Where replicas go: against brute force on small clusters, by its promises on large ones, judged by who knows no planner."""

import itertools
import random
from collections import Counter
from collections.abc import Collection, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.observed.replicas import Broker, Partition
from domain.replication_factor.change import Change, Racks
from domain.replication_factor.judge import why_not
from domain.replication_factor.planner import CROWDED, LEAST_RACK, OUT_OF_SYNC, CannotPlace, plan

THREE_RACKS = [Broker(i, f"rack-{i % 3}") for i in range(6)]
FOUR = [Broker(i, None) for i in range(4)]


def of(topic: str, *lists: Sequence[int]) -> list[Partition]:
    """Partitions whose first replica leads, all in sync."""
    return [Partition(topic, n, tuple(found), found[0], tuple(found), 100) for n, found in enumerate(lists)]


def loads(partitions: Collection[Partition], changes: Collection[Change]) -> Counter[int]:
    after = {change.partition.name: change.after for change in changes}
    return Counter(i for one in partitions for i in after.get(one.name, one.replicas))


def test_a_new_replica_goes_to_the_least_used_rack_and_there_to_the_least_loaded_broker() -> None:
    orders = of("orders", [0])
    beside = of("other", [1], [1], [2])
    (change,) = plan([*orders, *beside], {"orders": 3}, THREE_RACKS)
    assert change.after == (0, 4, 5), "racks 1 and 2, brokers without replicas"
    assert dict(change.whys) == {4: LEAST_RACK, 5: LEAST_RACK}


def test_out_of_sync_goes_first_then_who_crowds_a_rack() -> None:
    lagging = Partition("lagging", 0, (0, 1, 2), 0, (0, 2))
    crowded = Partition("crowded", 0, (0, 3, 1), 0, (0, 1, 3))
    changes = plan([lagging, crowded], {"lagging": 2, "crowded": 2}, THREE_RACKS)
    assert [(change.after, change.whys) for change in changes] == [((0, 1), ((3, CROWDED),)), ((0, 2), ((1, OUT_OF_SYNC),))]


def test_the_leader_stays_and_leads_where_it_is_not_the_preferred_one() -> None:
    (change,) = plan([Partition("orders", 0, (0, 1, 2), 2, (0, 1, 2))], {"orders": 1}, FOUR)
    assert change.after == (2,)
    (change,) = plan([Partition("orders", 0, (0, 1, 2), 2, (0, 1, 2))], {"orders": 2}, FOUR)
    assert change.after == (0, 2), "and with it the preferred one, in its order"


def test_who_has_the_factor_or_no_leader_stays_as_it_is() -> None:
    without = Partition("orders", 1, (1,), None, ())
    changes = plan([*of("orders", [0, 1]), without, *of("other", [3])], {"orders": 2}, FOUR)
    assert not changes


def test_a_closed_broker_takes_nothing_and_too_few_are_told() -> None:
    brokers = [Broker(0, None), Broker(1, None), Broker(2, None, is_open=False)]
    (change,) = plan(of("orders", [0]), {"orders": 2}, brokers)
    assert change.after == (0, 1)
    with pytest.raises(CannotPlace, match="orders-0: a factor of 3 needs"):
        plan(of("orders", [0]), {"orders": 3}, brokers)


def test_racks_count_only_where_every_broker_has_one() -> None:
    brokers = [Broker(0, "a"), Broker(1, "a"), Broker(2, None)]
    (change,) = plan([*of("orders", [0]), *of("other", [2])], {"orders": 2}, brokers)
    assert change.after == (0, 1), "the least loaded, though it is in the same rack"


def test_a_chain_evens_out_what_no_single_exchange_can() -> None:
    """Broker 1 would have four: it gives one up to broker 2, and that one gives one up to broker 3."""
    brokers = [Broker(0, "a"), Broker(1, "b"), Broker(2, "c"), Broker(3, "a")]
    partitions = of("orders", [1], [1], [1], [0], [3])
    changes = plan(partitions, {"orders": 2}, brokers)
    assert loads(partitions, changes) == {0: 2, 1: 3, 2: 3, 3: 2}


def best(partitions: Sequence[Partition], factor: int, brokers: Sequence[Broker]) -> int:
    """The least that the fullest broker can have, by trying everything: each partition as spread over racks as it can be."""
    racks = Racks(brokers)

    def choices(one: Partition) -> list[tuple[int, ...]]:
        free = [broker.id for broker in brokers if broker.is_open and broker.id not in one.replicas]
        found = [(*one.replicas, *more) for more in itertools.combinations(free, factor - len(one.replicas))]
        spread = max(len(racks.used(after)) for after in found)
        return [after for after in found if len(racks.used(after)) == spread]

    every = itertools.product(*(choices(one) for one in partitions))
    return min(max(Counter(itertools.chain.from_iterable(chosen)).values()) for chosen in every)


@pytest.mark.parametrize("seed", range(60))
def test_no_choice_leaves_the_fullest_broker_with_less(seed: int) -> None:
    """Tried against every choice of a small cluster, racks or not."""
    dice = random.Random(seed)  # noqa: S311 - a seed for a test
    racks = dice.choice([None, 2, 3])
    brokers = [Broker(i, None if racks is None else f"rack-{i % racks}") for i in range(4)]
    partitions = of("orders", *([dice.randrange(4)] for _ in range(dice.randint(1, 5))))
    factor = dice.choice([2, 3])
    changes = plan(partitions, {"orders": factor}, brokers)
    assert max(loads(partitions, changes).values()) == best(partitions, factor, brokers)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Broker], list[Partition]]:
    racks = draw(st.sampled_from([0, 2, 3, 5]))
    count = draw(st.integers(3, 12))
    brokers = [Broker(i, f"rack-{i % racks}" if racks else None, draw(st.booleans()) if i > 2 else True) for i in range(count)]
    partitions = list[Partition]()
    for number in range(draw(st.integers(1, 40))):
        replicas = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=3, unique=True))
        in_sync = [i for i in replicas if i == replicas[0] or draw(st.booleans())]
        leader = draw(st.sampled_from(in_sync))
        size = draw(st.integers(0, 1000))
        partitions.append(Partition(f"t{number % 3}", number, tuple(replicas), leader, tuple(in_sync), size))
    return brokers, partitions


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters(), st.integers(1, 3), st.integers(1, 3), st.randoms(use_true_random=False))
def test_every_change_is_allowed_moves_nothing_else_and_does_not_depend_on_the_order(
    cluster: tuple[list[Broker], list[Partition]], one: int, other: int, dice: random.Random
) -> None:
    brokers, partitions = cluster
    factors = {"t0": one, "t1": other}
    changes = plan(partitions, factors, brokers)
    after = {change.partition.name: change for change in changes}
    for partition in partitions:
        factor, change = factors.get(partition.topic), after.get(partition.name)
        if factor is None or factor == len(partition.replicas):
            assert change is None
            continue
        assert change is not None
        assert why_not(change, factor, brokers) is None
        assert [i for i in change.after if i in partition.replicas] == [i for i in partition.replicas if i in change.after]
        assert bool(change.added) != bool(change.removed), "grows or shrinks, never both"
        assert {i for i, _ in change.whys} == {*change.added, *change.removed}
        in_sync_gone = set(change.removed) & set(partition.in_sync)
        assert not in_sync_gone or set(change.after) <= set(partition.in_sync), "lagging ones go first"
    shuffled = [dice.sample(partitions, len(partitions)), dice.sample(brokers, len(brokers))]
    assert plan(shuffled[0], factors, shuffled[1]) == changes


BAD = {
    "would have two replicas": Change(of("orders", [0])[0], (0, 1, 1)),
    "is not registered": Change(of("orders", [0])[0], (0, 9)),
    "takes no replicas": Change(of("orders", [0])[0], (0, 5)),
    "it would have 3 replicas, not 2": Change(of("orders", [0])[0], (0, 1, 2)),
    "its leader, broker 0, would have no replica": Change(of("orders", [0])[0], (1, 2)),
    "it would be in 1 racks, where its in-sync replicas are in 2 now": Change(of("orders", [0, 1])[0], (0, 3)),
    "it has no leader": Change(Partition("orders", 0, (0,), None, ()), (0, 1)),
    "no broker would have a replica": Change(of("orders", [0])[0], ()),
}


@pytest.mark.parametrize("words", BAD)
def test_what_must_not_be_executed_is_named(words: str) -> None:
    brokers = [*THREE_RACKS[:5], Broker(5, "rack-2", is_open=False)]
    assert words in (why_not(BAD[words], 2, brokers) or "")
