"""`Idempotency-Key` on every POST: the same call again is answered as the first time, and carried out once.

    1 take the key in the ledger     a crash after this: half a minute later the call can be repeated
    2 carry the call out             a crash, or a ledger that goes away: it may have been carried out, and can be repeated
    3 keep the answer

A command that is repeated has the id of the first (`order_id`), which the ledger stores once. A second start is refused while
the first migration goes on; a second plan or check changes nothing.

The same key with another body, path or principal is refused. A call that was refused has changed nothing, so it keeps no key;
nor does one whose answer holds a secret (`POST /keys`, `POST /session`).
"""

import hashlib
import re
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from fastapi import Request, Response
from fastapi.routing import APIRoute

from api.answers.problems import FieldError, Problem, ProblemKind, invalid_request, retry_later
from api.answers.translation import problem_of
from api.running.audit import call_of
from api.wiring import wiring_of
from ledger.answered_calls import Begun, KeptAnswer, KeyedCall
from ledger.people import SqlPeople

HEADER = "Idempotency-Key"
OPEN_ENDS = frozenset({ProblemKind.LEDGER_UNAVAILABLE, ProblemKind.INTERNAL_ERROR})
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
    begun = await wiring.people.begin_call(call)
    if isinstance(begun, KeptAnswer):
        return _again(begun, call)
    call_of(request).order_id = _order_id(call, begun)
    try:
        response = await plain(request)
    except BaseException as error:
        let_go = wiring.people.lose_call if _may_have_happened(error) else wiring.people.forget_call
        await let_go(call.key)
        raise
    await _keep(wiring.people, call, response)
    return response


def _order_id(call: KeyedCall, begun: Begun) -> str:
    named = (call.key, call.principal, call.request_hash, begun.since.isoformat())
    return str(uuid5(NAMESPACE_OID, "\n".join(named)))


def _may_have_happened(error: BaseException) -> bool:
    """Whether the error is no refusal, and leaves open what was done before it."""
    return not isinstance(error, Exception) or problem_of(error).kind in OPEN_ENDS


async def _keep(people: SqlPeople, call: KeyedCall, response: Response) -> None:
    body = bytes(response.body).decode()
    await people.end_call(call.key, response.status_code, response.headers.get("location"), body)


def _again(kept: KeptAnswer, call: KeyedCall) -> Response:
    if kept.call != call:
        raise Problem(
            ProblemKind.IDEMPOTENCY_KEY_REUSED,
            f"This {HEADER} belongs to another call: another body, address or principal. Use a new key for every call.",
        )
    if kept.status is None:
        raise retry_later(ProblemKind.CALL_UNDER_WAY, "The first call with this key has no answer yet. Repeat it later.")
    headers = {} if kept.location is None else {"Location": kept.location}
    return Response(kept.body, kept.status, headers, media_type="application/json")


async def _keyed_call(request: Request) -> KeyedCall | None:
    """Return the call with its key. `None` without a key, or without a principal: such a call is refused anyway."""
    key, principal = request.headers.get(HEADER), call_of(request).principal
    if request.method != "POST" or key is None or principal is None:
        return None
    if not FORM.fullmatch(key):
        raise invalid_request([FieldError(where="header", field=HEADER, message="Up to 200 visible ASCII characters")])
    digest = hashlib.sha256(f"{request.method} {request.url.path}\n".encode() + await request.body()).hexdigest()
    return KeyedCall(key, principal.name, digest)
