"""`Migration`: the interpreter. It asks for an assessment, does what it says, and asks again.

It holds what people have said (`Orders`), what is to be told (`Outbox`), what people see (`Board`), and nothing else of the
cluster: the cluster is the truth, and looking at it is an activity's work. So a fix of a decision reaches running migrations
without touching this.

    assess ──► Step    perform it (one activity), assess again
           ──► Wait    watch until the decision changes or somebody says something, assess again
           ──► Gate    the same, for a person
           ──► Revert  have the way back accepted, assess again
           ──► Refuse, Done   tell, end

At the end of every phase the run continues as new, so that its history stays small enough to be read.
"""

import asyncio
import contextlib
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from domain.contracts import (
        WORKFLOW_TYPE,
        ActivityName,
        ApprovalMessage,
        Assessment,
        CarriedState,
        HoldMessage,
        MigrationInput,
        MigrationStatus,
        RollbackMessage,
        StepOutcome,
    )
    from domain.decisions import Done, Refuse, Revert, Step
    from domain.policy import pause_after
    from domain.records import CommandKind, EventDraft
    from domain.waits import KEEPERLESS
    from workflows.board import Board
    from workflows.calls import Calls, drop
    from workflows.comparing import Comparing
    from workflows.messages import Messages
    from workflows.orders import Orders
    from workflows.outbox import Outbox
    from workflows.stopping import Stop, Superseded
    from workflows.telling import names_of, summary_of
    from workflows.turns import Turn

STARTED_HELD = "started held"
YOUNG = timedelta(seconds=2)
"""What was proven or seen so lately still stands, as long as nothing was done since. Every effect looks again."""


@workflow.defn(name=WORKFLOW_TYPE)
class Migration:
    """Leads one cluster through a migration of any kind, or back."""

    @workflow.init
    def __init__(self, request: MigrationInput) -> None:
        is_held = request.is_held
        carried = request.carried or CarriedState(generation=0, is_held=is_held, held_because=STARTED_HELD if is_held else "")
        self._request = request
        self._orders = Orders.of(carried)
        self._turn = Turn()
        self._outbox = Outbox(request.cluster, request.migration_id, carried, self._turn)
        self._calls = Calls(request, self._outbox, carried.generation, carried.memory)
        self._board = Board(request, self._orders, self._outbox, carried)
        self._stop = Stop(self._orders, self._outbox, self._board)
        self._comparing = Comparing(self._calls, self._orders, self._turn, self._board, self._stop)
        self._messages = Messages(self._calls, self._orders, self._outbox, self._board)
        self._began_in_phase = carried.phase
        self._step_count = carried.step_count
        self._calls.has_begun = carried.step_count > 0
        self._is_settled = carried.is_settled
        self._refused_in_a_row = 0

    @workflow.run
    async def run(self, request: MigrationInput) -> str:
        """Runs to the end of the migration, or of a phase. Gives the migration's final state."""
        telling = asyncio.create_task(self._outbox.deliver(self._record))
        try:
            if request.carried is None:
                await self._claim()
            return await self._interpret()
        except Superseded:
            self._messages.is_over = True
            await workflow.wait_condition(workflow.all_handlers_finished)
            return "superseded"
        except (asyncio.CancelledError, ActivityError) as error:
            # A cancellation comes as the one or the other, by what was awaited in that moment.
            if not is_cancelled_exception(error):
                raise
            self._board.note_cancel()
            await self._tell_the_rest()
            raise
        finally:
            telling.cancel()

    # --- the interpreter -------------------------------------------------------------------------------------------

    async def _interpret(self) -> str:
        assessment = self._seen_before()
        while True:
            if self._orders.is_stopped:
                self._is_settled = False
                with self._turn.awaiting(lambda: not self._orders.is_stopped) as goes_on:
                    await workflow.wait_condition(goes_on)
            assessment, self._orders.has_news = None if self._orders.has_news else assessment, False
            assessment = assessment or await self._look()
            if assessment is None or self._orders.has_news:
                continue
            self._calls.memory = assessment.memory
            self._board.note_phase(assessment)
            decision = assessment.decision
            if isinstance(decision, Refuse | Done):
                return await self._end(assessment)
            if isinstance(decision, Revert) and await self._turn_round(decision):
                continue
            await self._continue_as_new_between_phases(assessment)
            if self._orders.has_news:
                continue
            self._board.note(assessment)
            if isinstance(decision, Step):
                await self._pace(decision, await self._perform(decision, assessment))
                assessment = None
            else:
                assessment = await self._wait_for_change(assessment)

    def _seen_before(self) -> Assessment | None:
        """The look that ended the phase before, if it is so young that another one would see the same."""
        seen = self._request.carried.seen if self._request.carried is not None else None
        return seen if seen is not None and timedelta(0) <= workflow.now() - seen.observed_at <= YOUNG else None

    async def _claim(self) -> None:
        claim = await self._calls.claim()
        if not claim.is_ours:
            raise Superseded
        self._outbox.tell("claimed", {"generation": claim.generation})
        if self._request.is_held:
            by = self._request.requested_by or KEEPERLESS
            self._board.note_hold(by, STARTED_HELD)
            self._outbox.tell("held", {"by": by, "reason": STARTED_HELD})

    async def _look(self) -> Assessment | None:
        """An assessment; `None` after an error that a person has to look at: then the migration stops."""
        try:
            return await self._calls.assess(self._orders)
        except ActivityError as error:
            self._stop.after(error, ActivityName.ASSESS)
            return None

    async def _wait_for_change(self, assessment: Assessment) -> Assessment | None:
        """Watch until the decision is another one, or somebody says something (then `None`: look anew)."""
        self._is_settled, self._comparing.last = False, None
        self._outbox.send_soon()
        watch = self._calls.watch(self._orders, assessment.digest, self._board.awaited)
        try:
            with self._turn.awaiting(lambda: watch.done() or self._orders.has_news or self._is_run_full()) as is_over:
                await workflow.wait_condition(is_over)
            if watch.done():
                return await watch
        except ActivityError as error:
            self._stop.after(error, ActivityName.WATCH)
            return None
        drop(watch)
        return None

    async def _perform(self, step: Step, assessment: Assessment) -> StepOutcome | None:
        """Carry a step out; `None` after an error. A cancellation waits for its end: half a restart is worse than either."""
        nodes = names_of(assessment, step)
        self._step_count += 1
        self._calls.has_begun = True
        self._board.note_start(step, self._step_count, nodes)
        self._outbox.send_soon()
        if step.how.check is not None:
            begun = workflow.now()
            outcome = await self._comparing.compare(step, self._step_count)
            self._is_settled = self._is_settled and workflow.now() - begun <= YOUNG
            return outcome
        self._comparing.last = None
        is_settled = self._is_settled and not step.how.needs_agreement
        looks = 1 if is_settled else self._request.policy.stable_samples
        handle = self._calls.perform(step, self._step_count, ", ".join(nodes), self._orders, looks)
        finishing = asyncio.create_task(self._finish(handle, step, nodes))
        try:
            return await asyncio.shield(finishing)
        except asyncio.CancelledError:
            await finishing
            raise

    async def _finish(
        self, handle: "workflow.ActivityHandle[StepOutcome]", step: Step, nodes: tuple[str, ...]
    ) -> StepOutcome | None:
        try:
            outcome = await handle
        except ActivityError as error:
            self._stop.after(error, summary_of(step, ", ".join(nodes)))
            return None
        finally:
            self._board.note_over()
        self._is_settled = outcome.is_all_done and step.how.proves
        self._board.note_outcome(step, self._step_count, nodes, outcome)
        if outcome.hold_because is not None:
            self._stop.hold(outcome.hold_because)
        return outcome

    async def _pace(self, step: Step, outcome: StepOutcome | None) -> None:
        """After a step that a guard refused pause, ever longer: a cluster that flickers must not fill history and record.

        But for what is urgent: until it is done the cluster may be without a controller.
        """
        if outcome is None or outcome.is_all_done:
            self._refused_in_a_row = 0
            return
        if step.how.is_urgent:
            self._refused_in_a_row = 0
        self._refused_in_a_row += 1
        pause = pause_after(self._refused_in_a_row, self._request.policy.poll_interval)
        with contextlib.suppress(asyncio.TimeoutError), self._turn.awaiting(lambda: self._orders.has_news) as has_news:
            await workflow.wait_condition(has_news, timeout=pause, timeout_summary="The step was refused: pause")

    async def _turn_round(self, decision: Revert) -> bool:
        """Go back without being asked. A hold stays: what must not rest is done all the same, and the rest waits."""
        told = {"reason": decision.reason, "objects": list(decision.objects), "detail": decision.detail}
        try:
            answer = await self._calls.accept_rollback(None, f"{decision.reason}: {decision.detail}".removesuffix(": "))
        except ActivityError as error:
            self._stop.after(error, ActivityName.ACCEPT_ROLLBACK)
            return True
        if answer.order is None:
            self._outbox.tell("rollback-refused", {"by": "keeperless", **told, "losses": [], "why": answer.refused_because})
            return False
        self._outbox.tell("reverting", told)
        self._orders.turn(answer.order)
        self._board.note_turn()
        return True

    async def _end(self, assessment: Assessment) -> str:
        self._board.note(assessment)
        state = self._board.note_end(assessment)
        await self._tell_the_rest()
        return state

    async def _tell_the_rest(self) -> None:
        """Before the run ends: nobody's message is left half-handled, and the ledger has all."""
        self._messages.is_over = True
        await workflow.wait_condition(workflow.all_handlers_finished)
        await self._outbox.drain()

    # --- from run to run -------------------------------------------------------------------------------------------

    async def _continue_as_new_between_phases(self, assessment: Assessment) -> None:
        """Where a phase has ended go on in a new run, with everything told and nobody's message half-handled.

        A way back waits for no ledger: what that has not taken yet is handed on, and a message that waits for it keeps the run.
        """
        begun_in, self._began_in_phase = self._began_in_phase, self._began_in_phase or assessment.phase
        has_ended = begun_in is not None and assessment.phase not in {None, begun_in}
        if not has_ended and not workflow.info().is_continue_as_new_suggested():
            return
        while not self._is_turned() and not (workflow.all_handlers_finished() and self._outbox.is_told):
            await workflow.wait_condition(lambda: self._is_turned() or workflow.all_handlers_finished())
            await self._outbox.drain(unless=self._is_turned)
        if workflow.all_handlers_finished():
            workflow.continue_as_new(self._request.model_copy(update={"carried": self._carried(assessment)}))

    def _is_turned(self) -> bool:
        return self._orders.revert is not None

    def _is_run_full(self) -> bool:
        """Temporal asks for a new run, and one can be begun."""
        return workflow.info().is_continue_as_new_suggested() and (not self._is_turned() or workflow.all_handlers_finished())

    def _carried(self, seen: Assessment) -> CarriedState:
        return CarriedState(
            generation=self._calls.generation,
            phase=self._board.phase,
            step_count=self._step_count,
            restarts=self._board.restarts,
            restarted_at=self._board.restarted_at,
            approvals=self._orders.approvals,
            applied_commands=tuple(self._orders.applied),
            refused_commands=dict(self._orders.refused),
            is_held=self._orders.is_held,
            held_because=self._orders.held_because,
            is_settled=self._is_settled,
            event_count=self._outbox.count,
            revert=self._orders.revert,
            is_final=self._board.is_final,
            is_way_back_closed=self._board.is_way_back_closed,
            waiting=self._board.waiting,
            hold=self._board.hold,
            gate=self._board.gate,
            untold=self._outbox.untold,
            memory=self._calls.memory,
            alerts=self._board.alerts,
            seen=None if self._orders.has_news else seen,
        )

    async def _record(self, events: tuple[EventDraft, ...]) -> None:
        await self._calls.record(events, self._board.progress)

    # --- what people say: see `Messages` ----------------------------------------------------------------------------

    @workflow.query
    def status(self) -> MigrationStatus:
        """Where the migration stands, as far as this run knows."""
        return self._board.status(self._calls.generation)

    @workflow.update
    async def approve(self, message: ApprovalMessage) -> str:
        """Approve an open gate."""
        return await self._messages.approve(message)

    @approve.validator
    def _validate_approve(self, message: ApprovalMessage) -> None:
        self._messages.check_gate(message)

    @workflow.signal(name="approve")
    async def approve_by_signal(self, *given: object) -> None:
        """Like the update; takes whatever comes, because an exception here would fail the task again and again."""
        await self._messages.leniently(
            CommandKind.APPROVE, ApprovalMessage, given, self._messages.check_gate, self._messages.approve
        )

    @workflow.update
    async def reject(self, message: ApprovalMessage) -> str:
        """Say no at an open gate, or withdraw an approval that is armed: the migration is held until you resume it."""
        return await self._messages.reject(message)

    @reject.validator
    def _validate_reject(self, message: ApprovalMessage) -> None:
        self._messages.check_rejection(message)

    @workflow.update
    async def hold(self, message: HoldMessage) -> str:
        """Finish the node in hand, start no other. Within an irreversible section it takes effect after that."""
        return await self._messages.hold(message)

    @hold.validator
    def _validate_hold(self, message: HoldMessage) -> None:
        self._messages.check_hold(message)

    @workflow.update
    async def resume(self, message: HoldMessage) -> str:
        """Go on after a hold. With `begin`: also with the armed approval of that gate."""
        return await self._messages.resume(message)

    @resume.validator
    def _validate_resume(self, message: HoldMessage) -> None:
        self._messages.check_resume(message)

    @workflow.signal(name="resume")
    async def resume_by_signal(self, *given: object) -> None:
        """Like the update, and takes whatever comes. It begins nothing irreversible: its event names the update to send."""
        await self._messages.leniently(
            CommandKind.RESUME, HoldMessage, given, self._messages.check_resume, self._messages.resume_by_signal
        )

    @workflow.update
    async def rollback(self, message: RollbackMessage) -> str:
        """Go back, after the step in hand. Lifts a hold, and a stop after an error."""
        return await self._messages.rollback(message)

    @rollback.validator
    def _validate_rollback(self, message: RollbackMessage) -> None:
        self._messages.check_rollback(message)

    @workflow.signal(name="rollback")
    async def rollback_by_signal(self, *given: object) -> None:
        """Like the update, and takes whatever comes."""
        await self._messages.leniently(
            CommandKind.ROLLBACK, RollbackMessage, given, self._messages.check_rollback, self._messages.rollback
        )
