"""How machines were set when all was well: of each the newest note. All functions work in the caller's transaction."""

from collections.abc import Mapping

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.diagnosis.machines.notes import MachineNote
from ledger import migrations
from ledger.tables import machine_notes


async def put(connection: AsyncConnection, migration_id: str, note: MachineNote) -> None:
    """In place of an older one about the same, until the migration ends. The lock on it makes a second writer wait."""
    if (await migrations.lock(connection, migration_id)).ended_at is not None:
        return
    is_it = (machine_notes.c.migration_id == migration_id) & (machine_notes.c.about == note.about)
    await connection.execute(delete(machine_notes).where(is_it))
    values = {name: getattr(note, name) for name in ("about", "identity", "at")}
    await connection.execute(machine_notes.insert().values(migration_id=migration_id, note=note, **values))


async def find(connection: AsyncConnection, migration_id: str, about: str) -> MachineNote | None:
    is_it = (machine_notes.c.migration_id == migration_id) & (machine_notes.c.about == about)
    found: MachineNote | None = await connection.scalar(select(machine_notes.c.note).where(is_it))
    return found


async def forget(connection: AsyncConnection, migration_id: str) -> None:
    """All of a migration: nobody asks any more why it does not go on."""
    await connection.execute(delete(machine_notes).where(machine_notes.c.migration_id == migration_id))


async def identities(connection: AsyncConnection, migration_id: str) -> Mapping[str, str | None]:
    """About whom there are notes, and of which process of his."""
    query = select(machine_notes.c.about, machine_notes.c.identity).where(machine_notes.c.migration_id == migration_id)
    return {row.about: row.identity for row in await connection.execute(query)}
