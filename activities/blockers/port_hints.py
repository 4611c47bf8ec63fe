"""Who has the ports that nodes and members which are down could not bind, by what their own logs say."""

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial
from urllib.parse import urlsplit

from activities.observing.in_time import in_time
from activities.observing.node_survey import port_holders
from activities.ports.nodes import MemberMachine, NodeDriver, ZooKeeperMembers
from activities.ports.ports import Ports
from domain.cluster import ClusterSpec
from domain.diagnosis.causes.hints import Serving
from domain.diagnosis.machines.vital_signs import PortHolder
from domain.zk_to_kraft.causes.taken_ports import ports_not_bound

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
        member = spec.zookeeper.member(address)
        if member is not None and servers.get(address) is Serving.REFUSED and (taken := ports_not_bound(lines)):
            wanted[f"zookeeper {address}"] = members.machine(member), taken
    looks = (
        in_time(f"who has the ports of {name}", partial(port_holders, machine, taken), silent, NOBODY)
        for name, (machine, taken) in wanted.items()
    )
    return dict(zip(wanted, await asyncio.gather(*looks), strict=True))
