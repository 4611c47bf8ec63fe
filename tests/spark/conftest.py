"""One embedded Spark for all tests of a run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from playground.ports import PortLease
from spark.session.connect import is_answering, new_session_id, session
from spark.session.embedded import EmbeddedSpark
from spark.session.endpoint import Endpoint
from tests.spark.slow_jobs import Beats, RunningJobs, plan


@pytest.fixture(scope="session")
def jobs() -> Iterator[RunningJobs]:
    """What Spark itself says that it runs."""
    with PortLease(1) as lease:
        yield RunningJobs(lease.take())


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory, jobs: RunningJobs) -> Iterator[EmbeddedSpark]:
    """Tests do not stop it. Its web interface is on, unlike in earnest, to see its jobs."""
    spark = EmbeddedSpark(plan(tmp_path_factory.mktemp("spark"), conf=jobs.conf), is_answering)
    yield spark
    spark.close()


@pytest.fixture
def endpoint(embedded: EmbeddedSpark) -> Endpoint:
    return embedded.endpoint()


@pytest.fixture
def spark(endpoint: Endpoint) -> Iterator[Any]:
    """A session of the test's own."""
    with session(endpoint, new_session_id()) as found:
        yield found


@pytest.fixture
def beats(tmp_path: Path) -> Beats:
    return Beats(tmp_path / "beats")
