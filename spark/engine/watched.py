"""How far an operation of Spark's is, while it is waited for."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from spark.engine.progress import OnProgress, Progress


@contextmanager
def watched(session: SparkSession, stage: str, on_progress: OnProgress) -> Iterator[None]:
    """Connect tells how far it is while it is waited for, a few times in ten seconds; a classic session does not."""
    on_progress(Progress(stage, 0, 1))
    if not type(session).__module__.startswith("pyspark.sql.connect."):
        yield
        return
    handler = _handler(stage, session.client.host, on_progress)
    session.registerProgressHandler(handler)
    try:
        yield
    finally:
        session.removeProgressHandler(handler)


def _handler(stage: str, host: str, on_progress: OnProgress) -> Callable[..., None]:
    def handle(stages: Iterable[object], inflight_tasks: int, **_: object) -> None:
        found = list(stages)
        if found:
            done, total = (sum(getattr(one, name) for one in found) for name in ("num_completed_tasks", "num_tasks"))
            on_progress(Progress(stage, done, total, inflight_tasks, host))

    return handle
