"""Runs on a node's machine: says in what a process would be that is started from there, and what is used up of all that it may
have. Writes nothing.

    python3 -c PROGRAM '{"folders": ["/var/lib/kafka", "/var/log/kafka"], "files": ["/var/log/kafka/kafka.out"], …}'

`folders`: into which the process writes; `files`: to which whoever starts it appends; `data`: its log directories, and `pid`:
of the process that runs now, or null; `locked`: of these directories it has to hold the lock, and of
`metadata` it may. `reads`: what it reads besides, files and folders of jars; `user`: whom its start command
makes of itself, or empty.

The answer is one JSON object on standard output. Python 3.7 or later, one file.
"""

from __future__ import annotations

import json
import os
import re
import resource
import stat
import subprocess
import sys
from typing import Any, Iterator, Tuple

from activities.on_node.access import User, denied, user_named, user_of
from activities.on_node.kernel import Pairs, group_paths, link, mount_of, names, process_named, text

Budget = Tuple[str, str, int, int]
"""Its kind, where it holds, what is used, and the most."""

FILE = re.compile(r"(?<![\w./-])/[\w./+@-]+")
CONTROL_GROUPS, SYSTEMD_SECONDS = "/proc/self/cgroup", 3
SANDBOX = (
    *("ProtectSystem", "ProtectHome", "ReadOnlyPaths", "InaccessiblePaths", "NoExecPaths", "TemporaryFileSystem"),
    *(
        "PrivateTmp",
        "PrivateDevices",
        "PrivateNetwork",
        "PrivateUsers",
        "ProtectProc",
        "ProcSubset",
        "RootDirectory",
        "RootImage",
    ),
    *("MemoryDenyWriteExecute", "NoNewPrivileges", "RestrictAddressFamilies", "SystemCallFilter", "IPAddressDeny"),
    *("SocketBindDeny", "MemoryMax", "MemoryHigh", "CPUQuotaPerSecUSec"),
)
"""Properties of a unit (systemd.exec(5), systemd.resource-control(5)) that keep what was started in it from something."""
UNSET = frozenset({"", "no", "~", "default", "all", "infinity", "[not set]", str(2**64 - 1)})
MOST_SHOWN = 60
KIB = 1024
FILTERED = re.compile(r"^Seccomp:\s+2$", re.MULTILINE)
MASK, MAY_DENY = re.compile(r"^fanotify .*\bmask:([0-9a-f]+)", re.MULTILINE), 0x70000
"""Of proc(5), fdinfo; FAN_OPEN_PERM, FAN_ACCESS_PERM and FAN_OPEN_EXEC_PERM."""
UNLIMITED = 2**60
"""Bytes: what version 1 of the control groups says is near 2**63."""


def place(request: dict[str, Any]) -> dict[str, Any]:
    return {
        "unit": unit(),
        "read_only": [path for path in request["folders"] if is_read_only_here(path)],
        "unopened": list(unopened(request["files"])),
        "moved": moved(request["pid"], request["data"]),
        "held_by": held_by(request["pid"], request["data"]),
        **holding(request["pid"], request["locked"], [*request["data"], request["metadata"]]),
        "denied": denied(starter(request["user"], request["pid"]), reads(request["pid"], request["reads"]), request["data"]),
        "budgets": [found for found in budgets() if found[3] > 0],
        "gatekeepers": gatekeepers()[:4],
        "is_filtered": FILTERED.search(text("/proc/self/status") or "") is not None,
    }


def moved(pid: int | None, data: list[str]) -> list[str]:
    """Log directories that lead elsewhere than when the process opened them: a link, or a mount, that was changed under it.
    Kafka keeps the `.lock` of each open; where it has not as many open as it has directories, nothing is known."""
    held, found = locks_of(pid), {path: inode_of(f"{path}/.lock") for path in data}
    is_known = len(held) == len(data) and None not in held
    return [path for path, inode in found.items() if is_known and inode is not None and inode not in held]


def starter(name: str, pid: int | None) -> User | None:
    """Who it will be once it is started: whom its start command names, or else who it is now."""
    if name:
        return user_named(name)
    return user_of(pid) if pid else None


def reads(pid: int | None, known: list[str]) -> list[str]:
    """With the files that those name, and its command line: key stores, logins, agents, settings of its logs."""
    words = [*(text(path) or "" for path in known if os.path.isfile(path)), text(f"/proc/{pid}/cmdline") or ""]  # noqa: PTH113
    named = (path for word in words for path in FILE.findall(word))
    return list(dict.fromkeys([*known, *(path for path in named if os.path.isfile(path))]))  # noqa: PTH113


def held_by(pid: int | None, data: list[str]) -> list[str]:
    """Other processes that have the data open, where the one that is taken for the node's has none of it."""
    found = {inode_of(f"{path}/.lock") for path in data} - {None}
    if not pid or not found or found & locks_of(pid):
        return []
    return [process_named(other) for other in filter(str.isdigit, names("/proc")) if found & locks_of(other)]


def holding(pid: int | None, locked: list[str], known: list[str]) -> dict[str, Any]:
    """`unheld`: whose lock it has not. `elsewhere`: directories that are not known, whose lock it has. `unseen`: of these it
    could not be seen.

    Kafka opens the `.lock` of each directory and locks it (FileLock.scala). If a process's files may not be
    looked at, its locks are still in /proc/locks, which every user may read. There a missing lock proves nothing: some file
    systems show another inode there.
    """
    if not pid:
        return {"unheld": [], "elsewhere": [], "unseen": []}
    own, fds = {path: inode_of(f"{path}/.lock") for path in locked}, locking(pid)
    if not names(f"/proc/{pid}/fd"):
        seen = kernels_locks_of(pid)
        return {"unheld": [], "elsewhere": [], "unseen": [path for path, at in own.items() if at is None or at not in seen]}
    held, ours = {inode_of(fd) for fd in fds}, {inode_of(f"{path}/.lock") for path in known}
    others = {os.path.dirname(link(fd) or "") for fd in fds if inode_of(fd) not in ours}  # noqa: PTH120
    return {
        "unheld": [path for path, at in own.items() if at is None or at not in held],
        "elsewhere": sorted(others),
        "unseen": [],
    }


def kernels_locks_of(pid: int) -> set[tuple[int, int]]:
    """Device and inode of the files that it has locked (proc(5), locks)."""
    found = re.findall(rf"^\d+: POSIX\s+\S+\s+WRITE {pid} (\w+):(\w+):(\d+) ", text("/proc/locks") or "", re.MULTILINE)
    return {(os.makedev(int(major, 16), int(minor, 16)), int(inode)) for major, minor, inode in found}


def locks_of(pid: int | str | None) -> set[tuple[int, int] | None]:
    return {inode_of(fd) for fd in locking(pid)} if pid else set()


def locking(pid: int | str) -> list[str]:
    """Its open files that are locks of directories."""
    fds = (f"/proc/{pid}/fd/{name}" for name in names(f"/proc/{pid}/fd"))
    return [fd for fd in fds if (link(fd) or "").endswith("/.lock")]


def inode_of(path: str) -> tuple[int, int] | None:
    try:
        about = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return about.st_dev, about.st_ino


def gatekeepers() -> list[str]:
    """Programs that are asked before a file is opened, and may say no (fanotify(7)): lists of allowed programs, scanners."""
    found = []
    for pid in filter(str.isdigit, names("/proc")):
        fds = [name for name in names(f"/proc/{pid}/fd") if "[fanotify]" in (link(f"/proc/{pid}/fd/{name}") or "")]
        told = "".join(text(f"/proc/{pid}/fdinfo/{name}") or "" for name in fds)
        if any(int(mask, 16) & MAY_DENY for mask in MASK.findall(told)):
            found.append(process_named(pid))
    return found


def own_unit() -> tuple[str, bool] | None:
    """The service or scope of systemd that this program is in, as whatever is started from here is; and whether it is one of a
    user's manager."""
    paths = re.findall(r"^(?:0:|\d+:name=systemd):(/\S*)$", text(CONTROL_GROUPS) or "", re.MULTILINE)
    units = [name for path in paths for name in path.split("/") if name.endswith((".service", ".scope"))]
    return (units[-1], any(name.startswith("user@") for name in units[:-1])) if units else None


def unit() -> dict[str, Any] | None:
    """With whom a stop of it ends, and what it keeps from whatever is in it. Scopes count where a logout ends them."""
    found = own_unit()
    if found is None:
        return None
    name, is_users = found
    is_scope = name.endswith(".scope")
    ends_at_logout = does_not_linger() if is_users else is_scope and are_sessions_killed()
    if is_scope and not ends_at_logout:
        return None
    asked = "--property=" + ",".join(("KillMode", *SANDBOX))
    told = said("systemctl", *(["--user"] if is_users else []), "show", asked, name, is_users=is_users)
    properties = dict(line.split("=", 1) for line in told.splitlines() if "=" in line)
    return {
        "name": name,
        "is_users": is_users,
        "kill_mode": "process" if is_scope else properties.get("KillMode", "").strip(),
        "ends_at_logout": ends_at_logout,
        "inherits": [f"{one}={properties[one][:MOST_SHOWN]}" for one in SANDBOX if properties.get(one, "") not in UNSET],
    }


def does_not_linger() -> bool:
    return "Linger=no" in said("loginctl", "show-user", "--property=Linger", who_has_logged_in())


def are_sessions_killed() -> bool:
    """KillUserProcesses= of logind.conf(5), which leaves root's alone."""
    logind = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
    told = said("busctl", "get-property", *logind, "KillUserProcesses")
    return told.strip() == "b true" and who_has_logged_in() != "0"


def who_has_logged_in() -> str:
    """His number, whoever he has become since."""
    found = re.search(r"/user-(\d+)\.slice/", text(CONTROL_GROUPS) or "")
    return found.group(1) if found else ""


def said(*command: str, is_users: bool = False) -> str:
    """What it prints; nothing, where it cannot be asked."""
    environment = {**os.environ, "XDG_RUNTIME_DIR": f"/run/user/{os.geteuid()}"} if is_users else None
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=SYSTEMD_SECONDS, env=environment
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode(errors="replace")


def is_read_only_here(path: str) -> bool:
    """By the mounts that this program sees, and by these alone: its file system can be written (proc(5), mountinfo)."""
    mount = mount_of(path)
    return mount is not None and "ro" in mount.options.split(",") and "rw" in mount.of_all.split(",")


def unopened(paths: list[str]) -> Pairs:
    """Which of them could not be opened as a shell's `>>` opens them, and why. That changes nothing of a file."""
    for path in paths:
        try:
            if stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116
                os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT))
        except FileNotFoundError:
            folder = os.path.dirname(path)  # noqa: PTH120
            if os.path.isdir(folder) and not os.access(folder, os.W_OK):  # noqa: PTH112
                yield path, "it is not there, and may not be made in its directory"
        except OSError as error:
            yield path, f"{os.strerror(error.errno or 0)}{why_protected(path)}"


def why_protected(path: str) -> str:
    """Of fs.protected_regular (sysctl/fs.rst): root may not either."""
    try:
        own, folder = os.stat(path), os.stat(os.path.dirname(path))  # noqa: PTH116, PTH120
    except OSError:
        return ""
    is_shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & (stat.S_IWOTH | stat.S_IWGRP)
    if not is_shared or own.st_uid in {os.geteuid(), folder.st_uid} or not number("/proc/sys/fs/protected_regular"):
        return ""
    return (
        f": it belongs to user {own.st_uid}, in a directory with the sticky bit, and with fs.protected_regular no other user "
        "may open it so, not even root"
    )


def budgets() -> Iterator[Budget]:
    yield from of_groups()
    if os.geteuid():  # root is not counted
        yield "user-tasks", "", tasks_of(os.geteuid()), limit(resource.RLIMIT_NPROC)
    everywhere = re.search(r"/(\d+) ", text("/proc/loadavg") or "")
    most = [number(f"/proc/sys/kernel/{name}") for name in ("threads-max", "pid_max")]
    yield "machine-tasks", "", int(everywhere.group(1)) if everywhere else 0, min(most)
    yield "address-space", "", 0, limit(resource.RLIMIT_AS)
    yield "cpu-time", "", 0, limit(resource.RLIMIT_CPU)
    yield "file-size", "", 0, limit(resource.RLIMIT_FSIZE)
    sizes = {
        name: int(size) * KIB for name, size in re.findall(r"^(\w+):\s+(\d+) kB", text("/proc/meminfo") or "", re.MULTILINE)
    }
    total = sizes.get("MemTotal", 0)
    yield "machine-memory", "", total - sizes.get("MemAvailable", total), total
    if number("/proc/sys/vm/overcommit_memory") == 2:
        yield "commit", "", sizes.get("Committed_AS", 0), sizes.get("CommitLimit", 0)


def limit(kind: int) -> int:
    soft = resource.getrlimit(kind)[0]
    return 0 if soft == resource.RLIM_INFINITY else soft


def of_groups() -> Iterator[Budget]:
    """Of its control groups and those above them, of both versions. What of a file is kept in memory can be given up."""
    for controllers, path in group_paths("/proc/self"):
        if path:
            group = f"/sys/fs/cgroup/{controllers}".rstrip("/") + path
            yield "tasks", path, number(f"{group}/pids.current"), number(f"{group}/pids.max")
            used = number(f"{group}/memory.current") or number(f"{group}/memory.usage_in_bytes")
            most = number(f"{group}/memory.max") or number(f"{group}/memory.limit_in_bytes")
            cached = re.search(r"^(?:file|total_cache) (\d+)", text(f"{group}/memory.stat") or "", re.MULTILINE)
            yield "memory", path, used - (int(cached.group(1)) if cached else 0), most if most < UNLIMITED else 0


def number(path: str) -> int:
    """0 where there is none, as where it says `max`."""
    found = (text(path) or "").strip()
    return int(found) if found.isdigit() else 0


def tasks_of(user: int) -> int:
    statuses = (text(f"/proc/{pid}/status") or "" for pid in os.listdir("/proc") if pid.isdigit())  # noqa: PTH208
    own = (status for status in statuses if re.search(rf"^Uid:\s+{user}\s", status, re.MULTILINE))
    return sum(int(found) for status in own for found in re.findall(r"^Threads:\s+(\d+)", status, re.MULTILINE))


if __name__ == "__main__":
    json.dump(place(json.loads(sys.argv[1])), sys.stdout)
