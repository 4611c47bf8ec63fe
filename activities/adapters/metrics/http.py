"""One bounded HTTP exchange. Nodes restart under us, so no connection is kept for the next look."""

import asyncio
import os
import socket
import ssl

import httpx

from activities.adapters.metrics.gauges import READ_SECONDS
from domain.errors import Transient


class Exchange:
    """Sends one request and gives the answer's text. Whatever is not a 200 in time is `Transient`."""

    def __init__(self, seconds: float = READ_SECONDS) -> None:
        self._seconds = seconds
        self._tls = ssl.create_default_context()

    async def text(self, method: str, url: str, json: object = None) -> str:
        try:
            async with asyncio.timeout(self._seconds):
                response = await self._send(method, url, json)
        except TimeoutError as error:
            raise Transient(f"{url}: no answer in {self._seconds:g} s") from error
        except httpx.HTTPError as error:
            raise Transient(f"{url}: does not answer ({_why(error)})") from error
        if response.status_code != httpx.codes.OK:
            raise Transient(f"{url}: answered with status {response.status_code}, expected 200")
        return response.text

    async def _send(self, method: str, url: str, json: object) -> httpx.Response:
        async with httpx.AsyncClient(verify=self._tls, trust_env=False, timeout=self._seconds) as client:
            return await client.request(method, url, json=json)


def _why(error: BaseException) -> str:
    """In the operating system's words, where it has any: they hold no address and no secret."""
    root = error
    while (cause := root.__cause__ or root.__context__) is not None:
        root = cause
    if isinstance(root, socket.gaierror):
        return root.strerror or type(root).__name__
    return os.strerror(root.errno) if isinstance(root, OSError) and root.errno else type(error).__name__
