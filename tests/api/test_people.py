"""Authentication on a real ledger and Temporal: keys, sessions, scopes, four eyes; each refusal is in the audit."""

import asyncio
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from structlog.testing import capture_logs

from api import openapi
from api.app import create_app
from api.people.credentials import key_record, new_key
from api.people.first_key import ensure_first_key
from api.people.identity import COOKIE
from api.routes.keys import key_made
from api.running.temporal import Temporal
from api.settings import ApiSettings
from domain.principals import LOCAL, ApiKey, Role
from ledger.errors import LedgerUnavailable
from ledger.ledger import SqlLedger
from ledger.people import SqlPeople
from tests.api.conftest import ASKED

EVIDENCE = "e" * 64
ORIGIN = "http://127.0.0.1"
PATIENCE = 30.0

Expect = Callable[[httpx.Response, int, str], dict[str, Any]]


@dataclass
class Guarded:
    """An API with authentication, and its first admin's key."""

    api: Any
    admin: str

    def as_(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    async def key_of(self, principal: str, *roles: str, **more: Any) -> str:
        body = {"principal": principal, "roles": list(roles)} | more
        made = await self.api.http.post("/keys", json=body, headers=self.as_(self.admin))
        assert made.status_code == 201, made.text
        assert made.headers["cache-control"] == "no-store"
        return str(made.json()["key"])

    async def call(self, method: str, path: str, key: str, **more: Any) -> httpx.Response:
        headers = more.pop("headers", {}) | self.as_(key)
        answer: httpx.Response = await self.api.http.request(method, path, headers=headers, **more)
        return answer

    async def registered(self, key: str, name: str | None = None) -> str:
        spec = self.make_spec(name)
        answer = await self.call("PUT", f"/clusters/{spec.name}", key, json=spec.model_dump(mode="json"))
        assert answer.status_code == 201, answer.text
        return str(spec.name)

    async def started(self, key: str, name: str | None = None, **more: Any) -> str:
        body = {"cluster": await self.registered(key, name), **ASKED} | more
        answer = await self.call("POST", "/migrations", key, json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    async def decide(self, migration_id: str, key: str, **changes: Any) -> httpx.Response:
        body = {"gate": "finalize", "decision": "approve", "reason": "it is well", "evidence_hash": EVIDENCE} | changes
        return await self.call("POST", f"/migrations/{migration_id}/approvals", key, json=body)

    async def refusals(self) -> list[tuple[str, str | None]]:
        """The audit's refused calls: whose, and why."""
        events = [e for e in await self.api.wiring.ledger.events() if e.kind == "call-refused"]
        return [(e.data["principal"], e.data["problem"]) for e in events]

    make_spec: Any = None


@pytest.fixture
def guarded_settings(settings: ApiSettings, tmp_path: Any) -> ApiSettings:
    return settings.model_copy(update={"auth": "on", "first_key_file": tmp_path / "state" / "first-key"})


@pytest.fixture
async def guarded(
    guarded_settings: ApiSettings,
    temporal_address: str,
    serve: Callable[[FastAPI], AbstractAsyncContextManager[Any]],
    make_spec: Callable[..., Any],
) -> AsyncIterator[Guarded]:
    app = create_app(guarded_settings, Temporal({"target_host": temporal_address}, timedelta(seconds=PATIENCE)))
    async with serve(app) as api:
        yield Guarded(api, guarded_settings.first_key_file.read_text().strip(), make_spec)


# ---- Keys ----


async def test_nobody_gets_further_without_credentials(guarded: Guarded, expect_problem: Expect) -> None:
    answer = await guarded.api.http.get("/clusters")
    assert "POST /keys" in expect_problem(answer, 401, "unauthenticated")["detail"]
    assert answer.headers["www-authenticate"] == "Bearer"
    assert (await guarded.api.http.get("/livez")).status_code == 200
    expect_problem(await guarded.api.http.post("/keys", json={}), 401, "unauthenticated")
    assert await guarded.refusals() == [("unknown", "unauthenticated")]


async def test_the_first_key_is_in_a_file_of_its_owner_alone(guarded: Guarded, guarded_settings: ApiSettings) -> None:
    assert stat.S_IMODE(guarded_settings.first_key_file.stat().st_mode) == 0o600
    me = (await guarded.call("GET", "/session", guarded.admin)).json()
    assert (me["principal"], me["roles"], me["via"]) == ("first-admin", ["admin"], "api-key")
    (listed,) = (await guarded.call("GET", "/keys", guarded.admin)).json()["items"]
    assert guarded.admin.startswith(f"keeperless_{listed['id']}_")
    assert "secret" not in str(listed)


async def test_a_slower_copy_leaves_the_first_key_in_its_file(
    guarded: Guarded, guarded_settings: ApiSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asked for an admin before the faster one had written its key to the ledger."""

    async def nobody_yet(_: SqlPeople) -> bool:
        return False

    monkeypatch.setattr(SqlPeople, "has_admin", nobody_yet)
    await ensure_first_key(guarded.api.wiring.people, guarded_settings.first_key_file, has_provider=False)
    assert guarded_settings.first_key_file.read_text().strip() == guarded.admin


async def test_a_first_key_that_a_crash_left_in_the_file_is_taken(
    guarded_settings: ApiSettings, temporal_address: str, serve: Callable[[FastAPI], AbstractAsyncContextManager[Any]]
) -> None:
    left = new_key("first-admin", (Role.ADMIN,), None, "tests", datetime.now(UTC), timedelta(days=1)).text
    guarded_settings.first_key_file.parent.mkdir(parents=True)
    guarded_settings.first_key_file.write_text(f"{left}\n")
    async with serve(create_app(guarded_settings, Temporal({"target_host": temporal_address}))) as api:
        assert (await api.http.get("/keys", headers={"Authorization": f"Bearer {left}"})).status_code == 200


async def test_a_first_key_file_that_cannot_be_written_is_told_and_tried_again(
    guarded_settings: ApiSettings,
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    serve: Callable[[FastAPI], AbstractAsyncContextManager[Any]],
) -> None:
    monkeypatch.setattr("api.app.SCHEMA_PAUSE", timedelta(milliseconds=20))
    monkeypatch.setattr("api.app.SCHEMA_AT_START_SECONDS", 0.5)
    (blocking := tmp_path / "state").write_text("a file where a directory should be")
    with capture_logs() as logs:
        async with serve(create_app(guarded_settings, Temporal({"target_host": "127.0.0.1:1"}))) as api:
            assert any("KEEPERLESS_FIRST_KEY_FILE" in entry["event"] for entry in logs)
            blocking.unlink()
            async with asyncio.timeout(PATIENCE):
                while not await api.wiring.people.has_admin():  # noqa: ASYNC110 - a task of the API makes it
                    await asyncio.sleep(0.02)


@pytest.mark.parametrize("has_provider", [False, True])
async def test_whoever_revokes_the_last_admins_key_gets_a_new_one_at_the_next_start(
    guarded: Guarded,
    guarded_settings: ApiSettings,
    serve: Callable[[FastAPI], AbstractAsyncContextManager[Any]],
    has_provider: bool,
) -> None:
    """Not where an OIDC provider may name admins."""
    await guarded.call("DELETE", f"/keys/{guarded.admin.split('_')[1]}", guarded.admin)
    provider = {"oidc_issuer": "https://idp.example", "oidc_audience": "k"} if has_provider else {}
    app = create_app(guarded_settings.model_copy(update=provider), Temporal({"target_host": "127.0.0.1:1"}))
    async with serve(app) as api:
        key = guarded_settings.first_key_file.read_text().strip()
        answer = await api.http.get("/keys", headers={"Authorization": f"Bearer {key}"})
    assert (key == guarded.admin, answer.status_code) == ((True, 401) if has_provider else (False, 200))


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"principal": LOCAL}, "principal"),
        ({"principal": "Anna"}, "principal"),
        ({"roles": []}, "roles"),
        ({"roles": ["root"]}, "roles.0"),
        ({"clusters": []}, "clusters"),
        ({"roles": ["admin"], "clusters": ["orders"]}, ""),
        ({"expires_after": "P2Y"}, "expires_after"),
    ],
)
async def test_keys_that_cannot_be_made(guarded: Guarded, expect_problem: Expect, body: dict[str, Any], field: str) -> None:
    asked = {"principal": "anna", "roles": ["viewer"]} | body
    problem = expect_problem(await guarded.call("POST", "/keys", guarded.admin, json=asked), 422, "invalid-request")
    assert [error["field"] for error in problem["errors"]] == [field]


async def test_expired_revoked_and_tampered_keys_are_refused(guarded: Guarded, expect_problem: Expect) -> None:
    key = await guarded.key_of("anna", "viewer")
    assert (await guarded.call("GET", "/clusters", key)).status_code == 200
    tampered = key[:-1] + ("A" if key[-1] != "A" else "B")
    assert (
        "no such API key" in expect_problem(await guarded.call("GET", "/clusters", tampered), 401, "unauthenticated")["detail"]
    )
    revoked = await guarded.call("DELETE", f"/keys/{key.split('_')[1]}", guarded.admin)
    assert (revoked.status_code, revoked.json()["revoked_by"]) == (200, "first-admin")
    assert "revoked" in expect_problem(await guarded.call("GET", "/clusters", key), 401, "unauthenticated")["detail"]
    old = key_record(new_text(), "berta", (Role.VIEWER,), None, "tests", datetime.now(UTC), timedelta(microseconds=1))
    expired = await kept(guarded, old)
    assert "expired" in expect_problem(await guarded.call("POST", "/plans", expired, json={}), 401, "unauthenticated")["detail"]
    assert ("unknown", "unauthenticated") in await guarded.refusals()
    expect_problem(await guarded.call("DELETE", "/keys/0123456789ab", guarded.admin), 404, "key-not-found")


TEXTS: dict[str, str] = {}


def new_text() -> str:
    text = new_key("x", (Role.VIEWER,), None, "tests", datetime.now(UTC), timedelta(days=1)).text
    TEXTS[text.split("_")[1]] = text
    return text


async def kept(guarded: Guarded, key: ApiKey) -> str:
    await guarded.api.wiring.people.add_key(key, key_made(key))
    return TEXTS[key.id]


async def test_a_key_in_an_address_is_neither_logged_nor_kept(guarded: Guarded, expect_problem: Expect) -> None:
    """The id is how a key begins, so people put the whole key there."""
    key = await guarded.key_of("anna", "viewer")
    with capture_logs() as logs:
        expect_problem(await guarded.call("DELETE", f"/keys/{key}", guarded.admin), 422, "invalid-request")
    secret = key.split("_", 2)[2]
    told = str([logs, await guarded.api.wiring.ledger.events()])
    assert f"/keys/keeperless_{key.split('_')[1]}_***" in told
    assert secret not in told


# ---- Roles and scopes ----

CALLS = {
    "read": ("GET", "/migrations"),
    "operate": ("POST", "/plans"),
    "stop": ("POST", "/migrations/{id}/hold"),
    "decide": ("POST", "/migrations/{id}/approvals"),
    "administer": ("GET", "/keys"),
}
ALLOWED = {
    "viewer": {"read"},
    "operator": {"read", "operate", "stop"},
    "approver": {"read", "stop", "decide"},
    "admin": set(CALLS),
}


async def test_each_role_may_do_what_it_says_and_nothing_else(guarded: Guarded) -> None:
    migration_id = await guarded.started(guarded.admin)
    for role, allowed in ALLOWED.items():
        key = await guarded.key_of(f"a-{role}", role)
        for permission, (method, path) in CALLS.items():
            answer = await guarded.call(method, path.format(id=migration_id), key, **({"json": {}} if method == "POST" else {}))
            assert (answer.status_code != 403) is (permission in allowed), (role, permission, answer.text)
    assert ("a-viewer", "forbidden") in await guarded.refusals()


async def test_a_key_sees_and_touches_the_clusters_of_its_scope(guarded: Guarded, expect_problem: Expect) -> None:
    other_id = await guarded.started(guarded.admin)
    (other,) = [m["cluster"] for m in (await guarded.call("GET", "/migrations", guarded.admin)).json()["items"]]
    key = await guarded.key_of("olga", "operator", "approver", clusters=["hers"])
    own_id = await guarded.started(key, "hers")
    for method, path, body in (
        ("GET", f"/clusters/{other}", None),
        ("GET", f"/migrations/{other_id}", None),
        ("GET", f"/migrations/{other_id}/events", None),
        ("GET", f"/migrations?cluster={other}", None),
        ("GET", f"/plans?cluster={other}", None),
        ("POST", f"/migrations/{other_id}/hold", {"reason": "r"}),
        ("POST", "/migrations", {"cluster": other, **ASKED}),
        ("POST", "/plans", {"cluster": other, **ASKED}),
        ("POST", f"/clusters/{other}/checks", {}),
    ):
        expect_problem(await guarded.call(method, path, key, json=body), 403, "forbidden")
    assert [c["name"] for c in (await guarded.call("GET", "/clusters", key)).json()["items"]] == ["hers"]
    assert [m["id"] for m in (await guarded.call("GET", "/migrations", key)).json()["items"]] == [own_id]
    assert ("olga", "forbidden") in await guarded.refusals()


async def test_a_scope_covers_plans_in_the_making(guarded: Guarded, expect_problem: Expect) -> None:
    other, key = await guarded.registered(guarded.admin), await guarded.key_of("olga", "operator", clusters=["hers"])
    asked = {"cluster": other, **ASKED}
    plan = (await guarded.call("POST", "/plans", guarded.admin, json=asked)).headers["location"]
    assert (await guarded.call("GET", plan, guarded.admin)).json()["state"] == "running"
    expect_problem(await guarded.call("GET", plan, key), 403, "forbidden")
    await guarded.registered(key, "hers")
    start = {"cluster": "hers", "kind": "zk-to-kraft", "plan_id": plan.rpartition("/")[2]}
    expect_problem(await guarded.call("POST", "/migrations", key, json=start), 403, "forbidden")


def test_every_operation_says_who_may_call_it() -> None:
    """Denied by default: a new route without a permission fails here."""
    document = openapi.document()
    operations = {
        f"{method.upper()} {path}": operation for path, ways in document["paths"].items() for method, operation in ways.items()
    }
    open_to_all = {name for name, operation in operations.items() if not operation.get("security")}
    assert open_to_all == {"GET /livez", "GET /readyz", "GET /version", "POST /session"}


# ---- Four eyes ----


@pytest.mark.usefixtures("worker")
async def test_the_requester_approves_through_no_key_of_theirs(guarded: Guarded, expect_problem: Expect) -> None:
    first, second = await guarded.key_of("olga", "operator"), await guarded.key_of("olga", "operator", "approver")
    migration_id = await guarded.started(first)
    expect_problem(await guarded.decide(migration_id, second), 403, "own-request")
    assert ("olga", "own-request") in await guarded.refusals()
    approved = await guarded.decide(migration_id, await guarded.key_of("anna", "approver"))
    assert (approved.status_code, approved.json()["by"], approved.json()["via"]) == (201, "anna", "api-key")


@pytest.mark.usefixtures("worker")
async def test_a_stale_hash_and_a_second_approval_are_refused(guarded: Guarded, expect_problem: Expect) -> None:
    migration_id = await guarded.started(guarded.admin)
    key = await guarded.key_of("anna", "approver")
    expect_problem(await guarded.decide(migration_id, key, evidence_hash="0" * 64), 409, "command-refused")
    assert (await guarded.decide(migration_id, key)).status_code == 201
    assert "approved already" in expect_problem(await guarded.decide(migration_id, key), 409, "command-refused")["detail"]
    refused = [e for e in await guarded.api.wiring.ledger.events(migration_id) if e.kind == "command-refused"]
    assert [(e.data["via"], e.data["key"], e.data["path"]) for e in refused] == [
        ("api-key", key.split("_")[1], f"/migrations/{migration_id}/approvals")
    ] * 2


@pytest.mark.usefixtures("worker")
async def test_two_people_approve_where_the_policy_asks_for_two(guarded: Guarded) -> None:
    migration_id = await guarded.started(guarded.admin, policy={"approvers": {"finalize": 2}})
    states = []
    for name in ("anna", "berta"):
        answer = await guarded.decide(migration_id, await guarded.key_of(name, "approver"))
        states.append((answer.status_code, answer.json()["approval"]))
    assert states == [(201, "counted"), (201, "armed")]


@pytest.mark.usefixtures("worker")
async def test_only_an_admin_breaks_glass_and_the_audit_says_so(guarded: Guarded, expect_problem: Expect) -> None:
    migration_id = await guarded.started(guarded.admin)
    approver = await guarded.key_of("anna", "approver")
    expect_problem(await guarded.decide(migration_id, approver, break_glass=True), 403, "forbidden")
    expect_problem(await guarded.decide(migration_id, guarded.admin), 403, "own-request")
    broken = await guarded.decide(migration_id, guarded.admin, break_glass=True, reason="the night of the outage")
    assert (broken.status_code, broken.json()["break_glass"]) == (201, True)
    (event,) = [e for e in await guarded.api.wiring.ledger.events(migration_id) if e.kind == "command-delivered"]
    assert event.data["break_glass"] is True


async def test_an_approver_withdraws_their_own_and_an_admin_any(guarded: Guarded, expect_problem: Expect) -> None:
    """No worker: the approvals stay armed."""
    migration_id = await guarded.started(guarded.admin)
    anna, berta = await guarded.key_of("anna", "approver"), await guarded.key_of("berta", "approver")
    assert (await guarded.decide(migration_id, anna)).status_code == 202
    problem = expect_problem(await guarded.decide(migration_id, berta, decision="reject"), 403, "forbidden")
    assert "Only anna or an admin" in problem["detail"]
    assert (await guarded.decide(migration_id, guarded.admin, decision="reject")).status_code == 202
    commands = (await guarded.call("GET", f"/migrations/{migration_id}/commands", berta)).json()["items"]
    assert commands[0]["approval"] == "withdrawn"


async def test_one_of_two_approvers_can_think_better_of_it(guarded: Guarded) -> None:
    """No worker: the approvals stay armed. Without anna's the gate is short of one, so berta's goes as well."""
    migration_id = await guarded.started(guarded.admin, policy={"approvers": {"finalize": 2}})
    anna, berta = await guarded.key_of("anna", "approver"), await guarded.key_of("berta", "approver")
    for key in (anna, berta):
        assert (await guarded.decide(migration_id, key)).status_code < 300
    assert (await guarded.decide(migration_id, anna, decision="reject")).status_code == 202
    assert await guarded.api.wiring.ledger.open_approvals([migration_id]) == []


async def test_approvals_of_before_are_void_when_authentication_comes(
    settings: ApiSettings,
    guarded_settings: ApiSettings,
    temporal_address: str,
    serve: Callable[[FastAPI], AbstractAsyncContextManager[Any]],
) -> None:
    temporal = Temporal({"target_host": temporal_address})
    async with serve(create_app(settings, temporal)) as open_api:
        migration_id = await open_api.started()
        assert (await open_api.approve(migration_id)).status_code == 202
    async with serve(create_app(guarded_settings, Temporal({"target_host": temporal_address}))) as api:
        (command,) = await api.wiring.ledger.commands(migration_id)
        assert (command.by, command.closed_as) == (LOCAL, "void")
        assert (await api.wiring.ledger.migration(migration_id)).requested_by == LOCAL


# ---- Sessions ----


async def signed_in(guarded: Guarded, key: str) -> dict[str, str]:
    answer = await guarded.api.http.post("/session", json={"key": key})
    assert answer.status_code == 201, answer.text
    cookie = answer.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=strict", "Max-Age=28800"))
    value = answer.cookies[COOKIE]
    guarded.api.http.cookies.clear()
    return {"Cookie": f"{COOKIE}={value}"}


async def test_a_session_needs_its_own_origin_to_change_anything(guarded: Guarded, expect_problem: Expect) -> None:
    migration_id = await guarded.started(guarded.admin)
    cookie = await signed_in(guarded, await guarded.key_of("olga", "operator"))
    http, path, body = guarded.api.http, f"/migrations/{migration_id}/hold", {"reason": "r"}
    assert (await http.get("/migrations", headers=cookie)).status_code == 200
    for origin in ({}, {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:81"}):
        expect_problem(await http.post(path, json=body, headers=cookie | origin), 403, "foreign-origin")
    assert (await http.post(path, json=body, headers=cookie | {"Origin": ORIGIN})).status_code == 202
    assert [why for _, why in await guarded.refusals()] == ["foreign-origin"] * 4


async def test_a_session_ends_with_its_key_and_at_the_sign_out(guarded: Guarded, expect_problem: Expect) -> None:
    key = await guarded.key_of("olga", "viewer", clusters=["hers"])
    first, second = await signed_in(guarded, key), await signed_in(guarded, key)
    http = guarded.api.http
    me = (await http.get("/session", headers=first)).json()
    assert (me["principal"], me["clusters"], me["via"]) == ("olga", ["hers"], "session")
    assert (await http.delete("/session", headers=first | {"Origin": ORIGIN})).status_code == 204
    expect_problem(await http.get("/session", headers=first), 401, "unauthenticated")
    assert (await http.get("/session", headers=second)).status_code == 200
    await guarded.call("DELETE", f"/keys/{key.split('_')[1]}", guarded.admin)
    expect_problem(await http.get("/session", headers=second), 401, "unauthenticated")


async def test_nobody_signs_in_with_what_is_no_key(guarded: Guarded, expect_problem: Expect) -> None:
    problem = expect_problem(await guarded.api.http.post("/session", json={"key": "hunter2"}), 401, "unauthenticated")
    assert "hunter2" not in str(problem)


# ---- Idempotency ----


async def test_the_same_call_is_answered_again_and_carried_out_once(guarded: Guarded) -> None:
    cluster = await guarded.registered(guarded.admin)
    body, named = {"cluster": cluster, **ASKED}, {"Idempotency-Key": "first-try"}
    answers = [await guarded.call("POST", "/migrations", guarded.admin, json=body, headers=named) for _ in range(2)]
    assert [a.status_code for a in answers] == [202, 202]
    assert answers[0].json() == answers[1].json()
    assert answers[0].headers["location"] == answers[1].headers["location"]
    assert len((await guarded.call("GET", "/migrations", guarded.admin)).json()["items"]) == 1


async def test_an_idempotency_key_is_one_principals_and_one_bodys(guarded: Guarded, expect_problem: Expect) -> None:
    cluster = await guarded.registered(guarded.admin)
    body, named = {"cluster": cluster, **ASKED}, {"Idempotency-Key": "mine"}
    assert (await guarded.call("POST", "/migrations", guarded.admin, json=body, headers=named)).status_code == 202
    other = await guarded.call("POST", "/migrations", guarded.admin, json=body | {"hold": True}, headers=named)
    expect_problem(other, 422, "idempotency-key-reused")
    key = await guarded.key_of("olga", "operator")
    expect_problem(await guarded.call("POST", "/migrations", key, json=body, headers=named), 422, "idempotency-key-reused")
    assert ("olga", "idempotency-key-reused") in await guarded.refusals()


async def test_a_call_that_was_refused_keeps_no_idempotency_key(guarded: Guarded, expect_problem: Expect) -> None:
    named = {"Idempotency-Key": "again"}
    body = {"cluster": "not-there-yet", **ASKED}
    expect_problem(await guarded.call("POST", "/migrations", guarded.admin, json=body, headers=named), 404, "cluster-not-found")
    await guarded.registered(guarded.admin, "not-there-yet")
    assert (await guarded.call("POST", "/migrations", guarded.admin, json=body, headers=named)).status_code == 202
    too_odd = await guarded.call("POST", "/migrations", guarded.admin, json=body, headers={"Idempotency-Key": "a b"})
    expect_problem(too_odd, 422, "invalid-request")


async def test_a_call_whose_answer_was_lost_is_no_second_order(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the order and its answer the ledger, or this process, went away."""
    migration_id, named = await guarded.started(guarded.admin), {"Idempotency-Key": "lost"}
    path = f"/migrations/{migration_id}/hold"

    async def hold() -> httpx.Response:
        return await guarded.call("POST", path, guarded.admin, json={"reason": "lunch"}, headers=named)

    with monkeypatch.context() as patched:
        patched.setattr(SqlPeople, "end_call", unavailable)
        assert (await hold()).status_code == 503
    assert (await hold()).json()["code"] == "call-under-way"
    monkeypatch.setattr("ledger.answered_calls.ABANDONED_AFTER", timedelta(0))
    again = await hold()
    (command,) = await guarded.api.wiring.ledger.commands(migration_id)
    assert (again.status_code, again.json()["id"]) == (202, command.id)


async def test_a_call_that_failed_half_way_is_carried_on_when_repeated(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    migration_id, named = await guarded.started(guarded.admin), {"Idempotency-Key": "half-way"}
    path, body = f"/migrations/{migration_id}/hold", {"reason": "lunch"}
    with monkeypatch.context() as patched:
        patched.setattr(SqlLedger, "command", unavailable)
        assert (await guarded.call("POST", path, guarded.admin, json=body, headers=named)).status_code == 503
    again = await guarded.call("POST", path, guarded.admin, json=body, headers=named)
    (command,) = await guarded.api.wiring.ledger.commands(migration_id)
    assert (again.status_code, again.json()["id"]) == (202, command.id)


async def unavailable(*_: object) -> None:
    raise LedgerUnavailable("the ledger went away")
