"""What a migration tells people: its progress record, its line of waiting, its page in Temporal's UI. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

from pydantic import ValidationError

from domain.approvals import told_of
from domain.contracts import ApprovalMessage, Assessment, HoldMessage, RollbackMessage
from domain.decisions import Done, Gate, Intent, Refuse, Revert, Step, Wait
from domain.records import ApprovalSeen, ApprovalState, EventDraft, Hold, MigrationState, NodeStatus, Waiting
from domain.waits import WaitReason, means_of_hold

Message = TypeVar("Message", ApprovalMessage, HoldMessage, RollbackMessage)
AnyMessage = ApprovalMessage | HoldMessage | RollbackMessage

APPROVAL = "approval"
"""The reason of a wait for a person at a gate."""

CLUSTER = "cluster"
"""Stands for a node's name where a step is of no single node."""

ROOM = "\u00a0" * 3

MAX_SAID = 500
"""Characters kept of each thing that somebody says."""
MAX_NAMED = 100
"""Losses that one rollback can accept by name."""
MAX_SUMMARY = 200
"""Bytes of a summary; Temporal fails the whole task above 400."""
MAX_NODES = 120
"""Characters for the names of nodes in one."""


def message_of(form: type[Message], given: Sequence[object]) -> Message | None:
    """What came with a signal; `None` where that is not one object of this form. Temporal takes any number of anything."""
    if len(given) != 1:
        return None
    try:
        return form.model_validate(given[0])
    except ValidationError:
        return None


def clean(message: Message) -> Message:
    """What somebody sent, short and printable: whoever reaches Temporal can send anything, and we have to write it down.

    A database refuses a NUL byte, and Temporal a large payload, every time anew: the migration would be stuck behind it.
    """
    said = {name: _cleaned(value) for name, value in message.model_dump().items() if value is not None}
    return message.model_copy(update=said)


def _cleaned(value: str | tuple[str, ...]) -> str | tuple[str, ...]:
    return _printable(value) if isinstance(value, str) else tuple(_printable(name) for name in value[:MAX_NAMED])


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text[:MAX_SAID])


def heading_of(assessment: Assessment, intent: Intent) -> Intent:
    """Where the migration goes in fact. Once the quorum's log says that it is final, forward, whatever has been ordered."""
    return Intent.FORWARD if assessment.is_final else intent


def state_of(assessment: Assessment, heading: Intent) -> MigrationState:
    """The state that people see while a migration is under way."""
    decision = assessment.decision
    if isinstance(decision, Wait) and decision.reason == WaitReason.HELD:
        return MigrationState.HELD
    if heading is Intent.REVERT:
        return MigrationState.REVERTING
    return MigrationState.WAITING if isinstance(decision, Wait | Gate | Revert) else MigrationState.RUNNING


def end_of(assessment: Assessment, heading: Intent) -> MigrationState:
    """The state in which a migration ends with this assessment."""
    if not isinstance(assessment.decision, Done):
        return MigrationState.REFUSED
    return MigrationState.REVERTED if heading is Intent.REVERT else MigrationState.SUCCEEDED


def waiting_of(assessment: Assessment, since: datetime, held_because: str, held_by: str = "") -> Waiting | None:
    """Why nothing happens, or `None` when something does. `held_by`: a person, Keeperless, or empty if that is unknown."""
    decision = assessment.decision
    if isinstance(decision, Gate):
        means = f"A person has to approve {decision.name}, on the evidence {decision.evidence_hash[:12]}…"
        return Waiting(reason=APPROVAL, means=means, since=since, objects=(decision.name,), for_people=True)
    if not isinstance(decision, Wait | Revert):
        return None
    is_held = decision.reason == WaitReason.HELD
    return Waiting(
        reason=decision.reason,
        means=means_of_hold(held_by) if is_held else decision.means,
        since=since,
        objects=decision.objects,
        detail=f"{decision.detail}{held_because}" if is_held else decision.detail,
        for_people=decision.for_people,
    )


def summary_of(step: Step, node: str) -> str:
    """One line for Temporal's UI. `node`: of a wave all names, as far as there is room."""
    return step.how.summary.replace("{node}", _shortened(node, MAX_NODES))


def summary_of_record(events: Sequence[EventDraft]) -> str:
    """One line for Temporal's UI: what is recorded, as far as there is room."""
    line = "Record: " + (", ".join(event.kind for event in events) or "progress")
    return _shortened(line, MAX_SUMMARY)


def _shortened(line: str, most: int) -> str:
    return line if len(line) <= most else f"{line[: most - 4]} …"


def name_of(assessment: Assessment, node_id: int | None) -> str:
    """A node's name, from its id; the cluster where a step has none."""
    if node_id is None:
        return CLUSTER
    return next((n.name for n in assessment.nodes if n.name.endswith(f"-{node_id}")), str(node_id))


def names_of(assessment: Assessment, step: Step) -> tuple[str, ...]:
    """Of all nodes of a step, in their order."""
    return tuple(name_of(assessment, node_id) for node_id in step.nodes) or (CLUSTER,)


def with_restarts(nodes: tuple[NodeStatus, ...], restarts: dict[str, int], last: dict[str, datetime]) -> tuple[NodeStatus, ...]:
    """By name: how often this migration has restarted them, and when last."""
    return tuple(
        node.model_copy(update={"restarts": restarts.get(node.name, 0), "last_restart": last.get(node.name)}) for node in nodes
    )


def details_of(
    cluster: str,
    assessment: Assessment,
    nodes: Sequence[NodeStatus],
    waiting: Waiting | None,
    hold: Hold | None = None,
) -> str:
    """The page that Temporal's UI shows of a migration (Markdown). `nodes`: with their restarts."""
    lines = [
        f"### Cluster {cluster}, {assessment.title}: {assessment.phase or 'phase unknown'}",
        f"{assessment.steps_done} of {assessment.steps_total} steps done",
        "",
        f"**Waiting: {waiting.reason}** — {waiting.means}" if waiting is not None else _doing(assessment),
        ", ".join(waiting.objects) if waiting is not None else "",
        f"```\n{waiting.detail}\n```" if waiting is not None and waiting.detail else "",
        *_ordered(hold, assessment.approvals),
        "",
        _row("node", "mode", "stage", "ready", "restarts", "last restart (UTC)"),
        "|---|---|---|---|---|---|",
        *(_of_node(node) for node in nodes),
        "",
        f"{assessment.readings}, as of {assessment.observed_at:%Y-%m-%d %H:%M:%S} UTC.",
    ]
    if assessment.gate is not None:
        lines += ["", f"Gate **{assessment.gate.name}**, evidence `{assessment.gate.evidence_hash}`"]
    return "\n".join(lines)


def _of_node(node: NodeStatus) -> str:
    last = f"{node.last_restart:%Y-%m-%d %H:%M:%S}" if node.last_restart is not None else "–"
    return _row(node.name, node.mode, node.stage, "yes" if node.is_ready else "no", str(node.restarts), last)


def _row(*cells: str) -> str:
    """A row of a table, with room between its columns: Temporal's UI leaves none, and keeps spaces that do not break."""
    return f"| {' | '.join(f'{cell}{ROOM}' for cell in cells)} |"


def _doing(assessment: Assessment) -> str:
    match assessment.decision:
        case Done(outcome=outcome):
            return f"**Finished: {outcome}**"
        case Refuse(findings=findings):
            found = "; ".join(f"{f.code} {f.object}: {f.observed}" for f in findings)
            return f"**Refused**, nothing was touched: {found}"
        case Step() as step:
            return f"Working: {summary_of(step, ', '.join(names_of(assessment, step)))}."
        case _:
            return "Working."


def _ordered(hold: Hold | None, approvals: Sequence[ApprovalSeen]) -> list[str]:
    """The hold that was accepted, and approvals that are open: what a resume would begin."""
    held = [f"Hold by {hold.by} at {hold.since:%Y-%m-%d %H:%M:%S} UTC, takes effect: {hold.takes_effect}"] if hold else []
    return [*held, *(told_of(one) for one in approvals if one.state in {ApprovalState.ARMED, ApprovalState.CONSUMED})]


def details_of_error(phase: str | None, waiting: Waiting, approvals: Sequence[ApprovalSeen] = ()) -> str:
    """The same page after an error, when there is nothing newer to show of the cluster."""
    lines = (
        f"### {phase or 'phase unknown'}",
        "",
        f"**Waiting: {waiting.reason}** — {waiting.means}",
        f"```\n{waiting.detail}\n```",
        *_ordered(None, approvals),
    )
    return "\n".join(lines)
