"""Nodes that serve although no process of theirs is known: they are unknown, never down, and nothing is started beside them."""

from typing import Any

import pytest

from activities.observing.observe import observe
from activities.ports.ports import Ports
from domain.cluster import NodeSpec
from domain.decisions import Wait
from domain.observed.observation import Process
from domain.rulings import Ruling
from domain.waits import WaitReason
from domain.zk_to_kraft.assessment import assess
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.reduction import situation_of
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from playground.fakes.hands import in_dual_write
from tests.unit.fake_walk import LedgerInMemory

POLICY = ZkToKraftPolicy()


class Blind:
    """Drivers that see no process, as from another PID namespace. `looks`: those that are blind; later ones are not."""

    def __init__(self, cluster: FakeCluster, looks: int = 1000) -> None:
        self._cluster, self._looks = cluster, looks

    def driver(self, node: NodeSpec) -> Any:
        driver = self._cluster.driver(node)
        see = driver.process

        async def process() -> Process:
            seen = await see()
            self._looks -= 1
            return seen if self._looks < 0 else seen.model_copy(update={"is_running": False, "identity": None})

        driver.process = process  # type: ignore[method-assign]
        return driver


def ports_of(cluster: FakeCluster, drivers: Any) -> Ports:
    return Ports(
        ledger=LedgerInMemory(cluster),
        drivers=drivers,
        zookeepers=cluster,
        kafka=cluster,
        metrics=cluster,
        artefacts=FakeArtefacts(),
    )


async def test_a_node_whose_metrics_answer_is_not_down() -> None:
    cluster = await in_dual_write()
    seen = await observe(cluster.record(), ports_of(cluster, Blind(cluster)))
    assert all(node.is_unowned for node in seen.nodes)
    situation = situation_of(seen, cluster.spec, POLICY)
    assert {broker.mode for broker in situation.brokers} == {BrokerMode.UNKNOWN}
    assert {controller.mode for controller in situation.controllers} == {ControllerMode.UNKNOWN}


@pytest.mark.parametrize("accepted_losses", [None, ()], ids=["forward", "back"])
async def test_nothing_is_started_beside_it(accepted_losses: tuple[str, ...] | None) -> None:
    cluster = await in_dual_write()
    seen = await observe(cluster.record(), ports_of(cluster, Blind(cluster)))
    decision = assess(seen, cluster.spec, POLICY, Ruling(accepted_losses=accepted_losses), "").decision
    assert isinstance(decision, Wait)
    assert decision.reason == WaitReason.PART_UNKNOWN


async def test_one_that_has_started_meanwhile_is_as_others() -> None:
    cluster = await in_dual_write()
    seen = await observe(cluster.record(), ports_of(cluster, Blind(cluster, looks=1)))
    assert not any(node.is_unowned for node in seen.nodes)
    assert all(node.metrics is not None for node in seen.nodes)


async def test_one_that_is_dead_stays_dead() -> None:
    cluster = await in_dual_write()
    cluster.nodes[2].die("out of memory")
    seen = await observe(cluster.record(), ports_of(cluster, cluster))
    assert not seen.node(2).is_unowned
    assert situation_of(seen, cluster.spec, POLICY).brokers[1].mode is BrokerMode.DOWN
