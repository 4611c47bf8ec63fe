"""A ledger whose files nobody may change: SQLite speaks of a disk that fails, or of rights."""

import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import exc

from api.running.observing import worded
from ledger.errors import LedgerMarked, LedgerUnavailable
from ledger.refusals import translated
from ledger.schema import upgrade


@pytest.fixture
def ledger_file(tmp_path: Path) -> Iterator[Path]:
    for suffix in ("", "-wal"):
        (tmp_path / f"ledger.db{suffix}").touch()
    yield tmp_path / "ledger.db"
    if shutil.which("chattr") is not None:
        subprocess.run(("chattr", "-R", "-ai", tmp_path), check=False, stderr=subprocess.DEVNULL)


def mark(how: str, path: Path) -> None:
    if shutil.which("chattr") is None or subprocess.run(("chattr", how, path), check=False, capture_output=True).returncode:
        pytest.skip("nobody may mark a file here")


def refused(code: int, file: Path) -> LedgerUnavailable:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    told = translated(exc.OperationalError("INSERT", None, error), str(file))
    assert isinstance(told, LedgerUnavailable)
    return told


@pytest.mark.parametrize(
    ("how", "what", "words", "code"),
    [
        ("+i", "ledger.db-wal", "immutable", sqlite3.SQLITE_IOERR | 3 << 8),  # SQLITE_IOERR_WRITE
        ("+i", "ledger.db", "immutable", sqlite3.SQLITE_READONLY),
        ("+a", "ledger.db", "append-only", sqlite3.SQLITE_READONLY),
        ("+i", ".", "immutable", sqlite3.SQLITE_CANTOPEN),
    ],
)
def test_a_ledger_that_nobody_may_change_is_no_disk_that_fails(
    ledger_file: Path, how: str, what: str, words: str, code: int
) -> None:
    marked = ledger_file.parent / what
    mark(how, marked)
    told = refused(code, ledger_file)
    assert isinstance(told, LedgerMarked)
    assert f"{marked} ({words}) cannot be changed" in str(told)
    assert f"chattr -i -a {marked}" in told.fix
    assert "smartctl" not in told.fix


async def test_who_starts_with_such_a_ledger_says_so(ledger_file: Path) -> None:
    mark("+i", ledger_file.parent)
    with pytest.raises(LedgerMarked, match="cannot be changed"):
        await upgrade(f"sqlite:///{ledger_file}")


@pytest.mark.parametrize("what", ["nothing", "another"])
def test_a_disk_that_fails_is_still_told(ledger_file: Path, what: str) -> None:
    if what == "another":
        (other := ledger_file.parent / "other.db").touch()
        mark("+i", other)
    assert "smartctl" in refused(sqlite3.SQLITE_IOERR, ledger_file).fix


def test_a_mark_on_a_file_is_no_way_of_a_worker_to_its_ledger() -> None:
    assert worded(LedgerMarked.__name__, "said", "keeperless-activities", "lsattr") == ("said", "lsattr")
