"""Of a queue that nobody takes tasks from: who was there last."""

import asyncio
import os
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from api import absences
from api.pollers import OF_THE_MACHINE, Poller, ended_here
from domain.contracts import TaskQueue


def test_processes_of_this_machine_that_have_asked_lately_and_ended_since_are_counted() -> None:
    now, host = datetime.now(UTC), socket.gethostname()
    with subprocess.Popen((sys.executable, "-c", "")) as gone:
        gone.wait()
    heard = [
        Poller(f"{gone.pid}@{host}", now - timedelta(seconds=20)),
        Poller(f"{os.getpid()}@{host}", now),
        Poller(f"{gone.pid}@another", now),
        Poller("4194303@" + host, now - timedelta(minutes=2)),
    ]
    assert ended_here([*heard, heard[0]], now) == ([gone.pid] if is_of_the_machine() else [])


def is_of_the_machine() -> bool:
    """In a PID namespace of its own nobody knows whose number that is."""
    return str(Path("/proc/self/ns/pid").readlink()) == OF_THE_MACHINE


@pytest.mark.parametrize(("heard_ago", "is_to_be_started"), [(0, False), (30, False), (120, True)])
async def test_who_was_heard_of_while_the_look_lasted_is_not_to_be_started(
    heard_ago: int, is_to_be_started: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine a look takes ten seconds, and the moment at which it began lies before what is heard meanwhile."""

    async def heard(*_: object) -> tuple[Poller, ...]:
        return (Poller("4711@another", datetime.now(UTC) - timedelta(seconds=heard_ago)),)

    async def nothing(*_: object) -> None:
        return None

    async def no_signs(*_: object) -> tuple[()]:
        return ()

    for name, stands_in in {"heard_of": heard, "refusal": nothing, "signs_of": no_signs}.items():
        monkeypatch.setattr(absences, name, stands_in)
    wiring = cast("Any", SimpleNamespace(temporal=None))
    asked_at, until = datetime.now(UTC) - timedelta(seconds=10), asyncio.get_running_loop().time() + 60
    entry = await absences.missing(wiring, TaskQueue.WATCH, "somebody took it", asked_at, until, was_taken=True)
    assert ("Start keeperless-activities" in entry.fix) is is_to_be_started
    assert f"{heard_ago} s ago" in entry.observed
