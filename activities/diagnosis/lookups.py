"""`Hinting`: what is looked up only for people, to tell why nothing happens: logs, assignments, addresses, machines.

Each in the time in which somebody waits for an answer: what does not come is named, and left out.
"""

import asyncio
from dataclasses import replace
from functools import partial

from activities.diagnosis.brokers import ask_brokers, is_kafka_mute
from activities.diagnosis.machines import MachineHints, MachinesSeen, holders, member_files
from activities.diagnosis.metadata import MetadataHints
from activities.diagnosis.nodes_to_ask import (
    MOST_LAGGING,
    Look,
    in_hand_ids,
    is_awaited,
    is_watchable,
    lagging_brokers,
    worth_reading,
)
from activities.last_words import LOG_LINES
from activities.observing.addresses import Given, Knocked, given_addresses, knock, knocked_at, names_of, written_addresses
from activities.observing.in_time import all_within, in_time
from activities.ports.kafka import Listeners, LookedUp
from activities.ports.kinds import Lookups
from activities.ports.nodes import ZooKeeperMembers
from activities.ports.ports import Ports
from activities.ports.zookeeper import ZooKeeperServers, session
from domain.cluster import NodeSpec, ZooKeeperMemberSpec, host_and_port, servers_in
from domain.diagnosis.causes.hints import Asked, Hints, Serving, settled
from domain.diagnosis.logs.layouts import in_kafkas_layout
from domain.diagnosis.machines.node_output import NodeOutput
from domain.diagnosis.machines.notes import OURS, ZOOKEEPER, MachineChanges
from domain.diagnosis.machines.vital_signs import PortHolder, VitalSigns
from domain.health.liveness import GONE, Liveness
from domain.observed.observation import Process
from domain.records import ClusterRecord

Addresses = dict[int, tuple[str, ...]]
"""By broker id, as `host:port`."""
Reached = tuple[Knocked, Addresses, dict[int, Asked]]
"""At which of their addresses brokers that run are not reached, or not always, which of them somebody has set in ZooKeeper, and
what each broker answers."""
Outputs = dict[int, NodeOutput]
ServerLogs = dict[str, tuple[str, ...]]
Holders = dict[str, tuple[PortHolder, ...]]
Said = tuple[Outputs, ServerLogs, Holders, frozenset[int]]
"""The logs, who has the ports that by these could not be bound, and who has begun meanwhile."""
Deaf = tuple[frozenset[str], Reached, MachinesSeen]
SeenThere = tuple[
    MachinesSeen,
    tuple[VitalSigns | None, MachineChanges | None],
    MachinesSeen,
    MachineChanges | None,
    Deaf,
    dict[str, LookedUp],
]
HINTS_SECONDS = 5.0
"""For all together, also where one follows another: with the look before, it is what a caller waits for a worker's answer."""
SERVER_LOG_BYTES = 256 * 1024
"""Of the log of a server of the ensemble: more than it prints from one start to its end."""


class Hinting:
    """Looks up whatever may explain what an observation shows."""

    def __init__(self, ports: Ports, servers: ZooKeeperServers, listeners: Listeners, members: ZooKeeperMembers) -> None:
        self._ports, self._servers, self._listeners, self._members = ports, servers, listeners, members
        self._machines = MachineHints(ports, members)

    async def ask_servers(self, cluster: ClusterRecord) -> dict[str, Serving]:
        """Every server of the ensemble by itself, by `host:port`."""
        addresses = servers_in(cluster.spec.ensemble.connect)
        answers = await asyncio.gather(*(self._servers.serving(*host_and_port(address)) for address in addresses))
        return settled(dict(zip(addresses, answers, strict=True)))

    async def hints(self, look: Look, of_kind: Lookups) -> Hints:
        """`of_kind`: what only the kind looks up."""
        cluster, observation = look.cluster, look.observation
        with all_within(HINTS_SECONDS):
            (outputs, server_logs, taken, begun), found, own, seen_there, server_files = await asyncio.gather(
                self._said(look),
                MetadataHints(self._ports, self._servers, cluster, look.case, look.servers, look.silent).found(),
                of_kind(cluster, look.case, self._ports, look.silent),
                self._seen_there(look),
                member_files(self._members, look.spec.ensemble, look.servers, look.silent),
            )
        seen, (own_signs, own_changes), of_servers, metadata, deaf, names = seen_there
        shut, (knocked, set_dynamically, asked), seen_of_deaf = deaf
        machines = seen | seen_of_deaf | of_servers
        besides = {about: changes for about, changes in ((OURS, own_changes), (ZOOKEEPER, metadata)) if changes}
        return replace(
            found,
            logs={i: output.lines for i, output in outputs.items() if not observation.node(i).is_unstarted},
            outputs={cluster.spec.node_name(node_id): output for node_id, output in outputs.items()},
            servers=look.servers,
            server_logs=server_logs,
            server_files=server_files,
            shut=shut,
            unresolved={name: found.why_not for name, found in names.items() if found.why_not is not None},
            numbers={name: found.numbers for name, found in names.items()},
            unheard=knocked.unheard,
            partly=knocked.partly,
            cut=knocked.cut,
            set_dynamically=set_dynamically,
            asked=asked,
            signs=machines.signs,
            places=machines.places,
            holders=taken,
            begun=begun,
            own_signs=own_signs,
            changes=machines.changes | besides,
            silent=tuple(look.silent),
            of_kind=own,
        )

    async def _seen_there(self, look: Look) -> SeenThere:
        """What machines say, what is set in ZooKeeper, who is not reached, and where names lead."""
        is_asked = is_awaited(look.case, look.in_hand)
        return await asyncio.gather(
            self._machines.of_nodes(*look.theirs, look.watched, look.down, look.silent),
            self._machines.of_ours(look.migration_id, look.observation, look.silent),
            self._machines.of_servers(*look.theirs, look.servers, look.silent, are_awaited=is_asked),
            self._set_in_zookeeper(look),
            self._deaf(look),
            names_of(look.spec, self._listeners),
        )

    async def _said(self, look: Look) -> Said:
        outputs, server_logs = await asyncio.gather(self._outputs(look), self._server_logs(look))
        logs = {node_id: output.lines for node_id, output in outputs.items()}
        unowned = [view.id for view in look.observation.nodes if view.is_unowned]
        spoken = (logs, look.servers, server_logs, look.silent)
        taken, processes = await asyncio.gather(
            holders(self._ports, self._members, look.spec, look.down, unowned, *spoken),
            asyncio.gather(*(self._process(look, look.spec.node(node_id)) for node_id in look.down)),
        )
        has_begun = {i: process is not None and process.is_running for i, process in zip(look.down, processes, strict=True)}
        return outputs, server_logs, taken, frozenset(node_id for node_id, begun in has_begun.items() if begun)

    async def _deaf(self, look: Look) -> Deaf:
        """Who is not reached at its addresses (`_shut`, `_addresses`), or gives no answer there; and what their machines say of
        them, unless that is looked up already."""
        shut, reached = await asyncio.gather(self._shut(look), self._addresses(look))
        knocked, _, asked = reached
        deaf = {*knocked.unheard, *knocked.partly, *(c.id for c in look.spec.controllers if f"{c.host}:{c.port}" in shut)}
        mute = [broker_id for broker_id, answer in asked.items() if answer.why][:MOST_LAGGING]
        watched = {*look.watched, *in_hand_ids(look.spec, look.in_hand)}
        unwatched = [i for i in {*deaf, *mute} if i not in watched and is_watchable(look.observation, i)]
        return shut, reached, await self._machines.of_nodes(*look.theirs, unwatched, (), look.silent)

    async def _set_in_zookeeper(self, look: Look) -> MachineChanges | None:
        """As long as Kafka reads it there, or writes it there."""
        if look.observation.zookeeper is None or not look.case.facts.uses_zookeeper:
            return None
        return await self._machines.of_metadata(look.migration_id, look.cluster, look.silent)

    async def _shut(self, look: Look) -> frozenset[str]:
        """Listeners that accept nobody: of controllers that run, and where Kafka is silent, of those that it is asked at."""
        running = {c.id for c in look.spec.controllers if look.case.liveness(c.id) is Liveness.SERVING}
        asked = [f"{c.host}:{c.port}" for c in look.spec.controllers if c.id in running]
        asked += list(look.spec.kafka.bootstrap_servers) if look.observation.kafka is None else []
        answers = await asyncio.gather(*(knock(self._listeners, address, look.silent) for address in asked))
        shut = {address for address, answers_us in zip(asked, answers, strict=True) if not answers_us}
        deaf = [c for c in look.spec.controllers if c.id in running and f"{c.host}:{c.port}" in shut]
        gone = await asyncio.gather(*(self._has_gone(look, controller) for controller in deaf))
        return frozenset(shut) - {f"{c.host}:{c.port}" for c, has_gone in zip(deaf, gone, strict=True) if has_gone}

    async def _has_gone(self, look: Look, node: NodeSpec) -> bool:
        """Whether its process has ended since it was looked at, as where a step of ours has just stopped it."""
        process = await self._process(look, node)
        return process is not None and not process.is_running

    async def _process(self, look: Look, node: NodeSpec) -> Process | None:
        ask = self._ports.drivers.driver(node).process
        return await in_time(f"process of {look.spec.node_name(node.id)}", ask, look.silent, None)

    async def _addresses(self, look: Look) -> Reached:
        """Where Kafka is silent or replicas lag."""
        kafka = look.observation.kafka
        if kafka is not None and not kafka.under_replicated:
            return Knocked(), {}, {}
        running = [b.id for b in look.spec.brokers if look.case.liveness(b.id) not in GONE]
        given = Given()
        if look.observation.zookeeper is not None:
            ask = partial(self._given, look.cluster, running)
            given = await in_time("addresses of brokers in ZooKeeper", ask, look.silent, given)
        addresses = {
            broker_id: given.registered.get(broker_id)
            or written_addresses(look.spec.node(broker_id), look.observation.node(broker_id))
            for broker_id in running
        }
        set_there = {broker_id: tuple(found.values()) for broker_id, found in given.set_dynamically.items()}
        lagging = lagging_brokers(look.spec, look.observation, frozenset())
        to_ask = {i: known for i, known in addresses.items() if i in lagging or is_kafka_mute(look.observation)}
        knocked, asked = await asyncio.gather(
            knocked_at(addresses, self._listeners, look.silent),
            ask_brokers(self._ports.kafka, look.cluster, to_ask, look.silent),
        )
        return knocked, set_there, asked

    async def _given(self, cluster: ClusterRecord, broker_ids: list[int]) -> Given:
        async with session(self._ports.zookeepers, cluster) as tree:
            return await given_addresses(tree, broker_ids)

    async def _outputs(self, look: Look) -> Outputs:
        async def read(node_id: int) -> NodeOutput:
            logs = await self._logs_of(look, node_id) if node_id in look.down else ()
            ask = partial(self._ports.drivers.driver(look.spec.node(node_id)).output, LOG_LINES, logs)
            output = await in_time(f"log of {look.spec.node_name(node_id)}", ask, look.silent, NodeOutput(()))
            return replace(output, lines=in_kafkas_layout(output.lines))

        wanted = list(worth_reading(look.case, look.in_hand))
        return dict(zip(wanted, await asyncio.gather(*map(read, wanted)), strict=True))

    async def _logs_of(self, look: Look, node_id: int) -> tuple[str, ...]:
        """What else it wrote into when it was noted."""
        name = look.spec.node_name(node_id)
        note = await in_time(f"logs of {name}", partial(self._ports.ledger.note, look.migration_id, name), look.silent, None)
        return tuple(note.facts.get("log", {})) if note is not None else ()

    async def _server_logs(self, look: Look) -> ServerLogs:
        """Of servers of the ensemble, as far as somebody has said where their logs are, or that was noted. Where all serve,
        nobody has to know of one that may not be read."""
        untold = [] if set(look.servers.values()) <= {Serving.YES} else look.silent
        known = {address: look.spec.ensemble.member(address) for address in look.servers}
        members = {address: member for address, member in known.items() if member is not None}

        async def read(address: str, member: ZooKeeperMemberSpec) -> tuple[str, ...]:
            path = member.output_file or await self._noted_log(look, address)
            if path is None:
                return ()
            ask = partial(self._members.machine(member).read_part, path, -SERVER_LOG_BYTES, SERVER_LOG_BYTES)
            content = await in_time(f"log of zookeeper {address}", ask, untold, None)
            return tuple(content.decode(errors="replace").splitlines()) if content is not None else ()

        found = await asyncio.gather(*(read(address, member) for address, member in members.items()))
        return {address: lines for address, lines in zip(members, found, strict=True) if lines}

    async def _noted_log(self, look: Look, address: str) -> str | None:
        about = f"zookeeper {address}"
        note = await in_time(f"log of {about}", partial(self._ports.ledger.note, look.migration_id, about), look.silent, None)
        return next(iter(note.facts.get("log", {})), None) if note is not None else None
