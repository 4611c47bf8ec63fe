"""Every activity with an effect asks the invariant first: if that refuses the step, nothing has happened to the cluster."""

import copy
from dataclasses import replace
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.canaries.trying import Canaries
from activities.node_files import FENCED_META, META, METADATA_LOG, mark_path
from activities.rolling.configuration_management import ConfigurationManaging
from activities.rolling.roll import Rolling
from activities.zk_to_kraft.provisioning import Provisioning
from activities.zk_to_kraft.starting import Starting
from activities.zk_to_kraft.window.leaving import Leaving
from activities.zk_to_kraft.window.wiping import Wiping
from domain.contracts import StepOutcome, StepRequest
from domain.decisions import Step
from domain.errors import Unsafe
from domain.observed.observation import RollMark
from domain.zk_to_kraft.described import CHECKS
from domain.zk_to_kraft.steps import NodeStage, StepAction
from playground.fakes.cluster import FakeCluster
from playground.fakes.listeners import FakeListeners
from playground.fakes.spec import fake_spec, with_hooks
from tests.unit.fake_walk import POLICY, LedgerInMemory, Walk, is_roll
from tests.unit.fake_window import QUICK, attempt, go_on, in_dual_write, next_step

Scenes = dict[str, tuple[Walk, StepRequest]]
"""By what is done: a migration right before a step, and the step."""

FORWARD = {
    "provision": lambda s: s.action == StepAction.PROVISION_CONTROLLER,
    "roll": lambda s: is_roll(s, NodeStage.MIGRATION),
    "try canaries": lambda s: s.action == StepAction.TRY_CANARIES,
    "end": lambda s: s.gate is not None,
    "release": lambda s: s.action == StepAction.RELEASE_CONFIGURATION,
}
EFFECTS = (*FORWARD, "remove canaries", "window", "fail over", "start", "roll back", "wipe")


@pytest.fixture(scope="module")
async def scenes() -> Scenes:
    return {**await forward(), **await back()}


async def forward() -> Scenes:
    cluster = FakeCluster(with_hooks(fake_spec()), boot_looks=1, catch_up_looks=1, copy_looks=2)
    policy = POLICY.model_copy(update={"canaries": True})
    walk = Walk(LedgerInMemory(cluster), cluster, policy=policy)
    await walk.to("done", FORWARD)
    found = {name: (replace(walk, cluster=seen, found={}), asked) for name, (seen, asked, _) in walk.found.items()}
    owing = walk.copy()
    node = owing.cluster.nodes[1]
    path = mark_path(node.spec.properties_file)
    mark = RollMark.model_validate_json(node.machine.files[path].content).model_copy(update={"are_canaries_due": True})
    node.machine.files[path] = replace(node.machine.files[path], content=mark.model_dump_json().encode())
    return {**found, "remove canaries": await before(owing, StepAction.REMOVE_CANARIES)}


async def back() -> Scenes:
    walk = await in_dual_write()
    dead = walk.copy()
    dead.cluster.faults.is_dual_write_stuck = True
    dead.cluster.advance(20)
    scenes = {"window": await before(walk, StepAction.LEAVE_KRAFT), "fail over": await before(dead, StepAction.FAIL_OVER)}
    needed = walk.copy(is_back=False)
    assert (await attempt(needed, await next_step(needed))).is_done
    fence_all(needed.cluster)
    scenes["start"] = await before(needed.copy(is_back=True), StepAction.START_NODE)
    await go_on(rolled := walk.copy(), StepAction.ROLL_NODE)
    scenes["roll back"] = await before(rolled, StepAction.ROLL_NODE)
    await go_on(wiped := rolled.copy(), StepAction.WIPE)
    return {**scenes, "wipe": await before(wiped, StepAction.WIPE)}


def fence_all(cluster: FakeCluster) -> None:
    for controller in cluster.spec.controllers:
        cluster.kill(controller.id)
        path = controller.log_dirs[0]
        cluster.nodes[controller.id].machine.rename(f"{path}/{META}", f"{path}/{FENCED_META}")
    cluster.advance(2)


async def before(walk: Walk, action: StepAction) -> tuple[Walk, StepRequest]:
    request = await next_step(walk)
    assert request.step.action == action
    return walk, request


async def perform(walk: Walk, request: StepRequest) -> StepOutcome:
    ports, listeners = walk.ports, FakeListeners(walk.cluster)
    activities: dict[str, Any] = {
        StepAction.PROVISION_CONTROLLER: Provisioning(ports).provision_controller,
        StepAction.ROLL_NODE: Rolling(ports, listeners).roll_node,
        StepAction.START_NODE: Starting(ports, listeners).start_node,
        StepAction.FAIL_OVER: Starting(ports, listeners, standing_seconds=0.01).fail_over,
        StepAction.LEAVE_KRAFT: Leaving(ports, listeners, QUICK).leave_kraft,
        StepAction.WIPE: Wiping(ports).wipe_kraft,
        StepAction.TRY_CANARIES: Canaries(ports).try_canaries,
        StepAction.REMOVE_CANARIES: Canaries(ports).remove_canaries,
        StepAction.RELEASE_CONFIGURATION: ConfigurationManaging(ports).release_configuration,
    }
    outcome: StepOutcome = await ActivityEnvironment().run(activities[request.step.action], request)
    return outcome


def seen_in(cluster: FakeCluster) -> Any:
    """All that an effect could change: files, processes, hooks, names in ZooKeeper, topics. Offsets move by themselves."""
    nodes = {
        node_id: (
            {path: file for path, file in node.machine.files.items() if METADATA_LOG not in path},
            node.starts,
            node.process is None,
            node.is_configuration_paused,
        )
        for node_id, node in cluster.nodes.items()
    }
    return copy.deepcopy((nodes, sorted(cluster.znodes), cluster.znodes.find("/controller"), cluster.topics))


@pytest.mark.parametrize("what", EFFECTS)
async def test_no_effect_happens_that_the_invariant_refuses(what: str, scenes: Scenes, monkeypatch: pytest.MonkeyPatch) -> None:
    found, request = scenes[what]
    walk = found.copy()
    asked: list[Step] = []

    def refuses(_: object, step: Step, __: object) -> None:
        asked.append(step)
        raise Unsafe("refused")

    before_it = seen_in(walk.cluster)
    with monkeypatch.context() as patched:
        patched.setattr("domain.zk_to_kraft.invariant.ensure_allowed", refuses)
        with pytest.raises(Unsafe, match="refused"):
            await perform(walk, request)
    assert asked == [request.step]
    assert seen_in(walk.cluster) == before_it


@pytest.mark.parametrize("what", EFFECTS)
async def test_the_same_step_has_its_effect_where_it_is_allowed(what: str, scenes: Scenes) -> None:
    """Or the test before would prove nothing."""
    found, request = scenes[what]
    walk = found.copy()
    before_it = seen_in(walk.cluster)
    assert (await perform(walk, request)).is_done
    assert seen_in(walk.cluster) != before_it


async def test_every_action_with_an_effect_is_among_them(scenes: Scenes) -> None:
    assert {request.step.action for _, request in scenes.values()} == set(StepAction) - set(CHECKS)
