"""What an operator is told of files that the worker cannot use."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import IO

import pytest

from activities.adapters.nodes import local
from activities.adapters.nodes.local import LocalMachine, _os_errors
from activities.on_node import BARE
from domain.errors import KeeperlessError, Permanent, Transient


@pytest.mark.parametrize(
    ("code", "kind", "advice"),
    [
        (errno.EPERM, Permanent, "chattr -i"),
        (errno.EACCES, Permanent, "give the worker access"),
        (errno.EISDIR, Permanent, "correct the path"),
        (errno.EXDEV, Permanent, "cross-device"),
        (errno.EROFS, Transient, "ProtectSystem="),
        (errno.EBUSY, Transient, "mount its directory instead"),
        (errno.EDQUOT, Transient, "quota"),
        (errno.EIO, Transient, "Input/output error"),
    ],
    ids=errno.errorcode.get,
)
def test_an_error_of_the_system_says_what_helps(code: int, kind: type[KeeperlessError], advice: str) -> None:
    with pytest.raises(kind) as told, _os_errors(Path("/etc/kafka/server.properties")):
        raise OSError(code, os.strerror(code))
    assert str(told.value).startswith(f"/etc/kafka/server.properties: {os.strerror(code)}")
    assert advice in str(told.value)


async def test_files_of_proc_are_read_which_have_no_end() -> None:
    """The kernel refuses to seek to it: what a broker has mapped is looked at before every stop."""
    maps = await LocalMachine().read_part("/proc/self/maps", 0, 1 << 20)
    assert maps is not None
    assert b"python" in maps


async def test_a_small_program_is_run_by_the_python_that_runs_us_whatever_path_finds_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shim starts shells before it, each time."""
    shim = tmp_path / "python3"
    shim.write_text("#!/bin/sh\necho shim\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    asked = ("python3", *BARE, "-c", "import sys; print(sys.executable)")
    assert (await LocalMachine().run(asked, {}, timedelta(seconds=30))).output == f"{local.OUR_PYTHON}\n"
    monkeypatch.setattr(local, "OUR_PYTHON", tmp_path / "gone")
    assert (await LocalMachine().run(asked, {}, timedelta(seconds=30))).output == "shim\n"


async def test_nobody_waits_for_the_other_side_of_a_fifo(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(Permanent, match="no regular file"):
        await LocalMachine().read_part(str(tmp_path / "fifo"), -9, 9)


async def test_a_file_that_hangs_takes_one_thread_however_often_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a disk that does not answer."""
    machine, hangs, well = LocalMachine(), tmp_path / "hangs", tmp_path / "well"
    mended, opened = threading.Event(), local._opened

    def open_at_last(path: Path) -> IO[bytes]:
        assert path != hangs or mended.wait(60)
        return opened(path)

    monkeypatch.setattr(local, "_opened", open_at_last)
    well.write_text("here")
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    for _ in range(4):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await machine.read_part(str(hangs), 0, 10)
    async with asyncio.timeout(5):
        assert await machine.read_part(str(well), 0, 10) == b"here"
    hangs.write_text("mended")
    mended.set()
    async with asyncio.timeout(5):
        assert await machine.read_part(str(hangs), 0, 10) == b"mended"


LEASE = """
import fcntl, os, signal, sys, time
signal.signal(signal.SIGIO, signal.SIG_IGN if sys.argv[2] == "keep" else lambda *_: fcntl.fcntl(file, fcntl.F_SETLEASE, 2))
file = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("begun", flush=True)
while True:
    time.sleep(60)
"""
"""As Samba does with kernel oplocks: whoever opens that file waits until it is given back."""


@pytest.fixture
def leased(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Path, int]]:
    path = tmp_path / "server.properties"
    path.write_text("node.id=1")
    command = [sys.executable, "-I", "-c", LEASE, str(path), request.param]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if process.stdout.readline() != b"begun\n":
            pytest.skip("no leases on this file system")
        yield path, process.pid
        process.kill()


@pytest.mark.parametrize("leased", ["keep"], indirect=True)
async def test_a_lease_that_is_not_given_back_takes_no_thread(leased: tuple[Path, int]) -> None:
    path, _ = leased
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    machine = LocalMachine()
    for read in (machine.read_file(str(path)), machine.read_part(str(path), 0, 9), machine.read_part(str(path), -9, 9)):
        async with asyncio.timeout(5):
            with pytest.raises(Transient) as told:
                await read
        assert str(told.value).startswith(str(path))
        assert "lease" in str(told.value)
        assert "fs.lease-break-time" in str(told.value)
    async with asyncio.timeout(5):
        assert await machine.read_file("/proc/self/stat") is not None


@pytest.mark.parametrize("leased", ["give back"], indirect=True)
async def test_a_lease_that_is_given_back_is_no_obstacle(leased: tuple[Path, int]) -> None:
    file = await LocalMachine().read_file(str(leased[0]))
    assert file is not None
    assert file.content == b"node.id=1"


async def test_a_program_that_not_even_a_kill_ends_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a call of the kernel that nothing interrupts, as of a file system (FUSE) whose program hangs."""
    begun: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda pid, _: begun.append(pid))
    try:
        async with asyncio.timeout(10):
            with pytest.raises(Transient, match="still running after"):
                await LocalMachine().run(["/bin/sleep", "60"], {}, timedelta(seconds=0.05))
    finally:
        os.kill(begun[0], signal.SIGKILL)


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_temporary_directory_that_is_gone_is_told_and_may_come_back(
    is_known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python looks for one when it first needs one, and keeps to it."""
    gone = tmp_path / "gone"
    monkeypatch.setattr(tempfile, "tempdir", str(gone) if is_known else None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(gone)])
    machine = LocalMachine()
    with pytest.raises(Transient, match=r"the temporary directory of this worker \(.*\): No .*; make it again"):
        await machine.run(["/bin/true"], {}, timedelta(seconds=30))
    gone.mkdir()
    assert (await machine.run(["/bin/true"], {}, timedelta(seconds=30))).exit_code == 0
