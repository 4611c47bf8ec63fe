"""`Calls`: what the interpreter asks of activities: queue, time limits, retries, and the line that Temporal's UI shows."""

from dataclasses import dataclass
from datetime import datetime, timedelta

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
    MigrationInput,
    RecordRequest,
    RollbackAnswer,
    RollbackRequest,
    Silence,
    Standstill,
    StepOutcome,
    StepRequest,
    TaskQueue,
)
from domain.decisions import Step
from domain.policy import STEP_MARGIN, MigrationPolicy, longest_window
from domain.records import EventDraft, Progress
from domain.zk_to_kraft.steps import CHECK_OF, StepAction
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
HEARTBEAT = timedelta(seconds=20)
"""How long a worker may be silent before another takes over: short, so that a killed one is missed soon."""
WINDOW_HEARTBEAT = timedelta(seconds=5)
"""The same in the revert window."""
WATCH_TIMEOUT = timedelta(days=1)
"""A watch is asked anew after a day; a retried attempt adds nothing to the history, so months of waiting cost nothing."""
CHECK_TIMEOUT = timedelta(hours=1)
"""What one comparison may take, of the largest cluster, on the slowest machine."""
END_TIMEOUT = 2 * CHECK_TIMEOUT
"""The same after the end, with all attempts: a migration that has succeeded says so, compared or not."""
ACTIVITY_OF: dict[str, ActivityName] = {
    StepAction.PROVISION_CONTROLLER: ActivityName.PROVISION_CONTROLLER,
    StepAction.ROLL_NODE: ActivityName.ROLL_NODE,
    StepAction.TRY_CANARIES: ActivityName.TRY_CANARIES,
    StepAction.REMOVE_CANARIES: ActivityName.REMOVE_CANARIES,
    StepAction.START_NODE: ActivityName.START_NODE,
    StepAction.FAIL_OVER: ActivityName.FAIL_OVER,
    StepAction.LEAVE_KRAFT: ActivityName.LEAVE_KRAFT,
    StepAction.WIPE: ActivityName.WIPE,
    StepAction.RELEASE_CONFIGURATION: ActivityName.RELEASE_CONFIGURATION,
}


def limit_of(step: Step, policy: MigrationPolicy) -> timedelta:
    """How long an attempt at a step may take: all its own deadlines, and a margin."""
    if step.action == StepAction.LEAVE_KRAFT:
        return longest_window(policy)
    return policy.stop_deadline + policy.restart_deadline + STEP_MARGIN


@dataclass
class Calls:
    """`generation` is known once the cluster has been claimed; every later call carries it."""

    request: MigrationInput
    outbox: Outbox
    generation: int
    silence: Silence | None = None
    """As the last look told it."""
    standstill: Standstill | None = None
    """Likewise."""
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
        policy = self.request.policy
        is_window = step.action == StepAction.LEAVE_KRAFT
        return workflow.start_activity(
            ACTIVITY_OF[step.action],
            StepRequest(
                migration_id=self.request.migration_id,
                cluster=self.request.cluster,
                generation=self.generation,
                step_id=f"{self.request.migration_id}/{number}",
                step=step,
                approvals=orders.approvals,
                applied_commands=tuple(orders.applied),
                looks=looks,
                policy=policy,
                revert=orders.revert,
                plan_id=self.request.plan_id,
                position=self.outbox.position,
            ),
            result_type=StepOutcome,
            task_queue=TaskQueue.CLUSTER,
            start_to_close_timeout=limit_of(step, policy),
            heartbeat_timeout=WINDOW_HEARTBEAT if is_window else HEARTBEAT,
            retry_policy=AT_ONCE if is_window else FOREVER,
            summary=summary_of(step, node),
        )

    def check(self, step: Step, number: int) -> "workflow.ActivityHandle[CheckOutcome]":
        """Make the check of a step, which has this number: all its attempts publish one report.

        One that nobody takes fails, after the time that a check is repeated after: a missing worker is told, not waited for.
        """
        request = self.request
        return workflow.start_activity(
            ActivityName.RUN_CHECK,
            CheckRequest(
                report_id=f"{request.migration_id}.{number}",
                cluster=request.cluster,
                check=CHECK_OF[step.action],
                migration_id=request.migration_id,
                policy=request.policy,
            ),
            result_type=CheckOutcome,
            task_queue=TaskQueue.CHECKS,
            schedule_to_close_timeout=END_TIMEOUT if step.action == StepAction.COMPARE_END else None,
            schedule_to_start_timeout=request.policy.recheck_interval,
            start_to_close_timeout=CHECK_TIMEOUT,
            heartbeat_timeout=HEARTBEAT,
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
            migration_id=self.request.migration_id,
            cluster=self.request.cluster,
            generation=self.generation,
            approvals=orders.approvals,
            is_held=orders.is_held,
            policy=self.request.policy,
            seen=seen,
            revert=orders.revert,
            silence=self.silence,
            standstill=self.standstill,
            unchecked_since=self.unchecked_since,
            plan_id=self.request.plan_id,
            position=self.outbox.position,
            has_begun=self.has_begun,
        )
