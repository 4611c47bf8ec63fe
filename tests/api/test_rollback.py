"""The way back: asked for, refused with a reason whenever that comes, and never forgotten."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
from temporalio.client import Client

from api.app import create_app
from api.running import commands
from api.running.temporal import Temporal
from api.settings import ApiSettings
from domain.decisions import Intent
from domain.records import MigrationState, Progress

Expect = Callable[[httpx.Response, int, str], dict[str, Any]]
StartWorker = Callable[[], AbstractAsyncContextManager[None]]
STALE = "0" * 64
LOSSES = ["metadata-changes", "edits-of-broker-1"]


async def command_of(api: Any, migration_id: str) -> dict[str, Any]:
    """The only command of a migration, as people read it."""
    (command,) = (await api.http.get(f"/migrations/{migration_id}/commands")).json()["items"]
    return dict(command)


async def told(api: Any, migration_id: str, kind: str) -> dict[str, Any]:
    """What the only event of this kind says."""
    events = (await api.http.get(f"/migrations/{migration_id}/events")).json()["items"]
    (data,) = [event["data"] for event in events if event["kind"] == kind]
    return dict(data)


async def until_answered(api: Any, migration_id: str) -> dict[str, Any]:
    for _ in range(10):
        await api.wiring.caretaker.round()
        if (command := await command_of(api, migration_id))["status"] != "pending":
            return command
    raise AssertionError("pending after ten rounds")


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("body", [{}, {"accept_loss": LOSSES}, {"accept_loss": LOSSES, "preview_hash": "f" * 64}])
async def test_a_rollback_is_written_down_delivered_and_told(api: Any, body: dict[str, Any]) -> None:
    migration_id = await api.started()
    answer = await api.roll_back(migration_id, **body)
    assert answer.status_code == 202, answer.text
    command = answer.json()
    assert (command["kind"], command["status"], command["reason"]) == ("rollback", "delivered", "it hurts")
    bound_to = {"preview_hash": "f" * 64} if not body else {"preview_hash": None} | body
    assert (command["preview_hash"], command["accept_loss"]) == (bound_to["preview_hash"], bound_to.get("accept_loss", []))
    assert await command_of(api, migration_id) == command
    assert await api.event_kinds(migration_id) == ["call-accepted", "command-delivered", "call-accepted"]
    data = await told(api, migration_id, "command-delivered")
    assert (data["command"], data["accept_loss"]) == ("rollback", command["accept_loss"])


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"preview_hash": STALE}, "the preview is not what it was"),
        ({"accept_loss": ["metadata-changes"]}, "this would be lost: edits-of-broker-1"),
        ({"accept_loss": []}, "this would be lost: edits-of-broker-1"),
    ],
)
async def test_a_refused_rollback_says_why_and_is_kept(
    api: Any, expect_problem: Expect, body: dict[str, Any], reason: str
) -> None:
    migration_id = await api.started()
    problem = expect_problem(await api.roll_back(migration_id, **body), 409, "rollback-refused")
    assert problem["detail"] == reason
    assert problem["links"] == {"migration": f"/migrations/{migration_id}"}
    kept = await command_of(api, migration_id)
    assert (kept["id"], kept["status"], kept["refused_because"]) == (problem["command_id"], "refused", reason)
    assert (await api.roll_back(migration_id)).status_code == 202


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize(("asked_for", "status"), [("f" * 64, "delivered"), (STALE, "refused")])
async def test_an_answer_that_takes_longer_than_the_call_is_told_later(
    api: Any, monkeypatch: pytest.MonkeyPatch, temporal_client: Client, asked_for: str, status: str
) -> None:
    """The workflow looks at the cluster before it agrees."""
    monkeypatch.setattr(commands, "ANSWER_LIMIT", timedelta(seconds=0.5))
    migration_id = await api.started()
    answer = await api.roll_back(migration_id, reason="slowly", preview_hash=asked_for)
    assert (answer.status_code, answer.json()["status"]) == (202, "pending")
    command = await until_answered(api, migration_id)
    assert command["status"] == status
    data = await told(api, migration_id, f"command-{status}")
    assert data["because"] == command["refused_because"]
    assert (command["refused_because"] is None) == (status == "delivered")
    record = await api.wiring.ledger.migration(migration_id)
    applied = await temporal_client.get_workflow_handle(record.workflow_id).query("applied")
    assert applied == ([command["id"]] if status == "delivered" else []), "asked many times, done once"


@pytest.mark.usefixtures("worker")
async def test_a_hold_does_not_wait_for_the_answer_to_a_rollback(
    api: Any, monkeypatch: pytest.MonkeyPatch, temporal_client: Client
) -> None:
    monkeypatch.setattr(commands, "ANSWER_LIMIT", timedelta(seconds=1))
    migration_id = await api.started()
    rollback = (await api.roll_back(migration_id, reason="slowly", preview_hash="f" * 64)).json()
    hold = (await api.ask(migration_id, "hold")).json()
    assert (rollback["status"], hold["status"]) == ("pending", "delivered")
    record = await api.wiring.ledger.migration(migration_id)
    run = temporal_client.get_workflow_handle(record.workflow_id)
    assert await run.query("applied") == [hold["id"]], "the rollback is still being thought about"
    for _ in range(10):
        await api.wiring.caretaker.round()
        if len(applied := await run.query("applied")) == 2:
            break
    assert applied == [hold["id"], rollback["id"]]


@pytest.mark.usefixtures("worker")
async def test_an_answer_that_comes_with_the_end_is_told_after_it(
    api: Any,
    monkeypatch: pytest.MonkeyPatch,
    temporal_client: Client,
    end: Callable[..., Awaitable[None]],
) -> None:
    """The API was away while the way back was taken: that it was refused would be a lie."""
    monkeypatch.setattr(commands, "ANSWER_LIMIT", timedelta(seconds=0.5))
    migration_id = await api.started()
    await api.roll_back(migration_id, reason="slowly, to the end", preview_hash="f" * 64)
    record = await api.wiring.ledger.migration(migration_id)
    await temporal_client.get_workflow_handle(record.workflow_id).result()
    await end(migration_id, MigrationState.REVERTED)
    assert (await until_answered(api, migration_id))["status"] == "delivered"


async def test_without_a_worker_and_without_temporal_a_rollback_arrives_later(
    api: Any, settings: ApiSettings, serve: Any, start_worker: StartWorker
) -> None:
    migration_id = await api.started()
    async with serve(create_app(settings, Temporal({"target_host": "127.0.0.1:1"}))) as cut_off:
        assert (await cut_off.roll_back(migration_id)).json()["status"] == "pending"
    assert (await command_of(api, migration_id))["status"] == "pending"
    async with start_worker():
        assert (await until_answered(api, migration_id))["status"] == "delivered"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"reason": "r"}, ""),
        ({"preview_hash": STALE}, "reason"),
        ({"reason": "r", "preview_hash": "latest"}, "preview_hash"),
        ({"reason": "r", "accept_loss": "everything"}, "accept_loss"),
        ({"reason": "r", "accept_loss": ["Every\0thing"]}, "accept_loss.0"),
        ({"reason": "r", "preview_hash": STALE, "force": True}, "force"),
    ],
)
async def test_a_wrong_rollback_names_its_field(api: Any, expect_problem: Expect, body: dict[str, Any], field: str) -> None:
    answer = await api.http.post(f"/migrations/{uuid4()}/rollback", json=body)
    problem = expect_problem(answer, 422, "invalid-request")
    assert [error["field"] for error in problem["errors"]] == [field]
    if not field:
        assert "rollback-preview" in problem["errors"][0]["message"]
        assert "accept_loss" in problem["errors"][0]["message"]


@pytest.mark.usefixtures("worker")
async def test_the_storage_of_a_controller_that_is_only_wanted_may_be_given_up(api: Any) -> None:
    """The registered cluster has no controllers yet: they come with what the migration wants."""
    answer = await api.roll_back(await api.started(), accept_loss=[*LOSSES, "storage-of-controller-3001"])
    assert answer.status_code == 202, answer.text


async def test_a_loss_that_there_cannot_be_is_refused_before_anything_is_written_down(api: Any, expect_problem: Expect) -> None:
    migration_id = await api.started()
    body = {"reason": "r", "accept_loss": ["metadata-changes", "everything", "edits-of-broker-99"]}
    answer = await api.http.post(f"/migrations/{migration_id}/rollback", json=body)
    problem = expect_problem(answer, 422, "invalid-request")
    assert [error["field"] for error in problem["errors"]] == ["accept_loss.1", "accept_loss.2"]
    assert "rollback-preview" in problem["errors"][0]["message"]
    assert (await api.http.get(f"/migrations/{migration_id}/commands")).json()["items"] == []


@pytest.mark.parametrize(
    ("state", "advice"),
    [
        (MigrationState.CANCELLED, '"hold": true'),
        (MigrationState.FAILED, '"hold": true'),
        (MigrationState.SUCCEEDED, "a rollback is impossible"),
        (MigrationState.REVERTED, "nothing left to do"),
        (MigrationState.REFUSED, "changed nothing"),
    ],
)
async def test_an_ended_migration_says_what_leads_back_instead(
    api: Any, end: Callable[..., Awaitable[None]], expect_problem: Expect, state: MigrationState, advice: str
) -> None:
    migration_id = await api.started()
    await end(migration_id, state)
    problem = expect_problem(await api.roll_back(migration_id), 409, "migration-ended")
    assert state in problem["detail"]
    assert advice in problem["detail"]


@pytest.mark.parametrize("call", [("POST", "rollback"), ("GET", "rollback-preview"), ("GET", "runbook"), ("GET", "commands")])
async def test_an_unknown_migration_is_not_found(api: Any, expect_problem: Expect, call: tuple[str, str]) -> None:
    method, what = call
    body = {"reason": "r", "preview_hash": STALE} if method == "POST" else None
    answer = await api.http.request(method, f"/migrations/{uuid4()}/{what}", json=body)
    expect_problem(answer, 404, "migration-not-found")


# ---- Adoption ----


@pytest.mark.usefixtures("worker")
async def test_a_migration_that_starts_held_has_its_hold_in_the_ledger(api: Any, expect_problem: Expect) -> None:
    spec = await api.registered()
    started = await api.post_migration(spec.name, hold=True)
    assert started.status_code == 202, started.text
    migration_id = started.json()["id"]
    hold = await command_of(api, migration_id)
    assert (hold["kind"], hold["status"], hold["via"]) == ("hold", "delivered", "api")
    assert (await told(api, migration_id, "call-accepted"))["command_id"] == hold["id"]
    await api.wiring.caretaker.round()
    assert (await api.ask(migration_id, "resume")).status_code == 202, "the run was started held"
    expect_problem(await api.ask(await api.started(), "resume"), 409, "command-refused")


async def test_the_hold_is_there_before_the_run_and_goes_with_a_failed_start(
    api_without_temporal: Any, expect_problem: Expect
) -> None:
    api = api_without_temporal
    spec = await api.registered()
    expect_problem(await api.post_migration(spec.name, hold=True), 503, "temporal-unavailable")
    (migration,) = (await api.http.get("/migrations")).json()["items"]
    assert migration["state"] == "failed"
    assert (await command_of(api, migration["id"]))["kind"] == "hold"


# ---- What a migration says of itself ----


async def test_a_migration_says_where_it_is_going_and_where_to_ask(api: Any) -> None:
    migration_id = await api.started()
    url = f"/migrations/{migration_id}"
    answer = (await api.http.get(url)).json()
    assert answer["intent"] == "forward"
    links = {name: answer["links"][name] for name in ("commands", "rollback_preview", "rollback", "runbook")}
    assert links == {
        "commands": f"{url}/commands",
        "rollback_preview": f"{url}/rollback-preview",
        "rollback": f"{url}/rollback",
        "runbook": f"{url}/runbook",
    }
    progress = Progress(state=MigrationState.REVERTING, intent=Intent.REVERT, phase="DUAL_WRITE")
    await api.wiring.ledger.record(migration_id, [], progress)
    (reverting,) = (await api.http.get("/migrations?state=reverting")).json()["items"]
    assert (reverting["id"], reverting["state"], reverting["intent"]) == (migration_id, "reverting", "revert")
    await api.wiring.ledger.record(migration_id, [], progress.model_copy(update={"state": MigrationState.REVERTED}))
    assert [m["id"] for m in (await api.http.get("/migrations?state=reverted")).json()["items"]] == [migration_id]
