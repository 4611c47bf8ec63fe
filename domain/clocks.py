"""Ages by clocks that may have been set back: a time of ours that has not come yet is old, never fresh. Pure."""

from datetime import datetime, timedelta

AHEAD = timedelta(seconds=5)
"""By how much the clocks of two machines may differ without anything being wrong."""


def is_ahead(time: datetime, now: datetime) -> bool:
    return time - now > AHEAD


def is_over(begun: datetime, now: datetime, limit: timedelta) -> bool:
    """Whether what has begun then takes longer than `limit`, or began by another clock than ours, so that nobody knows."""
    return now - begun > limit or is_ahead(begun, now)
