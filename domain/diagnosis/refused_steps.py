"""Steps that guards refuse, or that cannot be proved, as the ledger tells of them: for what, how often, and when next. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, takewhile

from domain.clocks import is_over
from domain.diagnosis.blocker import MOST_OBSERVED, STEP_FAILING, Blocker, blocker
from domain.diagnosis.recorded_causes import in_hand
from domain.policy import pause_after
from domain.records import Event
from domain.restored_history import STEP_BEGUN, STEP_OVER

REFUSALS = 2
"""From how many refusals in a row on a step does not get on."""

PATIENCE = timedelta(seconds=5)
"""A pause that is over sooner needs no word."""

REFUSED_BY, REFUSED_BY_MOST = timedelta(seconds=20), timedelta(minutes=3)
"""What refuses a step has done so by then, as a rule: it is under way, and what it lacks is told as what its node lacks. Where
the try before has taken longer, the next one may too."""

MOVED = frozenset({"held", "resumed", "phase-entered"})
"""Events after which what was refused before is asked anew."""


@dataclass(frozen=True)
class Tries:
    """Of a migration: how long its pauses are at first, and whether a look at its cluster finds nothing in the way now."""

    poll_interval: timedelta
    is_clear: bool = False


def of_steps(events: Sequence[Event], now: datetime, known: Tries) -> Iterator[Blocker]:
    """A step that a guard refuses again and again, or that cannot be proved: the run of equal refusals at the end.

    Where another one is in hand, or this one for longer than guards take, it has gone on. Where the migration waits since, the
    wait says why; where it has been held, or has gone on, they are over.
    """
    tries = _refused_in_a_row(events)
    if len(tries) >= REFUSALS:
        yield from _not_got_on(tries, events, now, known)


def of_any_refusal(events: Sequence[Event], now: datetime, known: Tries) -> Iterator[Blocker]:
    """The same from the first one on, which is what guards are for: to be told only where nothing else is found. A phase that
    is entered right after it came of that very step, or of those before it."""
    lasting = [e for e in events if e.kind != "phase-entered" or is_over(e.at, now, REFUSED_BY)]
    if tries := _refused_in_a_row(lasting):
        yield from _not_got_on(tries, lasting, now, known)


def _not_got_on(tries: Sequence[Sequence[Event]], events: Sequence[Event], now: datetime, known: Tries) -> Iterator[Blocker]:
    again = in_hand(events)
    if again is None:
        entry, due = _refused(tries, None), _due_by(tries[0], events, known.poll_interval)
        yield _awaited(entry, due, known) if due - now > PATIENCE else entry
    elif not is_over(again.began_at, now, _refused_by(tries[0], events)) and _nodes(tries[0]).intersection(again.nodes):
        yield _refused(tries, again.began_at)


def _due_by(parts: Sequence[Event], events: Sequence[Event], poll_interval: timedelta) -> datetime:
    """When the next try comes at the latest: refusals of another step before, and of before a hold, make the pause longer, too.
    But a step that is urgent begins with the shortest pause each time (`workflows.migration`)."""
    over = [event for event in events if event.kind in STEP_OVER]
    steps = [list(group) for _, group in groupby(reversed(over), key=lambda event: event.data.get("step"))]
    refused = sum(1 for _ in takewhile(lambda group: any(one.kind == "step-blocked" for one in group), steps))
    is_shortest = parts[0].data.get("urgent", False)
    return max(part.at for part in parts) + pause_after(1 if is_shortest else refused, poll_interval)


AT_ONCE = " After that you need not wait: POST /migrations/{id}/hold, then /resume, tries it immediately."


def _awaited(entry: Blocker, due: datetime, known: Tries) -> Blocker:
    clear = "; an observation finds nothing that blocks it now" if known.is_clear else ""
    told = f"{clear}; the next try is due at {due:%H:%M:%S} UTC at the latest"
    observed = f"{entry.observed[: MOST_OBSERVED - len(told)]}{told}"
    return entry.model_copy(update={"observed": observed, "fix": f"{entry.fix}{AT_ONCE}"})


def _refused_by(parts: Sequence[Event], events: Sequence[Event]) -> timedelta:
    """As long as the try before it, and half as long again: what is looked at first takes its time where the machine is
    busy, or something hangs. Not for ever: it may have lain there for want of a worker."""
    last, step = max(part.at for part in parts), parts[0].data.get("step")
    begun = [event.at for event in events if event.kind == STEP_BEGUN and event.data.get("step") == step]
    return min(max(REFUSED_BY, 1.5 * (last - begun[-1])), REFUSED_BY_MOST) if begun else REFUSED_BY


def _refused(tries: Sequence[Sequence[Event]], again: datetime | None) -> Blocker:
    parts = tries[0]
    nodes = ", ".join(sorted(_nodes(parts)))
    whys = _whys(parts)
    other = next((why for earlier in tries[1:] if (why := _whys(earlier)) != whys), "")
    whys += f". Before that: {other}" if other else ""
    times = f"refused {len(tries)} times; the last time: " if len(tries) > 1 else "refused once: "
    now = "" if again is None else f"; it is being retried since {again:%H:%M:%S} UTC"
    return blocker(
        STEP_FAILING,
        f"{parts[0].data.get('action')} of {nodes}",
        observed=f"{times}{whys[: MOST_OBSERVED - len(times) - len(now)]}{now}",
        expected="the step is taken, and proven",
        fix="It is retried by itself, with longer and longer pauses. Fix what the reason names.",
        since=tries[-1][-1].at,
    )


def _whys(parts: Sequence[Event]) -> str:
    return "; ".join(dict.fromkeys(str(part.data.get("why")) for part in parts))


def _refused_in_a_row(events: Sequence[Event]) -> list[list[Event]]:
    """Tries of one step, the newest first, each with what became of its nodes: a wave has several."""
    steps = [event for event in events if event.kind in {*STEP_OVER, *MOVED}]
    tries: list[list[Event]] = []
    for _, group in groupby(reversed(steps), key=lambda event: event.data.get("step")):
        parts = list(group)
        if any(part.kind != "step-blocked" for part in parts) or (tries and not _is_same_step(parts, tries[0])):
            break
        tries.append(parts)
    return tries


def _is_same_step(one: Sequence[Event], other: Sequence[Event]) -> bool:
    """Waves are made anew each time: what has a node in common is the same roll."""
    is_alike = all(one[0].data.get(key) == other[0].data.get(key) for key in ("action", "stage"))
    return is_alike and bool(_nodes(one) & _nodes(other))


def _nodes(parts: Sequence[Event]) -> set[str]:
    return {str(part.data.get("node")) for part in parts}
