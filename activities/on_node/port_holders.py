"""Who has a port, and who has started that one. A part of watch_process."""

from __future__ import annotations

import os
import re
from typing import Any

from activities.on_node.kernel import LISTENING, UNIT, address, owner, port_of, process_named, tcp_lines, text

SHOWN_WORD = re.compile(r"(kafka|org\.apache)\.[\w.]+|/[\w./-]+\.(properties|cfg|conf)")
"""Of a command line: what holds no secret, and tells what it runs."""
SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "su", "sudo", "runuser", "setpriv", "nohup"})
SCRIPT = re.compile(r"[\w./-]+\.(py|sh|pl|rb|js|conf|cfg|ini)")
"""Of whoever has started another: what it runs, or goes by. Nothing else of its command line is told."""
OF_ZOOKEEPER = "org.apache.zookeeper.server."


def holder(port: int) -> dict[str, Any] | None:
    """Who has a port: by listening, or as the near end of a connection to somebody else. Sockets that wait to be forgotten have
    no inode."""
    lines = [fields for fields in tcp_lines("/proc") if port_of(fields[1]) == port and fields[9] != "0"]
    if not lines:
        return None
    first = min(lines, key=lambda fields: fields[3] != LISTENING)
    pid = owner({first[9]})
    return {
        "port": port,
        "pid": pid,
        "command": command(pid) if pid else "",
        "data_dir": data_dir(pid) if pid else None,
        "peer": None if first[3] == LISTENING else address(first[2]),
        "started_by": started_by(pid) if pid else "",
    }


def started_by(pid: int) -> str:
    """Who has started it, past the shells between; where that is the machine's first process, the unit that it is in. Empty
    where whoever it was has ended, or is who looks: what a start of ours has put into the background is in our unit."""
    parent, ours = parent_of(pid), ancestors()
    while parent > 1 and (text(f"/proc/{parent}/comm") or "").strip() in SHELLS:
        parent = parent_of(parent)
    if parent in ours - {1}:
        return ""
    if parent > 1:
        scripts = [word for word in words_of(parent) if SCRIPT.fullmatch(word)]
        return f"process {' '.join([process_named(str(parent)).rstrip(')'), *scripts[:1]])})"
    unit, own = (UNIT.search(text(f"/proc/{of}/cgroup") or "") for of in (pid, "self"))
    is_ours = unit is not None and own is not None and unit.group(1) == own.group(1)
    return f"systemd, as its unit {unit.group(1)}" if unit and not is_ours else ""


def ancestors() -> set[int]:
    """Of whoever looks: who starts nodes for us is among them."""
    found, pid = set(), os.getpid()
    while pid > 0:
        found.add(pid)
        pid = parent_of(pid)
    return found


def parent_of(pid: int) -> int:
    fields = (text(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def command(pid: int) -> str:
    name = (text(f"/proc/{pid}/comm") or "").strip()
    return " ".join([name, *(word for word in words_of(pid) if SHOWN_WORD.fullmatch(word))])


def words_of(pid: int) -> list[str]:
    return [word for word in (text(f"/proc/{pid}/cmdline") or "").split("\0") if word]


def data_dir(pid: int) -> str | None:
    """Of a server of ZooKeeper: what the file says that its command line ends in."""
    words = words_of(pid)
    if not any(word.startswith(OF_ZOOKEEPER) for word in words):
        return None
    try:
        path = os.path.join(os.readlink(f"/proc/{pid}/cwd"), words[-1])  # noqa: PTH118
    except OSError:
        path = words[-1]
    found = re.search(r"^\s*dataDir\s*=\s*(.*?)\s*$", text(path) or "", re.MULTILINE)
    return os.path.realpath(found.group(1)) if found else None
