"""Whether we are alone: a network of our own with nothing but loopback, and processes that end with us.

A throw-away controller that reaches a living cluster by mistake takes it over in less than a second. So this is looked at from
inside, whoever says that it was arranged.
"""

import fcntl
import os
import socket
import struct
from pathlib import Path

NETWORK = Path("/proc/self/ns/net")
ROUTES = (Path("/proc/self/net/route"), Path("/proc/self/net/ipv6_route"))
LOOPBACK = b"lo"
GET_FLAGS, SET_FLAGS = 0x8913, 0x8914
"""SIOCGIFFLAGS and SIOCSIFFLAGS (netdevice(7))."""
UP = 0x1
REQUEST = struct.Struct("16sH14s")


class NotAlone(Exception):
    """Something of the world can be reached from here, or we cannot end what we start."""


def network_of_this_process() -> str:
    return str(NETWORK.readlink())


def enter_alone(outside: str) -> None:
    """Raise loopback, and make sure that there is nothing else. `outside`: the network of whoever started us."""
    if os.getpid() != 1:
        raise NotAlone("this process is not the first one of a process namespace: what it starts could outlive it")
    if network_of_this_process() == outside:
        raise NotAlone("this process is in the network of the process that started it")
    _raise_loopback()
    others = [name for _, name in socket.if_nameindex() if name.encode() != LOOPBACK and _flags(name.encode()) & UP]
    if others:
        raise NotAlone(f"there are other interfaces than loopback: {', '.join(others)}")
    ways_out = [route for path in ROUTES for route in _routes(path) if route != LOOPBACK.decode()]
    if ways_out:
        raise NotAlone(f"there are routes by way of {', '.join(sorted(set(ways_out)))}")


def _raise_loopback() -> None:
    try:
        _set_flags(LOOPBACK, _flags(LOOPBACK) | UP)
    except OSError as error:
        raise NotAlone(f"loopback cannot be raised: {error.strerror}") from error


def _flags(name: bytes) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        answer = fcntl.ioctl(any_socket, GET_FLAGS, REQUEST.pack(name, 0, b""))
    return int(REQUEST.unpack(answer)[1])


def _set_flags(name: bytes, flags: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, REQUEST.pack(name, flags, b""))


def _routes(path: Path) -> list[str]:
    """Interfaces of routes. IPv4's table has a headline and its interface first, IPv6's none and its interface last."""
    if not path.exists():
        return []
    lines = [line.split() for line in path.read_text(encoding="ascii").splitlines() if line.strip()]
    is_old = path.name == "route"
    return [line[0] if is_old else line[-1] for line in (lines[1:] if is_old else lines)]
