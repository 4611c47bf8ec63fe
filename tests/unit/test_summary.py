"""What a migration came to that has ended: from its events, commands and reports, and what to do now by how it ended."""

from datetime import timedelta
from typing import Any

import pytest

from domain.contracts import workflow_id
from domain.decisions import Acceptance, Finding
from domain.drift.hashing import rules_fingerprint
from domain.drift.records import Severity
from domain.drift.report import CheckName, DriftFinding, DriftReport, FindingKind, Verdict
from domain.end_compared import lost_at_the_end
from domain.of_kind import Wanted
from domain.records import (
    Command,
    CommandKind,
    Event,
    MigrationRecord,
    MigrationState,
    NodeStatus,
    Progress,
)
from domain.summary import PauseMeasure, Summary, summary_of
from domain.zk_to_kraft.afterwards import next_steps
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.steps import GateName
from playground.fakes.spec import fake_spec
from tests.unit.conftest import NOW

NODES = (
    NodeStatus(name="broker-1", role="broker", mode="kraft", stage="kraft", is_ready=True, original="/etc/k/.keeperless/b1"),
    NodeStatus(name="broker-2", role="broker", mode="kraft", stage="kraft", is_ready=True, original="/etc/k/.keeperless/b2"),
    NodeStatus(name="controller-3000", role="controller", mode="final", stage="kraft", is_ready=True),
)


def at(seconds: float) -> Any:
    return NOW + timedelta(seconds=seconds)


def event(kind: str, after: float = 0, **data: Any) -> Event:
    return Event(seq=1, key="k", kind=kind, cluster="orders", migration_id="m1", at=at(after), data=data, prev_hash="", hash="")


def roll(node: str, seconds: float, kind: str = "step-done", **data: Any) -> Event:
    return event(kind, action="roll-node", node=node, restarted=True, seconds=seconds, **data)


def record(state: MigrationState = MigrationState.SUCCEEDED, **progress: Any) -> MigrationRecord:
    return MigrationRecord(
        id="m1",
        cluster="orders",
        cluster_id="c",
        kind="zk-to-kraft",
        policy=ZkToKraftPolicy(),
        wanted=Wanted(),
        spec_revision=1,
        requested_by="olga",
        created_at=at(-3),
        started_at=NOW,
        ended_at=at(600),
        workflow_id=workflow_id("c"),
        progress=Progress(state=state, **{"nodes": NODES, **progress}),
    )


def command(kind: CommandKind, by: str, after: float, **fields: Any) -> Command:
    return Command(id=by, migration_id="m1", kind=kind, by=by, via="api", at=at(after), **fields)


def report(check: CheckName, verdict: Verdict, minutes: int) -> DriftReport:
    return DriftReport(
        id=f"{check}-{minutes}",
        cluster="orders",
        migration_id="m1",
        check=check,
        verdict=verdict,
        started_at=at(60 * minutes),
        ended_at=at(60 * minutes + 1),
        rules_fingerprint=rules_fingerprint(),
        content_hash="h",
    )


def summary(*events: Event, of: MigrationRecord | None = None, **given: Any) -> Summary:
    found = summary_of(of or record(), events, given.get("commands", ()), given.get("reports", ()), fake_spec(), next_steps)
    assert found is not None
    return found


def test_a_migration_that_goes_on_has_no_summary() -> None:
    assert summary_of(record().model_copy(update={"ended_at": None}), (), (), (), fake_spec(), next_steps) is None


def test_phases_add_up_to_the_whole_duration() -> None:
    entered = [("preflight", 2), ("copying", 100), ("dual-write", 160), ("copying", 200), ("kraft", 590)]
    found = summary(*(event("phase-entered", after, phase=phase) for phase, after in entered))
    assert {spent.phase: spent.seconds for spent in found.phases} == {
        "preflight": 100,
        "copying": 60 + 390,
        "dual-write": 40,
        "kraft": 10,
    }
    assert sum(spent.seconds for spent in found.phases) == found.seconds == 600


def test_the_revision_that_was_registered_at_the_end_is_named() -> None:
    assert summary().specification_revision is None
    assert summary(event("specification-revised", 600, revision=4)).specification_revision == 4


def test_a_migration_without_a_phase_has_its_duration_only() -> None:
    found = summary(of=record(MigrationState.REFUSED, nodes=()))
    assert (found.phases, found.seconds, found.restarts, found.longest_pause) == ((), 600, {}, None)


def test_restarts_are_counted_whatever_became_of_the_step() -> None:
    untouched = event("step-blocked", action="roll-node", node="broker-1", restarted=False, seconds=0)
    found = summary(roll("broker-2", 9), roll("broker-1", 5), untouched, roll("broker-1", 6, "step-blocked"))
    assert found.restarts == {"broker-1": 2, "broker-2": 1}


@pytest.mark.parametrize(
    ("rolls", "expected"),
    [
        ([], None),
        ([roll("controller-3000", 60)], None),
        ([roll("broker-1", 9.5), roll("broker-2", 12.5), roll("controller-3000", 60)], (12.5, "broker-2", "broker-restart")),
        (
            [roll("broker-1", 9, client_pause_seconds=2.5), roll("broker-2", 12, client_pause_seconds=1.0)],
            (2.5, "broker-1", "client-writes"),
        ),
        (
            [roll("broker-1", 9, client_pause_seconds=0.0), roll("broker-2", 12, client_pause_seconds=None)],
            (0.0, "broker-1", "client-writes"),
        ),
    ],
)
def test_the_longest_pause_says_what_was_measured(rolls: list[Event], expected: tuple[float, str, str] | None) -> None:
    pause = summary(*rolls).longest_pause
    assert (None if pause is None else (pause.seconds, pause.node, pause.measure)) == expected
    if pause is not None and pause.measure is PauseMeasure.BROKER_RESTART:
        assert "not measured" in pause.means


def test_the_newest_report_of_each_check_is_named() -> None:
    reports = [
        report(CheckName.METADATA, Verdict.CLEAN, 5),
        report(CheckName.COPY, Verdict.CLEAN, 2),
        report(CheckName.METADATA, Verdict.DRIFT, 4),
    ]
    found = summary(reports=reports).reports
    assert [(line.report_id, line.verdict) for line in found] == [("copy-2", "clean"), ("metadata-5", "clean")]
    assert all(line.says for line in found)


def test_decisions_name_who_when_why_and_what_became_of_them() -> None:
    commands = [
        command(CommandKind.HOLD, "olga", 1),
        command(CommandKind.REJECT, "rita", 3, gate=GateName.FINALIZE, reason="not at night", refused_because="too late"),
        command(CommandKind.RESUME, "olga", 2),
        command(CommandKind.APPROVE, "ada", 5, gate=GateName.FINALIZE, reason="read it", consumed_at=at(6), closed_as="done"),
        command(CommandKind.RESUME, "omar", 7, gate=GateName.FINALIZE),
    ]
    turned = event("reverting", 4, reason="copy-cannot-finish", objects=[], detail="")
    found = summary(turned, commands=commands).decisions
    assert [(line.by, line.kind, line.gate) for line in found] == [
        ("rita", "reject", "finalize"),
        ("keeperless", "rollback", None),
        ("ada", "approve", "finalize"),
        ("omar", "resume", "finalize"),
    ]
    assert found[2].closed_as == "done"
    assert found[0].refused_because == "too late"
    assert (found[1].reason, found[2].reason, found[2].used_at) == ("copy-cannot-finish", "read it", at(6))


END = {"action": "compare-end", "node": "cluster", "step": 18}


@pytest.mark.parametrize("verdict", Verdict)
def test_the_comparison_after_the_end_is_told(verdict: Verdict) -> None:
    found = summary(event("step-done", **END), reports=[report(CheckName.END, verdict, 9)])
    assert found.end is not None
    assert (found.end.verdict, found.end.report_id) == (verdict, "end-9")
    first = {Verdict.CLEAN: "Move dashboards and alerts", Verdict.DRIFT: "Check the differences that were found at the end"}
    assert found.what_now[0].subject == first.get(verdict, "Compare by hand")


def test_a_comparison_that_could_not_be_made_is_no_clean_one() -> None:
    found = summary(event("step-blocked", why="no worker has taken it", **END))
    assert found.end is not None
    assert (found.end.verdict, found.end.report_id) == (Verdict.INCONCLUSIVE, None)
    assert "no worker has taken it" in found.end.says
    assert found.what_now[0].objects == (found.end.says,)


def test_without_a_comparison_nothing_is_said_of_it() -> None:
    found = summary(event("step-done", action="compare-metadata", node="cluster"))
    assert found.end is None
    assert found.what_now[0].subject == "Move dashboards and alerts"


def test_a_drift_after_the_end_is_an_alert_that_names_what_differs() -> None:
    lost = DriftFinding(record="topic", finding=FindingKind.MISSING_RIGHT, severity=Severity.BLOCK, rule="exact", key="orders")
    drift = report(CheckName.END, Verdict.DRIFT, 9).model_copy(
        update={"first": (lost.model_copy(update={"finding": FindingKind.TOLERATED}), lost.model_copy(update={"key": "jobs"}))}
    )
    (alert,) = lost_at_the_end(drift)
    assert (alert.code, alert.docs) == ("GF22", "docs/guards.md#gf22")
    assert "topic jobs" in alert.observed
    assert lost_at_the_end(None) == lost_at_the_end(report(CheckName.END, Verdict.CLEAN, 9)) == ()


PF = Finding(code="PF07", object="broker-2", observed="a", expected="b", fix="c")
ACCEPTED = PF.model_copy(update={"code": "PF06", "accepted": Acceptance(by="olga", reason="known")})


@pytest.mark.parametrize(
    ("state", "progress", "subjects"),
    [
        (
            MigrationState.SUCCEEDED,
            {},
            [
                "Move dashboards and alerts",
                "Point tools at the brokers",
                "Retire ZooKeeper",
                "Keep or remove the original files",
            ],
        ),
        (MigrationState.REVERTED, {}, ["Try again later", "Keep or remove the original files"]),
        (MigrationState.REFUSED, {"findings": (PF, ACCEPTED)}, ["Fix the findings"]),
        (MigrationState.CANCELLED, {}, ["Take over what is left", "Keep or remove the original files"]),
        (MigrationState.FAILED, {"nodes": ()}, ["Take over what is left"]),
    ],
)
def test_what_to_do_now_follows_from_the_end(state: MigrationState, progress: dict[str, Any], subjects: list[str]) -> None:
    steps = summary(of=record(state, **progress)).what_now
    assert [step.subject for step in steps] == subjects
    assert all(len(step.do) <= 600 for step in steps)


def test_what_to_do_now_names_where() -> None:
    steps = {step.subject: step for step in summary().what_now}
    assert steps["Keep or remove the original files"].objects == (
        "broker-1: /etc/k/.keeperless/b1",
        "broker-2: /etc/k/.keeperless/b2",
    )
    assert steps["Retire ZooKeeper"].objects == (fake_spec().zookeeper.connect,)
    assert any("ZkMigrationState" in moved for moved in steps["Move dashboards and alerts"].objects)
    refused = summary(of=record(MigrationState.REFUSED, findings=(PF, ACCEPTED))).what_now
    assert refused[0].objects == ("PF07 broker-2",)
