"""Who serves an address: whether anybody takes connections there, and where that is a process of this machine, what keeps it,
or whom it asks here, from its work."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import StrEnum

from api.full_volumes import port_here, processes_at
from api.pollers import signs_of_process
from domain.cluster import host_and_port
from domain.machines.vital_signs import Sign

CONNECT_SECONDS = 0.5
SECONDS = 3.0
"""A process is looked at for a second; what hangs is told of by nobody."""
LOOKER = ThreadPoolExecutor(1, "servers")
MOST = 8
"""Processes that are looked at, all at once."""


class Door(StrEnum):
    """What becomes of a connection before anything is said on it."""

    OPEN = "open"
    """It is taken: by the kernel, also where the process behind it stands still."""
    SHUT = "shut"
    """It is refused, the name is not resolved, or there is no port in the address."""
    SILENT = "silent"
    """Neither."""


async def door_of(at: str) -> Door:
    try:
        host, port = host_and_port(at.rpartition("//")[2])
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError:
        return Door.SILENT
    except (OSError, ValueError):  # the latter, UnicodeError too, of an address that cannot be read
        return Door.SHUT
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return Door.OPEN


async def signs_at(at: str) -> tuple[Sign, ...]:
    """Nothing where that is another machine's, or all is well."""
    if (port := port_here(at)) is None:
        return ()
    try:
        async with asyncio.timeout(SECONDS):
            return await asyncio.get_running_loop().run_in_executor(LOOKER, _signs, port)
    except TimeoutError:
        return ()


def _signs(port: int) -> tuple[Sign, ...]:
    pids = processes_at(port)[:MOST]
    with ThreadPoolExecutor(MOST) as pool:
        found = [sign for signs in pool.map(signs_of_process, pids) for sign in signs]
    return tuple(sign for sign in found if not sign.is_slight)
