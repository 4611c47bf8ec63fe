"""What ZooKeeper servers say of themselves, one by one, to the four-letter word `srvr`, the only one allowed by default."""

import asyncio
import re
from contextlib import suppress

from activities.own_network import own_fault
from domain.diagnosis.causes.hints import Serving
from domain.observed.ensemble import MemberTree, tree_in

ASK_SECONDS = 2.0
"""A living server answers within milliseconds. One that stands still accepts the connection all the same: its kernel does."""

MAX_ANSWER = 4096

WAITING = re.compile(rb"^Outstanding: (\d+)", re.MULTILINE)
ZXID = re.compile(rb"^Zxid: (0x[0-9a-f]+)", re.MULTILINE)
MODE = re.compile(rb"^Mode: (\S+)", re.MULTILINE)
MODES = {
    b"leader": Serving.LEADS,
    b"follower": Serving.YES,
    b"observer": Serving.YES,
    b"standalone": Serving.ALONE,
    b"read-only": Serving.NO,
}
"""`read-only`: it has lost the others, and lets clients read that ask for no more (readonlymode.enabled)."""
MEANWHILE_SECONDS = 1.0
MOST_WAITING = 100
"""Requests that a server has taken and not answered. One that is well has a handful, for milliseconds."""


class FourLetterWords:
    """`ZooKeeperServers`."""

    def __init__(self, seconds: float = ASK_SECONDS) -> None:
        self._seconds = seconds

    async def serving(self, host: str, port: int) -> Serving:
        """Asked once more where requests wait: a server that is well has answered those meanwhile, or others."""
        first = await self._ask(host, port)
        if isinstance(first, Serving) or not _waiting(first):
            return first if isinstance(first, Serving) else _meaning(first)
        await asyncio.sleep(MEANWHILE_SECONDS)
        then = await self._ask(host, port)
        if isinstance(then, Serving):
            return then
        is_stuck = _waiting(then) >= _waiting(first) and _zxid(then) == _zxid(first)
        return Serving.STUCK if is_stuck and _meaning(then) in {Serving.YES, Serving.LEADS, Serving.BUSY} else _meaning(then)

    async def tree(self, host: str, port: int) -> MemberTree | None:
        answer = await self._ask(host, port)
        return tree_in(answer) if isinstance(answer, bytes) else None

    async def _ask(self, host: str, port: int) -> bytes | Serving:
        """What it says to `srvr`, or why it says nothing."""
        try:
            async with asyncio.timeout(self._seconds):
                reader, writer = await asyncio.open_connection(host, port)
        except ConnectionResetError:  # accepted, and closed before it was looked at
            return Serving.UNKNOWN
        except ConnectionRefusedError:
            return Serving.REFUSED
        except OSError as error:  # no route, an unknown name, and TimeoutError, which is one
            return Serving.UNREACHED if own_fault(error, host) is None else Serving.UNKNOWN
        try:
            async with asyncio.timeout(self._seconds):
                writer.write(b"srvr")
                await writer.drain()
                return await reader.read(MAX_ANSWER)
        except TimeoutError:
            return Serving.SILENT
        except OSError:
            return Serving.UNKNOWN
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


def _waiting(answer: bytes) -> int:
    found = WAITING.search(answer)
    return int(found[1]) if found is not None else 0


def _zxid(answer: bytes) -> bytes:
    """Of the last transaction that it has applied."""
    found = ZXID.search(answer)
    return found[1] if found is not None else b""


def _meaning(answer: bytes) -> Serving:
    """A port that speaks TLS closes without a word; a server that forbids `srvr` says so. Neither is a fault."""
    if b"not currently serving requests" in answer:
        return Serving.NO
    mode = MODE.search(answer)
    meaning = MODES.get(mode[1], Serving.UNKNOWN) if mode is not None else Serving.UNKNOWN
    is_busy = meaning in {Serving.YES, Serving.LEADS} and _waiting(answer) > MOST_WAITING
    return Serving.BUSY if is_busy else meaning
