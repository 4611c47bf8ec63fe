"""A ZooKeeper connect string, read as ZooKeeper's own client reads it. Pure.

| part    | ZooKeeper's rule                                                                                        |
|---------|---------------------------------------------------------------------------------------------------------|
| chroot  | all from the first `/` on; `/` alone is none; no empty name, no `.` or `..`, no `/` at the end, and no   |
|         | control character                                                                                       |
| servers | separated by commas; blanks around one and empty entries are dropped                                    |
| port    | what follows the last `:`, else 2181; an IPv6 address in brackets keeps its colons                      |

Sources: ConnectStringParser, PathUtils.validatePath and NetUtils.getIPV6HostAndPort of ZooKeeper 3.8.4, the client of Kafka
3.9.2. Kafka drops blanks around the whole value first (ConfigDef.parseType).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv6Address

DEFAULT_PORT = 2181
MOST_PORTS = 65535
A_PORT = f"Expected a port from 1 to {MOST_PORTS} at each address"
BLANKS = "".join(map(chr, range(33)))
"""What Java's `trim` removes."""
FORBIDDEN = re.compile("[\0-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")
HOST_NAME = re.compile(r"[\w.-]+")
SEPARATORS = re.compile(r"[;\s]")


@dataclass(frozen=True)
class ConnectString:
    """`servers`: host and port of each, in order. `chroot`: `/kafka`, or empty. `str` gives what to write."""

    servers: tuple[tuple[str, int], ...]
    chroot: str

    def __str__(self) -> str:
        return ",".join(self.addresses) + self.chroot

    @property
    def addresses(self) -> tuple[str, ...]:
        """`host:port` of each server; an IPv6 address is in brackets."""
        return tuple(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.servers)

    @property
    def ensemble(self) -> frozenset[tuple[str, int]]:
        """The servers, whatever their order, and however their names are written."""
        return frozenset((_same(host), port) for host, port in self.servers)


def read(text: str) -> ConnectString:
    """What ZooKeeper's client makes of it. Raises `ValueError` with the rule and with what to write, where it refuses it."""
    listed, _, path = text.strip(BLANKS).partition("/")
    chroot = f"/{path}" if path else ""
    _check_path(chroot, listed)
    servers = tuple(_server(entry) for entry in _entries(text))
    if not servers:
        raise ValueError("ZooKeeper refuses a connect string without a server. Write host:port,host:port/chroot.")
    return ConnectString(servers, chroot)


def unmistakable(text: str) -> ConnectString:
    """The same, and refuses too what ZooKeeper reads otherwise than anybody means it.

    Of a string with a user or a scheme nothing is quoted: a password may be in it.
    """
    if "@" in text or "://" in text:
        raise ValueError("ZooKeeper knows no user and no scheme in a connect string. Write host:port,host:port/chroot.")
    found = read(text)
    for doubt in doubts(found, text):
        raise ValueError(doubt)
    return found


def doubts(found: ConnectString, text: str) -> Iterator[str]:
    """How ZooKeeper reads it otherwise than it is meant, and what to write."""
    if re.search("[,:;]", found.chroot):
        servers, write = ",".join(found.addresses), _with_one_chroot(text)
        yield (
            f"ZooKeeper takes all from the first / on as the chroot: it would connect to {servers} alone, with the chroot "
            f"{found.chroot!r}. Write the chroot once, after the last server{f': {write}' if write else ''}."
        )
    if re.search(r"\s", found.chroot):
        yield f"ZooKeeper takes a blank in the chroot as part of its name: {found.chroot!r}. Write it without."
    entries = _entries(text)
    if joined := [host for host, _ in found.servers if SEPARATORS.search(host)]:
        write = ",".join(re.sub(r"[;\s]+", ",", entry).replace(",:", ":") for entry in entries) + found.chroot
        yield f"ZooKeeper separates servers by commas alone, so {joined[0]!r} would be one host name. Write {write}."
    for entry, (host, port) in zip(entries, found.servers, strict=True):
        yield from _doubts_of(entry, host, port)
    if unsaid := [entry for entry in entries if not re.search(r":\+?\d+$", entry)]:
        yield f"{unsaid[0]} has no port, so ZooKeeper takes {DEFAULT_PORT}. Write the port of each server: {found}."


def _doubts_of(entry: str, host: str, port: int) -> Iterator[str]:
    if ":" in host and not (_is_ipv6(host) and entry.startswith("[")):
        yield (
            f"ZooKeeper takes what follows the last : as the port, so {host!r} would be the host, and {port} the port. Write "
            "host:port, and an IPv6 address in brackets: [2001:db8::1]:2181."
        )
    elif ":" not in host and not HOST_NAME.fullmatch(host):
        yield f"{host!r} is no host name. Write host:port,host:port/chroot."
    if port == 0:
        yield f"Nothing listens at port 0. {A_PORT}."


def _with_one_chroot(text: str) -> str:
    """What was meant where servers repeat one chroot; else empty."""
    parts = [part.strip(BLANKS).partition("/") for part in re.split("[,;]", text)]
    chroots = {path for _, _, path in parts if path}
    servers = [server for server, _, _ in parts if server]
    is_meant = len(chroots) == 1 < len(servers) and all(re.search(r":\d+$", server) for server in servers)
    return f"{','.join(servers)}/{chroots.pop()}" if is_meant else ""


def _entries(text: str) -> list[str]:
    """One for each server."""
    return [entry for part in text.partition("/")[0].split(",") if (entry := part.strip(BLANKS))]


def _check_path(chroot: str, listed: str) -> None:
    """PathUtils.validatePath."""
    if not chroot:
        return
    names = chroot[1:].split("/")
    write = f"Write {listed.strip(BLANKS)}{_clean(names)}"
    if chroot.endswith("/"):
        raise ValueError(f"ZooKeeper refuses a chroot that ends with /: {chroot!r}. {write}.")
    if "" in names:
        raise ValueError(f"ZooKeeper refuses a chroot with an empty name: {chroot!r}. {write}.")
    if not {".", ".."}.isdisjoint(names):
        raise ValueError(f"ZooKeeper refuses . and .. in a chroot: {chroot!r}. Write the whole path of the znode.")
    if found := FORBIDDEN.search(chroot):
        raise ValueError(f"ZooKeeper refuses the character {found[0]!a} in a chroot. Write it without.")


def _clean(names: list[str]) -> str:
    return "".join(f"/{name}" for name in names if name)


def _server(entry: str) -> tuple[str, int]:
    host, port = _bracketed(entry) if entry.startswith("[") else _plain(entry)
    if not re.fullmatch(r"[+-]?\d+", port):
        raise ValueError(
            f"ZooKeeper refuses the port {port!r} of {entry}. Write host:port, e.g. {host.strip()}:{DEFAULT_PORT}."
        )
    if not 0 <= int(port) <= MOST_PORTS:
        raise ValueError(f"ZooKeeper refuses the port {port} of {entry}. {A_PORT}.")
    return host, int(port)


def _plain(entry: str) -> tuple[str, str]:
    host, colon, port = entry.rpartition(":")
    return (host, port or str(DEFAULT_PORT)) if colon else (entry, str(DEFAULT_PORT))


def _bracketed(entry: str) -> tuple[str, str]:
    """NetUtils.getIPV6HostAndPort."""
    host, bracket, rest = entry[1:].partition("]")
    if not bracket or not host or (rest and (not rest.startswith(":") or rest == ":")):
        raise ValueError(f"ZooKeeper refuses {entry}. Write an IPv6 address in brackets, and its port: [2001:db8::1]:2181.")
    return host, rest[1:] or str(DEFAULT_PORT)


def _is_ipv6(host: str) -> bool:
    try:
        IPv6Address(host)
    except ValueError:
        return False
    return True


def _same(host: str) -> str:
    return IPv6Address(host).compressed if _is_ipv6(host) else host.lower()
