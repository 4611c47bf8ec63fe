"""Notes of how machines and metadata are set, kept when a migration first finds a node well, and what has changed since.

For people only: nothing is decided by it, and nothing waits for it.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from temporalio import activity

from activities.metadata_notes import metadata_facts
from activities.node_survey import CannotLook, run_program
from activities.observe import Ports
from activities.on_node.note_machine import note
from activities.ports.nodes import MemberFiles, NodeDriver, ZooKeeperMembers
from activities.sessions import session
from domain.cluster import ClusterSpec, NodeSpec, ZooKeeperMemberSpec, host_and_port, servers_in
from domain.errors import KeeperlessError
from domain.machine_notes import OURS, ZOOKEEPER, MachineChanges, MachineNote, changes_between
from domain.observation import NodeView, Observation
from domain.records import ClusterRecord

PROGRAM = Path(__file__).parent / "on_node" / "note_machine.py"
NOTE_TIME = timedelta(seconds=10)
KEEP_SECONDS = 15.0
"""For all notes together, which a migration takes the time for before it goes on."""


class MachineNotes:
    """Keeps notes in the ledger, and holds machines against them."""

    def __init__(self, ports: Ports, members: ZooKeeperMembers) -> None:
        self._ports, self._members = ports, members

    async def keep(self, migration_id: str, cluster: ClusterRecord, observation: Observation) -> None:
        """Note each node that is well and has no note, or one of a process before the restart that a roll of ours has proven.

        Where that cannot be done, the log says why, and it is tried again with the next assessment.
        """
        try:
            async with asyncio.timeout(KEEP_SECONDS):
                await self._keep(migration_id, cluster, observation)
        except (TimeoutError, KeeperlessError) as error:
            activity.logger.warning("machines are not noted: %s", error or "no answer in time")

    async def _keep(self, migration_id: str, cluster: ClusterRecord, observation: Observation) -> None:
        known = await self._ports.ledger.noted(migration_id)
        wanted = [view for view in observation.nodes if _is_well(view) and _is_new(view, cluster, known)]
        takes = [self._take(cluster, view) for view in wanted]
        if not observation.unanswered:
            takes += [_take_ours()] if OURS not in known else []
            takes += [self._take_server(m, name) for name, m in servers_of(cluster.spec).items() if name not in known]
            takes += [self._take_metadata(cluster)] if ZOOKEEPER not in known and observation.zookeeper is not None else []
        await asyncio.gather(*(self._put(migration_id, take) for take in takes))

    async def _put(self, migration_id: str, take: Awaitable[MachineNote]) -> None:
        try:
            await self._ports.ledger.put_note(migration_id, await take)
        except (KeeperlessError, CannotLook) as error:
            activity.logger.warning("a machine is not noted: %s", error)

    async def _take_server(self, member: ZooKeeperMemberSpec, name: str) -> MachineNote:
        at = datetime.now(UTC)
        return MachineNote(about=name, at=at, identity=None, facts=(await self._look_at_server(member, name))["facts"])

    async def _take_metadata(self, cluster: ClusterRecord) -> MachineNote:
        at = datetime.now(UTC)
        async with session(self._ports.zookeepers, cluster) as tree:
            return MachineNote(about=ZOOKEEPER, at=at, identity=None, facts=await metadata_facts(tree))

    async def _take(self, cluster: ClusterRecord, view: NodeView) -> MachineNote:
        node, identity = cluster.spec.node(view.id), view.process.identity if view.process is not None else None
        at = datetime.now(UTC)
        told = await self._look(node, identity)
        return MachineNote(about=cluster.spec.node_name(view.id), at=at, identity=identity, facts=told["facts"])

    async def _look(self, node: NodeSpec, identity: str | None) -> dict[str, Any]:
        return await _told(self._ports.drivers.driver(node), request_of(node, identity))

    async def _look_at_server(self, member: ZooKeeperMemberSpec, name: str) -> dict[str, Any]:
        data = [member.data_dir, *([member.data_log_dir] if member.data_log_dir else [])]
        versions = [f"{folder}/version-2" for folder in data]
        request = {"pid": None, "port": host_and_port(name)[1], "places": [], "data": [*data, *versions], "own": []}
        return await _told(self._members.files(member), request)

    async def of_node(self, migration_id: str, cluster: ClusterRecord, view: NodeView) -> MachineChanges | None:
        """What has changed on its machine; `None` where that was never noted. Raises `CannotLook`, `Transient`."""
        before = await self._ports.ledger.note(migration_id, cluster.spec.node_name(view.id))
        if before is None:
            return None
        identity = view.process.identity if view.process is not None and view.process.is_running else None
        return _between(before, await self._look(cluster.spec.node(view.id), identity))

    async def of_server(self, migration_id: str, member: ZooKeeperMemberSpec, name: str) -> MachineChanges | None:
        """The same of a server of the ensemble."""
        before = await self._ports.ledger.note(migration_id, name)
        return _between(before, await self._look_at_server(member, name)) if before is not None else None

    async def of_ours(self, migration_id: str) -> MachineChanges | None:
        """The same of keeperless-activities, which is this process."""
        before = await self._ports.ledger.note(migration_id, OURS)
        return _between(before, await _look_at_ours()) if before is not None else None

    async def of_metadata(self, migration_id: str, cluster: ClusterRecord) -> MachineChanges | None:
        """The same of what is set in ZooKeeper."""
        before = await self._ports.ledger.note(migration_id, ZOOKEEPER)
        if before is None:
            return None
        async with session(self._ports.zookeepers, cluster) as tree:
            return changes_between(before, await metadata_facts(tree), [], datetime.now(UTC))


def servers_of(spec: ClusterSpec) -> dict[str, ZooKeeperMemberSpec]:
    """By the names under which causes tell of them: those of which the specification says where they are."""
    found = {address: spec.zookeeper.member(address) for address in servers_in(spec.zookeeper.connect)}
    return {f"zookeeper {address}": member for address, member in found.items() if member is not None}


async def _told(machine: NodeDriver | MemberFiles, request: Mapping[str, object]) -> dict[str, Any]:
    program = await asyncio.to_thread(PROGRAM.read_text, encoding="utf-8")
    answer = await run_program(machine, ["python3", "-c", program, json.dumps(request)], NOTE_TIME)
    told: dict[str, Any] = json.loads(answer)
    return told


def _between(before: MachineNote, told: Mapping[str, Any]) -> MachineChanges:
    kernel = [(float(seconds), str(line)) for seconds, line in told["kernel"]]
    return changes_between(before, told["facts"], kernel, datetime.now(UTC))


def request_of(node: NodeSpec, identity: str | None) -> dict[str, object]:
    """Where it is started from, by its specification, and what it writes."""
    folders = {str(Path(word).parent) for word in node.driver.service.start_command if Path(word).is_absolute()}
    home = node.kafka_home
    installed = [home, f"{home}/bin", f"{home}/libs", f"{home}/config"]
    return {
        "pid": int(identity.partition("@")[0]) if identity is not None else None,
        "places": [str(Path(node.properties_file).parent), *installed, *sorted(folders)],
        "data": node.log_dirs,
        "own": [node.properties_file],
    }


async def _take_ours() -> MachineNote:
    at = datetime.now(UTC)
    return MachineNote(about=OURS, at=at, identity=None, facts=(await _look_at_ours())["facts"])


async def _look_at_ours() -> dict[str, Any]:
    places = sorted({str(Path.cwd()), str(Path(sys.executable).parent)})
    return await asyncio.to_thread(partial(note, {"pid": os.getpid(), "places": places, "data": [], "own": []}))


def _is_well(view: NodeView) -> bool:
    return view.process is not None and view.process.identity is not None and view.metrics is not None


def _is_new(view: NodeView, cluster: ClusterRecord, known: Mapping[str, str | None]) -> bool:
    """A restart by other hands is what a note is to show: only a roll of ours, once it is proven, replaces it."""
    name = cluster.spec.node_name(view.id)
    runs = view.process.identity if view.process is not None else None
    is_ours = view.mark is not None and view.mark.is_proven and view.mark.proven_identity == runs
    return name not in known or (known[name] != runs and is_ours)
