"""What Kafka and ZooKeeper do by themselves, one move at a time; see `world`. Each function yields what may follow."""

from collections.abc import Iterator

from domain.zk_to_kraft.conditions import Compared
from domain.zk_to_kraft.situation import Claim, QuorumState
from domain.zk_to_kraft.steps import NodeStage
from tests.unit.model.world import FIRST_CONTROLLER, Driver, State, Znode, replace

Move = tuple[str, State]


def moves_of_kafka(state: State) -> Iterator[Move]:
    """All that may happen next while nobody does anything."""
    yield from _boots(state)
    yield from _elections(state)
    yield from _driver(state)
    yield from _zookeeper_election(state)


def slow_moves(state: State) -> Iterator[Move]:
    """What takes so long that whoever can act at once comes first.

    A stale copy's deletion waits until the log has grown past the old offset, two records a second (PF4: 26 s for 105). A
    KRaft broker that nobody registers exits after a minute (KI 1.4).
    """
    is_stale = state.claim is Claim.KRAFT and state.migration is Znode.STALE and state.driver is Driver.CLAIMED
    if is_stale and not state.is_zookeeper_silent:
        yield "stale copy deletes", hurt(replace(state, migration=Znode.COPIED, driver=Driver.WAITING), "metadata deleted")
    for i, broker in enumerate(state.brokers, 1):
        if broker.process is NodeStage.KRAFT and not broker.is_up and not _can_boot_in_kraft(state):
            yield f"broker-{i} exits", stopped(state, i)


def changes(state: State) -> Iterator[Move]:
    """A topic is created: the quorum has acknowledged what ZooKeeper does not have yet. Where a broker is controller, hybrid
    brokers ask that one, whatever a revived quorum thinks of itself (PF5).
    """
    is_asked = state.claim is Claim.KRAFT or state.driver in {Driver.ACTIVE, Driver.DEAD}
    is_asked = is_asked and state.leader is not None and state.claim is not Claim.ZOOKEEPER
    if is_asked and state.log is QuorumState.MIGRATION and state.is_flushed:
        yield "metadata changes", replace(state, is_flushed=False)


def _boots(state: State) -> Iterator[Move]:
    for i, broker in enumerate(state.brokers, 1):
        if broker.process is None or broker.is_up:
            continue
        can_boot = _can_boot_in_kraft(state) if broker.process is NodeStage.KRAFT else not state.is_zookeeper_silent
        if can_boot:
            has_log = broker.has_log or broker.process is not NodeStage.ZOOKEEPER
            yield f"broker-{i} boots", state.with_broker(i, replace(broker, is_up=True, has_log=has_log))
    for i, controller in enumerate(state.controllers, FIRST_CONTROLLER):
        has_flag = controller.process is NodeStage.MIGRATION
        if controller.process is None or controller.is_up or (has_flag and state.is_zookeeper_silent):
            continue
        booted = state.with_controller(i, replace(controller, is_up=True, is_registered=has_flag))
        is_created = has_flag and state.migration is Znode.ABSENT
        yield f"controller-{i} boots", replace(booted, migration=Znode.FRESH) if is_created else booted


def _can_boot_in_kraft(state: State) -> bool:
    """Before the copy its registration is refused (KI 1.4)."""
    return state.leader is not None and state.log in {QuorumState.MIGRATION, QuorumState.POST_MIGRATION}


def _elections(state: State) -> Iterator[Move]:
    up = [c.is_up for c in state.controllers]
    if state.leader is not None or 2 * sum(up) <= len(up):
        return
    for i, controller in enumerate(state.controllers, FIRST_CONTROLLER):
        if controller.is_up:
            yield f"controller-{i} elected", _activated(state.with_controller(i, replace(controller, is_leader=True)))


def _activated(state: State) -> State:
    """What the new active controller writes into the log, and what its driver does (KI: ActivationRecordsGenerator).

    Without the flag MIGRATION becomes POST_MIGRATION at once (PF4: accidental finalisation). With it, a log that says
    MIGRATION is believed only where `/migration` agrees: else the driver stays inactive (PF5).
    """
    assert state.leader is not None
    has_flag = state.leader.process is NodeStage.MIGRATION
    if state.log is QuorumState.ABSENT:
        log = QuorumState.PRE_MIGRATION if has_flag else QuorumState.NONE
        return replace(state, log=log, driver=Driver.WAITING if has_flag else Driver.NONE)
    if state.log is QuorumState.PRE_MIGRATION:
        return replace(state, driver=Driver.WAITING if has_flag else Driver.NONE)
    if state.log is not QuorumState.MIGRATION:
        return state
    if not has_flag:
        allowed = state.is_consumed or state.is_given_up or state.is_flag_tampered
        final = replace(state, log=QuorumState.POST_MIGRATION)
        return final if allowed else hurt(final, "finalised without approval")
    is_copied = state.migration in {Znode.COPIED, Znode.STALE}
    return replace(state, driver=Driver.CLAIMED if is_copied else Driver.INACTIVE)


def _driver(state: State) -> Iterator[Move]:
    """Claim, copy, reconcile, and dual write: all of it through ZooKeeper."""
    if state.is_zookeeper_silent:
        return
    if state.driver is Driver.WAITING and _are_all_ready(state):
        yield "KRaft claims", _claimed(replace(state, driver=Driver.CLAIMED))
    elif state.driver is Driver.CLAIMED and state.log is QuorumState.MIGRATION:
        # After a failover: it claims, and writes what ZooKeeper lacks (PF4: the cure of a dual write that died).
        # A drift is mended by it as well; that it is, only another report says.
        active = replace(_claimed(state), driver=Driver.ACTIVE, is_flushed=True, is_epoch_behind=True, is_drifted=False)
        is_led = state.claim is Claim.ZOOKEEPER  # what its controller has made since, the image lacks: it is deleted (PF5)
        yield "reconciled", hurt(active, "metadata deleted") if is_led else active
    elif state.driver is Driver.CLAIMED and state.migration is Znode.FRESH:
        yield _copied(state)
    elif state.driver is Driver.ACTIVE and not state.is_flushed:
        yield "flushed", replace(state, is_flushed=True)


def _copied(state: State) -> Move:
    """Any error kills the controller that copies, and the next one begins again (KI 1.3)."""
    if state.is_poisoned:
        return "copy kills its controller", stopped(state, _leader_id(state))
    done = replace(state, log=QuorumState.MIGRATION, migration=Znode.COPIED, driver=Driver.ACTIVE)
    return "copied", replace(done, is_flushed=True, is_epoch_behind=True)


def _are_all_ready(state: State) -> bool:
    """All brokers registered as hybrid, all controllers with the flag (KI 1.3)."""
    are_brokers = all(b.process is NodeStage.MIGRATION and b.is_up for b in state.brokers)
    are_controllers = all(c.is_registered for c in state.controllers)
    return are_brokers and are_controllers and state.migration is not Znode.ABSENT


def _claimed(state: State) -> State:
    """One transaction: persistent, and over whoever was controller (KI 3.2). A report counts for one claim."""
    brokers = tuple(replace(b, is_claimant=False) for b in state.brokers)
    return replace(state, brokers=brokers, claim=Claim.KRAFT, is_claim_leaders=True, compared=Compared.NONE, is_old=False)


def _zookeeper_election(state: State) -> Iterator[Move]:
    """A broker takes a free `/controller` in 0.04 s. With `/controller_epoch` too low it can elect no leader (PF4). A topic
    that has lost its id gets another one."""
    if state.claim is not Claim.NOBODY or state.is_zookeeper_silent:
        return
    for i, broker in enumerate(state.brokers, 1):
        if broker.is_up and broker.process in {NodeStage.ZOOKEEPER, NodeStage.MIGRATION}:
            elected = replace(state.with_broker(i, replace(broker, is_claimant=True)), claim=Claim.ZOOKEEPER, lacks_id=False)
            if state.is_epoch_behind:
                elected = hurt(elected, "elected below the known epoch")
            if state.driver in {Driver.CLAIMED, Driver.ACTIVE, Driver.DEAD}:
                elected = hurt(elected, "two controllers")
            yield f"broker-{i} becomes controller", elected


def stopped(state: State, node_id: int) -> State:
    """A process ends, by whomever. Who led anything leads it no longer; without a majority nobody leads."""
    node = state.node(node_id)
    if node_id < FIRST_CONTROLLER:
        broker = state.brokers[node_id - 1]
        freed = replace(state, claim=Claim.NOBODY) if broker.is_claimant else state
        return freed.with_broker(node_id, replace(broker, process=None, is_up=False, is_claimant=False))
    controller = state.controllers[node_id - FIRST_CONTROLLER]
    after = state.with_controller(node_id, replace(controller, process=None, is_up=False, is_leader=False))
    has_majority = 2 * sum(c.is_up for c in after.controllers) > len(after.controllers)
    return after if has_majority and not getattr(node, "is_leader", False) else leaderless(after)


def leaderless(state: State) -> State:
    controllers = tuple(replace(c, is_leader=False) for c in state.controllers)
    return replace(state, controllers=controllers, driver=Driver.NONE, is_claim_leaders=False)


def _leader_id(state: State) -> int:
    return next(i for i, c in enumerate(state.controllers, FIRST_CONTROLLER) if c.is_leader)


def started(state: State, node_id: int) -> State:
    """From the file that lies there. A controller whose storage is fenced or was never formatted ends at once."""
    if node_id < FIRST_CONTROLLER:
        broker = state.brokers[node_id - 1]
        if broker.process is not None:
            return state
        return state.with_broker(node_id, replace(broker, process=broker.file, is_up=False, is_marked=False, is_edited=False))
    controller = state.controllers[node_id - FIRST_CONTROLLER]
    if controller.process is not None or not controller.is_startable:
        return state
    return state.with_controller(node_id, replace(controller, process=controller.file, is_up=False, is_marked=False))


def hurt(state: State, what: str) -> State:
    """The first damage is the one that is told. What somebody's own hand did to ZooKeeper is not ours to answer for."""
    return state if state.damage or state.is_tampered else replace(state, damage=what)
