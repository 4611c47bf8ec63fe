"""What an activity says that it is at, with its heartbeats."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from temporalio.testing import ActivityEnvironment

from activities.heartbeat import heartbeating, is_at


def environment(told: list[tuple[Any, ...]]) -> ActivityEnvironment:
    found = ActivityEnvironment()
    found.info = replace(found.info, heartbeat_timeout=timedelta(seconds=30))
    found.on_heartbeat = lambda *details: told.append(details)
    return found


async def test_what_it_is_at_is_told_at_once_and_until_it_is_over() -> None:
    told: list[tuple[Any, ...]] = []

    async def body() -> None:
        async with heartbeating():
            await asyncio.sleep(0)
            with is_at("a JVM is tried"):
                pass

    await environment(told).run(body)
    assert [details[0]["at"] if details else None for details in told] == [None, "a JVM is tried", None]
    (begun,) = [details[0] for details in told if details]
    assert datetime.fromisoformat(begun["since"]).tzinfo is not None


async def test_of_several_at_once_the_first_is_told_and_then_the_next() -> None:
    told: list[tuple[Any, ...]] = []

    async def first(begun: asyncio.Event, over: asyncio.Event) -> None:
        with is_at("a"):
            await begun.wait()
        over.set()

    async def second(begun: asyncio.Event, over: asyncio.Event) -> None:
        with is_at("b"):
            begun.set()
            await over.wait()

    async def body() -> None:
        events = asyncio.Event(), asyncio.Event()
        async with heartbeating():
            await asyncio.gather(first(*events), second(*events))

    await environment(told).run(body)
    assert [details[0]["at"] for details in told if details] == ["a", "a", "b"]


async def test_outside_of_an_activity_that_beats_nobody_is_told() -> None:
    with is_at("a plan"):
        pass
