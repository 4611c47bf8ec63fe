"""What a controller's log says of its copy: how far it is, what it has copied, what it waits for, what it died of. Pure.

Lines: KRaftMigrationDriver and MigrationManifest of Kafka 3.9, in the layout `LAYOUT`. Values that Kafka prints in an error may
be secrets: what is shown of one is stripped (`domain.redaction`).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from domain.redaction import stripped

LAYOUT = "%d{yyyy-MM-dd HH:mm:ss,SSS} %p %m (%c)%n"
"""The pattern that a controller has to log with."""

LINE = re.compile(r"(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) (?P<level>[A-Z]+) (?P<text>.*)")
TRANSITION = re.compile(r"transitioning from (?P<old>\w+) to (?P<new>\w+) state")
COMPLETED = re.compile(
    r"Completed migration of metadata from ZooKeeper to KRaft\. (?P<records>\d+) records were generated in (?P<ms>\d+) ms"
)
KINDS = re.compile(r"The record types were \{(?P<kinds>[^}]*)\}")
UNREGISTERED = re.compile(r"Still waiting for ZK brokers \[(?P<ids>[\d, ]*)\]")
WAITS = re.compile(
    r"(Still waiting for .*|No brokers are (?:known to KRaft|registered in ZK), waiting for brokers to register\.|"
    r"KRaft controller indicates an active migration, but the ZK state does not\.)"
)
RETRIES = re.compile(r"Encountered ZooKeeper error during event \w+\. Will retry\.")
FRAME = re.compile(r"\s+at (?P<where>[\w.$<>/]+\([\w.]*:?\d*\))")
CAUSE = re.compile(r"(?:Caused by: )?(?P<type>(?:[a-z]\w*\.)+[A-Z][\w$]*(?:Exception|Error|Fault))\b(?P<rest>.*)")

CLAIMING, DUAL_WRITE = "BECOME_CONTROLLER", "DUAL_WRITE"
FAILURES = frozenset({"ERROR", "FATAL"})
OUT_OF_MEMORY = "OutOfMemoryError"

REFUSAL = re.compile(r": KeeperErrorCode = [\w ]+ for /\S+")
"""What ZooKeeper says, with a znode's path, and nothing of its content."""
FRAMES = 3
"""Of a stack, those that are shown."""


@dataclass(frozen=True)
class CopyLog:
    """What has been read so far. Times are the log's own clock. `waits`: the last thing that it said to wait for.

    `complained_at`: when it said last that it waits for something, or that something has failed. `retries`: how often it has
    failed at ZooKeeper since its last step forward.
    """

    states: tuple[tuple[datetime, str], ...] = ()
    records: int | None = None
    copy_ms: int | None = None
    kinds: dict[str, int] = field(default_factory=dict)
    waits: str = ""
    complained_at: datetime | None = None
    retries: int = 0
    unregistered: tuple[int, ...] = ()
    errors: tuple[str, ...] = ()
    is_out_of_memory: bool = False

    @property
    def state(self) -> str:
        return self.states[-1][1] if self.states else ""

    def first(self, state: str) -> datetime | None:
        return next((at for at, name in self.states if name == state), None)

    @property
    def has_claimed(self) -> bool:
        return self.first(CLAIMING) is not None

    @property
    def seconds_without_controller(self) -> float | None:
        """From the claim of `/controller` to dual write: nobody can change anything of the cluster meanwhile."""
        claim, end = self.first(CLAIMING), self.first(DUAL_WRITE)
        return (end - claim).total_seconds() if claim is not None and end is not None else None


def read_log(lines: Iterable[str]) -> CopyLog:
    """The whole log, from its beginning."""
    everything = list(lines)
    log = CopyLog(errors=tuple(_errors(everything)), is_out_of_memory=any(OUT_OF_MEMORY in line for line in everything))
    for found in filter(None, map(LINE.match, everything)):
        log = _read_on(log, datetime.strptime(found["at"], "%Y-%m-%d %H:%M:%S,%f"), found["level"], found["text"])  # noqa: DTZ007
    return log


def _read_on(log: CopyLog, at: datetime, level: str, text: str) -> CopyLog:
    """One line more."""
    if moved := TRANSITION.search(text):
        log = replace(log, states=(*log.states, (at, moved["new"])), waits="", unregistered=(), retries=0)
    if done := COMPLETED.search(text):
        log = replace(log, records=int(done["records"]), copy_ms=int(done["ms"]), kinds=_kinds_in(text))
    if waiting := WAITS.search(text):
        waits = waiting[1].partition(" (org.")[0]
        log = replace(log, waits=waits, unregistered=_ids_in(waits), complained_at=at)
    if RETRIES.search(text):
        log = replace(log, retries=log.retries + 1, complained_at=at)
    return replace(log, complained_at=at) if level in FAILURES else log


def _kinds_in(text: str) -> dict[str, int]:
    """`{TOPIC_RECORD=3, …}`."""
    found = KINDS.search(text)
    pairs = (pair.strip().partition("=") for pair in found["kinds"].split(",")) if found else ()
    return {name: int(count) for name, _, count in pairs if count.isdecimal()}


def _ids_in(text: str) -> tuple[int, ...]:
    found = UNREGISTERED.search(text)
    return tuple(int(part) for part in found["ids"].split(",") if part.strip()) if found else ()


def _errors(lines: Iterable[str]) -> Iterable[str]:
    """Errors as types with what they say, stripped, and the first places of each: enough to look for, and no value of
    anybody's.
    """
    frames = 0
    for line in lines:
        found = LINE.match(line)
        if found is not None:
            frames = 0
            if found["level"] in FAILURES:
                yield stripped(found["text"])
        elif cause := CAUSE.match(line.strip()):
            frames = FRAMES
            yield cause["type"] + (cause["rest"] if REFUSAL.fullmatch(cause["rest"]) else stripped(cause["rest"]))
        elif frames and (frame := FRAME.match(line)):
            frames -= 1
            yield f"at {frame['where']}"
