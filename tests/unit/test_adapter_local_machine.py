"""What an operator is told of files that the worker cannot use."""

import errno
import os
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
