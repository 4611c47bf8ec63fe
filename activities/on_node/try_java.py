"""Runs on a node's machine: tries whether a JVM would start there with Kafka's jars, and take this file, by the java of a
process that runs.

    python3 -c PROGRAM '{"pid": 4711, "kafka_home": "/opt/kafka", "file": "<digest>", "has_agents": true, "known": []}' \
        <server.properties

If the node does not run yet, `pid` is null, and `words` is its command line. `file`: a digest of the properties that come by
standard input; null where none do. What went well is answered as digests (`proven`): of java, its options and jars with the
file, and of its agents. What is `known` is not tried again.

Of a file Kafka's tool for storage is asked what lies in its directories: it reads the file as a start does, class by class and
value by value, and those directories' meta.properties; without one Kafka's main class tells its version. Java, its libraries
and the jars are read as by a start, by whoever starts nodes. Of its agents the JMX exporter, Jolokia and the JVM's own for
remote JMX are started as well, at a port that is free: they read their own files, and end the JVM where they cannot. Nothing is
opened that the process has: no port, no log, no heap of its size. Writes nothing. It is run with the variables that the node is
started with.

The answer is one JSON object on standard output. Python 3.7 or later, one file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from activities.on_node.kernel import link, names, text

MAIN, VERSION = "kafka.Kafka", ("kafka.Kafka", "--version")
READ = ("kafka.tools.StorageTool", "info", "-c", "/dev/stdin")
HAS_READ = re.compile(rb"^Found (?:log director|metadata|problem)", re.MULTILINE)
"""What it then prints. Of directories that are not formatted as the file has them it complains, and ends with 1."""
SECONDS = 20
KEPT = re.compile(
    r"-XX:[+-](?:Use\w+GC|Unlock\w+VMOptions|IgnoreUnrecognizedVMOptions)|-XX:SharedArchiveFile=.*|-Xlog:cds=off"
    r"|-D(?!log4j|logback|slf4j|kafka\.logs\.|java\.util\.logging|com\.sun\.management).*"
)
"""Options by which another java may refuse to start, or an agent; and class data, from which it starts sooner. None that opens
a log or a port."""
OF_A_FILE = re.compile(
    r"-XX:(?![+-]?\w*(?:Heap|RAM|NewSize|PreTouch|LogFile|FlightRec|OnError|OnOutOfMemory|ErrorFile|LargePages))\S+"
    r"|-X(?!X|m[snx]|log|boot)\S+"
)
"""Options that somebody may have changed in a file since (`java @FILE …`), though the same java runs: none that takes memory,
or opens something."""
OWN = ("-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:ErrorFile=/dev/null", "-Dlog4j.defaultInitOverride=true")
AGENT = "-javaagent:"
IS_EXPORTER, IS_JOLOKIA = re.compile(r"jmx[_-]?(prometheus|exporter)"), re.compile(r"jolokia")
"""In the name of an agent's jar."""
OF_JOLOKIA = {"port": "0", "discoveryEnabled": "false"}
"""In place of what it is given."""
IN_YAML = re.compile(r"in 'reader', line \d+")
"""Of a mistake in an exporter's file. What stands there comes after it, and may be a secret."""
LATE = "it had not ended after "
EXPORTER = re.compile(r"(?P<host>(?:\[[^\]]+\]|[\w.-]+):)?\d{1,5}:(?P<file>.+)")
"""What the JMX exporter is given: [HOST:]PORT:FILE. A port of 0 is any that is free, as with Jolokia."""
REMOTE_JMX = "-Dcom.sun.management."
IS_PORT_OF_JMX = re.compile(r"-Dcom\.sun\.management\.jmxremote\.port=.*")
IS_PLACE_OF_JMX = re.compile(r"-Dcom\.sun\.management\.jmxremote\.(?:port|rmi\.port|host)=.*")
PLACE_OF_JMX = tuple(f"{REMOTE_JMX}jmxremote.{place}" for place in ("port=0", "rmi.port=0", "host=127.0.0.1"))
UNHEARD = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "OPENJ9_JAVA_OPTIONS", "IBM_JAVA_OPTIONS")
"""Variables that would give it agents."""
DIGITS = 24
OF_PLACES = re.compile(r"[=:,]")
"""Between what an option names."""
CLASS_PATH = ("-cp", "-classpath", "--class-path")
NOISE, MOST_TOLD = re.compile(r"log4j:|SLF4J:|Picked up |OpenJDK .*warning:|\s+at |\s+\.\.\. \d+ more|\s*$"), 3


def trial(request: dict[str, Any]) -> dict[str, Any]:
    """`untried`: why not, where it was not. `failed`: how java ended, where that was not well; `agents`: where these are to
    blame. `refused`: where only the file is; `is_late`: that was not read in time."""
    process = f"/proc/{request['pid']}"
    words = request.get("words") or (text(f"{process}/cmdline") or "").split("\0")
    if not words[0]:
        return answer(untried="the command line of its process may not be read")
    folder = link(f"{process}/cwd") or "/"
    try:
        words, files = expanded(words, folder)
    except (OSError, ValueError) as error:
        return answer(words[0], failed=f"its options cannot be read: {error}")
    if MAIN not in words or not os.path.basename(words[0]).startswith("java"):  # noqa: PTH119
        return answer(untried=f"its process is no plain `java … {MAIN}`")
    java = java_at(words[0], folder)
    if java is None:
        return answer(words[0], failed="there is no such program any more")
    options = words[: words.index(MAIN)]
    from_files = {word for found in files.values() for word in found if OF_A_FILE.fullmatch(word)}
    kept = [word for word in options if KEPT.fullmatch(word) or word in from_files]
    agents = agents_of(options, folder) if request["has_agents"] else {}
    classes = ["-cp", class_path(options, folder, request["kafka_home"])]
    place = [java, *kept, *classes]
    of_file, of_agents = digest(place, folder, request["file"]), digest([*place, *agents], folder, "agents")
    if of_agents in request["known"]:
        agents = {}
    if of_file in request["known"] and not agents:
        return answer(java)
    command = [java, *OWN, *kept, *agents, *classes]
    refused = ended([*command, *READ], folder) if request["file"] else None
    failed = ended([*command, *VERSION], folder) if refused or not request["file"] else None
    if failed and files:
        failed += f"; it has options from {', '.join(files)}"
    may_be_agents = failed is not None and not failed.startswith(LATE) and bool(agents)
    are_to_blame = may_be_agents and ended([java, *OWN, *kept, *classes, *VERSION], folder) is None
    return answer(
        java,
        failed=failed,
        agents=", ".join(dict.fromkeys(agents.values())) if are_to_blame else None,
        refused=None if failed else refused,
        proven=[of_file, *([of_agents] if agents else [])] if not failed and not refused else (),
    )


def answer(
    command: str | None = None,
    *,
    untried: str | None = None,
    failed: str | None = None,
    agents: str | None = None,
    refused: str | None = None,
    proven: Sequence[str] = (),
) -> dict[str, Any]:
    is_late = refused is not None and refused.startswith(LATE)
    told = {"command": command, "untried": untried, "failed": failed, "agents": agents, "refused": refused}
    return {**told, "is_late": is_late, "proven": list(proven)}


def digest(words: Sequence[str], folder: str, what: str | None) -> str:
    """A digest of all that a trial depends on: the words, every file that is there of those that they may name, java's own, the
    variables, who tries, and the machine since it was booted.
    """
    java = os.path.dirname(os.path.dirname(os.path.realpath(words[0])))  # noqa: PTH120
    named = [os.path.join(folder, place) for word in words for place in OF_PLACES.split(word) if place]  # noqa: PTH118
    jars = [f"{place[:-1]}{name}" for place in named if place.endswith("/*") for name in names(place[:-2])]
    places = [*named, *jars, f"{java}/release", f"{java}/lib/modules"]
    there = [found for found in map(seen, places) if found is not None]
    variables = {name: value for name, value in os.environ.items() if name not in UNHEARD}
    machine = [text("/proc/sys/kernel/random/boot_id"), os.getuid(), os.getgid()]
    told = [list(words), what, there, variables, machine]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:DIGITS]


def seen(path: str) -> list[Any] | None:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return [path, found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode]


def expanded(words: list[str], folder: str) -> tuple[list[str], dict[str, list[str]]]:
    """With what files of arguments say by now in their place (java(1)), and what each says. Raises where one is not to be
    read."""
    found: list[str] = []
    files: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("@") and len(word) > 1 and not word.startswith("@@") and MAIN not in found:
            path = os.path.normpath(os.path.join(folder, word[1:]))  # noqa: PTH118
            with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
                files[path] = shlex.split(file.read(), comments=True)
            found += files[path]
        else:
            found.append(word)
    return found, files


def agents_of(options: list[str], folder: str) -> dict[str, str]:
    """Options that start them, and what each goes by, for people."""
    remote = [word for word in options if word.startswith(REMOTE_JMX) and not IS_PLACE_OF_JMX.fullmatch(word)]
    is_remote = any(IS_PORT_OF_JMX.fullmatch(word) for word in options)
    found = dict(filter(None, (agent(word, folder) for word in options)))
    return {**found, **(dict.fromkeys([*remote, *PLACE_OF_JMX], f"remote JMX ({REMOTE_JMX}…)") if is_remote else {})}


def agent(option: str, folder: str) -> tuple[str, str] | None:
    """An option that starts it at another port, and what it goes by, for people; `None` where no such port is known of it."""
    jar, _, given = option[len(AGENT) :].partition("=")
    if not option.startswith(AGENT):
        return None
    path, name = os.path.normpath(os.path.join(folder, jar)), os.path.basename(jar)  # noqa: PTH118, PTH119
    found = EXPORTER.fullmatch(given)
    if found and IS_EXPORTER.search(name):
        file = os.path.normpath(os.path.join(folder, found["file"]))  # noqa: PTH118
        return f"{AGENT}{path}={found['host'] or ''}0:{file}", f"{path} with {file}"
    if IS_JOLOKIA.search(name):
        others = [one for one in given.split(",") if one and one.partition("=")[0] not in OF_JOLOKIA]
        ours = [f"{option}={value}" for option, value in OF_JOLOKIA.items()]
        return f"{AGENT}{path}={','.join([*others, *ours])}", path
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


def ended(command: list[str], folder: str) -> str | None:
    """`None`: as it should. `folder`: where the node's own process is at work, which relative paths are read from."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    there = folder if os.access(folder, os.X_OK) else "/"
    environment = {name: value for name, value in os.environ.items() if name not in UNHEARD}
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, cwd=there, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{LATE}{SECONDS} s"
    except OSError as error:
        return os.strerror(error.errno or 0)
    if done.returncode == 0 or HAS_READ.search(done.stdout):
        return None
    how = f"exit code {done.returncode}" if done.returncode > 0 else f"killed by {signal.Signals(-done.returncode).name}"
    said = [line.strip() for line in done.stdout.decode(errors="replace").splitlines() if not NOISE.match(line)]
    place = next((number for number, line in enumerate(said) if IN_YAML.match(line)), MOST_TOLD)
    return "; ".join([how, *said[: min(place + 1, MOST_TOLD)]])


if __name__ == "__main__":
    json.dump(trial(json.loads(sys.argv[1])), sys.stdout)
