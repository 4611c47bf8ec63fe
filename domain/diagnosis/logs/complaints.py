"""The lines of a log as they were said: how loudly, when, and without what nobody may see of them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise, takewhile

from domain.diagnosis.logs.lines import FRAME, MAX_QUOTE, OF_A_TRACE, OF_OTHERS, STALE, Found, current, times_of
from domain.diagnosis.logs.redaction import LEVEL, THROWN, without_secrets

CHARACTERS_JUDGED = 800
"""Of a line: short enough for any layout."""
SHOWN_LINES = 3
"""Of the errors that are not known, those that are shown."""

PLACE = re.compile(r"^\s*at (?:[\w.@-]*/+)*([\w.$<>]+)\(")
OF_KAFKA_AND_JAVA = re.compile(
    r"(?:javax?|jdk|sun|com\.sun|scala|kafka|io\.netty|org\.(?:apache\.(?:kafka|zookeeper|log4j|logging)|slf4j|eclipse\.jetty))\."
)
TROUBLE = re.compile(
    r"\b(?:WARN|ERROR|FATAL)\b|event failed with|can ?not (?:yet )?be granted|already registered|timed out|refus"
)
FOLLOWS = re.compile(
    r"\bPartition \S{1,260} marked as failed|\bNot sending request \w+ .*, since it is offline|"
    r"\bNon-monotonic update of high watermark\b"
)
"""Every change of a leader leaves some, and every stop of a broker. Where it lasts, `replication.py` tells it."""
PAST_ITS_LOG = re.compile(
    r"Exception in thread \"|.{0,40}\bVM warning: (?:CodeCache|CodeHeap|INFO: os::|Attempt|Failed|[Uu]nable|There is ins)"
)
"""What a JVM that runs prints itself, with no time: a thread that has died, a cache that is full."""
OF_NODES = (
    "UPDATE_METADATA|LEADER_AND_ISR|STOP_REPLICA|BROKER_HEARTBEAT|BROKER_REGISTRATION|CONTROLLER_REGISTRATION|ALTER_PARTITION|"
    "ALLOCATE_PRODUCER_IDS|ASSIGN_REPLICAS_TO_DIRS|CONTROLLED_SHUTDOWN|ENVELOPE|FETCH|FETCH_SNAPSHOT|VOTE|BEGIN_QUORUM_EPOCH|"
    "END_QUORUM_EPOCH"
)
"""What only nodes ask for: a client that may not do what it asks for is its own affair."""
OF_A_NODE = re.compile(rf" for request = (?i:{OF_NODES.replace('_', '_?')}) with |\(apiKey=(?:{OF_NODES}),")
HANDLING = re.compile(r"\bUnexpected error handling request ")
RETRIED = re.compile(r"\b[Ww]ill retry\b")
OF_ITS_LOG = re.compile(r"log4j:(?:WARN|ERROR) ")
"""What a logger prints itself that cannot write, or read its settings: nobody dies of that, whatever is thrown below it."""
FAILURES, WARNINGS = frozenset({"ERROR", "FATAL"}), frozenset({"WARN"})
OF_A_LOGGER = "log4j"
"""In place of a level."""
LIVING = frozenset({"TRACE", "DEBUG", "INFO", "WARN", OF_A_LOGGER})
ERROR = re.compile(
    r"^(?:.{0,40}\b(?:ERROR|FATAL)\b|Exception in thread|Exception: |(?:Caused by: |Suppressed: )?[\w.$]+(?:Exception|Error|"
    r"Fault)\b|"
    r"(?:Fatal |FATAL )?[Ee]rror\b|# +\w|Terminating due to|\[\d+\.\d+s\]\[error\])|: (?:not found|No such file or directory|"
    r"Permission denied)$"
)


@dataclass(frozen=True)
class Said:
    """A line with the level of what it belongs to, empty where it has none, and when it was said (`times_of`)."""

    text: str
    level: str
    at: datetime | None

    @property
    def is_of_the_living(self) -> bool:
        return self.level in LIVING

    @property
    def has_level(self) -> bool:
        """Of a log of Kafka's, as no start command has."""
        return self.level not in {"", OF_A_LOGGER}

    @property
    def is_error(self) -> bool:
        return not self.is_of_the_living and ERROR.search(self.text) is not None


def said_in(lines: Sequence[str]) -> Iterator[Said]:
    level, bare = "", without_frames(lines)
    for line, at in zip(bare, times_of(bare), strict=True):
        if found := LEVEL.match(line):
            level = found[1]
        elif OF_ITS_LOG.match(line):
            level = OF_A_LOGGER
        elif not OF_A_TRACE.match(line):
            level = ""
        if line.strip():
            yield Said(line[:CHARACTERS_JUDGED], level, at)


def without_frames(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(line for line in lines if not FRAME.match(line))


def complaint_in(lines: Sequence[str], since: timedelta = STALE) -> str:
    """The last error that a process which runs has told of, else its last warning, with what that was caused by; empty where it
    complains of nothing. Nothing that is long over (`current`), but for errors since what they may explain has begun, `since`
    ago.

    What has thrown something, or will be tried again, is a warning, however softly it is said. What it says of clients counts
    where it says nothing else.
    """
    lately, since_then = _complaints(current(lines)), _complaints(current(lines, max(since, STALE)))
    errors = [block for block in since_then if block[0].level in FAILURES]
    warnings = [block for block in lately if _is_warning(block)]
    own = [[block for block in found if not _is_of_clients(block[0].text)] for found in (errors, warnings)]
    told = next(filter(None, (*own, errors, warnings)), [])
    return in_short(told[-1]) if told else ""


def _is_of_clients(head: str) -> bool:
    return OF_OTHERS.search(head) is not None or (HANDLING.search(head) is not None and OF_A_NODE.search(head) is None)


def _complaints(lines: Sequence[str]) -> list[list[Said]]:
    return [block for block in blocks(list(said_in(lines))) if not FOLLOWS.search(block[0].text)]


def _is_warning(block: Sequence[Said]) -> bool:
    head = block[0]
    return head.level in WARNINGS or len(block) > 1 or RETRIED.search(head.text) is not None or _is_past_its_log(head)


def _is_past_its_log(one: Said) -> bool:
    return PAST_ITS_LOG.match(one.text) is not None


def blocks(said: Sequence[Said]) -> Iterator[list[Said]]:
    """Each line with what was thrown below it."""
    heads = [number for number, one in enumerate(said) if LEVEL.match(one.text) or _is_past_its_log(one)]
    for head, until in pairwise([*heads, len(said)]):
        below = takewhile(lambda one: one.level, said[head + 1 : until])
        yield [said[head], *(one for one in below if THROWN.match(one.text))]


def in_short(block: Sequence[Said]) -> str:
    """A line, with the last that was thrown below it."""
    return shown([block[0], *block[1:][-1:]])


def with_thrown(found: Found) -> str:
    """Its words, with the last that was thrown there."""
    thrown = [line for line in found.thrown if THROWN.match(line) and found.quote not in line]
    words = without_secrets(thrown[-1][:CHARACTERS_JUDGED].removeprefix("Caused by: "))[:MAX_QUOTE] if thrown else ""
    return f"{found.quote}: {words}" if thrown else found.quote


def trouble_with(lines: Sequence[str], *names: str) -> str:
    """The last that this process has said of one of these that did not go as it should; empty where there is nothing."""
    about = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b", re.IGNORECASE)
    found = [
        block
        for block in blocks(list(said_in(current(lines))))
        if any(about.search(one.text) and TROUBLE.search(block[0].text) for one in block) and not FOLLOWS.search(block[0].text)
    ]
    return in_short(found[-1]) if found else ""


def foreign_place(lines: Sequence[str]) -> str:
    """Of the last stack trace that has one the first place that is neither Kafka's nor Java's, but a plug-in's; else empty. Of
    those of a logger nobody dies."""
    found, is_new, is_of_its_log = "", True, False
    for line in lines:
        place = PLACE.match(line)
        if place is None:
            is_of_its_log = OF_ITS_LOG.match(line) is not None or (is_of_its_log and OF_A_TRACE.match(line) is not None)
            is_new = not is_of_its_log
        elif is_new and not OF_KAFKA_AND_JAVA.match(place[1]):
            found, is_new = place[1], False
    return found[:CHARACTERS_JUDGED]


def last_of(lines: Sequence[str]) -> str:
    """The last line, of whatever kind."""
    return shown(list(said_in(lines))[-1:])


def shown(said: Sequence[Said]) -> str:
    return " | ".join(without_secrets(one.text)[:MAX_QUOTE] for one in said[-SHOWN_LINES:])
