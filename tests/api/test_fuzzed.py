"""Schemathesis against the live API, with authentication: no 500, and no answer that the OpenAPI document does not have."""

import asyncio
import sysconfig
from pathlib import Path
from typing import Any

import pytest

ASK_A_WORKER = "/(observation|rollback-preview|runbook|blockers)$"
"""These wait ten seconds for a worker of ours, and none is here."""

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "ignored_auth",
)


@pytest.mark.chaos
@pytest.mark.timeout(600)
async def test_the_live_api_answers_what_its_document_says(live: Any, tmp_path: Path) -> None:
    url, key = live.url, live.key
    process = await asyncio.create_subprocess_exec(
        *(Path(sysconfig.get_path("scripts"), "st"), "run", f"{url}/openapi.json", "--header", f"Authorization: Bearer {key}"),
        *("--checks", ",".join(CHECKS), "--exclude-path-regex", ASK_A_WORKER, "--phases", "examples,coverage,fuzzing"),
        *("--max-examples", "15", "--seed", "1", "--generation-database", "none", "--request-timeout", "60"),
        *("--suppress-health-check", "all", "--warnings", "off", "--max-time", "150"),
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    print(said.decode()[-8000:])
    assert process.returncode == 0
