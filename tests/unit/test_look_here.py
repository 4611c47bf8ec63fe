"""What is said of the machine on which keeperless-activities itself runs."""

import asyncio
from pathlib import Path

import pytest

from activities.diagnosis.machine_notes import look_here


def test_a_release_that_was_pruned_under_the_process_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own directory is gone, as after a deploy that nobody restarted it for."""
    release = tmp_path / "release"
    release.mkdir()
    monkeypatch.chdir(release)
    before = asyncio.run(look_here())["facts"]
    release.rmdir()
    after = asyncio.run(look_here())["facts"]
    assert f"{release}, rights" in before["data"]
    assert f"{release}, rights" not in after["data"]
    assert after["file"] == before["file"] != {}


def test_who_is_started_again_from_elsewhere_misses_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a kill, by another command line and in another directory."""
    first, second = tmp_path / "first", tmp_path / "second"
    for name, directory in (("worker.py", first), ("keeperless-activities", second)):
        directory.mkdir()
        (directory / name).touch()
    monkeypatch.chdir(first)
    monkeypatch.setattr("sys.argv", [str(first / "worker.py")])
    before = asyncio.run(look_here())["facts"]
    assert str(first / "worker.py") in before["file"]
    monkeypatch.chdir(second)
    monkeypatch.setattr("sys.argv", [str(second / "keeperless-activities")])
    after = asyncio.run(look_here(before))["facts"]
    assert {kind: after[kind] for kind in ("file", "data")} == {kind: before[kind] for kind in ("file", "data")}
    (first / "worker.py").unlink()
    assert str(first / "worker.py") not in asyncio.run(look_here(before))["facts"]["file"]
