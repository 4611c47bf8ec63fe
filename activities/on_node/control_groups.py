"""What control groups keep a process from, of both versions (cgroups(7)): a part of each program that imports it. Python 3.7 or
later.
"""

from __future__ import annotations

import os
import re
from typing import Iterator

from activities.on_node.kernel import group_paths, text

RATES = {"rbps": "bytes read", "wbps": "bytes written", "riops": "reads", "wiops": "writes"}
"""As io.max calls them, in words."""
OF_VERSION_1 = {"read_bps": "rbps", "write_bps": "wbps", "read_iops": "riops", "write_iops": "wiops"}
LITTLE = {"rbps": 1 << 20, "wbps": 1 << 20, "riops": 100, "wiops": 100}
"""A second: below it no node of Kafka's or ZooKeeper's keeps up, whatever else it does."""


def groups(process: str, controller: str) -> Iterator[str]:
    """Where its control group of a controller lies, then those above it."""
    for controllers, path in group_paths(process):
        if not controllers or controller in controllers.split(","):
            roots = [f"/sys/fs/cgroup/{controllers}"] if controllers else ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
            yield from (f"{root}{path}" for root in roots)


def throttled(process: str) -> float | None:
    """Seconds for which a quota has kept it from its CPUs: that of its own control group, or of the next above that counts."""
    seconds = None
    for group in groups(process, "cpu"):
        found = re.search(r"^throttled_(usec|time) (\d+)", text(f"{group}/cpu.stat") or "", re.MULTILINE)
        if found:
            seconds = int(found.group(2)) / (1e6 if found.group(1) == "usec" else 1e9)
        if seconds:
            break
    return seconds


def tasks(process: str) -> tuple[int, int] | None:
    """How many processes and threads its control group has, and may have: or one above it that is nearer to its limit."""
    told = [
        tuple((text(f"{group}/pids.{name}") or "").strip() for name in ("current", "max")) for group in groups(process, "pids")
    ]
    found = [(int(now), int(most)) for now, most in told if now.isdigit() and most.isdigit()]
    return max(found, key=lambda one: one[0] / max(one[1], 1), default=None)


def frozen(process: str) -> str | None:
    """The control group that keeps it, and all that is in it, from running (cgroup.freeze; freezer.state of version 1)."""
    for group in groups(process, "freezer"):
        told = text(f"{group}/freezer.state") or text(f"{group}/cgroup.freeze") or ""
        if told.strip() in {"1", "FROZEN", "FREEZING"}:
            return group
    return None


def pressure(process: str, what: str) -> float | None:
    """The share of the last ten seconds in which all waited for it that had something to do: in its control group, or where
    that is none of version 2, on the machine (psi.rst)."""
    group = re.search(r"^0::/(.+)$", text(f"{process}/cgroup") or "", re.MULTILINE)
    told = text(f"/sys/fs/cgroup/{group.group(1)}/{what}.pressure") if group else None
    found = re.search(r"^full avg10=([\d.]+)", told or text(f"/proc/pressure/{what}") or "", re.MULTILINE)
    return float(found.group(1)) / 100 if found else None


def memory_held(process: str) -> tuple[str, int] | None:
    """The control group that is at its limit of memory and in which nobody is killed for that, and the limit, bytes: whatever
    asks for more there sleeps (memory.oom_control; of version 1 only)."""
    for group in groups(process, "memory"):
        told = dict(line.split() for line in (text(f"{group}/memory.oom_control") or "").splitlines())
        if told.get("oom_kill_disable") == "1" and told.get("under_oom") == "1":
            return group, int(text(f"{group}/memory.limit_in_bytes") or 0)
    return None


def disk_limits(process: str) -> list[tuple[str, str, str, int]]:
    """What it may do to disks in a second, where that is little: its control group, the disk, and of what how much (io.max;
    blkio.throttle.* of version 1)."""
    found = []
    for group in groups(process, "blkio"):
        limits = [
            (line.split()[0], rate, line.split()[1])
            for name, rate in OF_VERSION_1.items()
            for line in (text(f"{group}/blkio.throttle.{name}_device") or "").splitlines()
        ]
        for device, *rates in map(str.split, (text(f"{group}/io.max") or "").splitlines()):
            limits += [(device, name, most) for name, _, most in (rate.partition("=") for rate in rates)]
        found += [
            (group, _disk(device), RATES[rate], int(most))
            for device, rate, most in limits
            if most.isdigit() and int(most) < LITTLE[rate]
        ]
    return found


def _disk(device: str) -> str:
    try:
        return os.path.basename(os.readlink(f"/sys/dev/block/{device}"))  # noqa: PTH119
    except OSError:
        return device
