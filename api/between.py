"""Of workers that ask for tasks, are well, and of whose answers none comes: it lies between them and Temporal.

A question for tasks is one call that waits for a minute. Where something between keeps all but a few calls back, questions get
through, and heartbeats, results and answers do not.
"""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from api.absences import heard_of, in_time
from api.full_volumes import port_here, processes_at
from api.pending import RunSeen
from api.pollers import Poller, pid_here, refusal, signs_of
from api.programs import FRESH, process_of
from api.wiring import Wiring
from domain.blocker import Blocker, blocker
from domain.blocker_codes import MOST_OBSERVED, NO_WORKER, PROGRAM_OF
from domain.contracts import TaskQueue
from domain.pending_tasks import PendingTask, is_silent, is_untaken

LATELY = timedelta(seconds=20)
"""Since a question for tasks: later than that it may be one of before all was cut off."""
OF_EFFECTS, OF_RUNS = (TaskQueue.WATCH, TaskQueue.CLUSTER), (TaskQueue.MIGRATIONS,)
OBJECT = "what is between the workers and Temporal"
FIX = (
    "Do not restart the workers: they are well by what is seen here, and would have the same before them. Look which program "
    "has the port of TEMPORAL_ADDRESS ({}; `ss -ltnp` there). A proxy or an ingress: its limit of concurrent HTTP/2 streams "
    "(nginx http2_max_concurrent_streams, Envoy max_concurrent_streams: each question for tasks keeps one for a minute, a "
    "worker has dozens), its timeouts, its log. Temporal itself: its own limits (frontend.namespaceRPS, "
    "frontend.namespaceCount), and its log. The workers' logs have what fails of it: `Network error while sending worker "
    "heartbeat`, `Error when recording heartbeat: Timeout expired`. Migrations go on by themselves."
)


async def asking(wiring: Wiring, until: float) -> str:
    """Both programs that a migration needs, in words, where both asked for tasks lately, and nothing is seen that keeps them
    from their work; else empty."""
    async with in_time(until):
        told = await asyncio.gather(*(_asking(wiring, queues) for queues in (OF_RUNS, OF_EFFECTS)))
        if all(told) and await refusal(wiring.temporal) is None:
            return "; ".join([*told, *await asyncio.to_thread(_holder, wiring.temporal.address)])
    return ""


def is_unanswered(looked: object, run: RunSeen, now: datetime) -> bool:
    """Whether keeperless-activities has taken what it was asked, or was to, and is not heard. `looked`: what came of a look."""
    is_unlooked = isinstance(looked, Blocker) and looked.code == NO_WORKER
    return is_unlooked or any(_is_unheard(task, now) for task in run.tasks if task.queue != TaskQueue.MIGRATIONS)


def silent_for_all(run: RunSeen, now: datetime) -> RunSeen:
    """Without tasks that only show once more that nothing of their workers comes."""
    return replace(run, tasks=tuple(task for task in run.tasks if not _is_unheard(task, now)))


def of_between(words: str, address: str, now: datetime) -> Blocker:
    """`words`: who asks, as told by `asking`."""
    return blocker(
        NO_WORKER,
        OBJECT,
        observed=f"questions for tasks (polls) of keeperless-workflows and keeperless-activities get through, and what they "
        f"answer does not: {words}"[:MOST_OBSERVED],
        expected="heartbeats, results and answers of workers come to Temporal as their polls do",
        fix=FIX.format(address),
        since=now,
    )


def _is_unheard(task: PendingTask, now: datetime) -> bool:
    is_ours = task.queue in {*OF_EFFECTS, *OF_RUNS} and not task.paused
    return is_ours and (task.is_unheard or is_silent(task, now) or is_untaken(task, now))


async def _asking(wiring: Wiring, queues: tuple[TaskQueue, ...]) -> str:
    heard = await asyncio.gather(*(heard_of(wiring, queue) for queue in queues))
    known = [poller for pollers in heard if isinstance(pollers, tuple) for poller in pollers]
    last = max(known, key=lambda one: one.heard_at, default=None)
    now = datetime.now(UTC)
    if last is None or now - last.heard_at > LATELY or not await asyncio.to_thread(_is_settled, last, queues[0], now):
        return ""
    signs = await signs_of(last.identity, queues[0])
    if any(not sign.is_slight for sign in signs):
        return ""
    return ". ".join([f"{PROGRAM_OF[queues[0]]} ({last.in_brief(now)})", *(sign.observed for sign in signs)])


def _is_settled(poller: Poller, queue: TaskQueue, now: datetime) -> bool:
    """Whether its process is here, and has been for a while: who has just come was not there to answer."""
    pid = pid_here(poller.identity)
    process = process_of(pid, PROGRAM_OF[queue]) if pid is not None else None
    return process is not None and now - process.begun_at > FRESH


def _holder(address: str) -> list[str]:
    """Which program has that port, where it is this machine's."""
    port = port_here(address)
    pids = processes_at(port)[:1] if port is not None else []
    try:
        return [f"the port {port} is held by {Path(f'/proc/{pid}/comm').read_text().strip()}, process {pid}" for pid in pids]
    except OSError:
        return []
