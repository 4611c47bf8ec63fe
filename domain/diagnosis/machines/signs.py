"""What of `VitalSigns` keeps a process from its work, from others, or from ending: for people."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from domain.diagnosis.blocker import Blocker
from domain.diagnosis.machines.vital_signs import Sign, VitalSigns, read_only

MOST_SKEW = 5.0
"""Seconds between two machines' clocks. What takes time between asking and answering is far less."""

MOST_THROTTLED = 0.3
MOST_COLLECTING = 0.5
LEAST_MEMORY, LITTLE_MEMORY, MOST_MAJOR_FAULTS = 0.02, 0.1, 100.0
"""Much that is read is no sign by itself: a program that starts reads its libraries so."""
MOST_OPEN = 0.95
"""Of the limit. Kafka dies of none of its open files, and can take no connection more."""
MOST_AWAITING, LEAST_ON_CPU = 0.5, 0.07
"""Threads that wait for a CPU, and the share of those that could run which do. On a machine with a load of ten for each CPU it
is a tenth."""
MOST_BUSY, SLOW_REQUEST = 0.95, 50.0
"""A share of the time, and milliseconds. A disk that is only busy may take as much as it is asked for; one that is only
slow, now and then, too."""
MOST_PRESSURE = 0.4
MANY_UNREAD = 3
"""Connections. While a client waits for an answer, Kafka reads no second request of it."""
KEEP_AWAY = "If these are a flood (`ss -tn` there), first block what makes it. "
ELSEWHERE = "Check the way there from its machine: a firewall, a route, a link that loses packets, a machine that is gone."
NEARER = (
    "Find what made the way so long: a full queue on a link, a tunnel or a modem (`ping` there, now and when little is sent). "
    "Or another route (`tracepath`), traffic shaping on either machine (`tc -s qdisc`), a proxy that holds traffic back. "
    "Connections need as long to open, and each request to be answered. Longer timeouts only hide it, and a restarted broker "
    "opens all its connections again."
)
ON_DISK = (
    "Check the disk of its data: `dmesg`, `iostat -x 1`, whether its file system is frozen (fsfreeze), or on a network that "
    "is gone (NFS: `nfsstat -m`). It continues by itself once the disk answers."
)
MEND_DEAFNESS = (
    "First fix what starts it, or its next stop fails the same way, and that of every node started so: a script with "
    "`trap '' TERM`, or a supervisor that ignores SIGTERM, passes that on to all that it starts."
)


def signed(entry: Blocker, signs: Sequence[Sign], most: int | None = None, *, is_proved: bool = False) -> Blocker:
    """An entry with what keeps whom it is about from its work, and the cure of that first, but after the entry's own where it
    is slight, and that is proved, or others have the same. `most`: characters that are shown."""
    observed = ". ".join(filter(None, [entry.observed.rstrip(". "), *(sign.observed for sign in signs)]))
    own = "" if any(sign.is_cure for sign in signs) and not is_proved else entry.fix
    aside = [sign for sign in signs if sign.is_slight and (is_proved or sign.is_common)]
    fix = " ".join(filter(None, [*(sign.fix for sign in signs if sign not in aside), own, *(sign.fix for sign in aside)]))
    return entry.model_copy(update={"observed": observed[:most], "fix": fix})


def bad_signs(signs: VitalSigns, names: Mapping[str, str]) -> Iterator[Sign]:
    """The gravest first. `names`: of nodes, by addresses at which they listen."""
    if signs.read_only:
        yield read_only(signs.read_only)
    yield from of_standstill(signs)
    gets_on = signs.on_cpu != 0 and signs.frozen is None
    yield from of_unaccepted(signs) if gets_on else ()
    yield from of_far(signs, names)
    yield from of_unheard(signs, names)
    if signs.unread >= MANY_UNREAD and gets_on:
        yield Sign(
            f"it has not read for a second what {signs.unread} of its connections have brought",
            "Check its threads (jstack) and the last lines of its log: it is busy, or waits for something inside.",
            is_slight=True,
        )
    yield from of_unsent(signs, names)
    if signs.open_files and signs.most_open_files and signs.open_files >= MOST_OPEN * signs.most_open_files:
        yield Sign(
            f"it has {signs.open_files} files open, of at most {signs.most_open_files}",
            "Raise its limit of open files (LimitNOFILE, ulimit -n), which takes a restart; `prlimit` raises it in a running "
            "process.",
        )
    yield from of_load(signs)
    if abs(signs.skew) > MOST_SKEW:
        yield Sign(
            f"its clock is {abs(signs.skew):.0f} s {'ahead of' if signs.skew > 0 else 'behind'} that of keeperless-activities",
            "Correct the clocks (chronyc tracking).",
        )


def of_disks(signs: VitalSigns) -> Iterator[Sign]:
    """Not what is behind everything that they do: a process that starts has much to read."""
    slow = [one for one in signs.disks if one[2] >= MOST_BUSY and one[3] >= SLOW_REQUEST]
    is_pressed = signs.disk_pressure is not None and signs.disk_pressure >= MOST_PRESSURE
    waits = f"programs wait for disks {signs.disk_pressure or 0:.0%} of the time"
    told = [
        f"{path} lies on {disk}, which works {busy:.0%} of the time, {ms:.0f} ms for each request"
        for path, disk, busy, ms in slow
    ]
    if told or (is_pressed and not signs.disks):
        yield Sign(
            "; ".join([*told[:2], *([waits] if is_pressed else [])]),
            "Find what else reads and writes there (`iotop`, `pidstat -d 1`): a backup, a scan, a RAID rebuild. Check the "
            "credits or throughput of a cloud volume, and io.max of its control group. Its disk is slower than what is asked "
            "of it; a restart would have more to read.",
            is_slight=True,
        )


def of_load(signs: VitalSigns) -> Iterator[Sign]:
    yield from of_disks(signs)
    is_throttled = (signs.throttled or 0) >= MOST_THROTTLED
    if is_throttled:
        yield Sign(
            f"a quota of CPU time keeps it waiting {signs.throttled:.0%} of the time",
            "Raise the quota of its control group (CPUQuota=, cpu.max, cpu.cfs_quota_us).",
        )
    ready = (signs.on_cpu or 0) + (signs.awaiting_cpu or 0)
    if (signs.awaiting_cpu or 0) >= MOST_AWAITING and (signs.on_cpu or 0) < min(LEAST_ON_CPU * ready, 0.5) and not is_throttled:
        yield Sign(
            f"its threads wait for a CPU {(signs.awaiting_cpu or 0) / ready:.0%} of the time in which they could run",
            "Find what else has its CPUs (`top -H`, `uptime`): too much work on its machine, programs of a real-time class "
            "or of many threads, or the hypervisor (st). Check which CPUs it may use (taskset -pc PID), and its control "
            "group's share (CPUWeight=).",
            is_slight=True,  # where a JVM starts, others wait for a moment
            is_common=True,
        )
    if (signs.collecting or 0) >= MOST_COLLECTING:
        yield Sign(
            f"its JVM uses {signs.collecting:.1f} CPUs to collect garbage: its heap is nearly full, or a tool asks for it",
            "Give it a larger heap (KAFKA_HEAP_OPTS), which takes a restart, or remove what fills it. If a tool asks for "
            "collections (jmap -histo:live, jcmd GC.run, a monitoring agent), stop that.",
        )
    yield from _of_memory(signs)


def _of_memory(signs: VitalSigns) -> Iterator[Sign]:
    left = 1.0 if signs.memory_available is None else signs.memory_available
    if left < LEAST_MEMORY or (left < LITTLE_MEMORY and (signs.major_faults or 0) >= MOST_MAJOR_FAULTS):
        yield Sign(
            f"{left:.0%} of its machine's memory is left, and it waits {signs.major_faults or 0:.0f} times a second for "
            "memory of its own to be read from a disk",
            "Find what uses the machine's memory (free -m, top), and whether it swaps: it has too little.",
        )


def of_unaccepted(signs: VitalSigns) -> Iterator[Sign]:
    stands = len(signs.unaccepted) > 1 or (signs.unread >= MANY_UNREAD and bool(signs.unaccepted))
    if stands:
        makers = sorted({host for *_, host in signs.unaccepted if host})
        most = f", most of them from {', '.join(makers)}" if makers else ""
        yield Sign(
            f"it accepts no connections at its ports {', '.join(str(port) for port, _, _ in signs.unaccepted)}, where "
            f"{sum(count for _, count, _ in signs.unaccepted)} wait{most}: it is unresponsive as a whole",
            f"{KEEP_AWAY if makers else ''}Check what its threads wait for (`jstack PID`, twice within seconds; `kill -QUIT "
            "PID` prints them into its log): a lock, a plug-in, a library that blocks garbage collection. If it does not "
            "answer that either, only ending its process helps.",
        )
    for port, count, host in () if stands else signs.unaccepted:
        yield Sign(
            f"{count} connections wait at its port {port}, and it accepts them too slowly, or not at all"
            f"{f', most of them from {host}' if host else ''}",
            f"Find what makes them (`ss -tnp` there, dport {port}): a port scanner, a health check, a flood of clients; block "
            "it. If the listener is at its limit (max.connections in the broker's file or /config/brokers; maxCnxns of a "
            "ZooKeeper server), raise that. A ZooKeeper server accepts connections at its election port one by one, waiting "
            "up to ten seconds for each.",
        )


def of_far(signs: VitalSigns, names: Mapping[str, str]) -> Iterator[Sign]:
    found = [(f"{names[where]} at {where}" if where in names else where, seconds) for where, seconds in signs.far]
    if found:
        told = ", ".join(f"{where} ({seconds:.1f} s)" for where, seconds in found[:4])
        yield Sign(
            f"what it sends takes long to get there and be acknowledged, by TCP's own clock: {told}",
            NEARER,
        )


def of_unheard(signs: VitalSigns, names: Mapping[str, str]) -> Iterator[Sign]:
    if signs.unheard:
        found = [f"{names[where]} at {where}" if where in names else where for where in signs.unheard]
        yield Sign(f"what it sends to {', '.join(found[:4])} is not acknowledged", ELSEWHERE)


def of_unsent(signs: VitalSigns, names: Mapping[str, str]) -> Iterator[Sign]:
    if found := queues_to({address.rpartition(":")[0] for address in names}, signs, names):
        more = f" and {len(found) - 4} more" if len(found) > 4 else ""
        yield Sign(
            f"what it sends to {', '.join(found[:4])}{more} waits in its machine's queues all the time",
            "Check its link: slow or full (`ip -s link`, ethtool; traffic shaping: `tc -s qdisc`; another program that sends "
            "much). Otherwise the peer does not read.",
            is_slight=True,
        )


def queues_to(hosts: Collection[str], signs: VitalSigns, names: Mapping[str, str] | None = None) -> list[str]:
    """What much of what it sends waits for, at these hosts, in words."""
    return [
        f"{(names or {}).get(where, where)} ({_kilobytes(size)} wait{_paced(pace)})"
        for where, size, pace in signs.unsent
        if where.rpartition(":")[0] in hosts
    ]


def _paced(pace: float | None) -> str:
    return "" if pace is None else f", {_kilobytes(pace)} a second get through"


def _kilobytes(size: float) -> str:
    return f"{size / 1e3:.1f} kB" if size < 10e3 else f"{size / 1e3:,.0f} kB"


def of_standstill(signs: VitalSigns) -> Iterator[Sign]:
    if signs.frozen is not None:
        yield Sign(
            f"its control group {signs.frozen} is frozen: the kernel lets nothing in it run",
            "Find what freezes it (docker pause, systemctl freeze, a snapshot or a backup), and thaw it: 0 into its "
            "cgroup.freeze, THAWED into freezer.state. If that happens again and again, stop what does it.",
        )
    elif signs.stuck_threads:
        yield Sign(
            f"{signs.stuck_threads} of its threads wait in the kernel without an end: usually a disk, or a file system, that "
            "does not answer",
            ON_DISK,
        )


def of_deafness(signs: VitalSigns, pid: str) -> Iterator[Sign]:
    """Signs of a node whose end is waited for."""
    if signs.ends_by is not None:
        yield Sign(
            f"its process {pid} ignores SIGTERM, with which it is stopped: it was started so, and waiting does not help",
            f"{MEND_DEAFNESS} {end_of_deaf(pid, signs.ends_by)} The step continues by itself then.",
            is_cure=True,
        )


def end_of_deaf(pid: str, ends_by: Sequence[str]) -> str:
    """How to end a process that ignores SIGTERM."""
    if ends_by:
        return f"Then `kill -{ends_by[0]} {pid}`: it ends in order by that as well."
    return (
        "No other signal ends it in order. Once every partition of it that has other replicas has one of them in sync "
        f"(kafka-topics.sh --describe), or, of a controller, the others are a majority: `kill -9 {pid}`. As it starts it "
        "recovers its logs; what was written with acks=1 last may be lost."
    )
