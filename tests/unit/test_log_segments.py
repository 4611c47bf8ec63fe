"""Topics that begin a new segment with nearly every batch, by what their brokers print."""

from domain.diagnosis.causes.hints import Hints
from domain.diagnosis.logs.replication import MANY, ROLL_LESS, rolled_in
from domain.observed.observation import PartitionFault
from tests.unit.blocked import DUAL, found
from tests.unit.conftest import with_kafka, with_metrics


def rolls(number: int, topic: str = "go-telemetry") -> tuple[str, ...]:
    """Two a second."""
    said = f"INFO [LocalLog partition={topic}-{{}}, dir=/data/2] Rolled new log segment at offset {{}} in 2 ms. (x)"
    return tuple(f"[2026-11-27 06:{n // 120:02}:{n // 2 % 60:02},000] {said.format(n % 8, n)}" for n in range(number))


def test_a_topic_that_rolls_all_the_time_is_told_with_how_often() -> None:
    assert rolled_in([rolls(MANY - 1)]) == ""
    told = rolled_in([rolls(10, "orders"), rolls(120)])
    assert told == ". Topic go-telemetry begins a new segment all the time: 120 in 59 s, by one broker's log"
    assert rolled_in([rolls(20), rolls(20), rolls(20), rolls(20)]) == "", "one broker's log has to show it"


def test_it_is_told_where_replicas_lag_and_where_a_broker_does_not_come_up() -> None:
    lagging = with_kafka(DUAL, under_replicated=(PartitionFault(partition="a-0", missing=(2,), leader=1),))
    (entry,) = found(lagging, hints=Hints(logs={1: rolls(120)}))
    assert "Topic go-telemetry begins a new segment all the time" in entry.observed
    assert entry.fix == ROLL_LESS.strip()
    (entry,) = found(with_metrics(DUAL, 2, broker_state=2), hints=Hints(logs={2: rolls(120)}))
    assert "Topic go-telemetry begins a new segment all the time" in entry.observed
    assert entry.fix.startswith(ROLL_LESS)
    (entry,) = found(lagging, hints=Hints(logs={1: rolls(5)}))
    assert "segment" not in entry.observed
