"""The longest pause: what counts as one, what it holds, and that nothing of the measuring outlives the roll."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from activities.ports.ports import Ports
from activities.rolling.marking import Target
from activities.rolling.pauses import PauseMeter
from activities.shipped_kinds import SHIPPED_KINDS
from domain.canaries import is_reserved, pause_topic_of
from domain.contracts import RevertOrder, StepRequest
from domain.decisions import Step
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.steps import NodeStage, StepAction
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from playground.fakes.spec import fake_spec
from playground.fakes.topics import FakeTopic
from tests.unit.fake_walk import POLICY, KillAfter, Killed, LedgerInMemory, Scene, Walk, is_roll

MEASURING = POLICY.model_copy(update={"max_client_pause": timedelta(seconds=60)})


def request_of(cluster: FakeCluster, policy: ZkToKraftPolicy, node_id: int = 1, *, is_back: bool = False) -> StepRequest:
    return StepRequest(
        kind="zk-to-kraft",
        migration_id="m1",
        cluster="orders",
        generation=1,
        step_id="m1/1",
        step=Step(action=StepAction.ROLL_NODE, node_id=node_id, stage=NodeStage.MIGRATION),
        policy=policy,
        revert=RevertOrder(command_id=None, because="a test", cluster=cluster.record()) if is_back else None,
    )


def meter_of(cluster: FakeCluster, request: StepRequest) -> tuple[PauseMeter, Target]:
    ports = Ports(cast("Any", LedgerInMemory(cluster)), cluster, cluster, cluster, cluster, FakeArtefacts(), SHIPPED_KINDS)
    node = cluster.spec.node(request.step.node)
    return PauseMeter(request, ports), Target(cluster.record(), node, cluster.driver(node))


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110 - the fake has no events
            await asyncio.sleep(0.005)


def written(cluster: FakeCluster) -> int:
    return sum(len(messages) for messages in cluster.clients.messages.values())


async def test_a_write_that_waits_is_the_pause_while_it_waits_and_afterwards() -> None:
    cluster = FakeCluster()
    request = request_of(cluster, MEASURING.model_copy(update={"max_client_pause": timedelta(seconds=0.3)}))
    meter, target = meter_of(cluster, request)
    async with meter:
        assert await meter.begin([target]) is None
        await until(lambda: written(cluster) > 6)
        smooth = meter.measured()
        assert smooth is not None
        assert meter.why_hold([target]) is None or smooth > 0.3
        cluster.faults.failing_canaries = {"messages"}
        await until(lambda: (meter.measured() or 0) > 0.4)
        assert "broker-1" in (meter.why_hold([target]) or "")
        before = written(cluster)
        cluster.faults.failing_canaries = set()
        await until(lambda: written(cluster) > before + 6)
        measured = meter.measured()
        assert measured is not None
        assert 0.4 < measured < 10, "it stays what it was"
    count = written(cluster)
    await asyncio.sleep(0.25)
    assert written(cluster) == count, "nothing goes on"
    print(f"smooth {smooth * 1000:.0f} ms, afterwards {measured * 1000:.0f} ms")


async def test_the_topic_has_replicas_on_every_broker_and_spares_one() -> None:
    cluster = FakeCluster(fake_spec(brokers=4))
    meter, target = meter_of(cluster, request_of(cluster, MEASURING, 3))
    async with meter:
        assert await meter.begin([target]) is None
    (topic,) = [topic for topic in cluster.topics if is_reserved(topic.name)]
    assert topic.name == pause_topic_of("m1", 3)
    assert topic.assignment == ((3, 4, 1), (4, 1, 2), (1, 2, 3), (2, 3, 4))
    assert topic.min_isr == 2


async def test_one_that_is_left_with_an_older_assignment_is_made_anew() -> None:
    """On that one nothing would be measured: the broker that restarts does not lead it."""
    cluster = FakeCluster()
    name = pause_topic_of("m1", 1)
    cluster.create_topic(FakeTopic(name, ((2, 3),), min_isr=1))
    meter, target = meter_of(cluster, request_of(cluster, MEASURING))
    async with meter:
        assert await meter.begin([target]) is None
    (topic,) = [topic for topic in cluster.topics if topic.name == name]
    assert topic.assignment == ((1, 2, 3), (2, 3, 1), (3, 1, 2))


@pytest.mark.parametrize("why", ["nobody asked", "on the way back", "a controller"])
async def test_nothing_is_made_where_nothing_is_measured(why: str) -> None:
    cluster = FakeCluster()
    policy = POLICY if why == "nobody asked" else MEASURING
    node_id = 3001 if why == "a controller" else 1
    meter, target = meter_of(cluster, request_of(cluster, policy, node_id, is_back=why == "on the way back"))
    async with meter:
        assert await meter.begin([target]) is None
        assert meter.measured() is None
        assert meter.why_hold([target]) is None
    assert not [topic for topic in cluster.topics if is_reserved(topic.name)]


async def test_what_cannot_be_measured_is_told_before_anything_is_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("activities.rolling.pauses.BEGIN_SECONDS", 0.05)
    cluster = FakeCluster()
    walk = Walk(LedgerInMemory(cluster), cluster, policy=MEASURING)
    await walk.to("step", {"begun": lambda s: s.action == StepAction.PROVISION_CONTROLLER})
    cluster.faults.failing_canaries = {"messages"}
    with pytest.raises(AssertionError, match="cannot be measured on topic keeperless-canary-m1-"):
        await walk.to("done")
    assert cluster.restarts["broker-2"] == 0


async def test_a_roll_tells_its_pause_and_one_that_is_too_long_holds_it() -> None:
    cluster = FakeCluster()
    walk = Walk(LedgerInMemory(cluster), cluster, policy=MEASURING)
    await walk.to("step", {"roll": lambda s: is_roll(s, NodeStage.MIGRATION)})
    before, asked, _ = walk.found["roll"]
    scene = Scene(before, walk.ledger, asked)
    outcome = await scene.attempt(scene.copy(), KillAfter())
    assert outcome.is_done
    assert outcome.client_pause_seconds is not None
    assert outcome.client_pause_seconds < 60
    assert outcome.hold_because is None
    strict = MEASURING.model_copy(update={"max_client_pause": timedelta(microseconds=1)})
    outcome = await replace(scene, request=asked.model_copy(update={"policy": strict})).attempt(scene.copy(), KillAfter())
    assert (outcome.is_done, outcome.did_restart) == (True, True), "the node itself is well"
    assert "clients waited" in (outcome.hold_because or "")


async def test_a_roll_that_measures_and_is_killed_anywhere_restarts_once_and_leaves_nothing() -> None:
    """The topic is owed from before it is made: a rollback that comes instead of the next attempt removes it as well."""
    cluster = FakeCluster(boot_looks=1)
    walk = Walk(LedgerInMemory(cluster), cluster, policy=MEASURING)
    await walk.to("step", {"roll": lambda s: is_roll(s, NodeStage.MIGRATION)})
    before, asked, _ = walk.found["roll"]
    scene, calls = Scene(before, walk.ledger, asked), KillAfter()
    await scene.attempt(scene.copy(), calls)
    steady = [i for i, call in enumerate(calls.calls) if call.split()[0] != "client" or "create" in call]
    starts = before.nodes[asked.step.node].starts
    unfinished = 0
    for count in steady:
        cluster = scene.copy()
        with suppress(Killed):
            await scene.attempt(cluster, KillAfter(count))
        if count % 3:
            assert (await scene.attempt(cluster, KillAfter())).is_done, calls.calls[count]
            assert cluster.nodes[asked.step.node].starts == starts + 1, calls.calls[count]
        unfinished += any(is_reserved(topic.name) for topic in cluster.topics)
        back = Walk(LedgerInMemory(cluster), cluster, is_back=True, policy=MEASURING)
        await back.to("done", prefix="back")
        assert not [topic for topic in cluster.topics if is_reserved(topic.name)], calls.calls[count]
    print(f"killed at {len(steady)} places, {unfinished} of them with a topic left")
    assert unfinished > 5


async def test_what_a_roll_has_made_is_gone_before_the_next_one_begins() -> None:
    cluster = FakeCluster(boot_looks=1)
    walk = Walk(LedgerInMemory(cluster), cluster, policy=MEASURING)
    await walk.to("gate")
    assert not [topic for topic in cluster.topics if is_reserved(topic.name)]
    assert cluster.deleted_topics == []


async def test_a_wave_is_measured_at_each_of_its_brokers_and_each_is_tried_before_the_next_wave() -> None:
    """No partition of the topic has two of them: it would stand still, and no client's does."""
    cluster = FakeCluster(fake_spec(brokers=6, racks=3), boot_looks=1)
    policy = MEASURING.model_copy(update={"canaries": True, "max_parallel": 2})
    walk = Walk(LedgerInMemory(cluster), cluster, policy=policy)
    taken: list[Step] = []
    take = walk.take

    async def noting(request: StepRequest) -> None:
        if request.step.companions and request.step.action == StepAction.ROLL_NODE:
            scene = Scene(cluster, walk.ledger, request)
            apart, seen = scene.copy(), KillAfter()
            outcome = await scene.attempt(apart, seen)
            assert outcome.client_pause_seconds is not None
            (topic,) = [topic for topic in apart.topics if is_reserved(topic.name)]
            assert set(request.step.nodes) <= {replicas[0] for replicas in topic.assignment}
            assert all(len(set(replicas) & set(request.step.nodes)) < 2 for replicas in topic.assignment)
        await take(request)
        taken.append(request.step)

    walk.take = noting  # type: ignore[method-assign]
    await walk.to("gate")
    waves = [step.nodes for step in taken if step.action == StepAction.ROLL_NODE]
    assert any(len(nodes) == 2 for nodes in waves)
    owed: set[int] = set()
    for step in taken:
        if step.action == StepAction.TRY_CANARIES:
            owed.remove(step.node)
        elif step.action == StepAction.ROLL_NODE:
            assert not owed
            owed = set(step.nodes)
    assert not owed
    assert not [topic for topic in cluster.topics if is_reserved(topic.name)]
