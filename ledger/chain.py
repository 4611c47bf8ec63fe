"""The chain of events: dense, append-only, each entry bound to the one before by its hash.

Whoever appends first locks the chain's head and holds it until its transaction ends. So places are given in the order in
which transactions become visible: who has read up to `seq` n will never see an entry below n appear.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

from sqlalchemy import RowMapping, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.records import GENESIS_HASH, Event, EventDraft, event_hash
from domain.restored_history import LIKE, OF_A_RUN, STEP_BEGUN, STEP_OVER, ToldByRuns
from ledger.errors import LedgerMisuse
from ledger.tables import chain_head, events


async def append(connection: AsyncConnection, drafts: Sequence[EventDraft]) -> None:
    """Append the drafts whose keys are new, in their order. An event that is there already is left as it is.

    What a run tells under a number that it has told something else under before (`domain.restored_history`) is another event.
    """
    if not drafts:
        return
    head = await lock(connection)
    found = await _by_key(connection, [draft.key for draft in drafts])
    given = [_under_its_own_key(canonical(draft), found) for draft in drafts]
    known = found.keys() | await _by_key(connection, [draft.key for draft in given if draft.key not in found])
    # The first draft of a key stands; `setdefault` keeps the order.
    fresh: dict[str, EventDraft] = {}
    for draft in given:
        if draft.key not in known:
            fresh.setdefault(draft.key, draft)
    entries = linked(list(fresh.values()), head["seq"], head["hash"])
    if entries:
        await connection.execute(events.insert(), [entry.model_dump() for entry in entries])
        await connection.execute(update(chain_head).values(seq=entries[-1].seq, hash=entries[-1].hash))


async def _by_key(connection: AsyncConnection, keys: Sequence[str]) -> dict[str, Event]:
    rows = (await connection.execute(select(events).where(events.c.key.in_(keys)))).mappings() if keys else ()
    return {event.key: event for event in map(_record, rows)}


def _under_its_own_key(draft: EventDraft, known: Mapping[str, Event]) -> EventDraft:
    there = known.get(draft.key)
    if there is None or OF_A_RUN.fullmatch(draft.key) is None:
        return draft
    if draft == _draft_of(there):
        return draft
    digest = hashlib.sha256(draft.model_dump_json().encode()).hexdigest()
    return draft.model_copy(update={"key": f"{draft.key}~{digest[:12]}"})


async def told_by_runs(connection: AsyncConnection, migration_id: str, before: datetime) -> ToldByRuns:
    """What runs have told of the time before that one, and of steps."""
    is_told = (events.c.migration_id == migration_id) & events.c.key.like(LIKE)
    is_before = is_told & (events.c.at < before)
    is_of_step = is_told & events.c.kind.in_((STEP_BEGUN, *STEP_OVER))
    newest_first = events.c.seq.desc()
    count = (await connection.execute(select(func.count()).where(is_before))).scalar_one()
    newest = (
        await connection.execute(select(events.c.kind, events.c.at).where(is_before).order_by(newest_first).limit(1))
    ).one_or_none()
    step = (
        await connection.execute(select(events.c.kind, events.c.data).where(is_of_step).order_by(newest_first).limit(1))
    ).one_or_none()
    return ToldByRuns(
        count=count,
        newest_kind=newest.kind if newest is not None else "",
        newest_at=newest.at if newest is not None else None,
        last_step=int(step.data.get("step", 0)) if step is not None else 0,
        is_step_over=step is not None and step.kind in STEP_OVER,
    )


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


async def find_newest(connection: AsyncConnection, migration_id: str, limit: int) -> list[Event]:
    """A migration's last entries, the newest first."""
    query = select(events).where(events.c.migration_id == migration_id).order_by(events.c.seq.desc()).limit(limit)
    return [_record(row) for row in (await connection.execute(query)).mappings()]


async def find_kinds(connection: AsyncConnection, migration_id: str, kinds: Collection[str]) -> list[Event]:
    """A migration's entries of these kinds, in order."""
    wanted = (events.c.migration_id == migration_id) & events.c.kind.in_(kinds)
    query = select(events).where(wanted).order_by(events.c.seq)
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
        is_linked = entry.seq == self.seq + 1 and entry.prev_hash == self._hash
        is_unchanged = entry.hash == event_hash(entry.seq, _draft_of(entry), self._hash)
        is_known_to_head = entry.seq != self._head[0] or entry.hash == self._head[1]
        return is_linked and is_unchanged and is_known_to_head


def _draft_of(entry: Event) -> EventDraft:
    """As it was before it got its place."""
    return EventDraft.model_validate(entry.model_dump(include=set(EventDraft.model_fields)))


def _record(row: RowMapping) -> Event:
    return Event.model_validate(dict(row))
