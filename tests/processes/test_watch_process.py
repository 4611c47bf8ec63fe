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
    port_holders,
)
from domain.diagnosis.machines.signs import bad_signs
from domain.diagnosis.machines.vital_signs import VitalSigns
from tests.unit.conftest import signs_of

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
    about_machine |= {"awaiting_cpu": 0.0, "disks": (), "disk_pressure": None}
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
    assert told(found)[0].startswith("1 of its threads wait in the kernel without an end")


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
    assert told({**found, "collecting": 0.9}) == [
        "its JVM uses 0.9 CPUs to collect garbage: its heap is nearly full, or a tool asks for it"
    ]


def test_open_files_that_come_to_their_limit(started: list["subprocess.Popen[str]"]) -> None:
    found = watch(start(started, OPEN_FILES, files=64))
    assert found["most_open_files"] == 64
    assert told(found) == [f"it has {found['open_files']} files open, of at most 64"]


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
        f"what it sends to controller-3000 at 127.0.0.1:{port} is not acknowledged"
    ]


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
    ("changes", "words"),
    [
        ({}, ""),
        ({"skew": -61.0}, "its clock is 61 s behind that of keeperless-activities"),
        ({"skew": 9.0}, "its clock is 9 s ahead of that of keeperless-activities"),
        ({"read_only": ("/data",)}, "/data can only be read"),
        ({"frozen": "/sys/fs/cgroup/kafka", "stuck_threads": 9}, "its control group /sys/fs/cgroup/kafka is frozen"),
        ({"stuck_threads": 3}, "3 of its threads wait in the kernel without an end"),
        ({"throttled": 0.8}, "a quota of CPU time keeps it waiting 80% of the time"),
        ({"major_faults": 500.0, "memory_available": 0.5}, ""),
        (
            {"major_faults": 500.0, "memory_available": 0.05},
            "5% of its machine's memory is left, and it waits 500 times a second",
        ),
        ({"memory_available": 0.01}, "1% of its machine's memory is left"),
        ({"on_cpu": 0.05, "awaiting_cpu": 0.95}, "its threads wait for a CPU 95% of the time in which they could run"),
        ({"on_cpu": 0.4, "awaiting_cpu": 3.6}, ""),
        ({"on_cpu": 1.0, "awaiting_cpu": 16.0}, ""),
        ({"on_cpu": 0.05, "awaiting_cpu": 0.95, "throttled": 0.9}, "a quota of CPU time"),
        ({"unsent": (("10.9.9.9:4711", 44_000, 3_000.0),)}, ""),
        ({"unaccepted": ((9092, 50, ""),), "on_cpu": 0.1}, "50 connections wait at its port 9092"),
        (
            {"unaccepted": ((9092, 50, ""), (7071, 6, "")), "on_cpu": 0.1},
            "it accepts no connections at its ports 9092, 7071, where 56 wait: it is unresponsive as a whole",
        ),
        (
            {"disks": (("/data", "nvme1n1", 1.0, 180.4),), "disk_pressure": 0.63},
            "/data lies on nvme1n1, which works 100% of the time, 180 ms for each request; programs wait for disks 63% of the",
        ),
        ({"disks": (("/data", "nvme1n1", 1.0, 3.0), ("/d2", "sdb", 0.5, 90.0)), "disk_pressure": 0.9}, ""),
        ({"disk_pressure": 0.63}, "programs wait for disks 63% of the time"),
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
    }
    for part in (control_groups, kernel, log_places):
        monkeypatch.setattr(part, "text", files.get)
    assert log_places.devices_of([str(tmp_path), "/nowhere"]) == {str(tmp_path): ("sdb", 12, 100, 300)}
    assert control_groups.pressure("/proc/7", "io") == pytest.approx(0.631)
    assert control_groups.pressure("/proc/7", "cpu") is None


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


def test_who_makes_a_flood_at_several_ports_is_named() -> None:
    flooded = signs_of(unaccepted=((9092, 6, "10.1.1.1"), (9093, 6, "10.1.1.1")), on_cpu=1.0)
    (sign,) = bad_signs(flooded, {})
    assert "12 wait, most of them from 10.1.1.1: it is unresponsive" in sign.observed
    assert "first block what makes it" in sign.fix


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
