"""`VitalSigns`: what the kernel of a node's machine says of the node's process.

Looked at only where something is wrong, for people: no decision needs it. What keeps a process from its work: `bad_signs`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from domain.diagnosis.machines.waits import Wait
from domain.observed.parts import ObservedPart

MIB = 1024**2


class VitalSigns(ObservedPart):
    """What was seen in a second. `None`: this machine does not tell.

    `skew`: by how many seconds its clock is ahead of ours. `stuck_threads`: that waited in the kernel all the time, with
    their names (`stuck_named`, as the kernel cuts them), those of the functions in which (`stuck_in`), and programs that are to
    let them go on (`kept_by`); `threads_frozen`: the control group that lets them not run. `throttled`: the
    share of the time in which a quota kept it from its CPUs. `collecting`: CPUs that its JVM's collection of garbage used;
    `stopped`: the share of the time in which its JVM let no thread of it go on, and for what it has collected garbage in
    that second (`collected_for`, in HotSpot's words; empty: it has not).
    `major_faults`: pages a second that it had to wait for a disk for. `memory_available`: share of the machine's. `on_cpu`,
    `awaiting_cpu`: how many of its threads ran, and how many could have and waited for a CPU, on average; `held_to`: what
    its threads are held to by whoever schedules them, in words. `unheard`: addresses, as `host:port`, that its connections
    lead to and from which nothing comes back, and whether what is small gets through (`only_large`);
    `open_anew`: those of them to which new connections from its machine open, where those that it has are dropped;
    `over_loopback`: those that are its own network's, and whether its loopback device is down; `far`: those to which
    the way there and back takes long, and the seconds.
    `unsent`: those that much of what it sends waits for all the time, the bytes that did, and how many a second get through,
    where that is known. `tasks`: processes and threads of its control group,
    and the most that it may have; `tracked`: the same of connections that the machine's firewall keeps track of.
    `read_only`: directories of its data that nothing can be written into; `covered`: those over which something was mounted
    since it opened its files there, and what. `frozen`: the control group that let it not run, at one moment at the least.
    `tracer`: the process that traces it, with its command. `stops`: where signals have stopped it, the share of the time in
    which it stood, how often it was let go on, and who may do that. `unaccepted`: its ports at which connections wait to be
    accepted, how many, and from which host most come; `connected`: at these how many it has taken, and how many of them one
    has, and who. `elsewhere`: of a server of ZooKeeper that nobody finds at its port, its process, and the addresses at
    which it listens instead. `disks`: by directory of its data the disk that it lies on, the share of the time in which
    that worked, and the milliseconds that a request took; `disk_limits`: of control groups that let it do little, the group,
    the disk, and how much of what in a second; `memory_held`: the one at whose limit of memory it sleeps, and that limit in
    bytes; `disk_pressure`, `memory_pressure`: the share of ten seconds in
    which all of its control group, or of its machine, waited for a disk, and for memory; `askers`: who is connected to its
    metrics endpoint, and how often. `heap_dump`: which it writes, the bytes of it so far, and those that are left there.
    `ends_by`: where it ignores SIGTERM, the signals by which it would end in order instead.
    `unread`: connections in which something lay all the time that it did not read. `debugger`: who is connected to where a
    debugger of its JVM is to be. `drops`: counters of its network by which packets were thrown away, and how many.
    `started_by`: who has started it, in words; empty where nobody knows, or it was us.
    `waits`: what threads of it, and of programs that it has begun, wait for that is neither theirs nor a client of theirs.
    `listens`: the addresses at which it accepts connections. `swapped`: bytes of its memory that are in swap, and `swapped_in`
    how many pages a second its machine reads back from there. `stolen`: the share of its CPUs' time that its hypervisor gives
    to others.
    """

    skew: float
    stuck_threads: int
    stuck_in: tuple[str, ...]
    kept_by: tuple[str, ...]
    stuck_named: tuple[str, ...] = ()
    threads_frozen: str | None = None
    open_files: int | None
    most_open_files: int | None
    throttled: float | None
    collecting: float | None
    stopped: float | None
    collected_for: str
    major_faults: float | None
    memory_available: float | None
    on_cpu: float | None
    awaiting_cpu: float | None
    held_to: tuple[str, ...]
    unheard: tuple[str, ...]
    only_large: bool
    far: tuple[tuple[str, float], ...]
    unsent: tuple[tuple[str, int, float | None], ...]
    tasks: tuple[int, int] | None
    tracked: tuple[int, int] | None
    read_only: tuple[str, ...]
    covered: tuple[tuple[str, str], ...]
    frozen: str | None
    tracer: str | None
    stops: tuple[float, int, tuple[str, ...]] | None
    unaccepted: tuple[tuple[int, int, str], ...]
    connected: tuple[tuple[int, int, int, str], ...]
    elsewhere: tuple[int, tuple[str, ...]] | None
    disks: tuple[tuple[str, str, float, float], ...]
    disk_limits: tuple[tuple[str, str, str, int], ...]
    disk_pressure: float | None
    memory_held: tuple[str, int] | None
    memory_pressure: float | None
    askers: tuple[tuple[str, int], ...]
    heap_dump: tuple[str, int, int] | None
    ends_by: tuple[str, ...] | None
    unread: int
    debugger: str | None
    drops: tuple[tuple[str, int], ...]
    started_by: str
    waits: tuple[Wait, ...]
    listens: tuple[str, ...] | None = None
    swapped: int | None = None
    swapped_in: float | None = None
    stolen: float | None = None
    open_anew: tuple[str, ...] = ()
    over_loopback: tuple[str, ...] = ()
    is_loopback_down: bool | None = None


class PortHolder(ObservedPart):
    """Who has a port that a process could not bind: `pid` where we may know it, what it runs as far as that is no secret, and
    of a server of ZooKeeper its `data_dir`. `peer`: it does not listen there, but is connected to that address from there.
    `started_by`: who has started it, in words, as far as that one still runs.
    """

    port: int
    pid: int | None
    command: str
    data_dir: str | None
    peer: str | None
    started_by: str = ""


def vital_signs_in(answer: Mapping[str, object], clock: float, now: float) -> VitalSigns:
    """Of what `activities.on_node.watch_process.watch` gives. `clock`: that machine's when it answered; `now`: ours."""
    return VitalSigns.model_validate({**answer, "skew": clock - now})


@dataclass(frozen=True)
class Sign:
    """What keeps a process from its work, and what to do. `is_slight`: of who is well it says nothing. `is_cure`: what an entry
    would have one do besides is beside the point. `is_common`: much else on its machine has the same.
    """

    observed: str
    fix: str
    is_slight: bool = False
    is_cure: bool = False
    is_common: bool = False


def read_only(places: Sequence[str]) -> Sign:
    return Sign(
        f"{', '.join(places)} can only be read: its file system is mounted so, or the kernel has made it so",
        "Look at what the kernel says of that disk (dmesg), repair it, and mount it for writing.",
    )
