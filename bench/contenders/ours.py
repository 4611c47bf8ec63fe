"""Our local engine."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.contenders import Play
from bench.inputs import raw_job, staged_job
from domain.drift.report import CheckResult
from spark.engine.local import LocalEngine
from spark.job import CheckJob

MakeJob = Callable[[Path, Path], CheckJob]


def told(result: CheckResult) -> dict[str, int]:
    names = ("left", "right", "missing_left", "missing_right", "differs")
    return {name: sum(getattr(counts, name) for counts in result.counts.values()) for name in names}


@contextmanager
def raw_local(inputs: Path, own: Path) -> Iterator[Play]:
    yield _local(raw_job, inputs)


@contextmanager
def staged_local(inputs: Path, own: Path) -> Iterator[Play]:
    yield _local(staged_job, inputs)


def _local(make_job: MakeJob, inputs: Path) -> Play:
    return lambda out: told(LocalEngine().run(make_job(inputs, out)))
