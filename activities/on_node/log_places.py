"""Of log directories and the disks that they lie on, and of a heap dump. A part of watch_process."""

from __future__ import annotations

import os
import re
from typing import Iterator

from activities.on_node.kernel import mount_of, names, text

HEAP_DUMP = re.compile(r"(/.+\.hprof(\.gz)?)(\.p\d+)?")
"""As a JVM names it; several threads write into parts of it."""


def devices_of(paths: list[str]) -> dict[str, tuple[str, int, int, int]]:
    """By directory the disk that it lies on: its name, requests that it has done, milliseconds that they took and that it was
    at work (iostats.rst). File systems with devices of their own making tell none."""
    lines = {tuple(line.split()[:2]): line.split()[2:] for line in (text("/proc/diskstats") or "").splitlines()}
    found = {}
    for path in paths:
        try:
            device = os.stat(path).st_dev  # noqa: PTH116
        except OSError:
            continue
        fields = lines.get((str(os.major(device)), str(os.minor(device))))
        if fields:
            name, reads, _, _, reading, writes, _, _, writing, _, working = fields[:11]
            found[path] = (name, int(reads) + int(writes), int(reading) + int(writing), int(working))
    return found


def pace(first: tuple[str, int, int, int], last: tuple[str, int, int, int], seconds: float) -> tuple[float, float]:
    """The share of the time in which a disk worked, and milliseconds for each request: of one that has done none, all of it."""
    requests, took, worked = last[1] - first[1], last[2] - first[2], last[3] - first[3]
    return min(worked / 1e3 / seconds, 1.0), took / requests if requests else float(worked)


def covered(process: str, log_dirs: list[str]) -> Iterator[tuple[str, str]]:
    """Directories over which something was mounted since it has opened its files there, and what: it goes on beneath, and
    whoever opens them anew finds what lies above."""
    opened: dict[str, set[int]] = {path: set() for path in log_dirs}
    for name in names(f"{process}/fd"):
        try:
            target = os.readlink(f"{process}/fd/{name}")
            for path in log_dirs:
                if target.startswith(f"{path.rstrip('/')}/"):
                    opened[path].add(os.stat(f"{process}/fd/{name}").st_dev)  # noqa: PTH116
        except OSError:
            continue
    for path, devices in opened.items():
        try:
            above = os.stat(path).st_dev  # noqa: PTH116
        except OSError:
            continue
        if devices and above not in devices:
            yield path, mounted_at(path)


def mounted_at(path: str) -> str:
    """What is mounted where that lies: its source and kind, and where (proc(5), mountinfo); empty where nobody tells."""
    mount = mount_of(path)
    return f"{mount.source} ({mount.kind}) at {mount.point}" if mount else ""


def heap_dump(process: str) -> tuple[str, int, int] | None:
    """Which it writes, the bytes of it so far, and those that are left on that volume."""
    path, size, free = "", 0, 0
    for name in names(f"{process}/fd"):
        try:
            found = HEAP_DUMP.fullmatch(os.readlink(f"{process}/fd/{name}"))
            if found and is_written(process, name):
                room = os.statvfs(f"{process}/fd/{name}")
                path, free = found.group(1), room.f_bavail * room.f_frsize
                size += os.stat(f"{process}/fd/{name}").st_size  # noqa: PTH116
        except OSError:
            continue
    return (path, size, free) if path else None


def is_written(process: str, name: str) -> bool:
    flags = re.search(r"^flags:\s+([0-7]+)$", text(f"{process}/fdinfo/{name}") or "", re.MULTILINE)
    return flags is not None and int(flags.group(1), 8) & os.O_ACCMODE != os.O_RDONLY


def is_read_only(path: str) -> bool:
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False
