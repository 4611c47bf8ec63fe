"""`/migrations/{id}/events`: what happened, as a page or as a stream.

The stream's ids are the events' places in the log. Places are given in the order in which events become visible, so a client
that comes back with `Last-Event-ID` misses none. A stream ends after a while, and the client comes back by itself.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Annotated

import structlog
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import JSONResponse
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event

from api.answers.resources import EventList
from api.requests import Limit, NamedMigration
from api.routes.migrations import existing
from api.settings import ApiSettings
from api.wiring import UsableWiring
from domain.records import Event
from ledger.errors import LedgerUnavailable
from ledger.ledger import SqlLedger

READ_AT_ONCE = 100
KEEPALIVE_SECONDS = 15.0
COME_BACK_MILLISECONDS = 1000
BIGGEST_PLACE = 2**63 - 1

Place = Annotated[int, Query(ge=0, le=BIGGEST_PLACE, description="Only events after this place in the log (`seq`).")]
LastEventId = Annotated[
    int | None,
    Header(alias="Last-Event-ID", ge=0, le=BIGGEST_PLACE, description="The same for a stream, which continues from there."),
]

router = APIRouter(prefix="/migrations/{migration_id}/events", tags=["events"])
log = structlog.get_logger()


@router.get(
    "",
    response_model=EventList,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def get_events(
    migration_id: NamedMigration,
    request: Request,
    wiring: UsableWiring,
    after: Place = 0,
    limit: Limit = READ_AT_ONCE,
    last_event_id: LastEventId = None,
) -> Response:
    """A migration's events in order; with `Accept: text/event-stream` those to come as well."""
    record = await existing(wiring, migration_id)
    if "text/event-stream" in request.headers.get("accept", ""):
        start = after if last_event_id is None else last_event_id
        stream = follow(wiring.ledger, record.id, start, wiring.settings, request.app.state.is_closing)
        return EventSourceResponse(stream, headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
    events = await wiring.ledger.events(record.id, after, limit)
    return JSONResponse(EventList(items=events).model_dump(mode="json"))


async def follow(
    ledger: SqlLedger, migration_id: str, after: int, settings: ApiSettings, is_closing: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Events after a place, as they come, until the stream's life is over or the server closes."""
    ends_at = time.monotonic() + settings.event_stream_life.total_seconds()
    last_said = time.monotonic()
    yield format_sse_event(retry=COME_BACK_MILLISECONDS)
    while time.monotonic() < ends_at and not is_closing():
        events = await _next_events(ledger, migration_id, after)
        for event in events:
            yield _as_sse(event)
            after, last_said = event.seq, time.monotonic()
        if not events and time.monotonic() - last_said > KEEPALIVE_SECONDS:
            yield KEEPALIVE_COMMENT
            last_said = time.monotonic()
        if len(events) < READ_AT_ONCE:
            await asyncio.sleep(settings.event_poll_interval.total_seconds())


async def _next_events(ledger: SqlLedger, migration_id: str, after: int) -> list[Event]:
    try:
        return await ledger.events(migration_id, after, READ_AT_ONCE)
    except LedgerUnavailable as error:
        # An EventSource that is answered with an error never comes back; one that waits does not need to.
        log.warning("an event stream waits for the ledger", migration_id=migration_id, error=str(error))
        return []


def _as_sse(event: Event) -> bytes:
    return format_sse_event(data_str=event.model_dump_json(), event=event.kind, id=str(event.seq))
