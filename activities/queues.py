"""What every worker of activities does alike: it wires adapters to ports, and serves task queues until a signal comes."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog
from temporalio.client import Client
from temporalio.worker import Worker

from activities.adapters.artefacts import DirectoryArtefacts
from activities.adapters.kafka_admin import BrokerAdmin
from activities.adapters.machine_doctor import LinuxDoctor
from activities.adapters.metrics.by_endpoint import EndpointMetrics
from activities.adapters.nodes.drivers import SpecDrivers
from activities.adapters.secrets import EnvironmentAndFileSecrets
from activities.adapters.zookeeper import KazooEnsembles
from activities.failures import FailureTranslator
from activities.handing_over import HandOver
from activities.ports.kinds import ActivityKinds
from activities.ports.ports import Ports
from activities.settings import ActivitySettings
from console.leaving import exit_cleanly, until_told
from console.polls import Polls
from console.program import CannotStart
from console.temporal import connected
from domain.contracts import TaskQueue
from ledger.errors import LedgerMisuse, LedgerUnavailable
from ledger.ledger import SqlLedger, open_ledger
from ledger.worker_heartbeat import beating

PAUSE = timedelta(seconds=2)
"""Between two attempts at opening the ledger."""


@dataclass(frozen=True)
class Queue:
    """A task queue, what it serves, and how many of these at once."""

    name: TaskQueue
    activities: Sequence[Callable[..., Any]]
    at_once: int


@dataclass(frozen=True)
class Manner:
    """How a worker serves. `threads`: for blocking calls: Python's own default is six on two cores, and one look uses more.

    `grace`: after SIGTERM, for what is handed over then; `bounded_grace`: for a bounded step. `heartbeat_throttle`: for how
    long the SDK may hold heartbeats back; its own default of a minute would hide a stalled attempt for as long.
    """

    threads: int
    grace: timedelta
    heartbeat_throttle: timedelta
    bounded_grace: timedelta = timedelta(0)


QueuesOf = Callable[[Ports, AsyncExitStack], Awaitable[Sequence[Queue]]]
"""Makes the queues; what has to be closed at the end goes on the stack."""


async def serve(
    program: str, settings: ActivitySettings, manner: Manner, kinds: ActivityKinds, queues_of: QueuesOf, **told: object
) -> int:
    """Serve until SIGINT or SIGTERM; the exit code. `told`: what the log says besides when it begins."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(manner.threads, thread_name_prefix="blocking"))
    secrets = EnvironmentAndFileSecrets()
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    async with AsyncExitStack() as stack:
        ledger = await opened(settings.ledger_url, stack, stop)
        brokers = BrokerAdmin(secrets)
        ports = Ports(
            ledger=ledger,
            drivers=SpecDrivers(),
            zookeepers=KazooEnsembles(secrets),
            kafka=brokers,
            replicas=brokers,
            metrics=EndpointMetrics(),
            artefacts=DirectoryArtefacts(settings.artefacts),
            kinds=kinds,
            doctor=LinuxDoctor(),
        )
        queues = await queues_of(ports, stack)
        polls = Polls()
        client = await connected(polls)
        served = [queue.name for queue in queues]
        alike = {"task_queues": served, "artefacts": settings.artefacts, "signal_approvals": settings.signal_approvals}
        # Entered before the workers, so that it beats until they have ended what they were at.
        await stack.enter_async_context(beating(program, settings, ledger, client, polls, **alike))
        workers = [_worker(client, queue, manner) for queue in queues]
        for worker in workers:
            await stack.enter_async_context(worker)
        structlog.get_logger().info("serving", task_queues=served, server=client.service_client.config.target_host, **told)
        await until_told(stop)
        # At the same time: one after the other, the last would take new tasks while the others end what they are at.
        await asyncio.gather(*(worker.shutdown() for worker in workers))
    exit_cleanly()  # a thread may wait for what hangs, and asyncio would wait for that thread


def _worker(client: Client, queue: Queue, manner: Manner) -> Worker:
    return Worker(
        client,
        task_queue=queue.name,
        activities=queue.activities,
        max_concurrent_activities=queue.at_once,
        interceptors=[HandOver(manner.grace), FailureTranslator()],
        graceful_shutdown_timeout=max(manner.grace, manner.bounded_grace),
        max_heartbeat_throttle_interval=manner.heartbeat_throttle,
    )


async def opened(url: str, stack: AsyncExitStack, stop: asyncio.Event) -> SqlLedger:
    """The ledger, as soon as its database answers: a worker that ended for it would be missing once it does."""
    while True:
        try:
            return await _unless_told(stop, stack.enter_async_context(open_ledger(url)))
        except LedgerMisuse as error:
            raise CannotStart(f"KEEPERLESS_LEDGER_URL: {error}") from error
        except LedgerUnavailable as error:
            if stop.is_set():
                raise
            structlog.get_logger().warning("the ledger does not answer; nothing is served yet", error=str(error))
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), PAUSE.total_seconds())


async def _unless_told(stop: asyncio.Event, opening: Coroutine[Any, Any, SqlLedger]) -> SqlLedger:
    """It may have to upgrade the ledger, in a thread that waits for minutes and cannot be cut off. That is one transaction,
    so whoever leaves in the middle of it leaves the ledger as it was.
    """
    ours, told = asyncio.create_task(opening), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({ours, told}, return_when=asyncio.FIRST_COMPLETED)
        if not ours.done():
            structlog.get_logger().info("asked to stop before the ledger was open")
            exit_cleanly()
        return await ours
    finally:
        told.cancel()
        ours.cancel()
