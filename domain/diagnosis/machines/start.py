"""How a node's process starts: in what place, as whom, and what its command gives Kafka besides the properties file.

A sandbox of systemd's outlives KillMode=process: whatever is started in a unit has its mounts, its filters and its limits until
it ends, though the unit's own files are changed or it is restarted.
`--override key=value` counts before the file. Sources: Kafka.scala, getPropsFromArgs; CommandLineUtils.parseKeyValueArgs;
jopt-simple also takes one dash, and `=`.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath

from domain.decisions import Label
from domain.observed.parts import ObservedPart
from domain.redaction import shown_name, shown_value

OPTIONS_OF_USER = {
    "setpriv": ("--reuid", "--ruid"),
    "runuser": ("-u", "--user"),
    "sudo": ("-u", "--user"),
    "chpst": ("-u",),
    "start-stop-daemon": ("-c", "--chuid"),
}
"""By program, what it is told the user by that it becomes."""
NAMED_FIRST = frozenset({"gosu", "su-exec", "s6-setuidgid", "setuidgid", "su", "runuser"})
"""Programs whose first argument that is no option is the user."""
OPTION = re.compile(r"--?override(?:=(?P<joined>.*))?", re.DOTALL)
SHELL_TEXT = re.compile(r"\s--?override\b")


class StartUnit(ObservedPart):
    """A unit of systemd's, or of a user's. `kill_mode`: whom a stop of it ends (systemd.kill(5)); empty where nobody tells.

    `ends_at_logout`: so does the last logout of its user. `inherits`: its settings that keep from something whatever is started
    in it, as `ProtectSystem=strict`.
    """

    name: str
    is_users: bool = False
    kill_mode: str
    ends_at_logout: bool = False
    inherits: tuple[str, ...] = ()


class JavaTrial(ObservedPart):
    """A JVM that was tried in such a place, with the file of a stage or without one. `command`: its java. `untried`: why it was
    not. `failed`: how it ended, where that was not well; `agents`: where without these it was. `refused`: where it was, and
    Kafka does not take that file, or has not read it in time (`is_late`). `overridden`: keys that its start command gave to it
    before the file.
    """

    stage: Label | None = None
    command: str | None = None
    untried: str | None = None
    failed: str | None = None
    agents: str | None = None
    refused: str | None = None
    is_late: bool = False
    overridden: tuple[str, ...] = ()


class StartPlace(ObservedPart):
    """`unit`: `None` where that is none of systemd's. `read_only`: of the directories that the node writes into, those that can
    only be read in the mounts of whatever is started there, though their file systems can be written. `unopened`: of the files
    that a start appends to, those that it could not open, and why. `budgets`: by kind and
    where each holds, what is used and the most. `is_filtered`: whatever is started there may not make every call to the kernel
    (seccomp(2)). `gatekeepers`: programs that are asked before a file is opened there, and may say no. `moved`: log directories
    that lead elsewhere now than when the process that runs opened them. `held_by`: other processes that have them open, where
    it has none. `denied`: what it reads or writes that whoever it will be may not use, and why. `unheld`: log directories whose
    lock the process that runs does not hold; `elsewhere`: others whose lock it holds; `unseen`: of these it could not be seen.
    """

    unit: StartUnit | None
    read_only: tuple[str, ...] = ()
    unopened: tuple[tuple[str, str], ...] = ()
    budgets: tuple[tuple[str, str, int, int], ...] = ()
    is_filtered: bool = False
    gatekeepers: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    held_by: tuple[str, ...] = ()
    denied: tuple[tuple[str, str], ...] = ()
    unheld: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()


class Override(ObservedPart):
    """`--override` of a start command, as people may see it. `is_specified`: by the cluster's specification, else by the
    command line of the process that runs."""

    key: str
    value: str
    is_specified: bool


def user_of_start(command: Sequence[str]) -> str:
    """Whom a start command makes of itself, by name or number; empty where that is nobody else, or not to be seen in it."""
    program, arguments = PurePosixPath(command[0]).name, command[1:]
    for option in OPTIONS_OF_USER.get(program, ()):
        joined = next((one.partition("=")[2] for one in arguments if one.startswith(f"{option}=")), "")
        following = next((after for before, after in pairwise(arguments) if before == option), "")
        if joined or following:
            return (joined or following).partition(":")[0]
    first = next((one for one in arguments if not one.startswith("-")), "")
    return first.partition(":")[0] if program in NAMED_FIRST else ""


def overrides_in(command: Sequence[str]) -> dict[str, str]:
    """Values by key. The last of a key counts; one without a value is empty. A word that is a shell's text is split first."""
    words = [part for word in command for part in _words_in(word)]
    found: dict[str, str] = {}
    for word, after in pairwise([*words, ""]):
        if option := OPTION.fullmatch(word):
            key, _, value = (after if option["joined"] is None else option["joined"]).partition("=")
            found[key] = value
    return found


def _words_in(word: str) -> list[str]:
    if not SHELL_TEXT.search(word):
        return [word]
    try:
        return shlex.split(word)
    except ValueError:
        return word.split()


def shown_overrides(specified: Mapping[str, str], running: Mapping[str, str]) -> tuple[Override, ...]:
    """Both as a survey keeps them: without the value of any key that may hold a secret."""
    given = {**running, **specified}
    return tuple(
        Override(key=shown_name(key, value), value=shown_value(key, value), is_specified=key in specified)
        for key, value in sorted(given.items())
    )
