"""What the container of the demo's nodes does when it was killed: everything in it starts again, at the same moment."""

import os
import signal
from pathlib import Path

import pytest

from playground.cluster import PlaygroundCluster, processes_in
from playground.nodes import start_again

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


def test_brokers_that_were_killed_are_registered_again(tmp_path: Path) -> None:
    """Faster than ZooKeeper forgets their sessions: a broker that found itself registered would give up."""
    with PlaygroundCluster(tmp_path) as cluster:
        before = {broker.id: cluster.pid(broker.id) for broker in cluster.spec.brokers}
        for process in processes_in(tmp_path):
            os.kill(process.pid, signal.SIGKILL)
        for process in processes_in(tmp_path):
            process.wait(30)
        start_again(tmp_path, cluster.spec)
        seconds = cluster.await_in_sync()
        print(f"in sync {seconds:.1f} s after the brokers' start")
        assert all(cluster.pid(broker) != pid for broker, pid in before.items())
