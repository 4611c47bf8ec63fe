"""What an operator is told of files that the worker cannot use."""

import errno
import os
from pathlib import Path

import pytest

from activities.adapters.nodes.local import _os_errors
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
