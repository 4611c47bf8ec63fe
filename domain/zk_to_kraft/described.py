"""How a decision of this kind is carried out, and in which words people are told of it. Nothing here decides anything."""

from typing import TypeVar

from domain.contracts import ActivityName, TaskQueue
from domain.decisions import CHECK_TIMEOUT, HEARTBEAT, Decision, Done, Execution, Gate, Refuse, Revert, Step, Wait
from domain.drift.report import CheckName
from domain.policy import STEP_MARGIN, MigrationPolicy
from domain.waits import WaitReason
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.policy import ZkToKraftPolicy, longest_window
from domain.zk_to_kraft.steps import FINAL_GATES, GateName, StepAction, ZkActivity
from domain.zk_to_kraft.waits import WAITS, ZkWait

WINDOW_HEARTBEAT = HEARTBEAT / 4
"""In the revert window the cluster may be without a controller: a killed worker is missed sooner."""

EFFECTS: dict[str, tuple[ActivityName | ZkActivity, str]] = {
    StepAction.PROVISION_CONTROLLER: (
        ZkActivity.PROVISION_CONTROLLER,
        "Create {node}: write file, format storage, start",
    ),
    StepAction.ROLL_NODE: (ActivityName.ROLL_NODE, "Restart {node} into stage {stage}{final}"),
    StepAction.TRY_CANARIES: (
        ActivityName.TRY_CANARIES,
        "Try at {node} what clients do, see it in both stores, remove it",
    ),
    StepAction.REMOVE_CANARIES: (ActivityName.REMOVE_CANARIES, "Remove what trying {node} has left"),
    StepAction.START_NODE: (ZkActivity.START_NODE, "Start {node} as it is"),
    StepAction.FAIL_OVER: (
        ZkActivity.FAIL_OVER,
        "Restart {node} as it is, so that another controller takes over and writes what ZooKeeper lacks",
    ),
    StepAction.LEAVE_KRAFT: (ZkActivity.LEAVE_KRAFT, "Revert window: KRaft gives way to ZooKeeper"),
    StepAction.WIPE: (ZkActivity.WIPE, "Remove what the KRaft controllers have left"),
    StepAction.RELEASE_CONFIGURATION: (
        ActivityName.RELEASE_CONFIGURATION,
        "Resume the configuration management that was paused",
    ),
}
"""The activity that carries a step out, and what it does."""

CHECKS: dict[str, tuple[CheckName, str]] = {
    StepAction.COMPARE_METADATA: (CheckName.METADATA, "Compare ZooKeeper with KRaft"),
    StepAction.CAPTURE_BASELINE: (CheckName.BASELINE, "Look at clients' data before the first broker is restarted"),
    StepAction.KEEP_METADATA: (
        CheckName.BEFORE_COPY,
        "Keep what ZooKeeper has before the last broker's restart starts Kafka's copy",
    ),
    StepAction.COMPARE_COPY: (CheckName.COPY, "Compare Kafka's copy with what ZooKeeper had"),
    StepAction.COMPARE_MESSAGES: (
        CheckName.MESSAGES,
        "Compare clients' data with what it was before the first restart",
    ),
    StepAction.COMPARE_END: (CheckName.END, "Compare what KRaft has now with what ZooKeeper had at the gate"),
}
"""The steps that only look: the check that each makes, and what it does."""

PROVEN = frozenset({StepAction.ROLL_NODE, StepAction.TRY_CANARIES, StepAction.REMOVE_CANARIES})
"""Steps after which one look is enough: the node has just been proven, or nothing of it was touched."""

DUAL_WRITE_LIVES = frozenset(
    {
        ZkWait.DUAL_WRITE_NOT_CURRENT,
        WaitReason.PARTITIONS_WOULD_STOP,
        WaitReason.SOAK_NOT_OVER,
        ZkWait.DRIFT_FOUND,
        ZkWait.COPY_DIFFERS,
        WaitReason.MESSAGES_DIFFER,
        WaitReason.CHECK_INCONCLUSIVE,
        WaitReason.CHECKS_WORKER_MISSING,
    }
)
"""Waits that are asked for after the gate `fail-over` only: dual write that has died would have been the answer."""

DIFFERS = frozenset({ZkWait.DRIFT_FOUND, ZkWait.COPY_DIFFERS, WaitReason.MESSAGES_DIFFER})
"""Waits after which an approval of `finalize` counts no more."""

OF_A_FAULT = frozenset({GateName.FAIL_OVER, GateName.FINALIZE_WITHOUT_RETURN})
"""Gates that open because of a fault. Their approval is for that fault, not for the next one like it."""


D = TypeVar("D", bound=Step | Wait | Gate | Revert | Refuse | Done)


def described(decision: D, policy: MigrationPolicy) -> D:
    """The same decision, with how it is carried out and what it means."""
    if isinstance(decision, Step):
        return decision.model_copy(update={"execution": execution_of(decision, policy)})
    if isinstance(decision, Wait):
        return decision.model_copy(update=_words(decision.reason))
    if isinstance(decision, Revert):
        return decision.model_copy(update=_words(decision.reason))
    return decision


def _words(reason: str) -> dict[str, object]:
    return {"means": WAITS[reason].means, "for_people": WAITS[reason].for_people}


def execution_of(step: Step, policy: MigrationPolicy) -> Execution:
    """How a step is carried out. Beyond the end nothing waits for the comparison: it is tried for so long, and then left."""
    if step.action in CHECKS:
        check, summary = CHECKS[step.action]
        return Execution(
            activity=ActivityName.RUN_CHECK,
            queue=TaskQueue.CHECKS,
            summary=summary,
            limit=CHECK_TIMEOUT,
            check=check,
            given_up_after=2 * CHECK_TIMEOUT if step.action == StepAction.COMPARE_END else None,
        )
    activity, summary = EFFECTS[step.action]
    is_window = step.action == StepAction.LEAVE_KRAFT
    final = ", final" if step.gate is not None else ""
    return Execution(
        activity=activity,
        queue=TaskQueue.CLUSTER,
        summary=summary.format(node="{node}", stage=step.stage, final=final),
        limit=longest_window(ZkToKraftPolicy.of(policy))
        if is_window
        else policy.stop_deadline + policy.restart_deadline + STEP_MARGIN,
        heartbeat=WINDOW_HEARTBEAT if is_window else HEARTBEAT,
        is_urgent=is_window,
        needs_agreement=step.action == StepAction.FAIL_OVER,
        proves=step.action in PROVEN,
        measures_pause=step.action == StepAction.ROLL_NODE and policy.max_client_pause is not None,
        ends_approval="the failover is done" if step.gate == GateName.FAIL_OVER else "",
    )


def withdrawn(decision: Decision, opened: Gate | None, phase: Phase | None, *, is_zookeeper_there: bool) -> dict[str, str]:
    """The gates whose approvals count no more, each with why. An approval because of a fault does not mean the next fault, also
    where no other gate opens in between."""
    over: dict[str, str] = {}
    if opened is not None:
        over |= dict.fromkeys(OF_A_FAULT - {opened.name}, "the fault that the gate was opened for is over")
    if is_zookeeper_there and phase not in {Phase.FINALIZING, Phase.KRAFT, Phase.FINALIZED_EARLY}:
        over[GateName.FINALIZE_WITHOUT_RETURN] = "ZooKeeper has answered again"
    reason = decision.reason if isinstance(decision, Wait) else None
    if reason in DIFFERS:
        over[GateName.FINALIZE] = f"the comparison says {reason}"
    if reason in DUAL_WRITE_LIVES:
        over[GateName.FAIL_OVER] = "dual write lives again"
    return over


def ended(phase: Phase | None) -> dict[str, str]:
    """The gates whose sections end with a phase, each with why."""
    return dict.fromkeys(FINAL_GATES, "the cluster runs on KRaft alone") if phase is Phase.KRAFT else {}
