"""Workers that ask for tasks, are well, and whose answers do not come to Temporal: neither is to be started, nor restarted."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.diagnosis import pending
from api.diagnosis.pending import RunSeen
from api.diagnosis.pollers import Poller
from api.diagnosis.temporal_proxy import silent_for_all
from api.running import observing
from domain.contracts import TaskQueue
from domain.diagnosis import pending_tasks
from domain.diagnosis.pending_tasks import PendingTask
from domain.worker_health import WorkerHealth

PROGRAMS = {TaskQueue.WATCH: "keeperless-activities", TaskQueue.MIGRATIONS: "keeperless-workflows"}


@pytest.fixture
def asked(api: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Awaitable[None]]:
    """Temporal was asked for tasks by both so many seconds ago, and they have beaten."""
    monkeypatch.setattr(observing, "SOON", timedelta(seconds=1))
    monkeypatch.setattr(pending, "QUESTION_LIMIT", timedelta(seconds=2))

    async def ask(ago: float = 2, beat: float = 2, age: float = 60) -> None:
        async def pollers_of(_: object, queue: TaskQueue) -> tuple[Poller, ...]:
            host = PROGRAMS.get(queue)
            return (Poller(f"7@{host}", datetime.now(UTC) - timedelta(seconds=ago)),) if host is not None else ()

        monkeypatch.setattr("api.diagnosis.missing_workers.pollers_of", pollers_of)
        now = datetime.now(UTC)
        for name in PROGRAMS.values():
            times = {"started_at": now - timedelta(seconds=age), "beat_at": now - timedelta(seconds=beat)}
            told = {"id": name, "program": name, "host": name, "pid": 7, "release": "1", "settings_fingerprint": ""}
            await api.wiring.ledger.beat(WorkerHealth(**told, **times))

    return ask


async def told(api: Any) -> list[dict[str, Any]]:
    migration = await api.post_migration((await api.registered()).name)
    answer = await api.http.get(f"/migrations/{migration.json()['id']}/blockers")
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def test_answers_that_do_not_come_where_polls_do_are_one_cause(api: Any, asked: Callable[..., Awaitable[None]]) -> None:
    await asked()
    (entry,) = [item for item in await told(api) if item["code"] == "no-worker"]
    assert entry["object"] == "the connection between the workers and Temporal"
    for name in PROGRAMS.values():
        assert f"{name} (7@{name} (heard" in entry["observed"]
    assert entry["fix"].startswith("Do not restart the workers")
    assert "http2_max_concurrent_streams" in entry["fix"]


@pytest.mark.parametrize("how", [{"ago": 40}, {"beat": 40}, {"age": 3}], ids=["polled long ago", "silent", "new"])
async def test_workers_that_may_be_at_fault_themselves_are_told_as_before(
    api: Any, asked: Callable[..., Awaitable[None]], how: dict[str, float]
) -> None:
    await asked(**how)
    objects = {item["object"] for item in await told(api) if item["code"] == "no-worker"}
    assert objects == {"task queue watch", "task queue migrations"}


def test_what_only_shows_that_nothing_comes_is_not_told_again() -> None:
    now = datetime.now(UTC)
    began = now - timedelta(minutes=1)
    task = PendingTask(what="roll_node", queue=TaskQueue.CLUSTER, begun_at=began, due_at=began, taken_at=began, worker="7@vm")
    silent = replace(task, heard_at=now - pending_tasks.SILENT * 2)
    well = replace(task, heard_at=now)
    paused = replace(silent, taken_at=None, heard_at=None, paused="by somebody")
    other = replace(silent, queue=TaskQueue.CHECKS)
    run = RunSeen(is_running=True, tasks=(silent, well, paused, other))
    assert silent_for_all(run, now).tasks == (well, paused, other)
