"""The local engine against the oracle, on thousands of generated clusters: nothing missed, nothing invented."""

from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.drift.records import KINDS
from domain.drift.report import CheckResult
from domain.drift.tolerations import Toleration
from spark import staging
from spark.comparing.fields import Circumstances
from spark.digest import key_hashes
from spark.engine import tasks
from spark.engine.local import LocalEngine
from spark.job import CheckJob, StagedRows
from tests.unit.drift_oracle import NOW, Answer, Told, ask_oracle
from tests.unit.generated_clusters import Cluster, generate, stage, tolerations

CLUSTERS_IN_A_JOB = 25
WHEN = (NOW, Circumstances(is_before_dual_write=True), Circumstances(is_before_dual_write=True, is_left_older=True))


def compare_locally(
    cluster: Cluster, directory: Path, tolerated: tuple[Toleration, ...] = (), when: Circumstances = NOW
) -> CheckResult:
    stage(cluster, directory)
    return LocalEngine().run(job_of(directory, tolerated, when))


def job_of(directory: Path, tolerated: tuple[Toleration, ...] = (), when: Circumstances = NOW) -> CheckJob:
    return CheckJob(
        id="generated",
        left=StagedRows(directory=directory / "left"),
        right=StagedRows(directory=directory / "right"),
        kinds=tuple(KINDS),
        out=directory / "out",
        digest_key="env:NOT_ASKED_FOR",
        tolerated=tolerated,
        is_before_dual_write=when.is_before_dual_write,
        is_left_older=when.is_left_older,
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


@given(seed=st.integers(0, 2**32), most=st.integers(0, 4), when=st.sampled_from(WHEN))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_one_cluster(tmp_path_factory: pytest.TempPathFactory, seed: int, most: int, when: Circumstances) -> None:
    """Drawn from a seed, for speed; what shrinks is how many rows there are."""
    random = Random(seed)  # noqa: S311
    cluster = generate(random, most=most)
    tolerated = tolerations(random, cluster)
    result = compare_locally(cluster, tmp_path_factory.mktemp("cluster"), tolerated, when)
    assert_same(result, ask_oracle(cluster.left, cluster.right, cluster.journal, tolerated, when))


def many_clusters(random: Random, count: int = CLUSTERS_IN_A_JOB) -> Cluster:
    cluster = generate(random)
    for number in range(1, count):
        cluster.add(generate(random, tag=f"c{number:02}"))
    return cluster


@pytest.mark.parametrize("seed", range(90))
def test_many_clusters_at_once(tmp_path: Path, seed: int) -> None:
    random = Random(seed)  # noqa: S311
    cluster = many_clusters(random)
    tolerated = tolerations(random, cluster)
    result = compare_locally(cluster, tmp_path, tolerated, WHEN[seed % 3])
    assert_same(result, ask_oracle(cluster.left, cluster.right, cluster.journal, tolerated, WHEN[seed % 3]))


@pytest.mark.parametrize("seed", range(100, 105))
def test_many_row_groups_and_ranges_of_buckets(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a few rows were very many."""
    monkeypatch.setattr(staging, "ROWS_PER_GROUP", 8)
    monkeypatch.setattr(tasks, "ROWS_PER_TASK", 20)
    cluster = many_clusters(Random(seed))  # noqa: S311
    result = compare_locally(cluster, tmp_path)
    assert_same(result, ask_oracle(cluster.left, cluster.right, cluster.journal))


@pytest.mark.parametrize("seed", range(200, 210))
def test_keys_with_the_same_hash(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 64 values for all keys nearly each of them collides; the hash is never the last word."""
    monkeypatch.setattr(staging, "key_hashes", lambda kind, batch: key_hashes(kind, batch) & np.uint64(0xFC00000000000000))
    cluster = many_clusters(Random(seed))  # noqa: S311
    result = compare_locally(cluster, tmp_path)
    assert_same(result, ask_oracle(cluster.left, cluster.right, cluster.journal))
