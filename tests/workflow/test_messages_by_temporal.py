"""Messages with Temporal's own command line move nothing irreversible: only what the ledger has approved does."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from domain.contracts import ActivityName, StepRequest, TaskQueue
from domain.decisions import Step
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.steps import GateName, NodeStage, StepAction

MADE_UP = {"gate": "finalize", "by": "mallory", "reason": "now"}

Cli = Callable[..., Any]


@pytest.fixture
async def at_the_gate(small: Any) -> Any:
    """Dual write, all brokers in KRaft mode, the gate open, nothing approved."""
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    return small


@pytest.fixture
def cli(at_the_gate: Any, temporal_path: str) -> Cli:
    """Runs Temporal's program on the migration's server: its exit code and what it says."""
    address = at_the_gate.client.service_client.config.target_host

    async def run(*arguments: str) -> tuple[int | None, str]:
        process = await asyncio.create_subprocess_exec(
            *(temporal_path, *arguments, "--address", address),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await asyncio.wait_for(process.communicate(), 60)
        return process.returncode, said.decode()

    return run


async def stays_as_it_is(world: Any, before: dict[str, int]) -> bool:
    """No process was restarted, and the gate is still open."""
    await world.until_gate()
    return bool(world.cluster.restarts == before)


async def test_an_approval_as_a_signal_or_an_update_moves_nothing(at_the_gate: Any, cli: Cli) -> None:
    gate, before = await at_the_gate.until_gate(), dict(at_the_gate.cluster.restarts)
    named = ("--workflow-id", at_the_gate.handle.id, "--name", "approve", "--input")
    signalled = MADE_UP | {"evidence_hash": gate.evidence_hash}
    code, said = await cli("workflow", "signal", *named, json.dumps(signalled))
    assert code == 0, said
    await at_the_gate.until_told("signal-ignored")
    await cli("workflow", "update", "execute", *named, json.dumps(signalled | {"command_id": "made-up"}))
    assert (await at_the_gate.until_told("message-ignored")).data["by"] == "mallory"
    assert not await at_the_gate.events("approved")
    assert await at_the_gate.until(lambda: stays_as_it_is(at_the_gate, before))
    assert await at_the_gate.approve_gate() == "approved"
    assert await at_the_gate.result() == "succeeded"


async def test_an_activity_that_is_started_by_name_is_refused(at_the_gate: Any, cli: Cli) -> None:
    """With all that a forger can know: the cluster, its generation, the step."""
    before, cluster = dict(at_the_gate.cluster.restarts), at_the_gate.cluster
    request = StepRequest(
        kind="zk-to-kraft",
        migration_id=at_the_gate.migration_id,
        cluster=cluster.spec.name,
        generation=await at_the_gate.book.generation(cluster.spec.name),
        step_id=f"{at_the_gate.migration_id}/1000",
        step=Step(
            action=StepAction.ROLL_NODE, node_id=cluster.controller_ids[0], stage=NodeStage.KRAFT, gate=GateName.FINALIZE
        ),
        approvals={GateName.FINALIZE: "made-up"},
        policy=at_the_gate.policy,
    )
    for number, forged in enumerate((request, request.model_copy(update={"approvals": {}}))):
        activity = ("--activity-id", f"forged-{number}", "--type", ActivityName.ROLL_NODE, "--task-queue", TaskQueue.CLUSTER)
        limits = ("--start-to-close-timeout", "20s", "--retry-maximum-attempts", "1")
        code, said = await cli("activity", "execute", *activity, *limits, "--input", forged.model_dump_json())
        print(said)
        assert code != 0 or '"is_done":false' in said.replace(" ", "")
    assert await at_the_gate.until(lambda: stays_as_it_is(at_the_gate, before))


async def test_a_paused_activity_holds_the_migration_up_and_moves_nothing(at_the_gate: Any, cli: Cli) -> None:
    before = dict(at_the_gate.cluster.restarts)
    description = await at_the_gate.handle.describe()
    pending = [activity.activity_id for activity in description.raw_description.pending_activities]
    assert pending, "it watches"
    for activity_id in pending:
        code, said = await cli("activity", "pause", "--workflow-id", at_the_gate.handle.id, "--activity-id", activity_id)
        assert code == 0, said
    assert dict(at_the_gate.cluster.restarts) == before
    for activity_id in pending:
        await cli("activity", "unpause", "--workflow-id", at_the_gate.handle.id, "--activity-id", activity_id)
    assert await at_the_gate.approve_gate() == "approved"
    assert await at_the_gate.result() == "succeeded"


async def test_a_reset_run_begins_nothing_that_was_not_approved(at_the_gate: Any, cli: Cli) -> None:
    before = dict(at_the_gate.cluster.restarts)
    named = ("--workflow-id", at_the_gate.handle.id, "--reason", "by hand", "--type", "FirstWorkflowTask")
    code, said = await cli("workflow", "reset", *named)
    assert code == 0, said
    assert await at_the_gate.until(lambda: at_the_gate.has_runs(2))
    await at_the_gate.until_told("run-set-back")
    assert dict(at_the_gate.cluster.restarts) == before


async def test_a_terminated_run_moves_nothing_and_another_migration_goes_on(at_the_gate: Any, cli: Cli) -> None:
    before = dict(at_the_gate.cluster.restarts)
    code, said = await cli("workflow", "terminate", "--workflow-id", at_the_gate.handle.id, "--reason", "by hand")
    assert code == 0, said
    await asyncio.sleep(1)
    assert dict(at_the_gate.cluster.restarts) == before
