"""Our engine on a Spark of its own, that is warm."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.contenders import Play
from bench.contenders.ours import told
from bench.contenders.spark_server import own_server
from bench.inputs import raw_job, staged_job
from spark.engine.spark import SparkEngine
from spark.session.connect import new_session_id, session

MEMORY = "1g"
"""As `KEEPERLESS_SPARK_DRIVER_MEMORY` is by default."""


@contextmanager
def raw(inputs: Path, own: Path) -> Iterator[Play]:
    with _warm_session(inputs, own) as spark:
        yield lambda out: told(SparkEngine(spark, "bench").run(raw_job(inputs, out)))


@contextmanager
def raw_in_new_sessions(inputs: Path, own: Path) -> Iterator[Play]:
    """A warm server, and a session for each check, as the worker has one for each attempt."""
    with own_server(inputs, own, MEMORY) as endpoint:

        def play(out: Path) -> dict[str, int]:
            with session(endpoint, new_session_id()) as spark:
                return told(SparkEngine(spark, "bench").run(raw_job(inputs, out)))

        yield play


@contextmanager
def staged(inputs: Path, own: Path) -> Iterator[Play]:
    with _warm_session(inputs, own) as spark:
        yield lambda out: told(SparkEngine(spark, "bench").run(staged_job(inputs, out)))


@contextmanager
def _warm_session(inputs: Path, own: Path) -> Iterator[Any]:
    with own_server(inputs, own, MEMORY) as endpoint, session(endpoint, new_session_id()) as spark:
        yield spark
