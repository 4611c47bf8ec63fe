"""Who takes tasks of a queue, as Temporal has heard last; and where that runs on this machine, what keeps it from its work."""

import asyncio
import os
import re
import socket
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue as TaskQueueName
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, PollActivityTaskQueueRequest
from temporalio.service import RPCError, RPCStatusCode

from activities.on_node.thread_states import tracer
from activities.on_node.watch_process import watch
from api.programs import process_of
from api.replaced_code import sign_of
from api.temporal import SAID, Temporal, TemporalRefused, TemporalUnavailable
from api.worker_log import complaint_of
from domain.blocker_codes import PROGRAM_OF
from domain.clocks import is_over
from domain.contracts import TaskQueue
from domain.machines.bad_signs import bad_signs
from domain.machines.standstill_signs import of_standstill
from domain.machines.vital_signs import Sign, VitalSigns, vital_signs_in

IDENTITY = re.compile(r"(\d+)@(.+)")
"""Of a worker, as `temporalio` makes it: its process and its host."""
OF_THE_MACHINE = "pid:[4026531836]"
"""The first PID namespace of a Linux kernel (PROC_PID_INIT_INO)."""
GONE = Sign("That process has ended", "Its log says why; dmesg, where the kernel has killed it.")
NOBODYS = "keeperless-nobodys"
"""A task queue on which nothing is ever put: who asks there takes nothing from a worker."""
POLL = timedelta(seconds=1)
QUESTION = timedelta(seconds=65)
"""For how long a worker waits for an answer before it asks again, and is heard of."""
REFUSED = frozenset({RPCStatusCode.RESOURCE_EXHAUSTED, RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED})
"""Said before the question is looked at. Where it may be asked, Temporal finds that a second is too short to wait."""
MEND = (
    "Mend what Temporal says: a limit of its dynamic configuration (frontend.namespaceCount for pollers at once, "
    "frontend.namespaceRPS for calls), or a permission. Workers go on by themselves."
)
CHECKS = PROGRAM_OF[TaskQueue.CHECKS].removeprefix("keeperless-")
MOST_BELOW = 8
"""Of the processes that it has started those that are looked at, all at once."""
STOPPED = re.compile(r"^State:\s+[Tt]\b", re.MULTILINE)


@dataclass(frozen=True)
class Poller:
    """A worker that has asked for tasks."""

    identity: str
    heard_at: datetime

    def in_words(self, now: datetime) -> str:
        return f"Temporal has heard last of {self.identity} there, {self._ago(now)}"

    def in_brief(self, now: datetime) -> str:
        return f"{self.identity} (heard {self._ago(now)})"

    def _ago(self, now: datetime) -> str:
        return f"{max((now - self.heard_at).total_seconds(), 0):.0f} s ago"


async def pollers_of(temporal: Temporal, queue: TaskQueue) -> tuple[Poller, ...]:
    """Of the last five minutes, as long as Temporal remembers them; the one heard last at the end.

    Raises `TemporalUnavailable`, as where its service that gives tasks away does not answer, or `TemporalRefused`.
    """
    of_workflows = queue is TaskQueue.MIGRATIONS
    kind = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW if of_workflows else TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
    async with temporal.answering() as client:
        asked = DescribeTaskQueueRequest(namespace=client.namespace, task_queue=TaskQueueName(name=queue), task_queue_type=kind)
        told = (await client.workflow_service.describe_task_queue(asked)).pollers
    known = (Poller(one.identity, one.last_access_time.ToDatetime(UTC)) for one in told)
    return tuple(sorted(known, key=lambda one: one.heard_at))


LEADING = (TaskQueue.MIGRATIONS, TaskQueue.CLUSTER)
"""Without whose workers no migration gets on."""


async def unserved(temporal: Temporal) -> str:
    """Which of those queues nobody asks for tasks, and where, in words; empty where somebody asks of each. As `pollers_of`."""
    heard = await asyncio.gather(*(pollers_of(temporal, queue) for queue in LEADING))
    unasked = [queue.value for queue, pollers in zip(LEADING, heard, strict=True) if not pollers]
    where = f"in namespace {temporal.namespace} at {temporal.address}"
    return f"task queue {' and '.join(unasked)} {where}" if unasked else ""


def machines_of(pollers: Iterable[Poller]) -> dict[str, Poller]:
    """By the name of its machine who was heard last of each from which somebody asks now: a question lasts a minute."""
    known = sorted(pollers, key=lambda one: one.heard_at)
    asking = (one for one in known if known[-1].heard_at - one.heard_at < QUESTION)
    return {named[2]: one for one in asking if (named := IDENTITY.fullmatch(one.identity)) is not None}


LATELY = timedelta(minutes=1)


def ended_here(pollers: Iterable[Poller], now: datetime) -> list[int]:
    """Processes of this machine that asked within the last minute, and have ended since."""
    lately = {one.identity for one in pollers if not is_over(one.heard_at, now, LATELY)}
    pids = (pid for identity in lately if (pid := pid_here(identity)) is not None)
    return sorted(pid for pid in pids if _has_ended(pid))


async def refusal(temporal: Temporal) -> Sign | None:
    """What Temporal says to who asks for tasks, in case it refuses everybody: found by asking, for tasks that nobody gives."""
    asked = PollActivityTaskQueueRequest(task_queue=TaskQueueName(name=NOBODYS), identity="keeperless-api")
    with suppress(TemporalRefused, TemporalUnavailable):
        async with temporal.answering() as client:
            asked.namespace = client.namespace
            try:
                await client.workflow_service.poll_activity_task_queue(asked, retry=False, timeout=POLL)
            except RPCError as error:
                if error.status in REFUSED:
                    return Sign(f"Temporal refuses who asks for tasks: {error.message[:SAID]}", MEND)
    return None


def pid_here(identity: str) -> int | None:
    """Of a worker on this machine, by the name that it gives itself."""
    found = IDENTITY.fullmatch(identity)
    return int(found[1]) if found is not None and found[2] == socket.gethostname() else None


async def signs_of(identity: str, queue: TaskQueue) -> tuple[Sign, ...]:
    """What this machine says of a worker, by the name that it gives itself, in a second; of keeperless-checks with what it has
    started, which is Spark's. Nothing of one that runs elsewhere.
    """
    pid = pid_here(identity)
    if pid is None or pid == os.getpid():
        return ()
    return await asyncio.to_thread(_signs_of, pid, PROGRAM_OF[queue].removeprefix("keeperless-"))


def _signs_of(pid: int, program: str) -> tuple[Sign, ...]:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return (GONE,) if _has_ended(pid) else ()
    if program.encode() not in command:
        return ()
    own = _signs_by(pid, status)
    below = _below(pid) if program == CHECKS else []
    complaint = complaint_of(pid, datetime.now(UTC))
    replaced = _replaced(pid, f"keeperless-{program}")
    with ThreadPoolExecutor(MOST_BELOW) as pool:
        theirs = [sign for signs in pool.map(_signs_of_child, below[:MOST_BELOW]) for sign in signs]
    return (*own, *theirs, *replaced, *([complaint] if complaint is not None else []))


def _replaced(pid: int, program: str) -> tuple[Sign, ...]:
    process = process_of(pid, program)
    sign = sign_of(pid, process.words, process.begun_at, program) if process is not None else None
    return (sign,) if sign is not None else ()


def signs_of_process(pid: int) -> tuple[Sign, ...]:
    """Of any process of this machine, in a second. None, where it has ended meanwhile."""
    try:
        return _signs_by(pid, Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ()


def _signs_by(pid: int, status: str) -> tuple[Sign, ...]:
    return _standstill_of(pid, status) or _of_process(pid, bad_signs(_watched(pid), {}))


def _watched(pid: int) -> VitalSigns:
    told = watch(pid, [])
    return vital_signs_in(told, told["clock"], time.time())


def _of_process(pid: int, signs: Iterable[Sign]) -> tuple[Sign, ...]:
    return tuple(replace(sign, observed=f"Of its process {pid}: {sign.observed}") for sign in signs)


def _standstill_of(pid: int, status: str) -> tuple[Sign, ...]:
    if STOPPED.search(status) and (by := tracer(f"/proc/{pid}")) is not None:
        return (Sign(f"Process {by} traces its process {pid}, and keeps it standing still", f"End or detach it: {by}."),)
    if STOPPED.search(status):
        return (Sign(f"Its process {pid} stands still: a signal, or a debugger, has stopped it", f"kill -CONT {pid}."),)
    return ()


def _signs_of_child(pid: int) -> tuple[Sign, ...]:
    """Only what lets it not run at all: Spark may have all that a machine has. None, where it has ended meanwhile."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    return _standstill_of(pid, status) or _of_process(pid, of_standstill(_watched(pid)))


def _below(pid: int) -> list[int]:
    """The processes that it has started, and those that they have."""
    found: list[int] = []
    unasked = [pid]
    while unasked:
        parent = unasked.pop()
        with suppress(OSError):
            for task in os.listdir(f"/proc/{parent}/task"):  # noqa: PTH208 - only names
                children = Path(f"/proc/{parent}/task/{task}/children").read_text(encoding="utf-8").split()
                found += map(int, children)
                unasked += map(int, children)
    return found


def _has_ended(pid: int) -> bool:
    """Only who is in the machine's own PID namespace knows: a container's numbers mean others here, and ours others there."""
    try:
        if str(Path("/proc/self/ns/pid").readlink()) != OF_THE_MACHINE:
            return False
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
