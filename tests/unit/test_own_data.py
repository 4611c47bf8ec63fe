"""A node that was restarted is proven well only on its own data."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from activities.rolling.marking import Target
from activities.rolling.own_data import OwnData, own_data
from domain.contracts import RevertOrder
from domain.zk_to_kraft.steps import StepAction
from playground.fakes.cluster import FakeCluster
from tests.unit.fake_walk import LedgerInMemory, Scene, Walk
from tests.unit.test_startable import accepting, scene_of_a_roll


async def judged(scene: Scene, node_id: int, **place: object) -> OwnData:
    """What its machine says of its locks."""
    cluster = scene.copy()
    node = cluster.spec.node(node_id)
    cluster.nodes[node_id].machine.place = dict(place)
    return await own_data(scene.request, Target(cluster.record(), node, cluster.driver(node)))


def on_the_way_back(scene: Scene) -> Scene:
    order = RevertOrder(command_id=None, because="a test", accepted_losses=(), cluster=scene.cluster.record())
    return Scene(scene.cluster, scene.ledger, scene.request.model_copy(update={"revert": order}))


async def test_a_broker_on_another_directory_is_not_proven_whatever_is_accepted() -> None:
    scene = await scene_of_a_roll()
    assert await judged(scene, 1) == OwnData()
    for each in (scene, accepting("PF47", scene), on_the_way_back(scene)):
        found = await judged(each, 1, unheld=["/data/1"], elsewhere=["/var/kafka-logs"])
        assert "its process does not hold the lock of /data/1 and holds the lock of /var/kafka-logs" in (found.why_not or "")


async def test_what_cannot_be_seen_proves_no_broker_unless_somebody_has_accepted_it() -> None:
    scene = await scene_of_a_roll()
    found = await judged(scene, 1, unseen=["/data/1"])
    assert "cannot see whether its process holds the lock of /data/1" in (found.why_not or "")
    for each, node_id in ((accepting("PF47", scene), 1), (on_the_way_back(scene), 1), (scene, 3001)):
        found = await judged(each, node_id, unseen=["/data/1"])
        assert found.why_not is None
        assert found.note.endswith("it counts as proven without that")


@pytest.mark.parametrize("of_controller", [False, True])
async def test_a_roll_waits_for_the_locks(of_controller: bool) -> None:
    scene = await scene_of_a_roll(of_controller=of_controller)
    cluster = scene.copy()
    machine = cluster.nodes[scene.request.step.node].machine
    machine.place = {"unheld": ["/data/1"]}
    begun = cluster.restarts[cluster.spec.node_name(scene.request.step.node)]
    asked: list[str] = []

    async def after(name: str) -> None:
        """They are held from the fifth look after the restart on."""
        restarts = cluster.restarts[cluster.spec.node_name(scene.request.step.node)]
        asked.extend([name] if name == "node run" and restarts > begun else [])
        machine.place = {} if len(asked) > 4 else machine.place

    outcome: Any = await scene.attempt(cluster, after)
    assert outcome.is_done, outcome.blocked
    assert len(asked) == 6, "five in vain, and the last"


async def test_a_broker_on_other_data_holds_the_migration_before_the_next_one() -> None:
    """With the same broken start command every broker in turn would lose what has one replica."""
    scene = await scene_of_a_roll()
    short = scene.request.policy.model_copy(update={"restart_deadline": timedelta(seconds=1)})
    scene = replace(scene, request=scene.request.model_copy(update={"policy": short}))
    cluster = scene.copy()
    cluster.nodes[scene.request.step.node].machine.place = {"unheld": ["/data/1"]}
    outcome = await scene.attempt(cluster, nothing)
    assert (outcome.is_done, outcome.did_restart) == (False, True)
    assert "does not hold the lock of /data/1" in (outcome.hold_because or "")


async def nothing(_name: str) -> None:
    """After a call."""


async def test_a_controllers_first_start_waits_for_the_locks() -> None:
    """Its metrics agent answers before Kafka has opened anything."""
    walk = Walk(LedgerInMemory(FakeCluster()), FakeCluster())
    await walk.to("step", {"made": lambda step: step.action == StepAction.PROVISION_CONTROLLER})
    before, request, _ = walk.found["made"]
    scene = Scene(before, walk.ledger, request)
    cluster = scene.copy()
    node = cluster.nodes[request.step.node]
    node.machine.place = {"unheld": ["/data/3001"]}
    asked: list[str] = []

    async def after(name: str) -> None:
        """They are held from the third look after the start on."""
        asked.extend([name] if name == "node run" and node.process is not None else [])
        node.machine.place = {} if len(asked) > 2 else node.machine.place

    outcome: Any = await scene.attempt(cluster, after)
    assert outcome.is_done, outcome.blocked
    assert len(asked) == 6, "one of each in vain, one more of two, and the last of all"
