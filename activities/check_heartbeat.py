"""Heartbeats that say how far an attempt is, and what it has opened elsewhere: whoever comes next can read them."""

import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from temporalio import activity

from activities.heartbeat import beaten

USUAL_SECONDS = 5.0


class Beat:
    """`sessions`: what was opened for this check, by attempts that died as well. Progress is told with the next beat."""

    def __init__(self) -> None:
        details = activity.info().heartbeat_details
        told = details[0] if details and isinstance(details[0], dict) else {}
        self.earlier_sessions: tuple[str, ...] = tuple(str(session) for session in told.get("sessions", ()))
        self._details: dict[str, Any] = {"sessions": self.earlier_sessions}

    def tell(self, *sessions: str) -> None:
        """At once: what is opened next must be known before it is. From the event loop only."""
        self._details = {**self._details, "sessions": sessions}
        activity.heartbeat(self._details)

    def note(self, look: int, stage: str, done: int, total: int) -> None:
        """From any thread, as often as you like. `since` is told besides: when it was another look, stage or count last."""
        told = {"look": look, "stage": stage, "done": done, "total": total}
        if any(self._details.get(name) != value for name, value in told.items()):
            self._details = {**self._details, **told, "since": datetime.now(UTC).isoformat()}

    @contextlib.asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Beat three times per heartbeat timeout while the body runs."""
        timeout = activity.info().heartbeat_timeout
        seconds = timeout.total_seconds() / 3 if timeout is not None else USUAL_SECONDS
        async with beaten(lambda: activity.heartbeat(self._details), seconds):
            yield
