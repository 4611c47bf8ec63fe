"""`Hinting`: what is looked up only for people, to tell why nothing happens: logs, assignments, addresses, machines.

Each in the time in which somebody waits for an answer: what does not come is named, and left out.
"""

import asyncio
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from functools import partial

from activities.addresses import Given, Knocked, given_addresses, knock, knocked_at, names_of, written_addresses
from activities.brokers_asked import ask_brokers, is_kafka_mute
from activities.in_time import all_within, in_time
from activities.machine_hints import MachineHints, MachinesSeen
from activities.member_files import member_files
from activities.metadata_hints import MetadataHints
from activities.observe import Ports
from activities.port_hints import holders
from activities.ports.kafka import Listeners
from activities.ports.nodes import ZooKeeperMembers
from activities.ports.zookeeper import ZooKeeperServers
from activities.refused_writes import LOG_LINES
from activities.sessions import session
from activities.thread_hints import thread_hints
from activities.worth_looking import (
    ACTIVE,
    MOST_LAGGING,
    in_hand_ids,
    is_awaited,
    is_watchable,
    lagging_brokers,
    worth_asking,
    worth_reading,
    worth_watching,
)
from domain.cluster import NodeSpec, ZooKeeperMemberSpec, host_and_port, servers_in
from domain.machine_notes import OURS, ZOOKEEPER, MachineChanges
from domain.node_output import NodeOutput
from domain.observation import Observation, Process
from domain.records import ClusterRecord
from domain.vital_signs import PortHolder
from domain.zk_to_kraft.causes import DOWN_MODES, Asked, Hints, Serving, settled
from domain.zk_to_kraft.log_layouts import in_kafkas_layout
from domain.zk_to_kraft.situation import QuorumState, Situation
from domain.zk_to_kraft.threads import Standing

Addresses = dict[int, tuple[str, ...]]
"""By broker id, as `host:port`."""

Reached = tuple[Knocked, Addresses, dict[int, Asked]]
"""At which of their addresses brokers that run are not reached, or not always, which of them somebody has set in ZooKeeper, and
what each broker answers."""

Outputs = dict[int, NodeOutput]
Threads = dict[str, Standing]
ServerLogs = dict[str, tuple[str, ...]]
Holders = dict[str, tuple[PortHolder, ...]]

HINTS_SECONDS = 5.0
"""For all together, also where one follows another: with the look before, it is what a caller waits for a worker's answer."""

SERVER_LOG_BYTES = 256 * 1024
"""Of the log of a server of the ensemble: more than it prints from one start to its end."""


class Hinting:
    """Looks up whatever may explain what an observation shows."""

    def __init__(self, ports: Ports, servers: ZooKeeperServers, listeners: Listeners, members: ZooKeeperMembers) -> None:
        self._ports, self._servers, self._listeners, self._members = ports, servers, listeners, members
        self._machines = MachineHints(ports, members)
        self._metadata = MetadataHints(ports, servers)

    async def ask_servers(self, cluster: ClusterRecord) -> dict[str, Serving]:
        """Every server of the ensemble by itself, by `host:port`."""
        addresses = servers_in(cluster.spec.zookeeper.connect)
        answers = await asyncio.gather(*(self._servers.serving(*host_and_port(address)) for address in addresses))
        return settled(dict(zip(addresses, answers, strict=True)))

    async def hints(
        self,
        migration_id: str,
        cluster: ClusterRecord,
        observation: Observation,
        situation: Situation,
        in_hand: Container[str],
        servers: Mapping[str, Serving],
    ) -> Hints:
        """`in_hand`: the nodes that a step of ours works on. `servers`: what `ask_servers` has said."""
        silent: list[str] = []
        with all_within(HINTS_SECONDS):
            watched = worth_watching(cluster.spec, observation, situation, in_hand)
            questioned = worth_asking(cluster.spec, situation, in_hand)
            down = [node.id for node in situation.nodes if node.mode in DOWN_MODES]
            unowned = [view.id for view in observation.nodes if view.is_unowned]
            theirs = (migration_id, cluster, observation)
            readable = worth_reading(cluster.spec, observation, situation, in_hand)
            logged = asyncio.gather(
                self._said(cluster, readable, down, unowned, servers, silent),
                self._metadata.of(cluster, observation, situation, servers, silent),
            )
            reached = asyncio.gather(
                self._machines.of_nodes(*theirs, watched, down, silent),
                self._machines.of_ours(migration_id, observation, silent),
                self._machines.of_servers(*theirs, servers, silent, are_awaited=is_awaited(cluster.spec, situation, in_hand)),
                self._set_in_zookeeper(migration_id, cluster, observation, situation, silent),
                self._deaf(*theirs, situation, {*watched, *in_hand_ids(cluster.spec, in_hand)}, questioned, silent),
                names_of(cluster.spec, self._listeners),
            )
            inside = asyncio.gather(
                member_files(self._members, cluster.spec.zookeeper, servers, silent),
                thread_hints(self._ports, cluster, observation, questioned, silent),
            )
            (said, found), seen_there, (server_files, threads) = await asyncio.gather(logged, reached, inside)
        outputs, server_logs, taken, begun = said
        seen, ours, of_servers, metadata, deaf, names = seen_there
        shut, (knocked, set_dynamically, asked), (seen_of_deaf, threads_of_deaf) = deaf
        machines, (own_signs, own_changes) = seen | seen_of_deaf | of_servers, ours
        besides = {about: changes for about, changes in ((OURS, own_changes), (ZOOKEEPER, metadata)) if changes}
        return replace(
            found,
            logs={node_id: output.lines for node_id, output in outputs.items()},
            outputs={cluster.spec.node_name(node_id): output for node_id, output in outputs.items()},
            servers=servers,
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
            threads=threads | threads_of_deaf,
            silent=tuple(silent),
        )

    async def _said(
        self,
        cluster: ClusterRecord,
        nodes: Iterable[int],
        down: Iterable[int],
        unowned: Iterable[int],
        servers: Mapping[str, Serving],
        silent: list[str],
    ) -> tuple[Outputs, ServerLogs, Holders, frozenset[int]]:
        """The logs, who has the ports that by these could not be bound, and who has begun meanwhile."""
        outputs, server_logs = await asyncio.gather(
            self._outputs(cluster, nodes, silent), self._server_logs(cluster, servers, silent)
        )
        logs, down = {node_id: output.lines for node_id, output in outputs.items()}, list(down)
        taken, processes = await asyncio.gather(
            holders(self._ports, self._members, cluster.spec, down, unowned, logs, servers, server_logs, silent),
            asyncio.gather(*(self._process(cluster, cluster.spec.node(node_id), silent) for node_id in down)),
        )
        begun = frozenset(i for i, process in zip(down, processes, strict=True) if process is not None and process.is_running)
        return outputs, server_logs, taken, begun

    async def _deaf(
        self,
        migration_id: str,
        cluster: ClusterRecord,
        observation: Observation,
        situation: Situation,
        watched: Container[int],
        questioned: Container[int],
        silent: list[str],
    ) -> tuple[frozenset[str], Reached, tuple[MachinesSeen, Threads]]:
        """Who is not reached at what is his (`_shut`, `_addresses`), or gives no answer there; what their machines say of them,
        and what their threads are at. Not of whom is `watched`, or `questioned`, already."""
        shut, reached = await asyncio.gather(
            self._shut(cluster, observation, situation, silent), self._addresses(cluster, observation, situation, silent)
        )
        knocked, _, asked = reached
        deaf = {*knocked.unheard, *knocked.partly, *(c.id for c in cluster.spec.controllers if f"{c.host}:{c.port}" in shut)}
        mute = [broker_id for broker_id, answer in asked.items() if answer.why][:MOST_LAGGING]
        unwatched = [i for i in {*deaf, *mute} if i not in watched and is_watchable(observation, i)]
        unasked = [i for i in mute if i not in questioned and is_watchable(observation, i)]
        seen, threads = await asyncio.gather(
            self._machines.of_nodes(migration_id, cluster, observation, unwatched, (), silent),
            thread_hints(self._ports, cluster, observation, unasked, silent),
        )
        return shut, reached, (seen, threads)

    async def _set_in_zookeeper(
        self, migration_id: str, cluster: ClusterRecord, observation: Observation, situation: Situation, silent: list[str]
    ) -> MachineChanges | None:
        """As long as Kafka reads it there, or writes it there."""
        if observation.zookeeper is None or situation.quorum is QuorumState.POST_MIGRATION:
            return None
        return await self._machines.of_metadata(migration_id, cluster, silent)

    async def _shut(
        self, cluster: ClusterRecord, observation: Observation, situation: Situation, silent: list[str]
    ) -> frozenset[str]:
        """Listeners that accept nobody: of controllers that run, and where Kafka is silent, of those that it is asked at."""
        running = {c.id for c in situation.controllers if c.mode in ACTIVE}
        asked = [f"{c.host}:{c.port}" for c in cluster.spec.controllers if c.id in running]
        asked += list(cluster.spec.kafka.bootstrap_servers) if observation.kafka is None else []
        answers = await asyncio.gather(*(knock(self._listeners, address, silent) for address in asked))
        shut = {address for address, answers_us in zip(asked, answers, strict=True) if not answers_us}
        deaf = [c for c in cluster.spec.controllers if c.id in running and f"{c.host}:{c.port}" in shut]
        gone = await asyncio.gather(*(self._has_gone(cluster, controller, silent) for controller in deaf))
        return frozenset(shut) - {f"{c.host}:{c.port}" for c, has_gone in zip(deaf, gone, strict=True) if has_gone}

    async def _has_gone(self, cluster: ClusterRecord, node: NodeSpec, silent: list[str]) -> bool:
        """Whether its process has ended since it was looked at, as where a step of ours has just stopped it."""
        process = await self._process(cluster, node, silent)
        return process is not None and not process.is_running

    async def _process(self, cluster: ClusterRecord, node: NodeSpec, silent: list[str]) -> Process | None:
        ask = self._ports.drivers.driver(node).process
        return await in_time(f"process of {cluster.spec.node_name(node.id)}", ask, silent, None)

    async def _addresses(
        self, cluster: ClusterRecord, observation: Observation, situation: Situation, silent: list[str]
    ) -> Reached:
        """Where Kafka is silent or replicas lag."""
        kafka = observation.kafka
        if kafka is not None and not kafka.under_replicated:
            return Knocked(), {}, {}
        running = [b.id for b in situation.brokers if b.mode not in DOWN_MODES]
        given = Given()
        if observation.zookeeper is not None:
            ask = partial(self._given, cluster, running)
            given = await in_time("addresses of brokers in ZooKeeper", ask, silent, given)
        addresses = {
            broker_id: given.registered.get(broker_id)
            or written_addresses(cluster.spec.node(broker_id), observation.node(broker_id))
            for broker_id in running
        }
        set_there = {broker_id: tuple(found.values()) for broker_id, found in given.set_dynamically.items()}
        lagging = lagging_brokers(cluster.spec, observation, frozenset())
        to_ask = {i: known for i, known in addresses.items() if i in lagging or is_kafka_mute(observation)}
        knocked, asked = await asyncio.gather(
            knocked_at(addresses, self._listeners, silent), ask_brokers(self._ports.kafka, cluster, to_ask, silent)
        )
        return knocked, set_there, asked

    async def _given(self, cluster: ClusterRecord, broker_ids: list[int]) -> Given:
        async with session(self._ports.zookeepers, cluster) as tree:
            return await given_addresses(tree, broker_ids)

    async def _outputs(self, cluster: ClusterRecord, nodes: Iterable[int], silent: list[str]) -> Outputs:
        async def read(node_id: int) -> NodeOutput:
            ask = partial(self._ports.drivers.driver(cluster.spec.node(node_id)).output, LOG_LINES)
            output = await in_time(f"log of {cluster.spec.node_name(node_id)}", ask, silent, NodeOutput(()))
            return replace(output, lines=in_kafkas_layout(output.lines))

        wanted = list(nodes)
        return dict(zip(wanted, await asyncio.gather(*map(read, wanted)), strict=True))

    async def _server_logs(self, cluster: ClusterRecord, servers: Mapping[str, Serving], silent: list[str]) -> ServerLogs:
        """Of servers of the ensemble, where somebody has said where their logs are. Where all serve, nobody has to know of one
        that may not be read."""
        untold = [] if set(servers.values()) <= {Serving.YES} else silent
        members = {address: cluster.spec.zookeeper.member(address) for address in servers}
        told = {a: (member, member.output_file) for a, member in members.items() if member and member.output_file}

        async def read(address: str, member: ZooKeeperMemberSpec, path: str) -> tuple[str, ...]:
            ask = partial(self._members.machine(member).read_part, path, -SERVER_LOG_BYTES, SERVER_LOG_BYTES)
            content = await in_time(f"log of zookeeper {address}", ask, untold, None)
            return tuple(content.decode(errors="replace").splitlines()) if content is not None else ()

        found = await asyncio.gather(*(read(address, member, path) for address, (member, path) in told.items()))
        return dict(zip(told, found, strict=True))
