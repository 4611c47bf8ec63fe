"""Approvals: the transactions in which they change. The rules are those of `domain.approvals`, which draws the states.

Every transition locks the migration's row first (a consumption the cluster's before it), so of two that race the second one
sees what the first has written. All functions work in the caller's transaction.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.approvals import Attempt, Rules, closed, effect_of, state_of, why_not_consumed
from domain.principals import AUTHENTICATED
from domain.records import ApprovalState, Command, CommandKind, EventDraft, MigrationRecord
from ledger import chain, clusters, commands, keys, migrations
from ledger.errors import NoSuchCluster
from ledger.tables import commands as command_table

CLOSING = {f"approval-{state}": state for state in (ApprovalState.VOID, ApprovalState.EXPIRED, ApprovalState.DONE)}
"""Events of a run that close the approval that they name. What a person does closes approvals in `add`."""

APPROVED = "approved"
"""The event of a run that took an approval."""

OPEN = frozenset({ApprovalState.COUNTED, ApprovalState.ARMED, ApprovalState.CONSUMED})


async def add(connection: AsyncConnection, command: Command, now: datetime) -> Command:
    """Store a command and close what it closes. One that is there already stays as it is, and is the answer."""
    migration = await migrations.lock(connection, command.migration_id)
    known = await commands.find(connection, command.id)
    if known is not None:
        return known
    others = await commands.find_all(connection, command.migration_id)
    effect = effect_of(command, others, await _rules(connection, migration, others), now)
    await commands.insert(connection, effect.command)
    for approval in effect.closed:
        await _close(connection, approval)
    await chain.append(connection, [_event(migration, f"approval-{one.closed_as}", one, now) for one in effect.closed])
    return effect.command


async def consume(connection: AsyncConnection, attempt: Attempt, now: datetime) -> str | None:
    """Armed to consumed, by this attempt; why not, where the approval does not allow it."""
    cluster = await clusters.lock(connection, attempt.cluster)
    if cluster is None:
        raise NoSuchCluster(attempt.cluster)
    migration = await migrations.lock(connection, attempt.migration_id)
    known = await commands.find_all(connection, attempt.migration_id)
    why_not = why_not_consumed(attempt, known, await _rules(connection, migration, known), cluster.generation, now)
    if why_not is not None:
        return why_not
    is_armed = (command_table.c.id == attempt.command_id) & command_table.c.consumed_at.is_(None)
    change = update(command_table).where(is_armed & command_table.c.closed_at.is_(None))
    marked = await connection.execute(change.values(consumed_at=now, consumed_by=attempt.id))
    if marked.rowcount:
        approval = next(one for one in known if one.id == attempt.command_id)
        taken = approval.model_copy(update={"consumed_at": now, "consumed_by": attempt.id})
        await chain.append(connection, [_event(migration, "approval-consumed", taken, now)])
    return None


async def _rules(connection: AsyncConnection, migration: MigrationRecord, commands: Sequence[Command]) -> Rules:
    """Return the rules. A resume renews the request."""
    asked = [one.at for one in commands if one.kind is CommandKind.RESUME and one.refused_because is None]
    return Rules(
        migration.policy,
        migration.requested_by,
        max([migration.created_at, *asked]),
        are_people_known=await keys.are_people_known(connection),
    )


async def as_known(connection: AsyncConnection, drafts: Sequence[EventDraft]) -> list[EventDraft]:
    """A run says `approved` of any message that has the form of the API's. The audit says so only of what the ledger has."""
    return [await _as_known(connection, draft) if draft.kind == APPROVED else draft for draft in drafts]


async def _as_known(connection: AsyncConnection, draft: EventDraft) -> EventDraft:
    approval = await commands.find(connection, str(draft.data.get("command")))
    if approval is not None and approval.migration_id == draft.migration_id:
        broken = {"break_glass": True} if approval.break_glass else {}
        return draft.model_copy(update={"data": draft.data | broken})
    why = "the ledger has no such approval: the message did not come through the API, and moves nothing"
    return draft.model_copy(update={"kind": "message-ignored", "data": {**draft.data, "order": "approve", "why": why}})


async def close_told(connection: AsyncConnection, drafts: Sequence[EventDraft]) -> None:
    """Close the approvals that a run reports as over. One that was consumed meanwhile is done: its section has ended."""
    for draft in drafts:
        state = CLOSING.get(draft.kind)
        approval = await commands.find(connection, str(draft.data.get("command"))) if state is not None else None
        if approval is not None and approval.migration_id == draft.migration_id:
            state = ApprovalState.DONE if approval.consumed_at is not None else state
            closing = {"closed_as": state, "closed_at": draft.at, "closed_because": draft.data.get("why")}
            await _close(connection, approval.model_copy(update=closing))
            for other in await commands.find_all(connection, approval.migration_id):
                if other.waits_for_others and other.gate == approval.gate:
                    await _close(connection, other.model_copy(update=closing))


async def find_open(connection: AsyncConnection, migration_ids: Sequence[str], now: datetime) -> list[Command]:
    is_asked = command_table.c.migration_id.in_(migration_ids) & (command_table.c.kind == CommandKind.APPROVE)
    query = select(command_table).where(is_asked & command_table.c.closed_at.is_(None))
    rows = (await connection.execute(query.order_by(command_table.c.at, command_table.c.id))).mappings()
    found = [Command.model_validate(dict(row)) for row in rows]
    return [one for one in found if state_of(one, now) in OPEN]


async def void_unauthenticated(connection: AsyncConnection, now: datetime) -> None:
    """Close every unused approval that no identity has given. All migrations are locked before the chain, as everywhere."""
    is_unused = (command_table.c.kind == CommandKind.APPROVE) & command_table.c.closed_at.is_(None)
    is_unused &= command_table.c.consumed_at.is_(None) & command_table.c.via.not_in(AUTHENTICATED)
    because = "given before authentication was turned on: only approvals of identities count"
    found = await connection.scalars(select(command_table.c.migration_id).where(is_unused).distinct().order_by("migration_id"))
    locked = [await migrations.lock(connection, migration_id) for migration_id in found.all()]
    told = []
    for migration in locked:
        given = [one for one in await find_open(connection, [migration.id], now) if one.via not in AUTHENTICATED]
        for void in closed([one for one in given if one.consumed_at is None], ApprovalState.VOID, because, now):
            await _close(connection, void)
            told.append(_event(migration, "approval-void", void, now))
    await chain.append(connection, told)


async def _close(connection: AsyncConnection, approval: Command) -> None:
    """The first closing stands."""
    unclosed = (command_table.c.id == approval.id) & command_table.c.closed_at.is_(None)
    values = {name: getattr(approval, name) for name in ("closed_at", "closed_as", "closed_because")}
    await connection.execute(update(command_table).where(unclosed).values(values))


def _event(migration: MigrationRecord, kind: str, approval: Command, now: datetime) -> EventDraft:
    return EventDraft(
        key=f"{kind}/{approval.id}",
        kind=kind,
        cluster=migration.cluster,
        migration_id=migration.id,
        at=now,
        data={
            "gate": approval.gate,
            "command": approval.id,
            "by": approval.by,
            "attempt": approval.consumed_by,
            "break_glass": approval.break_glass,
            "why": approval.closed_because,
        },
    )
