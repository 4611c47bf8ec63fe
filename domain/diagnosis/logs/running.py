"""What a process that runs says of itself: how far its start or its election is, and why it gives no metrics. Pure."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from domain.diagnosis.logs.catalogue import KAFKA
from domain.diagnosis.logs.lines import START_OF_PROCESS, Found, found_in, of_this_process, times_of

AGENT_FAILED, AGENT_LOADED = KAFKA["agent-failed"], KAFKA["agent-loaded"]
METADATA_FAULT = KAFKA["metadata-fault"]
OUT_OF_MEMORY, CLEANER_BUFFER = KAFKA["out-of-memory"], KAFKA["cleaner-buffer"]
OF_CLEANER_BUFFER = re.compile(r"\bSkimpyOffsetMap\b")
"""In the frames below OUT_OF_MEMORY: who asked for the memory."""
STARTS_CLEANER = re.compile(r"Starting the log cleaner")
"""It takes its buffers when it starts, also when somebody has changed its settings."""
LINES_BEFORE = 3
"""Of several threads, by the time in which one of them takes its memory."""
SILENCES = (KAFKA["out-of-direct-memory"], OUT_OF_MEMORY, KAFKA["too-many-open-files"])
"""What keeps a living process from answering."""
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
SETTLED = timedelta(seconds=20)
"""What elects without an end has a new epoch within less."""
AGENT_LINES = 10
"""An agent speaks right before the first line of Kafka itself."""


def silence_in(lines: Sequence[str]) -> Found | None:
    """Why a process that runs gives no metrics; `None` where it says nothing of it."""
    starts = [number for number, line in enumerate(lines) if START_OF_PROCESS.search(line)]
    before = lines[max(0, starts[-1] - AGENT_LINES) : starts[-1]] if starts else ()
    found = (*found_in(lines, (*SILENCES, AGENT_FAILED)), *found_in(before, (AGENT_FAILED,)), *found_in(lines, (AGENT_LOADED,)))
    return next((who_asked(one, of_this_process(lines)) for one in found), None)


def who_asked(found: Found, lines: Sequence[str]) -> Found:
    """For the memory that there was not at last, where it is known: by the frames; where a JVM ends at once, as with
    ExitOnOutOfMemoryError, by what was said right before."""
    wanted = [number for number, line in enumerate(lines) if OUT_OF_MEMORY.pattern.search(line)]
    if found.told is not OUT_OF_MEMORY or not wanted:
        return found
    before, after = lines[max(wanted[-1] - LINES_BEFORE, 0) : wanted[-1]], lines[wanted[-1] :]
    if not any(map(STARTS_CLEANER.search, before)) and not any(map(OF_CLEANER_BUFFER.search, after)):
        return found
    return replace(found, told=CLEANER_BUFFER, quote=f"{found.quote} (for the log cleaner's buffer)")


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
