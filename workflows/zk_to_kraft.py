"""`ZkToKraftMigration`: the interpreter. It asks for an assessment, does what it says, and asks again.

It holds what people have said (`Orders`), what is to be told (`Outbox`), the last assessment, and nothing else of the
cluster: the cluster is the truth, and looking at it is an activity's work. So a fix of a decision reaches running migrations
without touching this.

    assess ──► Step    perform it (one activity), assess again
           ──► Wait    watch until the decision changes or somebody says something, assess again
           ──► Gate    the same, for a person
           ──► Refuse, Done   tell, end

At the end of every phase the run continues as new, so that its history stays small enough to be read.
"""

import asyncio
import contextlib

from temporalio import workflow
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import ActivityError, ApplicationError, FailureError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from domain.contracts import (
        WORKFLOW_TYPE,
        ActivityName,
        AdoptRequest,
        ApprovalMessage,
        Assessment,
        CarriedState,
        HoldMessage,
        MigrationInput,
        MigrationStatus,
        StepOutcome,
    )
    from domain.decisions import WAIT_MEANS, Done, GateName, Refuse, Step, StepAction, Wait, WaitReason
    from domain.records import ACTIVE_STATES, EventDraft, MigrationState, OpenGate, Progress, Waiting
    from workflows.calls import Calls
    from workflows.orders import Orders
    from workflows.outbox import Outbox
    from workflows.telling import (
        clean,
        details_of,
        details_of_error,
        name_of,
        state_of,
        summary_of,
        waiting_of,
        with_restarts,
    )

PHASE = SearchAttributeKey.for_keyword("Phase")
WAITING = SearchAttributeKey.for_keyword("Waiting")

MAX_DOUBLINGS = 8
"""Of the pause after refused steps: from one poll interval up to 256 of them, about four minutes."""


class Superseded(Exception):
    """Another run holds the cluster."""


def _looked_at(look: "asyncio.Task[Assessment]") -> None:
    """Take the outcome of a watch that nobody waits for any more, so that its end is not logged as an error."""
    if not look.cancelled():
        look.exception()


def _type_of(cause: BaseException | None) -> str:
    named = cause.type if isinstance(cause, ApplicationError) else None
    return named or type(cause).__name__


@workflow.defn(name=WORKFLOW_TYPE)
class ZkToKraftMigration:
    """Moves one cluster from ZooKeeper to KRaft."""

    @workflow.init
    def __init__(self, request: MigrationInput) -> None:
        carried = request.carried or CarriedState(generation=0)
        self._request = request
        self._calls = Calls(request, carried.generation)
        self._orders = Orders.of(carried)
        self._restarts = dict(carried.restarts)
        self._phase = carried.phase
        self._began_in_phase = carried.phase
        self._step_count = carried.step_count
        self._outbox = Outbox(request.cluster, request.migration_id, carried.event_count)
        self._gate: OpenGate | None = None
        self._waiting: Waiting | None = None
        self._progress = Progress(state=MigrationState.PLANNING, phase=carried.phase)
        self._is_progress_known = False
        self._refused_in_a_row = 0
        self._is_settled = carried.is_settled

    @workflow.run
    async def run(self, request: MigrationInput) -> str:
        """Runs to the end of the migration, or of a phase. Gives the migration's final state."""
        telling = asyncio.create_task(self._outbox.deliver(self._record))
        try:
            if request.carried is None and not await self._claim():
                return "superseded"
            return await self._interpret()
        except Superseded:
            return "superseded"
        except (asyncio.CancelledError, ActivityError) as error:
            # A cancellation comes as the one or the other, by what was awaited in that moment.
            if not is_cancelled_exception(error):
                raise
            await self._end_cancelled()
            raise
        finally:
            telling.cancel()

    # --- the interpreter -------------------------------------------------------------------------------------------

    async def _interpret(self) -> str:
        assessment: Assessment | None = None
        while True:
            await workflow.wait_condition(lambda: not self._orders.is_stopped)
            assessment, self._orders.has_news = None if self._orders.has_news else assessment, False
            await self._adopt_messages()
            assessment = assessment or await self._look()
            if assessment is None or self._orders.has_news:
                continue
            self._note_phase(assessment)
            decision = assessment.decision
            if not isinstance(decision, Refuse | Done):
                await self._continue_as_new_between_phases(assessment)
            self._note(assessment)
            if isinstance(decision, Refuse | Done):
                return await self._end(assessment)
            if isinstance(decision, Step):
                await self._pace(await self._perform(decision, assessment))
                assessment = None
            else:
                assessment = await self._wait_for_change(assessment)

    async def _claim(self) -> bool:
        claim = await self._calls.claim()
        if claim.is_ours:
            self._outbox.tell("claimed", {"generation": claim.generation})
        return claim.is_ours

    async def _look(self) -> Assessment | None:
        """An assessment; `None` after an error that a person has to look at: then the migration stops."""
        try:
            return await self._calls.assess(self._orders)
        except ActivityError as error:
            self._stop_after(error, ActivityName.ASSESS)
            return None

    async def _wait_for_change(self, assessment: Assessment) -> Assessment | None:
        """Watch until the decision is another one, or somebody says something (then `None`: look anew)."""
        self._is_settled = False
        self._outbox.send_soon()
        watch = self._calls.watch(self._orders, assessment.digest, self._waiting.reason if self._waiting else "a change")
        try:
            await workflow.wait_condition(lambda: watch.done() or self._orders.has_news)
            if watch.done():
                return await watch
        except ActivityError as error:
            self._stop_after(error, ActivityName.WATCH)
            return None
        watch.add_done_callback(_looked_at)
        watch.cancel()
        return None

    async def _perform(self, step: Step, assessment: Assessment) -> StepOutcome | None:
        """Carry a step out; `None` after an error. A cancellation waits for its end: half a restart is worse than either."""
        node = name_of(assessment, step.node_id)
        self._step_count += 1
        self._outbox.tell("step-started", {"step": self._step_count, "action": step.action, "node": node, "stage": step.stage})
        self._outbox.send_soon()
        looks = 1 if self._is_settled else self._request.policy.stable_samples
        handle = self._calls.perform(step, self._step_count, node, self._orders, looks)
        finishing = asyncio.create_task(self._finish(handle, step, node))
        try:
            return await asyncio.shield(finishing)
        except asyncio.CancelledError:
            await finishing
            raise

    async def _finish(self, handle: "workflow.ActivityHandle[StepOutcome]", step: Step, node: str) -> StepOutcome | None:
        try:
            outcome = await handle
        except ActivityError as error:
            self._stop_after(error, summary_of(step, node))
            return None
        self._is_settled = outcome.is_done and step.action is StepAction.ROLL_NODE
        self._note_outcome(step, node, outcome)
        return outcome

    async def _pace(self, outcome: StepOutcome | None) -> None:
        """After a step that a guard refused pause, ever longer: a cluster that flickers must not fill history and record."""
        if outcome is None or outcome.is_done:
            self._refused_in_a_row = 0
            return
        pause = self._request.policy.poll_interval * 2**self._refused_in_a_row
        self._refused_in_a_row = min(self._refused_in_a_row + 1, MAX_DOUBLINGS)
        with contextlib.suppress(asyncio.TimeoutError):
            await workflow.wait_condition(
                lambda: self._orders.has_news, timeout=pause, timeout_summary="The step was refused: pause"
            )

    def _note_outcome(self, step: Step, node: str, outcome: StepOutcome) -> None:
        if outcome.did_restart:
            self._restarts[node] = self._restarts.get(node, 0) + 1
        told = {"step": self._step_count, "action": step.action, "node": node, "stage": step.stage}
        told |= {"seconds": round(outcome.seconds, 2), "attempt": outcome.attempt, "restarted": outcome.did_restart}
        if outcome.is_done:
            self._outbox.tell("step-done", {**told, "changes": list(outcome.changes)})
        else:
            self._outbox.tell("step-blocked", {**told, "why": outcome.blocked})

    def _stop_after(self, error: ActivityError, what: str) -> None:
        """An error that trying again cannot mend stops the migration where it is, until a person says resume.

        More than a hold, which finalisation once begun does not obey: the same step would fail in a circle.
        """
        cause = error.cause
        if isinstance(cause, ApplicationError) and cause.type == Superseded.__name__:
            raise Superseded from error
        if is_cancelled_exception(error):
            raise error
        why = cause.message if isinstance(cause, FailureError) else str(cause or error)
        self._orders.stop(f"{what}: {why}")
        self._is_settled = False
        self._outbox.tell("held", {"by": "keeperless", "reason": self._orders.held_because, "error": _type_of(cause)})
        waiting = Waiting(
            reason=WaitReason.HELD,
            means=WAIT_MEANS[WaitReason.HELD],
            since=workflow.now(),
            detail=self._orders.held_because,
            for_people=True,
        )
        self._gate = None
        self._show_waiting(waiting)
        self._show(self._progress.model_copy(update={"state": MigrationState.HELD, "waiting": waiting, "gate": None}))
        workflow.set_current_details(details_of_error(self._phase, waiting))
        self._outbox.send_soon()

    async def _end_cancelled(self) -> None:
        """A migration that had ended before the cancellation came stays what it was."""
        if self._progress.state in ACTIVE_STATES:
            self._outbox.tell("cancelled", {"phase": self._phase})
            self._show(self._progress.model_copy(update={"state": MigrationState.CANCELLED, "waiting": None, "gate": None}))
        await self._outbox.drain()

    async def _end(self, assessment: Assessment) -> str:
        is_done = isinstance(assessment.decision, Done)
        state = MigrationState.SUCCEEDED if is_done else MigrationState.REFUSED
        findings = assessment.decision.findings if isinstance(assessment.decision, Refuse) else ()
        outcome = assessment.decision.outcome if isinstance(assessment.decision, Done) else None
        self._show(self._progress.model_copy(update={"state": state, "findings": findings, "outcome": outcome}))
        self._outbox.tell(state, {"outcome": outcome, "findings": [finding.model_dump() for finding in findings]})
        await workflow.wait_condition(workflow.all_handlers_finished)
        await self._outbox.drain()
        return state

    async def _continue_as_new_between_phases(self, assessment: Assessment) -> None:
        """Where a phase has ended go on in a new run, with everything told and nobody's message half-handled."""
        begun_in, self._began_in_phase = self._began_in_phase, self._began_in_phase or assessment.phase
        has_ended = begun_in is not None and assessment.phase not in {None, begun_in}
        if not has_ended and not workflow.info().is_continue_as_new_suggested():
            return
        await workflow.wait_condition(workflow.all_handlers_finished)
        await self._outbox.drain()
        while self._orders.unadopted:
            await self._adopt_messages()
            await self._outbox.drain()
        carried = CarriedState(
            generation=self._calls.generation,
            phase=self._phase,
            step_count=self._step_count,
            restarts=self._restarts,
            approvals=self._orders.approvals,
            applied_commands=tuple(self._orders.applied),
            is_held=self._orders.is_held,
            held_because=self._orders.held_because,
            is_settled=self._is_settled,
            event_count=self._outbox.count,
        )
        workflow.continue_as_new(self._request.model_copy(update={"carried": carried}))

    # --- what people are told --------------------------------------------------------------------------------------

    def _note_phase(self, assessment: Assessment) -> None:
        if assessment.phase is None or assessment.phase == self._phase:
            return
        self._outbox.tell("phase-entered", {"phase": assessment.phase, "from": self._phase})
        self._phase = assessment.phase
        workflow.upsert_search_attributes([PHASE.value_set(assessment.phase)])

    def _note(self, assessment: Assessment) -> None:
        """Take an assessment in: what is waited for, the gate, the progress, and what Temporal's UI shows."""
        self._note_waiting(assessment)
        if assessment.gate is None:
            self._gate = None
        elif self._gate is None or self._gate.evidence_hash != assessment.gate.evidence_hash:
            self._gate = assessment.gate.model_copy(update={"since": workflow.now()})
            self._outbox.tell("gate-opened", {"gate": self._gate.name, "evidence_hash": self._gate.evidence_hash})
        self._show(
            Progress(
                state=state_of(assessment),
                phase=self._phase,
                waiting=self._waiting,
                nodes=with_restarts(assessment.nodes, self._restarts),
                gate=self._gate,
                steps_done=assessment.steps_done,
                steps_total=assessment.steps_total,
            )
        )
        workflow.set_current_details(details_of(self._request.cluster, assessment, self._waiting, self._restarts))

    def _note_waiting(self, assessment: Assessment) -> None:
        before = self._waiting
        is_same = before is not None and isinstance(assessment.decision, Wait) and before.reason == assessment.decision.reason
        since = before.since if before is not None and is_same else workflow.now()
        self._show_waiting(waiting_of(assessment, since, self._orders.held_because))

    def _show_waiting(self, waiting: Waiting | None) -> None:
        """Tell a wait when it begins. The search attribute outlives a run, so it is compared with itself."""
        before, self._waiting = self._waiting, waiting
        reason = waiting.reason if waiting is not None else None
        if reason != workflow.info().typed_search_attributes.get(WAITING):
            workflow.upsert_search_attributes([WAITING.value_set(reason) if reason is not None else WAITING.value_unset()])
        if waiting is not None and (before is None or before.reason != reason):
            self._outbox.tell("waiting", waiting.model_dump(mode="json"))

    def _show(self, progress: Progress) -> None:
        self._progress, self._is_progress_known = progress, True

    async def _record(self, events: tuple[EventDraft, ...]) -> None:
        await self._calls.record(events, self._progress if self._is_progress_known else None)

    # --- what people say -------------------------------------------------------------------------------------------

    @workflow.query
    def status(self) -> MigrationStatus:
        """Where the migration stands, as far as this run knows."""
        return MigrationStatus(
            migration_id=self._request.migration_id,
            progress=self._progress,
            generation=self._calls.generation,
            applied_commands=tuple(self._orders.applied),
        )

    @workflow.update
    def approve(self, message: ApprovalMessage) -> str:
        """Approve an open gate. What counts is the command in the ledger; without one the message is adopted as a signal is."""
        message = clean(message)
        if self._orders.is_repeated(message.command_id):
            return "approved before"
        self._take_approval(message)
        return "approved"

    @approve.validator
    def _validate_approve(self, message: ApprovalMessage) -> None:
        if not self._orders.is_known(message.command_id):
            self._require_open_gate(message)

    @workflow.update
    def reject(self, message: ApprovalMessage) -> str:
        """Say no at an open gate: the migration is held, in a state with a way back, until somebody resumes it."""
        message = clean(message)
        if self._orders.is_repeated(message.command_id):
            return "rejected before"
        self._gate = None
        self._orders.withdraw(GateName(message.gate))
        self._orders.hold(f"{message.gate} rejected by {message.by}: {message.reason}")
        self._outbox.tell("rejected", {"gate": message.gate, "by": message.by, "reason": message.reason})
        return "rejected"

    @reject.validator
    def _validate_reject(self, message: ApprovalMessage) -> None:
        if not self._orders.is_known(message.command_id):
            self._require_open_gate(message)

    @workflow.update
    def hold(self, message: HoldMessage) -> str:
        """Finish the node in hand, start no other."""
        message = clean(message)
        if not self._orders.is_repeated(message.command_id):
            self._orders.hold(f"held by {message.by}: {message.reason}")
            self._outbox.tell("held", {"by": message.by, "reason": message.reason})
        return "held"

    @hold.validator
    def _validate_hold(self, message: HoldMessage) -> None:
        if self._orders.is_held and not self._orders.is_known(message.command_id):
            raise ApplicationError(f"held already: {self._orders.held_because}", type="AlreadyHeld")

    @workflow.update
    def resume(self, message: HoldMessage) -> str:
        """Go on after a hold."""
        message = clean(message)
        if not self._orders.is_repeated(message.command_id):
            self._orders.resume()
            self._outbox.tell("resumed", {"by": message.by, "reason": message.reason})
        return "resumed"

    @resume.validator
    def _validate_resume(self, message: HoldMessage) -> None:
        if not self._orders.is_held and not self._orders.is_known(message.command_id):
            raise ApplicationError("not held: there is nothing to resume", type="NotHeld")

    @workflow.signal(name="approve")
    def approve_by_signal(self, message: ApprovalMessage) -> None:
        """The second door, for Temporal's own UI and CLI. Lenient: what makes no sense is told, never raised."""
        message = clean(message)
        why = self._why_not_open(message)
        if why is not None:
            self._outbox.tell("signal-ignored", {"by": message.by, "gate": message.gate, "why": why})
            self._outbox.send_soon()
        elif not self._orders.is_repeated(message.command_id):
            self._take_approval(message)

    def _require_open_gate(self, message: ApprovalMessage) -> None:
        why = self._why_not_open(clean(message))
        if why is not None:
            raise ApplicationError(why, type="GateNotOpen")

    def _why_not_open(self, message: ApprovalMessage) -> str | None:
        if self._gate is None or self._gate.name != message.gate:
            doing = self._waiting.reason if self._waiting is not None else "nothing"
            return f"gate {message.gate or '(none named)'} is not open: phase {self._phase}, waiting for {doing}"
        if self._gate.evidence_hash != message.evidence_hash:
            return f"the evidence has changed: it is {self._gate.evidence_hash} now. Look at it again before approving."
        return None

    def _take_approval(self, message: ApprovalMessage) -> None:
        gate = GateName(message.gate)
        if message.command_id is not None:
            self._orders.approvals[gate] = message.command_id
            self._outbox.tell(
                "approved", {"gate": gate, "by": message.by, "reason": message.reason, "command": message.command_id}
            )
        else:
            command_id = f"{workflow.info().run_id}/message-{self._outbox.count}"
            self._orders.unadopted.append(
                AdoptRequest(
                    migration_id=self._request.migration_id,
                    command_id=command_id,
                    gate=gate,
                    evidence_hash=message.evidence_hash,
                    by=message.by,
                    reason=message.reason,
                )
            )
        self._gate, self._orders.has_news = None, True

    async def _adopt_messages(self) -> None:
        """Have bare messages written down as commands, where the server's settings allow them."""
        while self._orders.unadopted:
            message = self._orders.unadopted[0]
            refused = await self._adopt(message)
            self._orders.unadopted.pop(0)
            told = {"gate": message.gate, "by": message.by, "command": message.command_id}
            if refused is None:
                self._orders.approvals[message.gate] = message.command_id
                self._outbox.tell("approved", {**told, "reason": message.reason, "via": "temporal-signal"})
            else:
                self._outbox.tell("signal-ignored", {**told, "why": refused})

    async def _adopt(self, message: AdoptRequest) -> str | None:
        """Why the message does not count, or `None` when it does. That it cannot be written down is such a reason."""
        try:
            return await self._calls.adopt(message)
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            return f"it could not be written down: {error.cause}"
