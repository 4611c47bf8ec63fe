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
from typing import Any

from activities.on_node.connections import (
    accepts_not,
    acknowledged,
    askers,
    debugger,
    drops,
    far,
    held_up,
    is_loopback_down,
    is_only_large,
    most_connected,
    over_loopback,
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
    address,
    inodes_of,
    listener,
    names,
    open_files,
    sleeps,
    tcp_lines,
    text,
)
from activities.on_node.log_places import covered, devices_of, heap_dump, is_read_only, pace
from activities.on_node.new_connections import open_anew, worth_a_try
from activities.on_node.port_holders import data_dir, holder, started_by
from activities.on_node.stops import stopped, stops
from activities.on_node.thread_states import held_to, is_stuck, keepers, on_cpu, tracer
from activities.on_node.waits import calls, waits

LOOKS, SECONDS_BETWEEN = 3, 0.6
RUNNABLE, MOST_NAMED = "R", 6
TICKS_PER_SECOND = 100.0
COLLECTORS = re.compile(r"GC Thread|G1 |ParGC|VM Thread|ZWorker|ZDriver|Shenandoah")
"""How names of a JVM's threads begin that collect garbage."""
STATUS_OF_SIGNALS = re.compile(r"^Sig(Ign|Cgt):\s+([0-9a-f]+)$", re.MULTILINE)
TERM, ALSO_END = 15, {"INT": 2, "HUP": 1}
"""Signals by which a JVM ends in order. One that was ignored when it was started it goes on to ignore (HotSpot)."""


def watch(pid: int, log_dirs: list[str], metrics_port: int = 0) -> dict[str, Any]:
    process, began = f"/proc/{pid}", calls(pid)
    dropped, devices = drops(process), devices_of(log_dirs)
    samples: list[bool] = []
    glances: list[dict[str, Any]] = []
    taken: dict[tuple[str, str], tuple[int, float]] = {}
    for number in range(LOOKS):
        samples += stops(process, SECONDS_BETWEEN) if number else []
        glances.append(glance(process))
        if number == 0 and glances[0]["queues"]:
            taken = acknowledged()
    looks, since = Looks(glances), devices_of(log_dirs)
    disks = [[path, one[0], *pace(one, since[path], looks.seconds)] for path, one in devices.items() if path in since]
    return {
        "clock": time.time(),
        **of_threads(process, looks),
        **of_connections(process, looks, taken),
        **of_limits(process, looks),
        "disks": disks,
        "covered": list(covered(process, log_dirs)),
        "read_only": [path for path in log_dirs if is_read_only(path)],
        "heap_dump": heap_dump(process),
        "tracer": tracer(process),
        "started_by": started_by(pid),
        "stops": stopped(pid, samples),
        "elsewhere": None,
        "askers": askers(process, metrics_port) if metrics_port else [],
        "ends_by": ends_by(text(f"{process}/status") or ""),
        "debugger": debugger(process),
        "drops": risen(dropped, drops(process)),
        "waits": waits(began, calls(pid)),
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

    def share(self, name: str, of: str) -> float | None:
        """Of what is counted in the same."""
        part, whole = self.rate(name), self.rate(of)
        return part / whole if part is not None and whole else None

    def spent(self, which: int) -> float | None:
        """Of threads that were there all the time: what one has used that has ended is not in the last sum."""
        was, now = self.first["cpu"], self.last["cpu"]
        lived = [tid for tid in was if tid in now]
        return sum(now[tid][which] - was[tid][which] for tid in lived) / self.seconds if lived else None

    def always(self, name: str) -> set[Any]:
        """What every look has seen."""
        return set.intersection(*(set(one[name]) for one in self.all))


def of_threads(process: str, looks: Looks) -> dict[str, Any]:
    first, last = looks.first, looks.last
    # What a thread has waited is counted when it runs: of one that never does nothing is.
    never = [tid for tid in looks.always("ready") if first["cpu"].get(tid) == last["cpu"].get(tid)]
    awaiting = looks.spent(1)
    stuck = sorted(looks.always("stuck"))
    stuck_in = sorted({one["stuck"][thread] for one in looks.all for thread in stuck} - {"", "0"})
    return {
        "stuck_threads": len(stuck),
        "stuck_in": stuck_in,
        "stuck_named": sorted({(text(f"{process}/task/{tid}/comm") or "").strip() for tid, _ in stuck} - {""})[:MOST_NAMED],
        "threads_frozen": next(filter(None, (frozen(f"{process}/task/{tid}") for tid, _ in stuck)), None),
        "kept_by": keepers(stuck_in),
        "on_cpu": looks.spent(0),
        "awaiting_cpu": None if awaiting is None else awaiting + len(never),
        "collecting": looks.rate("collecting"),
        "stopped": looks.rate("stopped"),
        "collected_for": last["collected_for"] if last["collections"] > first["collections"] else "",
        "major_faults": looks.rate("faults"),
        "stolen": looks.share("stolen", "ticks"),
    }


def of_connections(process: str, looks: Looks, taken: dict[tuple[str, str], tuple[int, float]]) -> dict[str, Any]:
    """`taken`: what the far ends had acknowledged when it was looked first."""
    last = looks.last
    heard_not = [where for one in looks.all for where in one["unheard"]]
    unheard = {where for where in heard_not if heard_not.count(where) > 1}
    waiting = [one["queues"] for one in looks.all]
    slow, distant = unsent(waiting, taken, looks.seconds), far(waiting, taken)
    unheard -= {where for where, _ in distant}  # it is sent again before the answer to the first can come
    held = last["held_up"] if unheard and unheard <= {peer for _, peer in last["held_up"]} else {}
    unaccepted = sorted(looks.always("unaccepted"))
    at_home = over_loopback(process, unheard)
    return {
        "unheard": sorted(unheard),
        "open_anew": open_anew(process, worth_a_try(last["held_up"], unheard, last["listens"])),
        "over_loopback": sorted(at_home),
        "is_loopback_down": is_loopback_down(process) if at_home else None,
        "only_large": bool(held) and is_only_large(held, [taken, acknowledged()]),
        "far": distant,
        "unsent": [one for one in slow if one[0] not in unheard],
        "tracked": tracked(),
        "unaccepted": [[port, *last["unaccepted"][port]] for port in unaccepted],
        "connected": most_connected(process, unaccepted),
        "unread": len(looks.always("unread")),
    }


def of_limits(process: str, looks: Looks) -> dict[str, Any]:
    """Of its own, of its control groups, and of its machine."""
    own, most = open_files(process)
    return {
        "open_files": own,
        "most_open_files": most,
        "tasks": tasks(process),
        "held_to": held_to(process),
        "throttled": looks.rate("throttled"),
        "frozen": next((one["frozen"] for one in looks.all if one["frozen"]), None),
        "memory_available": memory_available(),
        "swapped": swapped(process),
        "swapped_in": looks.rate("swapped_in"),
        "memory_held": memory_held(process),
        "memory_pressure": pressure(process, "memory"),
        "disk_limits": disk_limits(process),
        "disk_pressure": pressure(process, "io"),
    }


def glance(process: str) -> dict[str, Any]:
    told = {tid: text(f"{process}/task/{tid}/stat") for tid in names(f"{process}/task")}
    stats = {tid: stat.rpartition(")")[2].split() for tid, stat in told.items() if stat}
    own = (text(f"{process}/stat") or "").rpartition(")")[2].split()
    collectors = [fields for tid, fields in stats.items() if COLLECTORS.match(text(f"{process}/task/{tid}/comm") or "")]
    shares = {tid: on_cpu(f"{process}/task/{tid}") for tid in stats}
    lines, inodes = tcp_lines(process), inodes_of(process)
    stopped_for, collections, collected_for = stopped_seconds(process)
    swaps, (stolen, ticks) = re.search(r"^pswpin (\d+)$", text("/proc/vmstat") or "", re.MULTILINE), stolen_ticks()
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
        "stolen": stolen,
        "ticks": ticks,
        "swapped_in": int(swaps.group(1)) if swaps else None,
        "unheard": undelivered(lines, inodes),
        "held_up": held_up(lines, inodes),
        "queues": queues(lines, inodes),
        "unread": unread(lines, inodes),
        "frozen": frozen(process),
        "unaccepted": accepts_not(lines, inodes),
        "listens": sorted({address(fields[1]) for fields in lines if fields[3] == LISTENING and fields[9] in inodes}),
    }


def ends_by(status: str) -> list[str] | None:
    """By `/proc/PID/status` of a JVM that ignores SIGTERM: the signals by which it would end instead. Of a script that waits
    for one nobody knows what they do."""
    masks = {kind: int(mask, 16) for kind, mask in STATUS_OF_SIGNALS.findall(status)}
    if not masks.get("Ign", 0) >> (TERM - 1) & 1 or not status.startswith("Name:\tjava\n"):
        return None
    return [name for name, number in ALSO_END.items() if masks.get("Cgt", 0) >> (number - 1) & 1]


def tracked() -> tuple[int, int] | None:
    """How many connections the machine's firewall keeps track of, and may."""
    now, most = (text(f"/proc/sys/net/netfilter/nf_conntrack_{name}") for name in ("count", "max"))
    return (int(now), int(most)) if now and most else None


def memory_available() -> float | None:
    """The share of the machine's memory that programs could still have."""
    told = dict(re.findall(r"^(MemAvailable|MemTotal):\s+(\d+) kB", text("/proc/meminfo") or "", re.MULTILINE))
    return int(told["MemAvailable"]) / int(told["MemTotal"]) if len(told) == 2 else None


def swapped(process: str) -> int | None:
    """Bytes of its memory that are in swap."""
    found = re.search(r"^VmSwap:\s+(\d+) kB", text(f"{process}/status") or "", re.MULTILINE)
    return int(found.group(1)) * 1024 if found else None


def stolen_ticks() -> tuple[int | None, int | None]:
    """Of all its CPUs, what the hypervisor has given to others though this machine had work for them, and all (proc(5))."""
    fields = (text("/proc/stat") or "").partition("\n")[0].split()[1:9]
    return (int(fields[7]), sum(map(int, fields))) if len(fields) == 8 else (None, None)


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
    return watch(asked["watch"], asked["log_dirs"], asked.get("metrics_port", 0))


if __name__ == "__main__":
    json.dump(answer(json.loads(sys.argv[1])), sys.stdout)
