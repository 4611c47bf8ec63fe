"""A door on this machine that leads to whichever of several servers answers first."""

import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from playground.ports import LOOPBACK

PATIENCE_SECONDS = 2.0
CHUNK = 65536


class Relay:
    """Connections to `port` are passed on, byte for byte. `servers`: as `host:port`; one that is down is passed by."""

    def __init__(self, servers: Sequence[str]) -> None:
        self._servers = [server.rpartition(":") for server in servers]
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, name=f"relay-{self.port}", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for connection in (self._listener, *self._open):
            _shut(connection)

    def _accept(self) -> None:
        with suppress(OSError):  # the listener was closed: the end
            while True:
                client, _ = self._listener.accept()
                server = self._connected()
                if server is None:
                    _shut(client)
                    continue
                self._open += [client, server]
                for here, there in ((client, server), (server, client)):
                    threading.Thread(target=_pump, args=(here, there), daemon=True).start()

    def _connected(self) -> socket.socket | None:
        for host, _, port in self._servers:
            with suppress(OSError):
                return socket.create_connection((host, int(port)), PATIENCE_SECONDS)
        return None


def _pump(here: socket.socket, there: socket.socket) -> None:
    with suppress(OSError):
        here.settimeout(None)
        while data := here.recv(CHUNK):
            there.sendall(data)
    for connection in (here, there):
        _shut(connection)


def _shut(connection: socket.socket) -> None:
    """Wakes up whoever waits in it, which closing alone does not."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
