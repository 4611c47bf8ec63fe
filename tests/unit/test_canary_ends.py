"""A migration ends, whatever canaries may not make or remove: forward a person goes on, and either end tells what is left."""

from dataclasses import replace
from datetime import timedelta

import pytest

from activities.node_files import read_mark
from domain.canaries import Canary, canary_of, is_reserved, pause_topic_of
from domain.decisions import Step
from domain.zk_to_kraft.steps import NodeStage, StepAction
from playground.fakes.cluster import FakeCluster
from playground.fakes.spec import fake_spec
from playground.fakes.topics import FakeTopic
from tests.unit.fake_walk import POLICY, KillAfter, LedgerInMemory, Scene, Walk

PATIENT = POLICY.model_copy(update={"canaries": True, "restart_deadline": timedelta(seconds=5)})
"""Of rolls, which a busy machine must not make fail."""
IMPATIENT = PATIENT.model_copy(update={"restart_deadline": timedelta(milliseconds=50)})


@pytest.fixture(scope="module")
async def road() -> tuple[Walk, Scene]:
    """A walk, and its first canary in KRaft mode, right before it."""
    cluster = FakeCluster(fake_spec(), boot_looks=1, catch_up_looks=1, copy_looks=2)
    walk = Walk(LedgerInMemory(cluster), cluster, policy=PATIENT)
    await walk.to("step", {"try": lambda s: (s.action, s.stage, s.node_id) == (StepAction.TRY_CANARIES, NodeStage.KRAFT, 1)})
    found, asked, _ = walk.found["try"]
    return walk, Scene(found, walk.ledger, asked.model_copy(update={"policy": IMPATIENT}))


def made(cluster: FakeCluster) -> list[str]:
    return [topic.name for topic in cluster.topics if is_reserved(topic.name)]


async def owing(cluster: FakeCluster) -> list[int]:
    marks = {b.id: await read_mark(cluster.driver(b), b.properties_file) for b in cluster.spec.brokers}
    return [broker for broker, mark in marks.items() if mark is not None and mark.are_canaries_due]


def leave(cluster: FakeCluster, name: str) -> None:
    """As an attempt that died leaves it; and nobody may remove it."""
    cluster.create_topic(FakeTopic(name, ((1,),), min_isr=1))
    cluster.faults.forbidden_canaries = {Canary.REMOVAL}


@pytest.mark.parametrize("canary", [Canary.TOPIC, Canary.MESSAGES, Canary.CONFIG, Canary.ACL, Canary.SCRAM])
async def test_what_we_may_not_do_holds_and_the_broker_is_not_tried_again(road: tuple[Walk, Scene], canary: Canary) -> None:
    walk, scene = road
    cluster = scene.copy()
    cluster.faults.forbidden_canaries = {canary}
    outcome = await scene.attempt(cluster, KillAfter())
    assert outcome.is_done
    assert f"canary {canary} failed at broker 1" in (outcome.hold_because or "")
    assert "resume" in (outcome.hold_because or "")
    assert (made(cluster), await owing(cluster)) == ([], [])
    assert await replace(walk, cluster=cluster, found={}).decision() != scene.request.step


async def test_what_we_may_not_remove_holds_and_is_told_with_its_command(road: tuple[Walk, Scene]) -> None:
    cluster = road[1].copy()
    leave(cluster, canary_of("m1", 1))
    outcome = await road[1].attempt(cluster, KillAfter())
    assert outcome.is_done
    told = f"left behind: topic {canary_of('m1', 1)}. Remove it: "
    assert [line for line in outcome.changes if line.startswith(told) and f"--delete --topic {canary_of('m1', 1)}" in line]
    assert told in (outcome.hold_because or "")
    assert await owing(cluster) == []


@pytest.mark.parametrize("is_permanent", [True, False], ids=["refused", "failing"])
async def test_the_way_back_ends_and_tells_what_is_left(road: tuple[Walk, Scene], is_permanent: bool) -> None:
    walk, scene = road
    cluster = scene.copy()
    leave(cluster, pause_topic_of("m1", 1))
    if not is_permanent:
        cluster.faults.forbidden_canaries, cluster.faults.failing_canaries = set(), {Canary.REMOVAL}
    back = replace(walk, ledger=LedgerInMemory(cluster), cluster=cluster, is_back=True, approvals={}, found={}, outcomes=[])
    await back.to("done", prefix="back")
    assert pause_topic_of("m1", 1) in made(cluster)
    told = [line for outcome in back.outcomes for line in outcome.changes if line.startswith("left behind: ")]
    assert [line.split(".")[0] for line in told] == [f"left behind: topic {pause_topic_of('m1', 1)}"]
    assert await owing(cluster) == []


async def test_who_takes_over_without_canaries_waits_for_no_removal(road: tuple[Walk, Scene]) -> None:
    scene = road[1]
    cluster = scene.copy()
    leave(cluster, canary_of("m1", 1))
    policy = IMPATIENT.model_copy(update={"canaries": False})
    other = replace(scene, request=scene.request.model_copy(update={"policy": policy}))
    outcome = await other.attempt(cluster, KillAfter())
    assert (outcome.is_done, outcome.hold_because, await owing(cluster)) == (True, None, [])
    assert any(canary_of("m1", 1) in line for line in outcome.changes)


async def test_what_is_owed_when_finalize_has_begun_is_removed_before_the_end() -> None:
    """After the log is final nothing is tried any more; the end removes it, and asks no ZooKeeper."""
    cluster = FakeCluster(fake_spec(), boot_looks=1, catch_up_looks=1, copy_looks=2)
    walk = Walk(LedgerInMemory(cluster), cluster, policy=POLICY)
    await walk.to("done")
    node = cluster.spec.brokers[0]
    driver = cluster.driver(node)
    mark = await read_mark(driver, node.properties_file)
    assert mark is not None
    path = next(path for path in cluster.nodes[1].machine.files if path.endswith(".mark"))
    file = cluster.nodes[1].machine.files[path]
    owed = mark.model_copy(update={"are_canaries_due": True}).model_dump_json().encode()
    cluster.nodes[1].machine.files[path] = replace(file, content=owed)
    cluster.create_topic(FakeTopic(canary_of("m1", 1), ((1,),), min_isr=1))
    step = await walk.decision()
    assert step == Step(action=StepAction.REMOVE_CANARIES, node_id=1, stage=NodeStage.KRAFT)
    await walk.to("done", prefix="end")
    assert (made(cluster), await owing(cluster)) == ([], [])
