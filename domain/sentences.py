"""Steps and events of a migration as sentences, for pages, terminals and Temporal's UI. Pure."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from domain.records import Event
from domain.zk_to_kraft.steps import StepAction

SUMMARIES: dict[str, str] = {
    StepAction.PROVISION_CONTROLLER: "Create {node}: write its file, format its storage, start it",
    StepAction.ROLL_NODE: "Restart {node} into stage {stage}{final}",
    StepAction.TRY_CANARIES: "Try at {node} what clients do, see it in both stores, remove it",
    StepAction.REMOVE_CANARIES: "Remove what trying {node} has left",
    StepAction.START_NODE: "Start {node} as it is",
    StepAction.FAIL_OVER: "Restart {node} as it is, so that another controller takes over and writes what ZooKeeper lacks",
    StepAction.LEAVE_KRAFT: "Revert window: KRaft gives way to ZooKeeper",
    StepAction.WIPE: "Remove what the KRaft controllers have left",
    StepAction.RELEASE_CONFIGURATION: "Resume the configuration management that was paused",
    StepAction.COMPARE_METADATA: "Compare ZooKeeper with KRaft",
    StepAction.CAPTURE_BASELINE: "Look at clients' data before the first broker is restarted",
    StepAction.KEEP_METADATA: "Keep what ZooKeeper has before the last broker's restart starts Kafka's copy",
    StepAction.COMPARE_COPY: "Compare Kafka's copy with what ZooKeeper had",
    StepAction.COMPARE_MESSAGES: "Compare clients' data with what it was before the first restart",
    StepAction.COMPARE_END: "Compare what KRaft has now with what ZooKeeper had at the gate",
}
"""What a step does."""

UNTOLD = frozenset({"call-accepted", "command-delivered"})
"""Another event reports the same."""


def sentence_of(event: Event) -> str | None:
    """One sentence; `None` for an event that repeats another one. A kind that has no words yet is its own name."""
    if event.kind in UNTOLD:
        return None
    words = SENTENCES.get(event.kind)
    data = defaultdict(str, {name: value for name, value in event.data.items() if value is not None})
    if words is None:
        return event.kind.replace("-", " ").capitalize() + "."
    return words(data) if callable(words) else words.format_map(data)


def action_of(action: str, node: str, stage: str | None) -> str:
    """What a step does; of an action that is not known here, its name."""
    if action not in SUMMARIES:
        return f"{action} {node}"
    return SUMMARIES[action].format(node=node, stage=stage, final="")


def _approved(data: Mapping[str, Any]) -> str:
    broken = "GLASS BROKEN, without four eyes: " if data["break_glass"] else ""
    return f"{broken}{data['by']} approved {data['gate']}: {data['reason']}"


def _started(data: Mapping[str, Any]) -> str:
    return f"{action_of(data['action'], data['node'], data['stage'])}."


def _done(data: Mapping[str, Any]) -> str:
    told = f"Done: {action_of(data['action'], data['node'], data['stage'])}"
    if data["verdict"]:
        return f"{told}. Verdict: {data['verdict']}. {data['why']}".rstrip()
    again = f", attempt {data['attempt']}" if data["attempt"] not in {"", 1} else ""
    return f"{told} ({data['seconds']} s{again})."


def _waiting(data: Mapping[str, Any]) -> str:
    about = f" ({', '.join(data['objects'])})" if data["objects"] else ""
    return f"Waiting: {data['reason']}{about}. {data['means']}"


def _refused(data: Mapping[str, Any]) -> str:
    found = "; ".join(f"{one['code']} {one['object']}: {one['observed']}" for one in data["findings"] or ())
    return f"The migration is refused, and nothing was touched. {found}".rstrip()


SENTENCES: dict[str, str | Callable[[Mapping[str, Any]], str]] = {
    "claimed": "The migration has claimed the cluster, generation {generation}.",
    "phase-entered": "Phase {phase} begins.",
    "step-started": _started,
    "step-done": _done,
    "step-blocked": "{node} was not touched: {why}",
    "waiting": _waiting,
    "report-published": "Report on {check}: {says}",
    "alert": "Alert on {object}: {observed}",
    "gate-opened": "Gate {gate} opens: a person must decide.",
    "approved": _approved,
    "message-ignored": "The message {order} by {by} was ignored: {why}",
    "key-made": "{created_by} made the API key {id} for {principal}.",
    "approval-consumed": "The approval of {gate} by {by} is consumed: an irreversible write begins.",
    "approval-done": "What the approval of {gate} allowed has ended: {why}",
    "approval-void": "The approval of {gate} is void: {why}",
    "approval-withdrawn": "The approval of {gate} is withdrawn: {why}",
    "approval-expired": "The approval of {gate} has expired: {why}",
    "rejected": "{by} rejected {gate}: {reason}",
    "held": "{by} holds the migration: {reason}",
    "resumed": "{by} resumed the migration: {reason}",
    "rollback-accepted": "{by} ordered a rollback: {reason}",
    "rollback-refused": "The rollback was refused: {why}",
    "reverting": "The migration begins a rollback by itself: {reason} {detail}",
    "way-back-closed": "No rollback is possible any more: {why}",
    "command-refused": "The command {command} by {by} was refused: {because}",
    "call-refused": "The call {method} {path} by {principal} was refused: {problem}",
    "signal-ignored": "The signal {order} by {by} was ignored: {why}",
    "not-written-down": "The order {order} by {by} could not be written down: {why}",
    "run-set-back": "The run stops, because Temporal was set back: {why}",
    "migration-ended": "The migration ended as {state}: {outcome}",
    "succeeded": "The migration has succeeded: {outcome}",
    "reverted": "The rollback is complete: {outcome}",
    "refused": _refused,
    "cancelled": "The migration was cancelled in phase {phase}.",
}
