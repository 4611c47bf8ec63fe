"""What `make demo` plays, as a newcomer would see it, with nobody at the gate (YES=1).

A plot fails by itself: when something acknowledged is lost, or when what it puts in the way is named by nobody.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
PATIENCE_SECONDS = 1700
AT_THE_GATE = 'until [ "$(curl -s $API/migrations/$ID | field gates)" != "[]" ]; do sleep 2; done\n'
AT_THE_END = 'until [ "$(curl -s $API/migrations/$ID | field ended_at)" != null ]; do sleep 2; done\n'
LAST_STATE = "echo; curl -s $API/migrations/$ID | field state\n"

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
    assert "the migration reports otherwise" not in told, told


def test_the_calls_of_the_docs_lead_a_migration_to_its_end_as_they_stand(directory: Path) -> None:
    """Pasted into one shell in the page's order. Left out: the registration, which the demo makes, the stream, the rollback."""
    demo = [sys.executable, "-m", "playground.demo", "--story", "none", "--directory", str(directory)]
    started = subprocess.run(demo, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True)
    addresses = "\n".join(re.findall(r"^(?:API|CLUSTER)=\S+$", started.stdout, re.MULTILINE))
    page = (REPOSITORY / "docs" / "calls.md").read_text(encoding="utf-8").partition("\n## Go back\n")[0]
    begin, *blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    pasted = [block for block in blocks if "-X PUT" not in block and "event-stream" not in block]
    pasted.insert(next(n for n, block in enumerate(pasted) if "HASH=" in block), AT_THE_GATE)
    script = "\n".join([begin, addresses, *pasted, AT_THE_END, LAST_STATE])
    done = subprocess.run(
        ["bash", "-c", script], cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert done.stdout.splitlines()[-1] == "succeeded", f"{done.stdout[-4000:]}\n{done.stderr}"
