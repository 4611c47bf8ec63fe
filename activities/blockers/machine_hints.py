"""`MachineHints`: what machines say of processes in trouble, and what has changed there.

One after the other: the programs that say what has changed would take from the CPUs whose lack is looked for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import or_

from activities.notes.machines import MachineNotes, data_of, servers_of
from activities.observing.in_time import in_time
from activities.observing.node_survey import start_place, watch_ourselves, watch_process, watch_server
from activities.ports.nodes import ZooKeeperMembers
from activities.ports.ports import Ports
from domain.cluster import ZooKeeperMemberSpec, host_and_port
from domain.diagnosis.causes.hints import Serving
from domain.diagnosis.machines.notes import MachineChanges
from domain.diagnosis.machines.start_place import StartPlace
from domain.diagnosis.machines.vital_signs import VitalSigns
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
            signs = await in_time("our own machine", watch_ourselves, silent, None, WATCH_SECONDS - LEFT_SECONDS)
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
                watch = partial(watch_server, machine, at, data_of(member), is_shut=refuses)
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

    async def _watch(self, cluster: ClusterRecord, observation: Observation, node_id: int) -> VitalSigns:
        node, process = cluster.spec.node(node_id), observation.node(node_id).process
        assert process is not None  # noqa: S101 - only who runs is watched
        pid = int(process.pid)
        return await watch_process(self._ports.drivers.driver(node), node, pid)


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
