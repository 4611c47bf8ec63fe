"""What is said of the machine on which keeperless-activities itself runs."""

import asyncio
from pathlib import Path

import pytest

from activities.look_here import look_here


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
