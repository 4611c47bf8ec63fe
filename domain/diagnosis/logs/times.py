"""When a line of a log was said: by the node's own clock and zone, whichever they are."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

STAMP = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3}\]")
"""Kafka's log4j layout (of others: `layouts.py`). By the node's own clock and zone, so that it is compared with other lines
of the same log only."""
SET_BACK = timedelta(minutes=1)
"""Threads write their lines in no strict order; what differs by more was a clock."""
CLOCKS = timedelta(seconds=2)
"""Between the time of a process, in ticks since boot, and that of its lines."""
READ_AFTER = timedelta(seconds=30)
"""How long after a look its logs may be read: on a machine with much to do, seconds."""
ZONES = timedelta(minutes=15)
"""All zones of the world differ by multiples of it from each other."""


def stamp_of(line: str) -> datetime | None:
    """When it was said; `None` where the line has no time, or one that there is not."""
    match = STAMP.match(line)
    try:
        return datetime.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def times_of(lines: Sequence[str]) -> list[datetime | None]:
    """When each was said: by the last time before it, on the clock of the last line. `None` above the first time.

    A clock that goes back, as at the end of summer time, makes what was said before it no younger than what came after.
    """
    times: list[datetime | None] = []
    for line in lines:
        times.append(stamp_of(line) or (times[-1] if times else None))
    ahead, after = timedelta(), None
    for number in range(len(times) - 1, -1, -1):
        at = times[number]
        if at is None:
            break
        if after is not None and at - ahead > after + SET_BACK:
            ahead = at - after
        after = times[number] = at - ahead
    return times


def set_back_by(lines: Sequence[str]) -> timedelta:
    """How far the clock is behind where it was already, by the times as they stand there; nothing, where it is not."""
    stamps = [stamp for line in lines if (stamp := stamp_of(line)) is not None]
    behind = max(stamps) - stamps[-1] if stamps else timedelta()
    return behind if behind > SET_BACK else timedelta()


def age_of(line: str, now: datetime) -> timedelta | None:
    """How long ago it was said, up to a quarter of an hour, whatever the node's zone; what is older seems younger by quarters.

    What was said since, before its log was read, is of this moment. `None` where the line has no time.
    """
    stamp = stamp_of(line)
    return max((now.replace(tzinfo=None) - stamp + READ_AFTER) % ZONES - READ_AFTER, timedelta()) if stamp is not None else None
