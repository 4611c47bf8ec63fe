"""Volumes without room, of who answers at a port of this machine, and of whom that one asks here: a server and its database."""

import asyncio
import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from activities.on_node.kernel import ESTABLISHED, LISTENING, address, inodes_of, listener, names, port_of, tcp_lines
from activities.on_node.volumes import is_full
from domain.cluster import host_and_port, host_of

SECONDS = 1.5
"""A volume that hangs is told of by nobody, and holds up who comes after it here, and nobody else."""
LOOKER = ThreadPoolExecutor(1, "volumes")
HERE = frozenset({"127.0.0.1", "localhost", "::1"})


async def full_volumes(at: str) -> list[str]:
    """One file or directory on each, with its process. Nothing where that is another machine's, or may not be looked at."""
    if (port := port_here(at)) is None:
        return []
    try:
        async with asyncio.timeout(SECONDS):
            return await asyncio.get_running_loop().run_in_executor(LOOKER, lambda: list(_full(port)))
    except TimeoutError:
        return []


def port_here(at: str) -> int | None:
    """Of an address of this machine; `None` of another's, and of one without a port, or that cannot be read."""
    try:
        host, port = host_and_port(at.rpartition("//")[2])
    except ValueError:
        return None
    return port if host in HERE else None


def processes_at(port: int) -> list[int]:
    """Who listens there, and whom that one asks here, as far as we may know."""
    server = listener(port)
    return [] if server is None else list(dict.fromkeys([server, *_asked_by(server)]))


def _full(port: int) -> Iterator[str]:
    told: set[int] = set()
    for pid in processes_at(port):
        for path in _kept_by(pid):
            with suppress(OSError):  # it may have been closed meanwhile
                volume, target = path.stat().st_dev, path.readlink()
                if volume not in told and is_full(path):
                    told.add(volume)
                    yield f"{target} of process {pid}"


def _asked_by(pid: int) -> list[int]:
    """The processes of this machine at which connections of this one end: both ends have its address."""
    lines, own = tcp_lines(f"/proc/{pid}"), inodes_of(f"/proc/{pid}")
    ends = [(address(line[1]), address(line[2])) for line in lines if line[3] == ESTABLISHED and line[9] in own]
    served = {port_of(line[1]) for line in lines if line[3] == LISTENING and line[9] in own}
    ports = {host_and_port(peer)[1] for near, peer in ends if host_of(near) == host_of(peer)} - served
    return [found for port in sorted(ports)[:MOST_ASKED] if (found := listener(port)) is not None]


MOST_ASKED = 8


def _kept_by(pid: int) -> Iterator[Path]:
    """Where it works, and the regular files that it writes, by links that lead there also where it has mounts of its own."""
    place = Path(f"/proc/{pid}/cwd")
    with suppress(OSError):
        if place.readlink() != Path("/"):
            yield place
    for name in names(f"/proc/{pid}/fd"):
        path = Path(f"/proc/{pid}/fd/{name}")
        with suppress(OSError):
            if os.lstat(path).st_mode & stat.S_IWUSR and path.is_file():
                yield path
