"""How far a node is with its start, or a controller with its election, by its own words."""

import re
from collections.abc import Sequence
from datetime import timedelta

from domain.diagnosis.logs.lines import START_OF_PROCESS, of_this_process
from domain.diagnosis.logs.times import times_of

LOADING = re.compile(
    r"Recovering \d+ logs from \S{1,160} since no clean shutdown file was found"
    r"|Recovering unflushed segment \d+\. \d+/\d+ recovered for (?!__cluster_metadata)\S{1,260}"
    r"|\(\d+/\d+ completed in \S{1,160}\)"
)
"""A broker on its way through its logs (LogManager, LogLoader): the last of these says how far it is."""
LOADED = re.compile(r"Loaded \d+ logs in \d+")
WAITS = re.compile(r"\bINFO .*?(Finished waiting|Waiting) for (?:the )?([\w /-]{1,120}?)(?: \(kafka|$)")
"""A node at its start (FutureUtils)."""
EPOCH = re.compile(r"Completed transition to \w{1,20}\(.{0,80}?\bepoch=(\d+)")
"""A controller that stands for election, votes, follows or leads (QuorumState)."""


def loading_in(lines: Sequence[str]) -> str:
    """How far a broker is with its logs; empty where it has loaded them, or says nothing of it."""
    said = ""
    for line in of_this_process(lines):
        if LOADED.search(line):
            said = ""
        elif match := LOADING.search(line):
            said = match.group(0).strip("().")
    return said


def waiting_in(lines: Sequence[str]) -> str:
    """For what a node waits at its start, by its own words; empty where it has all that it has waited for."""
    open_waits: dict[str, None] = {}
    for found in filter(None, map(WAITS.search, of_this_process(lines))):
        if found[1] == "Waiting":
            open_waits[found[2]] = None
        else:
            open_waits.pop(found[2], None)
    return next(reversed(open_waits), "")


SETTLED = timedelta(seconds=20)
"""What elects without an end has a new epoch within less."""


def epochs_lately(lines: Sequence[str], age: timedelta, within: timedelta) -> int:
    """How many epochs of the quorum a process of this age has seen. Its first line says when it was started by its own clock;
    where that has gone from the tail, the last one is new. 0 where the newest epoch lasts."""
    own = of_this_process(lines)
    times = times_of(own)
    newest = times[-1] if times else None
    if newest is None:
        return 0
    now = times[0] + age if times[0] is not None and START_OF_PROCESS.search(own[0]) else newest
    said = [(at, found[1]) for line, at in zip(own, times, strict=True) if at is not None and (found := EPOCH.search(line))]
    if not said or now - said[-1][0] > SETTLED:
        return 0
    return len({epoch for at, epoch in said if now - at <= within})
