"""What every call has: an id, its entry in the audit, and an answer in time, whatever is missing or broken."""

import sqlite3
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.app import create_app
from api.running import caretaker
from api.running.audit import Audit, Call
from api.running.temporal import Temporal
from api.settings import ApiSettings
from api.wiring import LEDGER_TIMEOUTS
from domain.cluster import ClusterSpec
from domain.records import EventDraft
from ledger.errors import LedgerMisuse, LedgerUnavailable

BUSY_MACHINE = 4.0
"""Seconds: two are promised, and tests share the machine with whatever else runs."""

Expect = Callable[[httpx.Response, int, str], dict[str, Any]]
NO_TEMPORAL = Temporal({"target_host": "127.0.0.1:1"})


async def calls(api: Any) -> list[dict[str, Any]]:
    """The audit: subject and data of every call, oldest first."""
    events = [e for e in await api.wiring.ledger.events() if e.kind.startswith("call-")]
    return [{"kind": e.kind, "cluster": e.cluster, "migration": e.migration_id, **e.data} for e in events]


async def test_mutating_calls_are_events_accepted_and_refused(api: Any, expect_problem: Expect) -> None:
    spec = await api.registered()
    named = {"x-request-id": "operator-7"}
    await api.http.put(f"/clusters/{spec.name}", json={"cluster_id": "hunter2"}, headers=named)
    await api.post_migration(spec.name)
    await api.post_migration(spec.name)
    await api.http.get("/clusters")
    expect_problem(await api.http.post("/nowhere", json={}), 404, "not-found")
    accepted, invalid, started, busy = await calls(api)
    assert {key: accepted[key] for key in ("kind", "cluster", "method", "status", "problem")} == {
        "kind": "call-accepted",
        "cluster": spec.name,
        "method": "PUT",
        "status": 201,
        "problem": None,
    }
    assert (accepted["principal"], accepted["source"]) == ("local (unauthenticated)", "127.0.0.1")
    assert (invalid["kind"], invalid["cluster"], invalid["status"]) == ("call-refused", spec.name, 422)
    assert (invalid["problem"], invalid["request_id"]) == ("invalid-request", "operator-7")
    assert "hunter2" not in str(invalid)
    assert (started["status"], started["migration"] is not None) == (202, True)
    assert (busy["status"], busy["problem"], busy["cluster"]) == (409, "cluster-busy", spec.name)
    assert await api.wiring.ledger.verify_chain() is None


async def test_a_caller_that_goes_away_before_its_body_is_there_is_no_mistake_of_ours(api: Any) -> None:
    """With an Idempotency-Key the whole body is read first."""

    async def gone() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"idempotency-key", b"k")]
    scope = {"type": "http", "method": "POST", "path": "/migrations", "raw_path": b"/migrations", "query_string": b""}
    await api.app(scope | {"headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)}, gone, send)
    assert sent[0]["status"] == 400
    assert [(call["status"], call["problem"]) for call in await calls(api)] == [(400, "bad-request")]


async def test_request_ids_are_honoured_made_and_never_trusted(api: Any) -> None:
    assert (await api.http.get("/livez", headers={"x-request-id": "abc-1"})).headers["x-request-id"] == "abc-1"
    assert len((await api.http.get("/livez")).headers["x-request-id"]) == 36
    assert len((await api.http.get("/livez", headers={"x-request-id": "a b" * 50})).headers["x-request-id"]) == 36


async def test_other_methods_and_other_hosts(api: Any, expect_problem: Expect) -> None:
    answer = await api.http.patch("/clusters/c", json={})
    expect_problem(answer, 405, "method-not-allowed")
    assert answer.headers["allow"]
    expect_problem(await api.http.get("/clusters", headers={"host": "evil.example:8080"}), 421, "wrong-host")
    assert (await api.http.get("/clusters", headers={"host": "localhost:8080"})).status_code == 200


async def test_a_page_in_a_browser_cannot_ask_without_saying_json(api: Any, expect_problem: Expect) -> None:
    """A cross-site form can send text/plain or nothing, never application/json without asking first."""
    migration_id = await api.started()
    for body in (b"", b'{"reason": "r"}'):
        answer = await api.http.post(f"/migrations/{migration_id}/hold", content=body, headers={"content-type": "text/plain"})
        expect_problem(answer, 422, "invalid-request")


async def test_a_mistake_of_ours_is_a_problem_that_tells_nothing(
    api: Any, expect_problem: Expect, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail() -> None:
        raise LedgerMisuse("hunter2")

    monkeypatch.setattr(api.wiring.ledger, "clusters", fail)
    answer = await api.http.get("/clusters")
    expect_problem(answer, 500, "internal-error")
    assert "hunter2" not in answer.text


@pytest.mark.parametrize("ledger_timeouts", [LEDGER_TIMEOUTS], ids=["as in production"])
async def test_a_busy_ledger_costs_two_seconds_and_its_audit_is_written_later(
    api: Any, make_spec: Callable[..., ClusterSpec], expect_problem: Expect, tmp_path: Path
) -> None:
    spec = make_spec().model_dump(mode="json")
    lock = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    answer = await api.http.put(f"/clusters/{spec['name']}", json=spec)
    print(f"answered after {time.monotonic() - began:.2f} s")
    assert time.monotonic() - began < BUSY_MACHINE
    expect_problem(answer, 503, "ledger-unavailable")
    lock.execute("ROLLBACK")
    lock.close()
    assert await calls(api) == []
    await api.wiring.caretaker.round()
    (refused,) = await calls(api)
    assert (refused["kind"], refused["problem"], refused["cluster"]) == ("call-refused", "ledger-unavailable", spec["name"])


async def test_an_absent_database_is_unavailable_never_an_error_of_ours(
    settings: ApiSettings, serve: Any, expect_problem: Expect
) -> None:
    absent = settings.model_copy(update={"ledger_url": "postgresql://127.0.0.1:1/ledger"})
    async with serve(create_app(absent, NO_TEMPORAL)) as api:
        assert (await api.http.get("/livez")).json() == {"status": "alive"}
        expect_problem(await api.http.get("/clusters"), 503, "ledger-unavailable")
        expect_problem(await api.post_migration("orders"), 503, "ledger-unavailable")
        problem = expect_problem(await api.http.get("/readyz"), 503, "not-ready")
        assert problem["missing"] == ["ledger", "temporal"]


async def test_a_database_that_comes_later_is_upgraded_first(
    api: Any, settings: ApiSettings, expect_problem: Expect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api.wiring.schema, "is_current", False)
    expect_problem(await api.http.get("/clusters"), 503, "ledger-unavailable")
    attempts = []

    async def upgrade_at_the_second_attempt(url: str) -> None:
        attempts.append(url)
        if len(attempts) < 2:
            raise LedgerUnavailable("no answer")

    monkeypatch.setattr(caretaker, "upgrade", upgrade_at_the_second_attempt)
    schema = caretaker.Schema(settings.ledger_url, pause=timedelta(0))
    await schema.upgrade()
    assert (len(attempts), schema.is_current) == (2, True)


async def test_readiness_and_version(api: Any, api_without_temporal: Any, expect_problem: Expect) -> None:
    ready = await api.http.get("/readyz")
    assert (ready.status_code, ready.json()) == (200, {"status": "ready"})
    problem = expect_problem(await api_without_temporal.http.get("/readyz"), 503, "not-ready")
    assert problem["missing"] == ["temporal"]
    assert (await api.http.get("/version")).json()["name"] == "keeperless"


class Refusing:
    """A ledger that takes nothing until it is told to."""

    def __init__(self) -> None:
        self.is_there = False
        self.taken: list[str] = []

    async def record_event(self, draft: EventDraft) -> None:
        if not self.is_there:
            raise LedgerUnavailable("no answer")
        self.taken.append(draft.key)


def a_call(name: str) -> Call:
    return Call(name, name, "127.0.0.1", "POST", "/migrations", datetime.now(UTC))


async def test_the_audit_keeps_what_the_ledger_did_not_take() -> None:
    ledger: Any = Refusing()
    audit = Audit(ledger)
    for name in ("a", "b"):
        await audit.record(a_call(name))
    ledger.is_there = True
    await audit.record(a_call("c"))
    assert ledger.taken == ["call/a", "call/b", "call/c"]
    await audit.write_kept()
    assert len(ledger.taken) == 3
