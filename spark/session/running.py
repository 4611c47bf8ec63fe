"""One attempt's work in Spark, from an event loop: it can be cancelled, and then Spark stops within a second."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from domain.errors import KeeperlessError
from spark.session import connect
from spark.session.endpoint import Endpoint

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

T = TypeVar("T")

LEAVING_SECONDS = 5.0
"""How long work may take to notice that its session is closed. It is in Python then: Spark has nothing of it any more."""


async def run_in_session(
    endpoint: Endpoint,
    session_id: str,
    work: "Callable[[SparkSession], T]",
    tag: str = "",
) -> T:
    """`work` runs in a thread. Cancelled, it ends what runs in Spark and closes the session, so that `work` fails at its next
    step. Spark's errors come in words of `domain.errors`.
    """

    def act() -> T:
        with connect.session(endpoint, session_id, tag) as spark:
            return work(spark)

    acting = asyncio.ensure_future(asyncio.to_thread(act))
    try:
        return await asyncio.shield(acting)
    except asyncio.CancelledError:
        await asyncio.shield(_end(endpoint, session_id, acting))
        raise


async def _end(endpoint: Endpoint, session_id: str, acting: "asyncio.Future[T]") -> None:
    """A Spark that cannot be reached keeps nobody from leaving: the next attempt ends what this one has left there."""
    acting.add_done_callback(_retrieve)
    with contextlib.suppress(KeeperlessError):
        await asyncio.to_thread(connect.interrupt_attempt, endpoint, session_id)
    await asyncio.wait([acting], timeout=LEAVING_SECONDS)


def _retrieve(acting: "asyncio.Future[T]") -> None:
    """How interrupted work has failed is nobody's business; unasked, asyncio would complain of it."""
    if not acting.cancelled():
        acting.exception()
