"""Who counts fewer partitions of the topics that coordinate than there are."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.observed.coordinators import Counter, Miscount, counters, miscounts
from domain.observed.observation import Process

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def started(properties: dict[str, str] | None = None, **minutes: float) -> dict[int, Counter]:
    """`b1=-30`: half an hour before noon."""
    return {int(name[1:]): Counter(at(when), properties or {}) for name, when in minutes.items()}


def numbered(*minutes: float) -> dict[int, datetime]:
    return {number: at(when) for number, when in enumerate(minutes)}


def test_who_started_before_some_were_added_counts_those_that_were_there() -> None:
    made = {OFFSETS: numbered(0, 0.1, 0.2, *[60.0] * 9), TRANSACTIONS: numbered(5, 5, 5)}
    (found,) = miscounts(made, started(b1=10, b2=30, b3=90))
    assert found == Miscount(topic=OFFSETS, partitions=12, counted={1: 3, 2: 3}, agree=False)
    (found,) = miscounts(made, started(b1=10, b2=30))
    assert found.agree


def test_a_topic_that_kafka_has_just_made_is_counted_by_all() -> None:
    """By the first consumer: brokers that ran already go by their setting, of which Kafka makes it."""
    properties = {"offsets.topic.num.partitions": "3"}
    assert miscounts({OFFSETS: numbered(0, 0.5, 0.9)}, started(properties, b1=-30, b2=-0.1, b3=30)) == ()
    assert miscounts({OFFSETS: {}}, started(b1=0)) == ()


@pytest.mark.parametrize(
    ("setting", "counted"),
    [({"offsets.topic.num.partitions": "3"}, {1: 3}), ({"offsets.topic.num.partitions": "12"}, {}), ({}, {})],
)
def test_who_is_older_than_the_topic_goes_by_its_setting(setting: dict[str, str], counted: dict[int, int]) -> None:
    """Made by hand with three, and grown to what the setting says: then that is what it counts. The default is 50."""
    made = {OFFSETS: numbered(0, 0, 0, *[60.0] * 9)}
    assert {broker: n for found in miscounts(made, started(setting, b1=-30)) for broker, n in found.counted.items()} == counted


def test_a_partition_that_somebody_has_made_anew_by_hand_is_none_that_was_added() -> None:
    made = numbered(*[0.0] * 50)
    assert miscounts({OFFSETS: made | {7: at(90)}}, started(b1=10)) == ()
    assert miscounts({OFFSETS: {number: when for number, when in made.items() if number != 7}}, started(b1=10)) == ()


@given(
    growth=st.lists(st.tuples(st.integers(5, 200), st.integers(1, 9)), max_size=4),
    births=st.dictionaries(st.integers(1, 5), st.integers(5, 200), max_size=5),
)
def test_what_a_broker_counts_is_what_there_was_when_it_started(growth: list[tuple[int, int]], births: dict[int, int]) -> None:
    """Against a topic that grows: events one after the other, minutes apart; and who starts counts what is there by then."""
    numbers, counts, size = [0.0] * 3, dict.fromkeys(births, 0), 3
    events = [*((2.0 * when, more, 0) for when, more in growth), *((2.0 * when + 1, 0, b) for b, when in births.items())]
    for when, more, broker in sorted(events):
        numbers += [when] * more
        size += more
        counts |= {broker: size} if broker else {}
    found = miscounts({OFFSETS: numbered(*numbers)}, {b: Counter(at(2.0 * when + 1), {}) for b, when in births.items()})
    told = {broker: count for one in found for broker, count in one.counted.items()}
    assert told == {broker: count for broker, count in counts.items() if count < size}
    assert [one.agree for one in found] == ([len(set(counts.values())) == 1] if told else [])


def test_of_who_does_not_run_nobody_asks_what_it_counts() -> None:
    runs = Process(is_running=True, identity="1@2", last_identity="1@2", started_at=NOON)
    gone = Process(is_running=False, identity=None, last_identity="1@1", started_at=NOON)
    assert counters({1: (runs, {}), 2: (gone, {}), 3: (None, {})}) == {1: Counter(NOON, {})}
