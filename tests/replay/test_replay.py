"""Histories of real migrations, replayed through the workflow as it is now."""

import gzip
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from workflows.migration import Migration
from workflows.worker import RUNNER

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json.gz"))


def text_of(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


async def replay(history: str) -> None:
    replayer = Replayer(workflows=[Migration], workflow_runner=RUNNER, data_converter=pydantic_data_converter)
    await replayer.replay_workflow(WorkflowHistory.from_json("cluster/recorded", history))


def test_every_phase_has_its_run() -> None:
    """Of the way to KRaft, and of the way back from it."""
    assert len([path for path in HISTORIES if path.name.startswith("migration-")]) >= 6
    assert len([path for path in HISTORIES if path.name.startswith("way-back-")]) >= 4


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.name)
async def test_a_recorded_run_replays(path: Path) -> None:
    await replay(text_of(path))


async def test_a_history_of_other_commands_does_not() -> None:
    """The test above can fail: a run whose first activity was another one is refused."""
    with pytest.raises(NondeterminismError):
        await replay(text_of(HISTORIES[0]).replace('"claim_cluster"', '"seize_cluster"'))
