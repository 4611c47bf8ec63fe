"""Runs on a machine: says of a process that is in trouble what keeps it from its work, and who has a port. Writes nothing.

    python3 -c PROGRAM '{"watch": 4711, "log_dirs": […]}'
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
from typing import Any

from activities.on_node.connections import accepts_not, acknowledged, far, queues, undelivered, unread, unsent
from activities.on_node.control_groups import frozen, pressure, throttled
from activities.on_node.kernel import LISTENING, address, inodes_of, listener, names, open_files, tcp_lines, text
from activities.on_node.log_places import covered, devices_of, is_read_only, pace
from activities.on_node.port_holders import data_dir, holder, started_by

LOOKS, SECONDS_BETWEEN = 3, 0.6
RUNNABLE, STUCK = "R", "D"
"""Of a thread. One that is stuck waits in the kernel, mostly for a disk, and no signal reaches it."""
TICKS_PER_SECOND = 100.0
COLLECTORS = re.compile(r"GC Thread|G1 |ParGC|VM Thread|ZWorker|ZDriver|Shenandoah")
"""How names of a JVM's threads begin that collect garbage."""
SLEPT = re.compile(r"^voluntary_ctxt_switches:\s+(\d+)", re.MULTILINE)
STATUS_OF_SIGNALS = re.compile(r"^Sig(Ign|Cgt):\s+([0-9a-f]+)$", re.MULTILINE)
TERM, ALSO_END = 15, {"INT": 2, "HUP": 1}
"""Signals by which a JVM ends in order. One that was ignored when it was started it goes on to ignore (HotSpot)."""


def watch(pid: int, log_dirs: list[str]) -> dict[str, Any]:
    process, devices = f"/proc/{pid}", devices_of(log_dirs)
    glances: list[dict[str, Any]] = []
    taken: dict[tuple[str, str], tuple[int, float]] = {}
    for number in range(LOOKS):
        time.sleep(SECONDS_BETWEEN if number else 0)
        glances.append(glance(process))
        if number == 0 and glances[0]["queues"]:
            taken = acknowledged()
    looks, since = Looks(glances), devices_of(log_dirs)
    disks = [[path, one[0], *pace(one, since[path], looks.seconds)] for path, one in devices.items() if path in since]
    return {
        "clock": time.time(),
        **of_threads(looks),
        **of_connections(looks, taken),
        **of_limits(process, looks),
        "disks": disks,
        "covered": list(covered(process, log_dirs)),
        "read_only": [path for path in log_dirs if is_read_only(path)],
        "started_by": started_by(pid),
        "elsewhere": None,
        "ends_by": ends_by(text(f"{process}/status") or ""),
        "listens": looks.last["listens"],
    }


class Looks:
    """Several at one process, one after the other."""

    def __init__(self, glances: list[dict[str, Any]]) -> None:
        self.all = glances
        self.first, self.last = glances[0], glances[-1]
        self.seconds = self.last["at"] - self.first["at"]

    def rate(self, name: str) -> float | None:
        """Of what is counted: by how much it grows in a second."""
        was, now = self.first[name], self.last[name]
        return max(now - was, 0) / self.seconds if was is not None and now is not None else None

    def spent(self, which: int) -> float | None:
        """Of threads that were there all the time: what one has used that has ended is not in the last sum."""
        was, now = self.first["cpu"], self.last["cpu"]
        lived = [tid for tid in was if tid in now]
        return sum(now[tid][which] - was[tid][which] for tid in lived) / self.seconds if lived else None

    def always(self, name: str) -> set[Any]:
        """What every look has seen."""
        return set.intersection(*(set(one[name]) for one in self.all))


def of_threads(looks: Looks) -> dict[str, Any]:
    first, last = looks.first, looks.last
    # What a thread has waited is counted when it runs: of one that never does nothing is.
    never = [tid for tid in looks.always("ready") if first["cpu"].get(tid) == last["cpu"].get(tid)]
    awaiting = looks.spent(1)
    return {
        "stuck_threads": len(looks.always("stuck")),
        "on_cpu": looks.spent(0),
        "awaiting_cpu": None if awaiting is None else awaiting + len(never),
        "collecting": looks.rate("collecting"),
        "major_faults": looks.rate("faults"),
    }


def of_connections(looks: Looks, taken: dict[tuple[str, str], tuple[int, float]]) -> dict[str, Any]:
    """`taken`: what the far ends had acknowledged when it was looked first."""
    last = looks.last
    heard_not = [where for one in looks.all for where in one["unheard"]]
    waiting = [one["queues"] for one in looks.all]
    slow, distant = unsent(waiting, taken, looks.seconds), far(waiting, taken)
    # To who is far it is sent again before the answer to the first can come.
    unheard = {where for where in heard_not if heard_not.count(where) > 1} - {where for where, _ in distant}
    return {
        "unheard": sorted(unheard),
        "far": distant,
        "unsent": [one for one in slow if one[0] not in unheard],
        "unaccepted": [[port, *last["unaccepted"][port]] for port in sorted(looks.always("unaccepted"))],
        "unread": len(looks.always("unread")),
    }


def of_limits(process: str, looks: Looks) -> dict[str, Any]:
    """Of its own, of its control groups, and of its machine."""
    own, most = open_files(process)
    return {
        "open_files": own,
        "most_open_files": most,
        "throttled": looks.rate("throttled"),
        "frozen": next((one["frozen"] for one in looks.all if one["frozen"]), None),
        "memory_available": memory_available(),
        "disk_pressure": pressure(process, "io"),
    }


def glance(process: str) -> dict[str, Any]:
    told = {tid: text(f"{process}/task/{tid}/stat") for tid in names(f"{process}/task")}
    stats = {tid: stat.rpartition(")")[2].split() for tid, stat in told.items() if stat}
    own = (text(f"{process}/stat") or "").rpartition(")")[2].split()
    collectors = [fields for tid, fields in stats.items() if COLLECTORS.match(text(f"{process}/task/{tid}/comm") or "")]
    shares = {tid: on_cpu(f"{process}/task/{tid}") for tid in stats}
    lines, inodes = tcp_lines(process), inodes_of(process)
    return {
        "at": time.monotonic(),
        "cpu": {tid: found for tid, found in shares.items() if found is not None},
        # With how often each has slept: one that waits for one block of a disk after the other is not stuck.
        "stuck": {(tid, sleeps(f"{process}/task/{tid}")) for tid, fields in stats.items() if fields[0] == STUCK},
        "ready": {tid for tid, fields in stats.items() if fields[0] == RUNNABLE},
        "collecting": sum(int(fields[11]) + int(fields[12]) for fields in collectors) / TICKS_PER_SECOND if stats else None,
        "faults": int(own[9]) if own else None,
        "throttled": throttled(process),
        "unheard": undelivered(lines, inodes),
        "queues": queues(lines, inodes),
        "unread": unread(lines, inodes),
        "frozen": frozen(process),
        "unaccepted": accepts_not(lines, inodes),
        "listens": sorted({address(fields[1]) for fields in lines if fields[3] == LISTENING and fields[9] in inodes}),
    }


def on_cpu(thread: str) -> tuple[float, float] | None:
    """Seconds of it on a CPU, and of waiting for one although it could have run (sched-stats.rst)."""
    fields = (text(f"{thread}/schedstat") or "").split()
    return (int(fields[0]) / 1e9, int(fields[1]) / 1e9) if len(fields) == 3 else None


def sleeps(thread: str) -> str:
    """How often it has slept."""
    found = SLEPT.search(text(f"{thread}/status") or "")
    return found.group(1) if found else ""


def ends_by(status: str) -> list[str] | None:
    """By `/proc/PID/status` of a JVM that ignores SIGTERM: the signals by which it would end instead. Of a script that waits
    for one nobody knows what they do."""
    masks = {kind: int(mask, 16) for kind, mask in STATUS_OF_SIGNALS.findall(status)}
    if not masks.get("Ign", 0) >> (TERM - 1) & 1 or not status.startswith("Name:\tjava\n"):
        return None
    return [name for name, number in ALSO_END.items() if masks.get("Cgt", 0) >> (number - 1) & 1]


def memory_available() -> float | None:
    """The share of the machine's memory that programs could still have."""
    told = dict(re.findall(r"^(MemAvailable|MemTotal):\s+(\d+) kB", text("/proc/meminfo") or "", re.MULTILINE))
    return int(told["MemAvailable"]) / int(told["MemTotal"]) if len(told) == 2 else None


def server_of(places: list[str]) -> int | None:
    """The server of ZooKeeper that has its data there, wherever it listens."""
    wanted = {os.path.realpath(place) for place in places}
    return next((int(pid) for pid in names("/proc") if pid.isdigit() and data_dir(int(pid)) in wanted), None)


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
    seen = watch(pid, data_dirs)
    places = seen["listens"]
    came_late = bool({f"0.0.0.0:{port}", f"[::]:{port}"} & set(places))  # it was only just starting when it was asked
    return seen if came_late else {**seen, "elsewhere": [pid, places]}


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    if "ports" in asked:
        return {"holders": [found for found in map(holder, asked["ports"]) if found]}
    if "watch_port" in asked:
        return watch_server(asked["watch_port"], asked["log_dirs"], asked["is_shut"])
    return watch(asked["watch"], asked["log_dirs"])


if __name__ == "__main__":
    json.dump(answer(json.loads(sys.argv[1])), sys.stdout)
