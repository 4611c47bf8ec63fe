"""Of `VitalSigns`, who lets a process not run, or not end."""

from collections.abc import Iterator, Sequence

from domain.diagnosis.machines.kernel_waits import standstill_in
from domain.diagnosis.machines.vital_signs import MIB, Sign, VitalSigns


def of_standstill(signs: VitalSigns) -> Iterator[Sign]:
    """Of these what lets it not run at all."""
    if signs.frozen is not None:
        yield Sign(
            f"its control group {signs.frozen} is frozen: the kernel lets nothing in it run",
            "Find who freezes it (docker pause, systemctl freeze, a snapshot or a backup), and let it go on: 0 into its "
            "cgroup.freeze, THAWED into freezer.state. Where that comes again and again, end what does it.",
        )
    if signs.tracer is not None:
        yield Sign(
            f"process {signs.tracer} traces it, and keeps it standing still, or slow",
            f"Detach that debugger, or end it: kill {signs.tracer.partition(' ')[0]}. No other signal lets it go on.",
        )
    if signs.stops is not None and is_stopped_by_turns(signs):
        yield from of_stops(*signs.stops)
    if signs.debugger is not None:
        yield Sign(
            f"a debugger is connected to its JVM from {signs.debugger}: it may hold any of its threads, or all",
            "Detach that debugger, or end its program: the JVM goes on by itself then. Close that port to others, or start the "
            "node without -agentlib:jdwp (KAFKA_DEBUG, KAFKA_OPTS).",
        )
    if signs.heap_dump is not None:
        path, size, free = signs.heap_dump
        yield Sign(
            f"it writes a heap dump to {path}, {size // MIB} MiB so far, and stands still meanwhile. {free // MIB} MiB are "
            "left on that volume",
            "Let the dump come to its end: nothing is to be restarted for it, and it needs as much room there as the heap has "
            "in use. Look who has asked for it: jmap, `jcmd` with GC.heap_dump, a monitoring agent; keep that away until the "
            "migration has ended. Or, with -XX:+HeapDumpOnOutOfMemoryError, its heap was full: then it ends or goes on after "
            "it, and needs a larger one (KAFKA_HEAP_OPTS).",
            is_cure=True,
        )
    if signs.frozen is not None or not signs.stuck_threads:
        return
    named = f" ({', '.join(signs.stuck_named)})" if signs.stuck_named else ""
    threads = f"{signs.stuck_threads} of its threads{named}"
    if signs.threads_frozen is not None:
        yield Sign(
            f"{threads} stand still: their control group {signs.threads_frozen} is frozen, and the kernel lets nothing in it "
            "run",
            f"Find who has put them there, and let them go on: THAWED into {signs.threads_frozen}/freezer.state (0 into "
            "cgroup.freeze, of version 2). Until then it does nothing of what these threads do, and may not end in order.",
            is_cure=True,
        )
        return
    kind = standstill_in(signs.stuck_in)
    where = f" (in {', '.join(signs.stuck_in)})" if signs.stuck_in else ""
    by = f". That is {', '.join(signs.kept_by)}" if signs.kept_by else ""
    yield Sign(f"{threads} wait in the kernel without an end{where}: {kind.what}{by}", kind.fix)


def is_stopped_by_turns(signs: VitalSigns) -> bool:
    """Rather than once for all: it was let go on twice within a second, or somebody is there who does that."""
    if signs.stops is None:
        return False
    _, let_go, who = signs.stops
    return let_go > 1 or bool(who)


def of_stops(share: float, times: int, who: Sequence[str]) -> Iterator[Sign]:
    by = f"; it may be {', '.join(who)}" if who else ""
    pids = " ".join(one.partition(" ")[0] for one in who)
    find = (
        f"End that program, and what starts it anew (a unit, cron): kill {pids}"
        if who
        else "Find the program that sends these signals, and end it: cpulimit, cputool, a script with `kill -STOP` (auditctl "
        "-a always,exit -S kill)"
    )
    yield Sign(
        f"it is stopped and let go on by signals (SIGSTOP, SIGCONT), {times} times in the second in which it was watched, and "
        f"stands still {share:.0%} of the time: somebody limits its CPU time so{by}",
        f"{find}. Then `kill -CONT` the node's process once, if it still stands; before that, it helps for a moment only. What "
        "is to have less of the CPUs gets CPUWeight= in its unit.",
        is_cure=True,
    )


def of_deafness(signs: VitalSigns, pid: str) -> Iterator[Sign]:
    """Of a node that is waited for to end."""
    if signs.ends_by is not None:
        yield Sign(
            f"its process {pid} ignores SIGTERM, by which it is told to stop: it was started so, and to wait does not help",
            f"{MEND_DEAFNESS} {end_of_deaf(pid, signs.ends_by)} The step goes on by itself then.",
            is_cure=True,
        )


MEND_DEAFNESS = (
    "First mend what starts it, or the same comes at its next stop, and at every node that is started so: a script with "
    "`trap '' TERM`, or a supervisor that ignores SIGTERM, hands that on to all that it starts."
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
