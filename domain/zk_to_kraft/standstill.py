"""GF15: how long nothing measurable has moved, and how long ZooKeeper has been silent.

No look knows either alone: each takes over what the one before knew.
Nothing follows from GF15 but an alert: a migration is neither finalised nor led back because of a clock.
"""

from datetime import datetime, timedelta

from pydantic import BaseModel, ConfigDict

from domain.cluster import ClusterSpec
from domain.decisions import Decision, Revert, Step, Wait
from domain.diagnosis.blocker import Blocker, blocker
from domain.health.quorum import quorum_leader
from domain.observed.observation import Observation
from domain.policy import RollPolicy
from domain.waits import WaitReason

GF15 = "GF15"

PATIENT = frozenset({WaitReason.HELD, WaitReason.SOAK_NOT_OVER})
"""Waits that may last for weeks because somebody wants them to."""

MAX_BREAK = timedelta(minutes=1)
"""Between two looks, for a worker that is replaced, or a look that meets every time limit. Longer, and ZooKeeper may have been
there meanwhile: then its silence begins again."""


class Standstill(BaseModel):
    """Since when nothing measurable has moved, and the measure, in words."""

    model_config = ConfigDict(frozen=True)

    measure: str
    since: datetime


def standstill(
    observation: Observation,
    spec: ClusterSpec,
    phase: str | None,
    steps_done: int,
    decision: Decision,
    before: Standstill | None,
) -> Standstill | None:
    """`None` where nothing is meant to move: a gate, a hold, the soak, an end."""
    is_meant = isinstance(decision, Step | Revert) or (isinstance(decision, Wait) and decision.reason not in PATIENT)
    if not is_meant:
        return None
    seen = measure(observation, spec, phase, steps_done)
    since = before.since if before is not None and before.measure == seen else observation.ended_at
    return Standstill(measure=seen, since=since)


def measure(observation: Observation, spec: ClusterSpec, phase: str | None, steps_done: int) -> str:
    """What progress is told by: any change of it is one. Never what moves by itself, such as offsets."""
    kafka = observation.kafka
    lagging = "?" if kafka is None else str(len(kafka.under_replicated) + len(kafka.offline))
    leader = quorum_leader(observation, spec)
    registered = leader.metrics.active_broker_count if leader is not None else None
    return f"{phase}, {steps_done} steps, {registered} registered, {lagging} lagging"


def overdue(still: Standstill | None, policy: RollPolicy, now: datetime) -> tuple[Blocker, ...]:
    """The alert, once the policy's deadline is over."""
    if still is None or now - still.since < policy.stage_deadline:
        return ()
    minutes = policy.stage_deadline.total_seconds() / 60
    found = blocker(
        GF15,
        "progress",
        observed=f"no progress for more than {minutes:g} minutes: {still.measure}",
        expected="a step, a registration or a replica more within policy.stage_deadline",
        fix="The other entries name what blocks it. If there is none, open the Temporal UI: it shows which activity keeps "
        "retrying, and with which error.",
        since=still.since,
    )
    return (found,)


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
