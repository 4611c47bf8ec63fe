"""What the demo makes of events, answers and counters: lines, phases, numbers, the report."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from domain.questions import ClusterSight, FileRestoration, Gauges, Loss, PreviewStep, RollbackPreview
from domain.records import Event, NodeStatus, OpenGate
from domain.zk_to_kraft.steps import GateName
from playground.acknowledgements import LoadCounters
from playground.demo.asking import Verdict, ask, ask_back, question, way_back
from playground.demo.board import Board
from playground.demo.door import MigrationSeen
from playground.demo.report import Circumstances, report_of, summary
from playground.demo.screen import LiveScreen, PlainScreen, numbers, screen_for
from playground.demo.state import Addresses, DemoState, Line, LoadSeen, PhaseTime, Tone, WaitSeen, WorkSeen
from playground.demo.witness import PATIENCE_SECONDS, Reconciliation
from playground.demo.words import left_behind, line_of
from playground.load_report import Copy, LoadReport, compare

BEGAN = 1_000_000.0
NODE = NodeStatus(name="broker-1", role="broker", mode="kraft", stage="kraft", is_ready=True)


def event(kind: str, after: float = 0.0, seq: int = 1, **data: Any) -> Event:
    at = datetime.fromtimestamp(BEGAN + after, UTC)
    return Event(seq=seq, key=f"k{seq}", kind=kind, cluster="demo", migration_id="m", at=at, data=data, prev_hash="", hash="")


def migration(**changes: Any) -> MigrationSeen:
    answer = {
        "id": "m",
        "state": "running",
        "phase": "SOAK",
        "waiting": None,
        "nodes": [NODE.model_copy(update={"restarts": 2}).model_dump()],
        "gates": [],
        "findings": [],
        "outcome": None,
        "ended_at": None,
        "links": {"temporal_ui": "http://ui/workflows/x"},
        "a field of tomorrow": 1,
    }
    return MigrationSeen.model_validate(answer | changes)


def board() -> Board:
    return Board(BEGAN, Addresses())


@pytest.mark.parametrize(
    ("told", "line", "tone"),
    [
        (event("phase-entered", phase="SOAK"), "Phase SOAK begins.", Tone.NEWS),
        (event("step-started", does="Restart broker-2"), "Restart broker-2.", Tone.PLAIN),
        (
            event("step-done", does="Restart broker-2", seconds=9.4, attempt=2),
            "Done: Restart broker-2 (9.4 s, attempt 2).",
            Tone.GOOD,
        ),
        (
            event("step-done", does="Leave", seconds=5.2, attempt=1, changes=["/migration gone", "0.2 s without a controller"]),
            "Done: Leave (5.2 s). (0.2 s without a controller)",
            Tone.GOOD,
        ),
        (
            event("rollback-accepted", by="ann", reason="not today", losses=[], command="c"),
            "ann ordered a rollback: not today",
            Tone.NEWS,
        ),
        (
            event("reverting", reason="copy-cannot-finish", objects=["3001"], detail="/config/users/x is no JSON"),
            "The migration begins a rollback by itself: copy-cannot-finish /config/users/x is no JSON",
            Tone.ALERT,
        ),
        (
            event("waiting", reason="node-down", objects=["broker-2"], means="It is down.", for_people=False),
            "Waiting: node-down (broker-2). It is down.",
            Tone.PLAIN,
        ),
        (
            event("rejected", gate="finalize", by="ann", reason="no {braces}"),
            "ann rejected finalize: no {braces}",
            Tone.ALERT,
        ),
        (
            event(
                "refused",
                outcome=None,
                findings=[{"code": "PF07", "object": "broker-1", "observed": "3.7", "expected": "3.9", "fix": "upgrade"}],
            ),
            "The migration is refused, and nothing was changed. PF07 broker-1: 3.7",
            Tone.ALERT,
        ),
    ],
)
def test_an_event_is_told_in_a_line(told: Event, line: str, tone: Tone) -> None:
    assert line_of(told) == (line, tone)


def test_what_the_audience_does_not_need_is_not_told() -> None:
    assert line_of(event("call-accepted", path="/migrations")) is None
    assert line_of(event("something of tomorrow")) is None
    assert line_of(event("waiting", reason="approval", objects=["finalize"], for_people=True)) is None


def test_phases_add_up_also_when_one_is_entered_twice() -> None:
    seen = board()
    for seconds, phase in ((0, "COPYING"), (5, "DUAL_WRITE"), (7, "COPYING"), (10, "DUAL_WRITE")):
        seen.note_event(event("phase-entered", seconds, phase=phase))
    assert seen.phases(BEGAN + 30) == (PhaseTime("COPYING", 8.0), PhaseTime("DUAL_WRITE", 22.0))


def test_the_last_phase_ends_with_the_migration() -> None:
    seen = board()
    seen.note_event(event("phase-entered", 3, phase="KRAFT"))
    seen.note_migration(migration(state="succeeded", ended_at=datetime.fromtimestamp(BEGAN + 4, UTC)))
    assert seen.phases(BEGAN + 90) == (PhaseTime("KRAFT", 1.0),)
    assert board().phases(BEGAN) == ()


def test_a_step_is_work_until_it_is_done_or_blocked() -> None:
    seen = board()
    seen.note_event(event("step-started", 2, action="roll-node", node="broker-2", does="Restart broker-2"))
    working = seen.state(BEGAN + 5).working
    assert working is not None
    assert (working.text, working.seconds) == ("Restart broker-2", 3.0)
    seen.note_event(event("step-blocked", 6, 2, node="broker-2", why="replicas are not in sync"))
    assert seen.state(BEGAN + 7).working is None
    assert seen.last_seq == 2


def test_nodes_are_as_seen_now_with_the_restarts_that_the_migration_knows() -> None:
    seen = board()
    seen.note_migration(migration())
    now = datetime.fromtimestamp(BEGAN + 1, UTC)
    nodes = (NODE.model_copy(update={"mode": "hybrid"}),)
    seen.note_sight(ClusterSight(cluster="demo", observed_at=now, phase=None, nodes=nodes, gauges=Gauges(), unknown=("kafka",)))
    state = seen.state(BEGAN + 3)
    assert (state.nodes[0].mode, state.nodes[0].restarts) == ("hybrid", 2)
    assert (state.look_age_seconds, state.unknown) == (2.0, ("kafka",))


def test_restarts_of_several_migrations_add_up_and_creating_a_controller_again_is_one() -> None:
    seen = board()
    controller = NODE.model_copy(update={"name": "controller-3001"})
    for number, restarts in ((1, 0), (2, 1)):
        seen.note_event(event("step-done", action="provision-controller", node="controller-3001", stage="migration"))
        nodes = [NODE.model_copy(update={"restarts": 2}), controller.model_copy(update={"restarts": restarts})]
        for state in ("running", "reverted"):
            seen.note_migration(migration(id=f"m{number}", state=state, nodes=[node.model_dump() for node in nodes]))
    assert seen.restarts_told() == {"broker-1": 4, "controller-3001": 2}
    assert [told.id for told in seen.migrations] == ["m1", "m2"]


def test_a_way_back_shows_as_one() -> None:
    seen = board()
    seen.note_migration(migration())
    assert not seen.state(BEGAN).is_going_back
    seen.note_migration(migration(intent="revert"))
    assert seen.state(BEGAN).is_going_back


def test_a_wait_keeps_its_age() -> None:
    seen = board()
    since = datetime.fromtimestamp(BEGAN, UTC)
    wait = {"reason": "held", "means": "…", "since": since, "for": "people", "objects": [], "detail": "by ann"}
    held = migration(state="held", waiting=wait)
    seen.note_migration(held)
    waiting = seen.state(BEGAN + 65).waiting
    assert waiting is not None
    assert (waiting.reason, waiting.seconds, waiting.detail) == ("held", 65.0, "by ann")


def test_the_rate_is_that_of_the_last_seconds() -> None:
    seen = board()
    for second in range(20):
        seen.note_load(LoadCounters(acknowledged=100 * second + 500), 7, 0, BEGAN + second)
    assert seen.load.rate == 100.0
    assert seen.load.read_back == 7


def test_the_witness_misses_what_was_acknowledged_long_ago_and_not_read() -> None:
    both = Reconciliation()
    both.read("early")
    for identifier in ("early", "lost", "read"):
        both.acknowledged(identifier, now=0.0)
    both.read("read")
    both.acknowledged("fresh", now=PATIENCE_SECONDS)
    assert both.missing(now=PATIENCE_SECONDS) == 0
    assert both.missing(now=PATIENCE_SECONDS + 1) == 1
    both.read("lost")
    assert both.missing(now=PATIENCE_SECONDS + 1) == 0
    assert both.read_back == 3


def proof(**changes: Any) -> LoadReport:
    given = {"acknowledged": ["a", "b"], "read": ["a", "b", "b"]} | changes
    return compare(given["acknowledged"], [Copy(identifier, 1) for identifier in given["read"]], unacknowledged=1,
                   longest_pause_seconds=1.234, slowest_acknowledgement_seconds=2.0)  # fmt: skip


def test_the_report_has_what_was_asked_for(tmp_path: Path) -> None:
    report = report_of(
        [migration(state="reverted"), migration(state="succeeded")],
        "KRAFT",
        (PhaseTime("SOAK", 1.26),),
        {"broker-1": 2},
        {"broker-1": 2},
        proof(),
        99.96,
        1234.5,
    )
    report.write(tmp_path / "report.json")
    written = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert written == {
        "state": "KRAFT",
        "migration": "reverted, succeeded",
        "seconds_total": 100.0,
        "phases": {"SOAK": 1.3},
        "restarts": {"broker-1": 2},
        "restarts_told": {"broker-1": 2},
        "acknowledged": 2,
        "read_back": 2,
        "lost": 0,
        "duplicated": 1,
        "sent_again": 0,
        "unacknowledged": 1,
        "longest_pause_seconds": 1.23,
        "slowest_acknowledgement_seconds": 2.0,
        "peak_rss_mib": 1234,
        "circumstances": {"held_by": "", "disturbance": "", "planned_seconds": None},
        "ending": {"decisions": [], "checks": [], "pause": "", "what_now": []},
    }


@pytest.mark.parametrize(
    ("phase", "load", "is_success"),
    [
        ("KRAFT", proof(), True),
        ("KRAFT", proof(read=["a"]), False),
        ("KRAFT", proof(acknowledged=[], read=[]), False),
        ("SOAK", proof(), False),
        (None, proof(), False),
    ],
)
def test_success_is_kraft_and_nothing_lost(phase: str | None, load: LoadReport, is_success: bool) -> None:
    report = report_of([migration()], phase, (), {"broker-1": 2}, {"broker-1": 2}, load, 1.0, 1.0)
    assert report.is_success is is_success
    console = Console(file=StringIO(), width=100, record=True)
    console.print(summary(report))
    assert f"{len(load.lost)} lost" in console.export_text()


def test_a_restart_that_was_not_told_shows() -> None:
    report = report_of([migration()], "KRAFT", (), {"broker-1": 3}, {"broker-1": 2}, proof(), 1.0, 1.0)
    console = Console(file=StringIO(), width=100, record=True)
    console.print(summary(report))
    assert "broker-1 3×; the migration reports otherwise: broker-1 2×" in console.export_text()


def test_a_node_that_never_restarted_is_no_matter_of_dispute() -> None:
    """The one side counts what it saw, the other knows every node of the specification: none is none on both."""
    report = report_of([migration()], "KRAFT", (), {"broker-1": 0}, {"broker-1": 0, "controller-3001": 0}, proof(), 1.0, 1.0)
    assert report.restarts == report.restarts_told == {}
    console = Console(file=StringIO(), width=100, record=True)
    console.print(summary(report))
    assert "restarts  none" in console.export_text()
    assert "otherwise" not in console.export_text()


EVIDENCE = {
    "cluster": "demo",
    "cluster_id": "abc",
    "claim": {"by": "kraft", "epoch": 13},
    "guards": {"dual_write": "current", "registration": "agrees", "replication": "in-sync"},
    "nodes": {
        "controller-3001": {"mode": "migrating", "stage": "migration", "flag": "true", "file": "449fb821d10e" + "0" * 52}
    },
}
GATE = OpenGate(name=GateName.FINALIZE, evidence_hash="d4" * 32, since=datetime.now(UTC), evidence=EVIDENCE)


def test_the_approver_sees_the_evidence_and_what_cannot_be_undone() -> None:
    console = Console(file=StringIO(), width=100, record=True, highlight=False)
    gauges = Gauges(migration_state="MIGRATION", write_behind_lag=0, quorum_leader="controller-3001")
    console.print(question(GATE, DemoState(1.0, "migrating", gauges=gauges, load=LoadSeen(acknowledged=1234))))
    text = console.export_text()
    for expected in ("controller-3001  migrating", "449fb821d10e", "MIGRATION", "ZkWriteBehindLag 0", "epoch 13", "d4" * 32):
        assert expected in text
    assert "unknown records behind" in text
    assert "do not count on a rollback to ZooKeeper" in " ".join(text.replace("│", " ").split())
    assert "1,234 acknowledged" in text


PREVIEW = RollbackPreview(
    cluster="demo",
    observed_at=datetime.now(UTC),
    phase="SOAK",
    is_possible=True,
    steps=(
        PreviewStep(what="Restart broker-1 in hybrid mode", node="broker-1", restarts=True),
        PreviewStep(what="Fence the controllers"),
    ),
    restarts={"broker-1": 2, "broker-2": 0},
    controllerless_seconds=0.15,
    files=(FileRestoration(node="broker-1", path="/x", how="archive", sha256="0" * 64),),
    preview_hash="ab" * 32,
)


@pytest.mark.parametrize(
    ("losses", "told"), [((), "what is lost          nothing"), ((Loss(name="metadata-changes", what="A topic."),), "A topic.")]
)
def test_who_goes_back_sees_the_steps_what_they_cost_and_what_is_lost(losses: tuple[Loss, ...], told: str) -> None:
    console = Console(file=StringIO(), width=100, record=True, highlight=False)
    console.print(way_back(PREVIEW.model_copy(update={"losses": losses})))
    text = console.export_text()
    for expected in ("1 Restart broker-1", "2 Fence", "broker-1 2×", "0.15 s", "broker-1 archive", "ab" * 32, told):
        assert expected in text
    assert "broker-2" not in text


def test_going_back_is_asked_for_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("no\n"))
    output = StringIO()
    assert ask_back(Console(file=output)) is Verdict.REJECT
    assert "Go back to ZooKeeper?" in output.getvalue()


@pytest.mark.parametrize(
    ("typed", "verdict"), [("yes\n", "approve"), ("what?\n\n No \n", "reject"), ("", "nobody"), ("yep\n", "nobody")]
)
def test_only_yes_and_no_are_answers(typed: str, verdict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO(typed))
    assert ask(Console(file=StringIO()), GATE) is Verdict(verdict)


def test_who_said_no_is_told_what_is_left() -> None:
    gauges = Gauges(migration_state="MIGRATION")
    state = DemoState(1.0, "done", state="held", migration_id="01a", phase="SOAK", nodes=(NODE,), gauges=gauges)
    said = left_behind(state)
    assert "phase SOAK: broker-1 kraft" in said
    assert "Nothing irreversible has happened" in said
    assert "POST /migrations/01a/resume" in said
    final = DemoState(1.0, "done", phase="FINALIZING", gauges=Gauges(migration_state="MIGRATION"))
    assert "Nothing irreversible" not in left_behind(final)


def test_elsewhere_than_in_a_terminal_lines_are_printed() -> None:
    output = StringIO()
    screen = screen_for(Console(file=output, width=100, highlight=False))
    assert isinstance(screen, PlainScreen)
    screen.tell(Line(65.0, "phase [SOAK]", Tone.NEWS))
    screen.show(DemoState(70.0, "starting"))  # no load yet: nothing to say
    screen.show(DemoState(71.0, "migrating", phase="SOAK", load=LoadSeen(acknowledged=5, longest_pause_seconds=0.5)))
    screen.show(DemoState(72.0, "migrating", phase="SOAK", load=LoadSeen(acknowledged=6)))
    screen.pause()
    assert output.getvalue().splitlines() == ["  1:05 phase [SOAK]", "  1:11 … SOAK: 5 acknowledged, longest pause 0.5 s"]


def test_the_numbers_are_those_that_there_are() -> None:
    """No gauge of a migration that nobody has started; how long the step in hand takes, where one would wonder."""
    load = LoadSeen(acknowledged=12_345, longest_pause_seconds=0.5)
    assert numbers(DemoState(1.0, "planning", load=load)) == "… planning: 12,345 acknowledged, longest pause 0.5 s"
    gauges = Gauges(migration_state="MIGRATION")
    wait = WaitSeen("node-down", "…", 3.0)
    told = numbers(
        DemoState(
            1.0,
            "migrating",
            migration_id="m",
            phase="SOAK",
            gauges=gauges,
            load=replace(load, missing=3),
            working=WorkSeen("compare", 61.0),
            waiting=wait,
        )
    )
    assert told == (
        "… SOAK: gauge MIGRATION, lag unknown, 12,345 acknowledged, 3 unread after 10 s, longest pause 0.5 s, "
        "at it for 1:01, waits: node-down"
    )
    short = DemoState(1.0, "migrating", migration_id="m", load=load, working=WorkSeen("compare", 2.0))
    assert "at it" not in numbers(short)


def test_lines_come_in_the_order_of_their_times_though_the_migration_tells_later() -> None:
    output = StringIO()
    screen = screen_for(Console(file=output, width=100, highlight=False))
    screen.tell(Line(71.0, "broker-3 goes on"))
    screen.show(DemoState(71.2, "migrating"))
    screen.tell(Line(70.0, "broker-2 is not touched"))
    assert output.getvalue() == ""
    screen.show(DemoState(72.5, "migrating"))
    assert output.getvalue().splitlines() == ["  1:10 broker-2 is not touched"]
    screen.pause()
    assert output.getvalue().splitlines() == ["  1:10 broker-2 is not touched", "  1:11 broker-3 goes on"]
    seen = board()
    for at, text in ((2, "second"), (1, "first")):
        seen.note_text(text, BEGAN + at)
    assert [line.text for line in seen.state(BEGAN + 3).lines] == ["first", "second"]


def test_a_long_line_is_wrapped_and_hangs() -> None:
    output = StringIO()
    screen = screen_for(Console(file=output, width=40, highlight=False))
    screen.tell(Line(65.0, "RH01 /config/brokers/2: has a password that no [secret] opens; the-copy-aborts-because-of-it."))
    screen.pause()
    assert output.getvalue().splitlines() == [
        "  1:05 RH01 /config/brokers/2: has a",
        "       password that no [secret] opens;",
        "       the-copy-aborts-because-of-it.",
    ]


def test_what_the_demo_did_itself_is_told_beside_the_pause() -> None:
    console = Console(file=StringIO(), width=100, record=True)
    state = DemoState(1.0, "migrating", disturbance="the demo froze broker-3 for 6 s")
    console.print(question(GATE, state))
    judged = Circumstances(disturbance=state.disturbance, planned_seconds=115.5)
    phases = (PhaseTime("PREFLIGHT", 300.0), PhaseTime("SOAK", 22.4))
    report = report_of([migration()], "KRAFT", phases, {}, {}, proof(), 400.0, 1.0, judged)
    console.print(summary(report))
    text = " ".join(console.export_text().replace("│", " ").split())
    assert text.count("the demo froze broker-3 for 6 s") == 2
    assert "about 2 minutes without comparisons" in text
    assert "the migration took 5 minutes 22 seconds" in text


@pytest.mark.parametrize(("by", "is_as_asked"), [("ann", True), ("keeperless", False)])
def test_what_a_person_holds_has_not_failed(by: str, is_as_asked: bool) -> None:
    seen = board()
    seen.note_event(event("held", by=by, reason="let me look"))
    held = report_of([migration(state="held")], "SOAK", (), {}, {}, proof(), 1.0, 1.0, Circumstances(held_by=seen.held_by))
    assert (held.is_success, held.is_as_asked) == (False, is_as_asked)
    lost = report_of([migration()], "SOAK", (), {}, {}, proof(read=["a"]), 1.0, 1.0, Circumstances(held_by=seen.held_by))
    assert not lost.is_as_asked
    seen.note_event(event("resumed", by="ann", reason="seen"))
    assert seen.held_by == ""
    seen.note_event(event("rejected", gate="finalize", by="ann", reason="not today"))
    assert seen.held_by == "ann"


def test_in_a_terminal_the_view_is_redrawn_in_place_and_the_cursor_comes_back() -> None:
    output = StringIO()
    screen = screen_for(Console(file=output, width=100, height=30, force_terminal=True))
    assert isinstance(screen, LiveScreen)
    screen.show(DemoState(1.0, "starting"))
    screen.show(DemoState(2.0, "starting"))
    screen.pause()
    assert output.getvalue().count("\x1b[?25l") == output.getvalue().count("\x1b[?25h") == 1
    assert "0:02" in output.getvalue()
