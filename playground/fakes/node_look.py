"""The programs that are sent to a node, on a simulated machine: `look_at_node`, `watch_process`, `look_at_start`,
`try_java` and `note_machine` of `activities.on_node`.

The same answers, from its files in memory, and from what it is said to be.
"""

import json
import re
import time
from collections.abc import Collection, Sequence
from posixpath import dirname
from typing import Any

from activities.on_node import command_of
from activities.ports.nodes import Completed
from playground.fakes.machine import FakeMachine

GIB = 1024**3
OF_A_PROCESS = frozenset({"limit", "process", "environment", "group"})
PARTITION = re.compile(r"(.+)-\d+")
ID = re.compile(rb"topic_id: (\S+)")

HEALTHY: dict[str, object] = {
    "stuck_threads": 0,
    "open_files": 500,
    "most_open_files": 100_000,
    "throttled": 0.0,
    "collecting": 0.0,
    "major_faults": 0.0,
    "memory_available": 0.5,
    "on_cpu": 0.2,
    "awaiting_cpu": 0.1,
    "covered": [],
    "unheard": [],
    "far": [],
    "unsent": [],
    "read_only": [],
    "frozen": None,
    "started_by": "",
    "unaccepted": [],
    "elsewhere": None,
    "disks": [["/data", "sdb", 0.1, 2.0]],
    "disk_pressure": 0.0,
    "ends_by": None,
    "unread": 0,
}


def is_look(arguments: Sequence[str]) -> bool:
    return _is(arguments, "look_at_node", "look_at_topics", "watch_process")


def is_look_at_start(arguments: Sequence[str]) -> bool:
    return _is(arguments, "look_at_start")


def is_trial(arguments: Sequence[str]) -> bool:
    return _is(arguments, "try_java")


def is_note(arguments: Sequence[str]) -> bool:
    return _is(arguments, "note_machine")


def start(machine: FakeMachine) -> Completed:
    return Completed(0, json.dumps({"unit": machine.unit, "read_only": [], "unopened": [], "budgets": []} | machine.place), "")


def trial(machine: FakeMachine) -> Completed:
    return Completed(0, json.dumps({"command": "/opt/java/bin/java", "untried": None, "proven": []} | machine.trial), "")


def _is(arguments: Sequence[str], *names: str) -> bool:
    return any(arguments[:-1] == command_of(name, {})[:-1] for name in names)


def note(machine: FakeMachine, arguments: Sequence[str], identity: str | None) -> Completed:
    """As it is said to be set. Of a process only where that runs which is asked about."""
    asked = json.loads(arguments[-1])["identity"]
    has_process = asked is not None and asked == identity
    facts = {kind: found for kind, found in machine.facts.items() if has_process or kind not in OF_A_PROCESS}
    return Completed(0, json.dumps({"facts": facts, "kernel": machine.kernel, "has_process": has_process}), "")


def look(machine: FakeMachine, arguments: Sequence[str], is_running: bool, unreachable: Collection[str]) -> Completed:
    """A machine with room for everything, every class, and a way to every host that is not `unreachable`. But for its `signs`
    all is well.
    """
    request = json.loads(arguments[-1])
    if "watch" in request or "watch_port" in request:
        return Completed(0, json.dumps(HEALTHY | machine.signs | {"clock": time.time()}), "")
    if "ports" in request:
        return Completed(0, json.dumps({"holders": []}), "")
    partitions = {path: _id(machine, path) for path in _partitions(machine, request["log_dirs"])}
    ids = {
        "without_id": [path for path, found in partitions.items() if found is None],
        "topic_ids": {path: found for path, found in partitions.items() if found is not None},
    }
    if "topics" in request:
        return Completed(0, json.dumps(ids), "")
    is_running = is_running and request["pid"] is not None
    answer = {
        "kafka_versions": _versions(machine, request["kafka_home"]),
        "log_dirs": [_directory(machine, path) for path in request["log_dirs"]],
        "archive": _directory(machine, request["archive"]),
        "memory": 16 * GIB,
        "open_files": 500 if is_running else None,
        "most_open_files": 100_000 if is_running else None,
        "maps": 1000 if is_running else None,
        "most_maps": 262_144,
        "sockets": [] if is_running else None,
        **ids,
        "absent_classes": [],
        "is_port_taken": False if request["own_port"] else None,
        "reached": [_reached(wanted, unreachable) for wanted in request["reach"]],
    }
    return Completed(0, json.dumps(answer), "")


def _versions(machine: FakeMachine, kafka_home: str) -> list[str]:
    jars = (re.fullmatch(r"kafka_2\.\d+-(.+)\.jar", name) for name in machine.names(f"{kafka_home}/libs") or ())
    return sorted({jar[1] for jar in jars if jar})


def _directory(machine: FakeMachine, path: str) -> dict[str, object]:
    while not machine.is_dir(path):
        path = dirname(path)
    return {"path": path, "filesystem": "ext4", "free": 500 * GIB, "total": 1000 * GIB, "is_writable": True}


def _partitions(machine: FakeMachine, log_dirs: Sequence[str]) -> list[str]:
    paths = [f"{log_dir}/{name}" for log_dir in log_dirs for name in machine.names(log_dir) or ()]
    return [path for path in paths if machine.is_dir(path) and PARTITION.fullmatch(path) and "__cluster_metadata" not in path]


def _id(machine: FakeMachine, path: str) -> str | None:
    file = machine.read(f"{path}/partition.metadata")
    found = ID.search(file.content) if file is not None else None
    return found[1].decode() if found else None


def _reached(wanted: dict[str, Any], unreachable: Collection[str]) -> dict[str, object]:
    problem = f"gaierror: {wanted['host']}" if wanted["host"] in unreachable else None
    return {"what": wanted["what"], "protocol": wanted["protocol"], "problem": problem, "certificate_until": None}
