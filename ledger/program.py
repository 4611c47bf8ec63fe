"""`keeperless-ledger`: brings the ledger to the newest version of its schema, and ends."""

import asyncio
from typing import NoReturn

import structlog
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from console.program import CannotStart, Program, run_program
from console.secrets_directory import secrets_directory
from console.worker_settings import STATE
from ledger.errors import LedgerMisuse, LedgerUnavailable
from ledger.schema import upgrade


class LedgerSettings(BaseSettings):
    """Read once, at the start."""

    model_config = SettingsConfigDict(env_prefix="KEEPERLESS_", frozen=True, secrets_dir=secrets_directory())

    ledger_url: str = Field(
        default=f"sqlite:///{STATE / 'ledger.db'}",
        description="SQLAlchemy URL of the ledger: `sqlite:///…` or `postgresql://…`.",
    )


PROGRAM = Program(
    "keeperless-ledger",
    "Creates or upgrades the tables of the ledger, and ends.",
    "The other programs do it too when they start; run it first where it should fail before anything else does.",
    (LedgerSettings,),
)


async def run(settings: LedgerSettings) -> int:
    """Upgrade; the exit code."""
    try:
        await upgrade(settings.ledger_url)
    except LedgerMisuse as error:
        raise CannotStart(f"KEEPERLESS_LEDGER_URL: {error}") from error
    except LedgerUnavailable as error:
        raise CannotStart(str(error), 1) from error
    structlog.get_logger().info("the ledger has the newest version of its schema")
    return 0


def main() -> NoReturn:
    run_program(PROGRAM, lambda: asyncio.run(run(LedgerSettings())))


if __name__ == "__main__":
    main()
