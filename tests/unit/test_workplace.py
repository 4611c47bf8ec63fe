"""Directories of attempts: private, kept as long as their process lives, and gone as soon as somebody looks after that."""

import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from activities.check_directories import enter, sweep

REPOSITORY = Path(__file__).parent.parent.parent
ATTEMPT = """
import sys
from pathlib import Path
from activities.check_directories import enter
place = enter(Path(sys.argv[1]), "check-1", "killed")
(place.directory / "look-1" / "log").mkdir(parents=True)
(place.directory / "look-1" / "log" / "0.log").write_text("SCRAM keys")
print("copied", flush=True)
sys.stdin.read()
"""


@contextmanager
def an_attempt(work: Path) -> Iterator["subprocess.Popen[str]"]:
    """In a process of its own, with its copies made."""
    command = [sys.executable, "-c", ATTEMPT, str(work)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "copied\n"
            yield process
        finally:
            process.kill()


def test_what_a_killed_attempt_has_left_is_gone_at_once_and_not_before_it_is_dead(tmp_path: Path) -> None:
    with an_attempt(tmp_path) as process:
        sweep(tmp_path)
        assert [path.read_text() for path in tmp_path.rglob("*.log")] == ["SCRAM keys"]
        process.kill()
        process.wait()
        sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_lies_there_without_a_lock_is_left_over(tmp_path: Path) -> None:
    left = tmp_path / "check-1" / "look-1" / "log"
    left.mkdir(parents=True)
    (left / "0.log").write_text("SCRAM keys")
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_two_attempts_at_one_check_have_nothing_in_common(tmp_path: Path) -> None:
    one, other = enter(tmp_path, "check-1", "one"), enter(tmp_path, "check-1", "other")
    assert stat.S_IMODE(one.directory.stat().st_mode) == 0o700
    one.leave()
    sweep(tmp_path)
    assert other.directory.exists()
    other.leave()
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_ever_was_nothing_is_swept(tmp_path: Path) -> None:
    sweep(tmp_path / "work")


def test_workers_that_begin_sweep_and_leave_at_once_are_in_nobodys_way(tmp_path: Path) -> None:
    """What one removes, another is about to look at: neither fails, and nobody loses what is held."""

    def act(number: int) -> None:
        for turn in range(40):
            place = enter(tmp_path, f"check-{turn % 2}", f"{number}-{turn}")
            (place.directory / "look-1").mkdir()
            sweep(tmp_path)
            (place.directory / "look-1" / "out").mkdir()
            place.leave()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(act, range(8)))
    sweep(tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.parent != tmp_path]
