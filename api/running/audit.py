"""Every mutating call is a ledger event, accepted or refused: who, from where, what, with which outcome.

An event that the ledger could not take is kept in memory and written later; should this process die before, the log has it
(every call is logged with the same fields).
"""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import structlog
import uuid_utils
from starlette.requests import Request
from starlette.types import Scope

from api.answers.problems import ProblemKind
from domain.principals import Principal, Via
from domain.records import EventDraft
from ledger.errors import LedgerUnavailable
from ledger.ledger import SqlLedger

NOBODY = "unknown"
"""The principal of a call without valid credentials."""

KEPT_AT_MOST = 1000

Origin = dict[str, str | None]

log = structlog.get_logger()


@dataclass
class Call:
    """One HTTP call. Routes fill in what it was about."""

    id: str
    request_id: str
    source: str
    method: str
    path: str
    started_at: datetime
    cluster: str | None = None
    migration_id: str | None = None
    order_id: str = field(default_factory=lambda: str(uuid_utils.uuid7()))
    """Id of the command that it gives, if any. A repeated call has the first call's, so that it gives no second command."""
    command_id: str | None = None
    problem: ProblemKind | None = None
    status: int = field(default=0)
    answered_at: datetime | None = None
    about: str | None = None
    """What else it was about, such as the id of a key."""
    principal: Principal | None = None
    denied: Exception | None = None
    """Why its credentials do not say who asks."""
    is_told: bool = False
    """Whether an event of its own tells the same: that of a command that was refused."""

    @property
    def by(self) -> str:
        """Who asked."""
        return NOBODY if self.principal is None else self.principal.name

    @property
    def via(self) -> Via:
        return Via.LOCAL if self.principal is None else self.principal.via

    @property
    def origin(self) -> Origin:
        """From where it came, and through which key, for the event of what it asked for."""
        origin: Origin = {"source": self.source, "request_id": self.request_id, "method": self.method, "path": self.path}
        if self.principal is None or self.principal.via is Via.LOCAL:
            return origin
        return origin | {"via": self.principal.via, "key": self.principal.key_id}

    def as_event(self) -> EventDraft:
        is_accepted = self.status < 400
        data: dict[str, Any] = {
            "principal": self.by,
            **self.origin,
            "status": self.status,
            "problem": self.problem.code if self.problem else None,
            "command_id": self.command_id,
        }
        if self.about is not None:
            data["about"] = self.about
        return EventDraft(
            key=f"call/{self.id}",
            kind="call-accepted" if is_accepted else "call-refused",
            cluster=self.cluster or "",
            migration_id=self.migration_id,
            at=self.answered_at or self.started_at,
            data=data,
        )


def call_in(scope: Scope) -> Call:
    call: Call = scope["state"]["call"]
    return call


def call_of(request: Request) -> Call:
    return call_in(request.scope)


class Audit:
    """Writes calls into the ledger."""

    def __init__(self, ledger: SqlLedger) -> None:
        self._ledger = ledger
        self._kept: deque[EventDraft] = deque()

    async def record(self, call: Call) -> None:
        """Write the call now, or keep it when the ledger is known not to answer."""
        if not call.is_told:
            self._keep(call.as_event())
        if call.problem is not ProblemKind.LEDGER_UNAVAILABLE:
            await self.write_kept()

    async def write_kept(self) -> None:
        """Write what is kept, oldest first. An event written twice is one event: its key says so."""
        while self._kept:
            draft = self._kept[0]
            try:
                await self._ledger.record_event(draft)
            except LedgerUnavailable as error:
                log.warning("the ledger did not take an audit event; it is kept", kept=len(self._kept), error=str(error))
                return
            if self._kept and self._kept[0] is draft:
                self._kept.popleft()

    def _keep(self, draft: EventDraft) -> None:
        if len(self._kept) >= KEPT_AT_MOST:
            lost = self._kept.popleft()
            log.error("too many audit events are kept; the oldest is in this log only", event=lost.model_dump(mode="json"))
        self._kept.append(draft)
