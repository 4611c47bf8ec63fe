"""One Spark for all workers of this machine that share a directory: started on demand, again when it is dead, never twice.

What says that it runs is a lock on its log file. The server inherits the open file, so the lock is held exactly as long as a
server lives: not by a worker that has started one and lost it, and not by a file that somebody left behind. Port and token
are in a file that only this user can read.
"""

import fcntl
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from domain.errors import Transient
from spark.session.endpoint import Endpoint
from spark.session.private import write_private
from spark.session.server import START_SECONDS, ConnectServer, ServerPlan

ANSWER_SECONDS = 2.0
HUNG_SECONDS = 30.0
"""A server that lives and answers nobody for so long is stopped. A full collection of a large heap takes less."""


class EmbeddedSpark:
    """A `SparkProvider`. `is_answering` asks a server, and waits for its answer no longer than it is told."""

    def __init__(self, plan: ServerPlan, is_answering: Callable[[Endpoint, float], bool]) -> None:
        self._plan = plan
        self._is_answering = is_answering
        self._one_thread = threading.Lock()
        self._server: ConnectServer | None = None

    @property
    def _address(self) -> Path:
        return self._plan.directory / "endpoint.json"

    @property
    def pid(self) -> int | None:
        """Of the server, when it was started here."""
        return self._server.process.pid if self._server is not None else None

    def endpoint(self) -> Endpoint:
        with self._one_thread:
            return self._await_endpoint(time.monotonic())

    def _await_endpoint(self, began: float) -> Endpoint:
        """Somebody else may be starting one; whoever gets the lock starts it."""
        while (found := self._found() or self._started()) is None:
            waited = time.monotonic() - began
            if waited > HUNG_SECONDS and self._server is not None and self._server.is_alive():
                self._server.stop()
            elif waited > START_SECONDS:
                raise Transient(
                    f"the Spark in {self._plan.directory} has not answered for {waited:.0f} s; see {self._plan.log}"
                )
            time.sleep(0.1)
        return found

    def _found(self) -> Endpoint | None:
        """The one that runs, ours or another worker's, if it answers."""
        try:
            told = json.loads(self._address.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        endpoint = Endpoint(told["url"], told["token"])
        return endpoint if self._is_answering(endpoint, ANSWER_SECONDS) else None

    def _started(self) -> Endpoint | None:
        """A new one, unless there is one that only does not answer."""
        self._plan.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._plan.log.open("ab") as log:
            if not _is_locked_for_us(log):
                return None
            self._address.unlink(missing_ok=True)
            self._forget()
            self._server = ConnectServer(self._plan, log)
        endpoint = self._server.await_endpoint()
        write_private(self._address, json.dumps({"url": endpoint.url, "token": endpoint.token}))
        return endpoint

    def close(self) -> None:
        with self._one_thread:
            self._forget()

    def _forget(self) -> None:
        """Stops the one that was started here. It may be dead already, and then leaves its pipe and its watcher."""
        if self._server is not None:
            self._server.stop()
            self._server = None


def _is_locked_for_us(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
