"""The fence: a controller whose storage has no `meta.properties` refuses to start, whoever starts it (KafkaRaftServer.scala).

    /data/meta.properties   →   /data/meta.properties.fenced-by-keeperless     in every log directory of the controller

Its other files stay as they are, so that the log can be read, and so that lifting the fence brings everything back. A directory
that was never formatted gets an empty fence: a look must see that this controller has been dealt with. Another node's directory
stays as it is, though the controller's file names it: it cannot start from there anyway.
"""

import asyncio
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from activities.node_files import FENCED_META, META, PRIVATE, look_at_disk, look_at_log_dir, storage_of
from activities.ports.nodes import FileContent, NodeDriver, NodeDrivers
from domain.cluster import ControllerSpec
from domain.configuration.properties import ENCODING, parse
from domain.errors import Transient
from domain.observed.observation import LogDir, NodeView
from domain.records import ClusterRecord
from domain.zk_to_kraft.modes import ControllerMode, controller_mode
from domain.zk_to_kraft.node_config import has_migration_flag

T = TypeVar("T")

KILL_DEADLINE = timedelta(seconds=10)
"""SIGKILL takes milliseconds. What outlives this hangs in the kernel."""

KILLS = 5
"""How often a process is killed that somebody else starts again: behind the fence none lives longer than its own start."""


@dataclass(frozen=True)
class Member:
    """A controller that exists: of the quorum, or kept from it."""

    node: ControllerSpec
    name: str
    driver: NodeDriver
    cluster_id: str


async def each(calls: Iterable[Awaitable[T]]) -> list[T]:
    """All at once, and all to their end: the first error is raised when nothing goes on any more."""
    answers = await asyncio.gather(*calls, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return [answer for answer in answers if not isinstance(answer, BaseException)]


async def members_of(cluster: ClusterRecord, drivers: NodeDrivers) -> list[Member]:
    """All controllers but those that were never provisioned: what lies at their paths is not for us to touch."""
    everyone = [member_of(cluster, c, drivers) for c in cluster.spec.controllers]
    modes = await each(_mode(member, cluster) for member in everyone)
    return [member for member, mode in zip(everyone, modes, strict=True) if mode is not ControllerMode.ABSENT]


def member_of(cluster: ClusterRecord, node: ControllerSpec, drivers: NodeDrivers) -> Member:
    return Member(node, cluster.spec.node_name(node.id), drivers.driver(node), cluster.spec.cluster_id)


async def _mode(member: Member, cluster: ClusterRecord) -> ControllerMode:
    node = member.node
    process, disk = await asyncio.gather(
        member.driver.process(),
        look_at_disk(member.driver, node.properties_file, node.log_dirs, cluster.spec.cluster_id, node.id),
    )
    return controller_mode(NodeView(id=node.id, process=process, disk=disk))


async def fence(member: Member) -> None:
    """Nobody can start this controller any more. Fenced already is fine."""
    for path in await _own_dirs(member):
        names = await member.driver.list_dir(path) or ()
        if META in names:
            await member.driver.rename(f"{path}/{META}", f"{path}/{FENCED_META}")
        elif FENCED_META not in names:
            await member.driver.write_file(f"{path}/{FENCED_META}", await _empty(member))


async def unfence(member: Member) -> None:
    """Undo `fence`. Not fenced is fine."""
    for path in await _own_dirs(member):
        names = await member.driver.list_dir(path) or ()
        if FENCED_META not in names:
            continue
        kept = await member.driver.read_file(f"{path}/{FENCED_META}")
        if META in names or kept is None or not kept.content:
            await member.driver.remove_file(f"{path}/{FENCED_META}")
        else:
            await member.driver.rename(f"{path}/{FENCED_META}", f"{path}/{META}")


async def is_fenced(member: Member) -> bool:
    """Whether every log directory is that is its own."""
    return all(log_dir.is_fenced for log_dir in await _look_at_own(member))


async def _own_dirs(member: Member) -> list[str]:
    return [log_dir.path for log_dir in await _look_at_own(member)]


async def _look_at_own(member: Member) -> list[LogDir]:
    """Its log directories, but for those that are another node's."""
    driver, node = member.driver, member.node
    paths = (await storage_of(driver, node)).log_dirs
    found = await each(look_at_log_dir(driver, path, member.cluster_id, node.id) for path in paths)
    return [log_dir for log_dir in found if not log_dir.is_anothers]


async def _empty(member: Member) -> FileContent:
    """Owned by whoever owns the properties file."""
    file = await member.driver.read_file(member.node.properties_file)
    return FileContent(b"", PRIVATE, *((file.uid, file.gid) if file is not None else (-1, -1)))


async def kill(member: Member) -> None:
    """Dead, and still fenced: a start under way may have written `meta.properties` anew, so the fence is looked at last."""
    for _ in range(KILLS):
        process = await member.driver.process()
        if process.identity is not None:
            await member.driver.kill(process.identity, KILL_DEADLINE)
        elif await is_fenced(member):
            return
        else:
            await fence(member)
    raise Transient(f"{member.name}: something restarts it again and again. Stop its supervisor.")


async def is_dead(member: Member) -> bool:
    return not (await member.driver.process()).is_running


async def may_start(member: Member) -> bool:
    """Whether its file has the migration flag: without it, becoming active makes the migration final."""
    file = await member.driver.read_file(member.node.properties_file)
    return file is not None and has_migration_flag(parse(file.content.decode(ENCODING)))


async def revive(member: Member) -> None:
    """Lift the fence and start. Running already is fine."""
    await unfence(member)
    await member.driver.start()
