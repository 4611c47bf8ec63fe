"""What could not be done at once is tried again: the schema at start, commands, abandoned starts, audit events."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

import structlog

from api.running.audit import Audit
from api.running.commands import Courier
from api.running.starting import RunUnknown, Starter
from api.running.temporal import TemporalRefused, TemporalUnavailable
from domain.records import ACTIVE_STATES, MigrationRecord
from ledger.errors import LedgerUnavailable
from ledger.ledger import SqlLedger
from ledger.schema import upgrade

LOOKED_AT_ONCE = 200
"""Active migrations in one state; there is one for each cluster at most."""

log = structlog.get_logger()


class Schema:
    """Brings the ledger's schema to the newest version, as soon as its database answers."""

    def __init__(self, url: str, pause: timedelta) -> None:
        self._url = url
        self._pause = pause
        self.is_current = False
        self._why_not = LedgerUnavailable("its database does not answer")

    def ensure_current(self) -> None:
        """Raise what the database said last, until the schema is the one that this program knows."""
        if not self.is_current:
            said = f"the ledger's schema is not the one of this release yet: {self._why_not}"
            raise LedgerUnavailable(said, self._why_not.fix)

    async def upgrade(self) -> None:
        """Returns when it is done. Raises `LedgerMisuse` when it can never be."""
        while not self.is_current:
            try:
                await upgrade(self._url)
                self.is_current = True
            except LedgerUnavailable as error:
                self._why_not = error
                log.warning("the ledger does not answer; its schema is not upgraded yet", error=str(error))
                await asyncio.sleep(self._pause.total_seconds())


@dataclass(frozen=True)
class Caretaker:
    """Runs beside the API, in rounds. Several APIs may do this at once: everything here may be done twice."""

    ledger: SqlLedger
    courier: Courier
    starter: Starter
    audit: Audit
    pause: timedelta
    last_read: dict[str, MigrationRecord] = field(default_factory=dict)
    """Every migration that was active in the last round that could be read, by its id."""

    async def run(self) -> None:
        """Rounds for ever. A bug in one must not end all further ones: it is logged whole, and shows again."""
        while True:
            try:
                await self.round()
            except (LedgerUnavailable, TemporalUnavailable, TemporalRefused) as error:
                log.warning("a round of the caretaker was cut short", error=str(error))
            except Exception:
                log.exception("a round of the caretaker failed")
            await asyncio.sleep(self.pause.total_seconds())

    async def round(self) -> None:
        """One look at everything that is active, or that owes somebody an answer."""
        await self.audit.write_kept()
        for migration in await self._active():
            if migration.run_id is None:
                with suppress(RunUnknown):  # who asks is told
                    await self.starter.settle(migration.id)
        for migration_id in await self.ledger.with_undelivered_commands():
            await self.courier.deliver(migration_id)

    async def _active(self) -> list[MigrationRecord]:
        by_state = [await self.ledger.migrations(state=state, limit=LOOKED_AT_ONCE) for state in sorted(ACTIVE_STATES)]
        active = [migration for migrations in by_state for migration in migrations]
        self.last_read.clear()
        self.last_read.update({migration.id: migration for migration in active})
        return active
