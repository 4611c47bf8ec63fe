"""`VitalSigns`: what the kernel of a node's machine says of the node's process.

Looked at only where something is wrong, for people: no decision needs it. What keeps a process from its work: `signs`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from domain.observed.parts import ObservedPart

MIB = 1024**2


class VitalSigns(ObservedPart):
    """What was seen in a second. `None`: this machine does not tell.

    `skew`: by how many seconds its clock is ahead of ours. `stuck_threads`: that waited in the kernel all the time.
    `throttled`: the share of the time in which a quota kept it from its CPUs. `collecting`: CPUs that its JVM's collection of
    garbage used. `major_faults`: pages a second that it had to wait for a disk for. `memory_available`: share of the machine's.
    `on_cpu`, `awaiting_cpu`: how many of its threads ran, and how many could have and waited for a CPU, on average. `unheard`:
    addresses, as `host:port`, that its connections lead to and from which nothing comes back; `far`: those to which the way
    there and back takes long, and the seconds. `unsent`: those that much of what it sends waits for all the time, the bytes
    that did, and how many a second get through, where that is known. `unread`: connections in which something lay all the time
    that it did not read. `unaccepted`: its ports at which connections wait to be accepted, how many, and from which host most
    come. `read_only`: directories of its data that nothing can be written into; `covered`: those over which something was
    mounted since it opened its files there, and what. `frozen`: the control group that let it not run, at one moment at the
    least. `elsewhere`: of a server of ZooKeeper that no process is found for at its port, its process, and the addresses at
    which it listens instead. `disks`: by directory of its data the disk that it lies on, the share of the time in which that
    worked, and the milliseconds that a request took; `disk_pressure`: the share of ten seconds in which all of its control
    group, or of its machine, waited for a disk. `ends_by`: where it ignores SIGTERM, the signals by which it would end in order
    instead. `started_by`: what has started it, in words; empty where that is not known, or it was us. `listens`: the addresses
    at which it accepts connections.
    """

    skew: float
    stuck_threads: int
    open_files: int | None
    most_open_files: int | None
    throttled: float | None
    collecting: float | None
    major_faults: float | None
    memory_available: float | None
    on_cpu: float | None
    awaiting_cpu: float | None
    unheard: tuple[str, ...]
    far: tuple[tuple[str, float], ...]
    unsent: tuple[tuple[str, int, float | None], ...]
    unread: int
    unaccepted: tuple[tuple[int, int, str], ...]
    read_only: tuple[str, ...]
    covered: tuple[tuple[str, str], ...]
    frozen: str | None
    elsewhere: tuple[int, tuple[str, ...]] | None
    disks: tuple[tuple[str, str, float, float], ...]
    disk_pressure: float | None
    ends_by: tuple[str, ...] | None
    started_by: str
    listens: tuple[str, ...] | None = None


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
        "Check what the kernel says of that disk (dmesg). Repair it, and mount it for writing.",
    )
