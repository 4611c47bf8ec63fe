"""Brings a database to the newest version of the schema. The versions are in `ledger/alembic/versions`."""

import asyncio
import sqlite3
import threading
import time
from datetime import timedelta
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, exc, text

from ledger.database import Timeouts, parse_url, sync_engine
from ledger.errors import LedgerUnavailable
from ledger.refusals import translated
from ledger.row_security import ensure_all_is_seen

SCRIPTS = Path(__file__).parent / "alembic"

UPGRADE_TIMEOUTS = Timeouts(call=timedelta(minutes=5), lock=timedelta(minutes=1), connect=timedelta(seconds=10))
"""An upgrade may rewrite tables, and waits for another process that upgrades."""

NEWER = (
    "Start the newer release again, all its programs: an older one cannot read what it has written. To stay on the older "
    "one, restore the ledger from its backup from before the upgrade."
)

# Any number, as long as all versions of this program use the same one.
ADVISORY_LOCK = 0x6B656570

# Alembic keeps the migration that runs in a module's globals: one at a time in a process.
_one_at_a_time = threading.Lock()


async def upgrade(url: str, timeouts: Timeouts = UPGRADE_TIMEOUTS) -> None:
    """Create or upgrade the tables. Several processes may do this at once: one works, the others wait and find it done.

    All steps are one transaction, on SQLite too. SQLite's parent directory is created, for this user only.
    Raises `LedgerUnavailable` or `LedgerMisuse`.
    """
    await asyncio.to_thread(_upgrade, url, timeouts)


def _upgrade(url: str, timeouts: Timeouts) -> None:
    if parse_url(url).get_backend_name() == "sqlite":
        Path(str(parse_url(url).database)).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = sync_engine(url, timeouts)
    try:
        with _one_at_a_time:
            if engine.dialect.name == "sqlite":
                _use_write_ahead_log(engine, timeouts.lock)
            with engine.begin() as connection:
                _exclude_other_processes(connection)
                ensure_all_is_seen(connection)  # Without its version a ledger looks like one that has to be created.
                _refuse_newer(connection)
                command.upgrade(_config(connection), "head")
    except exc.SQLAlchemyError as error:
        raise translated(error, str(engine.url.database)) from error
    finally:
        engine.dispose()


def _refuse_newer(connection: Connection) -> None:
    """Alembic's own error for a version that it does not know would end a program that only has to be the right one."""
    known = {version.revision for version in ScriptDirectory(str(SCRIPTS)).walk_revisions()}
    unknown = set(MigrationContext.configure(connection).get_current_heads()) - known
    if unknown:
        version = ", ".join(sorted(unknown))
        raise LedgerUnavailable(
            f"the ledger was written by a newer release than this one, which knows no version {version}", NEWER
        )


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.attributes["connection"] = connection
    return config


def _exclude_other_processes(connection: Connection) -> None:
    """Until the transaction ends. On SQLite it began by taking the only write lock already."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})


def _use_write_ahead_log(engine: Engine, patience: timedelta) -> None:
    """Readers do not block the writer, nor it them. The file remembers it, so this is done once, outside transactions.

    While another process does the same, or writes, SQLite refuses at once whatever the busy timeout: so we wait.
    """
    deadline = time.monotonic() + patience.total_seconds()
    while True:
        try:
            with engine.connect().execution_options(is_writer=False) as connection:
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
                return
        except exc.OperationalError as error:
            is_busy = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > deadline:
                raise
        time.sleep(0.02)
