"""A worker that is started while the ledger's database is away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from activities import queues
from activities.queues import opened
from ledger.errors import LedgerUnavailable

LEDGER: Any = object()


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of opening it: the third one succeeds."""
    made: list[str] = []

    @asynccontextmanager
    async def open_ledger(url: str) -> AsyncIterator[Any]:
        made.append(url)
        if len(made) < 3:
            raise LedgerUnavailable("sorry, too many clients already")
        yield LEDGER

    monkeypatch.setattr(queues, "open_ledger", open_ledger)
    monkeypatch.setattr(queues, "PAUSE", timedelta(milliseconds=1))
    return made


async def test_it_waits_until_the_database_answers(attempts: list[str]) -> None:
    async with AsyncExitStack() as stack:
        assert await opened("there", stack, asyncio.Event()) is LEDGER
    assert attempts == ["there"] * 3


async def test_it_does_not_wait_once_it_is_told_to_stop(attempts: list[str]) -> None:
    stop = asyncio.Event()
    stop.set()
    async with AsyncExitStack() as stack:
        with pytest.raises(LedgerUnavailable):
            await opened("there", stack, stop)
    assert attempts == ["there"]


class LeftError(Exception):
    """What ends the process, here."""


async def test_it_leaves_while_it_upgrades_the_ledger_once_it_is_told_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The upgrade waits in a thread, for minutes: the thread would be waited for at the end, however it is cut off."""

    @asynccontextmanager
    async def open_ledger(_: str) -> AsyncIterator[Any]:
        await asyncio.sleep(60)
        yield LEDGER

    def leave() -> None:
        raise LeftError

    monkeypatch.setattr(queues, "open_ledger", open_ledger)
    monkeypatch.setattr(queues, "exit_cleanly", leave)
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(0.05, stop.set)
    async with AsyncExitStack() as stack:
        with pytest.raises(LeftError):
            await asyncio.wait_for(opened("there", stack, stop), 5)
