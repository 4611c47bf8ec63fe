"""Schemathesis against the live API, with authentication: no 500, and no answer that the OpenAPI document does not have."""

import asyncio
import sysconfig
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
import uvicorn

from api.app import create_app
from api.settings import ApiSettings
from api.temporal import Temporal

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


@pytest.fixture
async def live(settings: ApiSettings, temporal_address: str, tmp_path: Path) -> AsyncIterator[tuple[str, str]]:
    """A served API with authentication: its address, and its first admin's key."""
    with_auth = settings.model_copy(update={"auth": "on", "first_key_file": tmp_path / "first-key"})
    app = create_app(with_auth, Temporal({"target_host": temporal_address}, timedelta(seconds=30)))
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None))
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(30):
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}", (tmp_path / "first-key").read_text().strip()
    server.should_exit = True
    with suppress(asyncio.CancelledError):
        await serving


@pytest.mark.chaos
@pytest.mark.timeout(600)
async def test_the_live_api_answers_what_its_document_says(live: tuple[str, str], tmp_path: Path) -> None:
    url, key = live
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
