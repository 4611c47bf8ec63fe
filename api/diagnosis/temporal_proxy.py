"""Of workers that ask for tasks, are well, and of whose answers none comes: it lies between them and Temporal.

A question for tasks is one call that waits for a minute. Where something between keeps all but a few calls back, questions get
through, and heartbeats, results and answers do not.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from api.diagnosis.missing_workers import heard_of, in_time, workers_of
from api.diagnosis.pending import RunSeen
from api.diagnosis.pollers import refusal
from api.wiring import Wiring
from domain.contracts import PROGRAM_OF, TaskQueue
from domain.diagnosis.blocker import MOST_OBSERVED, NO_WORKER, Blocker, blocker
from domain.diagnosis.pending_tasks import PendingTask, is_silent, is_untaken
from domain.worker_health import WorkerHealth

LATELY = timedelta(seconds=20)
"""Since a question for tasks: later than that it may be one of before all was cut off."""
SETTLED = timedelta(seconds=20)
"""Since its start: a worker that has just come was not there to answer."""
OF_EFFECTS, OF_RUNS = (TaskQueue.WATCH, TaskQueue.CLUSTER), (TaskQueue.MIGRATIONS,)
OBJECT = "the connection between the workers and Temporal"
FIX = (
    "Do not restart the workers: by what is seen here they are healthy, and the same would stand between them and Temporal "
    "afterwards. Find the program that has the port of TEMPORAL_ADDRESS ({}; `ss -ltnp` there). If it is a proxy or an "
    "ingress, check its limit of concurrent HTTP/2 streams (nginx http2_max_concurrent_streams, Envoy "
    "max_concurrent_streams: each poll holds one for a minute, and a worker has dozens), its timeouts and its log. If it is "
    "Temporal, check its limits (frontend.namespaceRPS, frontend.namespaceCount) and its log. Then read the workers' logs "
    "(`Network error while sending worker heartbeat`). Migrations continue by themselves."
)


async def asking(wiring: Wiring, until: float) -> str:
    """Both programs that a migration needs, in words, where both asked for tasks lately, and their heartbeats come to the
    ledger; else empty."""
    async with in_time(until):
        workers = await workers_of(wiring)
        told = await asyncio.gather(*(_asking(wiring, queues, workers) for queues in (OF_RUNS, OF_EFFECTS)))
        if all(told) and await refusal(wiring.temporal) is None:
            return "; ".join(told)
    return ""


def is_unanswered(looked: object, run: RunSeen, now: datetime) -> bool:
    """Whether keeperless-activities has taken what it was asked, or was to, and is not heard. `looked`: what came of a look."""
    is_unlooked = isinstance(looked, Blocker) and looked.code == NO_WORKER
    return is_unlooked or any(_is_unheard(task, now) for task in run.tasks if task.queue != TaskQueue.MIGRATIONS)


def silent_for_all(run: RunSeen, now: datetime) -> RunSeen:
    """Without tasks that only show once more that nothing of their workers comes."""
    return replace(run, tasks=tuple(task for task in run.tasks if not _is_unheard(task, now)))


def of_proxy(words: str, address: str, now: datetime) -> Blocker:
    """`words`: who asks, as told by `asking`."""
    return blocker(
        NO_WORKER,
        OBJECT,
        observed=f"polls of keeperless-workflows and keeperless-activities reach Temporal, and their answers do not: {words}"[
            :MOST_OBSERVED
        ],
        expected="heartbeats, results and answers of workers reach Temporal as their polls do",
        fix=FIX.format(address),
        since=now,
    )


def _is_unheard(task: PendingTask, now: datetime) -> bool:
    is_ours = task.queue in {*OF_EFFECTS, *OF_RUNS} and not task.paused
    return is_ours and (is_silent(task, now) or is_untaken(task, now))


async def _asking(wiring: Wiring, queues: tuple[TaskQueue, ...], workers: Sequence[WorkerHealth]) -> str:
    heard = await asyncio.gather(*(heard_of(wiring, queue) for queue in queues))
    known = [poller for pollers in heard if isinstance(pollers, tuple) for poller in pollers]
    last = max(known, key=lambda one: one.heard_at, default=None)
    now = datetime.now(UTC)
    if last is None or now - last.heard_at > LATELY:
        return ""
    worker = next((one for one in workers if one.identity == last.identity and one.is_alive(now)), None)
    is_settled = worker is not None and now - worker.started_at > SETTLED
    return f"{PROGRAM_OF[queues[0]]} ({last.in_brief(now)})" if is_settled else ""
