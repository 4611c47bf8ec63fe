"""`KafkaClient`: two real brokers in ZooKeeper mode behind kafka-python, and the fake. Other modes: test_canaries.py."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from activities.adapters.kafka_admin import BrokerAdmin
from activities.adapters.secrets import EnvironmentAndFileSecrets
from activities.adapters.zookeeper import KazooEnsembles
from activities.ports.kafka import KafkaAdmin, KafkaClient, Led
from activities.ports.ports import Ports
from activities.ports.zookeeper import ZooKeeperTree
from activities.survey.canaries import refused_canaries
from domain.canaries import canary_of, is_reserved
from domain.cluster import ClusterSpec
from domain.errors import Absent, Obstacle, Transient
from domain.records import ClusterRecord
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from playground.cluster import PlaygroundCluster
from playground.fakes.cluster import FakeCluster
from playground.fakes.spec import fake_spec
from playground.processes import wait_until
from playground.wire_requests import Quota, alter_quotas

AsRecord = Callable[[ClusterSpec], ClusterRecord]
NAME = canary_of("conformance", 2)


@dataclass
class Subject:
    """A client of a cluster in ZooKeeper mode, whose brokers have an authorizer, and a session in its ZooKeeper."""

    admin: KafkaAdmin
    record: ClusterRecord
    client: KafkaClient
    tree: ZooKeeperTree

    async def until(self, ask: Callable[[], Any], wanted: Any) -> None:
        for _ in range(200):
            found = await ask()
            if found == wanted:
                return
            await pause()
        raise AssertionError(f"{found}, wanted {wanted}")


async def pause() -> None:
    await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def cluster_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlaygroundCluster]:
    """In ZooKeeper mode, whatever other tests have made of theirs."""
    with PlaygroundCluster(tmp_path_factory.mktemp("clients"), broker_count=2) as cluster:
        yield cluster


@pytest.fixture(params=[pytest.param("brokers", marks=pytest.mark.cluster), "fake"])
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    if request.param == "fake":
        fake = FakeCluster(fake_spec(brokers=2))
        record = fake.record()
        yield Subject(fake, record, await fake.open_client(record), await fake.connect(record))
        return
    cluster: PlaygroundCluster = request.getfixturevalue("cluster_of_its_own")
    record = request.getfixturevalue("as_record")(cluster.spec)
    cluster.await_in_sync()
    admin, tree = BrokerAdmin(EnvironmentAndFileSecrets()), await KazooEnsembles(EnvironmentAndFileSecrets()).connect(record)
    client = await opened(admin, record)
    try:
        yield Subject(admin, record, client, tree)
    finally:
        await client.close()
        await tree.close()
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("kafka-io")]


async def opened(admin: KafkaAdmin, record: ClusterRecord) -> KafkaClient:
    """Brokers register a moment before they listen."""
    for _ in range(100):
        client = await admin.open_client(record)
        try:
            await client.topics(1)
            await client.topics(2)
        except Transient:
            await client.close()
            await pause()
            continue
        return client
    raise AssertionError("no broker listens")


async def test_a_topic_comes_has_a_config_takes_messages_and_goes(subject: Subject) -> None:
    client = subject.client
    assert await client.alive() == (1, 2)
    assert await client.led(NAME) is None
    before = await subject.admin.view(subject.record)
    for _ in range(2):
        await client.create_topic(2, NAME, [[2]], {"min.insync.replicas": "1"})
    await subject.until(lambda: client.led(NAME, 1), Led({0: 2}, {0: (2,)}))
    await subject.until(lambda: client.led(NAME, 2), Led({0: 2}, {0: (2,)}))
    assert NAME in await client.topics(2)
    assert await client.topic_config(2, NAME, "min.insync.replicas") == "1"
    await client.set_topic_config(2, NAME, "retention.ms", "3600000")
    await subject.until(lambda: client.topic_config(2, NAME, "retention.ms"), "3600000")
    first = await client.produce(2, NAME, 0, b"one")
    second = await client.produce(2, NAME, 0, b"two")
    assert second == first + 1
    assert await client.fetch(2, NAME, 0, first) == (b"one", b"two")
    assert await client.fetch(2, NAME, 0, second) == (b"two",)
    assert await subject.tree.get(f"/brokers/topics/{NAME}") is not None
    assert await subject.admin.view(subject.record) == before, "no look counts it"
    await client.delete_topic(2, NAME)
    await subject.until(lambda: client.led(NAME, 1), None)
    await subject.until(lambda: client.led(NAME, 2), None)
    await subject.until(lambda: subject.tree.get(f"/brokers/topics/{NAME}"), None)
    await subject.until(lambda: subject.tree.get(f"/config/topics/{NAME}"), None)
    await client.delete_topic(2, NAME)


async def test_what_does_not_lead_a_partition_takes_nothing(subject: Subject) -> None:
    client = subject.client
    await client.create_topic(1, NAME, [[2]], {"min.insync.replicas": "1"})
    await subject.until(lambda: client.led(NAME, 1), Led({0: 2}, {0: (2,)}))
    with pytest.raises(Transient):
        await client.produce(1, NAME, 0, b"to the wrong one")
    with pytest.raises(Transient):
        await client.produce(2, "keeperless-canary-nobody-made", 0, b"to nobody")
    await client.delete_topic(2, NAME)
    await subject.until(lambda: client.led(NAME, 2), None)


async def test_an_acl_comes_and_goes(subject: Subject) -> None:
    client = subject.client
    assert NAME not in (await client.denied_groups(2) or ())
    for _ in range(2):
        await client.deny_group(2, NAME)
    for broker in (1, 2):
        await subject.until(lambda broker=broker: client.denied_groups(broker), (NAME,))
    assert await subject.tree.get(f"/kafka-acl/Group/{NAME}") is not None
    for _ in range(2):
        await client.forget_group(2, NAME)
    for broker in (1, 2):
        await subject.until(lambda broker=broker: client.denied_groups(broker), ())
    await subject.until(lambda: subject.tree.get(f"/kafka-acl/Group/{NAME}"), None)


async def test_a_scram_credential_comes_and_goes(subject: Subject) -> None:
    client = subject.client
    assert NAME not in await client.scram_users(2)
    await client.give_scram(2, NAME)
    await subject.until(lambda: client.scram_users(2), (NAME,))
    await subject.until(lambda: client.scram_users(1), (NAME,))
    found = await subject.tree.get(f"/config/users/{NAME}")
    assert found is not None
    assert b"SCRAM-SHA-512" in found.data
    for _ in range(2):
        await client.take_scram(2, NAME)
    await subject.until(lambda: client.scram_users(2), ())


async def test_to_see_whether_canaries_could_be_made_makes_and_removes_nothing(subject: Subject) -> None:
    before = await subject.client.topics(1), await subject.client.scram_users(1), await subject.client.denied_groups(1)
    nobody = cast("Any", None)
    ports = Ports(nobody, nobody, nobody, subject.admin, nobody, nobody)
    policy = ZkToKraftPolicy(canaries=True)
    assert await refused_canaries(subject.record, policy, ports) == ()
    after = await subject.client.topics(1), await subject.client.scram_users(1), await subject.client.denied_groups(1)
    assert after == before
    assert not [name for name in await subject.tree.children("/config/users") or () if is_reserved(name)]
    assert not [name for name in await subject.tree.children("/brokers/topics") or () if is_reserved(name)]


async def test_a_topic_that_is_not_there_is_told_apart_from_a_broker_that_does_not_answer(subject: Subject) -> None:
    for asked in (
        lambda: subject.client.fetch(1, "absent", 0, 0),
        lambda: subject.client.produce(1, "absent", 0, b"x"),
        lambda: subject.client.set_topic_config(1, "absent", "retention.ms", "1"),
    ):
        with pytest.raises(Absent):
            await asked()


async def test_a_broker_tells_its_own_configs(subject: Subject) -> None:
    assert await subject.client.broker_config(1, "min.insync.replicas") == "2"
    assert await subject.client.broker_config(1, "delete.topic.enable") == "true"
    assert await subject.client.broker_config(1, "no.such.config") is None


async def test_a_broker_that_is_not_there_is_transient(subject: Subject) -> None:
    with pytest.raises(Transient):
        await subject.client.topics(77)


@pytest.mark.cluster
async def test_a_client_outlives_the_restart_of_a_broker(cluster_of_its_own: PlaygroundCluster, as_record: AsRecord) -> None:
    cluster_of_its_own.await_in_sync()
    client = await opened(BrokerAdmin(EnvironmentAndFileSecrets()), as_record(cluster_of_its_own.spec))
    try:
        cluster_of_its_own.kill_node(2)
        with pytest.raises(Transient):
            await client.topics(2)
        cluster_of_its_own.await_registered({1})
        cluster_of_its_own.start_node(2)
        cluster_of_its_own.await_in_sync()
        for _ in range(100):
            try:
                await client.topics(2)
            except Transient:
                await pause()
                continue
            break
        assert await client.alive() == (1, 2)
    finally:
        await client.close()
    wait_until(lambda: not [t for t in threading.enumerate() if t.name.startswith("kafka-io")], "the thread's end", 10)


@pytest.mark.cluster
async def test_a_quota_of_changes_is_told_as_what_it_is(cluster_of_its_own: PlaygroundCluster, as_record: AsRecord) -> None:
    """Kafka takes one change beyond it, and refuses the next."""
    cluster = cluster_of_its_own
    cluster.await_in_sync()
    client = await opened(BrokerAdmin(EnvironmentAndFileSecrets()), as_record(cluster.spec))
    quota = Quota({"user": None}, {"controller_mutation_rate": 0.001})
    alter_quotas(cluster.bootstrap_servers, [quota])
    try:
        with pytest.raises(Transient, match="controller_mutation_rate") as refused:
            await topic_after_topic(client)
        assert refused.value.obstacle is Obstacle.QUOTA
    finally:
        alter_quotas(cluster.bootstrap_servers, [replace(quota, values={"controller_mutation_rate": 1e6})])
        await client.close()
        another = await opened(BrokerAdmin(EnvironmentAndFileSecrets()), as_record(cluster.spec))  # who was refused has to wait
        for topic in filter(is_reserved, await another.topics(2)):
            await another.delete_topic(2, topic)
        await another.close()


async def topic_after_topic(client: KafkaClient) -> None:
    for number in range(50):
        await client.create_topic(2, f"{NAME}-{number}", [[2]], {"min.insync.replicas": "1"})
        await pause()
