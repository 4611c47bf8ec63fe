"""The local engine against the oracle, on thousands of generated clusters: nothing missed, nothing invented."""

from collections import Counter
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.drift.tolerations import Toleration
from spark.engine.local import LocalEngine
from spark.job import CheckJob, CheckResult, StagedRows
from tests.unit.drift_oracle import Answer, Told, ask_oracle
from tests.unit.generated_clusters import Cluster, generate, stage, tolerations

CLUSTERS_IN_A_JOB = 25


def compare_locally(
    cluster: Cluster, directory: Path, tolerated: tuple[Toleration, ...] = (), is_copy: bool = False
) -> CheckResult:
    stage(cluster, directory)
    return LocalEngine().run(job_of(directory, tolerated, is_copy))


def job_of(directory: Path, tolerated: tuple[Toleration, ...] = (), is_copy: bool = False) -> CheckJob:
    return CheckJob(
        id="generated",
        left=StagedRows(directory=directory / "left"),
        right=StagedRows(directory=directory / "right"),
        out=directory / "out",
        digest_key="env:NOT_ASKED_FOR",
        tolerated=tolerated,
        is_before_dual_write=is_copy,
    )


def told_by(result: CheckResult) -> list[Told]:
    columns = Told.__dataclass_fields__.keys()
    return [Told(*(row[name] for name in columns)) for row in pq.read_table(result.findings).to_pylist()]


def assert_same(result: CheckResult, answer: Answer) -> None:
    said, expected = Counter(told_by(result)), Counter(answer.findings)
    assert said - expected == Counter(), "invented"
    assert expected - said == Counter(), "missed"
    assert result.verdict == answer.verdict
    assert {kind: (c.left, c.right, c.equal) for kind, c in result.counts.items()} == answer.rows


@given(seed=st.integers(0, 2**32), most=st.integers(0, 4), is_copy=st.booleans())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_one_cluster(tmp_path_factory: pytest.TempPathFactory, seed: int, most: int, is_copy: bool) -> None:
    """Drawn from a seed, for speed; what shrinks is how many rows there are."""
    random = Random(seed)  # noqa: S311
    cluster = generate(random, most=most)
    tolerated = tolerations(random, cluster)
    result = compare_locally(cluster, tmp_path_factory.mktemp("cluster"), tolerated, is_copy)
    assert_same(result, ask_oracle(cluster.left, cluster.right, cluster.journal, tolerated, is_copy))


@pytest.mark.parametrize("seed", range(100))
def test_many_clusters_at_once(tmp_path: Path, seed: int) -> None:
    """Of each job so many clusters that its buckets and hashes have something to do."""
    random = Random(seed)  # noqa: S311
    cluster = generate(random)
    for number in range(1, CLUSTERS_IN_A_JOB):
        cluster.add(generate(random, tag=f"c{number:02}"))
    tolerated = tolerations(random, cluster)
    result = compare_locally(cluster, tmp_path, tolerated, is_copy=seed % 2 == 0)
    assert_same(result, ask_oracle(cluster.left, cluster.right, cluster.journal, tolerated, is_copy=seed % 2 == 0))
