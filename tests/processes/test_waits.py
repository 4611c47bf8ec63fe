"""What threads wait for in the kernel: real processes that do, and what people are told of them."""

import fcntl
import json
import os
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from activities.on_node import program, waits
from activities.on_node.kernel import names
from domain.diagnosis.machines.bad_signs import bad_signs
from domain.diagnosis.machines.waits import Wait, wait_in_words
from tests.unit.conftest import signs_of

SELF = f"{os.getpid()} ({Path('/proc/self/comm').read_text().strip()})"
BEGUN = "print('begun', flush=True); "
SECONDS = 60.0

YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
MAY_LOOK = os.geteuid() == 0 or not YAMA.exists() or YAMA.read_text().strip() == "0"
pytestmark = [
    pytest.mark.skipif(platform.machine() not in {"x86_64", "aarch64"}, reason="calls have other numbers there"),
    pytest.mark.skipif(not MAY_LOOK, reason="only root may see what calls a process is in (kernel.yama.ptrace_scope)"),
]

Begin = Callable[..., int]


@pytest.fixture
def begin() -> Iterator[Begin]:
    started: list[subprocess.Popen[str]] = []

    def begin(source: str, *words: str) -> int:
        command = [sys.executable, "-I", "-S", "-c", source, *words]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        return process.pid

    yield begin
    for process in started:
        with process:
            process.kill()


def look(pid: int) -> list[dict[str, Any]]:
    command = [sys.executable, "-I", "-c", program("watch_process"), json.dumps({"watch": pid, "log_dirs": []})]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)["waits"]
    return found


def waits_of(pid: int) -> list[dict[str, Any]]:
    """As soon as there are any: who has begun is a moment before its call."""
    until = time.monotonic() + SECONDS
    while not (found := look(pid)) and time.monotonic() < until:
        pass
    return found


def told(pid: int) -> str:
    return "; ".join(wait_in_words(Wait.model_validate(wait), {}) for wait in waits_of(pid))


@pytest.mark.parametrize("timeout", [None, 600], ids=["recv", "poll"])
def test_an_answer_that_does_not_come_with_who_owes_it(begin: Begin, timeout: int | None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        source = f"import socket; s = socket.create_connection({address}, {timeout}); {BEGUN} s.recv(1)"
        pid, (taken, _) = begin(source), server.accept()
        with taken:
            assert f"waits for an answer of 127.0.0.1:{address[1]}: process {SELF} is at the other end" in told(pid)


def test_one_that_nobody_has_accepted_is_owed_by_who_listens(begin: Begin) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        pid = begin(f"import socket; s = socket.create_connection({server.getsockname()}); {BEGUN} s.recv(1)")
        assert told(pid).endswith(f": process {SELF} is at the other end")


def test_the_other_end_is_found_where_one_has_ipv4_within_ipv6(begin: Begin) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        where = ("::ffff:127.0.0.1", server.getsockname()[1])
        pid = begin(f"import socket; s = socket.socket(socket.AF_INET6); s.connect({where}); {BEGUN} s.recv(1)")
        assert told(pid).endswith(f": process {SELF} is at the other end")


@pytest.mark.parametrize("is_accepted", [True, False])
def test_a_service_behind_a_socket_of_the_machine(begin: Begin, tmp_path: Path, is_accepted: bool) -> None:
    path = str(tmp_path / "nss")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(5)
        pid = begin(f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({path!r}); {BEGUN} s.recv(1)")
        taken = server.accept()[0] if is_accepted else None
        assert f"waits for an answer of {path}: process {SELF} is at the other end" in told(pid)
        if taken is not None:
            taken.close()


def test_one_that_takes_no_more_connections(begin: Begin, tmp_path: Path) -> None:
    path = str(tmp_path / "full")
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as first:
        server.bind(path)
        server.listen(0)
        first.connect(path)
        pid = begin(f"import socket; s = socket.socket(socket.AF_UNIX); {BEGUN} s.connect({path!r})")
        assert f"waits until {path} takes a connection: process {SELF} is at the other end" in told(pid)


def test_a_datagram_that_is_not_answered(begin: Begin) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        source = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"
        pid = begin(f"{source}; s.connect(('127.0.0.1', {port})); {BEGUN} s.recv(1)")
        assert f"waits for an answer of 127.0.0.1:{port}" in told(pid)


@pytest.mark.parametrize("timeout", [None, 600], ids=["send", "poll"])
def test_what_is_sent_and_not_taken(begin: Begin, timeout: int | None) -> None:
    """Who has a time limit polls for room, as Java's blocking sockets do."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        source = f"import socket; s = socket.create_connection({address}, {timeout}); {BEGUN} s.sendall(bytes(64 << 20))"
        pid, (taken, _) = begin(source), server.accept()
        with taken:
            assert f"waits until 127.0.0.1:{address[1]} takes what is sent to it" in told(pid)


def test_of_a_file_with_several_locks_who_has_the_one(begin: Begin, tmp_path: Path) -> None:
    path = tmp_path / "table"
    path.write_text("x" * 100)
    opened = f"import fcntl, time; f = open({str(path)!r}, 'r+')"
    first = begin(f"{opened}; fcntl.lockf(f, fcntl.LOCK_EX, 10, 0); {BEGUN} time.sleep(600)")
    begin(f"{opened}; fcntl.lockf(f, fcntl.LOCK_EX, 10, 50); {BEGUN} time.sleep(600)")
    third = begin(f"{opened}; {BEGUN} fcntl.lockf(f, fcntl.LOCK_EX, 10, 0)")
    assert f"which process {first} (" in told(third)


def test_a_pipe_whose_name_is_no_text(begin: Begin, tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/r\xe9sum\xe9"
    os.mkfifo(path)
    keeper = os.open(path, os.O_RDWR)
    try:
        assert f"writes into {tmp_path}/r\ufffdsum\ufffd: process {SELF}" in told(
            begin(f"f = open({path!r}, 'rb', 0); {BEGUN} f.read(1)")
        )
    finally:
        os.close(keeper)


@pytest.mark.parametrize(
    ("sockaddr", "told"),
    [
        (b"\x02\x00\x23\x84\x0a\x00\x00\x05" + bytes(8), ("connect", "tcp", "10.0.0.5:9092", "")),
        (
            b"\x0a\x00\x23\x84" + bytes(4) + bytes(10) + b"\xff\xff\x0a\x00\x00\x05" + bytes(4),
            ("connect", "tcp", "10.0.0.5:9092", ""),
        ),
        (b"\x0a\x00\x23\x84" + bytes(4) + bytes(15) + b"\x01" + bytes(4), ("connect", "tcp", "[::1]:9092", "")),
        (b"\x01\x00\x00sssd", ("connect", "unix", "@sssd", "")),
        (b"\x01\x00/nowhere\x00rest", ("connect", "unix", "/nowhere", "")),
    ],
)
def test_where_a_connection_is_to_lead(sockaddr: bytes, told: tuple[str, ...]) -> None:
    assert tuple(waits.connecting(waits.Seen(), "/proc/self", sockaddr)) == (told,)


def test_on_a_large_machine_it_is_not_known_in_whose_hands_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "MOST_SECONDS", -1.0)
    assert waits.Seen().holder({f"/proc/{os.getpid()}"}) == ""
    assert waits.waits({"/proc/1/task/1": "0 0x0"}, {"/proc/1/task/1": "0 0x0"}) == []


@pytest.mark.parametrize("take", ["flock(f, fcntl.LOCK_EX)", "lockf(f, fcntl.LOCK_EX)"])
def test_a_lock_with_who_has_it(begin: Begin, tmp_path: Path, take: str) -> None:
    path = tmp_path / ".lock"
    with path.open("w") as file:
        (fcntl.flock if take.startswith("flock") else fcntl.lockf)(file, fcntl.LOCK_EX)
        pid = begin(f"import fcntl; f = open({str(path)!r}, 'w'); {BEGUN} fcntl.{take}")
        assert f"waits for a lock on {path}, which process {SELF} has" in told(pid)


def test_a_pipe_that_nobody_opens_and_one_that_nobody_reads(begin: Begin, tmp_path: Path) -> None:
    path = tmp_path / "log"
    os.mkfifo(path)
    assert f"waits in openat of {path}, which does not come back" in told(begin(f"{BEGUN} open({str(path)!r})"))
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        pid = begin(f"f = open({str(path)!r}, 'wb', 0); {BEGUN} f.write(bytes(1 << 20))")
        assert f"until somebody reads from {path}: process {SELF} is at the other end" in told(pid)
    finally:
        os.close(reader)


def test_of_a_command_what_the_program_waits_for_that_it_has_begun(begin: Begin) -> None:
    source = f"import subprocess, sys; {BEGUN} subprocess.run([sys.executable, '-c', 'input()'])"
    assert f"waits until somebody writes into a pipe: process {SELF} is at the other end" in told(begin(source))


@pytest.mark.parametrize("is_sending", [False, True])
@pytest.mark.parametrize("order", [list, reversed])
def test_at_the_other_end_of_a_pipe_is_not_who_waits_at_the_same_one(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, order: Callable[[list[str]], list[str]], is_sending: bool
) -> None:
    """Whichever of them has the lower process id."""
    call = "os.write(1, bytes(1 << 20))" if is_sending else "os.read(0, 1)"
    pid = begin(f"import os; {BEGUN} os.fork(); {call}")
    monkeypatch.setattr(waits, "names", lambda path: list(order(names(path))))
    until = time.monotonic() + SECONDS
    while len(found := waits.waits(calls := waits.calls(pid), calls)) != 1 or len(found[0]["threads"]) != 2:
        assert time.monotonic() < until
    assert found[0]["by"] == SELF


@pytest.mark.parametrize(
    "source",
    [
        f"import time; {BEGUN} time.sleep(600)",
        f"import socket; s = socket.create_server(('127.0.0.1', 0)); {BEGUN} s.accept()",
        f"import threading; {BEGUN} threading.Event().wait()",
        f"import select, os; r, w = os.pipe(); p = select.epoll(); p.register(r); {BEGUN} p.poll()",
    ],
    ids=["asleep", "listens", "for a thread of its own", "for many things"],
)
def test_who_is_at_rest_waits_for_nobody(begin: Begin, source: str) -> None:
    assert look(begin(source)) == []


def test_a_client_that_says_nothing_keeps_nobody(begin: Begin) -> None:
    source = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)"
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", f"{source}; c, _ = s.accept(); {BEGUN} c.recv(1)"], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with socket.create_connection(("127.0.0.1", port)):
            assert process.stdout.readline() == "begun\n"
            assert look(process.pid) == []
        process.kill()


def test_it_is_evidence_beside_what_is_told_already() -> None:
    """Some threads wait for ever where all is well, so that nobody is accused of it alone."""
    directory = Wait(call="read", kind="tcp", what="10.0.0.5:389", by="", threads=("java", "ldap-1", "ldap-2", "ldap-3"))
    broker = Wait(call="poll", kind="tcp", what="10.1.0.2:9092", by="", threads=("java",))
    (sign,) = bad_signs(signs_of(waits=(directory, broker)), {"10.1.0.2:9092": "broker-2"})
    assert sign.is_slight
    assert sign.observed == (
        "by its kernel, its threads java, ldap-1, ldap-2 and 1 more wait for an answer of 10.0.0.5:389; "
        "its thread java waits for an answer of broker-2 at 10.1.0.2:9092"
    )
    (frozen,) = bad_signs(signs_of(waits=(directory,), frozen="/kafka"), {})
    assert frozen.observed.startswith("its control group /kafka is frozen")


LEASE = """
import fcntl, os, signal, sys, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
fcntl.fcntl(os.open(sys.argv[1], os.O_RDWR), fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('begun', flush=True)
time.sleep(600)
"""


def test_a_file_on_which_another_has_a_lease_is_told_with_who_that_is(begin: Begin, tmp_path: Path) -> None:
    """Its thread is woken again and again by the kernel, and may be awake as it is looked at."""
    path = tmp_path / "server.properties"
    path.write_text("node.id=1")
    holder = begin(LEASE, str(path))
    pid = begin(f"import sys; {BEGUN} open(sys.argv[1])", str(path))
    command = [sys.executable, "-I", "-c", program("watch_process"), json.dumps({"watch": pid, "log_dirs": []})]
    until, named = time.monotonic() + 30, f"{holder} ("
    while time.monotonic() < until:
        seen = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)
        words = [wait_in_words(Wait.model_validate(wait), {}) for wait in seen["waits"]]
        if seen["stuck_threads"] and any(named in said for said in words):
            break
    assert seen["stuck_in"] == ["__break_lease"]
    assert any(keeper.startswith(named) for keeper in seen["kept_by"])
    assert f"{path}, which does not come back: process {named}" in words[0]
    assert words[0].endswith("has a lease on it")


def test_a_terminal_that_somebody_has_stopped_is_told_as_one() -> None:
    wait = Wait(call="write", kind="path", what="/dev/pts/3", by="", threads=("main",))
    assert wait_in_words(wait, {}) == (
        "its thread main waits until terminal /dev/pts/3 takes what they print, which somebody has stopped (Ctrl-S): Ctrl-Q "
        "there, or close it"
    )
    assert "does not come back" in wait_in_words(wait.model_copy(update={"what": "/data/x.log"}), {})
