"""Calls with an `Idempotency-Key`, and their answers. All functions work in the caller's transaction."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from ledger.tables import answered_calls

KEPT_FOR = timedelta(days=1)

ABANDONED_AFTER = timedelta(seconds=30)
"""Longer than any call takes: one that has no answer by then has lost its process, and may be made again."""


@dataclass(frozen=True)
class KeyedCall:
    """A call under its key. `request_hash`: of method, path and body."""

    key: str
    principal: str
    request_hash: str


@dataclass(frozen=True)
class KeptAnswer:
    """What was answered; `status` is `None` while there is no answer yet."""

    call: KeyedCall
    status: int | None
    location: str | None
    body: str | None


async def begin(connection: AsyncConnection, call: KeyedCall, now: datetime) -> KeptAnswer | None:
    """Take the key for a call. What has it already, where something has."""
    await connection.execute(answered_calls.delete().where(answered_calls.c.at < now - KEPT_FOR))
    is_abandoned = answered_calls.c.status.is_(None) & (answered_calls.c.at < now - ABANDONED_AFTER)
    await connection.execute(answered_calls.delete().where((answered_calls.c.key == call.key) & is_abandoned))
    row = (await connection.execute(select(answered_calls).where(answered_calls.c.key == call.key))).one_or_none()
    if row is None:
        named = {"key": call.key, "principal": call.principal, "request_hash": call.request_hash}
        await connection.execute(answered_calls.insert().values(at=now, **named))
        return None
    return KeptAnswer(KeyedCall(row.key, row.principal, row.request_hash), row.status, row.location, row.body)


async def end(connection: AsyncConnection, key: str, status: int, location: str | None, body: str) -> None:
    """Keep the answer."""
    change = update(answered_calls).where(answered_calls.c.key == key)
    await connection.execute(change.values(status=status, location=location, body=body))


async def forget(connection: AsyncConnection, key: str) -> None:
    """Give the key back: the call changed nothing."""
    await connection.execute(answered_calls.delete().where(answered_calls.c.key == key))
