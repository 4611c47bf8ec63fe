"""What is looked up for people who wait."""

import asyncio
import gc
import math
import time

import pytest

from activities.observing.in_time import all_within, in_time, time_for
from domain.errors import Transient


async def fails(error: Exception) -> int:
    raise error


async def hangs() -> int:
    await asyncio.sleep(60)
    return 1


async def test_parts_that_follow_one_another_have_one_deadline() -> None:
    silent: list[str] = []
    began = time.monotonic()
    with all_within(0.2):
        assert await in_time("the log", hangs, silent, 7, 0.15) == 7
        assert await asyncio.gather(in_time("who has the port", hangs, silent, 7, 60)) == [7]
    assert time.monotonic() - began < 1
    assert [part.partition(":")[0] for part in silent] == ["the log", "who has the port"]
    assert await in_time("the disk", lambda: asyncio.sleep(0.01, 1), silent, 7, 60) == 1, "the next search has its own"


async def test_what_gives_no_answer_is_named_and_costs_nobody_the_others() -> None:
    silent: list[str] = []
    assert await in_time("the log", lambda: fails(Transient("no route")), silent, 7) == 7
    assert await in_time("the disk", hangs, silent, 7, 0.3) == 7
    assert await in_time("the machine", lambda: fails(ValueError("secret=hunter2")), silent, 7) == 7
    assert silent == [
        "the log: no route",
        "the disk: no answer within 0.3 s",
        "the machine: unexpected ValueError: the log of keeperless-activities has the whole error",
    ]


async def test_what_no_time_was_left_for_is_not_said_to_have_given_no_answer() -> None:
    """Of a node that gives none others conclude that its machine does not come back (`stranded`)."""
    silent: list[str] = []
    with all_within(0.0):
        assert await in_time("log of broker-2", hangs, silent, 7) == 7
    assert silent == ["log of broker-2: not looked up, no time was left for it"]


async def test_of_two_deadlines_the_earlier_holds() -> None:
    with all_within(3600):
        with all_within(60):
            assert time_for(math.inf) <= 60
        with all_within(7200):
            assert 60 < time_for(math.inf) <= 3600
        assert time_for(1.0) == 1.0


async def test_who_is_cancelled_before_has_not_asked() -> None:
    """A question that was made and not asked would be told as one that was forgotten (`never awaited`)."""
    asked = []

    async def ask() -> int:
        asked.append(1)
        return 1

    silent: list[str] = []
    search = asyncio.ensure_future(asyncio.gather(in_time("the log", ask, silent, 7), in_time("the disk", ask, silent, 7)))
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    gc.collect()
    assert not asked
    assert not silent
