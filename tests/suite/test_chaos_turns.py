"""`.ci/chaos-turns` against the tests that there are: a slow test that CI forgets would rot."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.timeout(600)
"""Everything is collected, twice."""


def test_every_slow_test_has_its_turn_and_no_turn_names_another() -> None:
    lines = (REPOSITORY / ".ci" / "chaos-turns").read_text("utf-8").splitlines()
    named = [test for line in lines if not line.startswith("#") for test in line.split()]
    slow = collected("-m", "chaos")
    turns = [test for name in named for test in slow if name in names_of(test)]
    assert sorted(turns) == sorted(slow)
    assert not set(named) - {name for test in slow for name in names_of(test)}


def test_what_runs_every_day_has_none_of_them() -> None:
    everyday = collected("tests/cluster", "tests/spark")
    assert everyday
    assert not everyday & collected("-m", "chaos")


def names_of(test: str) -> set[str]:
    """Itself, all of its parameters, or its whole file."""
    return {test, test.partition("[")[0], test.partition("::")[0]}


@cache
def collected(*arguments: str) -> set[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *arguments]
    told = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=280).stdout
    return {line for line in told.splitlines() if "::" in line}
