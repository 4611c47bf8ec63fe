"""What `decide` promises on the way forward, over whole products of `Situation` and `Terms`; see `walk_of_situations`."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from itertools import product
from typing import Any

import pytest

from domain.decisions import Decision, Done, Gate, Intent, Refuse, Revert, Step, Wait
from domain.health.canary_debt import CanaryDebt
from domain.waits import WaitReason
from domain.zk_to_kraft.conditions import GIVEN, Approval, Check, Compared, Terms
from domain.zk_to_kraft.decide import decide
from domain.zk_to_kraft.guards import RUNNING_CONTROLLER, STAGE_OF_MODE
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
from domain.zk_to_kraft.steps import GateName, NodeStage, StepAction
from domain.zk_to_kraft.waits import ZkWait
from tests.unit.walk_of_situations import (
    BOOL,
    BROKER_FIELDS,
    CHECKS,
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

FORWARD = only(TERMS_FIELDS, intent=(Intent.FORWARD,))
FORWARD_TERMS = only(FORWARD, without_return=(Approval.NONE,), is_committed=(False,))
COMMITTED = only(FORWARD, without_return=(Approval.NONE,), is_held=(True,), is_committed=(True,), approval=(Approval.CONSUMED,))
WELL: dict[str, Sequence[Any]] = {"is_copy_stale": (False,), "is_copy_failed": (False,)}

PRODUCTS = {
    # Everything there is, for one broker and one controller, while nobody has given ZooKeeper up.
    "1x1": Product(1, 1, BROKER_FIELDS, CONTROLLER_FIELDS, CLUSTER_FIELDS, FORWARD_TERMS),
    # The same where an approval is consumed and somebody holds: that takes effect after the section.
    "1x1 committed": Product(
        1,
        1,
        only(BROKER_FIELDS, is_file_ours=(True,)),
        only(CONTROLLER_FIELDS, is_startable=(True,), is_flag_in_file=(True,)),
        CLUSTER_FIELDS,
        COMMITTED,
    ),
    # The same after somebody has.
    "1x1 without return": Product(
        1,
        1,
        only(BROKER_FIELDS, is_file_ours=(True,)),
        only(CONTROLLER_FIELDS, is_startable=(True,), is_flag_in_file=(True,)),
        only(CLUSTER_FIELDS, claim=(Claim.KRAFT, Claim.UNKNOWN), **WELL),
        only(FORWARD, without_return=(Approval.VALID, Approval.CONSUMED), approval=(Approval.NONE,)),
    ),
    # Two of each, without what one of each has shown: that unknown stops everything, and that stale is as good as none.
    "2x2": Product(
        2,
        2,
        only(
            BROKER_FIELDS,
            mode=(BrokerMode.ZOOKEEPER, BrokerMode.HYBRID, BrokerMode.KRAFT, BrokerMode.INTERRUPTED),
            stage=tuple(NodeStage),
            is_file_ours=(True,),
        ),
        only(
            CONTROLLER_FIELDS,
            mode=(ControllerMode.ABSENT, ControllerMode.MIGRATING, ControllerMode.FINAL, ControllerMode.INTERRUPTED),
            stage=(NodeStage.MIGRATION, NodeStage.KRAFT),
            is_flag_in_file=(True,),
            is_startable=(True,),
        ),
        only(
            CLUSTER_FIELDS,
            quorum=(QuorumState.PRE_MIGRATION, QuorumState.MIGRATION, QuorumState.POST_MIGRATION),
            claim=(Claim.ZOOKEEPER, Claim.KRAFT),
            dual_write=(DualWrite.CURRENT, DualWrite.NOT_CURRENT),
            registration=(Registration.AGREES,),
            replication=(Replication.IN_SYNC,),
            **WELL,
        ),
        only(FORWARD_TERMS, approval=(Approval.NONE, Approval.VALID, Approval.CONSUMED)),
    ),
    # Finalisation of a real quorum: of two controllers none can be spared, of three one can.
    "1x3": Product(
        1,
        3,
        only(BROKER_FIELDS, mode=(BrokerMode.HYBRID, BrokerMode.KRAFT, BrokerMode.DOWN), stage=tuple(NodeStage)[1:]),
        only(
            CONTROLLER_FIELDS,
            mode=(ControllerMode.MIGRATING, ControllerMode.FINAL, ControllerMode.INTERRUPTED, ControllerMode.DOWN),
            stage=(NodeStage.MIGRATION, NodeStage.KRAFT),
            is_flag_in_file=(True,),
            is_startable=(True,),
        ),
        only(
            CLUSTER_FIELDS,
            quorum=(QuorumState.MIGRATION, QuorumState.POST_MIGRATION),
            claim=(Claim.KRAFT,),
            dual_write=(DualWrite.CURRENT, DualWrite.DEAD),
            registration=(Registration.AGREES,),
            replication=(Replication.IN_SYNC,),
            **WELL,
        ),
        only(FORWARD_TERMS, approval=(Approval.NONE, Approval.VALID, Approval.CONSUMED)),
    ),
    # Canaries are due at none, one or both of two brokers.
    "2x1 with canaries": Product(
        2,
        1,
        only(
            BROKER_FIELDS,
            mode=(BrokerMode.ZOOKEEPER, BrokerMode.HYBRID, BrokerMode.KRAFT, BrokerMode.INTERRUPTED, BrokerMode.UNKNOWN),
            stage=tuple(NodeStage),
            is_file_ours=(True,),
            canaries=tuple(CanaryDebt),
        ),
        only(
            CONTROLLER_FIELDS,
            mode=(ControllerMode.MIGRATING,),
            stage=(NodeStage.MIGRATION,),
            is_flag_in_file=(True,),
            is_startable=(True,),
        ),
        only(
            CLUSTER_FIELDS,
            quorum=(QuorumState.PRE_MIGRATION, QuorumState.MIGRATION, QuorumState.POST_MIGRATION),
            claim=(Claim.ZOOKEEPER, Claim.KRAFT),
            dual_write=(DualWrite.CURRENT, DualWrite.NOT_CURRENT),
            registration=(Registration.AGREES,),
            **WELL,
        ),
        only(FORWARD_TERMS, approval=(Approval.NONE, Approval.VALID, Approval.CONSUMED)),
    ),
}

SERVING = {BrokerMode.ZOOKEEPER, BrokerMode.HYBRID, BrokerMode.KRAFT}
RUNNING = {ControllerMode.MIGRATING, ControllerMode.FINAL}
UP = {str(mode) for mode in (*SERVING, *RUNNING)}


def subject(s: Any, step: Step) -> Any:
    return next(node for node in s.nodes if node.id == step.node_id)


def others(s: Any, step: Step) -> list[Any]:
    return [node for node in s.nodes if node.id != step.node_id]


def is_controller(step: Step) -> bool:
    return step.node_id is not None and step.node_id > 3000


def finishes_interrupted(s: Any, step: Step) -> bool:
    return bool(subject(s, step).mode == BrokerMode.INTERRUPTED)


def is_given_up(s: Any, terms: Any) -> bool:
    """A person has said that ZooKeeper is lost for good, and it is silent."""
    return s.claim is Claim.UNKNOWN and terms.without_return in GIVEN


def is_final_too_early(s: Any) -> bool:
    """The log is final, and a broker is not in KRaft mode: the way out is forward, and nobody holds it up."""
    return s.quorum is QuorumState.POST_MIGRATION and any(b.mode is not BrokerMode.KRAFT for b in s.brokers)


def check_majority_without(s: Any, node_id: int) -> None:
    rest = [c for c in s.controllers if c.id != node_id]
    majority = len(s.controllers) // 2 + 1
    assert not rest or sum(c.is_caught_up and c.mode in RUNNING for c in rest) >= majority


def check_irreversible(s: Any, terms: Any, step: Step) -> None:
    """A controller loses its flag: every broker in KRaft mode, nothing unknown or down, a majority, people agreed."""
    assert all(b.mode is BrokerMode.KRAFT for b in s.brokers)
    assert s.replication is not Replication.UNKNOWN
    if not finishes_interrupted(s, step):
        assert all(node.mode in UP for node in others(s, step))
        check_majority_without(s, step.node)
    if s.quorum is QuorumState.POST_MIGRATION:
        assert step.gate is None
        return
    gates: dict[str, Approval] = {GateName.FINALIZE: terms.approval, GateName.FINALIZE_WITHOUT_RETURN: terms.without_return}
    assert step.gate is not None
    assert gates[step.gate] in GIVEN
    if not finishes_interrupted(s, step) and not terms.has_begun_to_finalize:
        assert s.quorum is QuorumState.MIGRATION
        assert terms.is_soak_over
        is_approved = terms.approval is Approval.VALID and s.dual_write is DualWrite.CURRENT and is_compared(terms)
        assert is_given_up(s, terms) or is_approved
        if is_approved:
            check_none_is_owed(s)


def check_standbys_first(s: Any, step: Step) -> None:
    node = subject(s, step)
    if (
        finishes_interrupted(s, step)
        or node.mode is ControllerMode.FINAL
        or node.stage is NodeStage.KRAFT
        or not node.is_leader
    ):
        return
    assert all(c.mode is ControllerMode.FINAL or c.is_leader for c in s.controllers)


def check_begun_first(s: Any, step: Step) -> None:
    """No node is begun while the file of another is ahead of its process; of a controller's, once all brokers are there."""
    if step.action != StepAction.ROLL_NODE or finishes_interrupted(s, step):
        return
    begun = {b.id for b in s.brokers if STAGE_OF_MODE.get(b.mode, b.stage) is not b.stage}
    if all(b.mode is BrokerMode.KRAFT for b in s.brokers):
        begun |= {c.id for c in s.controllers if c.mode is ControllerMode.MIGRATING and c.stage is NodeStage.KRAFT}
    if not begun and s.quorum is QuorumState.POST_MIGRATION and not is_controller(step):
        assert subject(s, step).mode is not BrokerMode.KRAFT, "then only controllers are left to finish"
    assert not begun or step.node_id in begun or (is_controller(step) and is_behind(s, step))


def check_no_edit_is_put_into_force(s: Any, step: Step) -> None:
    """While a file that others have edited waits for a restart nothing begins, whatever the edit says. What we have stopped is
    started all the same; after an end too early that which the file says is wanted."""
    if step.node_id is not None and subject(s, step).mode in {BrokerMode.INTERRUPTED, ControllerMode.INTERRUPTED}:
        return
    if step.action == StepAction.START_NODE:
        return
    edited = [b for b in s.brokers if b.mode in SERVING and b.stage is not STAGE_OF_MODE[b.mode] and not b.is_file_ours]
    assert not edited or (is_final_too_early(s) and all(b.stage is NodeStage.KRAFT for b in edited))


def is_behind(s: Any, step: Step) -> bool:
    """A flag was being given back when the log became final."""
    node = subject(s, step)
    return bool((node.mode, node.stage) == (ControllerMode.FINAL, NodeStage.MIGRATION))


def check_broker_roll(s: Any, terms: Any, step: Step) -> None:
    assert step.stage in {NodeStage.MIGRATION, NodeStage.KRAFT}, "there is no way to roll forward to ZooKeeper"
    assert step.gate is None
    is_running = not finishes_interrupted(s, step)
    if step.stage == NodeStage.KRAFT:
        assert s.quorum in {QuorumState.MIGRATION, QuorumState.POST_MIGRATION}, "rejected, and exits after a minute"
        if is_running and s.quorum is QuorumState.MIGRATION:
            assert s.dual_write is DualWrite.CURRENT
    else:
        assert s.quorum is not QuorumState.POST_MIGRATION, "a hybrid broker that starts now gets metadata from nobody"
        assert s.quorum is QuorumState.MIGRATION or not s.is_copy_left_over, "the last registration would delete metadata"
    if is_running:
        node = subject(s, step)
        assert not node.is_needed
        assert node.mode in SERVING
        assert STAGE_OF_MODE[node.mode] != step.stage or node.stage != step.stage, "a restart for nothing"
        is_urgent = s.quorum is QuorumState.POST_MIGRATION or terms.has_begun_to_finalize
        if not is_urgent and all(STAGE_OF_MODE.get(b.mode) is b.stage for b in s.brokers):
            check_none_is_owed(s)


def check_provisioning(s: Any, step: Step) -> None:
    node = subject(s, step)
    assert step.stage == NodeStage.MIGRATION
    if node.mode is ControllerMode.INTERRUPTED:
        assert (node.stage, node.is_startable, step.companions) == (NodeStage.MIGRATION, False, ())
        return
    absent = tuple(c.id for c in s.controllers if c.mode is ControllerMode.ABSENT)
    assert step.nodes == absent, "all that are missing, and no other, in one step"
    assert s.claim is Claim.ZOOKEEPER
    assert s.quorum is not QuorumState.POST_MIGRATION
    assert all((b.mode, b.stage) == (BrokerMode.ZOOKEEPER, NodeStage.ZOOKEEPER) for b in s.brokers)


def check_start(s: Any, step: Step) -> None:
    """What we stopped is started; a fence is lifted as long as ZooKeeper has not taken over, or never will."""
    node = subject(s, step)
    if node.mode is ControllerMode.INTERRUPTED:
        assert (node.stage, node.is_startable) == (NodeStage.MIGRATION, True)
        return
    assert node.mode is ControllerMode.FENCED or (node.mode in RUNNING_CONTROLLER and not node.is_startable)
    assert s.quorum is QuorumState.POST_MIGRATION or (s.claim is Claim.KRAFT and s.has_migration_znode)


def check_failover(s: Any, terms: Any, step: Step) -> None:
    assert subject(s, step).is_leader
    assert s.dual_write is DualWrite.DEAD
    assert not s.is_failover_harmful
    assert terms.may_fail_over or terms.failover in GIVEN
    assert step.gate == (None if terms.may_fail_over else GateName.FAIL_OVER), "the step uses the approval up"
    check_majority_without(s, step.node)


def check_nothing_decisive_is_open(s: Any, terms: Any, step: Step) -> None:
    """Nothing begins while anything is unknown, down, unregistered or out of sync."""
    assert all(node.mode != BrokerMode.UNKNOWN for node in s.nodes)
    assert s.replication is not Replication.UNKNOWN
    assert s.claim is not Claim.UNKNOWN or s.quorum is QuorumState.POST_MIGRATION or is_given_up(s, terms)
    if step.action in {StepAction.PROVISION_CONTROLLER, StepAction.START_NODE}:
        return
    if step.node_id is not None and finishes_interrupted(s, step):
        return
    assert all(node.mode in UP for node in s.nodes)
    assert all(b.stage is not None for b in s.brokers)
    assert is_final_too_early(s) or all(c.stage is not None for c in s.controllers)
    assert all(c.is_caught_up for c in s.controllers)
    assert s.quorum in {QuorumState.PRE_MIGRATION, QuorumState.MIGRATION, QuorumState.POST_MIGRATION}
    if is_final_too_early(s):
        return  # going on is what mends the rest
    if s.quorum is not QuorumState.POST_MIGRATION and not terms.has_begun_to_finalize:
        assert not s.lacks_topic_ids, "a ZooKeeper controller would make up an id"
    assert s.registration is Registration.AGREES
    assert s.replication is Replication.IN_SYNC


def gives_flag_back(s: Any, step: Step) -> bool:
    return step.action == StepAction.ROLL_NODE and is_controller(step) and step.stage == NodeStage.MIGRATION


def check_flag_back(s: Any, step: Step) -> None:
    """Of those without flag one that runs so, before one that would after its next restart; the leader after a standby."""
    lost = [c for c in s.controllers if has_lost_its_flag(s, c)]
    assert step.node in [c.id for c in lost]
    assert subject(s, step).mode is not ControllerMode.UNKNOWN
    if subject(s, step).mode is not ControllerMode.FINAL:
        assert all(c.mode is not ControllerMode.FINAL for c in lost)


def is_compared(terms: Any) -> bool:
    """In this dual write, lately, and nothing differed."""
    is_same = terms.compared is Compared.CLEAN and not terms.is_check_due and not terms.is_checker_missing
    return is_same and terms.messages == Check() and terms.copy.found is not Compared.DRIFT


def check_comparison(s: Any, terms: Any, step: Step) -> None:
    """Only right before the end, where dual write is current, and not again before something may have changed."""
    assert (step.node_id, step.gate) == (None, None)
    assert s.quorum is QuorumState.MIGRATION
    assert s.dual_write is DualWrite.CURRENT
    assert all((b.mode, b.stage) == (BrokerMode.KRAFT, NodeStage.KRAFT) for b in s.brokers)
    assert terms.is_soak_over
    assert not terms.has_begun_to_finalize
    assert terms.copy.found is not Compared.DRIFT
    if step.action == StepAction.COMPARE_MESSAGES:
        assert terms.messages.is_due
    else:
        assert terms.is_check_due or (terms.compared is Compared.NONE and not terms.is_checker_missing)


def check_comparison_of_end(s: Any, terms: Any, step: Step) -> None:
    """Only where the end is there, nothing is owed, and it was not tried."""
    assert (step.node_id, step.gate, step.stage) == (None, None, NodeStage.KRAFT)
    assert terms.end.is_due
    assert not s.is_release_due
    check_none_is_owed(s)
    check_end(s)


def check_baseline(s: Any, terms: Any, step: Step) -> None:
    """Only right before the first broker is restarted."""
    assert (step.node_id, step.gate) == (None, None)
    assert terms.baseline.is_due
    assert all((b.mode, b.stage) == (BrokerMode.ZOOKEEPER, NodeStage.ZOOKEEPER) for b in s.brokers)
    assert all(c.mode is ControllerMode.MIGRATING for c in s.controllers)


def check_kept(s: Any, terms: Any, step: Step) -> None:
    """Only right before the last broker is restarted, whose registration starts the copy; or while that does not come."""
    assert (step.node_id, step.gate) == (None, None)
    assert terms.kept.is_due
    modes = [b.mode for b in s.brokers]
    if all(mode is BrokerMode.HYBRID for mode in modes):
        assert s.quorum not in {QuorumState.MIGRATION, QuorumState.POST_MIGRATION}
        assert s.claim is Claim.ZOOKEEPER
        return
    assert modes.count(BrokerMode.ZOOKEEPER) == 1
    assert (s.quorum, s.claim) == (QuorumState.PRE_MIGRATION, Claim.ZOOKEEPER)


def check_copy(s: Any, terms: Any, step: Step) -> None:
    """Only of a copy that is complete, and before any broker depends on it; or where others have found that it lacks something,
    once more before the end.
    """
    assert (step.node_id, step.gate) == (None, None)
    assert terms.copy.is_due
    is_known = terms.copy.found is Compared.DRIFT and all(b.mode is BrokerMode.KRAFT for b in s.brokers)
    assert is_known or all(b.mode is BrokerMode.HYBRID for b in s.brokers)
    assert (s.quorum, s.dual_write) == (QuorumState.MIGRATION, DualWrite.CURRENT)


def check_release(s: Any, step: Step) -> None:
    """The very last: without it the end would be there."""
    assert step == Step(action=StepAction.RELEASE_CONFIGURATION, stage=NodeStage.KRAFT)
    assert s.is_release_due
    check_end(s)


def check_removal(s: Any, step: Step) -> None:
    """At the end alone, of what is still owed then."""
    assert subject(s, step).canaries is not CanaryDebt.NONE
    assert step == Step(action=StepAction.REMOVE_CANARIES, node_id=step.node_id, stage=NodeStage.KRAFT)
    check_end(s)


def check_nothing_is_written_back(s: Any, terms: Any, step: Step) -> None:
    """No node restarts that has not been stopped already, as long as a file may be written back; but for the end once begun."""
    is_ending = terms.has_begun_to_finalize or s.quorum is QuorumState.POST_MIGRATION
    if step.action == StepAction.ROLL_NODE and not is_ending and s.running_again:
        assert subject(s, step).mode in {BrokerMode.INTERRUPTED, ControllerMode.INTERRUPTED}


def check_canary(s: Any, terms: Any, step: Step) -> None:
    """Only while somebody leads who writes to both stores what both should have, and away from the copy."""
    node = subject(s, step)
    assert node.canaries is CanaryDebt.DUE
    assert (step.stage, step.gate) == (STAGE_OF_MODE[node.mode], None)
    assert not terms.has_begun_to_finalize
    if any(b.mode is BrokerMode.ZOOKEEPER for b in s.brokers):
        assert (s.quorum, s.claim) == (QuorumState.PRE_MIGRATION, Claim.ZOOKEEPER)
        return
    assert (s.quorum, s.dual_write) == (QuorumState.MIGRATION, DualWrite.CURRENT)
    assert any(b.mode is BrokerMode.KRAFT for b in s.brokers) or terms.copy == Check()


def check_none_is_owed(s: Any) -> None:
    assert not any(b.canaries is CanaryDebt.DUE for b in s.brokers), "clients' ways have still to be tried"


def check_step(s: Any, terms: Any, step: Step) -> None:
    check_invariant(s, terms, step)
    if gives_flag_back(s, step):
        check_flag_back(s, step)
        return
    check_nothing_decisive_is_open(s, terms, step)
    check_begun_first(s, step)
    check_no_edit_is_put_into_force(s, step)
    check_nothing_is_written_back(s, terms, step)
    checks: dict[str, Callable[[], None]] = {
        StepAction.PROVISION_CONTROLLER: lambda: check_provisioning(s, step),
        StepAction.START_NODE: lambda: check_start(s, step),
        StepAction.FAIL_OVER: lambda: check_failover(s, terms, step),
        StepAction.COMPARE_METADATA: lambda: check_comparison(s, terms, step),
        StepAction.COMPARE_MESSAGES: lambda: check_comparison(s, terms, step),
        StepAction.COMPARE_END: lambda: check_comparison_of_end(s, terms, step),
        StepAction.CAPTURE_BASELINE: lambda: check_baseline(s, terms, step),
        StepAction.KEEP_METADATA: lambda: check_kept(s, terms, step),
        StepAction.COMPARE_COPY: lambda: check_copy(s, terms, step),
        StepAction.RELEASE_CONFIGURATION: lambda: check_release(s, step),
        StepAction.TRY_CANARIES: lambda: check_canary(s, terms, step),
        StepAction.REMOVE_CANARIES: lambda: check_removal(s, step),
    }
    if step.action in checks:
        checks[step.action]()
    else:
        check_roll(s, terms, step)
    if terms.is_held and not (terms.is_committed or terms.has_begun_to_finalize or is_final_too_early(s)):
        assert finishes_a_node(s, terms, step), "held means that nothing begins"


def finishes_a_node(s: Any, terms: Any, step: Step) -> bool:
    """What is allowed in a hold: the node that a step of this migration has stopped, alone."""
    stopped = {node.id for node in s.nodes if node.mode in {BrokerMode.INTERRUPTED, ControllerMode.INTERRUPTED}}
    return terms.has_begun and step.node_id in stopped and not step.companions


def check_roll(s: Any, terms: Any, step: Step) -> None:
    if is_controller(step):
        assert (step.action, step.stage) == (StepAction.ROLL_NODE, NodeStage.KRAFT)
        check_irreversible(s, terms, step)
        check_standbys_first(s, step)
    else:
        assert step.action == StepAction.ROLL_NODE
        check_broker_roll(s, terms, step)


def check_gate(s: Any, terms: Any, gate: Gate) -> None:
    assert gate.evidence_hash == "evidence"
    assert not terms.is_held or terms.has_begun_to_finalize or terms.is_committed
    assert s.replication is Replication.IN_SYNC
    assert s.registration is Registration.AGREES
    if gate.name == GateName.FAIL_OVER:
        assert (s.quorum, s.dual_write) == (QuorumState.MIGRATION, DualWrite.DEAD)
        assert not s.is_failover_harmful
        assert not terms.may_fail_over
        assert terms.failover not in GIVEN
        return
    assert s.quorum is QuorumState.MIGRATION
    assert all((b.mode, b.stage) == (BrokerMode.KRAFT, NodeStage.KRAFT) for b in s.brokers)
    assert all(c.mode is ControllerMode.MIGRATING and c.is_caught_up for c in s.controllers)
    if gate.name == GateName.FINALIZE_WITHOUT_RETURN:
        assert s.claim is Claim.UNKNOWN
        assert terms.is_silence_long
        assert terms.without_return not in GIVEN
        return
    assert terms.approval not in GIVEN
    check_none_is_owed(s)
    assert terms.is_soak_over
    assert is_compared(terms)
    assert s.dual_write is DualWrite.CURRENT
    assert all(c.stage is NodeStage.MIGRATION and c.is_flag_in_file for c in s.controllers)


def check_done(s: Any, terms: Any, done: Done) -> None:
    assert done == Done(outcome=Phase.KRAFT)
    assert not terms.end.is_due
    assert not s.is_release_due
    assert all(b.canaries is CanaryDebt.NONE for b in s.brokers), "nothing is owed"
    check_end(s)


def check_end(s: Any) -> None:
    assert phase_of(s) is Phase.KRAFT
    assert s.quorum is QuorumState.POST_MIGRATION
    assert all(b.mode is BrokerMode.KRAFT for b in s.brokers)
    assert all((c.mode, c.stage) == (ControllerMode.FINAL, NodeStage.KRAFT) for c in s.controllers)
    assert s.replication is Replication.IN_SYNC


def check_revert(s: Any, terms: Any, revert: Revert) -> None:
    """The only two things that turn us round by ourselves."""
    if revert.reason == ZkWait.COPY_LEFT_OVER:
        assert s.is_copy_stale
    else:
        assert revert.reason == ZkWait.COPY_CANNOT_FINISH
        assert s.is_copy_failed
        assert terms.is_failed_copy_reverted


def has_lost_its_flag(s: Any, c: Any) -> bool:
    """It runs without the flag, or would after its next restart; a fenced one may be restarted while KRaft has the claim."""
    if c.mode is ControllerMode.ABSENT or (c.mode is ControllerMode.FENCED and s.claim is not Claim.KRAFT):
        return False
    return c.mode is ControllerMode.FINAL or c.stage is NodeStage.KRAFT or not c.is_flag_in_file


def is_alarm_due(s: Any, terms: Any) -> bool:
    """Some controller has lost its flag, neither log nor people said final, and no copy is in a worse state still."""
    if s.quorum is QuorumState.POST_MIGRATION or s.is_copy_stale or s.is_copy_failed:
        return False
    if not any(has_lost_its_flag(s, c) for c in s.controllers):
        return False
    are_brokers_there = not any(
        b.mode in {BrokerMode.ZOOKEEPER, BrokerMode.HYBRID}
        or (b.mode is not BrokerMode.KRAFT and b.stage in {NodeStage.ZOOKEEPER, NodeStage.MIGRATION})
        for b in s.brokers
    )
    return not (terms.has_begun_to_finalize and are_brokers_there)


def check_everything(s: Any, terms: Any) -> None:
    decision: Decision = decide(s, terms)
    is_alarm = isinstance(decision, Wait) and decision.reason == ZkWait.CONTROLLER_LOST_ITS_FLAG
    is_cure = isinstance(decision, Step) and gives_flag_back(s, decision)
    assert (is_alarm or is_cure) == is_alarm_due(s, terms)
    if isinstance(decision, Step):
        check_step(s, terms, decision)
    elif isinstance(decision, Gate):
        check_gate(s, terms, decision)
    elif isinstance(decision, Done):
        check_done(s, terms, decision)
    elif isinstance(decision, Revert):
        check_revert(s, terms, decision)
    assert not isinstance(decision, Refuse), "only the preflight refuses"


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS.keys())
def test_what_decide_promises_holds_everywhere(product: Product) -> None:
    walked(product, check_everything)


ONE_OF_EACH = (1, 1, BROKER_FIELDS, CONTROLLER_FIELDS, CLUSTER_FIELDS)


def test_every_situation_has_a_phase_or_is_unknown() -> None:
    def check(s: Any, _: Any) -> None:
        phase = phase_of(s)
        assert phase is not None or any(node.mode == BrokerMode.UNKNOWN for node in s.nodes)

    walked(Product(*ONE_OF_EACH, {}), check)


def test_a_stale_approval_is_as_good_as_none() -> None:
    def check(s: Any, terms: Any) -> None:
        common: dict[str, Any] = {"is_held": terms.is_held, "is_soak_over": terms.is_soak_over}
        none, stale = (Terms(approval=a, without_return=a, **common) for a in (Approval.NONE, Approval.STALE))
        assert decide(s, none) == decide(s, stale)

    walked(Product(*ONE_OF_EACH, {"is_held": BOOL, "is_soak_over": BOOL}), check)


def test_without_a_comparison_that_was_clean_nothing_ends_and_nobody_waits_in_silence() -> None:
    """Where the gate would open: whatever is known of both sides, it is compared, or a wait says by name why not."""
    controller = ControllerSituation(3001, ControllerMode.MIGRATING, NodeStage.MIGRATION, is_leader=True, is_caught_up=True)
    s = Situation(
        brokers=(BrokerSituation(1, BrokerMode.KRAFT, NodeStage.KRAFT),),
        controllers=(controller,),
        quorum=QuorumState.MIGRATION,
        claim=Claim.KRAFT,
        dual_write=DualWrite.CURRENT,
        registration=Registration.AGREES,
        replication=Replication.IN_SYNC,
    )
    led: dict[str, int] = {}
    for compared, is_due, is_missing, approval, messages, copy in product(Compared, BOOL, BOOL, Approval, CHECKS, CHECKS):
        metadata = {"compared": compared, "is_check_due": is_due, "is_checker_missing": is_missing}
        terms = Terms(**metadata, approval=approval, messages=messages, copy=copy)
        decision = decide(s, terms)
        is_end = isinstance(decision, Gate) or (isinstance(decision, Step) and decision.gate is not None)
        assert is_end == (is_compared(terms) or approval is Approval.CONSUMED)
        name = getattr(decision, "reason", None) or getattr(decision, "action", None) or decision.decision
        led[name] = led.get(name, 0) + 1
    print(led)
    assert led.keys() == {
        *(ZkWait.DRIFT_FOUND, WaitReason.CHECK_INCONCLUSIVE, WaitReason.CHECKS_WORKER_MISSING),
        *(StepAction.COMPARE_METADATA, StepAction.COMPARE_MESSAGES, StepAction.COMPARE_COPY, StepAction.ROLL_NODE, "gate"),
        *(WaitReason.MESSAGES_DIFFER, ZkWait.COPY_DIFFERS),
    }


def test_held_means_no_step_unless_finalisation_has_begun() -> None:
    """What is worse than any hold is answered all the same: a lost flag, a copy that kills or deletes, an end too early. And a
    node that a step has stopped is finished."""

    def check(s: Any, terms: Any) -> None:
        decision = decide(s, terms)
        if isinstance(decision, Step):
            assert gives_flag_back(s, decision) or is_final_too_early(s) or finishes_a_node(s, terms, decision)
        elif isinstance(decision, Revert):
            assert s.is_copy_stale or s.is_copy_failed
        else:
            assert isinstance(decision, Wait)
            worse = {ZkWait.CONTROLLER_LOST_ITS_FLAG, ZkWait.COPY_CANNOT_FINISH}
            assert decision.reason in worse | {WaitReason.HELD} or is_final_too_early(s)

    not_begun = (Approval.NONE, Approval.STALE, Approval.VALID)
    held = only(
        TERMS_FIELDS,
        intent=(Intent.FORWARD,),
        approval=not_begun,
        without_return=not_begun,
        is_held=(True,),
        is_committed=(False,),
    )
    walked(Product(*ONE_OF_EACH, held), check)


def test_once_the_log_is_final_the_way_back_is_the_way_forward() -> None:
    def check(s: Any, terms: Any) -> None:
        forward = Terms(is_held=terms.is_held, accepts_metadata_loss=True, unaccepted=frozenset({1, 3001}))
        back = Terms(intent=Intent.REVERT, is_held=terms.is_held)
        assert decide(s, forward) == decide(s, back)

    final = only(CLUSTER_FIELDS, quorum=(QuorumState.POST_MIGRATION,))
    walked(Product(1, 1, BROKER_FIELDS, CONTROLLER_FIELDS, final, {"is_held": BOOL}), check)


def test_the_zookeeper_controller_is_rolled_last() -> None:
    """Of the brokers that are still in ZooKeeper mode; a roll that has begun is finished first."""

    def check(s: Any, terms: Any) -> None:
        decision = decide(s, terms)
        if not isinstance(decision, Step) or decision.action != StepAction.ROLL_NODE or is_controller(decision):
            return
        rolled = subject(s, decision)
        is_begun = (rolled.mode, rolled.stage) != (BrokerMode.ZOOKEEPER, NodeStage.ZOOKEEPER)
        if decision.stage == NodeStage.MIGRATION and not is_begun and rolled.is_zookeeper_controller:
            waiting = [b for b in s.brokers if b.mode is BrokerMode.ZOOKEEPER and b.id != rolled.id]
            assert all(b.is_zookeeper_controller for b in waiting)

    walked(
        Product(
            3,
            1,
            only(
                BROKER_FIELDS, mode=(BrokerMode.ZOOKEEPER, BrokerMode.HYBRID), stage=tuple(NodeStage)[:2], is_file_ours=(True,)
            ),
            only(CONTROLLER_FIELDS, mode=(ControllerMode.MIGRATING,), stage=(NodeStage.MIGRATION,), is_startable=(True,)),
            only(CLUSTER_FIELDS, registration=(Registration.AGREES,), replication=(Replication.IN_SYNC,), **WELL),
            only(FORWARD_TERMS, approval=(Approval.NONE,)),
        ),
        check,
    )


def test_the_walk_covers_every_field_of_a_situation() -> None:
    """A new field must be walked too, or these tests would quietly prove less."""
    assert {f.name for f in fields(BrokerSituation)} == {"id", *BROKER_FIELDS}
    assert {f.name for f in fields(ControllerSituation)} == {"id", *CONTROLLER_FIELDS}
    assert {f.name for f in fields(Situation)} == {"brokers", "controllers", *CLUSTER_FIELDS}
    assert {f.name for f in fields(Terms)} == {"evidence_hash", *TERMS_FIELDS}
