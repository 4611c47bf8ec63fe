"""How long a migration takes, from restarts of this cluster where there were some, else from others that were measured."""

from collections.abc import Sequence
from statistics import median

from domain.cluster import Role
from domain.plans import Basis, Estimate, EstimatedPart, MeasuredStep, PlannedRoll
from domain.rehearsal import RehearsalReport
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.steps import NodeStage, StepAction

GUESSED_SECONDS: dict[tuple[Role, str], float] = {
    (Role.CONTROLLER, NodeStage.MIGRATION): 5.0,
    (Role.BROKER, NodeStage.MIGRATION): 6.0,
    (Role.BROKER, NodeStage.KRAFT): 6.0,
    (Role.CONTROLLER, NodeStage.KRAFT): 4.0,
}
"""One step, its looks and its proof included: of small nodes that hold little, which real ones seldom do (docs/performance.md).
Controllers are created together.
"""

COPY_SECONDS = 1.0
"""Of a small cluster. 120,000 records took 28 s, which a rehearsal would tell (proven-facts, section 6)."""

CHECK_SECONDS = {"Checks before the start": 6.0, "Comparisons": 8.0}
"""Measured on a small cluster: the checks before anything is touched, and all comparisons on the way."""


COPY_IS_OVER = frozenset(
    {Phase.DUAL_WRITE, Phase.BROKERS_TO_KRAFT, Phase.SOAK, Phase.FINALIZING, Phase.KRAFT, Phase.FINALIZED_EARLY}
)


def copy_seconds(phase: Phase | None, rehearsal: RehearsalReport | None) -> float | None:
    """Of Kafka's copy; `None` once it is over."""
    if phase in COPY_IS_OVER:
        return None
    rehearsed = rehearsal.seconds_without_controller if rehearsal is not None else None
    return COPY_SECONDS if rehearsed is None else rehearsed


def estimate_of(rolls: Sequence[PlannedRoll], measured: Sequence[MeasuredStep], copy: float | None) -> Estimate:
    """A wave takes as long as one of its nodes: they restart together. `copy`: as of `copy_seconds`."""
    parts = [_part(roll, measured) for roll in rolls]
    beside = {**(CHECK_SECONDS if rolls else {}), **({} if copy is None else {"Kafka's copy": copy})}
    others = [EstimatedPart(what=what, seconds=seconds, restarts_measured=0) for what, seconds in beside.items()]
    is_measured = bool(parts) and all(part.restarts_measured for part in parts)
    return Estimate(
        seconds=round(sum(part.seconds for part in (*parts, *others)), 1),
        basis=Basis.MEASURED if is_measured else Basis.GUESS,
        parts=(*parts, *others),
    )


def _part(roll: PlannedRoll, measured: Sequence[MeasuredStep]) -> EstimatedPart:
    role = Role(roll.waves[0].nodes[0].partition("-")[0])
    of_this_kind = [step.seconds for step in measured if (step.role, step.stage) == (role, roll.stage) and _is_step(step)]
    seconds = median(of_this_kind) if of_this_kind else GUESSED_SECONDS[role, roll.stage]
    return EstimatedPart(what=roll.what, seconds=round(seconds * len(roll.waves), 1), restarts_measured=len(of_this_kind))


def _is_step(step: MeasuredStep) -> bool:
    return step.action in {StepAction.ROLL_NODE, StepAction.PROVISION_CONTROLLER}
