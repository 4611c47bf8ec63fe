"""The engine without Spark and Java: the same kernels, in this process, or in several where there is much to read."""

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import pyarrow as pa

from domain.drift.report import CheckResult
from domain.errors import Superseded, Transient
from spark.comparing.compare import Compared
from spark.conclude import Measured, conclude
from spark.engine.progress import OnProgress, Progress, ignore
from spark.engine.sides import Side, Sources, look_at, publish_all, stage_tasks_of
from spark.engine.tasks import NO_ROWS, CompareTask, RowCounts, StageTask, Tick, added, circumstances_of, compare_tasks
from spark.findings import FINDINGS_SCHEMA, in_order, tolerate
from spark.job import CheckJob
from spark.staging import StagedFile

TELL_EVERY = 0.1

T = TypeVar("T")
R = TypeVar("R")


class Runner(Protocol):
    """Carries out tasks, and tells how far it is."""

    def __call__(self, stage: str, run: Callable[[T, Tick], R], tasks: Sequence[T]) -> Iterator[R]: ...


@dataclass(frozen=True)
class LocalEngine:
    name: str = "local"

    def run(self, job: CheckJob, sources: Sources | None = None, on_progress: OnProgress = ignore) -> CheckResult:
        """Errors are those of the sources. What `on_progress` raises ends the check."""
        begun = time.monotonic()
        sides = look_at(job, sources)
        with _runner(job, sides, on_progress) as runner:
            publish_all(sides, runner("stage", _stage_one, stage_tasks_of(sides, job.kinds)))
            staged = time.monotonic()
            rows, findings = _compare(job, sides, runner)
        compared = time.monotonic()
        not_read = sides[0].not_read + sides[1].not_read
        seconds = {"stage": staged - begun, "compare": compared - staged}
        on_progress(Progress("conclude", 0, 1))
        return conclude(job, [in_order(tolerate(findings, job.tolerated))], Measured(self.name, rows, not_read, seconds))


def _stage_one(task: StageTask, tick: Tick) -> tuple[str, tuple[StagedFile, ...]]:
    return str(task.directory), task.run("local", tick)


def _compare(job: CheckJob, sides: tuple[Side, Side], runner: Runner) -> tuple[RowCounts, pa.Table]:
    tasks = compare_tasks(sides[0].directory, sides[1].directory, job.kinds, circumstances_of(job))
    rows: RowCounts = {}
    findings = [FINDINGS_SCHEMA.empty_table()]
    for outcome in runner("compare", _compare_one, tasks):
        for kind, compared in outcome:
            rows[kind] = added(rows.get(kind, NO_ROWS), (compared.left, compared.right, compared.equal))
            findings.append(compared.findings)
    return rows, pa.concat_tables(findings)


def _compare_one(task: CompareTask, tick: Tick) -> list[tuple[str, Compared]]:
    return list(task.run(tick))


@contextmanager
def _runner(job: CheckJob, sides: tuple[Side, Side], on_progress: OnProgress) -> Iterator[Runner]:
    if job.tasks == 1 or not any(side.is_large for side in sides):
        yield _Here(on_progress)
        return
    stop = job.out / ".stop"
    with ProcessPoolExecutor(job.tasks, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            yield _Pooled(pool, stop, on_progress)
        except BaseException:
            stop.touch()
            pool.shutdown(cancel_futures=True)
            raise


@dataclass(frozen=True)
class _Here:
    """One task after the other, in this thread."""

    on_progress: OnProgress

    def __call__(self, stage: str, run: Callable[[T, Tick], R], tasks: Sequence[T]) -> Iterator[R]:
        for done, task in enumerate(tasks):
            yield run(task, partial(self.on_progress, Progress(stage, done, len(tasks))))
        self.on_progress(Progress(stage, len(tasks), len(tasks)))


@dataclass(frozen=True)
class _Pooled:
    """Several processes. They look for the file `stop` between two batches, and end when it is there."""

    pool: ProcessPoolExecutor
    stop: Path
    on_progress: OnProgress

    def __call__(self, stage: str, run: Callable[[T, Tick], R], tasks: Sequence[T]) -> Iterator[R]:
        waiting: set[Future[R]] = {self.pool.submit(run, task, partial(_end_when, self.stop)) for task in tasks}
        while waiting:
            done, waiting = wait(waiting, TELL_EVERY, FIRST_COMPLETED)
            self.on_progress(Progress(stage, len(tasks) - len(waiting), len(tasks)))
            for future in done:
                yield _result(future)


def _end_when(stop: Path) -> None:
    if stop.exists():
        raise Superseded(f"the check was ended: {stop} is there")


def _result(future: Future[R]) -> R:
    try:
        return future.result()
    except BrokenProcessPool as killed:
        raise Transient("a process of the local engine was killed, perhaps for lack of memory: try again") from killed
