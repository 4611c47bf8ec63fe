"""How often a watch looks: what is read before the start is much, and the ensemble that it is read from serves."""

import asyncio
import gc
from datetime import timedelta
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.adapters.nodes.drivers import SpecDrivers
from activities.assessing import Assessing, pause_after
from activities.diagnosis.machine_notes import MachineNotes
from activities.observing.observe import observe
from activities.ports.ports import Ports
from activities.shipped_kinds import SHIPPED_KINDS
from domain.contracts import Assessment, AssessRequest
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from tests.unit.fake_walk import LedgerInMemory

SECONDS = 0.3
POLICY = ZkToKraftPolicy(poll_interval=timedelta(seconds=0.1))


@pytest.mark.parametrize(
    ("is_surveyed", "seconds", "pause"),
    [(True, 0.001, 0.1), (True, 12.0, 108.0), (False, 12.0, 0.1)],
)
def test_only_before_the_start_a_long_look_is_followed_by_a_long_pause(is_surveyed: bool, seconds: float, pause: float) -> None:
    assert pause_after(seconds, POLICY, is_surveyed=is_surveyed) == pytest.approx(pause)


class SlowServers(FakeCluster):
    """Its ZooKeeper servers take their time to answer, and count what they are asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.is_asked = asyncio.Event()

    async def ask(self, address: str, word: str) -> str | None:
        self.asked += 1
        self.is_asked.set()
        await asyncio.sleep(SECONDS)
        return await super().ask(address, word)


async def test_a_watch_that_waits_before_the_start_leaves_the_ensemble_alone_for_most_of_the_time() -> None:
    cluster = SlowServers()
    parts: dict[str, Any] = {"drivers": cluster, "zookeepers": cluster, "kafka": cluster, "metrics": cluster}
    ports = Ports(ledger=LedgerInMemory(cluster), artefacts=FakeArtefacts(), **parts, kinds=SHIPPED_KINDS)
    request = AssessRequest(kind="zk-to-kraft", cluster=cluster.spec.name, migration_id="m1", generation=1, policy=POLICY)
    first: Assessment = await ActivityEnvironment().run(Assessing(ports, MachineNotes(ports, SpecDrivers())).assess, request)
    assert first.phase == Phase.PREFLIGHT
    of_one_look = cluster.asked
    cluster.is_asked.clear()
    seen = request.model_copy(update={"seen": first.digest})
    watch = asyncio.create_task(ActivityEnvironment().run(Assessing(ports, MachineNotes(ports, SpecDrivers())).watch, seen))
    await cluster.is_asked.wait()
    await asyncio.sleep(4 * SECONDS)
    assert cluster.asked == 2 * of_one_look
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)


@pytest.mark.parametrize("turns", range(12))
async def test_a_look_that_is_broken_off_at_any_moment_leaves_nothing_unasked(turns: int) -> None:
    """What was made and never asked is told as an error, by whoever collects it."""
    cluster = FakeCluster()
    parts: dict[str, Any] = {"drivers": cluster, "zookeepers": cluster, "kafka": cluster, "metrics": cluster}
    ports = Ports(ledger=LedgerInMemory(cluster), artefacts=FakeArtefacts(), **parts, kinds=SHIPPED_KINDS)
    look = asyncio.create_task(observe(cluster.record(), ports))
    for _ in range(turns):
        await asyncio.sleep(0)
    look.cancel()
    await asyncio.gather(look, return_exceptions=True)
    gc.collect()
