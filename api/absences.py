"""Of a queue that nobody takes tasks from: who was there last, and what keeps him from it, as far as that is seen from here."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import structlog
from temporalio.service import RPCStatusCode

from api.pending import in_work
from api.pollers import GONE, QUESTION, Poller, pid_here, pollers_of, refusal, signs_of
from api.programs import signs_of_program
from api.temporal import TemporalRefused, TemporalUnavailable
from api.temporal_causes import without_matching
from api.wiring import Wiring
from domain import pending_tasks
from domain.blocker import Blocker
from domain.blocker_codes import (
    MOST_OBSERVED,
    PROGRAM_OF,
)
from domain.clocks import is_over
from domain.contracts import TaskQueue
from domain.machines.bad_signs import signed
from domain.machines.vital_signs import Sign

log = structlog.get_logger()

LIMITED = frozenset({TaskQueue.CLUSTER, TaskQueue.CHECKS})
"""Queues of work that takes long, of which a worker does only so much at once."""
MOST_RUNS = 20
"""That are asked for what is in work of them."""


@asynccontextmanager
async def in_time(until: float) -> AsyncIterator[None]:
    """For what is asked besides: what it lacks is not told, and a bug in it costs nobody the answer."""
    try:
        async with asyncio.timeout_at(until):
            yield
    except TimeoutError:
        pass
    except Exception:
        log.exception("a worker could not be looked at")


async def missing(
    wiring: Wiring, queue: TaskQueue, observed: str, now: datetime, until: float, *, was_taken: bool = False
) -> Blocker:
    """With who was there last, and what keeps it from its work where that can be seen from here, and in time. `was_taken`: by
    somebody, who is not to be started unless he is known to be gone."""
    absence = await absence_of(wiring, queue, now, until)
    if absence.unsaid is not None:
        return await without_matching(wiring.temporal, queue, absence.unsaid, now)
    tell = pending_tasks.unended if was_taken and absence.may_live() else pending_tasks.no_worker
    entry = tell(queue, ". ".join([observed, *absence.words]), now)
    return signed(entry, absence.signs, MOST_OBSERVED)


@dataclass
class Absence:
    """Of a queue that nobody takes tasks from. `unsaid`: why Temporal does not say who was heard of there. `at`: when it was
    asked, which may be long after the look began."""

    at: datetime

    words: list[str] = field(default_factory=list)
    signs: tuple[Sign, ...] = ()
    unsaid: TemporalUnavailable | None = None
    poller: Poller | None = None

    def is_asking(self) -> bool:
        """Whether somebody was heard of lately, as far as is known: a question for tasks lasts a minute."""
        poller = self.poller
        return poller is not None and GONE not in self.signs and not is_over(poller.heard_at, self.at, QUESTION)

    def may_live(self) -> bool:
        """Nobody knows of him where Temporal did not say in time who asks."""
        return self.is_asking() if self.poller is not None else GONE not in self.signs

    def asked_since(self, due: datetime) -> str:
        """Who still asks for tasks since then, and is well; empty where nobody does, as far as is known."""
        poller = self.poller
        is_well = all(sign.is_slight for sign in self.signs)
        if poller is None or not is_well or poller.heard_at <= due or not self.is_asking():
            return ""
        return poller.in_brief(self.at)


async def absence_of(wiring: Wiring, queue: TaskQueue, now: datetime, until: float, due: datetime | None = None) -> Absence:
    """`due`: since when a task lies there."""
    found = Absence(datetime.now(UTC))
    async with in_time(until):
        heard, refused = await asyncio.gather(heard_of(wiring, queue), refusal(wiring.temporal))
        if isinstance(heard, TemporalUnavailable):
            found.unsaid = heard
            return found
        found.at = datetime.now(UTC)
        poller = found.poller = heard[-1] if heard else None
        asked_at = poller.heard_at if poller is not None and due is not None and poller.heard_at > due else None
        found.signs = (refused,) if refused is not None else await _busy(wiring, queue, now, asked_at)
        if poller is not None:
            found.words.append(poller.in_words(found.at))
            found.signs += await signs_of(poller.identity, queue)
        known = pid_here(poller.identity) if poller is not None else None
        if poller is None or known is not None:  # else it is at home elsewhere, and what is here says nothing of it
            program = PROGRAM_OF[queue]
            found.signs += await signs_of_program(program, wiring.temporal, wiring.settings.ledger_url, known)
    return found


async def _busy(wiring: Wiring, queue: TaskQueue, now: datetime, asked_at: datetime | None) -> tuple[Sign, ...]:
    """A worker that has all that it does at once asks for no more, and its log says nothing of it. `asked_at`: when it asked
    although a task lay there; who asks after it has taken its last could take another.
    """
    if queue not in LIMITED:
        return ()
    active = list(wiring.caretaker.last_read.values())[:MOST_RUNS]
    tasks = await in_work(wiring.temporal, active, queue)
    if asked_at is not None and all(task.taken_at is not None and task.taken_at < asked_at for _, task in tasks):
        return ()
    sign = pending_tasks.of_work(tasks, now)
    return (sign,) if sign is not None else ()


async def heard_of(wiring: Wiring, queue: TaskQueue) -> tuple[Poller, ...] | TemporalUnavailable:
    """Nobody, where Temporal does not let us ask."""
    try:
        return await pollers_of(wiring.temporal, queue)
    except TemporalUnavailable as error:
        return () if error.status is RPCStatusCode.RESOURCE_EXHAUSTED else error
    except TemporalRefused:
        return ()
