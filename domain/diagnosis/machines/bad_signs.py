"""What of `VitalSigns` keeps a process from its work: for people, the gravest first."""

from collections.abc import Iterator, Mapping, Sequence

from domain.diagnosis.blocker import Blocker
from domain.diagnosis.machines.network_signs import MANY_UNREAD, of_far, of_unaccepted, of_unheard, of_unsent
from domain.diagnosis.machines.standstill_signs import of_standstill
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
"""Of the time, and milliseconds. A disk that is only busy may take as much as it is asked for; one that is only slow, now and
then, too."""
MOST_PRESSURE = 0.4


def signed(entry: Blocker, signs: Sequence[Sign], most: int | None = None, *, is_proved: bool = False) -> Blocker:
    """An entry with what keeps whom it is about from its work, and the cure of that first, but after the entry's own where it
    is slight, and that is proved, or others have the same. `most`: characters that are told."""
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
