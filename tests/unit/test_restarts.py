"""A node that somebody ends and starts again while it is migrated."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.diagnosis.blocker import Blocker
from domain.diagnosis.causes.hints import Hints
from domain.diagnosis.causes.with_signs import restarts_in
from domain.observed.observation import Observation
from domain.zk_to_kraft.blockers import blockers_of
from tests.unit.blocked import DUAL, dead, looked_at
from tests.unit.conftest import mark_of, running, signs_of, with_file, with_metrics, with_part

BEGAN = datetime(2026, 11, 26, 18, 57, tzinfo=UTC)
PROBE = "process 812 (python3 /opt/probes/kafka-liveness.py)"


def line(seconds: float, words: str) -> str:
    return f"[{BEGAN + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S},000] INFO {words}"


def ended(seconds: float) -> str:
    return line(seconds, "Terminating process due to signal SIGTERM (org.apache.kafka.common.utils.LoggingSignalHandler)")


def started(seconds: float) -> str:
    return line(seconds, "Registered `kafka:type=kafka.Log4jController` MBean (kafka.utils.Log4jControllerRegistration$)")


def starting(node_id: int) -> Observation:
    """It runs, and does not serve yet."""
    return with_metrics(DUAL, node_id, broker_state=1)


def told(seen: Observation, *lines: str, in_hand: bool = False, by: str = PROBE) -> list[Blocker]:
    hints = Hints(logs={2: lines}, signs={"broker-2": signs_of(started_by=by)})
    entries, _ = blockers_of(looked_at(seen, in_hand=frozenset({"broker-2"} if in_hand else ()), hints=hints))
    return [entry for entry in entries if entry.object == "broker-2" and "asked to end" in entry.observed]


def test_whoever_ends_a_node_again_and_again_is_to_stop_that_and_nothing_else_helps() -> None:
    (entry,) = told(starting(2), ended(0), started(2), line(9, "x"), ended(15), started(17), ended(31), started(33))
    assert (
        f"(SIGTERM) 3 times within 31 s, the last time at 18:57:31, by the clock of its log; it was started again by {PROBE}"
        in (entry.observed)
    )
    assert entry.fix.startswith("Find what does that, and switch it off")
    assert "Give it a minute" not in entry.fix


def test_one_restart_by_somebody_is_told_beside_what_the_node_lacks() -> None:
    (entry,) = told(starting(2), ended(0), started(2), by="")
    assert "(SIGTERM) at 18:57:00, by the clock of its log; it was started again" in entry.observed
    assert "Wait a minute" in entry.fix


@pytest.mark.parametrize(
    ("lines", "times"),
    [
        ((ended(0), started(2), line(300, "all is well")), 0),
        ((ended(0), started(90)), 0),
        ((started(0), line(1, "x")), 0),
        ((ended(0),), 0),
        ((), 0),
        ((ended(0), ended(1), started(2)), 1),
        ((ended(0), "java.lang.Exception: x", started(2)), 1),
    ],
    ids=["long ago", "started much later", "never told to end", "not started", "no log", "told twice", "with an exception"],
)
def test_only_an_end_of_late_and_a_start_soon_after_it_count(lines: tuple[str, ...], times: int) -> None:
    assert len(restarts_in(lines)) == times


def test_what_a_roll_of_ours_has_restarted_was_restarted_by_nobody_else() -> None:
    """The mark knows the process that was proven; a process of later is another's."""
    lines = (ended(0), started(2))
    mark = mark_of("b", is_proven=True).model_copy(update={"proven_identity": running(2).identity})
    ours = with_file(starting(2), 2, "broker.id=2\n", mark)
    assert not told(ours, *lines)
    assert not told(starting(2), *lines, in_hand=True)
    process = running(2).model_copy(update={"identity": "99@9", "pid": 99})
    assert told(with_part(ours, 2, process=process), *lines)
    again = told(with_part(ours, 2, process=process), *lines, ended(100), started(102))
    assert all("(SIGTERM) at 18:58:40" in entry.observed for entry in again), "the first was the roll's own"
    assert any("Wait a minute" in entry.fix for entry in again)
    unproven = mark_of("b", before_identity="old")
    assert not told(with_file(starting(2), 2, "broker.id=2\n", unproven), *lines)


def test_the_signal_is_told_that_came() -> None:
    (entry,) = told(starting(2), ended(0).replace("SIGTERM", "SIGINT"), started(2))
    assert "asked to end (SIGINT)" in entry.observed


def test_of_a_node_that_is_down_its_end_is_told_elsewhere() -> None:
    assert not told(dead(DUAL, 2), ended(0), started(2), ended(15), started(17))
