"""Configuration management of a node that is found stopped: a broken hook keeps none down, and what is unproven is told."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.decisions import Step, Wait
from domain.waits import WaitReason
from playground.fakes.cluster import FakeCluster
from playground.fakes.spec import fake_spec, with_hooks
from tests.unit.fake_walk import POLICY, KillAfter, Killed, LedgerInMemory, Scene, Walk
from tests.unit.test_configuration_management import (
    a_walk,
    before,
    forget_pause,
    is_final,
    is_provision,
    is_to_hybrid,
    is_to_kraft,
    pause_mark,
    text_of,
)


class KillAtStop(KillAfter):
    """The worker is gone once so many nodes have been stopped. Those of a wave are taken through the step in turn."""

    def __init__(self, stops: int = 1) -> None:
        super().__init__()
        self._stops = stops

    async def __call__(self, name: str) -> None:
        await super().__call__(name)
        await asyncio.sleep(0)
        if self.calls.count("node stop") >= self._stops:
            raise Killed


def runs(cluster: FakeCluster, node_id: int) -> bool:
    return cluster.nodes[node_id].process is not None


def break_hook(cluster: FakeCluster, node_id: int, fault: str) -> None:
    cluster.nodes[node_id].is_configuration_paused = False
    getattr(cluster.faults, fault).add(node_id)


async def after_a_stop(is_it: Callable[[Step], bool], walk: Walk | None = None) -> tuple[Scene, Walk]:
    """The nodes of that step are stopped, and the migration that did it is gone: another one's first step."""
    walk = walk or a_walk()
    scene = await before(is_it, walk)
    cluster = scene.copy()
    with suppress(Killed):
        await scene.attempt(cluster, KillAtStop(len(scene.request.step.nodes)))
    assert not any(runs(cluster, node_id) for node_id in scene.request.step.nodes)
    later = replace(walk, cluster=cluster, approvals=dict(scene.request.approvals))
    step = await later.decision()
    assert isinstance(step, Step)
    assert step.node in scene.request.step.nodes
    return Scene(cluster, walk.ledger, later.request(step, "m2/1")), later


@pytest.mark.parametrize("fault", ["never_pauses", "says_nothing_of_pauses"])
@pytest.mark.parametrize("is_it", [is_to_hybrid, is_to_kraft, is_final])
async def test_a_stopped_node_is_started_although_its_hook_is_broken_and_that_is_told(
    is_it: Callable[[Step], bool], fault: str
) -> None:
    scene, later = await after_a_stop(is_it)
    cluster, node_id = scene.cluster, scene.request.step.node
    break_hook(cluster, node_id, fault)
    outcome = await scene.attempt(cluster, KillAfter())
    assert outcome.is_done, outcome.blocked
    assert outcome.did_restart
    assert runs(cluster, node_id)
    assert "is not seen to be paused" in outcome.changes[-1]
    mark = pause_mark(cluster, node_id)
    assert mark is not None
    assert mark.is_ours, "it is still ours to release"
    if is_it is not is_final:
        decision = await later.decision()
        assert isinstance(decision, Wait), "nothing else restarts before somebody has paused it"
        assert (decision.reason, decision.objects) == (
            WaitReason.CONFIGURATION_RUNS,
            (cluster.spec.node_name(node_id),),
        )


async def test_a_node_that_was_never_paused_and_is_down_is_started_as_well() -> None:
    """As after a specification that names the hook only since."""
    scene, _ = await after_a_stop(is_to_hybrid)
    forget_pause(scene.cluster, scene.request.step.node)
    break_hook(scene.cluster, scene.request.step.node, "says_nothing_of_pauses")
    outcome = await scene.attempt(scene.cluster, KillAfter())
    assert outcome.is_done, outcome.blocked
    assert "is not seen to be paused" in outcome.changes[-1]


async def test_what_is_paused_while_a_node_is_down_is_told_as_ever() -> None:
    scene, _ = await after_a_stop(is_to_hybrid)
    scene.cluster.nodes[scene.request.step.node].is_configuration_paused = False
    outcome = await scene.attempt(scene.cluster, KillAfter())
    assert outcome.is_done, outcome.blocked
    assert outcome.changes[-1] == "configuration management paused"


async def test_brokers_of_a_wave_are_all_started_again_although_every_hook_is_broken() -> None:
    cluster = FakeCluster(with_hooks(fake_spec(brokers=6, racks=3)), boot_looks=1, catch_up_looks=1, copy_looks=1)
    walk = Walk(LedgerInMemory(cluster), cluster, policy=POLICY.model_copy(update={"max_parallel": 3}))
    scene, later = await after_a_stop(lambda step: is_to_hybrid(step) and bool(step.companions), walk)
    down = [node_id for node_id in range(1, 7) if not runs(scene.cluster, node_id)]
    assert len(down) == 2
    for node_id in down:
        break_hook(scene.cluster, node_id, "never_pauses")
    for number in range(len(down)):
        step = await later.decision()
        assert isinstance(step, Step), "who is down is started before anybody waits for a hook"
        assert step.node in down
        next_one = Scene(scene.cluster, walk.ledger, later.request(step, f"m2/{number}"))
        outcome = await next_one.attempt(scene.cluster, KillAfter())
        assert outcome.did_restart, "proven it is once the others run"
    assert all(runs(scene.cluster, node_id) for node_id in down)
    decision = await later.decision()
    assert isinstance(decision, Wait)
    assert decision.reason == WaitReason.CONFIGURATION_RUNS


async def test_a_controller_whose_file_is_there_is_started_although_its_hook_is_broken() -> None:
    scene = await before(is_provision)
    cluster, node_id = scene.copy(), scene.request.step.node
    calls = KillAfter()

    async def after(name: str) -> None:
        await calls(name)
        if text_of(cluster, node_id) is not None:
            raise Killed

    with suppress(Killed):
        await scene.attempt(cluster, after)
    assert not runs(cluster, node_id)
    break_hook(cluster, node_id, "never_pauses")
    outcome = await scene.attempt(cluster, KillAfter())
    assert outcome.is_done, outcome.blocked
    assert "is not seen to be paused" in outcome.changes[-1]


async def test_a_stopped_broker_is_started_although_no_pause_of_clients_can_be_measured_at_it() -> None:
    """It is not among those that serve: there is nothing that its start could interrupt."""
    walk = a_walk()
    walk.policy = POLICY.model_copy(update={"max_client_pause": timedelta(seconds=60)})
    scene, _ = await after_a_stop(is_to_hybrid, walk)
    outcome = await scene.attempt(scene.cluster, KillAfter())
    assert outcome.is_done, outcome.blocked
    assert outcome.did_restart
    assert outcome.client_pause_seconds is None
