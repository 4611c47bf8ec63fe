"""Approvals through the API: what is armed is shown, a plain resume begins nothing, and what comes too late says so."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from domain.approvals import Attempt
from domain.records import Hold, HoldEffect, MigrationState, Progress, Waiting
from domain.zk_to_kraft.steps import GateName

Expect = Callable[[httpx.Response, int, str], dict[str, Any]]
EVIDENCE = "e" * 64


@pytest.fixture
async def armed(api: Any, claim: Any) -> tuple[str, str]:
    """A migration that is held, with an approval given since: its id, and the approval's. No worker takes either yet."""
    migration_id = await api.started()
    await claim(migration_id)
    await api.ask(migration_id, "hold")
    return migration_id, (await api.approve(migration_id, evidence_hash=EVIDENCE)).json()["id"]


async def resume(api: Any, migration_id: str, **body: str) -> httpx.Response:
    answer: httpx.Response = await api.http.post(f"/migrations/{migration_id}/resume", json={"reason": "go"} | body)
    return answer


async def test_an_armed_approval_is_shown_with_its_end(api: Any, armed: tuple[str, str]) -> None:
    migration_id, approval = armed
    (shown,) = (await api.http.get(f"/migrations/{migration_id}")).json()["approvals"]
    assert (shown["command_id"], shown["gate"], shown["state"], shown["by"]) == (
        approval,
        "finalize",
        "armed",
        "local (unauthenticated)",
    )
    assert shown["at"] < shown["until"]
    listed = (await api.http.get("/migrations")).json()["items"]
    assert [item["approvals"] for item in listed if item["id"] == migration_id] == [[shown]]


async def test_a_plain_resume_is_refused_and_names_the_gate(api: Any, armed: tuple[str, str], expect_problem: Expect) -> None:
    migration_id, _ = armed
    problem = expect_problem(await resume(api, migration_id), 409, "begin-not-named")
    assert problem["gate"] == "finalize"
    assert '"begin": "finalize"' in problem["detail"]
    expect_problem(await resume(api, migration_id, begin="fail-over"), 409, "begin-not-named")
    named = await resume(api, migration_id, begin="finalize")
    assert (named.status_code, named.json()["gate"]) == (202, "finalize")


async def test_a_resume_that_names_a_gate_of_which_nothing_is_armed_is_refused(api: Any, expect_problem: Expect) -> None:
    migration_id = await api.started()
    await api.ask(migration_id, "hold")
    problem = expect_problem(await resume(api, migration_id, begin="finalize"), 409, "command-refused")
    assert "resume without begin" in problem["detail"]


async def test_a_hold_voids_what_is_armed(api: Any, armed: tuple[str, str]) -> None:
    migration_id, approval = armed
    await api.ask(migration_id, "hold")
    commands = {item["id"]: item for item in (await api.http.get(f"/migrations/{migration_id}/commands")).json()["items"]}
    assert (commands[approval]["approval"], commands[approval]["closed_because"]) == (
        "void",
        "held by local (unauthenticated): lunch",
    )
    assert (await api.http.get(f"/migrations/{migration_id}")).json()["approvals"] == []
    assert "approval-void" in await api.event_kinds(migration_id)
    assert (await resume(api, migration_id)).status_code == 202


async def test_a_rejection_withdraws_what_has_not_arrived_yet(api: Any, armed: tuple[str, str], start_worker: Any) -> None:
    migration_id, approval = armed
    assert (await api.approve(migration_id, decision="reject", evidence_hash=EVIDENCE)).status_code == 202
    async with start_worker():
        await api.wiring.caretaker.round()
    stored = await api.wiring.ledger.command(approval)
    assert (stored.closed_as, stored.delivered_at) == ("withdrawn", None)
    assert "withdrawn" in stored.refused_because


async def test_what_comes_after_the_consumption_says_since_when(
    api: Any, armed: tuple[str, str], expect_problem: Expect
) -> None:
    migration_id, approval = armed
    lifting = (await resume(api, migration_id, begin="finalize")).json()["id"]
    record = await api.wiring.ledger.migration(migration_id)
    attempt = Attempt("m/7", migration_id, record.cluster, 1, GateName.FINALIZE, approval, EVIDENCE, (lifting,))
    assert await api.wiring.ledger.consume_approval(attempt) is None
    problem = expect_problem(await api.approve(migration_id, decision="reject", evidence_hash=EVIDENCE), 409, "command-refused")
    assert "was consumed at" in problem["detail"]
    assert (await api.ask(migration_id, "hold")).json()["takes_effect_after"] == "finalize"
    commands = {item["id"]: item for item in (await api.http.get(f"/migrations/{migration_id}/commands")).json()["items"]}
    assert (commands[approval]["approval"], commands[approval]["consumed_by"]) == ("consumed", "m/7")
    assert commands[approval]["consumed_at"] is not None


async def test_a_refused_command_is_one_event_with_its_origin(api: Any, armed: tuple[str, str]) -> None:
    migration_id, _ = armed
    before = len(await api.event_kinds(migration_id))
    answer = await resume(api, migration_id)
    events = (await api.http.get(f"/migrations/{migration_id}/events")).json()["items"][before:]
    assert [event["kind"] for event in events] == ["command-refused"]
    said = events[0]["data"]
    assert (said["request_id"], said["method"], said["command"]) == (answer.headers["x-request-id"], "POST", "resume")
    assert '"begin": "finalize"' in said["because"]


async def test_events_of_a_command_are_in_the_order_of_their_times(api: Any, start_worker: Any) -> None:
    migration_id = await api.started()
    async with start_worker():
        await api.ask(migration_id, "hold")
        await api.ask(migration_id, "hold")
    events = (await api.http.get(f"/migrations/{migration_id}/events")).json()["items"]
    assert [event["at"] for event in events] == sorted(event["at"] for event in events)


async def test_an_approval_that_waits_is_in_the_blockers(api: Any, armed: tuple[str, str]) -> None:
    migration_id, _ = armed
    record = await api.wiring.ledger.migration(migration_id)
    waiting = Waiting(reason="held", means="", since=record.created_at, detail="held by olga: lunch", for_people=True)
    hold = Hold(by="olga", reason="lunch", since=record.created_at, takes_effect=HoldEffect.NOW)
    await api.wiring.ledger.record(migration_id, [], Progress(state=MigrationState.HELD, waiting=waiting, hold=hold))
    items = (await api.http.get(f"/migrations/{migration_id}/blockers")).json()["items"]
    (held,) = [item for item in items if item["code"] == "held"]
    assert "The approval of finalize by local (unauthenticated)" in held["observed"]
    assert '"begin": "finalize"' in held["fix"]
    assert (await api.http.get(f"/migrations/{migration_id}")).json()["hold"]["by"] == "olga"
