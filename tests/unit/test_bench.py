"""The bench at its smallest, without what only it needs: it still runs, believes no wrong result, and reads what it wrote."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from bench.compare import groups, lines, run
from bench.contenders import BY_NAME
from bench.inputs import cluster_inputs, segment_inputs
from bench.measuring import BenchError, running
from bench.migration.ours import ensure_waves, stretches_of
from bench.migration.processor import Meter
from bench.raw import RawCluster
from domain.errors import Transient

WITHOUT_PACKAGES = ["ours-raw-local", "ours-local", "plain-reading", "walk"]


def test_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = run(list(groups([1000], WITHOUT_PACKAGES, 4)), 2, tmp_path / "inputs", tmp_path / "results")
    told = json.loads(written.read_text())
    assert [[one["name"] for one in group["contenders"]] for group in told["groups"]] == [
        ["ours-raw-local"],
        ["ours-local"],
        ["plain-reading", "walk"],
    ]
    for group in told["groups"]:
        assert group["contenders"][0]["ratio"] == 1
        for one in group["contenders"]:
            assert len(one["seconds"]) == 2
            assert min(one["seconds"]) > 0
            assert one["peak_mebibytes"] > 10
    assert told["groups"][0]["truth"]["differs"] == 3
    assert capsys.readouterr().out.splitlines() == [
        line for group in told["groups"] for one in lines(group) for line in one.split("\n")
    ]


def test_a_wrong_result_ends_the_run(tmp_path: Path) -> None:
    inputs, truth = cluster_inputs(tmp_path, 500)
    with (
        running(BY_NAME["ours-local"], inputs, tmp_path / "own", truth | {"differs": 2}) as runner,
        pytest.raises(BenchError, match=r"ours-local found .*'differs': 3.*, which is wrong"),
    ):
        runner.play()


def test_who_fails_is_told_with_his_words(tmp_path: Path) -> None:
    inputs, truth = segment_inputs(tmp_path, 1)
    segment = min(inputs.glob("*.log"))
    segment.write_bytes(segment.read_bytes()[:-1] + b"!")
    with (
        running(BY_NAME["walk"], inputs, tmp_path / "own", truth) as runner,
        pytest.raises(BenchError, match=r"(?s)walk has ended.*has a wrong checksum"),
    ):
        runner.play()


def test_inputs_are_made_once_and_are_the_same_again(tmp_path: Path) -> None:
    inputs, truth = cluster_inputs(tmp_path, 200)
    before = {path: path.stat().st_mtime_ns for path in inputs.rglob("*")}
    assert cluster_inputs(tmp_path, 200) == (inputs, truth)
    assert {path: path.stat().st_mtime_ns for path in inputs.rglob("*")} == before
    again, _ = cluster_inputs(tmp_path / "again", 200)
    for name in ("snapshot.4d", "kraft/00000000000010000000.log"):
        assert (again / name).read_bytes() == (inputs / name).read_bytes()


def test_so_much_differs_as_is_promised() -> None:
    truth = RawCluster.of(1_000_000).truth()
    assert truth["missing_left"] + truth["missing_right"] + truth["differs"] == 300


def test_a_migration_is_told_by_phase_and_by_roll() -> None:
    def event(second: float, kind: str, **data: object) -> dict[str, object]:
        return {"at": f"2026-01-01T00:00:{second:06.3f}+00:00", "kind": kind, "data": data}

    def step(number: int, begun: float, ended: float, action: str, node: str, stage: str) -> list[dict[str, object]]:
        told = {"step": number, "action": action, "node": node, "stage": stage}
        return [event(begun, "step-started", **told), event(ended, "step-done", **told)]

    events = [
        event(0, "claimed"),
        *step(1, 4, 9, "provision-controller", "controller-3001", "migration"),
        *step(2, 9.5, 10, "capture-baseline", "cluster", "migration"),
        *step(3, 10, 15, "roll-node", "broker-1", "migration"),
        *step(4, 16, 18, "compare-copy", "cluster", "migration"),
        *step(5, 18, 23, "roll-node", "broker-1", "kraft"),
        *step(6, 23, 25, "compare-metadata", "cluster", "kraft"),
        event(25.5, "gate-opened"),
        event(26, "approved"),
        *step(7, 26, 30, "roll-node", "controller-3001", "kraft"),
        event(31, "succeeded"),
    ]
    told = stretches_of(events)
    assert told.total == 30.5, "without the person's half second"
    assert told.phases() == {
        "preflight": 4,
        "controllers": 5,
        "roll 1": 6,
        "copy": 3,
        "roll 2": 5,
        "before the gate": 2.5,
        "finalising": 4,
        "afterwards": 1,
    }
    assert told.rolls() == [5, 5]


@pytest.mark.parametrize(
    ("waves", "is_well"),
    [([1, 2, 2, 1], True), ([2, 2, 2], False), ([1, 2, 3], False), ([1, 3, 1, 1], False), ([1, 2, 1], False)],
)
def test_a_round_counts_only_with_a_canary_first_and_one_broker_last(waves: list[int], *, is_well: bool) -> None:
    def begun(stage: str, sizes: list[int]) -> Iterator[dict[str, Any]]:
        for number, size in enumerate(sizes):
            data = {"step": f"{stage}-{number}", "action": "roll-node", "node": "broker-1", "stage": stage}
            yield from [{"kind": "step-started", "data": data}] * size

    events = [*begun("migration", waves), *begun("kraft", [2, 2, 2])]
    with nullcontext() if is_well else pytest.raises(Transient, match="in waves of"):
        ensure_waves(events, 6, 2)


def test_processor_seconds_of_what_has_ended_are_kept(tmp_path: Path) -> None:
    busy = "import time; end = time.process_time() + 0.6\nwhile time.process_time() < end: pass"
    with Meter(tmp_path) as meter:
        subprocess.run([sys.executable, "-c", busy, "activities.worker", str(tmp_path)], check=True)
    assert 0.1 < meter.seconds()["activities"] < 1
