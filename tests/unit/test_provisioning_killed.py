"""Three controllers made by one step: at the same time, or not at all; cut off after every single call; failing at one of them.

Whatever an attempt left, the next one finishes the controllers that have its mark and touches no other; the rest is decided
again. In the end each was formatted once and started once, and no file was written over.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from activities.looking import LastLook
from activities.node_files import METADATA_LOG, mark_path
from activities.ports.nodes import Completed
from activities.rolling.roll import seconds_since_boot
from activities.zk_to_kraft.provisioning import LEFT_OUT, LOST_FIRST_ELECTION, STARTED_TWICE
from domain.contracts import StepOutcome
from domain.decisions import Step
from domain.errors import Superseded, Transient, Unsafe
from domain.observed.observation import RollMark
from domain.zk_to_kraft.steps import StepAction
from playground.fakes.cluster import FakeCluster
from playground.fakes.machine import FakeMachine, text_file
from playground.fakes.spec import fake_spec, with_hooks
from playground.fakes.storage_tool import format_storage, write_meta
from tests.unit.fake_walk import KillAfter, Killed, LedgerInMemory, Scene, UntilMarked, Walk

CONTROLLERS = (3001, 3002, 3003)
MAX_DECISIONS = 40


@pytest.fixture(autouse=True)
def few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake quorum gets no further while a step is taken; and every look is a place to be killed at."""
    monkeypatch.setattr("activities.zk_to_kraft.provisioning.LOOKS_FOR_RECORDS", 1)


@pytest.fixture(scope="module")
async def road() -> Walk:
    walk = Walk(LedgerInMemory(cluster := FakeCluster(with_hooks(fake_spec()))), cluster)
    await walk.to("step", {"made": lambda step: step.action == StepAction.PROVISION_CONTROLLER})
    return walk


@pytest.fixture
def scene(road: Walk) -> Scene:
    cluster, asked, _ = road.found["made"]
    assert asked.step.nodes == CONTROLLERS
    return Scene(cluster, LedgerInMemory(cluster), asked)


@pytest.fixture
def formats(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """How often storage was formatted, by machine."""
    told = Counter[int]()

    def formatted(machine: FakeMachine, arguments: Sequence[str]) -> Completed:
        told[id(machine)] += 1
        return format_storage(machine, arguments)

    monkeypatch.setattr("playground.fakes.node.format_storage", formatted)
    return told


class Watching(KillAfter):
    """Nodes are taken through the step in turn, call by call; and a properties file that is there never changes."""

    def __init__(self, cluster: FakeCluster, count: int | None = None) -> None:
        super().__init__(count)
        self._cluster, self._found = cluster, dict[int, Any]()

    async def __call__(self, name: str) -> None:
        for node_id in CONTROLLERS:
            node = self._cluster.nodes[node_id]
            found = node.machine.read(node.spec.properties_file)
            assert self._found.setdefault(node_id, found) in {None, found}, "written over"
            self._found[node_id] = found
        await super().__call__(name)
        await asyncio.sleep(0)


def files_of(cluster: FakeCluster, node_id: int) -> dict[str, Any]:
    """But for the quorum's log, and for what names a process or a step."""
    node = cluster.nodes[node_id]
    passing = {node.spec.driver.service.pid_file}
    paths = [p for p in node.machine.files if METADATA_LOG not in p and p not in passing]
    return {p: node.machine.files[p] for p in paths if not p.endswith((".mark", ".paused"))}


def all_files(cluster: FakeCluster) -> dict[int, dict[str, Any]]:
    return {node_id: dict(node.machine.files) for node_id, node in cluster.nodes.items()}


def mark_of(cluster: FakeCluster, node_id: int) -> RollMark | None:
    node = cluster.nodes[node_id]
    file = node.machine.read(mark_path(node.spec.properties_file))
    return RollMark.model_validate_json(file.content) if file is not None else None


def begun(scene: Scene, cluster: FakeCluster) -> set[int]:
    """Who has the mark of the step."""
    marks = {node_id: mark_of(cluster, node_id) for node_id in CONTROLLERS}
    return {node_id for node_id, mark in marks.items() if mark is not None and mark.step_id == scene.request.step_id}


async def go_on(scene: Scene, cluster: FakeCluster) -> list[tuple[int, ...]]:
    """What the workflow would do until all controllers run: the nodes of the steps that it takes."""
    walk, taken = Walk(scene.ledger, cluster), list[tuple[int, ...]]()
    for number in range(MAX_DECISIONS):
        if all(cluster.nodes[node_id].process is not None for node_id in CONTROLLERS):
            return taken
        decision = await walk.decision()
        if not isinstance(decision, Step):
            cluster.advance()
            continue
        assert decision.action == StepAction.PROVISION_CONTROLLER
        taken.append(decision.nodes)
        later = walk.request(decision, f"{scene.request.step_id}/later-{number}")
        outcome = await Scene(cluster, scene.ledger, later).attempt(cluster, Watching(cluster))
        assert outcome.is_all_done, outcome
    raise AssertionError(taken)


async def smooth(scene: Scene) -> tuple[FakeCluster, KillAfter]:
    cluster = scene.copy()
    calls = Watching(cluster)
    outcome = await scene.attempt(cluster, calls)
    assert outcome.is_all_done, outcome
    return cluster, calls


def ensure_made_once(scene: Scene, cluster: FakeCluster, formats: Counter[int], where: str, like: FakeCluster) -> None:
    for node_id in CONTROLLERS:
        node = cluster.nodes[node_id]
        assert node.starts == 1, where
        assert formats[id(node.machine)] == 1, where
        assert node.process is not None
        assert files_of(cluster, node_id) == files_of(like, node_id), where
        mark = mark_of(cluster, node_id)
        assert mark is not None
        assert (mark.is_proven, mark.has_run, mark.proven_identity) == (True, True, node.process.identity), where
    others = [node_id for node_id in cluster.nodes if node_id not in CONTROLLERS]
    assert all(cluster.nodes[n].starts == scene.cluster.nodes[n].starts for n in others), where
    assert all(files_of(cluster, n) == files_of(scene.cluster, n) for n in others), where


async def test_one_step_makes_all_three(scene: Scene, formats: Counter[int]) -> None:
    cluster = scene.copy()
    outcome = await scene.attempt(cluster, Watching(cluster))
    told = "configuration management paused"
    assert (outcome.is_done, outcome.blocked, outcome.did_restart, outcome.changes[0]) == (True, None, False, told)
    assert [(c.node_id, c.is_done, c.blocked, c.did_restart, c.changes[0]) for c in outcome.companions] == [
        (3002, True, None, False, told),
        (3003, True, None, False, told),
    ]
    ensure_made_once(scene, cluster, formats, "smooth", cluster)
    for _ in range(10):
        cluster.advance()
    following = await Walk(scene.ledger, cluster).to("step")
    assert isinstance(following, Step)
    assert following.action != StepAction.PROVISION_CONTROLLER


async def test_every_file_is_written_before_any_storage_is_formatted(scene: Scene) -> None:
    """And they start beside each other: nobody waits for another one's proof."""
    cluster, seen = scene.copy(), list[tuple[int, int, int]]()

    async def after(_: str) -> None:
        nodes = [cluster.nodes[node_id] for node_id in CONTROLLERS]
        written = sum(node.machine.read(node.spec.properties_file) is not None for node in nodes)
        dirs = sum(node.machine.read(f"{node.spec.log_dirs[0]}/meta.properties") is not None for node in nodes)
        proven = sum(mark is not None and mark.is_proven for mark in (mark_of(cluster, n) for n in CONTROLLERS))
        seen.append((written, dirs + sum(node.starts for node in nodes), proven))
        await asyncio.sleep(0)

    assert (await scene.attempt(cluster, after)).is_all_done
    assert all(written == 3 for written, formatted, _ in seen if formatted)
    assert all(formatted == 6 for _, formatted, proven in seen if proven)


async def test_a_kill_after_any_call_leaves_what_the_next_attempt_and_the_next_steps_finish(
    scene: Scene, formats: Counter[int]
) -> None:
    like, calls = await smooth(scene)
    left_out = 0
    for count in range(len(calls.calls)):
        formats.clear()
        cluster = scene.copy()
        killer = Watching(cluster, count)
        with pytest.raises(Killed):
            await scene.attempt(cluster, killer)
        where, marked = f"killed after call {count}: {killer.calls[count]}", begun(scene, cluster)
        outcome = await scene.attempt(cluster, Watching(cluster))
        finished = marked or set(CONTROLLERS)
        ensure_outcome_tells(outcome, finished, where)
        running = {n for n in CONTROLLERS if cluster.nodes[n].process is not None}
        assert running == finished, f"{where}: those that were begun, and no other"
        later = await go_on(scene, cluster)
        assert later == ([] if finished == set(CONTROLLERS) else [tuple(n for n in CONTROLLERS if n not in finished)]), where
        ensure_made_once(scene, cluster, formats, where, like)
        left_out += bool(later)
    assert left_out
    print(f"killed at {len(calls.calls)} places, {left_out} times another step made the rest")


def ensure_outcome_tells(outcome: StepOutcome, finished: set[int], where: str) -> None:
    told = {3001: (outcome.is_done, outcome.blocked)} | {c.node_id: (c.is_done, c.blocked) for c in outcome.companions}
    assert told == {n: (True, None) if n in finished else (False, LEFT_OUT) for n in CONTROLLERS}, where


async def test_a_retry_without_a_mark_of_its_own_looks_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that finds a mark does not: what was begun is finished."""
    looks = itertools.count()

    async def otherwise(*_: object) -> tuple[LastLook, float]:
        await asyncio.sleep(0)
        next(looks)
        return LastLook("an observation right before the effect decides otherwise"), 0.0

    cluster = scene.copy()
    with pytest.raises(Killed):
        await scene.attempt(cluster, UntilMarked(cluster, scene.request))
    monkeypatch.setattr("activities.zk_to_kraft.provisioning.look_again", otherwise)
    assert (await scene.attempt(cluster, KillAfter())).is_done
    assert next(looks) == 0
    cluster = scene.copy()
    outcome = await scene.attempt(cluster, KillAfter())
    assert (outcome.is_done, outcome.companions) == (False, ())
    assert all_files(cluster) == all_files(scene.cluster)
    assert next(looks) == 2


def foreign_storage(cluster: FakeCluster, node_id: int) -> None:
    node = cluster.nodes[node_id]
    write_meta(node.machine, node.spec.log_dirs[0], {"version": "1", "cluster.id": "another"}, node_id)


def another_file(cluster: FakeCluster, node_id: int) -> None:
    node = cluster.nodes[node_id]
    node.machine.write(node.spec.properties_file, text_file("node.id=7\n"))


OBSTACLES: dict[str, tuple[Callable[[FakeCluster, int], None], str]] = {
    "foreign storage": (foreign_storage, "holds data that is not this controller's"),
    "another file": (another_file, "exists with other content"),
}


@pytest.mark.parametrize("node_id", CONTROLLERS)
@pytest.mark.parametrize("obstacle", OBSTACLES)
async def test_one_that_is_refused_keeps_all_from_being_touched(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, obstacle: str, node_id: int
) -> None:
    """It has come after the look that allowed the step."""

    async def allowed(*_: object) -> tuple[LastLook, float]:
        await asyncio.sleep(0)
        return LastLook(None), seconds_since_boot()

    monkeypatch.setattr("activities.zk_to_kraft.provisioning.look_again", allowed)
    cluster, (spoil, words) = scene.copy(), OBSTACLES[obstacle]
    spoil(cluster, node_id)
    before = all_files(cluster)
    with pytest.raises(Unsafe, match=words):
        await scene.attempt(cluster, Watching(cluster))
    assert all_files(cluster) == before
    assert not any(cluster.nodes[n].starts or cluster.nodes[n].is_configuration_paused for n in CONTROLLERS)


@pytest.mark.parametrize("node_id", CONTROLLERS)
async def test_one_whose_configuration_is_not_paused_keeps_all_from_being_written(scene: Scene, node_id: int) -> None:
    cluster = scene.copy()
    cluster.faults.never_pauses.add(node_id)
    outcome = await scene.attempt(cluster, Watching(cluster))
    assert (outcome.is_done, outcome.companions) == (False, ())
    assert "not seen to be paused" in (outcome.blocked or "")
    assert all(files_of(cluster, n) == files_of(scene.cluster, n) for n in cluster.nodes)
    assert all(mark_of(cluster, n) is None for n in CONTROLLERS)


async def test_one_that_does_not_answer_keeps_all_from_being_begun(scene: Scene) -> None:
    for silent in CONTROLLERS:
        cluster = scene.copy()
        cluster.faults.silent_nodes.add(silent)
        outcome = await scene.attempt(cluster, Watching(cluster))
        assert not outcome.is_done
        assert all_files(cluster) == all_files(scene.cluster)


async def test_those_begun_do_not_wait_for_one_that_has_become_silent(scene: Scene, formats: Counter[int]) -> None:
    like, calls = await smooth(scene)
    formats.clear()
    cluster, first_dir = scene.copy(), min(i for i, call in enumerate(calls.calls) if call == "node make_dir")
    with pytest.raises(Killed):
        await scene.attempt(cluster, Watching(cluster, first_dir))
    assert begun(scene, cluster) == set(CONTROLLERS)
    cluster.faults.silent_nodes.add(3002)
    outcome = await scene.attempt(cluster, Watching(cluster))
    ensure_outcome_tells(outcome, {3001, 3003}, "silent")
    cluster.faults.silent_nodes.clear()
    assert await go_on(scene, cluster) == [(3002,)]
    ensure_made_once(scene, cluster, formats, "when it answers again", like)


async def test_one_that_cannot_be_formatted_does_not_keep_the_others_from_starting(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = scene.copy()
    broken = cluster.nodes[3002].machine

    def failing(machine: FakeMachine, arguments: Sequence[str]) -> Completed:
        return Completed(1, "", "No space left on device\n") if machine is broken else format_storage(machine, arguments)

    with monkeypatch.context() as patched:
        patched.setattr("playground.fakes.node.format_storage", failing)
        with pytest.raises(Unsafe, match="controller-3002: kafka-storage format failed"):
            await scene.attempt(cluster, Watching(cluster))
    assert [cluster.nodes[n].starts for n in CONTROLLERS] == [1, 0, 1]
    assert await go_on(scene, cluster) == [(3002,)]
    assert [cluster.nodes[n].starts for n in CONTROLLERS] == [1, 1, 1]


async def test_one_that_does_not_come_up_is_named(scene: Scene) -> None:
    cluster = scene.copy()
    cluster.faults.dies_at_start[3003] = ("out of memory",)
    outcome = await scene.attempt(cluster, Watching(cluster))
    assert [outcome.is_done, *(c.is_done for c in outcome.companions)] == [True, True, False]
    assert "controller-3003 does not run after its start" in (outcome.companions[1].blocked or "")


async def test_one_that_lost_its_first_election_is_started_again_once(scene: Scene) -> None:
    cluster = scene.copy()
    told = ("[2026-01-01 00:00:00,000] ERROR fatal fault", f"java.lang.RuntimeException: {LOST_FIRST_ELECTION}")
    starts = cluster.nodes[3003].start

    def start() -> None:
        cluster.faults.dies_at_start.pop(3003, None)
        starts()
        if cluster.nodes[3003].starts == 1:
            cluster.faults.dies_at_start[3003] = told

    cluster.nodes[3003].start = start  # type: ignore[method-assign]
    outcome = await scene.attempt(cluster, Watching(cluster))
    assert [outcome.is_done, *(c.is_done for c in outcome.companions)] == [True, True, True]
    assert STARTED_TWICE in outcome.companions[1].changes
    assert STARTED_TWICE not in (*outcome.changes, *outcome.companions[0].changes)
    assert [cluster.nodes[n].starts for n in CONTROLLERS] == [1, 1, 2]
    mark, process = mark_of(cluster, 3003), cluster.nodes[3003].process
    assert mark is not None
    assert process is not None
    assert mark.proven_identity == process.identity


async def test_one_that_ends_so_again_is_not_started_a_third_time(scene: Scene) -> None:
    cluster = scene.copy()
    cluster.faults.dies_at_start[3003] = (LOST_FIRST_ELECTION,)
    outcome = await scene.attempt(cluster, Watching(cluster))
    assert [outcome.is_done, *(c.is_done for c in outcome.companions)] == [True, True, False]
    assert cluster.nodes[3003].starts == 2


async def test_another_migration_that_has_claimed_the_cluster_leaves_an_attempt_without_effect(scene: Scene) -> None:
    _, calls = await smooth(scene)
    for count in range(0, len(calls.calls), 3):
        cluster = scene.copy()
        with pytest.raises(Killed):
            await scene.attempt(cluster, Watching(cluster, count))
        scene.ledger.held_by, before = 2, all_files(cluster)
        with pytest.raises(Superseded):
            await scene.attempt(cluster, Watching(cluster))
        assert all_files(cluster) == before
        scene.ledger.held_by = 1


@pytest.mark.parametrize("seed", range(3))
async def test_two_attempts_at_once_make_each_once(scene: Scene, formats: Counter[int], seed: int) -> None:
    cluster = scene.copy()

    async def slow(_name: str) -> None:
        for _ in range(seed):
            await asyncio.sleep(0)

    await asyncio.gather(scene.attempt(cluster, Watching(cluster)), scene.attempt(cluster, slow), return_exceptions=True)
    await scene.attempt(cluster, Watching(cluster))
    await go_on(scene, cluster)
    assert [cluster.nodes[n].starts for n in CONTROLLERS] == [1, 1, 1]
    assert all(mark is not None and mark.is_proven for mark in (mark_of(cluster, n) for n in CONTROLLERS))


@pytest.mark.chaos
async def test_a_frozen_worker_that_wakes_up_beside_its_successors_makes_nothing_more(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it stops at any call; another attempt does its part, and the next steps the rest; half a minute later it goes on.

    What the other attempt has left to be decided again it leaves alone: its look is old.
    """
    like, calls = await smooth(scene)
    clock = [0.0]
    monkeypatch.setattr("activities.rolling.roll.seconds_since_boot", lambda: clock[0])
    for count in range(len(calls.calls)):
        cluster, passed, awake = scene.copy(), itertools.count(), asyncio.Event()
        marks = dict[int, RollMark | None]()
        awake.set()

        async def after(
            name: str,
            cluster: FakeCluster = cluster,
            passed: Any = passed,
            awake: Any = awake,
            count: int = count,
            marks: dict[int, RollMark | None] = marks,
        ) -> None:
            if next(passed) != count:
                await asyncio.sleep(0)
                await awake.wait()
                return
            awake.clear()
            try:
                await scene.attempt(cluster, Watching(cluster))
                await go_on(scene, cluster)
            finally:
                marks.update({n: mark_of(cluster, n) for n in CONTROLLERS})
                clock[0] += 30
                awake.set()

        found = (await asyncio.gather(scene.attempt(cluster, after), return_exceptions=True))[0]
        where = f"frozen after call {count}: {calls.calls[count]}"
        assert isinstance(found, StepOutcome | Transient), (where, found)
        assert [cluster.nodes[n].starts for n in CONTROLLERS] == [1, 1, 1], where
        assert all(files_of(cluster, n) == files_of(like, n) for n in CONTROLLERS), where
        seen = {n: mark_of(cluster, n) for n in CONTROLLERS}
        assert all(mark is not None and mark.is_proven for mark in seen.values()), where
        assert {n: mark and mark.step_id for n, mark in seen.items()} == {n: m and m.step_id for n, m in marks.items()}, where


async def test_companions_that_a_fresh_look_does_not_name_stop_the_step(scene: Scene) -> None:
    step = scene.request.step
    for companions in ((), (3002,), (3003, 3002)):
        other = scene.request.model_copy(update={"step": step.model_copy(update={"companions": companions})})
        cluster = scene.copy()
        outcome = await replace(scene, request=other).attempt(cluster, Watching(cluster))
        assert "decides otherwise" in (outcome.blocked or "")
        assert all_files(cluster) == all_files(scene.cluster)
