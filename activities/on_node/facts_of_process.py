"""How a process is set: limits, rights, environment, options, control groups (proc(5), cgroups(7)). A part of note_machine."""

from __future__ import annotations

import os
import re

from activities.on_node.kernel import Found, Pairs, group_paths, link, names, opened_by, text

PLAIN = re.compile(r"(PATH|USER|LANG|LC_\w+|TZ|TMPDIR|JAVA_HOME|LD_\w+|MALLOC_\w+|SSL_CERT_\w+|\w+_CA_BUNDLE)$")
"""Variables that hold no secret."""
OF_JVM = re.compile(
    r"-(X(?!X:On)\S*|D[\w.-]+(=.*)?|ea|javaagent:[^=]+(=.*)?|agentlib:\w+(=.*)?|agentpath:[^=]+(=.*)?)$", re.DOTALL
)
"""Options of which the name holds no secret: others, and what stands alone, are not told."""
OPEN_VALUES = re.compile(
    r"-(XX:|Xlog|agentlib:jdwp$|Dzookeeper\.|Djute\.|Djava\.(io|net)\.|Dcom\.sun\.management\.jmxremote\.)"
)
OPEN_VALUE = re.compile(r"(true|false|\d+[kmgKMG]?|\d+\.\d+|/[\w./-]*)$")
"""Of these the value is told where it is plain; the debugger's whole."""
SECRET = re.compile(r"pass|pwd|secret|token|credential|key", re.IGNORECASE)
OF_KAFKA = re.compile(r"(kafka|org\.apache)\.[\w.]+$|/[\w./-]+\.(properties|cfg|conf)$")
UNTOLD = frozenset({"", "_", "SHLVL", "PWD", "OLDPWD", "HOME", "LOGNAME"})
"""What a shell adds on its way, and what is of whoever starts it: no setting of Kafka's."""
LOG, OF_DATA = re.compile(r"^/.*\.(?:log|out)$"), re.compile(r"/\d{20}\.log$|gc[^/]*$")
LIBRARY = re.compile(r"\.so[\d.]*$")
SYSTEM_LIBRARIES = ("/lib", "/usr/lib")
LOADED_AS_NEEDED = re.compile(
    r"/(snappy-[\d.]+-\S+-libsnappyjava|libzstd-jni-\S+|liblz4-java-\S+|[^/]+\.(cpython-[^/]+|abi3))\.so$"
)
"""Codecs that Kafka unpacks; and modules of Python's, by our own programs."""
PROXY = re.compile(r"(\w+_)?PROXY$", re.IGNORECASE)
HEAP = re.compile(r"\w+_HEAP_OPTS$")
GROUP_LIMITS = re.compile(
    r"(cpu\.(max|weight|cfs_quota_us|cfs_period_us|shares)|memory\.(max|high|swap\.max|limit_in_bytes)|pids\.max"
    r"|io\.(max|weight)|blkio\.throttle\.(read|write)_\w+_device|cpuset\.(cpus|mems)|cgroup\.freeze|freezer\.state)$"
)
TRAITS = {
    **{name: name for name in ("Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp")},
    "CapEff": "capabilities",
    "Cpus_allowed_list": "CPUs that it may use",
    "Mems_allowed_list": "memory nodes that it may use",
}
"""Lines of /proc/PID/status."""
OURS, ANOTHER = "the one that we look from", "another one"
NICE, POLICY = 16, 38
"""Fields of /proc/PID/stat, from the third on."""
SESSION = re.compile(r"session-\w+\.scope")


def limits(process: str) -> Found:
    table = text(f"{process}/limits")
    fields = [re.split(r"\s{2,}", line.strip()) for line in (table or "").splitlines()[1:]]
    return {field[0]: " ".join(field[1:3]) for field in fields} or None


def traits(process: str) -> Found:
    told = dict(line.split(":", 1) for line in (text(f"{process}/status") or "").splitlines() if ":" in line)
    fields = (text(f"{process}/stat") or "").rpartition(")")[2].split()
    if not told or len(fields) <= POLICY:
        return None
    found = {"network namespace": OURS if link(f"{process}/ns/net") == link("/proc/self/ns/net") else ANOTHER}
    found.update({word: " ".join(told[name].split()) for name, word in TRAITS.items() if name in told})
    found.update({"nice value": fields[NICE], "scheduling policy": fields[POLICY]})
    found["OOM score adjustment"] = (text(f"{process}/oom_score_adj") or "").strip()
    for line in (text(f"{process}/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        found[f"control group {controllers}".strip()] = SESSION.sub("session.scope", path)
    found["security context"] = (text(f"{process}/attr/current") or "").strip("\0\n ")
    for name, word in (("root", "root directory"), ("exe", "program")):
        found[word] = os.readlink(f"{process}/{name}")  # who may not look at it knows nothing of this kind
    return found


def environment(process: str) -> Found:
    told = text(f"{process}/environ")
    return None if told is None else {name: shown(name, value) for name, _, value in split(told) if name not in UNTOLD}


def split(told: str) -> list[tuple[str, str, str]]:
    return [entry.partition("=") for entry in told.split("\0")]


def shown(name: str, value: str) -> str:
    if PROXY.match(name):
        return value.rpartition("@")[2]
    if HEAP.match(name):
        return " ".join(word for word in value.split() if word.startswith("-X"))
    return value if PLAIN.match(name) else "(not shown)"


def arguments(process: str) -> Found:
    """Options of its JVM, what it runs, and the files that it is given."""
    words = (text(f"{process}/cmdline") or "").split("\0")
    pairs = [word.partition("=") for word in words if OF_JVM.match(word) or OF_KAFKA.match(word)]
    return {name: told(name, value) if sign else "there" for name, sign, value in pairs} or None


def told(name: str, value: str) -> str:
    is_open = name == "-agentlib:jdwp" or (OPEN_VALUE.match(value) and not SECRET.search(name))
    return value if OPEN_VALUES.match(name) and is_open else "(not shown)"


def code(process: str) -> Found:
    """What it has loaded that is neither Java's own, nor the system's, nor loaded as needed: libraries by name, jars
    by their directories. An agent that was attached while it ran is in no command line."""
    maps = text(f"{process}/maps")
    if maps is None:
        return None
    mapped = {line.split(None, 5)[5] for line in maps.splitlines() if len(line.split(None, 5)) == 6}
    java = next((path.partition("/lib/")[0] + "/" for path in mapped if path.endswith("/libjvm.so")), None)
    own = tuple(filter(None, (*SYSTEM_LIBRARIES, java)))
    found = [path for path in mapped if LIBRARY.search(path) and not (path.startswith(own) or LOADED_AS_NEEDED.search(path))]
    jars = {path.rpartition("/")[0] for path in (*mapped, *opened_by(process)) if path.endswith((".jar", ".war"))}
    return {**dict.fromkeys(found, "there"), **{f"jars in {folder}": "there" for folder in jars}}


def logs(process: str) -> Found:
    """Files that it writes, or has open, and whose names are those of logs: what it says last may be there alone."""
    return {path: "open" for path in opened_by(process) if LOG.search(path) and not OF_DATA.search(path)}


def groups_of(process: str) -> Pairs:
    """Its control groups and those above them, of both versions: where each lies, and its name."""
    for controllers, path in group_paths(process):
        root = f"/sys/fs/cgroup/{controllers.replace('name=', '')}".rstrip("/")
        yield f"{root}{path}", SESSION.sub("session.scope", path)


def group_limits(process: str) -> Found:
    found: dict[str, str] = {}
    for folder, shown in groups_of(process):
        for name in names(folder):
            if GROUP_LIMITS.match(name):
                found[f"{shown}/{name}"] = " ".join((text(f"{folder}/{name}") or "").split())
    return None if text(f"{process}/cgroup") is None else found


def kills(process: str) -> Pairs:
    """How many the kernel has killed for memory: in each of its control groups with those below, and on the machine."""
    places = [(f"{folder}/memory.{file}", shown) for folder, shown in groups_of(process) for file in ("events", "oom_control")]
    for path, shown in (*places, ("/proc/vmstat", "")):
        found = re.search(r"^oom_kill (\d+)", text(path) or "", re.MULTILINE)
        if found:
            yield shown, found.group(1)
