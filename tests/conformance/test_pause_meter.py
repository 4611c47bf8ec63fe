"""The longest pause on two real brokers: one of them freezes, and every write that both must have waits."""

import asyncio
import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest

from activities.adapters.kafka_admin import BrokerAdmin
from activities.adapters.nodes.drivers import SpecDrivers
from activities.adapters.secrets import EnvironmentAndFileSecrets
from activities.ports.ports import Ports
from activities.rolling.marking import Target
from activities.rolling.pauses import PauseMeter
from domain.canaries import pause_topic_of
from domain.cluster import ClusterSpec
from domain.contracts import StepRequest
from domain.decisions import Step
from domain.records import ClusterRecord
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.steps import NodeStage, StepAction
from playground.cluster import PlaygroundCluster
from playground.processes import running

FROZEN_SECONDS = 3.0


class Held:
    """The ledger of whoever holds the cluster."""

    async def generation(self, cluster: str) -> int:
        return 1


@pytest.mark.cluster
async def test_a_frozen_follower_is_a_pause_and_nothing_else_is(
    real_cluster: PlaygroundCluster, as_record: Callable[[ClusterSpec], ClusterRecord]
) -> None:
    real_cluster.await_in_sync()
    record, admin = as_record(real_cluster.spec), BrokerAdmin(EnvironmentAndFileSecrets())
    request = StepRequest(
        kind="zk-to-kraft",
        migration_id="conformance",
        cluster=real_cluster.spec.name,
        generation=1,
        step_id="conformance/1",
        step=Step(action=StepAction.ROLL_NODE, node_id=1, stage=NodeStage.MIGRATION),
        policy=ZkToKraftPolicy(max_client_pause=timedelta(seconds=FROZEN_SECONDS / 2)),
    )
    nothing: Any = None
    ports = Ports(cast("Any", Held()), nothing, nothing, admin, nothing, nothing)
    node = real_cluster.spec.node(1)
    target = Target(record, node, SpecDrivers().driver(node))
    try:
        async with PauseMeter(request, ports) as meter:
            for _ in range(30):  # Brokers register before they listen.
                if (unmeasured := await meter.begin([target])) is None:
                    break
                await asyncio.sleep(1)
            assert unmeasured is None
            await asyncio.sleep(2)
            smooth = meter.measured()
            await freeze(real_cluster, 2, FROZEN_SECONDS)
            await asyncio.sleep(1)
            measured, why = meter.measured(), meter.why_hold([target])
    finally:
        client = await admin.open_client(record)
        await client.delete_topic(1, pause_topic_of("conformance", 1))
        await client.close()
    print(f"smooth {smooth:.3f} s, frozen for {FROZEN_SECONDS} s: {measured:.3f} s")
    assert smooth is not None
    assert measured is not None
    assert measured > FROZEN_SECONDS - 0.5
    assert smooth < measured
    assert "clients waited" in (why or "")


async def freeze(cluster: PlaygroundCluster, broker_id: int, seconds: float) -> None:
    process = running(cluster.launch(broker_id))
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        process.send_signal(signal.SIGCONT)
