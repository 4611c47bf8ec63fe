"""Notes of how machines and metadata are set, kept when a migration first finds them well, and what has changed since.

For people only: nothing is decided by it, and nothing waits for it.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Self

from temporalio import activity

from activities.diagnosis.metadata_notes import metadata_facts
from activities.observing.node_survey import CannotLook, run_program
from activities.on_node import command_of
from activities.ports.nodes import MemberMachine, NodeDriver, ZooKeeperMembers
from activities.ports.ports import Ports
from activities.ports.zookeeper import session
from domain.cluster import ClusterSpec, NodeSpec, ZooKeeperMemberSpec, host_and_port, servers_in
from domain.configuration.properties import ENCODING, parse
from domain.diagnosis.machines.notes import (
    JAVA_HOME,
    OURS,
    SERVER_FILE,
    SIDES,
    ZOOKEEPER,
    Facts,
    MachineChanges,
    MachineNote,
    changes_between,
    is_same_place,
    kernel_lines,
    moved,
)
from domain.observed.observation import NodeView, Observation
from domain.records import ClusterRecord

SCRIPT_BYTES = 1024 * 1024
OF_START = re.compile(r"(?:KAFKA|JAVA|JDK|JMX)_\w+|CLASSPATH|EXTRA_ARGS|LOG_DIR")
"""What Kafka's scripts and a JVM take. Whatever else a session, or systemd, has given it is no matter."""
TAKEN = re.compile(r"\$\{\w+:(?:[\w./-]*:)?(\w+)\}")
"""By a property, through EnvVarConfigProvider (KIP-887)."""
SOURCES = re.compile(r"^\s*(?:\.|source)\s+\S", re.MULTILINE)
"""A script that takes variables from a file of its own."""


async def environment_of_next_start(driver: NodeDriver, node: NodeSpec, known: Mapping[str, str]) -> dict[str, str]:
    """`known`: what its last noted process had. What its start script sets, or Kafka's own export, needs nobody else."""
    file = await driver.read_file(node.properties_file)
    properties = parse(file.content.decode(ENCODING)) if file is not None else {}
    taken = {name for value in properties.values() for name in TAKEN.findall(value)}
    own = [word for word in node.driver.service.start_command if PurePosixPath(word).is_absolute()]
    of_kafka = [f"{node.kafka_home}/bin/{name}" for name in ("kafka-server-start.sh", "kafka-run-class.sh")]
    sets, exports = await _texts(driver, own), await _texts(driver, of_kafka)
    return {
        name: value
        for name, value in known.items()
        if name in node.environment
        or not (name in taken or OF_START.fullmatch(name))
        or SOURCES.search(sets)
        or re.search(rf"\b{re.escape(name)}=", sets)
        or re.search(rf"\bexport\s+{re.escape(name)}\b", exports)
    }


async def _texts(driver: NodeDriver, paths: list[str]) -> str:
    return "\n".join([(await driver.read_part(path, 0, SCRIPT_BYTES) or b"").decode(errors="replace") for path in paths])


SECONDS = 8.0
NOWHERE = {"identity": None, "places": (), "files": (), "settings": (), "named": ()}
"""What `note_machine` is asked where there is neither a process nor a place of a node's."""
PLACE = "place of the process"
"""A kind of facts: what the files were found by, and nothing to compare."""


async def look_here(noted: Mapping[str, Mapping[str, str]] | None = None) -> dict[str, Any]:
    """Facts of this machine and of this process, and what the kernel has said. Raises `CannotLook`.

    `noted`: facts that these are to be held against. Who was started from elsewhere looks at the files of then.
    """
    place = dict(noted[PLACE]) if noted is not None and PLACE in noted else _place()
    try:
        request = {
            **NOWHERE,
            "identity": _identity(),
            "files": [place[name] for name in ("python", "code", "program") if name in place],
            "data": [place["directory"]],
        }
        command = command_of("note_machine", request, sys.executable)
        done = await asyncio.to_thread(subprocess.run, command, cwd="/", capture_output=True, timeout=SECONDS, check=True)
        told: dict[str, Any] = json.loads(done.stdout)
        told["facts"][PLACE] = place
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:  # no thread, no process, no answer
        raise CannotLook(f"this machine was not observed: {error}") from error
    return told


def _place() -> dict[str, str]:
    """What this process was started from, and where it works, also where that is gone."""
    program = {"program": sys.argv[0]} if Path(sys.argv[0]).is_absolute() else {}
    directory = str(Path("/proc/self/cwd").readlink()).removesuffix(" (deleted)")
    return {"python": sys.executable, "code": str(Path(__file__)), **program, "directory": directory}


def _identity() -> str:
    fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return f"{os.getpid()}@{fields[19]}"


Take = Callable[[], Awaitable[MachineNote]]
NOTHING_NOTED: Facts = MappingProxyType({})
NOTE_TIME = timedelta(seconds=10)
KEEP_SECONDS = 30.0
"""For all notes together."""
LEAVE_SECONDS = 5.0
"""For those that are under way when the worker ends."""
REST_SECONDS = 600.0
"""Until what could not be noted is tried again."""


class MachineNotes:
    """Keeps notes in the ledger, and holds machines against them. Whoever begins to keep some leaves it as a context."""

    def __init__(self, ports: Ports, members: ZooKeeperMembers) -> None:
        self._ports, self._members = ports, members
        self._keeping: dict[str, asyncio.Task[None]] = {}
        self._failed: dict[tuple[str, str], float] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Let what has been begun end, before the ledger is closed."""
        if self._keeping:
            _, late = await asyncio.wait(self._keeping.values(), timeout=LEAVE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def begin(self, migration_id: str, cluster: ClusterRecord, observation: Observation) -> None:
        """Keep notes beside whatever goes on. One at a time for each migration."""
        if migration_id not in self._keeping:
            task = asyncio.create_task(self.keep(migration_id, cluster, observation))
            self._keeping[migration_id] = task
            task.add_done_callback(lambda _: self._keeping.pop(migration_id))

    async def keep(self, migration_id: str, cluster: ClusterRecord, observation: Observation) -> None:
        """Note each node that is well and has no note, or one of a process before the restart that a roll of ours has proven.

        Where that cannot be done, the log says why.
        """
        try:
            async with asyncio.timeout(KEEP_SECONDS):
                known = await self._ports.ledger.noted(migration_id)
                takes = self._takes(cluster, observation, known)
                await asyncio.gather(*(self._put(migration_id, about, take) for about, take in takes.items()))
        except Exception as error:  # noqa: BLE001 - whatever it is: no migration may fail, or wait, for want of a note
            activity.logger.warning("machines are not noted: %r", error)

    def _takes(self, cluster: ClusterRecord, observation: Observation, known: Mapping[str, str | None]) -> dict[str, Take]:
        spec = cluster.spec
        wanted = [view for view in observation.nodes if _is_well(view) and _is_new(view, cluster, known)]
        takes: dict[str, Take] = {spec.node_name(view.id): partial(self._take, cluster, view) for view in wanted}
        if observation.unanswered:
            return takes
        for name, member in servers_of(spec).items():
            if name not in known:
                takes[name] = partial(self._take_server, member, name)
        if OURS not in known:
            takes[OURS] = _take_ours
        if ZOOKEEPER not in known and observation.zookeeper is not None:
            takes[ZOOKEEPER] = partial(self._take_metadata, cluster)
        return takes

    async def _put(self, migration_id: str, about: str, take: Take) -> None:
        if time.monotonic() - self._failed.get((migration_id, about), -REST_SECONDS) < REST_SECONDS:
            return
        try:
            await self._ports.ledger.put_note(migration_id, await take())
        except Exception as error:  # noqa: BLE001 - as above; the others are noted all the same
            self._failed[migration_id, about] = time.monotonic()
            activity.logger.warning("%s is not noted: %r", about, error)

    async def _take(self, cluster: ClusterRecord, view: NodeView) -> MachineNote:
        node, identity = cluster.spec.node(view.id), view.process.identity if view.process is not None else None
        at, told = datetime.now(UTC), await self._look(node, identity)
        if not told["has_process"]:
            raise CannotLook("its process has ended meanwhile, or may not be inspected")
        return MachineNote(about=cluster.spec.node_name(view.id), at=at, identity=identity, facts=told["facts"])

    async def _take_server(self, member: ZooKeeperMemberSpec, name: str) -> MachineNote:
        at, told = datetime.now(UTC), await self._look_at_server(member, name)
        return MachineNote(about=name, at=at, identity=None, facts=told["facts"])

    async def _take_metadata(self, cluster: ClusterRecord) -> MachineNote:
        at = datetime.now(UTC)
        async with session(self._ports.zookeepers, cluster) as tree:
            return MachineNote(about=ZOOKEEPER, at=at, identity=None, facts=await metadata_facts(tree))

    async def _look(self, node: NodeSpec, identity: str | None, noted: Facts = NOTHING_NOTED) -> dict[str, Any]:
        """`noted`: where that lay which is looked for also when no process runs."""
        named = [name for name in noted.get("named", {}) if not name.endswith(SIDES)]
        known = {"java": noted.get("java", {}).get(JAVA_HOME), "named": named}
        return await _told(self._ports.drivers.driver(node), request_of(node, identity) | known)

    async def _look_at_server(self, member: ZooKeeperMemberSpec, name: str, config: str | None = None) -> dict[str, Any]:
        data = data_of(member)
        data += [f"{folder}/version-2" for folder in data]
        request = {**NOWHERE, "port": host_and_port(name)[1], "data": data, "config": config}
        return await _told(self._members.machine(member), request)

    async def of_node(self, migration_id: str, cluster: ClusterRecord, view: NodeView) -> MachineChanges | None:
        """What has changed on its machine; `None` where that was never noted. Raises `CannotLook`, `Transient`."""
        before = await self._ports.ledger.note(migration_id, cluster.spec.node_name(view.id))
        if before is None:
            return None
        node = cluster.spec.node(view.id)
        identity = view.process.identity if view.process is not None and view.process.is_running else None
        told = await self._look(node, identity, before.facts)
        if identity is None and (known := before.facts.get("environment")):
            driver = self._ports.drivers.driver(node)
            told["facts"]["environment"] = await environment_of_next_start(driver, node, known)
        return _between(before, told)

    async def of_server(self, migration_id: str, member: ZooKeeperMemberSpec, name: str) -> MachineChanges | None:
        """The same of a server of the ensemble."""
        before = await self._ports.ledger.note(migration_id, name)
        if before is None:
            return None
        config = before.facts.get("setting", {}).get(SERVER_FILE)
        return _between(before, await self._look_at_server(member, name, config))

    async def of_ours(self, migration_id: str) -> MachineChanges | None:
        """The same of keeperless-activities, which is this process; nothing where another machine of it was noted."""
        before = await self._ports.ledger.note(migration_id, OURS)
        told = await look_here(before.facts) if before is not None else None
        if before is None or told is None:
            return None
        return _between(before, told) if is_same_place(before.facts, told["facts"]) else moved(before, told["facts"])

    async def of_metadata(self, migration_id: str, cluster: ClusterRecord) -> MachineChanges | None:
        """The same of what is set in ZooKeeper."""
        before = await self._ports.ledger.note(migration_id, ZOOKEEPER)
        if before is None:
            return None
        async with session(self._ports.zookeepers, cluster) as tree:
            return changes_between(before, await metadata_facts(tree), [], datetime.now(UTC))


def servers_of(spec: ClusterSpec) -> dict[str, ZooKeeperMemberSpec]:
    """By the names under which causes tell of them: those of which the specification says where they are."""
    found = {address: spec.ensemble.member(address) for address in servers_in(spec.ensemble.connect)}
    return {f"zookeeper {address}": member for address, member in found.items() if member is not None}


def data_of(member: ZooKeeperMemberSpec) -> list[str]:
    return [member.data_dir, *([member.data_log_dir] if member.data_log_dir else [])]


async def _told(machine: NodeDriver | MemberMachine, request: Mapping[str, object]) -> dict[str, Any]:
    answer = await run_program(machine, command_of("note_machine", request), NOTE_TIME)
    try:
        told: dict[str, Any] = json.loads(answer)
    except ValueError as error:
        raise CannotLook(f"what that machine says cannot be read: {error}") from error
    return told


def _between(before: MachineNote, told: Mapping[str, Any]) -> MachineChanges:
    return changes_between(before, told["facts"], kernel_lines(told), datetime.now(UTC))


def request_of(node: NodeSpec, identity: str | None) -> dict[str, object]:
    """Where it is started from, by its specification, and what it writes, or what we do."""
    home = node.kafka_home
    return {
        "identity": identity,
        "places": [str(Path(node.properties_file).parent), f"{home}/bin", f"{home}/libs", f"{home}/config"],
        "files": [word for word in node.driver.service.start_command if Path(word).is_absolute()],
        "data": [node.properties_file, *node.log_dirs],
        "settings": [node.properties_file],
        "named": [],
    }


async def _take_ours() -> MachineNote:
    at = datetime.now(UTC)
    return MachineNote(about=OURS, at=at, identity=None, facts=(await look_here())["facts"])


def _is_well(view: NodeView) -> bool:
    return view.process is not None and view.process.identity is not None and view.metrics is not None


def _is_new(view: NodeView, cluster: ClusterRecord, known: Mapping[str, str | None]) -> bool:
    """A restart by other hands is what a note is to show: only a roll of ours, once it is proven, replaces it."""
    name = cluster.spec.node_name(view.id)
    runs = view.process.identity if view.process is not None else None
    is_ours = view.mark is not None and view.mark.is_proven and view.mark.proven_identity == runs
    return name not in known or (known[name] != runs and is_ours)
