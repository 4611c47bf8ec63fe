"""Runs on a machine: says how it is set, so that it can be told later what somebody has changed. Writes nothing.

    python3 -c PROGRAM '{"pid": 4711, "places": ["/etc/kafka", "/opt/kafka/bin"], "data": ["/var/lib/kafka"], "own": […]}'

`pid`: of the process of interest, or null; or `port`, at which it listens. `places`: directories with what it is started
from; `data`: with what it writes, of which only owners and rights are looked at; `own`: files whose content somebody else
compares. The answer is one JSON
object on standard output: `facts`, by their kind and name, and of `kernel` what it has printed of trouble, each with the
seconds since. What may not be looked at is not there. No value of a secret is. Python 3.7 or later, one file.
"""

from __future__ import annotations

import array
import fcntl
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Iterator

MOST_ENTRIES = 2000
"""Of a directory: one with more is no place where somebody changes a file by hand."""
PROGRAM_SECONDS = 2.0
MOST_CHARACTERS = 200

UNSTEADY = re.compile(
    r"fs/binfmt_misc|fs/nfs|kernel/(random|ns_last_pid|cad_pid|perf_event_max_sample_rate|sched_domain|keys)|vm/stat_refresh"
    r"|.*(flush|_key|secret|/base_reachable_time|/retrans_time)$|.*/(neigh|conf)/(veth|br-|docker|cali|cni|tap|virbr)"
)
"""Below /proc/sys: what the kernel changes by itself, what is a secret, what reading changes or makes it complain of, and
interfaces that come and go."""
PASSING_MOUNTS = re.compile(r"/(var/lib/(docker|containers|kubelet)|run/(user|netns|docker|credentials)|proc|sys|snap)(/|$)")
PASSING_LINKS = re.compile(r"veth|br-|docker|cali|cni|tap|virbr")
SHOWN = re.compile(
    r"(PATH|HOME|USER|LANG|LC_\w+|TZ|TMPDIR|JAVA_HOME|LD_\w+|MALLOC_\w+|\w+_HEAP_OPTS|SSL_CERT_\w+|\w+_CA_BUNDLE|(\w+_)?PROXY)$",
    re.IGNORECASE,
)
"""Variables that hold no secret, but for what `//user:password@` says in an address."""
GROUP_LIMITS = re.compile(
    r"(cpu\.(max|weight|cfs_quota_us|cfs_period_us|shares)|memory\.(max|high|swap\.max|limit_in_bytes)|pids\.max"
    r"|io\.(max|weight)|blkio\.throttle\.(read|write)_\w+_device|cpuset\.(cpus|mems)|cgroup\.freeze|freezer\.state)$"
)
SYSTEM_FILES = (
    *("hosts", "resolv.conf", "nsswitch.conf", "krb5.conf", "localtime", "ld.so.preload", "environment", "fstab", "hosts.deny"),
    *("security/limits.conf", "ssl/certs/ca-certificates.crt", "pki/tls/certs/ca-bundle.crt", "ssl/openssl.cnf"),
)
LINES = ("hosts", "resolv.conf")
SETTINGS = {
    "boot id": "/proc/sys/kernel/random/boot_id",
    "clock source": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "transparent huge pages": "/sys/kernel/mm/transparent_hugepage/enabled",
    "CPUs that are online": "/sys/devices/system/cpu/online",
}
TRAITS = {
    **{name: name for name in ("Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp")},
    "CapEff": "capabilities",
    "Cpus_allowed_list": "CPUs that it may use",
    "Mems_allowed_list": "memory nodes that it may use",
}
"""Lines of /proc/PID/status."""
PASSING_FILES = re.compile(r".*\.(log|out|pid|lock|tmp|swp|pyc|gz|[0-9]+)$|\.keeperless|gc\.log|hs_err")
FS_IOC_GETFLAGS = 0x80086601
MARKED = {0x10: "immutable", 0x20: "append-only"}
"""chattr(1)."""
TROUBLE = re.compile(
    r"segfault|SYN flooding|link is (not ready|down)|NIC Link is Down|table overflow|killed process|out of memory",
    re.IGNORECASE,
)
"""What the kernel says of trouble without calling it a warning."""
WARNING = 4
LISTENING = "0A"
"""State of a socket (tcp_states.h)."""
UNIT = re.compile(r"system\.slice/(?:.*/)?([^/\n]+\.service)")
COUNTED = re.compile(r"\[\d+:\d+\]")
"""Packets and bytes, as iptables-save prints them."""


def note(request: dict[str, Any]) -> dict[str, Any]:
    """Facts by kind, each by name; and what the kernel has said."""
    pid = request["pid"] or (listener(request["port"]) if request.get("port") else None)
    process = f"/proc/{pid or 'self'}"
    own = set(request["own"])
    kinds = {
        "mount": lambda: dict(mounts(process)),
        "file": lambda: {**dict(files(request["places"], own)), **dict(described([f"/etc/{name}" for name in SYSTEM_FILES]))},
        "data": lambda: dict(rights(request["data"])),
        "line": lambda: dict(lines_of(LINES)),
        "firewall": lambda: dict(firewall()),
        "network": lambda: {**dict(network()), **dict(links())},
        "sysctl": lambda: dict(sysctls()),
        "machine": lambda: dict(settings()),
        "service": lambda: dict(services()),
        "namespace": lambda: dict(namespaces()),
        "module": lambda: {line.split()[0]: "loaded" for line in (text("/proc/modules") or "").splitlines()},
    }
    if pid:
        kinds["limit"] = lambda: dict(limits(process))
        kinds["process"] = lambda: dict(traits(process))
        kinds["environment"] = lambda: dict(environment(process))
        kinds["group"] = lambda: dict(group_limits(process))
    with ThreadPoolExecutor(8) as threads:
        asked = {kind: threads.submit(read) for kind, read in kinds.items()}
        facts = {kind: {name: value[:MOST_CHARACTERS] for name, value in one.result().items()} for kind, one in asked.items()}
    return {"facts": facts, "kernel": kernel_log()}


def text(path: str) -> str | None:
    """A file's content, or `None` where there is none or it may not be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return None


def names(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))  # noqa: PTH208
    except OSError:
        return []


def listener(port: int) -> int | None:
    """The process that listens there, as far as we may know (proc(5))."""
    lines = [line.split() for kind in ("tcp", "tcp6") for line in (text(f"/proc/net/{kind}") or "").splitlines()[1:]]
    wanted = {f"socket:[{f[9]}]" for f in lines if f[3] == LISTENING and int(f[1].rpartition(":")[2], 16) == port}
    for pid in names("/proc") if wanted else []:
        for handle in names(f"/proc/{pid}/fd") if pid.isdigit() else []:
            try:
                if os.readlink(f"/proc/{pid}/fd/{handle}") in wanted:
                    return int(pid)
            except OSError:
                continue
    return None


def sysctls() -> Iterator[tuple[str, str]]:
    """What can be set, and is to be read: counters cannot be written."""
    for folder, _, found in os.walk("/proc/sys"):
        inner = folder[len("/proc/sys/") :]
        for name in (f"{inner}/{one}" for one in found):
            value = text(f"/proc/sys/{name}") if not UNSTEADY.match(name) and is_setting(f"/proc/sys/{name}") else None
            if value is not None:
                yield name.replace("/", "."), " ".join(value.split())


def is_setting(path: str) -> bool:
    """To be written as well as read."""
    try:
        return os.stat(path).st_mode & 0o600 == 0o600  # noqa: PTH116
    except OSError:
        return False


def mounts(process: str) -> Iterator[tuple[str, str]]:
    """As the process sees them; of several on one point the last."""
    for line in (text(f"{process}/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        point = re.sub(r"\\(\d{3})", lambda code: chr(int(code.group(1), 8)), left.split()[4])
        if not PASSING_MOUNTS.match(point):
            kind, source, options = (*right.split(" ", 2), "", "")[:3]
            yield point, f"{source} ({kind}), {left.split()[5]}, {options}"


def limits(process: str) -> Iterator[tuple[str, str]]:
    for line in (text(f"{process}/limits") or "").splitlines()[1:]:
        fields = re.split(r"\s{2,}", line.strip())
        yield fields[0], " ".join(fields[1:3])


def traits(process: str) -> Iterator[tuple[str, str]]:
    told = dict(line.split(":", 1) for line in (text(f"{process}/status") or "").splitlines() if ":" in line)
    for name, word in TRAITS.items():
        if name in told:
            yield word, " ".join(told[name].split())
    fields = (text(f"{process}/stat") or "").rpartition(")")[2].split()
    if len(fields) > 38:
        yield "nice value", fields[16]
        yield "scheduling policy", fields[38]
    yield "OOM score adjustment", (text(f"{process}/oom_score_adj") or "").strip()
    yield "control group", " ".join((text(f"{process}/cgroup") or "").split())
    for link in ("root", "exe"):
        try:
            yield {"root": "root directory", "exe": "program"}[link], os.readlink(f"{process}/{link}")
        except OSError:
            continue


def environment(process: str) -> Iterator[tuple[str, str]]:
    for entry in (text(f"{process}/environ") or "").split("\0"):
        name, _, value = entry.partition("=")
        if name:
            yield name, re.sub(r"//[^/@\s]*@", "//…@", value) if SHOWN.match(name) else "(not shown)"


def group_limits(process: str) -> Iterator[tuple[str, str]]:
    """Of its control groups and those above them, of both versions."""
    for line in (text(f"{process}/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        root = f"/sys/fs/cgroup/{controllers.replace('name=', '')}".rstrip("/")
        while path.strip("/"):
            for name in names(f"{root}{path}"):
                if GROUP_LIMITS.match(name):
                    yield f"{path}/{name}", " ".join((text(f"{root}{path}/{name}") or "").split())
            path = path.rpartition("/")[0]


def files(places: list[str], own: set[str]) -> Iterator[tuple[str, str]]:
    """A directory itself, and what lies in it. Of `own`, and of what is written all the time, not the content."""
    for place in dict.fromkeys(places):
        yield from described([place], bare={place})
        found = names(place) if os.path.isdir(place) else []  # noqa: PTH112
        paths = [f"{place}/{name}" for name in found[:MOST_ENTRIES] if not PASSING_FILES.match(name)]
        yield from described(paths, bare=own)


def described(paths: list[str], bare: set[str] | None = None) -> Iterator[tuple[str, str]]:
    """Rights, owner, size and time of each, and where a link leads. Of `bare`: only rights and owner."""
    for path in paths:
        try:
            found = os.lstat(path)
            where = f" → {os.readlink(path)}" if stat.S_ISLNK(found.st_mode) else ""
        except OSError:
            continue
        written = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(found.st_mtime))
        is_bare = path in (bare or ()) or stat.S_ISDIR(found.st_mode)
        content = "" if is_bare else f", {found.st_size} bytes, written {written}"
        yield path, f"{rights_of(path, found)}{content}{where}"


def rights(places: list[str]) -> Iterator[tuple[str, str]]:
    for place in places:
        yield from described([place], bare={place})
        paths = [f"{place}/{name}" for name in names(place)[:MOST_ENTRIES]]
        yield from described(paths, bare=set(paths))


def rights_of(path: str, found: os.stat_result) -> str:
    words = [stat.filemode(found.st_mode), f"{found.st_uid}:{found.st_gid}"]
    if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
        words += marks_of(path)
    try:
        words += [name for name in os.listxattr(path, follow_symlinks=False) if name.startswith("system.posix_acl")]
        words += [os.getxattr(path, "security.selinux", follow_symlinks=False).decode(errors="replace").strip("\0")]
    except OSError:
        pass
    return " ".join(words)


def marks_of(path: str) -> list[str]:
    flags = array.array("L", [0])
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


def lines_of(found: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name in found:
        for line in (text(f"/etc/{name}") or "").splitlines():
            if line.strip() and not line.lstrip().startswith("#"):
                yield f"/etc/{name}: {' '.join(line.split())}", "there"


def firewall() -> Iterator[tuple[str, str]]:
    """Each rule with the chain that it is in."""
    found = run("nft", "-s", "list", "ruleset")
    inside: list[str] = []
    for line in (found or "").splitlines():
        words = line.strip()
        if words.endswith("{"):
            inside.append(words[:-1].strip())
        elif words == "}":
            inside = inside[:-1]
        elif words:
            yield f"{' / '.join(inside)}: {words}", "there"
    if found is None:
        for program in ("iptables-save", "ip6tables-save"):
            for line in (run(program) or "").splitlines():
                if not line.startswith("#"):
                    yield f"{program[:-5]}: {COUNTED.sub('', line).strip()}", "there"


def network() -> Iterator[tuple[str, str]]:
    """Addresses, routes, and what shapes or drops what is sent."""
    for kind, command in (
        ("address", ("ip", "-o", "addr", "show")),
        ("route", ("ip", "route", "show", "table", "all")),
        ("rule of routes", ("ip", "rule", "show")),
        ("queueing", ("tc", "qdisc", "show")),
    ):
        for line in (run(*command) or "").splitlines():
            told = re.sub(r"(valid_lft|preferred_lft|expires|refcnt|age) \S+|\\", "", line)
            if not PASSING_LINKS.search(told):
                yield f"{kind}: {' '.join(told.split())}", "there"
    for link in [name for name in names("/sys/class/net") if not PASSING_LINKS.match(name)][:8]:
        for side in ("root", "ingress"):
            for line in (run("tc", "filter", "show", "dev", link, side) or "").splitlines():
                yield f"filter of {link} ({side}): {' '.join(line.split())}", "there"


def links() -> Iterator[tuple[str, str]]:
    for link in names("/sys/class/net"):
        for what in ("mtu", "operstate", "carrier", "speed", "duplex", "flags", "tx_queue_len", "address"):
            value = text(f"/sys/class/net/{link}/{what}")
            if value is not None and not PASSING_LINKS.match(link):
                yield f"{what} of {link}", value.strip()


def run(*command: str) -> str | None:
    """What it prints; `None` where there is no such program, or it may not look."""
    path = shutil.which(command[0], path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, *command[1:]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=PROGRAM_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def settings() -> Iterator[tuple[str, str]]:
    yield "kernel", os.uname().release
    yield "host name", os.uname().nodename
    yield "time zone", time.strftime("%z %Z")
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
        if disk.startswith(("loop", "ram", "zram")):
            continue
        for what, path in (("read-only", "ro"), ("size", "size"), ("scheduler", "queue/scheduler")):
            value = text(f"/sys/block/{disk}/{path}")
            if value is not None:
                yield f"{what} of {disk}", value.strip()


def services() -> Iterator[tuple[str, str]]:
    """Units of systemd that run."""
    for pid in names("/proc"):
        unit = UNIT.search(text(f"/proc/{pid}/cgroup") or "") if pid.isdigit() else None
        if unit and "@" not in unit.group(1) and not unit.group(1).startswith("run-"):
            yield unit.group(1), "runs"


def namespaces() -> Iterator[tuple[str, str]]:
    for name in ("net", "mnt", "pid"):
        try:
            yield name, os.readlink(f"/proc/self/ns/{name}")
        except OSError:
            continue


def kernel_log() -> list[tuple[float, str]]:
    """Warnings and worse, and what else tells of trouble, the newest last: seconds since, and the line (dev-kmsg)."""
    try:
        handle = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return []
    now = time.clock_gettime(time.CLOCK_MONOTONIC)
    found: dict[str, tuple[float, str]] = {}
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
            line = words.splitlines()[0] if words else ""
            if int(fields[0]) & 7 <= WARNING or TROUBLE.search(line):
                alike = re.sub(r"\d+", "0", line)
                found.pop(alike, None)
                found[alike] = (round(now - int(fields[2]) / 1e6, 1), line[:MOST_CHARACTERS])
    finally:
        os.close(handle)
    return list(found.values())[-20:]


if __name__ == "__main__":
    json.dump(note(json.loads(sys.argv[1])), sys.stdout)
