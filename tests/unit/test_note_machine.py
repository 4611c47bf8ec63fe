"""How a machine is set, and what is told of it when somebody has changed it: on this machine, by real changes."""

import ast
import fcntl
import json
import os
import socket
import subprocess
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from activities.on_node import note_machine
from domain.machine_notes import Facts

PROGRAM = Path(note_machine.__file__)
NOTHING: dict[str, Any] = {"pid": None, "places": [], "data": [], "own": []}


def noted(**request: Any) -> Facts:
    """As a node does: from the command line, without this repository."""
    command = [sys.executable, "-I", "-c", PROGRAM.read_text(), json.dumps(NOTHING | request)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd="/")
    found: Facts = json.loads(done.stdout)["facts"]
    return found


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process with a secret in its environment, and a proxy with a password."""
    environment = {"PATH": "/usr/bin:/bin", "SASL_PASSWORD": "tiger", "HTTPS_PROXY": "http://olga:tiger@proxy.example:3128"}
    with subprocess.Popen(["/bin/sleep", "60"], env=environment) as process:
        yield process
        process.kill()


def test_it_runs_on_old_machines() -> None:
    """Python 3.7, nothing that does not come with it, and short enough for a command line."""
    tree = ast.parse(PROGRAM.read_text(), feature_version=(3, 7))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imported <= sys.stdlib_module_names
    assert len(PROGRAM.read_bytes()) < 32_768


def test_what_nobody_has_changed_is_the_same(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("a=1")
    request = {"pid": sleeper.pid, "places": [str(tmp_path)], "data": [str(tmp_path)]}
    first, second = noted(**request), noted(**request)
    # Others use this machine: their links, services and mounts come and go.
    for kind in ("file", "data", "line", "sysctl", "limit", "process", "environment", "group"):
        assert first[kind] == second[kind], kind
    assert len(first["sysctl"]) > 100
    assert "/" in first["mount"]


def test_nothing_of_a_process_is_told_where_none_runs() -> None:
    assert not noted().keys() & {"limit", "process", "environment", "group"}


def test_no_secret_is_told(sleeper: subprocess.Popen[bytes]) -> None:
    found = noted(pid=sleeper.pid)
    assert found["environment"] == {
        "PATH": "/usr/bin:/bin",
        "SASL_PASSWORD": "(not shown)",
        "HTTPS_PROXY": "http://…@proxy.example:3128",
    }
    assert "tiger" not in json.dumps(found)
    assert not [name for name in found["sysctl"] if name.endswith(("_key", "secret"))]


def test_a_process_is_found_by_the_port_at_which_it_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert noted(port=port)["process"]["program"] == str(Path(sys.executable).resolve())
    assert "process" not in noted(port=port)


def test_limits_of_a_process(sleeper: subprocess.Popen[bytes]) -> None:
    before = noted(pid=sleeper.pid)
    subprocess.run(["prlimit", f"--pid={sleeper.pid}", "--nofile=64:128"], check=True)
    os.setpriority(os.PRIO_PROCESS, sleeper.pid, 7)
    after = noted(pid=sleeper.pid)
    assert after["limit"]["Max open files"] == "64 128"
    assert {name for name in before["limit"] if before["limit"][name] != after["limit"][name]} == {"Max open files"}
    assert (before["process"]["nice value"], after["process"]["nice value"]) == (str(os.nice(0)), "7")


def test_files_are_told_with_rights_owner_size_and_time(tmp_path: Path) -> None:
    jar, own, log = (tmp_path / name for name in ("kafka.jar", "server.properties", "kafka.log"))
    for path in (jar, own, log):
        path.write_text("x")
    (tmp_path / "now").symlink_to(jar)
    before = noted(places=[str(tmp_path)], own=[str(own)])["file"]
    assert str(log) not in before, "it is written all the time"
    own.write_text("longer, which somebody else compares")
    jar.write_text("longer")
    after = noted(places=[str(tmp_path)], own=[str(own)])["file"]
    assert after[str(own)] == before[str(own)]
    assert ", 1 bytes, written " in before[str(jar)]
    assert ", 6 bytes, written " in after[str(jar)]
    assert after[str(tmp_path / "now")].endswith(f"→ {jar}")
    own.chmod(0o400)
    assert noted(places=[str(tmp_path)], own=[str(own)])["file"][str(own)].startswith("-r-------- ")


def test_of_data_only_rights_and_owners_are_looked_at(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir(mode=0o700)
    before = noted(data=[str(tmp_path)])["data"]
    assert before[str(partition)] == f"drwx------ {os.getuid()}:{os.getgid()}"
    os.utime(partition, (0, 0))
    assert noted(data=[str(tmp_path)])["data"] == before


@pytest.mark.parametrize(("flags", "marks"), [(0x10, ["immutable"]), (0x30, ["immutable", "append-only"]), (0x80000, [])])
def test_a_file_that_nobody_may_change_is_marked(
    flags: int, marks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ioctl_iflags(2) says; not every file system on which tests run has it."""

    def ioctl(_handle: int, request: int, found: "array[int]", _mutate: bool) -> int:
        assert request == note_machine.FS_IOC_GETFLAGS
        found[0] = flags
        return 0

    (tmp_path / "server.properties").write_text("x")
    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    assert note_machine.marks_of(str(tmp_path / "server.properties")) == marks


RULESET = """\
table inet keep {
	set bad {
		type ipv4_addr
		elements = { 10.1.2.3, 10.1.2.4 }
	}

	chain input {
		type filter hook input priority filter; policy accept;
		tcp dport 9092 counter drop
	}
}
"""
"""Of nft 1.0.6."""

NETWORK = {
    "addr": "2: eth0    inet 192.0.2.2/24 scope global dynamic eth0\\       valid_lft 3480sec preferred_lft 3480sec\n",
    "route": "10.9.8.0/24 dev eth0 scope link \n172.17.0.0/16 dev docker0 proto kernel scope link src 172.17.0.1 \n",
    "rule": "32766:\tfrom all lookup main\n",
    "qdisc": "qdisc tbf 8001: dev eth0 root refcnt 2 rate 1Mbit lat 50ms \nqdisc noqueue 0: dev veth12 root refcnt 2 \n",
}
"""Of iproute2 6.1."""


def test_rules_queues_and_routes_of_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"nft": RULESET}

    def run(program: str, *arguments: str) -> str | None:
        return told.get(program) or next((text for what, text in NETWORK.items() if what in arguments), None)

    monkeypatch.setattr(note_machine, "run", run)
    assert dict(note_machine.firewall()) == {
        "table inet keep / set bad: type ipv4_addr": "there",
        "table inet keep / set bad: elements = { 10.1.2.3, 10.1.2.4 }": "there",
        "table inet keep / chain input: type filter hook input priority filter; policy accept;": "there",
        "table inet keep / chain input: tcp dport 9092 counter drop": "there",
    }
    assert dict(note_machine.network()) == {
        "address: 2: eth0 inet 192.0.2.2/24 scope global dynamic eth0": "there",
        "route: 10.9.8.0/24 dev eth0 scope link": "there",
        "rule of routes: 32766: from all lookup main": "there",
        "queueing: qdisc tbf 8001: dev eth0 root rate 1Mbit lat 50ms": "there",
    }


def test_where_there_is_no_nft_iptables_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"iptables-save": "# now\n*filter\n:INPUT ACCEPT [12:3456]\n-A INPUT -p tcp --dport 9092 -j DROP\nCOMMIT\n"}
    monkeypatch.setattr(note_machine, "run", lambda program, *_arguments: told.get(program))
    assert ("iptables: -A INPUT -p tcp --dport 9092 -j DROP", "there") in list(note_machine.firewall())
    assert ("iptables: :INPUT ACCEPT", "there") in list(note_machine.firewall())


def test_limits_of_the_control_groups_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "/proc/7/cgroup": "0::/system.slice/kafka.service\n",
        "/sys/fs/cgroup/system.slice/kafka.service/cpu.max": "20000 100000\n",
        "/sys/fs/cgroup/system.slice/pids.max": "512\n",
    }
    monkeypatch.setattr(note_machine, "text", files.get)
    monkeypatch.setattr(
        note_machine, "names", lambda folder: [path.rpartition("/")[2] for path in files if path.rpartition("/")[0] == folder]
    )
    assert dict(note_machine.group_limits("/proc/7")) == {
        "/system.slice/kafka.service/cpu.max": "20000 100000",
        "/system.slice/pids.max": "512",
    }
