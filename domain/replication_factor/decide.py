"""What to do next: a few rules in order, by the plan and by what is seen now.

| # | rule | guarantees |
|---|---|---|
| 1 | what does not answer is waited for | unknown is never healthy |
| 2 | a hold stops what is not begun | what Kafka copies goes on |
| 3 | a partition that somebody else changes, or that is gone, is named and waited for | no other change is overwritten |
| 4 | a target that does not serve is waited for, by name | Kafka would accept it, and wait for ever |
| 5 | what may begin begins, once the plan is approved | no byte moves without an approval |
| 6 | what moves is waited for | all replicas are in sync in the end |
| 7 | throttles that are ours are removed, and those of before are there again | nothing is left behind |

On the way back the same rules hold for the changes that undo the planned ones, and no gate asks.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from domain.decisions import Decision, Done, Gate, Step, Wait
from domain.observed.replicas import Layout
from domain.replication_factor.change import Change
from domain.replication_factor.sight import back
from domain.replication_factor.waits import ReplicaWait
from domain.replication_factor.window import Progress, Standing, next_batch, progress_of, standing_of
from domain.waits import WaitReason

MOVE, RESTORE_THROTTLES = "move-replicas", "restore-throttles"
FORWARD, BACK = "planned", "as-found"
"""Stages of a step: where its partitions go."""
START = "start"
MOST_NAMED = 20


@dataclass(frozen=True)
class Terms:
    """`is_approved`: the gate `start`, on this plan. `are_throttles_left`: some are not as they were before."""

    evidence_hash: str
    is_approved: bool
    is_held: bool
    is_back: bool
    in_flight: int
    batch: int
    are_throttles_left: bool


def progress_to(changes: Sequence[Change], now: Layout, *, is_back: bool) -> Progress:
    """On the way back every change is its own opposite: what has begun waits for that, and what has not is done."""
    if not is_back:
        return progress_of(changes, now)
    seen = {(one.topic, one.number): one for one in now.partitions}
    found: dict[Standing, list[Change]] = {}
    for change in changes:
        one = seen.get((change.partition.topic, change.partition.number))
        standing = standing_of(change, one)
        if standing in {Standing.MOVING, Standing.LAGGING, Standing.DONE}:
            standing = Standing.WAITING
        elif standing is Standing.WAITING:
            standing = Standing.DONE
        elif one is not None and standing is Standing.OTHERS and one.target == change.partition.replicas:
            standing = Standing.MOVING
        found.setdefault(standing, []).append(back(change))
    return Progress(found)


def decide(changes: Sequence[Change], now: Layout, terms: Terms) -> Decision:
    if terms.is_held:
        return Wait(reason=WaitReason.HELD)
    progress = progress_to(changes, now, is_back=terms.is_back)
    strange = [*progress[Standing.OTHERS], *progress[Standing.GONE]]
    if strange:
        return Wait(reason=ReplicaWait.CHANGED_BY_OTHERS, objects=named(strange))
    batch = next_batch(progress, terms.in_flight, terms.batch)
    serving = {broker.id for broker in now.brokers if broker.is_open}
    missing = sorted({i for change in batch for i in change.added if i not in serving})
    if missing:
        return Wait(reason=ReplicaWait.TARGET_NOT_SERVING, objects=tuple(f"broker-{i}" for i in missing[:MOST_NAMED]))
    if batch and not terms.is_back and not terms.is_approved:
        return Gate(name=START, evidence_hash=terms.evidence_hash)
    if batch:
        return Step(action=MOVE, stage=BACK) if terms.is_back else Step(action=MOVE, stage=FORWARD, gate=START)
    unfinished = [*progress[Standing.MOVING], *progress[Standing.LAGGING], *progress[Standing.WAITING]]
    if unfinished:
        return Wait(reason=ReplicaWait.REPLICAS_COPYING, objects=named(unfinished))
    if terms.are_throttles_left:
        return Step(action=RESTORE_THROTTLES, stage=BACK if terms.is_back else FORWARD)
    return Done(outcome="AS_FOUND" if terms.is_back else "CHANGED")


def named(changes: Iterable[Change]) -> tuple[str, ...]:
    return tuple(change.partition.name for change in changes)[:MOST_NAMED]
