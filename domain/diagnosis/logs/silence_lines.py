"""Why a process that runs gives no metrics: what it says of its memory, its files, and of agents in it."""

import re
from collections.abc import Sequence
from dataclasses import replace

from domain.diagnosis.logs.lines import START_OF_PROCESS, Found, Told, found_in, of_this_process

AGENT_FAILED = Told(
    "agent-failed",
    re.compile(r"Could not start Jolokia agent: [\w.]{1,80}(?:: [\w ]{1,60})?"),
    "an agent that listens at the node's metrics endpoint",
    "The node serves without its agent. Find who listens at the endpoint's port (`ss -ltnp`): where that is another node, give "
    "the agents of both ports of their own; else stop it. Then restart the node.",
)
OUT_OF_MEMORY = Told(
    "out-of-memory",
    re.compile(r"OutOfMemoryError: ?[\w ]{0,60}"),
    "a heap that holds the cluster's metadata",
    "Raise -Xmx in KAFKA_HEAP_OPTS (a controller needs some 3 KiB for each partition in the copy). Then start it.",
    is_lasting=True,
)
DIRECT_MEMORY = Told(
    "out-of-direct-memory",
    re.compile(
        r"OutOfMemoryError: (?:Direct buffer memory|Cannot reserve \d+ bytes of direct buffer memory"
        r"(?: \(allocated: \d+, limit: \d+\))?)"
    ),
    "memory beside the heap (-XX:MaxDirectMemorySize, as much as -Xmx where it is not set) for each request as a whole",
    "No heap helps. As long as requests come that need more than is left, the thread that reads them tries again and again, "
    "and all its other connections wait. Find the client that sends or fetches so much at once (`ss -tnp` there: those with a "
    "large Recv-Q; max.request.size, batch.size and fetch sizes of what was deployed last), and end it or have it send less; "
    "or lower message.max.bytes for its topic. Else raise -XX:MaxDirectMemorySize in the node's options, or take it away: "
    "that takes effect with its restart.",
    is_lasting=True,
)
CLEANER_BUFFER = Told(
    "cleaner-buffer",
    OUT_OF_MEMORY.pattern,
    "a heap with room for log.cleaner.dedupe.buffer.size, which the log cleaner takes all at once",
    "Lower log.cleaner.dedupe.buffer.size (134217728 unless it is set), or raise -Xmx by as much. Where somebody has set it "
    "dynamically, as for all brokers, no file has it, and each broker ends in this when it is started: kafka-configs.sh "
    "--alter --entity-type brokers --entity-default (or --entity-name ID) --delete-config log.cleaner.dedupe.buffer.size; "
    "where no broker runs any more, with --zookeeper instead of --bootstrap-server, and in KRaft mode with "
    "--bootstrap-controller. Then start it.",
    is_lasting=True,
)
OF_CLEANER_BUFFER = re.compile(r"\bSkimpyOffsetMap\b")
"""In the frames below OUT_OF_MEMORY: who asked for the memory."""
STARTS_CLEANER = re.compile(r"Starting the log cleaner")
"""It takes its buffers when it starts, also when somebody has changed its settings."""
LINES_BEFORE = 3
"""Of several threads, by the time in which one of them takes its memory."""
TOO_MANY_OPEN_FILES = Told(
    "too-many-open-files",
    re.compile(r"Too many open files"),
    "a limit of open files that is above twice the number of segments",
    "Raise LimitNOFILE (ulimit -n) of the service to 100000 or more. Then start it.",
)
SILENCES = (DIRECT_MEMORY, OUT_OF_MEMORY, TOO_MANY_OPEN_FILES)
"""What keeps a living process from answering."""
AGENT_LOADED = Told(
    "agent-loaded",
    re.compile(r"A (?:Java|JVM TI) agent has been loaded dynamically \(\S{1,160}?\)"),
    "nobody attaches a tool to a node that is migrated",
    "Somebody has just loaded that into its JVM: an APM agent, a profiler, a tool of diagnosis. Find out whose it is, and "
    "detach it, or end what it does: it may hold any thread, and keep the JVM from collecting garbage. Where that does not "
    "help and all other nodes are well, end this process, and start it without it.",
)
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
