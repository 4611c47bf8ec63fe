"""Runs on a node's machine: tries whether a JVM would start there with Kafka's jars, by the java of a process that runs.

    python3 -c PROGRAM '{"pid": 4711, "kafka_home": "/opt/kafka"}'

Kafka's main class is asked for its version: java, its libraries and those jars are read as by a start, by whoever starts nodes.
Nothing is opened that the process has: no port, no log, no agent, no heap of its size. Writes nothing. It is run with the
variables that the node is started with.

The answer is one JSON object on standard output. Python 3.7 or later, one file.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from typing import Any

from activities.on_node.kernel import link, text

MAIN, SECONDS = "kafka.Kafka", 20
KEPT = re.compile(r"-XX:[+-](?:Use\w+GC|Unlock\w+VMOptions|IgnoreUnrecognizedVMOptions)|-XX:SharedArchiveFile=.*|-Xlog:cds=off")
"""Options by which another java may refuse to start; and class data, from which it starts sooner."""
OWN = ("-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:ErrorFile=/dev/null", "-Dlog4j.defaultInitOverride=true")
UNHEARD = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "OPENJ9_JAVA_OPTIONS", "IBM_JAVA_OPTIONS", "CLASSPATH")
"""Variables that would give it agents, and a class path of others."""
NOISE, MOST_TOLD = re.compile(r"log4j:|SLF4J:|Picked up |OpenJDK .*warning:|\s*$"), 3


def trial(request: dict[str, Any]) -> dict[str, str | None]:
    """`untried`: why not, where it was not. `failed`: how the trial ended, where that was not well."""
    process = f"/proc/{request['pid']}"
    command_line = text(f"{process}/cmdline")
    words = (command_line or "").split("\0")
    if not command_line:
        return {"untried": "the command line of its process may not be read", "command": None, "failed": None}
    if MAIN not in words or not os.path.basename(words[0]).startswith("java"):  # noqa: PTH119
        return {"untried": f"its process is no plain `java … {MAIN}`", "command": None, "failed": None}
    java = found(words[0], link(f"{process}/cwd") or "/")
    if java is None:
        return {"untried": None, "command": words[0], "failed": "there is no such program any more"}
    kept = [word for word in words[: words.index(MAIN)] if KEPT.fullmatch(word)]
    command = [java, *OWN, *kept, "-cp", f"{request['kafka_home']}/libs/*", MAIN, "--version"]
    return {"untried": None, "command": java, "failed": ended(command)}


def found(java: str, folder: str) -> str | None:
    """Where it was, or as Kafka's scripts look for it: that of JAVA_HOME, or the first in PATH."""
    own = os.path.join(folder, java) if "/" in java else shutil.which(java)  # noqa: PTH118
    home = os.environ.get("JAVA_HOME")
    all_of_them = [own, f"{home}/bin/java" if home else None, shutil.which("java")]
    return next((one for one in all_of_them if one and os.access(one, os.X_OK)), None)


def ended(command: list[str]) -> str | None:
    """`None`: as it should."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    environment = {name: value for name, value in os.environ.items() if name not in UNHEARD}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd="/",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it had not ended after {SECONDS} s"
    except OSError as error:
        return os.strerror(error.errno or 0)
    if done.returncode == 0:
        return None
    how = f"exit code {done.returncode}" if done.returncode > 0 else f"killed by {signal.Signals(-done.returncode).name}"
    said = [line.strip() for line in done.stdout.decode(errors="replace").splitlines() if not NOISE.match(line)]
    return "; ".join([how, *said[:MOST_TOLD]])


if __name__ == "__main__":
    json.dump(trial(json.loads(sys.argv[1])), sys.stdout)
