"""A real Spark cluster gives the same report as the local engine, with nothing of us installed on it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from spark.engine.local import LocalEngine
from spark.engine.progress import Progress
from spark.engine.spark import SparkEngine
from spark.engine.watched import watched
from spark.job import CheckJob, StagedRows
from spark.session.connect import is_answering, new_session_id, session
from spark.session.embedded import EmbeddedSpark
from spark.session.endpoint import Endpoint
from tests.spark.slow_jobs import plan
from tests.spark.standalone import StandaloneCluster, standalone_cluster
from tests.unit.generated_clusters import generate, stage, tolerations

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("standalone")]

CONF = {
    "spark.authenticate": "false",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.cores.max": "2",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    with standalone_cluster(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def foreign(cluster: StandaloneCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A Connect server on that cluster, as somebody else would run it: it has a token, and not our code."""
    own = plan(tmp_path_factory.mktemp("connect"), master=cluster.master, python=cluster.python, conf=CONF)
    spark = EmbeddedSpark(own, is_answering)
    yield replace(spark.endpoint(), has_our_code=False)
    spark.close()


def test_code_comes_with_the_session_and_runs_on_both_workers(foreign: Endpoint, cluster: StandaloneCluster) -> None:
    def tell(batches: Iterator[Any]) -> Iterator[Any]:
        import time
        from pathlib import Path

        import pyarrow as pa

        import spark.job

        for _ in batches:
            time.sleep(1)  # so that one worker cannot have done it all before the other begins
            yield pa.RecordBatch.from_pydict({"code": [spark.job.__file__], "where": [str(Path.cwd())]})

    with session(foreign, new_session_id()) as found:
        told = found.range(0, 8, 1, 8).mapInArrow(tell, "code string, where string").collect()
    code, where = {row.code for row in told}, {row.where for row in told}
    print(code, where)
    assert all(".zip" in path for path in code)
    assert all(any(Path(place).is_relative_to(work) for place in where) for work in cluster.work)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_gives_the_same_report_as_the_local_engine(foreign: Endpoint, tmp_path: Path, seed: int) -> None:
    random = Random(seed)  # noqa: S311
    generated = generate(random)
    for number in range(1, 25):
        generated.add(generate(random, tag=f"c{number:02}"))
    stage(generated, tmp_path)
    tolerated = tolerations(random, generated)
    jobs = [
        CheckJob(
            id=name,
            left=StagedRows(directory=tmp_path / "left"),
            right=StagedRows(directory=tmp_path / "right"),
            out=tmp_path / name,
            digest_key="env:NOT_ASKED_FOR",
            tolerated=tolerated,
            tasks=4,
        )
        for name in ("local", "spark")
    ]
    here = LocalEngine().run(jobs[0])
    with session(foreign, new_session_id()) as found:
        there = SparkEngine(found, "check").run(jobs[1])
    assert here.finding_count > 100
    assert there.findings.read_bytes() == here.findings.read_bytes()
    of_the_run = {"engine", "seconds", "findings"}
    assert there.model_dump(exclude=of_the_run) == here.model_dump(exclude=of_the_run)
    print(f"{here.finding_count} findings, {there.content_hash}; Spark: {there.seconds}, local: {here.seconds}")


def test_a_cluster_whose_executors_take_nothing_is_told(cluster: StandaloneCluster, tmp_path: Path) -> None:
    """Spark itself only waits: here for more memory than any of its workers has, elsewhere for others to make room."""

    def stop(progress: Progress) -> None:
        if progress.words != progress.stage:
            raise InterruptedError(progress.words)

    starved = CONF | {"spark.executor.memory": "64g"}
    server = EmbeddedSpark(plan(tmp_path, master=cluster.master, python=cluster.python, conf=starved), is_answering)
    try:
        with (
            session(server.endpoint(), new_session_id()) as spark,
            pytest.raises(InterruptedError) as told,
            watched(spark, "compare", stop),
        ):
            spark.range(0, 8, 1, 8).count()
    finally:
        server.close()
    assert str(told.value) == "compare on Spark at localhost, which has its tasks, and runs none of them"
