"""`in_time`: an answer for people who wait, or the word that it did not come."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from temporalio import activity

from activities.observing.node_survey import CannotLook
from domain.errors import KeeperlessError
from domain.observed.parts import no_answer

T = TypeVar("T")

HINT_SECONDS = 3.5
"""For each thing that is looked up besides the look itself."""


UNTIL: ContextVar[float] = ContextVar("UNTIL", default=math.inf)
"""By the event loop's clock: when all of it is over, for who has begun one search of many parts."""


@contextmanager
def all_within(seconds: float) -> Iterator[None]:
    """One deadline for all that is asked `in_time` in here, also one after the other: what is known by then is told. Of two,
    one in the other, the earlier holds."""
    token = UNTIL.set(min(UNTIL.get(), asyncio.get_running_loop().time() + seconds))
    try:
        yield
    finally:
        UNTIL.reset(token)


def time_for(seconds: float) -> float:
    """These, or what is left of all."""
    return max(min(seconds, UNTIL.get() - asyncio.get_running_loop().time()), 0.0)


async def in_time(what: str, ask: Callable[[], Awaitable[T]], silent: list[str], default: T, seconds: float | None = None) -> T:
    """The answer, or `default` with the reason noted in `silent`: a bug in one hint, too, costs nobody the others. Whoever is
    cancelled before has not asked."""
    limit = time_for(HINT_SECONDS if seconds is None else seconds)
    try:
        async with asyncio.timeout(limit):
            return await ask()
    except TimeoutError:
        silent.append(f"{what}: {no_answer(limit)}")
    except (KeeperlessError, CannotLook) as error:
        silent.append(f"{what}: {error}")
    except Exception as error:  # noqa: BLE001 - whatever it is, the others are told
        activity.logger.exception("%s could not be looked up", what)
        silent.append(f"{what}: unexpected {type(error).__name__}: the log of keeperless-activities has the whole error")
    return default
