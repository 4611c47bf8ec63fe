"""One bounded HTTP exchange. Nodes restart under us, so no connection is kept for the next look.

Who takes longer than we wait is not asked again before that question is answered, or is `PATIENCE` old: an agent goes on with
what nobody waits for any more, and would have ever more of that at once.
"""

import asyncio
import os
import re
import ssl
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx

from activities.adapters.metrics.gauges import READ_SECONDS
from activities.adapters.metrics.page_sizes import MUCH, LastPage
from activities.own_network import SLOW_SECONDS, no_tls, own_fault, resolve
from domain.cluster import shown
from domain.diagnosis.logs.redaction import without_secrets
from domain.errors import Obstacle, Transient
from domain.quorum_log.metadata_log import shown as printable

REFUSALS = frozenset({httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN, httpx.codes.PROXY_AUTHENTICATION_REQUIRED})
OF_ALL_FOR_THE_NAME = 0.8
"""So that a resolver that does not answer is told as that."""
OF_ALL_FOR_THE_LAST = 0.6
"""For who has been asked before to answer that: then there is time to ask anew."""
CONNECTED = "connection.connect_tcp.complete"
"""What httpcore tells of its own way."""
MARKUP, MOST_READ, MOST_QUOTED = re.compile(r"(?is)<(script|style)\b.*?(?:</\1\s*>|$)|<[^>]*(?:>|$)"), 4000, 160
"""Of the page of a refusal, its characters: it may say itself what is amiss."""
PATIENCE = 20.0
"""Seconds. One that was frozen, or cut off, is asked anew after that at the latest."""


class Exchange:
    """Sends one request and gives the answer's text. Whatever is not a 200 in time is `Transient`."""

    def __init__(self, seconds: float = READ_SECONDS) -> None:
        self._seconds = seconds
        self._tls = ssl.create_default_context()
        self._unanswered: dict[str, tuple[float, asyncio.Task[httpx.Response]]] = {}
        """By address, since when, by the monotonic clock, and who waits for it."""
        self._last: dict[str, LastPage] = {}
        self._asking: set[asyncio.Task[httpx.Response]] = set()

    async def text(self, method: str, url: str, json: object = None) -> str:
        where, passed = shown(url), list[str]()
        for_name = 0.0
        until = asyncio.get_running_loop().time() + self._seconds
        if (before := self._unanswered.get(url)) is not None:
            since, asking = before
            await asyncio.wait({asking}, timeout=self._seconds * OF_ALL_FOR_THE_LAST)
            if not asking.done():
                asked = f"{where}: no answer yet to a request of {time.monotonic() - since:.0f} s ago{self._told_of(url)}"
                raise Transient(asked, obstacle=Obstacle.LATE)
        try:
            async with asyncio.timeout_at(until):
                for_name = (await resolve(urlsplit(url).hostname or "", self._seconds * OF_ALL_FOR_THE_NAME)).seconds
                response = await self._asked(method, url, json, passed)
        except Transient as error:
            raise Transient(f"{where}: does not answer ({error})", obstacle=error.obstacle) from error
        except (TimeoutError, httpx.TimeoutException) as error:
            raise self._late(url, for_name, is_connected=CONNECTED in passed) from error
        except httpx.HTTPError as error:
            raise _unanswered(where, error) from error
        if response.status_code in REFUSALS:
            raise Transient(f"{where}: refuses the request with status {response.status_code}", obstacle=Obstacle.FORBIDDEN)
        if response.status_code != httpx.codes.OK:
            message = f"{where}: answered with status {response.status_code}, expected 200{_said(response.text)}"
            raise Transient(message, obstacle=Obstacle.ANOTHERS)
        return response.text

    async def _asked(self, method: str, url: str, json: object, passed: list[str]) -> httpx.Response:
        """Goes on beside us where we do not wait any more, as long as somebody has taken the connection."""
        asking = asyncio.create_task(self._send(method, url, json, passed))
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            if CONNECTED in passed and not asking.done():
                self._unanswered[url] = time.monotonic() - self._seconds, asking
                asking.add_done_callback(lambda ended: self._answered(url, ended))
            else:
                asking.cancel()
            raise

    def _answered(self, url: str, ended: "asyncio.Task[httpx.Response]") -> None:
        self._unanswered.pop(url, None)
        if not ended.cancelled():
            ended.exception()  # taken, so that nobody is told of what nobody waits for

    async def _send(self, method: str, url: str, json: object, passed: list[str]) -> httpx.Response:
        async def note(stage: str, _: object) -> None:
            passed.append(stage)

        began = time.monotonic()
        async with (
            asyncio.timeout(PATIENCE),
            httpx.AsyncClient(verify=self._tls, trust_env=False, timeout=PATIENCE) as client,
        ):
            response = await client.request(method, url, json=json, extensions={"trace": note})
        seconds = time.monotonic() - began
        self._last.pop(url, None)
        if len(response.content) >= MUCH or seconds > self._seconds:
            self._last[url] = LastPage(response.text, seconds)
        return response

    def _told_of(self, url: str) -> str:
        last = self._last.get(url)
        return f"; {last.in_words}" if last is not None else ""

    def _late(self, url: str, for_name: float, *, is_connected: bool) -> Transient:
        late = f"{shown(url)}: no answer in {self._seconds:g} s"
        if for_name > SLOW_SECONDS:
            return Transient(f"{late}, {for_name:.1f} s of them for its name", obstacle=Obstacle.UNRESOLVED)
        return Transient(f"{late}{self._told_of(url)}", obstacle=Obstacle.LATE if is_connected else None)


def _said(page: str) -> str:
    """The words of a page that refuses, without what may be a secret: whatever answers there, anybody's page may come."""
    words = " ".join(MARKUP.sub(" ", page[:MOST_READ]).split())
    quote = printable(without_secrets(words))[:MOST_QUOTED]
    return f": {quote}" if quote else ""


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
