"""A small cluster in KRaft mode, and Kafka's own dump of its log: what our reader of that log is held against."""

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from domain.errors import Permanent
from playground import processes
from playground.cache import silent
from playground.clients import admin_client, cluster_view
from playground.cluster import prepared_runtime, stop_everything_in
from playground.jvm import Runtime
from playground.ports import LOOPBACK, PortLease
from playground.processes import Launch, plain_environment
from playground.progress import wait_while_working

CLUSTER_ID = "bWV0YWRhdGEtb2YtdGVzdA"
METADATA_LOG = "__cluster_metadata-0"
CONTROLLER, BROKER = 1, 2
HEAP_MIB = 256
SNAPSHOT_AFTER_BYTES = 20_000
_PAYLOAD = " payload: "


class KraftCluster:
    """Node 1 is controller and broker, node 2 a broker. Both write a checkpoint whenever some 20 kB of records are new."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self._runtime = prepared_runtime(self.directory, silent)
        self._ports = PortLease(3)
        self._quorum, *ports = self._ports.ports
        self._listeners = dict(zip((CONTROLLER, BROKER), ports, strict=True))
        self.bootstrap_servers = tuple(f"{LOOPBACK}:{port}" for port in ports)

    @property
    def metadata_log(self) -> Path:
        return self._node(CONTROLLER) / "data" / METADATA_LOG

    def __enter__(self) -> Self:
        try:
            for node in self._listeners:
                self._write_properties(node)
            self._format()
            for node in self._listeners:
                processes.start(self._launch(node))
            admin = admin_client(self.bootstrap_servers)
            launches = [self._launch(node) for node in self._listeners]
            wait_while_working(lambda: self._is_complete(cluster_view(admin)), "two brokers in KRaft mode", launches)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        try:
            stop_everything_in(self.directory, grace_seconds=0.0)
        finally:
            self._ports.close()

    def _is_complete(self, view: Any) -> bool:  # noqa: ANN401 - a ClusterView or nothing yet
        return view is not None and view.broker_ids == frozenset(self._listeners)

    def _node(self, node: int) -> Path:
        return self.directory / f"node-{node}"

    def _write_properties(self, node: int) -> None:
        (self._node(node) / "data").mkdir(parents=True)
        is_controller = node == CONTROLLER
        quorum = f",CONTROLLER://{LOOPBACK}:{self._quorum}" if is_controller else ""
        self._file(node).write_text(
            f"""\
process.roles={"broker,controller" if is_controller else "broker"}
node.id={node}
broker.rack=rack-{node}
listeners=PLAINTEXT://{LOOPBACK}:{self._listeners[node]}{quorum}
advertised.listeners=PLAINTEXT://{LOOPBACK}:{self._listeners[node]}
controller.listener.names=CONTROLLER
controller.quorum.voters={CONTROLLER}@{LOOPBACK}:{self._quorum}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=true
log.dirs={self._node(node)}/data
metadata.log.max.record.bytes.between.snapshots={SNAPSHOT_AFTER_BYTES}
offsets.topic.replication.factor=1
log.cleaner.dedupe.buffer.size=2097152
num.network.threads=2
num.io.threads=2
""",
            encoding="utf-8",
        )

    def _format(self) -> None:
        """Both at once: most of it is the start of a JVM."""
        command = (*self._runtime.java(96), "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c")
        running = [subprocess.Popen([*command, str(self._file(n))], stdout=subprocess.DEVNULL) for n in self._listeners]
        codes = [process.wait(60) for process in running]
        if any(codes):
            raise Permanent(f"{self.directory}: Kafka refuses to format the nodes' directories")

    def _file(self, node: int) -> Path:
        return self._node(node) / "server.properties"

    def _launch(self, node: int) -> Launch:
        java = self._runtime.java(HEAP_MIB, f"-Dkafka.logs.dir={self._node(node)}")
        return Launch(
            name=f"node-{node}",
            command=(*java, "kafka.Kafka", str(self._file(node))),
            pid_file=self._node(node) / "kafka.pid",
            output_file=self._node(node) / "kafka.log",
            environment=plain_environment(self._runtime.java_home),
            mark=str(self._file(node)),
        )


def dumped(runtime: Runtime, file: Path) -> list[tuple[int, dict[str, Any]]]:
    """Offset and content of each metadata record of a segment or checkpoint, as Kafka's own tool prints them."""
    command = (*runtime.java(256), "kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files", str(file))
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    records = [line for line in printed.splitlines() if line.startswith("| offset:") and _PAYLOAD in line]
    return [(int(line.split()[2]), json.loads(line.partition(_PAYLOAD)[2])) for line in records]
