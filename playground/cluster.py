"""A whole cluster: three ZooKeeper servers, brokers in ZooKeeper mode, and the spec that describes them.

    with PlaygroundCluster(directory) as cluster:
        cluster.spec        # a ClusterSpec, three controllers to be created included

Everything lives below one directory. What runs there is known by pid files alone, so another process can stop it
(`python -m playground.cluster stop DIRECTORY`), controllers that a migration has started included.
"""

import signal
import sys
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from domain.cluster import ClusterSpec, KafkaClientSpec, QuorumSpec, ZooKeeperSpec
from domain.errors import Transient
from playground import brokers, processes
from playground.cache import Announce, cache_directory, silent
from playground.clients import ClusterView, admin_client, cluster_view
from playground.ensemble import plan_ensemble
from playground.jars import installed_kafka
from playground.java import java_home
from playground.jvm import LOG4J, Runtime
from playground.ports import LOOPBACK, PortLease
from playground.processes import Launch
from playground.progress import wait_while_working
from playground.secured import Security
from playground.shared_classes import with_class_archive
from playground.wanted import write_parts

CHROOT = "/kafka"
CONTROLLERS = 3
ZOOKEEPERS = 3


class PlaygroundCluster:
    """Not running until `start` (or `with`). `prometheus` names the nodes that get that exporter instead of Jolokia.

    Brokers are spread over `rack_count` racks; without it each has one of its own. `is_secured`: they speak SASL_SSL with each
    other, with the controllers and with Keeperless; the playground's own clients stay on the plain listener. `host`: the name
    under which others reach this machine, and on which everything listens.
    """

    def __init__(
        self,
        directory: Path,
        *,
        name: str = "playground",
        broker_count: int = 3,
        rack_count: int | None = None,
        prometheus: Collection[int] = (),
        is_secured: bool = False,
        host: str = LOOPBACK,
        announce: Announce = silent,
    ) -> None:
        self.directory = directory.absolute()
        self.announce = announce
        self._name = name
        self._runtime = prepared_runtime(self.directory, announce)
        self._ports = PortLease(3 * ZOOKEEPERS + (3 if is_secured else 2) * broker_count + 2 * CONTROLLERS)
        self.ensemble = plan_ensemble(self.directory, self._ports, self._runtime, ZOOKEEPERS, host)
        self.security = Security(self.directory / "security") if is_secured else None
        self._brokers = brokers.plan_brokers(
            self.directory, self._ports, broker_count, prometheus, rack_count, is_secured=is_secured, host=host
        )
        self._controllers = brokers.plan_controllers(self.directory, self._ports, CONTROLLERS, prometheus, host)
        self.bootstrap_servers = tuple(f"{host}:{plan.port}" for plan in self._brokers)
        self._admin = admin_client(self.bootstrap_servers)
        self._spec: ClusterSpec | None = None

    @property
    def spec(self) -> ClusterSpec:
        """The cluster as its operator would describe it; `cluster_id` is Kafka's own, so it must have been up once."""
        if self._spec is None:
            raise RuntimeError("the playground cluster has no cluster id before it has started")
        return self._spec

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when every broker knows every other. Raises Transient, with the ends of the logs, when one does not."""
        seconds = self.ensemble.start()
        self.announce(f"ZooKeeper: {ZOOKEEPERS} servers form a quorum ({seconds:.1f} s)")
        began = time.monotonic()
        draft = self._draft("unknown")
        self._write_files(draft)
        for plan in self._brokers:
            processes.start(self._launch_of(draft, plan.id))
        self._spec = self._draft(self._await_cluster_id([self._launch_of(draft, plan.id) for plan in self._brokers]))
        write_parts(self._spec, self.directory)
        self.announce(f"Kafka: {len(self._brokers)} brokers are registered ({time.monotonic() - began:.1f} s)")

    def _write_files(self, draft: ClusterSpec) -> None:
        for plan in self._brokers:
            brokers.write_broker_files(plan, draft.ensemble.connect, self.security)
        for plan in self._controllers:
            brokers.write_agent_files(plan)
            if self.security is not None:
                brokers.write_base_file(plan, self.security)
        if self.security is not None:
            self.security.write([plan.name for plan in (*self._brokers, *self._controllers)])

    def stop(self, grace_seconds: float = 0.0) -> None:
        """Stops every process of this directory, whoever started it; the directory stays."""
        try:
            stop_everything_in(self.directory, grace_seconds)
        finally:
            self._ports.close()

    @property
    def broker_launches(self) -> list[Launch]:
        return [self.launch(plan.id) for plan in self._brokers]

    def launch(self, node_id: int) -> Launch:
        """How the node with this id is started."""
        return self._launch_of(self.spec, node_id)

    def pid(self, node_id: int) -> int:
        """The pid in a node's pid file, alive or not."""
        return int(Path(self.spec.node(node_id).driver.service.pid_file).read_text())

    def start_node(self, node_id: int) -> int:
        """By its start command, as the product does; gives the pid. Does not wait."""
        return processes.start(self.launch(node_id))

    def kill_node(self, node_id: int, number: int = signal.SIGKILL) -> None:
        """Returns when the process is gone."""
        processes.kill(self.launch(node_id), number)

    def view(self) -> ClusterView | None:
        """What the brokers say about the cluster now; None while none answers."""
        return cluster_view(self._admin)

    def pids(self) -> list[int]:
        """Of every server that is alive, ZooKeeper and controllers included."""
        return [process.pid for process in processes_in(self.directory)]

    def await_view(self, is_wanted: Callable[[ClusterView], bool], what: str, deadline_seconds: float = 60.0) -> float:
        """Waits until the brokers' answer is as wanted; gives the seconds it took. Raises Transient at the deadline."""

        def looks_as_wanted() -> bool:
            view = self.view()
            return view is not None and is_wanted(view)

        return processes.wait_until(looks_as_wanted, what, deadline_seconds)

    def await_registered(self, broker_ids: Collection[int], deadline_seconds: float = 60.0) -> float:
        """Waits until exactly these brokers are registered."""
        wanted = frozenset(broker_ids)
        return self.await_view(lambda v: v.broker_ids == wanted, f"only brokers {sorted(wanted)}", deadline_seconds)

    def await_in_sync(self, deadline_seconds: float = 60.0) -> float:
        """Waits until every broker is registered and no partition is under-replicated."""
        everyone = frozenset(plan.id for plan in self._brokers)
        return self.await_view(
            lambda v: v.broker_ids == everyone and not v.under_replicated,
            f"brokers {sorted(everyone)} with every replica in sync",
            deadline_seconds,
        )

    def _launch_of(self, spec: ClusterSpec, node_id: int) -> Launch:
        return brokers.node_launch(spec.node(node_id), spec.node_name(node_id))

    def _await_cluster_id(self, launches: Sequence[Launch]) -> str:
        everyone = frozenset(plan.id for plan in self._brokers)

        def is_registered() -> bool:
            view = self.view()
            return view is not None and view.broker_ids == everyone

        wait_while_working(is_registered, f"brokers {sorted(everyone)} to be registered", launches)
        self._await_known_to_each(launches)
        view = self.view()
        if view is None or not view.cluster_id:
            raise Transient("the brokers are registered but do not report the cluster's id: try again")
        return view.cluster_id

    def _await_known_to_each(self, launches: Sequence[Launch]) -> None:
        """One broker's answer is not all brokers': a topic that is made now is placed on those that the controller knows.

        Each answer is a new client's: one that has learnt of other brokers may ask those.
        """
        everyone = frozenset(plan.id for plan in self._brokers)
        for address in self.bootstrap_servers:

            def knows_everyone(address: str = address) -> bool:
                view = cluster_view(admin_client([address]))
                return view is not None and view.broker_ids == everyone

            wait_while_working(knows_everyone, f"{address} to know brokers {sorted(everyone)}", launches)

    def _draft(self, cluster_id: str) -> ClusterSpec:
        return ClusterSpec(
            name=self._name,
            cluster_id=cluster_id,
            kafka=self._client(),
            zookeeper=ZooKeeperSpec(
                connect=self.ensemble.connect(CHROOT), session_timeout_seconds=6.0, members=self.ensemble.members
            ),
            brokers=tuple(brokers.broker_spec(plan, self._runtime) for plan in self._brokers),
            quorum=QuorumSpec(
                controllers=tuple(brokers.controller_spec(plan, self._runtime, self.security) for plan in self._controllers),
                security_protocol="PLAINTEXT" if self.security is None else "SASL_SSL",
            ),
        )

    def _client(self) -> KafkaClientSpec:
        """Keeperless speaks to brokers as they do among each other."""
        if self.security is None:
            return KafkaClientSpec(bootstrap_servers=self.bootstrap_servers)
        servers = tuple(f"{plan.host}:{plan.internal_port}" for plan in self._brokers)
        return KafkaClientSpec(bootstrap_servers=servers, client_properties=f"file:{self.security.client_properties}")


def prepared_runtime(directory: Path, announce: Announce) -> Runtime:
    """Fetches what is missing, and writes the logging configuration that all servers of `directory` share."""
    kafka = installed_kafka(announce)
    directory.mkdir(parents=True, exist_ok=True)
    log4j = directory / "log4j.properties"
    log4j.write_text(LOG4J, encoding="utf-8")
    return with_class_archive(Runtime(java_home(), kafka, log4j), cache_directory(), announce)


def processes_in(directory: Path) -> list[psutil.Process]:
    """The living processes whose pid files lie in the folders of `directory`, brokers and controllers first.

    In this order they can be stopped: a broker that loses ZooKeeper first would wait for it instead of ending.
    """
    pid_files = sorted(directory.glob("*/*.pid"))
    found = (processes.find(pid_file, str(pid_file.parent)) for pid_file in pid_files)
    return [process for process in found if process is not None]


def stop_everything_in(directory: Path, grace_seconds: float = 0.0) -> None:
    """Stops what runs there. What it holds is thrown away, so nobody waits for a clean shutdown."""
    processes.stop(processes_in(directory.absolute()), grace_seconds)


def main(arguments: list[str]) -> None:
    match arguments:
        case ["stop", directory]:
            stop_everything_in(Path(directory))
        case _:
            sys.exit("usage: python -m playground.cluster stop DIRECTORY")


if __name__ == "__main__":
    main(sys.argv[1:])
