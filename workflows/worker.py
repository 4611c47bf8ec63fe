"""`keeperless-workflows`: the worker that interprets migrations. It needs Temporal; the ledger gets its heartbeat only."""

import asyncio
import signal
from contextlib import AsyncExitStack
from typing import NoReturn

import structlog
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from console.leaving import until_told
from console.polls import Polls
from console.program import CannotStart, Program, run_program
from console.temporal import connected
from console.worker_settings import WorkerSettings
from domain.contracts import TaskQueue
from ledger.errors import LedgerMisuse
from ledger.worker_heartbeat import beating, ledger_as_it_is
from workflows.migration import Migration

RUNNER = SandboxedWorkflowRunner(
    restrictions=SandboxRestrictions.default.with_passthrough_modules(
        "domain",
        "pydantic",
        "workflows.board",
        "workflows.calls",
        "workflows.comparing",
        "workflows.messages",
        "workflows.orders",
        "workflows.outbox",
        "workflows.stopping",
        "workflows.telling",
        "workflows.turns",
    )
)
CACHED_WORKFLOWS = 200
"""A cached workflow takes about 0.75 MiB; a migration waits nearly always, and is read again from its history in no time."""


PROGRAM = Program(
    "keeperless-workflows",
    "Runs the workflows of migrations: what happens next, and when.",
    "Needs Temporal; writes its heartbeat to the ledger, if that is reached; runs on any machine, in any number of copies.",
    (WorkerSettings,),
)


async def run(settings: WorkerSettings) -> int:
    """Serve until SIGINT or SIGTERM."""
    log = structlog.get_logger()
    polls = Polls()
    client = await connected(polls)
    worker = Worker(
        client,
        task_queue=TaskQueue.MIGRATIONS,
        workflows=[Migration],
        workflow_runner=RUNNER,
        max_cached_workflows=CACHED_WORKFLOWS,
    )
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    async with AsyncExitStack() as stack:
        try:
            ledger = await stack.enter_async_context(ledger_as_it_is(settings.ledger_url))
        except LedgerMisuse as error:
            raise CannotStart(f"KEEPERLESS_LEDGER_URL: {error}") from error
        await stack.enter_async_context(beating(PROGRAM.name, settings, ledger, client, polls))
        await stack.enter_async_context(worker)
        log.info("serving", task_queue=TaskQueue.MIGRATIONS, server=client.service_client.config.target_host)
        await until_told(stop)
    return 0


def main() -> NoReturn:
    run_program(PROGRAM, lambda: asyncio.run(run(WorkerSettings())))


if __name__ == "__main__":
    main()
