"""A roll whose node cannot be proven, because another node is dead: it is given up at once, so that an order can be obeyed."""

import time

import pytest
from temporalio.testing import ActivityEnvironment

from activities.ports.ports import Ports
from activities.rolling.roll import Rolling
from activities.shipped_kinds import SHIPPED_KINDS
from domain.contracts import StepOutcome
from domain.decisions import Step, Wait
from domain.waits import WaitReason
from domain.zk_to_kraft.steps import NodeStage
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from playground.fakes.listeners import FakeListeners
from playground.fakes.spec import fake_spec
from tests.unit.fake_walk import POLICY, LedgerInMemory, Walk, is_roll

POINTS = {
    "to hybrid": lambda step: is_roll(step, NodeStage.MIGRATION) and step.node == 2,
    "to kraft": lambda step: is_roll(step, NodeStage.KRAFT) and step.node == 2,
    "to final": lambda step: is_roll(step, NodeStage.KRAFT, of_controller=True),
}


@pytest.fixture(scope="module")
async def before() -> Walk:
    """One that has been to the end, and knows the clusters of before three of its rolls."""
    cluster = FakeCluster(fake_spec(), boot_looks=2, catch_up_looks=1, copy_looks=1)
    walk = Walk(LedgerInMemory(cluster), cluster)
    await walk.to("done", POINTS)
    return walk


class DiesOnce:
    """Kafka's answers; with the first that comes after a start, another node is dead."""

    def __init__(self, cluster: FakeCluster, rolled: int, victim: int) -> None:
        self._cluster, self._rolled, self._victim = cluster, rolled, victim
        self._before = cluster.restarts

    async def view(self, record: object) -> object:
        name = self._cluster.spec.node_name(self._rolled)
        if self._cluster.restarts[name] > self._before[name] and self._cluster.nodes[self._victim].process is not None:
            self._cluster.kill(self._victim, "out of memory")
        return await self._cluster.view(record)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> object:
        return getattr(self._cluster, name)


async def roll(walk: Walk, point: str, victim: int) -> tuple[StepOutcome, Walk, float]:
    cluster, request, _ = walk.found[point]
    other = walk.copy()
    other.cluster = cluster
    other = other.copy()
    ports = Ports(
        other.ledger,
        other.cluster,
        other.cluster,
        DiesOnce(other.cluster, request.step.node, victim),  # type: ignore[arg-type]
        other.cluster,
        FakeArtefacts(),
        SHIPPED_KINDS,
    )
    begun = time.monotonic()
    outcome: StepOutcome = await ActivityEnvironment().run(Rolling(ports, FakeListeners(other.cluster)).roll_node, request)
    return outcome, other, time.monotonic() - begun


@pytest.mark.parametrize("victim", [3, 3002])
@pytest.mark.parametrize("point", POINTS)
async def test_the_roll_names_the_dead_node_and_waits_for_nothing(before: Walk, point: str, victim: int) -> None:
    outcome, walk, seconds = await roll(before, point, victim)
    assert not outcome.is_done
    assert outcome.did_restart
    assert walk.cluster.spec.node_name(victim) in (outcome.blocked or "")
    assert seconds < POLICY.restart_deadline.total_seconds() / 2
    walk.cluster.advance(5)
    decision = await walk.decision()
    assert isinstance(decision, Wait)
    assert (decision.reason, decision.objects) == (WaitReason.NODE_DOWN, (walk.cluster.spec.node_name(victim),))


async def test_who_asks_for_the_way_back_then_is_obeyed(before: Walk) -> None:
    _, walk, _ = await roll(before, "to hybrid", 3)
    walk.cluster.advance(5)
    decision = await walk.copy(is_back=True).decision()
    assert isinstance(decision, Step), decision


async def test_controllers_that_the_way_back_has_stopped_are_no_reason_to_give_up(before: Walk) -> None:
    """Roll B goes on among fenced controllers, as it always does."""
    cluster, _, _ = before.found["to kraft"]
    walk = before.copy(is_back=True)
    walk.cluster = cluster
    walk = walk.copy()
    await walk.to("done", prefix="m1/back")
