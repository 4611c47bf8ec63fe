"""`Idempotency-Key` on every POST: the same call again is answered as the first time, and carried out once.

    1 take the key in the ledger     a crash after this: the key is free again after half a minute
    2 carry the call out
    3 keep the answer

The same key with another body, path or principal is refused. A call that was refused has changed nothing, so it keeps no key;
nor does one whose answer holds a secret (`POST /keys`, `POST /session`).
"""

import hashlib
import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from api.audit import call_of
from api.problems import FieldError, Problem, ProblemKind, invalid_request, retry_later
from api.wiring import wiring_of
from ledger.answered_calls import KeptAnswer, KeyedCall
from ledger.people import SqlPeople

HEADER = "Idempotency-Key"
FORM = re.compile(r"[\x21-\x7e]{1,200}")


class IdempotentRoute(APIRoute):
    """The class of routes that keep their answers."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        plain = super().get_route_handler()

        async def handle(request: Request) -> Response:
            call = await _keyed_call(request)
            return await plain(request) if call is None else await _once(call, request, plain)

        return handle


async def _once(call: KeyedCall, request: Request, plain: Callable[[Request], Coroutine[Any, Any, Response]]) -> Response:
    wiring = wiring_of(request)
    wiring.schema.ensure_current()
    kept = await wiring.people.begin_call(call)
    if kept is not None:
        return _again(kept, call)
    try:
        response = await plain(request)
    except BaseException:
        await wiring.people.forget_call(call.key)
        raise
    await _keep(wiring.people, call, response)
    return response


async def _keep(people: SqlPeople, call: KeyedCall, response: Response) -> None:
    body = bytes(response.body).decode()
    await people.end_call(call.key, response.status_code, response.headers.get("location"), body)


def _again(kept: KeptAnswer, call: KeyedCall) -> Response:
    if kept.call != call:
        raise Problem(
            ProblemKind.IDEMPOTENCY_KEY_REUSED,
            f"This {HEADER} belongs to another call: another body, address or principal. Give every call a key of its own.",
        )
    if kept.status is None:
        raise retry_later(ProblemKind.CALL_UNDER_WAY, "The first call with this key has no answer yet. Repeat it later.")
    headers = {} if kept.location is None else {"Location": kept.location}
    return Response(kept.body, kept.status, headers, media_type="application/json")


async def _keyed_call(request: Request) -> KeyedCall | None:
    """`None` of a call without a key, or of nobody we know, who gets no further anyway."""
    key, principal = request.headers.get(HEADER), call_of(request).principal
    if request.method != "POST" or key is None or principal is None:
        return None
    if not FORM.fullmatch(key):
        raise invalid_request([FieldError(where="header", field=HEADER, message="Up to 200 visible ASCII characters")])
    digest = hashlib.sha256(f"{request.method} {request.url.path}\n".encode() + await request.body()).hexdigest()
    return KeyedCall(key, principal.name, digest)
