"""Events as lines. Pure; what a demo's audience does not need gives no line."""

from collections.abc import Callable
from typing import Any

from domain.records import Event
from playground.demo.state import Tone

Telling = tuple[str, Tone]


def line_of(event: Event) -> Telling | None:
    """What an event is told as, and how it is meant."""
    words = WORDS.get(event.kind)
    return words(event.data) if words is not None else None


def work_of(data: dict[str, Any]) -> str:
    """What a step does, from its event's data."""
    if data["action"] == "provision-controller":
        return f"create {data['node']}: write its file, format its storage, start it"
    return f"restart {data['node']} with its file in stage {data['stage']}"


def _done(data: dict[str, Any]) -> Telling:
    what = "is up" if data["action"] == "provision-controller" else f"is back in stage {data['stage']}, proved well"
    again = f", attempt {data['attempt']}" if data["attempt"] > 1 else ""
    return f"{data['node']} {what} ({data['seconds']:.0f} s{again})", Tone.GOOD


def _waiting(data: dict[str, Any]) -> Telling:
    about = f" ({', '.join(data['objects'])})" if data["objects"] else ""
    return f"waits: {data['reason']}{about}", Tone.ALERT if data["for_people"] else Tone.PLAIN


def _refused(data: dict[str, Any]) -> Telling:
    findings = "; ".join(f"{f['code']} {f['object']}: {f['observed']}, expected {f['expected']}" for f in data["findings"])
    return f"refused, nothing was touched: {findings}", Tone.ALERT


def _plain(text: str, tone: Tone = Tone.PLAIN) -> Callable[[dict[str, Any]], Telling]:
    return lambda data: (text.format(**data), tone)


WORDS: dict[str, Callable[[dict[str, Any]], Telling]] = {
    "claimed": _plain("the migration holds the cluster, generation {generation}"),
    "phase-entered": _plain("phase {phase}", Tone.NEWS),
    "step-started": lambda data: (work_of(data), Tone.PLAIN),
    "step-done": _done,
    "step-blocked": _plain("{node} is not touched: {why}", Tone.ALERT),
    "waiting": _waiting,
    "gate-opened": _plain("gate {gate} is open: a person has to approve", Tone.NEWS),
    "approved": _plain("{gate} approved by {by}: {reason}", Tone.NEWS),
    "rejected": _plain("{gate} rejected by {by}: {reason}", Tone.ALERT),
    "held": _plain("held by {by}: {reason}", Tone.ALERT),
    "resumed": _plain("resumed by {by}: {reason}", Tone.NEWS),
    "command-refused": _plain("{command} refused: {because}", Tone.ALERT),
    "signal-ignored": _plain("a signal was ignored: {why}", Tone.ALERT),
    "succeeded": _plain("the migration has succeeded: {outcome}", Tone.GOOD),
    "refused": _refused,
    "cancelled": _plain("the migration was cancelled", Tone.ALERT),
}
