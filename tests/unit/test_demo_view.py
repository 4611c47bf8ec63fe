"""The view is a function of a state: rendered to text, it says what there is to say at every size."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from domain.questions import Gauges
from domain.records import NodeStatus
from playground.demo.screen import save_picture
from playground.demo.state import Addresses, DemoState, Line, LoadSeen, PhaseTime, Tone, WaitSeen, WorkSeen
from playground.demo.view import clock, view

NODES = (
    NodeStatus(name="broker-1", role="broker", mode="kraft", stage="kraft", is_ready=True, restarts=2),
    NodeStatus(name="broker-2", role="broker", mode="in-transition", stage="migration", is_ready=False, restarts=1),
    NodeStatus(name="controller-3001", role="controller", mode="migrating", stage="migration", is_ready=True),
    NodeStatus(name="controller-3002", role="controller", mode="absent", stage="absent", is_ready=False),
)
STATE = DemoState(
    seconds=83.4,
    doing="migrating",
    addresses=Addresses("http://127.0.0.1:28055", "http://127.0.0.1:30735/docs"),
    state="running",
    phase="BROKERS_TO_KRAFT",
    phases=(PhaseTime("PREFLIGHT", 4.2), PhaseTime("BROKERS_TO_HYBRID", 38.7), PhaseTime("BROKERS_TO_KRAFT", 9.0)),
    nodes=NODES,
    gauges=Gauges(migration_state="PRE_MIGRATION", write_behind_lag=7, under_replicated=31, quorum_leader="controller-3001"),
    look_age_seconds=1.0,
    load=LoadSeen(acknowledged=12_345, rate=199.6, read_back=12_340, longest_pause_seconds=1.27),
    working=WorkSeen("restart broker-2 with its file in stage kraft", 61.0),
    lines=tuple(Line(n, f"line {n}", Tone.PLAIN) for n in range(40)),
    peak_mib=2048.0,
)


def rendered(state: DemoState, width: int = 100, height: int = 30) -> str:
    console = Console(file=io.StringIO(), width=width, record=True, highlight=False)
    console.print(view(state, width, height))
    return console.export_text()


def changed(**changes: object) -> DemoState:
    return DemoState(**{**{name: getattr(STATE, name) for name in STATE.__dataclass_fields__}, **changes})


@pytest.mark.parametrize("width", [100, 120, 140])
def test_nothing_is_cut_off_from_a_hundred_columns_on(width: int) -> None:
    text = rendered(STATE, width)
    for expected in ("BROKERS_TO_HYBRID 39 s", "controller-3001", "transit", "migration", "PRE_MIGRATION", "12,345", "1.3 s"):
        assert expected in text
    assert "…" not in text


def test_where_there_is_no_room_for_all_phases_the_one_that_it_is_in_is_shown() -> None:
    assert "nodes · ▶ BROKERS_TO_KRAFT, phase 6 of 9" in rendered(STATE, 80)
    assert "nodes · ◀ BROKERS_TO_KRAFT, phase 6 of 9" in rendered(changed(is_going_back=True), 80)
    for state in (changed(phase=None), changed(phase="ELSEWHERE")):
        assert "nodes ─" in rendered(state, 80)
    assert "nodes ─" in rendered(STATE, 100)


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("mode", ["zookeeper", "in-transition", "interrupted", "migrating"])
def test_the_widest_words_leave_readiness_and_restarts_their_room(width: int, mode: str) -> None:
    node = NodeStatus(name="controller-3002", role="controller", mode=mode, stage="zookeeper", is_ready=False, restarts=7)
    (row,) = (row for row in rendered(changed(nodes=(node,)), width).split("\n") if "controller-3002" in row)
    cells = row.split("controller-3002")[1].split("│")[0].split()
    not_ready = "◌" if mode in {"in-transition", "interrupted"} else "✘"
    assert cells[1:] == ["zookeeper", "no" if width == 120 else not_ready, "7"]
    assert "…" not in row


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (140, 50)])
def test_it_fills_its_height_and_no_more_than_its_width(width: int, height: int) -> None:
    rows = rendered(STATE, width, height).rstrip("\n").split("\n")
    assert len(rows) <= height
    assert max(len(row) for row in rows) <= width
    assert "line 39" in rows[-1]


def test_a_small_terminal_still_shows_the_newest_lines() -> None:
    text = rendered(STATE, 80, 10)
    assert "line 38" in text
    assert "line 39" in text


def test_a_long_line_leaves_the_clock_its_room() -> None:
    lines = (Line(10, "short", Tone.PLAIN), Line(754, "a line that is longer than the screen is wide " * 9, Tone.PLAIN))
    rows = rendered(changed(lines=lines), 110).split("\n")
    assert [row.split()[0] for row in rows if "short" in row or "a line" in row] == ["0:10", "12:34"]


def test_addresses_clock_and_memory_are_in_the_header() -> None:
    first, second = rendered(STATE).split("\n")[:2]
    assert "migrating  1:23" in first
    assert "http://127.0.0.1:28055" in second
    assert "http://127.0.0.1:30735/docs" in second
    assert "2.0 GiB at most" in second
    narrow = rendered(STATE, 80).split("\n")[1]
    assert "http://127.0.0.1:30735/docs" in narrow
    assert "2.0 GiB" in narrow
    assert "leading back  1:23" in rendered(changed(is_going_back=True)).split("\n")[0]


def test_phases_passed_present_and_to_come_differ() -> None:
    text = rendered(STATE)
    assert "✔ PREFLIGHT" in text
    assert "▶ BROKERS_TO_KRAFT" in text
    assert "· SOAK" in text
    assert "✔ KRAFT" in rendered(changed(phase="KRAFT", state="succeeded", phases=(PhaseTime("KRAFT", 0.0),)))


def test_on_the_way_back_what_was_passed_is_taken_back() -> None:
    passed = (PhaseTime("DUAL_WRITE", 1.0), PhaseTime("BROKERS_TO_KRAFT", 9.0), PhaseTime("SOAK", 3.0))
    text = rendered(changed(is_going_back=True, state="reverting", phases=passed))
    assert "◀ BROKERS_TO_KRAFT" in text
    assert "↶ SOAK" in text
    assert "✔ DUAL_WRITE" in text
    assert "· FINALIZING" in text


def test_what_an_earlier_migration_entered_is_still_to_come() -> None:
    assert "· SOAK" in rendered(changed(phases=(PhaseTime("SOAK", 3.0), PhaseTime("BROKERS_TO_KRAFT", 1.0))))


def test_a_cluster_that_is_back_says_so() -> None:
    text = rendered(changed(state="reverted", phase="PREFLIGHT", is_going_back=True, waiting=None, working=None))
    assert "Every broker runs on ZooKeeper with its own file again" in text
    assert "✔ PREFLIGHT" in text


def test_the_title_is_the_plots() -> None:
    assert "Keeperless  there and back" in rendered(changed(title="there and back"))


def test_unknown_numbers_are_unknown_and_not_zero() -> None:
    text = rendered(changed(gauges=Gauges()))
    assert "ZkWriteBehindLag unknown" in text
    assert "gauge            unknown" in text


def test_lost_is_said_only_when_it_is_known() -> None:
    assert "unread > 10 s" in rendered(STATE)
    proved = rendered(changed(load=LoadSeen(acknowledged=9, lost=0)))
    assert "lost                   0" in proved
    assert "unread" not in proved


def test_a_wait_says_its_reason_its_age_what_it_means_and_about_what() -> None:
    wait = WaitSeen("node-down", "A node is not running.", 65.0, ("broker-2",), "OutOfMemoryError\n  at Broker")
    text = rendered(changed(waiting=wait))
    assert "waiting: node-down · 1:05" in text
    assert "broker-2  A node is not running.  OutOfMemoryError at Broker" in text


def test_work_says_what_and_for_how_long_and_who_does_not_answer() -> None:
    text = rendered(changed(unknown=("metrics of broker-2",)))
    assert "working · 1:01" in text
    assert "restart broker-2 with its file in stage kraft  (does not answer: metrics of broker-2)" in text


def test_an_old_look_and_a_long_silence_show() -> None:
    assert "last observation 9 s ago" in rendered(changed(look_age_seconds=9.0))
    assert "quiet · 0:44" in rendered(changed(working=None, quiet_seconds=44.0))


def test_before_the_first_look_there_are_no_nodes() -> None:
    assert "not looked at yet" in rendered(DemoState(1.0, "starting"))


def test_markup_in_what_others_say_is_shown_as_it_is() -> None:
    assert "[bold]x[/bold]" in rendered(changed(lines=(Line(1, "[bold]x[/bold]"),)))


def test_clock() -> None:
    assert [clock(seconds) for seconds in (0, 59.9, 60, 3600)] == ["0:00", "0:59", "1:00", "60:00"]


def test_the_picture_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "images" / "demo.svg"
    save_picture(path, STATE)
    svg = path.read_text("utf-8")
    assert svg.startswith("<svg")
    assert "@font-face" not in svg
    assert "url(http" not in svg
    assert str(tmp_path) not in svg
