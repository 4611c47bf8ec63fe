"""The way back of single nodes: what their files become, whoever edited them, and whoever was cut off before."""

import asyncio
import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest
from temporalio.testing import ActivityEnvironment

from activities.looking import LastLook
from activities.node_files import before_path, look_at_disk, mark_path, read_mark, sha256_of, write_mark
from activities.ports.nodes import FileContent
from activities.ports.ports import Ports
from activities.rolling.roll import seconds_since_boot
from activities.shipped_kinds import SHIPPED_KINDS
from activities.zk_to_kraft.provisioning import Provisioning
from domain.cluster import original_path
from domain.configuration.properties import edit, parse
from domain.contracts import StepRequest
from domain.decisions import Step, Wait
from domain.errors import Transient, Unsafe
from domain.health.files import Restoration, restoration_of
from domain.observed.observation import NodeView
from domain.waits import WaitReason
from domain.zk_to_kraft.modes import BrokerMode, broker_mode
from domain.zk_to_kraft.node_config import MIGRATION_FLAG
from domain.zk_to_kraft.rolls import ROLLS
from domain.zk_to_kraft.steps import NodeStage, StepAction
from domain.zk_to_kraft.wanted_file import wanted_file
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from playground.fakes.machine import text_file
from playground.fakes.node import Mode
from playground.fakes.spec import fake_spec
from playground.fakes.storage_tool import write_meta
from tests.unit.fake_walk import POLICY, KillAfter, Killed, LedgerInMemory, Scene, Walk, is_roll
from tests.unit.fake_way_back import leave_kraft, take_flag, wipe

OWNER = (0o604, 7, 8)
"""Of the brokers' files before the migration: mode, user and group."""


def a_cluster() -> FakeCluster:
    cluster = FakeCluster(fake_spec(), boot_looks=1, catch_up_looks=1, copy_looks=1)
    for broker in cluster.spec.brokers:
        put(cluster, broker.id, file_of(cluster, broker.id).content, *OWNER)
    return cluster


def file_of(cluster: FakeCluster, node_id: int) -> FileContent:
    file = cluster.nodes[node_id].machine.read(cluster.spec.node(node_id).properties_file)
    assert file is not None
    return file


def put(cluster: FakeCluster, node_id: int, content: bytes, mode: int = 0o600, uid: int = 0, gid: int = 0) -> None:
    cluster.nodes[node_id].machine.write(cluster.spec.node(node_id).properties_file, FileContent(content, mode, uid, gid))


def edit_by_hand(cluster: FakeCluster, node_id: int, **assignments: str) -> bytes:
    """Somebody adds lines, and restarts nothing."""
    file = file_of(cluster, node_id)
    content = edit(file.content.decode(), {k.replace("_", "."): v for k, v in assignments.items()}).encode()
    put(cluster, node_id, content, file.mode, file.uid, file.gid)
    return content


def restart_by_hand(cluster: FakeCluster, node_id: int) -> None:
    cluster.kill(node_id)
    cluster.nodes[node_id].start()
    cluster.advance(3)


def files_of_brokers(cluster: FakeCluster) -> dict[int, FileContent]:
    return {broker.id: file_of(cluster, broker.id) for broker in cluster.spec.brokers}


def has_archived(cluster: FakeCluster, node_id: int, content: bytes, where: Callable[[str, str], str] = before_path) -> bool:
    path = where(cluster.spec.node(node_id).properties_file, sha256_of(content))
    kept = cluster.nodes[node_id].machine.read(path)
    return kept is not None and kept.content == content


@pytest.fixture(scope="module")
async def road() -> dict[str, Walk]:
    """Before the migration; with one broker hybrid; with one in KRaft mode; with all of them there, before the last gate."""
    start = Walk(LedgerInMemory(a_cluster()), a_cluster())
    found = {"start": start.copy()}
    for name, stage, number in (("hybrid", NodeStage.MIGRATION, 3), ("kraft", NodeStage.KRAFT, 2)):
        while not is_done_up_to(decision := await start.decision(), stage, number):
            if isinstance(decision, Step):
                await start.take(start.request(decision, f"m1/{name}/{start.cluster.quorum.log_end}/{decision.node_id}"))
        found[name] = start.copy()
    await start.to("gate")
    return found | {"soak": start}


def is_done_up_to(decision: Any, stage: NodeStage, node_id: int) -> bool:
    return isinstance(decision, Step) and is_roll(decision, stage) and decision.node_id == node_id


@pytest.fixture
async def soak(road: dict[str, Walk]) -> Walk:
    return road["soak"].copy(ledger=LedgerInMemory(road["soak"].cluster), approvals={})


def back_from(walk: Walk, *accepted: str) -> Walk:
    return walk.copy(is_back=True, accepted=accepted)


# The whole way


@pytest.mark.parametrize("point", ["hybrid", "kraft", "soak"])
async def test_the_way_back_restores_bytes_mode_and_owner_and_asks_no_ledger(road: dict[str, Walk], point: str) -> None:
    before = files_of_brokers(road["start"].cluster)
    walk = back_from(road[point])
    walk.ledger = LedgerInMemory(walk.cluster)
    walk.ledger.is_silent = True
    for node_id, file in files_of_brokers(walk.cluster).items():
        if file != before[node_id]:
            put(walk.cluster, node_id, file.content, 0o640, 1, 1)
    restarts = walk.cluster.restarts
    await walk.to("done", prefix="m1/back")
    assert files_of_brokers(walk.cluster) == before
    assert {node.process.mode for node in walk.cluster.nodes.values() if node.process is not None} == {Mode.ZOOKEEPER}
    rolled = {name: count - restarts[name] for name, count in walk.cluster.restarts.items() if name.startswith("broker")}
    expected = {"hybrid": (0, 1, 0), "kraft": (2, 1, 1), "soak": (2, 2, 2)}[point]
    assert tuple(rolled.values()) == expected


async def test_what_every_roll_overwrote_is_kept(soak: Walk) -> None:
    """Also what this product wrote itself: nobody has to make it again."""
    in_kraft = files_of_brokers(soak.cluster)
    walk = back_from(soak)
    await walk.to("done", prefix="m1/back")
    for node_id, file in in_kraft.items():
        assert has_archived(walk.cluster, node_id, file.content)


async def test_a_second_migration_goes_back_to_what_was_edited_after_the_first(soak: Walk) -> None:
    walk = back_from(soak)
    await walk.to("done", prefix="m1/back")
    first = file_of(walk.cluster, 1)
    edited = edit_by_hand(walk.cluster, 1, num_io_threads="16")
    put(walk.cluster, 2, file_of(walk.cluster, 2).content, 0o600, 9, 9)
    for broker in walk.cluster.spec.brokers:
        restart_by_hand(walk.cluster, broker.id)
    before = files_of_brokers(walk.cluster)
    again = walk.copy(is_back=False, approvals={})
    await again.to("gate", prefix="m2")
    assert all(has_archived(again.cluster, 1, content, original_path) for content in (first.content, edited))
    back = back_from(again)
    await back.to("done", prefix="m2/back")
    assert files_of_brokers(back.cluster) == before, "edited bytes, and the owner that was changed in between"


@pytest.mark.parametrize("edits", [{}, {"num_io_threads": "16"}])
async def test_a_way_back_by_hand_is_no_obstacle_to_another_migration(soak: Walk, edits: dict[str, str]) -> None:
    """All of it by hand, and our marks, which still tell of KRaft mode, left lying about."""
    cluster = soak.cluster
    await leave_kraft(cluster)
    for broker in cluster.spec.brokers:
        mark = await read_mark(cluster.driver(broker), broker.properties_file)
        assert mark is not None
        assert mark.original_sha256 is not None
        kept = cluster.nodes[broker.id].machine.read(original_path(broker.properties_file, mark.original_sha256))
        assert kept is not None
        put(cluster, broker.id, kept.content, *OWNER)
        edit_by_hand(cluster, broker.id, **edits)
        restart_by_hand(cluster, broker.id)
    await wipe(cluster)
    before = files_of_brokers(cluster)
    await soak.to("gate", prefix="m2")
    back = back_from(soak)
    await back.to("done", prefix="m2/back")
    assert files_of_brokers(back.cluster) == before


# Edits of others, and no archive


async def test_an_edit_that_would_be_lost_is_named_first_and_archived_then(soak: Walk) -> None:
    original = file_of(a_cluster(), 1)
    edited = edit_by_hand(soak.cluster, 1, num_io_threads="16")
    walk = back_from(soak)
    decision = await walk.decision()
    assert isinstance(decision, Wait)
    assert (decision.reason, decision.objects) == (WaitReason.FILE_CHANGED, ("broker-1",))
    walk = back_from(soak, "edits-of-broker-1")
    await walk.to("done", prefix="m1/back")
    assert file_of(walk.cluster, 1) == original
    assert has_archived(walk.cluster, 1, edited)


@pytest.mark.parametrize("is_cut", [False, True])
async def test_an_edit_that_a_roll_took_along_is_still_named(road: dict[str, Walk], is_cut: bool) -> None:
    """The roll to KRaft edits the file as it is then, so it is ours byte for byte, and the original lacks what others wrote."""
    walk = road["kraft"].copy(approvals={})
    edit_by_hand(walk.cluster, 2, num_io_threads="16")
    restart_by_hand(walk.cluster, 2)
    if is_cut:
        decision = await walk.decision()
        assert isinstance(decision, Step)
        await cut_after(Scene(walk.cluster, walk.ledger, walk.request(decision, "m1/cut")), walk.cluster, "node stop")
        walk.cluster.advance()
    await walk.to("gate", prefix="m1/further")
    assert parse(file_of(walk.cluster, 2).content.decode())["num.io.threads"] == "16"
    decision = await back_from(walk).decision()
    assert isinstance(decision, Wait)
    assert decision.objects == ("broker-2",)
    walk = back_from(walk, "edits-of-broker-2")
    await walk.to("done", prefix="m1/back")
    assert file_of(walk.cluster, 2) == file_of(a_cluster(), 2)


@pytest.mark.parametrize("point", ["hybrid", "soak"])
async def test_without_an_archive_the_migration_is_taken_back_key_by_key(road: dict[str, Walk], point: str) -> None:
    source = road[point].copy(approvals={})
    original = file_of(road["start"].cluster, 2)
    lose_archive(source.cluster, 2)
    edit_by_hand(source.cluster, 2, num_io_threads="16")
    decision = await back_from(source).decision()
    assert isinstance(decision, Wait)
    assert decision.objects == ("broker-2",)
    walk = back_from(source, "original-of-broker-2")
    await walk.to("done", prefix="m1/back")
    assert parse(file_of(walk.cluster, 2).content.decode()) == parse(original.content.decode()) | {"num.io.threads": "16"}
    again = walk.copy(is_back=False, approvals={})
    await again.to("gate", prefix="m2")


def lose_archive(cluster: FakeCluster, node_id: int) -> None:
    machine = cluster.nodes[node_id].machine
    for path in [path for path in machine.files if "/.keeperless/" in path]:
        machine.remove(path)


async def test_a_hand_made_hybrid_broker_has_no_original(road: dict[str, Walk]) -> None:
    """What lies there when we first come is not what was there before the migration: it must never be restored as that."""
    walk = road["kraft"].copy(approvals={})
    lose_archive(walk.cluster, 2)
    await walk.to("gate", prefix="m1/further")
    spec = walk.cluster.spec.node(2)
    mark = await read_mark(walk.cluster.driver(spec), spec.properties_file)
    assert mark is not None
    assert mark.original_sha256 is None


# Controllers


async def test_the_flag_comes_back_before_the_end_is_final(road: dict[str, Walk]) -> None:
    """One controller has been finalised when the way back is asked for: its archive brings the flag back, byte for byte."""
    walk = road["soak"].copy()
    made = {controller.id: file_of(walk.cluster, controller.id) for controller in walk.cluster.spec.controllers}
    step = await walk.decision()
    assert isinstance(step, Step)
    await walk.take(walk.request(step, "m1/final"))
    first = walk.cluster.spec.node(step.node)
    assert MIGRATION_FLAG not in file_of(walk.cluster, first.id).content.decode()
    back = back_from(walk)
    decision = await back.decision()
    assert isinstance(decision, Step)
    assert is_roll(decision, NodeStage.MIGRATION, of_controller=True)
    await back.take(back.request(decision, "m1/flag"))
    assert file_of(back.cluster, first.id) == made[first.id]
    assert has_archived(back.cluster, first.id, made[first.id].content, original_path)
    assert has_archived(back.cluster, first.id, file_of(walk.cluster, first.id).content)
    await back.to("done", prefix="m1/back")


@pytest.mark.parametrize("restart", [True, False])
@pytest.mark.parametrize("is_back", [True, False])
async def test_a_flag_that_somebody_took_comes_back_and_their_edit_stays(soak: Walk, restart: bool, is_back: bool) -> None:
    text = take_flag(soak.cluster, 3002, restart=restart)
    soak.cluster.advance(2)
    walk = back_from(soak) if is_back else soak
    decision = await walk.decision()
    assert decision == Step(action=StepAction.ROLL_NODE, node_id=3002, stage=NodeStage.MIGRATION)
    await walk.take(walk.request(decision, "m1/flag"))
    after = parse(file_of(walk.cluster, 3002).content.decode())
    assert after == parse(text) | {"max.connections": "99"}
    await walk.to("done" if is_back else "gate", prefix="m1/on")


async def test_a_controller_without_the_flag_that_does_not_stop_is_killed(soak: Walk) -> None:
    """As long as it runs, one election makes the migration final."""
    take_flag(soak.cluster, 3002, restart=True)
    soak.cluster.advance(2)
    soak.cluster.faults.ignores_stop.add(3002)
    decision = await soak.decision()
    assert isinstance(decision, Step)
    hurried = POLICY.model_copy(update={"stop_deadline": timedelta(microseconds=1)})
    request = soak.request(decision, "m1/flag").model_copy(update={"policy": hurried})
    calls = KillAfter()
    assert (await Scene(soak.cluster, soak.ledger, request).attempt(soak.cluster, calls)).is_done
    assert calls.calls.index("node kill") - calls.calls.index("node start") < 0
    node = soak.cluster.nodes[3002]
    assert node.process is not None
    assert node.process.mode is Mode.MIGRATION_CONTROLLER


async def test_a_controller_that_does_not_stop_in_finalisation_is_killed(soak: Walk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ZooKeeper is lost for good the active one never ends by itself: its migration driver waits for ZooKeeper."""
    monkeypatch.setattr("activities.rolling.roll.CONTROLLER_STOP_DEADLINE", timedelta(microseconds=1))
    await soak.to("gate")
    step = await soak.decision()
    assert isinstance(step, Step)
    assert is_roll(step, NodeStage.KRAFT, of_controller=True)
    soak.cluster.faults.ignores_stop.add(step.node)
    calls = KillAfter()
    assert (await Scene(soak.cluster, soak.ledger, soak.request(step, "m1/final")).attempt(soak.cluster, calls)).is_done
    assert "node kill" in calls.calls


async def test_a_driver_that_fails_at_once_is_no_reason_to_kill(soak: Walk) -> None:
    take_flag(soak.cluster, 3002, restart=True)
    soak.cluster.advance(2)
    soak.cluster.faults.ignores_stop.add(3002)
    decision = await soak.decision()
    assert isinstance(decision, Step)
    with pytest.raises(Transient):
        await soak.take(soak.request(decision, "m1/flag"))
    assert soak.cluster.nodes[3002].process is not None


@pytest.mark.parametrize("way", ["forward", "back"])
async def test_a_broker_that_does_not_stop_is_never_killed(road: dict[str, Walk], way: str) -> None:
    walk = road["kraft"].copy() if way == "forward" else back_from(road["soak"])
    decision = await walk.decision()
    assert isinstance(decision, Step)
    walk.cluster.faults.ignores_stop.add(decision.node)
    hurried = POLICY.model_copy(update={"stop_deadline": timedelta(microseconds=1)})
    request = walk.request(decision, "m1/x").model_copy(update={"policy": hurried})
    calls = KillAfter()
    with pytest.raises(Unsafe, match=r"within policy\.stop_deadline, 1e-06 s, and is never killed"):
        await Scene(walk.cluster, walk.ledger, request).attempt(walk.cluster, calls)
    assert "node kill" not in calls.calls


# Adoption: the workflow is gone in the middle of a roll, and another migration comes


CUTS = {
    "roll to hybrid": ("hybrid", False),
    "roll to kraft": ("kraft", False),
    "roll back to hybrid": ("soak", True),
    "roll back to zookeeper": ("soak", True),
}


@pytest.mark.chaos
@pytest.mark.parametrize("goes", ["forward", "back"])
@pytest.mark.parametrize("cut", CUTS)
async def test_a_roll_that_nobody_finished_is_finished_or_reverted_by_the_next_migration(
    road: dict[str, Walk], cut: str, goes: str
) -> None:
    if cut == "roll back to zookeeper" and goes == "forward":
        return  # From there a person first ends the way back: decide says so.
    point, is_back = CUTS[cut]
    before = files_of_brokers(road["start"].cluster)
    scene = await the_scene(road[point].copy(is_back=is_back), cut)
    smooth = KillAfter()
    await scene.attempt(scene.copy(), smooth)
    tried, most = 0, 0
    for count in range(0, len(smooth.calls), 2):
        cluster = scene.copy()
        with pytest.raises(Killed):
            await scene.attempt(cluster, KillAfter(count))
        cluster.advance(3)
        ledger = LedgerInMemory(cluster)
        ledger.held_by = 2
        walk = Walk(ledger, cluster, is_back=goes == "back", generation=2)
        await walk.to("gate" if goes == "forward" else "done", prefix="m2")
        if goes == "back":
            assert files_of_brokers(cluster) == before, smooth.calls[count]
        starts = cluster.nodes[scene.request.step.node].starts - scene.cluster.nodes[scene.request.step.node].starts
        most, tried = max(most, starts), tried + 1
    print(f"{cut}, then {goes}: {tried} cuts, at most {most} starts of the node until the end")
    assert most <= 3


async def the_scene(walk: Walk, cut: str) -> Scene:
    """Go on until the step that is to be cut."""
    stage = {
        "roll to hybrid": NodeStage.MIGRATION,
        "roll to kraft": NodeStage.KRAFT,
        "roll back to hybrid": NodeStage.MIGRATION,
    }
    wanted = stage.get(cut, NodeStage.ZOOKEEPER)
    for number in itertools.count():
        decision = await walk.decision()
        if isinstance(decision, Step):
            request = walk.request(decision, f"m1/cut/{number}")
            if is_roll(decision, wanted):
                return Scene(walk.cluster, walk.ledger, request)
            await walk.take(request)
    raise AssertionError


async def test_a_stopped_node_is_ours_even_before_the_file_of_the_new_direction_is_written(road: dict[str, Walk]) -> None:
    """Stopped on the way to KRaft; the way back marks it and dies before it writes: it is interrupted still, not down."""
    walk = road["kraft"].copy()
    decision = await walk.decision()
    assert isinstance(decision, Step)
    scene = Scene(walk.cluster, walk.ledger, walk.request(decision, "m1/kraft"))
    await cut_after(scene, walk.cluster, "node stop")
    back = back_from(walk)
    decision = await back.decision()
    assert decision == Step(action=StepAction.ROLL_NODE, node_id=2, stage=NodeStage.MIGRATION)
    mark = mark_path(back.cluster.spec.node(2).properties_file)
    found = back.cluster.nodes[2].machine.read(mark)
    scene = Scene(back.cluster, back.ledger, back.request(decision, "m1/back"))
    for count in itertools.count():
        with pytest.raises(Killed):
            await scene.attempt(back.cluster, KillAfter(count))
        if back.cluster.nodes[2].machine.read(mark) != found:
            break
    assert broker_mode(await view_of(back.cluster, 2)) is BrokerMode.INTERRUPTED
    await back.to("done", prefix="m1/again")


async def cut_after(scene: Scene, cluster: FakeCluster, call: str) -> None:
    async def after(name: str) -> None:
        if name == call:
            raise Killed

    with pytest.raises(Killed):
        await scene.attempt(cluster, after)


# A look's age


@pytest.mark.parametrize(("seconds", "is_taken"), [(15.0, True), (21.0, False)])
async def test_a_look_is_as_old_as_its_own_beginning(
    soak: Walk, monkeypatch: pytest.MonkeyPatch, seconds: float, is_taken: bool
) -> None:
    """Three looks that take long: the last one counts, from when it began."""
    walk = back_from(soak)
    calls = KillAfter()
    monkeypatch.setattr("activities.rolling.roll.seconds_since_boot", lambda: seconds * calls.calls.count("kafka view"))
    decision = await walk.decision()
    assert isinstance(decision, Step)
    request = walk.request(decision, "m1/x").model_copy(update={"looks": 3})
    outcome = await Scene(walk.cluster, walk.ledger, request).attempt(walk.cluster, calls)
    assert outcome.is_done is is_taken


async def test_the_wanted_file_is_made_once(soak: Walk, monkeypatch: pytest.MonkeyPatch) -> None:
    made = itertools.count()
    monkeypatch.setitem(vars(ROLLS), "make", lambda *given: (next(made), wanted_file(*given))[1])
    walk = back_from(soak)
    decision = await walk.decision()
    assert isinstance(decision, Step)
    await walk.take(walk.request(decision, "m1/x"))
    assert next(made) == 1


# Provisioning


async def provision(cluster: FakeCluster, node_id: int, ledger: Any = None) -> Any:
    """The step itself, whatever would be decided: what it finds is what it is tried on."""
    asked = ledger or LedgerInMemory(cluster)
    ports = Ports(cast("Any", asked), cluster, cluster, cluster, cluster, FakeArtefacts(), SHIPPED_KINDS)
    activities = Provisioning(ports)
    step = Step(action=StepAction.PROVISION_CONTROLLER, node_id=node_id, stage=NodeStage.MIGRATION)
    request = StepRequest(
        kind="zk-to-kraft", migration_id="m1", cluster="orders", generation=1, step_id="m1/p", step=step, policy=POLICY
    )
    return await ActivityEnvironment().run(activities.provision_controller, request)


@pytest.fixture
def nobody_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(*_: object) -> tuple[LastLook, float]:
        await asyncio.sleep(0)
        return LastLook(None), seconds_since_boot()

    monkeypatch.setattr("activities.zk_to_kraft.provisioning.look_again", none)


@pytest.mark.parametrize("node_id", [1, 3001])
async def test_a_node_that_serves_without_its_pid_file_is_not_started_again(
    soak: Walk, node_id: int, request: pytest.FixtureRequest
) -> None:
    """It would be rolled, as one that is down is on the way back: it is waited for. And whoever provisions one that was never
    started looks for himself."""
    node, file = soak.cluster.nodes[node_id], file_of(soak.cluster, node_id)
    process, starts, answer = node.process, node.starts, soak.cluster.read

    async def read(endpoint: Any) -> Any:
        is_asked = endpoint == node.spec.metrics
        node.process = process if is_asked else node.process
        try:
            return await answer(endpoint)
        finally:
            node.process = None if is_asked else node.process

    node.process = None
    soak.cluster.read = read  # type: ignore[method-assign]
    soak.is_back = True
    if node_id == 3001:
        request.getfixturevalue("nobody_decides")
        with pytest.raises(Unsafe, match=r"kafka\.pid names no process"):
            await provision(soak.cluster, node_id)
    else:
        with pytest.raises(AssertionError, match="part-unknown"):
            await soak.to("done", prefix="m1/back")
    assert (node.starts, file_of(soak.cluster, node_id)) == (starts, file)


@pytest.mark.usefixtures("nobody_decides")
async def test_storage_that_was_left_fenced_says_what_to_do(soak: Walk) -> None:
    await leave_kraft(soak.cluster)
    before = dict(soak.cluster.nodes[3001].machine.files)
    with pytest.raises(Unsafe, match="Ask for a rollback"):
        await provision(soak.cluster, 3001)
    assert dict(soak.cluster.nodes[3001].machine.files) == before


@pytest.mark.usefixtures("nobody_decides")
async def test_a_base_file_that_names_a_broker_s_directory_is_refused_before_anything_is_written() -> None:
    cluster = a_cluster()
    controllers = tuple(c.model_copy(update={"base_properties": "/etc/base"}) for c in cluster.spec.controllers)
    cluster = FakeCluster(cluster.spec.with_quorum_changed(controllers=controllers))
    machine = cluster.nodes[3001].machine
    write_meta(machine, "/data/broker-1", {"version": "0", "cluster.id": cluster.spec.cluster_id}, 1)
    machine.write("/etc/base", text_file("metadata.log.dir=/data/broker-1\n"))
    before = dict(machine.files)
    with pytest.raises(Unsafe, match="would name /data/broker-1"):
        await provision(cluster, 3001)
    assert dict(machine.files) == before


async def test_a_roll_that_was_paused_writes_no_old_file_over_a_newer_one(soak: Walk) -> None:
    """Another step has taken the node since: its mark is there, and so is its file."""
    walk = back_from(soak)
    decision = await walk.decision()
    assert isinstance(decision, Step)
    request, node_id = walk.request(decision, "m1/paused"), decision.node
    path = walk.cluster.spec.node(node_id).properties_file
    seen: list[str] = []
    calls = KillAfter()

    async def overtake(call: str) -> None:
        await calls(call)
        mark = await read_mark(walk.cluster.driver(walk.cluster.spec.node(node_id)), path)
        if not seen and mark is not None and mark.step_id == "m1/paused" and call == "ledger generation":
            seen.append(call)
            later = mark.model_copy(update={"step_id": "m1/later", "is_proven": True})
            await write_mark(walk.cluster.driver(walk.cluster.spec.node(node_id)), path, later, file_of(walk.cluster, node_id))

    before = file_of(walk.cluster, node_id)
    with pytest.raises(Transient, match="another roll continued"):
        await Scene(walk.cluster, walk.ledger, request).attempt(walk.cluster, overtake)
    assert seen
    assert file_of(walk.cluster, node_id) == before


@pytest.mark.parametrize("by", ["decision", "provisioning"])
async def test_a_controller_that_was_being_given_its_flag_is_started_as_it_is(
    soak: Walk, by: str, request: pytest.FixtureRequest
) -> None:
    """Its file holds somebody's edit besides: it is not what would be made today, and stays."""
    take_flag(soak.cluster, 3002, restart=True)
    soak.cluster.advance(2)
    decision = await soak.decision()
    assert isinstance(decision, Step)
    await cut_after(Scene(soak.cluster, soak.ledger, soak.request(decision, "m1/flag")), soak.cluster, "node stop")
    file = file_of(soak.cluster, 3002)
    soak.cluster.advance()
    if by == "provisioning":
        request.getfixturevalue("nobody_decides")
        assert (await provision(soak.cluster, 3002)).is_done
    await soak.to("gate", prefix="m2")
    assert file_of(soak.cluster, 3002) == file
    assert b"max.connections=99" in file.content


@pytest.mark.usefixtures("nobody_decides")
@pytest.mark.parametrize("has_archive", [True, False])
async def test_a_controller_is_made_of_the_brokers_file_from_before(soak: Walk, has_archive: bool) -> None:
    """Also where the brokers are in KRaft mode already, and their files say nothing of ZooKeeper."""
    made = file_of(soak.cluster, 3001)
    soak.cluster.kill(3001)
    soak.cluster.nodes[3001].machine.remove(soak.cluster.spec.node(3001).properties_file)
    if not has_archive:
        lose_archive(soak.cluster, 1)
    assert (await provision(soak.cluster, 3001)).is_done
    after = file_of(soak.cluster, 3001)
    assert (after.content == made.content) is has_archive
    assert parse(after.content.decode())["zookeeper.connect"] == soak.cluster.spec.ensemble.connect


@pytest.mark.parametrize("call", ["node make_dir", "node run"])
async def test_a_controller_that_was_cut_off_after_a_wipe_is_ours_to_start(soak: Walk, call: str) -> None:
    """An old pid file tells of a process of the migration before: what was never started since is interrupted, not down."""
    walk = back_from(soak)
    await walk.to("done", prefix="m1/back")
    again = walk.copy(is_back=False, approvals={})
    decision = await again.decision()
    assert isinstance(decision, Step)
    assert again.cluster.nodes[3001].last_identity is not None
    await cut_after(Scene(again.cluster, again.ledger, again.request(decision, "m2/1")), again.cluster, call)
    again.cluster.advance()
    await again.to("gate", prefix="m3")


async def view_of(cluster: FakeCluster, node_id: int) -> NodeView:
    """What a look sees of a node's process and files."""
    node = cluster.spec.node(node_id)
    driver = cluster.driver(node)
    disk = await look_at_disk(driver, node.properties_file, node.log_dirs, cluster.spec.cluster_id, node_id)
    return NodeView(id=node_id, process=await driver.process(), disk=disk)


async def test_edits_are_told_by_the_mark(soak: Walk) -> None:
    """What a look says of a node's file, for the losses that a preview names."""

    async def seen() -> Restoration:
        return restoration_of((await view_of(soak.cluster, 1)).disk)

    assert await seen() is Restoration.ARCHIVE
    edit_by_hand(soak.cluster, 1, num_io_threads="16")
    assert await seen() is Restoration.EDITED
    lose_archive(soak.cluster, 1)
    assert await seen() is Restoration.INVERSE


async def test_a_broker_that_dies_of_what_a_roll_back_left_is_left_to_a_person(soak: Walk) -> None:
    walk = back_from(soak)
    decision = await walk.decision()
    assert isinstance(decision, Step)
    walk.cluster.faults.dies_at_start[decision.node] = ("no space left on device",)
    outcome = await Scene(walk.cluster, walk.ledger, walk.request(decision, "m1/a")).attempt(walk.cluster, KillAfter())
    assert "no space left on device" in (outcome.blocked or "")
    waiting = await walk.decision()
    assert isinstance(waiting, Wait)
    assert waiting.reason == WaitReason.NODE_DOWN
    walk.cluster.faults.dies_at_start.clear()
    walk.cluster.nodes[decision.node].start()
    walk.cluster.advance(3)
    await walk.to("done", prefix="m1/c")


async def test_a_broker_that_has_died_by_itself_comes_back_with_its_original(soak: Walk) -> None:
    """That it died may be why somebody goes back."""
    before = files_of_brokers(a_cluster())
    soak.cluster.kill(2, "out of memory")
    walk = back_from(soak)
    await walk.to("done", prefix="m1/back")
    assert files_of_brokers(walk.cluster) == before
