"""`decide` over whole products of `Situation` and `Terms`.

The products have up to 10^13 elements, so they are walked as a tree: a field takes a value only when `decide` or a property
reads it, and then takes each of its values in turn. A run that never read a field stands for all of its values. The weights
of all runs add up to the size of the product, and that is asserted: nothing was left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from math import prod
from typing import Any

import pytest

from domain.decisions import Decision, Done, Gate, GateName, NodeStage, Refuse, Step, StepAction, Wait, WaitReason
from domain.zk_to_kraft.decide import decide
from domain.zk_to_kraft.guards import STAGE_OF_MODE
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.phases import Phase, phase_of
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
from domain.zk_to_kraft.terms import Approval, Terms

BOOL = (False, True)
BROKER_STAGES = (None, *NodeStage)
CONTROLLER_STAGES = (None, NodeStage.MIGRATION, NodeStage.KRAFT)

BROKER_FIELDS: dict[str, Sequence[Any]] = {
    "mode": tuple(BrokerMode),
    "stage": BROKER_STAGES,
    "is_needed": BOOL,
    "is_zookeeper_controller": BOOL,
}
CONTROLLER_FIELDS: dict[str, Sequence[Any]] = {
    "mode": tuple(ControllerMode),
    "stage": CONTROLLER_STAGES,
    "is_leader": BOOL,
    "is_caught_up": BOOL,
    "is_flag_in_file": BOOL,
}
CLUSTER_FIELDS: dict[str, Sequence[Any]] = {
    "quorum": tuple(QuorumState),
    "claim": tuple(Claim),
    "dual_write": tuple(DualWrite),
    "registration": tuple(Registration),
    "replication": tuple(Replication),
    "is_copy_left_over": BOOL,
}
TERMS_FIELDS: dict[str, Sequence[Any]] = {"approval": tuple(Approval), "is_held": BOOL, "is_soak_over": BOOL}


class Choices:
    """One path down the tree: the choices made so far, and how many there were at each fork."""

    def __init__(self, path: list[int]) -> None:
        self.path = path
        self.sizes: list[int] = []

    def choose(self, options: Sequence[Any]) -> Any:
        depth = len(self.sizes)
        if depth == len(self.path):
            self.path.append(0)
        self.sizes.append(len(options))
        return options[self.path[depth]]

    def next_path(self) -> list[int] | None:
        """The path after this one, depth first; `None` after the last."""
        path = self.path[: len(self.sizes)]
        while path and path[-1] + 1 == self.sizes[len(path) - 1]:
            path.pop()
        return [*path[:-1], path[-1] + 1] if path else None


class Lazy:
    """Stands for a dataclass: a field takes its value when it is read for the first time."""

    def __init__(self, choices: Choices, fields: dict[str, Sequence[Any]], **fixed: Any) -> None:
        self.__dict__.update(fixed, _choices=choices, _fields=fields)

    def __getattr__(self, name: str) -> Any:
        value = self._choices.choose(self._fields[name])
        self.__dict__[name] = value
        return value

    def __repr__(self) -> str:
        """What has been read so far, which is all that the decision depends on."""
        return str({name: value for name, value in self.__dict__.items() if not name.startswith("_")})


class LazySituation(Lazy):
    nodes = Situation.nodes
    is_nothing_known = Situation.is_nothing_known


class LazyTerms(Lazy):
    may_finalize = Terms.may_finalize


@dataclass(frozen=True)
class Product:
    """A product of situations and terms: so many nodes, and the values that each field may take."""

    brokers: int
    controllers: int
    broker: dict[str, Sequence[Any]]
    controller: dict[str, Sequence[Any]]
    cluster: dict[str, Sequence[Any]]
    terms: dict[str, Sequence[Any]]

    @property
    def size(self) -> int:
        sizes = (prod(len(v) for v in f.values()) for f in (self.broker, self.controller, self.cluster, self.terms))
        broker, controller, cluster, terms = sizes
        return int(broker**self.brokers * controller**self.controllers * cluster * terms)

    def walk(self, check: Callable[[Any, Any], None]) -> tuple[int, int]:
        """Call `check(situation, terms)` for every element: how many runs that took, how many elements they were."""
        path: list[int] | None = []
        runs = elements = 0
        while path is not None:
            choices = Choices(path)
            brokers = tuple(Lazy(choices, self.broker, id=i) for i in range(1, self.brokers + 1))
            controllers = tuple(Lazy(choices, self.controller, id=3000 + i) for i in range(1, self.controllers + 1))
            situation = LazySituation(choices, self.cluster, brokers=brokers, controllers=controllers)
            check(situation, LazyTerms(choices, self.terms, evidence_hash="evidence"))
            runs += 1
            elements += self.size // prod(choices.sizes)
            path = choices.next_path()
        return runs, elements


ONE_AND_ONE = Product(1, 1, BROKER_FIELDS, CONTROLLER_FIELDS, CLUSTER_FIELDS, TERMS_FIELDS)
"""Everything there is, for one broker and one controller."""

TWO_AND_TWO = Product(
    2,
    2,
    BROKER_FIELDS
    | {
        "mode": (BrokerMode.ZOOKEEPER, BrokerMode.HYBRID, BrokerMode.KRAFT, BrokerMode.INTERRUPTED),
        "stage": tuple(NodeStage),
    },
    CONTROLLER_FIELDS
    | {
        "mode": (ControllerMode.ABSENT, ControllerMode.MIGRATING, ControllerMode.FINAL, ControllerMode.INTERRUPTED),
        "stage": (NodeStage.MIGRATION, NodeStage.KRAFT),
        "is_flag_in_file": (True,),
    },
    CLUSTER_FIELDS
    | {
        "quorum": (QuorumState.PRE_MIGRATION, QuorumState.MIGRATION, QuorumState.POST_MIGRATION),
        "claim": (Claim.ZOOKEEPER, Claim.KRAFT),
        "dual_write": (DualWrite.CURRENT, DualWrite.NOT_CURRENT),
        "registration": (Registration.AGREES, Registration.DIFFERS),
        "replication": (Replication.IN_SYNC, Replication.CATCHING_UP),
    },
    TERMS_FIELDS | {"approval": (Approval.NONE, Approval.VALID, Approval.CONSUMED)},
)
"""Two of each, without what one of each has shown: that unknown stops everything, and that stale is as good as none."""

ONE_AND_THREE = Product(
    1,
    3,
    BROKER_FIELDS | {"mode": (BrokerMode.HYBRID, BrokerMode.KRAFT, BrokerMode.DOWN), "stage": tuple(NodeStage)[1:]},
    CONTROLLER_FIELDS
    | {
        "mode": (ControllerMode.MIGRATING, ControllerMode.FINAL, ControllerMode.INTERRUPTED, ControllerMode.DOWN),
        "stage": (NodeStage.MIGRATION, NodeStage.KRAFT),
        "is_flag_in_file": (True,),
    },
    CLUSTER_FIELDS | {"quorum": (QuorumState.MIGRATION, QuorumState.POST_MIGRATION), "claim": (Claim.KRAFT,)},
    TERMS_FIELDS | {"approval": (Approval.NONE, Approval.VALID, Approval.CONSUMED)},
)
"""Finalisation of a real quorum: of two controllers none can be spared, of three one can."""

PRODUCTS = {"1x1": ONE_AND_ONE, "2x2": TWO_AND_TWO, "1x3": ONE_AND_THREE}

SERVING = {BrokerMode.ZOOKEEPER, BrokerMode.HYBRID, BrokerMode.KRAFT}
RUNNING = {ControllerMode.MIGRATING, ControllerMode.FINAL}
UP = {str(mode) for mode in (*SERVING, *RUNNING)}
AGREED = {Approval.VALID, Approval.CONSUMED}


def walked(product: Product, check: Callable[[Any, Any], None]) -> None:
    runs, elements = product.walk(check)
    assert elements == product.size, "the walk left something out"
    print(f"{elements:,} situations and terms walked in {runs:,} runs")


def subject(s: Any, step: Step) -> Any:
    return next(node for node in s.nodes if node.id == step.node_id)


def others(s: Any, step: Step) -> list[Any]:
    return [node for node in s.nodes if node.id != step.node_id]


def is_controller(step: Step) -> bool:
    return step.node_id > 3000


def finishes_interrupted(s: Any, step: Step) -> bool:
    return bool(subject(s, step).mode == BrokerMode.INTERRUPTED)


def check_irreversible(s: Any, terms: Any, step: Step) -> None:
    """A controller loses its flag: every broker in KRaft mode, nothing unknown or down, a majority, people agreed."""
    assert all(b.mode is BrokerMode.KRAFT for b in s.brokers)
    assert all(node.mode in UP for node in others(s, step))
    assert s.replication is not Replication.UNKNOWN
    rest = [c for c in s.controllers if c.id != step.node_id]
    majority = len(s.controllers) // 2 + 1
    assert not rest or sum(c.is_caught_up and c.mode in RUNNING for c in rest) >= majority
    if s.quorum is QuorumState.POST_MIGRATION:
        return
    assert terms.approval in AGREED
    assert step.gate is GateName.FINALIZE
    if not finishes_interrupted(s, step):
        assert s.quorum is QuorumState.MIGRATION
        assert terms.approval is Approval.CONSUMED or (s.dual_write is DualWrite.CURRENT and terms.is_soak_over)


def check_standbys_first(s: Any, step: Step) -> None:
    if finishes_interrupted(s, step) or subject(s, step).stage is NodeStage.KRAFT or not subject(s, step).is_leader:
        return
    assert all(c.mode is ControllerMode.FINAL or c.is_leader for c in s.controllers)


def check_begun_first(s: Any, step: Step) -> None:
    """No node is begun while the file of another is ahead of its process."""
    if finishes_interrupted(s, step) or step.action is StepAction.PROVISION_CONTROLLER:
        return
    begun = {b.id for b in s.brokers if STAGE_OF_MODE.get(b.mode, b.stage) is not b.stage}
    begun |= {c.id for c in s.controllers if c.mode is ControllerMode.MIGRATING and c.stage is NodeStage.KRAFT}
    assert not begun or step.node_id in begun


def check_broker_roll(s: Any, step: Step) -> None:
    assert step.stage in {NodeStage.MIGRATION, NodeStage.KRAFT}, "there is no way to roll forward to ZooKeeper"
    assert step.gate is None
    is_running = not finishes_interrupted(s, step)
    if step.stage is NodeStage.KRAFT:
        assert s.quorum in {QuorumState.MIGRATION, QuorumState.POST_MIGRATION}, "rejected, and exits after a minute"
        if is_running and s.quorum is QuorumState.MIGRATION:
            assert s.dual_write is DualWrite.CURRENT
    else:
        assert s.quorum is not QuorumState.POST_MIGRATION, "a hybrid broker that starts now gets metadata from nobody"
        if is_running:
            assert not s.is_copy_left_over, "the last registration would have ZooKeeper's metadata deleted"
    if is_running:
        assert not subject(s, step).is_needed
        assert subject(s, step).mode in SERVING
        assert STAGE_OF_MODE[subject(s, step).mode] is not step.stage, "a restart for nothing"


def check_provisioning(s: Any, step: Step) -> None:
    node = subject(s, step)
    assert step.stage is NodeStage.MIGRATION
    if node.mode is ControllerMode.INTERRUPTED:
        assert node.stage is NodeStage.MIGRATION
        return
    assert node.mode is ControllerMode.ABSENT
    assert s.claim is Claim.ZOOKEEPER
    assert s.quorum is not QuorumState.POST_MIGRATION
    assert all((b.mode, b.stage) == (BrokerMode.ZOOKEEPER, NodeStage.ZOOKEEPER) for b in s.brokers)


def check_nothing_decisive_is_open(s: Any, step: Step) -> None:
    """Nothing begins while anything is unknown, down, unregistered or out of sync."""
    assert all(node.mode != BrokerMode.UNKNOWN for node in s.nodes)
    assert s.replication is not Replication.UNKNOWN
    assert s.claim is not Claim.UNKNOWN or s.quorum is QuorumState.POST_MIGRATION
    if step.action is StepAction.PROVISION_CONTROLLER or finishes_interrupted(s, step):
        return
    assert all(node.mode in UP for node in s.nodes)
    assert all(node.stage is not None for node in s.nodes)
    assert s.quorum in {QuorumState.PRE_MIGRATION, QuorumState.MIGRATION, QuorumState.POST_MIGRATION}
    assert s.registration is Registration.AGREES
    assert s.replication is Replication.IN_SYNC
    assert all(c.is_caught_up for c in s.controllers)


def check_step(s: Any, terms: Any, step: Step) -> None:
    check_nothing_decisive_is_open(s, step)
    check_begun_first(s, step)
    if step.action is StepAction.PROVISION_CONTROLLER:
        assert is_controller(step)
        check_provisioning(s, step)
    elif is_controller(step):
        assert step.stage is NodeStage.KRAFT
        check_irreversible(s, terms, step)
        check_standbys_first(s, step)
    else:
        check_broker_roll(s, step)
    assert not terms.is_held or terms.approval is Approval.CONSUMED, "held means that nothing happens"


def check_gate(s: Any, terms: Any, gate: Gate) -> None:
    assert gate == Gate(name=GateName.FINALIZE, evidence_hash="evidence")
    assert terms.approval in {Approval.NONE, Approval.STALE}
    assert terms.is_soak_over
    assert not terms.is_held
    assert (s.quorum, s.dual_write) == (QuorumState.MIGRATION, DualWrite.CURRENT)
    assert (s.registration, s.replication) == (Registration.AGREES, Replication.IN_SYNC)
    assert all((b.mode, b.stage) == (BrokerMode.KRAFT, NodeStage.KRAFT) for b in s.brokers)
    assert all((c.mode, c.stage) == (ControllerMode.MIGRATING, NodeStage.MIGRATION) for c in s.controllers)
    assert all(c.is_caught_up and c.is_flag_in_file for c in s.controllers)


def check_done(s: Any, done: Done) -> None:
    assert done == Done(outcome=Phase.KRAFT)
    assert phase_of(s) is Phase.KRAFT
    assert s.quorum is QuorumState.POST_MIGRATION
    assert all(b.mode is BrokerMode.KRAFT for b in s.brokers)
    assert all((c.mode, c.stage) == (ControllerMode.FINAL, NodeStage.KRAFT) for c in s.controllers)
    assert s.replication is Replication.IN_SYNC


def is_alarm_due(s: Any, terms: Any) -> bool:
    """Some controller runs without the flag, or would after its next restart, and neither log nor people said final."""
    if s.quorum is QuorumState.POST_MIGRATION or terms.approval is Approval.CONSUMED:
        return False
    return any(c.mode is ControllerMode.FINAL or c.stage is NodeStage.KRAFT or not c.is_flag_in_file for c in s.controllers)


def check_everything(s: Any, terms: Any) -> None:
    decision: Decision = decide(s, terms)
    is_alarm = isinstance(decision, Wait) and decision.reason is WaitReason.CONTROLLER_LOST_ITS_FLAG
    assert is_alarm == is_alarm_due(s, terms)
    if isinstance(decision, Step):
        check_step(s, terms, decision)
    elif isinstance(decision, Gate):
        check_gate(s, terms, decision)
    elif isinstance(decision, Done):
        check_done(s, decision)
    assert not isinstance(decision, Refuse), "only the preflight refuses"
    phase_of(s)


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS.keys())
def test_what_decide_promises_holds_everywhere(product: Product) -> None:
    walked(product, check_everything)


def test_a_stale_approval_is_as_good_as_none() -> None:
    def check(s: Any, terms: Any) -> None:
        given = (terms.is_held, terms.is_soak_over)
        none, stale = (Terms(approval, *given) for approval in (Approval.NONE, Approval.STALE))
        assert decide(s, none) == decide(s, stale)

    walked(Product(1, 1, BROKER_FIELDS, CONTROLLER_FIELDS, CLUSTER_FIELDS, {**TERMS_FIELDS, "approval": (None,)}), check)


def test_held_means_no_step_unless_finalisation_has_begun() -> None:
    def check(s: Any, terms: Any) -> None:
        decision = decide(s, terms)
        assert isinstance(decision, Wait)
        assert decision.reason in {WaitReason.HELD, WaitReason.CONTROLLER_LOST_ITS_FLAG}

    held = {"approval": (Approval.NONE, Approval.STALE, Approval.VALID), "is_held": (True,), "is_soak_over": BOOL}
    walked(Product(1, 1, BROKER_FIELDS, CONTROLLER_FIELDS, CLUSTER_FIELDS, held), check)


def test_the_zookeeper_controller_is_rolled_last() -> None:
    """Of the brokers that are still in ZooKeeper mode; a roll that has begun is finished first."""

    def check(s: Any, terms: Any) -> None:
        decision = decide(s, terms)
        if not isinstance(decision, Step) or is_controller(decision) or decision.stage is not NodeStage.MIGRATION:
            return
        rolled = subject(s, decision)
        if rolled.stage is NodeStage.ZOOKEEPER and rolled.is_zookeeper_controller:
            waiting = [b for b in s.brokers if b.mode is BrokerMode.ZOOKEEPER and b.id != rolled.id]
            assert all(b.is_zookeeper_controller for b in waiting)

    walked(
        Product(
            3,
            1,
            BROKER_FIELDS | {"mode": (BrokerMode.ZOOKEEPER, BrokerMode.HYBRID), "stage": tuple(NodeStage)[:2]},
            CONTROLLER_FIELDS | {"mode": (ControllerMode.MIGRATING,), "stage": (NodeStage.MIGRATION,)},
            CLUSTER_FIELDS,
            TERMS_FIELDS,
        ),
        check,
    )


def test_the_walk_covers_every_field_of_a_situation() -> None:
    """A new field must be walked too, or these tests would quietly prove less."""
    assert {f.name for f in fields(BrokerSituation)} == {"id", *BROKER_FIELDS}
    assert {f.name for f in fields(ControllerSituation)} == {"id", *CONTROLLER_FIELDS}
    assert {f.name for f in fields(Situation)} == {"brokers", "controllers", *CLUSTER_FIELDS}
    assert {f.name for f in fields(Terms)} == {"evidence_hash", *TERMS_FIELDS}
