"""What is looked up for people who wait."""

import asyncio

from activities.in_time import in_time
from domain.errors import Transient


async def fails(error: Exception) -> int:
    raise error


async def hangs() -> int:
    await asyncio.sleep(60)
    return 1


async def test_what_gives_no_answer_is_named_and_costs_nobody_the_others() -> None:
    silent: list[str] = []
    assert await in_time("the log", fails(Transient("no route")), silent, 7) == 7
    assert await in_time("the disk", hangs(), silent, 7, 0.01) == 7
    assert await in_time("the machine", fails(ValueError("secret=hunter2")), silent, 7) == 7
    assert silent == [
        "the log: no route",
        "the disk: no answer within 0.01 s",
        "the machine: ValueError, which nobody foresaw: the log of keeperless-activities has it whole",
    ]
