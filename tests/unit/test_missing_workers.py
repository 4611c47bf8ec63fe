"""Of a queue that nobody takes tasks from: who was there last."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from api.diagnosis import missing_workers as absences
from api.diagnosis.pollers import Poller
from domain.contracts import TaskQueue
from domain.worker_health import WorkerHealth


@pytest.mark.parametrize(
    ("heard_ago", "has_ended", "is_to_be_started"), [(0, False, False), (30, False, False), (120, False, True), (0, True, True)]
)
async def test_a_worker_that_was_heard_of_and_has_not_ended_is_not_to_be_started(
    heard_ago: int, has_ended: bool, is_to_be_started: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine a look takes ten seconds, and the moment at which it began lies before what is heard meanwhile."""

    async def heard(*_: object) -> tuple[Poller, ...]:
        return (Poller("4711@another", datetime.now(UTC) - timedelta(seconds=heard_ago)),)

    async def nothing(*_: object) -> None:
        return None

    async def workers(*_: object) -> list[WorkerHealth]:
        now = datetime.now(UTC)
        told = {"release": "1", "settings_fingerprint": "", "started_at": now, "beat_at": now}
        ended = now if has_ended else None
        return [WorkerHealth(id="1", program="keeperless-activities", host="another", pid=4711, stopped_at=ended, **told)]

    for name, stands_in in {"heard_of": heard, "refusal": nothing, "workers_of": workers}.items():
        monkeypatch.setattr(absences, name, stands_in)
    wiring = cast("Any", SimpleNamespace(temporal=None))
    asked_at, until = datetime.now(UTC) - timedelta(seconds=10), asyncio.get_running_loop().time() + 60
    entry = await absences.missing(wiring, TaskQueue.WATCH, "somebody took it", asked_at, until, was_taken=True)
    assert ("Start keeperless-activities" in entry.fix) is is_to_be_started
    assert f"{heard_ago} s ago" in entry.observed
