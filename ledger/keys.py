"""API keys and browser sessions. All functions work in the caller's transaction."""

from datetime import datetime

from sqlalchemy import exists, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.principals import ApiKey, Role, Session
from ledger.tables import api_keys, sessions


async def are_people_known(connection: AsyncConnection) -> bool:
    """Whether authentication was ever on for this ledger: an API with authentication begins by writing the first key."""
    return bool(await connection.scalar(select(exists().where(api_keys.c.id.is_not(None)))))


async def has_admin(connection: AsyncConnection, now: datetime) -> bool:
    """Whether a valid key of an admin is there."""
    return any(key.is_valid(now) and Role.ADMIN in key.roles for key in await find_all(connection))


async def find(connection: AsyncConnection, key_id: str) -> ApiKey | None:
    row = (await connection.execute(select(api_keys).where(api_keys.c.id == key_id))).mappings().one_or_none()
    return None if row is None else ApiKey.model_validate(dict(row))


async def find_all(connection: AsyncConnection) -> list[ApiKey]:
    """Newest first, revoked ones too."""
    rows = (await connection.execute(select(api_keys).order_by(api_keys.c.created_at.desc(), api_keys.c.id))).mappings()
    return [ApiKey.model_validate(dict(row)) for row in rows]


async def insert(connection: AsyncConnection, key: ApiKey) -> None:
    await connection.execute(api_keys.insert().values(key.model_dump()))


async def revoke(connection: AsyncConnection, key_id: str, by: str, at: datetime) -> ApiKey | None:
    """The key as it is then; `None` where there is none. The first revocation stands."""
    valid = (api_keys.c.id == key_id) & api_keys.c.revoked_at.is_(None)
    await connection.execute(update(api_keys).where(valid).values(revoked_at=at, revoked_by=by))
    return await find(connection, key_id)


async def insert_session(connection: AsyncConnection, session: Session) -> None:
    await connection.execute(sessions.delete().where(sessions.c.expires_at < session.created_at))
    await connection.execute(sessions.insert().values(session.model_dump()))


async def find_session(connection: AsyncConnection, session_id: str, now: datetime) -> Session | None:
    """A session that is valid, and whose key is valid."""
    row = (await connection.execute(select(sessions).where(sessions.c.id == session_id))).mappings().one_or_none()
    session = None if row is None else Session.model_validate(dict(row))
    if session is None or not session.is_valid(now):
        return None
    key = await find(connection, session.key_id) if session.key_id is not None else None
    return session if key is None or key.is_valid(now) else None


async def end_session(connection: AsyncConnection, session_id: str, at: datetime) -> None:
    unended = (sessions.c.id == session_id) & sessions.c.ended_at.is_(None)
    await connection.execute(update(sessions).where(unended).values(ended_at=at))
