"""Whether a new connection opens where those that are there are not acknowledged. A part of watch_process."""

from __future__ import annotations

import errno
import select
import socket
import time

from activities.on_node.connections import LEAST_LARGE
from activities.on_node.kernel import link

MOST_TRIED, TRIES, TRY_SECONDS = 4, 3, 0.5
"""Addresses; how often each, as each connection may take another way; and seconds for all at once."""


def worth_a_try(held: dict[tuple[str, str], int], unheard: set[str], listens: list[str]) -> list[str]:
    """Of who is not heard, to whom it has connected itself, and of which what is small is lost as well: what is large alone may
    be lost of a new connection too, once that has opened. `held`: as `held_up` gives it."""
    ports = {where.rpartition(":")[2] for where in listens}
    small = {peer for (here, peer), size in held.items() if size < LEAST_LARGE and here.rpartition(":")[2] not in ports}
    return sorted(small & unheard)[:MOST_TRIED]


def open_anew(process: str, places: list[str]) -> list[str]:
    """Those to which every new connection opens, from this machine; none where the process is in another network than we."""
    if not places or link(f"{process}/ns/net") != link("/proc/self/ns/net"):
        return []
    begun = [(place, begin_connection(place)) for place in places for _ in range(TRIES)]
    try:
        waiting = [one for _, one in begun if one is not None]
        until = time.monotonic() + TRY_SECONDS
        while waiting and time.monotonic() < until:
            _, done, _ = select.select([], waiting, [], max(until - time.monotonic(), 0.0))
            waiting = [one for one in waiting if one not in done]
        shut = {place for place, one in begun if one is None or one in waiting or one.getsockopt(*OF_ERROR)}
    finally:
        for _, one in begun:
            if one is not None:
                one.close()
    return [place for place in places if place not in shut]


OF_ERROR = (socket.SOL_SOCKET, socket.SO_ERROR)


def begin_connection(place: str) -> socket.socket | None:
    host, _, port = place.rpartition(":")
    try:
        one = socket.socket(socket.AF_INET6 if host.startswith("[") else socket.AF_INET)
    except OSError:
        return None
    one.setblocking(False)
    if one.connect_ex((host.strip("[]"), int(port))) in {0, errno.EINPROGRESS}:
        return one
    one.close()
    return None
