"""What both ways ask before they act: rules (a decision, or `None` where they have nothing to say), and predicates."""

from domain.decisions import Decision, Gate, Intent, Step, Wait
from domain.health.canary_debt import CanaryDebt
from domain.waits import WaitReason
from domain.zk_to_kraft.conditions import GIVEN, Terms
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
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

DOWN = (BrokerMode.DOWN, BrokerMode.INTERRUPTED, ControllerMode.DOWN, ControllerMode.FENCED)
"""Modes of a node that ran once and does not."""

RUNNING_CONTROLLER = frozenset({ControllerMode.MIGRATING, ControllerMode.FINAL, ControllerMode.IN_TRANSITION})

STAGE_OF_MODE: dict[BrokerMode, NodeStage] = {
    BrokerMode.ZOOKEEPER: NodeStage.ZOOKEEPER,
    BrokerMode.HYBRID: NodeStage.MIGRATION,
    BrokerMode.KRAFT: NodeStage.KRAFT,
}
"""What the file of a running broker says when no roll is under way."""

STAGE_ORDER = (NodeStage.ZOOKEEPER, NodeStage.MIGRATION, NodeStage.KRAFT)


def is_edited(broker: BrokerSituation) -> bool:
    """Whether its file would start it in another mode than it runs in, and no roll of ours has written it: an edit by others
    waits for the next restart."""
    runs = STAGE_OF_MODE.get(broker.mode)
    return runs is not None and broker.stage not in {None, runs} and not broker.is_file_ours


def lost_flag(s: Situation, terms: Terms) -> Decision | None:
    """The highest alarm: one election makes it final. The flag comes back before anything else happens, running ones first.

    Nothing is awaited for it, not even a majority: what could be lost is the way back. Whoever does not answer comes last.
    """
    if s.quorum is QuorumState.POST_MIGRATION:
        return None
    lost = [c for c in s.controllers if may_finalize_by_itself(c, s.claim)]
    known = [c for c in lost if c.mode is not ControllerMode.UNKNOWN]
    if known:
        return roll(min(known, key=lambda c: (not is_running_final(c), c.is_leader, c.id)).id, NodeStage.MIGRATION)
    return wait(ZkWait.CONTROLLER_LOST_ITS_FLAG, *(c.id for c in lost)) if lost else None


def may_finalize_by_itself(c: ControllerSituation, claim: Claim) -> bool:
    """Its process runs without the flag, or would after its next restart.

    A fenced one may be started once more, by us too, as long as KRaft has the claim: to flush, or to undo the window.
    """
    if c.mode is ControllerMode.ABSENT or (c.mode is ControllerMode.FENCED and claim is not Claim.KRAFT):
        return False
    return is_running_final(c) or c.stage is NodeStage.KRAFT or not c.is_flag_in_file


def is_running_final(c: ControllerSituation) -> bool:
    return c.mode is ControllerMode.FINAL


def unknown(s: Situation, _: Terms) -> Decision | None:
    """Unknown is never healthy. Without a quorum nobody but ZooKeeper knows; after the end nobody needs ZooKeeper."""
    nodes = in_mode(s, BrokerMode.UNKNOWN, ControllerMode.UNKNOWN)
    is_zookeeper_needed = s.quorum is not QuorumState.POST_MIGRATION
    if nodes or s.replication is Replication.UNKNOWN or (s.claim is Claim.UNKNOWN and is_zookeeper_needed):
        return wait(WaitReason.PART_UNKNOWN, *nodes)
    return None


def not_serving(s: Situation, _: Terms) -> Decision | None:
    down = in_mode(s, *DOWN) or in_mode(s, ControllerMode.ABSENT)
    if down:
        return wait(WaitReason.NODE_DOWN, *down)
    not_ready = in_mode(s, BrokerMode.IN_TRANSITION, ControllerMode.IN_TRANSITION)
    return wait(WaitReason.NODE_NOT_READY, *not_ready) if not_ready else None


def disagreements(s: Situation, _: Terms) -> Decision | None:
    """Registrations and replicas. After an early end a hybrid broker that restarts gets no metadata from anybody: then only
    going on mends what differs, and `is_needed` alone guards (proven-facts, section 4)."""
    if s.quorum is QuorumState.NONE:
        return wait(ZkWait.QUORUM_CANNOT_MIGRATE)
    behind = [c.id for c in s.controllers if not c.is_caught_up]
    if behind or s.quorum in {QuorumState.UNKNOWN, QuorumState.ABSENT}:
        return wait(WaitReason.CONTROLLERS_NOT_READY, *behind)
    if s.quorum is QuorumState.POST_MIGRATION and any(b.mode is not BrokerMode.KRAFT for b in s.brokers):
        return None
    if s.registration is not Registration.AGREES:
        return wait(WaitReason.BROKERS_NOT_REGISTERED)
    return not_in_sync(s)


def topics_without_id(s: Situation, terms: Terms) -> Decision | None:
    """Before anything restarts, and before the end is approved: each may elect a controller that makes up an id. Once the end
    has begun, no node asks ZooKeeper any more."""
    is_ending = terms.has_begun_to_finalize or s.quorum is QuorumState.POST_MIGRATION
    return wait(ZkWait.TOPIC_WITHOUT_ID) if s.lacks_topic_ids and not is_ending else None


def not_in_sync(s: Situation) -> Decision | None:
    return None if s.replication is Replication.IN_SYNC else wait(WaitReason.PARTITIONS_NOT_IN_SYNC)


def dual_write_not_current(s: Situation, terms: Terms) -> Decision | None:
    """Dual write that has died is cured by a failover, where somebody has allowed it and it would not make things worse.

    Whoever asks for the way back, and accepts no loss, has allowed it.
    """
    if s.dual_write is DualWrite.CURRENT:
        return None
    leader = next((c for c in s.controllers if c.is_leader), None)
    if s.dual_write is not DualWrite.DEAD or leader is None:
        return wait(ZkWait.DUAL_WRITE_NOT_CURRENT)
    if s.is_failover_harmful:
        return wait(ZkWait.FAILOVER_WOULD_HURT, leader.id)
    if not is_quorum_healthy_without(s, leader.id):
        return wait(WaitReason.QUORUM_TOO_THIN, leader.id)
    is_asked = terms.intent is Intent.FORWARD and not terms.may_fail_over
    if is_asked and terms.failover not in GIVEN:
        return Gate(name=GateName.FAIL_OVER, evidence_hash=terms.evidence_hash)
    gate = GateName.FAIL_OVER if is_asked else None
    return Step(action=StepAction.FAIL_OVER, node_id=leader.id, stage=NodeStage.MIGRATION, gate=gate)


def is_quorum_healthy_without(s: Situation, controller_id: int) -> bool:
    """A majority of all controllers runs and is caught up without this one. One controller alone never is: it is allowed."""
    others = [c for c in s.controllers if c.id != controller_id]
    running = {ControllerMode.MIGRATING, ControllerMode.FINAL}
    return not others or sum(c.is_caught_up and c.mode in running for c in others) >= len(s.controllers) // 2 + 1


def remove_canaries(s: Situation, stage: NodeStage) -> Step | None:
    """Nothing that was made to try clients' ways is forgotten at the end of either way."""
    due = [b.id for b in s.brokers if b.canaries is not CanaryDebt.NONE]
    return Step(action=StepAction.REMOVE_CANARIES, node_id=due[0], stage=stage) if due else None


def release(s: Situation, stage: NodeStage) -> Step | None:
    """The last step of both ways: nobody writes our files back before all is done."""
    return Step(action=StepAction.RELEASE_CONFIGURATION, stage=stage) if s.is_release_due else None


def fenced(s: Situation) -> list[int]:
    """Controllers that the revert window has begun with, also those that it has not killed yet."""
    return [
        c.id for c in s.controllers if c.mode is ControllerMode.FENCED or (c.mode in RUNNING_CONTROLLER and not c.is_startable)
    ]


def ahead(s: Situation) -> list[BrokerSituation]:
    """Brokers that run in KRaft mode, or would from their file: on the way back they need the quorum until they are in hybrid
    mode again.

    A file alone counts only where a quorum leads that has a copy: from any other a KRaft broker cannot serve.
    """
    is_led_by_zookeeper = s.claim is Claim.ZOOKEEPER or (s.claim is Claim.NOBODY and not s.has_migration_znode)
    is_copied = s.quorum not in {QuorumState.PRE_MIGRATION, QuorumState.NONE} and not is_led_by_zookeeper
    return [b for b in s.brokers if b.mode is BrokerMode.KRAFT or (b.stage is NodeStage.KRAFT and is_copied)]


def is_emergency(s: Situation) -> bool:
    """No controller in the cluster, or one that is about to delete metadata."""
    return (s.is_copy_stale or s.is_copy_failed) and not ahead(s)


def is_quorum_needed(s: Situation) -> bool:
    """A quorum that has copied nothing, or that ZooKeeper has taken over from, is not: the window is its end."""
    is_over = s.quorum is QuorumState.PRE_MIGRATION or s.claim in {Claim.ZOOKEEPER, Claim.NOBODY}
    return bool(ahead(s)) or s.quorum is QuorumState.MIGRATION or not is_over


def is_quorum_over(s: Situation) -> bool:
    """No controller takes part in it any more, whoever tries to start one. What was never formatted needs no fence."""
    unable = {ControllerMode.INTERRUPTED, ControllerMode.DOWN}
    stopped = {ControllerMode.FENCED, ControllerMode.ABSENT}
    is_stopped = (c.mode in stopped or (c.mode in unable and not c.is_startable) for c in s.controllers)
    return all(is_stopped) and not s.has_migration_znode


def has_majority(s: Situation) -> bool:
    return 2 * sum(c.is_caught_up for c in s.controllers) > len(s.controllers)


def controllers_to_start(s: Situation) -> list[ControllerSituation]:
    """Brokers in KRaft mode need the quorum, to serve and to come back. A majority of them is enough."""
    modes = {ControllerMode.INTERRUPTED} if has_majority(s) else {ControllerMode.INTERRUPTED, ControllerMode.DOWN}
    stopped = [c for c in s.controllers if c.mode in modes and c.is_startable]
    return [c for c in s.controllers if c.id in fenced(s)] + stopped if ahead(s) else []


def is_any_broker_alive(s: Situation) -> bool:
    return any(b.mode not in {BrokerMode.DOWN, BrokerMode.INTERRUPTED} for b in s.brokers)


def is_back(broker: BrokerSituation) -> bool:
    return broker.mode is BrokerMode.ZOOKEEPER and broker.stage is NodeStage.ZOOKEEPER


def has_remains(s: Situation) -> bool:
    """Storage of controllers, or copies of the quorum's log."""
    return any(c.mode is not ControllerMode.ABSENT for c in s.controllers) or any(b.has_metadata_log for b in s.brokers)


def zookeeper_controller_last(brokers: list[BrokerSituation]) -> list[BrokerSituation]:
    return sorted(brokers, key=lambda b: (b.is_zookeeper_controller, b.id))


def roll(node_id: int, stage: NodeStage, gate: GateName | None = None) -> Step:
    return Step(action=StepAction.ROLL_NODE, node_id=node_id, stage=stage, gate=gate)


def wait(reason: str, *node_ids: int) -> Wait:
    return Wait(reason=reason, objects=tuple(str(node_id) for node_id in node_ids))


def in_mode(s: Situation, *modes: BrokerMode | ControllerMode) -> list[int]:
    return [b.id for b in s.brokers if b.mode in modes] + [c.id for c in s.controllers if c.mode in modes]
