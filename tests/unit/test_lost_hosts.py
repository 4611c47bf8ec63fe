"""A host that is lost for good, on the way back: waited for by its name, until an empty machine is in its place."""

from typing import Any

import pytest

from activities.node_files import read_mark, read_original
from domain.decisions import Done, Step, Wait
from domain.errors import Unsafe
from domain.waits import WaitReason
from domain.zk_to_kraft.steps import NodeStage, StepAction
from playground.fakes.machine import FakeMachine
from playground.fakes.node import Mode, new_machine
from tests.unit.fake_walk import KillAfter, LedgerInMemory, Scene, Walk, is_roll
from tests.unit.fake_window import attempt, go_on, in_dual_write, is_out, next_step


@pytest.fixture(scope="module")
async def dual_write() -> Walk:
    return await in_dual_write()


@pytest.fixture(scope="module")
async def before_roll_b(dual_write: Walk) -> Walk:
    walk = dual_write.copy(ledger=LedgerInMemory(dual_write.cluster))
    await go_on(walk, StepAction.ROLL_NODE)
    return walk


@pytest.fixture(params=["dual write", "before roll B"])
def walk(request: Any, dual_write: Walk, before_roll_b: Walk) -> Walk:
    found = {"dual write": dual_write, "before roll B": before_roll_b}[request.param]
    return found.copy(ledger=LedgerInMemory(found.cluster))


def lose(walk: Walk, node_id: int) -> None:
    """Its machine does not answer any more, and never will."""
    walk.cluster.kill(node_id)
    walk.cluster.faults.silent_nodes.add(node_id)
    walk.cluster.advance(5)


def replace(walk: Walk, node_id: int) -> FakeMachine:
    """Another machine at its address, with nothing on it that a node has left."""
    node = walk.cluster.nodes[node_id]
    node.machine, node.last_identity, node.output = new_machine(node.spec), None, []
    walk.cluster.faults.silent_nodes.discard(node_id)
    return node.machine


async def waits_for(walk: Walk, name: str) -> None:
    decision = await walk.decision()
    assert isinstance(decision, Wait), decision
    assert decision.reason == WaitReason.PART_UNKNOWN
    assert any(name in part for part in decision.objects)


async def to_the_end(walk: Walk) -> None:
    for _ in range(20):
        if isinstance(await walk.decision(), Done):
            return
        outcome = await attempt(walk, await next_step(walk))
        assert outcome.is_done, outcome.blocked
    raise AssertionError


def modes(walk: Walk) -> set[Any]:
    return {node.process.mode for node in walk.cluster.nodes.values() if node.process is not None}


async def test_a_lost_controller_is_none_once_an_empty_machine_is_in_its_place(walk: Walk) -> None:
    lose(walk, 3003)
    await waits_for(walk, "controller-3003")
    replace(walk, 3003)
    await to_the_end(walk)
    assert modes(walk) == {Mode.ZOOKEEPER}
    assert not walk.cluster.deleted_topics
    assert not walk.cluster.trapped_partitions


async def test_a_lost_controller_that_comes_back_alone_is_no_majority_and_is_sent_the_same_way(dual_write: Walk) -> None:
    """The window is over, and the others are fenced: it cannot claim. Its /migration has it fenced as well."""
    walk = dual_write.copy(ledger=LedgerInMemory(dual_write.cluster))
    node = walk.cluster.nodes[3003]
    lost, last = node.machine, node.process.identity if node.process is not None else None
    lose(walk, 3003)
    replace(walk, 3003)
    await go_on(walk, StepAction.ROLL_NODE)
    assert (is_out(walk.cluster, 3001), is_out(walk.cluster, 3002)) == (True, True)
    node.machine, node.last_identity = lost, last
    node.start()
    walk.cluster.advance(50)
    assert walk.cluster.quorum.leader is None
    assert walk.cluster.side.controller is not None, "ZooKeeper's controller rules on"
    assert (await next_step(walk)).step.action == StepAction.LEAVE_KRAFT
    await to_the_end(walk)
    assert modes(walk) == {Mode.ZOOKEEPER}
    assert not walk.cluster.deleted_topics


@pytest.mark.parametrize("is_there", [True, False], ids=["empty directory", "no directory"])
async def test_controllers_without_their_volumes_after_a_reboot_are_never_formatted(dual_write: Walk, is_there: bool) -> None:
    """Neither the decision nor the step takes them for new ones, though no process of theirs is known either."""
    walk = dual_write.copy(is_back=False, ledger=LedgerInMemory(dual_write.cluster))
    for controller in walk.cluster.spec.controllers:
        lose(walk, controller.id)
        node = walk.cluster.nodes[controller.id]
        node.last_identity = None
        for path in controller.log_dirs:
            node.machine.remove_tree(path)
            if is_there:
                node.machine.make_dir(path)
        walk.cluster.faults.silent_nodes.discard(controller.id)
    decision = await walk.decision()
    assert isinstance(decision, Wait), decision
    assert decision.reason == WaitReason.NODE_DOWN
    spec = walk.cluster.spec.node(3001)
    mark = await read_mark(walk.cluster.driver(spec), spec.properties_file)
    assert mark is not None
    again = Step(action=StepAction.PROVISION_CONTROLLER, node_id=3001, stage=NodeStage.MIGRATION)
    scene = Scene(walk.cluster, walk.ledger, walk.request(again, mark.step_id))
    with pytest.raises(Unsafe, match=r"has run before, and its storage is not there: .*Mount its volume"):
        await scene.attempt(walk.cluster, KillAfter())
    assert walk.cluster.nodes[3001].process is None


async def test_a_lost_broker_is_started_by_hand_in_zookeeper_mode_on_an_empty_machine(walk: Walk) -> None:
    cluster, spec = walk.cluster, walk.cluster.spec.node(2)
    driver, path = cluster.driver(spec), spec.properties_file
    original = await read_original(driver, path, await read_mark(driver, path))
    assert original is not None
    lose(walk, 2)
    await waits_for(walk, "broker-2")
    replace(walk, 2).write(path, original)
    step: Any = await walk.decision()
    while isinstance(step, Step) and step.action != StepAction.ROLL_NODE:
        outcome = await attempt(walk, await next_step(walk))
        assert outcome.is_done, outcome.blocked
        step = await walk.decision()
    assert isinstance(step, Wait), step
    assert (step.reason, step.objects) == (WaitReason.NODE_DOWN, ("broker-2",))
    cluster.nodes[2].start()
    cluster.advance(5)
    await to_the_end(walk)
    assert modes(walk) == {Mode.ZOOKEEPER}


async def two_in_kraft_mode() -> Walk:
    walk = (await in_dual_write()).copy(is_back=False)
    await walk.to("step", {"third": lambda step: is_roll(step, NodeStage.KRAFT) and step.node == 3})
    return walk.copy(cluster=walk.found["third"][0], is_back=True)


@pytest.mark.parametrize("point", ["hybrid", "kraft"])
async def test_a_lost_broker_whose_file_is_put_there_as_it_was_is_led_back_like_others(dual_write: Walk, point: str) -> None:
    """The archived original went with the machine: so that is a loss to be accepted by its name."""
    found = dual_write if point == "hybrid" else await two_in_kraft_mode()
    walk = found.copy(ledger=LedgerInMemory(found.cluster))
    path = walk.cluster.spec.node(2).properties_file
    file = walk.cluster.nodes[2].machine.read(path)
    assert file is not None
    lose(walk, 2)
    await waits_for(walk, "broker-2")
    replace(walk, 2).write(path, file)
    decision = await walk.decision()
    assert isinstance(decision, Wait)
    assert (decision.reason, decision.objects) == (WaitReason.FILE_CHANGED, ("broker-2",))
    walk.accepted = ("original-of-broker-2",)
    await to_the_end(walk)
    assert modes(walk) == {Mode.ZOOKEEPER}
    assert not walk.cluster.trapped_partitions
