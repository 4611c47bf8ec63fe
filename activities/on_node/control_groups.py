"""What control groups keep a process from, of both versions (cgroups(7)): a part of each program that imports it. Python 3.7 or
later.
"""

from __future__ import annotations

import re
from typing import Iterator

from activities.on_node.kernel import group_paths, text


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
