"""Runs on a machine: says of a process that is in trouble what keeps it from its work, and who has a port. Writes nothing.

    python3 -c PROGRAM '{"watch": 4711, "log_dirs": […], "metrics_port": 7071}'
    python3 -c PROGRAM '{"watch_port": 2181, "log_dirs": […], "is_shut": false}'
    python3 -c PROGRAM '{"ports": [9092]}'

The first for a second, by what its kernel says (proc(5), cgroups(7)); the second of the server of ZooKeeper that listens there;
the third where one could not bind. The answer is one JSON object on standard output. What may not be looked at is null. Python
3.7 or later.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections import Counter
from typing import Any, Iterator

from activities.on_node.connections import (
    accepts_not,
    acknowledged,
    askers,
    debugger,
    drops,
    far,
    held_up,
    is_only_large,
    most_connected,
    queues,
    risen,
    undelivered,
    unread,
    unsent,
)
from activities.on_node.control_groups import disk_limits, frozen, memory_held, pressure, tasks, throttled
from activities.on_node.jvm_counters import stopped_seconds
from activities.on_node.kernel import (
    LISTENING,
    UNIT,
    address,
    inodes_of,
    lease_holders,
    listener,
    mount_of,
    names,
    open_files,
    opened_by,
    owner,
    port_of,
    process_named,
    sleeps,
    tcp_lines,
    text,
)
from activities.on_node.stops import stopped, stops
from activities.on_node.waits import calls, waits

LOOKS, SECONDS_BETWEEN = 3, 0.6
RUNNABLE = "R"
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
TICKS_PER_SECOND = 100.0
POLICIES = {3: "SCHED_BATCH", 5: "SCHED_IDLE"}
"""Of sched(7), those that let others go first."""
ALLOWED_CPUS = re.compile(r"^Cpus_allowed_list:\s+(\S+)", re.MULTILINE)
COLLECTORS = re.compile(r"GC Thread|G1 |ParGC|VM Thread|ZWorker|ZDriver|Shenandoah")
"""How names of a JVM's threads begin that collect garbage."""
SHOWN_WORD = re.compile(r"(kafka|org\.apache)\.[\w.]+|/[\w./-]+\.(properties|cfg|conf)")
"""Of a command line: what holds no secret, and tells what it runs."""
SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "su", "sudo", "runuser", "setpriv", "nohup"})
SCRIPT = re.compile(r"[\w./-]+\.(py|sh|pl|rb|js|conf|cfg|ini)")
"""Of whoever has started another: what it runs, or goes by. Nothing else of its command line is told."""
HEAP_DUMP = re.compile(r"(/.+\.hprof(\.gz)?)(\.p\d+)?")
"""As a JVM names it; several threads write into parts of it."""
STATUS_OF_SIGNALS = re.compile(r"^Sig(Ign|Cgt):\s+([0-9a-f]+)$", re.MULTILINE)
TERM, ALSO_END = 15, {"INT": 2, "HUP": 1}
"""Signals by which a JVM ends in order. One that was ignored when it was started it goes on to ignore (HotSpot)."""
OF_ZOOKEEPER = "org.apache.zookeeper.server."


def watch(pid: int, log_dirs: list[str], metrics_port: int = 0) -> dict[str, Any]:
    process, glances, began = f"/proc/{pid}", [], calls(pid)
    dropped = drops(process)
    devices = devices_of(log_dirs)
    samples: list[bool] = []
    taken: dict[tuple[str, str], tuple[int, float]] = {}
    for number in range(LOOKS):
        samples += stops(process, SECONDS_BETWEEN) if number else []
        glances.append(glance(process))
        if number == 0 and glances[0]["queues"]:
            taken = acknowledged()
    first, last = glances[0], glances[-1]

    def rate(name: str) -> float | None:
        known = first[name] is not None and last[name] is not None
        return max(last[name] - first[name], 0) / (last["at"] - first["at"]) if known else None

    lived = [tid for tid in first["cpu"] if tid in last["cpu"]]
    seconds = last["at"] - first["at"]

    def spent(which: int) -> float | None:
        """Of threads that were there all the time: what one has used that has ended is not in the last sum."""
        return sum(last["cpu"][tid][which] - first["cpu"][tid][which] for tid in lived) / seconds if lived else None

    # What a thread has waited is counted when it runs: of one that never does nothing is.
    ready = set.intersection(*(one["ready"] for one in glances))
    never = [tid for tid in ready if first["cpu"].get(tid) == last["cpu"].get(tid)]
    awaiting = spent(1)
    stuck = set.intersection(*(set(one["stuck"]) for one in glances))
    stuck_in = sorted({one["stuck"][thread] for one in glances for thread in stuck} - {"", "0"})
    heard_not = [where for one in glances for where in one["unheard"]]
    unheard = {where for where in heard_not if heard_not.count(where) > 1}
    waiting = [one["queues"] for one in glances]
    slow, distant = unsent(waiting, taken, seconds), far(waiting, taken)
    unheard -= {where for where, _ in distant}  # it is sent again before the answer to the first can come
    held = last["held_up"] if unheard and unheard <= {peer for _, peer in last["held_up"]} else {}
    unread_by = set.intersection(*(one["unread"] for one in glances))
    unaccepted = sorted(set.intersection(*(set(one["unaccepted"]) for one in glances)))
    own, most = open_files(process)
    since = devices_of(log_dirs)
    io, memory = (pressure(process, what) for what in ("io", "memory"))
    return {
        "clock": time.time(),
        "stuck_threads": len(stuck),
        "stuck_in": stuck_in,
        "kept_by": keepers(stuck_in),
        "open_files": own,
        "most_open_files": most,
        "throttled": rate("throttled"),
        "on_cpu": spent(0),
        "awaiting_cpu": None if awaiting is None else awaiting + len(never),
        "held_to": held_to(process),
        "collecting": rate("collecting"),
        "stopped": rate("stopped"),
        "collected_for": last["collected_for"] if last["collections"] > first["collections"] else "",
        "major_faults": rate("faults"),
        "memory_available": memory_available(),
        "unheard": sorted(unheard),
        "only_large": bool(held) and is_only_large(held, [taken, acknowledged()]),
        "far": distant,
        "unsent": [one for one in slow if one[0] not in unheard],
        "tasks": tasks(process),
        "tracked": tracked(),
        "covered": list(covered(process, log_dirs)),
        "read_only": [path for path in log_dirs if is_read_only(path)],
        "frozen": next((one["frozen"] for one in glances if one["frozen"]), None),
        "tracer": tracer(process),
        "stops": stopped(pid, samples),
        "unaccepted": [[port, *last["unaccepted"][port]] for port in unaccepted],
        "connected": most_connected(process, unaccepted),
        "elsewhere": None,
        "disks": [[path, one[0], *pace(one, since[path], seconds)] for path, one in devices.items() if path in since],
        "disk_limits": disk_limits(process),
        "disk_pressure": io,
        "memory_held": memory_held(process),
        "memory_pressure": memory,
        "askers": askers(process, metrics_port) if metrics_port else [],
        "heap_dump": heap_dump(process),
        "ends_by": ends_by(text(f"{process}/status") or ""),
        "unread": len(unread_by),
        "debugger": debugger(process),
        "drops": risen(dropped, drops(process)),
        "waits": waits(began, calls(pid)),
    }


def glance(process: str) -> dict[str, Any]:
    told = {tid: text(f"{process}/task/{tid}/stat") for tid in names(f"{process}/task")}
    stats = {tid: stat.rpartition(")")[2].split() for tid, stat in told.items() if stat}
    own = (text(f"{process}/stat") or "").rpartition(")")[2].split()
    collectors = [fields for tid, fields in stats.items() if COLLECTORS.match(text(f"{process}/task/{tid}/comm") or "")]
    shares = {tid: on_cpu(f"{process}/task/{tid}") for tid in stats}
    lines, inodes = tcp_lines(process), inodes_of(process)
    stopped_for, collections, collected_for = stopped_seconds(process)
    return {
        "at": time.monotonic(),
        "stopped": stopped_for,
        "collections": collections,
        "collected_for": collected_for,
        "cpu": {tid: found for tid, found in shares.items() if found is not None},
        # With how often each has slept: one that waits for one block of a disk after the other is not stuck.
        "stuck": {
            (tid, sleeps(f"{process}/task/{tid}")): where
            for tid, fields in stats.items()
            for where in [text(f"{process}/task/{tid}/wchan") or ""]
            if is_stuck(fields[0], where)
        },
        "ready": {tid for tid, fields in stats.items() if fields[0] == RUNNABLE},
        "collecting": sum(int(fields[11]) + int(fields[12]) for fields in collectors) / TICKS_PER_SECOND if stats else None,
        "faults": int(own[9]) if own else None,
        "throttled": throttled(process),
        "unheard": undelivered(lines, inodes),
        "held_up": held_up(lines, inodes),
        "queues": queues(lines, inodes),
        "unread": unread(lines, inodes),
        "frozen": frozen(process),
        "unaccepted": accepts_not(lines, inodes),
    }


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


def ends_by(status: str) -> list[str] | None:
    """By `/proc/PID/status` of a JVM that ignores SIGTERM: the signals by which it would end instead. Of a script that waits
    for one nobody knows what they do."""
    masks = {kind: int(mask, 16) for kind, mask in STATUS_OF_SIGNALS.findall(status)}
    if not masks.get("Ign", 0) >> (TERM - 1) & 1 or not status.startswith("Name:\tjava\n"):
        return None
    return [name for name, number in ALSO_END.items() if masks.get("Cgt", 0) >> (number - 1) & 1]


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


def tracked() -> tuple[int, int] | None:
    """How many connections the machine's firewall keeps track of, and may."""
    now, most = (text(f"/proc/sys/net/netfilter/nf_conntrack_{name}") for name in ("count", "max"))
    return (int(now), int(most)) if now and most else None


def memory_available() -> float | None:
    """The share of the machine's memory that programs could still have."""
    told = dict(re.findall(r"^(MemAvailable|MemTotal):\s+(\d+) kB", text("/proc/meminfo") or "", re.MULTILINE))
    return int(told["MemAvailable"]) / int(told["MemTotal"]) if len(told) == 2 else None


def is_read_only(path: str) -> bool:
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def holder(port: int) -> dict[str, Any] | None:
    """Who has a port: by listening, or as the near end of a connection to somebody else. Sockets that wait to be forgotten have
    no inode."""
    lines = [fields for fields in tcp_lines("/proc") if port_of(fields[1]) == port and fields[9] != "0"]
    if not lines:
        return None
    first = min(lines, key=lambda fields: fields[3] != LISTENING)
    pid = owner({first[9]})
    return {
        "port": port,
        "pid": pid,
        "command": command(pid) if pid else "",
        "data_dir": data_dir(pid) if pid else None,
        "peer": None if first[3] == LISTENING else address(first[2]),
        "started_by": started_by(pid) if pid else "",
    }


def started_by(pid: int) -> str:
    """Who has started it, past the shells between; where that is the machine's first process, the unit that it is in. Empty
    where whoever it was has ended, or is who looks: what a start of ours has put into the background is in our unit."""
    parent, ours = parent_of(pid), ancestors()
    while parent > 1 and (text(f"/proc/{parent}/comm") or "").strip() in SHELLS:
        parent = parent_of(parent)
    if parent in ours - {1}:
        return ""
    if parent > 1:
        scripts = [word for word in words_of(parent) if SCRIPT.fullmatch(word)]
        return f"process {' '.join([process_named(str(parent)).rstrip(')'), *scripts[:1]])})"
    unit, own = (UNIT.search(text(f"/proc/{of}/cgroup") or "") for of in (pid, "self"))
    is_ours = unit is not None and own is not None and unit.group(1) == own.group(1)
    return f"systemd, as its unit {unit.group(1)}" if unit and not is_ours else ""


def ancestors() -> set[int]:
    """Of whoever looks: who starts nodes for us is among them."""
    found, pid = set(), os.getpid()
    while pid > 0:
        found.add(pid)
        pid = parent_of(pid)
    return found


def parent_of(pid: int) -> int:
    fields = (text(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def command(pid: int) -> str:
    name = (text(f"/proc/{pid}/comm") or "").strip()
    return " ".join([name, *(word for word in words_of(pid) if SHOWN_WORD.fullmatch(word))])


def words_of(pid: int) -> list[str]:
    return [word for word in (text(f"/proc/{pid}/cmdline") or "").split("\0") if word]


def data_dir(pid: int) -> str | None:
    """Of a server of ZooKeeper: what the file says that its command line ends in."""
    words = words_of(pid)
    if not any(word.startswith(OF_ZOOKEEPER) for word in words):
        return None
    try:
        path = os.path.join(os.readlink(f"/proc/{pid}/cwd"), words[-1])  # noqa: PTH118
    except OSError:
        path = words[-1]
    found = re.search(r"^\s*dataDir\s*=\s*(.*?)\s*$", text(path) or "", re.MULTILINE)
    return os.path.realpath(found.group(1)) if found else None


def server_of(places: list[str]) -> int | None:
    """The server of ZooKeeper that has its data there, wherever it listens."""
    wanted = {os.path.realpath(place) for place in places}
    return next((int(pid) for pid in names("/proc") if pid.isdigit() and data_dir(int(pid)) in wanted), None)


def listening(pid: int) -> list[str]:
    lines, inodes = tcp_lines(f"/proc/{pid}"), inodes_of(f"/proc/{pid}")
    return sorted({address(fields[1]) for fields in lines if fields[3] == LISTENING and fields[9] in inodes})


def watch_server(port: int, data_dirs: list[str], is_shut: bool) -> dict[str, Any]:
    """Of a server of ZooKeeper, by the port at which it listens. Where nobody accepts there, `is_shut`: by its data, and where
    it listens instead; nothing, where it does not run."""
    pid = None if is_shut else listener(port)
    if pid is not None:
        return watch(pid, data_dirs)
    pid = server_of(data_dirs)
    if pid is None and not is_shut:
        sys.exit(f"no process that may be looked at listens at {port} here")
    if pid is None:
        return {}
    seen, places = watch(pid, data_dirs), listening(pid)
    came_late = bool({f"0.0.0.0:{port}", f"[::]:{port}"} & set(places))  # it was only just starting when it was asked
    return seen if came_late else {**seen, "elsewhere": [pid, places]}


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    if "ports" in asked:
        return {"holders": [found for found in map(holder, asked["ports"]) if found]}
    if "watch_port" in asked:
        return watch_server(asked["watch_port"], asked["log_dirs"], asked["is_shut"])
    return watch(asked["watch"], asked["log_dirs"], asked.get("metrics_port", 0))


if __name__ == "__main__":
    json.dump(answer(json.loads(sys.argv[1])), sys.stdout)
