"""`try_canaries` on a simulated cluster: what it sees, what it removes, and what it leaves to whoever comes after a kill."""

import itertools
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.canaries import canary_broker as perch
from activities.canaries import trying as canaries
from activities.node_files import read_mark
from activities.ports.kafka import Led
from domain.canaries import (
    MAX_PARTITIONS,
    PREFIX,
    REPLICAS,
    Canary,
    announced,
    canary_of,
    is_reserved,
    pause_assignment,
    pause_min_isr,
    pause_topic_of,
    to_remove,
)
from domain.decisions import Step
from domain.errors import Superseded
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.steps import NodeStage, StepAction
from playground.fakes.clients import FakeClient
from playground.fakes.cluster import FakeCluster
from playground.fakes.spec import fake_spec
from playground.fakes.topics import FakeTopic
from tests.unit.fake_walk import POLICY, Found, KillAfter, Killed, LedgerInMemory, Scene, Walk, is_roll

WITH_CANARIES = POLICY.model_copy(update={"canaries": True})
IMPATIENT = WITH_CANARIES.model_copy(update={"restart_deadline": timedelta(milliseconds=50)})


def is_try(step: Step, stage: NodeStage, node_id: int) -> bool:
    return step.action == StepAction.TRY_CANARIES and (step.stage, step.node_id) == (stage, node_id)


STEPS = {
    "while ZooKeeper leads": lambda s: is_try(s, NodeStage.MIGRATION, 2),
    "in dual write, all hybrid": lambda s: is_try(s, NodeStage.MIGRATION, 1),
    "in dual write, in KRaft mode": lambda s: is_try(s, NodeStage.KRAFT, 1),
}


def fake() -> FakeCluster:
    return FakeCluster(fake_spec(), boot_looks=1, catch_up_looks=1, copy_looks=2)


@pytest.fixture(scope="module")
async def road() -> tuple[Walk, Found]:
    """The way to the gate, with the cluster as it was right before some of its canaries."""
    cluster = fake()
    walk = Walk(LedgerInMemory(cluster), cluster, policy=WITH_CANARIES)
    await walk.to("gate", STEPS)
    assert walk.found.keys() == set(STEPS)
    return walk, walk.found


@pytest.fixture(params=STEPS)
def scene(request: pytest.FixtureRequest, road: tuple[Walk, Found]) -> Scene:
    walk, found = road
    cluster, asked, _ = found[request.param]
    return Scene(cluster, walk.ledger, asked)


def left(cluster: FakeCluster) -> list[str]:
    """What is there of reserved names, as Kafka and as ZooKeeper tell it, and what has not reached ZooKeeper yet."""
    clients = cluster.clients
    told = [*(topic.name for topic in cluster.topics), *clients.denied, *clients.users, *clients.configs]
    return [name for name in told if is_reserved(name)] + [path for path in cluster.znodes if PREFIX in path]


async def owes(cluster: FakeCluster, node_id: int) -> bool:
    node = cluster.spec.node(node_id)
    mark = await read_mark(cluster.driver(node), node.properties_file)
    return mark is not None and mark.are_canaries_due


async def test_each_restarted_broker_is_tried_before_the_next_one_restarts_and_nothing_is_left() -> None:
    cluster = fake()
    walk = Walk(LedgerInMemory(cluster), cluster, policy=WITH_CANARIES)
    taken: list[Step] = []
    take = walk.take

    async def noting(request: Any) -> None:
        await take(request)
        taken.append(request.step)
        assert not left(cluster), request.step

    walk.take = noting  # type: ignore[method-assign]
    await walk.to("done")
    of_brokers = [s for s in taken if s.node_id is not None and s.node_id < 3000]
    assert [(s.action, s.stage, s.node_id) for s in of_brokers] == [
        (action, stage, node_id)
        for stage, order in ((NodeStage.MIGRATION, (2, 3, 1)), (NodeStage.KRAFT, (1, 2, 3)))
        for node_id in order
        for action in (StepAction.ROLL_NODE, StepAction.TRY_CANARIES)
    ]
    actions = [s.action for s in taken]
    first_copy = actions.index(StepAction.COMPARE_COPY)
    tried = [s.node_id for s in taken[first_copy:] if s.action == StepAction.TRY_CANARIES]
    assert tried == [1, 1, 2, 3], "the last one's only once the copy has been compared"
    assert cluster.deleted_topics == []


async def test_it_does_at_the_broker_what_clients_do_and_restarts_nothing(scene: Scene) -> None:
    cluster, calls = scene.copy(), KillAfter()
    before = {node.spec.id: node.starts for node in cluster.nodes.values()}
    assert await owes(cluster, scene.request.step.node)
    outcome = await scene.attempt(cluster, calls)
    assert (outcome.is_done, outcome.did_restart) == (True, False), outcome.blocked
    assert {"client create_topic", "client produce", "client fetch", "client set_topic_config", "client deny_group",
            "client give_scram"} <= set(calls.calls)  # fmt: skip
    assert not left(cluster)
    assert not await owes(cluster, scene.request.step.node)
    assert before == {node.spec.id: node.starts for node in cluster.nodes.values()}
    assert (await scene.attempt(cluster, KillAfter())).is_done, "once more is fine"


async def test_a_kill_after_any_call_leaves_what_a_second_attempt_removes(scene: Scene) -> None:
    calls = KillAfter()
    await scene.attempt(scene.copy(), calls)
    had_something = 0
    for count in range(len(calls.calls)):
        cluster, killer = scene.copy(), KillAfter(count)
        with suppress(Killed):
            await scene.attempt(cluster, killer)
        had_something += bool(left(cluster))
        outcome = await scene.attempt(cluster, KillAfter())
        where = f"killed after call {count}: {killer.calls[-1]}"
        assert outcome.is_done, f"{where}: {outcome.blocked}"
        assert not left(cluster), where
        assert not await owes(cluster, scene.request.step.node), where
    print(f"killed at {len(calls.calls)} places, {had_something} of them with something left")
    assert had_something > 10


async def test_after_a_kill_the_way_back_removes_it_too(scene: Scene, road: tuple[Walk, Found]) -> None:
    calls = KillAfter()
    await scene.attempt(scene.copy(), calls)
    made = [i for i, call in enumerate(calls.calls) if call.split()[1] in {"create_topic", "deny_group", "give_scram"}]
    for count in made:
        cluster = scene.copy()
        with suppress(Killed):
            await scene.attempt(cluster, KillAfter(count))
        assert left(cluster)
        back = replace(
            road[0], ledger=LedgerInMemory(cluster), cluster=cluster, is_back=True, approvals={}, found={}, policy=WITH_CANARIES
        )
        await back.to("done", prefix="back")
        assert not left(cluster)
        assert not any([await owes(cluster, broker.id) for broker in cluster.spec.brokers])
        assert cluster.deleted_topics == []


def impatient(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """With a short deadline, by a clock that goes on with every look instead of with time."""
    ticks = itertools.count()
    for module in (canaries, perch):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(ticks) / 60))
    return replace(scene, request=scene.request.model_copy(update={"policy": IMPATIENT}))


@pytest.mark.parametrize("canary", [Canary.TOPIC, Canary.MESSAGES, Canary.CONFIG, Canary.ACL, Canary.SCRAM])
async def test_what_fails_is_named_removed_and_tried_again_and_no_other_broker_follows(
    scene: Scene, road: tuple[Walk, Found], canary: Canary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a trial has used up, what it made is not left for."""
    cluster = scene.copy()
    cluster.faults.failing_canaries = {canary}
    outcome = await impatient(scene, monkeypatch).attempt(cluster, KillAfter())
    assert not outcome.is_done
    assert f"canary {canary} failed at broker {scene.request.step.node_id}" in (outcome.blocked or "")
    assert canary_of("m1", scene.request.step.node) in (outcome.blocked or "")
    assert not left(cluster)
    decision = await replace(road[0], cluster=cluster, found={}).decision()
    assert decision == scene.request.step, "the same once more, and no other broker"
    cluster.faults.failing_canaries = set()
    assert (await scene.attempt(cluster, KillAfter())).is_done


@pytest.mark.parametrize("moment", ["led", "produce", "set_topic_config", "topic_config"])
async def test_a_topic_that_somebody_else_deletes_is_no_broker_s_fault(
    scene: Scene, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a tool does that keeps only topics that are declared to it."""
    cluster = scene.copy()
    name, ask = canary_of("m1", scene.request.step.node), getattr(FakeClient, moment)
    waits = itertools.count()

    async def deleted_before(self: FakeClient, *given: Any, **named: Any) -> Any:
        if moment == "led" and next(waits) < 2:
            return Led({}, {})
        if name in given and any(topic.name == name for topic in cluster.topics):
            await FakeClient.delete_topic(self, scene.request.step.node, name)
        return await ask(self, *given, **named)

    monkeypatch.setattr(FakeClient, moment, deleted_before)
    outcome = await impatient(scene, monkeypatch).attempt(cluster, KillAfter())
    monkeypatch.undo()
    assert not outcome.is_done
    assert f"topic {name} was created and seen, and was deleted from outside" in (outcome.blocked or "")
    assert f"ignore those that begin with {PREFIX}" in (outcome.blocked or "")
    assert not left(cluster)
    assert (await scene.attempt(cluster, KillAfter())).is_done


async def test_what_cannot_be_removed_is_told_and_still_owed(scene: Scene) -> None:
    cluster = scene.copy()
    await impolite_leftover(cluster, canary_of("m1", scene.request.step.node))
    cluster.faults.failing_canaries = {"removal"}
    impatient = replace(scene, request=scene.request.model_copy(update={"policy": IMPATIENT}))
    outcome = await impatient.attempt(cluster, KillAfter())
    assert "canary removal failed" in (outcome.blocked or "")
    assert "delete.topic.enable" in (outcome.blocked or "")
    assert await owes(cluster, scene.request.step.node)


async def impolite_leftover(cluster: FakeCluster, name: str) -> None:
    client = await cluster.open_client(cluster.record())
    await client.create_topic(2, name, [[2]], {"min.insync.replicas": "1"})
    await client.give_scram(2, name)
    cluster.advance(2)


async def test_an_authorizer_that_is_lost_on_the_way_is_found(scene: Scene) -> None:
    """The file names one, the broker has none. Where neither has, there is nothing to try."""
    cluster = scene.copy()
    cluster.clients.has_authorizer = False
    assert (await scene.attempt(cluster, KillAfter())).is_done
    cluster = scene.copy()
    cluster.clients.has_authorizer = False
    node = cluster.nodes[scene.request.step.node]
    found = node.machine.read(node.spec.properties_file)
    assert found is not None
    text = found.content + b"authorizer.class.name=kafka.security.authorizer.AclAuthorizer\n"
    node.machine.write(node.spec.properties_file, replace(found, content=text))
    outcome = await scene.attempt(cluster, KillAfter())
    assert "canary acl failed" in (outcome.blocked or "")
    assert not left(cluster)


async def test_it_removes_its_own_and_what_dead_migrations_left_and_nobody_elses(scene: Scene) -> None:
    cluster, broker = scene.copy(), scene.request.step.node
    sibling = next(b.id for b in cluster.spec.brokers if b.id != broker)
    mine = [canary_of("m1", broker), pause_topic_of("m1", broker), canary_of("gone", sibling)]
    others = [canary_of("m1", sibling), pause_topic_of("m1", sibling), "keeperless-canar", "orders-keeperless-canary-1"]
    for name in (*mine, *others):
        await impolite_leftover(cluster, name)
    assert (await scene.attempt(cluster, KillAfter())).is_done
    names = {topic.name for topic in cluster.topics}
    assert names.isdisjoint(mine)
    assert names >= {*others, "orders", "payments"}
    assert set(others) == cluster.clients.users


async def test_with_the_policy_off_what_is_owed_is_only_removed(scene: Scene) -> None:
    cluster, calls = scene.copy(), KillAfter()
    await impolite_leftover(cluster, pause_topic_of("m1", scene.request.step.node))
    off = replace(scene, request=scene.request.model_copy(update={"policy": POLICY}))
    assert (await off.attempt(cluster, calls)).is_done
    assert not {"client create_topic", "client give_scram", "client deny_group"} & set(calls.calls)
    assert not left(cluster)


async def test_who_has_lost_the_cluster_makes_and_removes_nothing(scene: Scene) -> None:
    ledger = LedgerInMemory(scene.cluster)
    calls = KillAfter()
    await replace(scene, ledger=ledger).attempt(scene.copy(), calls)
    effects = {"create_topic", "delete_topic", "produce", "set_topic_config", "deny_group", "forget_group", "give_scram"}
    most = 0
    for count in range(len(calls.calls)):
        ledger = LedgerInMemory(scene.cluster)
        seen: list[str] = []

        async def after(name: str, seen: list[str] = seen, ledger: LedgerInMemory = ledger, count: int = count) -> None:
            seen.append(name)
            if len(seen) == count + 1:
                ledger.held_by = 2

        with suppress(Superseded):
            await replace(scene, ledger=ledger).attempt(scene.copy(), after)
        late = [call for call in seen[count + 1 :] if call.split()[1] in effects]
        assert len(late) <= 1, f"superseded after {seen[count]}: {late}"
        most = max(most, len(late))
    print(f"superseded at {len(calls.calls)} places, at most {most} effect afterwards")


async def test_no_look_counts_reserved_topics() -> None:
    """One with its only replica on a broker would keep that broker from ever being restarted."""
    cluster = fake()
    before = await cluster.view(cluster.record())
    cluster.create_topic(FakeTopic(canary_of("m1", 1), ((1,),), min_isr=1))
    after = await cluster.view(cluster.record())
    assert after == before
    assert not [one for one in await cluster.offsets(cluster.record()) if is_reserved(one.topic)]


def test_is_owed_by_the_rolls_of_brokers_only_and_only_where_the_policy_says_so(road: tuple[Walk, Found]) -> None:
    cluster, _, _ = road[1]["in dual write, in KRaft mode"]
    marks = {
        i: next((f.content for path, f in node.machine.files.items() if path.endswith(".mark")), b"")
        for i, node in cluster.nodes.items()
    }
    assert [i for i, mark in marks.items() if b'"are_canaries_due": true' in mark] == [1]


async def test_without_a_policy_nothing_is_owed_or_made() -> None:
    cluster = fake()
    walk = Walk(LedgerInMemory(cluster), cluster)
    await walk.to("gate", {"a canary": lambda s: s.action == StepAction.TRY_CANARIES})
    assert not walk.found
    assert any(is_roll(Step(action=StepAction.ROLL_NODE, node_id=1, stage=NodeStage.KRAFT), NodeStage.KRAFT) for _ in "1")


@given(st.sets(st.integers(0, 50), min_size=1, max_size=12).map(sorted), st.data())
def test_the_pause_is_measured_at_those_that_restart_and_beside_others(brokers: list[int], data: st.DataObject) -> None:
    """Those of one wave share no partition of it, as they share none of a client's."""
    together = data.draw(st.lists(st.sampled_from(brokers), min_size=1, max_size=4, unique=True))
    assignment = pause_assignment(brokers, together)
    leaders = [replicas[0] for replicas in assignment]
    assert set(together) <= set(leaders)
    assert leaders[0] == together[0]
    assert len(assignment) <= MAX_PARTITIONS
    for replicas in assignment:
        assert len(set(replicas)) == len(replicas) == min(REPLICAS, len(brokers) - len(together) + 1)
        assert set(replicas) <= set(brokers)
        assert len(set(replicas) & set(together)) <= 1


@pytest.mark.parametrize(("replicas", "default", "wanted"), [(3, 2, 2), (3, 1, 1), (3, 3, 2), (2, 2, 1), (1, 2, 1), (1, 1, 1)])
def test_one_replica_may_be_missing(replicas: int, default: int, wanted: int) -> None:
    assert pause_min_isr(replicas, default) == wanted


@given(st.text("abc-123", min_size=1), st.integers(0, 10**6), st.text("abc-123", min_size=1), st.integers(0, 10**6))
def test_a_step_never_removes_what_another_broker_of_its_migration_uses(mine: str, b: int, theirs: str, c: int) -> None:
    own = {canary_of(mine, b), pause_topic_of(mine, b)}
    assert set(to_remove(own, mine, b)) == own
    if b != c:
        assert not own & set(to_remove(own, mine, c))
    assert not to_remove([theirs, f"x{PREFIX}{theirs}"], mine, b)


def test_a_plan_announces_what_will_be_made() -> None:
    spec = fake_spec()
    assert announced(ZkToKraftPolicy(), spec) == ()
    told = " ".join(announced(ZkToKraftPolicy(canaries=True, max_client_pause=timedelta(seconds=3)), spec))
    assert all(word in told for word in (PREFIX, "broker-2", "topic", "SCRAM", "ACL", "3 s holds", "-pause"))
    assert "-pause" not in " ".join(announced(ZkToKraftPolicy(canaries=True), spec))
