"""Of `VitalSigns`, what lets a process not run, or not end."""

from collections.abc import Iterator, Sequence

from domain.diagnosis.machines.vital_signs import Sign, VitalSigns

ON_DISK = (
    "Check the disk of its data: `dmesg`, `iostat -x 1`, whether its file system is frozen (fsfreeze), or on a network that "
    "is gone (NFS: `nfsstat -m`). It continues by itself once the disk answers."
)


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
    """Of a node that is waited for to end."""
    if signs.ends_by is not None:
        yield Sign(
            f"its process {pid} ignores SIGTERM, with which it is stopped: it was started so, and waiting does not help",
            f"{MEND_DEAFNESS} {end_of_deaf(pid, signs.ends_by)} The step continues by itself then.",
            is_cure=True,
        )


MEND_DEAFNESS = (
    "First fix what starts it, or its next stop fails the same way, and that of every node started so: a script with "
    "`trap '' TERM`, or a supervisor that ignores SIGTERM, passes that on to all that it starts."
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
