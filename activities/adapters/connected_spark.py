"""A check's engine on Spark Connect: each comparison in a session of its own.

Nothing of PySpark is imported before it is used: it may not be installed, or be installed while this worker runs already.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from domain.errors import Transient
from spark.engine.progress import OnProgress
from spark.job import CheckJob, CheckResult
from spark.session.endpoint import Endpoint, SparkProvider

T = TypeVar("T")


class ConnectedSpark:
    """`provider`: asked until it gives one, for PySpark may still be on its way."""

    def __init__(self, provider: Callable[[], SparkProvider | None]) -> None:
        self._ask = provider
        self._provider: SparkProvider | None = None

    async def run(self, job: CheckJob, session: str, on_progress: OnProgress) -> CheckResult:
        endpoint = await asyncio.to_thread(self._endpoint)
        from spark.engine.spark import SparkEngine
        from spark.session.running import run_in_session

        return await run_in_session(
            endpoint, session, lambda spark: SparkEngine(spark, job.id).run(job, on_progress=on_progress), tag=job.id
        )

    async def run_with(self, work: Callable[[Any], T], session: str, tag: str) -> T:
        """Any work that needs a session, in one of its own. Cancelled, it ends what it has begun in Spark."""
        endpoint = await asyncio.to_thread(self._endpoint)
        from spark.session.running import run_in_session

        return await run_in_session(endpoint, session, work, tag=tag)

    async def interrupt(self, session: str) -> None:
        endpoint = await asyncio.to_thread(self._endpoint)
        from spark.session.connect import interrupt_attempt

        await asyncio.to_thread(interrupt_attempt, endpoint, session)

    async def close(self) -> None:
        if self._provider is not None:
            await asyncio.to_thread(self._provider.close)

    def _endpoint(self) -> Endpoint:
        """Starts an embedded one, where there is none: that takes seconds."""
        self._provider = self._provider or self._ask()
        if self._provider is None:
            raise Transient("PySpark is not installed here (make setup-checks)")
        return self._provider.endpoint()
