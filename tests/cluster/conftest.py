"""The rig: a real cluster under load, a real Temporal, and Keeperless beside them."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from playground import processes
from playground.cluster import PlaygroundCluster
from playground.load import Load
from playground.ports import PortLease
from playground.rig import Rig, http_client
from playground.seed import seed
from playground.services import Program, Services
from playground.temporal import TemporalPorts, TemporalServer

SPARK = os.environ.get("KEEPERLESS_SPARK", "off")
"""Comparisons are made without Spark, unless somebody asks for it: a JVM more is much beside a cluster, on two cores."""


@pytest.fixture
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    """Everything up, seeded and under load, two of the nodes with the Prometheus exporter instead of Jolokia.

    A parameter says how large the cluster is. On a failure the ends of our own logs are printed.
    """
    size: dict[str, int] = getattr(request, "param", {})
    with ExitStack() as stack:
        lease = PortLease(5)
        stack.callback(lease.close)
        temporal = stack.enter_context(TemporalServer(tmp_path / "temporal", TemporalPorts.leased(lease)))
        services = Services(
            tmp_path / "services",
            temporal.address,
            lease.take(),
            temporal.ui_url,
            extra_environment={"KEEPERLESS_SPARK": SPARK},
        )
        stack.callback(services.stop)
        services.start(*Program)  # They come up while the cluster does.
        cluster = stack.enter_context(PlaygroundCluster(tmp_path / "cluster", prometheus=[2, 3002], announce=print, **size))
        stack.callback(services.stop)  # Before the cluster ends, or a step in hand would start a node again.
        seed(cluster.bootstrap_servers)
        services.await_ready()
        load = stack.enter_context(Load(cluster.bootstrap_servers, tmp_path / "load"))
        yield Rig(cluster, temporal, services, load, stack.enter_context(http_client()))
        for log in sorted((tmp_path / "services").glob("*.log")):
            print(f"--- the end of {log.name}{os.linesep}{processes.last_lines(log, 12)}")
