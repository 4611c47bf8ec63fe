"""Histories of real migrations, replayed through the workflow as it is now."""

from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from workflows.migration import Migration
from workflows.worker import RUNNER

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json"))


def replayer() -> Replayer:
    return Replayer(workflows=[Migration], workflow_runner=RUNNER, data_converter=pydantic_data_converter)


def recorded(path: Path, old: str = "", new: str = "") -> WorkflowHistory:
    return WorkflowHistory.from_json("cluster/recorded", path.read_text().replace(old, new) if old else path.read_text())


def test_every_phase_has_its_run() -> None:
    """Of the way to KRaft, and of the way back from it."""
    assert len([path for path in HISTORIES if path.stem.startswith("migration-")]) >= 6
    assert len([path for path in HISTORIES if path.stem.startswith("way-back-")]) >= 4


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_a_recorded_run_replays(path: Path) -> None:
    await replayer().replay_workflow(recorded(path))


async def test_a_history_of_other_commands_does_not() -> None:
    """The test above can fail: a run whose first activity was another one is refused."""
    history = recorded(HISTORIES[0], '"claim_cluster"', '"seize_cluster"')
    with pytest.raises(NondeterminismError):
        await replayer().replay_workflow(history)
