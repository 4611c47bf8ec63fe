"""What connections of a process tell of its peers, of itself, and of what is between: a part of each program that imports it.
Python 3.7 or later.
"""

from __future__ import annotations

import re
from collections import Counter

from activities.on_node.commands import run
from activities.on_node.kernel import (
    CONNECTING,
    ESTABLISHED,
    LISTENING,
    address,
    address_of,
    inodes_of,
    link,
    names,
    owner,
    port_of,
    process_named,
    tcp_lines,
    text,
)

MUCH_UNSENT = 64 * 1024
"""Bytes in a connection's queue, look for look: more than a peer that reads leaves there on a link that is not full. Where it
is known what gets through (tcp_info), what counts instead is whether the queue would take longer than a second."""
IPV4_IN_IPV6 = re.compile(r"\[::ffff:([\d.]+)\]")
ACKED = re.compile(r"\bbytes_acked:(\d+)")
TOOK = re.compile(r"\brtt:([\d.]+)/")
FAR_SECONDS = 0.5
"""Who acknowledges late on purpose does so within 0.2."""
UNACCEPTED = frozenset({ESTABLISHED, "08"})
"""And CLOSE_WAIT: who has given up."""
MANY_UNACCEPTED = 5
"""Connections that wait at a port, look for look: a program that is well accepts them as they come."""
DEBUGGED = re.compile(r"jdwp=[^\0 ]*?address=(?:[^\0 ,]*:)?(\d+)")
"""As a JVM is told where its debugger listens, or is listened for."""
OF_OWN_HOST = re.compile(r"\|-- ([\d.]+)\n\s+/32 host LOCAL")
"""Of its table of routes: an address that is the machine's own."""
UP = 0x1
"""IFF_UP (netdevice(7))."""
DROPPED = re.compile(
    r"Xfrm:|.*(MD5|TCPAO(?!Good)|CsumErrors|NoRoutes)|Ip:(OutDiscards|InAddrErrors|FragFails)"
    r"|TcpExt:(IPReversePathFilter|PFMemallocDrop|TCPMinTTLDrop|TCPReqQFullDrop|TCPZeroWindowDrop)|Neighbours:(table_fulls)"
)
"""Counters that stand still where all is well."""


def undelivered(lines: list[list[str]], inodes: set[str]) -> list[str]:
    """Where its connections lead to from which nothing comes back, so that it sends again and again."""
    most = {CONNECTING: 1, ESTABLISHED: 2}
    own = (fields for fields in lines if fields[9] in inodes and fields[3] in most)
    return sorted({address(fields[2]) for fields in own if int(fields[6], 16) >= most[fields[3]]})


def over_loopback(process: str, places: set[str]) -> set[str]:
    """Which of these are at its own network's addresses: what is sent there does not leave the machine."""
    table = OF_OWN_HOST.findall((text(f"{process}/net/fib_trie") or "") if places else "")
    six = (line.split()[0] for line in (text(f"{process}/net/if_inet6") or "").splitlines()) if places else ()
    own = {*table, "[::1]", *(address_of(bytes.fromhex(number), 0).rpartition(":")[0] for number in six)}
    return {where for where in places if _host(where) in own or where.startswith("127.")}


def is_loopback_down(process: str) -> bool | None:
    """`None` where its sysfs may be that of another network (sysfs shows the network of whoever has mounted it)."""
    other, seen = (link(f"{process}/ns/{kind}") != link(f"/proc/self/ns/{kind}") for kind in ("net", "mnt"))
    flags = text(f"{process}/root/sys/class/net/lo/flags") if seen or not other else None
    return None if flags is None else not int(flags, 16) & UP


LEAST_LARGE = 500
"""Bytes. What passes everywhere: a path of 576 is the smallest that IPv4 has to carry (RFC 791)."""


def held_up(lines: list[list[str]], inodes: set[str]) -> dict[tuple[str, str], int]:
    """Connections that send the same again and again, by both ends, and how many bytes of them wait."""
    own = (fields for fields in lines if fields[9] in inodes and fields[3] == ESTABLISHED and int(fields[6], 16) > 1)
    return {(address(fields[1]), address(fields[2])): int(fields[4].partition(":")[0], 16) for fields in own}


def is_only_large(held: dict[tuple[str, str], int], seen: list[dict[tuple[str, str], tuple[int, float]]]) -> bool:
    """Whether only large packets are lost: what is held up is large, and beside each such connection another one with the same
    host gets on, to the same port there or from the same port here. `seen`: what peers have taken, at first and at last."""
    first, last = seen
    getting_on = [ends for ends in last if ends not in held and ends in first and last[ends][0] > first[ends][0]]
    beside = {(here, _host(peer)) for here, peer in getting_on}
    to = {peer for _, peer in getting_on}
    is_beside = all((here, _host(peer)) in beside or peer in to for here, peer in held)
    return bool(held) and min(held.values()) >= LEAST_LARGE and is_beside


def _host(where: str) -> str:
    return where.rpartition(":")[0]


def queues(lines: list[list[str]], inodes: set[str]) -> dict[tuple[str, str], int]:
    """By both ends the bytes that wait to be taken by the peer of a connection of its."""
    own = (fields for fields in lines if fields[9] in inodes and fields[3] == ESTABLISHED)
    sizes = ((fields, int(fields[4].partition(":")[0], 16)) for fields in own)
    return {(address(fields[1]), address(fields[2])): size for fields, size in sizes if size}


def acknowledged() -> dict[tuple[str, str], tuple[int, float]]:
    """By both ends how many bytes peers of this machine's connections have taken, and the seconds for the way there and back;
    empty where nothing says so (tcp_info)."""
    found: dict[tuple[str, str], tuple[int, float]] = {}
    ends = ("", "")
    for line in (run("ss", "-tinH", "state", "established") or "").splitlines():
        if line[:1].strip():
            here, peer = IPV4_IN_IPV6.sub(r"\1", line).split()[2:4]
            ends = (here, peer)
        elif ends != ("", ""):
            acked, took = ACKED.search(line), TOOK.search(line)
            found[ends] = (int(acked.group(1)) if acked else 0, float(took.group(1)) / 1e3 if took else 0.0)
    return found


def far(waiting: list[dict[tuple[str, str], int]], first: dict[tuple[str, str], tuple[int, float]]) -> list[tuple[str, float]]:
    """Peers that what is sent to them takes long to reach and to be acknowledged by, and the seconds: the slowest first."""
    found: dict[str, float] = {}
    for ends in set().union(*waiting).intersection(first):
        if first[ends][1] >= FAR_SECONDS:
            found[ends[1]] = max(first[ends][1], found.get(ends[1], 0.0))
    return sorted(found.items(), key=lambda one: (-one[1], one[0]))


def unsent(
    waiting: list[dict[tuple[str, str], int]], first: dict[tuple[str, str], tuple[int, float]], seconds: float
) -> list[tuple[str, int, float | None]]:
    """Peers for which much waits look for look, how much does in the last, and how many bytes a second get through since
    `first` was asked, as far as that is known: the slowest first."""
    always = set(waiting[0]).intersection(*waiting)
    last = acknowledged() if first and always else {}
    found: list[tuple[str, int, float | None]] = []
    for ends in always:
        size = waiting[-1][ends]
        if ends in first and ends in last:
            pace = (last[ends][0] - first[ends][0]) / seconds
            if size > pace:
                found.append((ends[1], size, pace))
        elif min(one[ends] for one in waiting) >= MUCH_UNSENT:
            found.append((ends[1], size, None))
    return sorted(found, key=lambda one: (one[2] is None, one[2] or 0.0, one[0]))


def unread(lines: list[list[str]], inodes: set[str]) -> set[tuple[str, str]]:
    """Connections in which something lies that it has not read: both ends."""
    own = (fields for fields in lines if fields[9] in inodes and fields[3] == ESTABLISHED)
    return {(fields[1], fields[2]) for fields in own if int(fields[4].partition(":")[2], 16)}


def accepts_not(lines: list[list[str]], inodes: set[str]) -> dict[int, tuple[int, str]]:
    """By port at which connections wait to be accepted, how many, and from where most of them come: those have no inode yet."""
    waiting: Counter[int] = Counter()
    for fields in lines:
        if fields[3] == LISTENING and fields[9] in inodes:
            waiting[port_of(fields[1])] += int(fields[4].partition(":")[2], 16)
    many = {port: count for port, count in waiting.items() if count >= MANY_UNACCEPTED}
    peers: dict[int, Counter[str]] = {port: Counter() for port in many}
    for fields in lines if many else ():
        if fields[3] in UNACCEPTED and fields[9] == "0" and port_of(fields[1]) in many:
            peers[port_of(fields[1])][address(fields[2]).rpartition(":")[0]] += 1
    return {port: (count, next((host for host, _ in peers[port].most_common(1)), "")) for port, count in many.items()}


def most_connected(process: str, ports: list[int]) -> list[list[object]]:
    """By port how many connections it has taken there, and who has most of them, with how many: a host, or a process of this
    machine."""
    lines, inodes = (tcp_lines(process), inodes_of(process)) if ports else ([], set())
    taken = [fields for fields in lines if fields[3] == ESTABLISHED and fields[9] in inodes]
    found: list[list[object]] = []
    for port in ports:
        own = [(address(fields[1]), address(fields[2])) for fields in taken if port_of(fields[1]) == port]
        for host, count in Counter(peer.rpartition(":")[0] for _, peer in own).most_common(1):
            ends = {(peer, here) for here, peer in own if peer.rpartition(":")[0] == host}
            theirs = {one[9] for one in lines if (address(one[1]), address(one[2])) in ends} - {"0"}
            pid, has = most_of(theirs)
            found.append([port, len(own), has, f"process {process_named(pid)}"] if pid else [port, len(own), count, host])
    return found


def most_of(inodes: set[str]) -> tuple[str, int]:
    """The process that has most of these sockets, and how many."""
    counts = {pid: len(inodes_of(f"/proc/{pid}") & inodes) for pid in names("/proc") if pid.isdigit()} if inodes else {}
    pid = max(counts, key=lambda one: counts[one], default="")
    return (pid, counts[pid]) if counts.get(pid) else ("", 0)


def askers(process: str, port: int) -> list[tuple[str, int]]:
    """Who is connected to a port of it, and how often."""
    lines, inodes = tcp_lines(process), inodes_of(process)
    own = (fields for fields in lines if fields[3] == ESTABLISHED and fields[9] in inodes and port_of(fields[1]) == port)
    return Counter(address(fields[2]).rpartition(":")[0] for fields in own).most_common(4)


def debugger(process: str) -> str | None:
    """Who is connected to where a debugger of its JVM is to be: the address, and the process, if it is of this machine."""
    told = (text(f"{process}/cmdline") or "") + "\0" + (text(f"{process}/environ") or "")
    ports = {int(port) for port in DEBUGGED.findall(told)}
    lines, inodes = (tcp_lines(process), inodes_of(process)) if ports else ([], set())
    for fields in lines:
        if fields[3] == ESTABLISHED and fields[9] in inodes and {port_of(fields[1]), port_of(fields[2])} & ports:
            ends = [address(fields[2]), address(fields[1])]
            pid = owner({one[9] for one in lines if [address(one[1]), address(one[2])] == ends} - {"0"})
            return f"{ends[0]}, process {process_named(str(pid))}" if pid else ends[0]
    return None


def drops(process: str) -> dict[str, int]:
    """What the kernel has thrown away in the network of that process since it was made, by the names of its counters
    (snmp_counter.rst, xfrm_proc.rst)."""
    found: dict[str, int] = {}
    for name in ("snmp", "netstat"):
        lines = [line.split() for line in (text(f"{process}/net/{name}") or "").splitlines()]
        for head, values in zip(lines[::2], lines[1::2]):
            found.update({head[0] + counter: int(value) for counter, value in zip(head[1:], values[1:])})
    for line in (text(f"{process}/net/xfrm_stat") or "").splitlines():
        counter, value = line.split()
        found[counter.replace("Xfrm", "Xfrm:", 1)] = int(value)
    head, *of_cpus = [line.split() for line in (text(f"{process}/net/stat/arp_cache") or " ").splitlines()]
    for counter in head:
        found[f"Neighbours:{counter}"] = sum(int(values[head.index(counter)], 16) for values in of_cpus)
    return {counter: value for counter, value in found.items() if DROPPED.match(counter)}


def risen(first: dict[str, int], last: dict[str, int]) -> list[tuple[str, int]]:
    return [(counter, last[counter] - first[counter]) for counter in first if last.get(counter, 0) > first[counter]]
