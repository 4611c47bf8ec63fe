"""`make setup-checks` without a network: PySpark is there whole or not at all, and `make setup` leaves it alone."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from setup.checks import LOCK, ChecksSetup
from setup.environment import Setup, SetupError

REPOSITORY = Path(__file__).parent.parent.parent
UV = """\
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/pyspark" && touch "$2/pyspark/__init__.py"
"""
MAKES_ARCHIVE = """\
import pyspark
from pathlib import Path

def make_archive():
    (Path(pyspark.__file__).parent.parent / "keeperless-spark.jsa").touch()
"""
"""Stands for `spark.session.classes`, which needs a real Spark."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Set up, but for the checks; with the interpreter's own site-packages as a virtual environment has them."""
    checkout = tmp_path / "checkout"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(checkout / ".venv")], check=True)
    shutil.copyfile(REPOSITORY / LOCK, checkout / LOCK)
    (checkout / ".tools").mkdir()
    classes = checkout / "spark" / "session" / "classes.py"
    classes.parent.mkdir(parents=True)
    classes.write_text(MAKES_ARCHIVE)
    return checkout


def with_uv(checkout: Path, script: str) -> ChecksSetup:
    uv = checkout.parent / "bin" / "uv"
    uv.parent.mkdir(exist_ok=True)
    uv.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "uv 0.13.0" && exit\n{script}')
    uv.chmod(0o755)
    return ChecksSetup(checkout, Setup(checkout, {"PATH": f"{uv.parent}:/usr/bin:/bin"}))


def is_pyspark_seen(checkout: Path) -> bool:
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('pyspark') is None)"
    return subprocess.run([checkout / ".venv" / "bin" / "python", "-c", code], check=False).returncode == 0


def test_it_is_seen_when_it_is_there_and_the_next_time_there_is_nothing_to_do(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = with_uv(checkout, UV)
    assert not checks.is_done()
    assert not is_pyspark_seen(checkout)
    checks.run()
    assert checks.is_done()
    assert is_pyspark_seen(checkout)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a process was started"))
    checks.run()


def test_a_broken_download_leaves_nothing(checkout: Path) -> None:
    with pytest.raises(SetupError, match="PySpark could not be installed"):
        with_uv(checkout, f"{UV}exit 2\n").run()
    assert not is_pyspark_seen(checkout)
    checks = with_uv(checkout, UV)
    assert not checks.is_done()
    checks.run()
    assert is_pyspark_seen(checkout)
    assert [path.name for path in (checkout / ".venv").glob("checks*")] == [checks.folder.name]


def test_another_lock_replaces_it_and_a_broken_replacement_leaves_the_old_one(checkout: Path) -> None:
    with_uv(checkout, UV).run()
    with (checkout / LOCK).open("a") as lock:
        lock.write("# changed\n")
    with pytest.raises(SetupError):
        with_uv(checkout, "exit 2\n").run()
    assert is_pyspark_seen(checkout)
    checks = with_uv(checkout, UV)
    checks.run()
    assert [path.name for path in (checkout / ".venv").glob("checks*")] == [checks.folder.name]


def test_it_was_removed_since(checkout: Path) -> None:
    checks = with_uv(checkout, UV)
    checks.run()
    shutil.rmtree(checks.folder)
    assert not checks.is_done()


def test_interrupted_it_ends_its_tools(tmp_path: Path) -> None:
    """The demo stops it so. A download that went on would outlive the demo."""
    mark = tmp_path / "started"
    code = (
        "import sys; from pathlib import Path; from setup.environment import Setup, told\n"
        f"setup = Setup(Path({str(tmp_path)!r}), dict(PATH='/usr/bin:/bin'))\n"
        f"sys.exit(told(lambda: setup.call(['sh', '-c', 'echo $$ > {mark}.new; mv {mark}.new {mark}; exec sleep 60'], '')))"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=REPOSITORY) as setting_up:
        deadline = time.monotonic() + 60
        while not mark.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        tool = Path("/proc") / mark.read_text().strip()
        assert tool.exists()
        setting_up.send_signal(signal.SIGTERM)
        assert setting_up.wait(30) == 143
    assert not tool.exists()
