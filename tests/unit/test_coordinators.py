"""Who counts fewer partitions of the topics that coordinate than there are."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from activities import coordinators
from domain.coordinators import AS_IT_STARTS, AS_IT_WAS_MADE, Miscount, miscounts
from domain.observation import Process

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
OFFSETS = "__consumer_offsets"


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def test_who_started_before_some_were_added_counts_those_that_were_there() -> None:
    made = {OFFSETS: [at(0), at(0.1), at(0.2), *[at(60)] * 9], "__transaction_state": [at(5)] * 3}
    found = miscounts(made, {1: at(-30), 2: at(30), 3: at(90)})
    assert found == (Miscount(topic=OFFSETS, partitions=12, counted={1: 3, 2: 3}),)


def test_a_topic_that_kafka_has_just_made_is_counted_by_all() -> None:
    """By the first consumer: brokers that ran already count by their setting, of which Kafka makes it."""
    assert miscounts({OFFSETS: [at(0), at(0.5), at(0.9)]}, {1: at(-30), 2: at(-0.1), 3: at(30)}) == ()
    assert miscounts({OFFSETS: []}, {1: at(0)}) == ()


MADE, STARTED = st.integers(0, 100), st.integers(-100, 200)


@given(st.lists(MADE, min_size=1, max_size=20), st.dictionaries(st.integers(1, 5), STARTED, max_size=5))
def test_nobody_is_named_who_counts_all(made: list[int], started: dict[int, int]) -> None:
    found = miscounts({OFFSETS: [at(m) for m in made]}, {broker: at(m) for broker, m in started.items()})
    named = {broker for miscount in found for broker in miscount.counted}
    last, first = at(max(made)), at(min(made))
    assert named == {b for b, m in started.items() if max(at(m) + AS_IT_STARTS, first + AS_IT_WAS_MADE) < last}
    assert all(0 < count < len(made) for miscount in found for count in miscount.counted.values())


def test_of_who_does_not_run_nobody_asks_what_it_counts() -> None:
    runs = Process(is_running=True, identity="1@2", last_identity="1@2", started_at=NOON)
    gone = Process(is_running=False, identity=None, last_identity="1@1", started_at=NOON)
    assert coordinators.starts({1: runs, 2: gone, 3: None}) == {1: NOON}
