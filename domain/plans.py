"""A plan: all that a migration would do, told before anything is touched. Data, the same for every kind.

It rests on what was seen (`basis`): where that has moved, the plan is not what would be done, and a migration that names it is
refused. What moves by itself, such as offsets, leaders or topics, is no part of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from domain.decisions import Finding, Label
from domain.of_kind import AnyWanted
from domain.policy import AnyPolicy
from domain.rehearsal import RehearsalReport

MOVED = "PLAN"
"""Code of the finding that says that a cluster is not any more what its plan rests on."""

IN_THE_WAY = "PL01"
"""Code of the finding that says that another migration of the cluster has not ended."""

NOTHING_ANSWERS = "PL02"
"""Code of the finding that says that nothing can be planned, because nothing of the cluster answers."""


class PlanPart(BaseModel):
    model_config = ConfigDict(frozen=True)


class FileAtStage(PlanPart):
    """A node's properties file as one stage makes it. `diff`: to the file of the stage before, as a reviewer would read it,
    secrets as `***`. `sha256` (hex): of the bytes that will be written."""

    stage: Label
    sha256: str
    diff: tuple[str, ...]


class DroppedKey(PlanPart):
    """A key of a controller's `base_properties` whose value is not in the file of this stage. `is_replaced`: another one is."""

    key: str
    stage: Label
    is_replaced: bool
    why: str


class PlannedNode(PlanPart):
    """What becomes of one node. `restarts`: until the end; a controller's first start is none. `configuration_management`:
    whether and how it is paused. `dropped`: of its base file, where it is a controller that has one."""

    name: str
    role: str
    path: str
    restarts: int
    files: tuple[FileAtStage, ...]
    configuration_management: str = ""
    dropped: tuple[DroppedKey, ...] = ()


class PlannedWave(PlanPart):
    """Nodes that start or restart together, and why; as far as it can be said today: waves are made again before each.

    `cannot_spare`: partitions that would fall below `min.insync.replicas`, so that this wave would not begin. `without`: the
    same where the policy gives them up while their broker restarts.
    """

    nodes: tuple[str, ...]
    reason: str
    cannot_spare: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


class PlannedRoll(PlanPart):
    """One round of restarts, or the first start of the controllers."""

    what: str
    stage: Label
    waves: tuple[PlannedWave, ...]


class PointOfNoReturn(PlanPart):
    """Something that cannot be undone, and the gate at which somebody must approve it first."""

    what: str
    gate: Label


class Basis(StrEnum):
    """What an estimate rests on."""

    MEASURED = "measured"
    """Restarts of this cluster's own nodes, by earlier migrations."""
    GUESS = "guess"
    """Nothing of this cluster: times that were measured elsewhere."""


class MeasuredStep(PlanPart):
    """How long one step took, once, from its look to its proof: `action` and `stage` as in `Step`."""

    action: str
    role: str
    stage: str
    seconds: float


class EstimatedPart(PlanPart):
    """`restarts_measured`: how many steps of this cluster the figure is the median of; 0 is a guess."""

    what: str
    seconds: float
    restarts_measured: int


class Estimate(PlanPart):
    """Seconds from the first look to the end, people's time and the soak left out."""

    seconds: float
    basis: Basis
    parts: tuple[EstimatedPart, ...]


class Plan(PlanPart):
    """`findings`: of all checks, the gravest first. `is_blocked`: one of them keeps a migration from starting. `restarts`: by
    node. `gates`: where people will be asked. `controllerless_seconds`: what the way back is expected to cost, as measured.
    `unknown`: parts that did not answer. `rehearsal`: of the copy, where it was asked for. `canaries`: what is made in the
    cluster for a moment, and when. `plan_hash`: of what is material.
    """

    id: str
    cluster: str
    cluster_id: str
    kind: str
    policy: AnyPolicy
    wanted: AnyWanted
    spec_revision: int
    requested_by: str
    requested_at: datetime
    made_at: datetime
    observation: str
    phase: str | None
    is_blocked: bool
    findings: tuple[Finding, ...]
    rolls: tuple[PlannedRoll, ...]
    nodes: tuple[PlannedNode, ...]
    restarts: dict[str, int]
    irreversible: tuple[PointOfNoReturn, ...]
    gates: tuple[Label, ...]
    controllerless_seconds: float
    estimate: Estimate
    not_migrated: tuple[str, ...]
    changes_for_people: tuple[str, ...]
    basis: dict[str, str]
    unknown: tuple[str, ...] = ()
    rehearsal: RehearsalReport | None = None
    canaries: tuple[str, ...] = ()
    plan_hash: str


def in_the_way(migration_id: str) -> Finding:
    """Of a plan that is made while a migration runs."""
    return Finding(
        code=IN_THE_WAY,
        object=f"migration {migration_id}",
        observed="it holds the cluster, and has not ended",
        expected="no migration of this cluster",
        fix=f"Follow it to its end (GET /migrations/{migration_id}), then make a new plan. This one shows what is left to do.",
    )


def nothing_answers() -> Finding:
    return Finding(
        code=NOTHING_ANSWERS,
        object="cluster",
        observed="neither ZooKeeper nor Kafka answers, and no broker is seen to run",
        expected="a cluster that runs, and that this worker reaches",
        fix="Start it, or correct addresses and access in its specification (PUT /clusters/{name}), then make a new plan. "
        "GET /clusters/{name}/observation says what does not answer, and why.",
    )


def moved_since(then: Mapping[str, str], now: Mapping[str, str]) -> tuple[Finding, ...]:
    """What a plan rested on `then`, and is not so `now`; by name, in order."""
    return tuple(
        Finding(
            code=MOVED,
            object=what,
            observed=now.get(what, "nothing"),
            expected=then.get(what, "nothing"),
            fix="The cluster has moved away from the plan. Make a new one with POST /plans, read it, and start with that.",
        )
        for what in sorted({*then, *now})
        if then.get(what) != now.get(what)
    )


def too_old(plan: Plan, now: datetime, life: timedelta) -> tuple[Finding, ...]:
    """The finding that a plan has outlived `life`; empty while it has not."""
    if now - plan.made_at <= life:
        return ()
    return (
        Finding(
            code=MOVED,
            object="the plan",
            observed=f"made at {plan.made_at:%Y-%m-%d %H:%M} UTC",
            expected=f"made within the last {life.total_seconds() / 86400:g} days",
            fix="Make a new plan with POST /plans, read it, and start with that.",
        ),
    )


def of_specification(revision: int) -> dict[str, str]:
    """The part of the basis that the ledger knows too."""
    return {"the cluster's specification": f"revision {revision}"}


@dataclass(frozen=True)
class Asked:
    """Who wants the plan, and what was known of the cluster before. `measured`: steps of its earlier migrations. `rehearsal`:
    of the copy, where it was asked for; `is_copied_in`: the phase in which it was, and there was none to come any more.
    `migration`: the id of one that has not ended."""

    id: str
    kind: str
    policy: AnyPolicy
    wanted: AnyWanted
    requested_by: str
    requested_at: datetime
    measured: Sequence[MeasuredStep] = ()
    rehearsal: RehearsalReport | None = None
    is_copied_in: str | None = None
    migration: str | None = None
