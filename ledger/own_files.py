"""Whether somebody has deleted SQLite's files under the programs that have them open.

What is committed goes on into a file that has no name any more. Whoever opens the ledger then begins another -wal beside it: he
sees an older ledger, and what both write damages it (sqlite.org/howtocorrupt.html, 1.4). So nobody writes and nobody opens it
until the programs have ended in order: the last one that closes it writes back what is in the file without a name.
"""

import os
from contextlib import suppress
from pathlib import Path

SUFFIXES = ("", "-wal", "-shm")
DELETED = " (deleted)"
"""What the kernel adds to such a name in /proc (proc(5))."""


def deleted_here(path: str) -> tuple[str, ...]:
    """Names of the ledger's files that this process has open and that were deleted. Without /proc none is known."""
    return _deleted(path, "self")


def deleted_elsewhere(path: str) -> dict[int, tuple[str, ...]]:
    """The same of other processes, by their ids, as far as we may see them. Empty where this one has the ledger open already:
    it has what they have."""
    if os.path.realpath(path) in _opened("self"):
        return {}
    pids = (int(process.name) for process in _entries("/proc") if process.name.isdigit())
    found = {pid: _deleted(path, str(pid)) for pid in pids if pid != os.getpid()}
    return {pid: names for pid, names in found.items() if names}


def _deleted(path: str, process: str) -> tuple[str, ...]:
    whole, opened = os.path.realpath(path), _opened(process)
    return tuple(f"{path}{suffix}" for suffix in SUFFIXES if f"{whole}{suffix}{DELETED}" in opened)


def _opened(process: str) -> set[str]:
    found = set()
    for opened in _entries(f"/proc/{process}/fd"):
        with suppress(OSError):  # closed meanwhile, or not ours to see
            found.add(str(opened.readlink()))
    return found


def _entries(directory: str) -> list[Path]:
    try:
        return list(Path(directory).iterdir())
    except OSError:
        return []
