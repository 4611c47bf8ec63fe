"""Files, rights, mounts, and lines of what resolves names. A part of note_machine."""

from __future__ import annotations

import array
import fcntl
import hashlib
import os
import re
import stat
import time
from pathlib import Path
from typing import Any

from activities.on_node.kernel import Found, Pairs, link, mounts_of, names, text

MOST_ENTRIES = 2000
PASSING_MOUNTS = re.compile(
    r"/(var/lib/(docker|containers|containerd|kubelet)|run/(user|netns|docker|containerd|credentials)|sys|snap|boot|efi)(/|$)|/proc/"
)
"""Of /proc itself the options count: hidepid hides everybody's processes from who is not root."""
PASSING_FILES = re.compile(
    r"\.(log|out|pid|identity|lock|tmp|swp|pyc|gz|[0-9]+)$|^\.keeperless|gc\.log|^hs_err|\.(db|db-wal|db-shm)$"
)
SYSTEM_FILES = (
    *("nsswitch.conf", "krb5.conf", "localtime", "ld.so.preload", "environment", "fstab", "hosts.deny", "ssl/openssl.cnf"),
    *("crontab", "security/limits.conf", "ssl/certs/ca-certificates.crt", "pki/tls/certs/ca-bundle.crt"),
)
MOST_NAMED = 200
NAMED = re.compile(r"(?<![\w/])/[\w.@+/-]+")
SCHEDULES = (
    *("/etc/cron.d", "/etc/cron.hourly", "/etc/cron.daily", "/var/spool/cron", "/var/spool/cron/crontabs"),
    "/etc/systemd/system",
)
"""Where what is done again and again is written down: crontabs, and units with their timers."""
LINES = ("hosts", "resolv.conf")
JAVA_HOME = "home of its java"
JAVA_PARTS = ("", "bin", "conf", "conf/security", "lib", "lib/security", "lib/server")
"""Of a JRE, where lies what a JVM reads as it starts, and never again."""
FS_IOC_GETFLAGS = 0x80086601
MARKED = {0x10: "immutable", 0x20: "append-only"}
"""chattr(1)."""
CONFIGURES = re.compile(r"\.(properties|cfg|conf|cnf|xml|ya?ml|json)$")
MOST_CONFIGURING = 256 * 1024
"""Bytes of a configuration file."""
UNOPENED = re.compile(r"\.(jar|keytab|jks|p12|pfx|key|pem)$")


def mounts(process: str) -> Found:
    """As the process sees them; of several on one point the last."""
    found: dict[str, str] = {}
    for mount in mounts_of(process):
        if not PASSING_MOUNTS.match(mount.point) and mount.kind != "autofs":
            found[mount.point] = f"{mount.source} ({mount.kind})"
            found[f"{mount.point}, options"] = mount.options
            found[f"{mount.point}, file system"] = mount.of_all
    return found or None


def files(request: dict[str, Any]) -> Pairs:
    """What lies in a directory, and single files. Of directories, and of what is written all the time, not the content."""
    data = set(request["data"])
    for place in dict.fromkeys((*request["places"], *SCHEDULES)):
        found = names(place) if os.path.isdir(place) else []  # noqa: PTH112
        kept = [f"{place}/{name}" for name in found[:MOST_ENTRIES] if not PASSING_FILES.search(name)]
        for path in (place, *kept):
            if path not in data:
                yield from described(path)
    for path in (*request["files"], *(f"/etc/{name}" for name in SYSTEM_FILES)):
        yield from described(path)


def named(process: str, request: dict[str, Any]) -> Found:
    """Files that it was started with, by its command line, its environment and its settings, wherever they lie; and those that
    are asked for, so that one that is gone is seen: keys, passwords, rules of agents, what a provider of values reads."""
    texts = (text(f"{process}/cmdline"), text(f"{process}/environ"), *map(text, request["settings"])) if process else ()
    data, beside = request["data"], tuple(f"{place}/" for place in (*request["places"], *request["data"]))
    found = dict.fromkeys((*request["named"], *(path for told in texts for path in NAMED.findall(told or ""))))
    kept = [path for path in found if not (path in data or path.startswith((*beside, "/proc/", "/dev/")))]
    ours = [path for path in kept if not PASSING_FILES.search(path) and os.path.isfile(path)]  # noqa: PTH113
    return {name: value for path in ours[:MOST_NAMED] for name, value in described(path)}


def java_files(process: str, home: str | None) -> Found:
    """What a JVM is made of: that of the process, or of the one that was there."""
    program = (link(f"{process}/exe") or "").replace(" (deleted)", "")
    is_java = os.path.basename(program) == "java"  # noqa: PTH119
    home = os.path.dirname(os.path.dirname(program)) if is_java else home  # noqa: PTH120
    if home is None:
        return None
    paths = [os.path.join(home, part, name) for part in JAVA_PARTS for name in names(os.path.join(home, part))]  # noqa: PTH118
    told = (pair for path in paths[:MOST_ENTRIES] if not os.path.isdir(path) for pair in described(path))  # noqa: PTH112
    return {JAVA_HOME: home, **dict(told)}


def described(path: str) -> Pairs:
    """Rights and owner; of a file size and time, and a digest of what configures; where a link leads."""
    try:
        found = os.lstat(path)
    except OSError:
        return
    if stat.S_ISLNK(found.st_mode):
        yield path, f"→ {link(path)}"
    elif stat.S_ISREG(found.st_mode):
        written = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(max(min(found.st_mtime, 2**33), 0)))
        yield path, f"{found.st_size} bytes, written {written}"
        yield from digested(path, found.st_size)
    yield f"{path}, rights", rights_of(path, found)


def digested(path: str, size: int) -> Pairs:
    """Whether a configuration file has what it had. It may hold passwords: who reads a note could try them, but for a key that
    is this machine's own, and no part of the note (machine-id(5))."""
    key = (text("/etc/machine-id") or "").strip() if CONFIGURES.search(path) and size <= MOST_CONFIGURING else ""
    if not key:
        return
    try:
        content = Path(path).read_bytes()
    except OSError:
        return
    yield f"{path}, content", f"digest {hashlib.blake2b(content, digest_size=4, key=key.encode()[:64]).hexdigest()}"


def rights(places: list[str]) -> Pairs:
    """Of each, and where it is a directory, of what lies in it."""
    for place in places:
        inner = names(place)[:MOST_ENTRIES] if os.path.isdir(place) else []  # noqa: PTH112
        for path in (place, *(f"{place}/{name}" for name in inner)):
            try:
                yield f"{path}, rights", rights_of(path, os.lstat(path))
            except OSError:
                continue


def rights_of(path: str, found: os.stat_result) -> str:
    words = [stat.filemode(found.st_mode), f"{found.st_uid}:{found.st_gid}"]
    if (stat.S_ISREG(found.st_mode) and not UNOPENED.search(path)) or stat.S_ISDIR(found.st_mode):
        words += marks_of(path)
    try:
        words += [name for name in os.listxattr(path, follow_symlinks=False) if name.startswith("system.posix_acl")]
        words += [os.getxattr(path, "security.selinux", follow_symlinks=False).decode(errors="replace").strip("\0")]
    except OSError:
        pass
    return " ".join(words)


def marks_of(path: str) -> list[str]:
    flags = array.array("i", [0, 0])
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return []
    try:
        fcntl.ioctl(handle, FS_IOC_GETFLAGS, flags, True)
    except OSError:
        return []
    finally:
        os.close(handle)
    return [word for bit, word in MARKED.items() if flags[0] & bit]


def lines_of() -> Found:
    told = {name: text(f"/etc/{name}") for name in LINES}
    kept = [(name, line.split()) for name, words in told.items() for line in (words or "").splitlines()]
    return {f"/etc/{name}: {' '.join(words)}": "there" for name, words in kept if words and words[0][0] not in "#;"}
