"""Of log directories and the disks that they lie on. A part of watch_process."""

from __future__ import annotations

import os
from typing import Iterator

from activities.on_node.kernel import mount_of, names, text


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


def is_read_only(path: str) -> bool:
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False
