"""What keeps this host from asking others: a name that is not resolved, files or ports that it has not got."""

import asyncio
import errno
import ipaddress
import os
import re
import socket
import ssl
import time
from dataclasses import dataclass

from domain.errors import Obstacle, Transient

SLOW_SECONDS = 1.0
"""For a name. Who asks a server that is not there waits five before it asks the next (resolv.conf: timeout)."""

OUR_OWN = frozenset({errno.EADDRNOTAVAIL, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""What a connection fails of on this side: it says nothing of who listens there."""

GIVE = "Give it what it lacks: open files (ulimit -n), local ports (`ss -s`, net.ipv4.ip_local_port_range), memory for sockets"


NO_THREAD = "all threads of keeperless-activities wait for something else, such as files that hang, and none was free"


class Unresolved(Transient):
    """`words`: why a name is not resolved here."""

    def __init__(self, host: str, words: str) -> None:
        message = f"the name {host} cannot be resolved on the machine of keeperless-activities: {words}"
        super().__init__(message, obstacle=Obstacle.UNRESOLVED)
        self.words = words


@dataclass(frozen=True)
class Resolved:
    """`seconds`: how long it took."""

    seconds: float
    numbers: tuple[str, ...]


async def resolve(host: str, seconds: float) -> Resolved:
    """`Unresolved`, also where no answer came in time; `Transient` where nobody was free to ask."""
    if _is_address(host):
        return Resolved(0.0, (host,))
    begun: list[float] = []

    def ask() -> tuple[str, ...]:
        begun.append(time.monotonic())
        return tuple({str(place[0]) for *_, place in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)})

    try:
        async with asyncio.timeout(seconds):
            numbers = await asyncio.to_thread(ask)
    except TimeoutError as error:
        if not begun:
            raise Transient(f"{NO_THREAD} within {seconds:g} s to resolve {host}", obstacle=Obstacle.OURS) from error
        raise Unresolved(host, f"no answer within {seconds:g} s") from error
    except (socket.gaierror, UnicodeError) as error:
        raise Unresolved(host, words_of(error)) from error
    return Resolved(time.monotonic() - begun[0], numbers)


def own_fault(error: OSError, where: str) -> Transient | None:
    """The error, where a connection to `where` failed of this host alone."""
    numbers = _numbers(error)
    if not numbers or not numbers <= OUR_OWN:
        return None
    why = "; ".join(os.strerror(number) for number in sorted(numbers))
    message = f"the host of keeperless-activities cannot open a connection to {where}: {why}. {GIVE}"
    return Transient(message, obstacle=Obstacle.OURS)


def no_tls(error: ssl.SSLError) -> str:
    """With what is wrong with the certificate, or with the protocol: no secret is in it."""
    told = getattr(error, "verify_message", None) or getattr(error, "reason", None) or (error.args[-1] if error.args else "")
    return f"the TLS handshake fails ({str(told).replace('_', ' ').lower() or type(error).__name__})"


def _numbers(error: OSError) -> set[int]:
    """Of a name with several addresses asyncio joins the errors into one text, without a number."""
    return {error.errno} if error.errno is not None else {int(found) for found in re.findall(r"\[Errno (\d+)\]", str(error))}


def words_of(error: socket.gaierror | UnicodeError) -> str:
    return (error.strerror if isinstance(error, socket.gaierror) else None) or "it is not a valid name"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
