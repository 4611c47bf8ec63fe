"""What has changed on the machine of keeperless-activities, looked at from here, where that process does not look itself."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from activities.on_node.note_machine import note
from api.wiring import Wiring
from domain.blocker import Blocker, blocker
from domain.machine_notes import LOOK_AT_CHANGES, OURS, changes_between, seen_from_beside
from domain.records import MigrationRecord
from domain.standing import MACHINE

NOTHING_BUT_THE_MACHINE: dict[str, Any] = {"pid": None, "places": [], "data": [], "own": []}


async def changed_here(wiring: Wiring, record: MigrationRecord, now: datetime, until: float) -> Blocker | None:
    """The entry; `None` where nothing has changed, it was never noted, or it runs on another machine than the API.

    `until`: by the clock of the event loop. Raises `LedgerUnavailable`.
    """
    before = await wiring.ledger.note(record.id, OURS)
    if before is None:
        return None
    with suppress(TimeoutError):
        async with asyncio.timeout_at(until):
            told = await asyncio.to_thread(note, NOTHING_BUT_THE_MACHINE)
            facts = seen_from_beside(before, told["facts"])
            changes = changes_between(before, facts, told["kernel"] if facts else [], datetime.now(UTC))
            if changes:
                return blocker(
                    MACHINE,
                    OURS,
                    observed=changes.in_words,
                    expected=f"nothing keeps {OURS} from its work",
                    fix=LOOK_AT_CHANGES,
                    since=now,
                )
    return None
