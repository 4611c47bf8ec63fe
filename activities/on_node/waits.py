"""What the threads of a process wait for in the kernel: a part of each program that imports it. Python 3.7 or later.

By the call that a thread is in, and what that is about (/proc/PID/task/TID/syscall), which root may read, and where Yama lets
it the process's own user. Of calls in which a thread is at rest, or waits for another of its own process, nothing is told.
"""

from __future__ import annotations

import os
import re
import socket
import stat
import struct
import sys
import time
from typing import Any, Iterator, Tuple

from activities.on_node.kernel import (
    LISTENING,
    address,
    address_of,
    has_open,
    is_kept_by_lease,
    names,
    opened_by,
    port_of,
    process_named,
    sleeps,
    socket_lines,
    text,
)

NUMBERS = {
    "x86_64": "read 0 write 1 open 2 stat 4 poll 7 pread 17 pwrite 18 readv 19 writev 20 connect 42 sendto 44 recvfrom 45 "
    "sendmsg 46 recvmsg 47 fcntl 72 flock 73 fsync 74 fdatasync 75 getdents 217 openat 257 newfstatat 262 ppoll 271 statx 332",
    "aarch64": "fcntl 25 flock 32 openat 56 getdents 61 read 63 write 64 readv 65 writev 66 pread 67 pwrite 68 ppoll 73 "
    "newfstatat 79 fsync 82 fdatasync 83 connect 203 sendto 206 recvfrom 207 sendmsg 211 recvmsg 212 statx 291",
}
"""Of calls that may wait for somebody else, by the processor (asm/unistd.h)."""
SENDS = frozenset({"write", "writev", "pwrite", "sendto", "sendmsg"})
OF_PATHS = {"open": 0, "stat": 0, "openat": 1, "newfstatat": 1, "statx": 1}
"""Which argument the path is."""
LOCKS = {7, 38}
"""fcntl's F_SETLKW and F_OFD_SETLKW."""
MOST_POLLED, MOST_PATH = 4, 4096
AT_REST = re.compile(r"RecvWorker:")
"""Names of threads that wait where all is well: for the next election of ZooKeeper's servers."""
MOST_TOLD, MOST_OF_A_FAMILY = 8, 20
UNCONNECTED = ":0"
SOCK_DIAG, BY_FAMILY, REQUEST, DUMP, LISTENS, ANY = 4, 20, 1, 0x300, 1 << 10, 0xFFFFFFFF
NAME, PEER, WAITING_THERE, SHOWN = 0, 2, 3, 1 | 4 | 8
"""Of sock_diag(7), and what it tells of unix sockets."""
NETLINK_SECONDS, MOST_SECONDS = 0.2, 0.6
"""The second for all of it: on a large machine it is not known then in whose hands something is."""
POLLS_IN, POLLS_OUT = 1, 4

Awaited = Tuple[str, str, str, str]
"""The call, of what kind that is which it waits for, what it is, and which process has it in its hands."""


def calls(pid: int) -> dict[str, str]:
    """By thread, of a process and of those that it has begun, the call that it is in, with its arguments, and how often it has
    slept: the same again is one wait."""
    found = {}
    for thread in (f"{process}/task/{tid}" for process in family(pid) for tid in names(f"{process}/task")):
        call = (text(f"{thread}/syscall") or "").rpartition(" 0x")[0]
        if call[:1].isdigit():
            found[thread] = f"{call} slept {sleeps(thread)} times"
    return found


def family(pid: int) -> list[str]:
    found = [str(pid)]
    for one in found:
        began = [text(f"/proc/{one}/task/{tid}/children") or "" for tid in names(f"/proc/{one}/task")]
        found += " ".join(began).split()[: MOST_OF_A_FAMILY - len(found)]
    return [f"/proc/{one}" for one in found]


class Seen:
    """What is read of the machine for one look, each thing once. Of no file that a process has open: whoever asks a file system
    that does not answer stands still as well."""

    def __init__(self) -> None:
        self.until = time.monotonic() + MOST_SECONDS
        self._lines: dict[tuple[str, str], list[list[str]]] = {}
        self._holders: dict[str, list[str]] | None = None

    def is_over(self) -> bool:
        return time.monotonic() > self.until

    def lines(self, process: str, kind: str) -> list[list[str]]:
        key = (process, kind)
        if key not in self._lines:
            self._lines[key] = socket_lines(process, kind)
        return self._lines[key]

    def holder(self, targets: set[str], but: str = "", right: int = 0) -> str:
        """The first process that has one of these open, as the kernel names them, but for one; empty where none is known.
        `right`: S_IRUSR or S_IWUSR, for it may only have to read what another writes."""
        if self._holders is None:
            self._holders = {}
            for pid in (pid for pid in names("/proc") if pid.isdigit()):
                for target in [] if self.is_over() else set(opened_by(f"/proc/{pid}")):
                    self._holders.setdefault(target, []).append(pid)
        found = ((target, pid) for target in targets for pid in self._holders.get(target, []) if f"/proc/{pid}" != but)
        first = next((pid for target, pid in found if not right or has_open(f"/proc/{pid}", target, right)), None)
        return process_named(first) if first else ""


def waits(first: dict[str, str], last: dict[str, str]) -> list[dict[str, Any]]:
    """Of the threads that have been in one call all the time what they wait for, one for each call and thing."""
    known = dict(zip(*[iter(NUMBERS.get(os.uname().machine, "").split())] * 2))
    by_number = {number: name for name, number in known.items()}
    found: dict[Awaited, list[str]] = {}
    seen = Seen()
    for thread, call in first.items():
        number, *rest = call.split()
        name = (text(f"{thread}/comm") or "").strip()
        if last.get(thread) != call or number not in by_number or AT_REST.match(name):
            continue
        if seen.is_over() or len(found) == MOST_TOLD:
            break
        values = [int(value, 16) for value in rest if value.startswith("0x")]
        try:
            for wait in awaited(seen, thread, by_number[number], values):
                found.setdefault(wait, []).append(name)
        except (OSError, ValueError, ArithmeticError, LookupError, struct.error):
            continue  # it has ended, or closed that, meanwhile
    told = ("call", "kind", "what", "by")
    return [{**dict(zip(told, map(printable, wait))), "threads": threads} for wait, threads in found.items()]


def printable(words: str) -> str:
    return os.fsencode(words).decode("utf-8", "replace")


def awaited(seen: Seen, thread: str, call: str, values: list[int]) -> Iterator[Awaited]:
    process = thread.partition("/task/")[0]
    if call in OF_PATHS:
        path = memory_of(process, values[OF_PATHS[call]], MOST_PATH).partition(b"\0")[0]
        yield (call, "path", os.fsdecode(path), holder_of_lock(process) if is_kept_by_lease(thread) else "")
    elif call in {"poll", "ppoll"}:
        polled = memory_of(process, values[0], 8 * values[1]) if 0 < values[1] <= MOST_POLLED else b""
        for handle, events in struct.iter_unpack("=ihxx", polled):
            is_sending = events & (POLLS_IN | POLLS_OUT) == POLLS_OUT
            yield from about(seen, thread, "sendto" if is_sending else "poll", handle) if handle >= 0 else ()
    elif call == "connect":
        yield from connecting(seen, process, memory_of(process, values[1], values[2]))
    elif call == "flock" or (call == "fcntl" and values[1] in LOCKS):
        yield (call, "lock", os.readlink(f"{process}/fd/{values[0]}"), holder_of_lock(process))
    elif call != "fcntl":
        yield from about(seen, thread, call, values[0])


def memory_of(process: str, start: int, size: int) -> bytes:
    """As much as there is of it before a page that is none."""
    with open(f"{process}/mem", "rb", buffering=0) as memory:  # noqa: PTH123
        memory.seek(start)
        return memory.read(min(size, 4096 - start % 4096) if size > 512 else size)


def about(seen: Seen, thread: str, call: str, handle: int) -> Iterator[Awaited]:
    process = thread.partition("/task/")[0]
    target = os.readlink(f"{process}/fd/{handle}")
    inode = re.fullmatch(r"socket:\[(\d+)\]", target)
    if inode:
        yield from of_socket(seen, process, call, inode.group(1))
    elif target.startswith("pipe:") or "pipe" in (text(f"{thread}/wchan") or ""):
        by = seen.holder({target}, but=process, right=stat.S_IRUSR if call in SENDS else stat.S_IWUSR)
        if by or target.startswith("/"):
            yield (call, "pipe", target, by)
    elif target.startswith("/"):
        yield (call, "path", target, "")


def of_socket(seen: Seen, process: str, call: str, inode: str) -> Iterator[Awaited]:
    for kind in ("tcp", "udp"):
        lines = seen.lines(process, kind)
        own = next((fields for fields in lines if fields[9] == inode), None)
        if own is not None:
            port = port_of(own[1])
            is_served = kind == "tcp" and any(fields[3] == LISTENING and port_of(fields[1]) == port for fields in lines)
            is_at_rest = own[3] == LISTENING or (is_served and call not in SENDS)
            if not is_at_rest and not address(own[2]).endswith(UNCONNECTED):
                yield (call, kind, address(own[2]), at_the_other_end(seen, lines, own))
            return
    name, by = unix_peer(seen, int(inode))
    if name:
        yield (call, "unix", name, by)


def at_the_other_end(seen: Seen, lines: list[list[str]], own: list[str]) -> str:
    """On this machine: who has accepted it, or listens there. One end may have IPv4 within IPv6, as Java's have."""
    here = [fields for fields in lines if port_of(fields[1]) == port_of(own[2])]
    mirrored = [address(own[2]), address(own[1])]
    ends = [fields for fields in here if [address(fields[1]), address(fields[2])] == mirrored]
    accepted = {fields[9] for fields in ends} - {"0"}
    listening = {fields[9] for fields in here if fields[3] == LISTENING}
    return seen.holder({f"socket:[{inode}]" for inode in accepted or (listening if ends else ())})


def connecting(seen: Seen, process: str, sockaddr: bytes) -> Iterator[Awaited]:
    family = int.from_bytes(sockaddr[:2], sys.byteorder)
    if family == socket.AF_UNIX:
        raw = sockaddr[2:]
        name = os.fsdecode(b"@" + raw[1:].rstrip(b"\0") if raw[:1] == b"\0" else raw.partition(b"\0")[0])
        if name:
            yield ("connect", "unix", name, seen.holder(listeners_at(process, name)))
    elif family in {socket.AF_INET, socket.AF_INET6}:
        raw = sockaddr[4:8] if family == socket.AF_INET else sockaddr[8:24]
        yield ("connect", "tcp", address_of(raw, int.from_bytes(sockaddr[2:4], "big")), "")


def unix_peer(seen: Seen, inode: int) -> tuple[str, str]:
    """The name of the socket that one is connected to, and the process that has it: where nobody has accepted it yet, that of
    who listens there."""
    peers = [attributes.get(PEER, b"") for _, attributes in unix_sockets(inode)]
    peer = int.from_bytes(peers[0], sys.byteorder) if peers else 0
    if peer:
        found = [(peer, attributes) for _, attributes in unix_sockets(peer)]
    else:
        waiting = inode.to_bytes(4, sys.byteorder)
        found = [(one, told) for one, told in unix_sockets() if waiting in chunks(told.get(WAITING_THERE, b""))]
    for one, attributes in found:
        name = attributes.get(NAME, b"").rstrip(b"\0").replace(b"\0", b"@").decode("utf-8", "replace")
        return name, seen.holder({f"socket:[{one}]"})
    return "", ""


def chunks(value: bytes) -> set[bytes]:
    return {value[at : at + 4] for at in range(0, len(value), 4)}


def unix_sockets(inode: int | None = None) -> Iterator[tuple[int, dict[int, bytes]]]:
    """One of them, or all that listen: its inode, and what the kernel tells of it."""
    flags, states = (REQUEST, ANY) if inode else (REQUEST | DUMP, LISTENS)
    asked = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, states, inode or 0, SHOWN, ANY, ANY)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG) as channel:
        channel.settimeout(NETLINK_SECONDS)
        channel.send(struct.pack("=IHHII", 16 + len(asked), BY_FAMILY, flags, 0, 0) + asked)
        while True:
            answer, at = channel.recv(65536), 0
            while at + 16 <= len(answer):
                size, kind = struct.unpack_from("=IH", answer, at)
                if kind != BY_FAMILY:  # the end, or an error: there is none
                    return
                yield struct.unpack_from("=I", answer, at + 20)[0], attributes_in(answer[at + 32 : at + size])
                at += size + 3 & ~3
            if inode:
                return


def attributes_in(data: bytes) -> dict[int, bytes]:
    found, at = {}, 0
    while at + 4 <= len(data):
        size, kind = struct.unpack_from("=HH", data, at)
        found[kind] = data[at + 4 : at + size]
        at += max(size, 4) + 3 & ~3
    return found


def listeners_at(process: str, name: str) -> set[str]:
    """Who listens there in the network of that process; nobody, where there are several."""
    lines = (line.split(None, 7) for line in (text(f"{process}/net/unix") or "").splitlines()[1:])
    found = {
        f"socket:[{fields[6]}]" for fields in lines if len(fields) > 7 and fields[7] == name and int(fields[3], 16) & 0x10000
    }
    return found if len(found) == 1 else set()


def holder_of_lock(process: str) -> str:
    """Who has the lock, or the lease, that it waits for: the kernel tells both with one number (/proc/locks). Empty where there
    is not one."""
    lines = [line.split() for line in (text("/proc/locks") or "").splitlines()]
    pid = process.rpartition("/")[2]
    numbers = {fields[0] for fields in lines if fields[1] == "->" and fields[5] == pid}
    holders = {fields[4] for fields in lines if fields[1] != "->" and fields[0] in numbers}
    holder = holders.pop() if len(holders) == 1 else ""
    return process_named(holder) if holder.isdigit() and holder != "0" else ""
