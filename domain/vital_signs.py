"""`VitalSigns`: what the kernel of a node's machine says of the node's process, and what of that keeps a process from its work.

Looked at only where something is wrong, for people: no decision needs it.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from domain.blocker import Blocker
from domain.drops import dropped
from domain.kernel_waits import standstill_in
from domain.observed import ObservedPart
from domain.waits import Wait, wait_in_words

MOST_SKEW = 5.0
"""Seconds between two machines' clocks. What takes time between asking and answering is far less."""
MOST_THROTTLED = 0.3
MOST_COLLECTING = 0.5
MOST_STOPPED = 0.2
ASKED_FOR = re.compile(r"Heap Inspection|Heap Dump|System\.gc|Diagnostic Command|JvmtiEnv|WhiteBox", re.IGNORECASE)
"""Causes of collections that HotSpot does not make for want of room (GCCause)."""
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
RESCHEDULE = (
    "Give its threads back what others have: `chrt -a -o -p 0 PID`, `renice -n 0 -p $(ls /proc/PID/task)`, `echo 0 > "
    "/proc/PID/autogroup`, `taskset -a -c -p CPUS PID`. Find what has taken it, or it comes again: CPUSchedulingPolicy=, "
    "Nice= or CPUAffinity= of its unit, a tool that sets priorities of others' programs (ananicy), a wrapper of its start "
    "(chrt, nice, taskset). "
)
MOST_PRESSURE = 0.4
MIB = 1024**2
MOST_WAITS = 3
MANY_CONNECTED = 50
"""Connections at one port from which on it is told who has most: far fewer than any limit that somebody would set."""
MANY_UNREAD = 3
"""Connections. Of who waits for an answer Kafka reads no second request meanwhile."""
MANY_ASKERS = 3
"""Connections to a metrics endpoint: one is kept open by whoever collects metrics."""
MOST_TRACKED = 0.99
"""Of the limit; 0 is none."""


class VitalSigns(ObservedPart):
    """What was seen in a second. `None`: this machine does not tell.

    `skew`: by how many seconds its clock is ahead of ours. `stuck_threads`: that waited in the kernel all the time, with
    the names of the functions in which (`stuck_in`), and programs that are to let them go on (`kept_by`). `throttled`: the
    share of the time in which a quota kept it from its CPUs. `collecting`: CPUs that its JVM's collection of garbage used;
    `stopped`: the share of the time in which its JVM let no thread of it go on, and for what it has collected garbage in
    that second (`collected_for`, in HotSpot's words; empty: it has not).
    `major_faults`: pages a second that it had to wait for a disk for. `memory_available`: share of the machine's. `on_cpu`,
    `awaiting_cpu`: how many of its threads ran, and how many could have and waited for a CPU, on average; `held_to`: what
    its threads are held to by whoever schedules them, in words. `unheard`: addresses, as `host:port`, that its connections
    lead to and from which nothing comes back; `far`: those to which the way there and back takes long, and the seconds.
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
    that worked, and the milliseconds that a request took; `disk_pressure`, `memory_pressure`: the share of ten seconds in
    which all of its control group, or of its machine, waited for a disk, and for memory; `askers`: who is connected to its
    metrics endpoint, and how often. `heap_dump`: which it writes, the bytes of it so far, and those that are left there.
    `ends_by`: where it ignores SIGTERM, the signals by which it would end in order instead.
    `unread`: connections in which something lay all the time that it did not read. `debugger`: who is connected to where a
    debugger of its JVM is to be. `drops`: counters of its network by which packets were thrown away, and how many.
    `waits`: what threads of it, and of programs that it has begun, wait for that is neither theirs nor a client of theirs.
    """

    skew: float
    stuck_threads: int
    stuck_in: tuple[str, ...]
    kept_by: tuple[str, ...]
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
    disk_pressure: float | None
    memory_pressure: float | None
    askers: tuple[tuple[str, int], ...]
    heap_dump: tuple[str, int, int] | None
    ends_by: tuple[str, ...] | None
    unread: int
    debugger: str | None
    drops: tuple[tuple[str, int], ...]
    waits: tuple[Wait, ...]


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
    would have one do besides is beside the point. `about`: the addresses that it tells of, and nothing else.
    """

    observed: str
    fix: str
    is_slight: bool = False
    is_cure: bool = False
    about: tuple[str, ...] = ()


def signed(entry: Blocker, signs: Sequence[Sign], most: int | None = None, *, is_proved: bool = False) -> Blocker:
    """An entry with what keeps whom it is about from its work, and the cure of that first, but after the cure of what is proved
    where it is slight. `most`: characters that are told."""
    observed = ". ".join(filter(None, [entry.observed.rstrip(". "), *(sign.observed for sign in signs)]))
    own = "" if any(sign.is_cure for sign in signs) and not is_proved else entry.fix
    aside = [sign for sign in signs if sign.is_slight and is_proved]
    fix = " ".join(filter(None, [*(sign.fix for sign in signs if sign not in aside), own, *(sign.fix for sign in aside)]))
    return entry.model_copy(update={"observed": observed[:most], "fix": fix})


def bad_signs(signs: VitalSigns, names: Mapping[str, str]) -> Iterator[Sign]:
    """The gravest first. `names`: of nodes, by addresses at which they listen."""
    if signs.read_only:
        yield Sign(
            f"{', '.join(signs.read_only)} can only be read: its file system is mounted so, or the kernel has made it so",
            "Look at what the kernel says of that disk (dmesg), repair it, and mount it for writing.",
        )
    yield from of_standstill(signs)
    is_running = _is_running(signs)
    yield from _of_unaccepted(signs) if is_running else ()
    yield from _of_far(signs, names)
    yield from _of_unheard(signs, names)
    if signs.unread >= MANY_UNREAD and is_running:
        yield Sign(
            f"it has not read for a second what {signs.unread} of its connections have brought",
            "It is busy, or waits for something inside: look at its threads (jstack), and at what its log says last.",
            is_slight=True,
        )
    yield from _of_unsent(signs, names)
    yield from _of_limits(signs)
    if signs.open_files and signs.most_open_files and signs.open_files >= MOST_OPEN * signs.most_open_files:
        yield Sign(
            f"it has {signs.open_files} files open, of at most {signs.most_open_files}",
            "Raise its limit of open files (LimitNOFILE, ulimit -n), which takes a restart; a running process's: prlimit.",
        )
    yield from _of_load(signs)
    if abs(signs.skew) > MOST_SKEW:
        yield Sign(
            f"its clock is {abs(signs.skew):.0f} s {'ahead of' if signs.skew > 0 else 'behind'} that of keeperless-activities",
            "Set the clocks right (chronyc tracking).",
        )
    yield from _of_waits(signs, names)
    if not signs.unheard:
        yield from _of_drops(signs)


KEEP_AWAY = "Where these are a flood (`ss -tn` there), keep who makes it away first. "


def _is_running(signs: VitalSigns) -> bool:
    """Whether anything of it gets on, and nobody holds it."""
    holders = (signs.tracer, signs.stops, signs.frozen, signs.heap_dump, signs.debugger)
    return signs.on_cpu != 0 and all(holder is None for holder in holders)


def _of_unaccepted(signs: VitalSigns) -> Iterator[Sign]:
    stands = len(signs.unaccepted) > 1 or (signs.unread >= MANY_UNREAD and bool(signs.unaccepted))
    if stands:
        makers = sorted({host for *_, host in signs.unaccepted if host})
        most = f", most of them from {', '.join(makers)}" if makers else ""
        yield Sign(
            f"it takes no connections at its ports {', '.join(str(port) for port, _, _ in signs.unaccepted)}, where "
            f"{sum(count for _, count, _ in signs.unaccepted)} wait{most}: it stands still as a whole",
            f"{KEEP_AWAY if makers else ''}Look what its threads stand in (`jstack PID`, twice within seconds; `kill -QUIT "
            "PID` prints them into its log): a lock, a plug-in, a library that keeps its JVM from collecting garbage. Where it "
            "does not even answer that, only an end of its process helps.",
        )
    connected = {port: (count, has, who) for port, count, has, who in signs.connected if count >= MANY_CONNECTED}
    for port, count, host in () if stands else signs.unaccepted:
        most = f", most of them from {host}" if host else ""
        if port in connected:
            yield _of_connected(port, count, *connected[port])
            continue
        yield Sign(
            f"{count} connections wait at its port {port}, and it accepts them too slowly, or not at all{most}",
            f"Find who makes them (`ss -tnp` there, dport {port}): a port scanner, a health check, a flood of clients; keep it "
            "away. ZooKeeper takes those at its election port one by one, and waits up to ten seconds for each to speak.",
        )


def _of_connected(port: int, waiting: int, taken: int, has: int, who: str) -> Sign:
    """It may have as many as it takes: a broker at its limit accepts nobody, and says nothing of it (ConnectionQuotas)."""
    return Sign(
        f"{waiting} connections wait at its port {port}, and it accepts them too slowly, or not at all; it has {taken} there, "
        f"of which {who} has {has}",
        f"If {who} is one that leaks connections, end it, or what it does. Where {taken} is what that listener may have "
        "(max.connections in the broker's file, in /config/brokers, or with the listener's name before it; of a server of "
        "ZooKeeper maxCnxns), it takes the next one only when one goes: raise that limit, a restart helps for a moment only. "
        f"Else find who makes those that wait (`ss -tnp` there, dport {port}): a port scanner, a health check, a flood of "
        "clients; keep it away.",
    )


NEARER = (
    "Connections need as long to open, and each request to be answered. Look what has made the way so long: a queue that is "
    "full on a link, a tunnel or a modem (`ping` there, now and when little is sent), a route that leads elsewhere by now "
    "(`tracepath`), what shapes or delays it on either machine (`tc -s qdisc`), a proxy that holds back what passes. Longer "
    "timeouts only hide it, and a restart of a broker makes all its connections open anew."
)


def _of_far(signs: VitalSigns, names: Mapping[str, str]) -> Iterator[Sign]:
    found = [(f"{names[where]} at {where}" if where in names else where, seconds) for where, seconds in signs.far]
    if found:
        told = ", ".join(f"{where} ({seconds:.1f} s)" for where, seconds in found[:4])
        yield Sign(
            f"what it sends takes long to get there and be acknowledged, by TCP's own clock: {told}",
            NEARER,
            about=tuple(where for where, _ in signs.far),
        )


def _of_unheard(signs: VitalSigns, names: Mapping[str, str]) -> Iterator[Sign]:
    if signs.unheard:
        yield from _of_drops(signs)
        found = [f"{names[where]} at {where}" if where in names else where for where in signs.unheard]
        yield Sign(
            f"what it sends to {', '.join(found[:4])} is not acknowledged",
            "Look at the way there from its machine: a firewall, a route, a link that loses packets, a machine that is gone.",
            about=signs.unheard,
        )


def _of_unsent(signs: VitalSigns, names: Mapping[str, str]) -> Iterator[Sign]:
    if found := queues_to({address.rpartition(":")[0] for address in names}, signs, names):
        more = f" and {len(found) - 4} more" if len(found) > 4 else ""
        yield Sign(
            f"what it sends to {', '.join(found[:4])}{more} waits in its machine's queues all the time",
            "Its link is slow or full (ip -s link, ethtool; what shapes it: tc -s qdisc; another program that sends much), or "
            "who is there does not read.",
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


def _of_drops(signs: VitalSigns) -> Iterator[Sign]:
    for what, fix in dropped(signs.drops):
        yield Sign(f"the network of its machine has thrown away, in that second, {what}", fix, is_slight=True)


def _of_waits(signs: VitalSigns, names: Mapping[str, str]) -> Iterator[Sign]:
    """Evidence rather than a verdict: some threads wait for ever where all is well."""
    told = [wait_in_words(wait, names) for wait in signs.waits[:MOST_WAITS]]
    if told and signs.frozen is None and signs.tracer is None:
        yield Sign(
            f"by its kernel, {'; '.join(told)}",
            "See why what its threads wait for does not come: who is at the other end, or has the lock. They go on by "
            "themselves once it does.",
            is_slight=True,
        )


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
        yield from _of_stops(*signs.stops)
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
    kind = standstill_in(signs.stuck_in)
    where = f" (in {', '.join(signs.stuck_in)})" if signs.stuck_in else ""
    by = f". That is {', '.join(signs.kept_by)}" if signs.kept_by else ""
    yield Sign(f"{signs.stuck_threads} of its threads wait in the kernel without an end{where}: {kind.what}{by}", kind.fix)


def is_stopped_by_turns(signs: VitalSigns) -> bool:
    """Rather than once for all: it was let go on twice within a second, or somebody is there who does that."""
    if signs.stops is None:
        return False
    _, let_go, who = signs.stops
    return let_go > 1 or bool(who)


def _of_stops(share: float, times: int, who: Sequence[str]) -> Iterator[Sign]:
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


def _of_limits(signs: VitalSigns) -> Iterator[Sign]:
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


def of_askers(signs: VitalSigns) -> Iterator[Sign]:
    """Of a node whose metrics endpoint has not answered in time."""
    if signs.heap_dump is None and sum(count for _, count in signs.askers) >= MANY_ASKERS:
        who = ", ".join(f"{host} ({count})" for host, count in signs.askers)
        yield Sign(
            f"its metrics endpoint has connections open from {who}: others ask it, and may wait likewise",
            "Its metrics are collected anew for everybody who asks, and with thousands of partitions that takes long: let "
            "fewer ask, and less often (scrape_interval), or leave out what nobody needs (includeObjectNames), not Kafka's own "
            "gauges.",
        )


def _of_disks(signs: VitalSigns) -> Iterator[Sign]:
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


def _of_collections(signs: VitalSigns) -> Iterator[Sign]:
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


def _of_load(signs: VitalSigns) -> Iterator[Sign]:
    yield from _of_disks(signs)
    if (signs.throttled or 0) >= MOST_THROTTLED:
        yield Sign(
            f"a quota of CPU time keeps it waiting {signs.throttled:.0%} of the time",
            "Raise the quota of its control group (CPUQuota=, cpu.max, cpu.cfs_quota_us).",
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
        )
    yield from _of_collections(signs)
    left = signs.memory_available if signs.memory_available is not None else 1.0
    if left < LEAST_MEMORY or (left < LITTLE_MEMORY and (signs.major_faults or 0) >= MOST_MAJOR_FAULTS):
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
