"""The fence: a controller whose storage has no `meta.properties` refuses to start, whoever starts it (KafkaRaftServer.scala).

    /data/meta.properties   →   /data/meta.properties.fenced-by-keeperless     in every log directory of the controller

Its other files stay as they are, so that the log can be read, and so that lifting the fence brings everything back. A directory
that was never formatted gets an empty fence: a look must see that this controller has been dealt with. Another node's directory
stays as it is, though the controller's file names it: it cannot start from there anyway.
"""

import asyncio
from datetime import timedelta

from activities.concurrently import all_of
from activities.node_files import FENCED_META, META, PRIVATE, look_at_disk, look_at_log_dir, storage_of
from activities.ports.nodes import FileContent, NodeDrivers
from activities.rolling.marking import Target
from domain.configuration.properties import ENCODING, parse
from domain.errors import Transient
from domain.observed.observation import LogDir, NodeView
from domain.records import ClusterRecord
from domain.zk_to_kraft.modes import ControllerMode, controller_mode
from domain.zk_to_kraft.node_config import has_migration_flag

KILL_DEADLINE = timedelta(seconds=10)
"""SIGKILL takes milliseconds. What outlives this hangs in the kernel."""

KILLS = 5
"""How often a process is killed that somebody else starts again: behind the fence none lives longer than its own start."""


async def members_of(cluster: ClusterRecord, drivers: NodeDrivers) -> list[Target]:
    """All controllers, also those kept from the quorum, but none that was never provisioned: its paths are not ours."""
    everyone = [Target(cluster, node, drivers.driver(node)) for node in cluster.spec.controllers]
    modes = await all_of(*map(_mode, everyone))
    return [member for member, mode in zip(everyone, modes, strict=True) if mode is not ControllerMode.ABSENT]


async def _mode(member: Target) -> ControllerMode:
    node = member.node
    process, disk = await asyncio.gather(
        member.driver.process(),
        look_at_disk(member.driver, node.properties_file, node.log_dirs, member.cluster.spec.cluster_id, node.id),
    )
    return controller_mode(NodeView(id=node.id, process=process, disk=disk))


async def fence(member: Target) -> None:
    """Nobody can start this controller any more. Fenced already is fine."""
    for path in await _own_dirs(member):
        names = await member.driver.list_dir(path) or ()
        if META in names:
            await member.driver.rename(f"{path}/{META}", f"{path}/{FENCED_META}")
        elif FENCED_META not in names:
            await member.driver.write_file(f"{path}/{FENCED_META}", await _empty(member))


async def unfence(member: Target) -> None:
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


async def is_fenced(member: Target) -> bool:
    """Whether every log directory is that is its own."""
    return all(log_dir.is_fenced for log_dir in await _look_at_own(member))


async def _own_dirs(member: Target) -> list[str]:
    return [log_dir.path for log_dir in await _look_at_own(member)]


async def _look_at_own(member: Target) -> list[LogDir]:
    """Its log directories, but for those that are another node's."""
    driver, node = member.driver, member.node
    paths = (await storage_of(driver, node)).log_dirs
    found = await all_of(*(look_at_log_dir(driver, path, member.cluster.spec.cluster_id, node.id) for path in paths))
    return [log_dir for log_dir in found if not log_dir.is_anothers]


async def _empty(member: Target) -> FileContent:
    """Owned by whoever owns the properties file."""
    file = await member.driver.read_file(member.node.properties_file)
    return FileContent(b"", PRIVATE, *((file.uid, file.gid) if file is not None else (-1, -1)))


async def kill(member: Target) -> None:
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


async def is_dead(member: Target) -> bool:
    return not (await member.driver.process()).is_running


async def may_start(member: Target) -> bool:
    """Whether its file has the migration flag: without it, becoming active makes the migration final."""
    file = await member.driver.read_file(member.node.properties_file)
    return file is not None and has_migration_flag(parse(file.content.decode(ENCODING)))


async def revive(member: Target) -> None:
    """Lift the fence and start. Running already is fine."""
    await unfence(member)
    await member.driver.start()
