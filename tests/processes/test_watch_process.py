"""What a machine says of a process in trouble: real processes that are, and what people are told of it."""

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from activities.on_node import (
    command_of,
    connections,
    control_groups,
    kernel,
    log_places,
    new_connections,
    port_holders,
    stops,
    thread_states,
    watch_process,
)
from domain.diagnosis.blocker import blocker
from domain.diagnosis.machines.bad_signs import bad_signs, signed
from domain.diagnosis.machines.network_signs import MANY_CONNECTED, of_askers
from domain.diagnosis.machines.standstill_signs import of_standstill
from domain.diagnosis.machines.vital_signs import MIB, VitalSigns
from tests.unit.conftest import NOW, signs_of

WELL = "import time; print('begun', flush=True); time.sleep(600)"
STUCK = """
import os, sys
# Until its child has opened the pipe, the parent waits in the kernel, where no signal reaches it (vfork(2)).
print("begun", flush=True)
os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)])
"""
COLLECTING = """
import pathlib, threading
def collect():
    pathlib.Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("GC Thread#0")
    print("begun", flush=True)
    while True:
        pass
threading.Thread(target=collect).start()
"""
OPEN_FILES = """
import time
kept = [open("/dev/null") for _ in range(60)]
print("begun", flush=True)
time.sleep(60)
"""
SENDING = """
import socket, sys, time
one = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
one.setblocking(False)
try:
    while True:
        one.send(bytes(65536))
except BlockingIOError:
    print("begun", flush=True)
time.sleep(60)
"""
KEEPING = """
import sys, time
kept = [open(path) for path in sys.argv[1:]]
print("begun", flush=True)
time.sleep(60)
"""
SENDING_ON = """
import socket, sys
one = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print("begun", flush=True)
while True:
    one.sendall(bytes(65536))
"""
ON_ONE_CPU = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print("begun", flush=True)
while True:
    pass
"""
OF_THE_LAST = (
    """
import os
os.nice(7)
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
"""
    + ON_ONE_CPU
)
CONNECTING = """
import socket, sys, time
kept = []
for _ in range(6):
    one = socket.socket()
    one.setblocking(False)
    one.connect_ex(("127.0.0.1", int(sys.argv[1])))
    kept.append(one)
time.sleep(1.5)
print("begun", flush=True)
time.sleep(60)
"""

HERE, PEER, BESIDE, OTHER = "10.0.0.1:9092", "10.0.0.2:40000", "10.0.0.2:40009", "10.0.0.3:40001"


@pytest.fixture
def started() -> Iterator[list["subprocess.Popen[str]"]]:
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def start(started: list["subprocess.Popen[str]"], program: str, *arguments: str, files: int | None = None) -> int:
    """Runs it until it says that it has begun."""

    def limit() -> None:
        if files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    command = [sys.executable, "-I", "-c", program, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=limit)
    started.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process.pid


def watch(pid: int, log_dirs: Sequence[str] = ("/",)) -> dict[str, Any]:
    command = command_of("watch_process", {"watch": pid, "log_dirs": log_dirs}, sys.executable)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def told(answer: dict[str, Any], names: dict[str, str] | None = None) -> list[str]:
    """What is said of the process itself, whatever else is wrong with the machine of this test."""
    about_machine = {"memory_available": 0.5, "major_faults": 0.0, "throttled": 0.0, "skew": 0.0, "read_only": ()}
    about_machine |= {"awaiting_cpu": 0.0, "tasks": None, "tracked": None, "disks": (), "disk_pressure": None}
    about_machine |= {"memory_pressure": None, "drops": (), "stolen": None, "swapped_in": None}
    signs = VitalSigns.model_validate({**answer, **about_machine})
    return [sign.observed for sign in bad_signs(signs, names or {})]


def test_a_process_that_is_well(started: list["subprocess.Popen[str]"]) -> None:
    found = watch(start(started, WELL))
    assert found["open_files"]
    assert told(found) == []


def test_who_waits_for_a_cpu_is_not_accused_of_that_alone() -> None:
    """A JVM that starts takes all of a small machine for seconds."""
    (sign,) = bad_signs(signs_of(on_cpu=0.05, awaiting_cpu=0.95), {})
    assert sign.is_slight


@pytest.mark.parametrize(
    "program",
    [
        "import os; _, end = os.pipe(); print('begun', flush=True); os.write(end, bytes(1 << 20))",
        "import socket; one, other = socket.socketpair(); print('begun', flush=True); one.sendall(bytes(1 << 24))",
    ],
    ids=["pipe", "socket"],
)
def test_a_thread_that_writes_what_nobody_reads(program: str, started: list["subprocess.Popen[str]"]) -> None:
    found = watch(start(started, program))
    assert found["stuck_threads"] == 1
    (said,) = told(found)
    assert "write into a pipe or socket that nobody reads" in said


@pytest.mark.parametrize(
    ("stuck_in", "what"),
    [
        (("__break_lease",), "has a lease on a file"),
        (("fanotify_get_response", "rwsem_down_write_slowpath"), "virus scanner"),
        (("request_wait_answer",), "FUSE"),
        (("rpc_wait_bit_killable",), "NFS"),
        (("autofs_wait",), "mounted as it is used"),
        (("audit_log_start",), "audit log"),
        (("do_coredump",), "it has crashed"),
        (("mem_cgroup_handle_over_high",), "control group"),
        (("throttle_direct_reclaim",), "its whole machine has next to no memory free"),
        (("txg_wait_synced",), "ZFS"),
        (("cv_wait_common",), "ZFS"),
        (("ceph_osdc_wait_request",), "Ceph"),
        (("wait_for_response",), "SMB"),
        (("md_write_start",), "a mirror or a RAID"),
        (("raid5_make_request",), "a mirror or a RAID"),
        (("drbd_make_request",), "a mirror or a RAID"),
        (("handle_userfault",), "brought by another program"),
        (("pipe_write", "sock_alloc_send_pskb"), "nobody reads"),
        (("pipe_write", "jbd2_log_wait_commit"), "mostly a disk"),
        ((), "mostly a disk"),
    ],
)
def test_what_it_stands_still_for_is_told_by_where_in_the_kernel_it_waits(stuck_in: tuple[str, ...], what: str) -> None:
    (sign,) = bad_signs(signs_of(stuck_threads=2, stuck_in=stuck_in, kept_by=("812 (mdatp)",)), {})
    assert what in sign.observed
    assert sign.observed.endswith("That is 812 (mdatp)")


def test_who_is_to_let_them_go_on_is_found_by_what_it_has_open(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = {"/proc/812": ["anon_inode:[fanotify]"], "/proc/813": ["/dev/fuse"]}
    monkeypatch.setattr(thread_states, "names", lambda _: ["812", "813", "self"])
    monkeypatch.setattr(thread_states, "opened_by", lambda process: opened[process])
    monkeypatch.setattr(kernel, "text", lambda _: "mdatp\n")
    assert thread_states.keepers(["fanotify_get_response"]) == ["812 (mdatp)"]
    assert thread_states.keepers(["request_wait_answer"]) == ["813 (mdatp)"]
    assert thread_states.keepers(["jbd2_log_wait_commit"]) == []


def test_a_thread_that_waits_in_the_kernel(started: list["subprocess.Popen[str]"], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    pid = start(started, STUCK, str(pipe))
    try:
        found = watch(pid)
    finally:
        os.close(os.open(pipe, os.O_RDWR))
        with pipe.open("r+b", buffering=0):
            started[0].wait(30)
    assert found["stuck_threads"] == 1
    (name,) = found["stuck_named"]
    assert told(found)[0].startswith(f"1 of its threads ({name}) wait in the kernel without an end")


GROUPS = {"cgroup2": ("cgroup.freeze", "1", "0"), "cgroup": ("freezer.state", "FROZEN", "THAWED")}


def test_a_process_whose_control_group_is_frozen(started: list["subprocess.Popen[str]"]) -> None:
    """Of whichever version of control groups this machine has; where it may make none, by what others' machines have told."""
    pid = start(started, WELL)
    group, (name, freeze, thaw) = own_group()
    try:
        group.mkdir()
        (group / "cgroup.procs").write_text(str(pid))
    except OSError:
        with suppress(OSError):
            group.rmdir()
        assert told({**watch(pid), "frozen": str(group)})[0].startswith(f"its control group {group} is frozen")
        return
    try:
        (group / name).write_text(freeze)
        found = watch(pid)
        (group / name).write_text(thaw)
        assert told(found) == [f"its control group {group} is frozen: the kernel lets nothing in it run"]
        assert watch(pid)["frozen"] is None
    finally:
        (group / name).write_text(thaw)
        started[0].kill()
        started[0].wait(30)
        remove(group)


def test_a_thread_that_alone_is_frozen(started: list["subprocess.Popen[str]"]) -> None:
    """Version 1 of control groups freezes single threads; where this machine has none, nothing is frozen."""
    pid, group = start(started, WELL), Path(f"/sys/fs/cgroup/freezer/keeperless-{os.getpid()}")
    try:
        group.mkdir()
    except OSError:
        assert watch(pid)["threads_frozen"] is None
        return
    try:
        (group / "tasks").write_text(str(pid))
        (group / "freezer.state").write_text("FROZEN")
        assert watch(pid)["threads_frozen"] == str(group)
    finally:
        (group / "freezer.state").write_text("THAWED")
        started[0].kill()
        started[0].wait(30)
        remove(group)


def test_threads_whose_control_group_is_frozen_are_told_with_their_names() -> None:
    signs = signs_of(stuck_threads=2, stuck_in=("__refrigerator",), stuck_named=("ReplicaFetcherT",), threads_frozen="/cg/a")
    (sign,) = bad_signs(signs, {})
    assert sign.observed.startswith("2 of its threads (ReplicaFetcherT) stand still: their control group /cg/a is frozen")
    assert "THAWED into /cg/a/freezer.state" in sign.fix


def own_group() -> tuple[Path, tuple[str, str, str]]:
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    found = [(fields[1], fields[2]) for fields in mounts if fields[2] == "cgroup2" or "freezer" in fields[3].split(",")]
    place, kind = found[-1] if found else ("/sys/fs/cgroup", "cgroup2")
    return Path(place) / f"keeperless-{os.getpid()}", GROUPS[kind]


def remove(group: Path) -> None:
    """As soon as its last process is out of it."""
    until = time.monotonic() + 30
    while True:
        try:
            return group.rmdir()
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.05)


def test_a_heap_that_is_full(started: list["subprocess.Popen[str]"]) -> None:
    found = watch(start(started, COLLECTING))
    assert found["collecting"] > 0
    assert told({**found, "collecting": 0.9}) == ["its JVM uses 0.9 CPUs to collect garbage: its heap is nearly full"]


def test_open_files_that_come_to_their_limit(started: list["subprocess.Popen[str]"]) -> None:
    found = watch(start(started, OPEN_FILES, files=64))
    assert found["most_open_files"] == 64
    assert told(found) == [f"it has {found['open_files']} files open, of at most 64"]


DUMPING = """
import sys, time
kept = [open(f"{sys.argv[1]}/java_pid7.hprof{part}", "wb") for part in ("", ".p1")]
kept[1].truncate(3 << 20)
read = open(f"{sys.argv[1]}/old.hprof", "rb")
print("begun", flush=True)
time.sleep(60)
"""


def test_a_heap_dump_that_it_writes(started: list["subprocess.Popen[str]"], tmp_path: Path) -> None:
    (tmp_path / "old.hprof").write_bytes(b"JAVA PROFILE 1.0.2")
    found = watch(start(started, DUMPING, str(tmp_path)))
    assert found["heap_dump"][:2] == [f"{tmp_path}/java_pid7.hprof", 3 << 20]
    (sign,) = bad_signs(signs_of(heap_dump=tuple(found["heap_dump"]), unaccepted=((30582, 14, "127.0.0.1"),)), {})
    assert sign.observed.startswith(f"it writes a heap dump to {tmp_path}/java_pid7.hprof, 3 MiB so far, and stands still")
    assert sign.is_cure
    assert not list(of_askers(signs_of(heap_dump=tuple(found["heap_dump"]), askers=(("10.1.2.3", 7),))))


def test_a_process_that_ignores_what_it_is_told_to_stop_by(started: list["subprocess.Popen[str]"]) -> None:
    interrupted = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    ignoring = f"{interrupted}signal.signal(signal.SIGTERM, signal.SIG_IGN); {WELL}"
    named = "import pathlib; pathlib.Path('/proc/self/comm').write_text('java'); "
    assert watch(start(started, named + WELL))["ends_by"] is None
    assert watch(start(started, ignoring))["ends_by"] is None, "a script, and not its JVM"
    found = watch(start(started, named + ignoring))
    assert found["ends_by"] == ["INT"]
    assert told(found) == []


def test_nobody_at_the_other_end(started: list["subprocess.Popen[str]"]) -> None:
    """A queue of connections that is full: the kernel lets whoever else knocks wait, as a firewall does."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        found = watch(start(started, CONNECTING, str(port)))
    assert found["unheard"] == [f"127.0.0.1:{port}"]
    assert told(found, {f"127.0.0.1:{port}": "controller-3000"}) == [
        f"what it sends to controller-3000 at 127.0.0.1:{port} is not acknowledged: both are on one machine, and it goes over "
        "its loopback device"
    ]


def test_what_goes_over_loopback_is_told_apart_from_what_leaves_the_machine() -> None:
    """The kernel sends what is for any address of its own over lo."""
    places = {"unheard": ("10.0.0.1:9093", "10.0.0.2:9093"), "over_loopback": ("10.0.0.1:9093",)}
    down, beyond = bad_signs(signs_of(**places, is_loopback_down=True), {})
    assert down.observed == (
        "what it sends to 10.0.0.1:9093 is not acknowledged: both are on one machine, and it goes over its loopback device, "
        "which is down"
    )
    assert down.fix.startswith("Set it up (`ip link set lo up`")
    assert (beyond.observed, "a firewall, a route" in beyond.fix) == (
        "what it sends to 10.0.0.2:9093 is not acknowledged",
        True,
    )
    filtered, _ = bad_signs(signs_of(**places, is_loopback_down=False), {})
    assert "down" not in filtered.observed
    assert "rules on lo" in filtered.fix


def test_connections_that_a_firewall_has_forgotten_are_told_as_that() -> None:
    places = {"unheard": ("10.0.0.1:9093", "10.0.0.2:9093"), "open_anew": ("10.0.0.1:9093",)}
    forgotten, beyond = bad_signs(signs_of(**places), {"10.0.0.1:9093": "controller-3000"})
    assert forgotten.observed.startswith(
        "what it sends to controller-3000 at 10.0.0.1:9093 is not acknowledged: established connections are dropped, while new "
        "ones pass: a firewall or NAT between them has forgotten them"
    )
    assert forgotten.fix.startswith("Raise that table or timeout there; they come back once the old connections are given up")
    assert beyond.observed == "what it sends to 10.0.0.2:9093 is not acknowledged"


@pytest.mark.parametrize(
    ("here", "size", "is_tried"),
    [("10.0.0.1:50000", 90, True), ("10.0.0.1:50000", 1448, False), (HERE, 90, False)],
    ids=["small", "as an MTU", "of who asks"],
)
def test_a_new_connection_is_tried_where_what_is_small_is_lost_of_its_own(here: str, size: int, *, is_tried: bool) -> None:
    held = {(here, PEER): size, ("10.0.0.1:50001", OTHER): 90}
    assert new_connections.worth_a_try(held, {PEER, "10.0.0.9:1"}, [HERE]) == [PEER] * is_tried


def test_to_whom_a_new_connection_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither to a queue that is full, which is as a firewall, nor where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as well, socket.socket() as full, socket.socket() as refusing:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        refusing.bind(("127.0.0.1", 0))
        six = socket.create_server(("::1", 0), family=socket.AF_INET6)
        places = [f"127.0.0.1:{one.getsockname()[1]}" for one in (well, full, refusing)]
        places += [f"[::1]:{six.getsockname()[1]}"]
        with six:
            assert new_connections.open_anew("/proc/self", places) == [places[0], places[3]]
        assert new_connections.open_anew("/proc/self", []) == []
        monkeypatch.setattr(new_connections, "link", lambda path: path)
        assert new_connections.open_anew("/proc/7", places) == [], "in another network it says nothing"


def test_a_look_tries_anew_whom_it_does_not_hear(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = ("127.0.0.1:50000", "127.0.0.1:9")
    seen = {"at": 1.0, "unheard": [ends[1]], "queues": {ends: 90}, "held_up": {ends: 90}, "unaccepted": {}, "unread": set()}
    looks = watch_process.Looks([{**seen, "listens": [], "at": at} for at in (1.0, 1.6, 2.2)])
    monkeypatch.setattr(watch_process, "open_anew", lambda process, places: [f"{process} {place}" for place in places])
    assert watch_process.of_connections("/proc/7", looks, {})["open_anew"] == ["/proc/7 127.0.0.1:9"]


@pytest.mark.parametrize(
    ("flags", "namespaces", "is_down"),
    [("0x8\n", {}, True), ("0x9\n", {}, False), (None, {}, None), ("0x8\n", {"net": "a"}, None),
     ("0x8\n", {"net": "a", "mnt": "b"}, True)],
)  # fmt: skip
def test_whether_loopback_is_down(
    flags: str | None, namespaces: dict[str, str], monkeypatch: pytest.MonkeyPatch, *, is_down: bool | None
) -> None:
    files = {"/proc/7/root/sys/class/net/lo/flags": flags}
    monkeypatch.setattr(connections, "text", files.get)
    monkeypatch.setattr(connections, "link", lambda path: namespaces.get(path.rpartition("/")[2]) if "/7/" in path else None)
    assert connections.is_loopback_down("/proc/7") is is_down


def test_which_addresses_are_the_machines_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As fib_trie and if_inet6 have them."""
    trie = (
        "Local:\n  +-- 10.0.0.0/24 2 0 2\n"
        "     |-- 10.0.0.0\n        /24 link UNICAST\n     |-- 10.0.0.1\n        /32 host LOCAL"
        "\n     |-- 10.0.0.255\n        /32 link BROADCAST\n"
    )
    six = "fd000000000000000000000000000001 02 40 00 80 eth0\n"
    monkeypatch.setattr(connections, "text", {"/proc/7/net/fib_trie": trie, "/proc/7/net/if_inet6": six}.get)
    own = {"10.0.0.1:9092", "127.0.0.5:1", "[::1]:9", "[fd00::1]:9092"}
    assert connections.over_loopback("/proc/7", own | {"10.0.0.2:9092", "10.0.0.255:1", "[fd00::2]:9092"}) == own
    assert connections.over_loopback("/proc/8", {"10.0.0.1:9092"}) == set()


@pytest.mark.parametrize(
    ("held", "beside", "is_told"),
    [
        ({(HERE, PEER): 1448}, {(HERE, BESIDE): (900, 0.1)}, True),
        ({(HERE, PEER): 1448, (HERE, "10.0.0.2:40002"): 60}, {(HERE, BESIDE): (900, 0.1)}, False),
        ({(HERE, PEER): 1448}, {(HERE, BESIDE): (100, 0.1)}, False),
        ({(HERE, PEER): 1448}, {(HERE, OTHER): (900, 0.1)}, False),
        ({("10.0.0.1:50000", PEER): 1448}, {("10.0.0.1:50001", PEER): (900, 0.1)}, True),
        ({("10.0.0.1:50000", PEER): 1448}, {("10.0.0.1:50001", OTHER): (900, 0.1)}, False),
        ({}, {(HERE, OTHER): (900, 0.1)}, False),
    ],
    ids=[
        "as an MTU",
        "what is small too",
        "nothing gets through",
        "a machine that is gone",
        "of who asks",
        "another place",
        "all well",
    ],
)
def test_that_only_large_packets_are_lost_is_seen_by_what_gets_through_beside(
    held: dict[tuple[str, str], int], beside: dict[tuple[str, str], tuple[int, float]], *, is_told: bool
) -> None:
    before = dict.fromkeys(beside, (100, 0.1))
    assert connections.is_only_large(held, [before, beside]) is is_told
    assert not connections.is_only_large(held, [{}, beside]), "what was not asked before tells nothing"


def test_a_way_that_takes_small_packets_only_is_told_as_that() -> None:
    (sign,) = bad_signs(signs_of(unheard=(PEER,), only_large=True), {})
    assert "is not acknowledged where it is large, and small packets get through" in sign.observed
    assert "MTU" in sign.fix


def test_connections_that_nobody_accepts(started: list["subprocess.Popen[str]"]) -> None:
    """As at an election port of ZooKeeper's, which takes one after the other, once a scanner has found it."""
    program = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print('begun', flush=True)"
    pid = start(started, f"{program}\nwhile True: time.sleep(0.01)")
    port = next(c.laddr.port for c in psutil.Process(pid).net_connections() if c.status == psutil.CONN_LISTEN)
    with ExitStack() as stack:
        for _ in range(7):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        found = watch(pid)
        by_port = watch_port(port)
    assert found["unaccepted"] == by_port["unaccepted"] == [[port, 7, "127.0.0.1"]]
    assert found["listens"] == [f"127.0.0.1:{port}"]
    assert told(found) == [
        f"7 connections wait at its port {port}, and it accepts them too slowly, or not at all, most of them from 127.0.0.1"
    ]


def test_who_has_most_of_the_connections_at_a_port_that_takes_no_more(started: list["subprocess.Popen[str]"]) -> None:
    """As of a broker at max.connections, which logs nothing: who leaks them is at the other end of those that it has."""
    program = (
        "import socket, time; s = socket.create_server(('127.0.0.1', 0), backlog=100); print('begun', flush=True)\n"
        f"kept = [s.accept() for _ in range({MANY_CONNECTED + 10})]"
    )
    pid = start(started, f"{program}\nwhile True: time.sleep(0.01)")
    port = next(c.laddr.port for c in psutil.Process(pid).net_connections() if c.status == psutil.CONN_LISTEN)
    leak = f"import socket, time; kept = [socket.create_connection(('127.0.0.1', {port})) for _ in range({MANY_CONNECTED + 6})]"
    leaking = start(started, f"{leak}\nprint('begun', flush=True)\nwhile True: time.sleep(0.01)")
    with ExitStack() as stack:
        for _ in range(4 + 7):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        found = watch(pid)
    ((where, taken, has, who),) = found["connected"]
    assert (where, taken, has) == (port, MANY_CONNECTED + 10, MANY_CONNECTED + 6)
    assert who.startswith(f"process {leaking} ")
    (observed,) = told(found)
    assert f"it has {MANY_CONNECTED + 10} there, of which process {leaking} (" in observed


def test_a_port_at_which_nobody_listens() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
        with pytest.raises(subprocess.CalledProcessError) as failed:
            watch_port(port)
    assert failed.value.stderr.strip() == f"no process that may be looked at listens at {port} here"


def watch_port(port: int) -> dict[str, Any]:
    command = command_of("watch_process", {"watch_port": port, "log_dirs": ["/"], "is_shut": False}, sys.executable)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


TRACING = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(16, int(sys.argv[1]), None, None):
    sys.exit(os.strerror(ctypes.get_errno()))
os.waitpid(int(sys.argv[1]), 0x40000000)
print("begun", flush=True)
time.sleep(600)
"""
"""PTRACE_ATTACH, and __WALL: as a debugger that somebody has left."""


TRACED = """
import ctypes, time
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1).value)
print("begun", flush=True)
time.sleep(600)
"""
"""PR_SET_PTRACER: whoever wants may, also where Yama lets only parents."""


def test_a_process_that_a_debugger_holds(started: list["subprocess.Popen[str]"]) -> None:
    pid = start(started, TRACED)
    tracer = start(started, TRACING, str(pid))
    try:
        found = watch(pid)
    finally:
        started[-1].kill()  # until it has gone nobody is told that the other one has
        started[-1].wait(30)
    assert found["tracer"].startswith(f"{tracer} (")
    (sign,) = [
        sign for sign in bad_signs(VitalSigns.model_validate({**found, "skew": 0.0}), {}) if "traces it" in sign.observed
    ]
    assert f"kill {tracer}." in sign.fix


SPINNING = "print('begun', flush=True)\nwhile True: pass"
LIMITING = """
import os, signal, sys, time
pid = int(sys.argv[1])
print("begun", flush=True)
while True:
    os.kill(pid, signal.SIGSTOP)
    time.sleep(0.08)
    os.kill(pid, signal.SIGCONT)
    time.sleep(0.02)
"""


def test_a_process_that_is_stopped_and_let_go_on_again_and_again(started: list["subprocess.Popen[str]"]) -> None:
    """As cpulimit(1) does: at one moment it stands, at the next it runs, and to let it go on does not help."""
    pid = start(started, SPINNING)
    start(started, LIMITING, str(pid))
    found = watch(pid)
    (sign,) = of_standstill(VitalSigns.model_validate({**found, "skew": 0.0}))
    assert sign.observed.startswith("it is stopped and let go on by signals")
    assert sign.fix.startswith("Find the program that sends these signals")
    assert not [one for one in told(found) if "wait for a CPU" in one]


@pytest.mark.parametrize(
    ("command", "is_of_it"),
    [
        (["/usr/bin/cpulimit", "-p", "4711", "-l", "3"], True),
        (["cpulimit", "--pid=4711", "-l", "3"], True),
        (["cpulimit", "-e", "java", "-l", "30", "-b"], True),
        (["cpulimit", "-p", "999", "-l", "3"], False),
        (["jstat", "-gcutil", "4711"], False),
        (["postgres", "-p", "4711"], False),
    ],
)
def test_only_who_limits_that_process_is_to_be_ended(
    command: list[str], is_of_it: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"/proc/9/cmdline": "\0".join([*command, ""]), "/proc/9/comm": "limiter\n"}
    monkeypatch.setattr(stops, "names", lambda _: ["9", "self"])
    monkeypatch.setattr(stops, "text", files.get)
    monkeypatch.setattr(kernel, "text", files.get)
    assert stops.limiters(4711) == (["9 (limiter)"] if is_of_it else [])


def test_a_process_that_was_stopped_once_is_told_elsewhere(started: list["subprocess.Popen[str]"]) -> None:
    pid = start(started, SPINNING)
    assert watch(pid)["stops"] is None
    os.kill(pid, signal.SIGSTOP)
    found = watch(pid)
    assert found["stops"] == [1.0, 0, []]
    assert list(of_standstill(VitalSigns.model_validate({**found, "skew": 0.0}))) == []


@pytest.mark.parametrize(
    ("let_go", "who", "is_told"),
    [(0, (), False), (1, (), False), (2, (), True), (1, ("9 (limiter)",), True), (0, ("9 (cpulimit)",), True)],
)
def test_on_a_slow_machine_who_is_stopped_by_turns_may_be_let_go_on_once_in_a_second(
    let_go: int, who: tuple[str, ...], is_told: bool
) -> None:
    assert bool(list(of_standstill(signs_of(stops=(0.92, let_go, who))))) is is_told


def test_a_peer_that_takes_nothing(started: list["subprocess.Popen[str]"]) -> None:
    """As with a link that is full: what was sent stays where it is."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = watch(start(started, SENDING, str(port)))
    ((peer, waits, pace),) = found["unsent"]
    assert (peer, waits > 1000, pace < 100e3) == (f"127.0.0.1:{port}", True, True), "it tries now and then whether a byte goes"
    (words,) = told(found, {f"127.0.0.1:{port}": "broker-3"})
    assert words.startswith("what it sends to broker-3 (")
    assert words.endswith(" kB a second get through) waits in its machine's queues all the time")


@pytest.mark.parametrize(("seconds_between", "is_slow"), [(0.1, True), (0.0, False)])
def test_a_peer_that_takes_little(started: list["subprocess.Popen[str]"], *, seconds_between: float, is_slow: bool) -> None:
    """A slow link's queue need not be long; one that is emptied in no time is none, however much waits."""
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor() as pool:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        pid = start(started, SENDING_ON, str(server.getsockname()[1]))
        taken, _ = server.accept()
        done = threading.Event()

        def take() -> None:
            while not done.wait(seconds_between) and taken.recv(3000 if is_slow else 1 << 20):
                pass

        taking = pool.submit(take)
        found = watch(pid)["unsent"]
        done.set()
        taking.result()
        taken.close()
    assert [0 <= pace < 100e3 for _, _, pace in found] == ([True] if is_slow else [])


SS = """\
0      0          127.0.0.1:22931      127.0.0.1:40322
\t cubic wscale:7,7 rto:204 rtt:0.1/0.05 ato:40 mss:32768 bytes_sent:99 bytes_acked:100 bytes_received:7
0      1206      10.77.7.1:51022      10.77.7.2:22931
\t cubic wscale:7,7 rto:24024 backoff:1 rtt:6001.23/0.4 mss:1448 cwnd:10 bytes_acked:5120
0      9         [::ffff:10.77.7.1]:51024      [::ffff:10.77.7.2]:22931
\t cubic rto:1200 rtt:601.5/300
"""


def test_a_peer_that_is_far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent to it is sent again before an acknowledgement can come: it is not lost for that."""
    monkeypatch.setattr(connections, "run", lambda *_command: SS)
    first = connections.acknowledged()
    peer, near = "10.77.7.2:22931", ("127.0.0.1:22931", "127.0.0.1:40322")
    away, later = (("10.77.7.1:51022", peer), ("10.77.7.1:51024", peer))
    assert first == {near: (100, 0.0001), away: (5120, 6.00123), later: (0, 0.6015)}
    waiting = [{near: 3}, {away: 1206, later: 9}, {away: 1300}]
    assert connections.far(waiting, first) == [(peer, 6.00123)]
    (sign,) = bad_signs(signs_of(far=((peer, 6.00123),)), {peer: "broker-2"})
    assert "broker-2 at 10.77.7.2:22931 (6.0 s)" in sign.observed
    assert "ping" in sign.fix


def test_a_directory_over_which_something_was_mounted(started: list["subprocess.Popen[str]"], tmp_path: Path) -> None:
    """The process goes on with its files, which nobody else finds."""
    data, other = tmp_path / "my data", tmp_path / "other"
    data.mkdir()
    other.mkdir()
    for place in (data, other):
        (place / "00000000000000000000.log").write_text("x", "utf-8")
    pid = start(started, KEEPING, str(data / "00000000000000000000.log"), str(other / "00000000000000000000.log"))
    directories = [str(data), str(other), str(tmp_path / "missing")]
    assert watch(pid, directories)["covered"] == []
    subprocess.run(["mount", "-t", "tmpfs", "keeperless-test", data], check=True)
    try:
        assert watch(pid, directories)["covered"] == [[str(data), f"keeperless-test (tmpfs) at {data}"]]
    finally:
        subprocess.run(["umount", data], check=True)


def test_a_process_that_others_keep_from_its_cpu(started: list["subprocess.Popen[str]"]) -> None:
    """Where the machine has more to do besides, who of them runs when is its scheduler's, and one look may show less."""
    first, *_ = [start(started, ON_ONE_CPU) for _ in range(24)]
    looks = (watch(first) for _ in range(10))
    seen = (signs_of(on_cpu=look["on_cpu"], awaiting_cpu=look["awaiting_cpu"]) for look in looks)
    found = next(filter(None, ([sign.observed for sign in bad_signs(signs, {})] for signs in seen)))
    assert len(found) == 1
    assert re.match(r"its threads wait for a CPU (9\d|100)% of the time", found[0]), found


TIMES = ("on_cpu", "awaiting_cpu", "held_to")


def test_a_process_that_lets_all_others_go_first(started: list["subprocess.Popen[str]"]) -> None:
    """Nothing of its own machine is full: others have the one CPU that is left to it. Where the machine has more to do, who
    keeps that CPU busy waits as well now and then, and a look in which it does shows less."""
    first = start(started, OF_THE_LAST)
    start(started, ON_ONE_CPU)
    looks = (watch(first) for _ in range(10))
    found, sign = next(
        (look, sign) for look in looks for sign in bad_signs(signs_of(**{name: look[name] for name in TIMES}), {})
    )
    least = min(os.sched_getaffinity(0))
    online = Path("/sys/devices/system/cpu/online").read_text("utf-8").strip()
    wanted = {"scheduling policy SCHED_IDLE", f"nice {min(os.nice(0) + 7, 19)}", f"CPU {least} of {online}"}
    assert wanted <= {*found["held_to"]}
    assert "are held to scheduling policy SCHED_IDLE" in sign.observed
    assert "chrt -a -o -p 0 PID" in sign.fix
    assert watch(start(started, SPINNING))["held_to"] == thread_states.held_to("/proc/self"), "as whoever has started it"


def test_a_session_that_lets_all_others_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a kernel with automatic groups (sched(7)): what a thread's own policy says counts within its session only."""
    files = {
        "/proc/7/task/7/stat": f"7 (java) S {' '.join(['0'] * 49)}",
        "/proc/7/task/7/status": "Name:\tjava\nCpus_allowed_list:\t0-1\n",
        "/proc/7/autogroup": "/autogroup-1234 nice 19\n",
        "/sys/devices/system/cpu/online": "0-1\n",
    }
    monkeypatch.setattr(thread_states, "text", files.get)
    monkeypatch.setattr(thread_states, "names", lambda path: ["7"])
    assert thread_states.held_to("/proc/7") == ["nice 19 for all of its session"]


@pytest.mark.parametrize(
    ("files", "most"),
    [
        ({"/proc/1/cgroup": "0::/a.slice/b.service\n", "a.slice/b.service": ("7", "max"), "a.slice": ("98", "99")}, (98, 99)),
        ({"/proc/1/cgroup": "8:pids:/b\n2:memory:/b\n0::/\n", "pids/b": ("60", "64")}, (60, 64)),
        ({"/proc/1/cgroup": "8:pids:/\n"}, None),
        ({}, None),
    ],
)
def test_a_limit_of_tasks(files: dict[str, Any], most: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def text(path: str) -> str | None:
        group, _, name = path.removeprefix("/sys/fs/cgroup/").rpartition("/pids.")
        group = group.strip("/")
        return files[group][name == "max"] if group in files else files.get(path)

    for part in (control_groups, kernel):
        monkeypatch.setattr(part, "text", text)
    assert control_groups.tasks("/proc/1") == most


@pytest.mark.parametrize(
    ("files", "most"), [({"count": "1525\n", "max": "1465\n"}, (1525, 1465)), ({"count": "3"}, None), ({}, None)]
)
def test_connections_that_a_firewall_tracks(
    files: dict[str, str], most: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        watch_process, "text", lambda path: files.get(path.removeprefix("/proc/sys/net/netfilter/nf_conntrack_"))
    )
    assert watch_process.tracked() == most


def test_what_is_in_swap_and_what_a_hypervisor_keeps_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"/proc/1/status": "Name:\tjava\nVmSwap:\t  2048 kB\n", "/proc/stat": "cpu  10 0 5 50 5 0 0 30 0 0\ncpu0 1 2\n"}
    monkeypatch.setattr(watch_process, "text", files.get)
    assert watch_process.swapped("/proc/1") == 2 * MIB
    assert watch_process.stolen_ticks() == (30, 100)
    looks = [{"at": at, "stolen": 30 + 60 * at, "ticks": 100 + 200 * at} for at in (0.0, 1.0)]
    assert watch_process.Looks(looks).share("stolen", "ticks") == pytest.approx(0.3)
    monkeypatch.setattr(watch_process, "text", lambda _: None)
    assert (watch_process.swapped("/proc/1"), watch_process.stolen_ticks()) == (None, (None, None))


@pytest.mark.parametrize(
    ("files", "seconds"),
    [
        ({"/proc/1/cgroup": "0::/kafka.slice/one.service\n", "kafka.slice/one.service": "throttled_usec 1500000"}, 1.5),
        ({"/proc/1/cgroup": "0::/kafka.slice/one.service\n", "kafka.slice": "nr_throttled 9\nthrottled_usec 500000"}, 0.5),
        ({"/proc/1/cgroup": "5:cpu,cpuacct:/one\n2:memory:/one\n", "cpu,cpuacct/one": "throttled_time 2500000000"}, 2.5),
        ({"/proc/1/cgroup": "0::/\n", "": "usage_usec 5"}, None),
    ],
)
def test_a_quota(files: dict[str, str], seconds: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def text(path: str) -> str | None:
        return files.get(path.removeprefix("/sys/fs/cgroup").removesuffix("/cpu.stat").strip("/"), files.get(path))

    for part in (control_groups, kernel):
        monkeypatch.setattr(part, "text", text)
    assert control_groups.throttled("/proc/1") == seconds


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (
            {"proc": "7:blkio:/kafka/one", "blkio/kafka/one/blkio.throttle.write_bps_device": "7:0 1024\n8:0 209715200\n"},
            [("/sys/fs/cgroup/blkio/kafka/one", "7:0", "bytes written", 1024)],
        ),
        (
            {"proc": "0::/a.slice/b.service", "a.slice/io.max": "8:16 rbps=max wbps=2048 riops=max wiops=20\n"},
            [("/sys/fs/cgroup/a.slice", "8:16", "bytes written", 2048), ("/sys/fs/cgroup/a.slice", "8:16", "writes", 20)],
        ),
        ({"proc": "0::/a.slice/b.service", "a.slice/io.max": "8:16 rbps=max wbps=104857600 riops=max wiops=max\n"}, []),
    ],
)
def test_limits_of_a_disk(files: dict[str, str], found: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    for part in (control_groups, kernel):
        monkeypatch.setattr(part, "text", lambda path: groups_told(files, path))
    monkeypatch.setattr(control_groups, "_disk", lambda device: device)
    assert control_groups.disk_limits("/proc/1") == found


@pytest.mark.parametrize(
    ("told", "is_held"),
    [
        ("oom_kill_disable 1\nunder_oom 1\noom_kill 0\n", True),
        ("oom_kill_disable 1\nunder_oom 0\noom_kill 0\n", False),
        ("oom_kill_disable 0\nunder_oom 1\n", False),
    ],
)
def test_a_limit_of_memory_at_which_nobody_is_killed(told: str, monkeypatch: pytest.MonkeyPatch, *, is_held: bool) -> None:
    files = {
        "proc": "4:memory:/kafka",
        "memory/kafka/memory.oom_control": told,
        "memory/kafka/memory.limit_in_bytes": "1048576",
    }
    for part in (control_groups, kernel):
        monkeypatch.setattr(part, "text", lambda path: groups_told(files, path))
    held = ("/sys/fs/cgroup/memory/kafka", 1 << 20) if is_held else None
    assert control_groups.memory_held("/proc/1") == held
    signs = list(bad_signs(signs_of(memory_held=held), {}))
    assert [
        sign.observed.startswith("its control group /sys/fs/cgroup/memory/kafka is at its limit of memory") for sign in signs
    ] == ([True] if is_held else [])


def groups_told(files: dict[str, str], path: str) -> str | None:
    return files.get("proc" if path == "/proc/1/cgroup" else path.removeprefix("/sys/fs/cgroup/"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        (
            {"disk_limits": (("/sys/fs/cgroup/blkio/one", "sdb", "bytes written", 1024),), "on_cpu": 0.1},
            "its control group lets it do little to its disk: 1024 bytes written a second at sdb (/sys/fs/cgroup/blkio/one)",
        ),
        (
            {"disk_limits": (("/one", "sdb", "writes", 9),), "disks": (("/data", "sdb1", 0.1, 1.0),)},
            "its control group lets it do little to its disk: 9 writes a second at sdb (/one)",
        ),
        ({"disk_limits": (("/one", "sdb", "writes", 9),), "disks": (("/data", "nvme0n1", 0.1, 1.0),)}, ""),
        ({"skew": -61.0}, "its clock is 61 s behind that of keeperless-activities"),
        ({"skew": 9.0}, "its clock is 9 s ahead of that of keeperless-activities"),
        ({"read_only": ("/data",)}, "/data can only be read"),
        ({"tracer": "9 (gdb)", "unaccepted": ((9092, 50, ""),)}, "process 9 (gdb) traces it"),
        ({"frozen": "/sys/fs/cgroup/kafka", "stuck_threads": 9}, "its control group /sys/fs/cgroup/kafka is frozen"),
        (
            {"stuck_threads": 3, "stuck_in": ("jbd2_log_wait_commit",)},
            "3 of its threads wait in the kernel without an end (in jbd2",
        ),
        ({"throttled": 0.8}, "a quota of CPU time keeps it waiting 80% of the time"),
        ({"major_faults": 500.0, "memory_available": 0.5}, ""),
        (
            {"major_faults": 500.0, "memory_available": 0.05},
            "5% of its machine's memory is left, and it waits 500 times a second",
        ),
        (
            {"major_faults": 2500.0, "memory_available": 0.35, "swapped": 900 * MIB, "swapped_in": 2400.0},
            "900 MiB of its memory are in swap, and it waits 2500 times a second for memory to be read",
        ),
        (
            {"major_faults": 2500.0, "memory_available": 0.01, "swapped": 900 * MIB, "swapped_in": 2400.0},
            "900 MiB of its memory are in swap",
        ),
        ({"major_faults": 2500.0, "memory_available": 0.35, "swapped": 900 * MIB, "swapped_in": 0.0}, ""),
        ({"major_faults": 2500.0, "memory_available": 0.35, "swapped": MIB, "swapped_in": 2400.0}, ""),
        ({"major_faults": 2.0, "memory_available": 0.35, "swapped": 900 * MIB, "swapped_in": 2400.0}, ""),
        ({"stolen": 0.72, "on_cpu": 0.11}, "its machine is a virtual one, and its hypervisor gives 72% of its CPUs' time"),
        ({"stolen": 0.1, "on_cpu": 0.5}, ""),
        ({"memory_available": 0.01}, "1% of its machine's memory is left"),
        ({"tracked": (1525, 1465)}, "the firewall of its machine tracks 1525 connections, of at most 1465"),
        ({"tracked": (900, 1465), "tasks": (63, 64)}, ""),
        ({"tracked": (12, 0)}, ""),
        ({"tasks": (64, 64)}, "its control group has 64 processes and threads, of at most 64"),
        ({"on_cpu": 0.05, "awaiting_cpu": 0.95}, "its threads wait for a CPU 95% of the time in which they could run"),
        ({"on_cpu": 0.05, "awaiting_cpu": 0.95, "stops": (0.9, 10, ())}, "it is stopped and let go on by signals"),
        ({"on_cpu": 0.4, "awaiting_cpu": 3.6}, ""),
        ({"on_cpu": 1.0, "awaiting_cpu": 16.0}, ""),
        ({"on_cpu": 0.05, "awaiting_cpu": 0.95, "throttled": 0.9}, "a quota of CPU time"),
        ({"unsent": (("10.9.9.9:4711", 44_000, 3_000.0),)}, ""),
        ({"unaccepted": ((9092, 50, ""),), "on_cpu": 0.1}, "50 connections wait at its port 9092"),
        (
            {"unaccepted": ((9092, 50, ""), (7071, 6, "")), "on_cpu": 0.1},
            "it takes no connections at its ports 9092, 7071, where 56 wait: it stands still as a whole",
        ),
        (
            {"unaccepted": ((9092, 50, ""), (7071, 6, "")), "debugger": "10.0.0.9:4711"},
            "a debugger is connected to its JVM from",
        ),
        (
            {"disks": (("/data", "nvme1n1", 1.0, 180.4),), "disk_pressure": 0.63},
            "/data lies on nvme1n1, which works 100% of the time, 180 ms for each request; programs wait for disks 63% of the",
        ),
        ({"disks": (("/data", "nvme1n1", 1.0, 3.0), ("/d2", "sdb", 0.5, 90.0)), "disk_pressure": 0.9}, ""),
        ({"disk_pressure": 0.63}, "programs wait for disks 63% of the time"),
        ({"disk_pressure": 0.2, "memory_pressure": 0.1}, ""),
        ({"memory_pressure": 0.55}, "programs of its control group, or of its machine, wait for memory 55% of the time"),
        ({"askers": (("10.1.2.3", 9),)}, ""),
        ({"on_cpu": 0.001, "awaiting_cpu": 0.05}, ""),
        (
            {"unsent": (("10.0.0.1:9", 1, 0.0), ("10.0.0.2:4711", 44_000, 3_120.0), ("10.0.0.2:4712", 70_000, None))},
            "what it sends to 10.0.0.2:4711 (44 kB wait, 3.1 kB a second get through), 10.0.0.2:4712 (70 kB wait) waits in its",
        ),
        ({"unheard": ("[fd00::1]:9", "10.0.0.1:9")}, "what it sends to [fd00::1]:9, 10.0.0.1:9 is not acknowledged"),
    ],
)
def test_what_people_are_told(changes: dict[str, object], words: str) -> None:
    signs = list(bad_signs(signs_of(**changes), {"10.0.0.2:9092": "broker-2"}))
    assert len(signs) == bool(words)
    assert all(sign.observed.startswith(words) and sign.fix for sign in signs)


@pytest.mark.parametrize(
    ("last", "pace"),
    [((8, 110, 2000, 1170), (0.975, 100.0)), ((8, 100, 1000, 1200), (1.0, 1200.0)), ((8, 100, 1000, 0), (0.0, 0.0))],
    ids=["slow", "no request is done", "idle"],
)
def test_how_fast_a_disk_is(last: tuple[int, ...], pace: tuple[float, float]) -> None:
    """As the kernel counts, in 1.2 s."""
    first, then = ("sdb", 100, 1000, 0), ("sdb", *last[1:])
    assert log_places.pace(first, then, 1.2) == pytest.approx(pace)


def test_the_disk_of_a_directory_and_what_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = tmp_path.stat().st_dev
    place = f"{os.major(device)} {os.minor(device)}"
    files = {
        "/proc/diskstats": f"   7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n {place} sdb 5 0 80 40 7 1 90 60 2 300 100 0 0 0 0\n",
        "/proc/7/cgroup": "4:memory:/\n0::/k.service\n",
        "/sys/fs/cgroup/k.service/io.pressure": "some avg10=80.00 avg60=9.1\nfull avg10=63.10 avg60=8.0 avg300=2.0 total=1\n",
        "/proc/pressure/memory": "some avg10=0.00\nfull avg10=2.50 avg60=0.00\n",
    }
    for part in (control_groups, kernel, log_places):
        monkeypatch.setattr(part, "text", files.get)
    assert log_places.devices_of([str(tmp_path), "/nowhere"]) == {str(tmp_path): ("sdb", 12, 100, 300)}
    assert control_groups.pressure("/proc/7", "io") == pytest.approx(0.631)
    assert control_groups.pressure("/proc/7", "memory") == pytest.approx(0.025)
    assert control_groups.pressure("/proc/7", "cpu") is None


ASKED = """
import socket, time
kept = socket.create_server(("127.0.0.1", 0))
print("begun", flush=True)
taken = [kept.accept() for _ in range(3)]
time.sleep(60)
"""


DEAF = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
kept = [server.accept() for _ in range(int(sys.argv[1]))]
print("begun", flush=True)
while True:
    time.sleep(0.01)
"""


def start_deaf(started: list["subprocess.Popen[str]"], stack: ExitStack, *arguments: str) -> list[socket.socket]:
    """A process that accepts connections and reads nothing; our ends of them."""
    process = subprocess.Popen([sys.executable, "-c", DEAF, *arguments], stdout=subprocess.PIPE, text=True)
    started.append(process)
    assert process.stdout is not None
    port = int(process.stdout.readline())
    ends = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(int(arguments[0]))]
    assert process.stdout.readline() == "begun\n"
    return ends


def test_connections_from_which_nothing_is_read(started: list["subprocess.Popen[str]"]) -> None:
    with ExitStack() as stack:
        ends = start_deaf(started, stack, "5")
        for end in ends[:3]:
            end.sendall(b"a request")
        found = watch(started[-1].pid)
    assert found["unread"] == 3
    assert told(found) == ["it has not read for a second what 3 of its connections have brought"]
    assert all(sign.is_slight for sign in bad_signs(signs_of(unread=3), {}))


@pytest.mark.parametrize("end", ["server=y,address={}", "server=n,address=localhost:{}", "address=*:{},server=y"])
def test_a_debugger_that_is_connected_to_its_jvm(end: str, started: list["subprocess.Popen[str]"]) -> None:
    """By what the command line says of it: it holds threads without being a tracer."""
    with ExitStack() as stack:
        (own,) = start_deaf(started, stack, "1")
        port = own.getpeername()[1] if "server=y" in end else own.getsockname()[1]
        option = f"-agentlib:jdwp=transport=dt_socket,{end.format(port)}"
        files = {f"/proc/{started[-1].pid}/cmdline": f"java\0{option}\0kafka.Kafka"}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(connections, "text", lambda path: files.get(path) or kernel.text(path))
            found = connections.debugger(f"/proc/{started[-1].pid}")
        address = f"127.0.0.1:{own.getsockname()[1]}"
    assert (found or "").startswith(f"{address}, process {os.getpid()} (")
    assert connections.debugger(f"/proc/{os.getpid()}") is None
    (sign,) = bad_signs(signs_of(debugger=found), {})
    assert sign.observed.startswith(f"a debugger is connected to its JVM from {address}, process {os.getpid()}")


def test_what_a_network_throws_away_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Linux 6.1 prints it."""
    files = {
        "/proc/7/net/snmp": "Ip: Forwarding OutNoRoutes InReceives\nIp: 1 3 99\nTcp: MaxConn InCsumErrors\nTcp: -1 2\n",
        "/proc/7/net/netstat": "TcpExt: IPReversePathFilter TCPTimeouts\nTcpExt: 4 9\nIpExt: InNoRoutes\nIpExt: 0\n",
        "/proc/7/net/xfrm_stat": "XfrmInError             \t0\nXfrmOutNoStates         \t5\n",
        "/proc/7/net/stat/arp_cache": "entries  table_fulls\n00000002 0000000a\n00000002 00000001\n",
    }
    monkeypatch.setattr(connections, "text", files.get)
    assert connections.drops("/proc/7") == {
        "Ip:OutNoRoutes": 3,
        "Tcp:InCsumErrors": 2,
        "TcpExt:IPReversePathFilter": 4,
        "IpExt:InNoRoutes": 0,
        "Xfrm:InError": 0,
        "Xfrm:OutNoStates": 5,
        "Neighbours:table_fulls": 11,
    }
    monkeypatch.setattr(connections, "text", lambda _path: None)
    assert connections.drops("/proc/7") == {}
    assert connections.risen({"a": 1, "b": 2, "c": 3}, {"a": 4, "b": 2}) == [("a", 3)]


def test_every_counter_of_drops_is_in_the_files_of_this_kernel() -> None:
    """So that a name with a mistake in it is seen."""
    assert {"Ip:OutNoRoutes", "TcpExt:IPReversePathFilter", "IpExt:InNoRoutes", "Tcp:InCsumErrors"} <= connections.drops(
        "/proc/self"
    ).keys()


@pytest.mark.parametrize(
    ("drops", "words", "fix"),
    [
        ((("Xfrm:OutNoStates", 12),), "12 packets for which an IPsec policy has no state (Xfrm:OutNoStates)", "ip xfrm policy"),
        ((("Xfrm:InNoPols", 1),), "1 packet that IPsec does not let through (Xfrm:InNoPols)", "xfrm_stat"),
        ((("TcpExt:IPReversePathFilter", 2),), "2 packets that came by a way on which it would not answer", "rp_filter"),
        (
            (("Ip:OutNoRoutes", 2), ("IpExt:InNoRoutes", 1)),
            "3 packets to which no route leads (Ip:OutNoRoutes, IpExt:InNoRoutes)",
            "ip route get",
        ),
        ((("TcpExt:TCPMD5NotFound", 2),), "2 packets that are not signed as one end wants it", "key"),
        ((("Tcp:InCsumErrors", 2),), "2 packets that came broken", "ethtool"),
        ((("Neighbours:table_fulls", 2),), "2 packets because its table of neighbours is full", "gc_thresh3"),
        ((("Ip:FragFails", 2),), "2 packets that could not be sent", "MTU"),
        ((("Ip:InAddrErrors", 2),), "2 packets to an address that is not its own", "ip addr"),
        ((("TcpExt:PFMemallocDrop", 2),), "2 packets because it has no memory for them", "free -m"),
        ((("TcpExt:TCPReqQFullDrop", 2),), "2 packets (TcpExt:TCPReqQFullDrop)", "nstat"),
    ],
)
def test_what_is_thrown_away_is_told_with_why(drops: tuple[tuple[str, int], ...], words: str, fix: str) -> None:
    (sign,) = bad_signs(signs_of(drops=drops), {})
    assert sign.observed.startswith(f"the network of its machine has thrown away, in that second, {words}")
    assert fix in sign.fix


def test_what_is_thrown_away_is_told_first_only_where_something_is_not_acknowledged() -> None:
    seen = {"drops": (("TcpExt:IPReversePathFilter", 1),), "open_files": 1000, "most_open_files": 1000}
    (full, drop) = bad_signs(signs_of(**seen), {})
    assert ("files open" in full.observed, "thrown away" in drop.observed) == (True, True)
    drop, lost, _ = bad_signs(signs_of(**seen, unheard=("10.0.0.1:9092",)), {})
    assert ("thrown away" in drop.observed, "not acknowledged" in lost.observed) == (True, True)


def test_what_any_program_may_have_sent_is_told_after_what_else_is_known() -> None:
    """Where somebody asks for an address that no route leads to, as where a machine has no default route."""
    signs = list(bad_signs(signs_of(drops=(("Ip:OutNoRoutes", 2), ("Tcp:InCsumErrors", 1))), {}))
    entry = signed(blocker("machine", "broker-1", observed="x", expected="y", fix="Mend x.", since=NOW), signs)
    places = [entry.fix.index(word) for word in ("ethtool", "Mend x.", "ip route get")]
    assert places == sorted(places)


def test_a_good_packet_is_not_thrown_away() -> None:
    assert connections.DROPPED.match("TcpExt:TCPAOGood") is None
    assert connections.DROPPED.match("TcpExt:TCPAOBad") is not None


def test_who_makes_a_flood_at_several_ports_is_named() -> None:
    flooded = signs_of(unaccepted=((9092, 6, "10.1.1.1"), (9093, 6, "10.1.1.1")), on_cpu=1.0)
    (sign,) = bad_signs(flooded, {})
    assert "12 wait, most of them from 10.1.1.1: it stands still" in sign.observed
    assert "keep who makes it away first" in sign.fix


def test_who_asks_the_metrics_endpoint(started: list["subprocess.Popen[str]"]) -> None:
    pid = start(started, ASKED)
    (listener,) = [c.laddr for c in psutil.Process(pid).net_connections() if c.status == psutil.CONN_LISTEN]
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(socket.create_connection(("127.0.0.1", listener.port)))
        until = time.monotonic() + 30
        while time.monotonic() < until and connections.askers(f"/proc/{pid}", listener.port) != [("127.0.0.1", 3)]:
            time.sleep(0.01)
        found = VitalSigns.model_validate({**ask(watch=pid, log_dirs=[], metrics_port=listener.port), "skew": 0.0})
    assert found.askers == (("127.0.0.1", 3),)
    (sign,) = of_askers(found)
    assert sign.observed.startswith("its metrics endpoint has connections open from 127.0.0.1 (3)")
    assert not list(of_askers(signs_of(askers=(("10.1.2.3", 2),)))), "one that is kept open is no crowd"


SERVER = """
import socket, sys, time
kept = socket.create_server(("127.0.0.1", 0))
print("begun", flush=True)
time.sleep(60)
"""


def ask(**request: Any) -> dict[str, Any]:
    command = command_of("watch_process", request, sys.executable)
    found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)
    return found


def test_a_server_of_zookeeper_that_listens_elsewhere_is_found_by_its_data(
    started: list["subprocess.Popen[str]"], tmp_path: Path
) -> None:
    config = tmp_path / "zoo.cfg"
    config.write_text(f"# dataDir=/elsewhere\ndataDir={tmp_path}\nclientPort=2182\n")
    pid = start(started, SERVER, "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config))
    found = ask(watch_port=1, log_dirs=[str(tmp_path)], is_shut=True)
    (listener,) = [c.laddr for c in psutil.Process(pid).net_connections() if c.status == psutil.CONN_LISTEN]
    assert found["elsewhere"] == [pid, [f"127.0.0.1:{listener.port}"]]
    at_one_address = ask(watch_port=listener.port, log_dirs=[str(tmp_path)], is_shut=True)["elsewhere"]
    assert at_one_address == found["elsewhere"], "it is asked at another one"
    assert ask(watch_port=1, log_dirs=[str(tmp_path / "another")], is_shut=True) == {}


def test_a_server_of_zookeeper_that_has_only_just_come_is_not_elsewhere(
    started: list["subprocess.Popen[str]"], tmp_path: Path
) -> None:
    config = tmp_path / "zoo.cfg"
    config.write_text(f"dataDir={tmp_path}\n")
    pid = start(started, SERVER.replace("127.0.0.1", ""), "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config))
    (listener,) = [c.laddr for c in psutil.Process(pid).net_connections() if c.status == psutil.CONN_LISTEN]
    assert ask(watch_port=listener.port, log_dirs=[str(tmp_path)], is_shut=True)["elsewhere"] is None


def test_who_has_started_a_process_is_told_past_the_shells_between(tmp_path: Path) -> None:
    """As a supervisor does: by a script of its own, and `sh -c`."""
    supervisor = tmp_path / "watchdog.py"
    supervisor.write_text(
        "import subprocess, sys\n"
        "child = subprocess.Popen(['sh', '-c', 'sleep 60 & echo $!; wait'], stdout=subprocess.PIPE, text=True)\n"
        "print(child.stdout.readline(), end='', flush=True)\n"
        "child.wait()\n"
    )
    with subprocess.Popen([sys.executable, str(supervisor)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        try:
            told = port_holders.started_by(pid)
        finally:
            os.kill(pid, signal.SIGKILL)
    assert told.startswith(f"process {process.pid} (")
    assert told.endswith(f" {supervisor})")


@pytest.mark.parametrize(
    ("groups", "own", "told"),
    [
        ("0::/system.slice/kafka@1.service\n", "", "systemd, as its unit kafka@1.service"),
        ("0::/user.slice/user-0.slice/session-1.scope\n", "", ""),
        ("0::/system.slice/keeperless-activities.service\n", "0::/system.slice/keeperless-activities.service\n", ""),
    ],
    ids=["a unit", "a session", "put into the background by a start of ours"],
)
def test_of_a_process_whose_parent_is_the_machines_first_its_unit_is_told(
    groups: str, own: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"/proc/7/stat": "7 (java) S 1 7 7 0", "/proc/7/cgroup": groups, "/proc/self/cgroup": own}
    monkeypatch.setattr(port_holders, "text", files.get)
    assert port_holders.started_by(7) == told


def test_who_has_a_port_is_told_whether_it_listens_or_not(started: list["subprocess.Popen[str]"]) -> None:
    pid = start(started, SERVER, "kafka.Kafka", "/etc/kafka/1.properties", "--password=tiger")
    (listener,) = [c.laddr for c in psutil.Process(pid).net_connections() if c.status == psutil.CONN_LISTEN]
    with socket.create_connection(("127.0.0.1", listener.port)) as outbound:
        near = outbound.getsockname()[1]
        listens, connected = ask(ports=[listener.port, near])["holders"]
    command = f"{Path(f'/proc/{pid}/comm').read_text().strip()} kafka.Kafka /etc/kafka/1.properties"
    assert listens.pop("started_by") == "", "it was started by whoever looks"
    assert listens == {"port": listener.port, "pid": pid, "command": command, "data_dir": None, "peer": None}
    assert (connected["pid"], connected["peer"]) == (os.getpid(), f"127.0.0.1:{listener.port}")
    assert ask(ports=[1]) == {"holders": []}
