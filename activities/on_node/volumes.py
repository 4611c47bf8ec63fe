"""Of the volumes that places lie on: whether they take nothing more. A part of programs. Python 3.7 or later."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

from activities.on_node.kernel import link, mount_of, names, process_named

LITTLE_ROOM = 64 * 1024
MUCH_DELETED, MOST_HOLDERS, MOST_SECONDS = 64 * 1024 * 1024, 3, 1.0
WRITTEN_BY_NOBODY = frozenset({"ro", "emergency_ro", "shutdown"})
"""Options of a file system; the last two are those of one that has failed, with newer kernels (ext4)."""


def is_full(place: Path) -> bool:
    """Whether its volume takes nothing more. Those that are only read say so always."""
    try:
        there = next(one for one in (place, *place.parents) if one.exists())
        sizes, is_root = os.statvfs(there), there.stat().st_uid == os.geteuid() == 0
    except OSError:
        return False
    free = (sizes.f_bfree if is_root else sizes.f_bavail) * sizes.f_frsize
    has_inodes = not sizes.f_files or sizes.f_favail > 0
    return bool(sizes.f_blocks) and not sizes.f_flag & os.ST_RDONLY and (free < LITTLE_ROOM or not has_inodes)


def is_written_by_nobody(place: Path) -> bool:
    """Whether its file system can only be read, and not only as this program sees it (proc(5), mountinfo)."""
    mount = mount_of(str(place))
    return mount is not None and not WRITTEN_BY_NOBODY.isdisjoint(mount.of_all.split(","))


def deleted_on(places: list[str]) -> list[tuple[str, int]]:
    """Processes that have files open there which were deleted, and how many bytes of room those have: the most first. Looks
    through all that is open on this machine, for a while; of what is not deleted at the link alone, which no file system is
    asked for."""
    devices, until = {device for device in map(device_of, places) if device is not None}, time.monotonic() + MOST_SECONDS
    held: dict[str, dict[int, int]] = {}
    opened = ((pid, f"/proc/{pid}/fd/{name}") for pid in names("/proc") if pid.isdigit() for name in names(f"/proc/{pid}/fd"))
    for pid, path in opened if devices else ():
        if time.monotonic() > until:
            break
        found = status_of(path) if (link(path) or "").endswith(" (deleted)") else None
        if found is not None and found.st_dev in devices and not found.st_nlink and stat.S_ISREG(found.st_mode):
            held.setdefault(pid, {})[found.st_ino] = found.st_blocks * 512
    much = sorted(((sum(sizes.values()), pid) for pid, sizes in held.items()), reverse=True)[:MOST_HOLDERS]
    return [(process_named(pid), size) for size, pid in much if size >= MUCH_DELETED]


def device_of(place: str) -> int | None:
    path = Path(place)
    found = next((status for status in map(status_of, map(str, (path, *path.parents))) if status is not None), None)
    return found.st_dev if found is not None else None


def status_of(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116
    except OSError:
        return None
