"""Runs on a node's machine: tries whether a JVM would start there with Kafka's jars, and take this file, by the java of a
process that runs.

    python3 -c PROGRAM '{"pid": 4711, "kafka_home": "/opt/kafka", "has_file": true}' <server.properties

Of a file Kafka's tool for storage is asked what lies in its directories: it reads the file as a start does, class by class and
value by value, and those directories' meta.properties; without one Kafka's main class tells its version. Java, its libraries
and the jars are read as by a start, by whoever starts nodes. Of its agents the JMX exporter and Jolokia are started as well, at
a port that is free: they read their own files, and end the JVM where they cannot. Nothing is opened that the process has: no
port, no log, no heap of its size. Writes nothing. It is run with the variables that the node is started with.

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

MAIN, VERSION = "kafka.Kafka", ("kafka.Kafka", "--version")
READ = ("kafka.tools.StorageTool", "info", "-c", "/dev/stdin")
HAS_READ = re.compile(rb"^Found (?:log director|metadata|problem)", re.MULTILINE)
"""What it then prints. Of directories that are not formatted as the file has them it complains, and ends with 1."""
SECONDS = 20
KEPT = re.compile(
    r"-XX:[+-](?:Use\w+GC|Unlock\w+VMOptions|IgnoreUnrecognizedVMOptions)|-Djava\.security\.properties=.*"
    r"|-XX:SharedArchiveFile=.*|-Xlog:cds=off"
)
"""Options by which another java may refuse to start; and class data, from which it starts sooner."""
OWN = ("-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:ErrorFile=/dev/null", "-Dlog4j.defaultInitOverride=true")
AGENT = "-javaagent:"
EXPORTER = re.compile(r"(?P<host>(?:\[[^\]]+\]|[\w.-]+):)?\d{1,5}:(?P<file>.+)")
"""What the JMX exporter is given: [HOST:]PORT:FILE. A port of 0 is any that is free, as with Jolokia."""
UNHEARD = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "OPENJ9_JAVA_OPTIONS", "IBM_JAVA_OPTIONS")
"""Variables that would give it agents."""
CLASS_PATH = ("-cp", "-classpath", "--class-path")
NOISE, MOST_TOLD = re.compile(r"log4j:|SLF4J:|Picked up |OpenJDK .*warning:|\s+at |\s+\.\.\. \d+ more|\s*$"), 3


def trial(request: dict[str, Any]) -> dict[str, str | None]:
    """`untried`: why not, where it was not. `failed`: how java ended, where that was not well; `agents`: where these are to
    blame. `refused`: where only the file is."""
    process = f"/proc/{request['pid']}"
    command_line = text(f"{process}/cmdline")
    words = (command_line or "").split("\0")
    if not command_line:
        return answer(untried="the command line of its process may not be read")
    if MAIN not in words or not os.path.basename(words[0]).startswith("java"):  # noqa: PTH119
        return answer(untried=f"its process is no plain `java … {MAIN}`")
    folder = link(f"{process}/cwd") or "/"
    java = java_at(words[0], folder)
    if java is None:
        return answer(words[0], failed="there is no such program any more")
    options = words[: words.index(MAIN)]
    kept = [word for word in options if KEPT.fullmatch(word)]
    agents = dict(filter(None, (agent(word, folder) for word in options)))
    classes = ["-cp", class_path(options, folder, request["kafka_home"])]
    command = [java, *OWN, *kept, *agents, *classes]
    refused = ended([*command, *READ]) if request["has_file"] else None
    failed = ended([*command, *VERSION]) if refused or not request["has_file"] else None
    are_to_blame = bool(failed and agents) and ended([java, *OWN, *kept, *classes, *VERSION]) is None
    return answer(
        java, failed=failed, agents=", ".join(agents.values()) if are_to_blame else None, refused=None if failed else refused
    )


def answer(
    command: str | None = None,
    *,
    untried: str | None = None,
    failed: str | None = None,
    agents: str | None = None,
    refused: str | None = None,
) -> dict[str, str | None]:
    return {"command": command, "untried": untried, "failed": failed, "agents": agents, "refused": refused}


def agent(option: str, folder: str) -> tuple[str, str] | None:
    """An option that starts it at another port, and what it goes by, for people; `None` where no such port is known of it."""
    jar, _, given = option[len(AGENT) :].partition("=")
    if not option.startswith(AGENT):
        return None
    path = os.path.normpath(os.path.join(folder, jar))  # noqa: PTH118
    found = EXPORTER.fullmatch(given)
    if found:
        file = os.path.normpath(os.path.join(folder, found["file"]))  # noqa: PTH118
        return f"{AGENT}{path}={found['host'] or ''}0:{file}", f"{path} with {file}"
    if "jolokia" in os.path.basename(jar):  # noqa: PTH119
        others = [one for one in given.split(",") if one and not one.startswith("port=")]
        return f"{AGENT}{path}={','.join(['port=0', *others])}", path
    return None


def java_at(java: str, folder: str) -> str | None:
    """Where it was, or as Kafka's scripts look for it: that of JAVA_HOME, or the first in PATH."""
    own = os.path.join(folder, java) if "/" in java else shutil.which(java)  # noqa: PTH118
    home = os.environ.get("JAVA_HOME")
    all_of_them = [own, f"{home}/bin/java" if home else None, shutil.which("java")]
    return next((one for one in all_of_them if one and os.access(one, os.X_OK)), None)


def class_path(options: list[str], folder: str, kafka_home: str) -> str:
    """The jars of Kafka as they are by now, and after them what else the process was given: plug-ins."""
    given = [after for option, after in zip(options, options[1:]) if option in CLASS_PATH]
    entries = [os.path.normpath(os.path.join(folder, entry)) for entry in (given[-1].split(":") if given else ()) if entry]  # noqa: PTH118
    libs = os.path.realpath(f"{kafka_home}/libs")
    others = (entry for entry in entries if os.path.realpath(os.path.dirname(entry)) != libs)  # noqa: PTH120
    return ":".join([f"{kafka_home}/libs/*", *others])


def ended(command: list[str]) -> str | None:
    """`None`: as it should."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    environment = {name: value for name, value in os.environ.items() if name not in UNHEARD}
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, cwd="/", timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it had not ended after {SECONDS} s"
    except OSError as error:
        return os.strerror(error.errno or 0)
    if done.returncode == 0 or HAS_READ.search(done.stdout):
        return None
    how = f"exit code {done.returncode}" if done.returncode > 0 else f"killed by {signal.Signals(-done.returncode).name}"
    said = [line.strip() for line in done.stdout.decode(errors="replace").splitlines() if not NOISE.match(line)]
    return "; ".join([how, *said[:MOST_TOLD]])


if __name__ == "__main__":
    json.dump(trial(json.loads(sys.argv[1])), sys.stdout)
