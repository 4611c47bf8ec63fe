"""What hands do in the model: our steps, effect by effect; people's answers to gates and waits; and hostile moves."""

from collections.abc import Callable, Iterator

from domain.decisions import Decision, Gate, Intent, Step, Wait
from domain.waits import WaitReason
from domain.zk_to_kraft.conditions import Approval, Compared
from domain.zk_to_kraft.situation import Claim, QuorumState
from domain.zk_to_kraft.steps import GateName, NodeStage, StepAction
from domain.zk_to_kraft.waits import ZkWait
from tests.unit.model.moves import Move, hurt, leaderless, started, stopped
from tests.unit.model.world import (
    FIRST_CONTROLLER,
    Broker,
    Checker,
    Controller,
    Driver,
    State,
    Znode,
    replace,
    situation_of_model,
)

Effect = Callable[[State, Step], State | None]
"""One effect of a step. `None`: its precondition does not hold any more, and the step ends there."""


def next_effect(state: State) -> State:
    """The step in hand goes on by one effect: its worker looks at nothing else in between."""
    assert state.in_hand is not None
    step, done = state.in_hand
    effects = [(effect, part) for effect in EFFECTS[step.action] for part in _parts(step)]
    effect, part = effects[done]
    after = effect(state, part)
    if after is None:
        return replace(state, in_hand=None)
    return replace(after, in_hand=(step, done + 1) if done + 1 < len(effects) else None)


def _parts(step: Step) -> list[Step]:
    """Of a step with companions each node's part; each effect is made for all of them before the next one."""
    if not step.companions:
        return [step]
    return [step.model_copy(update={"node_id": node_id, "companions": ()}) for node_id in step.nodes]


def carried_out(state: State, step: Step) -> State:
    """The whole step, with nothing in between."""
    state = replace(state, in_hand=(step, 0))
    while state.in_hand is not None:
        state = next_effect(state)
    return state


def _consume(state: State, step: Step) -> State | None:
    """Right before it the worker has looked once more, at the newest report too."""
    if step.node < FIRST_CONTROLLER and state.brokers[step.node - 1].is_claimant:
        state = _elected(state)
    if step.gate is None:
        return state
    is_proven = state.compared is Compared.CLEAN and not state.is_old
    if step.gate == GateName.FINALIZE and not is_proven and not state.is_consumed:
        state = hurt(state, "finalised without a clean report")
    return replace(state, is_consumed=True, approval=Approval.NONE)


def _write(state: State, step: Step) -> State | None:
    """The mark first, then the file: a process that ends from now on counts as stopped by us."""
    if step.node < FIRST_CONTROLLER:
        written = replace(state.brokers[step.node - 1], file=NodeStage(step.stage), is_marked=True, is_edited=False)
        return state.with_broker(step.node, written)
    controller = state.controllers[step.node - FIRST_CONTROLLER]
    return state.with_controller(step.node, replace(controller, file=NodeStage(step.stage), is_marked=True))


def _stop(state: State, step: Step) -> State | None:
    """Only the process that the mark names: one that somebody has started since is left alone."""
    node = state.node(step.node)
    return stopped(state, step.node) if node.is_marked and node.process is not None else state


def _start(state: State, step: Step) -> State | None:
    return started(state, step.node)


def _format(state: State, step: Step) -> State | None:
    controller = state.controllers[step.node - FIRST_CONTROLLER]
    return state.with_controller(step.node, replace(controller, is_formatted=True))


def _unfence(state: State, step: Step) -> State | None:
    controller = state.controllers[step.node - FIRST_CONTROLLER]
    return state.with_controller(step.node, replace(controller, is_fenced=False))


def _mark(state: State, step: Step) -> State | None:
    controller = state.controllers[step.node - FIRST_CONTROLLER]
    return state.with_controller(step.node, replace(controller, is_marked=True))


# The revert window (PF5): fence, kill, flush what ZooKeeper lacks, one transaction


def _elected(state: State) -> State:
    """What comes next ends with an election in ZooKeeper."""
    return hurt(state, "a topic id made up") if state.lacks_id and not state.accepts_ids else state


def _fence(state: State, _: Step) -> State | None:
    """From here on it goes on to its end, whatever is seen. If the copy is about to hurt, no consent is asked for."""
    situation = situation_of_model(state)
    is_urgent = situation.is_copy_stale or situation.is_copy_failed or any(c.is_fenced for c in state.controllers)
    if state.claim is not Claim.ZOOKEEPER and not is_urgent:
        state = _elected(state)
    controllers = tuple(replace(c, is_fenced=c.is_formatted) for c in state.controllers)
    return replace(state, controllers=controllers)


def _kill(state: State, _: Step) -> State | None:
    for i in state.controller_ids():
        if state.node(i).process is not None:
            state = stopped(state, i)
    return state


def _flush(state: State, _: Step) -> State | None:
    """The dead logs are read. Final after all: all are started again. Ahead of ZooKeeper: they run once more, but never
    without a flag, for that start would be the end, nor where a broker leads already.
    """
    if state.log is QuorumState.POST_MIGRATION:
        state = replace(state, controllers=tuple(replace(c, is_fenced=False) for c in state.controllers))
        for i in state.controller_ids():
            state = started(state, i)
        return state
    if state.log is not QuorumState.MIGRATION or state.is_flushed or state.claim is Claim.ZOOKEEPER:
        return state
    if state.is_zookeeper_silent or any(c.file is NodeStage.KRAFT for c in state.controllers):
        return None
    return replace(state, is_flushed=True) if state.migration is Znode.COPIED else state


def _transact(state: State, _: Step) -> State | None:
    """All or nothing, and only where nobody can come back (PF5: a living quorum claims once more)."""
    if state.is_zookeeper_silent or state.log is QuorumState.POST_MIGRATION:
        return None
    if any(c.process is not None or c.is_startable for c in state.controllers):
        return None
    if state.log is QuorumState.MIGRATION and not (state.is_flushed or state.accepts_loss):
        state = hurt(state, "acknowledged metadata lost")
    # A broker that took `/controller` below the known epoch is elected anew, above it (PF4: the late cure).
    is_freed = state.claim is not Claim.ZOOKEEPER or state.is_epoch_behind
    if is_freed:
        brokers = tuple(replace(b, is_claimant=False) for b in state.brokers)
        state = replace(state, brokers=brokers, claim=Claim.NOBODY)
    return replace(state, migration=Znode.ABSENT, is_epoch_behind=False)


def _wipe_controllers(state: State, _: Step) -> State | None:
    blank = (Controller(),) * len(state.controllers)
    return replace(state, controllers=blank, log=QuorumState.ABSENT, is_flushed=True)


def _wipe_brokers(state: State, _: Step) -> State | None:
    return replace(state, brokers=tuple(replace(b, has_log=False) for b in state.brokers))


def _compare(state: State, _: Step) -> State | None:
    """It publishes a report, and does nothing else. Without its worker there is none."""
    if state.checker is not Checker.THERE:
        return replace(state, checker=Checker.MISSED)
    found = Compared.DRIFT if state.is_drifted else Compared.CLEAN
    return replace(state, compared=Compared.INCONCLUSIVE if state.is_zookeeper_silent else found, is_old=False)


EFFECTS: dict[str, tuple[Effect, ...]] = {
    StepAction.PROVISION_CONTROLLER: (_write, _format, _start),
    StepAction.ROLL_NODE: (_consume, _write, _stop, _start),
    StepAction.START_NODE: (_unfence, _start),
    StepAction.FAIL_OVER: (_mark, _stop, _start),
    StepAction.LEAVE_KRAFT: (_fence, _kill, _flush, _transact),
    StepAction.WIPE: (_wipe_controllers, _wipe_brokers),
    StepAction.COMPARE_METADATA: (_compare,),
}


# People


def answers(state: State, decision: Decision) -> Iterator[Move]:
    """What people do about a gate or a wait, as its text asks them to."""
    if isinstance(decision, Gate):
        yield f"{decision.name} approved", _approved(state, decision.name)
    if not isinstance(decision, Wait):
        return
    if state.is_zookeeper_silent:
        yield "ZooKeeper comes back", replace(state, is_zookeeper_silent=False)
    yield from _answers_about_comparison(state, decision.reason)
    if decision.reason == WaitReason.FILE_CHANGED:
        yield from _answers_about_edits(state)
    yield from _answers_about_ids(state, decision.reason)
    if decision.reason in {WaitReason.NODE_DOWN, WaitReason.CONTROLLERS_NOT_READY}:
        for i in (*state.broker_ids(), *state.controller_ids()):
            if started(state, i) != state:
                yield f"node {i} started by hand", started(state, i)
    if decision.reason in GIVE_UP and state.intent is Intent.FORWARD:
        yield "rollback, with its losses", replace(asked_back(state), accepts_loss=True)
    if decision.reason == ZkWait.DUAL_WRITE_NOT_CURRENT and not state.accepts_loss:
        yield "loss accepted", replace(asked_back(state), accepts_loss=True)


def _answers_about_ids(state: State, reason: str) -> Iterator[Move]:
    if reason == ZkWait.TOPIC_WITHOUT_ID:
        yield "the topic's id is put back", replace(state, lacks_id=False)
        yield "rollback, with another id", replace(asked_back(state), accepts_ids=True)


def _answers_about_edits(state: State) -> Iterator[Move]:
    """The file is put back; or the edit is meant, and the broker restarted from it, where it can come up then."""
    for i, broker in enumerate(state.brokers, 1):
        if not broker.is_edited or broker.process is None:
            continue
        yield f"broker-{i}'s file put back", state.with_broker(i, replace(broker, file=broker.process, is_edited=False))
        is_copied = state.log is QuorumState.MIGRATION and state.leader is not None
        if broker.file is NodeStage.MIGRATION or (broker.file is NodeStage.KRAFT and is_copied):
            yield f"broker-{i} restarted on purpose", started(stopped(state, i), i)


def _answers_about_comparison(state: State, reason: str) -> Iterator[Move]:
    if reason == WaitReason.CHECKS_WORKER_MISSING:
        yield "keeperless-checks started", replace(state, checker=Checker.THERE)
    if reason == ZkWait.DRIFT_FOUND:
        yield "repaired, and a while later", replace(state, is_drifted=False, is_old=True)
    if reason == WaitReason.CHECK_INCONCLUSIVE:
        yield "a while later", replace(state, is_old=True)


GIVE_UP = frozenset(
    {
        ZkWait.HALF_REVERTED,
        ZkWait.COPY_LEFT_OVER,
        ZkWait.COPY_NOT_COMPLETE,
        WaitReason.STATE_NOT_UNDERSTOOD,
        WaitReason.BROKERS_NOT_REGISTERED,
        WaitReason.CONTROLLERS_NOT_READY,
        ZkWait.QUORUM_CANNOT_MIGRATE,
        WaitReason.FILE_CHANGED,
    }
)
"""Waits that going back ends."""


def _approved(state: State, gate: str) -> State:
    if gate == GateName.FINALIZE:
        return replace(state, approval=Approval.VALID)
    if gate == GateName.FINALIZE_WITHOUT_RETURN:
        return replace(state, is_given_up=True)
    return replace(state, may_fail_over=True)


def asked_back(state: State) -> State:
    """Nothing is compared on the way back: what was found is told in its preview."""
    back = replace(state, intent=Intent.REVERT, compared=Compared.NONE, is_old=False)
    return replace(back, is_drifted=False, checker=Checker.THERE)


# Hostile moves


def hostile_moves(state: State) -> Iterator[Move]:
    """What may go wrong, or be done by somebody else, at any moment."""
    for i in (*state.broker_ids(), *state.controller_ids()):
        if state.node(i).process is not None:
            yield f"node {i} crashes", stopped(state, i)
    if state.leader is not None and len(state.controllers) > 1:
        yield "leader deposed", leaderless(state)
    if state.driver is Driver.ACTIVE:
        yield "dual write dies", replace(state, driver=Driver.DEAD, is_flushed=False)
    if not state.is_zookeeper_silent:
        yield "ZooKeeper falls silent", replace(state, is_zookeeper_silent=True)
    yield from _revivals(state)
    yield from _edits_of_brokers(state)
    yield from _edits(state)
    yield from _drifts(state)


def _revivals(state: State) -> Iterator[Move]:
    for i, controller in enumerate(state.controllers, FIRST_CONTROLLER):
        if controller.process is not None or controller.file is None:
            continue
        if controller.is_startable:
            yield f"controller-{i} revived", started(state, i)
        elif controller.is_fenced:
            bare = state.with_controller(i, replace(controller, is_fenced=False))
            yield f"controller-{i} unfenced and revived", started(bare, i)


def _drifts(state: State) -> Iterator[Move]:
    """What happens to the comparison: only where it matters, right before the end, for the exploration grows with each."""
    is_before_end = state.intent is Intent.FORWARD and state.log is QuorumState.MIGRATION and not state.is_consumed
    if not is_before_end or any(b.process is not NodeStage.KRAFT for b in state.brokers):
        return
    if not state.is_drifted and not state.is_zookeeper_silent:
        yield "a znode is edited behind Kafka's back", replace(state, is_drifted=True)
    if state.is_drifted and state.compared is Compared.CLEAN:
        yield "a report of another migration mentions it", replace(state, compared=Compared.DRIFT, is_old=False)
    if state.compared is Compared.CLEAN:
        yield "no consistent cut is had", replace(state, compared=Compared.INCONCLUSIVE, is_old=False)
    if state.compared is not Compared.NONE and not state.is_old:
        yield "the report grows old", replace(state, is_old=True)
    if state.checker is Checker.THERE:
        yield "keeperless-checks dies", replace(state, checker=Checker.AWAY)


def _edits_of_brokers(state: State) -> Iterator[Move]:
    """Without a restart. One edit at a time of a file that is what the process runs with."""
    for i, broker in enumerate(state.brokers, 1):
        is_settled = broker.process is broker.file and not broker.is_marked
        for stage in (each for each in NodeStage if is_settled and each is not broker.process):
            yield f"broker-{i}'s file edited to {stage}", state.with_broker(i, replace(broker, file=stage, is_edited=True))


def _edits(state: State) -> Iterator[Move]:
    for i, controller in enumerate(state.controllers, FIRST_CONTROLLER):
        if controller.file is NodeStage.MIGRATION:
            edited = state.with_controller(i, replace(controller, file=NodeStage.KRAFT))
            yield f"controller-{i} loses its flag", replace(edited, is_flag_tampered=True)
    if state.is_zookeeper_silent:
        return
    if state.claim is not Claim.NOBODY:
        brokers = tuple(replace(b, is_claimant=False) for b in state.brokers)
        freed = replace(state, brokers=brokers, claim=Claim.NOBODY, is_claim_leaders=False)
        yield "/controller deleted", replace(freed, is_tampered=True)
    if not state.lacks_id and state.log is not QuorumState.POST_MIGRATION:
        yield "a topic loses its id", replace(state, lacks_id=True)
    if state.migration is not Znode.ABSENT:
        yield "/migration deleted", replace(state, migration=Znode.ABSENT, is_tampered=True)
    is_early = state.log in {QuorumState.ABSENT, QuorumState.PRE_MIGRATION} and state.claim is Claim.ZOOKEEPER
    if is_early and state.migration in {Znode.ABSENT, Znode.FRESH}:
        yield "stale /migration", replace(state, migration=Znode.STALE)
    if not state.is_poisoned and state.log in {QuorumState.ABSENT, QuorumState.PRE_MIGRATION}:
        yield "a znode is poisoned", replace(state, is_poisoned=True)


def is_back(broker: Broker) -> bool:
    return broker.file is NodeStage.ZOOKEEPER and broker.process is NodeStage.ZOOKEEPER and broker.is_up
