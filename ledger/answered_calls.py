"""Calls with an `Idempotency-Key`, and their answers. All functions work in the caller's transaction."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from ledger.tables import answered_calls

KEPT_FOR = timedelta(days=1)

ABANDONED_AFTER = timedelta(seconds=30)
"""Longer than any call takes: one that has no answer by then has lost its process, and may be made again."""

UNKNOWN = 503
"""The status, without a body, of a call that failed in a way that does not say what it has done."""


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


@dataclass(frozen=True)
class Begun:
    """A key that this call has now. `since`: when it was first taken, by a call that may have done everything but answer."""

    since: datetime


async def begin(connection: AsyncConnection, call: KeyedCall, now: datetime) -> Begun | KeptAnswer:
    """Take the key for a call. What has it already, where something has."""
    await connection.execute(answered_calls.delete().where(answered_calls.c.at < now - KEPT_FOR))
    row = (await connection.execute(select(answered_calls).where(answered_calls.c.key == call.key))).one_or_none()
    if row is None:
        named = {"key": call.key, "principal": call.principal, "request_hash": call.request_hash}
        await connection.execute(answered_calls.insert().values(at=now, **named))
        return Begun(now)
    kept = KeptAnswer(KeyedCall(row.key, row.principal, row.request_hash), row.status, row.location, row.body)
    is_lost = kept.body is None and (kept.status is not None or row.at < now - ABANDONED_AFTER)
    return Begun(row.at) if is_lost and kept.call == call else kept


async def end(connection: AsyncConnection, key: str, status: int, location: str | None, body: str | None) -> None:
    """Keep the answer."""
    change = update(answered_calls).where(answered_calls.c.key == key)
    await connection.execute(change.values(status=status, location=location, body=body))


async def lose(connection: AsyncConnection, key: str) -> None:
    """Let the same call be made again, and no other: its effect is unknown."""
    await end(connection, key, UNKNOWN, None, None)


async def forget(connection: AsyncConnection, key: str) -> None:
    """Give the key back: the call changed nothing."""
    await connection.execute(answered_calls.delete().where(answered_calls.c.key == key))
