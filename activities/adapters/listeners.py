"""Who listens, asked with TCP alone: a connection that is closed again at once."""

import asyncio
from contextlib import suppress

from activities.own_network import Unresolved, own_fault, resolve
from activities.ports.kafka import LookedUp
from domain.errors import Transient

KNOCK_SECONDS = 2.0
"""A living server on the way to it accepts within milliseconds, also while its process is stopped: the kernel does it."""

NAME_SECONDS = 2.0
TRIES, OPEN_SECONDS = 3, 0.25
"""How often a connection is made, and how long it has to stay."""


class TcpListeners:
    """`Listeners`."""

    def __init__(self, seconds: float = KNOCK_SECONDS) -> None:
        self._seconds = seconds

    async def is_answering(self, host: str, port: int) -> bool:
        """Raises `Transient` where this host cannot even ask."""
        await resolve(host, NAME_SECONDS)
        try:
            async with asyncio.timeout(self._seconds):
                _, writer = await asyncio.open_connection(host, port)
        except OSError as error:  # refused, unreachable, and TimeoutError, which is one
            if (fault := own_fault(error, f"{host}:{port}")) is not None:
                raise fault from error
            return False
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        return True

    async def is_cut_off(self, host: str, port: int) -> bool:
        """Before anything is said: Kafka waits for the first word."""
        fates = [await self._fate(host, port) for _ in range(TRIES)]
        return True in fates and None not in fates

    async def _fate(self, host: str, port: int) -> bool | None:
        """Whether it was reset; `None` where it came to nothing else within that time."""
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                reader, writer = await asyncio.open_connection(host, port)
                try:
                    await reader.read(1)
                finally:
                    writer.close()
        except ConnectionResetError:
            return True
        except TimeoutError:
            return None
        except OSError:
            return False
        return False

    async def look_up(self, host: str) -> LookedUp:
        try:
            return LookedUp(numbers=(await resolve(host, NAME_SECONDS)).numbers)
        except Unresolved as error:
            return LookedUp(why_not=error.words)
        except Transient:
            return LookedUp()
