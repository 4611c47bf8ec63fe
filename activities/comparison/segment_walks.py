"""Has a broker's machine look at its own segments: the program is sent there, run once, and removed.

    <directory of the properties file>/.keeperless/walk-<id>/{walk_segments.py,request.json}

Nothing that holds messages leaves the machine: only what headers say. A machine that cannot run it (it has no python3, or may
not read the log directories) is told from one that does not answer: the first stays so, the second is asked again.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import PurePosixPath

from activities.on_node import BARE, program
from activities.ports.nodes import FileContent, NodeDriver
from domain.cluster import NodeSpec
from domain.drift.messages import ReplicaLog
from domain.errors import Permanent
from domain.offsets import PartitionOffsets

NAME = "walk_segments.py"
PROGRAM = program("walk_segments").encode()
PRIVATE = 0o600
GRACE = timedelta(minutes=1)
"""What the program may take beyond its own limit before it is ended."""
MIB = 1024 * 1024


@dataclass(frozen=True)
class WalkLimits:
    """What one look may cost a broker's machine.

    `recent_mib`: of each log, from its end. `mib_per_second`: read from disk or cache. `verify_seconds`: of the processor, for
    the checksums of all logs together; what does not fit is told as not verified. `seconds`: in all; what does not fit is told
    as not walked.
    """

    recent_mib: float = 16.0
    mib_per_second: float = 32.0
    verify_seconds: float = 120.0
    seconds: float = 600.0


class CannotWalk(Exception):
    """This machine cannot look at its segments, and why."""


async def walk(
    driver: NodeDriver, node: NodeSpec, logs: Mapping[str, Mapping[str, object]], limits: WalkLimits, walk_id: str
) -> str:
    """The program's answer. `walk_id`: whoever uses it again removes what an attempt that died has left."""
    properties = await driver.read_file(node.properties_file)
    if properties is None:
        raise CannotWalk(f"there is no {node.properties_file}")
    folder = str(PurePosixPath(node.properties_file).parent / ".keeperless" / f"walk-{walk_id}")
    request = {
        "log_dirs": node.log_dirs,
        "logs": logs,
        "recent_bytes": int(limits.recent_mib * MIB),
        "bytes_per_second": limits.mib_per_second * MIB,
        "verify_seconds": limits.verify_seconds,
        "seconds": limits.seconds,
    }
    files = {NAME: PROGRAM, "request.json": json.dumps(request).encode()}
    try:
        for name, content in files.items():
            await driver.write_file(f"{folder}/{name}", FileContent(content, PRIVATE, properties.uid, properties.gid))
        return await _run(driver, folder, limits)
    finally:
        await asyncio.shield(driver.remove_tree(folder))


async def _run(driver: NodeDriver, folder: str, limits: WalkLimits) -> str:
    arguments = ["python3", *BARE, f"{folder}/{NAME}", f"{folder}/request.json"]
    try:
        ran = await driver.run(arguments, {}, timedelta(seconds=limits.seconds) + GRACE)
    except Permanent as error:
        raise CannotWalk(str(error)) from error
    if ran.exit_code:
        last = (ran.errors.strip().splitlines() or ["without a word"])[-1]
        raise CannotWalk(f"python3 has ended with {ran.exit_code}: {last[:300]}")
    return ran.output


def wanted_of(
    partitions: Iterable[PartitionOffsets], earlier: Mapping[tuple[str, int], ReplicaLog] | None
) -> dict[str, dict[str, object]]:
    """What to look at in each log: its last bytes below the high watermark, or the very offsets that were looked at `earlier`
    on the same broker. Of compacted topics, and of what nobody has looked at, the bounds.
    """
    wanted: dict[str, dict[str, object]] = {}
    for one in partitions:
        limits: dict[str, object] = {"from": None, "until": one.end, "is_bounds_only": one.is_compacted}
        if earlier is not None:
            log = earlier.get((one.topic, one.partition))
            is_known = log is not None and log.walked_from < log.walked_until
            limits["is_bounds_only"] = one.is_compacted or not is_known
            if log is not None:
                limits |= {"from": log.walked_from, "until": log.walked_until}
        wanted[f"{one.topic}-{one.partition}"] = limits
    return wanted
