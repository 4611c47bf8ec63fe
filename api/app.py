"""The application: routes, problems, the edge, and what runs beside it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import structlog
from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute
from fastapi_offline import FastAPIOffline

from api.answers.problems import ProblemBody
from api.answers.translation import register_translation
from api.description import describe_outputs
from api.pages.web_pages import ASSETS_URL, ProblemPages, assets
from api.people.access import may
from api.people.first_key import ensure_first_key
from api.routes import (
    blockers,
    checks,
    clusters,
    commands,
    events,
    health,
    keys,
    metrics,
    migrations,
    plans,
    reports,
    session,
    way_back,
)
from api.running.edge import Edge
from api.running.temporal import Temporal
from api.settings import ApiSettings
from api.wiring import SCHEMA_PAUSE, Wiring
from domain.kinds import Kinds
from domain.principals import Permission
from domain.shipped_kinds import SHIPPED_KINDS
from ledger.errors import LedgerUnavailable

CONTRACT_VERSION = "1"
"""Of the HTTP contract, not of the program: see /version."""

SCHEMA_AT_START_SECONDS = 3.0
"""How long the start waits for the ledger. Later calls are answered with 503 until it is there."""


log = structlog.get_logger()


def create_app(
    settings: ApiSettings,
    temporal: Temporal | None = None,
    is_closing: Callable[[], bool] = lambda: False,
    kinds: Kinds = SHIPPED_KINDS,
) -> FastAPI:
    """The API, for these kinds of migration. `is_closing`: whether the server wants to stop, which ends event streams."""
    wiring = Wiring.of(settings, temporal or Temporal.from_environment(), kinds)
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
    of_kinds = (plans.router_of(kinds), migrations.router_of(kinds))
    others = (module.router for module in (blockers, commands, way_back, reports, checks, events))
    for router in (clusters.router, *of_kinds, *others):
        app.include_router(router, dependencies=[may(Permission.READ)])
    for module in (keys, session, metrics, health):
        app.include_router(module.router)
    app.add_api_route("/", _to_the_migrations, include_in_schema=False)
    app.mount(ASSETS_URL, assets())
    register_translation(app)
    app.add_middleware(Edge, audit=wiring.audit, identity=wiring.identity)
    app.add_middleware(ProblemPages)
    describe_outputs(app, kinds)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Upgrade the schema and make the first key, or go on trying; then take care of what is left undone, until the end."""
    wiring: Wiring = app.state.wiring
    upgrading = asyncio.create_task(_prepare(wiring))
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


async def _prepare(wiring: Wiring) -> None:
    """As soon as the ledger answers."""
    settings = wiring.settings
    await wiring.schema.upgrade()
    while wiring.identity.is_on:
        try:
            await ensure_first_key(wiring.people, settings.first_key_file, has_provider=settings.oidc is not None)
        except LedgerUnavailable as error:
            log.warning("the ledger does not answer; the first key is not made yet", error=str(error))
            await asyncio.sleep(SCHEMA_PAUSE.total_seconds())
        except (OSError, ValueError) as error:
            log.warning("the first key cannot be kept in KEEPERLESS_FIRST_KEY_FILE; it is tried again", error=str(error))
            await asyncio.sleep(SCHEMA_PAUSE.total_seconds())
        else:
            return


async def _to_the_migrations() -> RedirectResponse:
    """Lead a browser to the migrations, and from there to all calls."""
    return RedirectResponse("/migrations")


def _operation_id(route: APIRoute) -> str:
    return route.name
