"""A check's engine on Spark Connect: the comparisons of one migration share a session, which is opened before it is needed.

Nothing of PySpark is imported before it is used: it may not be installed, or be installed while this worker runs already.
"""

import asyncio
import importlib
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import structlog

from domain.drift.report import CheckResult
from domain.errors import Permanent, Transient
from spark.engine.progress import OnProgress
from spark.job import CheckJob
from spark.session.endpoint import Endpoint, SparkProvider

if TYPE_CHECKING:
    from spark.session.running import OpenSessions

T = TypeVar("T")

USED = ("spark.session.running", "spark.engine.spark")
"""They import PySpark, which is not done in the event loop."""

KEPT_SECONDS = 1800.0
"""For so long an unused session is expected to be there: Spark Connect closes those that are idle for an hour."""


@dataclass
class _Session:
    """A migration's. `is_ready`: Spark's Python has imported all that a check needs."""

    name: str = field(default_factory=lambda: str(uuid4()))
    used_at: float = field(default_factory=time.monotonic)
    is_ready: bool = False


class ConnectedSpark:
    """`provider`: asked until it gives one, for PySpark may still be on its way."""

    def __init__(self, provider: Callable[[], SparkProvider | None]) -> None:
        self._ask = provider
        self._provider: SparkProvider | None = None
        self._open: OpenSessions | None = None
        self._sessions = dict[str, _Session]()
        """By migration."""
        self._beside = set[asyncio.Task[None]]()
        self._log = structlog.get_logger()

    def session_of(self, migration_id: str) -> str:
        """The migration's, or the name of a new one, which is made ready from now on."""
        now = time.monotonic()
        for owner in [owner for owner, one in self._sessions.items() if now - one.used_at > KEPT_SECONDS]:
            self.leave(owner)
        found = self._sessions.get(migration_id)
        if found is None:
            found = self._sessions[migration_id] = _Session()
            self._do_beside(self._make_ready(found))
        found.used_at = now
        return found.name

    def leave(self, migration_id: str) -> None:
        """Ends its session, if there is one. Waits for nothing."""
        left = self._sessions.pop(migration_id, None)
        if left is not None:
            self._close(left.name)

    def _close(self, session: str) -> None:
        if self._open is not None:
            self._do_beside(asyncio.to_thread(self._open.close, session))

    def is_ready(self, session: str) -> bool:
        return any(one.name == session and one.is_ready for one in self._sessions.values())

    def _do_beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def _make_ready(self, session: _Session) -> None:
        """A failure is logged: the check meets it itself."""

        def warm_up(spark: Any) -> None:  # noqa: ANN401
            from spark.engine.remote import warm_up

            warm_up(spark)

        try:
            await self._run(warm_up, session.name, "warm-up")
            session.is_ready = True
        except (Transient, Permanent) as error:
            self._log.warning("Spark could not be made ready", session=session.name, why=str(error))
        if session not in self._sessions.values():  # Left meanwhile, before it was open.
            self._close(session.name)

    async def run(self, job: CheckJob, session: str, on_progress: OnProgress) -> CheckResult:
        def compare(spark: Any) -> CheckResult:  # noqa: ANN401 - PySpark may be absent
            from spark.engine.spark import SparkEngine

            return SparkEngine(spark, job.id).run(job, on_progress=on_progress)

        return await self.run_with(compare, session, job.id)

    async def run_with(self, work: Callable[[Any], T], session: str, tag: str) -> T:
        """Any work that needs a session. Cancelled, it ends what it has begun in Spark. A session in which something has failed
        is used no more.
        """
        try:
            return await self._run(work, session, tag)
        except BaseException:
            self._forget(session)
            raise
        finally:
            for one in self._sessions.values():
                one.used_at = time.monotonic() if one.name == session else one.used_at

    async def _run(self, work: Callable[[Any], T], session: str, tag: str) -> T:
        with whole_spark():
            endpoint = await asyncio.to_thread(self._endpoint)
            if self._open is None:
                from spark.session.running import OpenSessions

                self._open = OpenSessions()
            return await self._open.run(endpoint, session, work, tag)

    def _forget(self, session: str) -> None:
        self._sessions = {migration: one for migration, one in self._sessions.items() if one.name != session}
        self._close(session)

    async def interrupt(self, session: str) -> None:
        self._forget(session)
        with whole_spark():
            endpoint = await asyncio.to_thread(self._endpoint)
            from spark.session.connect import interrupt_attempt

            await asyncio.to_thread(interrupt_attempt, endpoint, session)

    async def close(self) -> None:
        """Sessions first, which a server of others' would keep."""
        for task in self._beside:
            task.cancel()
        for migration_id in list(self._sessions):
            self.leave(migration_id)
        await asyncio.gather(*self._beside, return_exceptions=True)
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
