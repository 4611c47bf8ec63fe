"""How our processes end: when they are told, and where they could only pretend to work."""

import asyncio
import itertools
import os
import threading
from typing import NoReturn

import pytest

from console import leaving


class Left(BaseException):
    """In place of the process's end."""


@pytest.fixture
def codes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    seen: list[int] = []

    def leave(code: int = 0) -> NoReturn:
        seen.append(code)
        raise Left

    monkeypatch.setattr(leaving, "exit_cleanly", leave)
    monkeypatch.setattr(leaving, "SECONDS_BETWEEN_PROBES", 0.01)
    return seen


async def test_it_waits_until_it_is_told(codes: list[int]) -> None:
    stop = asyncio.Event()
    waiting = asyncio.create_task(leaving.until_told(stop))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    stop.set()
    await waiting
    assert codes == []


async def test_without_threads_it_leaves_with_a_code_that_says_to_try_again(
    codes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[threading.Thread] = []

    def refuse(probe: threading.Thread) -> NoReturn:
        asked.append(probe)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(Left):
        await leaving.until_told(asyncio.Event())
    assert codes == [os.EX_TEMPFAIL]
    assert len(asked) == leaving.MOST_REFUSED


async def test_once_is_no_reason_to_leave(codes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    stop, start, asked = asyncio.Event(), threading.Thread.start, itertools.count()

    def refuse_every_other(probe: threading.Thread) -> None:
        number = next(asked)
        if number > 2 * leaving.MOST_REFUSED:
            stop.set()
        if number % 2 == 0:
            raise RuntimeError("can't start new thread")
        start(probe)

    monkeypatch.setattr(threading.Thread, "start", refuse_every_other)
    await leaving.until_told(stop)
    assert codes == []
