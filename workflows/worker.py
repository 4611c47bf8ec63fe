"""`keeperless-workflows`: the worker that interprets migrations. It needs Temporal and nothing else."""

import asyncio
import signal

import structlog
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from console.inherited import take_signals_as_they_are
from console.leaving import exit_cleanly, until_told
from console.logs import configure_logs
from domain.contracts import TaskQueue
from workflows.zk_to_kraft import ZkToKraftMigration

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


async def run() -> None:
    """Serve until SIGINT or SIGTERM."""
    log = structlog.get_logger()
    config = ClientConfig.load_client_connect_config()
    config.setdefault("target_host", "localhost:7233")
    client = await Client.connect(**config, data_converter=pydantic_data_converter)
    worker = Worker(
        client,
        task_queue=TaskQueue.MIGRATIONS,
        workflows=[ZkToKraftMigration],
        workflow_runner=RUNNER,
        max_cached_workflows=CACHED_WORKFLOWS,
    )
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    async with worker:
        log.info("serving", task_queue=TaskQueue.MIGRATIONS, server=config["target_host"])
        await until_told(stop)


def main() -> None:
    take_signals_as_they_are()
    configure_logs("keeperless-workflows")
    asyncio.run(run())
    exit_cleanly()


if __name__ == "__main__":
    main()
