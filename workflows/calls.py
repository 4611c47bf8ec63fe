"""`Calls`: what the interpreter asks of activities: queue, time limits, retries, and the line that Temporal's UI shows."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy

from domain.contracts import (
    ActivityName,
    AdoptRequest,
    Assessment,
    AssessRequest,
    CheckOutcome,
    CheckRequest,
    Claim,
    ClaimRequest,
    Memory,
    MigrationInput,
    RecordRequest,
    RollbackAnswer,
    RollbackRequest,
    StepOutcome,
    StepRequest,
    TaskQueue,
)
from domain.decisions import HEARTBEAT, Step
from domain.drift.report import CheckName
from domain.records import EventDraft, Progress
from workflows.orders import Orders
from workflows.outbox import Outbox
from workflows.telling import CLUSTER, summary_of, summary_of_record

FOREVER = RetryPolicy(initial_interval=timedelta(seconds=1), backoff_coefficient=1.5, maximum_interval=timedelta(seconds=15))
"""A thing that does not answer is asked again until it does: a migration waits, it does not fail."""

AT_ONCE = RetryPolicy(
    initial_interval=timedelta(milliseconds=200), backoff_coefficient=1.5, maximum_interval=timedelta(seconds=2)
)
"""For what must not be left half done: in the revert window the cluster may be without a controller."""

LOOK_TIMEOUT = timedelta(minutes=2)
RECORD_TIMEOUT = timedelta(seconds=20)
"""For the ledger, which answers or gives up within five: a worker that was killed with the task in its hands is missed soon."""
WATCH_TIMEOUT = timedelta(days=1)
"""A watch is asked anew after a day; a retried attempt adds nothing to the history, so months of waiting cost nothing."""


@dataclass
class Calls:
    """`generation` is known once the cluster has been claimed; every later call carries it."""

    request: MigrationInput
    outbox: Outbox
    generation: int
    memory: Memory
    """As the last look gave it."""
    unchecked_since: datetime | None = None
    """When a comparison was not taken by any worker; nothing since one was."""
    has_begun: bool = False
    """Whether this chain of runs has taken a step."""

    @property
    def is_claimed(self) -> bool:
        return self.generation > 0

    async def claim(self) -> Claim:
        """Take the cluster for this chain of runs."""
        claim: Claim = await workflow.execute_activity(
            ActivityName.CLAIM,
            ClaimRequest(migration_id=self.request.migration_id, first_run_id=workflow.info().first_execution_run_id),
            result_type=Claim,
            task_queue=TaskQueue.CLUSTER,
            start_to_close_timeout=LOOK_TIMEOUT,
            retry_policy=FOREVER,
            summary=f"Claim cluster {self.request.cluster} for this migration",
        )
        self.generation = claim.generation
        return claim

    def assess(self, orders: Orders) -> "workflow.ActivityHandle[Assessment]":
        """Look once."""
        return workflow.start_activity(
            ActivityName.ASSESS,
            self._assess_request(orders, seen=None),
            result_type=Assessment,
            task_queue=TaskQueue.CLUSTER,
            start_to_close_timeout=LOOK_TIMEOUT,
            heartbeat_timeout=HEARTBEAT,
            retry_policy=FOREVER,
            summary="Look at the cluster and decide",
        )

    def watch(self, orders: Orders, seen: str, awaited: str) -> "workflow.ActivityHandle[Assessment]":
        """Look until the decision's digest is not `seen` any more."""
        return workflow.start_activity(
            ActivityName.WATCH,
            self._assess_request(orders, seen),
            result_type=Assessment,
            task_queue=TaskQueue.WATCH,
            start_to_close_timeout=WATCH_TIMEOUT,
            heartbeat_timeout=HEARTBEAT,
            retry_policy=FOREVER,
            summary=f"Watch: {awaited}",
        )

    def perform(self, step: Step, number: int, node: str, orders: Orders, looks: int) -> "workflow.ActivityHandle[StepOutcome]":
        """Carry out the step with this number, which is the same for all its attempts."""
        how = step.how
        return workflow.start_activity(
            how.activity,
            StepRequest(
                **self._context(orders),
                step_id=f"{self.request.migration_id}/{number}",
                step=step,
                applied_commands=tuple(orders.applied),
                looks=looks,
            ),
            result_type=StepOutcome,
            task_queue=how.queue,
            start_to_close_timeout=how.limit,
            heartbeat_timeout=how.heartbeat,
            retry_policy=AT_ONCE if how.is_urgent else FOREVER,
            summary=summary_of(step, node),
        )

    def check(self, step: Step, number: int) -> "workflow.ActivityHandle[CheckOutcome]":
        """Make the check of a step, which has this number: all its attempts publish one report.

        One that nobody takes fails, after the time that a check is repeated after: a missing worker is told, not waited for.
        """
        request, how = self.request, step.how
        return workflow.start_activity(
            how.activity,
            CheckRequest(
                report_id=f"{request.migration_id}.{number}",
                kind=request.kind,
                cluster=request.cluster,
                check=CheckName(how.check or ""),
                migration_id=request.migration_id,
                policy=request.policy,
            ),
            result_type=CheckOutcome,
            task_queue=how.queue,
            schedule_to_close_timeout=how.given_up_after,
            schedule_to_start_timeout=request.policy.recheck_interval,
            start_to_close_timeout=how.limit,
            heartbeat_timeout=how.heartbeat,
            retry_policy=FOREVER,
            summary=summary_of(step, CLUSTER),
        )

    async def record(self, events: tuple[EventDraft, ...], progress: Progress | None) -> None:
        """Have the ledger write down what happened."""
        await workflow.execute_activity(
            ActivityName.RECORD,
            RecordRequest(
                migration_id=self.request.migration_id,
                cluster=self.request.cluster,
                generation=self.generation,
                events=events,
                progress=progress,
            ),
            task_queue=TaskQueue.CLUSTER,
            start_to_close_timeout=RECORD_TIMEOUT,
            retry_policy=FOREVER,
            summary=summary_of_record(events),
        )

    async def adopt(self, message: AdoptRequest) -> str | None:
        """Make a command of a bare message: why it does not count, or `None` when it does."""
        refused: str | None = await workflow.execute_activity(
            ActivityName.ADOPT,
            message,
            result_type=str,
            task_queue=TaskQueue.CLUSTER,
            start_to_close_timeout=LOOK_TIMEOUT,
            retry_policy=FOREVER,
            summary=f"Write down an order that came as a message: {message.kind}",
        )
        return refused

    async def accept_rollback(self, command_id: str | None, because: str) -> RollbackAnswer:
        """Verify a rollback: the order that all later calls carry, or why there is none."""
        answer: RollbackAnswer = await workflow.execute_activity(
            ActivityName.ACCEPT_ROLLBACK,
            RollbackRequest(
                migration_id=self.request.migration_id,
                kind=self.request.kind,
                cluster=self.request.cluster,
                generation=self.generation,
                command_id=command_id,
                because=because,
                policy=self.request.policy,
            ),
            result_type=RollbackAnswer,
            task_queue=TaskQueue.CLUSTER,
            start_to_close_timeout=LOOK_TIMEOUT,
            heartbeat_timeout=HEARTBEAT,
            retry_policy=FOREVER,
            summary="Verify a rollback" if command_id is not None else "Turn round, because waiting would hurt the cluster",
        )
        return answer

    def _assess_request(self, orders: Orders, seen: str | None) -> AssessRequest:
        return AssessRequest(
            **self._context(orders),
            is_held=orders.is_held,
            seen=seen,
            memory=self.memory,
            unchecked_since=self.unchecked_since,
            has_begun=self.has_begun,
        )

    def _context(self, orders: Orders) -> dict[str, Any]:
        """The fields of `RunContext`."""
        return {
            "migration_id": self.request.migration_id,
            "kind": self.request.kind,
            "cluster": self.request.cluster,
            "generation": self.generation,
            "policy": self.request.policy,
            "approvals": orders.approvals,
            "revert": orders.revert,
            "plan_id": self.request.plan_id,
            "position": self.outbox.position,
        }


def drop(handle: "workflow.ActivityHandle[Any]") -> None:
    """Cancel what is not waited for any more, and take its outcome, so that its end is not logged as an error."""
    handle.add_done_callback(lambda done: done.cancelled() or done.exception())
    handle.cancel()
