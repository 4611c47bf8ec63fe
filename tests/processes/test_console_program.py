"""What a person gets from our programs before they serve: help, version, or one sentence and an exit code. Real processes."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel

from activities.settings import ActivitySettings
from api.settings import ApiSettings
from console.worker_settings import WorkerSettings
from ledger.program import LedgerSettings
from spark.settings import CheckSettings
from tests.conformance.conftest import is_current

REPOSITORY = Path(__file__).parent.parent.parent
SCRIPTS: dict[str, str] = {
    name: place.partition(":")[0]
    for name, place in tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"].items()
}
WORKERS = sorted(set(SCRIPTS) - {"keeperless-api", "keeperless-ledger"})
SETTINGS: dict[str, tuple[type[BaseModel], ...]] = {
    "keeperless-api": (ApiSettings,),
    "keeperless-workflows": (WorkerSettings,),
    "keeperless-activities": (ActivitySettings,),
    "keeperless-checks": (ActivitySettings, CheckSettings),
    "keeperless-ledger": (LedgerSettings,),
}


def run(program: str, home: Path, *words: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(REPOSITORY)} | settings
    command = [sys.executable, "-m", SCRIPTS[program], *words]
    return subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, check=False, timeout=120)


def error_of(done: "subprocess.CompletedProcess[str]") -> str:
    """What its log ends with. A traceback would be no JSON."""
    return str(json.loads(done.stderr.splitlines()[-1])["error"])


@pytest.mark.parametrize("program", sorted(SCRIPTS))
def test_help_names_the_program_and_every_setting_and_starts_nothing(program: str, tmp_path: Path) -> None:
    done = run(program, tmp_path, "--help", KEEPERLESS_PORT="not a number")
    assert (done.returncode, done.stderr, list(tmp_path.iterdir())) == (0, "", [])
    assert done.stdout.startswith(f"usage: {program} ")
    named = {f"KEEPERLESS_{field.upper()}" for model in SETTINGS[program] for field in model.model_fields}
    assert named == {word for word in done.stdout.split() if word.startswith("KEEPERLESS_")}
    assert str(Path.home()) not in done.stdout or Path.home() == Path("/")


@pytest.mark.parametrize("program", sorted(SCRIPTS))
def test_version_is_that_of_the_release_and_starts_nothing(program: str, tmp_path: Path) -> None:
    done = run(program, tmp_path, "--version")
    release = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert (done.returncode, done.stdout, list(tmp_path.iterdir())) == (0, f"{program} {release}\n", [])


def test_a_wrong_argument_is_refused(tmp_path: Path) -> None:
    done = run("keeperless-workflows", tmp_path, "--port", "8080")
    assert done.returncode == 2
    assert "unrecognized arguments" in done.stderr


@pytest.mark.parametrize("program", WORKERS)
def test_a_missing_temporal_is_one_sentence_and_an_exit_code(program: str, tmp_path: Path) -> None:
    done = run(program, tmp_path, TEMPORAL_ADDRESS="127.0.0.1:1")
    said = "Temporal does not answer at 127.0.0.1:1 (Connection refused). Start it, or set TEMPORAL_ADDRESS."
    assert (done.returncode, error_of(done)) == (os.EX_UNAVAILABLE, said)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("program", "settings", "words"),
    [
        (
            "keeperless-activities",
            {"KEEPERLESS_MAX_EFFECTS": "hunter2"},
            "KEEPERLESS_MAX_EFFECTS: Input should be",
        ),
        (
            "keeperless-activities",
            {"KEEPERLESS_LEDGER_URL": "mysql://a:hunter2@db/x"},
            "KEEPERLESS_LEDGER_URL: a ledger",
        ),
        ("keeperless-ledger", {"KEEPERLESS_LEDGER_URL": "mysql://a:hunter2@db/x"}, "KEEPERLESS_LEDGER_URL: a ledger"),
        ("keeperless-checks", {"KEEPERLESS_SPARK": "hunter2"}, "KEEPERLESS_SPARK: "),
        ("keeperless-workflows", {"TEMPORAL_PROFILE": "nowhere"}, "Temporal's settings cannot be read: Profile 'nowhere'"),
        ("keeperless-api", {"KEEPERLESS_PORT": "99999"}, "KEEPERLESS_PORT: Input should be less than or equal to 65535"),
    ],
)
def test_a_wrong_setting_is_named_without_its_value(program: str, settings: dict[str, str], words: str, tmp_path: Path) -> None:
    done = run(program, tmp_path, **settings)
    assert (done.returncode, error_of(done)[: len(words)]) == (2, words)
    assert "hunter2" not in done.stderr
    assert "Traceback" not in done.stderr


def test_the_ledger_is_created_by_its_program_and_again_is_no_error(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new/ledger.db"
    for _ in range(2):
        done = run("keeperless-ledger", tmp_path, KEEPERLESS_LEDGER_URL=url)
        assert done.returncode == 0, done.stderr
    assert is_current(url)


def test_a_ledger_that_does_not_answer_is_one_sentence_and_an_exit_code(tmp_path: Path) -> None:
    done = run("keeperless-ledger", tmp_path, KEEPERLESS_LEDGER_URL="postgresql://eve:hunter2@127.0.0.1:1/ledger")
    assert (done.returncode, "127.0.0.1" in error_of(done)) == (1, True)
    assert "hunter2" not in done.stderr
    assert "Traceback" not in done.stderr


def test_every_program_has_its_settings_here() -> None:
    assert set(SETTINGS) == set(SCRIPTS)
