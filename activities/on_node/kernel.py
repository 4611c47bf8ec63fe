"""What programs on a machine read of its kernel (proc(5)): a part of each that imports it. Python 3.7 or later."""

from __future__ import annotations

import os
import re
import socket
import sys
from typing import Dict, Iterator, NamedTuple, Optional, Tuple

Found = Optional[Dict[str, str]]
Pairs = Iterator[Tuple[str, str]]

ESTABLISHED, CONNECTING, LISTENING = "01", "02", "0A"
UNIT = re.compile(r"system\.slice/(?:.*/)?([^/\n]+\.service)")
"""Of a control group: the service of the system that it is in."""
SOCKET = re.compile(r"socket:\[(\d+)\]")
CHUNK = 64 * 1024
V4_IN_V6 = bytes(10) + b"\xff\xff"


def text(path: str) -> str | None:
    """A file's content, or `None` where there is none or it may not be read. A look reads thousands: without a file object it
    costs half."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return b"".join(iter(lambda: os.read(file, CHUNK), b"")).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(file)


def names(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))  # noqa: PTH208
    except OSError:
        return []


def link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


class Mount(NamedTuple):
    """A line of mountinfo (proc(5)). `options`: of this mount alone; `of_all`: of its file system, wherever it is mounted."""

    point: str
    options: str
    kind: str
    source: str
    of_all: str


def mounts_of(process: str) -> list[Mount]:
    """As it sees them; of several on one point the last counts. None where nobody tells."""
    found = []
    for line in (text(f"{process}/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        fields, (kind, source, of_all) = left.split(), (*right.split(" ", 2), "", "")[:3]
        point = re.sub(r"\\(\d{3})", lambda code: chr(int(code.group(1), 8)), fields[4])
        found.append(Mount(point, fields[5], kind, source, of_all))
    return found


def mount_of(path: str) -> Mount | None:
    """On which that lies, as we see it."""
    path, best = os.path.realpath(path) + "/", None
    for mount in mounts_of("/proc/self"):
        if path.startswith(mount.point.rstrip("/") + "/") and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def opened_by(process: str) -> list[str]:
    found = []
    for name in names(f"{process}/fd"):
        try:
            found.append(os.readlink(f"{process}/fd/{name}"))
        except OSError:
            continue
    return found


def port_of(field: str) -> int:
    return int(field.rpartition(":")[2], 16)


def listener(port: int) -> int | None:
    """The process that listens there, as far as we may know."""
    return owner({fields[9] for fields in tcp_lines("/proc") if fields[3] == LISTENING and port_of(fields[1]) == port})


def owner(inodes: set[str]) -> int | None:
    """The process that has one of these sockets."""
    for pid in names("/proc") if inodes else []:
        if pid.isdigit() and inodes_of(f"/proc/{pid}") & inodes:
            return int(pid)
    return None


def group_paths(process: str) -> Pairs:
    """Its control groups and those above them, of both versions: the controllers of each, and its path, empty at the root."""
    for line in (text(f"{process}/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        path = path.rstrip("/")
        while path:
            yield controllers, path
            path = path.rpartition("/")[0]
        yield controllers, path


def tcp_lines(process: str) -> list[list[str]]:
    """Of both versions, split; of our own network where it is only `/proc`."""
    return socket_lines(process, "tcp")


def socket_lines(process: str, kind: str) -> list[list[str]]:
    lines = (line for version in ("", "6") for line in (text(f"{process}/net/{kind}{version}") or "").splitlines()[1:])
    return [line.split() for line in lines]


def open_files(process: str) -> tuple[int | None, int | None]:
    """How many it has, sockets among them, and may have."""
    most = re.search(r"^Max open files\s+(\d+)", text(f"{process}/limits") or "", re.MULTILINE)
    return len(names(f"{process}/fd")) or None, int(most.group(1)) if most else None


def inodes_of(process: str) -> set[str]:
    """Of the sockets that it has open."""
    found = (SOCKET.fullmatch(opened) for opened in opened_by(process))
    return {one.group(1) for one in found if one}


def address(field: str) -> str:
    """`0100007F:1F90`: words of four bytes in the machine's order, then the port. IPv4 within IPv6 is shown as IPv4."""
    packed, _, port = field.partition(":")
    words = [int(packed[at : at + 8], 16) for at in range(0, len(packed), 8)]
    return address_of(b"".join(word.to_bytes(4, sys.byteorder) for word in words), int(port, 16))


def address_of(raw: bytes, port: int) -> str:
    if len(raw) == 4 or raw.startswith(V4_IN_V6):
        host = socket.inet_ntop(socket.AF_INET, raw[-4:])
    else:
        host = f"[{socket.inet_ntop(socket.AF_INET6, raw)}]"
    return f"{host}:{port}"


def process_named(pid: str) -> str:
    """With its command."""
    return f"{pid} ({(text(f'/proc/{pid}/comm') or '').strip()})"
