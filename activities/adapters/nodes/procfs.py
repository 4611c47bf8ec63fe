"""What `/proc` says about a process (proc(5)). Pure: bytes in, facts out."""

import posixpath
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime

TICKS_PER_SECOND = 100
"""USER_HZ, the unit of times in `/proc/<pid>/stat`: 100 on every architecture that has a JVM."""

GONE = frozenset("ZXx")
"""States of a process that has ended and waits for its parent."""

THREADS, START_TIME = 17, 19
"""Fields of `/proc/<pid>/stat`, from the third on."""

PAUSED = frozenset("Tt")
"""States of a process that a signal, or a debugger, has stopped."""


@dataclass(frozen=True)
class Stat:
    """`start_ticks`: start time in ticks since boot. It tells a process from a later one with the same pid."""

    pid: int
    is_alive: bool
    start_ticks: int
    is_paused: bool = field(default=False, compare=False)

    @property
    def identity(self) -> str:
        return f"{self.pid}@{self.start_ticks}"


def started_at(identity: str | None, boot: datetime | None) -> datetime | None:
    """When a process of this boot was started, by its identity; `None` where that does not tell."""
    ticks = (identity or "").partition("@")[2]
    if boot is None or not ticks.isdigit():
        return None
    return datetime.fromtimestamp(boot.timestamp() + int(ticks) / TICKS_PER_SECOND, tz=UTC)


def parse_stat(content: bytes) -> Stat:
    """`/proc/<pid>/stat`. The second field is the program's name in brackets and may itself hold spaces and brackets.

    A process whose first thread has ended is a zombie while others of it live on, as they do for a moment when it ends: until
    they have, its files are open and locked, and whoever is started in its place would die of that.
    """
    pid, rest = content[: content.index(b" ")], content[content.rindex(b")") + 2 :]
    fields = rest.split()
    state = fields[0].decode()
    is_alive = state not in GONE or (state == "Z" and int(fields[THREADS]) > 1)
    return Stat(int(pid), is_alive, int(fields[START_TIME]), state in PAUSED)


def parse_boot_time(content: bytes) -> datetime | None:
    """`btime` of `/proc/stat`, where it has one. It can move by a second while the clock is being set."""
    found = re.search(rb"^btime (\d+)", content, re.MULTILINE)
    return datetime.fromtimestamp(int(found[1]), tz=UTC) if found else None


def names_file(command_line: bytes, path: str) -> bool:
    """Whether a command line contains the absolute path, alone or as part of an argument such as `--config=/path`."""
    return re.search(rb"(?<![\w./-])" + re.escape(path.encode()) + rb"(?![\w./-])", command_line) is not None


def may_name_file(command_line: bytes, path: str) -> bool:
    """Whether an argument is a relative path with the same file name: then the working directory decides."""
    return any(
        not argument.startswith("/") and posixpath.basename(argument) == posixpath.basename(path)
        for argument in command_line.decode(errors="replace").split("\0")
    )


def names_file_from(command_line: bytes, working_directory: str, path: str) -> bool:
    """`names_file` for relative arguments of a process with this working directory."""
    arguments = command_line.decode(errors="replace").split("\0")
    return any(posixpath.normpath(posixpath.join(working_directory, a)) == posixpath.normpath(path) for a in arguments)
