"""A copy of a living ZooKeeper server's files: what a throw-away server needs to have the tree as it was a moment ago.

Snapshots first, then logs: a log that is copied later has all that happened while a snapshot was written, and a server replays
it. A snapshot that is being written is torn in the copy, so some are taken: a server passes over a torn one. Files are read
from their beginning to the end that they have when it is reached, and are sparse in the copy, as logs are reserved ahead.
"""

import asyncio
import re
from pathlib import Path, PurePosixPath

from activities.ports.nodes import MemberMachine
from domain.cluster import ZooKeeperMemberSpec
from domain.errors import Permanent, Transient

CHUNK = 4 * 1024 * 1024
ZEROS = bytes(64 * 1024)
"""As many as these are not written, but left out as a hole."""
LISTINGS = 5
SNAPSHOTS = 3
"""The newest ones, any of which may be torn, or from before a purge."""
SNAPSHOT = re.compile(r"snapshot\.([0-9a-f]+)(\.(gz|snappy))?")
LOG = re.compile(r"log\.([0-9a-f]+)")
FOLDER = "version-2"


async def copy_member(files: MemberMachine, member: ZooKeeperMemberSpec, target: Path) -> int:
    """Copy into `target`, which is new and private; gives the bytes that were read. `Permanent`: it has none."""
    for _ in range(LISTINGS):
        await asyncio.to_thread(_empty, target)
        copied = await _copy(files, member, target)
        if copied is not None:
            return copied
    raise Transient(
        f"{member.data_dir} on {member.host}: its files were purged while they were copied, {LISTINGS} times in a row"
    )


async def _copy(files: MemberMachine, member: ZooKeeperMemberSpec, target: Path) -> int | None:
    """`None`: a file was gone before it was read to its end."""
    data = str(PurePosixPath(member.data_dir) / FOLDER)
    logs = str(PurePosixPath(member.data_log_dir or member.data_dir) / FOLDER)
    snapshots = newest_snapshots(await _listed(files, data, member))
    total = 0
    for name in snapshots:
        size = await _copy_file(files, f"{data}/{name}", target / name)
        if size is None:
            return None
        total += size
    for name in needed_logs(await _listed(files, logs, member), snapshots):
        size = await _copy_file(files, f"{logs}/{name}", target / name)
        if size is None:
            return None
        total += size
    return total


async def _listed(files: MemberMachine, folder: str, member: ZooKeeperMemberSpec) -> tuple[str, ...]:
    names = await files.list_dir(folder)
    if not names:
        raise Permanent(f"{folder} on {member.host} has no files of ZooKeeper: correct data_dir or data_log_dir of this member")
    return names


def newest_snapshots(names: tuple[str, ...]) -> tuple[str, ...]:
    """The oldest of them first."""
    found = sorted((name for name in names if SNAPSHOT.fullmatch(name)), key=zxid_of)
    return tuple(found[-SNAPSHOTS:])


def needed_logs(names: tuple[str, ...], snapshots: tuple[str, ...]) -> tuple[str, ...]:
    """From the one that has what follows the oldest of these snapshots: a log is named by its first transaction."""
    logs = sorted((name for name in names if LOG.fullmatch(name)), key=zxid_of)
    if not snapshots:
        return tuple(logs)
    oldest = zxid_of(snapshots[0])
    before = [name for name in logs if zxid_of(name) <= oldest]
    return (*before[-1:], *(name for name in logs if zxid_of(name) > oldest))


def zxid_of(name: str) -> int:
    return int(name.split(".")[1], 16)


async def _copy_file(files: MemberMachine, path: str, target: Path) -> int | None:
    position = 0
    while True:
        data = await files.read_part(path, position, CHUNK)
        if data is None:
            return None
        await asyncio.to_thread(_write, target, position, data)
        position += len(data)
        if len(data) < CHUNK:
            return position


def _write(target: Path, position: int, data: bytes) -> None:
    """At that place; blocks of zeros become a hole."""
    with target.open("r+b" if target.exists() else "xb") as file:
        for start in range(0, len(data), len(ZEROS)):
            block = data[start : start + len(ZEROS)]
            if block != ZEROS[: len(block)]:
                file.seek(position + start)
                file.write(block)
        file.truncate(position + len(data))


def _empty(target: Path) -> None:
    target.mkdir(mode=0o700, exist_ok=True)
    for path in target.iterdir():
        path.unlink()
