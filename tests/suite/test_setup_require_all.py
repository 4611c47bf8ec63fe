"""`KEEPERLESS_REQUIRE_ALL`, by running small suites under it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parent.parent / "conftest.py"
CLUSTER = "@pytest.mark.cluster\ndef test_cluster(): pass\n"
PLAIN = "def test_plain(): pass\n"
SKIPPED = "def test_skipped(): pytest.skip('no such tool')\n"
MODULE_SKIPPED = "pytest.skip('no such tool', allow_module_level=True)\n"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a suite of one file, and tells how it ended."""

    def run_suite(*parts: str, required: str = "1", options: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
        (tmp_path / "conftest.py").write_text(CONFTEST.read_text())
        (tmp_path / "test_suite.py").write_text("import pytest\n" + "".join(parts))
        (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = cluster\n")
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "KEEPERLESS_REQUIRE_ALL": required, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        )

    return run_suite


def test_a_run_with_everything_passes(run: Run) -> None:
    done = run(PLAIN, CLUSTER)
    assert done.returncode == 0, done.stdout
    assert "on real clusters: 1 tests passed" in done.stdout


@pytest.mark.parametrize("skipped", [SKIPPED, MODULE_SKIPPED, "@pytest.mark.skipif(True, reason='x')\ndef test_if(): pass\n"])
def test_a_skip_fails_the_run(run: Run, skipped: str) -> None:
    done = run(CLUSTER, skipped)
    assert done.returncode not in {0, 5}, done.stdout
    assert "allows no skip" in done.stdout


def test_a_run_without_a_cluster_test_fails(run: Run) -> None:
    done = run(PLAIN)
    assert done.returncode == 1, done.stdout
    assert "no test on a real cluster has passed" in done.stdout


def test_where_only_skips_are_forbidden_no_cluster_is_needed(run: Run) -> None:
    assert run(PLAIN, required="skips").returncode == 0
    assert run(PLAIN, SKIPPED, required="skips").returncode == 1


def test_a_name_is_no_mark(run: Run) -> None:
    named = "@pytest.mark.parametrize('what', ['cluster'])\ndef test_named(what): pass\n"
    assert run(PLAIN, named).returncode == 1


@pytest.mark.parametrize("skipped", [SKIPPED, MODULE_SKIPPED])
def test_several_workers_are_one_run(run: Run, skipped: str) -> None:
    workers = ("-p", "xdist.plugin", "-n", "2")
    done = run(PLAIN, CLUSTER, options=workers)
    assert done.returncode == 0, done.stdout
    assert "on real clusters: 1 tests passed" in done.stdout
    assert run(PLAIN, options=workers).returncode == 1
    assert run(CLUSTER, skipped, options=workers).returncode not in {0, 5}


def test_an_expected_failure_is_no_skip(run: Run) -> None:
    assert run(CLUSTER, "@pytest.mark.xfail\ndef test_known(): assert False\n").returncode == 0


def test_nobody_else_is_bothered(run: Run) -> None:
    assert run(PLAIN, SKIPPED, required="").returncode == 0


def test_a_list_of_the_tests_is_no_run(run: Run) -> None:
    assert run(PLAIN, options=("--collect-only",)).returncode == 0
