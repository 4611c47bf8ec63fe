"""The application: routes, problems, the edge, and what runs beside it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute
from fastapi_offline import FastAPIOffline

from api.description import describe_outputs
from api.edge import Edge
from api.problems import ProblemBody
from api.routes import blockers, checks, clusters, commands, events, health, migrations, plans, reports, way_back
from api.settings import ApiSettings
from api.temporal import Temporal
from api.translation import register_translation
from api.wiring import Wiring

CONTRACT_VERSION = "1"
"""Of the HTTP contract, not of the program: see /version."""

SCHEMA_AT_START_SECONDS = 3.0
"""How long the start waits for the ledger. Later calls are answered with 503 until it is there."""


def create_app(
    settings: ApiSettings, temporal: Temporal | None = None, is_closing: Callable[[], bool] = lambda: False
) -> FastAPI:
    """The API. `is_closing`: whether the server wants to stop, which ends event streams."""
    wiring = Wiring.of(settings, temporal or Temporal.from_environment())
    app = FastAPIOffline(
        title="Keeperless",
        summary="Runs the dangerous migrations of an Apache Kafka cluster as durable workflows.",
        version=CONTRACT_VERSION,
        lifespan=_lifespan,
        generate_unique_id_function=_operation_id,
        responses={status: {"model": ProblemBody, "description": f"Any {status}: a problem."} for status in ("4XX", "5XX")},
    )
    app.state.wiring = wiring
    app.state.is_closing = is_closing
    for module in (clusters, plans, migrations, blockers, commands, way_back, reports, checks, events, health):
        app.include_router(module.router)
    app.add_api_route("/", _to_the_calls, include_in_schema=False)
    register_translation(app)
    app.add_middleware(Edge, audit=wiring.audit)
    describe_outputs(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Upgrade the schema, or go on trying; then take care of what is left undone, until the end."""
    wiring: Wiring = app.state.wiring
    upgrading = asyncio.create_task(wiring.schema.upgrade())
    await asyncio.wait({upgrading}, timeout=SCHEMA_AT_START_SECONDS)
    if upgrading.done():
        upgrading.result()
    caring = asyncio.create_task(_take_care(upgrading, wiring))
    try:
        yield
    finally:
        caring.cancel()
        with suppress(asyncio.CancelledError):
            await caring
        await wiring.database.close()


async def _take_care(upgrading: "asyncio.Task[None]", wiring: Wiring) -> None:
    await upgrading
    await wiring.caretaker.run()


async def _to_the_calls() -> RedirectResponse:
    """Whoever opens the API in a browser finds all calls."""
    return RedirectResponse("/docs")


def _operation_id(route: APIRoute) -> str:
    return route.name
