"""The rules of the way to KRaft, in the order in which `decide` asks them. Each is small, and named by what it looks at."""

from collections.abc import Callable

from domain.decisions import Decision, Done, Gate, Revert, Step, Wait
from domain.health.canary_debt import CanaryDebt
from domain.waits import WaitReason
from domain.zk_to_kraft import guards
from domain.zk_to_kraft.conditions import GIVEN, Check, Compared, Terms
from domain.zk_to_kraft.guards import STAGE_OF_MODE, STAGE_ORDER, in_mode, is_edited, is_quorum_healthy_without, roll, wait
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.phases import Phase, are_brokers_begun, phase_of
from domain.zk_to_kraft.situation import (
    BrokerSituation,
    Claim,
    ControllerSituation,
    DualWrite,
    QuorumState,
    Registration,
    Replication,
    Situation,
)
from domain.zk_to_kraft.steps import GateName, NodeStage, StepAction
from domain.zk_to_kraft.waits import ZkWait


def _stale_copy(s: Situation, _: Terms) -> Decision | None:
    return Revert(reason=ZkWait.COPY_LEFT_OVER) if s.is_copy_stale and s.quorum is not QuorumState.POST_MIGRATION else None


def _failed_copy(s: Situation, terms: Terms) -> Decision | None:
    if not s.is_copy_failed or s.quorum is QuorumState.POST_MIGRATION:
        return None
    reason = ZkWait.COPY_CANNOT_FINISH
    return Revert(reason=reason) if terms.is_failed_copy_reverted else wait(reason)


def _lost_flag(s: Situation, terms: Terms) -> Decision | None:
    """Not while an approved finalisation is under way, which takes the flags one by one. A broker that is down, or silent, in
    the middle of it makes it wait, and nothing else: it comes back in KRaft mode."""
    is_meant = terms.has_begun_to_finalize and not any(_is_outside_kraft(b) for b in s.brokers)
    return None if is_meant else guards.lost_flag(s, terms)


def _is_outside_kraft(b: BrokerSituation) -> bool:
    is_elsewhere = b.stage in {NodeStage.ZOOKEEPER, NodeStage.MIGRATION} and b.mode is not BrokerMode.KRAFT
    return is_elsewhere or b.mode in {BrokerMode.ZOOKEEPER, BrokerMode.HYBRID}


def held(s: Situation, terms: Terms) -> Decision | None:
    """A hold does not stop the end half-way: it takes effect after it. If others began the end too early, a hold does not stop
    the migration either: nothing else leads such a cluster out."""
    is_in_section = (terms.is_committed or terms.has_begun_to_finalize) and phase_of(s) is not Phase.KRAFT
    return wait(WaitReason.HELD) if terms.is_held and not (is_in_section or _is_final_too_early(s)) else None


def _is_final_too_early(s: Situation) -> bool:
    return s.quorum is QuorumState.POST_MIGRATION and any(b.mode is not BrokerMode.KRAFT for b in s.brokers)


def _zookeeper_lost(s: Situation, terms: Terms) -> Decision | None:
    """ZooKeeper has long been silent, and all else is ready for the end: a person may decide that it is lost for good."""
    is_ready = (
        s.claim is Claim.UNKNOWN
        and s.quorum is QuorumState.MIGRATION
        and all(b.mode is BrokerMode.KRAFT and b.stage is NodeStage.KRAFT for b in s.brokers)
        and all(c.mode is ControllerMode.MIGRATING and c.is_caught_up for c in s.controllers)
        and s.registration is Registration.AGREES
        and s.replication is Replication.IN_SYNC
    )
    if not is_ready or not terms.is_silence_long or terms.is_held or terms.without_return in GIVEN:
        return None
    return Gate(name=GateName.FINALIZE_WITHOUT_RETURN, evidence_hash=terms.evidence_hash)


def _unknown(s: Situation, terms: Terms) -> Decision | None:
    """Where a person has given ZooKeeper up, its silence is no reason to wait any more."""
    is_given_up = terms.without_return in GIVEN and s.claim is Claim.UNKNOWN and s.quorum is QuorumState.MIGRATION
    if is_given_up and not in_mode(s, BrokerMode.UNKNOWN, ControllerMode.UNKNOWN) and s.replication is not Replication.UNKNOWN:
        return None
    return guards.unknown(s, terms)


def _half_reverted(s: Situation, _: Terms) -> Decision | None:
    """A way back stands half-done, and nobody leads it any more. Before the transaction it can be undone, afterwards not: a
    quorum that finds no `/migration` stays inactive for ever (proven-facts, section 5)."""
    fenced = guards.fenced(s)
    is_before_transaction = s.claim is Claim.KRAFT and s.has_migration_znode
    if fenced and (is_before_transaction or s.quorum is QuorumState.POST_MIGRATION):
        return Step(action=StepAction.START_NODE, node_id=fenced[0], stage=NodeStage.MIGRATION)
    gone = fenced or (in_mode(s, ControllerMode.ABSENT) if are_brokers_begun(s) else [])
    return wait(ZkWait.HALF_REVERTED, *gone) if gone else None


def _are_brokers_untouched(s: Situation) -> bool:
    return all(b.mode is BrokerMode.ZOOKEEPER and b.stage is NodeStage.ZOOKEEPER for b in s.brokers)


def _changed_files(s: Situation, _: Terms) -> Decision | None:
    """After an end too early the brokers' way out does not wait for a controller's file: the flag's line alone may be gone."""
    changed = [b.id for b in s.brokers if b.stage is None]
    if not _is_final_too_early(s):
        changed += [c.id for c in s.controllers if c.stage is None and c.mode is not ControllerMode.ABSENT]
    return wait(WaitReason.FILE_CHANGED, *changed) if changed else None


def _edited_files(s: Situation, _: Terms) -> Decision | None:
    """What somebody has edited is neither overwritten nor put into force by a restart of ours. A node that we have stopped does
    not wait for it, nor does the way out of an end too early for a file that says KRaft already."""
    is_wanted = NodeStage.KRAFT if _is_final_too_early(s) else None
    edited = [b.id for b in s.brokers if is_edited(b) and b.stage is not is_wanted]
    return wait(WaitReason.FILE_CHANGED, *edited) if edited else None


def _missing_controllers(s: Situation, _: Terms) -> Decision | None:
    """All of them in one step: none has served yet, so none can be missed."""
    missing = [c.id for c in s.controllers if c.mode is ControllerMode.ABSENT]
    is_begun = s.claim is not Claim.ZOOKEEPER or s.quorum is QuorumState.POST_MIGRATION
    if not missing or not _are_brokers_untouched(s) or is_begun:
        return None
    first, *others = missing
    return Step(action=StepAction.PROVISION_CONTROLLER, node_id=first, stage=NodeStage.MIGRATION, companions=tuple(others))


def _interrupted(s: Situation, terms: Terms) -> Decision | None:
    for broker in s.brokers:
        if broker.mode is BrokerMode.INTERRUPTED and broker.stage in {NodeStage.MIGRATION, NodeStage.KRAFT}:
            stage = _stage_to_finish(s, broker)
            return _copy_not_there(s, stage) or _copy_left_over(s, stage) or roll(broker.id, stage)
    for controller in s.controllers:
        if controller.mode is ControllerMode.INTERRUPTED and controller.stage is NodeStage.MIGRATION:
            action = StepAction.START_NODE if controller.is_startable else StepAction.PROVISION_CONTROLLER
            return Step(action=action, node_id=controller.id, stage=NodeStage.MIGRATION)
        if controller.mode is ControllerMode.INTERRUPTED and controller.stage is NodeStage.KRAFT:
            return _finalize(s, terms, controller)
    return None


def _done(s: Situation, terms: Terms) -> Decision | None:
    """The comparison is tried once, and blocks nothing: nothing can be undone any more, whatever it finds."""
    if phase_of(s) is not Phase.KRAFT:
        return None
    left = guards.remove_canaries(s, NodeStage.KRAFT) or guards.release(s, NodeStage.KRAFT)
    compare = Step(action=StepAction.COMPARE_END, stage=NodeStage.KRAFT) if terms.end.is_due else None
    return left or compare or Done(outcome=Phase.KRAFT)


def _configuration_runs(s: Situation, terms: Terms) -> Decision | None:
    """What was paused runs again: no node restarts from a file that may be written back. Not in the middle of the end."""
    is_ending = terms.has_begun_to_finalize or s.quorum is QuorumState.POST_MIGRATION
    return wait(WaitReason.CONFIGURATION_RUNS, *s.running_again) if s.running_again and not is_ending else None


def _unfinished(s: Situation, terms: Terms) -> Decision | None:
    for broker in s.brokers:
        if broker.stage is not None and broker.stage is not STAGE_OF_MODE[broker.mode]:
            return _roll_broker(s, terms, broker, _stage_to_finish(s, broker))
    are_brokers_there = all(b.mode is BrokerMode.KRAFT for b in s.brokers)
    for controller in s.controllers if are_brokers_there else ():
        is_ahead = controller.mode is ControllerMode.MIGRATING and controller.stage is NodeStage.KRAFT
        # Its flag was being given back when the log became final: the file would be a lie.
        is_behind = controller.mode is ControllerMode.FINAL and controller.stage is NodeStage.MIGRATION
        if is_ahead or (is_behind and s.quorum is QuorumState.POST_MIGRATION):
            return _finalize(s, terms, controller)
    return None


def _canaries(s: Situation, terms: Terms) -> Decision | None:
    """Before another broker restarts, and before the end: whether clients can still do at this one what they do.

    Only while somebody leads who writes down what is asked of him: ZooKeeper's controller, or a quorum in dual write. Never
    right before or during the copy, nor before that is compared: nothing may come or go there because of us.
    """
    due = [b for b in s.brokers if b.canaries is CanaryDebt.DUE]
    if not due or terms.has_begun_to_finalize:
        return None
    if any(b.mode is BrokerMode.ZOOKEEPER for b in s.brokers):
        is_led = s.claim is Claim.ZOOKEEPER and s.quorum is QuorumState.PRE_MIGRATION
    else:
        is_led = s.quorum is QuorumState.MIGRATION and s.dual_write is DualWrite.CURRENT and not _is_copy_open(s, terms)
    return Step(action=StepAction.TRY_CANARIES, node_id=due[0].id, stage=STAGE_OF_MODE[due[0].mode]) if is_led else None


def _is_copy_open(s: Situation, terms: Terms) -> bool:
    """Kafka's copy has still to be compared: no broker is in KRaft mode yet."""
    is_first = all(b.mode is not BrokerMode.KRAFT for b in s.brokers)
    return is_first and _not_clean(terms.copy, StepAction.COMPARE_COPY) is not None


def _stage_to_finish(s: Situation, broker: BrokerSituation) -> NodeStage:
    """What the file says, or the process runs, whichever is further: a way back that nobody leads any more is not gone on with.

    A hybrid broker that starts after the end gets metadata from nobody (proven-facts, section 4).
    """
    if s.quorum is QuorumState.POST_MIGRATION:
        return NodeStage.KRAFT
    stages = {broker.stage or NodeStage.ZOOKEEPER, STAGE_OF_MODE.get(broker.mode, NodeStage.ZOOKEEPER)}
    return max(stages, key=STAGE_ORDER.index)


def _brokers(s: Situation, terms: Terms) -> Decision | None:
    in_zookeeper = [b for b in s.brokers if b.mode is BrokerMode.ZOOKEEPER]
    outside_kraft = [b for b in s.brokers if b.mode is not BrokerMode.KRAFT]
    if s.quorum is QuorumState.POST_MIGRATION:
        spareable = [b for b in outside_kraft if not b.is_needed] or outside_kraft
        return _roll_broker(s, terms, spareable[0], NodeStage.KRAFT) if spareable else None
    if in_zookeeper:
        if s.quorum is not QuorumState.PRE_MIGRATION or s.claim is not Claim.ZOOKEEPER:
            return wait(WaitReason.STATE_NOT_UNDERSTOOD)
        first = _roll_broker(s, terms, guards.zookeeper_controller_last(in_zookeeper)[0], NodeStage.MIGRATION)
        return (_not_kept(s, terms) if _is_roll(first) else None) or first
    if not outside_kraft:
        return None
    first = _roll_broker(s, terms, outside_kraft[0], NodeStage.KRAFT)
    return (_not_verified(s, terms, first) if len(outside_kraft) == len(s.brokers) else None) or first


def _not_verified(s: Situation, terms: Terms, first: Decision) -> Decision | None:
    """The copy is compared as soon as it is there; while it does not come, what was kept for it is kept anew."""
    reason = first.reason if isinstance(first, Wait) else None
    if reason == ZkWait.COPY_NOT_COMPLETE and s.claim is Claim.ZOOKEEPER and terms.kept.is_due:
        return _not_clean(terms.kept, StepAction.KEEP_METADATA)
    may_look = _is_roll(first) or reason == WaitReason.PARTITIONS_WOULD_STOP
    return _not_clean(terms.copy, StepAction.COMPARE_COPY, ZkWait.COPY_DIFFERS) if may_look else None


def _is_roll(decision: Decision) -> bool:
    return isinstance(decision, Step) and decision.action == StepAction.ROLL_NODE


def _not_kept(s: Situation, terms: Terms) -> Decision | None:
    """Clients' data as it is before any restart; and what ZooKeeper has as late as can be: the last broker's registration
    starts the copy.
    """
    if _are_brokers_untouched(s) and (lacking := _not_clean(terms.baseline, StepAction.CAPTURE_BASELINE)) is not None:
        return lacking
    is_last = sum(b.mode is BrokerMode.ZOOKEEPER for b in s.brokers) == 1
    return _not_clean(terms.kept, StepAction.KEEP_METADATA) if is_last else None


def _controllers(s: Situation, terms: Terms) -> Decision | None:
    migrating = [c for c in s.controllers if c.mode is ControllerMode.MIGRATING]
    if not migrating:
        return wait(ZkWait.FINALIZATION_NOT_SEEN)
    if s.quorum is not QuorumState.POST_MIGRATION and not terms.has_begun_to_finalize:
        if s.quorum is not QuorumState.MIGRATION:
            return wait(WaitReason.STATE_NOT_UNDERSTOOD)
        is_given_up = terms.without_return in GIVEN and s.claim is Claim.UNKNOWN
        behind = None if is_given_up else guards.dual_write_not_current(s, terms)
        if behind is not None:
            return behind
        if not terms.is_soak_over:
            return wait(WaitReason.SOAK_NOT_OVER)
        if not is_given_up:
            gate = Gate(name=GateName.FINALIZE, evidence_hash=terms.evidence_hash)
            not_yet = _not_compared(terms) or (gate if terms.approval not in GIVEN else None)
            if not_yet is not None:
                return not_yet
    return _finalize(s, terms, min(migrating, key=lambda c: (c.is_leader, c.id)))


def _not_compared(terms: Terms) -> Decision | None:
    """Beyond the end nothing can be compared with ZooKeeper any more. So right before it both sides have been, and agree; and
    clients' data has been looked at, and is what it was. What the copy is known to have lost is lost until somebody mends it.
    """
    metadata = Check(terms.compared, terms.is_check_due, terms.is_checker_missing)
    if terms.copy.found is Compared.DRIFT:
        return _not_clean(terms.copy, StepAction.COMPARE_COPY, ZkWait.COPY_DIFFERS)
    differs = _not_clean(metadata, StepAction.COMPARE_METADATA, ZkWait.DRIFT_FOUND)
    return differs or _not_clean(terms.messages, StepAction.COMPARE_MESSAGES, WaitReason.MESSAGES_DIFFER)


def _not_clean(check: Check, action: StepAction, of_drift: str = WaitReason.CHECK_INCONCLUSIVE) -> Decision | None:
    if check.is_due or (check.found is Compared.NONE and not check.is_missing):
        return Step(action=action, stage=NodeStage.MIGRATION)
    if check.is_missing:
        return wait(WaitReason.CHECKS_WORKER_MISSING)
    if check.found is Compared.CLEAN:
        return None
    return wait(of_drift if check.found is Compared.DRIFT else WaitReason.CHECK_INCONCLUSIVE)


def _roll_broker(s: Situation, terms: Terms, broker: BrokerSituation, stage: NodeStage) -> Decision:
    not_there = _copy_not_there(s, stage) or _copy_left_over(s, stage)
    if not_there is not None:
        return not_there
    if stage is NodeStage.KRAFT and s.quorum is QuorumState.MIGRATION and s.dual_write is not DualWrite.CURRENT:
        return guards.dual_write_not_current(s, terms) or wait(ZkWait.DUAL_WRITE_NOT_CURRENT)
    return wait(WaitReason.PARTITIONS_WOULD_STOP, broker.id) if broker.is_needed else roll(broker.id, stage)


def _copy_not_there(s: Situation, stage: NodeStage) -> Wait | None:
    """A broker that starts in KRaft mode before the copy is complete is rejected, and exits after a minute."""
    is_there = stage is not NodeStage.KRAFT or s.quorum in {QuorumState.MIGRATION, QuorumState.POST_MIGRATION}
    return None if is_there else wait(ZkWait.COPY_NOT_COMPLETE)


def _copy_left_over(s: Situation, stage: NodeStage) -> Wait | None:
    """With the last hybrid broker's registration it would begin to count; once the log has a copy of its own it does not."""
    is_left_over = stage is NodeStage.MIGRATION and s.is_copy_left_over and s.quorum is not QuorumState.MIGRATION
    return wait(ZkWait.COPY_LEFT_OVER) if is_left_over else None


def _finalize(s: Situation, terms: Terms, controller: ControllerSituation) -> Decision:
    """Only with every broker in KRaft mode, an approval or the fact itself, and a majority of the others caught up.

    One that is stopped already makes no quorum thinner by starting.
    """
    if any(b.mode is not BrokerMode.KRAFT for b in s.brokers) or s.quorum is QuorumState.PRE_MIGRATION:
        return guards.not_serving(s, terms) or wait(WaitReason.STATE_NOT_UNDERSTOOD)
    if s.quorum is not QuorumState.POST_MIGRATION and not terms.may_finalize:
        return wait(ZkWait.CONTROLLER_LOST_ITS_FLAG, controller.id)
    if controller.mode is not ControllerMode.INTERRUPTED and not is_quorum_healthy_without(s, controller.id):
        return wait(WaitReason.QUORUM_TOO_THIN, controller.id)
    return roll(controller.id, NodeStage.KRAFT, _gate_of_end(s, terms))


def _gate_of_end(s: Situation, terms: Terms) -> GateName | None:
    if s.quorum is QuorumState.POST_MIGRATION:
        return None
    return GateName.FINALIZE if terms.approval in GIVEN else GateName.FINALIZE_WITHOUT_RETURN


RULES: tuple[Callable[[Situation, Terms], Decision | None], ...] = (
    _stale_copy,
    _failed_copy,
    _lost_flag,
    held,
    _zookeeper_lost,
    _unknown,
    _half_reverted,
    _changed_files,
    _interrupted,
    _edited_files,
    _missing_controllers,
    guards.not_serving,
    guards.disagreements,
    guards.topics_without_id,
    _done,
    _configuration_runs,
    _unfinished,
    _canaries,
    _brokers,
    _controllers,
)
