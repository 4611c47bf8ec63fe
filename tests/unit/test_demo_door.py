"""The demo's HTTP: it goes on reading through everything that passes, and says what the API said no to."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime

import httpx
import pytest

from domain.errors import Permanent
from domain.records import Event
from playground.demo import door
from playground.demo.door import Door, Refused
from playground.fakes.spec import fake_spec


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "AGAIN_SECONDS", 0.0)


def a_door(answer: Callable[[httpx.Request], httpx.Response]) -> Door:
    return Door("http://api", httpx.MockTransport(answer))


def event(seq: int) -> Event:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Event(seq=seq, key=str(seq), kind="claimed", cluster="demo", migration_id="m", at=at, data={}, prev_hash="", hash="")


def stream(*seqs: int) -> httpx.Response:
    told = "".join(f"event: claimed\ndata: {event(seq).model_dump_json()}\nid: {seq}\n\n" for seq in seqs)
    return httpx.Response(200, text=f"retry: 1000\n\n: ping\n\n{told}", headers={"content-type": "text/event-stream"})


async def test_a_stream_that_ends_breaks_or_is_refused_is_taken_up_where_it_stopped() -> None:
    resumed_from: list[str] = []
    answers = iter([stream(3, 4), httpx.Response(503), None, stream(), stream(5, 9)])

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["accept"] == "text/event-stream"
        resumed_from.append(request.headers["last-event-id"])
        response = next(answers)
        if response is None:
            raise httpx.ReadError("connection reset")
        return response

    seen = []
    async for told in a_door(answer).follow("m"):
        seen.append(told.seq)
        if told.seq == 9:
            break
    assert seen == [3, 4, 5, 9]
    assert resumed_from == ["0", "4", "4", "4", "4"]


async def test_reading_outlasts_an_api_that_does_not_answer() -> None:
    answers = iter([None, httpx.Response(503), httpx.Response(200, json={"items": [event(7).model_dump(mode="json")]})])

    def answer(request: httpx.Request) -> httpx.Response:
        response = next(answers)
        if response is None:
            raise httpx.ConnectError("refused")
        return response

    assert [told.seq for told in await a_door(answer).events("m", 6)] == [7]


async def test_a_no_is_told_in_the_problems_own_words() -> None:
    problem = {
        "title": "The request is not valid",
        "code": "invalid-request",
        "detail": "Correct these fields.",
        "errors": [{"where": "body", "field": "brokers.0.host", "message": "too short"}],
    }
    refusing = a_door(lambda _: httpx.Response(422, json=problem, headers={"content-type": "application/problem+json"}))
    with pytest.raises(
        Refused, match=r"422 The request is not valid: Correct these fields\. brokers\.0\.host: too short"
    ) as no:
        await refusing.register(fake_spec())
    assert no.value.code == "invalid-request"


@pytest.mark.parametrize(("refused_because", "is_refused"), [(None, False), ("the preview has changed", True)])
async def test_a_way_back_waits_for_the_migrations_answer(refused_because: str | None, is_refused: bool) -> None:
    """The call may be answered before the migration has looked: then the list of commands tells."""
    pending = {"id": "c", "status": "pending", "refused_because": None}
    told = pending | {"status": "refused" if is_refused else "delivered", "refused_because": refused_because}
    lists = iter([[{**told, "id": "another"}, pending], [{**told, "id": "another"}, told]])
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(f"{request.method} {request.url.path}")
        if request.method == "POST":
            assert json.loads(request.content) == {"preview_hash": "ab", "reason": "not today"}
            return httpx.Response(202, json=pending)
        return httpx.Response(200, json={"items": next(lists)})

    expected = pytest.raises(Permanent, match="the preview has changed") if is_refused else nullcontext()
    with expected:
        await a_door(answer).roll_back("m", "ab", "not today")
    assert asked == ["POST /migrations/m/rollback", "GET /migrations/m/commands", "GET /migrations/m/commands"]


async def test_what_is_not_there_is_not_asked_for_for_ever() -> None:
    with pytest.raises(Refused, match="404"):
        await a_door(lambda _: httpx.Response(404, text="nothing")).migration("m")
