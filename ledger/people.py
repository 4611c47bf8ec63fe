"""`SqlPeople`: who asks, as the ledger knows them, and what their calls were answered. One call is one transaction."""

from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from domain.principals import ApiKey, Session
from domain.records import EventDraft
from ledger import answered_calls, approvals, chain, keys
from ledger.answered_calls import Begun, KeptAnswer, KeyedCall
from ledger.database import Database


class SqlPeople:
    """Every call raises `LedgerUnavailable` when the database does not answer within the time limit."""

    def __init__(self, database: Database, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._database = database
        self._now = now

    async def has_admin(self) -> bool:
        """Whether a valid key of an admin is there."""
        return await self._database.read(lambda connection: keys.has_admin(connection, self._now()))

    async def are_known(self) -> bool:
        """Whether authentication was ever on for this ledger."""
        return await self._database.read(keys.are_people_known)

    async def add_key(self, key: ApiKey, event: EventDraft) -> None:
        async def add(connection: AsyncConnection) -> None:
            await keys.insert(connection, key)
            await chain.append(connection, [event])

        await self._database.write(add)

    async def add_first_key(self, key: ApiKey, event: EventDraft) -> bool:
        """Add an admin's key where no valid one is there: of two copies of the API that start at the same time, one does.

        From the first key on only approvals of identities count, so what others have given and nothing has used is void.
        """

        async def add(connection: AsyncConnection) -> bool:
            await approvals.void_unauthenticated(connection, key.created_at)
            await chain.lock(connection)
            if await keys.has_admin(connection, self._now()):
                return False
            await keys.insert(connection, key)
            await chain.append(connection, [event])
            return True

        return await self._database.write(add)

    async def key(self, key_id: str) -> ApiKey | None:
        return await self._database.read(lambda connection: keys.find(connection, key_id))

    async def all_keys(self) -> list[ApiKey]:
        """Newest first, revoked ones too."""
        return await self._database.read(keys.find_all)

    async def revoke(self, key_id: str, by: str) -> ApiKey | None:
        """The key as it is then, or `None` where there is none. Its sessions end with it."""
        return await self._database.write(lambda connection: keys.revoke(connection, key_id, by, self._now()))

    async def add_session(self, session: Session) -> None:
        await self._database.write(lambda connection: keys.insert_session(connection, session))

    async def session(self, session_id: str) -> Session | None:
        """A valid session."""
        return await self._database.read(lambda connection: keys.find_session(connection, session_id, self._now()))

    async def end_session(self, session_id: str) -> None:
        await self._database.write(lambda connection: keys.end_session(connection, session_id, self._now()))

    async def begin_call(self, call: KeyedCall) -> Begun | KeptAnswer:
        """Take a call's key; what has it already, where something has."""
        return await self._database.write(lambda connection: answered_calls.begin(connection, call, self._now()))

    async def end_call(self, key: str, status: int, location: str | None, body: str) -> None:
        await self._database.write(lambda connection: answered_calls.end(connection, key, status, location, body))

    async def lose_call(self, key: str) -> None:
        await self._database.write(lambda connection: answered_calls.lose(connection, key))

    async def forget_call(self, key: str) -> None:
        await self._database.write(lambda connection: answered_calls.forget(connection, key))
