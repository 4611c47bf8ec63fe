"""The calls of docs/calls.md are calls that there are, and what they send would be taken."""

import json
import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from api.requests import ApprovalRequest, HoldRequest, MigrationRequest, PlanOrder, RollbackRequest
from domain.cluster import ClusterSpec

REPOSITORY = Path(__file__).parent.parent.parent
PAGE = (REPOSITORY / "docs" / "calls.md").read_text(encoding="utf-8")
PATHS = json.loads((REPOSITORY / "api" / "openapi.json").read_text(encoding="utf-8"))["paths"]
CALL = re.compile(r"^curl \S+ (?:-X (?P<method>\w+) )?\$API(?P<path>\S+)(?P<rest>(?:(?!^curl|^```)[^\0])*)", re.MULTILINE)
"""With the lines of its body that follow."""
CALLS = [(found["method"], found["path"], found["rest"]) for found in CALL.finditer(PAGE)]
BODIES: dict[str, type[BaseModel]] = {
    "plans": PlanOrder,
    "migrations": MigrationRequest,
    "hold": HoldRequest,
    "resume": HoldRequest,
    "approvals": ApprovalRequest,
    "rollback": RollbackRequest,
}


def test_the_page_has_calls() -> None:
    assert len(CALLS) == PAGE.count("\ncurl ") > 10


@pytest.mark.parametrize(("method", "path", "rest"), CALLS)
def test_a_call_is_one_that_there_is(method: str | None, path: str, rest: str) -> None:
    asked = method or ("POST" if " -d " in rest else "GET")
    fitting = [known for known in PATHS if re.fullmatch(re.sub(r"\\\{\w+\\\}", r"[^/]+", re.escape(known)), path)]
    assert asked.lower() in {method for known in fitting for method in PATHS[known]}
    if body := re.search(r" -d '(\{.*?\})'", rest, re.DOTALL):
        BODIES[path.rpartition("/")[2]].model_validate_json(body[1])


def test_the_cluster_is_registered_under_its_own_name() -> None:
    (path, file) = re.findall(r"-X PUT \$API/clusters/(\S+) .*@(\S+)", PAGE)[0]
    assert ClusterSpec.model_validate_json((REPOSITORY / file).read_text(encoding="utf-8")).name == path
