"""What belongs to the demo on disk: one directory, held by one run at a time, known by its lock file.

A run throws away what an earlier one left in it. A directory that holds anything else is never touched.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from domain.errors import Permanent

LOCK_FILE = "demo.lock"
DEFAULT_DIRECTORY = Path(".demo")
"""What `make demo` uses, in the checkout."""


class Busy(Permanent):
    """Another run holds the directory; `pid` is its guardian's, 0 if it does not say."""

    def __init__(self, directory: Path, pid: int) -> None:
        super().__init__(
            f"{directory}: a demo is running there (process {pid}). End it with Ctrl-C, or with: {how_to('stop', directory)}"
        )
        self.pid = pid


@dataclass(frozen=True)
class DemoDirectory:
    """`path` is absolute."""

    path: Path

    @property
    def cluster(self) -> Path:
        return self.path / "cluster"

    @property
    def temporal(self) -> Path:
        return self.path / "temporal"

    @property
    def services(self) -> Path:
        return self.path / "services"

    @property
    def load(self) -> Path:
        return self.path / "load"

    @property
    def report(self) -> Path:
        return self.path / "report.json"

    @property
    def log(self) -> Path:
        """Of the demo itself: what its Kafka clients complain of, and tracebacks."""
        return self.path / "demo.log"

    @property
    def cast(self) -> Path:
        """Where Temporal and our programs listen, and what else it takes to start one of them again."""
        return self.path / "cast.json"

    @property
    def kept(self) -> Path:
        """Exists when everything is to go on running after the demo's end."""
        return self.path / "kept"

    def hold(self) -> IO[str]:
        """The directory is ours until the file is closed. Raises `Busy`, or Permanent when it is not a demo's."""
        if self.path.exists() and not (self.path / LOCK_FILE).exists() and any(self.path.iterdir()):
            raise Permanent(f"{self.path}: holds something that is not a demo's; choose another --directory")
        self.path.mkdir(parents=True, exist_ok=True)
        lock = (self.path / LOCK_FILE).open("a+", encoding="ascii")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(self.path, _pid_in(lock)) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        return lock

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Nobody else starts what is missing, or throws it away, meanwhile. What was read before may be gone since."""
        handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def is_held(self) -> bool:
        """Whether another run holds it. Raises as `hold` does."""
        try:
            self.hold().close()
        except Busy:
            return True
        return False

    def clean(self) -> None:
        """Throw away all but the lock. To be called while the directory is held, and nothing runs in it."""
        for entry in self.path.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry.name != LOCK_FILE:
                entry.unlink()


def how_to(command: str, directory: Path) -> str:
    """`start` or `stop` it, for a person."""
    is_default = directory == DEFAULT_DIRECTORY.absolute()
    return f"make demo-{command}" if is_default else f"python -m playground.demo {command} --directory {directory}"


def _pid_in(lock: IO[str]) -> int:
    lock.seek(0)
    text = lock.read().strip()
    lock.close()
    return int(text) if text.isdigit() else 0
