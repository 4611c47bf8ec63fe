"""What a migration tells people: its progress record, its line of waiting, its page in Temporal's UI. Pure."""

from datetime import datetime

from domain.contracts import Assessment
from domain.decisions import WAIT_MEANS, Gate, Step, StepAction, Wait, WaitReason
from domain.records import MigrationState, NodeStatus, Waiting

APPROVAL = "approval"
"""The reason of a wait for a person at a gate."""


def state_of(assessment: Assessment) -> MigrationState:
    """The state that people see while a migration is under way."""
    decision = assessment.decision
    if isinstance(decision, Wait):
        return MigrationState.HELD if decision.reason is WaitReason.HELD else MigrationState.WAITING
    return MigrationState.WAITING if isinstance(decision, Gate) else MigrationState.RUNNING


def waiting_of(assessment: Assessment, since: datetime, held_because: str) -> Waiting | None:
    """Why nothing happens, or `None` when something does."""
    decision = assessment.decision
    if isinstance(decision, Gate):
        means = f"A person has to approve {decision.name}, on the evidence {decision.evidence_hash[:12]}…"
        return Waiting(reason=APPROVAL, means=means, since=since, objects=(decision.name,), for_people=True)
    if not isinstance(decision, Wait):
        return None
    is_held = decision.reason is WaitReason.HELD
    return Waiting(
        reason=decision.reason,
        means=WAIT_MEANS[decision.reason],
        since=since,
        objects=decision.objects,
        detail=held_because if is_held else decision.detail,
        for_people=is_held,
    )


def summary_of(step: Step, node: str) -> str:
    """One line for Temporal's UI."""
    if step.action is StepAction.PROVISION_CONTROLLER:
        return f"Create {node}: write its file, format its storage, start it"
    return f"Restart {node} into stage {step.stage}" + (", final" if step.gate is not None else "")


def name_of(assessment: Assessment, node_id: int) -> str:
    """A node's name, from its id."""
    return next((n.name for n in assessment.nodes if n.name.endswith(f"-{node_id}")), str(node_id))


def with_restarts(nodes: tuple[NodeStatus, ...], restarts: dict[str, int]) -> tuple[NodeStatus, ...]:
    return tuple(node.model_copy(update={"restarts": restarts.get(node.name, 0)}) for node in nodes)


def details_of(assessment: Assessment, waiting: Waiting | None, restarts: dict[str, int]) -> str:
    """The page that Temporal's UI shows of a running migration (Markdown)."""
    gauges = assessment.gauges
    lines = [
        f"### {assessment.phase or 'phase unknown'}",
        f"{assessment.steps_done} of {assessment.steps_total} steps done",
        "",
        f"**Waiting: {waiting.reason}** — {waiting.means}" if waiting is not None else "Working.",
        ", ".join(waiting.objects) if waiting is not None else "",
        f"```\n{waiting.detail}\n```" if waiting is not None and waiting.detail else "",
        "",
        "| node | mode | file | ready | restarts |",
        "|---|---|---|---|---|",
        *(
            f"| {n.name} | {n.mode} | {n.stage} | {'yes' if n.is_ready else 'no'} | {restarts.get(n.name, 0)} |"
            for n in assessment.nodes
        ),
        "",
        f"ZkMigrationState {gauges.migration_state or 'unknown'}, ZkWriteBehindLag {_number(gauges.write_behind_lag)}, "
        f"quorum leader {gauges.quorum_leader or 'none'}, as of {assessment.observed_at:%Y-%m-%d %H:%M:%S} UTC.",
    ]
    if assessment.gate is not None:
        lines += ["", f"Gate **{assessment.gate.name}**, evidence `{assessment.gate.evidence_hash}`"]
    return "\n".join(lines)


def _number(value: int | None) -> str:
    return "unknown" if value is None else str(value)
