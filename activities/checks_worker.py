"""`keeperless-checks`: the worker that compares. Its queue is its own, so that no comparison delays an effect."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

from activities.adapters.check_runner import EngineRunner
from activities.adapters.connected_spark import ConnectedSpark
from activities.adapters.message_runner import MessageEngine
from activities.adapters.nodes.drivers import SpecDrivers
from activities.check_directories import sweep
from activities.comparison.checking import Checking
from activities.planning import Planning
from activities.ports.checks import CheckRunner, MessageRunner
from activities.ports.ports import Ports
from activities.queues import Manner, Queue, serve
from activities.settings import ActivitySettings
from activities.shipped_kinds import SHIPPED_KINDS
from activities.zk_to_kraft.rehearsal.rehearsing import RehearsalPorts, rehearse_beating
from activities.zk_to_kraft.rehearsal.room import UnsharedRooms
from console.program import Program, run_program
from domain.contracts import TaskQueue
from domain.records import ClusterRecord
from domain.rehearsal import RehearsalReport
from spark.session.provider import spark_provider
from spark.settings import CheckSettings
from spark.sources.build import resolve_secret

MANNER = Manner(threads=32, grace=timedelta(seconds=2), heartbeat_throttle=timedelta(seconds=2))
"""A comparison has no effect, so it is cut off; the next worker begins it anew."""
CHECKS_AT_ONCE = 4


def work_directory(settings: CheckSettings) -> Path:
    """Swept when a worker begins: by its name nobody else's."""
    return settings.checks_directory.absolute() / "keeperless-attempts"


def checks_activities(
    ports: Ports, runner: CheckRunner, messages: MessageRunner, rehearsal: RehearsalPorts, work: Path
) -> list[Callable[..., Any]]:
    """What the `checks` queue serves: long, and much to compute."""

    async def rehearse(cluster: ClusterRecord) -> RehearsalReport:
        return await rehearse_beating(cluster, rehearsal, work)

    return [Checking(ports, runner, messages, work).run_check, Planning(ports, rehearse).rehearse_plan]


PROGRAM = Program(
    "keeperless-checks",
    "Compares ZooKeeper with KRaft and clients' data with what it was, on Spark or a local engine; rehearses the copy.",
    "Runs where the nodes' files can be read; needs Temporal and the ledger.",
    (ActivitySettings, CheckSettings),
)


async def run(settings: ActivitySettings, checks: CheckSettings) -> int:
    """Serve until SIGINT or SIGTERM; the exit code."""

    async def queues(ports: Ports, stack: AsyncExitStack) -> list[Queue]:
        await asyncio.to_thread(checks.make_digest_key)
        await asyncio.to_thread(sweep, work_directory(checks))
        spark = ConnectedSpark(lambda: spark_provider(checks, resolve_secret))
        stack.push_async_callback(spark.close)
        used = None if checks.spark == "off" else spark
        runner, messages = EngineRunner(checks.digest_key_reference, checks.encoder_secret, used), MessageEngine(used)
        rehearsal = RehearsalPorts(ports.drivers, SpecDrivers(), ports.zookeepers, UnsharedRooms(), runner)
        served = checks_activities(ports, runner, messages, rehearsal, work_directory(checks))
        return [Queue(TaskQueue.CHECKS, served, CHECKS_AT_ONCE)]

    return await serve(PROGRAM.name, settings, MANNER, SHIPPED_KINDS, queues, spark=checks.spark)


def main() -> NoReturn:
    run_program(PROGRAM, lambda: asyncio.run(run(ActivitySettings(), CheckSettings())))


if __name__ == "__main__":
    main()
