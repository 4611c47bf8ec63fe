"""Lists of migrations, and the summary of one that has ended, with the addresses of its reports."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from domain.drift.hashing import rules_fingerprint
from domain.drift.report import CheckName, DriftReport, Verdict
from domain.records import Command, CommandKind, EventDraft, MigrationRecord, MigrationState, Progress
from domain.zk_to_kraft.steps import GateName

NOW = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)


@pytest.fixture
async def record(api: Any, make_migration: Callable[..., MigrationRecord]) -> MigrationRecord:
    """A migration without a run, whose ledger has everything that a summary needs."""
    migration = make_migration(await api.registered()).model_copy(update={"started_at": NOW})
    await api.wiring.ledger.create_migration(migration)
    await api.wiring.ledger.add_command(
        Command(
            id="c1",
            migration_id=migration.id,
            kind=CommandKind.APPROVE,
            gate=GateName.FINALIZE,
            reason="read it",
            by="ada",
            via="api",
            at=NOW,
        )
    )
    await api.wiring.ledger.add_report(
        DriftReport(
            id="r1",
            cluster=migration.cluster,
            migration_id=migration.id,
            check=CheckName.METADATA,
            verdict=Verdict.CLEAN,
            started_at=NOW,
            ended_at=NOW,
            rules_fingerprint=rules_fingerprint(),
            content_hash="h",
        )
    )
    return migration


def draft(record: MigrationRecord, kind: str, after: float, **data: Any) -> EventDraft:
    at = NOW + timedelta(seconds=after)
    return EventDraft(key=f"{kind}-{after}", kind=kind, cluster=record.cluster, migration_id=record.id, at=at, data=data)


async def answer(api: Any, record: MigrationRecord) -> Any:
    alone = (await api.http.get(f"/migrations/{record.id}")).json()
    assert alone in (await api.http.get(f"/migrations?cluster={record.cluster}")).json()["items"]
    return alone["summary"]


async def test_a_migration_has_a_summary_once_it_has_ended(api: Any, record: MigrationRecord) -> None:
    entered = draft(record, "phase-entered", 1, phase="PREFLIGHT")
    rolled = draft(record, "step-done", 60, action="roll-node", node="broker-1", restarted=True, seconds=9.5)
    await api.wiring.ledger.record(record.id, [entered, rolled], Progress(state=MigrationState.RUNNING))
    assert await answer(api, record) is None
    ended = draft(record, "succeeded", 90)
    await api.wiring.ledger.record(record.id, [ended], Progress(state=MigrationState.SUCCEEDED, outcome="KRAFT"))
    summary = await answer(api, record)
    assert (summary["seconds"], summary["phases"]) == (90, [{"phase": "PREFLIGHT", "seconds": 90}])
    assert summary["restarts"] == {"broker-1": 1}
    (decision,) = summary["decisions"]
    assert (decision["by"], decision["gate"], decision["reason"]) == ("ada", "finalize", "read it")
    what_now = {step["subject"]: step["do"] for step in summary["what_now"]}
    assert "Retire ZooKeeper" in what_now
    assert "Scrape the metrics of controller-3001" in what_now["Move dashboards and alerts"]


async def test_a_summary_links_reports_that_can_be_read(api: Any, record: MigrationRecord) -> None:
    await api.wiring.ledger.record(record.id, [], Progress(state=MigrationState.CANCELLED))
    (report,) = (await answer(api, record))["reports"]
    assert report["verdict"] == "clean"
    assert (await api.http.get(report["link"])).json()["id"] == report["report_id"]


@pytest.mark.parametrize("kind", ["sideways", ""])
async def test_a_list_of_no_kind_says_which_kinds_there_are(api: Any, kind: str, expect_problem: Callable[..., Any]) -> None:
    problem = expect_problem(await api.http.get("/migrations", params={"kind": kind}), 422, "invalid-request")
    assert problem["errors"] == [{"where": "query", "field": "kind", "message": "Expected 'zk-to-kraft'"}]
