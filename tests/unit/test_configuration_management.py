"""Configuration management: paused and proven before a file changes, released at the end, wherever a worker dies meanwhile."""

import asyncio
import copy
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import pytest
from temporalio.testing import ActivityEnvironment

from activities.node_files import mark_path, pause_path
from activities.observing.observe import observe
from activities.ports.ports import Ports
from activities.rolling import configuration_management
from activities.rolling.configuration_management import ConfigurationManaging
from activities.shipped_kinds import SHIPPED_KINDS
from domain.cluster import ClusterSpec
from domain.contracts import StepOutcome
from domain.decisions import Done, Refuse, Step, Wait
from domain.errors import Superseded, Unsafe
from domain.observed.observation import PauseMark
from domain.waits import WaitReason
from domain.zk_to_kraft.assessment import sight_of
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.preview import preview_of
from domain.zk_to_kraft.steps import NodeStage, StepAction
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from playground.fakes.spec import fake_spec, with_hooks
from tests.unit.fake_walk import KillAfter, Killed, LedgerInMemory, Scene, Walk, Watched, is_roll
from tests.unit.fake_way_back import take_flag

EVERYBODY = {1, 2, 3, 3001, 3002, 3003}


def is_provision(step: Step) -> bool:
    return step.action == StepAction.PROVISION_CONTROLLER


def is_to_hybrid(step: Step) -> bool:
    return is_roll(step, NodeStage.MIGRATION)


def is_to_kraft(step: Step) -> bool:
    return is_roll(step, NodeStage.KRAFT)


def is_final(step: Step) -> bool:
    return step.gate is not None


def is_release(step: Step) -> bool:
    return step.action == StepAction.RELEASE_CONFIGURATION


def a_walk(spec: ClusterSpec | None = None) -> Walk:
    cluster = FakeCluster(spec or with_hooks(fake_spec()), boot_looks=1, catch_up_looks=1, copy_looks=1)
    return Walk(LedgerInMemory(cluster), cluster)


async def before(is_it: Callable[[Step], bool], walk: Walk | None = None) -> Scene:
    """The cluster right before the first such step, and the step."""
    walk = walk or a_walk()
    await walk.to("done" if is_it is is_release else "step", {"wanted": is_it})
    cluster, request, _ = walk.found["wanted"]
    return Scene(cluster, walk.ledger, request)


def file_at(cluster: FakeCluster, node_id: int, of: Callable[[str], str]) -> bytes | None:
    node = cluster.nodes[node_id]
    file = node.machine.read(of(node.spec.properties_file))
    return file.content if file is not None else None


def text_of(cluster: FakeCluster, node_id: int) -> bytes | None:
    return file_at(cluster, node_id, lambda path: path)


def pause_mark(cluster: FakeCluster, node_id: int) -> PauseMark | None:
    content = file_at(cluster, node_id, pause_path)
    return None if content is None else PauseMark.model_validate_json(content)


def forget_pause(cluster: FakeCluster, node_id: int) -> None:
    node = cluster.nodes[node_id]
    node.machine.remove(pause_path(node.spec.properties_file))
    node.is_configuration_paused = False


def paused(cluster: FakeCluster) -> set[int]:
    return {node_id for node_id, node in cluster.nodes.items() if node.is_configuration_paused}


def marked(cluster: FakeCluster) -> set[int]:
    return {node_id for node_id in cluster.nodes if pause_mark(cluster, node_id) is not None}


class Ordered(KillAfter):
    """At every call: where the node's file has changed, its configuration management is paused, and the mark says so."""

    def __init__(self, cluster: FakeCluster, before: FakeCluster, node_id: int, count: int | None = None) -> None:
        super().__init__(count)
        self._cluster, self._node_id, self._before = cluster, node_id, text_of(before, node_id)

    async def __call__(self, name: str) -> None:
        mark = pause_mark(self._cluster, self._node_id)
        is_paused = self._cluster.nodes[self._node_id].is_configuration_paused
        if is_paused:
            assert mark is not None, f"{name}: nobody would find out who has paused it"
            assert mark.is_ours
        if text_of(self._cluster, self._node_id) != self._before:
            assert is_paused, f"{name}: the file was written first"
            assert mark is not None
            assert mark.is_proven, f"{name}: written before the pause was proven"
        await super().__call__(name)


@pytest.mark.parametrize("is_it", [is_provision, is_to_hybrid, is_final])
async def test_nothing_is_written_before_the_pause_is_proven_wherever_a_worker_dies(is_it: Callable[[Step], bool]) -> None:
    scene = await before(is_it)
    node_id = scene.request.step.node
    forget_pause(scene.cluster, node_id)
    smooth = scene.copy()
    calls = Ordered(smooth, scene.cluster, node_id)
    outcome = await scene.attempt(smooth, calls)
    assert outcome.is_done
    assert outcome.changes[-1] == "configuration management paused"
    for count in range(len(calls.calls)):
        cluster = scene.copy()
        with pytest.raises(Killed):
            await scene.attempt(cluster, Ordered(cluster, scene.cluster, node_id, count))
        outcome = await scene.attempt(cluster, Ordered(cluster, scene.cluster, node_id))
        assert outcome.is_done, f"killed after call {count} {calls.calls[count]}: {outcome.blocked}"
        assert pause_mark(cluster, node_id) == pause_mark(smooth, node_id)
        assert cluster.nodes[node_id].starts == smooth.nodes[node_id].starts
    print(f"{scene.request.step.action}: killed at {len(calls.calls)} places")


@pytest.mark.parametrize("seed", range(4))
async def test_two_attempts_at_once_know_that_the_pause_is_theirs(seed: int) -> None:
    """Attempt A stops at any call, attempt B does the whole step, A goes on."""
    scene = await before(is_to_hybrid)
    node_id = scene.request.step.node
    calls = KillAfter()
    await scene.attempt(scene.copy(), calls)
    for at in range(seed, len(calls.calls), 4):
        cluster, passed = scene.copy(), KillAfter()

        async def after(name: str, cluster: FakeCluster = cluster, passed: KillAfter = passed, at: int = at) -> None:
            await passed(name)
            if len(passed.calls) == at + 1:
                await scene.attempt(cluster, KillAfter())

        await scene.attempt(cluster, after)
        mark = pause_mark(cluster, node_id)
        assert mark is not None
        assert mark.is_ours, f"A stopped after {calls.calls[at]}"
        assert mark.is_proven


@pytest.mark.parametrize(
    ("is_it", "fault"),
    [
        (is_provision, "never_pauses"),
        (is_to_hybrid, "never_pauses"),
        (is_final, "never_pauses"),
        (is_to_kraft, "says_nothing_of_pauses"),
    ],
)
async def test_what_is_not_seen_paused_keeps_a_step_from_writing(is_it: Callable[[Step], bool], fault: str) -> None:
    scene = await before(is_it)
    cluster, node_id = scene.copy(), scene.request.step.node
    forget_pause(cluster, node_id)
    getattr(cluster.faults, fault).add(node_id)
    starts = cluster.nodes[node_id].starts
    outcome = await scene.attempt(cluster, KillAfter())
    assert not outcome.is_done
    assert outcome.blocked is not None
    assert "not seen to be paused" in outcome.blocked
    assert "`configuration pause`" in outcome.blocked
    assert cluster.nodes[node_id].starts == starts
    for of in (lambda path: path, mark_path):
        assert file_at(cluster, node_id, of) == file_at(scene.cluster, node_id, of)
    getattr(cluster.faults, fault).clear()
    assert (await scene.attempt(cluster, KillAfter())).is_done, "what was left behind keeps nobody from going on"


async def test_a_flag_comes_back_and_an_original_too_although_the_pause_fails() -> None:
    walk = a_walk()
    await walk.to("gate")
    cluster, back = walk.copy(approvals={}), walk.copy(is_back=True)
    take_flag(cluster.cluster, 3002, restart=True)
    cluster.cluster.advance(2)
    for way, is_it in ((cluster, is_to_hybrid), (back, lambda step: is_roll(step, NodeStage.ZOOKEEPER))):
        way.found.clear()
        while not isinstance(step := await way.decision(), Step) or not (
            is_it(step) or (way is cluster and step.node_id == 3002)
        ):
            assert isinstance(step, Step)
            await way.take(way.request(step, f"m1/{step.action}-{step.node_id}-{step.stage}"))
        forget_pause(way.cluster, step.node)
        way.cluster.faults.never_pauses.add(step.node)
        outcome = await Scene(way.cluster, way.ledger, way.request(step, "m1/now")).attempt(way.cluster, KillAfter())
        assert outcome.is_done, outcome.blocked
        assert outcome.did_restart


async def test_a_hook_that_hangs_keeps_no_flag_from_a_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration_management, "URGENT_SECONDS", 0.01)
    walk = a_walk()
    await walk.to("gate")
    walk.approvals.clear()
    take_flag(walk.cluster, 3002, restart=True)
    walk.cluster.advance(2)
    step = await walk.decision()
    assert isinstance(step, Step)
    forget_pause(walk.cluster, 3002)

    async def hangs(*_: Any) -> bool:
        await asyncio.sleep(600)
        return False

    monkeypatch.setattr(configuration_management, "is_paused", hangs)
    outcome = await Scene(walk.cluster, walk.ledger, walk.request(step, "m1/now")).attempt(walk.cluster, KillAfter())
    assert outcome.is_done
    assert step.node_id == 3002


async def test_the_whole_way_pauses_every_node_and_releases_it_last() -> None:
    walk = a_walk()
    scene = await before(is_release, walk)
    assert scene.request.step == Step(action=StepAction.RELEASE_CONFIGURATION, stage=NodeStage.KRAFT)
    assert paused(scene.cluster) == marked(scene.cluster) == EVERYBODY
    assert await walk.to("done") == Done(outcome="KRAFT")
    assert paused(walk.cluster) == marked(walk.cluster) == set()


async def test_the_way_back_releases_as_well_controllers_that_are_gone_too() -> None:
    walk = a_walk()
    await walk.to("gate")
    back = walk.copy(is_back=True)
    assert paused(back.cluster) == EVERYBODY
    scene = await before(is_release, back)
    assert text_of(scene.cluster, 3001) is None, "wiped before"
    assert await back.to("done") == Done(outcome="ZOOKEEPER")
    assert paused(back.cluster) == marked(back.cluster) == set()


async def test_what_was_paused_before_us_stays_paused() -> None:
    walk = a_walk()
    for node_id in (2, 3002):
        walk.cluster.nodes[node_id].is_configuration_paused = True
    scene = await before(is_release, walk)
    assert [getattr(pause_mark(scene.cluster, node_id), "is_ours", None) for node_id in (1, 2, 3002)] == [True, False, False]
    await walk.to("done")
    assert paused(walk.cluster) == {2, 3002}
    assert marked(walk.cluster) == set()


async def test_what_others_had_paused_and_resumed_is_ours_once_we_pause_it() -> None:
    walk = a_walk()
    walk.cluster.nodes[1].is_configuration_paused = True
    scene = await before(is_to_kraft, walk)
    scene.cluster.nodes[1].is_configuration_paused = False
    assert scene.request.step.node_id == 1
    target = scene.copy()
    forget_pause(target, 1)
    assert (await scene.attempt(target, KillAfter())).is_done
    mark = pause_mark(target, 1)
    assert mark is not None
    assert mark.is_ours
    blocked = await scene.attempt(scene.cluster, KillAfter())
    assert "configuration-runs" in (blocked.blocked or ""), "as long as the mark stands, somebody is asked"


async def test_without_hooks_nothing_is_run_and_nothing_is_left() -> None:
    walk = a_walk(fake_spec())
    assert await walk.to("done") == Done(outcome="KRAFT")
    assert paused(walk.cluster) == marked(walk.cluster) == set()


async def test_what_runs_again_in_the_middle_is_waited_for_by_name_and_seen() -> None:
    walk = a_walk()
    await walk.to("gate")
    walk.approvals.clear()
    walk.cluster.nodes[2].is_configuration_paused = False
    decision = await walk.decision()
    assert isinstance(decision, Wait)
    assert (decision.reason, decision.objects) == (WaitReason.CONFIGURATION_RUNS, ("broker-2",))
    assert decision.detail == "broker-2: `configuration pause`"
    walk.cluster.nodes[2].is_configuration_paused = True
    walk.cluster.faults.says_nothing_of_pauses.add(3001)
    decision = await walk.decision()
    assert isinstance(decision, Wait)
    assert decision.objects == ("controller-3001",), "unknown is never paused"
    assert "ended with 3" in decision.detail
    walk.cluster.faults.says_nothing_of_pauses.clear()
    assert (await walk.decision()).decision == "gate"


async def test_people_see_of_every_node_whether_it_is_paused_and_by_whom() -> None:
    walk = a_walk()
    walk.cluster.nodes[2].is_configuration_paused = True
    await before(is_to_hybrid, walk)
    walk.cluster.nodes[3002].is_configuration_paused = False
    walk.cluster.faults.says_nothing_of_pauses.add(3003)
    seen = await observe(walk.cluster.record(), walk.ports)
    told = {n.name: n.configuration_management for n in sight_of(seen, walk.cluster.spec, ZkToKraftPolicy()).nodes}
    assert told == {
        "broker-1": "runs",
        "broker-2": "paused",
        "broker-3": "runs",
        "controller-3001": "paused-by-us",
        "controller-3002": "runs",
        "controller-3003": "unknown",
    }
    without = sight_of(seen, fake_spec(), ZkToKraftPolicy()).nodes
    assert [n.configuration_management for n in without] == [None, "unknown", None, "unknown", "unknown", "unknown"]


async def test_a_refused_migration_leaves_nothing_paused() -> None:
    """A controller's was paused, and before its file was written the cluster became one that is refused."""
    scene = await before(is_provision)
    walk = a_walk()
    walk.cluster = scene.copy()
    with suppress(Killed):
        killer = KillAfter()

        async def after(name: str) -> None:
            await killer(name)
            if walk.cluster.nodes[3001].is_configuration_paused:
                raise Killed

        await scene.attempt(walk.cluster, after)
    assert paused(walk.cluster) == {3001}
    directory = walk.cluster.spec.controllers[2].log_dirs[0]
    walk.cluster.nodes[3003].machine.make_dir(f"{directory}/somebody-elses")
    step = await walk.decision()
    assert step == Step(action=StepAction.RELEASE_CONFIGURATION, stage=NodeStage.ZOOKEEPER)
    await walk.take(walk.request(step, "m1/release"))
    assert isinstance(await walk.decision(), Refuse)
    assert paused(walk.cluster) == marked(walk.cluster) == set()


async def test_what_a_cancelled_migration_has_paused_can_be_released_by_a_way_back() -> None:
    scene = await before(is_provision)
    cluster = scene.copy()
    cluster.faults.never_pauses.add(3001)
    await scene.attempt(cluster, KillAfter())
    walk = Walk(scene.ledger, cluster, is_back=True)
    preview = preview_of(await observe(cluster.record(), walk.ports), cluster.spec, ZkToKraftPolicy(), {})
    assert [step.what for step in preview.steps] == ["Resume the configuration management that was paused"]
    assert preview.is_possible
    assert await walk.to("done") == Done(outcome="ZOOKEEPER")
    assert marked(cluster) == set()


async def release(scene: Scene, cluster: FakeCluster, after: Any = None) -> StepOutcome:
    after = after or KillAfter()
    ports = Ports(
        ledger=cast("Any", Watched(scene.ledger, "ledger", after)),
        drivers=EveryDriver(cluster, after),
        zookeepers=cluster,
        kafka=cluster,
        metrics=cluster,
        artefacts=FakeArtefacts(),
        kinds=SHIPPED_KINDS,
    )
    activity = ConfigurationManaging(ports).release_configuration
    outcome: StepOutcome = await ActivityEnvironment().run(activity, scene.request)
    return outcome


class EveryDriver:
    def __init__(self, cluster: FakeCluster, after: Any) -> None:
        self._cluster, self._after = cluster, after

    def driver(self, node: Any) -> Any:
        return Watched(self._cluster.driver(node), f"{node.id}", self._after)


def effects(calls: list[str]) -> list[int]:
    return [number for number, call in enumerate(calls) if call.split()[1] in {"run", "remove_file", "generation"}]


async def test_a_release_that_is_killed_anywhere_is_ended_by_the_next_one() -> None:
    walk = a_walk()
    walk.cluster.nodes[2].is_configuration_paused = True
    scene = await before(is_release, walk)
    calls = KillAfter()
    assert (await release(scene, scene.copy(), calls)).is_done
    for count in effects(calls.calls):
        cluster = scene.copy()
        with pytest.raises(Killed):
            await release(scene, cluster, KillAfter(count))
        for node_id in EVERYBODY - {2}:
            assert node_id not in paused(cluster) or pause_mark(cluster, node_id) is not None, "paused, and nobody knows"
        outcome = await release(scene, cluster)
        assert outcome.is_done, outcome.blocked
        assert paused(cluster) == {2}
        assert marked(cluster) == set()
    print(f"killed at {len(effects(calls.calls))} places")


async def test_a_failed_release_is_told_by_node_with_the_command_and_keeps_no_other() -> None:
    scene = await before(is_release)
    cluster = scene.copy()
    cluster.faults.never_resumes.add(2)
    cluster.faults.says_nothing_of_pauses.add(3001)
    with pytest.raises(Unsafe) as told:
        await release(scene, cluster)
    for name in ("broker-2", "controller-3001", "`configuration resume`"):
        assert name in str(told.value)
    assert "broker-1" not in str(told.value)
    assert paused(cluster) == marked(cluster) == {2, 3001}
    cluster.faults.says_nothing_of_pauses.clear()
    cluster.nodes[2].is_configuration_paused = False  # A person has done it.
    assert (await release(scene, cluster)).is_done
    assert paused(cluster) == marked(cluster) == set()


async def test_a_release_without_a_hook_any_more_says_what_is_left() -> None:
    scene = await before(is_release)
    cluster = scene.copy()
    bare = FakeCluster(fake_spec())
    bare.__dict__.update({**cluster.__dict__, "spec": fake_spec()})
    with pytest.raises(Unsafe, match=r"Restore configuration_management.*server\.properties\.paused"):
        await release(Scene(bare, LedgerInMemory(bare), scene.request), bare)
    assert marked(bare) == EVERYBODY


async def test_a_silent_node_is_released_later_and_a_lost_cluster_never() -> None:
    scene = await before(is_release)
    cluster = scene.copy()
    seen = copy.copy(cluster.faults.silent_nodes)
    scene.ledger.held_by = 2
    with pytest.raises(Superseded):
        await release(scene, cluster)
    scene.ledger.held_by = 1
    cluster.faults.silent_nodes.add(2)
    outcome = await release(scene, cluster)
    assert not outcome.is_done
    assert "node 2" in (outcome.blocked or "")
    assert paused(cluster) == EVERYBODY
    cluster.faults.silent_nodes = seen
    assert (await release(scene, cluster)).is_done


async def test_the_way_back_is_released_with_a_silent_ledger() -> None:
    walk = a_walk()
    await walk.to("gate")
    back = walk.copy(is_back=True)
    back.ledger.is_silent = True
    assert await back.to("done") == Done(outcome="ZOOKEEPER")
    assert paused(back.cluster) == set()
