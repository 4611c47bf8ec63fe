"""What runs and what comes next is told by the plan and what is seen; whoever begins again goes on where the last one was."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.observed.replicas import LISTS, Broker, Layout, Partition
from domain.replication_factor.change import Change
from domain.replication_factor.window import Standing, next_batch, progress_of, slowed, standing_of

BEFORE = Partition("orders", 0, (1, 2), 1, (1, 2), 100, "id-1")
GROWS = Change(BEFORE, (1, 2, 3))

SEEN: dict[str, tuple[Partition | None, Standing]] = {
    "as it was": (BEFORE, Standing.WAITING),
    "a replica has fallen out": (replace(BEFORE, in_sync=(1,)), Standing.WAITING),
    "it copies": (replace(BEFORE, replicas=(1, 2, 3), adding=(3,)), Standing.MOVING),
    "it waits for the last one": (replace(BEFORE, replicas=(1, 2, 3)), Standing.LAGGING),
    "it is there": (replace(BEFORE, replicas=(1, 2, 3), in_sync=(3, 1, 2)), Standing.DONE),
    "in another order": (replace(BEFORE, replicas=(3, 1, 2), in_sync=(3, 1, 2)), Standing.OTHERS),
    "somebody adds another one": (replace(BEFORE, replicas=(1, 2, 4), adding=(4,)), Standing.OTHERS),
    "somebody takes it back": (replace(BEFORE, replicas=(1, 2, 3), removing=(3,)), Standing.OTHERS),
    "deleted": (None, Standing.GONE),
    "deleted and made again": (replace(BEFORE, topic_id="id-2"), Standing.GONE),
}


@pytest.mark.parametrize("seen", SEEN)
def test_what_has_become_of_a_change(seen: str) -> None:
    now, standing = SEEN[seen]
    assert standing_of(GROWS, now) is standing


def grows(number: int, size: int, leader: int = 1, added: int = 9) -> Change:
    return Change(Partition("t", number, (leader,), leader, (leader,), size, "id"), (leader, added))


def waiting(*changes: Change) -> Layout:
    return Layout((Broker(1, None),), tuple(change.partition for change in changes))


def moved(change: Change) -> Partition:
    return replace(change.partition, replicas=change.after, adding=change.added)


def test_the_largest_go_first_as_far_as_they_fit_at_both_ends() -> None:
    changes = [grows(0, 10), grows(1, 60), grows(2, 40), grows(3, 30, 2, 8), grows(4, 0)]
    batch = next_batch(progress_of(changes, waiting(*changes)), 100, 1000)
    assert [change.partition.number for change in batch] == [1, 2, 3, 4]


def test_what_moves_already_counts_and_what_is_too_large_goes_alone() -> None:
    changes = [grows(0, 500), grows(1, 10), grows(2, 10, 2, 8)]
    layout = waiting(*changes)
    assert [c.partition.number for c in next_batch(progress_of(changes, layout), 100, 1000)] == [0, 2]
    running = replace(layout, partitions=(moved(changes[0]), *layout.partitions[1:]))
    assert [c.partition.number for c in next_batch(progress_of(changes, running), 100, 1000)] == [2]


def test_no_batch_is_larger_than_it_may_be() -> None:
    changes = [grows(number, 0) for number in range(7)]
    assert len(next_batch(progress_of(changes, waiting(*changes)), 100, 3)) == 3


def test_who_sends_may_be_any_replica_and_who_receives_only_an_added_one() -> None:
    shrinks = Change(Partition("small", 0, (1, 2), 1, (1, 2)), (1,))
    second = replace(GROWS, partition=replace(BEFORE, number=1, replicas=(2,)), after=(2, 4))
    assert slowed([GROWS, second, shrinks]) == {"orders": {LISTS[0]: "0:1,0:2,1:2", LISTS[1]: "0:3,1:4"}}


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(1, 3), st.integers(4, 6)), min_size=1, max_size=30),
    st.integers(1, 400),
    st.data(),
)
def test_interrupted_after_every_batch_it_comes_to_the_end(
    sizes: list[tuple[int, int, int]], limit: int, data: st.DataObject
) -> None:
    """Batches end in any order; what is asked again in between is never asked for twice; no broker has too much at once."""
    changes = [grows(number, size, leader, added) for number, (size, leader, added) in enumerate(sizes)]
    layout = waiting(*changes)
    for _ in range(3 * len(changes)):
        progress = progress_of(changes, layout)
        if len(progress[Standing.DONE]) == len(changes):
            break
        begun = {change.partition.number for change in next_batch(progress, limit, 5)}
        moving = {change.partition.number for change in progress[Standing.MOVING]}
        assert not begun & moving
        assert begun or moving, "somebody always moves"
        ended = set(data.draw(st.sets(st.sampled_from(sorted(moving)), min_size=1))) if moving else set[int]()
        layout = Layout(
            layout.brokers,
            tuple(
                moved(changes[one.number])
                if one.number in begun
                else replace(one, adding=(), in_sync=changes[one.number].after)
                if one.number in ended
                else one
                for one in layout.partitions
            ),
        )
        for broker in range(1, 7):
            at_once = [
                c.partition.size for c in changes if layout.partitions[c.partition.number].is_moving and broker in c.after
            ]
            assert len([size for size in at_once if size]) <= 1 or sum(at_once) <= limit
    assert len(progress_of(changes, layout)[Standing.DONE]) == len(changes)
