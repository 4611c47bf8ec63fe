"""Which processes are the demo's, and how they end.

Pid files alone would miss a process that was started in the very moment in which its starter died. So the command lines
decide: each of ours names a path in the demo's directory, whoever started it. Somebody may have started a program of ours by
hand, to work on the demo's ledger: that is in its environment. Programs of other kinds, such as an editor with a log of ours
open, are left alone.
"""

import os
import re
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import psutil

from playground import processes
from playground.services import Program

PYTHON_MODULES = frozenset({*Program, "playground.load_process", "setup"})
SCRIPTS = frozenset(f"keeperless-{program.name.lower()}" for program in Program)
GRACE_SECONDS = 3.0
"""What runs here is thrown away, so nobody waits long for a clean shutdown."""
QUIET_SECONDS = 0.3
"""A process that is just being started shows its command line within this time."""


def is_ours(arguments: Sequence[str], directory: Path) -> bool:
    """Whether a command line is that of a server, worker or start script of the demo in `directory`."""
    inside = _inside(directory)
    if not arguments or not any(map(inside.search, arguments)):
        return False
    program = Path(arguments[0]).name
    if program.startswith("python"):
        return not PYTHON_MODULES.isdisjoint(arguments)
    if program in {"sh", "setsid"}:  # the node driver's start script, before it becomes the node
        return any(map(inside.match, arguments))
    return program == "java" or "start-dev" in arguments


def processes_of(directory: Path) -> list[psutil.Process]:
    """All that live now."""
    found = psutil.process_iter(["cmdline"])
    return [one for one in found if is_ours(one.info["cmdline"] or (), directory) or _works_in(one, directory)]


def _works_in(process: psutil.Process, directory: Path) -> bool:
    """Whether it is a program of ours, started by hand, whose settings name a path in `directory`."""
    arguments: Sequence[str] = process.info["cmdline"] or ()
    is_python = len(arguments) > 1 and Path(arguments[0]).name.startswith("python")
    is_module = any(before == "-m" and word in set(Program) for before, word in pairwise(arguments[:4]))
    if not is_python or not (is_module or Path(arguments[1]).name in SCRIPTS):
        return False
    try:
        settings = process.environ()
    except psutil.Error:  # it has ended meanwhile, or is somebody else's
        return False
    inside = _inside(directory)
    return any(inside.search(value) for name, value in settings.items() if name.startswith("KEEPERLESS_"))


def _inside(directory: Path) -> re.Pattern[str]:
    """A path in it: by itself, or after what says what it is for, as in a URL or an option."""
    return re.compile(rf"(?:^|[=:,]|///){re.escape(str(directory))}{os.sep}")


def stop_all(directory: Path) -> int:
    """Stops everything; gives how many processes that were. Returns when none has been seen for a moment."""
    return sum(_rounds(directory))


def _rounds(directory: Path) -> Iterator[int]:
    """Who can start others goes first, and at once: a worker would finish the node in hand for twenty seconds."""
    while found := processes_of(directory) or _after_a_moment(directory):
        starters = [process for process in found if not _is_server(process)]
        processes.stop(starters, grace_seconds=0.5)
        processes.stop([process for process in found if process not in starters], GRACE_SECONDS)
        yield len(found)


def _after_a_moment(directory: Path) -> list[psutil.Process]:
    time.sleep(QUIET_SECONDS)
    return processes_of(directory)


def _is_server(process: psutil.Process) -> bool:
    return Path(process.info["cmdline"][0]).name == "java"
