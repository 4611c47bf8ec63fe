"""`keeperless-activities`: the worker that looks at clusters and changes them. The only place that wires adapters."""

import asyncio
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import structlog
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig
from temporalio.worker import Worker

from activities.adapters.artefacts import DirectoryArtefacts
from activities.adapters.kafka_admin import BrokerAdmin
from activities.adapters.listeners import TcpListeners
from activities.adapters.metrics.by_endpoint import EndpointMetrics
from activities.adapters.nodes.drivers import SpecDrivers
from activities.adapters.secrets import EnvironmentAndFileSecrets
from activities.adapters.zookeeper import KazooEnsembles
from activities.adopting import Adopting
from activities.assessing import Assessing
from activities.failures import FailureTranslator
from activities.leaving import Leaving
from activities.observe import Ports
from activities.previewing import Previewing
from activities.provisioning import Provisioning
from activities.recording import Recording
from activities.rolling import Rolling
from activities.settings import ActivitySettings
from activities.starting import Starting
from activities.wiping import Wiping
from console.leaving import exit_cleanly
from console.logs import configure_logs
from domain.contracts import TaskQueue
from ledger.ledger import open_ledger

GRACE = timedelta(seconds=20)
"""After SIGTERM: time for what is short. A roll under way is cut off and taken up by the next worker where it stood."""
THREADS = 64
"""For blocking calls: files, ZooKeeper, Kafka. Python's own default is six on two cores: one look uses more than that."""
HEARTBEAT_THROTTLE = timedelta(seconds=5)
"""Heartbeats that the SDK may hold back; its own default of a minute would hide a stalled attempt for as long."""


def cluster_activities(ports: Ports, settings: ActivitySettings) -> list[Callable[..., Any]]:
    """What the `cluster` queue serves: looks and effects, each short or bounded."""
    return [
        Assessing(ports).assess,
        Provisioning(ports).provision_controller,
        Rolling(ports).roll_node,
        Starting(ports).start_node,
        Starting(ports).fail_over,
        Leaving(ports, TcpListeners()).leave_kraft,
        Wiping(ports).wipe_kraft,
        Recording(ports).claim_cluster,
        Recording(ports).record_progress,
        Adopting(ports, settings.signal_approvals).adopt_message,
        Previewing(ports).accept_rollback,
    ]


def watch_activities(ports: Ports) -> list[Callable[..., Any]]:
    """What the `watch` queue serves: long, cheap, many."""
    return [
        Assessing(ports).watch,
        Assessing(ports).observe_cluster,
        Previewing(ports).preview_rollback,
        Previewing(ports).write_runbook,
    ]


async def run(settings: ActivitySettings) -> None:
    """Serve both queues until SIGINT or SIGTERM."""
    log = structlog.get_logger()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, thread_name_prefix="blocking"))
    config = ClientConfig.load_client_connect_config()
    config.setdefault("target_host", "localhost:7233")
    secrets = EnvironmentAndFileSecrets()
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
        client = await Client.connect(**config, data_converter=pydantic_data_converter)
        for queue, activities, limit in (
            (TaskQueue.CLUSTER, cluster_activities(ports, settings), settings.max_effects),
            (TaskQueue.WATCH, watch_activities(ports), settings.max_watches),
        ):
            worker = Worker(
                client,
                task_queue=queue,
                activities=activities,
                max_concurrent_activities=limit,
                interceptors=[FailureTranslator()],
                graceful_shutdown_timeout=GRACE,
                max_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
            )
            await stack.enter_async_context(worker)
        log.info("serving", task_queues=[TaskQueue.CLUSTER, TaskQueue.WATCH], server=config["target_host"])
        await stop.wait()


def main() -> None:
    configure_logs("keeperless-activities")
    asyncio.run(run(ActivitySettings()))
    exit_cleanly()


if __name__ == "__main__":
    main()
