"""Starts what the demo plays on: Temporal and our programs on one side, the cluster and its load on the other, at once.

Nothing is stopped here: that is the guardian's work, also after an interruption in the middle of this.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from playground import processes
from playground.cache import Announce
from playground.cluster import PlaygroundCluster
from playground.demo.cast import Cast, cast_of
from playground.demo.census import Census
from playground.demo.checks_setup import start_checks_setup
from playground.demo.directory import DemoDirectory
from playground.demo.witness import Witness
from playground.load import Load
from playground.ports import PortLease
from playground.seed import seed
from playground.services import Program, Services
from playground.temporal import TemporalPorts, TemporalServer, temporal_program

CLUSTER_NAME = "demo"


@dataclass(frozen=True)
class Backstage:
    """All that is started; made by `prepared`, before which everything needed has been fetched."""

    directory: DemoDirectory
    cluster: PlaygroundCluster
    cast: Cast
    load: Load
    witness: Witness
    census: Census
    memory: processes.PeakMemory

    @property
    def temporal(self) -> TemporalServer:
        return self.cast.temporal

    @property
    def services(self) -> Services:
        return self.cast.services

    async def start(self, announce: Announce) -> None:
        """Returns when messages flow and the API is ready."""
        self.memory.start()
        start_checks_setup(self.directory.path, announce)
        self.cluster.announce = announce
        async with asyncio.TaskGroup() as both:
            both.create_task(asyncio.to_thread(self._start_product, announce))
            both.create_task(asyncio.to_thread(self._start_cluster, announce))
        self.cast.keep(self.directory)

    def _start_product(self, announce: Announce) -> None:
        seconds = self.temporal.start()
        announce(f"Temporal: {self.temporal.address}, web UI {self.temporal.ui_url} ({seconds:.1f} s)")
        with told(announce, f"Keeperless: three workers, API {self.services.api_url}"):
            self.services.start(*Program)
            self.services.await_ready()

    def _start_cluster(self, announce: Announce) -> None:
        self.cluster.start()
        with told(announce, "Seeded: topics, dynamic configs, quotas, SCRAM users, ACLs"):
            seed(self.cluster.bootstrap_servers, self.cluster.broker_launches)
        with told(announce, "Load: acks=all producer and consumers run"):
            self.load.start(self.cluster.broker_launches)
            self.witness.start()


def prepared(directory: DemoDirectory, announce: Announce) -> Backstage:
    """Fetches what is missing, which may take minutes the first time; starts nothing that stays."""
    program = temporal_program(announce=announce)
    cluster = PlaygroundCluster(directory.cluster, name=CLUSTER_NAME, announce=announce)
    lease = PortLease(5)
    census = Census(directory.path, directory.cluster)
    return Backstage(
        directory=directory,
        cluster=cluster,
        cast=cast_of(directory, program, TemporalPorts.leased(lease), lease.take()),
        load=Load(cluster.bootstrap_servers, directory.load),
        witness=Witness(cluster.bootstrap_servers, directory.load),
        census=census,
        memory=processes.PeakMemory(census.pids),
    )


@contextmanager
def told(announce: Announce, what: str) -> Iterator[None]:
    """Announces `what` when it is done, with the seconds it took."""
    began = time.monotonic()
    yield
    announce(f"{what} ({time.monotonic() - began:.1f} s)")
