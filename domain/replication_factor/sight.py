"""What this kind of migration looks at besides, and what it means to change."""

from dataclasses import replace

from domain.observed.observation import Observation
from domain.observed.parts import ObservedPart
from domain.observed.replicas import Layout, Partition, Throttles
from domain.of_kind import AnyWanted, Wanted
from domain.replication_factor.change import Change
from domain.replication_factor.planner import plan
from domain.replication_factor.wanted import ReplicationFactorWanted


class ReplicaSight(ObservedPart):
    """`now`, `throttles`: as they are seen; `None` where they could not be. `wanted`, `before`, `throttled_before`: of the
    migration that is active, and as its plan saw them; `None` without one."""

    now: Layout | None = None
    throttles: Throttles | None = None
    wanted: AnyWanted | None = None
    before: Layout | None = None
    throttled_before: Throttles | None = None


NOTHING_SEEN = ReplicaSight()


def sight(observation: Observation) -> ReplicaSight:
    """The part of an observation that only this kind knows."""
    return observation.part if isinstance(observation.part, ReplicaSight) else NOTHING_SEEN


def changes_of(before: Layout, wanted: Wanted) -> list[Change]:
    """What is to change, always the same from the same begin. Raises `CannotPlace`."""
    asked = ReplicationFactorWanted.of(wanted)
    known = {one.topic for one in before.partitions}
    planned = plan(before.partitions, asked.factors(known), before.brokers)
    by_place = {(one.topic, one.number): one for one in before.partitions}
    assigned = [
        Change(one, to.replicas)
        for change in asked.changes
        if change.assignment is not None
        for to in change.assignment.partitions
        if (one := by_place.get((to.topic, to.partition))) is not None and one.replicas != to.replicas
    ]
    return sorted([*planned, *assigned], key=lambda change: (change.partition.topic, change.partition.number))


def back(change: Change) -> Change:
    """The change that undoes it: from the planned replicas to those of before."""
    return Change(replace(change.partition, replicas=change.after), change.partition.replicas)


def settled(one: Partition) -> Partition:
    """A partition as a plan rests on it: what comes and goes by itself left out."""
    return replace(one, size=0, in_sync=(), leader=None)
