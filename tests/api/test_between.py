"""Workers that ask for tasks, are well, and whose answers do not come to Temporal: neither is to be started, nor restarted."""

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from api import between, observing, own_state, pending
from api.between import silent_for_all
from api.pending import RunSeen
from api.pollers import Poller
from domain import pending_tasks
from domain.contracts import TaskQueue
from domain.pending_tasks import PendingTask

PROGRAMS = ("keeperless-activities", "keeperless-workflows")
BESIDE = "Network error while sending worker heartbeat"
SCRIPT = (
    "import sys, time, datetime; print(datetime.datetime.now(datetime.UTC).strftime('%Y-%m-%dT%H:%M:%S.%fZ'), "
    f"' WARN temporalio_sdk_core::worker::heartbeat: {BESIDE} error=Timeout', file=sys.stderr, flush=True); "
    "print('begun', flush=True); time.sleep(60)"
)


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Processes with their names, which do nothing, as workers do of which nothing is heard."""
    with ExitStack() as stack:
        found = {}
        for name in PROGRAMS:
            (script := tmp_path / name).write_text(SCRIPT)
            log = stack.enter_context((tmp_path / f"{name}.log").open("w"))
            process = stack.enter_context(subprocess.Popen((sys.executable, "-I", script), stdout=subprocess.PIPE, stderr=log))
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
            found[name] = process
        yield found


@pytest.fixture
def asked(workers: dict[str, subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Temporal was asked for tasks by them, so many seconds ago."""
    monkeypatch.setattr(observing, "SOON", timedelta(seconds=1))
    monkeypatch.setattr(pending, "QUESTION_LIMIT", timedelta(seconds=2))
    monkeypatch.setattr(own_state, "LATE", 3600.0)
    monkeypatch.setattr(between, "FRESH", timedelta(0))

    def ask(ago: float) -> None:
        async def pollers_of(_: object, queue: TaskQueue) -> tuple[Poller, ...]:
            name = PROGRAMS[queue is TaskQueue.MIGRATIONS]
            return (Poller(f"{workers[name].pid}@{socket.gethostname()}", datetime.now(UTC) - timedelta(seconds=ago)),)

        monkeypatch.setattr("api.absences.pollers_of", pollers_of)

    return ask


async def told(api: Any) -> list[dict[str, Any]]:
    migration = await api.post_migration((await api.registered()).name)
    answer = await api.http.get(f"/migrations/{migration.json()['id']}/blockers")
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def test_answers_that_do_not_come_where_polls_do_are_one_cause(
    api: Any, workers: dict[str, subprocess.Popen[bytes]], asked: Callable[[float], None]
) -> None:
    asked(2)
    (entry,) = [item for item in await told(api) if item["code"] == "no-worker"]
    assert entry["object"] == "what is between the workers and Temporal"
    for name, process in workers.items():
        assert f"{name} ({process.pid}@" in entry["observed"]
    assert f"The last complaint in its log: {BESIDE}" in entry["observed"]
    assert entry["fix"].startswith("Do not restart the workers")
    assert "http2_max_concurrent_streams" in entry["fix"]


@pytest.mark.parametrize("how", ["stopped", "heard long ago", "new"])
async def test_workers_that_may_be_at_fault_themselves_are_told_as_before(
    api: Any,
    workers: dict[str, subprocess.Popen[bytes]],
    asked: Callable[[float], None],
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    asked(40 if how == "heard long ago" else 2)
    if how == "stopped":
        workers["keeperless-workflows"].send_signal(signal.SIGSTOP)
    if how == "new":
        monkeypatch.setattr(between, "FRESH", timedelta(minutes=5))
    objects = {item["object"] for item in await told(api) if item["code"] == "no-worker"}
    assert objects == {"task queue watch", "task queue migrations"}


def test_what_only_shows_that_nothing_comes_is_not_told_again() -> None:
    now = datetime.now(UTC)
    began = now - timedelta(minutes=1)
    task = PendingTask(what="roll_node", queue=TaskQueue.CLUSTER, begun_at=began, due_at=began, taken_at=began, worker="7@vm")
    silent = replace(task, heard_at=now - pending_tasks.SILENT * 2)
    lost = replace(task, heard_at=now, is_unheard=True)
    well = replace(task, heard_at=now)
    paused = replace(silent, taken_at=None, heard_at=None, paused="by somebody")
    other = replace(silent, queue=TaskQueue.CHECKS)
    run = RunSeen(is_running=True, tasks=(silent, lost, well, paused, other))
    assert silent_for_all(run, now).tasks == (well, paused, other)
