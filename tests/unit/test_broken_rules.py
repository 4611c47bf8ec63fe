"""Each rule of `decide` is taken away once, and something notices: a promise or the invariant, asked of situations at random,
or the one answer that only this rule gives.

Whole products are walked in `test_decide_exhaustive` and `test_way_back_exhaustive`; this shows in seconds that they can fail.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from types import ModuleType
from typing import Any

import pytest

from domain.decisions import Decision, Done, Gate, Intent, Step, Wait
from domain.errors import Unsafe
from domain.health.canary_debt import CanaryDebt
from domain.waits import WaitReason
from domain.zk_to_kraft import forward, way_back
from domain.zk_to_kraft.conditions import Approval, Compared, Terms
from domain.zk_to_kraft.decide import decide
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.situation import Claim, DualWrite, QuorumState, Situation
from domain.zk_to_kraft.steps import GateName, NodeStage, StepAction
from tests.unit import test_decide_exhaustive, test_way_back_exhaustive
from tests.unit.well_situations import (
    FINAL,
    HYBRID,
    KRAFT,
    MIGRATION,
    SOAK,
    WITHOUT_CONTROLLERS,
    ZOOKEEPER,
    all_controllers,
    but,
)

ROUNDS, SAMPLES = 40, 250
"""Of each product in turn: a rule that keeps something from happening is missed within the first few."""

FORWARD, BACK = Terms(evidence_hash="evidence"), Terms(intent=Intent.REVERT)
APPROVED = replace(FORWARD, approval=Approval.VALID, compared=Compared.CLEAN)


def step(action: StepAction, node_id: int | None, stage: NodeStage, gate: GateName | None = None) -> Step:
    return Step(action=action, node_id=node_id, stage=stage, gate=gate)


ANSWERS: dict[str, tuple[Situation, Terms, Decision]] = {
    "ZooKeeper is long silent": (
        replace(SOAK, claim=Claim.UNKNOWN, dual_write=DualWrite.UNKNOWN),
        FORWARD,
        Gate(name=GateName.FINALIZE_WITHOUT_RETURN, evidence_hash="evidence"),
    ),
    "a window stands half-done": (
        replace(but(3001, HYBRID, mode=ControllerMode.FENCED), has_migration_znode=True),
        FORWARD,
        step(StepAction.START_NODE, 3001, MIGRATION),
    ),
    "a node that we stopped": (
        but(2, HYBRID, mode=BrokerMode.INTERRUPTED, stage=KRAFT),
        FORWARD,
        step(StepAction.ROLL_NODE, 2, KRAFT),
    ),
    "a file that somebody edited": (
        but(2, HYBRID, stage=KRAFT),
        FORWARD,
        Wait(reason=WaitReason.FILE_CHANGED, objects=("2",)),
    ),
    "no controller yet": (
        WITHOUT_CONTROLLERS,
        FORWARD,
        step(StepAction.PROVISION_CONTROLLER, 3001, MIGRATION).model_copy(update={"companions": (3002, 3003)}),
    ),
    "the end": (FINAL, FORWARD, Done(outcome=Phase.KRAFT)),
    "canaries are due": (but(1, SOAK, canaries=CanaryDebt.DUE), FORWARD, step(StepAction.TRY_CANARIES, 1, KRAFT)),
    "the brokers' turn": (HYBRID, FORWARD, step(StepAction.ROLL_NODE, 1, KRAFT)),
    "the controllers' turn": (SOAK, APPROVED, step(StepAction.ROLL_NODE, 3002, KRAFT, GateName.FINALIZE)),
    "no controller, and a node is unknown": (
        but(3, replace(HYBRID, is_copy_failed=True), mode=BrokerMode.UNKNOWN),
        BACK,
        step(StepAction.LEAVE_KRAFT, None, ZOOKEEPER),
    ),
    "KRaft brokers without a quorum": (
        all_controllers(replace(SOAK, quorum=QuorumState.ABSENT), mode=ControllerMode.DOWN, is_caught_up=False),
        BACK,
        step(StepAction.START_NODE, 3001, MIGRATION),
    ),
    "canaries are left at the end of the rollback": (
        but(1, WITHOUT_CONTROLLERS, canaries=CanaryDebt.DUE),
        BACK,
        step(StepAction.REMOVE_CANARIES, 1, ZOOKEEPER),
    ),
    "the end of the rollback": (WITHOUT_CONTROLLERS, BACK, Done(outcome=way_back.OUTCOME)),
}
"""What no promise asks for: that it goes on. Each is the answer of one rule."""

PROMISES: dict[ModuleType, Any] = {forward: test_decide_exhaustive, way_back: test_way_back_exhaustive}
RULES = [
    pytest.param(room, rule, id=f"{room.__name__.rpartition('.')[2]} {rule.__name__}")
    for room in PROMISES
    for rule in room.RULES
]


def ask_everything(room: ModuleType) -> None:
    for situation, terms, expected in ANSWERS.values():
        assert decide(situation, terms) == expected
    random, promises = Random(29), PROMISES[room]  # noqa: S311 - the same situations in every run
    for _ in range(ROUNDS):
        for product in promises.PRODUCTS.values():
            product.sample(promises.check_everything, random, SAMPLES)


@pytest.mark.parametrize(("room", "rule"), RULES)
def test_a_rule_that_is_missing_is_noticed(room: ModuleType, rule: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a rule after it stumbles over what it keeps away from it, which is a KeyError."""
    monkeypatch.setattr(room, "RULES", tuple(each for each in room.RULES if each is not rule))
    with pytest.raises((AssertionError, Unsafe, KeyError)):
        ask_everything(room)


@pytest.mark.parametrize("room", PROMISES, ids=lambda room: room.__name__)
def test_with_all_rules_there_is_nothing_to_notice(room: ModuleType) -> None:
    ask_everything(room)
