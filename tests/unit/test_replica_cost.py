"""What a change costs, and when it would never end."""

from domain.observed.replicas import Partition
from domain.replication_factor.change import Change
from domain.replication_factor.cost import Endless, cost_of, seconds_of


def change(number: int, size: int, before: tuple[int, ...], after: tuple[int, ...]) -> Change:
    return Change(Partition("t", number, before, before[0], before, size), after)


GROWS = change(0, 100, (1,), (1, 2, 3))
SHRINKS = change(1, 70, (2, 1), (2,))


def test_bytes_are_counted_where_they_are_sent_received_and_kept() -> None:
    cost = cost_of([GROWS, SHRINKS])
    assert (cost.sent, cost.received, cost.copied) == ({1: 200}, {2: 100, 3: 100}, 200)
    assert cost.grows == {2: 100, 3: 100, 1: -70}
    assert cost.back == 70


def test_the_slowest_broker_sets_the_time() -> None:
    """Broker 1 sends twice what each of the others receives."""
    assert seconds_of([GROWS], 10, 1000, {}) == (20.0, ())
    assert seconds_of([SHRINKS], 10, 1000, {"t-1": 50.0}) == (0.0, ())


def test_new_messages_take_their_part_of_the_rate() -> None:
    """Twice, as two replicas copy them."""
    assert seconds_of([GROWS], 10, 1000, {"t-0": 3.0}) == (50.0, ())


def test_what_comes_as_fast_as_the_rate_never_ends_at_whom_it_moves_to_at_once() -> None:
    both = [change(n, 100, (n + 1,), (n + 1, 9)) for n in range(2)]
    inbound = {"t-0": 6.0, "t-1": 6.0}
    _, endless = seconds_of(both, 10, 1000, inbound)
    assert endless == (Endless(9, is_receiver=True, inbound=12.0),)
    seconds, endless = seconds_of(both, 10, 100, inbound)
    assert (seconds, endless) == (50.0, ()), "one after the other both end"
    _, endless = seconds_of([GROWS], 10, 1000, {"t-0": 5.0})
    assert endless == (Endless(1, is_receiver=False, inbound=10.0),)
