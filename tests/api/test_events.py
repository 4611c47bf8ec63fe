"""A migration's events, as a page and as a stream that can be resumed."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from api.routes import events as events_module
from api.routes.events import follow
from api.settings import ApiSettings
from domain.records import EventDraft
from ledger.errors import LedgerUnavailable

Expect = Callable[[httpx.Response, int, str], dict[str, Any]]
STREAM = {"accept": "text/event-stream"}


async def tell(api: Any, migration_id: str, *numbers: int) -> None:
    for number in numbers:
        draft = EventDraft(
            key=f"{migration_id}/{number}",
            kind="told",
            cluster="c",
            migration_id=migration_id,
            at=datetime.now(UTC),
            data={"number": number, "text": "two\nlines"},
        )
        await api.wiring.ledger.record_event(draft)


def parsed(text: str) -> list[dict[str, str]]:
    """The events of a stream that have an id, as a browser would read them."""
    blocks = [dict(line.split(": ", 1) for line in block.splitlines()) for block in text.split("\n\n") if block]
    return [block for block in blocks if "id" in block]


def numbers(items: list[dict[str, Any]]) -> list[int]:
    return [item["data"]["number"] for item in items if item["kind"] == "told"]


@pytest.fixture
async def told(api: Any) -> str:
    """A migration with four events, the first being its own start."""
    migration_id: str = await api.started()
    await tell(api, migration_id, 1, 2, 3)
    return migration_id


async def test_a_page_of_events_in_order(api: Any, told: str) -> None:
    first = (await api.http.get(f"/migrations/{told}/events?limit=2")).json()["items"]
    assert [event["kind"] for event in first] == ["call-accepted", "told"]
    rest = (await api.http.get(f"/migrations/{told}/events?after={first[-1]['seq']}")).json()["items"]
    assert numbers(rest) == [2, 3]
    assert {"seq", "key", "kind", "cluster", "migration_id", "at", "data", "prev_hash", "hash"} == set(rest[0])


async def test_a_stream_ends_by_itself_and_goes_on_where_it_ended(api: Any, told: str) -> None:
    url = f"/migrations/{told}/events"
    answer = await api.http.get(url, headers=STREAM)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache"
    events = parsed(answer.text)
    assert numbers([json.loads(event["data"]) for event in events]) == [1, 2, 3]
    assert [event["event"] for event in events] == ["call-accepted", "told", "told", "told"]
    page = (await api.http.get(url)).json()["items"]
    assert [json.loads(event["data"]) for event in events] == page
    assert [int(event["id"]) for event in events] == [item["seq"] for item in page]

    await tell(api, told, 4)
    resumed = await api.http.get(url, headers=STREAM | {"last-event-id": events[1]["id"]})
    assert numbers([json.loads(event["data"]) for event in parsed(resumed.text)]) == [2, 3, 4]


async def next_block(stream: AsyncIterator[bytes]) -> str:
    return (await asyncio.wait_for(anext(stream), timeout=5)).decode()


class AbsentOnce:
    """A ledger whose first answer does not come."""

    def __init__(self, ledger: Any) -> None:
        self._ledger = ledger
        self.was_absent = False

    async def events(self, migration_id: str, after_seq: int, limit: int) -> Any:
        if not self.was_absent:
            self.was_absent = True
            raise LedgerUnavailable("no answer")
        return await self._ledger.events(migration_id, after_seq, limit)


async def test_a_stream_brings_events_as_they_come_and_outlives_an_absent_ledger(
    api: Any, told: str, settings: ApiSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_module, "KEEPALIVE_SECONDS", 0.05)
    patient = settings.model_copy(update={"event_stream_life": timedelta(minutes=1)})
    is_closing = False
    last = (await api.wiring.ledger.events(told))[-1].seq
    ledger: Any = AbsentOnce(api.wiring.ledger)
    stream = follow(ledger, told, last, patient, lambda: is_closing)
    assert "retry: 1000" in await next_block(stream)
    assert await next_block(stream) == ": ping\n\n"
    assert ledger.was_absent
    await tell(api, told, 4)
    block = await next_block(stream)
    while block.startswith(":"):
        block = await next_block(stream)
    assert '"number":4' in block
    is_closing = True
    assert [block async for block in stream if not block.startswith(b":")] == []


async def test_wrong_places_and_unknown_migrations(api: Any, told: str, expect_problem: Expect) -> None:
    url = f"/migrations/{told}/events"
    problem = expect_problem(await api.http.get(url, headers={"last-event-id": "first"}), 422, "invalid-request")
    assert problem["errors"][0]["where"] == "header"
    expect_problem(await api.http.get(url, params={"limit": 0}), 422, "invalid-request")
    expect_problem(await api.http.get(url, params={"after": 2**70}), 422, "invalid-request")
    expect_problem(await api.http.get(f"/migrations/{uuid4()}/events", headers=STREAM), 404, "migration-not-found")
    expect_problem(await api.http.get("/migrations/first/events", headers=STREAM), 422, "invalid-request")
