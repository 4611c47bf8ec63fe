"""`Messages`: what people say to a migration, and what it does to `Orders`.

What counts is the command in the ledger. A message that names one has been through the API. A bare one, sent with Temporal's
own UI or CLI, is written down as a command first; whether it counts then is a setting of the server's. A bare hold or
rejection counts at once and everywhere: stopping is always allowed.

`check_…` are the validators: pure; they raise when a message makes no sense now, and leave no trace in history.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from domain.contracts import AdoptRequest, ApprovalMessage, HoldMessage, RevertOrder, RollbackAnswer, RollbackMessage
from domain.decisions import LABEL
from domain.records import CommandKind
from workflows.board import Board
from workflows.calls import Calls
from workflows.orders import Orders
from workflows.outbox import Outbox
from workflows.stopping import reason_of
from workflows.telling import AnyMessage, Message, clean, message_of

NO_WAY_BACK = "no way back: the quorum's log says that the migration is final"


class Messages:
    """`is_over`: the migration has ended, and an answer that was long in coming changes nothing any more."""

    def __init__(self, calls: Calls, orders: Orders, outbox: Outbox, board: Board) -> None:
        self._calls, self._orders, self._outbox, self._board = calls, orders, outbox, board
        self._bare_count = 0
        self._writing = asyncio.Lock()
        """Bare messages become commands in the order in which they came: the newest order in the ledger counts."""
        self._verifying = asyncio.Lock()
        self.is_over = False

    # --- at a gate -------------------------------------------------------------------------------------------------

    def check_rejection(self, message: ApprovalMessage) -> None:
        """At an open gate, and where an approval was given: the ledger says whether it comes too late."""
        if message.gate not in self._orders.approvals:
            self.check_gate(message)

    def check_gate(self, message: ApprovalMessage) -> None:
        if self._orders.is_known(message.command_id):
            return
        message, gate, waiting = clean(message), self._board.gate, self._board.waiting
        if gate is None or gate.name != message.gate:
            doing = waiting.reason if waiting is not None else "nothing"
            named = message.gate or "(none named)"
            if message.gate in self._orders.approvals:
                why = f"gate {named} is approved already: GET /migrations/{{id}} shows that under `approvals`"
                raise ApplicationError(why, type="GateNotOpen")
            why = (
                f"gate {named} is not open: phase {self._board.phase}, waiting for {doing}. GET /migrations/{{id}} says under "
                "`gates` which one is, with its evidence"
            )
            raise ApplicationError(why, type="GateNotOpen")
        if gate.evidence_hash != message.evidence_hash:
            why = (
                f"evidence_hash: that of the evidence at the gate begins with {gate.evidence_hash[:12]}. The evidence has "
                "changed since, or the hash was not copied whole: read it again (GET /migrations/{id}, `gates`), and approve "
                "what is there"
            )
            raise ApplicationError(why, type="GateNotOpen")

    async def approve(self, message: ApprovalMessage) -> str:
        message = clean(message)
        if self._orders.is_repeated(message.command_id):
            return "approved before"
        gate, command_id = self._board.gate, message.command_id
        told = {"gate": message.gate, "by": message.by, "reason": message.reason}
        if command_id is None:
            order = self._approval(CommandKind.APPROVE, message)
            command_id = await self._adopt(order)
            told["via"] = "temporal-signal"
            if self._board.gate is not gate:
                raise await self._overtaken(order, f"gate {message.gate} was closed meanwhile")
        self._board.gate = None
        self._orders.remember(command_id)
        self._orders.approve(message.gate, command_id)
        self._outbox.tell("approved", {**told, "command": command_id})
        return "approved"

    async def reject(self, message: ApprovalMessage) -> str:
        message = clean(message)
        if self._orders.is_repeated(message.command_id):
            return "rejected before"
        self._orders.hold(f"{message.gate} rejected by {message.by}: {message.reason}")
        self._board.note_hold(message.by, f"{message.gate} rejected: {message.reason}")
        self._outbox.tell("rejected", {"gate": message.gate, "by": message.by, "reason": message.reason})
        too_late = await self._keep(self._approval(CommandKind.REJECT, message)) if message.command_id is None else None
        return "rejected" if too_late is None else f"held; not rejected: {too_late}"

    # --- at any time -----------------------------------------------------------------------------------------------

    def check_hold(self, message: HoldMessage) -> None:
        if self._orders.is_held and not self._orders.is_known(message.command_id):
            raise ApplicationError(f"held already: {self._orders.held_because}", type="AlreadyHeld")

    async def hold(self, message: HoldMessage) -> str:
        message = clean(message)
        if not self._orders.is_repeated(message.command_id):
            self._orders.hold(f"held by {message.by}: {message.reason}")
            effect = self._board.note_hold(message.by, message.reason, message.after)
            self._outbox.tell("held", {"by": message.by, "reason": message.reason, "takes_effect": effect})
            if message.command_id is None:
                await self._keep(self._order(CommandKind.HOLD, message))
        return "held"

    def check_resume(self, message: HoldMessage) -> None:
        if not self._orders.is_held and not self._orders.is_known(message.command_id):
            raise ApplicationError("not held: there is nothing to resume", type="NotHeld")

    async def resume(self, message: HoldMessage) -> str:
        """The ledger has judged whether an approval is armed that it has to name: in the transaction that wrote the command."""
        message = clean(message)
        if self._orders.is_repeated(message.command_id):
            return "resumed"
        holds, command_id = self._orders.holds, message.command_id
        if command_id is None:
            order = self._resume(message)
            command_id = await self._adopt(order)
            if self._orders.holds != holds:
                raise await self._overtaken(order, f"held again meanwhile: {self._orders.held_because}")
        self._orders.remember(command_id)
        self._orders.resume()
        self._outbox.tell("resumed", {"by": message.by, "reason": message.reason, "begin": message.begin or None})
        self._board.note_resume()
        return "resumed"

    async def resume_by_signal(self, message: HoldMessage) -> str:
        """A signal begins nothing irreversible, whatever it names: its sender would not hear what it began."""
        return await self.resume(message.model_copy(update={"begin": ""}))

    # --- the way back ----------------------------------------------------------------------------------------------

    def check_rollback(self, message: RollbackMessage) -> None:
        """A second one makes sense only where it accepts more: a way back that would lose what nobody has accepted waits."""
        order = self._orders.revert
        if self._orders.is_known(message.command_id):
            return
        if message.command_id in self._orders.refused:
            raise ApplicationError(self._orders.refused[message.command_id], type="RollbackRefused")
        if self._board.is_final:
            raise ApplicationError(NO_WAY_BACK, type="RollbackRefused")
        if order is not None and not _accepts_more(message, order):
            raise ApplicationError(f"it is on its way back already: {order.because}", type="RollbackRefused")

    async def rollback(self, message: RollbackMessage) -> str:
        """One at a time. The step in hand is finished meanwhile; the next one is taken on the way that is decided here."""
        message, holds = clean(message), self._orders.holds
        await workflow.wait_condition(lambda: self._calls.is_claimed or self.is_over)
        async with self._verifying:
            if self._orders.is_known(message.command_id):
                return "accepted before"
            if message.command_id in self._orders.refused:
                raise ApplicationError(self._orders.refused[message.command_id], type="RollbackRefused")
            answer = await self._verify(message)
            order, told = answer.order, {"by": message.by, "reason": message.reason}
            if order is None:
                why = answer.refused_because or "refused without a reason"
                self._orders.refuse(message.command_id, why)
                if message.command_id is None or not answer.is_known:  # The API tells what becomes of its own commands.
                    self._outbox.tell("rollback-refused", {**told, "losses": list(message.accept_loss), "why": why})
                self._outbox.send_soon()
                raise ApplicationError(why, type="RollbackRefused")
            self._orders.turn(order)
            self._board.note_turn()
            if self._orders.holds == holds:
                self._orders.resume()
                self._board.note_resume()
            losses = list(order.accepted_losses)
            self._outbox.tell("rollback-accepted", {**told, "losses": losses, "command": order.command_id})
            self._outbox.send_soon()
        return "accepted"

    async def _verify(self, message: RollbackMessage) -> RollbackAnswer:
        """The order, or why there is none."""
        try:
            self.check_rollback(message)  # It may have changed while another one was verified.
        except ApplicationError as error:
            return RollbackAnswer(refused_because=error.message)
        if message.command_id is not None:
            return await self._judge(message.command_id, message.reason)
        bare = self._rollback(message)
        refused = await self._write_down(bare)
        if refused is not None:
            return RollbackAnswer(refused_because=refused)
        answer = await self._judge(bare.command_id, message.reason)
        if answer.refused_because is not None:
            self._orders.refuse(bare.command_id, answer.refused_because)
            await self._take_back(bare, answer.refused_because)
        return answer

    async def _judge(self, command_id: str, reason: str) -> RollbackAnswer:
        try:
            answer = await self._calls.accept_rollback(command_id, reason)
        except ActivityError as error:
            return RollbackAnswer(refused_because=f"it could not be verified: {reason_of(error)}")
        return RollbackAnswer(refused_because="the migration has ended meanwhile") if self.is_over else answer

    # --- bare messages ---------------------------------------------------------------------------------------------

    async def leniently(
        self,
        kind: CommandKind,
        form: type[Message],
        given: Sequence[object],
        check: Callable[[Message], None],
        take: Callable[[Message], Awaitable[str]],
    ) -> None:
        """The second door, for Temporal's own UI and CLI: what makes no sense is told, never raised."""
        message = message_of(form, given)
        if message is None:
            named = ", ".join(name for name in form.model_fields if name != "command_id")
            self._ignored(kind, form(), f"a signal {kind} takes exactly one JSON object, with any of {named} in it")
            return
        try:
            check(message)
        except ApplicationError as error:
            self._ignored(kind, clean(message), error.message)
            return
        with contextlib.suppress(ApplicationError):  # It has been told.
            await take(message)

    async def _adopt(self, order: AdoptRequest) -> str:
        """Make a command of a bare message: the command's id. Raises where it does not count."""
        refused = await self._write_down(order)
        if refused is not None:
            raise self._ignored(order.kind, order, refused)
        return order.command_id

    async def _keep(self, order: AdoptRequest) -> str | None:
        """The same for what counts in any case: a step that was waiting for a worker asks the ledger for the newest order. Why
        the ledger does not have it as one that counts, if so."""
        self._orders.remember(order.command_id)
        refused = await self._write_down(order)
        if refused is not None:
            self._tell_unwritten(order, refused)
        return refused

    async def _overtaken(self, order: AdoptRequest, why: str) -> ApplicationError:
        """While it was written down it has lost its sense. To be raised."""
        ignored = self._ignored(order.kind, order, why)
        await self._take_back(order, why)
        return ignored

    async def _take_back(self, order: AdoptRequest, why: str) -> None:
        """It stands in the ledger as one that counts."""
        refused = await self._write_down(order.model_copy(update={"refused_because": why}))
        if refused != why:
            self._tell_unwritten(order, refused or "")

    def _tell_unwritten(self, order: AdoptRequest, why: str) -> None:
        self._outbox.tell("not-written-down", {"order": order.kind, "by": order.by, "why": why})
        self._outbox.send_soon()

    async def _write_down(self, order: AdoptRequest) -> str | None:
        """Why the message does not count, or `None` when it does. That it cannot be written down is such a reason."""
        async with self._writing:
            try:
                return await self._calls.adopt(order)
            except ActivityError as error:
                return f"it could not be written down: {reason_of(error)}"

    def _ignored(self, kind: CommandKind, message: AnyMessage | AdoptRequest, why: str) -> ApplicationError:
        """Told, and to be raised by whoever can."""
        gate = {"gate": getattr(message, "gate", None)} if kind is CommandKind.APPROVE else {}
        self._outbox.tell("signal-ignored", {"order": kind, "by": message.by, **gate, "why": why})
        self._outbox.send_soon()
        return ApplicationError(why, type="Ignored")

    def _order(self, kind: CommandKind, message: AnyMessage) -> AdoptRequest:
        """The same command for every attempt at writing it down."""
        self._bare_count += 1
        return AdoptRequest(
            migration_id=self._calls.request.migration_id,
            command_id=f"{workflow.info().run_id}/message-{self._bare_count}",
            kind=kind,
            by=message.by,
            reason=message.reason,
        )

    def _approval(self, kind: CommandKind, message: ApprovalMessage) -> AdoptRequest:
        what = {"gate": message.gate, "evidence_hash": message.evidence_hash}
        return self._order(kind, message).model_copy(update=what)

    def _resume(self, message: HoldMessage) -> AdoptRequest:
        begin = message.begin if LABEL.match(message.begin) else None
        return self._order(CommandKind.RESUME, message).model_copy(update={"gate": begin})

    def _rollback(self, message: RollbackMessage) -> AdoptRequest:
        what = {"preview_hash": message.preview_hash or None, "accept_loss": message.accept_loss}
        return self._order(CommandKind.ROLLBACK, message).model_copy(update=what)


def _accepts_more(message: RollbackMessage, order: RevertOrder) -> bool:
    """Where we turned round by ourselves nobody has accepted anything yet."""
    return order.command_id is None or bool(set(message.accept_loss) - set(order.accepted_losses))
