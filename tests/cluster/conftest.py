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
from playground.rig import Rig
from playground.seed import seed
from playground.services import Services
from playground.temporal import TemporalPorts, TemporalServer


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Everything up, seeded and under load, two of the nodes with the Prometheus exporter instead of Jolokia.

    On a failure the ends of our own logs are printed.
    """
    with ExitStack() as stack:
        lease = PortLease(5)
        stack.callback(lease.close)
        cluster = stack.enter_context(PlaygroundCluster(tmp_path / "cluster", prometheus=[2, 3002], announce=print))
        temporal = stack.enter_context(TemporalServer(tmp_path / "temporal", TemporalPorts.leased(lease)))
        seed(cluster.bootstrap_servers)
        services = stack.enter_context(Services(tmp_path / "services", temporal.address, lease.take(), temporal.ui_url))
        load = stack.enter_context(Load(cluster.bootstrap_servers, tmp_path / "load"))
        yield Rig(cluster, temporal, services, load)
        for log in sorted((tmp_path / "services").glob("*.log")):
            print(f"--- the end of {log.name}{os.linesep}{processes.last_lines(log, 12)}")
