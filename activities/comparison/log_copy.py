"""A copy of a controller's log of metadata on this machine, for whoever compares it. The controller runs on meanwhile.

Copied are the newest checkpoint that ends at the wanted offset or before it, and the segments after that. Kafka deletes the
oldest ones at any moment: then the listing is taken anew. What is written behind our back only makes the copy longer.
"""

import asyncio
import re
from pathlib import Path

from activities.ports.nodes import NodeDriver
from domain.errors import Transient

SEGMENT = re.compile(r"(\d{20})\.log")
CHECKPOINT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")

CHUNK = 4 * 1024 * 1024
LISTINGS = 5
"""How often the listing is taken anew before the log counts as one that does not hold still."""


async def copy_log(driver: NodeDriver, directory: str, cut: int | None, target: Path) -> int:
    """Copy what the image before `cut` and all later versions are read from, into a new private directory; without a cut all
    that there is. Gives its bytes.
    """
    for _ in range(LISTINGS):
        await asyncio.to_thread(target.mkdir, mode=0o700)
        copied = await _copy(driver, directory, cut, target)
        if copied is not None:
            return copied
        await asyncio.to_thread(_empty, target)
    raise Transient(f"{directory}: its files were deleted while they were copied, {LISTINGS} times in a row; try again")


async def _copy(driver: NodeDriver, directory: str, cut: int | None, target: Path) -> int | None:
    """`None`: a file was gone before it was read to its end."""
    names = await driver.list_dir(directory)
    if not names:
        raise Transient(f"{directory} has no log of metadata: does the controller keep it elsewhere?")
    total = 0
    for name in wanted(names, cut) if cut is not None else everything(names):
        size = await _copy_file(driver, f"{directory}/{name}", target / name)
        if size is None:
            return None
        total += size
    return total


def everything(names: tuple[str, ...]) -> tuple[str, ...]:
    """Checkpoints, then segments, the oldest first."""
    return (*_named(CHECKPOINT, names), *_named(SEGMENT, names))


def _named(pattern: re.Pattern[str], names: tuple[str, ...]) -> list[str]:
    return sorted(name for name in names if pattern.fullmatch(name))


def wanted(names: tuple[str, ...], cut: int) -> tuple[str, ...]:
    """The newest checkpoint that ends at `cut` or before it, then the segments that go on where it ends, the oldest first."""
    checkpoints = [name for name in _named(CHECKPOINT, names) if int(name[:20]) <= cut]
    begin = int(checkpoints[-1][:20]) if checkpoints else 0
    segments = _named(SEGMENT, names)
    if not segments or int(segments[0][:20]) > begin:
        raise Transient(
            f"the records that the image before offset {cut} is made of are no longer in the log: try again, further on"
        )
    followed = [int(name[:20]) for name in segments[1:]]
    needed = [name for name, after in zip(segments, [*followed, None], strict=True) if after is None or after > begin]
    return (*checkpoints[-1:], *needed)


async def _copy_file(driver: NodeDriver, path: str, target: Path) -> int | None:
    """In chunks, to the end that the file has when it is reached."""
    position = 0
    with target.open("wb") as file:
        while True:
            data = await driver.read_part(path, position, CHUNK)
            if data is None:
                return None
            await asyncio.to_thread(file.write, data)
            position += len(data)
            if len(data) < CHUNK:
                return position


def _empty(directory: Path) -> None:
    for path in directory.iterdir():
        path.unlink()
    directory.rmdir()
