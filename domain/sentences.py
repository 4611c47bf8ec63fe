"""Steps and events of a migration as sentences, for pages, terminals and Temporal's UI. Pure."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from domain.records import Event

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


def _approved(data: Mapping[str, Any]) -> str:
    broken = "GLASS BROKEN, without four eyes: " if data["break_glass"] else ""
    return f"{broken}{data['by']} approved {data['gate']}: {data['reason']}"


def _work(data: Mapping[str, Any]) -> str:
    """What the step does, as its kind of migration describes it."""
    return data["does"] or f"{data['action']} {data['node']}"


def _started(data: Mapping[str, Any]) -> str:
    return f"{_work(data)}."


def _done(data: Mapping[str, Any]) -> str:
    told = f"Done: {_work(data)}"
    if data["verdict"]:
        return f"{told}. Verdict: {data['verdict']}. {data['why']}".rstrip()
    again = f", attempt {data['attempt']}" if data["attempt"] not in {"", 1} else ""
    return f"{told} ({data['seconds']} s{again})."


def _waiting(data: Mapping[str, Any]) -> str:
    about = f" ({', '.join(data['objects'])})" if data["objects"] else ""
    return f"Waiting: {data['reason']}{about}. {data['means']}"


def _refused(data: Mapping[str, Any]) -> str:
    found = "; ".join(f"{one['code']} {one['object']}: {one['observed']}" for one in data["findings"] or ())
    return f"The migration is refused, and nothing was changed. {found}".rstrip()


SENTENCES: dict[str, str | Callable[[Mapping[str, Any]], str]] = {
    "claimed": "The migration has claimed the cluster, generation {generation}.",
    "phase-entered": "Phase {phase} begins.",
    "step-started": _started,
    "step-done": _done,
    "step-blocked": "{node} was not changed: {why}",
    "waiting": _waiting,
    "report-published": "Report on {check}: {says}",
    "alert": "Alert on {object}: {observed}",
    "gate-opened": "Gate {gate} opens: a person must decide.",
    "approved": _approved,
    "message-ignored": "The message {order} by {by} was ignored: {why}",
    "key-made": "{created_by} made the API key {id} for {principal}.",
    "specification-revised": "The cluster's specification is now revision {revision}, as this migration leaves the cluster.",
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
    "not-written-down": "The command {order} by {by} could not be recorded: {why}",
    "run-set-back": "The run stops, because Temporal was restored to an earlier state: {why}",
    "migration-ended": "The migration ended as {state}: {outcome}",
    "succeeded": "The migration has succeeded: {outcome}",
    "reverted": "The rollback is complete: {outcome}",
    "refused": _refused,
    "cancelled": "The migration was cancelled in phase {phase}.",
}
