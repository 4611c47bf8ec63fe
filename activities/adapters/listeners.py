"""Who listens, asked with TCP alone: a connection that is closed again at once."""

import asyncio
import errno
import os
import re
from contextlib import suppress

from domain.errors import Transient

KNOCK_SECONDS = 1.0
"""A living server on the way to it accepts within milliseconds, also while its process is stopped: the kernel does it."""

OUR_OWN = frozenset({errno.EADDRNOTAVAIL, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""What a connection fails of on this side: it says nothing of who listens there."""


class TcpListeners:
    """`Listeners`."""

    def __init__(self, seconds: float = KNOCK_SECONDS) -> None:
        self._seconds = seconds

    async def is_answering(self, host: str, port: int) -> bool:
        """Raises `Transient` where this host cannot even ask."""
        try:
            async with asyncio.timeout(self._seconds):
                _, writer = await asyncio.open_connection(host, port)
        except OSError as error:  # refused, unreachable, unknown, and TimeoutError, which is one
            numbers = _numbers(error)
            if numbers and numbers <= OUR_OWN:
                why = "; ".join(os.strerror(number) for number in sorted(numbers))
                raise Transient(
                    f"the host of keeperless-activities cannot open a connection to {host}:{port}: {why}. Give it what it "
                    "lacks: open files (ulimit -n), local ports (`ss -s`, net.ipv4.ip_local_port_range), memory for sockets"
                ) from error
            return False
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        return True


def _numbers(error: OSError) -> set[int]:
    """Of a name with several addresses asyncio joins the errors into one text, without a number."""
    return {error.errno} if error.errno is not None else {int(found) for found in re.findall(r"\[Errno (\d+)\]", str(error))}
