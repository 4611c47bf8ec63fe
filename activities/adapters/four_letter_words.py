"""Which ZooKeeper servers serve, asked one by one with the four-letter word `srvr`, the only one that is allowed by default."""

import asyncio
from contextlib import suppress

from domain.zk_to_kraft.causes import Serving

ASK_SECONDS = 2.0
"""A living server answers within milliseconds. One that stands still accepts the connection all the same: its kernel does."""

MAX_ANSWER = 4096


class FourLetterWords:
    """`ZooKeeperServers`."""

    def __init__(self, seconds: float = ASK_SECONDS) -> None:
        self._seconds = seconds

    async def serving(self, host: str, port: int) -> Serving:
        try:
            async with asyncio.timeout(self._seconds):
                reader, writer = await asyncio.open_connection(host, port)
        except ConnectionResetError:  # accepted, and closed before it was looked at
            return Serving.UNKNOWN
        except OSError:  # refused, unreachable, unknown, and TimeoutError, which is one
            return Serving.REFUSED
        try:
            async with asyncio.timeout(self._seconds):
                writer.write(b"srvr")
                await writer.drain()
                return _meaning(await reader.read(MAX_ANSWER))
        except TimeoutError:
            return Serving.SILENT
        except OSError:
            return Serving.UNKNOWN
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


def _meaning(answer: bytes) -> Serving:
    """A port that speaks TLS closes without a word; a server that forbids `srvr` says so. Neither is a fault."""
    if b"not currently serving requests" in answer:
        return Serving.NO
    if b"Mode: standalone" in answer:
        return Serving.ALONE
    return Serving.YES if b"Mode:" in answer else Serving.UNKNOWN
