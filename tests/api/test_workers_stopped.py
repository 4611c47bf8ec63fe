"""SIGTERM: a worker takes no new task, ends what is short, hands over what lasts, and does not wait for a thread that hangs."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.client import ActivityHandle, Client

from domain.contracts import StepRequest, TaskQueue
from domain.decisions import Execution, Step
from playground.ports import PortLease
from playground.temporal import TemporalPorts, TemporalServer

GRACE = 4.0
PROGRAM = f"""
import asyncio, time
from datetime import timedelta
from temporalio import activity
from activities.queues import Manner, Queue, serve
from activities.settings import ActivitySettings
from activities.shipped_kinds import SHIPPED_KINDS
from domain.contracts import StepRequest, TaskQueue

@activity.defn
async def short() -> int:
    await asyncio.sleep({GRACE / 2})
    return activity.info().attempt

@activity.defn
async def lasting() -> int:
    while activity.info().attempt == 1:
        activity.heartbeat()
        await asyncio.sleep(0.1)
    return activity.info().attempt

@activity.defn
async def bounded(request: StepRequest) -> int:
    for _ in range(int({GRACE} * 20)):
        activity.heartbeat()
        await asyncio.sleep(0.1)
    return activity.info().attempt

@activity.defn
async def hanging() -> None:
    await asyncio.to_thread(time.sleep, 300)

async def queues(ports, stack):
    return [Queue(TaskQueue.CLUSTER, [short, lasting, bounded], 8), Queue(TaskQueue.WATCH, [lasting, hanging], 8)]

grace, beat, bounded_grace = (timedelta(seconds=seconds) for seconds in ({GRACE}, 1, 60))
manner = Manner(threads=4, grace=grace, heartbeat_throttle=beat, bounded_grace=bounded_grace)
asyncio.run(serve("keeperless-activities", ActivitySettings(), manner, SHIPPED_KINDS, queues))
"""

URGENT = Execution(activity="bounded", queue=TaskQueue.CLUSTER, summary="Give way", limit=timedelta(minutes=5), is_urgent=True)
STEP = Step(action="give-way", stage="gone", execution=URGENT)
BOUNDED = StepRequest(
    kind="zk-to-kraft", migration_id="m1", cluster="orders", generation=1, step_id="m1/1", step=STEP
).model_dump(mode="json")


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    lease = PortLease(4)
    with closing(lease), TemporalServer(tmp_path / "temporal", TemporalPorts.leased(lease)) as server:
        yield await Client.connect(server.address)


async def started(client: Client, tmp_path: Path) -> asyncio.subprocess.Process:
    environment = os.environ | {
        "TEMPORAL_ADDRESS": client.service_client.config.target_host,
        "KEEPERLESS_LEDGER_URL": f"sqlite:///{tmp_path}/ledger.db",
        "KEEPERLESS_RUNTIME_DIRECTORY": str(tmp_path / "run"),
    }
    return await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, env=environment)


async def asked(client: Client, name: str, queue: TaskQueue, number: int = 0, *given: object) -> ActivityHandle[int]:
    """Work for that queue; `heartbeat_timeout` is long, so that only a worker that hands it over lets another have it soon."""
    return await client.start_activity(
        name,
        args=given,
        id=f"{name}-{queue}-{number}",
        task_queue=queue,
        result_type=int,
        start_to_close_timeout=timedelta(minutes=5),
        heartbeat_timeout=timedelta(minutes=5),
    )


async def until_taken(handle: ActivityHandle[int]) -> None:
    async with asyncio.timeout(60):
        while True:
            if (await handle.describe()).last_started_time is not None:
                return
            await asyncio.sleep(0.1)


async def test_a_worker_that_is_told_to_stop_ends_in_its_grace(client: Client, tmp_path: Path) -> None:
    worker = await started(client, tmp_path)
    try:
        lasting = [await asked(client, "lasting", queue) for queue in (TaskQueue.CLUSTER, TaskQueue.WATCH)]
        hanging, short = await asked(client, "hanging", TaskQueue.WATCH), await asked(client, "short", TaskQueue.CLUSTER)
        for handle in (*lasting, hanging, short):
            await until_taken(handle)
        worker.send_signal(signal.SIGTERM)
        began = time.monotonic()
        await asyncio.sleep(GRACE / 4)
        late = await asked(client, "short", TaskQueue.CLUSTER, 1)
        assert await worker.wait() == 0
        seconds = time.monotonic() - began
        print(f"ended {seconds:.1f} s after SIGTERM, with a grace of {GRACE:g} s")
        assert seconds < GRACE + 8
        assert await short.result() == 1, "what is short was ended"
        assert (await late.describe()).last_started_time is None, "no new task was taken"
        worker = await started(client, tmp_path)
        assert [await handle.result() for handle in (*lasting, late)] == [2, 2, 1], "what lasts was handed over"
    finally:
        with suppress(ProcessLookupError):
            worker.kill()
        await worker.wait()


async def test_a_bounded_step_is_ended_and_what_lasts_beside_it_is_handed_over_before(client: Client, tmp_path: Path) -> None:
    """In the revert window the cluster may be without a controller, so it must not wait for the next worker."""
    worker = await started(client, tmp_path)
    try:
        bounded = await asked(client, "bounded", TaskQueue.CLUSTER, 0, BOUNDED)
        lasting = await asked(client, "lasting", TaskQueue.CLUSTER)
        for handle in (bounded, lasting):
            await until_taken(handle)
        worker.send_signal(signal.SIGTERM)
        began = time.monotonic()
        second = await started(client, tmp_path)
        try:
            assert await lasting.result() == 2
            handed_over = time.monotonic() - began
            assert worker.returncode is None, "it is still at its bounded step"
            assert await bounded.result() == 1
            assert await worker.wait() == 0
        finally:
            second.kill()
            await second.wait()
        print(f"handed over after {handed_over:.1f} s, ended after {time.monotonic() - began:.1f} s")
    finally:
        with suppress(ProcessLookupError):
            worker.kill()
        await worker.wait()
