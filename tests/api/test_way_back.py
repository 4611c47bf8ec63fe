"""What people look at before they go back: the preview, and the way by hand as a page."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from api.pages.markdown import as_html
from api.pages.runbook_page import page_of
from api.running import observing
from domain.contracts import ActivityName, TaskQueue
from domain.questions import FileRestoration, Loss, PreviewRequest, PreviewStep, RollbackPreview, Runbook, RunbookAction
from domain.records import Progress

Expect = Callable[[httpx.Response, int, str], dict[str, Any]]
NOW = datetime(2026, 3, 1, 3, 0, 7, tzinfo=UTC)
FINAL = "The quorum's log says POST_MIGRATION: the way out is forward."


def preview_of(request: PreviewRequest, **changes: Any) -> RollbackPreview:
    preview = RollbackPreview(
        cluster=request.cluster,
        observed_at=NOW,
        phase="DUAL_WRITE",
        is_possible=True,
        steps=(PreviewStep(what="broker-1 goes back", node="broker-1", restarts=True), PreviewStep(what="wipe")),
        restarts={"broker-1": 1},
        controllerless_seconds=0.2,
        losses=(Loss(name="edits-of-broker-1", what="It was edited."),),
        files=(FileRestoration(node="broker-1", path="/b1", how="archive", sha256="a" * 64, changes=("- x",)),),
        unknown=("metrics of broker-2",),
        preview_hash="f" * 64,
    )
    return preview.model_copy(update=changes)


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


def a_runbook(**changes: Any) -> Runbook:
    window = RunbookAction(
        title="Kill the controllers",
        node="controller-3001",
        host="kafka-4",
        commands=('kill -9 "$(cat /c.pid)"', "sleep 1"),
        check="# Expect: nothing is printed\npgrep  -f kafka.Kafka",
    )
    look = RunbookAction(title="Look", node=None, host=None, commands=("echo '```'",))
    return Runbook(cluster="orders", observed_at=NOW, phase="DUAL_WRITE", forward=(look,), back=(window, look)).model_copy(
        update=changes
    )


@activity.defn(name=ActivityName.PREVIEW)
async def preview_rollback(request: PreviewRequest) -> RollbackPreview:
    if request.policy.stable_samples == 7:
        raise ApplicationError("ZooKeeper: wrong credentials; correct digest_auth", type="Permanent", non_retryable=True)
    if request.policy.stable_samples == 8:
        return preview_of(request, is_possible=False, why_not=FINAL, phase="KRAFT")
    return preview_of(request)


@activity.defn(name=ActivityName.RUNBOOK)
async def write_runbook(request: PreviewRequest) -> Runbook:
    return a_runbook(cluster=request.cluster)


@pytest.fixture
async def watcher(temporal_client: Client) -> AsyncIterator[None]:
    async with Worker(temporal_client, task_queue=TaskQueue.WATCH, activities=[preview_rollback, write_runbook]):
        yield


async def migrating(api: Any, stable_samples: int = 3) -> str:
    """A migration whose policy tells the stand-in what to answer."""
    answer = await api.post_migration((await api.registered()).name, policy={"stable_samples": stable_samples})
    return str(answer.json()["id"])


# ---- The preview ----


@pytest.mark.usefixtures("watcher")
async def test_a_preview_is_a_look_by_a_worker_with_the_migrations_policy(api: Any) -> None:
    migration_id = await migrating(api)
    answer = await api.http.get(f"/migrations/{migration_id}/rollback-preview")
    assert answer.status_code == 200, answer.text
    cluster = (await api.wiring.ledger.migration(migration_id)).cluster
    assert RollbackPreview.model_validate(answer.json()) == preview_of(PreviewRequest(kind="zk-to-kraft", cluster=cluster))
    assert await api.event_kinds(migration_id) == ["call-accepted"], "looking is no event"


@pytest.mark.usefixtures("watcher")
async def test_where_there_is_no_way_back_the_preview_says_why(api: Any, expect_problem: Expect) -> None:
    migration_id = await migrating(api, stable_samples=8)
    problem = expect_problem(await api.http.get(f"/migrations/{migration_id}/rollback-preview"), 409, "no-way-back")
    assert (problem["detail"], problem["phase"]) == (FINAL, "KRAFT")
    assert problem["unknown"] == ["metrics of broker-2"]
    assert problem["links"] == {"runbook": f"/migrations/{migration_id}/runbook"}


@pytest.mark.usefixtures("watcher")
async def test_a_preview_that_fails_says_why(api: Any, expect_problem: Expect) -> None:
    migration_id = await migrating(api, stable_samples=7)
    problem = expect_problem(await api.http.get(f"/migrations/{migration_id}/rollback-preview"), 502, "observation-failed")
    assert "wrong credentials" in problem["detail"]


@pytest.mark.usefixtures("watcher")
async def test_an_ended_migration_is_looked_at_too(api: Any, end: Any) -> None:
    """Whoever thinks of taking over what it left wants to see it first."""
    migration_id = await migrating(api)
    await end(migration_id)
    for what in ("rollback-preview", "runbook"):
        assert (await api.http.get(f"/migrations/{migration_id}/{what}")).status_code == 200


@pytest.mark.parametrize("what", ["rollback-preview", "runbook"])
async def test_without_a_worker_nobody_waits_for_ever(
    api: Any, expect_problem: Expect, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(observing, "WORKER_LIMIT", timedelta(seconds=1))
    migration_id = await migrating(api)
    problem = expect_problem(await api.http.get(f"/migrations/{migration_id}/{what}"), 504, "no-worker")
    assert "keeperless-activities" in problem["detail"]


@pytest.mark.parametrize("what", ["rollback-preview", "runbook"])
async def test_without_temporal_there_is_no_look(
    api_without_temporal: Any, make_migration: Any, expect_problem: Expect, what: str
) -> None:
    api = api_without_temporal
    await api.wiring.ledger.create_migration(record := make_migration(await api.registered()))
    await api.wiring.ledger.record(record.id, [], Progress(state=record.progress.state))
    expect_problem(await api.http.get(f"/migrations/{record.id}/{what}"), 503, "temporal-unavailable")


# ---- The runbook ----


@pytest.mark.usefixtures("watcher")
@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("*/*", "text/markdown; charset=utf-8"),
        ("text/markdown", "text/markdown; charset=utf-8"),
        ("application/json", "application/json"),
        ("application/json, text/plain;q=0.5", "application/json"),
        ("application/json, text/plain, */*", "application/json"),
        (BROWSER, "text/html; charset=utf-8"),
    ],
)
async def test_a_runbook_is_a_page_or_json(api: Any, accept: str, media_type: str) -> None:
    migration_id = await migrating(api)
    answer = await api.http.get(f"/migrations/{migration_id}/runbook", headers={"accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (200, media_type)
    cluster = (await api.wiring.ledger.migration(migration_id)).cluster
    expected = a_runbook(cluster=cluster)
    if media_type == "application/json":
        assert Runbook.model_validate(answer.json()) == expected
    else:
        assert answer.text == (as_html(page_of(expected)) if accept == BROWSER else page_of(expected))


def test_the_page_can_be_followed_from_top_to_bottom() -> None:
    page = page_of(a_runbook(unknown=("metrics of broker-2",)))
    lines = [line for line in page.splitlines() if line]
    order = [
        "# Runbook of cluster orders",
        "- metrics of broker-2",
        "Phase **DUAL_WRITE**, as seen at 2026-03-01 03:00:07 UTC.",
        "## Rollback",
        "### 1. Kill the controllers",
        "On **controller-3001**, host kafka-4:",
        "```sh",
        'kill -9 "$(cat /c.pid)"',
        "```",
        "```sh",
        "sleep 1",
        "```",
        "**Check.** Expect: nothing is printed",
        "```sh",
        "pgrep  -f kafka.Kafka",
        "```",
        "### 2. Look",
        "On any host that reaches the cluster:",
        "````sh",
        "echo '```'",
        "````",
        "## Forward",
        "### 1. Look",
    ]
    found = -1
    for line in order:
        found = lines.index(line, found + 1)


def test_the_page_tells_nothing_unknown_where_all_answered() -> None:
    assert "Did not answer" not in page_of(a_runbook())


def test_where_there_is_no_way_back_the_page_gives_the_reason_and_no_command() -> None:
    warning = RunbookAction(title="Stop every worker", node=None, host="kafka-1", commands=())
    page = page_of(a_runbook(why_no_way_back=FINAL, phase="KRAFT", forward=(warning,)))
    assert "On " not in page
    back, _, forward = page.partition("## Rollback")[2].partition("## Forward")
    assert back.strip() == FINAL
    assert forward.strip() == "### 1. Stop every worker"
    assert page_of(a_runbook(forward=())).endswith("## Forward\n\nNothing is left to do.\n")


def test_a_page_of_a_cluster_that_shows_nothing_says_so() -> None:
    page = page_of(a_runbook(phase=None, unknown=("broker-1: no answer", "broker-2: no\nanswer")))
    assert page.index("broker-2: no answer") < page.index("Phase **unknown**")
