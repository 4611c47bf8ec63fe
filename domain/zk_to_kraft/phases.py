"""`Phase`: where the cluster is. Computed from a situation, never remembered."""

from enum import StrEnum

from domain.records import PhaseStep
from domain.zk_to_kraft.guards import STAGE_OF_MODE, STAGE_ORDER
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.situation import BrokerSituation, Claim, ControllerSituation, QuorumState, Situation
from domain.zk_to_kraft.steps import NodeStage


class Phase(StrEnum):
    """Each phase says what happens in it and what follows. Everything before FINALIZING has a way back."""

    PREFLIGHT = "PREFLIGHT"
    """Nothing has been touched. Follows: CONTROLLERS_UP, once the preflight finds no blocker."""
    CONTROLLERS_UP = "CONTROLLERS_UP"
    """Controllers are formatted and started in migration mode. Follows: BROKERS_TO_HYBRID, once all report PRE_MIGRATION."""
    BROKERS_TO_HYBRID = "BROKERS_TO_HYBRID"
    """Roll 1: brokers register with both sides, one after the other. Follows: COPYING, with the last registration."""
    COPYING = "COPYING"
    """The active controller claims /controller and copies ZooKeeper's metadata. Follows: DUAL_WRITE, by itself."""
    DUAL_WRITE = "DUAL_WRITE"
    """KRaft leads and writes every change to ZooKeeper too. Follows: BROKERS_TO_KRAFT."""
    BROKERS_TO_KRAFT = "BROKERS_TO_KRAFT"
    """Roll 2: brokers leave ZooKeeper. Follows: SOAK, when none is left there."""
    SOAK = "SOAK"
    """All brokers run in KRaft mode; dual write goes on. Follows: FINALIZING, when a person approves it."""
    FINALIZING = "FINALIZING"
    """Controllers restart without the migration flag, the active one last. Follows: KRAFT."""
    KRAFT = "KRAFT"
    """No node uses ZooKeeper, and the log says so. The end."""
    FINALIZED_EARLY = "FINALIZED_EARLY"
    """The log says POST_MIGRATION while brokers are still in ZooKeeper mode: somebody's mistake. Only forward."""


WAY = (
    PhaseStep(name=Phase.PREFLIGHT, title="Checks"),
    PhaseStep(name=Phase.CONTROLLERS_UP, title="Start controllers"),
    PhaseStep(name=Phase.BROKERS_TO_HYBRID, title="Brokers to hybrid"),
    PhaseStep(name=Phase.COPYING, title="Copy metadata"),
    PhaseStep(name=Phase.DUAL_WRITE, title="Dual-write mode"),
    PhaseStep(name=Phase.BROKERS_TO_KRAFT, title="Brokers to KRaft"),
    PhaseStep(name=Phase.SOAK, title="Soak"),
    PhaseStep(name=Phase.FINALIZING, title="Finalize", is_irreversible=True),
    PhaseStep(name=Phase.KRAFT, title="KRaft alone"),
)
"""The phases in their order, for people. FINALIZED_EARLY is a mistake, and no part of the way."""

COPY_BEGUN = frozenset(Phase) - {Phase.PREFLIGHT, Phase.CONTROLLERS_UP, Phase.BROKERS_TO_HYBRID}
"""Phases in which there is no copy to come any more."""


def phase_of(situation: Situation) -> Phase | None:
    """The phase that a situation is in, or `None` when what is unknown leaves it open.

    Read from the end backwards: the furthest thing that has begun names the phase. What runs decides, and not a file that
    somebody has edited (`stages_in_force`). At the end of roll 2 all files are alike, and one late answer is no phase back.
    """
    if situation.quorum is QuorumState.POST_MIGRATION:
        return _phase_after_finalization(situation)
    if situation.is_nothing_known:
        return None
    stages = stages_in_force(situation)
    is_rolled = all(stage is NodeStage.KRAFT for stage in stages)
    if is_rolled and any(_is_final_begun(c) for c in situation.controllers):
        return Phase.FINALIZING
    if is_rolled and all(b.mode is BrokerMode.KRAFT for b in situation.brokers):
        return Phase.SOAK
    if is_rolled and all(b.mode in {BrokerMode.KRAFT, BrokerMode.UNKNOWN} for b in situation.brokers):
        return None
    if NodeStage.KRAFT in stages or any(b.mode is BrokerMode.KRAFT for b in situation.brokers):
        return Phase.BROKERS_TO_KRAFT
    provisioned = [c for c in situation.controllers if c.mode is not ControllerMode.ABSENT]
    has_given_way = situation.claim is not Claim.KRAFT and all(
        c.mode in {ControllerMode.ABSENT, ControllerMode.FENCED} for c in situation.controllers
    )
    is_all_hybrid = all(b.mode is BrokerMode.HYBRID for b in situation.brokers)
    if (situation.claim is Claim.KRAFT and provisioned) or (is_all_hybrid and not has_given_way):
        # Once the log says so the copy is complete: whether dual write keeps up comes and goes, and is no phase.
        return Phase.DUAL_WRITE if situation.is_copy_made else Phase.COPYING
    if NodeStage.MIGRATION in stages or any(b.mode is BrokerMode.HYBRID for b in situation.brokers):
        return Phase.BROKERS_TO_HYBRID
    if any(c.mode is not ControllerMode.UNKNOWN or c.stage is not None for c in provisioned):
        return Phase.CONTROLLERS_UP
    return None if provisioned else Phase.PREFLIGHT


def stages_in_force(s: Situation) -> tuple[NodeStage | None, ...]:
    """The stage that each broker counts as; `None`: nothing tells it.

    What runs decides. A file counts where a roll of ours wrote it, which comes right before the restart. The file of a broker
    that does not serve counts too, unless it is ahead of all that runs: then somebody has edited it.
    """
    return tuple(_in_force(b, s) for b in s.brokers)


def are_brokers_begun(s: Situation) -> bool:
    """Whether one has left ZooKeeper mode, or is about to."""
    is_any_beyond = any(stage in STAGE_ORDER[1:] for stage in stages_in_force(s))
    return is_any_beyond or any(b.mode in {BrokerMode.HYBRID, BrokerMode.KRAFT} for b in s.brokers)


def _in_force(b: BrokerSituation, s: Situation) -> NodeStage | None:
    runs = STAGE_OF_MODE.get(b.mode)
    if b.stage is None or b.stage is runs or b.is_file_ours:
        return b.stage or runs
    if runs is not None:
        return runs
    return b.stage if STAGE_ORDER.index(b.stage) <= STAGE_ORDER.index(_reached(s)) else None


def _reached(s: Situation) -> NodeStage:
    """The furthest stage that is seen without the files of others. Where no broker serves nothing speaks against these."""
    if s.is_copy_made or not any(b.mode in STAGE_OF_MODE for b in s.brokers):
        return NodeStage.KRAFT
    is_quorum_there = any(c.mode is not ControllerMode.ABSENT for c in s.controllers)
    seen = [NodeStage.MIGRATION if is_quorum_there else NodeStage.ZOOKEEPER]
    seen += [STAGE_OF_MODE.get(b.mode, NodeStage.ZOOKEEPER) for b in s.brokers]
    seen += [b.stage for b in s.brokers if b.stage is not None and b.is_file_ours]
    return max(seen, key=STAGE_ORDER.index)


def _is_final_begun(c: ControllerSituation) -> bool:
    """A flag that somebody has taken out of a file is an alarm, and no end that has begun."""
    return c.mode is ControllerMode.FINAL or (c.stage is NodeStage.KRAFT and c.is_file_ours)


def _phase_after_finalization(situation: Situation) -> Phase:
    if not all(stage is NodeStage.KRAFT for stage in stages_in_force(situation)):
        return Phase.FINALIZED_EARLY
    is_over = all(c.mode is ControllerMode.FINAL and c.stage is NodeStage.KRAFT for c in situation.controllers)
    return Phase.KRAFT if is_over and all(b.mode is BrokerMode.KRAFT for b in situation.brokers) else Phase.FINALIZING
