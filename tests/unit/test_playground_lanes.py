"""The lanes of the slow tests: who runs with whom, and that a failure is one."""

import time
from pathlib import Path

import pytest

from playground import lanes

WINDOW = [f"tests/cluster/test_window.py::test_{name}" for name in "abc"]
BACK = [f"tests/cluster/test_rollback.py::test_back_from[{name}]" for name in ("one-hybrid", "one-kraft")]
MODEL = ["tests/unit/test_model.py::test_large_walks[2]"]


def test_tests_that_share_a_cluster_stay_together_and_every_other_one_is_by_itself() -> None:
    assert lanes.entries_of([BACK[0], *WINDOW, BACK[1]]) == [(BACK[0],), tuple(WINDOW), (BACK[1],)]


def test_what_needs_no_cluster_runs_with_the_first_that_does() -> None:
    assert lanes.entries_of([*BACK, *MODEL]) == [(*MODEL, BACK[0]), (BACK[1],)]
    assert lanes.entries_of(MODEL) == [tuple(MODEL)]


def test_every_file_that_has_to_stay_together_exists() -> None:
    assert all((lanes.REPOSITORY / file).is_file() for file in lanes.SHARED)


def test_one_failure_fails_all_and_everything_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "tests" / "cluster"
    folder.mkdir(parents=True)
    for name, is_so in (("good", True), ("bad", False)):
        text = f"import pytest\n@pytest.mark.chaos\ndef test_{name}():\n    print('measured {name}')\n    assert {is_so}\n"
        (folder / f"test_{name}.py").write_text(text, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = chaos\n", encoding="utf-8")
    monkeypatch.setattr(lanes, "REPOSITORY", tmp_path)
    assert lanes.main(["tests/cluster/test_good.py"]) == 0
    assert "measured good" in capsys.readouterr().out
    assert lanes.main(["tests/cluster", "--", "--no-header"]) == 1
    told = capsys.readouterr().out
    assert "measured good" in told
    assert "measured bad" in told
    assert {line.split()[0]: line.split()[-1] for line in told.splitlines()[-3:-1]} == {
        "passed": "tests/cluster/test_good.py::test_good",
        "FAILED": "tests/cluster/test_bad.py::test_bad",
    }


def test_nothing_begins_any_more_once_somebody_has_interrupted_it(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[str, ...]] = []

    def run(tests: tuple[str, ...], _: object) -> lanes.Entry:
        begun.append(tests)
        if len(begun) == 1:
            raise KeyboardInterrupt
        time.sleep(0.2)
        return lanes.Entry(tests)

    monkeypatch.setattr(lanes, "collected", lambda *_: [f"tests/cluster/test_x.py::test_{number}" for number in range(20)])
    monkeypatch.setattr(lanes, "run", run)
    with pytest.raises(KeyboardInterrupt):
        lanes.main(["--lanes", "1", "tests/cluster"])
    assert len(begun) < 20
