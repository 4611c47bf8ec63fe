"""What nodes told of their segments as rows, and their comparison on Spark, or in this process where Spark is away."""

import asyncio
import io
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

import pyarrow.parquet as pq
import structlog

from activities.ports.checks import TellProgress, WalkedNode
from domain.drift.message_manifest import MessageComparison, NodeWalked
from domain.drift.report import CheckResult
from domain.errors import Permanent, Transient
from spark.codec.segment_manifest import read_walk
from spark.engine.messages import run
from spark.engine.progress import Progress

T = TypeVar("T")

MOST_TASKS, BYTES_OF_A_TASK = 16, 1 << 20
"""Tasks of Spark's that rows are spread over. Few: a batch is 100 bytes of memory, and less in a file."""


class SparkSessions(Protocol):
    """Spark as this adapter needs it."""

    async def run_with(self, work: Callable[[Any], T], session: str, tag: str) -> T: ...


class MessageEngine:
    """`MessageRunner`. Without `spark` all is done here."""

    def __init__(self, spark: SparkSessions | None = None) -> None:
        self._spark = spark
        self._log = structlog.get_logger()

    async def read_walk(self, broker: int, output: str) -> WalkedNode:
        return await asyncio.to_thread(_read_walk, broker, output)

    async def compare(self, asked: MessageComparison, session: str, on_progress: TellProgress) -> CheckResult:
        on_spark = await self._on_spark(asked, session, on_progress)
        return on_spark if on_spark is not None else await asyncio.to_thread(run, asked)

    async def _on_spark(self, asked: MessageComparison, session: str, on_progress: TellProgress) -> CheckResult | None:
        """`None`: Spark is away, or will not do it, which never closes the way."""
        if self._spark is None:
            return None
        try:
            return await self._spark.run_with(partial(_run_on_spark, asked, on_progress), session, asked.id)
        except (Transient, Permanent) as error:
            self._log.warning("Spark did not make the comparison: comparing in this process", check=asked.id, why=str(error))
            return None


def _run_on_spark(asked: MessageComparison, on_progress: TellProgress, session: Any) -> CheckResult:  # noqa: ANN401 - PySpark may be absent
    from spark.engine.messages_on_spark import compare_on_spark

    def tell(progress: Progress) -> None:
        on_progress(progress.words, progress.done, progress.total)

    size = sum(file.stat().st_size for file in (*asked.before_batches, *asked.after_batches))
    tasks = min(1 + size // BYTES_OF_A_TASK, MOST_TASKS)
    return run(asked, partial(compare_on_spark, session, tasks, tell), "spark")


def _read_walk(broker: int, output: str) -> WalkedNode:
    found = read_walk(broker, output)
    file = io.BytesIO()
    pq.write_table(found.batches, file, compression="zstd")
    told = {name: found.told[name] for name in NodeWalked.model_fields if name != "broker"}
    return WalkedNode(found.replicas, file.getvalue(), found.moved, NodeWalked(broker=broker, **told))
