"""What `make demo` plays, as a newcomer would see it, with nobody at the gate (YES=1).

A plot fails by itself: when something acknowledged is lost, or when what it puts in the way is named by nobody.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
PATIENCE_SECONDS = 1700

pytestmark = [pytest.mark.cluster, pytest.mark.chaos, pytest.mark.timeout(PATIENCE_SECONDS + 100)]


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "demo"
    subprocess.run(
        [sys.executable, "-m", "playground.demo", "stop", "--directory", tmp_path / "demo"], cwd=REPOSITORY, check=True
    )


@pytest.mark.parametrize("story", ["blocked", "drift", "rollback"])
def test_a_plot_is_played_to_its_end(story: str, directory: Path) -> None:
    command = [sys.executable, "-m", "playground.demo", "--story", story, "--yes", "--directory", str(directory)]
    played = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    told = f"{played.stdout}\n{played.stderr}"
    assert played.returncode == 0, told
    assert " 0 lost" in told, told
    assert "the migration tells otherwise" not in told, told
