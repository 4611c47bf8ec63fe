"""The outermost ring: every call gets an id, a log line and, if it may change something, its entry in the audit.

The answer to a mutating call is sent when its entry has been written (or kept): who reads the events next finds it.
"""

import re
from datetime import UTC, datetime

import structlog
import uuid_utils
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.answers.problems import Problem, ProblemKind, answer_of
from api.answers.translation import MOST_BODY_MIB, problem_of
from api.people.credentials import without_secrets
from api.people.identity import Identity
from api.running.audit import Audit, Call, call_in
from ledger.errors import LedgerMisuse, LedgerUnavailable

MUTATING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
SUBJECT = re.compile(r"[A-Za-z0-9-]{1,63}")
OUR_HOSTS = frozenset({"127.0.0.1", "localhost"})
"""By which an API without authentication is reached."""
PATH_KEPT = 200

log = structlog.get_logger()


class Edge:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, audit: Audit, identity: Identity) -> None:
        self._app = app
        self._audit = audit
        self._identity = identity

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        call = _call_of(scope)
        scope.setdefault("state", {})["call"] = call
        with structlog.contextvars.bound_contextvars(request_id=call.request_id):
            await self._answer(scope, _limited(receive), _Answering(self._audit, scope, send))

    async def _answer(self, scope: Scope, receive: Receive, answering: "_Answering") -> None:
        if not self._identity.is_on and not _is_for_us(scope):
            await _tell(WRONG_HOST, scope, receive, answering)
            return
        try:
            await self._identify(scope)
            await self._app(scope, receive, answering)
        except Exception as error:
            log.exception("a call failed in an unexpected way")
            if answering.has_begun:
                raise  # Too late for another answer: the connection breaks off.
            await _tell(problem_of(error), scope, receive, answering)

    async def _identify(self, scope: Scope) -> None:
        """Find the principal. Public routes answer without one, whatever credentials a call brings."""
        call = call_in(scope)
        try:
            call.principal = await self._identity.of(scope["method"], Headers(scope=scope))
        except (Problem, LedgerUnavailable, LedgerMisuse) as error:
            call.denied = error


def _limited(receive: Receive) -> Receive:
    """What comes in, as far as that: nothing larger is kept in memory."""
    taken = 0

    async def receive_so_far() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > MOST_BODY_MIB * 1024 * 1024:
            raise HTTPException(413)
        return message

    return receive_so_far


class _Answering:
    """Watches an answer on its way out."""

    def __init__(self, audit: Audit, scope: Scope, send: Send) -> None:
        self._audit = audit
        self._scope = scope
        self._send = send
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            await self._begin(message)
        await self._send(message)

    async def _begin(self, message: Message) -> None:
        call = call_in(self._scope)
        call.status, call.answered_at = message["status"], datetime.now(UTC)
        MutableHeaders(scope=message)["X-Request-Id"] = call.request_id
        _add_subject(call, self._scope)
        _log(call)
        # What matches no route changes nothing, and would only fill the ledger.
        if call.method in MUTATING and "endpoint" in self._scope:
            await self._audit.record(call)


WRONG_HOST = Problem(
    ProblemKind.WRONG_HOST,
    "Without authentication the API answers only to the names 127.0.0.1 and localhost, so that no web page can reach it "
    "under another name.",
)


def _is_for_us(scope: Scope) -> bool:
    """A page in the operator's browser can reach 127.0.0.1 by a name whose address it changes (DNS rebinding)."""
    host = Headers(scope=scope).get("host", "")
    return host.rsplit(":", 1)[0] in OUR_HOSTS


def _call_of(scope: Scope) -> Call:
    asked_for = Headers(scope=scope).get("x-request-id", "")
    own = str(uuid_utils.uuid7())
    return Call(
        id=own,
        request_id=asked_for if REQUEST_ID.fullmatch(asked_for) else own,
        source=scope["client"][0] if scope.get("client") else "unknown",
        method=scope["method"],
        path=without_secrets(scope["path"])[:PATH_KEPT],
        started_at=datetime.now(UTC),
    )


def _add_subject(call: Call, scope: Scope) -> None:
    """What the call was about, where no route got as far as saying so."""
    named = scope.get("path_params", {})
    call.cluster = call.cluster or _subject(named.get("name"))
    call.migration_id = call.migration_id or _subject(named.get("migration_id"))


def _subject(value: object) -> str | None:
    return value if isinstance(value, str) and SUBJECT.fullmatch(value) else None


def _log(call: Call) -> None:
    say = log.debug if call.path in {"/livez", "/readyz"} else log.info
    say("call", milliseconds=round((datetime.now(UTC) - call.started_at).total_seconds() * 1000), **call.as_event().data)


async def _tell(problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
    call_in(scope).problem = problem.kind
    await answer_of(problem)(scope, receive, send)
