"""Whether somebody has deleted SQLite's files under the programs that have them open, or marked them (chattr(1)).

What is committed goes on into a file that has no name any more. Whoever opens the ledger then begins another -wal beside it: he
sees an older ledger, and what both write damages it (sqlite.org/howtocorrupt.html, 1.4). So nobody writes and nobody opens it
until the programs have ended in order: the last one that closes it writes back what is in a -wal without a name. Of the
ledger's own file nothing is written back once that has lost its name (sqlite3PagerClose, databaseIsUnmoved).

A mark keeps even root from changing a file: it looks like a disk that fails, or like missing rights, and is neither. No file is
opened to find one: as it was closed again, all locks of this process on it would be lost (fcntl(2)).
"""

import ctypes
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

SUFFIXES = ("", "-wal", "-shm")
LOOKS, SECONDS_BETWEEN = 4, 0.02
"""At files that seem to be deleted. An unlink and a close are microseconds apart, unless the machine has much to do."""
DELETED = " (deleted)"
"""What the kernel adds to such a name in /proc (proc(5))."""
MARKS = {0x10: "immutable", 0x20: "append-only"}
"""STATX_ATTR_IMMUTABLE and STATX_ATTR_APPEND of statx(2)."""
AT_FDCWD, SIZE = -100, 256
ATTRIBUTES = slice(8, 16)
"""Of `struct statx`: stx_attributes."""


def deleted_here(path: str) -> tuple[str, ...]:
    """Names of the ledger's files that this process has open and that were deleted. Without /proc none is known."""
    return _lasting(lambda: _deleted(path, "self")) or ()


def deleted_elsewhere(path: str) -> dict[int, tuple[str, ...]]:
    """The same of other processes, by their ids, as far as we may see them. Empty where this one has the ledger open already:
    it has what they have."""
    if os.path.realpath(path) in _opened("self"):
        return {}
    return _lasting(lambda: _deleted_by_others(path)) or {}


def _deleted_by_others(path: str) -> dict[int, tuple[str, ...]]:
    pids = (int(name) for name in _names("/proc") if name.isdigit())
    found = {pid: _deleted(path, str(pid)) for pid in pids if pid != os.getpid() and _has_our_mounts(pid)}
    return {pid: names for pid, names in found.items() if names}


def _lasting(look: Callable[[], T]) -> T | None:
    """What is so at every look: whoever closes them last unlinks -wal and -shm himself, a moment before they are closed."""
    for number in range(LOOKS):
        if number:
            time.sleep(SECONDS_BETWEEN)
        if not (found := look()):
            return None
    return found


def _deleted(path: str, process: str) -> tuple[str, ...]:
    whole, opened = os.path.realpath(path), _opened(process)
    return tuple(f"{path}{suffix}" for suffix in SUFFIXES if f"{whole}{suffix}{DELETED}" in opened)


def _has_our_mounts(pid: int) -> bool:
    """An equal path in a container is another file."""
    try:
        return Path(f"/proc/{pid}/ns/mnt").readlink() == Path("/proc/self/ns/mnt").readlink()
    except OSError:
        return False


def _opened(process: str) -> set[str]:
    directory = f"/proc/{process}/fd"
    found = set()
    for name in _names(directory):
        with suppress(OSError):  # closed meanwhile, or not ours to see
            found.add(os.readlink(f"{directory}/{name}"))  # noqa: PTH115 - of thousands, at each write
    return found


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208 - likewise
    except OSError:
        return []


def marked(file: str) -> dict[str, str]:
    """By path its marks: of the ledger's file, what lies beside it, and their directory. Empty where the system tells none."""
    paths = [str(Path(file).parent), *(f"{file}{suffix}" for suffix in SUFFIXES)] if file else []
    return {path: marks for path in paths if (marks := " and ".join(_marks_of(path)))}


def _marks_of(path: str) -> Iterator[str]:
    status = ctypes.create_string_buffer(SIZE)
    try:
        failed = ctypes.CDLL(None).statx(AT_FDCWD, os.fsencode(path), 0, 0, status)
    except (AttributeError, OSError):  # neither Linux nor a C library that has it
        return
    attributes = 0 if failed else int.from_bytes(status.raw[ATTRIBUTES], "little")
    yield from (word for bit, word in MARKS.items() if attributes & bit)
