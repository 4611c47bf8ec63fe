"""Where an attempt at a check keeps its copies meanwhile: a private directory of its own, and nobody else's.

Copies of a quorum's log hold secrets, so what a killed worker has left is removed as soon as anybody looks. Which of
them live is told by a lock on a file in the directory, which ends with the process, however that ends. So an attempt that was
only cut off from Temporal keeps its files, and the one that follows it has others.
"""

import contextlib
import fcntl
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import IO

LOCK = "lock"


@dataclass(frozen=True)
class Workplace:
    """`directory` is this attempt's as long as `lock` is open."""

    directory: Path
    lock: IO[bytes]

    def leave(self) -> None:
        """What cannot be removed, for somebody writes there still, is without a lock from here on: the next sweep takes it."""
        with self.lock:
            _remove(self.directory)


def enter(work: Path, report_id: str, attempt: str) -> Workplace:
    """A new one. Somebody who sweeps may take it before it is locked: then it is made again."""
    directory = work / report_id / attempt
    while True:
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if (lock := _locked(directory, fcntl.LOCK_EX)) is not None:
                return Workplace(directory, lock)


def sweep(work: Path) -> None:
    """Remove what no living process holds. Others may do the same at the same time."""
    for directory in [each for check in _listed(work) for each in _listed(check)]:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if (lock := _locked(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)) is not None:
                Workplace(directory, lock).leave()


def _listed(directory: Path) -> list[Path]:
    """Empty where it was removed meanwhile."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return list(directory.iterdir())
    return []


def _locked(directory: Path, how: int) -> IO[bytes] | None:
    """`None`: another one holds it, or has removed what we waited for."""
    path = directory / LOCK
    lock = path.open("ab")
    with contextlib.suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(lock, how)
        if os.path.samestat(os.fstat(lock.fileno()), path.stat()):
            return lock
    lock.close()
    return None


def _remove(directory: Path) -> None:
    """With the directory of its check, where it was the last one."""
    shutil.rmtree(directory, ignore_errors=True)
    with contextlib.suppress(OSError):
        directory.parent.rmdir()
