"""What an operator is told of files that the worker cannot use."""

import asyncio
import errno
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from activities.adapters.nodes.local import LocalMachine, _os_errors
from domain.errors import KeeperlessError, Permanent, Transient


@pytest.mark.parametrize(
    ("code", "kind", "advice"),
    [
        (errno.EPERM, Permanent, "chattr -i"),
        (errno.EACCES, Permanent, "give the worker access"),
        (errno.EISDIR, Permanent, "correct the path"),
        (errno.EXDEV, Permanent, "cross-device"),
        (errno.EROFS, Transient, "ProtectSystem="),
        (errno.EBUSY, Transient, "mount its folder in its place"),
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


async def test_nobody_waits_for_the_other_side_of_a_fifo(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(Permanent, match="no regular file"):
        await LocalMachine().read_part(str(tmp_path / "fifo"), -9, 9)


async def test_a_file_that_hangs_takes_one_thread_however_often_it_is_asked_for(tmp_path: Path) -> None:
    """As on a disk that does not answer: whoever opens a FIFO waits for its other side."""
    machine, hangs, well = LocalMachine(), tmp_path / "hangs", tmp_path / "well"
    os.mkfifo(hangs)
    well.write_text("here")
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    for _ in range(4):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await machine.read_part(str(hangs), 0, 10)
    async with asyncio.timeout(5):
        assert await machine.read_part(str(well), 0, 10) == b"here"
    os.close(os.open(hangs, os.O_WRONLY))  # the other side is there, and gone again: the read ends
    hangs.unlink()
    hangs.write_text("mended")
    async with asyncio.timeout(5):
        assert await machine.read_part(str(hangs), 0, 10) == b"mended"


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
