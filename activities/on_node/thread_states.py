"""What threads of a process wait for, and how they are scheduled. A part of watch_process."""

from __future__ import annotations

import re
from collections import Counter

from activities.on_node.kernel import lease_holders, names, opened_by, process_named, text

STUCK = "D"
"""Of a thread: it waits in the kernel, mostly for a disk, and no signal reaches it."""
WAITING = re.compile(
    r"pipe_write$|^sock_alloc_send|^unix_stream_sendmsg|^sock_wait_for_wmem|^request_wait_answer|^handle_userfault|"
    r"^__break_lease"
)
"""Functions in which a thread waits for another program as if it slept: who reads a pipe, serves a file system or memory, or
has a lease on a file."""
KEEPERS = {"fanotify": "anon_inode:[fanotify]", "fuse": "/dev/fuse", "request_wait_answer": "/dev/fuse"}
"""By what such a function's name has in it, what the program has open that is to answer."""
POLICIES = {3: "SCHED_BATCH", 5: "SCHED_IDLE"}
"""Of sched(7), those that let others go first."""
ALLOWED_CPUS = re.compile(r"^Cpus_allowed_list:\s+(\S+)", re.MULTILINE)


def is_stuck(state: str, where: str) -> bool:
    return state == STUCK or (state == "S" and WAITING.search(where) is not None)


def keepers(stuck_in: list[str]) -> list[str]:
    """The programs that those wait for, with their commands, where what they have open tells."""
    leases = lease_holders() if any("break_lease" in name for name in stuck_in) else []
    wanted = {opened for part, opened in KEEPERS.items() for name in stuck_in if part in name}
    if not wanted:
        return leases[:4]
    found = (pid for pid in names("/proc") if pid.isdigit() and wanted & set(opened_by(f"/proc/{pid}")))
    return [*leases, *(process_named(pid) for pid in found)][:4]


def held_to(process: str) -> list[str]:
    """What most of its threads are held to by whoever schedules them, other than usual (sched(7)): then others come first."""
    told = [text(f"{process}/task/{tid}/{name}") or "" for tid in names(f"{process}/task") for name in ("stat", "status")]
    stats = [stat.rpartition(")")[2].split() for stat in told[::2]]
    classes = Counter((int(fields[38]), int(fields[16])) for fields in stats if len(fields) > 38)
    allowed = Counter(found for status in told[1::2] for found in ALLOWED_CPUS.findall(status))
    if not classes or not allowed:
        return []
    (policy, nice), cpus = classes.most_common(1)[0][0], allowed.most_common(1)[0][0]
    group = re.search(r"nice ([1-9]\d*)$", text(f"{process}/autogroup") or "")
    online = (text("/sys/devices/system/cpu/online") or cpus).strip()
    return [
        *([f"scheduling policy {POLICIES[policy]}"] if policy in POLICIES else []),
        *([f"nice {nice}"] if nice > 0 else []),
        *([f"nice {group.group(1)} for all of its session"] if group else []),
        *([f"CPU {cpus} of {online}"] if cpus != online else []),
    ]


def on_cpu(thread: str) -> tuple[float, float] | None:
    """Seconds of it on a CPU, and of waiting for one although it could have run (sched-stats.rst)."""
    fields = (text(f"{thread}/schedstat") or "").split()
    return (int(fields[0]) / 1e9, int(fields[1]) / 1e9) if len(fields) == 3 else None


def tracer(process: str) -> str | None:
    """The debugger, or whatever else traces it: process and command."""
    found = re.search(r"^TracerPid:\s+([1-9]\d*)$", text(f"{process}/status") or "", re.MULTILINE)
    return process_named(found.group(1)) if found else None
