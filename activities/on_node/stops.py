"""Whether somebody stops a process and lets it go on, again and again (SIGSTOP, SIGCONT), as cpulimit(1) does, and who."""

from __future__ import annotations

import os
import re
import time

from activities.on_node.kernel import names, process_named, text

BETWEEN_SAMPLES = 0.003
"""Seconds. cpulimit lets its process run for some of these in every 100 ms."""
STOPPED = "T"
LEAST_SHARE = 0.3
"""Of the time. Who samples its stacks stops a process for less."""
LIMITERS = frozenset({"cpulimit", "cputool", "cpu-limit"})
BY_NAME = re.compile(r"-[eP]|--exe\b|--path\b")
"""Options by which they find whom they limit by his program."""


def stops(process: str, seconds: float) -> list[bool]:
    """Whether it was stopped, at each moment of that time. Of a process that ends meanwhile, until then."""
    samples, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        fields = (text(f"{process}/stat") or "").rpartition(")")[2].split()
        if not fields:
            break
        samples.append(fields[0] == STOPPED)
        time.sleep(BETWEEN_SAMPLES)
    return samples


def stopped(pid: int, samples: list[bool]) -> tuple[float, int, list[str]] | None:
    """The share of the time in which it was, how often it was let go on, and who may do that; nothing where it hardly was."""
    let_go = sum(before and not after for before, after in zip(samples, samples[1:]))
    share = sum(samples) / max(len(samples), 1)
    return (share, let_go, limiters(pid)) if share >= LEAST_SHARE else None


def limiters(pid: int) -> list[str]:
    """Programs that do that, by their number or by what they run: of those that limit somebody else nothing is said."""
    found = []
    for other in names("/proc"):
        words = (text(f"/proc/{other}/cmdline") or "").split("\0") if other.isdigit() else [""]
        is_of_it = any(re.fullmatch(rf"(-p|--pid=)?{pid}", word) or BY_NAME.match(word) for word in words[1:])
        if os.path.basename(words[0]) in LIMITERS and is_of_it:  # noqa: PTH119
            found.append(process_named(other))
    return found[:3]
