"""docs/calls.md can be pasted: its blocks run in a real shell, and what they send is what the API takes.

`curl` is a stand-in that notes its arguments and answers with every field that the page asks for.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from pydantic import TypeAdapter

from api.by_kind import ByKind
from api.requests import ApprovalRequest, HoldRequest, MigrationRequest, PlanOrder, RollbackRequest
from domain.cluster import ClusterSpec
from domain.shipped_kinds import SHIPPED_KINDS

REPOSITORY = Path(__file__).parent.parent.parent
PAGE = (REPOSITORY / "docs" / "calls.md").read_text(encoding="utf-8")
BLOCKS: list[str] = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PATHS = json.loads((REPOSITORY / "api" / "openapi.json").read_text(encoding="utf-8"))["paths"]
ANSWER = {
    "id": "01a1f903-3505-72c4-97b0-3c79d6c47662",
    "state": "ended",
    "gates": [{"evidence_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}],
    "preview_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
}
CURL = f"""#!{sys.executable}
import json, os, sys
with open(os.environ["CALLS"], "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
print({json.dumps(ANSWER)!r})
"""
BODIES: dict[str, Any] = {
    "plans": Annotated[PlanOrder, ByKind.of(PlanOrder, SHIPPED_KINDS)],
    "migrations": Annotated[MigrationRequest, ByKind.of(MigrationRequest, SHIPPED_KINDS)],
    "hold": HoldRequest,
    "resume": HoldRequest,
    "approvals": ApprovalRequest,
    "rollback": RollbackRequest,
    "example": ClusterSpec,
}


class Call(NamedTuple):
    method: str
    path: str
    body: str | None


def called(words: list[str]) -> Call:
    """What curl would send, of its arguments."""
    options = {"-X": "", "-d": "", "-H": ""}
    url, words = "", list(words)
    while words:
        word = words.pop(0)
        if word in options:
            options[word] = words.pop(0)
        elif not word.startswith("-"):
            url = word
    body = options["-d"] or None
    if body is not None and body.startswith("@"):
        body = (REPOSITORY / body[1:]).read_text(encoding="utf-8")
    return Call(options["-X"] or ("POST" if body else "GET"), urlsplit(url).path, body)


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[Call]:
    """All of the page, block after block in one shell, which stops at the first error and at a variable that is not set."""
    directory = tmp_path_factory.mktemp("shell")
    (curl := directory / "curl").write_text(CURL, encoding="utf-8")
    curl.chmod(0o755)
    environment = {"PATH": f"{directory}:{os.environ['PATH']}", "CALLS": str(directory / "calls")}
    script = "set -euo pipefail\n" + "\n".join(BLOCKS)
    done = subprocess.run(["bash", "-c", script], env=environment, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = (directory / "calls").read_text(encoding="utf-8").splitlines()
    return [called(json.loads(line)) for line in lines]


def test_every_call_of_the_page_is_made(calls: list[Call]) -> None:
    assert len(calls) == "".join(BLOCKS).count("curl ") > 12


def test_every_call_is_one_that_there_is(calls: list[Call]) -> None:
    for call in calls:
        known = [path for path in PATHS if re.fullmatch(re.sub(r"\\\{\w+\\\}", r"[^/]+", re.escape(path)), call.path)]
        assert call.method.lower() in {method for path in known for method in PATHS[path]}, call


def test_every_body_is_one_that_the_api_takes(calls: list[Call]) -> None:
    sent = [call for call in calls if call.body is not None]
    for call in sent:
        assert TypeAdapter(BODIES[call.path.rpartition("/")[2]]).validate_python(json.loads(call.body or "")), call
    assert {call.path.rpartition("/")[2] for call in sent} == set(BODIES)


def test_nothing_is_left_for_the_reader_to_fill_in() -> None:
    assert [block for block in BLOCKS if re.search(r"…|\.\.\.|<[a-z_-]+>", block)] == []


def test_the_cluster_is_registered_under_its_own_name(calls: list[Call]) -> None:
    (registered,) = [call for call in calls if call.method == "PUT"]
    assert ClusterSpec.model_validate_json(registered.body or "").name == registered.path.rpartition("/")[2]
