"""An approval is one row of the ledger, and the ledger is its one arbiter.

    counted            not enough people yet: the gate needs more than one approver, each with an approval of their own
      │
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

Four eyes: where the ledger knows identities, the approvals of whoever asked for the migration never count, and those of
unidentified people count no more. An admin may break glass, alone and for their own request; the ledger says so for good.

All functions are pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from domain.decisions import Label
from domain.policy import ApprovalPolicy, is_reason_enough
from domain.principals import AUTHENTICATED
from domain.records import HOLDING, LIFTING, ApprovalSeen, ApprovalState, Command, CommandKind


@dataclass(frozen=True)
class Attempt:
    """One attempt to consume an approval, and what it saw. `id`: the same for all retries of one step.

    `applied_commands`: what the migration had applied when it decided on the step. `is_in_section`: the step is one of several
    that one approval allows.
    """

    id: str
    migration_id: str
    cluster: str
    generation: int
    gate: Label
    command_id: str
    evidence_hash: str
    applied_commands: tuple[str, ...] = ()
    is_in_section: bool = False


@dataclass(frozen=True)
class Rules:
    """What an approval is held to. `are_people_known`: the ledger has identities, so that four eyes are two people's."""

    policy: ApprovalPolicy
    requested_by: str
    requested_at: datetime
    are_people_known: bool = False

    def needed(self, gate: Label | None) -> int:
        """How many people have to approve."""
        wanted = next((count for name, count in self.policy.approvers.items() if name == gate), 1)
        return wanted if self.are_people_known else 1


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
    if command.waits_for_others and not (command.expires_at is not None and command.expires_at <= now):
        return ApprovalState.COUNTED
    is_over = command.expires_at is not None and command.expires_at <= now
    return ApprovalState.EXPIRED if is_over else ApprovalState.ARMED


def in_state(commands: Sequence[Command], state: ApprovalState, now: datetime, gate: Label | None = None) -> list[Command]:
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
        evidence_hash=command.evidence_hash,
    )


def told_of(approval: ApprovalSeen) -> str:
    """One line for people: by whom, when, until when, and what a resume does."""
    given = f"Approval of {approval.gate} by {approval.by} at {approval.at:%Y-%m-%d %H:%M:%S} UTC"
    if approval.state is not ApprovalState.ARMED:
        when = f" at {approval.consumed_at:%H:%M:%S} UTC" if approval.consumed_at is not None else ""
        return f"{given}: {approval.state}{when}"
    until = f"until {approval.until:%Y-%m-%d %H:%M:%S} UTC" if approval.until is not None else "without an end"
    return f'{given}: armed {until}. A resume with "begin": "{approval.gate}" starts what cannot be undone'


def effect_of(command: Command, others: Sequence[Command], rules: Rules, now: datetime) -> Effect:
    """What a command does to the approvals among the migration's `others` while it is written. A refused one does nothing."""
    if command.refused_because is not None:
        return Effect(command)
    match command.kind:
        case CommandKind.APPROVE:
            return _armed(command, others, rules, now)
        case CommandKind.REJECT:
            return _rejecting(command, others, now)
        case CommandKind.HOLD:
            return _holding(command, others, now)
        case CommandKind.RESUME:
            return Effect(_beginning(command, in_state(others, ApprovalState.ARMED, now)))
        case CommandKind.ROLLBACK:
            return Effect(command)


def _armed(command: Command, others: Sequence[Command], rules: Rules, now: datetime) -> Effect:
    """One that is armed already stays the one that counts, whoever sends another: a retry must not void it."""
    before = in_state(others, ApprovalState.ARMED, now, command.gate)
    counted = [one.by for one in in_state(others, ApprovalState.COUNTED, now, command.gate) if _is_alike(one, command)]
    why = _why_armed_already(before) or why_not_counted(command, rules) or _why_not_in_time(command, rules)
    if not why and command.by in counted:
        why = f"{command.by} has approved {command.gate} already, and another person has to"
    if why:
        return Effect(command.model_copy(update={"refused_because": why}))
    expires_after = rules.policy.approval_expires_after
    missing = 0 if command.break_glass else rules.needed(command.gate) - len({*counted, command.by})
    update = {"expires_at": now + expires_after if expires_after is not None else None, "waits_for_others": missing > 0}
    # Nothing is brought to the migration before there are enough.
    return Effect(command.model_copy(update=update | ({"delivered_at": now} if missing > 0 else {})))


def _is_alike(one: Command, other: Command) -> bool:
    return one.evidence_hash == other.evidence_hash


def _why_armed_already(before: Sequence[Command]) -> str:
    if not before:
        return ""
    return f"{before[-1].gate} is approved already, by {before[-1].by} at {before[-1].at:%Y-%m-%d %H:%M:%S} UTC"


def why_not_counted(approval: Command, rules: Rules) -> str:
    """Why an approval does not count because of who gave it; empty where it does."""
    if not rules.are_people_known:
        return ""
    if approval.via not in AUTHENTICATED:
        return f"it was given by {approval.by} without authentication, which is on: only approvals of identities count"
    if approval.by == rules.requested_by and not approval.break_glass:
        return f"{approval.by} asked for this migration: another person has to approve {approval.gate}"
    return ""


def _why_not_in_time(approval: Command, rules: Rules) -> str:
    """Also of its reason, which the policy may demand a form of."""
    if not is_reason_enough(approval.reason, rules.policy):
        return f"the policy asks for a reason that fits {rules.policy.reason_pattern}"
    expires_after = rules.policy.request_expires_after
    if expires_after is not None and approval.at >= rules.requested_at + expires_after:
        asked = f"the request of {rules.requested_by} has expired, {expires_after} after it was made"
        return f"{asked}: hold and resume the migration to ask again"
    return ""


def _rejecting(command: Command, others: Sequence[Command], now: datetime) -> Effect:
    """A rejection withdraws what is armed. It comes too late for what is consumed, and says so."""
    consumed = in_state(others, ApprovalState.CONSUMED, now, command.gate)
    if consumed:
        return Effect(command.model_copy(update={"refused_because": too_late(consumed[-1])}))
    armed = _unused(others, now, command.gate)
    return Effect(command, closed(armed, ApprovalState.WITHDRAWN, f"rejected by {command.by}: {command.reason}", now))


def too_late(consumed: Command) -> str:
    at = f"{consumed.consumed_at:%Y-%m-%d %H:%M:%S} UTC" if consumed.consumed_at is not None else "an unknown time"
    return (
        f"the approval of {consumed.gate} was consumed at {at} by step {consumed.consumed_by}: its irreversible section has "
        "begun, and runs to its end"
    )


def _unused(commands: Sequence[Command], now: datetime, gate: Label | None = None) -> list[Command]:
    return [one for state in (ApprovalState.COUNTED, ApprovalState.ARMED) for one in in_state(commands, state, now, gate)]


def _holding(command: Command, others: Sequence[Command], now: datetime) -> Effect:
    """A hold voids what is unused. Within an irreversible section it takes effect afterwards: then it names the gate."""
    consumed = in_state(others, ApprovalState.CONSUMED, now)
    after = command.model_copy(update={"gate": consumed[-1].gate if consumed else None})
    return Effect(after, closed(_unused(others, now), ApprovalState.VOID, f"held by {command.by}: {command.reason}", now))


def _beginning(command: Command, armed: Sequence[Command]) -> Command:
    """A resume under which an armed approval would begin something irreversible names its gate, or is refused. It names one
    gate: so where two are armed it begins nothing."""
    unnamed = [one for one in armed if one.gate != command.gate]
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


def closed(approvals: Sequence[Command], state: ApprovalState, because: str, now: datetime) -> tuple[Command, ...]:
    closing = {"closed_as": state, "closed_because": because, "closed_at": now}
    return tuple(one.model_copy(update=closing) for one in approvals)


def why_not_consumed(attempt: Attempt, commands: Sequence[Command], rules: Rules, generation: int, now: datetime) -> str | None:
    """Why the approval does not allow the attempt's write, or `None` where it does.

    `commands`: all of the migration. `generation`: the one that holds the cluster. A consumed approval allows what follows in
    its section, whatever a person has said since.
    """
    approval = next((one for one in commands if one.id == attempt.command_id), None)
    state = state_of(approval, now) if approval is not None else None
    if approval is None or state is None or approval.gate != attempt.gate:
        return f"the ledger has no approval of {attempt.gate} under the id {attempt.command_id}"
    if generation != attempt.generation:
        return f"generation {generation} holds the cluster, and the attempt is of generation {attempt.generation}"
    if state is ApprovalState.CONSUMED and (attempt.is_in_section or approval.consumed_by == attempt.id):
        return None
    if state is not ApprovalState.ARMED:
        return f"the approval of {attempt.gate} by {approval.by} is {state}: {approval.closed_because or 'it counts no more'}"
    if is_held(commands, attempt.applied_commands):
        return "held: the newest order in the ledger is to hold"
    if is_rollback_asked(commands):
        return "a rollback was asked for"
    if approval.evidence_hash != attempt.evidence_hash:
        return f"the evidence has changed since {approval.by} approved {attempt.gate}"
    return _why_too_few(approval, commands, rules, now)


def _why_too_few(approval: Command, commands: Sequence[Command], rules: Rules, now: datetime) -> str | None:
    """Asked again where it is consumed: an identity's approval may have been followed by authentication, or by an expiry."""
    if why := why_not_counted(approval, rules):
        return why
    counted = in_state(commands, ApprovalState.COUNTED, now, approval.gate)
    people = {approval.by, *(one.by for one in counted if _is_alike(one, approval) and not why_not_counted(one, rules))}
    needed = 1 if approval.break_glass else rules.needed(approval.gate)
    return None if len(people) >= needed else f"{len(people)} of {needed} people approve {approval.gate} on this evidence"


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
