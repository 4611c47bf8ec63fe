"""Pages beside JSON: which client gets which, what a page may load, and how a browser sees a problem."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api.answers.problems import Problem, ProblemKind, answer_of
from api.pages.web_pages import ASSETS, PAGE_HEADERS, ProblemPages
from domain.decisions import Intent
from domain.records import (
    Hold,
    HoldEffect,
    InHand,
    Measured,
    MigrationState,
    NodeStatus,
    OpenGate,
    PhaseStep,
    Progress,
    Sample,
    Waiting,
)
from domain.zk_to_kraft.steps import GateName, NodeStage, StepAction

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
NOW = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
WAY = (
    PhaseStep(name="A", title="Before"),
    PhaseStep(name="B", title="Now"),
    PhaseStep(name="C", title="End", is_irreversible=True),
)
AT_THE_GATE = Progress(
    state=MigrationState.WAITING,
    phase="B",
    waiting=Waiting(reason="approval", means="A person has to approve.", since=NOW, objects=("finalize",), for_people=True),
    gate=OpenGate(
        name=GateName.FINALIZE, evidence_hash="e" * 64, since=NOW, evidence={"quorum": "<b>", "nodes": {"n-1": None}}
    ),
    nodes=(NodeStatus(name="n-1", role="broker", mode="kraft", stage="kraft", is_ready=True, restarts=2, last_restart=NOW),),
    steps_done=7,
    steps_total=8,
    phases=WAY,
    sample=Sample(at=NOW, numbers=(Measured(name="lag", value=3),)),
)


async def a_migration(api: Any, progress: Progress) -> str:
    migration_id = str(await api.started())
    await api.wiring.ledger.record(migration_id, [], progress)
    return migration_id


async def page_of(api: Any, path: str) -> str:
    answer = await api.http.get(path, headers=BROWSER)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    for name, value in PAGE_HEADERS.items():
        assert answer.headers[name] == value
    return str(answer.text)


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "application/json, text/html;q=0.5"])
async def test_everybody_but_a_browser_gets_json(api: Any, accept: str | None) -> None:
    migration_id = await a_migration(api, AT_THE_GATE)
    headers = {} if accept is None else {"Accept": accept}
    for path in ("/migrations", f"/migrations/{migration_id}", f"/migrations/{migration_id}/samples"):
        answer = await api.http.get(path, headers=headers)
        assert answer.headers["content-type"] == "application/json"
    told = (await api.http.get(f"/migrations/{migration_id}", headers=headers)).json()
    assert told["waiting"]["for"] == "people"


async def test_a_page_has_the_gate_and_what_can_be_asked(api: Any) -> None:
    migration_id = await a_migration(api, AT_THE_GATE)
    page = await page_of(api, f"/migrations/{migration_id}")
    for text in (
        "e" * 64,
        "7 of 8 steps done",
        "2026-03-01 03:00:00 UTC",
        "&lt;b&gt;",
        "No rollback from here on",
        "lag</strong>: 3",
    ):
        assert text in page
    for form in ("gate-finalize", "hold"):
        assert f'id="{form}"' in page
    assert "rollback-preview" in page
    for absent in ('id="resume"', "<style", "style=", "onclick", "<b>"):
        assert absent not in page
    assert migration_id in await page_of(api, "/migrations")


@pytest.mark.parametrize(
    ("change", "wanted", "absent"),
    [
        ({"state": MigrationState.HELD, "gate": None}, {"resume"}, {"hold", "gate-finalize"}),
        ({"hold": Hold(by="ada", reason="", since=NOW, takes_effect=HoldEffect.AFTER_STEP)}, {"resume"}, {"hold"}),
        ({"state": MigrationState.SUCCEEDED, "gate": None, "waiting": None}, set(), {"hold", "resume", "gate-finalize"}),
        ({"state": MigrationState.REVERTING, "intent": Intent.REVERT, "gate": None}, {"hold"}, {"resume"}),
    ],
)
async def test_what_makes_no_sense_is_absent(api: Any, change: dict[str, Any], wanted: set[str], absent: set[str]) -> None:
    page = await page_of(api, f"/migrations/{await a_migration(api, AT_THE_GATE.model_copy(update=change))}")
    assert {form for form in wanted | absent if f'id="{form}"' in page} == wanted
    is_forward = change.get("intent") is not Intent.REVERT and change.get("state") is not MigrationState.SUCCEEDED
    assert ('data-into="rollback"' in page) == is_forward


async def test_a_step_in_hand_is_told_in_words(api: Any) -> None:
    does = "Restart n-1, n-2 into stage kraft"
    step = InHand(action=StepAction.ROLL_NODE, nodes=("n-1", "n-2"), stage=NodeStage.KRAFT, does=does, since=NOW)
    working = AT_THE_GATE.model_copy(update={"in_hand": step, "gate": None, "waiting": None, "state": MigrationState.RUNNING})
    assert does in await page_of(api, f"/migrations/{await a_migration(api, working)}")


async def test_the_way_comes_from_the_record(api: Any) -> None:
    migration_id = await a_migration(api, AT_THE_GATE)
    told = (await api.http.get(f"/migrations/{migration_id}")).json()["phases"]
    assert [(phase["name"], phase["status"], phase["is_irreversible"]) for phase in told] == [
        ("A", "done", False),
        ("B", "current", False),
        ("C", "ahead", True),
    ]
    await api.wiring.ledger.record(migration_id, [], AT_THE_GATE.model_copy(update={"phase": "ELSEWHERE"}))
    told = (await api.http.get(f"/migrations/{migration_id}")).json()["phases"]
    assert {phase["status"] for phase in told} == {"ahead"}


async def test_a_migration_that_was_only_started_has_a_page(api: Any) -> None:
    page = await page_of(api, f"/migrations/{await api.started()}")
    assert "before the first observation" in page
    assert "Known after the first observation." in page


async def test_samples_are_listed_oldest_first(api: Any) -> None:
    migration_id = await a_migration(api, AT_THE_GATE)
    later = Sample(at=NOW + timedelta(minutes=1), numbers=(Measured(name="lag", value=None),))
    await api.wiring.ledger.add_sample(migration_id, later)
    items = (await api.http.get(f"/migrations/{migration_id}/samples")).json()["items"]
    assert [item["numbers"][0]["value"] for item in items] == [3, None]


async def test_a_page_loads_only_what_the_api_serves(api: Any) -> None:
    page = await page_of(api, "/migrations")
    for asset in ASSETS.iterdir():
        [link] = [part for part in page.split('"') if part.startswith(f"/web/{asset.name}?")]
        answer = await api.http.get(link)
        assert answer.status_code == 200
        assert answer.content == asset.read_bytes()
    assert (await api.http.get("/web/../base.html")).status_code == 404
    assert "http:" not in page
    assert "https:" not in page


async def test_a_problem_is_a_page_for_a_browser_only(api: Any) -> None:
    path = "/migrations/01a00000-0000-7000-8000-000000000000"
    answer = await api.http.get(path, headers=BROWSER)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is no such migration" in answer.text
    assert answer.headers["x-request-id"]
    assert (await api.http.get(path)).headers["content-type"] == "application/problem+json"
    posted = await api.http.post(f"{path}/hold", json={"reason": "x"}, headers=BROWSER)
    assert posted.headers["content-type"] == "application/problem+json"


async def test_a_browser_that_is_not_signed_in_is_led_to_the_key() -> None:
    async def refuse(_: Request) -> Response:
        answer = answer_of(Problem(ProblemKind.NOT_FOUND, "Send a key."))
        answer.status_code = 401
        return answer

    app = ProblemPages(Starlette(routes=[Route("/{path:path}", refuse)]))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as http:
        led = await http.get("/migrations?state=held", headers=BROWSER)
        assert (led.status_code, led.headers["location"]) == (303, "/session?next=%2Fmigrations%3Fstate%3Dheld")
        assert (await http.get("/session", headers=BROWSER)).status_code == 401
        assert (await http.get("/migrations")).headers["content-type"] == "application/problem+json"


async def test_the_page_to_sign_in_is_there(api: Any) -> None:
    assert "API key or token" in await page_of(api, "/session?next=/migrations")
    assert (await api.http.get("/session")).json()["is_authenticated"] is False
