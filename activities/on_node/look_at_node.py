"""Runs on a node's machine before a migration: says what only the machine itself knows. Writes nothing.

    python3 -c PROGRAM '{"log_dirs": […], "archive": "/etc/kafka", "kafka_home": "/opt/kafka", "pid": 4711, …}'

The answer is one JSON object on standard output. What may not be looked at is null. Python 3.7 or later.
"""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from activities.on_node.kernel import ESTABLISHED, address, inodes_of, mount_of, names, open_files, tcp_lines, text
from activities.on_node.partition_ids import partition_ids

KAFKA_JAR = re.compile(r"kafka_2\.\d+-(\d+\.\d+\.\d+(?:[.-]\w+)*)\.jar")
PROBE_SECONDS = 2.0
ALERT = "_ALERT_"
"""In OpenSSL's name of a reason: the other side has sent it."""
UTC_TIME, GENERALIZED_TIME, VERSION = 0x17, 0x18, 0xA0


def look(request: dict[str, Any]) -> dict[str, Any]:
    without_id, topic_ids = partition_ids(request["log_dirs"])
    with ThreadPoolExecutor(16) as threads:
        reached = list(threads.map(reach, request["reach"]))
    return {
        "kafka_versions": versions(request["kafka_home"]),
        "log_dirs": [directory(path) for path in request["log_dirs"]],
        "archive": directory(request["archive"]),
        "memory": memory(),
        **limits(request["pid"]),
        "without_id": without_id,
        "topic_ids": topic_ids,
        "absent_classes": absent(request["classes"], request["kafka_home"], request["class_path"]),
        "is_port_taken": is_taken(*request["own_port"]) if request["own_port"] else None,
        "reached": reached,
    }


def versions(kafka_home: str) -> list[str]:
    found = (KAFKA_JAR.fullmatch(name) for name in names(os.path.join(kafka_home, "libs")))  # noqa: PTH118
    return sorted({match.group(1) for match in found if match})


def directory(path: str) -> dict[str, Any]:
    """Where it is not there yet: of the nearest one above, which it would be made in."""
    while not os.path.isdir(path) and path != "/":  # noqa: PTH112
        path = os.path.dirname(path)  # noqa: PTH120
    sizes, mount = os.statvfs(path), mount_of(path)
    return {
        "path": path,
        "filesystem": mount.kind if mount else None,
        "free": sizes.f_bavail * sizes.f_frsize,
        "total": sizes.f_blocks * sizes.f_frsize,
        "is_writable": os.access(path, os.W_OK | os.X_OK),
    }


def memory() -> int | None:
    found = re.search(r"^MemTotal:\s+(\d+) kB", text("/proc/meminfo") or "", re.MULTILINE)
    return int(found.group(1)) * 1024 if found else None


def limits(pid: int | None) -> dict[str, Any]:
    own, most = open_files(f"/proc/{pid}") if pid else (None, None)
    maps = text(f"/proc/{pid}/maps") if pid else None
    most_maps = text("/proc/sys/vm/max_map_count")
    return {
        "open_files": own,
        "most_open_files": most,
        "maps": maps.count("\n") if maps else None,
        "most_maps": int(most_maps) if most_maps else None,
        "sockets": sockets(pid) if pid else None,
    }


def sockets(pid: int) -> list[tuple[str, str]] | None:
    """Both ends of the process's established TCP connections, its own first, by the inodes of its open files (proc(5))."""
    if not names(f"/proc/{pid}/fd"):
        return None
    lines, inodes = tcp_lines(f"/proc/{pid}"), inodes_of(f"/proc/{pid}")
    own = (fields for fields in lines if fields[3] == ESTABLISHED and fields[9] in inodes)
    return sorted({(address(fields[1]), address(fields[2])) for fields in own})


def absent(classes: list[str], kafka_home: str, class_path: list[str]) -> list[str]:
    wanted = {name: name.replace(".", "/") + ".class" for name in classes}
    if not wanted:
        return []
    for place in jars([f"{kafka_home}/libs/*", *class_path]):
        held = contents(place, set(wanted.values()))
        wanted = {name: file for name, file in wanted.items() if file not in held}
    return sorted(wanted)


def jars(class_path: list[str]) -> list[str]:
    """As Java expands a class path: `/*` stands for the jars of that folder."""
    found = []
    for entry in class_path:
        folder = entry[:-2] if entry.endswith("/*") else None
        found += [entry] if folder is None else [f"{folder}/{name}" for name in names(folder) if name.lower().endswith(".jar")]
    return found


def contents(place: str, wanted: set[str]) -> set[str]:
    if os.path.isdir(place):  # noqa: PTH112
        return {name for name in wanted if os.path.isfile(f"{place}/{name}")}  # noqa: PTH113
    try:
        with zipfile.ZipFile(place) as jar:
            return wanted.intersection(jar.namelist())
    except (OSError, zipfile.BadZipFile):
        return set()


def is_taken(host: str, port: int) -> bool:
    """Whether somebody listens where this node is to listen. An address that is not this machine's is told elsewhere."""
    try:
        socket.create_connection((host, port), timeout=PROBE_SECONDS).close()
    except OSError:
        return False
    return True


def reach(wanted: dict[str, Any]) -> dict[str, Any]:
    """One listener: a connection, and with TLS a handshake. Nobody's certificate is believed here: it is only read.

    Without a port the host's name alone is looked up.
    """
    answer = {"what": wanted["what"], "protocol": wanted["protocol"], "problem": None, "certificate_until": None}
    try:
        if wanted["port"] is None:
            socket.getaddrinfo(wanted["host"], None)
            return answer
        with socket.create_connection((wanted["host"], wanted["port"]), timeout=PROBE_SECONDS) as plain:
            if wanted["protocol"].endswith("SSL"):
                answer["certificate_until"] = expiry(handshake(plain, wanted["host"]))
    except ssl.SSLError as error:
        # An alert is the answer of somebody who speaks TLS, and wants a certificate that is not ours to give.
        answer["problem"] = None if ALERT in (error.reason or "") else f"{type(error).__name__}: {error}"
    except (OSError, ValueError, IndexError) as error:
        answer["problem"] = f"{type(error).__name__}: {error}"
    return answer


def handshake(plain: socket.socket, host: str) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with context.wrap_socket(plain, server_hostname=host) as secure:
        return secure.getpeercert(binary_form=True) or b""


def expiry(certificate: bytes) -> str:
    """ISO 8601 of notAfter (RFC 5280): version, serial number, algorithm, issuer, and then the validity of two times."""
    (_, body), *_ = children(certificate)
    fields = children(children(body)[0][1])
    validity = fields[4 if fields[0][0] == VERSION else 3][1]
    tag, value = children(validity)[1]
    digits = value.decode("ascii")
    if tag == UTC_TIME:
        digits = ("19" if int(digits[:2]) >= 50 else "20") + digits
    elif tag != GENERALIZED_TIME:
        raise ValueError("the certificate has no notAfter that can be read")
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}T{digits[8:10]}:{digits[10:12]}:{digits[12:14]}+00:00"


def children(data: bytes) -> list[tuple[int, bytes]]:
    """Tag and content of each DER element."""
    found, at = [], 0
    while at < len(data):
        tag, length, at = data[at], data[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            length, at = int.from_bytes(data[at : at + size], "big"), at + size
        found.append((tag, data[at : at + length]))
        at += length
    return found


if __name__ == "__main__":
    json.dump(look(json.loads(sys.argv[1])), sys.stdout)
