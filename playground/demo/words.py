"""Events as lines. Pure; what a demo's audience does not need gives no line."""

from collections.abc import Callable
from typing import Any

from domain.records import Event
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.steps import StepAction
from playground.demo.state import DemoState, Tone

Telling = tuple[str, Tone]
APPROVAL = "approval"
GAP = "without a controller"
"""How the window's own measurement ends."""


def line_of(event: Event) -> Telling | None:
    """What an event is told as, and how it is meant."""
    words = WORDS.get(event.kind)
    try:
        return words(event.data) if words is not None else None
    except KeyError:  # its data is not what it was when this was written: no reason to end the demo
        return event.kind, Tone.PLAIN


WORK: dict[str, str] = {
    StepAction.PROVISION_CONTROLLER: "create {node}: write its file, format its storage, start it",
    StepAction.ROLL_NODE: "restart {node} with its file in stage {stage}",
    StepAction.TRY_CANARIES: "try at {node} what clients do, and remove it again",
    StepAction.REMOVE_CANARIES: "remove what trying {node} has left",
    StepAction.START_NODE: "start {node}, which was stopped",
    StepAction.FAIL_OVER: "restart {node}, so that another controller takes over and writes what ZooKeeper lacks",
    StepAction.LEAVE_KRAFT: "the window: ZooKeeper gets the last change, the controllers are fenced and killed, "
    "/migration and /controller go in one transaction, a broker takes over",
    StepAction.WIPE: "remove what the quorum left: its storage, its files, the brokers' copies of its log",
    StepAction.RELEASE_CONFIGURATION: "resume the configuration management that was paused",
    StepAction.COMPARE_METADATA: "compare all that ZooKeeper and KRaft say, row by row; this may take a minute or two",
    StepAction.CAPTURE_BASELINE: "look at clients' data as it is before the first restart",
    StepAction.KEEP_METADATA: "keep what ZooKeeper has, before the last broker's restart starts Kafka's copy",
    StepAction.COMPARE_COPY: "compare Kafka's copy with what ZooKeeper had{kept}, row by row; this may take a minute or two",
    StepAction.COMPARE_MESSAGES: "compare clients' data with what it was then{kept}; this may take a minute or two",
    StepAction.COMPARE_END: "compare what KRaft has now with what ZooKeeper had at the gate; this may take a minute",
}
"""What a step does."""

DONE: dict[str, str] = {
    StepAction.PROVISION_CONTROLLER: "{node} is up",
    StepAction.ROLL_NODE: "{node} is back in stage {stage}, proved well",
    StepAction.TRY_CANARIES: "clients can still do at {node} what they do",
    StepAction.REMOVE_CANARIES: "nothing is owed at {node}",
    StepAction.START_NODE: "{node} runs again",
    StepAction.FAIL_OVER: "another controller has taken over from {node}",
    StepAction.LEAVE_KRAFT: "a broker is ZooKeeper's controller again",
    StepAction.WIPE: "nothing of the quorum is left",
    StepAction.RELEASE_CONFIGURATION: "configuration management runs as before",
}
"""What it has come to."""


def work_of(data: dict[str, Any]) -> str:
    """What a step does, from its event's data. `kept`: how much a comparison compares, where that is known."""
    return WORK.get(data["action"], "{action} {node}").format(**{"kept": ""} | data)


def _done(data: dict[str, Any]) -> Telling | None:
    if "verdict" in data:
        return None  # the report that was published says it better
    again = f", attempt {data['attempt']}" if data["attempt"] > 1 else ""
    what = DONE.get(data["action"], "{action} {node}: done").format(**data)
    gap = [f", {change}" for change in data.get("changes", ()) if change.endswith(GAP)]
    return f"{what} ({data['seconds']:.0f} s{again}{''.join(gap)})", Tone.GOOD


def _waiting(data: dict[str, Any]) -> Telling | None:
    if data["reason"] == APPROVAL:
        return None  # the gate that opens says it better
    about = f" ({', '.join(data['objects'])})" if data["objects"] else ""
    return f"waits: {data['reason']}{about}", Tone.ALERT if data["for_people"] else Tone.PLAIN


def _refused(data: dict[str, Any]) -> Telling:
    blockers = [f for f in data["findings"] if f.get("severity", "blocker") == "blocker"]
    findings = "; ".join(f"{f['code']} {f['object']}: {f['observed']}, expected {f['expected']}" for f in blockers)
    return f"refused, nothing was touched: {findings}", Tone.ALERT


def _plain(text: str, tone: Tone = Tone.PLAIN) -> Callable[[dict[str, Any]], Telling]:
    return lambda data: (text.format(**data), tone)


WORDS: dict[str, Callable[[dict[str, Any]], Telling | None]] = {
    "claimed": _plain("the migration holds the cluster, generation {generation}"),
    "phase-entered": _plain("phase {phase}", Tone.NEWS),
    "step-started": lambda data: (work_of(data), Tone.PLAIN),
    "step-done": _done,
    "step-blocked": _plain("{node} is not touched: {why}", Tone.ALERT),
    "waiting": _waiting,
    "report-published": lambda data: (
        f"report on {data['check']}: {data['says']}",
        Tone.GOOD if data["verdict"] == "clean" else Tone.ALERT,
    ),
    "alert": _plain("{object}: {observed}", Tone.ALERT),
    "gate-opened": _plain("gate {gate} is open: a person has to approve", Tone.NEWS),
    "approved": _plain("{gate} approved by {by}: {reason}", Tone.NEWS),
    "approval-void": _plain("the approval of {gate} is void: {why}", Tone.ALERT),
    "approval-expired": _plain("the approval of {gate} has expired: {why}", Tone.ALERT),
    "rejected": _plain("{gate} rejected by {by}: {reason}", Tone.ALERT),
    "held": _plain("held by {by}: {reason}", Tone.ALERT),
    "resumed": _plain("resumed by {by}: {reason}", Tone.NEWS),
    "rollback-accepted": _plain("back to ZooKeeper, asked for by {by}: {reason}", Tone.NEWS),
    "rollback-refused": _plain("the way back was refused: {why}", Tone.ALERT),
    "reverting": lambda data: (f"back to ZooKeeper at once: {data['reason']} {data['detail']}".rstrip(), Tone.ALERT),
    "command-refused": _plain("{command} refused: {because}", Tone.ALERT),
    "signal-ignored": _plain("a signal was ignored: {why}", Tone.ALERT),
    "succeeded": _plain("the migration has succeeded: {outcome}", Tone.GOOD),
    "reverted": _plain("the migration has led back: {outcome}", Tone.GOOD),
    "refused": _refused,
    "cancelled": _plain("the migration was cancelled", Tone.ALERT),
}


def aside(text: str) -> str:
    """In brackets, after what it explains."""
    return f" ({text})" if text else ""


BEFORE_THE_END = frozenset({*Phase} - {Phase.FINALIZING, Phase.KRAFT, Phase.FINALIZED_EARLY})


def left_behind(state: DemoState) -> str:
    """In which state a cluster is that has not arrived, for the person who said no, or who finds the demo ended early."""
    modes = ", ".join(f"{node.name} {node.mode}" for node in state.nodes) or "not looked at"
    lines = [f"The cluster is left in phase {state.phase or 'unknown'}: {modes}."]
    if state.phase in BEFORE_THE_END and state.gauges.migration_state == "MIGRATION":
        lines.append(
            "Nothing irreversible has happened. The controllers still have their migration flag, and write every change to "
            f"ZooKeeper, too (ZkWriteBehindLag {state.gauges.write_behind_lag})."
        )
    if state.state == "held":
        lines.append(f"The migration is held: POST /migrations/{state.migration_id}/resume leads to the gate again.")
    return "\n".join(lines)
