"""A kind that the product has never heard of goes through the interpreter, with actions, gates and waits of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import WorkflowHandle
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from domain.contracts import (
    WORKFLOW_TYPE,
    ActivityName,
    ApprovalMessage,
    Assessment,
    AssessRequest,
    Claim,
    ClaimRequest,
    MigrationInput,
    MigrationStatus,
    RecordRequest,
    StepOutcome,
    StepRequest,
    TaskQueue,
)
from domain.decisions import Decision, Done, Execution, Gate, Step, Wait
from domain.records import EventDraft, NodeStatus, OpenGate
from workflows.migration import Migration
from workflows.worker import RUNNER

NOW = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
EVIDENCE = "e" * 64
WET = Wait(reason="paint-is-wet", objects=("wall-1",), means="The paint has to dry. Open a window.")


def painting(colour: str, gate: str | None = None) -> Step:
    summary = f"Paint {{node}} {colour}"
    how = Execution(activity="paint_node", queue=TaskQueue.CLUSTER, summary=summary, limit=timedelta(minutes=1), proves=True)
    return Step(action="paint-node", node_id=1, stage=colour, gate=gate, execution=how)


class Wall:
    """The cluster of this kind, and its activities: `coats` that were painted, and whether the last one is dry."""

    def __init__(self) -> None:
        self.coats: list[str] = []
        self.is_dry = False
        self.events: list[EventDraft] = []
        self.kinds: set[str] = set()
        self.looks = 0

    def decision(self, approvals: dict[str, str]) -> Decision:
        if not self.coats:
            return painting("blue")
        if not self.is_dry:
            return WET
        if "varnish" in self.coats:
            return Done(outcome="VARNISHED")
        return painting("varnish", "glaze") if "glaze" in approvals else Gate(name="glaze", evidence_hash=EVIDENCE)

    @activity.defn(name=ActivityName.CLAIM)
    async def claim(self, _: ClaimRequest) -> Claim:
        return Claim(is_ours=True, generation=1)

    @activity.defn(name=ActivityName.ASSESS)
    async def assess(self, request: AssessRequest) -> Assessment:
        self.kinds.add(request.kind)
        decision = self.decision(request.approvals)
        opened = OpenGate(name="glaze", evidence_hash=EVIDENCE, since=NOW, evidence={})
        looks = int(str(request.memory.get("looks", 0))) + 1
        self.looks = max(self.looks, looks)
        return Assessment(
            phase="PAINTING",
            decision=decision,
            digest=decision.model_dump_json(),
            observation="",
            observed_at=NOW,
            nodes=(NodeStatus(name="wall-1", role="wall", mode="dry", stage="bare", is_ready=True),),
            gate=opened if isinstance(decision, Gate) else None,
            title="from bare to painted",
            readings=f"{looks} looks",
            memory={"looks": looks},
        )

    @activity.defn(name=ActivityName.WATCH)
    async def watch(self, request: AssessRequest) -> Assessment:
        while (seen := await self.assess(request)).digest == request.seen:
            activity.heartbeat()
            await asyncio.sleep(0.02)
        return seen

    @activity.defn(name=ActivityName.RECORD)
    async def record(self, request: RecordRequest) -> None:
        self.events += request.events

    @activity.defn(name="paint_node")
    async def paint_node(self, request: StepRequest) -> StepOutcome:
        self.kinds.add(request.kind)
        self.coats.append(request.step.stage)
        return StepOutcome(is_done=True)


@pytest.fixture
async def wall(temporal: WorkflowEnvironment) -> AsyncIterator[Wall]:
    """With the workers that its migration needs."""
    wall = Wall()
    effects = [wall.claim, wall.assess, wall.record, wall.paint_node]
    async with AsyncExitStack() as stack:
        migrations = Worker(temporal.client, task_queue=TaskQueue.MIGRATIONS, workflows=[Migration], workflow_runner=RUNNER)
        await stack.enter_async_context(migrations)
        await stack.enter_async_context(Worker(temporal.client, task_queue=TaskQueue.CLUSTER, activities=effects))
        await stack.enter_async_context(Worker(temporal.client, task_queue=TaskQueue.WATCH, activities=[wall.watch]))
        yield wall


async def until_waiting(handle: WorkflowHandle[Any, str], reason: str) -> MigrationStatus:
    async with asyncio.timeout(60):
        while True:
            status: MigrationStatus = await handle.query("status", result_type=MigrationStatus)
            if status.progress.waiting is not None and status.progress.waiting.reason == reason:
                return status
            await asyncio.sleep(0.02)


async def test_a_kind_with_words_of_its_own_runs_to_its_end(temporal: WorkflowEnvironment, wall: Wall) -> None:
    """Its steps, its wait, its gate: nothing of the product knows any of their names."""
    asked = MigrationInput(migration_id="m1", kind="paint", cluster="hall")
    start = temporal.client.start_workflow
    handle = await start(WORKFLOW_TYPE, asked, id="cluster/hall", task_queue=TaskQueue.MIGRATIONS, result_type=str)

    waiting = (await until_waiting(handle, "paint-is-wet")).progress.waiting
    assert waiting is not None
    assert (waiting.means, waiting.objects, waiting.for_people) == (WET.means, WET.objects, False)
    wall.is_dry = True

    gate = (await until_waiting(handle, "approval")).progress.gate
    assert gate is not None
    message = ApprovalMessage(gate=gate.name, by="ada", reason="it shines", evidence_hash=gate.evidence_hash, command_id="c1")
    assert await handle.execute_update("approve", message, result_type=str) == "approved"

    assert await handle.result() == "succeeded"
    assert wall.coats == ["blue", "varnish"]
    assert wall.kinds == {"paint"}
    assert wall.looks > 3, "each look knows what the one before gave it"
    assert [e.data["does"] for e in wall.events if e.kind == "step-done"] == ["Paint wall-1 blue", "Paint wall-1 varnish"]
    assert [e.data["gate"] for e in wall.events if e.kind == "approved"] == ["glaze"]
