"""How the kernel is set, the hardware that it sees, and what it has said of trouble. A part of note_machine."""

from __future__ import annotations

import json
import os
import re
import time

from activities.on_node.commands import run
from activities.on_node.kernel import Found, Pairs, names, text

UNSTEADY = re.compile(
    r"fs/(binfmt_misc|nfs)|kernel/(random|ns_last_pid|cad_pid|perf_event_max_sample_rate|sched_domain|keys|tainted)"
    r"|kernel/hung_task_warnings|vm/stat_refresh|.*(flush|_key|secret|/base_reachable_time|/retrans_time)$"
    r"|.*/(neigh|conf)/(veth|br-|docker|cali|cni|tap|virbr|lxc|flannel|vnet|tunl|ifb)"
)
"""Below /proc/sys: what the kernel changes by itself, what is a secret, what reading changes or makes it complain of, and
interfaces that come and go."""
SETTINGS = {
    "boot id": "/proc/sys/kernel/random/boot_id",
    "clock source": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "transparent huge pages": "/sys/kernel/mm/transparent_hugepage/enabled",
    "CPUs that are online": "/sys/devices/system/cpu/online",
}
DISKS = re.compile(r"(sd|nvme|vd|xvd|hd|md)")
TROUBLE = re.compile(
    r"segfault|SYN flooding|link is (not ready|down)|table overflow|killed process|out of memory"
    r"|avc:\s+denied|apparmor=\"DENIED\"|type=1326|audit: backlog limit",
    re.IGNORECASE,
)
"""What the kernel says of trouble without calling it a warning."""
PACKET = re.compile(r"\bIN=\S* OUT=")
"""A rule of the firewall that only logs."""
WARNING = 4


def sysctls() -> Pairs:
    """What can be set, and is to be read: counters cannot be written."""
    for folder, inner, found in os.walk("/proc/sys"):
        below = folder[len("/proc/sys/") :]
        inner[:] = [name for name in inner if not UNSTEADY.match(f"{below}/{name}".lstrip("/"))]
        for name in (f"{below}/{one}".lstrip("/") for one in found):
            value = text(f"/proc/sys/{name}") if not UNSTEADY.match(name) and is_setting(f"/proc/sys/{name}") else None
            if value is not None:
                yield name.replace("/", "."), " ".join(value.split())


def is_setting(path: str) -> bool:
    """To be written as well as read."""
    try:
        return os.stat(path).st_mode & 0o600 == 0o600  # noqa: PTH116
    except OSError:
        return False


def settings() -> Pairs:
    yield "kernel", os.uname().release
    yield "host name", os.uname().nodename
    for name, path in SETTINGS.items():
        value = text(path)
        if value is not None:
            yield name, value.strip()
    memory = re.search(r"^MemTotal:\s+(\d+ kB)", text("/proc/meminfo") or "", re.MULTILINE)
    if memory:
        yield "memory", memory.group(1)
    for line in (text("/proc/swaps") or "").splitlines()[1:]:
        yield f"swap on {line.split()[0]}", line.split()[2]
    for disk in names("/sys/block"):
        for what, path in (("read-only", "ro"), ("size", "size"), ("scheduler", "queue/scheduler")):
            value = text(f"/sys/block/{disk}/{path}") if DISKS.match(disk) else None
            if value is not None:
                yield f"{what} of {disk}", value.strip()


def booted() -> Found:
    """When, in seconds since 1970, by its clock as it is now."""
    found = re.search(r"^btime (\d+)$", text("/proc/stat") or "", re.MULTILINE)
    return {"at": found.group(1)} if found else None


def kernel_log() -> list[tuple[float, str]] | None:
    """Warnings and worse, and what else tells of trouble, the newest last: seconds since, and the line. `None` where we may
    read neither the kernel's log nor the journal's copy."""
    told = of_kernel()
    told = of_journal() if told is None else told
    found: dict[str, tuple[float, str]] = {}
    for seconds, level, words in told or ():
        line = words
        if not PACKET.search(line) and (level <= WARNING or TROUBLE.search(line)):
            alike = re.sub(r"\d+", "0", line)
            found.pop(alike, None)
            found[alike] = (round(max(seconds, 0.0), 1), line)
    return None if told is None else list(found.values())[-20:]


def of_kernel() -> list[tuple[float, int, str]] | None:
    """Seconds since, how grave, and the words (dev-kmsg)."""
    try:
        handle = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    now, found = time.clock_gettime(time.CLOCK_MONOTONIC_RAW), []
    try:
        while True:
            try:
                record = os.read(handle, 8192).decode(errors="replace")
            except BrokenPipeError:
                continue  # the oldest were overwritten while we read
            except OSError:
                break
            head, _, words = record.partition(";")
            fields = head.split(",")
            if words and int(fields[0]) >> 3 == 0:
                found.append((now - int(fields[2]) / 1e6, int(fields[0]) & 7, words.splitlines()[0]))
    finally:
        os.close(handle)
    return found


def of_journal() -> list[tuple[float, int, str]] | None:
    """Where that is for root alone (kernel.dmesg_restrict). Who may not read the journal is shown an empty one."""
    told = [json.loads(line) for line in (run("journalctl", "-kbq", "-n500", "-ojson") or "").splitlines()]
    now = time.time()
    return [(now - int(r["__REALTIME_TIMESTAMP"]) / 1e6, int(r["PRIORITY"]), str(r["MESSAGE"])) for r in told] or None
