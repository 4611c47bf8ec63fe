"""Real worker processes: what their health check says, and how the one that is gone is named."""

import asyncio
import socket
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from api.app import create_app
from api.running import observing
from api.running.temporal import Temporal
from api.settings import ApiSettings
from playground.ports import PortLease
from playground.services import Program, Services
from playground.temporal import TemporalPorts, TemporalServer

WORKERS = (Program.WORKFLOWS, Program.ACTIVITIES, Program.CHECKS)


@pytest.fixture
def server(tmp_path: Path) -> Any:
    lease = PortLease(4)
    with closing(lease), TemporalServer(tmp_path / "temporal", TemporalPorts.leased(lease)) as server:
        yield server


@pytest.fixture
def workers(server: TemporalServer, settings: ApiSettings, tmp_path: Path) -> Any:
    (directory := tmp_path / "workers").mkdir()
    without_spark = {"KEEPERLESS_SPARK": "off"}
    services = Services(directory, server.address, 0, ledger_url=settings.ledger_url, extra_environment=without_spark)
    try:
        services.start(*WORKERS)
        yield services
    finally:
        services.stop(WORKERS, grace_seconds=5)


@pytest.fixture
async def api(server: TemporalServer, settings: ApiSettings, serve: Any) -> AsyncIterator[Any]:
    async with serve(create_app(settings, Temporal({"target_host": server.address}))) as api:
        yield api


async def health_of(workers: Services, program: Program) -> tuple[int, str]:
    """What the health check of a container would be told."""
    launch = workers.launch(program)
    asked = [*launch.command[:3], "--health"]
    done = await asyncio.to_thread(
        subprocess.run, asked, env=launch.environment, capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, done.stdout


async def until(condition: Callable[[], Any], seconds: float = 90) -> Any:
    """What the condition gives as soon as it is not empty."""
    async with asyncio.timeout(seconds):
        while True:
            if found := await condition():
                return found
            await asyncio.sleep(0.3)


async def rows(api: Any) -> dict[str, Any]:
    return {row.program: row for row in await api.wiring.ledger.workers()}


async def test_a_killed_worker_is_named_by_its_last_beat(api: Any, workers: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observing, "SOON", observing.SOON / 3)

    async def have_all_beaten() -> dict[str, Any]:
        found = await rows(api)
        return found if len(found) == len(WORKERS) else {}

    told = await until(have_all_beaten)
    assert {row.identity for row in told.values()} == {f"{pid}@{socket.gethostname()}" for pid in workers.pids()}
    for program in WORKERS:
        assert await health_of(workers, program) == (0, f"keeperless-{program.name.lower()} beats, and polls for tasks.\n")
    migration_id = await api.started()
    killed = told["keeperless-activities"]
    workers.kill(Program.ACTIVITIES)

    async def is_missed() -> str:
        items = (await api.http.get(f"/migrations/{migration_id}/blockers")).json()["items"]
        found = [item["observed"] for item in items if item["object"] == "task queue watch"]
        return next((words for words in found if "did not report a clean stop" in words), "")

    observed = await until(is_missed)
    assert f"keeperless-activities (process {killed.pid} on {killed.host}, release {killed.release}) last beat at" in observed
    code, words = await health_of(workers, Program.ACTIVITIES)
    assert (code, words.startswith("The last heartbeat is ")) == (1, True)
    assert (await health_of(workers, Program.WORKFLOWS))[0] == 0


async def test_a_worker_that_is_told_to_stop_says_so_in_its_row(api: Any, workers: Services) -> None:
    async def have_all_beaten() -> bool:
        return len(await rows(api)) == len(WORKERS)

    await until(have_all_beaten)
    await asyncio.to_thread(workers.stop, WORKERS)
    assert all(row.stopped_at is not None for row in (await rows(api)).values())
    code, words = await health_of(workers, Program.CHECKS)
    assert (code, words.startswith("There is no heartbeat")) == (1, True)


async def test_a_worker_that_does_not_reach_temporal_is_unhealthy_with_its_status(
    api: Any, workers: Services, server: TemporalServer
) -> None:
    async def is_well() -> bool:
        return (await health_of(workers, Program.WORKFLOWS))[0] == 0

    await until(is_well)
    await asyncio.to_thread(server.stop)

    async def is_cut_off() -> bool:
        code, words = await health_of(workers, Program.WORKFLOWS)
        return code == 1 and words.startswith("Polls for tasks fail (")

    await until(is_cut_off)

    async def has_told() -> str:
        return (await rows(api))["keeperless-workflows"].last_error or ""

    assert "retried" in await until(has_told)
    await asyncio.to_thread(server.start)
    await until(is_well)
