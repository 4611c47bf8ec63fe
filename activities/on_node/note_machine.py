"""Runs on a machine: says how it is set, so that it can be told later what somebody has changed. Writes nothing.

    python3 -c PROGRAM '{"identity": "4711@90210", "places": ["/etc/kafka", "/opt/kafka/bin"], "files": […], "data": […]}'

`identity`: of the process of interest, as pid and start time (proc(5)), or null; or `port`, at which it listens, and `config`,
the file that a server of ZooKeeper was started with, for when none runs. `places`: directories with what it is started from;
`files`: the same one by one; `data`: what is written all the time, of which only owners and rights are looked at. The answer
is one JSON object on standard output: `facts`, by their kind and name, and of `kernel` what it has printed of trouble, each
with the seconds since, or null. A kind that could not be looked at, or not in time, is not there; an empty one has nothing in
it. No value of a secret is. Python 3.7 or later, one file.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import json
import os
import platform
import re
import shutil
import stat
import struct
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from activities.on_node.kernel import listener, names, text

Found = Optional[Dict[str, str]]
Pairs = Iterator[Tuple[str, str]]

DEADLINE_SECONDS = 4.0
"""After it what is known is told: a file system that hangs keeps nothing else back."""
PROGRAM_SECONDS = 1.5
MOST_ENTRIES, MOST_FACTS, MOST_CHARACTERS = 2000, 3000, 200

UNSTEADY = re.compile(
    r"fs/(binfmt_misc|nfs)|kernel/(random|ns_last_pid|cad_pid|perf_event_max_sample_rate|sched_domain|keys|tainted)"
    r"|kernel/hung_task_warnings|vm/stat_refresh|.*(flush|_key|secret|/base_reachable_time|/retrans_time)$"
    r"|.*/(neigh|conf)/(veth|br-|docker|cali|cni|tap|virbr|lxc|flannel|vnet|tunl|ifb)"
)
"""Below /proc/sys: what the kernel changes by itself, what is a secret, what reading changes or makes it complain of, and
interfaces that come and go."""
PASSING_MOUNTS = re.compile(
    r"/(var/lib/(docker|containers|containerd|kubelet)|run/(user|netns|docker|containerd|credentials)|sys|snap|boot|efi)(/|$)|/proc/"
)
"""Of /proc itself the options count: hidepid hides everybody's processes from who is not root."""
PASSING_LINKS = re.compile(r"veth|br-|docker|cali|cni|tap|virbr|lxc|flannel|vnet|tunl|ifb")
PASSING_ROUTES = re.compile(r"proto (bird|bgp|zebra|ra|ospf|isis|babel)\b|temporary")
PASSING_RULES = re.compile(r"DOCKER|KUBE|CNI|f2b|cali-|elements =")
PASSING_FILES = re.compile(
    r"\.(log|out|pid|identity|lock|tmp|swp|pyc|gz|[0-9]+)$|^\.keeperless|gc\.log|^hs_err|\.(db|db-wal|db-shm)$"
)
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
PROXY = re.compile(r"(\w+_)?PROXY$", re.IGNORECASE)
HEAP = re.compile(r"\w+_HEAP_OPTS$")
CREDENTIALS = re.compile(r"//\S*@")
GROUP_LIMITS = re.compile(
    r"(cpu\.(max|weight|cfs_quota_us|cfs_period_us|shares)|memory\.(max|high|swap\.max|limit_in_bytes)|pids\.max"
    r"|io\.(max|weight)|blkio\.throttle\.(read|write)_\w+_device|cpuset\.(cpus|mems)|cgroup\.freeze|freezer\.state)$"
)
SYSTEM_FILES = (
    *("nsswitch.conf", "krb5.conf", "localtime", "ld.so.preload", "environment", "fstab", "hosts.deny", "ssl/openssl.cnf"),
    *("crontab", "security/limits.conf", "ssl/certs/ca-certificates.crt", "pki/tls/certs/ca-bundle.crt"),
)
SCHEDULES = (
    *("/etc/cron.d", "/etc/cron.hourly", "/etc/cron.daily", "/var/spool/cron", "/var/spool/cron/crontabs"),
    "/etc/systemd/system",
)
"""Where what is done again and again is written down: crontabs, and units with their timers."""
LINES = ("hosts", "resolv.conf")
SETTINGS = {
    "boot id": "/proc/sys/kernel/random/boot_id",
    "clock source": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "transparent huge pages": "/sys/kernel/mm/transparent_hugepage/enabled",
    "CPUs that are online": "/sys/devices/system/cpu/online",
}
DISKS = re.compile(r"(sd|nvme|vd|xvd|hd|md)")
TRAITS = {
    **{name: name for name in ("Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp")},
    "CapEff": "capabilities",
    "Cpus_allowed_list": "CPUs that it may use",
    "Mems_allowed_list": "memory nodes that it may use",
}
"""Lines of /proc/PID/status."""
TERMINAL, START_TIME, NICE, POLICY = 4, 19, 16, 38
"""Fields of /proc/PID/stat, from the third on."""
LASTING_SECONDS = 60.0
OF_OTHERS_LEAVE = {"kafka.Kafka", "org.apache.spark.sql.connect.service.SparkConnectServer"}
"""Kafka, and keeperless-checks' Spark: they are started and stopped by a migration."""
OF_PEOPLE = re.compile(r"session-\w+\.scope|user@\d+\.service/init\.scope")
"""Control groups of who has logged in."""
ENTRANCE = re.compile(r"sshd\b")
SCRIPT = re.compile(r"/[\w./-]+$|[\w.-]+\.(py|sh|pl|rb|jar|js)$|(org|com|io|net)\.[\w.]+$")
"""Of a command line: what it runs. Nothing else of it is told."""
SESSION = re.compile(r"session-\w+\.scope")
FS_IOC_GETFLAGS = 0x80086601
MARKED = {0x10: "immutable", 0x20: "append-only"}
"""chattr(1)."""
UNOPENED = re.compile(r"\.(jar|keytab|jks|p12|pfx|key|pem)$")
TROUBLE = re.compile(
    r"segfault|SYN flooding|link is (not ready|down)|table overflow|killed process|out of memory"
    r"|avc:\s+denied|apparmor=\"DENIED\"|type=1326|audit: backlog limit",
    re.IGNORECASE,
)
"""What the kernel says of trouble without calling it a warning."""
PACKET = re.compile(r"\bIN=\S* OUT=")
"""A rule of the firewall that only logs."""
WARNING = 4
SERVER_FILE = "configuration file of its process"
CONFIGURATION = re.compile(r"\.(properties|cfg|conf)$")
OF_ZOOKEEPER = "org.apache.zookeeper."
SETTING = re.compile(r"\s*([^\s=:#!][^\s=:]*)\s*[=:\s]\s*(.*)")
CONTINUED = re.compile(r"\\\r?\n\s*")
OPEN_SETTINGS = re.compile(
    r"(tickTime|initLimit|syncLimit|dataDir|dataLogDir|(secureC|c)lientPort(Address)?|server\.\d+|4lw\.commands\.whitelist"
    r"|autopurge\.\w+|maxClientCnxns|reconfigEnabled|standaloneEnabled|leaderServes|readonlymode\.enabled|dynamicConfigFile"
    r"|admin\.\w*[pP]ort|jute\.maxbuffer|snapCount|preAllocSize|cnxTimeout|electionAlg|quorumListenOnAllIPs"
    r"|metricsProvider\.\w+)$"
)
"""Of a server of ZooKeeper: which hold no secret."""
BPF_CALL = {"x86_64": 321, "aarch64": 280}
"""Number of bpf(2)."""
PACKETS = ("for what comes in", "for what goes out")
"""BPF_CGROUP_INET_INGRESS and EGRESS."""
COUNTED = re.compile(r"\[\d+:\d+\]")
"""Packets and bytes, as iptables-save prints them."""
UNIT = re.compile(r"system\.slice/(?:.*/)?([^/\n]+\.service)")


def note(request: dict[str, Any]) -> dict[str, Any]:
    """Facts by kind, each by name; and what the kernel has said."""
    pid = process_of(request)
    process = f"/proc/{pid or 'self'}"
    kinds: dict[str, Callable[[], Found]] = {
        "mount": lambda: mounts(process),
        "namespace": lambda: namespaces(process, bool(pid)),
        "file": lambda: dict(files(request)),
        "data": lambda: dict(rights(request["data"])),
        "line": lines_of,
        "firewall": firewall,
        "address": lambda: told_by("ip", "-o", "addr", "show"),
        "route": routes,
        "rule of routes": lambda: told_by("ip", "rule", "show"),
        "queueing": lambda: told_by("tc", "qdisc", "show"),
        "filter": filters,
        "link": lambda: dict(links()),
        "sysctl": lambda: dict(sysctls()),
        "machine": lambda: dict(settings()),
        "service": services,
        "program": programs,
        "kill": lambda: dict(kills(process)),
        "setting": lambda: server_settings(process if pid else "", request),
    }
    if pid:
        kinds["limit"] = lambda: limits(process)
        kinds["process"] = lambda: traits(process)
        kinds["environment"] = lambda: environment(process)
        kinds["argument"] = lambda: arguments(process)
        kinds["group"] = lambda: group_limits(process)
        kinds["packet program"] = lambda: packet_programs(process)
    found, kernel = in_time(kinds)
    if pid and process_of(request) != pid:
        for kind in ("mount", "limit", "process", "environment", "argument", "group", "packet program"):
            found.pop(kind, None)
    return {"facts": found, "kernel": kernel, "has_process": "limit" in found}


def in_time(kinds: dict[str, Callable[[], Found]]) -> tuple[dict[str, dict[str, str]], Any]:
    """What was found of each before the deadline, printable and not endless. Who hangs is left behind."""
    found: dict[str, dict[str, str]] = {}
    kernel: list[Any] = []

    def read(kind: str) -> None:
        try:
            if kind == "kernel":
                kernel.append(kernel_log())
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


def link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def sysctls() -> Pairs:
    """What can be set, and is to be read: counters cannot be written."""
    for folder, inner, found in os.walk("/proc/sys"):
        below = folder[len("/proc/sys/") :]
        inner[:] = [name for name in inner if not UNSTEADY.match(f"{below}/{name}".lstrip("/"))]
        for name in (f"{below}/{one}".lstrip("/") for one in found):
            value = text(f"/proc/sys/{name}") if not UNSTEADY.match(name) and is_setting(f"/proc/sys/{name}") else None
            if value is not None:
                yield name.replace("/", "."), " ".join(value.split())


def is_setting(path: str) -> bool:
    """To be written as well as read."""
    try:
        return os.stat(path).st_mode & 0o600 == 0o600  # noqa: PTH116
    except OSError:
        return False


def mounts(process: str) -> Found:
    """As the process sees them; of several on one point the last."""
    table = text(f"{process}/mountinfo")
    found: dict[str, str] = {}
    for line in (table or "").splitlines():
        left, _, right = line.partition(" - ")
        point = re.sub(r"\\(\d{3})", lambda code: chr(int(code.group(1), 8)), left.split()[4])
        kind, source, options = (*right.split(" ", 2), "", "")[:3]
        if not PASSING_MOUNTS.match(point) and kind != "autofs":
            found[point] = f"{source} ({kind})"
            found[f"{point}, options"] = left.split()[5]
            found[f"{point}, file system"] = options
    return found or None


def namespaces(process: str, is_process: bool) -> Found:
    """In which this program is, and whose mounts are told."""
    found = {name: link(f"/proc/self/ns/{name}") or "" for name in ("net", "pid")}
    found.update({"mounts": link(f"{process}/ns/mnt") or "", "whose": "process" if is_process else ""})
    return {**found, "uid": str(os.geteuid())}


def limits(process: str) -> Found:
    table = text(f"{process}/limits")
    fields = [re.split(r"\s{2,}", line.strip()) for line in (table or "").splitlines()[1:]]
    return {field[0]: " ".join(field[1:3]) for field in fields} or None


def traits(process: str) -> Found:
    told = dict(line.split(":", 1) for line in (text(f"{process}/status") or "").splitlines() if ":" in line)
    fields = (text(f"{process}/stat") or "").rpartition(")")[2].split()
    if not told or len(fields) <= POLICY:
        return None
    found = {word: " ".join(told[name].split()) for name, word in TRAITS.items() if name in told}
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


def server_settings(process: str, request: dict[str, Any]) -> Found:
    """Of a server of ZooKeeper: what is in the file that its command line ends in, in the one that this names, and its myid."""
    path = configuration_of(process) or request.get("config")
    if not path or not request.get("port"):
        return None
    lines = dict(settings_in(path))
    found = {SERVER_FILE: path if lines else f"{path}, and nothing can be read in it"}
    for place in (path, lines.get("dynamicConfigFile")):
        for name, value in settings_in(place) if place else ():
            found[f"{name} in {place}"] = value if OPEN_SETTINGS.match(name) else "(not shown)"
    number = f"{lines.get('dataDir', '')}/myid"
    return {**found, number: (text(number) or "nothing to be read").strip()[:20]} if "dataDir" in lines else found


def configuration_of(process: str) -> str | None:
    """A relative path is below where the process was started."""
    words = [word for word in (text(f"{process}/cmdline") or "").split("\0") if word] if process else []
    is_server = any(word.startswith(OF_ZOOKEEPER) for word in words)
    if not is_server or not CONFIGURATION.search(words[-1]):
        return None
    return os.path.normpath(os.path.join(link(f"{process}/cwd") or "/", words[-1]))  # noqa: PTH118


def settings_in(path: str) -> Pairs:
    """As java.util.Properties reads them."""
    for line in CONTINUED.sub("", text(path) or "").splitlines():
        found = SETTING.match(line)
        if found:
            yield found.group(1), found.group(2).strip()


def groups_of(process: str) -> Pairs:
    """Its control groups and those above them, of both versions: where each lies, and its name."""
    for line in (text(f"{process}/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        root = f"/sys/fs/cgroup/{controllers.replace('name=', '')}".rstrip("/")
        path = path.rstrip("/")
        while True:
            yield f"{root}{path}", SESSION.sub("session.scope", path)
            if not path:
                break
            path = path.rpartition("/")[0]


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


def described(path: str) -> Pairs:
    """Rights and owner; of a file size and time; where a link leads."""
    try:
        found = os.lstat(path)
    except OSError:
        return
    if stat.S_ISLNK(found.st_mode):
        yield path, f"→ {link(path)}"
    elif stat.S_ISREG(found.st_mode):
        written = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(max(min(found.st_mtime, 2**33), 0)))
        yield path, f"{found.st_size} bytes, written {written}"
    yield f"{path}, rights", rights_of(path, found)


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


def firewall() -> Found:
    """Each rule with the chain that it is in. A kernel without nf_tables has no rule there, and is not made to load it."""
    modules = text("/proc/modules")
    if modules and "nf_tables" not in modules:
        return iptables()
    told = run("nft", "-s", "list", "ruleset")
    if told is None:
        return iptables()
    found: dict[str, str] = {}
    inside: list[str] = []
    for line in told.splitlines():
        words = re.sub(r' comment "[^"]*"', "", line.strip())
        if words.endswith("{") and "=" not in words:
            inside.append(words[:-1].strip())
        elif words == "}":
            inside = inside[:-1]
        elif words:
            found[f"{' / '.join(inside)}: {words}"] = "there"
    return {name: value for name, value in found.items() if not PASSING_RULES.search(name)}


def iptables() -> Found:
    found: dict[str, str] = {}
    told = {program: run(f"{program}-save") for program in ("iptables", "ip6tables")}
    for program, lines in told.items():
        table = ""
        for line in (lines or "").splitlines():
            table = line[1:] if line.startswith("*") else table
            if line[:1] not in {"#", "*"} and line != "COMMIT" and not PASSING_RULES.search(line):
                rule = re.sub(r' --comment ("[^"]*"|\S+)', "", COUNTED.sub("", line)).strip()
                found[f"{program} {table}: {rule}"] = "there"
    return None if told["iptables"] is None else found


def told_by(*command: str) -> Found:
    """Each line without what changes by itself; `None` where there is no such program, or it does not say."""
    told = run(*command)
    lines = (re.sub(r"(valid_lft|preferred_lft|expires|refcnt|age) \S+|\\", "", line) for line in (told or "").splitlines())
    kept = (" ".join(line.split()) for line in lines if not PASSING_LINKS.search(line) and not PASSING_ROUTES.search(line))
    return None if told is None else dict.fromkeys(kept, "there")


def routes() -> Found:
    four, six = told_by("ip", "route", "show"), told_by("ip", "-6", "route", "show")
    return None if four is None or six is None else {**four, **six}


def filters() -> Found:
    """Of packets: they may drop some, or send them elsewhere (tc-filter)."""
    found: dict[str, str] = {}
    for name in [name for name in names("/sys/class/net") if not PASSING_LINKS.match(name)][:8]:
        for side in ("root", "ingress", "egress"):
            told = run("tc", "filter", "show", "dev", name, side)
            if told is None:
                return None
            found.update({f"{name} ({side}): {' '.join(line.split())}": "there" for line in told.splitlines()})
    return found


def packet_programs(process: str) -> Found:
    """eBPF programs that judge the packets of its control group, or of one above (bpf(2)): systemd's IPAddressDeny=, or a
    network plug-in's. No firewall shows them. `None` where the kernel does not let itself be asked."""
    group = next((line[3:] for line in (text(f"{process}/cgroup") or "").splitlines() if line.startswith("0::")), None)
    tables = (line.split() for line in (text("/proc/mounts") or "").splitlines())
    root = next((fields[1] for fields in tables if fields[2] == "cgroup2"), None)
    if group is None or root is None or platform.machine() not in BPF_CALL:
        return None
    handle = os.open(root + group, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return {f"{program_name(i)} {way}": "there" for kind, way in enumerate(PACKETS) for i in programs_at(handle, kind)}
    finally:
        os.close(handle)


def programs_at(handle: int, kind: int) -> list[int]:
    """Ids, those of the groups above as well (BPF_PROG_QUERY)."""
    ids = (ctypes.c_uint32 * 64)()
    answer = bpf(16, struct.pack("=IIIIQI", handle, kind, 1, 0, ctypes.addressof(ids), len(ids)))
    return list(ids[: struct.unpack_from("=I", answer, 24)[0]])


def program_name(program: int) -> str:
    """As its maker has called it (BPF_PROG_GET_FD_BY_ID, BPF_OBJ_GET_INFO_BY_FD)."""
    handle = ctypes.c_int32(0)
    info = ctypes.create_string_buffer(232)
    bpf(13, struct.pack("=III", program, 0, 0), handle)
    try:
        bpf(15, struct.pack("=IIQ", handle.value, len(info), ctypes.addressof(info)))
    finally:
        os.close(handle.value)
    return info.raw[64:80].partition(b"\0")[0].decode(errors="replace") or str(program)


def bpf(command: int, attributes: bytes, result: ctypes.c_int32 | None = None) -> bytes:
    """Raises `OSError`."""
    library, given = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    told = library.syscall(BPF_CALL[platform.machine()], command, given, 128)
    if told < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    if result is not None:
        result.value = told
    return given.raw


def links() -> Pairs:
    for name in names("/sys/class/net"):
        for what in ("mtu", "operstate", "carrier", "speed", "duplex", "flags", "tx_queue_len", "address"):
            value = text(f"/sys/class/net/{name}/{what}")
            if value is not None and not PASSING_LINKS.match(name):
                yield f"{name}: {what}", value.strip()


def run(*command: str) -> str | None:
    """What it prints; `None` where there is no such program, or it may not look. It gets nothing of our environment."""
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"
    path = shutil.which(command[0], path=search)
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": search, "LC_ALL": "C"},
            timeout=PROGRAM_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def settings() -> Pairs:
    yield "kernel", os.uname().release
    yield "host name", os.uname().nodename
    for name, path in SETTINGS.items():
        value = text(path)
        if value is not None:
            yield name, value.strip()
    memory = re.search(r"^MemTotal:\s+(\d+ kB)", text("/proc/meminfo") or "", re.MULTILINE)
    if memory:
        yield "memory", memory.group(1)
    for line in (text("/proc/swaps") or "").splitlines()[1:]:
        yield f"swap on {line.split()[0]}", line.split()[2]
    for disk in names("/sys/block"):
        for what, path in (("read-only", "ro"), ("size", "size"), ("scheduler", "queue/scheduler")):
            value = text(f"/sys/block/{disk}/{path}") if DISKS.match(disk) else None
            if value is not None:
                yield f"{what} of {disk}", value.strip()


def services() -> Found:
    """Units of systemd that are enabled, and run."""
    root = "/etc/systemd/system"
    enabled = {unit for folder in names(root) if folder.endswith(".wants") for unit in names(f"{root}/{folder}")}
    running = (UNIT.search(text(f"/proc/{pid}/cgroup") or "") for pid in names("/proc") if pid.isdigit())
    return dict.fromkeys(sorted({unit.group(1) for unit in running if unit and unit.group(1) in enabled}), "runs")


def programs() -> Found:
    """What runs without a terminal, and whether for longer than a moment: but for the kernel's own threads, for who has logged
    in, and for what is started and stopped by others' leave. Of a title that a program gives itself the first word."""
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
        name = f"{' '.join(shown_words[:2])} of user {owner_of(pid)}"
        is_lasting = now - int(fields[START_TIME]) / os.sysconf("SC_CLK_TCK") >= LASTING_SECONDS
        found[name] = "runs" if is_lasting or found.get(name) == "runs" else "has begun"
    return found


def owner_of(pid: str) -> str:
    try:
        return str(os.stat(f"/proc/{pid}").st_uid)  # noqa: PTH116
    except OSError:
        return "?"


def kernel_log() -> list[tuple[float, str]] | None:
    """Warnings and worse, and what else tells of trouble, the newest last: seconds since, and the line. `None` where we may
    read neither the kernel's log nor the journal's copy."""
    told = of_kernel()
    told = of_journal() if told is None else told
    found: dict[str, tuple[float, str]] = {}
    for seconds, level, words in told or ():
        line = printable(words)
        if not PACKET.search(line) and (level <= WARNING or TROUBLE.search(line)):
            alike = re.sub(r"\d+", "0", line)
            found.pop(alike, None)
            found[alike] = (round(max(seconds, 0.0), 1), line)
    return None if told is None else list(found.values())[-20:]


def of_kernel() -> list[tuple[float, int, str]] | None:
    """Seconds since, how grave, and the words (dev-kmsg)."""
    try:
        handle = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    now, found = time.clock_gettime(time.CLOCK_MONOTONIC_RAW), []
    try:
        while True:
            try:
                record = os.read(handle, 8192).decode(errors="replace")
            except BrokenPipeError:
                continue  # the oldest were overwritten while we read
            except OSError:
                break
            head, _, words = record.partition(";")
            fields = head.split(",")
            if words and int(fields[0]) >> 3 == 0:
                found.append((now - int(fields[2]) / 1e6, int(fields[0]) & 7, words.splitlines()[0]))
    finally:
        os.close(handle)
    return found


def of_journal() -> list[tuple[float, int, str]] | None:
    """Where that is for root alone (kernel.dmesg_restrict). Who may not read the journal is shown an empty one."""
    told = [json.loads(line) for line in (run("journalctl", "-kbq", "-n500", "-ojson") or "").splitlines()]
    now = time.time()
    return [(now - int(r["__REALTIME_TIMESTAMP"]) / 1e6, int(r["PRIORITY"]), str(r["MESSAGE"])) for r in told] or None


if __name__ == "__main__":
    json.dump(note(json.loads(sys.argv[1])), sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # who hangs in a file system is not waited for
