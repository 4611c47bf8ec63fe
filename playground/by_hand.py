"""What a person does to a cluster with a shell and Kafka's own tools, past the product: well or badly.

Files are made with the product's table of stages, so that a cluster led by hand looks like one led by the guide.
"""

import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from domain.by_hand.shell import java
from domain.cluster import ControllerSpec
from domain.configuration.properties import ENCODING, edit, parse
from domain.zk_to_kraft.node_config import MIGRATION_FLAG, controller_file, has_migration_flag, node_file
from domain.zk_to_kraft.steps import NodeStage
from playground import processes
from playground.cluster import PlaygroundCluster
from playground.relay import Relay

RELEASE = "3.9"
CONTROLLER = "/controller"
MIGRATION = "/migration"
FORMAT_SECONDS = 60
ZOOKEEPER_SHELL = "org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka"


class ByHand:
    """One person at one cluster."""

    def __init__(self, cluster: PlaygroundCluster) -> None:
        self._cluster = cluster

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return tuple(broker.id for broker in self._cluster.spec.brokers)

    # --- files and processes -----------------------------------------------------------------------------------------

    def properties_file(self, node_id: int) -> Path:
        return Path(self._cluster.spec.node(node_id).properties_file)

    def properties(self, node_id: int) -> dict[str, str]:
        """Its file as Java reads it."""
        return parse(self.properties_file(node_id).read_text(ENCODING))

    def edit(self, node_id: int, assignments: Mapping[str, str], removals: frozenset[str] = frozenset()) -> None:
        path = self.properties_file(node_id)
        path.write_text(edit(path.read_text(ENCODING), assignments, removals), ENCODING)

    def topic_id_on_disk(self, topic: str) -> str:
        """Of its first partition, on any broker. Raises `StopIteration` where none has a replica of it."""
        log_dirs = (Path(log_dir) for broker in self._cluster.spec.brokers for log_dir in broker.log_dirs)
        written = (log_dir / f"{topic}-0" / "partition.metadata" for log_dir in log_dirs)
        return next(file for file in written if file.exists()).read_text(encoding="ascii").split()[-1]

    def restart(self, node_id: int) -> int:
        """Stops cleanly and starts again, from the file as it is; gives the new pid. Does not wait for the new process."""
        self._cluster.kill_node(node_id, signal.SIGTERM)
        return self._cluster.start_node(node_id)

    def has_flag(self, controller_id: int) -> bool:
        """Whether its file has the migration flag."""
        return has_migration_flag(self.properties(controller_id))

    def take_flag_away(self, controller_id: int) -> None:
        """The worst that one can do to a controller: its next election makes the migration final."""
        self.edit(controller_id, {}, frozenset({MIGRATION_FLAG, "zookeeper.connect"}))
        self.restart(controller_id)

    # --- what a fix says ---------------------------------------------------------------------------------------------

    def type_fix(self, fix: str) -> list[str]:
        """Types each command of ZooKeeper's shell that a fix quotes, as it stands: what each prints."""
        return [self._type(command) for command in re.findall(r"`(zookeeper-shell\.sh [^`]*)`", fix)]

    def _type(self, command: str) -> str:
        """`zookeeper-shell.sh` runs this class, and hands everything on."""
        words = " ".join(map(shlex.quote, shlex.split(command)[1:]))
        shell = f"{java(self._cluster.spec.brokers[0], ZOOKEEPER_SHELL, '-server')} {words}"
        done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")
        return done.stdout

    # --- the guide ---------------------------------------------------------------------------------------------------

    def add_controllers(self) -> None:
        """Writes, formats and starts all controllers. Does not wait for their quorum."""
        spec = self._cluster.spec
        broker = self.properties_file(spec.brokers[0].id).read_text(ENCODING)
        for controller in spec.controllers:
            path = Path(controller.properties_file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(controller_file(spec, controller, None, broker), ENCODING)
            self._format(controller)
            self._cluster.start_node(controller.id)

    def _format(self, controller: ControllerSpec) -> None:
        java = f"{controller.environment['JAVA_HOME']}/bin/java"
        tool = ("-cp", f"{controller.kafka_home}/libs/*", "kafka.tools.StorageTool", "format")
        what = (f"--cluster-id={self._cluster.spec.cluster_id}", "--config", controller.properties_file)
        command = (java, *tool, *what, "--release-version", RELEASE)
        subprocess.run(command, env=controller.environment, check=True, capture_output=True, timeout=FORMAT_SECONDS)

    def restart_into(self, node_id: int, stage: NodeStage) -> None:
        """Edits and restarts one node. Does not wait for the new process."""
        path, spec = self.properties_file(node_id), self._cluster.spec
        path.write_text(node_file(path.read_text(ENCODING), spec, spec.node(node_id), stage), ENCODING)
        self.restart(node_id)

    def to_hybrid(self, broker_id: int, *, is_awaited: bool = True) -> None:
        """Edits and restarts one broker; returns when every replica is in sync, which after the last one may never be."""
        self.restart_into(broker_id, NodeStage.MIGRATION)
        if is_awaited:
            self._await_back(broker_id)

    def put_into_force(self, broker_id: int, assignments: Mapping[str, str]) -> None:
        """Edits and restarts one broker; returns when every replica is in sync."""
        self.edit(broker_id, assignments)
        self.restart(broker_id)
        self._await_back(broker_id)

    def _await_back(self, broker_id: int) -> None:
        everyone = frozenset(self.broker_ids)
        self._cluster.await_view(
            lambda view: everyone <= view.broker_ids and not view.under_replicated,
            f"broker-{broker_id} back, every replica in sync",
        )

    def configure_client_metrics(self, name: str, setting: str) -> None:
        """Sets `key=value`, or deletes `key`, with Kafka's own tool: at the controllers, for hybrid brokers refuse it."""
        spec = self._cluster.spec
        broker = spec.brokers[0]
        tool = ("-cp", f"{broker.kafka_home}/libs/*", "kafka.admin.ConfigCommand")
        controllers = ",".join(f"{c.host}:{c.port}" for c in spec.controllers)
        where = ("--bootstrap-controller", controllers, "--alter", "--entity-type", "client-metrics")
        how = "--add-config" if "=" in setting else "--delete-config"
        command = (f"{broker.environment['JAVA_HOME']}/bin/java", *tool, *where, "--entity-name", name, how, setting)
        done = subprocess.run(command, env=broker.environment, capture_output=True, timeout=60, check=False)
        if done.returncode != 0 or b"Error" in done.stdout + done.stderr:
            raise RuntimeError(f"{how} {setting}: {(done.stdout + done.stderr).decode()[-500:]}")

    # --- ZooKeeper ---------------------------------------------------------------------------------------------------

    @contextmanager
    def zookeeper(self) -> Iterator[KazooClient]:
        """A session below the cluster's chroot."""
        client = KazooClient(hosts=self._cluster.spec.ensemble.connect)
        client.start(timeout=30)
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def znode(self, path: str) -> dict[str, Any] | None:
        """A znode's JSON; `None` when it does not exist."""
        with self.zookeeper() as client:
            return json_at(client, path)

    def put_znode(self, path: str, content: Mapping[str, Any]) -> None:
        """Creates or replaces, parents included."""
        data = json.dumps(content).encode()
        with self.zookeeper() as client:
            client.ensure_path(path)
            client.set(path, data)

    def delete_znode(self, path: str) -> None:
        with self.zookeeper() as client:
            client.delete(path)

    def let_states_lag(self, *topics: str) -> None:
        """The states of their partitions are what they were, in znodes that were never changed.

        In dual write they come to lag by themselves: two changes of a partition may become one write.
        """
        with self.zookeeper() as client:
            folders = [f"/brokers/topics/{topic}/partitions" for topic in topics]
            for path in [f"{folder}/{number}/state" for folder in folders for number in client.get_children(folder)]:
                recreated = client.transaction()
                data, _ = client.get(path)
                recreated.delete(path)
                recreated.create(path, data)
                recreated.commit()

    def is_controller_of_zookeeper(self) -> bool:
        """Whether a broker in ZooKeeper or hybrid mode holds `/controller`: its claim is bound to a session."""
        with self.zookeeper() as client:
            found = client.exists(CONTROLLER)
            return found is not None and found.ephemeralOwner != 0

    def await_claim_of_kraft(self, deadline_seconds: float) -> int:
        """The KRaft controller that has taken `/controller`, within milliseconds of its claim: the copy begins now."""
        with self.zookeeper() as client:

            def is_claimed() -> bool:
                found = client.exists(CONTROLLER)
                return found is not None and found.ephemeralOwner == 0

            processes.wait_until(is_claimed, "a KRaft controller's claim", deadline_seconds, every_seconds=0.002)
            return int((json_at(client, CONTROLLER) or {})["brokerid"])

    @contextmanager
    def stray_broker(self, broker_id: int = 9) -> Iterator[None]:
        """A broker that is registered in ZooKeeper and will never be in KRaft: as long as it is, the copy does not begin.

        Clients that ask it are answered by the others: it has no partition, and nobody notices it.
        """
        with self.zookeeper() as client, Relay(self._cluster.bootstrap_servers) as relay:
            theirs = json_at(client, f"/brokers/ids/{self._cluster.spec.brokers[0].id}") or {}
            endpoints = [f"{endpoint.rpartition(':')[0]}:{relay.port}" for endpoint in theirs["endpoints"]]
            registration = theirs | {"port": relay.port, "endpoints": endpoints}
            client.create(f"/brokers/ids/{broker_id}", json.dumps(registration).encode(), ephemeral=True)
            yield

    def ensemble_pids(self) -> list[int]:
        ensemble = self._cluster.ensemble
        found = (processes.running(ensemble.launch(server)) for server in ensemble.servers)
        return [process.pid for process in found if process is not None]

    def kill_zookeeper(self) -> None:
        """For good."""
        for server in self._cluster.ensemble.servers:
            processes.kill(self._cluster.ensemble.launch(server))


def json_at(client: KazooClient, path: str) -> dict[str, Any] | None:
    try:
        data, _ = client.get(path)
    except NoNodeError:
        return None
    return dict(json.loads(data)) if data else {}


@contextmanager
def frozen(*pids: int) -> Iterator[None]:
    """Processes that stand still, as on a paused machine; they go on afterwards, whatever happens here."""
    with ExitStack() as thaw:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
            thaw.callback(_thaw, pid)
        yield


def _thaw(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
