"""`roll_node` and `provision_controller`, of one node, cut off after every single call of a port, and run again by Temporal.

A worker can die anywhere, on the way forward and on the way back. Whatever it left, the next attempt at the same step ends in
the same state: restarted once, all that was overwritten archived, nobody else touched. Nothing here sleeps or waits; the ledger
is a real one.
"""

import asyncio
import copy
import itertools
import re
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.node_files import METADATA_LOG, before_path, read_mark, sha256_of
from domain.approvals import Attempt
from domain.cluster import Role, original_path
from domain.decisions import Step
from domain.drift.report import CheckName, Verdict
from domain.errors import Superseded, Unsafe
from domain.records import Command, CommandKind, MigrationRecord, MigrationState, Progress
from domain.zk_to_kraft.steps import GateName, NodeStage, StepAction
from ledger.database import Database
from ledger.ledger import SqlLedger, open_ledger
from playground.fakes.checks import FakeChecks
from playground.fakes.cluster import FakeCluster
from playground.fakes.spec import fake_spec
from playground.wanted import wanted_of
from tests.unit.fake_walk import NOW, POLICY, Found, KillAfter, Killed, Scene, Walk, approve, create_all_but_the_last, is_roll
from tests.unit.fake_way_back import take_flag

EFFECTS = frozenset({"write_file", "remove_file", "make_dir", "run", "start", "stop", "kill", "consume_approval"})


def files_of(cluster: FakeCluster, node_id: int) -> dict[str, Any]:
    """But for the quorum's log: when it reaches a node is a matter of time."""
    return {path: file for path, file in cluster.nodes[node_id].machine.files.items() if METADATA_LOG not in path}


def state_of(cluster: FakeCluster, step: Step) -> dict[str, Any]:
    """All that must be the same whatever happened on the way."""
    node = cluster.nodes[step.node]
    pid_file = node.spec.driver.service.pid_file
    files = {p: f for p, f in files_of(cluster, step.node).items() if not p.endswith(".mark") and p != pid_file}
    process = node.process
    return {
        "starts": node.starts,
        "mode": process.mode if process is not None else None,
        "files": files,
        "others": {i: (files_of(cluster, i), n.starts) for i, n in cluster.nodes.items() if i != step.node_id},
    }


FORWARD: dict[str, Callable[[Step], bool]] = {
    "provision the last controller": lambda s: s.action == StepAction.PROVISION_CONTROLLER,
    "roll to hybrid": lambda s: is_roll(s, NodeStage.MIGRATION),
    "roll to kraft": lambda s: is_roll(s, NodeStage.KRAFT),
    "finalize the first controller": lambda s: s.gate is not None,
    "finalize the last controller": lambda s: s.stage == NodeStage.KRAFT and s.node_id == 3001,
}
BACK: dict[str, Callable[[Step], bool]] = {
    "roll back to hybrid": lambda s: is_roll(s, NodeStage.MIGRATION),
    "roll back to zookeeper": lambda s: is_roll(s, NodeStage.ZOOKEEPER),
    "roll the last one back to zookeeper": lambda s: is_roll(s, NodeStage.ZOOKEEPER) and s.node_id == 3,
}
AGAIN: dict[str, Callable[[Step], bool]] = {
    "provision a controller again": lambda s: s.action == StepAction.PROVISION_CONTROLLER,
    "roll to hybrid again": lambda s: is_roll(s, NodeStage.MIGRATION),
}
ALARM: dict[str, Callable[[Step], bool]] = {
    "give a controller its flag back": lambda s: is_roll(s, NodeStage.MIGRATION, of_controller=True),
}
STEPS = (*FORWARD, *BACK, *AGAIN, *ALARM)


@pytest.fixture(scope="module")
async def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    async with open_ledger(f"sqlite:///{path}") as ledger:
        spec = fake_spec()
        await ledger.put_cluster(spec, NOW)
        await ledger.create_migration(a_migration("m1"))
        assert await ledger.claim("m1", "run", NOW) == 1
    return path


def a_migration(migration_id: str) -> MigrationRecord:
    spec = fake_spec()
    return MigrationRecord(
        id=migration_id,
        cluster=spec.name,
        cluster_id=spec.cluster_id,
        kind="zk-to-kraft",
        policy=POLICY,
        wanted=wanted_of(spec),
        spec_revision=1,
        requested_by="olga",
        created_at=NOW,
        workflow_id="w",
        progress=Progress(state=MigrationState.PLANNING),
    )


@pytest.fixture
async def ledger(database: Path, tmp_path: Path) -> AsyncIterator[SqlLedger]:
    shutil.copy(database, tmp_path / "ledger.db")
    opened = Database(f"sqlite:///{tmp_path}/ledger.db")
    found = SqlLedger(opened)
    checks = FakeChecks(Walk(found, FakeCluster(fake_spec())).ports)
    for check in (CheckName.BASELINE, CheckName.BEFORE_COPY):
        await checks.publish("orders", f"kept: {check}", "m1", check=check)
    yield found
    await opened.close()


@pytest.fixture(scope="module")
async def road(database: Path, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """The whole way forward; from its last gate back, and forward again; and an alarm there."""
    path = tmp_path_factory.mktemp("road") / "ledger.db"
    shutil.copy(database, path)
    opened = Database(f"sqlite:///{path}")
    forward = Walk(SqlLedger(opened), FakeCluster(fake_spec(), boot_looks=1, catch_up_looks=1, copy_looks=1))
    await create_all_but_the_last(forward)
    await forward.to("gate", FORWARD)
    back, alarm = forward.copy(is_back=True), forward.copy(approvals={})
    await forward.to("done", FORWARD, "m1/end")
    await back.to("done", BACK, "m1/back")
    again = back.copy(is_back=False, approvals={})
    await create_all_but_the_last(again, "m1/again")
    await again.to("step", AGAIN, "m1/again")
    take_flag(alarm.cluster, 3002, restart=True)
    alarm.cluster.advance(2)
    await alarm.to("gate", ALARM, "m1/alarm")
    await opened.close()
    found = forward.found | back.found | again.found | alarm.found
    assert found.keys() == set(STEPS)
    return found


@pytest.fixture(params=STEPS)
async def scene(request: pytest.FixtureRequest, road: Found, ledger: SqlLedger) -> Scene:
    cluster, asked, evidence_hash = road[request.param]
    checks = FakeChecks(Walk(ledger, cluster).copy().ports)
    if asked.step.stage == NodeStage.KRAFT:
        await checks.publish("orders", "compared copy", "m1", check=CheckName.COPY)
    if GateName.FINALIZE in asked.approvals:
        await approve(ledger, "approval", evidence_hash)
        await checks.publish("orders", "compared")
        await checks.publish("orders", "compared messages", "m1", check=CheckName.MESSAGES)
        if asked.step.node_id == 3001:
            attempt = Attempt("m1/0", "m1", "orders", 1, GateName.FINALIZE, "approval", evidence_hash)
            assert await ledger.consume_approval(attempt) is None
    return Scene(cluster, ledger, asked)


async def untouched(scene: Scene) -> tuple[FakeCluster, KillAfter]:
    """The step taken without any trouble."""
    cluster, calls = scene.copy(), KillAfter()
    outcome = await scene.attempt(cluster, calls)
    assert outcome.is_done, outcome.blocked
    return cluster, calls


async def test_a_kill_after_any_call_leaves_what_a_second_attempt_finishes(scene: Scene) -> None:
    smooth, calls = await untouched(scene)
    expected = state_of(smooth, scene.request.step)
    before = scene.cluster.nodes[scene.request.step.node]
    assert expected["starts"] == before.starts + 1
    for count in range(len(calls.calls)):
        cluster, killer = scene.copy(), KillAfter(count)
        with pytest.raises(Killed):
            await scene.attempt(cluster, killer)
        outcome = await scene.attempt(cluster, KillAfter())
        where = f"killed after call {count}: {killer.calls[-1]}"
        assert outcome.is_done, f"{where}: {outcome.blocked}"
        assert state_of(cluster, scene.request.step) == expected, where
        await ensure_archived(scene, cluster)
    print(f"{scene.request.step.action} {scene.request.step.node_id}: killed at {len(calls.calls)} places")


async def ensure_archived(scene: Scene, cluster: FakeCluster) -> None:
    """Whatever was overwritten lies beside the file: bytes, mode and owner. So does the original, under its own name."""
    node, driver = cluster.nodes[scene.request.step.node], cluster.driver(cluster.nodes[scene.request.step.node].spec)
    path = node.spec.properties_file
    mark = await read_mark(driver, path)
    assert mark is not None
    assert mark.original_sha256 is not None
    assert mark.is_proven
    kept = node.machine.read(original_path(path, mark.original_sha256))
    assert kept is not None
    assert sha256_of(kept.content) == mark.original_sha256
    if cluster.spec.role(node.spec.id) is Role.BROKER:
        assert kept == FakeCluster(cluster.spec).nodes[node.spec.id].machine.read(path), "as it was before the first change"
    found = scene.cluster.nodes[node.spec.id].machine.read(path)
    if found is not None:
        sha256 = sha256_of(found.content)
        assert found in {node.machine.read(original_path(path, sha256)), node.machine.read(before_path(path, sha256))}


async def test_three_kills_in_a_row_are_no_more_than_one(scene: Scene) -> None:
    smooth, calls = await untouched(scene)
    total = len(calls.calls)
    for count in range(0, total, 7):
        cluster = scene.copy()
        for later in (0, 3, 11):
            with suppress(Killed):
                await scene.attempt(cluster, KillAfter(count + later))
        assert (await scene.attempt(cluster, KillAfter())).is_done
        assert state_of(cluster, scene.request.step) == state_of(smooth, scene.request.step)


async def test_an_attempt_that_was_superseded_has_no_effect(scene: Scene) -> None:
    """Killed anywhere; then another migration claims the cluster; then the attempt is repeated."""
    _, calls = await untouched(scene)
    left: list[FakeCluster] = []
    for count in range(0, len(calls.calls), 3):
        left.append(scene.copy())
        with pytest.raises(Killed):
            await scene.attempt(left[-1], KillAfter(count))
    await supersede(scene.ledger)
    for cluster in left:
        before, fenced = state_of(cluster, scene.request.step), KillAfter()
        with pytest.raises(Superseded):
            await scene.attempt(cluster, fenced)
        assert not effects(fenced.calls)
        assert state_of(cluster, scene.request.step) == before


async def supersede(ledger: SqlLedger) -> None:
    await ledger.record("m1", [], Progress(state=MigrationState.FAILED))
    await ledger.create_migration(a_migration("m2"))
    assert await ledger.claim("m2", "other", NOW) == 2


def effects(calls: list[str]) -> list[str]:
    return [call for call in calls if call.split()[1] in EFFECTS]


async def test_an_attempt_that_is_superseded_on_its_way_has_no_further_effect(
    road: Found, database: Path, tmp_path: Path
) -> None:
    """Between the fence and the effect that it allows there is one moment: at most the one effect may still happen. The
    programs that this step runs on machines only look.
    """
    cluster, asked, _ = road["roll to kraft"]
    most = 0
    for count in range(200):
        path = tmp_path / f"{count}.db"
        shutil.copy(database, path)
        opened = Database(f"sqlite:///{path}")
        scene = Scene(cluster, SqlLedger(opened), asked)
        calls: list[str] = []

        async def after(name: str, calls: list[str] = calls, count: int = count, scene: Scene = scene) -> None:
            calls.append(name)
            if len(calls) == count + 1:
                await supersede(scene.ledger)

        try:
            with suppress(Superseded):
                await scene.attempt(scene.copy(), after)
        finally:
            await opened.close()
        if len(calls) <= count + 1:
            break
        late = [call for call in effects(calls[count + 1 :]) if not call.endswith(" run")]
        assert len(late) <= 2, f"superseded after call {count} {calls[count]}: {late}"
        most = max(most, len(late))
    print(f"superseded at {count} places, at most {most} effects afterwards")


@pytest.mark.chaos
async def test_a_paused_worker_that_goes_on_beside_its_successor_restarts_nothing_more(scene: Scene) -> None:
    """Attempt A stops at any call, attempt B does the whole step, A goes on: as after SIGSTOP and SIGCONT."""
    smooth, calls = await untouched(scene)
    expected = state_of(smooth, scene.request.step)
    too_many: list[str] = []
    for count in range(len(calls.calls)):
        cluster = scene.copy()
        passed = itertools.count()

        async def after(name: str, cluster: FakeCluster = cluster, passed: Any = passed, count: int = count) -> None:
            if next(passed) == count:
                assert (await scene.attempt(cluster, KillAfter())).is_done

        await scene.attempt(cluster, after)
        if state_of(cluster, scene.request.step) != expected:
            too_many.append(f"{count}: {calls.calls[count]}, then {calls.calls[count + 1]}")
    # One moment is left that no activity can close: between the last look at the process and the stop. The driver's `stop`
    # does not say which process it means.
    print(f"paused at {len(calls.calls)} places; one restart too many after {too_many}")
    assert all(place.endswith("process, then node stop") for place in too_many)
    assert len(too_many) <= 1


@pytest.mark.parametrize("seed", range(3))
async def test_two_attempts_at_once_restart_once(scene: Scene, seed: int) -> None:
    smooth, _ = await untouched(scene)
    cluster = scene.copy()

    async def first(name: str) -> None:
        await asyncio.sleep(0)

    async def second(name: str) -> None:
        for _ in range(seed):
            await asyncio.sleep(0)

    await asyncio.gather(scene.attempt(cluster, first), scene.attempt(cluster, second), return_exceptions=True)
    assert (await scene.attempt(cluster, KillAfter())).is_done
    assert state_of(cluster, scene.request.step)["starts"] == state_of(smooth, scene.request.step)["starts"]


async def test_a_node_that_ignores_its_file_is_restarted_once_only(road: Found, ledger: SqlLedger) -> None:
    """Its start command reads another file: it comes up in the old mode, and so it would after every further restart."""
    cluster, asked, _ = road["roll to hybrid"]
    cluster = copy.deepcopy(cluster, {id(cluster.spec): cluster.spec})
    node = cluster.nodes[asked.step.node]
    start, mode = node.start, node.process.mode

    def start_as_before() -> None:
        start()
        node.process.mode = mode

    node.start = start_as_before  # type: ignore[method-assign]
    impatient = POLICY.model_copy(update={"restart_deadline": timedelta(milliseconds=200)})
    scene = Scene(cluster, ledger, asked.model_copy(update={"policy": impatient}))
    outcome = await scene.attempt(cluster, KillAfter())
    assert (outcome.is_done, outcome.did_restart) == (False, True)
    again = Scene(cluster, ledger, scene.request.model_copy(update={"step_id": "m1/again"}))
    with pytest.raises(Unsafe, match="restarted once"):
        await again.attempt(cluster, KillAfter())
    assert node.starts == 2


async def test_a_proof_that_no_policy_of_ours_gives_the_time_for_says_how_well_it_went(road: Found, ledger: SqlLedger) -> None:
    cluster, asked, _ = road["roll to hybrid"]
    too_short = POLICY.model_copy(update={"restart_deadline": timedelta(milliseconds=300), "stable_samples": 10**6})
    scene = Scene(copy.deepcopy(cluster), ledger, asked.model_copy(update={"policy": too_short}))
    outcome = await scene.attempt(scene.cluster, KillAfter())
    assert (outcome.is_done, outcome.did_restart) == (False, True)
    told = r"is not proven healthy: .*healthy in [1-9]\d* of \d+ observations within policy.restart_deadline, 0.3 s; the last"
    assert re.search(told, outcome.blocked or "")


@pytest.mark.chaos
async def test_a_retry_looks_again_as_long_as_the_node_runs_as_it_was_found(scene: Scene) -> None:
    """Killed after the mark, or after the file; meanwhile another node has died. A node that can wait is not stopped."""
    step = scene.request.step
    if step.action != StepAction.ROLL_NODE or is_roll(step, NodeStage.MIGRATION, of_controller=True):
        return  # The highest alarm waits for nobody.
    _, calls = await untouched(scene)
    found = scene.cluster.nodes[scene.request.step.node].process.identity
    other = next(b.id for b in scene.cluster.spec.brokers if b.id != scene.request.step.node_id)
    tried = 0
    for count in range(len(calls.calls)):
        cluster = scene.copy()
        with suppress(Killed):
            await scene.attempt(cluster, KillAfter(count))
        process = cluster.nodes[scene.request.step.node].process
        if process is None or process.identity != found:
            continue
        tried += 1
        cluster.kill(other)
        outcome = await scene.attempt(cluster, KillAfter())
        assert not outcome.is_done, f"after {calls.calls[:count][-1:]}"
        assert cluster.nodes[scene.request.step.node].process.identity == found
    assert tried > 3


async def test_a_hold_given_before_the_node_was_touched_is_obeyed(scene: Scene) -> None:
    """The step had been scheduled, and waited for a worker. Finalisation that has begun, and the alarm, are the exceptions."""
    is_alarm = is_roll(scene.request.step, NodeStage.MIGRATION, of_controller=True)
    has_begun = is_alarm or (scene.request.step.gate is not None and scene.request.step.node_id != 3002)
    order = Command(id="hold", migration_id="m1", kind=CommandKind.HOLD, by="anna", via="api", at=NOW)
    await scene.ledger.add_command(order)
    cluster = scene.copy()
    outcome = await scene.attempt(cluster, KillAfter())
    assert outcome.is_done is has_begun
    await scene.ledger.add_command(order.model_copy(update={"id": "resume", "kind": CommandKind.RESUME}))
    outcome = await scene.attempt(scene.copy(), KillAfter())
    assert outcome.is_done is has_begun, "the migration does not know of the resume yet, nor of the hold"
    knowing = replace(scene, request=scene.request.model_copy(update={"applied_commands": ("hold", "resume")}))
    outcome = await knowing.attempt(scene.copy(), KillAfter())
    is_void = scene.request.step.gate is not None and not has_begun
    assert outcome.is_done is not is_void, "a hold voids an approval that nothing has consumed"
    if is_void:
        command = await scene.ledger.command("approval")
        renewed = await approve(scene.ledger, "approved again", command.evidence_hash)
        assert (await knowing.attempt(scene.copy(), KillAfter(), renewed)).is_done


async def test_a_worker_that_was_paused_after_its_look_stops_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    if scene.request.step.action != StepAction.ROLL_NODE:
        return
    clock = itertools.chain((0.0,), itertools.repeat(21.0))
    monkeypatch.setattr("activities.rolling.roll.seconds_since_boot", lambda: next(clock))
    cluster = scene.copy()
    before = cluster.nodes[scene.request.step.node].process.identity
    outcome = await scene.attempt(cluster, KillAfter())
    assert "older than 20 s" in (outcome.blocked or "")
    assert cluster.nodes[scene.request.step.node].process.identity == before
    monkeypatch.undo()
    assert (await scene.attempt(cluster, KillAfter())).is_done


async def test_a_drift_that_is_found_after_the_approval_keeps_the_end_from_beginning(scene: Scene) -> None:
    """Whoever asked for that comparison: the look right before the effect sees it. Once the end has begun it goes on."""
    step = scene.request.step
    if step.gate is None:
        return
    checks = FakeChecks(Walk(scene.ledger, scene.cluster).copy().ports, Verdict.DRIFT)
    await checks.publish("orders", "by-hand")
    cluster, calls = scene.copy(), KillAfter()
    before = state_of(cluster, step)
    outcome = await scene.attempt(cluster, calls)
    has_begun = step.node_id != 3002
    assert outcome.is_done is has_begun
    if not has_begun:
        assert "drift-found" in (outcome.blocked or "")
        assert state_of(cluster, step) == before
        assert {call.split()[1] for call in effects(calls.calls)} <= {"run"}, "but for the trial of its java beside it"
        command = await scene.ledger.command("approval")
        assert command.consumed_at is None
