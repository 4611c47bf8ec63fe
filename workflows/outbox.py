"""Events on their way to the ledger, in order, each once. A ledger that is down delays the record and nothing else."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from domain.contracts import CarriedState
from domain.records import EventDraft
from domain.restored_history import RunPosition
from workflows.turns import Turn

RECORD_AGAIN = timedelta(seconds=30)
"""Pause before a record that was refused for good, not merely unanswered, is tried again."""


class Outbox:
    """What a run tells. Events are gathered, and sent together when somebody says so: a record costs history.

    `count` goes on from run to run, and so does what could not be sent.
    """

    def __init__(self, cluster: str, migration_id: str, carried: CarriedState, turn: Turn) -> None:
        self._cluster, self._migration_id, self._turn = cluster, migration_id, turn
        self.count = carried.event_count
        self._events: list[EventDraft] = list(carried.untold)
        self._is_due = bool(carried.untold)
        self._is_draining = self._is_under_way = False
        self._latest: datetime | None = None
        self._told_at: datetime | None = None
        self._count_before = self.count

    @property
    def untold(self) -> tuple[EventDraft, ...]:
        """What the ledger has not said yet that it has; sent again it is no second event."""
        return tuple(self._events)

    @property
    def is_told(self) -> bool:
        return not (self._is_due or self._is_under_way or self._events)

    @property
    def position(self) -> RunPosition:
        """By which activities see whether the run knows all that it did."""
        at = self._now()
        told = self._count_before if at == self._told_at else self.count
        return RunPosition(run_id=workflow.info().run_id, told=told, at=at)

    def _now(self) -> datetime:
        """Never earlier than before, whatever Temporal's clock does: nothing is told as of before a position that was given."""
        self._latest = max(self._latest or workflow.now(), workflow.now())
        return self._latest

    def tell(self, kind: str, data: dict[str, Any]) -> None:
        """Keep an event. Its key makes it one event however often it is sent; after a reset of the run it is another."""
        at = self._now()
        if self._told_at is None or at > self._told_at:
            self._told_at, self._count_before = at, self.count
        self.count += 1
        self._events.append(
            EventDraft(
                key=f"{workflow.info().run_id}:{self.count}",
                kind=kind,
                cluster=self._cluster,
                migration_id=self._migration_id,
                at=at,
                data=data,
            )
        )

    def send_soon(self) -> None:
        """Send what is there, or the progress alone, as soon as the record before is done."""
        self._is_due = True

    async def deliver(self, record: Callable[[tuple[EventDraft, ...]], Awaitable[None]]) -> None:
        """Runs beside the interpreter, to the end of the run."""
        while True:
            await workflow.wait_condition(lambda: self._has_to_send() and not self._turn.is_interpreters)
            events = tuple(self._events)
            self._is_due, self._is_under_way = False, True
            try:
                await record(events)
                del self._events[: len(events)]
                self._is_under_way = False
            except ActivityError as error:
                if is_cancelled_exception(error):
                    return  # The run is over: a command after its last one would fail it for ever, and nobody awaits this.
                workflow.logger.exception("the ledger refuses the record; trying again")
                await workflow.sleep(RECORD_AGAIN)
                self._is_due = True

    def _has_to_send(self) -> bool:
        return self._is_due or (self._is_draining and bool(self._events))

    async def drain(self, unless: Callable[[], bool] = lambda: False) -> None:
        """Wait until all that was told has been recorded, what people say meanwhile included."""
        self._is_due = self._is_draining = True
        await workflow.wait_condition(lambda: self.is_told or unless())
        self._is_draining = False
