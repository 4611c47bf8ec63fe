"""Commands: what people asked for, and what became of it. All functions work in the caller's transaction."""

from sqlalchemy import ColumnElement, RowMapping, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from domain.records import Command
from ledger.errors import NoSuchCommand
from ledger.tables import commands


async def find(connection: AsyncConnection, command_id: str) -> Command | None:
    row = (await connection.execute(select(commands).where(commands.c.id == command_id))).mappings().one_or_none()
    return None if row is None else _record(row)


async def find_all(connection: AsyncConnection, migration_id: str) -> list[Command]:
    """Oldest first."""
    query = select(commands).where(commands.c.migration_id == migration_id).order_by(commands.c.at, commands.c.id)
    return [_record(row) for row in (await connection.execute(query)).mappings()]


async def find_undelivered(connection: AsyncConnection) -> list[str]:
    """Migrations with a command that has neither been delivered nor refused."""
    is_on_its_way = commands.c.delivered_at.is_(None) & commands.c.refused_because.is_(None)
    query = select(commands.c.migration_id).where(is_on_its_way).distinct().order_by(commands.c.migration_id)
    return list(await connection.scalars(query))


async def insert(connection: AsyncConnection, command: Command) -> None:
    await connection.execute(commands.insert().values({name: getattr(command, name) for name in Command.model_fields}))


async def mark_once(connection: AsyncConnection, command_id: str, column: ColumnElement[object], value: object) -> None:
    """Set a mark that is not set yet; the first one stands. Raises `NoSuchCommand`."""
    unmarked = (commands.c.id == command_id) & column.is_(None)
    marked = await connection.execute(update(commands).where(unmarked).values({column: value}))
    if marked.rowcount == 0 and await find(connection, command_id) is None:
        raise NoSuchCommand(command_id)


def _record(row: RowMapping) -> Command:
    return Command.model_validate(dict(row))
