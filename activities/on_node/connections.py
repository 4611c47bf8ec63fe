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
    port_of,
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


def undelivered(lines: list[list[str]], inodes: set[str]) -> list[str]:
    """Where its connections lead to from which nothing comes back, so that it sends again and again."""
    most = {CONNECTING: 1, ESTABLISHED: 2}
    own = (fields for fields in lines if fields[9] in inodes and fields[3] in most)
    return sorted({address(fields[2]) for fields in own if int(fields[6], 16) >= most[fields[3]]})


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
