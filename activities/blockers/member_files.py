"""What people are told of the data directories of ZooKeeper's servers: whether there is any data in them, and their myid."""

import asyncio
from collections.abc import Mapping
from functools import partial

from activities.observing.in_time import in_time
from activities.observing.member_copy import FOLDER, SNAPSHOT
from activities.ports.nodes import ZooKeeperMembers
from domain.cluster import ZooKeeperMemberSpec, ZooKeeperSpec
from domain.zk_to_kraft.causes.hints import MemberFiles, Serving

MOST_OF_MYID = 64
NOTHING_KNOWN = MemberFiles()


async def member_files(
    members: ZooKeeperMembers, spec: ZooKeeperSpec, servers: Mapping[str, Serving], silent: list[str]
) -> dict[str, MemberFiles]:
    """By `host:port`, of all members whose place is known. Where all serve, nobody has to know of what may not be read."""
    are_well = set(servers.values()) <= {Serving.YES}
    known = {address: member for address in servers if (member := spec.member(address)) is not None}
    looks = (
        in_time(
            f"data directory of zookeeper {address}", partial(_look, members, member), [] if are_well else silent, NOTHING_KNOWN
        )
        for address, member in known.items()
    )
    return dict(zip(known, await asyncio.gather(*looks), strict=True))


async def _look(members: ZooKeeperMembers, member: ZooKeeperMemberSpec) -> MemberFiles:
    machine = members.machine(member)
    number, around, names = await asyncio.gather(
        machine.read_part(f"{member.data_dir}/myid", 0, MOST_OF_MYID),
        machine.list_dir(member.data_dir),
        machine.list_dir(f"{member.data_dir}/{FOLDER}"),
    )
    return MemberFiles(
        myid=number.decode(errors="replace").strip() if number is not None else None,
        is_there=around is not None,
        has_snapshot=any(SNAPSHOT.fullmatch(name) for name in names or ()),
    )
