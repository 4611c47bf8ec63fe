"""Of a queue that nobody takes tasks from: who was there last."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from api import absences
from api.pollers import Poller
from domain.contracts import TaskQueue


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
