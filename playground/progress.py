"""Waiting for what processes of ours have to bring about: as long as they live and work, they are given time.

On a busy machine a start takes minutes, and that is no failure. A process that has ended, or has done nothing for long, has
failed: it is reported with the last lines of its output.
"""

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import psutil

from domain.errors import Transient
from playground.processes import Launch, last_lines, running

STILL_SECONDS = 60.0
"""So long a process may use no processor and write nothing before it counts as stuck."""
LONGEST_SECONDS = 900.0
"""A process that works without an end, such as one that tries again and again, is given up all the same."""
BUSY = 0.05
"""Share of one processor: an idle server uses less."""


@dataclass(frozen=True)
class Work:
    """What a process has done so far: seconds of the processor, bytes of its output. Both `None` once it has ended."""

    processor_seconds: float | None
    output_bytes: int

    @classmethod
    def of(cls, launch: Launch) -> "Work":
        written = launch.output_file.stat().st_size if launch.output_file.exists() else 0
        process = running(launch)
        if process is None:
            return cls(None, written)
        try:
            spent = process.cpu_times()
        except psutil.NoSuchProcess:
            return cls(None, written)
        return cls(spent.user + spent.system, written)

    def is_more_than(self, before: "Work", still_seconds: float) -> bool:
        """Whether that is progress, since a moment at most `still_seconds` ago."""
        spent = (self.processor_seconds or 0.0) - (before.processor_seconds or 0.0)
        return self.output_bytes != before.output_bytes or spent >= BUSY * still_seconds


def wait_while_working(
    is_so: Callable[[], bool],
    what: str,
    launches: Sequence[Launch],
    still_seconds: float = STILL_SECONDS,
    measure: Callable[[], Hashable] = lambda: None,
    every_seconds: float = 0.1,
) -> float:
    """Polls until `is_so()`; gives the seconds it took. Raises Transient, saying `what` was awaited, when it will not come.

    That is: one of `launches` has ended, or for `still_seconds` none of them worked and `measure()` stayed the same.
    """
    began = moved = time.monotonic()
    before, counted = _work(launches), measure()
    while not is_so():
        now, work, count = time.monotonic(), _work(launches), measure()
        ended = [launch for launch, one in zip(launches, work, strict=True) if one.processor_seconds is None]
        if ended and not is_so():
            raise Transient(_told(f"{', '.join(launch.name for launch in ended)} has ended, awaited was: {what}", ended))
        is_working = any(one.is_more_than(earlier, still_seconds) for one, earlier in zip(work, before, strict=True))
        if is_working or count != counted:
            moved, before, counted = now, work, count
        elif now - moved > still_seconds:
            raise Transient(_told(f"nothing has moved for {still_seconds:.0f} s, awaited was: {what}", launches))
        if now - began > LONGEST_SECONDS:
            raise Transient(_told(f"waited {LONGEST_SECONDS:.0f} s in vain: {what}", launches))
        time.sleep(every_seconds)
    return time.monotonic() - began


def _work(launches: Sequence[Launch]) -> list[Work]:
    return [Work.of(launch) for launch in launches]


def _told(what: str, launches: Sequence[Launch]) -> str:
    return "\n".join([what, *(f"{launch.name}: {last_lines(launch.output_file)}" for launch in launches)])
