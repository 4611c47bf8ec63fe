"""Lines of a log: what makes one a kind of its own, and how those of the process that runs are found.

Of a line only what a pattern matches is shown: a log may hold anything. What a living Kafka says: `running_lines.py`; what a
process says when it dies: `deaths.py`; what no pattern knows: `said.py`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from domain.diagnosis.logs.times import CLOCKS, READ_AFTER, ZONES, age_of, stamp_of, times_of

MAX_QUOTE = 240
"""Characters of a line that are shown."""
STALE = timedelta(seconds=150)
"""What repeats, repeats within a minute (the driver's poll backs off to 60 s): an older line tells of something that is
over.
"""
TRIED_AGAIN = timedelta(seconds=30)
START_OF_PROCESS = re.compile(r"Registered .?kafka:type=kafka\.Log4jController.? MBean")
"""The first line of every start of Kafka 3.9. What stands before it was said by a process that is gone."""
ENDED = re.compile(r"\bINFO .*\b(?:shut down completed|Completed shutdown)\b")
"""The last that Kafka itself says (KafkaServer, BrokerServer, ControllerServer)."""
THEN_START = " Then start it."
"""How most fixes end that are for the dead."""
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
class Told:
    """A kind of line: what it means, what would be right, and what to do. `name` is stable; tests and pages use it.

    `is_vague`: it follows from something else, which counts if it is known too, although this is said after it.
    `is_lasting`: said once, and true until the process ends, or says something that `over_with` fits, however old the line is.
    `is_root`: what is said after it follows from it.
    `least`: seconds in which it was said of the same, from which it counts; fewer are what any peer that ends leaves.
    """

    name: str
    pattern: re.Pattern[str]
    expected: str
    fix: str
    is_vague: bool = False
    is_lasting: bool = False
    is_root: bool = False
    over_with: re.Pattern[str] | None = None
    least: int = 1

    @property
    def cure(self) -> str:
        """What mends it, without the start of a process that has died of it."""
        return self.fix.removesuffix(THEN_START)


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
