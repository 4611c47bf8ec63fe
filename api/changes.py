"""What has changed on the machine of keeperless-activities, looked at from here, where that process does not look itself."""

import asyncio
from datetime import UTC, datetime

from activities.notes.look_here import look_here
from activities.observing.node_survey import CannotLook
from api.wiring import Wiring
from domain.blocker import Blocker, blocker
from domain.blocker_codes import MACHINE
from domain.machines.notes import OURS, changes_between, kernel_lines, seen_from_beside
from domain.records import MigrationRecord
from ledger.errors import LedgerUnavailable


async def changed_here(wiring: Wiring, record: MigrationRecord, now: datetime, until: float) -> tuple[Blocker | None, str]:
    """The entry: none where nothing has changed, it was never noted, or it runs on another machine than the API. And why it
    could not be looked up, where it could not. `until`: by the clock of the event loop.
    """
    try:
        async with asyncio.timeout_at(until):
            before = await wiring.ledger.note(record.id, OURS)
            told = await look_here() if before is not None else None
    except TimeoutError:
        return None, "what has changed on this machine: no answer in time"
    except (LedgerUnavailable, CannotLook) as error:
        return None, f"what has changed on this machine: {error}"
    facts = seen_from_beside(before, told["facts"]) if before is not None and told is not None else {}
    if before is None or told is None or not facts:
        return None, ""
    changes = changes_between(before, facts, kernel_lines(told), datetime.now(UTC))
    if not changes.changes:
        return None, ""
    expected = f"nothing keeps {OURS} from its work"
    return blocker(MACHINE, OURS, observed=changes.in_words, expected=expected, fix=changes.fix, since=now), ""
