"""The chain of events: dense, append-only, each entry bound to the one before by its hash.

Whoever appends first locks the chain's head and holds it until its transaction ends. So places are given in the order in
which transactions become visible: who has read up to `seq` n will never see an entry below n appear.
"""

from collections.abc import Sequence
from datetime import UTC

from sqlalchemy import RowMapping, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.records import GENESIS_HASH, Event, EventDraft, event_hash
from ledger.errors import LedgerMisuse
from ledger.tables import chain_head, events


async def append(connection: AsyncConnection, drafts: Sequence[EventDraft]) -> None:
    """Append the drafts whose keys are new, in their order. An event that is there already is left as it is."""
    if not drafts:
        return
    head = await lock(connection)
    known = set(await connection.scalars(select(events.c.key).where(events.c.key.in_([d.key for d in drafts]))))
    # The first draft of a key stands; `setdefault` keeps the order.
    fresh: dict[str, EventDraft] = {}
    for draft in drafts:
        if draft.key not in known:
            fresh.setdefault(draft.key, canonical(draft))
    entries = linked(list(fresh.values()), head["seq"], head["hash"])
    if entries:
        await connection.execute(events.insert(), [entry.model_dump() for entry in entries])
        await connection.execute(update(chain_head).values(seq=entries[-1].seq, hash=entries[-1].hash))


async def lock(connection: AsyncConnection) -> RowMapping:
    """The head: whoever has it appends, and nobody else does until the transaction ends."""
    return (await connection.execute(select(chain_head).with_for_update())).mappings().one()


def canonical(draft: EventDraft) -> EventDraft:
    """The draft as it will be read back: JSON values only, the time in UTC. Hashes are of this form."""
    if draft.at.tzinfo is None:
        raise LedgerMisuse(f"event {draft.key}: the time {draft.at} has no time zone: give an aware one")
    in_utc = draft.model_copy(update={"at": draft.at.astimezone(UTC)})
    try:
        return EventDraft.model_validate_json(in_utc.model_dump_json())
    except ValueError as error:
        raise LedgerMisuse(f"event {draft.key}: its data cannot be written as JSON: {error}") from error


def linked(drafts: Sequence[EventDraft], seq: int, prev_hash: str) -> list[Event]:
    """The drafts as entries that follow the entry with place `seq` and hash `prev_hash`."""
    entries: list[Event] = []
    for place, draft in enumerate(drafts, seq + 1):
        digest = event_hash(place, draft, prev_hash)
        entries.append(Event(seq=place, prev_hash=prev_hash, hash=digest, **draft.model_dump()))
        prev_hash = digest
    return entries


async def find_all(connection: AsyncConnection, migration_id: str | None, after_seq: int, limit: int) -> list[Event]:
    """Entries after `after_seq`, in order."""
    query = select(events).where(events.c.seq > after_seq).order_by(events.c.seq).limit(limit)
    if migration_id is not None:
        query = query.where(events.c.migration_id == migration_id)
    return [_record(row) for row in (await connection.execute(query)).mappings()]


async def head(connection: AsyncConnection) -> tuple[int, str]:
    """Place and hash of the newest entry."""
    row = (await connection.execute(select(chain_head.c.seq, chain_head.c.hash))).one()
    return row.seq, row.hash


class Verification:
    """Walks the chain from its beginning. `first_bad` is the first place that is not what was appended.

    `head_seq` and `head_hash` are what the head says: the chain's end may have been cut off, or written anew.
    """

    def __init__(self, head_seq: int, head_hash: str) -> None:
        self._head = (head_seq, head_hash)
        self.seq = 0
        self._hash = GENESIS_HASH
        self.first_bad: int | None = None

    def follow(self, entries: Sequence[Event]) -> None:
        """Take the next entries; stops at the first bad one."""
        for entry in entries:
            if not self._is_next(entry):
                self.first_bad = self.seq + 1
                return
            self.seq, self._hash = entry.seq, entry.hash

    def end(self) -> None:
        """There are no more entries."""
        if self.first_bad is None and self.seq < self._head[0]:
            self.first_bad = self.seq + 1

    def _is_next(self, entry: Event) -> bool:
        draft = EventDraft.model_validate(entry.model_dump(include=set(EventDraft.model_fields)))
        is_linked = entry.seq == self.seq + 1 and entry.prev_hash == self._hash
        is_unchanged = entry.hash == event_hash(entry.seq, draft, self._hash)
        is_known_to_head = entry.seq != self._head[0] or entry.hash == self._head[1]
        return is_linked and is_unchanged and is_known_to_head


def _record(row: RowMapping) -> Event:
    return Event.model_validate(dict(row))
