"""What machines say of nodes and of ZooKeeper's servers that are in trouble: signs, changes, threads, ports, directories."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial, reduce
from operator import or_
from typing import Any
from urllib.parse import urlsplit

from activities.diagnosis.machine_notes import MachineNotes, data_of, servers_of
from activities.observing.in_time import in_time
from activities.observing.member_copy import FOLDER, SNAPSHOT
from activities.observing.node_survey import (
    CannotLook,
    run_program,
    start_place,
)
from activities.on_node import command_of
from activities.ports.nodes import MemberMachine, NodeDriver, ZooKeeperMembers
from activities.ports.ports import Ports
from domain.cluster import ClusterSpec, ZooKeeperMemberSpec, ZooKeeperSpec, host_and_port
from domain.diagnosis.causes.hints import MemberFiles, Serving
from domain.diagnosis.causes.with_signs import ports_not_bound
from domain.diagnosis.machines.notes import MachineChanges
from domain.diagnosis.machines.start import StartPlace
from domain.diagnosis.machines.vital_signs import PortHolder, VitalSigns
from domain.errors import KeeperlessError
from domain.observed.observation import Observation
from domain.records import ClusterRecord

WATCH_SECONDS = 6.0
"""For both together: the first watches for a second of it."""
LEFT_SECONDS = 1.5
"""Of these, at the least, for the second."""
UNHEARD = (
    "what the kernel of the machine of {} has logged: only root may read it there (kernel.dmesg_restrict), and users in "
    "group adm or systemd-journal"
)


@dataclass(frozen=True)
class MachinesSeen:
    """`signs`: by name, of processes that run. `places`: by name, of what is down. `changes`: by name, of both."""

    signs: dict[str, VitalSigns] = field(default_factory=dict)
    places: dict[str, StartPlace] = field(default_factory=dict)
    changes: dict[str, MachineChanges] = field(default_factory=dict)

    def __or__(self, other: "MachinesSeen") -> "MachinesSeen":
        return MachinesSeen(self.signs | other.signs, self.places | other.places, self.changes | other.changes)


class MachineHints:
    """Asks the machines of one migration's nodes."""

    def __init__(self, ports: Ports, members: ZooKeeperMembers) -> None:
        self._ports, self._members, self._notes = ports, members, MachineNotes(ports, members)

    async def of_nodes(
        self,
        migration_id: str,
        cluster: ClusterRecord,
        observation: Observation,
        running: Iterable[int],
        down: Iterable[int],
        silent: list[str],
    ) -> MachinesSeen:
        """`running`: whose process is known. What does not answer is named in `silent`."""

        async def look(node_id: int, *, runs: bool) -> MachinesSeen:
            name, view = cluster.spec.node_name(node_id), observation.node(node_id)
            changed = partial(self._notes.of_node, migration_id, cluster, view)
            if runs:
                return await _look(name, partial(self._watch, cluster, observation, node_id), changed, silent)
            seen, place = await asyncio.gather(_look(name, None, changed, silent), self._place(cluster, node_id, silent))
            silent.extend(UNHEARD.format(name) for changes in seen.changes.values() if changes.is_unheard)
            return replace(seen, places={name: place} if place else {})

        ids = list(dict.fromkeys(running))
        looks = [look(i, runs=True) for i in ids] + [look(i, runs=False) for i in dict.fromkeys(down) if i not in ids]
        return _all_of(await asyncio.gather(*looks))

    async def of_ours(
        self, migration_id: str, observation: Observation, silent: list[str]
    ) -> tuple[VitalSigns | None, MachineChanges | None]:
        """The same of this process: its signs where something did not answer it."""
        until, signs = _now() + WATCH_SECONDS, None
        if observation.unanswered:
            ask = self._ports.doctor.watch_ourselves
            signs = await in_time("our own machine", ask, silent, None, WATCH_SECONDS - LEFT_SECONDS)
        changed = partial(self._notes.of_ours, migration_id)
        return signs, await in_time("what has changed on our own machine", changed, silent, None, until - _now())

    async def of_servers(
        self,
        migration_id: str,
        cluster: ClusterRecord,
        observation: Observation,
        servers: Mapping[str, Serving],
        silent: list[str],
        *,
        are_awaited: bool,
    ) -> MachinesSeen:
        """The same of servers of the ensemble that do not serve, and of all, where nobody gets a session. `are_awaited`: what
        has changed at all of them as well, for by that a broker may not come up."""
        is_shut = observation.zookeeper is None
        known = servers_of(cluster.spec)
        wanted = {
            name: member
            for name, member in known.items()
            if is_shut or are_awaited or servers.get(name.split()[1]) is not Serving.YES
        }

        async def look(name: str, member: ZooKeeperMemberSpec) -> MachinesSeen:
            address, watch = name.split()[1], None
            is_well = servers.get(address) is Serving.YES and not is_shut
            if servers.get(address) is not Serving.UNREACHED and not is_well:
                refuses = servers.get(address) is Serving.REFUSED
                at, machine = host_and_port(address)[1], self._members.machine(member)
                watch = partial(self._ports.doctor.watch_server, machine, at, data_of(member), is_shut=refuses)
            return await _look(name, watch, partial(self._notes.of_server, migration_id, member, name), silent)

        return _all_of(await asyncio.gather(*(look(name, member) for name, member in wanted.items())))

    async def of_metadata(self, migration_id: str, cluster: ClusterRecord, silent: list[str]) -> MachineChanges | None:
        """What has changed of what is set in ZooKeeper."""
        changed = partial(self._notes.of_metadata, migration_id, cluster)
        return await in_time("what has changed in ZooKeeper", changed, silent, None)

    async def _place(self, cluster: ClusterRecord, node_id: int, silent: list[str]) -> StartPlace | None:
        node, name = cluster.spec.node(node_id), cluster.spec.node_name(node_id)
        ask = partial(start_place, self._ports.drivers.driver(node), node)
        return await in_time(f"in what {name} would be started", ask, silent, None)

    async def _watch(self, cluster: ClusterRecord, observation: Observation, node_id: int) -> VitalSigns | None:
        node, process = cluster.spec.node(node_id), observation.node(node_id).process
        assert process is not None  # noqa: S101 - only who runs is watched
        pid = int(process.pid)
        return await self._ports.doctor.watch(self._ports.drivers.driver(node), node, pid)


async def _look(
    name: str,
    watch: Callable[[], Awaitable[VitalSigns | None]] | None,
    changed: Callable[[], Awaitable[MachineChanges | None]],
    silent: list[str],
) -> MachinesSeen:
    until, signs = _now() + WATCH_SECONDS, None
    if watch is not None:
        signs = await in_time(f"machine of {name}", watch, silent, None, WATCH_SECONDS - LEFT_SECONDS)
    changes = await in_time(f"what has changed on the machine of {name}", changed, silent, None, until - _now())
    return MachinesSeen(signs={name: signs} if signs else {}, changes={name: changes} if changes is not None else {})


def _all_of(found: Iterable[MachinesSeen]) -> MachinesSeen:
    return reduce(or_, found, MachinesSeen())


def _now() -> float:
    return asyncio.get_running_loop().time()


Wanted = dict[str, tuple[NodeDriver | MemberMachine, tuple[int, ...]]]
NOBODY: tuple[PortHolder, ...] = ()


async def holders(
    ports: Ports,
    members: ZooKeeperMembers,
    spec: ClusterSpec,
    down: Iterable[int],
    unowned: Iterable[int],
    logs: Mapping[int, tuple[str, ...]],
    servers: Mapping[str, Serving],
    server_logs: Mapping[str, tuple[str, ...]],
    silent: list[str],
) -> dict[str, tuple[PortHolder, ...]]:
    """By name, of nodes that are `down`, and of members that accept no connection; and who answers for those that nobody owns
    (`unowned`) at their metrics endpoints."""
    wanted: Wanted = {}
    for node_id in unowned:
        node = spec.node(node_id)
        if (port := urlsplit(node.metrics.url).port) is not None:
            wanted[spec.node_name(node_id)] = ports.drivers.driver(node), (port,)
    for node_id in down:
        if taken := ports_not_bound(logs.get(node_id, ())):
            wanted[spec.node_name(node_id)] = ports.drivers.driver(spec.node(node_id)), taken
    for address, lines in server_logs.items():
        member = spec.ensemble.member(address)
        if member is not None and servers.get(address) is Serving.REFUSED and (taken := ports_not_bound(lines)):
            wanted[f"zookeeper {address}"] = members.machine(member), taken
    looks = (
        in_time(f"who has the ports of {name}", partial(ports.doctor.holders, machine, taken), silent, NOBODY)
        for name, (machine, taken) in wanted.items()
    )
    return dict(zip(wanted, await asyncio.gather(*looks), strict=True))


MOST_OF_MYID = 64
VOLUMES_TIME = timedelta(seconds=2)
NOTHING_KNOWN = MemberFiles()


async def member_files(
    members: ZooKeeperMembers, spec: ZooKeeperSpec, servers: Mapping[str, Serving], silent: list[str]
) -> dict[str, MemberFiles]:
    """By `host:port`, of all members whose place is known. Where all serve, nobody has to know of what may not be read."""
    are_well = set(servers.values()) <= {Serving.YES}
    known = {address: member for address in servers if (member := spec.member(address)) is not None}
    looks = (
        in_time(
            f"data directory of zookeeper {address}",
            partial(_look_into, members, member, is_well=servers[address] is Serving.YES),
            [] if are_well else silent,
            NOTHING_KNOWN,
        )
        for address, member in known.items()
    )
    return dict(zip(known, await asyncio.gather(*looks), strict=True))


async def _look_into(members: ZooKeeperMembers, member: ZooKeeperMemberSpec, *, is_well: bool) -> MemberFiles:
    machine = members.machine(member)
    number, around, names = await asyncio.gather(
        machine.read_part(f"{member.data_dir}/myid", 0, MOST_OF_MYID),
        machine.list_dir(member.data_dir),
        machine.list_dir(f"{member.data_dir}/{FOLDER}"),
    )
    told = await _unwritable(machine, data_of(member)) if around is not None and not is_well else {}
    return MemberFiles(
        myid=number.decode(errors="replace").strip() if number is not None else None,
        is_there=around is not None,
        has_snapshot=any(SNAPSHOT.fullmatch(name) for name in names or ()),
        full=tuple(told.get("full", ())),
        read_only=tuple(told.get("read_only", ())),
        deleted=tuple((holder, size) for holder, size in told.get("deleted", ())),
    )


async def _unwritable(machine: MemberMachine, places: list[str]) -> dict[str, Any]:
    """What `activities.on_node.look_at_volumes` says of these, as far as that is told."""
    try:
        told: dict[str, Any] = json.loads(
            await run_program(machine, command_of("look_at_volumes", {"places": places}), VOLUMES_TIME)
        )
    except (CannotLook, KeeperlessError):
        return {}
    return told
