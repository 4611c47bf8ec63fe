"""How a process has ended, by the last that it printed: it names its cause, it was stopped in order, killed, or said nothing.

    1. its own lines: from Kafka's first one on, without the frames of stack traces
    2. stopped in order: it told of a signal, or that it has shut down, and no error after that       → start it
       but what is below that and is no line of Kafka's was printed by a start command that failed    → told as well
    3. its cause: of what it said as an error at its end the last known words                         → the kind's fix
    4. an error that is not known: the last ones, without what may be a secret                        → look at its log
    5. else its output ends amid ordinary lines: it had no time to say anything                       → it was killed

What is told with a warning or less it has lived on with, and so has it with an error long before its end.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import takewhile

from domain.diagnosis.logs.catalogue import KAFKA
from domain.diagnosis.logs.complaints import Said, foreign_place, said_in, shown, without_frames
from domain.diagnosis.logs.connecting import KEYS, PEER_CUT, PEER_UNREACHABLE, of_the_dead, refusals_in, unconnected_in
from domain.diagnosis.logs.lines import FRAME, MAX_QUOTE, START_OF_PROCESS, Found, first_of, of_this_process
from domain.diagnosis.logs.redaction import THROWN
from domain.diagnosis.logs.running import who_asked

MACHINE_DEATHS = KAFKA.of("dying", "java", "disks", "network")
"""Looked for before what Kafka says in its own words. `FILES` come after that: many things begin with a file."""
FILES = KAFKA.of("dying", "files")
ENDED_WHILE_STARTING, LOG_NOT_LOADED, NEVER_REGISTERED = map(
    KAFKA.__getitem__, ("ended-while-starting", "log-not-loaded", "never-registered")
)
DISK_FULL, MISSING_FILE, DATA_FILE_GONE = KAFKA["disk-full"], KAFKA["missing-file"], KAFKA["data-file-gone"]
OF_ZOOKEEPERS = KAFKA["authorizer-of-zookeeper"]
"""In the frames alone: without zookeeper.connect it ends in a NullPointerException, and with it in whatever ZooKeeper is at."""
DEATHS = (
    *MACHINE_DEATHS,
    *KAFKA.of("dying", "storage", "metadata-log", "zookeeper"),
    *KEYS,
    *FILES,
    *KAFKA.of("dying", "properties"),
)
"""What a process says when it dies. The last line that fits counts, of those that are not vague where there is one; of one line
the first pattern."""

WAITED = frozenset({NEVER_REGISTERED.name, "zookeeper-unreachable"})
"""Of those what it has warned of meanwhile is the cause."""
AT_THE_END = timedelta(seconds=60)
"""An error that is older than that at the process's last line was not its end: it went on."""
LINES_JUDGED = 400
"""Of the end, without frames: longer than what a process says when it closes."""
UNTIMED_LINES = 100
"""Of those where none has a time that is known."""
HOLLOW = re.compile(
    r"Exiting Kafka due to fatal exception|Prepare to shutdown|Encountered fatal fault: caught exception|"
    r"A fatal exception has occurred|Got exception while starting SharedServer"
)
"""Errors that only say that there was one."""

OF_A_FILE = re.compile(r"Exception: |(?:^|[\s(])/\S")
CAUSED = re.compile(r"Caused by: [\w.$]+: (.+)")

STARTS_IN_KRAFT = re.compile(r"\bat kafka\.server\.(?:Broker|Controller)Server\.startup\b")
OF_PARTITION = re.compile(r"(?!__cluster_metadata)[^/]+-\d+(?:\.[\w-]+)?/")
"""What a path goes on with below a log directory, where it is that of a partition's file."""
NO_SPACE = "No space left on device"
ROOM_NOW = "its file system has room now, in bytes and in inodes"
NO_ROOM_BELOW = (
    "If no one has made room since, the storage below that file system is full: a thin pool (`lvs`: Data%), the file behind "
    "a loop device (`losetup -l`), or the datastore of a virtual machine. `dmesg` names the device (critical space "
    "allocation error). Make room there or grow it: a larger file system on top makes it worse. Then start it."
)
LOCKED = "Required key not available"
UNLOCK = KAFKA.snippets["unlock"]
ORDINARY = frozenset({"TRACE", "DEBUG", "INFO"})
"""A log without any has a root logger that lets no such line through: neither a signal nor a start is in it."""
SIGNAL = re.compile(r"Terminating process due to signal SIG[A-Z]{1,8}")
SHUT_DOWN = re.compile(r"shut down completed \(kafka\.server\.\w{1,30}\)|App info kafka\.server for -?\d+ unregistered")
"""A broker's last words, and a controller's, which has none of the first kind. A start that failed ends with them, too."""


@dataclass(frozen=True)
class Ending:
    """How a process has ended, for people. `expected`: empty where there is nothing to say but that it runs. `kind`: the name
    of what is known of it; empty where nothing is. `at`: when it was told to end, by the clock of its log. `further`: what else
    is to be done, after the fix.
    """

    observed: str
    expected: str
    fix: str
    kind: str = ""
    at: datetime | None = None
    further: str = ""


STOPPED = Ending(
    "It was stopped in order",
    "",
    "Start it. If you did not stop it, find out what did: `systemctl status`, `last`, configuration management, a memory guard "
    "(`journalctl -u earlyoom`). SIGHUP comes from a session that was closed.",
    "stopped",
)
KILLED = Ending(
    "Its output ends amid ordinary lines, with no error and no shutdown: it was killed, or something in it ended it without a "
    "word",
    "no process kills it, and its host has memory for it",
    "Check whether the kernel or systemd-oomd killed it for memory (`dmesg -T`, `journalctl -k`, `journalctl -u "
    "systemd-oomd`, the limit of its container or unit). If so, lower -Xmx or give it more memory. Check whether the host "
    "went down. Otherwise it got a kill -9, or a plug-in or agent called System.exit or halt, which only its own log may "
    "show. Then start it: it recovers its logs first.",
    "killed",
)
CURT = Ending(
    "Its log has nothing below a warning, so it cannot distinguish an orderly stop from a kill",
    "",
    f"{STOPPED.fix} Check also whether the kernel killed it for memory (`dmesg -T`, `journalctl -k`), or its host went down.",
    "curt",
)
UNTIMED = (
    ". Its layout is not known, so the time of each line is not: check in the log itself that this was its end before you fix "
    "anything"
)
SILENT = Ending(
    "It printed nothing",
    "a start command whose output goes to the driver's output file",
    "Run its start command by hand as Kafka's user: it prints the cause. Check whether the command redirects its output. "
    "Then start it.",
    "silent",
)
CUT_OFF = Ending(
    "Its last words are missing: where it prints was full",
    "room for what it prints",
    "Make room there first. Then start it: if it ends again, its output says why.",
)
UNWRITTEN = Ending(
    "Its last words are missing: the file system where it prints accepts no more writes",
    "a file system for its output that can be written",
    "Then start it: if it ends again, its output says why.",
)
BY_HAND = (
    "Run its start command by hand as Kafka's user, with the environment that the cluster's specification gives it, and fix "
    "what it reports: sudo, a wrapper that is not installed or lies on a mount without exec, a variable, a secret, a lock, a "
    "maintenance switch, or what PAM allows (limits.conf, /etc/nologin; auth.log, `journalctl`)."
)
NOT_BEGUN = Ending(
    "It was started, and its start command ended before Kafka began in it",
    "a start command that ends only when Kafka does",
    f"{BY_HAND} Then start it. Every other node with that start command fails the same way.",
    "not-begun",
)
UNKNOWN = "Its last errors name no known cause"
PLUGIN_FIX = (
    "Find the property that names that plug-in: a metrics reporter, an authorizer, a policy, a login module, an agent. Check "
    "whether its version accepts what is in the file now: a broker in KRaft mode has node.id in place of broker.id. Then "
    "start it. Every other node with that plug-in fails the same way. The error is neither Kafka's nor Java's."
)
UNKNOWN_FIX = "Read its log, fix the cause, and start it. The migration continues by itself once the node serves."


def ending_of(lines: Sequence[str], log_dirs: Sequence[str] = ()) -> Ending:
    """How the process ended that printed these lines last, and has its data in `log_dirs`."""
    said = _own(lines)
    if not said:
        return SILENT
    ending = _ending_of(lines, said, log_dirs)
    is_untimed = said[-1].at is None and any(START_OF_PROCESS.search(line) for line in lines)
    return replace(ending, observed=f"{ending.observed}{UNTIMED}") if is_untimed else ending


def _ending_of(lines: Sequence[str], said: Sequence[Said], log_dirs: Sequence[str]) -> Ending:
    stop = _stopped_by(said)
    if stop is not None:
        since = _since_the_end(said)
        also = f". Below that was printed: {shown(since)}" if since else ""
        further = f" Where it does not come up: {BY_HAND}" if since else ""
        signal = _last(said, SIGNAL)
        at = said[signal].at if signal >= 0 else None
        return replace(STOPPED, observed=f"{STOPPED.observed}: {stop}{also}", at=at, further=further)
    found = death_in(lines)
    if found is not None:
        if _is_of_data(found, log_dirs):
            return Ending(f"It printed: {found.quote}", DATA_FILE_GONE.expected, DATA_FILE_GONE.fix)
        if found.told is ENDED_WHILE_STARTING:
            observed = f"{_told_to_end(said)}, while it still started. It printed: {found.quote}"
            return Ending(observed, found.told.expected, found.told.fix, found.told.name)
        besides = [one for one in _errors(_at_the_end(said)) if found.told.is_vague and _death(one) is None]
        more = f". Besides: {shown(besides)}" if besides else ""
        return Ending(f"It printed: {found.quote}{more}", found.told.expected, found.told.fix, found.told.name)
    errors = _errors(_at_the_end(said))
    if errors and (place := foreign_place(of_this_process(lines))):
        return Ending(f"{UNKNOWN}: {shown(errors)}. That came from {place}", "plug-ins that start with this file", PLUGIN_FIX)
    if errors:
        return Ending(f"{UNKNOWN}: {shown(errors)}", "", UNKNOWN_FIX)
    if any(one.has_level for one in said):
        ending = KILLED if any(one.level in ORDINARY for one in said) else CURT
        return replace(ending, observed=f"{ending.observed}. The last: {shown(said[-1:])}")
    return Ending(f"Its last lines name no known cause: {shown(said)}", "", UNKNOWN_FIX)


def ending_of_started(new: Sequence[str], log_dirs: Sequence[str] = ()) -> Ending:
    """How a process ended that was started on purpose, by all that was printed since: Kafka may not have begun in it."""
    said = list(said_in(new))
    if any(one.has_level for one in said) or any(START_OF_PROCESS.search(line) for line in new):
        return ending_of(new, log_dirs)
    found = death_in(new)
    whole = [one for one in said if found is not None and found.quote in one.text]
    words = shown(whole[-1:]) if whole else shown(said)
    if found is not None and found.quote not in words:
        words = found.quote  # that it holds no secret is known
    told = f"It printed: {words}" if said else "It printed nothing"
    ending = NOT_BEGUN if found is None else Ending("", found.told.expected, found.told.fix, found.told.name)
    return replace(ending, observed=f"{NOT_BEGUN.observed}. {told}")


def death_in(lines: Sequence[str]) -> Found | None:
    """Why a process died, by its last words; `None` where they are none that we know, or it was stopped in order.

    What is vague is quoted before what is exact: often it has the name of the thing.
    """
    said = _own(lines)
    if _stopped_by(said) is not None:
        return None
    if (left := _of_zookeepers(of_this_process(lines))) is not None:
        return left
    end = _at_the_end(said)
    deaths = list(_deaths(end))
    vague = {found.told.name: found.quote for found in deaths if found.told.is_vague}
    exact = [found for found in deaths if not found.told.is_vague]
    if not deaths:
        return None
    roots = [found for found in exact if found.told.is_root]
    if roots:
        return roots[-1]
    if not exact and not WAITED.isdisjoint(vague):
        exact = _lived_on_with(lines, end, is_refused=NEVER_REGISTERED.name in vague)
    if not exact:
        return replace(deaths[-1], quote=_joined([*vague.values()]))
    alike = takewhile(lambda found: found.told is exact[-1].told, reversed(exact))
    last = max(alike, key=lambda found: len(found.quote))
    asked = who_asked(last, of_this_process(lines))
    return asked if asked is not last else replace(last, quote=_joined([*vague.values(), last.quote]))


def _lived_on_with(lines: Sequence[str], end: Sequence[Said], *, is_refused: bool) -> list[Found]:
    """What it was told, and what kept it from its peers, until it gave up."""
    answers = refusals_in(lines)[:1] if is_refused else ()
    cut_off = unconnected_in(end)
    is_told = any(found.told not in {PEER_CUT, PEER_UNREACHABLE} for found in answers)
    return list(answers) if is_told or cut_off is None else [of_the_dead(cut_off)]


def _of_zookeepers(lines: Sequence[str]) -> Found | None:
    """That a node in KRaft mode could not start with it; `None` where its frames do not say so."""
    frames = [line for line in lines if FRAME.match(line)]
    left = next((found for line in frames if (found := first_of(line, (OF_ZOOKEEPERS,))) is not None), None)
    return left if any(map(STARTS_IN_KRAFT.search, frames)) else None


def words_of(lines: Sequence[str]) -> tuple[str, ...]:
    """Of the last lines the errors that a process ended with; without any the lines as they are. No frames."""
    said = _own(lines)
    errors = () if _stopped_by(said) is not None else _errors(_at_the_end(said))
    return tuple(one.text for one in errors) or without_frames(lines)


def _own(lines: Sequence[str]) -> list[Said]:
    """What the last process said."""
    return list(said_in(of_this_process(lines)))


def _stopped_by(said: Sequence[Said]) -> str | None:
    """The words with which it was stopped in order; `None` where it was not, or where something has failed to start since."""
    signal, ended = _last(said, SIGNAL), _last(said, SHUT_DOWN)
    edge = max(signal, ended)
    if edge < 0 or any(one.is_error and not _is_of_a_shell(one) for one in said[edge + 1 :]):
        return None
    if signal < 0 and _errors(_at_the_end(said)):
        return None
    number, pattern = (signal, SIGNAL) if signal >= 0 else (ended, SHUT_DOWN)
    found = pattern.search(said[number].text)
    return found[0] if found is not None else None


def _told_to_end(said: Sequence[Said]) -> str:
    """By whom nobody knows; after how long where its start and the signal are both there."""
    number, begun = _last(said, SIGNAL), said[0].at if START_OF_PROCESS.search(said[0].text) else None
    found, at = (SIGNAL.search(said[number].text), said[number].at) if number >= 0 else (None, None)
    signal = f" ({found[0].rpartition(' ')[2]})" if found is not None else ""
    after = f" {(at - begun).total_seconds():.0f} s after its start" if at is not None and begun is not None else ""
    return f"It got a signal to end{signal}{after}"


def _since_the_end(said: Sequence[Said]) -> list[Said]:
    """What stands below Kafka's last words and is no line of its own: mostly of a start command."""
    return [one for one in said[max(_last(said, SIGNAL), _last(said, SHUT_DOWN)) + 1 :] if not one.level]


def _last(said: Sequence[Said], pattern: re.Pattern[str]) -> int:
    return max((number for number, one in enumerate(said) if pattern.search(one.text)), default=-1)


def _at_the_end(said: Sequence[Said]) -> list[Said]:
    """Without what was said long before the end, and before it was stopped: that it survived."""
    own = said[_last(said, SIGNAL) + 1 :][-LINES_JUDGED:]
    newest = own[-1].at if own else None
    if newest is None:
        return list(own[-UNTIMED_LINES:])
    return [one for one in own if one.at is None or newest - one.at <= AT_THE_END]


def _errors(said: Sequence[Said]) -> list[Said]:
    """Each once, those that say more than that there was one."""
    errors = list({one.text: one for one in said if one.is_error}.values())
    return [one for one in errors if not HOLLOW.search(one.text)] or errors


def _deaths(said: Sequence[Said]) -> Iterator[Found]:
    """But for causes that only repeat what is known already: `failed to bind to …: Permission denied` is of no file."""
    exact: list[str] = []
    for one in said:
        cause = CAUSED.match(one.text)
        if cause is not None and any(cause[1] in text for text in exact):
            continue
        if (found := _death(one)) is not None:
            exact += [] if found.told.is_vague else [one.text]
            yield found


def _death(one: Said) -> Found | None:
    """Of a file only where one is named, or Java says so: a start command's programs have denials of their own."""
    found = first_of(one.text, (LOG_NOT_LOADED,) if one.is_of_the_living else DEATHS)
    is_vain = found is not None and found.told in FILES and not one.level and not OF_A_FILE.search(found.quote)
    return None if is_vain else found


def _is_of_a_shell(one: Said) -> bool:
    """Neither Java nor Kafka says so, nor is it known: a start command has failed, of whatever process that was."""
    return not one.level and THROWN.match(one.text) is None and _death(one) is None


def _is_of_data(found: Found, log_dirs: Sequence[str]) -> bool:
    path = DATA_FILE_GONE.pattern.search(found.quote) if found.told is MISSING_FILE else None
    below = [path[1].removeprefix(f"{root.rstrip('/')}/") for root in log_dirs if path is not None]
    return any(not rest.startswith("/") and OF_PARTITION.match(rest) for rest in below)


def _joined(quotes: Sequence[str]) -> str:
    return ": ".join(dict.fromkeys(quotes))[: 2 * MAX_QUOTE]
