"""Who listens, asked with TCP alone: a connection that is closed again at once."""

import asyncio
from contextlib import suppress

KNOCK_SECONDS = 1.0
"""A living server on the way to it accepts within milliseconds, also while its process is stopped: the kernel does it."""


class TcpListeners:
    """`Listeners`."""

    def __init__(self, seconds: float = KNOCK_SECONDS) -> None:
        self._seconds = seconds

    async def is_answering(self, host: str, port: int) -> bool:
        try:
            async with asyncio.timeout(self._seconds):
                _, writer = await asyncio.open_connection(host, port)
        except OSError:  # refused, unreachable, unknown, and TimeoutError, which is one
            return False
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        return True
