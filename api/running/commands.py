"""What people ask a running migration for. A command is in the ledger before it is sent, so it cannot be lost.

Commands of one migration are delivered in the order in which they were given: a hold that found no worker must not arrive
after the resume that followed it. So one that the workflow has not taken holds back all later ones, and the caretaker tries
again. Trying again is safe: the update's id is the command's, and the workflow knows the ids that it has applied.

A workflow that has taken a rollback looks at the cluster before it answers, as long as that needs: a hold must not wait for it.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from weakref import WeakValueDictionary

from temporalio.client import (
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
    WorkflowUpdateStage,
)
from temporalio.exceptions import ApplicationError, FailureError
from temporalio.service import RPCStatusCode

from api.diagnosis.pollers import unserved
from api.diagnosis.workflow_task_failures import last_task_failure
from api.running.audit import Origin
from api.running.runs import newest_run
from api.running.temporal import Temporal, TemporalRefused, TemporalUnavailable
from domain.contracts import ApprovalMessage, HoldMessage, RollbackMessage
from domain.records import Command, CommandKind, EventDraft, MigrationRecord
from ledger.errors import NoSuchCommand, NoSuchMigration
from ledger.ledger import SqlLedger

ANSWER_LIMIT = timedelta(seconds=2)
"""How long a caller waits for a worker."""

DELIVERY_LIMIT = timedelta(seconds=2.5)
"""The same with older commands, and another's delivery, before it."""

PASSING_LIMIT = timedelta(seconds=0.3)
"""How long a taken command may think while a later one waits."""

CLOSED_MEANWHILE = "AcceptedUpdateCompletedWorkflow"
"""Temporal's type for: the run took the update, and closed or continued as new before it answered."""

OF_THE_WAY = frozenset({RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.UNIMPLEMENTED})
"""Never said of an order: the login, or a proxy."""

NO_CALLS: Mapping[str, Origin] = {}

HAS_ENDED = "The migration ended before the command reached it, or before its answer arrived: its events say what it did."


class CommandStatus(StrEnum):
    """What became of a command."""

    PENDING = "pending"
    """Not delivered yet: no worker answered, or it thinks about the answer. It will be."""
    DELIVERED = "delivered"
    REFUSED = "refused"


@dataclass(frozen=True)
class Answer:
    """A workflow's answer to a command; `because` with a refusal, or where Temporal said why it did not take it. `is_taken`:
    the workflow has it, and has not answered yet.
    """

    status: CommandStatus
    because: str = ""
    is_taken: bool = False


def status_of(command: Command) -> CommandStatus:
    if command.refused_because is not None:
        return CommandStatus.REFUSED
    return CommandStatus.PENDING if command.delivered_at is None else CommandStatus.DELIVERED


class Courier:
    """Brings commands to their migrations."""

    def __init__(self, ledger: SqlLedger, temporal: Temporal) -> None:
        self._ledger = ledger
        self._temporal = temporal
        self.unsent: dict[str, str] = {}
        """What Temporal said of commands that it did not take when they were sent last, by their ids."""
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def submit(self, record: MigrationRecord, command: Command, call: Origin) -> Command:
        """Store a command and try to deliver it: the command, with what became of it within the time limit.

        `call`: from where it was asked for. Its event has that when it is refused now, so the refused call needs no other.
        """
        written = await self._ledger.add_command(command)
        if written.refused_because is not None:
            refused = Answer(CommandStatus.REFUSED, written.refused_because)
            await self._ledger.record_event(_event(record, written, refused, datetime.now(UTC), call))
            return written
        with suppress(TimeoutError):  # Then it is pending, as the ledger says.
            async with asyncio.timeout(DELIVERY_LIMIT.total_seconds()):
                await self.deliver(command.migration_id, {command.id: call})
        stored = await self._ledger.command(command.id)
        if stored is None:
            raise NoSuchCommand(command.id)
        return stored

    async def deliver(self, migration_id: str, calls: Mapping[str, Origin] = NO_CALLS) -> None:
        """Deliver what is pending, oldest first, up to the first that the workflow does not take now.

        `calls`: of commands that a call waits for, by their ids.
        """
        turn = self._turns.setdefault(migration_id, asyncio.Lock())
        async with turn:
            pending = [c for c in await self._ledger.commands(migration_id) if status_of(c) is CommandStatus.PENDING]
            record = await self._ledger.migration(migration_id)
            if record is None:
                raise NoSuchMigration(migration_id)
            for command in pending:
                answer = await self._ask(record, command, ANSWER_LIMIT if command is pending[-1] else PASSING_LIMIT)
                self._keep(command, answer)
                if answer.status is not CommandStatus.PENDING:
                    await self._note(record, command, answer, calls.get(command.id, {}))
                elif not answer.is_taken:
                    return

    def _keep(self, command: Command, answer: Answer) -> None:
        self.unsent.pop(command.id, None)
        if answer.status is CommandStatus.PENDING and answer.because:
            self.unsent[command.id] = answer.because

    async def _ask(self, record: MigrationRecord, command: Command, patience: timedelta) -> Answer:
        """Also of a run that is over: it may have taken the command, and Temporal remembers what it answered.

        An approval that was closed before it arrived is not delivered any more.
        """
        if command.closed_as is not None:
            return Answer(CommandStatus.REFUSED, f"It is {command.closed_as}: {command.closed_because}")
        if record.run_id is not None:
            return await send(self._temporal, record, command, patience)
        has_ended = record.ended_at is not None
        return Answer(CommandStatus.REFUSED, HAS_ENDED) if has_ended else Answer(CommandStatus.PENDING)

    async def _note(self, record: MigrationRecord, command: Command, answer: Answer, call: Origin) -> None:
        at = datetime.now(UTC)
        # The event first: a crash in between repeats both, and the event's key makes it one.
        await self._ledger.record_event(_event(record, command, answer, at, call))
        if answer.status is CommandStatus.DELIVERED:
            await self._ledger.mark_delivered(command.id, at)
        else:
            await self._ledger.mark_refused(command.id, answer.because)


NOT_NOW = "due to Workflow Task in failed state"
"""Temporal, of any order to a run whose last tasks have failed, or were not answered in time: until one succeeds."""
TASK_FAILURE = "unexpected workflow task failure"
"""Temporal, of an order with which the run cannot go on: its history says why."""


async def send(temporal: Temporal, record: MigrationRecord, command: Command, patience: timedelta) -> Answer:
    """Send a command to the migration's own run: a later migration of the cluster has the same workflow id.

    `patience`: how long to wait for the answer of a workflow that has taken it.
    """
    is_asked, is_taken = False, False
    try:
        async with temporal.answering(ANSWER_LIMIT) as client:
            is_asked = True
            handle = client.get_workflow_handle(record.workflow_id, first_execution_run_id=record.run_id)
            update = await handle.start_update(
                command.kind.value, message_of(command), id=command.id, wait_for_stage=WorkflowUpdateStage.ACCEPTED
            )
            is_taken = True
            async with asyncio.timeout(patience.total_seconds()):
                await update.result()
    except WorkflowUpdateFailedError as error:
        return _answer_of(error.cause, has_ended=record.ended_at is not None)
    except TemporalUnavailable as error:
        return Answer(CommandStatus.PENDING, str(error) if error.said else "", is_taken=is_taken)
    except WorkflowUpdateRPCTimeoutOrCancelledError as error:
        _pass_cancellation_on(error)
        return Answer(CommandStatus.PENDING, is_taken=is_taken)
    except TemporalRefused as error:
        if not is_asked or not await _is_of_the_order(temporal, record, error):
            return Answer(CommandStatus.PENDING, str(error))
        return Answer(CommandStatus.REFUSED, await _why_refused(temporal, record, error))
    return Answer(CommandStatus.DELIVERED)


async def _why_refused(temporal: Temporal, record: MigrationRecord, error: TemporalRefused) -> str:
    if error.status is RPCStatusCode.NOT_FOUND:
        return HAS_ENDED
    stumble = await last_task_failure(temporal, record.workflow_id) if TASK_FAILURE in error.said else ""
    return str(TemporalRefused(error.status, error.said, f"It failed: {stumble}") if stumble else error)


async def _is_of_the_order(temporal: Temporal, record: MigrationRecord, error: TemporalRefused) -> bool:
    """Refused for good is only what Temporal does not take while it answers us otherwise: a login that has run out, a namespace
    that is not there, or is another one than the run's, a proxy that knows no way to it, or a worker that stands, are mended,
    and the order is delivered then.
    """
    try:
        await temporal.ping()
        if error.status is RPCStatusCode.NOT_FOUND and await _may_be_elsewhere(temporal, record):
            return False
    except (TemporalRefused, TemporalUnavailable):
        return False
    return error.status not in OF_THE_WAY and NOT_NOW not in error.said


async def _may_be_elsewhere(temporal: Temporal, record: MigrationRecord) -> bool:
    """Of a run that Temporal does not know, nor how it has ended, while nobody works there for any. One that is known to have
    ended takes no order anywhere."""
    if record.ended_at is not None:
        return False
    return await newest_run(temporal, record.workflow_id) is None and bool(await unserved(temporal))


def message_of(command: Command) -> ApprovalMessage | HoldMessage | RollbackMessage:
    if command.kind in {CommandKind.HOLD, CommandKind.RESUME}:
        named = "begin" if command.kind is CommandKind.RESUME else "after"
        gate = {named: command.gate} if command.gate is not None else {}
        return HoldMessage(by=command.by, reason=command.reason, command_id=command.id, **gate)
    if command.kind is CommandKind.ROLLBACK:
        return RollbackMessage(
            by=command.by,
            reason=command.reason,
            preview_hash=command.preview_hash or "",
            accept_loss=command.accept_loss,
            command_id=command.id,
        )
    return ApprovalMessage(
        gate=command.gate or "",
        by=command.by,
        reason=command.reason,
        evidence_hash=command.evidence_hash or "",
        command_id=command.id,
    )


def _pass_cancellation_on(error: Exception) -> None:
    """The SDK makes an error of its own out of a cancellation. It is still one: who cancelled us waits for our end."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError from error


def _answer_of(cause: BaseException, *, has_ended: bool) -> Answer:
    """A run that closed before it answered may have a next one, which is asked again; a migration that has ended has none."""
    if isinstance(cause, ApplicationError) and cause.type == CLOSED_MEANWHILE:
        return Answer(CommandStatus.REFUSED, HAS_ENDED) if has_ended else Answer(CommandStatus.PENDING)
    because = cause.message if isinstance(cause, FailureError) else "The workflow could not take the command."
    return Answer(CommandStatus.REFUSED, because)


def _event(record: MigrationRecord, command: Command, answer: Answer, at: datetime, call: Origin) -> EventDraft:
    return EventDraft(
        key=f"command/{command.id}/{answer.status}",
        kind=f"command-{answer.status}",
        cluster=record.cluster,
        migration_id=record.id,
        at=at,
        data={
            "command_id": command.id,
            "command": command.kind.value,
            "gate": command.gate,
            "break_glass": command.break_glass,
            "preview_hash": command.preview_hash,
            "accept_loss": list(command.accept_loss),
            "by": command.by,
            "reason": command.reason,
            "because": answer.because or None,
            **(call if answer.status is CommandStatus.REFUSED else {}),
        },
    )
