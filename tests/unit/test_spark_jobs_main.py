"""The entry point for people: one JSON file in, a summary and an exit code out."""

import json
import shutil
from pathlib import Path

import pytest

from spark.jobs.main import main
from spark.staging import write_rows
from tests.unit.drift_oracle import Row
from tests.unit.generated_clusters import rows_of
from tests.unit.test_spark_engine_oracle import job_of

HERE: Row = {"topic_id": None, "segment": "", "batch": -1, "at": 1}


def written(directory: Path, left: list[str], right: list[str], not_read: tuple[str, ...] = ()) -> str:
    write_rows(directory / "left", rows_of({"topic": [{"topic": name, **HERE} for name in left]}), not_read)
    write_rows(directory / "right", rows_of({"topic": [{"topic": name, **HERE} for name in right]}))
    job = directory / "job.json"
    job.write_text(job_of(directory).model_dump_json())
    return str(job)


def test_clean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([written(tmp_path, ["a"], ["a"])]) == 0
    assert capsys.readouterr().out.startswith("clean: 0 findings, engine local\n")


def test_drift_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([written(tmp_path, ["a", "lost"], ["a"])]) == 1
    assert "block missing_right topic lost: left topic_id=null, right None" in capsys.readouterr().out


def test_what_one_side_alone_can_say_is_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The quorum's log has no claim, ZooKeeper has: that is no difference."""
    job = Path(written(tmp_path, ["a"], ["a"]))
    job.write_text(json.dumps({name: value for name, value in json.loads(job.read_text()).items() if name != "kinds"}))
    shutil.rmtree(tmp_path / "left")
    claim: Row = {"name": "cluster-id", "value": "xyz", "segment": "", "batch": -1, "at": 1}
    write_rows(tmp_path / "left", rows_of({"topic": [{"topic": "a", **HERE}], "claim": [claim]}))
    assert main([str(job)]) == 0
    assert capsys.readouterr().out.startswith("clean: 0 findings")


def test_inconclusive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([written(tmp_path, ["a"], ["a"], ("/config: no permission",))]) == 2
    assert "not read: /config: no permission" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "is no job: the file: Invalid JSON"),
        ("{}", "check-1.json is no job: id: Field required; left: Field required"),
        (None, "cannot be read: No such file"),
    ],
)
def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, told: str) -> None:
    path = tmp_path / "check-1.json"
    if content is not None:
        path.write_text(content)
    assert main([str(path)]) == 3
    assert told in capsys.readouterr().err
    assert main([]) == 3


def test_rows_that_are_not_there_are_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "job.json"
    job.write_text(job_of(tmp_path).model_dump_json())
    assert main([str(job)]) == 3
    assert "never completed" in capsys.readouterr().err
