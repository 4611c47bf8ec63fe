"""`KafkaAdmin.offsets` and `group_offsets`: two real brokers behind kafka-python, and the fake."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from activities.adapters.kafka_admin import BrokerAdmin
from activities.adapters.secrets import EnvironmentAndFileSecrets
from activities.ports.kafka import KafkaAdmin
from domain.cluster import ClusterSpec
from domain.errors import Transient
from domain.offsets import GroupOffset
from domain.records import ClusterRecord
from playground.clients import admin_client, client_configuration
from playground.cluster import PlaygroundCluster
from playground.committing import commit_offsets
from playground.fakes.cluster import FakeCluster
from playground.fakes.spec import fake_spec
from playground.fakes.topics import FakeTopic
from playground.processes import wait_until

COUNTED, TABLE = "offsets-counted", "offsets-table"
RECORDS = {(COUNTED, 0): 7, (COUNTED, 1): 0, (TABLE, 0): 3}
GROUPS = (GroupOffset("billing", COUNTED, 0, 4), GroupOffset("billing", TABLE, 0, 3), GroupOffset("audit", COUNTED, 0, 7))


@dataclass
class Subject:
    admin: KafkaAdmin
    record: ClusterRecord


@pytest.fixture(params=[pytest.param("brokers", marks=pytest.mark.cluster), "fake"])
def subject(request: pytest.FixtureRequest) -> Subject:
    if request.param == "fake":
        fake = FakeCluster(fake_spec(brokers=2), topics=(FakeTopic(COUNTED, ((1, 2), (2, 1))), FakeTopic(TABLE, ((2, 1),))))
        fake.log_ends, fake.compacted, fake.groups = dict(RECORDS), {TABLE}, GROUPS
        return Subject(fake, fake.record())
    cluster: PlaygroundCluster = request.getfixturevalue("cluster_with_records")
    return Subject(BrokerAdmin(EnvironmentAndFileSecrets()), request.getfixturevalue("as_record")(cluster.spec))


@pytest.fixture(scope="module")
def cluster_with_records(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlaygroundCluster]:
    """Seven records, none, and three in a compacted topic; two groups, one of them on two topics. Three brokers of its own:
    the coordinator's topic wants them, and would be one too many for tests that count topics.
    """
    with PlaygroundCluster(tmp_path_factory.mktemp("offsets")) as cluster:
        fill(cluster)
        yield cluster


def fill(cluster: PlaygroundCluster) -> None:
    admin = admin_client(cluster.bootstrap_servers)
    topics = [NewTopic(COUNTED, 2, 2), NewTopic(TABLE, 1, 2, config={"cleanup.policy": "delete,compact"})]
    for created in admin.create_topics(topics).values():
        created.result(20)
    cluster.await_in_sync()
    producer = Producer(client_configuration(cluster.bootstrap_servers))
    for (topic, partition), count in RECORDS.items():
        for number in range(count):
            producer.produce(topic, b"value", key=b"%d" % number, partition=partition)
    assert producer.flush(30) == 0
    commit(cluster)


def commit(cluster: PlaygroundCluster) -> None:
    for group in sorted({one.group for one in GROUPS}):
        wanted = {(one.topic, one.partition): one.committed for one in GROUPS if one.group == group}
        commit_offsets(cluster.bootstrap_servers, group, wanted)
    wait_until(lambda: bool(cluster.view()) and not cluster.view().under_replicated, "the coordinator's replicas", 60)


async def test_each_partition_has_its_bounds_and_its_topics_policy(subject: Subject) -> None:
    found = {(one.topic, one.partition): one for one in await subject.admin.offsets(subject.record)}
    ours = {key: (one.start, one.end, one.is_compacted) for key, one in found.items() if key in RECORDS}
    assert ours == {key: (0, count, key[0] == TABLE) for key, count in RECORDS.items()}
    assert {len(found[key].topic_id) for key in RECORDS} == {22}
    assert list(found) == sorted(found)


async def test_all_that_groups_committed(subject: Subject) -> None:
    found = await subject.admin.group_offsets(subject.record)
    assert found == tuple(sorted(GROUPS, key=lambda one: (one.group, one.topic, one.partition)))


@pytest.mark.parametrize("ask", [FakeCluster.offsets, FakeCluster.group_offsets])
async def test_a_silent_fake_is_transient(ask: Callable[..., object]) -> None:
    cluster = FakeCluster()
    cluster.faults.silent_kafka = True
    with pytest.raises(Transient):
        await ask(cluster, cluster.record())


async def test_nobody_there_is_transient(as_record: Callable[[ClusterSpec], ClusterRecord]) -> None:
    spec = fake_spec()
    nowhere = spec.model_copy(update={"kafka": spec.kafka.model_copy(update={"bootstrap_servers": ("127.0.0.1:1",)})})
    admin = BrokerAdmin(EnvironmentAndFileSecrets(), seconds=1.0)
    for ask in (admin.offsets, admin.group_offsets):
        with pytest.raises(Transient):
            await ask(as_record(nowhere))
