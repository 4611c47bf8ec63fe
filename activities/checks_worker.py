"""`keeperless-checks`: the worker that compares. Its queue is its own, so that no comparison delays an effect."""

import asyncio
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig
from temporalio.worker import Worker

from activities.adapters.artefacts import DirectoryArtefacts
from activities.adapters.check_runner import EngineRunner
from activities.adapters.connected_spark import ConnectedSpark
from activities.adapters.kafka_admin import BrokerAdmin
from activities.adapters.metrics.by_endpoint import EndpointMetrics
from activities.adapters.nodes.drivers import SpecDrivers
from activities.adapters.secrets import EnvironmentAndFileSecrets
from activities.adapters.zookeeper import KazooEnsembles
from activities.checking import Checking
from activities.failures import FailureTranslator
from activities.observe import Ports
from activities.ports import CheckRunner
from activities.settings import ActivitySettings
from activities.workplace import sweep
from console.leaving import exit_cleanly
from console.logs import configure_logs
from domain.contracts import TaskQueue
from ledger.ledger import open_ledger
from spark.session.provider import spark_provider
from spark.settings import CheckSettings
from spark.sources.build import resolve_secret

GRACE = timedelta(seconds=2)
"""After SIGTERM. A comparison has no effect, so it is cut off; the next worker begins it anew."""
THREADS = 32
"""For blocking calls: files, ZooKeeper, metrics, and each comparison's own."""
CHECKS_AT_ONCE = 4
HEARTBEAT_THROTTLE = timedelta(seconds=2)


def work_directory(settings: CheckSettings) -> Path:
    return settings.checks_directory.absolute() / "work"


def checks_activities(ports: Ports, runner: CheckRunner, work: Path) -> list[Callable[..., Any]]:
    """What the `checks` queue serves: long, and much to compute."""
    return [Checking(ports, runner, work).run_check]


async def run(settings: ActivitySettings, checks: CheckSettings) -> None:
    """Serve until SIGINT or SIGTERM."""
    log = structlog.get_logger()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, thread_name_prefix="blocking"))
    config = ClientConfig.load_client_connect_config()
    config.setdefault("target_host", "localhost:7233")
    secrets = EnvironmentAndFileSecrets()
    await asyncio.to_thread(checks.make_digest_key)
    await asyncio.to_thread(sweep, work_directory(checks))
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    async with AsyncExitStack() as stack:
        ports = Ports(
            ledger=await stack.enter_async_context(open_ledger(settings.ledger_url)),
            drivers=SpecDrivers(),
            zookeepers=KazooEnsembles(secrets),
            kafka=BrokerAdmin(secrets),
            metrics=EndpointMetrics(),
            artefacts=DirectoryArtefacts(settings.artefacts),
        )
        spark = ConnectedSpark(lambda: spark_provider(checks, resolve_secret))
        stack.push_async_callback(spark.close)
        runner = EngineRunner(checks.digest_key_reference, checks.encoder_secret, None if checks.spark == "off" else spark)
        client = await Client.connect(**config, data_converter=pydantic_data_converter)
        worker = Worker(
            client,
            task_queue=TaskQueue.CHECKS,
            activities=checks_activities(ports, runner, work_directory(checks)),
            max_concurrent_activities=CHECKS_AT_ONCE,
            interceptors=[FailureTranslator()],
            graceful_shutdown_timeout=GRACE,
            max_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
        )
        await stack.enter_async_context(worker)
        log.info("serving", task_queues=[TaskQueue.CHECKS], server=config["target_host"], spark=checks.spark)
        await stop.wait()


def main() -> None:
    configure_logs("keeperless-checks")
    asyncio.run(run(ActivitySettings(), CheckSettings()))
    exit_cleanly()


if __name__ == "__main__":
    main()
