"""Who may use the files of a node. A part of look_at_start."""

from __future__ import annotations

import os
import pwd
import re
import stat
import time
from typing import Iterator, NamedTuple, Tuple

from activities.on_node.kernel import names, text

SECONDS = 1.5
"""For all files: of a broker with very many the rest is not looked at."""
MOST_DENIED = 4
READ, WRITE, ENTER = 4, 2, 1
OVERRIDES = 1 << 1
"""CAP_DAC_OVERRIDE in CapEff of proc(5)."""
LISTS = "system.posix_acl_access"
PARTITION, SEGMENT = re.compile(r"-\d+(?:\.|$)"), (".log", ".index", ".timeindex")
"""By name a log directory's folders of partitions, and the files in them that Kafka opens for writing (LogSegment)."""
OF_ALL = {".lock": READ | WRITE, "meta.properties": READ}
"""What else it opens in a log directory. Checkpoints are replaced."""


class User(NamedTuple):
    uid: int
    groups: frozenset[int]


Denied = Tuple[str, str]
"""A path, and why."""


def user_named(name: str) -> User | None:
    """By name or number; `None` where this machine does not know him by name."""
    try:
        known = pwd.getpwuid(int(name)) if name.isdigit() else pwd.getpwnam(name)
    except KeyError:
        return User(int(name), frozenset()) if name.isdigit() else None
    return User(known.pw_uid, frozenset(os.getgrouplist(known.pw_name, known.pw_gid)))


def user_of(pid: int) -> User | None:
    """Whoever a process is, by its status; `None` where it has ended, or may do all."""
    told = dict(line.split(":", 1) for line in (text(f"/proc/{pid}/status") or "").splitlines() if ":" in line)
    if not {"Uid", "Gid", "CapEff"} <= told.keys() or int(told["CapEff"], 16) & OVERRIDES:
        return None
    groups = {int(told["Gid"].split()[3]), *map(int, told.get("Groups", "").split())}
    return User(int(told["Uid"].split()[3]), frozenset(groups))


def denied(user: User | None, read: list[str], written: list[str]) -> list[Denied]:
    """Of what a node reads (files, and folders of jars), and of its log directories, what he may not use. Nothing is opened."""
    if user is None or user.uid == 0:
        return []
    found: list[Denied] = []
    until = time.monotonic() + SECONDS
    for path, wanted in _wanted(read, written):
        if time.monotonic() > until or len(found) >= MOST_DENIED:
            break
        why = _why_not(path, wanted, user)
        if why is not None:
            found.append((path, why))
    return found


def _wanted(read: list[str], written: list[str]) -> Iterator[tuple[str, int]]:
    for path in read:
        is_folder = os.path.isdir(path)  # noqa: PTH112
        yield from ((above, ENTER) for above in _above(path))
        yield path, READ | ENTER if is_folder else READ
        for name in names(path) if is_folder else ():
            if name.endswith(".jar"):
                yield f"{path}/{name}", READ
    for path in written:
        yield from ((above, ENTER) for above in _above(path))
        yield path, READ | WRITE | ENTER
        yield from ((f"{path}/{name}", wants) for name, wants in OF_ALL.items())
        for name in filter(PARTITION.search, names(path)):
            yield f"{path}/{name}", READ | WRITE | ENTER
            yield from ((f"{path}/{name}/{file}", READ | WRITE) for file in names(f"{path}/{name}") if file.endswith(SEGMENT))


def _above(path: str) -> Iterator[str]:
    parts = path.strip("/").split("/")[:-1]
    return (f"/{'/'.join(parts[:number])}" for number in range(1, len(parts) + 1))


def _why_not(path: str, wanted: int, user: User) -> str | None:
    """By its owner, group and mode; where it has a list of others (acl(5)), nobody knows."""
    try:
        about = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    shift = 6 if about.st_uid == user.uid else 3 if about.st_gid in user.groups else 0
    if wanted & ~(about.st_mode >> shift) & 7 == 0 or _has_list(path):
        return None
    what = "written" if wanted & ~(about.st_mode >> shift) & WRITE else "read"
    return f"it is {about.st_uid}:{about.st_gid} with {stat.filemode(about.st_mode)}, and is to be {what} by user {user.uid}"


def _has_list(path: str) -> bool:
    try:
        return LISTS in os.listxattr(path)
    except OSError:
        return False
