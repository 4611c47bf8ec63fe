"""`KafkaAdmin`: two real brokers in ZooKeeper mode behind kafka-python, and the fake. Other modes: test_journey.py."""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from activities.adapters.kafka_admin import BrokerAdmin
from activities.adapters.secrets import EnvironmentAndFileSecrets
from activities.ports.kafka import KafkaAdmin
from activities.ports.replicas import ReplicaAdmin
from domain.checks.unapplied import unapplied
from domain.cluster import ClusterSpec, KafkaClientSpec
from domain.configuration.properties import parse
from domain.errors import Obstacle, Permanent, Transient
from domain.observed.observation import KafkaView
from domain.observed.replicas import LISTS, RATES, Partition, Throttles
from domain.records import ClusterRecord
from domain.zk_to_kraft.node_config import node_file
from domain.zk_to_kraft.steps import NodeStage
from playground.clients import admin_client
from playground.cluster import PlaygroundCluster
from playground.fakes.cluster import FakeCluster
from playground.fakes.replicas import FakeReplicas
from playground.fakes.spec import fake_spec
from playground.fakes.topics import FakeTopic
from playground.processes import running

AsRecord = Callable[[ClusterSpec], ClusterRecord]

TOPICS = (
    FakeTopic("alone", ((1,), (2,)), min_isr=1),
    FakeTopic("pair", ((1, 2), (2, 1)), min_isr=1),
    FakeTopic("tight", ((1, 2),), min_isr=2),
    FakeTopic("impossible", ((2, 1),), min_isr=3),
)


@dataclass
class Subject:
    """A cluster with `TOPICS`, and hands to take broker 2 away and give it back."""

    admin: KafkaAdmin
    replicas: ReplicaAdmin
    record: ClusterRecord
    stop: Callable[[], Awaitable[None]]
    start: Callable[[], Awaitable[None]]

    read: Callable[[int], Awaitable[str]]

    async def view(self) -> KafkaView:
        return await self.admin.view(self.record)

    async def until(self, is_wanted: Callable[[Partition], bool], topic: str = "alone", number: int = 0) -> Partition:
        """This partition, once it is as wanted. Brokers that disagree for a moment are asked again."""
        deadline = time.monotonic() + 60
        while True:
            told: object
            try:
                partitions = (await self.replicas.layout(self.record)).partitions
            except Transient as error:
                told = error
            else:
                told = seen = next(one for one in partitions if (one.topic, one.number) == (topic, number))
                if is_wanted(seen):
                    return seen
            assert time.monotonic() < deadline, told


@pytest.fixture(params=[pytest.param("brokers", marks=pytest.mark.cluster), "fake"])
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    if request.param == "fake":
        yield fake_subject()
        return
    cluster: PlaygroundCluster = request.getfixturevalue("cluster_with_topics")
    subject = real_subject(cluster, request.getfixturevalue("as_record")(cluster.spec))
    await settle(subject)
    yield subject
    await subject.start()


async def settle(subject: Subject) -> None:
    """Either broker may answer, and each learns of new topics in its own time: five good answers in a row."""
    await look_until(subject, lambda v: (v.topic_count, v.under_replicated, v.offline) == (len(TOPICS), (), ()), 5)


async def look_until(subject: Subject, is_wanted: Callable[[KafkaView], bool], times: int = 1) -> KafkaView:
    """A view that is as wanted so many times in a row. What cannot be known for a moment is looked at again."""
    deadline, good = time.monotonic() + 60, 0
    while True:
        try:
            view = await subject.view()
        except Transient as error:
            seen: object = error
            good = 0
        else:
            seen, good = view, good + 1 if is_wanted(view) else 0
            if good == times:
                return view
        assert time.monotonic() < deadline, seen


@pytest.fixture(scope="session")
def cluster_with_topics(real_cluster: PlaygroundCluster) -> PlaygroundCluster:
    create(admin_client(real_cluster.bootstrap_servers))
    real_cluster.await_view(lambda view: view.topics == {topic.name for topic in TOPICS}, "all topics")
    real_cluster.await_in_sync()
    return real_cluster


def create(client: AdminClient) -> None:
    topics = [
        NewTopic(
            topic.name,
            num_partitions=len(topic.assignment),
            replica_assignment=[list(replicas) for replicas in topic.assignment],
            config={"min.insync.replicas": str(topic.min_isr)},
        )
        for topic in TOPICS
    ]
    for created in client.create_topics(topics).values():
        created.result(timeout=20)


def real_subject(cluster: PlaygroundCluster, record: ClusterRecord) -> Subject:
    async def stop() -> None:
        cluster.kill_node(2)
        cluster.await_registered({1})

    async def start() -> None:
        if running(cluster.launch(2)) is None:
            cluster.start_node(2)
        cluster.await_in_sync()

    async def read(broker: int) -> str:
        return await asyncio.to_thread(Path(record.spec.node(broker).properties_file).read_text, "latin-1")

    admin = BrokerAdmin(EnvironmentAndFileSecrets())
    return Subject(admin, admin, record, stop, start, read)


def fake_subject() -> Subject:
    cluster = FakeCluster(fake_spec(brokers=2), topics=TOPICS)

    async def stop() -> None:
        cluster.kill(2)

    async def start() -> None:
        await cluster.driver(cluster.spec.node(2)).start()
        cluster.advance(10)

    async def read(broker: int) -> str:
        file = await cluster.driver(cluster.spec.node(broker)).read_file(cluster.spec.node(broker).properties_file)
        assert file is not None
        return file.content.decode("latin-1")

    return Subject(cluster, FakeReplicas(cluster), cluster.record(), stop, start, read)


async def test_a_healthy_cluster(subject: Subject) -> None:
    view = await subject.view()
    assert view.cluster_id == subject.record.spec.cluster_id
    assert view.broker_ids == (1, 2)
    assert (view.topic_count, view.partition_count) == (4, 6)
    assert (view.under_replicated, view.offline) == ((), ())


async def test_needs_names_what_a_stop_would_take_below_its_minimum(subject: Subject) -> None:
    """`pair` can spare one of two; `impossible` is below its minimum whoever runs, and must keep one replica."""
    view = await subject.view()
    assert sorted(view.needs[1]) == ["alone-0", "tight-0"]
    assert sorted(view.needs[2]) == ["alone-1", "tight-0"]


async def test_a_dead_broker_shows_until_its_replicas_are_back(subject: Subject) -> None:
    await subject.stop()
    view = await look_until(subject, lambda v: v.broker_ids == (1,) and len(v.offline) == 1)
    assert {fault.partition: fault.missing for fault in view.under_replicated} == dict.fromkeys(
        ("alone-1", "impossible-0", "pair-0", "pair-1", "tight-0"), (2,)
    )
    assert {fault.partition: fault.leader for fault in view.under_replicated if fault.leader != 1} == {"alone-1": None}
    assert view.offline == ("alone-1",)
    assert sorted(view.needs[1]) == ["alone-0", "impossible-0", "pair-0", "pair-1", "tight-0"]
    await subject.start()
    await settle(subject)
    healthy = await subject.view()
    assert (healthy.broker_ids, healthy.under_replicated, healthy.offline) == ((1, 2), (), ())


async def test_each_broker_answers_by_itself_as_long_as_it_runs(subject: Subject) -> None:
    first, second = subject.record.spec.kafka.bootstrap_servers
    for broker_id, address in ((1, first), (2, second)):
        await subject.admin.ask_broker(subject.record, broker_id, address, 2.0)
    await subject.stop()
    await subject.admin.ask_broker(subject.record, 1, first, 2.0)
    with pytest.raises(Transient, match="it accepts no connection"):
        await subject.admin.ask_broker(subject.record, 2, second, 2.0)


async def test_a_broker_that_answers_in_place_of_another_is_told(subject: Subject) -> None:
    """As where a balancer before the other one leads to it."""
    first, _ = subject.record.spec.kafka.bootstrap_servers
    with pytest.raises(Transient, match="broker 1 answers, and not broker 2") as told:
        await subject.admin.ask_broker(subject.record, 2, first, 2.0)
    assert told.value.obstacle is Obstacle.ANOTHERS


async def test_who_shares_partitions_is_told_whether_they_run_or_not(subject: Subject) -> None:
    """Four of the six partitions have both brokers."""
    shared = (await subject.view()).shared
    assert shared is not None
    (pair,) = shared
    assert (pair.brokers, pair.count) == ((1, 2), 4)
    assert pair.example in {"pair-0", "pair-1", "tight-0", "impossible-0"}
    await subject.stop()
    assert (await look_until(subject, lambda v: v.broker_ids == (1,))).shared == shared


async def test_racks_are_those_of_the_brokers_that_have_one(subject: Subject) -> None:
    racks = (await subject.view()).racks
    assert racks in ({}, {1: "rack-1", 2: "rack-2"}), "simulated brokers say nothing"
    assert bool(racks) is not isinstance(subject.admin, FakeCluster)


async def test_each_broker_tells_what_it_was_started_with(subject: Subject) -> None:
    """Its own, whoever is asked about it; and in its file nobody has changed a line."""
    told = await subject.admin.started_with(subject.record, [1, 2])
    for broker, runs in told.items():
        assert runs.values["broker.id"] == str(broker)
        assert "broker.id" in runs.public
        assert "process.roles" not in runs.values, "a default, or nothing"
        file, spec = parse(await subject.read(broker)), subject.record.spec
        hybrid = partial(node_file, spec=spec, node=spec.node(broker), stage=NodeStage.MIGRATION)
        assert unapplied(hybrid, file, runs) == ()
        edited = unapplied(hybrid, file | {"num.io.threads": "1"}, runs)
        assert [one.key for one in edited] == ["num.io.threads"]


async def test_preferred_leaders_are_elected_where_others_lead(subject: Subject) -> None:
    """Broker 2 was away: the second partition of `pair` and `impossible` are led by broker 1, until somebody asks."""
    await subject.stop()
    await look_until(subject, lambda v: v.broker_ids == (1,))
    await subject.start()
    await settle(subject)
    elected = [await subject.admin.elect_preferred(subject.record) for _ in range(5)]
    assert sum(elected) == 2
    assert elected[-1] == 0
    await settle(subject)


async def test_a_layout_has_every_partition_and_broker(subject: Subject) -> None:
    layout = await subject.replicas.layout(subject.record)
    assert [broker.id for broker in layout.brokers] == [1, 2]
    assert all(broker.is_open for broker in layout.brokers)
    told = {(one.topic, one.number): one for one in layout.partitions}
    assert list(told) == sorted((topic.name, n) for topic in TOPICS for n in range(len(topic.assignment)))
    for topic in TOPICS:
        for number, replicas in enumerate(topic.assignment):
            one = told[topic.name, number]
            assert (one.replicas, one.leader, set(one.in_sync)) == (replicas, replicas[0], set(replicas))
            assert not one.is_moving
            assert len(one.topic_id) == 22
    assert len({one.topic_id for one in layout.partitions}) == len(TOPICS)


async def test_a_partition_grows_and_shrinks_and_keeps_its_leader(subject: Subject) -> None:
    assert await subject.replicas.reassign(subject.record, {("alone", 0): (1, 2)}) == {}
    grown = await subject.until(lambda one: set(one.in_sync) == {1, 2} and not one.is_moving)
    assert (grown.replicas, grown.leader) == ((1, 2), 1)
    assert await subject.replicas.reassign(subject.record, {("alone", 0): (1,)}) == {}
    shrunk = await subject.until(lambda one: one.replicas == (1,) and not one.is_moving)
    assert (shrunk.in_sync, shrunk.leader) == ((1,), 1)


async def test_each_refusal_is_told_and_keeps_no_other_from_being_accepted(subject: Subject) -> None:
    targets = {("alone", 0): (1, 9), ("alone", 1): (2, 1), ("alone", 7): (1,), ("nobody", 0): (1,), ("pair", 0): None}
    refused = await subject.replicas.reassign(subject.record, targets)
    assert set(refused) == {("alone", 0), ("alone", 7), ("nobody", 0)}
    assert all(refused.values())
    await subject.until(lambda one: set(one.in_sync) == {1, 2}, number=1)
    assert await subject.replicas.reassign(subject.record, {("alone", 1): (2,)}) == {}
    assert (await subject.until(lambda one: one.replicas == (2,), number=1)).leader == 2


async def test_a_target_that_is_down_is_accepted_waited_for_and_cancelled(subject: Subject) -> None:
    await subject.stop()
    await look_until(subject, lambda v: v.broker_ids == (1,))
    assert (await subject.until(lambda one: one.leader == 1)).is_moving is False
    accepted = await subject.replicas.reassign(subject.record, {("alone", 0): (1, 2)})
    if accepted:  # In ZooKeeper mode the controller asks whether the new replicas live.
        assert set(accepted) == {("alone", 0)}
        return
    waiting = await subject.until(lambda one: one.is_moving)
    assert (waiting.adding, waiting.target, waiting.in_sync) == ((2,), (1, 2), (1,))
    assert await subject.replicas.reassign(subject.record, {("alone", 0): None}) == {}
    assert (await subject.until(lambda one: not one.is_moving)).replicas == (1,)


async def test_throttles_are_set_read_back_and_removed_and_leave_others_alone(subject: Subject) -> None:
    admin, record = subject.replicas, subject.record
    none = Throttles({1: {}, 2: {}}, {}, {"alone": {}, "pair": {}})
    assert await admin.throttles(record, [1, 2], ["alone", "pair", "nobody"]) == none
    rate, listed = dict.fromkeys(RATES, "1000000"), {LISTS[0]: "0:1", LISTS[1]: "0:2"}
    await admin.set_throttles(record, Throttles({1: rate, 2: {RATES[1]: "5"}}, {}, {"alone": listed}))

    async def read(wanted: Throttles) -> None:
        deadline = time.monotonic() + 30
        while (seen := await admin.throttles(record, [1, 2], ["alone", "pair"])) != wanted:
            assert time.monotonic() < deadline, seen

    await read(Throttles({1: rate, 2: {RATES[1]: "5"}}, {}, {"alone": listed, "pair": {}}))
    await admin.set_throttles(record, Throttles({1: {RATES[0]: ""}, 2: {RATES[1]: ""}}, {}, {"alone": {LISTS[1]: ""}}))
    await read(Throttles({1: {RATES[1]: "1000000"}, 2: {}}, {}, {"alone": {LISTS[0]: "0:1"}, "pair": {}}))
    await admin.set_throttles(record, Throttles({1: dict.fromkeys(RATES, "")}, {}, {"alone": dict.fromkeys(LISTS, "")}))
    await read(none)


async def test_a_silent_fake_is_transient() -> None:
    cluster = FakeCluster()
    cluster.faults.silent_kafka = True
    for asked in (cluster.view, cluster.elect_preferred, FakeReplicas(cluster).layout):
        with pytest.raises(Transient):
            await asked(cluster.record())


@pytest.mark.parametrize("port", [1, 2])
async def test_nobody_there_is_transient(as_record: AsRecord, port: int) -> None:
    admin = BrokerAdmin(EnvironmentAndFileSecrets(), seconds=1.0)
    for asked in (admin.view, admin.elect_preferred, admin.layout):
        with pytest.raises(Transient):
            await asked(as_record(at(f"127.0.0.1:{port}")))


@pytest.mark.parametrize("line", ["security.protocol = hunter2", "hunter.2 = hunter2"])
async def test_a_bad_client_property_is_permanent_and_its_value_stays_secret(
    as_record: AsRecord, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setenv("CLIENT", f"# our client\n{line}\n")
    with pytest.raises(Permanent) as refused:
        await BrokerAdmin(EnvironmentAndFileSecrets()).view(as_record(at("127.0.0.1:1", "env:CLIENT")))
    assert line.partition(" ")[0] in str(refused.value)
    assert "hunter2" not in f"{refused.value}{refused.value.__cause__}"


async def test_somebody_who_does_not_speak_is_transient_in_time_and_leaves_no_thread(as_record: AsRecord) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        with pytest.raises(Transient):
            await BrokerAdmin(EnvironmentAndFileSecrets(), seconds=0.5).view(
                as_record(at(f"127.0.0.1:{silent.getsockname()[1]}"))
            )
        assert time.monotonic() - began < 5
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("kafka-io")]


@pytest.mark.cluster
async def test_views_leave_no_thread(cluster_with_topics: PlaygroundCluster, as_record: AsRecord) -> None:
    admin, record = BrokerAdmin(EnvironmentAndFileSecrets()), as_record(cluster_with_topics.spec)
    cluster_with_topics.await_in_sync()
    began, rounds = time.monotonic(), 10
    for _ in range(rounds):
        await admin.view(record)
    print(f"one view: {(time.monotonic() - began) / rounds * 1000:.0f} ms")
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("kafka-io")]


@pytest.mark.cluster
async def test_topics_that_come_and_go_keep_nobody_from_looking(
    cluster_with_topics: PlaygroundCluster, as_record: AsRecord
) -> None:
    """As a job does that makes topics and deletes them: they are there when all are listed, and not when they are asked for."""
    admin, record = BrokerAdmin(EnvironmentAndFileSecrets()), as_record(cluster_with_topics.spec)
    cluster_with_topics.await_in_sync()
    client, is_over, made = admin_client(cluster_with_topics.bootstrap_servers), threading.Event(), 0

    def come_and_go() -> None:
        nonlocal made
        while not is_over.is_set():
            for created in client.create_topics([NewTopic(f"run-{made}", 1, 2)]).values():
                created.result(timeout=20)
            for deleted in client.delete_topics([f"run-{made}"]).values():
                deleted.result(timeout=20)
            made += 1

    job = threading.Thread(target=come_and_go)
    job.start()
    try:
        while made < 30:
            view = await admin.view(record)
            assert view.topic_count >= len(TOPICS)
            told = {one.topic for one in await admin.offsets(record)}
            assert told >= {topic.name for topic in TOPICS}
    finally:
        is_over.set()
        job.join(60)
    await settle(real_subject(cluster_with_topics, record))


def at(bootstrap: str, client_properties: str | None = None) -> ClusterSpec:
    kafka = KafkaClientSpec(bootstrap_servers=(bootstrap,), client_properties=client_properties)
    return fake_spec().model_copy(update={"kafka": kafka})


async def test_log_directories_of_every_broker_are_online(subject: Subject) -> None:
    found = await subject.admin.log_dirs(subject.record)
    assert [(one.broker_id, one.path) for one in found] == [(b.id, b.log_dirs[0]) for b in subject.record.spec.brokers]
    assert not any(one.is_offline for one in found)


async def test_sizes_of_partitions_grow_with_what_is_written(subject: Subject) -> None:
    asked = {1: ("alone-0", "alone-9"), 2: ("pair-1", "nobody-0", "alone-0")}
    before = await subject.admin.sizes(subject.record, asked)
    assert before.keys() == {"alone-0", "pair-1"}
    client = await subject.admin.open_client(subject.record)
    try:
        await client.produce(1, "alone", 0, b"x" * 100_000)
    finally:
        await client.close()
    now = await subject.admin.sizes(subject.record, asked)
    assert 100_000 <= now["alone-0"] - before["alone-0"] < 200_000
    assert now["pair-1"] == before["pair-1"]


async def test_a_log_directory_that_the_fakes_broker_has_given_up() -> None:
    cluster = FakeCluster()
    cluster.faults.offline_dirs.add(cluster.spec.brokers[0].log_dirs[0])
    found = await cluster.log_dirs(cluster.record())
    assert [one.broker_id for one in found if one.is_offline] == [1]
