"""What `decide` promises on the way back, over whole products of `Situation` and `Terms`; see `walk_of_situations`.

Only while it is open: once the quorum's log is final the rules forward answer (`test_decide_exhaustive`).
"""

from collections.abc import Callable
from typing import Any

import pytest

from domain.decisions import Done, Gate, Intent, Refuse, Revert, Step, Wait
from domain.waits import WaitReason
from domain.zk_to_kraft.conditions import Approval
from domain.zk_to_kraft.decide import decide
from domain.zk_to_kraft.guards import RUNNING_CONTROLLER
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.situation import Claim, DualWrite, QuorumState, Registration, Replication
from domain.zk_to_kraft.steps import NodeStage, StepAction
from domain.zk_to_kraft.way_back import OUTCOME
from tests.unit.walk_of_situations import (
    BOOL,
    BROKER_FIELDS,
    CLUSTER_FIELDS,
    CONTROLLER_FIELDS,
    TERMS_FIELDS,
    Product,
    check_invariant,
    only,
    walked,
)

pytestmark = pytest.mark.timeout(1500)
"""A walk takes minutes on two busy cores."""

NOT_FINAL = tuple(state for state in QuorumState if state is not QuorumState.POST_MIGRATION)
BACK = only(TERMS_FIELDS, intent=(Intent.REVERT,))

PRODUCTS = {
    # Everything there is, for one broker and one controller.
    "1x1": Product(1, 1, BROKER_FIELDS, CONTROLLER_FIELDS, only(CLUSTER_FIELDS, quorum=NOT_FINAL), BACK),
    # Two brokers at different points of their way, under one controller.
    "2x1": Product(
        2,
        1,
        only(BROKER_FIELDS, stage=tuple(NodeStage), mode=tuple(mode for mode in BrokerMode if mode is not BrokerMode.UNKNOWN)),
        only(
            CONTROLLER_FIELDS,
            mode=(ControllerMode.ABSENT, ControllerMode.MIGRATING, ControllerMode.FENCED, ControllerMode.DOWN),
            stage=(NodeStage.MIGRATION,),
            is_flag_in_file=(True,),
            is_startable=(True,),
        ),
        only(
            CLUSTER_FIELDS,
            quorum=(QuorumState.ABSENT, QuorumState.PRE_MIGRATION, QuorumState.MIGRATION),
            claim=(Claim.ZOOKEEPER, Claim.KRAFT),
            dual_write=(DualWrite.CURRENT, DualWrite.DEAD),
            replication=(Replication.IN_SYNC, Replication.CATCHING_UP),
            registration=(Registration.AGREES,),
            is_copy_stale=(False,),
        ),
        only(BACK, is_held=(False,), unaccepted=(frozenset(), frozenset({1}))),
    ),
    # A real quorum: half-fenced, half-down, with a flag lost here and there.
    "1x3": Product(
        1,
        3,
        only(BROKER_FIELDS, mode=(BrokerMode.HYBRID, BrokerMode.KRAFT), stage=tuple(NodeStage)[1:]),
        only(
            CONTROLLER_FIELDS,
            mode=(ControllerMode.MIGRATING, ControllerMode.FINAL, ControllerMode.FENCED, ControllerMode.DOWN),
            stage=(NodeStage.MIGRATION, NodeStage.KRAFT),
            is_flag_in_file=(True,),
        ),
        only(
            CLUSTER_FIELDS,
            quorum=(QuorumState.ABSENT, QuorumState.MIGRATION),
            claim=(Claim.KRAFT,),
            replication=(Replication.IN_SYNC,),
            registration=(Registration.AGREES,),
            is_copy_stale=(False,),
        ),
        only(BACK, is_held=(False,), unaccepted=(frozenset(),)),
    ),
}

DEAD = {ControllerMode.INTERRUPTED, ControllerMode.DOWN}
SERVING = {BrokerMode.ZOOKEEPER, BrokerMode.HYBRID, BrokerMode.KRAFT}


def node_of(s: Any, step: Step) -> Any:
    return next(node for node in s.nodes if node.id == step.node_id)


def is_stopped(c: Any) -> bool:
    """Nobody can make it take part in a quorum again."""
    return c.mode in {ControllerMode.ABSENT, ControllerMode.FENCED} or (c.mode in DEAD and not c.is_startable)


def is_back(b: Any) -> bool:
    return (b.mode, b.stage) == (BrokerMode.ZOOKEEPER, NodeStage.ZOOKEEPER)


def is_emergency(s: Any) -> bool:
    return bool(s.is_copy_stale or s.is_copy_failed)


def is_without_controller(s: Any) -> bool:
    return s.claim is not Claim.ZOOKEEPER and s.quorum is QuorumState.ABSENT


def check_zookeeper_leads(s: Any) -> None:
    """The quorum is gone for good, and a broker is controller, or none runs that could be."""
    is_none_left = all(b.mode in {BrokerMode.DOWN, BrokerMode.INTERRUPTED} for b in s.brokers)
    assert s.claim is Claim.ZOOKEEPER or (s.claim is Claim.NOBODY and is_none_left)
    assert all(is_stopped(c) for c in s.controllers)
    assert not s.has_migration_znode, "a revived quorum would take over"


def check_controller(s: Any, step: Step) -> None:
    """Whatever is approved: no controller is ever restarted into anything but the migration."""
    assert (step.action, step.stage) == (StepAction.ROLL_NODE, NodeStage.MIGRATION)
    node = node_of(s, step)
    assert node.mode not in {ControllerMode.ABSENT, ControllerMode.UNKNOWN}
    assert node.mode is not ControllerMode.FENCED or s.claim is Claim.KRAFT
    assert node.mode is ControllerMode.FINAL or node.stage is NodeStage.KRAFT or not node.is_flag_in_file


def check_restart(s: Any, step: Step) -> None:
    """Of a broker that serves: nothing out of sync, nobody else down or on its way."""
    if node_of(s, step).mode not in SERVING:
        return
    assert not node_of(s, step).is_needed
    assert s.replication is Replication.IN_SYNC
    assert all(b.mode in SERVING for b in s.brokers)


def check_broker(s: Any, terms: Any, step: Step) -> None:
    node = node_of(s, step)
    assert step.stage in {NodeStage.MIGRATION, NodeStage.ZOOKEEPER}
    check_restart(s, step)
    if step.stage == NodeStage.ZOOKEEPER:
        check_zookeeper_leads(s)
        assert not is_back(node), "a restart for nothing"
        if node.mode in SERVING:
            check_no_id_is_made_up(s, terms)
        assert all(b.mode is not BrokerMode.KRAFT for b in s.brokers)
    elif node.mode is not BrokerMode.INTERRUPTED:
        assert s.quorum is QuorumState.MIGRATION, "it would get its metadata from nobody"
        assert 2 * sum(c.is_caught_up for c in s.controllers) > len(s.controllers)
        assert node.mode is BrokerMode.KRAFT or node.stage is NodeStage.KRAFT


def check_leaving(s: Any, terms: Any) -> None:
    """The window: not while a broker needs the quorum, nor while its log might be final, nor with changes on one side only."""
    assert all(b.mode is not BrokerMode.KRAFT for b in s.brokers)
    if s.claim is Claim.KRAFT and s.quorum in {QuorumState.MIGRATION, QuorumState.ABSENT, QuorumState.UNKNOWN}:
        assert all(b.stage is not NodeStage.KRAFT for b in s.brokers)
    if is_emergency(s) or any(c.mode is ControllerMode.FENCED for c in s.controllers):
        return
    assert s.quorum is not QuorumState.UNKNOWN
    if s.claim is not Claim.ZOOKEEPER:
        check_no_id_is_made_up(s, terms)
    if s.quorum is QuorumState.NONE and s.claim is Claim.KRAFT:
        assert terms.accepts_metadata_loss, "what an earlier quorum has not written is lost"
    if s.quorum is QuorumState.MIGRATION:
        assert s.dual_write is DualWrite.CURRENT or terms.accepts_metadata_loss or s.is_mended_by_window


def check_no_id_is_made_up(s: Any, terms: Any) -> None:
    """By a ZooKeeper controller whose election is ours."""
    assert not s.lacks_topic_ids or terms.accepts_new_topic_ids


def check_start(s: Any, step: Step) -> None:
    """The quorum lives only for brokers that need it; with its flag, and with ZooKeeper not in charge."""
    node = node_of(s, step)
    assert step.stage == NodeStage.MIGRATION
    assert node.mode in DEAD | {ControllerMode.FENCED} or (node.mode in RUNNING_CONTROLLER and not node.is_startable)
    assert any(b.mode is BrokerMode.KRAFT or b.stage is NodeStage.KRAFT for b in s.brokers)
    if node.mode in DEAD and s.claim is Claim.KRAFT:
        assert node.stage is not NodeStage.KRAFT
        assert node.is_flag_in_file


def check_failover(s: Any, step: Step) -> None:
    assert node_of(s, step).is_leader
    assert s.dual_write is DualWrite.DEAD
    assert not s.is_failover_harmful


def check_wipe(s: Any) -> None:
    check_zookeeper_leads(s)
    assert s.claim is Claim.ZOOKEEPER
    assert all(is_back(b) for b in s.brokers)


def check_done(s: Any, done: Done) -> None:
    assert done == Done(outcome=OUTCOME)
    assert not s.is_release_due
    check_end(s)


def check_release(s: Any, step: Step) -> None:
    """The very last: without it the end would be there."""
    assert step == Step(action=StepAction.RELEASE_CONFIGURATION, stage=NodeStage.ZOOKEEPER)
    assert s.is_release_due
    check_end(s)


def check_end(s: Any) -> None:
    check_wipe(s)
    assert all(c.mode is ControllerMode.ABSENT for c in s.controllers)
    assert not any(b.has_metadata_log for b in s.brokers)
    assert s.replication is Replication.IN_SYNC


def check_what_people_said(s: Any, terms: Any, step: Step) -> None:
    if terms.is_held and not (is_without_controller(s) or is_emergency(s)):
        stopped = {node.id for node in s.nodes if node.mode in {BrokerMode.INTERRUPTED, ControllerMode.INTERRUPTED}}
        assert terms.has_begun, "hold is obeyed"
        assert step.node_id in stopped, "hold is obeyed, but for the node in hand"
    losing = any(b.id in terms.unaccepted and not is_back(b) for b in s.brokers)
    losing = losing or any(c.id in terms.unaccepted and c.mode is not ControllerMode.ABSENT for c in s.controllers)
    if losing and not is_emergency(s) and step.action != StepAction.START_NODE:
        assert step.action == StepAction.LEAVE_KRAFT, "nothing is lost that nobody has accepted"
        assert is_without_controller(s)


def check_step(s: Any, terms: Any, step: Step) -> None:
    check_invariant(s, terms, step)
    if step.node_id is not None and step.node_id > 3000 and step.action == StepAction.ROLL_NODE:
        check_controller(s, step)
        return
    check_what_people_said(s, terms, step)
    checks: dict[str, Callable[[], None]] = {
        StepAction.ROLL_NODE: lambda: check_broker(s, terms, step),
        StepAction.LEAVE_KRAFT: lambda: check_leaving(s, terms),
        StepAction.START_NODE: lambda: check_start(s, step),
        StepAction.FAIL_OVER: lambda: check_failover(s, step),
        StepAction.WIPE: lambda: check_wipe(s),
        StepAction.RELEASE_CONFIGURATION: lambda: check_release(s, step),
    }
    checks[step.action]()
    assert is_emergency(s) or all(node.mode != BrokerMode.UNKNOWN for node in s.nodes), "unknown is never healthy"


def check_everything(s: Any, terms: Any) -> None:
    decision = decide(s, terms)
    assert not isinstance(decision, Gate | Revert | Refuse), "whoever asked for the way back is not asked again"
    if isinstance(decision, Step):
        check_step(s, terms, decision)
    elif isinstance(decision, Done):
        check_done(s, decision)
    elif isinstance(decision, Wait):
        assert decision.reason != WaitReason.STATE_NOT_UNDERSTOOD, "there is a way back from everywhere"
        if decision.reason == WaitReason.HELD:
            assert not is_without_controller(s), "that is no place to rest"


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS.keys())
def test_what_the_way_back_promises_holds_everywhere(product: Product) -> None:
    walked(product, check_everything)


def test_no_approval_and_no_soak_changes_the_way_back() -> None:
    """It never reads them: it restarts no controller without its flag, whatever was approved."""

    def check(s: Any, terms: Any) -> None:
        decide(s, terms)
        never = {"approval", "without_return", "failover", "is_soak_over", "is_silence_long", "may_fail_over"}
        assert not never & vars(terms).keys()

    terms = only(BACK, approval=(Approval.CONSUMED,), is_held=BOOL)
    walked(Product(1, 1, BROKER_FIELDS, CONTROLLER_FIELDS, only(CLUSTER_FIELDS, quorum=NOT_FINAL), terms), check)


def test_the_zookeeper_controller_goes_back_last() -> None:
    def check(s: Any, terms: Any) -> None:
        decision = decide(s, terms)
        is_roll_b = isinstance(decision, Step) and (decision.action, decision.stage) == (
            StepAction.ROLL_NODE,
            NodeStage.ZOOKEEPER,
        )
        if is_roll_b and node_of(s, decision).is_zookeeper_controller:
            assert all(is_back(b) or b.is_zookeeper_controller for b in s.brokers)

    brokers = only(BROKER_FIELDS, mode=(BrokerMode.ZOOKEEPER, BrokerMode.HYBRID), stage=tuple(NodeStage)[:2])
    fenced = only(CONTROLLER_FIELDS, mode=(ControllerMode.FENCED,))
    cluster = only(CLUSTER_FIELDS, quorum=(QuorumState.ABSENT,), is_copy_failed=(False,), is_copy_stale=(False,))
    walked(Product(3, 1, brokers, fenced, cluster, only(BACK, unaccepted=(frozenset(),))), check)
