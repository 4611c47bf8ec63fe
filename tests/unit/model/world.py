"""An executable model of a migration: what Kafka and ZooKeeper do by themselves, and how it looks to `decide`.

Small on purpose: a state says which process runs from which file, what the quorum's log says, and what lies in ZooKeeper, all
as enums, so that every state that can be reached is explored together with `decide` (`tests/unit/test_model.py`). What the
nodes do is in `moves`, what our steps and other people do in `hands`.

Facts are cited where they are used: PF4 and PF5 are sections 4 and 5 of the facts proven on real servers (Kafka 3.9.2), KI is
Kafka's source as read for 3.9 (KRaftMigrationDriver, ActivationRecordsGenerator).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from domain.decisions import Intent, Step
from domain.zk_to_kraft.conditions import Approval, Compared, Terms
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
from domain.zk_to_kraft.steps import NodeStage

FIRST_CONTROLLER = 3001

T = TypeVar("T")


def replace(it: T, **values: object) -> T:
    """As `dataclasses.replace`, which calls the constructor: that was two thirds of the time of an exploration."""
    assert values.keys() <= it.__dict__.keys()
    copy = object.__new__(type(it))
    copy.__dict__.update(it.__dict__)
    copy.__dict__.update(values)
    return copy


class Driver(StrEnum):
    """What the migration driver of the active controller does (KI: KRaftMigrationDriver)."""

    NONE = "none"
    """Nobody is active, or the active one runs without the flag."""
    WAITING = "waiting"
    """For brokers, with PRE_MIGRATION in the log."""
    CLAIMED = "claimed"
    """It has claimed `/controller`, and copies next."""
    ACTIVE = "active"
    """Dual write."""
    DEAD = "dead"
    """Dual write stopped silently; the next active controller begins again (PF4)."""
    INACTIVE = "inactive"
    """The log says MIGRATION and ZooKeeper does not: for ever (PF5)."""


class Znode(StrEnum):
    """`/migration`."""

    ABSENT = "absent"
    FRESH = "fresh"
    """Offset -1: what every controller with the flag creates at its start (KI)."""
    COPIED = "copied"
    """The offset is this quorum's."""
    STALE = "stale"
    """The offset is that of an earlier attempt."""


class Checker(StrEnum):
    """The worker that compares ZooKeeper with KRaft."""

    THERE = "there"
    AWAY = "away"
    MISSED = "missed"
    """Away, and the last comparison that was asked for was taken by nobody."""


@dataclass(frozen=True)
class Broker:
    """`process`: the stage of the file that it was started from; `None`: it does not run. `is_marked`: a roll of ours wrote the
    file, and no process was started since. `is_edited`: others have edited it while it runs, and not restarted it."""

    file: NodeStage = NodeStage.ZOOKEEPER
    process: NodeStage | None = NodeStage.ZOOKEEPER
    is_up: bool = True
    is_marked: bool = False
    is_claimant: bool = False
    has_log: bool = False
    is_edited: bool = False


@dataclass(frozen=True)
class Controller:
    """As a broker; before it is provisioned it has no file. `is_registered`: the log knows that it had the flag, also when it
    does not run (KI: QuorumFeatures)."""

    file: NodeStage | None = None
    process: NodeStage | None = None
    is_up: bool = False
    is_marked: bool = False
    is_leader: bool = False
    is_formatted: bool = False
    is_fenced: bool = False
    is_registered: bool = False

    @property
    def is_startable(self) -> bool:
        return self.file is not None and self.is_formatted and not self.is_fenced


@dataclass(frozen=True)
class State:
    """The whole cluster, what people have said, and the step that is being carried out: how far it is.

    `is_flushed`: ZooKeeper has all that the quorum has acknowledged. `is_epoch_behind`: partition states carry a KRaft epoch
    that `/controller_epoch` is below (PF4, KAFKA-20488). `is_tampered`, `is_flag_tampered`: somebody has deleted a znode, or
    taken a flag out of a file, by hand. `is_drifted`: ZooKeeper differs from what the quorum has flushed. `compared`, `is_old`:
    what the newest report says, and that it has become too old for it. `lacks_id`: a topic has lost its id in ZooKeeper.
    `damage`: what has been lost, and must never be.
    """

    brokers: tuple[Broker, ...]
    controllers: tuple[Controller, ...]
    log: QuorumState = QuorumState.ABSENT
    driver: Driver = Driver.NONE
    claim: Claim = Claim.ZOOKEEPER
    is_claim_leaders: bool = False
    migration: Znode = Znode.ABSENT
    is_flushed: bool = True
    is_epoch_behind: bool = False
    is_zookeeper_silent: bool = False
    is_poisoned: bool = False
    intent: Intent = Intent.FORWARD
    approval: Approval = Approval.NONE
    is_consumed: bool = False
    is_given_up: bool = False
    may_fail_over: bool = False
    accepts_loss: bool = False
    lacks_id: bool = False
    accepts_ids: bool = False
    is_tampered: bool = False
    is_flag_tampered: bool = False
    is_drifted: bool = False
    compared: Compared = Compared.NONE
    is_old: bool = False
    checker: Checker = Checker.THERE
    damage: str = ""
    in_hand: tuple[Step, int] | None = None

    @property
    def leader(self) -> Controller | None:
        return next((c for c in self.controllers if c.is_leader), None)

    def broker_ids(self) -> range:
        return range(1, len(self.brokers) + 1)

    def controller_ids(self) -> range:
        return range(FIRST_CONTROLLER, FIRST_CONTROLLER + len(self.controllers))

    def node(self, node_id: int) -> Broker | Controller:
        return self.controllers[node_id - FIRST_CONTROLLER] if node_id >= FIRST_CONTROLLER else self.brokers[node_id - 1]

    def with_broker(self, node_id: int, broker: Broker) -> "State":
        return replace(self, brokers=tuple(broker if i == node_id else b for i, b in enumerate(self.brokers, 1)))

    def with_controller(self, node_id: int, controller: Controller) -> "State":
        changed = (controller if i == node_id else c for i, c in enumerate(self.controllers, FIRST_CONTROLLER))
        return replace(self, controllers=tuple(changed))


def beginning(brokers: int = 2, controllers: int = 1) -> State:
    """A ZooKeeper-mode cluster, and controllers that are not there yet."""
    first = Broker(is_claimant=True)
    return State(brokers=(*(Broker() for _ in range(1, brokers)), first), controllers=(Controller(),) * controllers)


MODE_OF_STAGE = {
    NodeStage.ZOOKEEPER: BrokerMode.ZOOKEEPER,
    NodeStage.MIGRATION: BrokerMode.HYBRID,
    NodeStage.KRAFT: BrokerMode.KRAFT,
}


def situation_of_model(state: State) -> Situation:
    """What a complete observation of this state is reduced to."""
    is_claim_known = not state.is_zookeeper_silent
    claim = state.claim if is_claim_known else Claim.UNKNOWN
    quorum = quorum_of(state)
    return Situation(
        brokers=tuple(_broker_situation(i, state) for i in state.broker_ids()),
        controllers=tuple(_controller_situation(i, state) for i in state.controller_ids()),
        quorum=quorum,
        claim=claim,
        dual_write=_dual_write(state),
        registration=_registration(state),
        replication=_replication(state),
        is_copy_left_over=is_claim_known and claim is not Claim.KRAFT and state.migration in {Znode.COPIED, Znode.STALE},
        is_copy_stale=claim is Claim.KRAFT and state.migration is Znode.STALE and quorum is QuorumState.PRE_MIGRATION,
        is_copy_made=state.log in {QuorumState.MIGRATION, QuorumState.POST_MIGRATION},
        is_copy_failed=claim is Claim.KRAFT and state.migration is Znode.FRESH and _is_majority_down(state),
        has_migration_znode=is_claim_known and state.migration is not Znode.ABSENT,
        lacks_topic_ids=is_claim_known and state.lacks_id,
    )


def terms_of_model(state: State) -> Terms:
    """What the ledger would say. An accepted way back carries no approvals."""
    has_begun = any(NodeStage.KRAFT in {c.file, c.process} for c in state.controllers)
    is_forward = state.intent is Intent.FORWARD
    approval = Approval.CONSUMED if state.is_consumed and has_begun else state.approval
    return Terms(
        intent=state.intent,
        approval=approval if is_forward else Approval.NONE,
        without_return=Approval.VALID if is_forward and state.is_given_up else Approval.NONE,
        may_fail_over=state.may_fail_over,
        accepts_metadata_loss=state.accepts_loss,
        accepts_new_topic_ids=state.accepts_ids,
        compared=state.compared,
        is_check_due=_is_check_due(state) and state.checker is not Checker.MISSED,
        is_checker_missing=_is_check_due(state) and state.checker is Checker.MISSED,
        evidence_hash="evidence",
    )


def _is_check_due(state: State) -> bool:
    return state.is_old or state.compared is Compared.NONE


def quorum_of(state: State) -> QuorumState:
    """The active controller's gauge; POST_MIGRATION is every controller's (PF4)."""
    if state.log is QuorumState.POST_MIGRATION:
        return state.log if any(c.is_up for c in state.controllers) else QuorumState.ABSENT
    return state.log if state.leader is not None else QuorumState.ABSENT


def _broker_situation(node_id: int, state: State) -> BrokerSituation:
    broker = state.brokers[node_id - 1]
    if broker.process is None:
        mode = BrokerMode.INTERRUPTED if broker.is_marked else BrokerMode.DOWN
    else:
        mode = MODE_OF_STAGE[broker.process] if broker.is_up else BrokerMode.IN_TRANSITION
    return BrokerSituation(
        id=node_id,
        mode=mode,
        stage=broker.file,
        is_zookeeper_controller=broker.is_claimant and not state.is_zookeeper_silent,
        has_metadata_log=broker.has_log,
        is_file_ours=not broker.is_edited,
    )


def _controller_situation(node_id: int, state: State) -> ControllerSituation:
    controller = state.controllers[node_id - FIRST_CONTROLLER]
    return ControllerSituation(
        id=node_id,
        mode=_controller_mode(controller),
        stage=controller.file,
        is_leader=controller.is_leader,
        is_caught_up=state.leader is not None and controller.is_up,
        is_flag_in_file=controller.file is not NodeStage.KRAFT,
        is_startable=controller.is_formatted and not controller.is_fenced,
    )


def _controller_mode(controller: Controller) -> ControllerMode:
    if controller.process is not None:
        if not controller.is_up:
            return ControllerMode.IN_TRANSITION
        return ControllerMode.FINAL if controller.process is NodeStage.KRAFT else ControllerMode.MIGRATING
    if controller.is_fenced:
        return ControllerMode.FENCED
    if controller.file is None:
        return ControllerMode.ABSENT
    return ControllerMode.INTERRUPTED if controller.is_marked else ControllerMode.DOWN


def _dual_write(state: State) -> DualWrite:
    if state.is_zookeeper_silent or state.leader is None:
        return DualWrite.UNKNOWN
    if state.log is not QuorumState.MIGRATION or state.migration is not Znode.COPIED:
        return DualWrite.NOT_CURRENT
    if state.claim is Claim.NOBODY:
        return DualWrite.DEAD
    if state.claim is Claim.ZOOKEEPER or not state.is_claim_leaders:
        return DualWrite.NOT_CURRENT
    if state.driver is Driver.DEAD:
        return DualWrite.DEAD
    return DualWrite.CURRENT if state.driver is Driver.ACTIVE and state.is_flushed else DualWrite.NOT_CURRENT


def _registration(state: State) -> Registration:
    """Hybrid and KRaft brokers register with the active controller as soon as there is one."""
    if state.leader is None:
        return Registration.UNKNOWN
    is_registering = any(b.process in {NodeStage.MIGRATION, NodeStage.KRAFT} and not b.is_up for b in state.brokers)
    was_registered = any(b.has_log and b.process in {None, NodeStage.ZOOKEEPER} for b in state.brokers)
    return Registration.DIFFERS if is_registering or was_registered else Registration.AGREES


def _replication(state: State) -> Replication:
    return Replication.IN_SYNC if all(b.process and b.is_up for b in state.brokers) else Replication.CATCHING_UP


def _is_majority_down(state: State) -> bool:
    down = sum(_controller_mode(c) is ControllerMode.DOWN for c in state.controllers)
    return state.leader is None and 2 * down > len(state.controllers)
