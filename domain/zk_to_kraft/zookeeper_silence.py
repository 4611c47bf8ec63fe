"""How long ZooKeeper has been silent. No look knows it alone: each takes over what the one before knew."""

from datetime import datetime, timedelta

from pydantic import BaseModel, ConfigDict

from domain.observed.observation import Observation

MAX_BREAK = timedelta(minutes=1)
"""Between two looks, for a worker that is replaced, or a look that meets every time limit. Longer, and ZooKeeper may have been
there meanwhile: then its silence begins anew."""


class Silence(BaseModel):
    """How long ZooKeeper has been silent, by looks that follow each other: the first that got no answer, and the last."""

    model_config = ConfigDict(frozen=True)

    since: datetime
    seen_at: datetime


def zookeeper_silence(observation: Observation, before: Silence | None) -> Silence | None:
    """`None` where ZooKeeper has answered. `before`: what the last look knew."""
    if observation.zookeeper is not None:
        return None
    is_unbroken = before is not None and observation.started_at - before.seen_at <= MAX_BREAK
    since = before.since if before is not None and is_unbroken else observation.ended_at
    return Silence(since=since, seen_at=observation.ended_at)
