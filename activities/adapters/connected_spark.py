"""A check's engine on Spark Connect: each comparison in a session of its own.

Nothing of PySpark is imported before it is used: it may not be installed, or be installed while this worker runs already.
"""

import asyncio
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from domain.drift.report import CheckResult
from domain.errors import Transient
from spark.engine.progress import OnProgress
from spark.job import CheckJob
from spark.session.endpoint import Endpoint, SparkProvider

T = TypeVar("T")

USED = ("spark.session.running", "spark.engine.spark")
"""They import PySpark, which is not done in the event loop."""


class ConnectedSpark:
    """`provider`: asked until it gives one, for PySpark may still be on its way."""

    def __init__(self, provider: Callable[[], SparkProvider | None]) -> None:
        self._ask = provider
        self._provider: SparkProvider | None = None

    async def run(self, job: CheckJob, session: str, on_progress: OnProgress) -> CheckResult:
        def compare(spark: Any) -> CheckResult:  # noqa: ANN401 - PySpark may be absent
            from spark.engine.spark import SparkEngine

            return SparkEngine(spark, job.id).run(job, on_progress=on_progress)

        return await self.run_with(compare, session, job.id)

    async def run_with(self, work: Callable[[Any], T], session: str, tag: str) -> T:
        """Any work that needs a session, in one of its own. Cancelled, it ends what it has begun in Spark."""
        with whole_spark():
            endpoint = await asyncio.to_thread(self._endpoint)
            from spark.session.running import run_in_session

            return await run_in_session(endpoint, session, work, tag=tag)

    async def interrupt(self, session: str) -> None:
        with whole_spark():
            endpoint = await asyncio.to_thread(self._endpoint)
            from spark.session.connect import interrupt_attempt

            await asyncio.to_thread(interrupt_attempt, endpoint, session)

    async def close(self) -> None:
        if self._provider is not None:
            await asyncio.to_thread(self._provider.close)

    def _endpoint(self) -> Endpoint:
        """Imports PySpark, and starts an embedded one where there is none: both take seconds."""
        try:
            self._provider = self._provider or self._ask()
            if self._provider is None:
                raise Transient("PySpark is not installed here (make setup-checks)")
            for name in USED:
                importlib.import_module(name)
            return self._provider.endpoint()
        except OSError as error:
            raise Transient(f"Spark cannot be started here: {error}") from error


@contextmanager
def whole_spark() -> Iterator[None]:
    """A Spark of which parts are missing is none, and may be whole the next time."""
    try:
        yield
    except ImportError as error:
        raise Transient(f"PySpark is not whole here (make setup-checks): {error}") from error
