"""A topic that loses its id in ZooKeeper during dual write, on real servers: named, cured by its fix, or accepted by name.

As a tool leaves it that is older than topics' ids. One cluster serves both tests.
"""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.observing.node_texts import read_files
from activities.observing.topics import topic_znodes, topics_on_disk
from activities.ports.zookeeper import session
from domain.decisions import Wait
from domain.rulings import Ruling
from domain.topic_ids import cure_of_no_id, put_back
from domain.zk_to_kraft.assessment import assess
from domain.zk_to_kraft.losses import TOPIC_IDS
from domain.zk_to_kraft.preview import preview_of
from domain.zk_to_kraft.situation import Claim
from domain.zk_to_kraft.waits import ZkWait
from playground.clients import admin_client
from playground.cluster import PlaygroundCluster
from playground.field import POLICY, Field
from playground.load import KEEP, Load
from playground.seed import Topic, create_topics, seed

pytestmark = [pytest.mark.cluster, pytest.mark.chaos, pytest.mark.timeout(600), pytest.mark.xdist_group("topics-without-id")]
LOST = Topic("lost.id", 3, config={"min.insync.replicas": "2"} | KEEP)
PATH = f"/brokers/topics/{LOST.name}"
SECONDS, SETTLED_SECONDS = 60.0, 5.0


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    directory = tmp_path_factory.mktemp("topics")
    with PlaygroundCluster(directory / "cluster", announce=print) as cluster:
        seed(cluster.bootstrap_servers)
        create_topics(admin_client(cluster.bootstrap_servers), (LOST,))
        yield Field(cluster, directory / "artefacts")


def lose_id(field: Field) -> str:
    """What it was."""
    with field.hand.zookeeper() as client:
        content = json.loads(client.get(PATH)[0])
        topic_id = str(content.pop("topic_id"))
        client.set(PATH, json.dumps(content | {"version": 1}).encode())
    return topic_id


def id_in_zookeeper(field: Field) -> str | None:
    with field.hand.zookeeper() as client:
        found: str | None = json.loads(client.get(PATH)[0]).get("topic_id")
    return found


async def leaderless(field: Field) -> list[str]:
    return [partition for partition in await field.without_leader() if partition.startswith(LOST.name)]


async def until_led(field: Field) -> None:
    end = time.monotonic() + SECONDS
    while found := await leaderless(field):
        assert time.monotonic() < end, found
        await asyncio.sleep(0.5)


async def fix_of(field: Field, *, is_led_by_zookeeper: bool) -> str:
    """As `blockers` has it."""
    (topic,) = await topics_on_disk(field.record, field.ports, [LOST.name])
    return cure_of_no_id(topic, field.cluster.spec, is_led_by_zookeeper=is_led_by_zookeeper).fix


async def test_a_lost_id_is_named_and_put_back_before_the_window(field: Field, tmp_path: Path) -> None:
    load = Load(field.cluster.bootstrap_servers, tmp_path / "load", topics=(LOST,))
    with load:
        load.await_acknowledged(100)
    await field.dual_write()
    topic_id = lose_id(field)
    seen, spec = await field.observation(), field.cluster.spec
    decision = assess(seen, spec, POLICY, Ruling(), "").decision
    assert isinstance(decision, Wait)
    assert (decision.reason, decision.objects) == (ZkWait.TOPIC_WITHOUT_ID, (f"topic {LOST.name}",))
    preview = preview_of(seen, spec, POLICY, await read_files(field.record, seen, field.ports))
    (loss,) = (loss for loss in preview.losses if loss.name == TOPIC_IDS)
    assert LOST.name in loss.what
    outcome = await field.leave()
    assert not outcome.is_done
    assert ZkWait.TOPIC_WITHOUT_ID in (outcome.blocked or "")
    assert (await field.situation()).claim is Claim.KRAFT, "no controller was touched"
    fix = await fix_of(field, is_led_by_zookeeper=False)
    field.hand.type_fix(fix)
    assert id_in_zookeeper(field) == topic_id
    assert (await field.situation()).claim is Claim.KRAFT
    outcome = await field.leave()
    assert outcome.is_done, outcome.blocked
    assert id_in_zookeeper(field) == topic_id
    await until_led(field)
    report = load.verify()
    print(f"an id was lost in dual write and put back: {report}")
    assert report.lost == frozenset()


async def test_an_accepted_loss_makes_up_an_id_that_can_be_undone(field: Field) -> None:
    """What the preview warns of is what Kafka does."""
    await field.dual_write()
    topic_id = lose_id(field)
    assert not (await field.leave()).is_done
    outcome = await field.leave(accepts=(TOPIC_IDS,))
    assert outcome.is_done, outcome.blocked
    made_up = id_in_zookeeper(field)
    assert made_up not in {None, topic_id}
    await asyncio.sleep(SETTLED_SECONDS)
    print(f"{topic_id} became {made_up}; without a leader, as metadata has it: {await leaderless(field)}")
    async with session(field.ports.zookeepers, field.record) as tree:
        (znode,) = await topic_znodes(tree, [LOST.name])
    field.hand.type_fix(put_back(znode, topic_id, field.cluster.spec, is_led_by_zookeeper=True))
    assert id_in_zookeeper(field) == topic_id
    await until_led(field)
