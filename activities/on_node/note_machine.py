"""Runs on a machine: says how it is set, so that it can be told later what somebody has changed. Writes nothing.

    python3 -c PROGRAM '{"identity": "4711@90210", "places": ["/etc/kafka", "/opt/kafka/bin"], "files": […], "data": […], …}'

`identity`: of the process of interest, as pid and start time (proc(5)), or null; or `port`, at which it listens, and `config`,
the file that a server of ZooKeeper was started with, for when none runs. `places`: directories with what it is started from;
`files`: the same one by one; `java`: where its java was, for when none runs; `data`: what is written all the time, of which
only owners and rights are looked at; `settings`: files of which the values name others, and `named`: files that were named
before. The answer is one JSON object on standard output: `facts`, by their kind and name, and of
`kernel` what it has printed of trouble, each with the seconds since, or null. A kind that could not be looked at, or not in
time, is not there; an empty one has nothing in it. No value of a secret is. Python 3.7 or later, one file.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from typing import Any, Callable

from activities.on_node.facts_of_files import files, java_files, lines_of, mounts, named, rights
from activities.on_node.facts_of_kernel import booted, kernel_log, settings, sysctls
from activities.on_node.facts_of_process import arguments, code, environment, group_limits, kills, limits, logs, traits
from activities.on_node.facts_of_zookeeper import server_settings
from activities.on_node.kernel import UNIT, Found, link, listener, names, text

DEADLINE_SECONDS = 4.0
"""After it what is known is told: a file system that hangs keeps nothing else back."""
MOST_FACTS, MOST_CHARACTERS = 3000, 200
CREDENTIALS = re.compile(r"//\S*@")
TERMINAL, CPU_TIME, START_TIME = 4, slice(11, 15), 19
"""Fields of /proc/PID/stat, from the third on."""
LASTING_SECONDS = 60.0
LEAST_BUSY = 0.01
"""Of the time since it was started: its own, and that of those it has waited for. Who does less keeps nobody from anything."""
OF_OTHERS_LEAVE = {"kafka.Kafka", "org.apache.spark.sql.connect.service.SparkConnectServer"}
"""Kafka, and keeperless-checks' Spark: they are started and stopped by a migration."""
OF_PEOPLE = re.compile(r"session-\w+\.scope|user@\d+\.service/init\.scope")
"""Control groups of who has logged in."""
ENTRANCE = re.compile(r"sshd\b")
NAMELESS = frozenset(
    {
        *("sh", "bash", "dash", "ash", "zsh", "sleep", "cat", "tail", "head", "less", "more", "tee", "wc", "sort", "timeout"),
        *("grep", "find", "awk", "sed", "xargs", "ls", "ps", "top", "watch", "flock", "curl", "jq", "vi", "vim", "nano"),
    }
)
"""What anybody has open who looks around; which script it runs, if any, is what would tell of it."""
SCRIPT = re.compile(r"/[\w./-]+$|[\w.-]+\.(py|sh|pl|rb|jar|js)$|(org|com|io|net)\.[\w.]+$")
"""Of a command line: what it runs. Nothing else of it is told."""


def note(request: dict[str, Any]) -> dict[str, Any]:
    """Facts by kind, each by name; and what the kernel has said."""
    pid = process_of(request)
    process = f"/proc/{pid or 'self'}"
    kinds: dict[str, Callable[[], Found]] = {
        "mount": lambda: mounts(process),
        "namespace": lambda: namespaces(process, bool(pid)),
        "file": lambda: dict(files(request)),
        "named": lambda: named(process if pid else "", request),
        "data": lambda: dict(rights(request["data"])),
        "java": lambda: java_files(process, request.get("java")),
        "line": lines_of,
        "sysctl": lambda: dict(sysctls()),
        "machine": lambda: dict(settings()),
        "service": services,
        "program": programs,
        "boot": booted,
        "kill": lambda: dict(kills(process)),
        "setting": lambda: server_settings(process if pid else "", request),
    }
    if pid:
        kinds["limit"] = lambda: limits(process)
        kinds["process"] = lambda: traits(process)
        kinds["environment"] = lambda: environment(process)
        kinds["argument"] = lambda: arguments(process)
        kinds["code"] = lambda: code(process)
        kinds["log"] = lambda: logs(process)
        kinds["group"] = lambda: group_limits(process)
    found, kernel = in_time(kinds)
    if pid and process_of(request) != pid:
        for kind in ("mount", "limit", "process", "environment", "argument", "code", "group"):
            found.pop(kind, None)
    return {"facts": found, "kernel": kernel, "has_process": "limit" in found}


def in_time(kinds: dict[str, Callable[[], Found]]) -> tuple[dict[str, dict[str, str]], Any]:
    """What was found of each before the deadline, printable and not endless. Who hangs is left behind."""
    found: dict[str, dict[str, str]] = {}
    kernel: list[Any] = []

    def read(kind: str) -> None:
        try:
            if kind == "kernel":
                said = kernel_log()
                kernel.append(said and [(seconds, printable(line)) for seconds, line in said])
                return
            facts = kinds[kind]()
        except (OSError, ValueError, LookupError):
            return  # vanished, or not what proc(5) says: not known
        if facts is not None:
            found[kind] = {printable(name): printable(value) for name, value in list(facts.items())[:MOST_FACTS]}

    threads = [threading.Thread(target=read, args=(kind,), daemon=True) for kind in (*kinds, "kernel")]
    until = time.monotonic() + DEADLINE_SECONDS
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(until - time.monotonic(), 0.0))
    return dict(found), kernel[0] if kernel else None


def printable(words: str) -> str:
    """Whatever bytes a name has, without what an address says of who may use it, and short."""
    return CREDENTIALS.sub("//…@", words.encode("utf-8", "replace").decode("utf-8"))[:MOST_CHARACTERS]


def process_of(request: dict[str, Any]) -> int | None:
    """The process that is asked about, if it is still the same."""
    if request.get("port"):
        return listener(request["port"])
    pid, _, started = (request["identity"] or "").partition("@")
    fields = (text(f"/proc/{pid}/stat") or "").rpartition(")")[2].split() if pid else []
    return int(pid) if len(fields) > START_TIME and fields[START_TIME] == started else None


def namespaces(process: str, is_process: bool) -> Found:
    """In which this program is, and whose mounts are told."""
    found = {name: link(f"/proc/self/ns/{name}") or "" for name in ("net", "pid", "user")}
    found.update({"mounts": link(f"{process}/ns/mnt") or "", "whose": "process" if is_process else ""})
    return {**found, "uid": str(os.geteuid())}


def services() -> Found:
    """Units of systemd that are enabled, and run."""
    root = "/etc/systemd/system"
    enabled = {unit for folder in names(root) if folder.endswith(".wants") for unit in names(f"{root}/{folder}")}
    running = (UNIT.search(text(f"/proc/{pid}/cgroup") or "") for pid in names("/proc") if pid.isdigit())
    return dict.fromkeys(sorted({unit.group(1) for unit in running if unit and unit.group(1) in enabled}), "runs")


def programs() -> Found:
    """What runs without a terminal, and whether for longer than a moment, and does something: but for the kernel's own threads,
    for who has logged in, and for what is started and stopped by others' leave. Of a title that a program gives itself the
    first word."""
    now = float((text("/proc/uptime") or "0").split()[0])
    found: dict[str, str] = {}
    for pid in names("/proc"):
        words = [word for word in (text(f"/proc/{pid}/cmdline") or "").split("\0") if word] if pid.isdigit() else []
        fields = (text(f"/proc/{pid}/stat") or "").rpartition(")")[2].split() if words else []
        if len(fields) <= START_TIME or fields[TERMINAL] != "0" or OF_OTHERS_LEAVE.intersection(words):
            continue
        program = os.path.basename((words[0].split() or [""])[0])  # noqa: PTH119
        if ENTRANCE.match(program) or OF_PEOPLE.search(text(f"/proc/{pid}/cgroup") or ""):
            continue
        shown_words = [program, *(word for word in words[1:] if SCRIPT.match(word))]
        if program in NAMELESS and len(shown_words) == 1:
            continue
        name = f"{' '.join(shown_words[:2])} of user {owner_of(pid)}"
        a_second = os.sysconf("SC_CLK_TCK")
        age, busy = now - int(fields[START_TIME]) / a_second, sum(map(int, fields[CPU_TIME])) / a_second
        told = "has begun" if age < LASTING_SECONDS else "idles" if busy < LEAST_BUSY * age else "runs"
        found[name] = "runs" if found.get(name) == "runs" else told
    return found


def owner_of(pid: str) -> str:
    try:
        return str(os.stat(f"/proc/{pid}").st_uid)  # noqa: PTH116
    except OSError:
        return "?"


if __name__ == "__main__":
    json.dump(note(json.loads(sys.argv[1])), sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # who hangs in a file system is not waited for
