"""Whether this process lives, whether it can work, and which version it is."""

import asyncio
from typing import Any

from fastapi import APIRouter

from api.answers.problems import ProblemKind, retry_later
from api.answers.resources import Alive, Ready, Version
from api.running.temporal import TemporalRefused, TemporalUnavailable
from api.wiring import AnyWiring, Wiring
from console.program import release
from ledger.errors import LedgerUnavailable

OPEN: dict[str, Any] = {"security": []}
"""These calls need no credentials: their answers contain nothing about a cluster."""

router = APIRouter(tags=["health"])


@router.get("/livez", openapi_extra=OPEN)
async def livez() -> Alive:
    """This process answers. Nothing else is asked."""
    return Alive(status="alive")


@router.get("/readyz", openapi_extra=OPEN)
async def readyz(wiring: AnyWiring) -> Ready:
    """Ledger and Temporal answer. 503 names what is missing."""
    answers = await asyncio.gather(_has_ledger(wiring), _has_temporal(wiring))
    missing = [name for name, is_there in zip(("ledger", "temporal"), answers, strict=True) if not is_there]
    if missing:
        raise retry_later(ProblemKind.NOT_READY, f"Missing: {', '.join(missing)}. The log says how it failed.", missing=missing)
    return Ready(status="ready")


@router.get("/version", openapi_extra=OPEN)
async def get_version() -> Version:
    """The version of this program."""
    return Version(name="keeperless", version=release())


async def _has_ledger(wiring: Wiring) -> bool:
    try:
        await wiring.ledger.ping()
    except LedgerUnavailable:
        return False
    return wiring.schema.is_current


async def _has_temporal(wiring: Wiring) -> bool:
    try:
        await wiring.temporal.ping()
    except (TemporalUnavailable, TemporalRefused):
        return False
    return True
