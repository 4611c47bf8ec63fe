"""Which of SQLite's files nobody may change, not even root (chattr(1)): it tells a disk that fails, or rights, and neither is.

They are not opened for it: as one was closed again, all locks of this process on it would be lost (fcntl(2)).
"""

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

from ledger.own_files import SUFFIXES

MARKS = {0x10: "immutable", 0x20: "append-only"}
"""STATX_ATTR_IMMUTABLE and STATX_ATTR_APPEND of statx(2)."""
AT_FDCWD, SIZE = -100, 256
ATTRIBUTES = slice(8, 16)
"""Of `struct statx`: stx_attributes."""


def marked(file: str) -> dict[str, str]:
    """By path its marks: of the ledger's file, what lies beside it, and their directory. Empty where the system tells none."""
    paths = [str(Path(file).parent), *(f"{file}{suffix}" for suffix in SUFFIXES)] if file else []
    return {path: marks for path in paths if (marks := " and ".join(_marks_of(path)))}


def _marks_of(path: str) -> Iterator[str]:
    status = ctypes.create_string_buffer(SIZE)
    try:
        failed = ctypes.CDLL(None).statx(AT_FDCWD, os.fsencode(path), 0, 0, status)
    except (AttributeError, OSError):  # neither Linux nor a C library that has it
        return
    attributes = 0 if failed else int.from_bytes(status.raw[ATTRIBUTES], "little")
    yield from (word for bit, word in MARKS.items() if attributes & bit)
