"""Runs on a machine: asks a JVM what its threads are at, as `jcmd PID Thread.print` does, which only a JDK has.

    python3 -c PROGRAM '{"pid": 4711}'

HotSpot's own way (attachListener_posix.cpp): a file by its side and SIGQUIT have it listen at a socket, to which the command
is written. Only a HotSpot that takes that signal and lets itself be asked is sent it, and once: without the file it prints its
threads into its log. So the file is taken away when it listens, and stays where it does not: who is late finds it still, and
the next who asks sends no second signal. A file of somebody else's question is left alone. The answer is one JSON object on
standard output: `threads`, by name the `state` and the `places` of the stack, the innermost first; null where it does not
answer. `is_deadlocked`: whether HotSpot has found a deadlock. Python 3.7 or later, one file.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import sys
import time
from typing import Any

DEADLINE_SECONDS = 2.5
COMMAND = b"1\0threaddump\0\0\0\0"
"""Version of the protocol, the command, and three arguments that are empty."""
DONE = b"0\n"
MOST_PLACES = 60
THREAD = re.compile(r'^"([^"]{1,120})"')
STATE = re.compile(r"^\s+java\.lang\.Thread\.State: (\w+)")
PLACE = re.compile(r"^\s+at (?:[\w.@-]*/+)*([\w.$<>]+)\(")
OF_INTEREST = re.compile(
    r"main$|kafka-shutdown-hook$|SIGTERM handler$|SIGINT handler$|data-plane-kafka-|controller-event-thread$|"
    r"[\w-]{1,60}-event-handler$"
)
"""Who starts a node, and who ends it; of a broker those that read requests, write answers, and work on what was asked; of a
controller those that decide, and copy."""
STOPPED = "TtDZX"
MOST_DIGITS = 20
REFUSES = b"+DisableAttachMechanism"
START_TIME = 19
"""Field of /proc/PID/stat, from the third on."""


def ask(pid: int) -> dict[str, Any]:
    if not is_willing(pid):
        return {"threads": None, "is_deadlocked": False}
    until = time.monotonic() + DEADLINE_SECONDS
    owner = os.stat(f"/proc/{pid}")  # noqa: PTH116
    folder = f"/proc/{pid}/root/tmp"
    inner, started = (field(pid, "NSpid").split()[-1:] or [str(pid)])[0], started_of(pid)
    become(owner.st_uid, owner.st_gid)
    path, sign = f"{folder}/.java_pid{inner}", f"{folder}/.attach_pid{inner}"
    if not listens(path, owner.st_uid):
        wake(pid, path, sign, started, until)
    dump = answer_of(path, until) if listens(path, owner.st_uid) else None
    return {"threads": None if dump is None else threads_in(dump), "is_deadlocked": "Java-level deadlock" in (dump or "")}


def is_willing(pid: int) -> bool:
    """A HotSpot that has come so far as to take the signal, runs, has none before it, and was not told to refuse."""
    try:
        maps = content(f"/proc/{pid}/maps")
        taken, *pending = (int(field(pid, name) or "0", 16) for name in ("SigCgt", "SigPnd", "ShdPnd"))
        is_refusing = any(REFUSES in content(f"/proc/{pid}/{name}") for name in ("cmdline", "environ"))
        state = field(pid, "State")[:1]
    except (OSError, ValueError):
        return False
    bit = 1 << (signal.SIGQUIT - 1)
    is_hotspot = b"/libjvm.so" in maps and b"/libj9" not in maps
    return is_hotspot and not is_refusing and bool(taken & bit) and not any(p & bit for p in pending) and state not in STOPPED


def content(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read()


def field(pid: int, name: str) -> str:
    lines = content(f"/proc/{pid}/status").decode(errors="replace").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(f"{name}:")), "")


def started_of(pid: int) -> bytes:
    """It tells a process from a later one with the same pid."""
    return content(f"/proc/{pid}/stat").rpartition(b")")[2].split()[START_TIME]


def become(uid: int, gid: int) -> None:
    """Of the same user as the process: others, root too, older versions refuse."""
    if os.geteuid() == 0 and uid != 0:
        os.setgroups([])
        os.setegid(gid)
        os.seteuid(uid)


def listens(path: str, uid: int) -> bool:
    """A socket of the process's own, and no link that leads to another."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == uid


def wake(pid: int, path: str, sign: str, started: bytes, until: float) -> None:
    if not leave(sign, started):
        return
    os.kill(pid, signal.SIGQUIT)
    while not os.path.lexists(path) and time.monotonic() < until:
        time.sleep(0.02)
    if os.path.lexists(path):
        os.unlink(sign)  # noqa: PTH108


def leave(sign: str, started: bytes) -> bool:
    """Whether the file is left now: not where one lies there that is somebody else's, or ours for the same process."""
    try:
        handle = os.open(sign, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_WRONLY, 0o600)
    except FileExistsError:
        handle = os.open(sign, os.O_NOFOLLOW | os.O_NONBLOCK | os.O_RDWR)
        told, found = os.read(handle, MOST_DIGITS), os.fstat(handle)
        if not told.isdigit() or told == started or found.st_uid != os.geteuid():
            os.close(handle)
            return False
        os.ftruncate(handle, 0)
    os.pwrite(handle, started, 0)
    os.close(handle)
    return True


def answer_of(path: str, until: float) -> str | None:
    parts: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as channel:
        channel.settimeout(max(until - time.monotonic(), 0.01))
        channel.connect(path)
        channel.sendall(COMMAND)
        while not parts or parts[-1]:
            channel.settimeout(max(until - time.monotonic(), 0.01))
            parts.append(channel.recv(65536))
    told = b"".join(parts)
    return told[len(DONE) :].decode(errors="replace") if told.startswith(DONE) else None


def threads_in(dump: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    thread: dict[str, Any] = {"state": "", "places": []}
    for line in dump.splitlines():
        head, state, place = THREAD.match(line), STATE.match(line), PLACE.match(line)
        if head:
            thread = {"state": "", "places": []}
            if OF_INTEREST.match(head.group(1)):
                thread = found.setdefault(head.group(1), thread)
        elif state:
            thread["state"] = state.group(1)
        elif place and len(thread["places"]) < MOST_PLACES:
            thread["places"].append(place.group(1))
    return found


if __name__ == "__main__":
    try:
        told = ask(json.loads(sys.argv[1])["pid"])
    except OSError:
        told = {"threads": None, "is_deadlocked": False}  # gone meanwhile, another user's, or it does not listen
    json.dump(told, sys.stdout)
