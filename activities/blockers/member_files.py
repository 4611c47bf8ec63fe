"""What people are told of the data directories of ZooKeeper's servers: whether there is any data in them, their myid, and
whether more can be written there."""

import asyncio
import json
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from activities.notes.machines import data_of
from activities.observing.in_time import in_time
from activities.observing.member_copy import FOLDER, SNAPSHOT
from activities.observing.node_survey import CannotLook, run_program
from activities.on_node import command_of
from activities.ports.nodes import MemberMachine, ZooKeeperMembers
from domain.cluster import ZooKeeperMemberSpec, ZooKeeperSpec
from domain.diagnosis.causes.hints import MemberFiles, Serving
from domain.errors import KeeperlessError

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
            partial(_look, members, member, is_well=servers[address] is Serving.YES),
            [] if are_well else silent,
            NOTHING_KNOWN,
        )
        for address, member in known.items()
    )
    return dict(zip(known, await asyncio.gather(*looks), strict=True))


async def _look(members: ZooKeeperMembers, member: ZooKeeperMemberSpec, *, is_well: bool) -> MemberFiles:
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
