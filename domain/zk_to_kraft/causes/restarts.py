"""A node that somebody ends and starts again, and no migration does: a health check, a watchdog, a supervisor. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from domain.diagnosis.logs.endings import SIGNAL
from domain.diagnosis.logs.lines import START_OF_PROCESS, times_of
from domain.diagnosis.machines.vital_signs import Sign
from domain.observed.observation import NodeView, is_started_by_us
from domain.zk_to_kraft.causes.case import Looked

End = tuple[str, datetime]
"""A signal, and when it came."""
LATELY = timedelta(minutes=3)
"""Between two rolls of one node lie those of all others."""
TO_THE_START = timedelta(minutes=1)
"""From the signal on. Who starts it later may be somebody who has looked at it."""

FIX = (
    "Find who does that, and switch it off until the migration has ended: a liveness probe or health check (one that was made "
    "for brokers never finds a controller well, which has no listener for clients), a watchdog, a supervisor (Restart=), "
    "configuration management. Nothing need be wrong with the node itself."
)


def restarted_by_others(looked: Looked) -> Iterator[tuple[str, Sign]]:
    """With the names of the nodes that run, and that no step of ours has in hand or has started."""
    for view in looked.observation.nodes:
        name = looked.name(view.id)
        process = view.process
        if name in looked.in_hand or process is None or not process.is_running or is_started_by_us(view.mark, process.identity):
            continue
        ends = restarts_in(looked.hints.logs.get(view.id, ()))
        ends = ends[1:] if len(ends) > 1 and _was_proven(view) else ends  # the first may have been that roll's
        if ends:
            signs = looked.hints.signs.get(name)
            by = f" by {signs.started_by}" if signs is not None and signs.started_by else ""
            yield name, Sign(f"{_in_words(ends)}{by}", FIX, is_slight=len(ends) < 2, is_cure=len(ends) > 1)


def _in_words(ends: Sequence[End]) -> str:
    signal, at = ends[-1]
    last = f"at {at:%H:%M:%S}, by the clock of its log"
    seconds = (at - ends[0][1]).total_seconds()
    times = f"{len(ends)} times within {seconds:.0f} s, the last time {last}" if len(ends) > 1 else last
    return f"by nobody of ours it was told to end ({signal}) {times}; it was started again"


def _was_proven(view: NodeView) -> bool:
    return view.mark is not None and view.mark.proven_identity is not None


def restarts_in(lines: Sequence[str]) -> list[End]:
    """By which signal and when it was told to end of late, where a start follows soon."""
    times = times_of(lines)
    newest = next((at for at in reversed(times) if at is not None), None)
    found: list[End] = []
    told: End | None = None
    for line, at in zip(lines, times, strict=True):
        if at is None or newest is None or newest - at > LATELY:
            continue
        if (match := SIGNAL.search(line)) is not None:
            told = match[0].rpartition(" ")[2], at
        elif START_OF_PROCESS.search(line):
            found += [told] if told is not None and at - told[1] <= TO_THE_START else []
            told = None
    return found
