"""A wave of two brokers, cut off after every single call, frozen and overtaken, or failing at one of them.

Whatever an attempt left, the next one finishes what has been stopped and touches nobody else; the rest is decided again, one by
one. In the end each broker of the wave has been restarted once, and nobody else at all.
"""

import asyncio
import itertools
from dataclasses import replace
from typing import Any

import pytest

from domain.contracts import StepOutcome
from domain.decisions import Step
from domain.errors import Transient
from domain.zk_to_kraft.steps import NodeStage, StepAction
from playground.fakes.cluster import FakeCluster
from playground.fakes.node import Mode
from playground.fakes.spec import fake_spec
from tests.unit.fake_walk import POLICY, KillAfter, Killed, LedgerInMemory, Scene, Walk, is_roll

WAVES = {
    "to hybrid": lambda step: is_roll(step, NodeStage.MIGRATION) and bool(step.companions),
    "to kraft": lambda step: is_roll(step, NodeStage.KRAFT) and bool(step.companions),
}
IN_WAVES = POLICY.model_copy(update={"max_parallel": 3})
MODES = {NodeStage.MIGRATION: Mode.HYBRID, NodeStage.KRAFT: Mode.KRAFT}
MAX_DECISIONS = 60


@pytest.fixture(scope="module")
async def road() -> Walk:
    """To the end, in waves; it knows the clusters of before the first wave of each roll."""
    cluster = FakeCluster(fake_spec(brokers=6, racks=3), boot_looks=2, catch_up_looks=1, copy_looks=1)
    walk = Walk(LedgerInMemory(cluster), cluster, policy=IN_WAVES)
    await walk.to("done", WAVES)
    assert walk.cluster.restarts == {f"broker-{i}": 2 for i in range(1, 7)} | {f"controller-{i}": 2 for i in (3001, 3002, 3003)}
    return walk


@pytest.fixture(params=WAVES)
def scene(request: pytest.FixtureRequest, road: Walk) -> Scene:
    cluster, asked, _ = road.found[request.param]
    assert len(asked.step.nodes) == 2
    return Scene(cluster, road.ledger, asked)


def starts(scene: Scene, cluster: FakeCluster) -> dict[int, int]:
    """How often each node has been started since the scene began."""
    return {node_id: node.starts - scene.cluster.nodes[node_id].starts for node_id, node in cluster.nodes.items()}


class Interleaved(KillAfter):
    """Two nodes are taken through the step in turn, call by call, as on a network."""

    turns = 1

    async def __call__(self, name: str) -> None:
        await super().__call__(name)
        for _ in range(self.turns):
            await asyncio.sleep(0)


def is_there(scene: Scene, cluster: FakeCluster, node_id: int) -> bool:
    process = cluster.nodes[node_id].process
    return process is not None and process.mode is MODES[NodeStage(scene.request.step.stage)]


async def go_on(scene: Scene, cluster: FakeCluster) -> list[Step]:
    """What the workflow would do until the brokers of the wave are through: the rolls that it takes."""
    walk = Walk(scene.ledger, cluster, policy=IN_WAVES, approvals=dict(scene.request.approvals))
    taken: list[Step] = []
    for number in range(MAX_DECISIONS):
        decision = await walk.decision()
        if all(is_there(scene, cluster, node_id) for node_id in scene.request.step.nodes):
            return taken
        if not isinstance(decision, Step):
            cluster.advance()
            continue
        assert decision.action == StepAction.ROLL_NODE
        taken.append(decision)
        later = walk.request(decision, f"{scene.request.step_id}/later-{number}")
        await Scene(cluster, scene.ledger, later).attempt(cluster, Interleaved())
    raise AssertionError(taken)


def ensure_once_each(scene: Scene, cluster: FakeCluster, later: list[Step], where: str) -> None:
    """Each broker of the wave, and of the steps after it, was restarted once; nobody else."""
    rolled = {*scene.request.step.nodes, *(node_id for step in later for node_id in step.nodes)}
    assert starts(scene, cluster) == {node_id: int(node_id in rolled) for node_id in cluster.nodes}, where
    assert all(is_there(scene, cluster, node_id) for node_id in rolled), where


async def smooth(scene: Scene) -> KillAfter:
    cluster, calls = scene.copy(), Interleaved()
    outcome = await scene.attempt(cluster, calls)
    assert outcome.is_all_done, outcome
    assert [(c.node_id, c.did_restart) for c in outcome.companions] == [(scene.request.step.companions[0], True)]
    ensure_once_each(scene, cluster, [], "smooth")
    return calls


async def test_both_are_stopped_before_either_is_started(scene: Scene) -> None:
    """Together, not one after the other; and every file is written before the first stop."""
    calls = [call.removeprefix("node ") for call in (await smooth(scene)).calls if call.startswith("node ")]
    stops, begun = [i for i, call in enumerate(calls) if call == "stop"], [i for i, call in enumerate(calls) if call == "start"]
    assert (len(stops), len(begun)) == (2, 2)
    assert max(stops) < min(begun)
    written = [i for i, call in enumerate(calls[: min(stops)]) if call == "write_file"]
    after = [i for i, call in enumerate(calls) if call == "write_file" and min(stops) < i < max(begun)]
    assert len(written) >= 6, "archive, mark and file of each"
    assert not after


async def test_leadership_is_returned_and_a_failure_of_that_is_told_only(scene: Scene) -> None:
    cluster = scene.copy()
    outcome = await scene.attempt(cluster, Interleaved())
    assert outcome.leadership.startswith("preferred leaders lead")
    assert all(cluster.leaders.led_by(broker) for broker in range(1, 7))

    class Refusing(FakeCluster):
        async def elect_preferred(self, cluster: Any) -> int:
            raise Transient("not the controller")

    cluster = scene.copy()
    cluster.__class__ = Refusing
    outcome = await scene.attempt(cluster, Interleaved())
    assert outcome.is_all_done
    assert outcome.leadership == "leadership was not returned: not the controller"


async def test_a_kill_after_any_call_leaves_what_the_next_attempt_and_the_next_steps_finish(scene: Scene) -> None:
    calls, alone, unfinished = (await smooth(scene)).calls, 0, 0
    for count in range(len(calls)):
        cluster, killer = scene.copy(), Interleaved(count)
        with pytest.raises(Killed):
            await scene.attempt(cluster, killer)
        where = f"killed after call {count}: {killer.calls[count]}"
        stopped = [n for n in scene.request.step.nodes if cluster.nodes[n].process is None]
        outcome = await scene.attempt(cluster, Interleaved())
        assert all(cluster.nodes[n].process is not None for n in stopped), f"{where}: a retry starts what was stopped"
        ensure_outcome_tells(scene, cluster, outcome, where)
        later = await go_on(scene, cluster)
        ensure_once_each(scene, cluster, later, where)
        begun = [step for step in later if set(step.nodes) & set(scene.request.step.nodes)]
        assert all(step.companions == () or step == scene.request.step for step in begun), where
        alone, unfinished = alone + len(later), unfinished + (not outcome.is_all_done)
    assert alone
    print(f"{scene.request.step.stage}: killed at {len(calls)} places, {unfinished} waves unfinished, {alone} brokers alone")


def ensure_outcome_tells(scene: Scene, cluster: FakeCluster, outcome: StepOutcome, where: str) -> None:
    """Restarts are counted by what outcomes say: each that has happened, and none twice."""
    told = {scene.request.step.node: outcome.did_restart}
    told |= {companion.node_id: companion.did_restart for companion in outcome.companions}
    assert told | {n: False for n in scene.request.step.nodes if n not in told} == {
        n: starts(scene, cluster)[n] == 1 for n in scene.request.step.nodes
    }, where


@pytest.mark.chaos
@pytest.mark.parametrize("do_steps_follow", [True, False], ids=["steps-follow", "retry-only"])
async def test_a_frozen_worker_that_wakes_up_beside_its_successors_restarts_nothing_more(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, do_steps_follow: bool
) -> None:
    """All of it stops at any call; another attempt does its part, and the next steps the rest; half a minute later it goes on.

    What the other attempt has left to be decided again it leaves alone: its look is old.
    """
    calls, clock = (await smooth(scene)).calls, [0.0]
    monkeypatch.setattr("activities.rolling.roll.seconds_since_boot", lambda: clock[0])
    for count in range(len(calls)):
        cluster, passed, awake = scene.copy(), itertools.count(), asyncio.Event()
        later, expected = list[Step](), dict[int, int]()
        awake.set()

        async def after(
            name: str,
            cluster: FakeCluster = cluster,
            passed: Any = passed,
            awake: Any = awake,
            count: int = count,
            later: list[Step] = later,
            expected: dict[int, int] = expected,
        ) -> None:
            if next(passed) != count:
                await asyncio.sleep(0)
                await awake.wait()
                return
            awake.clear()
            await scene.attempt(cluster, Interleaved())
            later.extend(await go_on(scene, cluster) if do_steps_follow else [])
            expected.update(starts(scene, cluster))
            clock[0] += 30
            awake.set()

        with_errors = (await asyncio.gather(scene.attempt(cluster, after), return_exceptions=True))[0]
        assert isinstance(with_errors, StepOutcome | Transient), with_errors
        assert starts(scene, cluster) == expected, f"frozen after call {count}: {calls[count]}"
        if do_steps_follow:
            ensure_once_each(scene, cluster, later, f"frozen after call {count}: {calls[count]}")


async def test_two_attempts_at_once_restart_once(scene: Scene) -> None:
    cluster = scene.copy()

    async def breathe(name: str) -> None:
        await asyncio.sleep(0)

    await asyncio.gather(scene.attempt(cluster, breathe), scene.attempt(cluster, breathe), return_exceptions=True)
    await scene.attempt(cluster, Interleaved())
    ensure_once_each(scene, cluster, await go_on(scene, cluster), "two at once")


async def test_one_that_does_not_come_back_is_named_and_the_other_waits_for_it(scene: Scene) -> None:
    first, second = scene.request.step.nodes
    cluster = scene.copy()
    cluster.faults.dies_at_start[second] = ("out of memory",)
    outcome = await scene.attempt(cluster, Interleaved())
    (companion,) = outcome.companions
    assert (outcome.is_done, outcome.did_restart, companion.is_done, companion.did_restart) == (False, True, False, True)
    assert f"(broker-{second})" in (outcome.blocked or "")
    assert f"broker-{second} does not run after its restart" in (companion.blocked or "")
    assert "out of memory" in (companion.blocked or "")
    assert cluster.nodes[first].process is not None


async def test_one_that_does_not_stop_leaves_no_other_stopped(scene: Scene) -> None:
    """The retry finishes the other; the one that runs on is decided again, and by itself."""
    first, second = scene.request.step.nodes
    cluster = scene.copy()
    cluster.faults.ignores_stop.add(second)
    calls = Interleaved()
    calls.turns = 100
    with pytest.raises(Transient, match="not stopped"):
        await scene.attempt(cluster, calls)
    over = len(calls.calls)
    for _ in range(1000):
        await asyncio.sleep(0)
    assert len(calls.calls) == over, "it fails when all is done, and leaves nothing running behind it"
    assert cluster.nodes[first].process is not None
    outcome = await scene.attempt(cluster, Interleaved())
    assert (outcome.is_done, outcome.did_restart) == (True, True)
    assert [(c.is_done, c.did_restart) for c in outcome.companions] == [(False, False)]
    assert "decided again" in (outcome.companions[0].blocked or "")
    cluster.faults.ignores_stop.clear()
    later = await go_on(scene, cluster)
    assert [step.nodes for step in later] == [(second,)]
    ensure_once_each(scene, cluster, later, "after it could be stopped")


async def test_a_wave_is_not_begun_when_one_of_it_does_not_answer(scene: Scene) -> None:
    for silent in scene.request.step.nodes:
        cluster = scene.copy()
        cluster.faults.silent_nodes.add(silent)
        outcome = await scene.attempt(cluster, Interleaved())
        assert not outcome.is_done
        assert not any(starts(scene, cluster).values())
        assert all(cluster.nodes[n].process is not None for n in scene.request.step.nodes)


async def test_what_was_stopped_does_not_wait_for_one_that_has_become_silent(scene: Scene) -> None:
    """Killed right after both were stopped; one of them does not answer any more: the other is started all the same."""
    first, second = scene.request.step.nodes
    calls = (await smooth(scene)).calls
    last_stop = max(i for i, call in enumerate(calls) if call == "node stop")
    cluster = scene.copy()
    with pytest.raises(Killed):
        await scene.attempt(cluster, Interleaved(last_stop))
    assert all(cluster.nodes[n].process is None for n in (first, second))
    cluster.faults.silent_nodes.add(second)
    impatient = scene.request.policy.model_copy(update={"restart_deadline": POLICY.poll_interval * 1000})
    outcome = await replace(scene, request=scene.request.model_copy(update={"policy": impatient})).attempt(
        cluster, Interleaved()
    )
    assert outcome.did_restart
    assert not outcome.is_done
    assert cluster.nodes[first].process is not None
    cluster.faults.silent_nodes.clear()
    ensure_once_each(scene, cluster, await go_on(scene, cluster), "when it answers again")


async def test_companions_that_a_fresh_look_does_not_name_stop_the_wave(scene: Scene) -> None:
    """A partition that two of them share since: the step is another one, and nothing is touched."""
    step = scene.request.step
    for companions in ((), (*step.companions, next(b for b in range(1, 7) if b not in step.nodes))):
        other = scene.request.model_copy(update={"step": step.model_copy(update={"companions": companions})})
        cluster = scene.copy()
        outcome = await replace(scene, request=other).attempt(cluster, Interleaved())
        assert "decides otherwise" in (outcome.blocked or "")
        assert not any(starts(scene, cluster).values())
