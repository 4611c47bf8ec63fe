"""The OpenAPI document and the pages about problems are what the code says."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api import openapi
from api.answers.problems import ProblemKind

PAGES = Path(__file__).parents[2] / "docs" / "problems"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi.document()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def test_the_committed_document_is_the_current_one() -> None:
    assert openapi.DOCUMENT.read_text(encoding="utf-8") == openapi.text(), "run `make docs`, and look at the diff"


def test_it_has_this_issues_calls(document: dict[str, Any]) -> None:
    assert {name for name, _ in operations(document)} == {
        "PUT /clusters/{name}",
        "GET /clusters",
        "GET /clusters/{name}",
        "GET /clusters/{name}/observation",
        "POST /clusters/{name}/checks",
        "GET /clusters/{name}/checks",
        "GET /clusters/{name}/checks/{report_id}",
        "GET /clusters/{name}/checks/{report_id}/findings",
        "POST /plans",
        "GET /plans",
        "GET /plans/{plan_id}",
        "POST /migrations",
        "GET /migrations",
        "GET /migrations/{migration_id}",
        "GET /migrations/{migration_id}/blockers",
        "GET /migrations/{migration_id}/events",
        "GET /migrations/{migration_id}/commands",
        "GET /migrations/{migration_id}/rollback-preview",
        "GET /migrations/{migration_id}/runbook",
        "GET /migrations/{migration_id}/reports",
        "GET /migrations/{migration_id}/reports/{report_id}",
        "GET /migrations/{migration_id}/reports/{report_id}/findings",
        "GET /migrations/{migration_id}/samples",
        "POST /migrations/{migration_id}/rollback",
        "POST /migrations/{migration_id}/approvals",
        "POST /migrations/{migration_id}/hold",
        "POST /migrations/{migration_id}/resume",
        "POST /keys",
        "GET /keys",
        "DELETE /keys/{key_id}",
        "POST /session",
        "GET /session",
        "DELETE /session",
        "GET /metrics",
        "GET /livez",
        "GET /readyz",
        "GET /version",
    }


async def test_the_api_in_a_browser_leads_to_the_migrations(api: Any) -> None:
    answer = await api.http.get("/")
    assert (answer.status_code, answer.headers["location"]) == (307, "/migrations")
    calls = (await api.http.get("/openapi.json")).json()["paths"]
    decide = calls["/migrations/{migration_id}/approvals"]["post"]
    assert decide["summary"] == "Approve or reject at an open gate, on the evidence with this hash"
    assert "/" not in calls


@pytest.mark.parametrize("page", ["/docs", "/redoc"])
async def test_the_pages_about_it_need_nothing_from_elsewhere(api: Any, page: str) -> None:
    """Beside a Kafka cluster there is seldom a way to a public host: such a page would stay blank."""
    shown = await api.http.get(page)
    parts = re.findall(r"""(?:src|href|url)[=:]\s*["']([^"']+)""", shown.text)
    assert any(part.endswith(".js") for part in parts)
    for part in parts:
        assert part.startswith("/"), part
        assert (await api.http.get(part)).status_code == 200, part


def test_every_operation_tells_its_problems_and_no_others(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        for status in ("4XX", "5XX"):
            assert set(operation["responses"][status]["content"]) == {"application/problem+json"}, name
        assert "422" not in operation["responses"], name
        assert operation["description"], name


def test_what_goes_out_has_all_its_fields_and_no_defaults(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    reached = {"ProblemBody"}
    waiting = [
        part
        for _, operation in operations(document)
        for status, response in operation["responses"].items()
        if status.startswith("2")
        for part in response.get("content", {}).values()
    ]
    checked = 0
    while waiting:
        text = json.dumps(waiting.pop())
        names = {name for name in schemas if f'"#/components/schemas/{name}"' in text} - reached
        reached |= names
        for name in names:
            waiting.append(schemas[name])
            checked += 1
            properties = schemas[name].get("properties", {})
            assert set(schemas[name].get("required", [])) == set(properties), name
            assert not [field for field in properties.values() if "default" in field], name
    print(f"{checked} outgoing schemas")
    assert checked > 20
    assert schemas["ZkToKraftPolicy"].get("required") is None, "what comes in keeps its defaults"


def test_every_problem_has_a_page_and_every_page_a_problem() -> None:
    pages = {page.stem: page.read_text(encoding="utf-8") for page in PAGES.glob("*.md") if page.stem != "README"}
    assert set(pages) == {kind.code for kind in ProblemKind}
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    for kind in ProblemKind:
        assert pages[kind.code].startswith(f"# {kind.title}\n\n`{kind.code}`, status {kind.status}\n"), kind
        assert f"[{kind.code}]({kind.code}.md) | {kind.status} | {kind.title} |" in index, kind
