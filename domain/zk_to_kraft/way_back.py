"""The rules of the way back to ZooKeeper, in the order in which `decide` asks them.

What their order guarantees: the quorum lives, with every flag, as long as a broker runs in KRaft mode; it is dead and fenced
before any broker leaves hybrid mode, because the last registration starts the copy; `/controller` is ZooKeeper's again before
any file is restored; and what the quorum left is wiped last, so that another migration can begin.
Sources: Kafka's migration guide, "Reverting to ZooKeeper mode"; proven-facts, sections 4 and 5; KAFKA-20488; Strimzi 11262.
"""

from collections.abc import Callable, Sequence

from domain.decisions import Decision, Done, Step
from domain.waits import WaitReason
from domain.zk_to_kraft import guards
from domain.zk_to_kraft.conditions import Terms
from domain.zk_to_kraft.guards import ahead, in_mode, is_back, is_quorum_over, roll, wait
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.situation import (
    BrokerSituation,
    Claim,
    ControllerSituation,
    QuorumState,
    Registration,
    Replication,
    Situation,
)
from domain.zk_to_kraft.steps import NodeStage, StepAction
from domain.zk_to_kraft.waits import ZkWait

OUTCOME = "ZOOKEEPER"
"""How a migration that went back is said to have ended."""


def _emergency(s: Situation, _: Terms) -> Decision | None:
    """No controller in the cluster, or one that is about to delete metadata: neither a person's hold nor a file matters now."""
    return _leave_kraft() if guards.is_emergency(s) else None


def _lost_flag(s: Situation, terms: Terms) -> Decision | None:
    """Whatever was approved: on the way back every flag comes back first, as long as the quorum may have to live once more."""
    return guards.lost_flag(s, terms) if guards.is_quorum_needed(s) else None


def held(s: Situation, terms: Terms) -> Decision | None:
    """Not while the cluster has no controller: that is no place to rest."""
    return wait(WaitReason.HELD) if terms.is_held and (s.claim is Claim.ZOOKEEPER or _is_quorum_alive(s)) else None


def _unknown(s: Situation, _: Terms) -> Decision | None:
    """As on the way forward; but what Kafka says of replicas matters only where a broker restarts."""
    nodes = in_mode(s, BrokerMode.UNKNOWN, ControllerMode.UNKNOWN)
    return wait(WaitReason.PART_UNKNOWN, *nodes) if nodes or s.claim is Claim.UNKNOWN else None


def _quorum_for_kraft_brokers(s: Situation, _: Terms) -> Decision | None:
    due = guards.controllers_to_start(s)
    return Step(action=StepAction.START_NODE, node_id=due[0].id, stage=NodeStage.MIGRATION) if due else None


def _files(s: Situation, terms: Terms) -> Decision | None:
    """Nothing is lost that nobody has accepted. Asked before the first restart, and again for what was edited since."""
    losing = [b.id for b in s.brokers if b.id in terms.unaccepted and not is_back(b)]
    losing += [c.id for c in s.controllers if c.id in terms.unaccepted and c.mode is not ControllerMode.ABSENT]
    is_quorum_dead = not _is_quorum_alive(s) and not is_quorum_over(s)
    is_window_open = s.claim is not Claim.ZOOKEEPER and is_quorum_dead and not ahead(s)
    return wait(WaitReason.FILE_CHANGED, *losing) if losing and not is_window_open else None


def _to_hybrid(s: Situation, _: Terms) -> Decision | None:
    """Roll A: every KRaft broker back to hybrid mode, with the flag kept. What is stopped is finished first, and what does
    not run in KRaft mode at all is not waited for: that may be why somebody goes back."""
    needing = ahead(s)
    if not needing:
        return None
    interrupted = [b for b in s.brokers if b.mode is BrokerMode.INTERRUPTED]
    if interrupted:
        return roll(interrupted[0].id, NodeStage.MIGRATION)
    if s.quorum is QuorumState.NONE:
        return wait(ZkWait.QUORUM_CANNOT_MIGRATE)
    if not guards.has_majority(s) or s.quorum is not QuorumState.MIGRATION:
        return wait(WaitReason.CONTROLLERS_NOT_READY)
    down = [b for b in needing if b.mode is BrokerMode.DOWN]
    if down:
        return roll(down[0].id, NodeStage.MIGRATION)
    guard = _not_serving(s, s.nodes)
    if guard is not None:
        return guard
    if s.registration is not Registration.AGREES:
        return wait(WaitReason.BROKERS_NOT_REGISTERED)
    return _restart(needing[0], NodeStage.MIGRATION)


def _window(s: Situation, terms: Terms) -> Decision | None:
    """The revert window: until no controller can start, `/migration` is gone and `/controller` ZooKeeper's.

    Before it kills anybody it asks; what it has begun it ends.
    """
    if is_quorum_over(s) and s.claim is Claim.ZOOKEEPER:
        return None
    if is_quorum_over(s) and s.claim is Claim.NOBODY:
        return wait(ZkWait.NO_CONTROLLER) if guards.is_any_broker_alive(s) else None
    is_begun = bool(in_mode(s, ControllerMode.FENCED))
    return (None if is_begun else _not_ready_for_window(s, terms)) or _leave_kraft()


def _not_ready_for_window(s: Situation, terms: Terms) -> Decision | None:
    """A quorum that says nothing of its log may have ended the migration, and one in an election has not flushed it.

    Dual write that has died is cured before, unless nothing but the window could: it starts the quorum again to flush.
    """
    is_electing = s.quorum is QuorumState.ABSENT and s.claim is not Claim.ZOOKEEPER and _does_majority_run(s)
    if is_electing or s.quorum is QuorumState.UNKNOWN:
        return wait(WaitReason.CONTROLLERS_NOT_READY)
    not_ready = in_mode(s, BrokerMode.IN_TRANSITION) if _is_quorum_alive(s) else []
    if not_ready:
        return wait(WaitReason.NODE_NOT_READY, *not_ready)
    if s.is_copy_gone and not terms.accepts_metadata_loss:
        return wait(ZkWait.QUORUM_CANNOT_MIGRATE)
    if s.claim is not Claim.ZOOKEEPER and (lacking := _topics_without_id(s, terms)) is not None:
        return lacking
    if s.quorum is QuorumState.MIGRATION and not (terms.accepts_metadata_loss or s.is_mended_by_window):
        return guards.dual_write_not_current(s, terms)
    return None


def _topics_without_id(s: Situation, terms: Terms) -> Decision | None:
    """Before an election of ours. One that is under way is no place to rest."""
    return wait(ZkWait.TOPIC_WITHOUT_ID) if s.lacks_topic_ids and not terms.accepts_new_topic_ids else None


def _to_zookeeper(s: Situation, terms: Terms) -> Decision | None:
    """Roll B: off the flag, with the archived bytes. The ZooKeeper controller goes last, and who is down comes first: what it
    would start from now needs a quorum that is gone."""
    outside = [b for b in s.brokers if not is_back(b)]
    if not outside:
        return None
    stopped = [b for b in outside if b.mode is BrokerMode.INTERRUPTED]
    stopped += [b for b in outside if b.mode is BrokerMode.DOWN and b.stage is not NodeStage.ZOOKEEPER]
    if stopped:
        return roll(stopped[0].id, NodeStage.ZOOKEEPER)
    guard = _brokers_not_serving(s) or _topics_without_id(s, terms)
    return guard or _restart(guards.zookeeper_controller_last(outside)[0], NodeStage.ZOOKEEPER)


def _wipe(s: Situation, _: Terms) -> Decision | None:
    return Step(action=StepAction.WIPE, stage=NodeStage.ZOOKEEPER) if guards.has_remains(s) else None


def _canaries(s: Situation, _: Terms) -> Decision | None:
    """What the way forward had made to try the clients' ways is removed at the end: nothing on the way back waits for it."""
    removal = guards.remove_canaries(s, NodeStage.ZOOKEEPER)
    return (_brokers_not_serving(s) or removal) if removal is not None else None


def _done(s: Situation, _: Terms) -> Decision | None:
    return _brokers_not_serving(s) or guards.release(s, NodeStage.ZOOKEEPER) or Done(outcome=OUTCOME)


def _does_majority_run(s: Situation) -> bool:
    return 2 * sum(c.mode in guards.RUNNING_CONTROLLER for c in s.controllers) > len(s.controllers)


def _is_quorum_alive(s: Situation) -> bool:
    return s.quorum in {QuorumState.NONE, QuorumState.PRE_MIGRATION, QuorumState.MIGRATION, QuorumState.UNKNOWN}


def _brokers_not_serving(s: Situation) -> Decision | None:
    """Once the quorum is gone for good its controllers are not waited for any more."""
    return _not_serving(s, s.brokers)


def _not_serving(s: Situation, nodes: Sequence[BrokerSituation | ControllerSituation]) -> Decision | None:
    """As words the modes of brokers and controllers are the same."""
    down = [node.id for node in nodes if node.mode in {BrokerMode.DOWN, BrokerMode.INTERRUPTED}]
    if down:
        return wait(WaitReason.NODE_DOWN, *down)
    not_ready = [node.id for node in nodes if node.mode == BrokerMode.IN_TRANSITION]
    if not_ready:
        return wait(WaitReason.NODE_NOT_READY, *not_ready)
    if s.replication is Replication.UNKNOWN:
        return wait(WaitReason.PART_UNKNOWN)
    return guards.not_in_sync(s)


def _restart(broker: BrokerSituation, stage: NodeStage) -> Decision:
    return wait(WaitReason.PARTITIONS_WOULD_STOP, broker.id) if broker.is_needed else roll(broker.id, stage)


def _leave_kraft() -> Step:
    return Step(action=StepAction.LEAVE_KRAFT, stage=NodeStage.ZOOKEEPER)


RULES: tuple[Callable[[Situation, Terms], Decision | None], ...] = (
    _emergency,
    _lost_flag,
    held,
    _unknown,
    _quorum_for_kraft_brokers,
    _files,
    _to_hybrid,
    _window,
    _to_zookeeper,
    _wipe,
    _canaries,
    _done,
)
