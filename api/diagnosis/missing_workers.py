"""Name the worker that took tasks from a queue last, as Temporal and the workers' health rows report."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import structlog
from temporalio.service import RPCStatusCode

from api.diagnosis.pending import in_work
from api.diagnosis.pollers import QUESTION, Poller, pollers_of, refusal
from api.diagnosis.temporal_causes import without_matching
from api.running.temporal import TemporalRefused, TemporalUnavailable
from api.wiring import Wiring
from domain.clocks import is_over
from domain.contracts import PROGRAM_OF, TaskQueue
from domain.diagnosis import pending_tasks
from domain.diagnosis.blocker import MOST_OBSERVED, Blocker
from domain.diagnosis.machines.signs import signed
from domain.diagnosis.machines.vital_signs import Sign
from domain.worker_health import WorkerHealth, of_program
from ledger.errors import LedgerUnavailable

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
        log.exception("a worker could not be looked up")


async def missing(
    wiring: Wiring, queue: TaskQueue, observed: str, now: datetime, until: float, *, was_taken: bool = False
) -> Blocker:
    """With who was there last, as far as that is known in time. `was_taken`: by a worker, which is not to be started unless it
    is known to be gone."""
    absence = await unserved_queue(wiring, queue, now, until)
    if absence.unsaid is not None:
        return await without_matching(wiring.temporal, queue, absence.unsaid, now)
    lives = was_taken and absence.may_live()
    entry = pending_tasks.no_worker(queue, ". ".join([observed, *absence.words]), now, was_taken=lives)
    return signed(entry, absence.signs, MOST_OBSERVED)


@dataclass
class UnservedQueue:
    """Of a queue that nobody takes tasks from. `unsaid`: why Temporal does not say who was heard of there. `at`: when it was
    asked, which may be long after the look began. `has_ended`: whether the health row of who was heard last says so."""

    at: datetime

    words: list[str] = field(default_factory=list)
    signs: tuple[Sign, ...] = ()
    unsaid: TemporalUnavailable | None = None
    poller: Poller | None = None
    has_ended: bool = False

    def is_asking(self) -> bool:
        """Whether somebody was heard of lately, as far as is known: a question for tasks lasts a minute."""
        poller = self.poller
        return poller is not None and not self.has_ended and not is_over(poller.heard_at, self.at, QUESTION)

    def may_live(self) -> bool:
        """Nobody knows of it where Temporal did not say in time who asks."""
        return self.poller is None or self.is_asking()

    def asked_since(self, due: datetime) -> str:
        """Who still asks for tasks since then, and is well; empty where nobody does, as far as is known."""
        poller = self.poller
        if poller is None or self.signs or poller.heard_at <= due or not self.is_asking():
            return ""
        return poller.in_brief(self.at)


async def unserved_queue(
    wiring: Wiring, queue: TaskQueue, now: datetime, until: float, due: datetime | None = None
) -> UnservedQueue:
    """`due`: since when a task lies there."""
    found = UnservedQueue(datetime.now(UTC))
    async with in_time(until):
        heard, refused, workers = await asyncio.gather(heard_of(wiring, queue), refusal(wiring.temporal), workers_of(wiring))
        if isinstance(heard, TemporalUnavailable):
            found.unsaid = heard
            return found
        found.at = datetime.now(UTC)
        poller = found.poller = heard[-1] if heard else None
        asked_at = poller.heard_at if poller is not None and due is not None and poller.heard_at > due else None
        if poller is not None:
            found.words.append(poller.in_words(found.at))
            found.has_ended = any(one.identity == poller.identity and not one.is_alive(found.at) for one in workers)
        asking = {one.identity for one in heard if not is_over(one.heard_at, found.at, QUESTION)}
        found.words.append(of_program(workers, PROGRAM_OF[queue], asking, found.at))
        found.signs = (refused,) if refused is not None else await _busy(wiring, queue, now, asked_at)
    return found


async def workers_of(wiring: Wiring) -> Sequence[WorkerHealth]:
    """None where the ledger does not answer, which is an entry of its own."""
    try:
        return await wiring.ledger.workers()
    except LedgerUnavailable:
        return ()


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
