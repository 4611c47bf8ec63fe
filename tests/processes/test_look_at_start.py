"""In what a process would be that is started on a node's machine, and what people are told of that when it has died."""

import errno
import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from activities.on_node import command_of, kernel, look_at_start
from domain.diagnosis.causes.death_signs import signs_at_death
from domain.diagnosis.machines.notes import MachineChanges
from domain.diagnosis.machines.start import StartPlace, StartUnit

SANDBOXED = StartUnit(
    name="keeperless-activities.service", kill_mode="process", inherits=("ProtectSystem=strict", "MemoryMax=4294967296")
)
MIB = 1024**2
NOTHING_ASKED: dict[str, Any] = {"folders": [], "files": [], "data": [], "pid": None, "reads": [], "user": ""}
NOTHING_ASKED |= {"locked": [], "metadata": ""}


def test_data_that_leads_elsewhere_than_what_a_process_has_open_is_told(tmp_path: Path) -> None:
    """As where somebody has switched a link to a copy under a broker that runs."""
    for name in ("old", "copy", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".lock").touch()
    data = [str(tmp_path / "data"), str(tmp_path / "second")]
    (tmp_path / "data").symlink_to(tmp_path / "old")
    held = [(Path(folder) / ".lock").open() for folder in data]
    asked: dict[str, Any] = {**NOTHING_ASKED, "data": data, "pid": os.getpid()}
    assert look_at_start.place(asked)["moved"] == []
    (tmp_path / "data").unlink()
    (tmp_path / "data").symlink_to(tmp_path / "copy")
    assert look_at_start.place(asked)["moved"] == data[:1]
    assert look_at_start.place(asked | {"pid": None})["moved"] == []
    held.pop().close()
    assert look_at_start.place(asked)["moved"] == [], "who has not all of them open may have closed one"
    held.pop().close()


@pytest.mark.parametrize("can_see_files", [True, False])
def test_locks_of_log_directories_are_told(can_see_files: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's open files may not be read; the kernel's list of locks may."""
    first, second, other, meta = (str(tmp_path / name) for name in ("first", "second", "other", "meta"))
    held = [locked(folder) for folder in (first, other, meta)]
    Path(second).mkdir()
    Path(second, ".lock").touch()
    if not can_see_files:
        monkeypatch.setattr(look_at_start, "names", lambda path: [] if path.endswith("/fd") else kernel.names(path))
    asked: dict[str, Any] = {**NOTHING_ASKED, "data": [first, second], "locked": [first, second], "metadata": meta}
    found = look_at_start.place(asked | {"pid": os.getpid()})
    told = {"unheld": [second], "elsewhere": [other], "unseen": []}
    assert {part: found[part] for part in told} == (
        told if can_see_files else {"unheld": [], "elsewhere": [], "unseen": [second]}
    )
    assert not any(look_at_start.place(asked)[part] for part in told), "none runs"
    for file in held:
        os.close(file)


def locked(folder: str) -> int:
    """As Kafka does (FileLock.scala): a lock of POSIX for the whole file."""
    Path(folder).mkdir()
    file = os.open(f"{folder}/.lock", os.O_RDWR | os.O_CREAT)
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return file


def test_a_wrapper_that_is_named_in_place_of_who_has_the_data_open_is_told(tmp_path: Path) -> None:
    """As where a script calls java without `exec`, and writes its own pid."""
    (tmp_path / ".lock").touch()
    asked: dict[str, Any] = {**NOTHING_ASKED, "data": [str(tmp_path)]}
    opens = "import sys, time; held = open(sys.argv[1]); print('open', flush=True); time.sleep(60)"
    wrapped = ("sh", "-c", '"$@"; echo over', "sh", sys.executable, "-c", opens, str(tmp_path / ".lock"))
    with subprocess.Popen(wrapped, stdout=subprocess.PIPE, start_new_session=True) as wrapper:
        try:
            assert wrapper.stdout is not None
            assert wrapper.stdout.readline() == b"open\n"
            (told,) = look_at_start.place(asked | {"pid": wrapper.pid})["held_by"]
            child = told.partition(" ")[0]
            assert Path(f"/proc/{child}/stat").read_text().split(") ")[1].split()[1] == str(wrapper.pid)
            assert look_at_start.place(asked | {"pid": int(child)})["held_by"] == []
            assert look_at_start.place(asked)["held_by"] == []
        finally:
            os.killpg(wrapper.pid, signal.SIGKILL)


def test_what_a_node_reads_is_its_file_and_what_that_names_and_what_its_command_line_does(tmp_path: Path) -> None:
    for name in ("server.properties", "broker.jks", "jaas.conf", "libs"):
        (tmp_path / name).touch()
    text = f"ssl.keystore.location={tmp_path}/broker.jks\nlog.dirs={tmp_path}\nssl.truststore.location=/nowhere/trust.jks\n"
    (tmp_path / "server.properties").write_text(text)
    known = [str(tmp_path / "server.properties"), str(tmp_path)]
    option = f"-Djava.security.auth.login.config={tmp_path}/jaas.conf"
    program = (sys.executable, "-c", "print('begun', flush=True); input()", option)
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n", "for a moment a process that replaces its program shows no command line"
        found = look_at_start.reads(process.pid, known)
        process.communicate(b"\n")
    assert [*known, str(tmp_path / "broker.jks"), str(tmp_path / "jaas.conf")] == [
        p for p in found if p.startswith(str(tmp_path))
    ]
    assert look_at_start.reads(None, known) == [*known, str(tmp_path / "broker.jks")]


def test_what_would_be_started_here() -> None:
    """As a node does: from the command line, without this repository; with a limit that is handed on."""
    asked = {**NOTHING_ASKED, "folders": ["/", "/proc/sys/kernel", "/nowhere/x"]}
    command = command_of("look_at_start", asked, sys.executable)
    most = 8 * 1024 * MIB
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd="/",
        preexec_fn=lambda: limit_ourselves(most),
    )
    found = StartPlace.model_validate_json(done.stdout)
    assert "/nowhere/x" not in found.read_only
    budgets = {kind: (used, limit) for kind, _, used, limit in found.budgets}
    assert budgets["address-space"] == (0, most)
    assert budgets["cpu-time"] == (0, SECONDS_OF_CPU)
    assert budgets["file-size"] == (0, LARGEST_FILE)
    assert 0 < budgets["machine-memory"][0] < budgets["machine-memory"][1]
    assert 0 < budgets["machine-tasks"][0] <= budgets["machine-tasks"][1]


SECONDS_OF_CPU, LARGEST_FILE = 50, 512 * MIB


def limit_ourselves(addresses: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_OF_CPU, SECONDS_OF_CPU))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))


def test_directories_that_can_only_be_read_from_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ProtectSystem=strict with ReadWritePaths=/var/log mounts them; beside a disk that is read-only for everybody."""
    mounts = (
        "22 1 8:1 / / ro,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n"
        "23 22 8:1 /var/log /var/log rw,relatime shared:2 - ext4 /dev/sda1 rw,errors=remount-ro\n"
        "24 22 8:2 / /my\\040disk ro,relatime - xfs /dev/sdb1 rw,attr2\n"
        "25 22 8:3 / /failed ro,relatime - ext4 /dev/sdc1 ro,errors=remount-ro\n"
    )
    monkeypatch.setattr(kernel, "text", {"/proc/self/mountinfo": mounts}.get)
    folders = ["/nowhere/kafka", "/var/log/kafka", "/my disk/1", "/failed/1", "/var/logs"]
    found = look_at_start.place({**NOTHING_ASKED, "folders": folders})["read_only"]
    assert found == ["/nowhere/kafka", "/my disk/1", "/var/logs"]


def test_budgets_of_control_groups_and_of_a_kernel_that_promises_no_more_than_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        look_at_start.CONTROL_GROUPS: "0::/system.slice/k.service\n4:memory:/\n",
        "/sys/fs/cgroup/system.slice/k.service/pids.current": "511\n",
        "/sys/fs/cgroup/system.slice/k.service/pids.max": "512\n",
        "/sys/fs/cgroup/system.slice/k.service/memory.current": "3000\n",
        "/sys/fs/cgroup/system.slice/k.service/memory.max": "4000\n",
        "/sys/fs/cgroup/system.slice/k.service/memory.stat": "anon 1000\nfile 1900\n",
        "/sys/fs/cgroup/system.slice/pids.max": "max\n",
        "/proc/loadavg": "0.1 0.2 0.3 2/300 4711\n",
        "/proc/sys/kernel/threads-max": "100000\n",
        "/proc/sys/kernel/pid_max": "32768\n",
        "/proc/sys/vm/overcommit_memory": "2\n",
        "/proc/meminfo": "MemTotal: 100 kB\nMemAvailable: 60 kB\nCommitLimit: 50 kB\nCommitted_AS: 49 kB\n",
    }
    for module in (kernel, look_at_start):
        monkeypatch.setattr(module, "text", files.get)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert look_at_start.place(NOTHING_ASKED)["budgets"] == [
        ("tasks", "/system.slice/k.service", 511, 512),
        ("memory", "/system.slice/k.service", 1100, 4000),
        ("machine-tasks", "", 300, 32768),
        ("machine-memory", "", 40 * 1024, 100 * 1024),
        ("commit", "", 49 * 1024, 50 * 1024),
    ]


def unopened(*paths: Path) -> dict[str, str]:
    return dict(look_at_start.unopened([str(path) for path in paths]))


def test_a_file_that_a_start_could_not_append_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By opening it as a shell does, whatever it is that forbids that; it stays as it is, and none is made."""
    well, missing, folder = tmp_path / "kafka.out", tmp_path / "kafka.pid.lock", tmp_path / "a-directory"
    well.write_text("kept")
    os.utime(well, (0, 0))
    folder.mkdir()
    assert unopened(well, missing, folder, tmp_path / "no-directory" / "x") == {}
    assert (well.read_text(), well.stat().st_mtime, missing.exists()) == ("kept", 0, False)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert unopened(missing) == {str(missing): "it is not there, and may not be made in its directory"}

    def refused(*_: Any) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refused)
    assert unopened(well) == {str(well): "Permission denied"}


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to somebody else")
def test_a_file_that_root_may_not_open_where_everybody_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """fs.protected_regular, which systemd sets: by the real kernel where it is set, else as it answers."""
    tmp_path.chmod(0o1777)
    log = tmp_path / "kafka.out"
    log.write_text("")
    os.chown(log, 65534, -1)
    if not look_at_start.number("/proc/sys/fs/protected_regular"):
        monkeypatch.setattr(look_at_start, "number", lambda _path: 1)
        monkeypatch.setattr(os, "open", Mock(side_effect=PermissionError(errno.EACCES, "")))
    (why,) = unopened(log).values()
    assert why.startswith(
        "Permission denied: it belongs to user 65534, in a directory with the sticky bit, and with fs.protected_regular"
    )
    (sign,) = signs_at_death("stopped", StartPlace(unit=None, unopened=((str(log), why),)), None, is_ours=False)
    assert f"appends to a file that cannot be opened: {log}: Permission denied" in sign.observed
    assert "chown" in sign.fix


def told(kind: str, *, is_ours: bool = True, **place: Any) -> tuple[str, str]:
    signs = list(signs_at_death(kind, StartPlace(unit=place.pop("unit", None), **place), None, is_ours=is_ours))
    return ". ".join(sign.observed for sign in signs), " ".join(sign.fix for sign in signs)


def test_what_can_only_be_read_in_our_unit_is_no_disk_to_be_replaced() -> None:
    (sign,) = signs_at_death("disk-failed", StartPlace(unit=SANDBOXED, read_only=("/var/lib/kafka",)), None, is_ours=True)
    assert "(ProtectSystem=strict, MemoryMax=4294967296), in which /var/lib/kafka are read-only" in sign.observed
    assert "ReadWritePaths=" in sign.fix
    assert "Restart keeperless-activities.service" in sign.fix
    assert "KillMode=process first" not in sign.fix
    assert sign.is_cure
    ends = SANDBOXED.model_copy(update={"kill_mode": "control-group"})
    (sign,) = signs_at_death("disk-failed", StartPlace(unit=ends, read_only=("/var/lib/kafka",)), None, is_ours=True)
    assert sign.fix.startswith("Set KillMode=process first")


def test_a_unit_in_which_no_jvm_starts() -> None:
    """As its code cache is made: `os::commit_memory(…) failed; error='Operation not permitted' (errno=1)`."""
    unit = StartUnit(name="k.service", kill_mode="process", inherits=("MemoryDenyWriteExecute=yes",))
    (sign,) = signs_at_death("host-out-of-memory", StartPlace(unit=unit), None, is_ours=True)
    assert "inherits MemoryDenyWriteExecute=yes of k.service, under which no JVM starts" in sign.observed
    assert sign.is_cure


def test_what_a_node_has_inherited_is_told_where_that_may_be_what_failed() -> None:
    observed, fix = told("host-out-of-memory", unit=SANDBOXED)
    assert observed.startswith("It was started inside keeperless-activities.service, and has inherited from it: ProtectSystem=")
    assert fix.startswith("Where one of these forbids what failed, and nothing outside does: ")
    assert told("bad-configuration", unit=SANDBOXED) == ("", "")
    assert told("stopped", unit=SANDBOXED) == ("", "")
    assert told("disk-failed", unit=SANDBOXED, is_ours=False, read_only=("/data",)) == ("", "")
    assert told("disk-failed", read_only=("/data",)) == ("", ""), "no unit of systemd: its disk, for everybody"
    assert told("disk-failed", unit=StartUnit(name="k.service", kill_mode="process")) == ("", "")


@pytest.mark.parametrize(
    ("kind", "budget", "observed", "fix"),
    [
        ("out-of-threads", ("tasks", "/k.service", 490, 512),
         "control group /k.service has 490 processes and threads, of at most 512", "Raise TasksMax="),
        ("out-of-threads", ("tasks", "/k.service", 100, 512), "", ""),
        ("out-of-threads", ("user-tasks", "", 1000, 1024), "its user has 1000 processes", "Raise nproc"),
        ("out-of-threads", ("machine-tasks", "", 32768, 32768), "its machine has 32768 processes", "Raise kernel.threads-max"),
        ("not-begun", ("tasks", "/k.service", 512, 512), "control group /k.service has 512", "Raise TasksMax="),
        ("not-begun", ("machine-memory", "", 50 * MIB, 100 * MIB), "", ""),
        ("host-out-of-memory", ("machine-memory", "", 50 * MIB, 100 * MIB), "50 of 100 MiB of its machine's memory", ""),
        ("host-out-of-memory", ("commit", "", 40 * MIB, 50 * MIB), "the kernel promises no more memory", "Raise vm.overcommit"),
        ("host-out-of-memory", ("address-space", "", 0, 50 * MIB), "what is started there may have 50 MiB", "Take that limit"),
        ("killed", ("memory", "/k.service", 99 * MIB, 100 * MIB), "control group /k.service uses 99 of", "Raise MemoryMax="),
        ("disk-failed", ("tasks", "/k.service", 512, 512), "", ""),
    ],
)  # fmt: skip
def test_the_budget_that_is_used_up(kind: str, budget: tuple[str, str, int, int], observed: str, fix: str) -> None:
    found = told(kind, budgets=(budget,))
    assert found[0].startswith(observed)
    assert found[1].startswith(fix)
    assert bool(found[0]) is bool(observed)


@pytest.mark.parametrize("kind", ["", "killed"])
def test_who_was_killed_at_a_limit_of_cpu_time_that_our_own_worker_has_is_told_so(kind: str) -> None:
    place = StartPlace(unit=None, budgets=(("cpu-time", "", 0, 10),))
    (sign,) = signs_at_death(kind, place, None, is_ours=True)
    assert "limit of 10 s of CPU time" in sign.observed
    assert ("LimitCPU=" in sign.fix, sign.is_cure) == (True, True)
    assert not list(signs_at_death(kind, place, None, is_ours=False))
    assert not list(signs_at_death("disk-failed", place, None, is_ours=True))


def test_who_was_killed_while_the_kernel_killed_for_memory_is_told_so() -> None:
    changes = MachineChanges(since=datetime(2026, 3, 1, tzinfo=UTC), killed="1 process of control group /k.service")
    (sign,) = signs_at_death("killed", None, changes, is_ours=True)
    assert sign.observed == (
        "The kernel has killed 1 process of control group /k.service for want of memory since 01 Mar 00:00:00 UTC"
    )
    assert "MemoryMax=" in sign.fix
    assert sign.is_cure
    assert not list(signs_at_death("stopped", None, changes, is_ours=True))
    assert not list(signs_at_death("killed", None, changes.model_copy(update={"killed": ""}), is_ours=True))


def test_of_a_node_that_others_have_started_only_what_holds_for_the_whole_machine_is_told() -> None:
    budgets = (("tasks", "/k.service", 512, 512), ("machine-tasks", "", 32768, 32768))
    assert told("out-of-threads", is_ours=False, budgets=budgets)[0].startswith("its machine has 32768")


@pytest.mark.parametrize(
    ("groups", "script", "unit"),
    [
        ("0::/system.slice/keeperless-activities.service\n", "echo KillMode=process", {"kill_mode": "process"}),
        (
            "1:name=systemd:/system.slice/keeperless-activities.service\n5:cpu:/\n",
            "echo KillMode=mixed",
            {"kill_mode": "mixed"},
        ),
        ("0::/system.slice/keeperless-activities.service/inner\n", "exit 1", {"kill_mode": ""}),
        ("0::/system.slice/keeperless-activities.service\n", "", {"kill_mode": ""}),
        (
            "0::/user.slice/user-0.slice/user@0.service/app.slice/keeperless-activities.service\n",
            "echo KillMode=$1$XDG_RUNTIME_DIR",
            {"kill_mode": f"--user/run/user/{os.geteuid()}", "is_users": True},
        ),
        ("0::/user.slice/user-0.slice/session-3.scope\n", "echo KillMode=process", None),
        ("0::/user.slice/user-0.slice/user@0.service/app.slice/vte-spawn-4.scope\n", "echo KillMode=process", None),
        ("0::/\n", "echo KillMode=process", None),
    ],
)
def test_whom_a_stop_of_our_unit_would_end(
    groups: str, script: str, unit: dict[str, Any] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "cgroup"
    own.write_text(groups)
    if script:
        systemctl = tmp_path / "systemctl"
        systemctl.write_text(f"#!/bin/sh\n{script}\n")
        systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(look_at_start, "CONTROL_GROUPS", str(own))
    assert look_at_start.unit() == (
        None
        if unit is None
        else {"name": "keeperless-activities.service", "is_users": False, "ends_at_logout": False, "inherits": [], **unit}
    )


@pytest.mark.parametrize(
    ("groups", "programs", "ends"),
    [
        ("user.slice/user-1000.slice/session-3.scope", {"busctl": "echo b true"}, True),
        ("user.slice/user-0.slice/session-3.scope", {"busctl": "echo b true"}, None),
        ("user.slice/user-1000.slice/session-3.scope", {"busctl": "echo b false"}, None),
        ("user.slice/user-0.slice/user@0.service/app.slice/vte-spawn-4.scope", {"loginctl": "echo Linger=no"}, True),
        ("user.slice/user-0.slice/user@0.service/app.slice/k.service", {"loginctl": "echo Linger=no"}, True),
        ("user.slice/user-7.slice/user@7.service/app.slice/k.service", {"loginctl": "[ $3 = 7 ] && echo Linger=no"}, True),
        ("user.slice/user-0.slice/user@0.service/app.slice/k.service", {"loginctl": "echo Linger=yes"}, False),
        ("system.slice/k.service", {"loginctl": "echo Linger=no", "busctl": "echo b true"}, False),
    ],
)
def test_whom_a_logout_would_end(
    groups: str, programs: dict[str, str], ends: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cgroup").write_text(f"0::/{groups}\n")
    for name, script in {
        "systemctl": "echo KillMode=process; echo ProtectHome=no; echo ProtectSystem=full",
        **programs,
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(look_at_start, "CONTROL_GROUPS", str(tmp_path / "cgroup"))
    found = look_at_start.unit()
    assert (found and found["ends_at_logout"]) == ends
    assert found is None or found["inherits"] == ["ProtectSystem=full"]


ALLOWS_ALL = """
import ctypes, os, struct, sys

class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

libc, returns = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000))
assert libc.prctl(38, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS"
assert libc.prctl(22, 2, ctypes.byref(Program(1, ctypes.addressof(returns)))) == 0, "PR_SET_SECCOMP"
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@pytest.mark.parametrize("is_filtered", [False, True])
def test_a_filter_of_system_calls_is_seen_from_below_it(*, is_filtered: bool) -> None:
    """By the kernel's own: one that allows every call."""
    python, *look = command_of("look_at_start", NOTHING_ASKED, sys.executable)
    command = [python, *(["-c", ALLOWS_ALL, *look] if is_filtered else look)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    is_ours = look_at_start.FILTERED.search(Path("/proc/self/status").read_text(encoding="utf-8")) is not None
    assert json.loads(done.stdout)["is_filtered"] is (is_filtered or is_ours)


WATCHES = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
notifier = libc.fanotify_init(4, os.O_RDONLY)
mark = (ctypes.c_int, ctypes.c_uint, ctypes.c_ulonglong, ctypes.c_int, ctypes.c_char_p)
libc.fanotify_mark.argtypes = mark
done = libc.fanotify_mark(notifier, 1, int(sys.argv[2], 16), -100, sys.argv[1].encode())
print("begun" if notifier >= 0 and done == 0 else "not allowed", flush=True)
time.sleep(60)
"""
OPEN_PERM, OPENED = "10000", "20"


@pytest.mark.parametrize(("mask", "is_told"), [(OPEN_PERM, True), (OPENED, False)], ids=["is asked", "only hears of it"])
def test_a_program_that_says_who_may_open_files(
    tmp_path: Path, mask: str, monkeypatch: pytest.MonkeyPatch, *, is_told: bool
) -> None:
    """Of one that may be none here, by what others' machines have told."""
    (tmp_path / "kafka.jar").touch()
    with subprocess.Popen(
        [sys.executable, "-c", WATCHES, tmp_path / "kafka.jar", mask], stdout=subprocess.PIPE, text=True
    ) as keeper:
        assert keeper.stdout is not None
        if keeper.stdout.readline() != "begun\n":
            files = {
                f"/proc/{keeper.pid}/fdinfo/3": f"pos:\t0\nfanotify ino:1b sdev:800001 mflags:0 mask:{mask} ignored_mask:0\n"
            }
            monkeypatch.setattr(look_at_start, "link", lambda path: "anon_inode:[fanotify]" if path.endswith("/3") else None)
            monkeypatch.setattr(look_at_start, "text", files.get)
        try:
            assert (f"{keeper.pid} (python" in "".join(look_at_start.gatekeepers())) is is_told
        finally:
            keeper.kill()


@pytest.mark.parametrize(("kind", "is_told"), [("installation-gone", True), ("out-of-memory", False)])
def test_what_may_be_forbidden_is_told_with_who_forbids(kind: str, *, is_told: bool) -> None:
    place = StartPlace(unit=None, gatekeepers=("711 (fapolicyd)",))
    found = list(signs_at_death(kind, place, None, is_ours=True))
    assert [sign.observed for sign in found] == (
        ["There 711 (fapolicyd) is asked before files are opened, and may say no (fanotify)"] if is_told else []
    )
