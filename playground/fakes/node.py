"""A simulated node: a machine, its process, and the mode that its properties file gives the process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import count

import javaproperties

from activities.ports.nodes import Completed, FileContent
from domain.cluster import NodeSpec
from domain.diagnosis.machines.node_output import NodeOutput
from domain.errors import Permanent, Transient
from domain.observed.observation import Process
from playground.fakes.faults import Faults
from playground.fakes.machine import FakeMachine
from playground.fakes.node_look import (
    is_look,
    is_look_at_start,
    is_note,
    is_trial,
    look,
    note,
    start,
    trial,
)
from playground.fakes.storage_tool import format_storage, write_meta

VERSION = "3.9.2"

FLAG = "zookeeper.metadata.migration.enable"
METADATA_LOG = "__cluster_metadata-0"
_PIDS = count(1000)
START_TICKS_PER_PID = 7
FIRST_LINE = "INFO Registered `kafka:type=kafka.Log4jController` MBean (kafka.utils.Log4jControllerRegistration$)"
NOT_FORMATTED = "ERROR Exiting Kafka due to fatal exception: No readable meta.properties files found."


class Mode(StrEnum):
    """What a process is, by the file it read when it started."""

    ZOOKEEPER = "zookeeper"
    HYBRID = "hybrid"
    KRAFT = "kraft"
    MIGRATION_CONTROLLER = "migration-controller"
    FINAL_CONTROLLER = "final-controller"

    @property
    def is_controller(self) -> bool:
        return self in {Mode.MIGRATION_CONTROLLER, Mode.FINAL_CONTROLLER}

    @property
    def needs_formatted_storage(self) -> bool:
        return self.is_controller or self is Mode.KRAFT


def mode_of(properties: Mapping[str, str]) -> Mode:
    has_flag = properties.get(FLAG, "false") == "true"
    match properties.get("process.roles", ""):
        case "controller":
            return Mode.MIGRATION_CONTROLLER if has_flag else Mode.FINAL_CONTROLLER
        case "broker":
            return Mode.KRAFT
        case _:
            return Mode.HYBRID if has_flag else Mode.ZOOKEEPER


@dataclass
class FakeProcess:
    """`looks`: observations since its start, which is the simulated cluster's time. `properties`: as its file had them then."""

    pid: int
    mode: Mode
    started_at: datetime
    properties: Mapping[str, str]
    looks: int = 0

    @property
    def identity(self) -> str:
        return f"{self.pid}@{self.pid * START_TICKS_PER_PID}"


def new_machine(spec: NodeSpec) -> FakeMachine:
    """With Kafka installed, and nothing else."""
    machine = FakeMachine()
    machine.write(f"{spec.kafka_home}/libs/kafka_2.13-{VERSION}.jar", FileContent(b"PK", 0o644, 0, 0))
    return machine


class FakeNode:
    """State of one node. `starts` counts every process ever started on it, the first included."""

    def __init__(self, spec: NodeSpec) -> None:
        self.spec = spec
        self.machine = new_machine(spec)
        self.process: FakeProcess | None = None
        self.last_identity: str | None = None
        self.starts = 0
        self.output: list[str] = []
        self.logs: dict[str, list[str]] = {}
        """What it has printed into files besides, by their paths."""
        self.is_configuration_paused = False
        self.metadata_dir = f"{spec.log_dirs[0]}/{METADATA_LOG}"
        """Where its copy of the quorum's log is, by the file that it last started with."""

    @property
    def properties(self) -> dict[str, str]:
        file = self.machine.read(self.spec.properties_file)
        if file is None:
            raise FileNotFoundError(self.spec.properties_file)
        return {key: value for key, value in javaproperties.loads(file.content.decode("latin-1")).items() if value is not None}

    @property
    def has_metadata_log(self) -> bool:
        return self.machine.is_dir(self.metadata_dir)

    def write_metadata_log(self, content: bytes) -> None:
        self.machine.write(f"{self.metadata_dir}/{'0' * 20}.log", FileContent(content, 0o644, 0, 0))

    def start(self) -> None:
        properties = self.properties
        mode = mode_of(properties)
        self.metadata_dir = f"{properties.get('metadata.log.dir') or self.spec.log_dirs[0]}/{METADATA_LOG}"
        self.process = FakeProcess(next(_PIDS), mode, datetime.now(UTC), properties)
        self.last_identity = self.process.identity
        self.machine.write(self.spec.driver.service.pid_file, _pid_file(self.process.pid))
        self.starts += 1
        self.output += [FIRST_LINE, f"started in {mode} mode"]
        if mode.needs_formatted_storage and not self._is_formatted:
            self.die(NOT_FORMATTED)
        elif mode is Mode.KRAFT:
            self._upgrade_meta()
        elif mode is Mode.HYBRID:
            self.machine.remove_tree(self.metadata_dir)  # What it fetches now is the log of a quorum that may be another one.

    @property
    def _is_formatted(self) -> bool:
        return any(self.machine.read(f"{directory}/meta.properties") is not None for directory in self.spec.log_dirs)

    def die(self, *lines: str) -> None:
        """The process is gone, having printed `lines`."""
        self.output.extend(lines)
        self.process = None

    def _upgrade_meta(self) -> None:
        """A KRaft broker rewrites `meta.properties` of version 0 as version 1 (MetaPropertiesEnsemble.java)."""
        for directory in self.spec.log_dirs:
            meta = self.machine.read(f"{directory}/meta.properties")
            if meta is not None:
                found = javaproperties.loads(meta.content.decode())
                write_meta(self.machine, directory, {"version": "1", "cluster.id": found["cluster.id"]}, self.spec.id)


def _pid_file(pid: int) -> FileContent:
    return FileContent(f"{pid}\n".encode(), 0o644, 0, 0)


class FakeDriver:
    """`NodeDriver` of a simulated node."""

    def __init__(self, node: FakeNode, faults: Faults) -> None:
        self._simulated = node
        self._faults = faults

    @property
    def _node(self) -> FakeNode:
        if self._simulated.spec.id in self._faults.silent_nodes:
            raise Transient(f"node {self._simulated.spec.id}: does not answer")
        return self._simulated

    async def read_file(self, path: str) -> FileContent | None:
        return self._node.machine.read(path)

    async def write_file(self, path: str, file: FileContent) -> None:
        self._node.machine.write(path, file)

    async def remove_file(self, path: str) -> None:
        self._node.machine.remove(path)

    async def read_part(self, path: str, offset: int, length: int) -> bytes | None:
        return self._node.machine.read_part(path, offset, length)

    async def rename(self, old: str, new: str) -> None:
        self._node.machine.rename(old, new)

    async def remove_tree(self, path: str) -> None:
        self._node.machine.remove_tree(path)

    async def list_dir(self, path: str) -> tuple[str, ...] | None:
        return self._node.machine.names(path)

    async def make_dir(self, path: str) -> None:
        self._node.machine.make_dir(path)

    async def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], timeout: timedelta, stdin: bytes = b""
    ) -> Completed:
        """Knows `kafka.tools.StorageTool format`, the programs that are sent to a node, and the configuration
        management of `fakes.spec`."""
        if is_look(arguments):
            return look(self._node.machine, arguments, self._node.process is not None, self._faults.unreachable_hosts)
        if is_look_at_start(arguments):
            return start(self._node.machine)
        if is_trial(arguments):
            return trial(self._node.machine)
        if is_note(arguments):
            return note(self._node.machine, arguments, self._node.process.identity if self._node.process else None)
        if "kafka.tools.StorageTool" in arguments and "format" in arguments:
            return format_storage(self._node.machine, arguments)
        if arguments[0] == "configuration":
            return Completed(self._manage_configuration(arguments[1]), "", "")
        raise Permanent(f"{arguments[0]}: no such program on this simulated machine")

    def _manage_configuration(self, order: str) -> int:
        """The exit code of a hook."""
        node, node_id = self._node, self._simulated.spec.id
        if order == "is-paused":
            return 3 if node_id in self._faults.says_nothing_of_pauses else int(not node.is_configuration_paused)
        is_deaf = node_id in (self._faults.never_pauses if order == "pause" else self._faults.never_resumes)
        if not is_deaf:
            node.is_configuration_paused = order == "pause"
        return int(is_deaf)

    async def process(self) -> Process:
        process = self._node.process
        if process is None:
            return Process(is_running=False, identity=None, last_identity=self._node.last_identity, started_at=None)
        return Process(
            is_running=True, identity=process.identity, last_identity=process.identity, started_at=process.started_at
        )

    async def start(self) -> None:
        if self._node.process is not None:
            return
        self._node.start()
        if self._node.spec.id in self._faults.dies_at_start:
            self._node.die(*self._faults.dies_at_start[self._node.spec.id])

    async def stop(self, identity: str, deadline: timedelta) -> None:
        if self._node.process is None or self._node.process.identity != identity:
            return
        if self._node.spec.id in self._faults.ignores_stop:
            raise Transient(f"process {self._node.process.identity}: has not stopped after SIGTERM; it is left alone")
        self._node.die("stopped")

    async def kill(self, identity: str, deadline: timedelta) -> None:
        if self._node.process is None or self._node.process.identity != identity:
            return
        if self._node.spec.id in self._faults.survives_kill:
            raise Transient(f"process {identity}: has not ended after SIGKILL; it is left alone")
        self._node.die()

    async def output(self, lines: int, logs: Sequence[str] = ()) -> NodeOutput:
        further = [line for log in logs if self._node.process is None for line in self._node.logs.get(log, ())]
        return NodeOutput(tuple([*self._node.output, *further][-lines:]) if lines > 0 else ())

    async def output_tail(self, lines: int) -> tuple[str, ...]:
        return (await self.output(lines)).lines
