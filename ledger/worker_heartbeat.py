"""A worker's heartbeat: every few seconds its health row in the ledger, and a file for the health check of its container.

It runs on the worker's own event loop, so that a blocked loop stops it. If the ledger does not answer, the row is missing and
the worker goes on: that is logged once.
"""

import asyncio
import hashlib
import json
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import structlog
from sqlalchemy import event
from temporalio.client import Client

from console.health import beat_file, write_beat
from console.logs import LastError
from console.polls import Polls
from console.program import release
from console.worker_settings import WorkerSettings
from domain.redaction import stripped
from domain.worker_health import WorkerHealth
from ledger.database import Database, place_of
from ledger.errors import LedgerUnavailable
from ledger.ledger import SqlLedger

BEAT = timedelta(seconds=5)
MOST_SAID = 240
"""Characters of an error."""
DIGITS = 12
"""Length of the settings' digest: enough to distinguish a few copies."""

log = structlog.get_logger()


@asynccontextmanager
async def beating(
    program: str, settings: WorkerSettings, ledger: SqlLedger, client: Client, polls: Polls, **shared: object
) -> AsyncIterator[None]:
    """Beat while the body runs, and then write that the worker stopped cleanly. `shared`: what copies of it must have alike,
    besides ledger and Temporal; no secret."""
    errors = LastError()
    logging.getLogger().addHandler(errors)
    file = beat_file(settings.runtime_directory, program)
    heart = _Heart(_worker(program, settings, client, shared), ledger, file, polls, errors)
    beats = asyncio.create_task(heart.run())
    try:
        yield
    finally:
        beats.cancel()
        with suppress(asyncio.CancelledError):
            await beats
        await heart.stop()
        logging.getLogger().removeHandler(errors)


@asynccontextmanager
async def ledger_as_it_is(url: str) -> AsyncIterator[SqlLedger]:
    """For one who only beats: neither creates nor upgrades the ledger. Raises `LedgerMisuse`."""
    database = Database(url, pool_size=1)
    if database.dialect == "sqlite":

        @event.listens_for(database.engine.sync_engine, "do_connect")
        def _create_nothing(*_: object) -> None:
            if not Path(database.engine.url.database or "").exists():
                raise LedgerUnavailable(f"there is no ledger at {database.engine.url.database}")

    try:
        yield SqlLedger(database)
    finally:
        await database.close()


def _worker(program: str, settings: WorkerSettings, client: Client, shared: dict[str, object]) -> WorkerHealth:
    now, of_client = datetime.now(UTC), client.config()
    alike = shared | {
        "ledger": place_of(settings.ledger_url),
        "temporal": client.service_client.config.target_host,
        "namespace": client.namespace,
        "converter": of_client["data_converter"].payload_converter_class.__qualname__,
    }
    digest = hashlib.sha256(json.dumps(alike, sort_keys=True, default=str).encode()).hexdigest()
    return WorkerHealth(
        id=str(uuid4()),
        program=program,
        host=socket.gethostname(),
        pid=os.getpid(),
        release=release(),
        settings_fingerprint=digest[:DIGITS],
        started_at=now,
        beat_at=now,
    )


@dataclass
class _Heart:
    worker: WorkerHealth
    ledger: SqlLedger
    file: Path
    polls: Polls
    errors: LastError
    failing: set[str] = field(default_factory=set)
    """What could not be written at the last beat."""

    async def run(self) -> None:
        while True:
            self._write_file()
            await self._write_row(None)
            await asyncio.sleep(BEAT.total_seconds())

    async def stop(self) -> None:
        with suppress(OSError):
            self.file.unlink(missing_ok=True)
        await self._write_row(datetime.now(UTC))

    def _write_file(self) -> None:
        try:
            write_beat(self.file, self.polls.trouble())
        except OSError as error:
            self._failed("the heartbeat file (KEEPERLESS_RUNTIME_DIRECTORY)", error)
        else:
            self._succeeded("the heartbeat file (KEEPERLESS_RUNTIME_DIRECTORY)")

    async def _write_row(self, stopped_at: datetime | None) -> None:
        said = stripped(self.errors.said, is_prose=True)[:MOST_SAID] if self.errors.at is not None else None
        now = datetime.now(UTC)
        told = {"beat_at": now, "stopped_at": stopped_at, "last_error": said, "last_error_at": self.errors.at}
        try:
            await self.ledger.beat(self.worker.model_copy(update=told))
        except LedgerUnavailable as error:
            self._failed("the heartbeat in the ledger", error)
        else:
            self._succeeded("the heartbeat in the ledger")

    def _failed(self, what: str, error: Exception) -> None:
        if what not in self.failing:
            log.error(f"{what} cannot be written; the worker continues", error=str(error))
            self.failing.add(what)

    def _succeeded(self, what: str) -> None:
        if what in self.failing:
            log.info(f"{what} is written again")
            self.failing.discard(what)
