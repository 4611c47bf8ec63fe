"""The engine on Spark: the result of the local one in every case, what is wrong by its name, and nothing left behind."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from domain.drift.report import CheckResult
from domain.drift.tolerations import Toleration
from domain.errors import Permanent
from spark.engine import tasks
from spark.engine.local import LocalEngine
from spark.engine.progress import Progress
from spark.engine.spark import SparkEngine
from tests.spark.slow_jobs import RunningJobs
from tests.unit.generated_clusters import stage, tolerations
from tests.unit.test_spark_engine_local import DamagedSource, HugeTopic, RowsSource, nothing_staged
from tests.unit.test_spark_engine_oracle import WHEN, job_of, many_clusters

CLUSTERS_IN_A_JOB = 100


def said(result: CheckResult) -> dict[str, object]:
    """All but who said it and how long it took. The findings are the same bytes."""
    return result.model_dump(exclude={"findings", "seconds", "engine"})


@pytest.mark.parametrize("seed", range(300, 310))
def test_generated_clusters(spark: Any, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The local engine is held against the oracle on such clusters; here Spark is held against the local engine."""
    monkeypatch.setattr(tasks, "ROWS_PER_TASK", 2000)
    random = Random(seed)  # noqa: S311
    cluster = many_clusters(random, CLUSTERS_IN_A_JOB)
    tolerated = (*tolerations(random, cluster), Toleration(record="acl", by="somebody", reason="it's 'known' to \\ us"))
    stage(cluster, tmp_path)
    job = job_of(tmp_path, tolerated, WHEN[seed % 3])
    on_spark = SparkEngine(spark, "generated").run(job)
    local = LocalEngine().run(job.model_copy(update={"out": tmp_path / "local"}))
    assert said(on_spark) == said(local)
    assert local.finding_count > CLUSTERS_IN_A_JOB
    assert on_spark.engine == "spark"


def test_sources_are_staged_by_executors(spark: Any, tmp_path: Path) -> None:
    late = frozenset({0, 20_000})
    sources = HugeTopic(), HugeTopic(late)
    seen: list[Progress] = []
    on_spark = SparkEngine(spark, "staged").run(nothing_staged(tmp_path / "a"), sources, seen.append)
    assert said(on_spark) == said(LocalEngine().run(nothing_staged(tmp_path / "b"), sources))
    assert on_spark.counts["partition"].differs == len(late)
    assert {at.stage for at in seen} == {"stage", "compare", "conclude"}
    assert sorted(path.name for path in (tmp_path / "a" / "out").iterdir()) == ["findings.parquet", "left", "right"]


def test_an_empty_comparison_is_clean(spark: Any, tmp_path: Path) -> None:
    result = SparkEngine(spark, "empty").run(nothing_staged(tmp_path), (RowsSource({}), RowsSource({})))
    assert (result.verdict, result.finding_count) == ("clean", 0)


def test_what_is_wrong_with_a_source_keeps_its_name(spark: Any, tmp_path: Path) -> None:
    """Not Spark's: what can never work is not tried again."""
    with pytest.raises(Permanent, match="acl is damaged at byte 7"):
        SparkEngine(spark, "damaged").run(nothing_staged(tmp_path), (HugeTopic(), DamagedSource({"acl": []})))


def test_what_the_progress_raises_ends_the_jobs(spark: Any, tmp_path: Path, jobs: RunningJobs) -> None:
    def stop(progress: Progress) -> None:
        if progress.total > 1:
            raise InterruptedError(progress.stage)

    with pytest.raises(InterruptedError, match="stage"):
        SparkEngine(spark, "stopped").run(nothing_staged(tmp_path), (HugeTopic(count=400_000), HugeTopic()), stop)
    print(f"\nuntil none of its jobs runs: {jobs.seconds_until_none():.2f} s")
