"""Free TCP ports on 127.0.0.1 that stay ours, also while the process that listens on them restarts.

They come from below the ephemeral range, so that no outgoing connection takes one in the seconds between a node's
stop and its start. Two playgrounds on one machine do not meet: a port is leased by a lock file that its holder keeps
locked, from before it is first bound until the lease is closed or the holder ends.
"""

import errno
import fcntl
import os
import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from domain.errors import Transient

CANDIDATES = range(20_000, 32_000)
"""Below Linux's default ephemeral range (32768 and up) and that of macOS (49152 and up)."""

LOOPBACK = "127.0.0.1"
LEASES = Path("/tmp")  # noqa: S108 - shared on purpose, and a folder of the user's own in it


class PortLease:
    """Distinct free ports. Close it when nothing of ours listens on them any more; `take` hands them out in turn."""

    def __init__(self, count: int) -> None:
        """Raises Transient when fewer than `count` ports are free."""
        self._held = ExitStack()
        try:
            self.ports = tuple(self._lease(count))
        except BaseException:
            self._held.close()
            raise
        self._next = iter(self.ports)

    def take(self) -> int:
        return next(self._next)

    def close(self) -> None:
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _lease(self, count: int) -> Iterator[int]:
        remaining = count
        for port in random.sample(CANDIDATES, len(CANDIDATES)):
            if remaining and self._hold(port):
                remaining -= 1
                yield port
            if not remaining:
                return
        raise Transient(f"only {count - remaining} of {count} ports are free between {CANDIDATES.start} and {CANDIDATES.stop}")

    def _hold(self, port: int) -> bool:
        lock = (_lease_folder() / str(port)).open("a")
        if is_locked_elsewhere(lock) or not is_free(port):
            lock.close()
            return False
        self._held.enter_context(lock)
        return True


def is_locked_elsewhere(lock: IO[str]) -> bool:
    """False means: locked by us now."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def is_free(port: int) -> bool:
    """Nobody listens. With SO_REUSEADDR, as servers bind: connections in TIME_WAIT do not count."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True


def _lease_folder() -> Path:
    """One for the machine, wherever TMPDIR points: who has a temporary directory of his own has no ports of his own."""
    folder = LEASES / f"keeperless-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
