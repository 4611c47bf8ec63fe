"""Heartbeats around work that has a deadline of its own."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from temporalio import activity


@contextlib.asynccontextmanager
async def heartbeating() -> AsyncIterator[None]:
    """Beat three times per heartbeat timeout while the body runs.

    Only for bodies whose every wait is bounded: a beat says that this process lives, and the bounds say that it gets on.
    """
    timeout = activity.info().heartbeat_timeout
    if timeout is None:
        yield
        return
    beats = asyncio.create_task(_beat(timeout.total_seconds() / 3))
    try:
        yield
    finally:
        beats.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await beats


async def _beat(seconds: float) -> None:
    while True:
        activity.heartbeat()
        await asyncio.sleep(seconds)
