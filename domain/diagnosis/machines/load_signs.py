"""Of `VitalSigns`, what a process has too little of: CPUs, memory, a disk, files, tasks."""

import re
from collections.abc import Iterator

from domain.diagnosis.machines.vital_signs import MIB, Sign, VitalSigns

MOST_THROTTLED = 0.3
MOST_COLLECTING = 0.5
MOST_STOPPED = 0.2
ASKED_FOR = re.compile(r"Heap Inspection|Heap Dump|System\.gc|Diagnostic Command|JvmtiEnv|WhiteBox", re.IGNORECASE)
"""Causes of collections that HotSpot does not make for want of room (GCCause)."""
LEAST_MEMORY, LITTLE_MEMORY, MOST_MAJOR_FAULTS = 0.02, 0.1, 100.0
"""Much that is read is no sign by itself: a program that starts reads its libraries so."""
MOST_SWAPPED = 64 * MIB
"""That alone is what it has not touched for long."""
MOST_STOLEN = 0.3
MOST_OPEN = 0.95
"""Of the limit. Kafka dies of none of its open files, and can take no connection more."""
MOST_AWAITING, LEAST_ON_CPU = 0.5, 0.07
"""Threads that wait for a CPU, and the share of those that could run which do. On a machine with a load of ten for each CPU it
is a tenth."""
MOST_BUSY, SLOW_REQUEST = 0.95, 50.0
"""Of the time, and milliseconds. A disk that is only busy may take as much as it is asked for; one that is only slow, now and
then, too."""
RESCHEDULE = (
    "Give its threads back what others have: `chrt -a -o -p 0 PID`, `renice -n 0 -p $(ls /proc/PID/task)`, `echo 0 > "
    "/proc/PID/autogroup`, `taskset -a -c -p CPUS PID`. Find what has taken it, or it comes again: CPUSchedulingPolicy=, "
    "Nice= or CPUAffinity= of its unit, a tool that sets priorities of others' programs (ananicy), a wrapper of its start "
    "(chrt, nice, taskset). "
)
MOST_PRESSURE = 0.4
MOST_TRACKED = 0.99
"""Of the limit; 0 is none."""


def of_limits(signs: VitalSigns) -> Iterator[Sign]:
    if signs.tracked is not None and signs.tracked[1] and signs.tracked[0] >= MOST_TRACKED * signs.tracked[1]:
        yield Sign(
            f"the firewall of its machine tracks {signs.tracked[0]} connections, of at most {signs.tracked[1]}: it drops all "
            "new ones (nf_conntrack: table full)",
            "Raise net.netfilter.nf_conntrack_max (sysctl), and end what holds so many (conntrack -L, ss -s).",
        )
    if signs.tasks is not None and signs.tasks[0] >= signs.tasks[1]:
        yield Sign(
            f"its control group has {signs.tasks[0]} processes and threads, of at most {signs.tasks[1]}: it can start none",
            "Raise that limit (TasksMax= of its unit, pids.max), or end what has so many (systemctl status, ps -eLf).",
        )


def of_groups(signs: VitalSigns) -> Iterator[Sign]:
    """Limits of control groups at which it stands still although its machine has more."""
    if signs.memory_held is not None:
        group, most = signs.memory_held
        yield Sign(
            f"its control group {group} is at its limit of memory, {most // MIB} MiB, and nobody is killed for that "
            "(oom_kill_disable): what asks for more there sleeps until there is some",
            "Raise that limit (memory.limit_in_bytes, MemoryLimit= of its unit, `docker update --memory`): it goes on at once. "
            "Take --oom-kill-disable away at its next start. A restart alone comes to the same.",
            is_cure=True,
        )
    disks = [disk for _, disk, _, _ in signs.disks]
    limits = [limit for limit in signs.disk_limits if not disks or any(disk.startswith(limit[1]) for disk in disks)]
    if limits:
        told = [f"{most} {what} a second at {disk} ({group})" for group, disk, what, most in limits]
        yield Sign(
            f"its control group lets it do little to its disk: {', '.join(told[:4])}",
            "Lift that limit: io.max, or blkio.throttle.* of version 1 (IOReadBandwidthMax=, IOWriteBandwidthMax=, "
            "IOReadIOPSMax=, IOWriteIOPSMax= of its unit; --device-write-bps of its container). It goes on at once; the disk "
            "itself may be well, and no restart helps.",
            is_cure=bool(disks),
        )


def of_disks(signs: VitalSigns) -> Iterator[Sign]:
    """Not what is behind everything that they do: who starts has much to read."""
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
            "Its disk is slower than what is asked of it: look who reads and writes there (`iotop`, `pidstat -d 1`: a backup, "
            "a scan, a RAID that is rebuilt), whether a volume of a cloud has used up its credits or its throughput, and at "
            "io.max of its control group. A restart would have more to read.",
            is_slight=True,
        )


def of_collections(signs: VitalSigns) -> Iterator[Sign]:
    stops, collects = (signs.stopped or 0) >= MOST_STOPPED, (signs.collecting or 0) >= MOST_COLLECTING
    if (stops or collects) and ASKED_FOR.search(signs.collected_for):
        share = f", and let none of its threads go on for {signs.stopped:.0%} of that second" if stops else ""
        yield Sign(
            f"its JVM collects garbage because something asks it to, and not for want of heap ({signs.collected_for}){share}",
            "Find who does, and end that: a script or a tool that asks again and again (jmap -histo:live, jcmd "
            "GC.class_histogram or GC.run, a monitoring agent, gc of java.lang:type=Memory by JMX). It goes by the JVM's pid, "
            "and is mostly among the programs that run on its machine as root or as its user. A larger heap makes it worse. Of "
            "System.gc() the JVM itself may be who asks: where memory outside of its heap runs out, raise "
            "-XX:MaxDirectMemorySize.",
        )
    elif collects:
        yield Sign(
            f"its JVM uses {signs.collecting:.1f} CPUs to collect garbage: its heap is nearly full",
            "Give it a larger heap (KAFKA_HEAP_OPTS), which takes a restart, or take away what fills it.",
        )


def of_load(signs: VitalSigns) -> Iterator[Sign]:
    yield from of_disks(signs)
    if (signs.throttled or 0) >= MOST_THROTTLED:
        yield Sign(
            f"a quota of CPU time keeps it waiting {signs.throttled:.0%} of the time",
            "Raise the quota of its control group (CPUQuota=, cpu.max, cpu.cfs_quota_us).",
        )
    if (signs.stolen or 0) >= MOST_STOLEN:
        yield Sign(
            f"its machine is a virtual one, and its hypervisor gives {signs.stolen:.0%} of its CPUs' time to others (steal)",
            "What it may use of its CPUs is used up (credits of a burstable machine: take another kind, or let it have more), "
            "or its host has too many machines: have it moved, or its CPUs reserved. `vmstat 1` there shows it (st). No "
            "restart helps: it takes more of what is missing.",
            is_slight=True,
        )
    ready = (signs.on_cpu or 0) + (signs.awaiting_cpu or 0)
    is_throttled = (signs.throttled or 0) >= MOST_THROTTLED or signs.stops is not None  # told, and makes threads wait as well
    if (signs.awaiting_cpu or 0) >= MOST_AWAITING and (signs.on_cpu or 0) < min(LEAST_ON_CPU * ready, 0.5) and not is_throttled:
        held = f", and are held to {' and '.join(signs.held_to)}" if signs.held_to else ""
        yield Sign(
            f"its threads wait for a CPU {(signs.awaiting_cpu or 0) / ready:.0%} of the time in which they could run{held}",
            f"{RESCHEDULE if held else ''}Something else has its CPUs: look (top -H, uptime) whether its machine has too "
            "much to do, for programs of a real-time class or of many threads, and for what the hypervisor takes (st); at the "
            "CPUs that it may use (taskset -pc PID), and its control group's share (CPUWeight=).",
            is_slight=True,  # where a JVM starts, others wait for a moment
            is_common=not held,
        )
    yield from of_collections(signs)
    yield from of_memory(signs)


def of_memory(signs: VitalSigns) -> Iterator[Sign]:
    left = signs.memory_available if signs.memory_available is not None else 1.0
    if (signs.swapped or 0) >= MOST_SWAPPED and min(signs.swapped_in or 0, signs.major_faults or 0) >= MOST_MAJOR_FAULTS:
        yield Sign(
            f"{(signs.swapped or 0) // MIB} MiB of its memory are in swap, and it waits {signs.major_faults:.0f} times a "
            f"second for memory to be read from a disk ({left:.0%} of its machine's memory could be had)",
            "Its heap was moved into swap, mostly for a cache of files, as while something large was copied: set "
            "vm.swappiness to 1 (sysctl), and look what has taken the memory (free -m, top; memory.high of its control group). "
            "MemorySwapMax=0 of its unit keeps it out of swap. `swapoff -a`, where as much memory is free as is in swap, "
            "brings all back at once; a restart does as well, once all partitions can spare it.",
        )
    elif left < LEAST_MEMORY or (left < LITTLE_MEMORY and (signs.major_faults or 0) >= MOST_MAJOR_FAULTS):
        yield Sign(
            f"{left:.0%} of its machine's memory is left, and it waits {signs.major_faults or 0:.0f} times a second for "
            "memory of its own to be read from a disk",
            "The machine has too little memory: look what uses it (free -m, top), and whether it swaps.",
        )
    elif (signs.memory_pressure or 0) >= MOST_PRESSURE:
        yield Sign(
            f"programs of its control group, or of its machine, wait for memory {signs.memory_pressure:.0%} of the time",
            "Give them more: MemoryHigh= and MemoryMax= of its unit (memory.high, memory.max), or the machine; or lower -Xmx.",
        )
