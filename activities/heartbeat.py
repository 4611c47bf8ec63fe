"""Heartbeats around work that has a deadline of its own, and what it is at meanwhile."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from datetime import UTC, datetime

from temporalio import activity


class _Beats:
    """What is told with each beat: the first of what the body is at, and since when."""

    def __init__(self) -> None:
        self._at: list[dict[str, str]] = []

    def beat(self) -> None:
        activity.heartbeat(*self._at[:1])

    @contextlib.contextmanager
    def at(self, what: str) -> Iterator[None]:
        told = {"at": what, "since": datetime.now(UTC).isoformat()}
        self._at.append(told)
        self.beat()
        try:
            yield
        finally:
            self._at.remove(told)
            self.beat()


_BEATS: ContextVar[_Beats | None] = ContextVar("beats", default=None)


@contextlib.asynccontextmanager
async def beaten(beat: Callable[[], None], seconds: float) -> AsyncIterator[None]:
    """Beat at once, and every so many seconds while the body runs."""
    beats = asyncio.create_task(_repeat(beat, seconds))
    try:
        yield
    finally:
        beats.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await beats


async def _repeat(beat: Callable[[], None], seconds: float) -> None:
    while True:
        beat()
        await asyncio.sleep(seconds)


@contextlib.asynccontextmanager
async def heartbeating() -> AsyncIterator[None]:
    """Beat three times per heartbeat timeout while the body runs.

    Only for bodies whose every wait is bounded: a beat says that this process lives, and the bounds say that it gets on.
    """
    timeout = activity.info().heartbeat_timeout
    if timeout is None:
        yield
        return
    beats = _Beats()
    token = _BEATS.set(beats)
    try:
        async with beaten(beats.beat, timeout.total_seconds() / 3):
            yield
    finally:
        _BEATS.reset(token)


@contextlib.contextmanager
def is_at(what: str) -> Iterator[None]:
    """Tells people what the activity is at, where that may take its time: nothing else shows it. Outside of `heartbeating`
    nobody is told."""
    beats = _BEATS.get()
    with beats.at(what) if beats is not None else contextlib.nullcontext():
        yield
