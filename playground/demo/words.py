"""Events as lines. Pure; what a demo's audience does not need gives no line."""

from domain.records import Event
from domain.sentences import sentence_of
from domain.zk_to_kraft.phases import Phase
from playground.demo.state import DemoState, Tone

Telling = tuple[str, Tone]
APPROVAL = "approval"
GAP = "without a controller"
"""How the window's own measurement ends."""


def line_of(event: Event) -> Telling | None:
    """What an event is told as, and how it is meant. A gate and a report that follow say more than the wait and the check."""
    is_said_better = event.data.get("reason") == APPROVAL or "verdict" in event.data
    if event.kind not in TONES or (is_said_better and event.kind in {"waiting", "step-done"}):
        return None
    sentence = sentence_of(event)
    gap = next((f" ({change})" for change in event.data.get("changes", ()) if change.endswith(GAP)), "")
    return (f"{sentence}{gap}", _tone(event)) if sentence is not None else None


def _tone(event: Event) -> Tone:
    match event.kind:
        case "report-published":
            return Tone.GOOD if event.data.get("verdict") == "clean" else Tone.ALERT
        case "waiting":
            return Tone.ALERT if event.data.get("for_people") else Tone.PLAIN
        case kind:
            return TONES[kind]


TONES: dict[str, Tone] = {
    "claimed": Tone.PLAIN,
    "phase-entered": Tone.NEWS,
    "step-started": Tone.PLAIN,
    "step-done": Tone.GOOD,
    "step-blocked": Tone.ALERT,
    "waiting": Tone.PLAIN,
    "report-published": Tone.PLAIN,
    "alert": Tone.ALERT,
    "gate-opened": Tone.NEWS,
    "approved": Tone.NEWS,
    "approval-void": Tone.ALERT,
    "approval-expired": Tone.ALERT,
    "rejected": Tone.ALERT,
    "held": Tone.ALERT,
    "resumed": Tone.NEWS,
    "rollback-accepted": Tone.NEWS,
    "rollback-refused": Tone.ALERT,
    "reverting": Tone.ALERT,
    "command-refused": Tone.ALERT,
    "signal-ignored": Tone.ALERT,
    "succeeded": Tone.GOOD,
    "reverted": Tone.GOOD,
    "refused": Tone.ALERT,
    "cancelled": Tone.ALERT,
}
"""What a demo's audience needs to know, and how each is meant."""


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
