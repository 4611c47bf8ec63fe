"""An approval is one row of the ledger, and the ledger is its one arbiter.

    armed ──► consumed (by an attempt) ──► done
      │
      ├──► withdrawn   a person rejects
      ├──► void        a person holds, its evidence is not what is seen any more, a rollback
      └──► expired     nothing has used it in time

Each arrow is a compare-and-set inside a ledger transaction that has locked the migration's row. So of two that race the
transaction that commits first wins, and the other one reads what the first has written. `effect_of` is what a person's
command does to approvals in the transaction that writes it; `why_not_consumed` is asked in the transaction that consumes,
right before the first irreversible write.

An approval that is consumed carries its whole irreversible section: attempts that follow go on under it, a retry too, and
nothing that a person says takes effect before the section has ended. A failover is one attempt, and so is its section.

All functions are pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.decisions import GateName
from domain.records import HOLDING, LIFTING, ApprovalSeen, ApprovalState, Command, CommandKind

FINAL_GATES = frozenset({GateName.FINALIZE, GateName.FINALIZE_WITHOUT_RETURN})
"""Their section is the end of the migration: all controllers, step by step."""


@dataclass(frozen=True)
class Attempt:
    """One attempt to consume an approval, and what it saw. `id`: the same for all retries of one step.

    `applied_commands`: what the migration had applied when it decided on the step.
    """

    id: str
    migration_id: str
    cluster: str
    generation: int
    gate: GateName
    command_id: str
    evidence_hash: str
    applied_commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Effect:
    """What a command does in the moment in which it is written: the command as it is stored, and which approvals it closes."""

    command: Command
    closed: tuple[Command, ...] = ()


def state_of(command: Command, now: datetime) -> ApprovalState | None:
    """`None` of what is no approval, and of one that the migration has refused."""
    if command.kind is not CommandKind.APPROVE:
        return None
    if command.closed_as is not None:
        return command.closed_as
    if command.refused_because is not None:
        return None
    if command.consumed_at is not None:
        return ApprovalState.CONSUMED
    is_over = command.expires_at is not None and command.expires_at <= now
    return ApprovalState.EXPIRED if is_over else ApprovalState.ARMED


def in_state(commands: Sequence[Command], state: ApprovalState, now: datetime, gate: GateName | None = None) -> list[Command]:
    """The approvals in this state, of one gate or of any."""
    return [one for one in commands if state_of(one, now) is state and gate in {None, one.gate}]


def seen(command: Command, now: datetime) -> ApprovalSeen | None:
    """For people; `None` of what never was an approval."""
    state = state_of(command, now)
    if state is None or command.gate is None:
        return None
    return ApprovalSeen(
        command_id=command.id,
        gate=command.gate,
        state=state,
        by=command.by,
        at=command.at,
        until=command.expires_at,
        consumed_at=command.consumed_at,
    )


def told_of(approval: ApprovalSeen) -> str:
    """One line for people: by whom, when, until when, and what a resume does."""
    given = f"Approval of {approval.gate} by {approval.by} at {approval.at:%Y-%m-%d %H:%M:%S} UTC"
    if approval.state is not ApprovalState.ARMED:
        when = f" at {approval.consumed_at:%H:%M:%S} UTC" if approval.consumed_at is not None else ""
        return f"{given}: {approval.state}{when}"
    until = f"until {approval.until:%Y-%m-%d %H:%M:%S} UTC" if approval.until is not None else "without an end"
    return f'{given}: armed {until}. A resume with "begin": "{approval.gate}" starts what cannot be undone'


def effect_of(command: Command, others: Sequence[Command], expires_after: timedelta | None, now: datetime) -> Effect:
    """What a command does to the approvals among the migration's `others` while it is written. A refused one does nothing."""
    armed = in_state(others, ApprovalState.ARMED, now)
    if command.refused_because is not None:
        return Effect(command)
    match command.kind:
        case CommandKind.APPROVE:
            return _armed(command, [one for one in armed if one.gate is command.gate], expires_after, now)
        case CommandKind.REJECT:
            return _rejecting(command, others, now)
        case CommandKind.HOLD:
            return _holding(command, others, armed, now)
        case CommandKind.RESUME:
            return Effect(_beginning(command, armed))
        case CommandKind.ROLLBACK:
            return Effect(command)


def _armed(command: Command, before: Sequence[Command], expires_after: timedelta | None, now: datetime) -> Effect:
    """One that is armed already stays the one that counts, whoever sends another: a retry must not void it."""
    if before:
        why = f"{command.gate} is approved already, by {before[-1].by} at {before[-1].at:%Y-%m-%d %H:%M:%S} UTC"
        return Effect(command.model_copy(update={"refused_because": why}))
    until = now + expires_after if expires_after is not None else None
    return Effect(command.model_copy(update={"expires_at": until}))


def _rejecting(command: Command, others: Sequence[Command], now: datetime) -> Effect:
    """A rejection withdraws what is armed. It comes too late for what is consumed, and says so."""
    consumed = in_state(others, ApprovalState.CONSUMED, now, command.gate)
    if consumed:
        return Effect(command.model_copy(update={"refused_because": too_late(consumed[-1])}))
    armed = in_state(others, ApprovalState.ARMED, now, command.gate)
    return Effect(command, _closed(armed, ApprovalState.WITHDRAWN, f"rejected by {command.by}: {command.reason}", now))


def too_late(consumed: Command) -> str:
    at = f"{consumed.consumed_at:%Y-%m-%d %H:%M:%S} UTC" if consumed.consumed_at is not None else "an unknown time"
    return (
        f"the approval of {consumed.gate} was consumed at {at} by step {consumed.consumed_by}: its irreversible section has "
        "begun, and goes on to its end"
    )


def _holding(command: Command, others: Sequence[Command], armed: Sequence[Command], now: datetime) -> Effect:
    """A hold voids what is armed. Within an irreversible section it takes effect afterwards: then it names the gate."""
    consumed = in_state(others, ApprovalState.CONSUMED, now)
    after = command.model_copy(update={"gate": consumed[-1].gate if consumed else None})
    return Effect(after, _closed(armed, ApprovalState.VOID, f"held by {command.by}: {command.reason}", now))


def _beginning(command: Command, armed: Sequence[Command]) -> Command:
    """A resume under which an armed approval would begin something irreversible names its gate, or is refused. It names one
    gate: so where two are armed it begins nothing."""
    unnamed = [one for one in armed if one.gate is not command.gate]
    if not unnamed and bool(armed) is (command.gate is not None):
        return command
    why = why_not_begun(unnamed[-1]) if unnamed else f"no approval of {command.gate} waits: resume without begin"
    return command.model_copy(update={"refused_because": why})


def why_not_begun(armed: Command) -> str:
    return (
        f"the approval of {armed.gate} by {armed.by} is armed: a resume would begin what cannot be undone. To begin it, POST "
        f'/migrations/{armed.migration_id}/resume with "begin": "{armed.gate}", or send the update resume with '
        f'{{"by": …, "reason": …, "begin": "{armed.gate}"}}. To resume without it, first reject {armed.gate} with '
        f"evidence_hash {armed.evidence_hash}"
    )


def _closed(approvals: Sequence[Command], state: ApprovalState, because: str, now: datetime) -> tuple[Command, ...]:
    closing = {"closed_as": state, "closed_because": because, "closed_at": now}
    return tuple(one.model_copy(update=closing) for one in approvals)


def why_not_consumed(attempt: Attempt, commands: Sequence[Command], generation: int, now: datetime) -> str | None:
    """Why the approval does not allow the attempt's write, or `None` where it does.

    `commands`: all of the migration. `generation`: the one that holds the cluster. A consumed approval allows what follows in
    its section, whatever a person has said since.
    """
    approval = next((one for one in commands if one.id == attempt.command_id), None)
    state = state_of(approval, now) if approval is not None else None
    if approval is None or state is None or approval.gate is not attempt.gate:
        return f"the ledger has no approval of {attempt.gate} under the id {attempt.command_id}"
    if generation != attempt.generation:
        return f"generation {generation} holds the cluster, and the attempt is of generation {attempt.generation}"
    if state is ApprovalState.CONSUMED and (attempt.gate in FINAL_GATES or approval.consumed_by == attempt.id):
        return None
    if state is not ApprovalState.ARMED:
        return f"the approval of {attempt.gate} by {approval.by} is {state}: {approval.closed_because or 'it counts no more'}"
    if is_held(commands, attempt.applied_commands):
        return "held: the newest order in the ledger is to hold"
    if is_rollback_asked(commands):
        return "a rollback was asked for"
    if approval.evidence_hash != attempt.evidence_hash:
        return f"the evidence has changed since {approval.by} approved {attempt.gate}"
    return None


def is_held(commands: Sequence[Command], applied: Sequence[str]) -> bool:
    """Whether the newest order is to hold. Holds count as they are written, what lifts them once it was applied."""
    orders = [
        one.kind in HOLDING
        for one in commands
        if one.refused_because is None and (one.kind in HOLDING or (one.kind in LIFTING and one.id in applied))
    ]
    return bool(orders) and orders[-1]


def is_rollback_asked(commands: Sequence[Command]) -> bool:
    """Whether a rollback was asked for, and not refused."""
    return any(one.kind is CommandKind.ROLLBACK and one.refused_because is None for one in commands)
