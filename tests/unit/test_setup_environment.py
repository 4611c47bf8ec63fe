"""`make setup` without a network: when it has nothing to do, which uv it takes, and what it says when it cannot."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from setup.environment import INPUTS, Setup, SetupError

REPOSITORY = Path(__file__).parent.parent.parent


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What set-up reads of a checkout, with an environment that looks finished."""
    for name in (*INPUTS, "pyproject.toml"):
        target = tmp_path / "checkout" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPOSITORY / name, target)
    python = tmp_path / "checkout" / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (tmp_path / "kafka").mkdir()
    return tmp_path / "checkout"


@pytest.fixture
def done(checkout: Path) -> Setup:
    setup = Setup(checkout, {"PATH": os.environ["PATH"]})
    setup._write_stamp(checkout.parent / "kafka")
    assert setup.is_done()
    return setup


def test_nothing_to_do_starts_no_process(done: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a process was started"))
    done.run()


@pytest.mark.parametrize("changed", INPUTS)
def test_another_lock_is_installed(done: Setup, checkout: Path, changed: str) -> None:
    with (checkout / changed).open("a") as file:
        file.write("\n# changed\n")
    assert not done.is_done()


def test_settings_of_tools_install_nothing(done: Setup, checkout: Path) -> None:
    text = (checkout / "pyproject.toml").read_text()
    (checkout / "pyproject.toml").write_text(text.replace("line-length = 128", "line-length = 100"))
    assert done.is_done()
    (checkout / "pyproject.toml").write_text(text.replace('version = "0.1.0"', 'version = "0.1.1"'))
    assert not done.is_done()


def test_what_was_removed_since_is_made_again(done: Setup, checkout: Path) -> None:
    (checkout.parent / "kafka").rmdir()
    assert not done.is_done()


def test_an_interpreter_that_is_gone_is_noticed(done: Setup, checkout: Path) -> None:
    (checkout / ".venv" / "bin" / "python").unlink()
    (checkout / ".venv" / "bin" / "python").symlink_to("/no/such/python")
    assert not done.is_done()


def test_another_cache_is_filled(done: Setup, checkout: Path) -> None:
    assert not Setup(checkout, {"KEEPERLESS_CACHE": "/elsewhere"}).is_done()


@pytest.mark.parametrize("stamp", ["", "{", json.dumps({"fingerprint": "another"})])
def test_half_a_stamp_is_none(done: Setup, checkout: Path, stamp: str) -> None:
    (checkout / ".venv" / "keeperless-setup.json").write_text(stamp)
    assert not done.is_done()


def fake_uv(folder: Path, script: str) -> str:
    folder.mkdir()
    uv = folder / "uv"
    uv.write_text(f"#!/bin/sh\n{script}\n")
    uv.chmod(0o755)
    return str(uv)


def test_the_uv_on_path_is_used(checkout: Path, tmp_path: Path) -> None:
    uv = fake_uv(tmp_path / "bin", 'echo "uv 0.9.1 (abc 2025-01-01)"')
    assert Setup(checkout, {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}).uv() == uv


@pytest.mark.parametrize("script", ['echo "uv 0.1.0"', "exit 127", "echo uv", "echo something else entirely"])
def test_a_uv_that_is_old_or_does_not_run_is_passed_over(
    checkout: Path, tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_uv(tmp_path / "bin", script)
    monkeypatch.setattr(Setup, "own_uv", lambda _: "our own")
    assert Setup(checkout, {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}).uv() == "our own"


def test_packages_come_without_a_line_for_each(checkout: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A real uv says nothing when it is asked to, but what goes wrong."""
    uv = fake_uv(tmp_path / "bin", 'case " $* " in *" --quiet "*) ;; *) echo " + package==1" >&2 ;; esac')
    Setup(checkout, {"PATH": "/usr/bin:/bin"})._install(uv)
    assert " + " not in capfd.readouterr().err


def test_without_venv_it_says_what_to_install(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SetupError, match=r"python3\.\d+-venv"):
        Setup(checkout, {"PATH": "/usr/bin:/bin"}).own_uv()


def test_our_tools_never_see_somebody_elses_environment(checkout: Path) -> None:
    given = {"PATH": "/usr/bin:/bin", "VIRTUAL_ENV": "/another", "PYTHONPATH": "/x", "UV_PYTHON": "3.9"}
    tools = Setup(checkout, given).tool_environment()
    assert tools["UV_PYTHON_DOWNLOADS"] == "never"
    assert not {"VIRTUAL_ENV", "PYTHONPATH", "UV_PYTHON"} & tools.keys()


def test_an_old_python_is_told_so() -> None:
    """The check has to be readable by that old Python; here it is only made to believe that we are one."""
    code = "import sys; sys.version_info = (3, 9, 1); import runpy; runpy.run_module('setup', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "needs Python 3.11 or newer" in done.stderr
    assert "make setup PYTHON=" in done.stderr
    assert "Traceback" not in done.stderr
