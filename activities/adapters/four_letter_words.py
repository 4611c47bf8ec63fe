"""Which ZooKeeper servers serve, asked one by one with the four-letter word `srvr`, the only one that is allowed by default."""

import asyncio
import re
from contextlib import suppress

from domain.zk_to_kraft.causes import Serving

ASK_SECONDS = 2.0
"""A living server answers within milliseconds. One that stands still accepts the connection all the same: its kernel does."""

MAX_ANSWER = 4096

WAITING = re.compile(rb"^Outstanding: (\d+)", re.MULTILINE)
MOST_WAITING = 100
"""Requests that a server has taken and not answered. One that is well has a handful, for milliseconds."""


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
        except ConnectionRefusedError:
            return Serving.REFUSED
        except OSError:  # no route, an unknown name, and TimeoutError, which is one
            return Serving.UNREACHED
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
    waiting = WAITING.search(answer)
    if waiting is not None and int(waiting[1]) > MOST_WAITING:
        return Serving.BUSY
    return Serving.YES if b"Mode:" in answer else Serving.UNKNOWN
