"""`decide`: the one next thing to do on the way to KRaft. Pure, and small enough to be read at one sitting.

The rules are asked in order; the first that has an answer gives it:

     1. a controller has lost its flag                  → Wait      (the highest alarm: one election makes it final)
     2. a person holds                                  → Wait      (not once finalisation has begun: half of it is worse)
     3. something decisive did not answer               → Wait      (unknown is never healthy)
     4. a file is not as we left it                     → Wait
     5. a controller is missing                         → Step      provision it, while no broker has been touched
     6. a node that we stopped was not started          → Step      finish its roll
     7. a node is down or not ready                     → Wait
     8. registrations or replicas do not agree          → Wait
     9. the end is there                                → Done
    10. a file is ahead of its process                  → Step      finish that node's roll
    11. brokers: ZooKeeper → hybrid → (copy) → KRaft    → Step/Wait
    12. controllers: soak, gate, standbys, leader       → Wait/Gate/Step

What this order guarantees: nothing restarts while anything is unknown, down, out of sync or unregistered; a controller
restarts without its flag only when every broker runs in KRaft mode and a person has approved; whatever was begun is
finished before anything new begins. `tests/unit/test_decide_exhaustive.py` holds it to that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from domain.decisions import Decision, Done, Gate, GateName, NodeStage, Step, StepAction, Wait, WaitReason
from domain.zk_to_kraft.phases import Phase, phase_of
from domain.zk_to_kraft.situation import (
    BrokerMode,
    BrokerSituation,
    Claim,
    ControllerMode,
    ControllerSituation,
    DualWrite,
    QuorumState,
    Registration,
    Replication,
    Situation,
)


class Approval(StrEnum):
    """What the ledger says of the approval of a gate."""

    NONE = "none"
    VALID = "valid"
    """Approved, on the evidence as it is now."""
    STALE = "stale"
    """Approved, on evidence that has changed since: as good as none."""
    CONSUMED = "consumed"
    """Approved, and an irreversible effect has begun under it: what follows needs no other."""


@dataclass(frozen=True)
class Terms:
    """What people have said, as far as it matters now. `evidence_hash` is that of the evidence as it is now."""

    approval: Approval = Approval.NONE
    is_held: bool = False
    is_soak_over: bool = True
    evidence_hash: str = ""

    @property
    def may_finalize(self) -> bool:
        return self.approval in {Approval.VALID, Approval.CONSUMED}


def decide(situation: Situation, terms: Terms) -> Decision:
    """The next thing to do. Total: every situation has an answer, and waiting is the answer to all that is not understood."""
    for rule in RULES:
        decision = rule(situation, terms)
        if decision is not None:
            return decision
    return _wait(WaitReason.STATE_NOT_UNDERSTOOD)


def _done(s: Situation, _: Terms) -> Decision | None:
    return Done(outcome=Phase.KRAFT) if phase_of(s) is Phase.KRAFT else None


def _held(_: Situation, terms: Terms) -> Decision | None:
    return _wait(WaitReason.HELD) if terms.is_held and terms.approval is not Approval.CONSUMED else None


def _unknown(s: Situation, _: Terms) -> Decision | None:
    nodes = _in_mode(s, BrokerMode.UNKNOWN, ControllerMode.UNKNOWN)
    is_zookeeper_needed = s.quorum is not QuorumState.POST_MIGRATION
    if nodes or s.replication is Replication.UNKNOWN or (s.claim is Claim.UNKNOWN and is_zookeeper_needed):
        return _wait(WaitReason.PART_UNKNOWN, *nodes)
    return None


def _lost_flag(s: Situation, terms: Terms) -> Decision | None:
    if s.quorum is QuorumState.POST_MIGRATION or terms.approval is Approval.CONSUMED:
        return None
    lost = [c.id for c in s.controllers if _may_finalize_by_itself(c)]
    return _wait(WaitReason.CONTROLLER_LOST_ITS_FLAG, *lost) if lost else None


def _may_finalize_by_itself(c: ControllerSituation) -> bool:
    """Its process runs without the flag, or would after its next restart."""
    return c.mode is ControllerMode.FINAL or c.stage is NodeStage.KRAFT or not c.is_flag_in_file


def _changed_files(s: Situation, _: Terms) -> Decision | None:
    changed = [b.id for b in s.brokers if b.stage is None or _is_file_behind(b)]
    changed += [c.id for c in s.controllers if c.stage is None and c.mode is not ControllerMode.ABSENT]
    return _wait(WaitReason.FILE_CHANGED, *changed) if changed else None


def _missing_controllers(s: Situation, _: Terms) -> Decision | None:
    missing = [c.id for c in s.controllers if c.mode is ControllerMode.ABSENT]
    is_untouched = all(b.mode is BrokerMode.ZOOKEEPER and b.stage is NodeStage.ZOOKEEPER for b in s.brokers)
    is_begun = s.claim is not Claim.ZOOKEEPER or s.quorum is QuorumState.POST_MIGRATION
    if not missing or not is_untouched or is_begun:
        return None
    return Step(action=StepAction.PROVISION_CONTROLLER, node_id=missing[0], stage=NodeStage.MIGRATION)


def _interrupted(s: Situation, terms: Terms) -> Decision | None:
    for broker in s.brokers:
        if broker.mode is BrokerMode.INTERRUPTED and broker.stage in {NodeStage.MIGRATION, NodeStage.KRAFT}:
            stage = _stage_to_finish(s, broker.stage)
            return _copy_not_there(s, stage) or _roll(broker.id, stage)
    for controller in s.controllers:
        if controller.mode is ControllerMode.INTERRUPTED and controller.stage is NodeStage.MIGRATION:
            return Step(action=StepAction.PROVISION_CONTROLLER, node_id=controller.id, stage=NodeStage.MIGRATION)
        if controller.mode is ControllerMode.INTERRUPTED and controller.stage is NodeStage.KRAFT:
            return _finalize(s, terms, controller)
    return None


def _not_serving(s: Situation, _: Terms) -> Decision | None:
    down = _in_mode(s, BrokerMode.DOWN, ControllerMode.DOWN, BrokerMode.INTERRUPTED, ControllerMode.ABSENT)
    if down:
        return _wait(WaitReason.NODE_DOWN, *down)
    not_ready = _in_mode(s, BrokerMode.IN_TRANSITION, ControllerMode.IN_TRANSITION)
    return _wait(WaitReason.NODE_NOT_READY, *not_ready) if not_ready else None


def _disagreements(s: Situation, _: Terms) -> Decision | None:
    behind = [c.id for c in s.controllers if not c.is_caught_up]
    if behind or s.quorum in {QuorumState.UNKNOWN, QuorumState.ABSENT, QuorumState.NONE}:
        return _wait(WaitReason.CONTROLLERS_NOT_READY, *behind)
    if s.registration is not Registration.AGREES:
        return _wait(WaitReason.BROKERS_NOT_REGISTERED)
    if s.replication is not Replication.IN_SYNC:
        return _wait(WaitReason.PARTITIONS_NOT_IN_SYNC)
    return None


def _unfinished(s: Situation, terms: Terms) -> Decision | None:
    for broker in s.brokers:
        if broker.stage is not None and broker.stage is not STAGE_OF_MODE[broker.mode]:
            return _roll_broker(s, broker, _stage_to_finish(s, broker.stage))
    for controller in s.controllers:
        if controller.mode is ControllerMode.MIGRATING and controller.stage is NodeStage.KRAFT:
            return _finalize(s, terms, controller)
    return None


def _stage_to_finish(s: Situation, stage: NodeStage) -> NodeStage:
    """What the file says; but a hybrid broker that starts after the end gets metadata from nobody (proven-facts, section 4)."""
    return NodeStage.KRAFT if s.quorum is QuorumState.POST_MIGRATION else stage


def _brokers(s: Situation, _: Terms) -> Decision | None:
    in_zookeeper = [b for b in s.brokers if b.mode is BrokerMode.ZOOKEEPER]
    outside_kraft = [b for b in s.brokers if b.mode is not BrokerMode.KRAFT]
    if s.quorum is QuorumState.POST_MIGRATION:
        return _roll_broker(s, outside_kraft[0], NodeStage.KRAFT) if outside_kraft else None
    if in_zookeeper:
        if s.quorum is not QuorumState.PRE_MIGRATION or s.claim is not Claim.ZOOKEEPER:
            return _wait(WaitReason.STATE_NOT_UNDERSTOOD)
        in_order = sorted(in_zookeeper, key=lambda b: (b.is_zookeeper_controller, b.id))
        return _roll_broker(s, in_order[0], NodeStage.MIGRATION)
    return _roll_broker(s, outside_kraft[0], NodeStage.KRAFT) if outside_kraft else None


def _controllers(s: Situation, terms: Terms) -> Decision | None:
    migrating = [c for c in s.controllers if c.mode is ControllerMode.MIGRATING]
    if not migrating:
        return _wait(WaitReason.FINALIZATION_NOT_SEEN)
    if s.quorum is not QuorumState.POST_MIGRATION and terms.approval is not Approval.CONSUMED:
        if s.quorum is not QuorumState.MIGRATION:
            return _wait(WaitReason.STATE_NOT_UNDERSTOOD)
        if s.dual_write is not DualWrite.CURRENT:
            return _wait(WaitReason.DUAL_WRITE_NOT_CURRENT)
        if not terms.is_soak_over:
            return _wait(WaitReason.SOAK_NOT_OVER)
        if not terms.may_finalize:
            return Gate(name=GateName.FINALIZE, evidence_hash=terms.evidence_hash)
    return _finalize(s, terms, min(migrating, key=lambda c: (c.is_leader, c.id)))


def _roll_broker(s: Situation, broker: BrokerSituation, stage: NodeStage) -> Decision:
    not_there = _copy_not_there(s, stage)
    if not_there is not None:
        return not_there
    if stage is NodeStage.MIGRATION and s.is_copy_left_over:
        return _wait(WaitReason.COPY_LEFT_OVER)
    if stage is NodeStage.KRAFT and s.quorum is QuorumState.MIGRATION and s.dual_write is not DualWrite.CURRENT:
        return _wait(WaitReason.DUAL_WRITE_NOT_CURRENT)
    return _wait(WaitReason.PARTITIONS_WOULD_STOP, broker.id) if broker.is_needed else _roll(broker.id, stage)


def _copy_not_there(s: Situation, stage: NodeStage) -> Wait | None:
    """A broker that starts in KRaft mode before the copy is complete is rejected, and exits after a minute."""
    is_there = stage is not NodeStage.KRAFT or s.quorum in {QuorumState.MIGRATION, QuorumState.POST_MIGRATION}
    return None if is_there else _wait(WaitReason.COPY_NOT_COMPLETE)


def _roll(node_id: int, stage: NodeStage, gate: GateName | None = None) -> Step:
    return Step(action=StepAction.ROLL_NODE, node_id=node_id, stage=stage, gate=gate)


def _in_mode(s: Situation, *modes: BrokerMode | ControllerMode) -> list[int]:
    return [b.id for b in s.brokers if b.mode in modes] + [c.id for c in s.controllers if c.mode in modes]


def _finalize(s: Situation, terms: Terms, controller: ControllerSituation) -> Decision:
    """Only with every broker in KRaft mode, an approval or the fact itself, and a majority of the others caught up."""
    if any(b.mode is not BrokerMode.KRAFT for b in s.brokers) or s.quorum is QuorumState.PRE_MIGRATION:
        return _not_serving(s, terms) or _wait(WaitReason.STATE_NOT_UNDERSTOOD)
    if s.quorum is not QuorumState.POST_MIGRATION and not terms.may_finalize:
        return _wait(WaitReason.CONTROLLER_LOST_ITS_FLAG, controller.id)
    if not is_quorum_healthy_without(s, controller.id):
        return _wait(WaitReason.QUORUM_TOO_THIN, controller.id)
    return _roll(controller.id, NodeStage.KRAFT, None if s.quorum is QuorumState.POST_MIGRATION else GateName.FINALIZE)


def is_quorum_healthy_without(s: Situation, controller_id: int) -> bool:
    """A majority of all controllers runs and is caught up without this one. One controller alone never is: it is allowed."""
    others = [c for c in s.controllers if c.id != controller_id]
    running = {ControllerMode.MIGRATING, ControllerMode.FINAL}
    return not others or sum(c.is_caught_up and c.mode in running for c in others) >= len(s.controllers) // 2 + 1


STAGE_OF_MODE: dict[BrokerMode, NodeStage] = {
    BrokerMode.ZOOKEEPER: NodeStage.ZOOKEEPER,
    BrokerMode.HYBRID: NodeStage.MIGRATION,
    BrokerMode.KRAFT: NodeStage.KRAFT,
}
"""What the file of a running broker says when no roll is under way."""

_ORDER = (NodeStage.ZOOKEEPER, NodeStage.MIGRATION, NodeStage.KRAFT)


def _is_file_behind(broker: BrokerSituation) -> bool:
    """The file says less than the process runs: somebody put it back by hand."""
    running = STAGE_OF_MODE.get(broker.mode)
    return running is not None and broker.stage is not None and _ORDER.index(broker.stage) < _ORDER.index(running)


def _wait(reason: WaitReason, *node_ids: int) -> Wait:
    return Wait(reason=reason, objects=tuple(str(node_id) for node_id in node_ids))


RULES: tuple[Callable[[Situation, Terms], Decision | None], ...] = (
    _lost_flag,
    _held,
    _unknown,
    _changed_files,
    _missing_controllers,
    _interrupted,
    _not_serving,
    _disagreements,
    _done,
    _unfinished,
    _brokers,
    _controllers,
)
