"""Which processes are the demo's, and how they end.

Pid files alone would miss a process that was started in the very moment in which its starter died. So the command lines
decide: each of ours names a path in the demo's directory, whoever started it. Somebody may have started a program of ours by
hand, to work on the demo's ledger: that is in its environment. Programs of other kinds, such as an editor with a log of ours
open, are left alone.
"""

import os
import time
from collections.abc import Iterator, Sequence
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
    inside = f"{directory}{os.sep}"
    if not arguments or not any(inside in argument for argument in arguments):
        return False
    program = Path(arguments[0]).name
    if program.startswith("python"):
        return not PYTHON_MODULES.isdisjoint(arguments)
    if program in {"sh", "setsid"}:  # the node driver's start script, before it becomes the node
        return any(argument.startswith(inside) for argument in arguments)
    return program == "java" or "start-dev" in arguments


def processes_of(directory: Path) -> list[psutil.Process]:
    """All that live now."""
    found = psutil.process_iter(["cmdline"])
    return [one for one in found if is_ours(one.info["cmdline"] or (), directory) or _works_in(one, directory)]


def _works_in(process: psutil.Process, directory: Path) -> bool:
    """Whether it is a program of ours, started by hand, whose settings name a path in `directory`."""
    arguments = process.info["cmdline"] or ()
    if PYTHON_MODULES.isdisjoint(arguments) and SCRIPTS.isdisjoint(Path(argument).name for argument in arguments[:2]):
        return False
    try:
        settings = process.environ()
    except psutil.Error:  # it has ended meanwhile, or is somebody else's
        return False
    return any(f"{directory}{os.sep}" in value for name, value in settings.items() if name.startswith("KEEPERLESS_"))


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
