"""Whether the API itself has what it needs: without a processor it finds that others do not answer in time, who are well."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime

from api.absences import in_time
from api.pollers import signs_of_process
from domain.blocker import Blocker, blocker
from domain.blocker_codes import LEDGER_UNAVAILABLE, MACHINE, MOST_OBSERVED, TEMPORAL_UNAVAILABLE
from domain.machines.bad_signs import signed
from domain.machines.vital_signs import Sign

PULSE = 0.1
LATE = 0.5
"""Seconds. Who answers the API has one and a half."""
OF_OTHERS = frozenset({TEMPORAL_UNAVAILABLE, LEDGER_UNAVAILABLE})
MORE = (
    "First give it what it lacks: CPUQuota= and memory limits of its unit, the limits of its container, or find who takes the "
    "processors of its machine (`top`), and whether that swaps. Then ask again: Temporal and the ledger may be well."
)


@dataclass
class Lag:
    """By how many seconds what was due in this process came late: the longest, and all of it."""

    longest: float = 0.0
    whole: float = 0.0


@asynccontextmanager
async def lagging() -> AsyncIterator[Lag]:
    """Measured while the body runs."""
    lag = Lag()
    pulse = asyncio.create_task(_measure(lag))
    try:
        yield lag
    finally:
        pulse.cancel()
        with suppress(asyncio.CancelledError):
            await pulse


async def _measure(lag: Lag) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + PULSE
        await asyncio.sleep(PULSE)
        late = max(loop.time() - due, 0.0)
        lag.longest, lag.whole = max(lag.longest, late), lag.whole + late


async def signs_of_itself() -> tuple[Sign, ...]:
    return tuple(sign for sign in await asyncio.to_thread(signs_of_process, os.getpid()) if not sign.is_slight)


async def of_itself(found: Sequence[Blocker], lag: Lag, now: datetime, until: float) -> list[Blocker]:
    """Only where somebody else is said not to answer. How late it has been counts up to now."""
    if not any(entry.code in OF_OTHERS for entry in found):
        return []
    signs, longest, whole = tuple[Sign, ...](), lag.longest, lag.whole
    async with in_time(until):
        signs = await signs_of_itself()
    if longest < LATE and not signs:
        return []
    late = f"what was due in it came up to {longest:.1f} s late, {whole:.1f} s in all" if longest >= LATE else ""
    entry = blocker(
        MACHINE,
        "keeperless-api",
        observed=f"it is kept from its work{f': {late}' if late else ''}, so that others may seem not to answer in time",
        expected="it has a processor and memory whenever it needs them",
        fix=MORE,
        since=now,
    )
    return [signed(entry, signs, MOST_OBSERVED)]
