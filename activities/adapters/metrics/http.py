"""One bounded HTTP exchange. Nodes restart under us, so no connection is kept for the next look."""

import asyncio
import os
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx

from activities.adapters.metrics.gauges import READ_SECONDS
from activities.reaching import SLOW_SECONDS, no_tls, own_fault, resolve
from domain.cluster import shown
from domain.errors import Obstacle, Transient

REFUSALS = frozenset({httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN, httpx.codes.PROXY_AUTHENTICATION_REQUIRED})
OF_ALL_FOR_THE_NAME = 0.8
"""So that a resolver that does not answer is told as that."""
CONNECTED = "connection.connect_tcp.complete"
"""What httpcore tells of its own way."""


class Exchange:
    """Sends one request and gives the answer's text. Whatever is not a 200 in time is `Transient`."""

    def __init__(self, seconds: float = READ_SECONDS) -> None:
        self._seconds = seconds
        self._tls = ssl.create_default_context()

    async def text(self, method: str, url: str, json: object = None) -> str:
        where, passed = shown(url), list[str]()
        for_name = 0.0
        try:
            async with asyncio.timeout(self._seconds):
                for_name = (await resolve(urlsplit(url).hostname or "", self._seconds * OF_ALL_FOR_THE_NAME)).seconds
                response = await self._send(method, url, json, passed)
        except Transient as error:
            raise Transient(f"{where}: does not answer ({error})", obstacle=error.obstacle) from error
        except (TimeoutError, httpx.TimeoutException) as error:
            raise self._late(where, for_name, is_connected=CONNECTED in passed) from error
        except httpx.HTTPError as error:
            raise _unanswered(where, error) from error
        if response.status_code in REFUSALS:
            raise Transient(f"{where}: refuses us with status {response.status_code}", obstacle=Obstacle.FORBIDDEN)
        if response.status_code != httpx.codes.OK:
            message = f"{where}: answered with status {response.status_code}, expected 200"
            raise Transient(message, obstacle=Obstacle.ANOTHERS)
        return response.text

    async def _send(self, method: str, url: str, json: object, passed: list[str]) -> httpx.Response:
        async def note(stage: str, _: object) -> None:
            passed.append(stage)

        async with httpx.AsyncClient(verify=self._tls, trust_env=False, timeout=self._seconds) as client:
            return await client.request(method, url, json=json, extensions={"trace": note})

    def _late(self, where: str, for_name: float, *, is_connected: bool) -> Transient:
        late = f"{where}: no answer in {self._seconds:g} s"
        if for_name > SLOW_SECONDS:
            return Transient(f"{late}, {for_name:.1f} s of them for its name", obstacle=Obstacle.UNRESOLVED)
        return Transient(late, obstacle=Obstacle.LATE if is_connected else None)


def _unanswered(where: str, error: httpx.HTTPError) -> Transient:
    """In the words of the operating system, or of TLS: they hold no address and no secret."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLError):
            return Transient(f"{where}: {no_tls(cause)}", obstacle=Obstacle.TLS)
        if isinstance(cause, OSError) and (cause.errno is not None):
            return own_fault(cause, where) or Transient(f"{where}: does not answer ({os.strerror(cause.errno)})")
    return Transient(f"{where}: does not answer ({type(error).__name__})")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """All that it was raised from; of several at once the first."""
    found: BaseException | None = error
    while found is not None:
        yield found
        first = found.exceptions[0] if isinstance(found, BaseExceptionGroup) else None
        found = first or found.__cause__ or found.__context__
