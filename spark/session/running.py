"""Work in Spark from an event loop: it can be cancelled, and then Spark stops within a second.

Sessions stay open from one piece of work to the next: for each new one Spark starts Python again, which imports all that it
needs.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession

from domain.errors import KeeperlessError
from spark.session import connect
from spark.session.endpoint import Endpoint

T = TypeVar("T")

LEAVING_SECONDS = 5.0
"""How long work may take to notice that its session is closed. It is in Python then: Spark has nothing of it any more."""


class OpenSessions:
    """Those that this process has open, by the server's address and their ids."""

    def __init__(self) -> None:
        self._one_thread = threading.Lock()
        self._open = dict[tuple[str, str], SparkSession]()

    async def run(self, endpoint: Endpoint, session_id: str, work: Callable[[SparkSession], T], tag: str = "") -> T:
        """`work` runs in a thread. Cancelled, it ends what runs in Spark and closes the session, so that `work` fails at its
        next step. Spark's errors come in words of `domain.errors`, and end the session as well.
        """
        acting = asyncio.ensure_future(asyncio.to_thread(self._act, endpoint, session_id, work, tag))
        try:
            return await asyncio.shield(acting)
        except asyncio.CancelledError:
            await asyncio.shield(self._end(endpoint, session_id, acting))
            raise

    def _act(self, endpoint: Endpoint, session_id: str, work: Callable[[SparkSession], T], tag: str) -> T:
        with connect.translated(endpoint):
            try:
                spark = self._session(endpoint, session_id)
                with connect.tagged(spark, tag):
                    return work(spark)
            except PySparkException:
                self.close(session_id)
                raise

    def _session(self, endpoint: Endpoint, session_id: str) -> SparkSession:
        with self._one_thread:
            key = (endpoint.url, session_id)
            if key not in self._open:
                self._open[key] = connect.opened(endpoint, session_id)
            return self._open[key]

    def close(self, session_id: str) -> None:
        """Blocks while the server releases it; one that cannot be reached keeps nobody."""
        with self._one_thread:
            keys = [key for key in self._open if key[1] == session_id]
            closed = [self._open.pop(key) for key in keys]
        for spark in closed:
            with contextlib.suppress(PySparkException):
                spark.stop()

    async def _end(self, endpoint: Endpoint, session_id: str, acting: "asyncio.Future[T]") -> None:
        """A Spark that cannot be reached keeps nobody from leaving: the next attempt ends what this one has left there."""
        acting.add_done_callback(_retrieve)
        with contextlib.suppress(KeeperlessError):
            await asyncio.to_thread(connect.interrupt_attempt, endpoint, session_id)
        await asyncio.wait([acting], timeout=LEAVING_SECONDS)
        await asyncio.to_thread(self.close, session_id)


def _retrieve(acting: "asyncio.Future[T]") -> None:
    """How interrupted work has failed is nobody's business; unasked, asyncio would complain of it."""
    if not acting.cancelled():
        acting.exception()
