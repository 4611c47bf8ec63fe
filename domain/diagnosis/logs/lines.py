"""Lines of a log: which pattern one fits, when it was said, and which are of the process that runs.

Of a line only what a pattern matches is shown: a log may hold anything. What a process says when it dies: `endings.py`; what no
pattern knows: `complaints.py`. The time of a line is the node's own, in whichever zone.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from domain.diagnosis.logs.catalogue import Told

MAX_QUOTE = 240
"""Characters of a line that are shown."""
STALE = timedelta(seconds=150)
"""What repeats, repeats within a minute (the driver's poll backs off to 60 s): an older line tells of something that is
over.
"""
STAMP = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3}\]")
"""Kafka's log4j layout (of others: `layouts.py`). By the node's own clock and zone, so that it is compared with other lines
of the same log only."""
SET_BACK = timedelta(minutes=1)
"""Threads write their lines in no strict order; what differs by more was a clock."""
CLOCKS = timedelta(seconds=2)
"""Between the time of a process, in ticks since boot, and that of its lines."""
READ_AFTER = timedelta(seconds=30)
"""How long after a look its logs may be read: on a machine with much to do, seconds."""
ZONES = timedelta(minutes=15)
"""All zones of the world differ by multiples of it from each other."""
TRIED_AGAIN = timedelta(seconds=30)
START_OF_PROCESS = re.compile(r"Registered .?kafka:type=kafka\.Log4jController.? MBean")
"""The first line of every start of Kafka 3.9. What stands before it was said by a process that is gone."""
LASTING_WORDS = (
    "kafka.Log4jController",
    "transitioning from ",
    "Encountered zk migration fault",
    "Encountered ZooKeeper error",
    "Encountered metadata ",
    "Encountered quorum controller fault",
    "LogDirFailureChannel)",
    "Stopping serving ",
    "does not match the topic ID",
    "bad ZK version",
    "Error due to",
    "QUOTAEXCEEDED",
    "marked as failed",
    "Added fetcher to broker ",
    "OutOfMemoryError",
)
"""In every line that begins a process, lasts (`is_lasting`), says why or ends what has lasted: so it is found far above a log's
end."""
ENDED = re.compile(r"\bINFO .*\b(?:shut down completed|Completed shutdown)\b")
"""The last that Kafka itself says (KafkaServer, BrokerServer, ControllerServer)."""
FRAME = re.compile(r"^\s*(?:at [\w.$/@<>-]+\(.*\)|\.\.\. \d+ (?:more|common frames omitted))\s*$")
OF_A_TRACE = re.compile(
    r"^(?:\s|(?:Caused by: |Suppressed: )?(?!java\.lang\.OutOfMemoryError)[\w.$]+(?:Exception|Error|Fault)\b)"
)
"""What belongs to the line before it, and is told as loudly as that. A JVM without memory prints amid anything."""
OF_OTHERS = re.compile(
    r"\[SocketServer\b|\bError processing append operation on partition |\[(?:Producer|Consumer|AdminClient) clientId="
)
"""What says nothing of the node's own way to its peers: of those that connect to it, a health check, a scanner, a client
without the right certificate, or whose records cannot be taken; and clients inside its JVM, as a metrics reporter, an appender
or remote-log metadata have."""
SECRET = re.compile(r"Invalid value .*?( for configuration|$)")


@dataclass(frozen=True)
class Found:
    """A line that was found: of which kind, the ids or names in it, and the words to quote. `block`: where it stands, the line
    with what was thrown below it, without frames."""

    told: Told
    named: tuple[str, ...]
    quote: str
    block: tuple[str, ...] = ()

    @property
    def thrown(self) -> tuple[str, ...]:
        return self.block[1:]


def stamp_of(line: str) -> datetime | None:
    """When it was said; `None` where the line has no time, or one that there is not."""
    match = STAMP.match(line)
    try:
        return datetime.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def times_of(lines: Sequence[str]) -> list[datetime | None]:
    """When each was said: by the last time before it, on the clock of the last line. `None` above the first time.

    A clock that goes back, as at the end of summer time, makes what was said before it no younger than what came after.
    """
    times: list[datetime | None] = []
    for line in lines:
        times.append(stamp_of(line) or (times[-1] if times else None))
    ahead, after = timedelta(), None
    for number in range(len(times) - 1, -1, -1):
        at = times[number]
        if at is None:
            break
        if after is not None and at - ahead > after + SET_BACK:
            ahead = at - after
        after = times[number] = at - ahead
    return times


def set_back_by(lines: Sequence[str]) -> timedelta:
    """How far the clock is behind where it was already, by the times as they stand there; nothing, where it is not."""
    stamps = [stamp for line in lines if (stamp := stamp_of(line)) is not None]
    behind = max(stamps) - stamps[-1] if stamps else timedelta()
    return behind if behind > SET_BACK else timedelta()


def age_of(line: str, now: datetime) -> timedelta | None:
    """How long ago it was said, up to a quarter of an hour, whatever the node's zone; what is older seems younger by quarters.

    What was said since, before its log was read, is of this moment. `None` where the line has no time.
    """
    stamp = stamp_of(line)
    return max((now.replace(tzinfo=None) - stamp + READ_AFTER) % ZONES - READ_AFTER, timedelta()) if stamp is not None else None


def of_this_process(lines: Sequence[str]) -> Sequence[str]:
    """The lines of the process that runs now, as far as they are there."""
    starts = [number for number, line in enumerate(lines) if START_OF_PROCESS.search(line)]
    return lines[starts[-1] :] if starts else lines


def before_this_process(lines: Sequence[str]) -> Sequence[str]:
    """Those of earlier ones; nothing where the start of the one that runs is not there."""
    return lines[: len(lines) - len(of_this_process(lines))]


def current(lines: Sequence[str], age: timedelta = STALE) -> tuple[str, ...]:
    """The same without those that are stale, or older than that."""
    return _newer_than(age, of_this_process(lines))


def lately(lines: Sequence[str]) -> tuple[str, ...]:
    """The same of what is tried again every few seconds: a connection, a registration. What was said before that is over."""
    return _newer_than(TRIED_AGAIN, of_this_process(lines))


def _newer_than(age: timedelta, lines: Sequence[str]) -> tuple[str, ...]:
    """By the newest line, on its clock."""
    times = times_of(lines)
    newest = times[-1] if times else None
    return tuple(line for line, at in zip(lines, times, strict=True) if at is None or newest is None or newest - at <= age)


def found_in(lines: Sequence[str], kinds: Sequence[Told]) -> tuple[Found, ...]:
    """Of each kind what its last line says, in the order of the kinds."""
    lasting = [kind for kind in kinds if kind.is_lasting]
    own = of_this_process(lines) if lasting else ()
    newest = {found.told.name: found for kind in lasting for found in all_found(_since_over(own, kind), (kind,))}
    passing = all_found(current(lines), [kind for kind in kinds if not kind.is_lasting])
    newest |= {found.told.name: found for found in that_count(passing)}
    return tuple(newest[kind.name] for kind in kinds if kind.name in newest)


def all_lasting(lines: Sequence[str], kinds: Sequence[Told]) -> tuple[Found, ...]:
    """Of kinds that last, every line that counts, and not their last alone."""
    own = of_this_process(lines)
    return tuple(found for kind in kinds for found in all_found(_since_over(own, kind), (kind,)))


def _since_over(lines: Sequence[str], kind: Told) -> Sequence[str]:
    over = [number for number, line in enumerate(lines) if kind.over_with is not None and kind.over_with.search(line)]
    return lines[over[-1] + 1 :] if over else lines


def all_found(lines: Sequence[str], kinds: Sequence[Told]) -> Iterator[Found]:
    """Every line that fits a kind, with what was thrown there."""
    for block in _blocks(lines):
        for line in block:
            if (found := first_of(line, kinds)) is not None:
                yield replace(found, block=block)


def that_count(found: Iterable[Found]) -> Iterator[Found]:
    """Those that are said often enough of the same: several threads say it in one second."""
    all_of_them = list(found)
    times: dict[tuple[str, tuple[str, ...]], set[datetime | None]] = defaultdict(set)
    for one in all_of_them:
        times[one.told.name, one.named].add(stamp_of(one.block[0]))
    return (one for one in all_of_them if len(times[one.told.name, one.named]) >= one.told.least)


def _blocks(lines: Sequence[str]) -> Iterator[tuple[str, ...]]:
    block: list[str] = []
    for line in lines:
        if block and not OF_A_TRACE.match(line) and not line.startswith("java.lang.OutOfMemoryError"):
            yield tuple(block)
            block = []
        if not FRAME.match(line):
            block.append(line)
    if block:
        yield tuple(block)


def of_its_own(lines: Sequence[str]) -> tuple[str, ...]:
    """Without what it says of others, and what was thrown there."""
    return tuple(line for block in _blocks(lines) if not OF_OTHERS.search(block[0]) for line in block)


def first_of(line: str, kinds: Sequence[Told]) -> Found | None:
    """What a line says, of the first kind that it fits."""
    for kind in kinds:
        match = kind.pattern.search(line)
        if match is not None:
            named = tuple(part for group in match.groups() if group for part in re.split(r"[,\s]+", group.strip()) if part)
            return Found(kind, named, _quoted(match.group(0)))
    return None


def _quoted(words: str) -> str:
    """A value that Kafka does not accept is not repeated: it may be a secret in the wrong place."""
    return SECRET.sub(r"Invalid value …\1", words)[:MAX_QUOTE].strip()


def said_by_new(lines: Sequence[str], age: timedelta, now: datetime) -> Sequence[str] | None:
    """What a process of this age has printed below the lines of the one before it; `None` where those are not there.

    That one may have said its last in the same moment: it is known by its words.
    """
    said = [(number, old) for number, line in enumerate(lines) if (old := age_of(line, now)) is not None]
    before = [n for n, old in said if old > age + CLOCKS or (old > age - CLOCKS and ENDED.search(lines[n]))]
    return lines[before[-1] + 1 :] if before and age + READ_AFTER < ZONES else None
