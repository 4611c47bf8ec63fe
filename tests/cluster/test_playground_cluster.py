"""The whole playground on real servers: up, seeded, written to, hurt, healed, proved, and gone."""

import json
import os
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AclBindingFilter, AclOperation, AclPermissionType, ResourcePatternType, ResourceType
from temporalio.client import Client

from domain.errors import Transient
from playground.clients import admin_client
from playground.cluster import PlaygroundCluster, processes_in, stop_everything_in
from playground.load import LOAD_TOPICS, Load
from playground.ports import PortLease
from playground.processes import PeakMemory, is_alive, wait_until
from playground.seed import ACLS, TOPICS, seed
from playground.temporal import TemporalPorts, TemporalServer
from playground.wanted import read_parts

pytestmark = pytest.mark.cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[PlaygroundCluster]:
    with PlaygroundCluster(tmp_path / "cluster", prometheus=[3], announce=print) as cluster:
        yield cluster


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310
        return str(answer.read().decode("utf-8"))


def test_kill_of_a_broker_under_load_loses_nothing(cluster: PlaygroundCluster) -> None:
    seed(cluster.bootstrap_servers)
    memory = PeakMemory(cluster.pids)
    memory.start()
    load = Load(cluster.bootstrap_servers, cluster.directory / "load")
    with load:
        load.await_acknowledged(400)
        before = cluster.launch(2).pid_file.read_text()
        cluster.kill_node(2)
        noticed = cluster.await_registered({1, 3})
        load.await_acknowledged(200)
        cluster.start_node(2)
        healed = cluster.await_in_sync()
        load.await_acknowledged(400)
    report = load.verify()
    print(f"kill noticed after {noticed:.1f} s, in sync {healed:.1f} s after the restart, {memory.stop():.0f} MiB, {report}")
    assert cluster.launch(2).pid_file.read_text() != before
    assert report.acknowledged >= 1000
    assert report.lost == frozenset()
    assert report.duplicated == frozenset()
    assert report.unacknowledged == 0
    assert load.counters().consumed > 0
    assert 1 < report.longest_pause_seconds < 30, "the kill of a leader was felt"


def test_the_check_sees_a_loss(cluster: PlaygroundCluster) -> None:
    """Deletes records that were acknowledged: a check that cannot fail proves nothing."""
    load = Load(cluster.bootstrap_servers, cluster.directory / "load")
    with load:
        load.await_acknowledged(400)
    strict = LOAD_TOPICS[0]
    beginnings = [TopicPartition(strict.name, number, 3) for number in range(strict.partitions)]
    admin = admin_client(cluster.bootstrap_servers)  # kept: a client that is collected never finishes its futures
    for deleted in admin.delete_records(beginnings).values():
        deleted.result(30)
    report = load.verify()
    assert len(report.lost) == 3 * strict.partitions
    assert report.acknowledged - report.read_back == len(report.lost)
    with pytest.raises(RuntimeError, match="holds another run"):
        load.start()


def test_a_load_whose_process_ends_is_noticed(cluster: PlaygroundCluster) -> None:
    load = Load(cluster.bootstrap_servers, cluster.directory / "load")
    with load:
        psutil.Process(load.pids()[0]).kill()
        with pytest.raises(Transient, match="load has ended"):
            load.await_acknowledged(1_000_000)
    assert load.verify().lost == frozenset(), "what a killed load had written down is compared as well"


def test_the_spec_describes_what_runs(cluster: PlaygroundCluster) -> None:
    spec = read_parts(cluster.directory)
    assert spec == cluster.spec
    view = cluster.view()
    assert view is not None
    assert view.cluster_id == spec.cluster_id
    assert [controller.id for controller in spec.controllers] == [3001, 3002, 3003]
    assert [broker.rack for broker in spec.brokers] == ["rack-1", "rack-2", "rack-3"]
    for broker in spec.brokers:
        arguments = psutil.Process(int(Path(broker.driver.service.pid_file).read_text())).cmdline()
        assert arguments[-2:] == ["kafka.Kafka", broker.properties_file]
        assert not Path(spec.controllers[0].properties_file).exists()
    # Registered comes a moment before RUNNING (3).
    jolokia = f"{spec.brokers[0].metrics.url}/read/kafka.server:type=KafkaServer,name=BrokerState"
    wait_until(lambda: json.loads(fetched(jolokia))["value"] == {"Value": 3}, "broker 1 to run", 30)
    exported = 'kafka_server_KafkaServer_Value{name="BrokerState"} 3.0'
    wait_until(lambda: exported in fetched(spec.brokers[2].metrics.url), "broker 3 to run", 30)


def test_the_seed_is_what_was_wanted_and_may_be_sown_twice(cluster: PlaygroundCluster) -> None:
    for _ in range(2):
        seed(cluster.bootstrap_servers)
    admin = admin_client(cluster.bootstrap_servers)
    topics = admin.list_topics(timeout=10).topics
    for topic in TOPICS:
        partitions = topics[topic.name].partitions.values()
        assert len(partitions) == topic.partitions
        assert {len(partition.replicas) for partition in partitions} == {topic.replication_factor}
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    assert set(admin.describe_acls(everything).result(30)) == set(ACLS)
    users = {user: future.result(30) for user, future in admin.describe_user_scram_credentials(["alice", "bob"]).items()}
    assert {user: len(found.scram_credential_infos) for user, found in users.items()} == {"alice": 2, "bob": 1}


def test_nothing_is_left_when_the_body_raises(tmp_path: Path) -> None:
    """A controller that somebody else started is stopped by its pid file as well."""
    seen: list[int] = []

    def fail_inside() -> None:
        with PlaygroundCluster(tmp_path / "cluster", broker_count=1) as cluster:
            seen.extend(cluster.pids())
            stand_in = cluster.spec.controllers[0]
            Path(stand_in.properties_file).write_text(Path(cluster.spec.brokers[0].properties_file).read_text())
            seen.append(cluster.start_node(stand_in.id))
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fail_inside()
    assert len(seen) == 5
    assert not [pid for pid in seen if is_alive(pid)]


def test_a_cluster_that_does_not_come_up_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    cluster = PlaygroundCluster(tmp_path / "cluster", broker_count=1)
    taken = int(cluster.bootstrap_servers[0].rpartition(":")[2])
    try:
        with socket.create_server(("127.0.0.1", taken)), pytest.raises(Transient, match="Address already in use"):
            cluster.start()
        assert processes_in(cluster.directory), "start alone leaves the stopping to its caller"
    finally:
        cluster.stop(grace_seconds=0)
    assert processes_in(cluster.directory) == []


def test_another_process_can_stop_it_by_its_directory(tmp_path: Path) -> None:
    with PlaygroundCluster(tmp_path / "cluster", broker_count=1) as cluster:
        pids = cluster.pids()
        stop_everything_in(cluster.directory)
        assert cluster.pids() == []
    assert len(pids) == 4
    assert os.getpid() not in pids


async def test_temporal_goes_on_after_a_kill(tmp_path: Path) -> None:
    with PortLease(4) as lease:
        server = TemporalServer(tmp_path, TemporalPorts.leased(lease))
        with server:
            started = await Client.connect(server.address)
            await started.start_workflow("Sleeper", id="survivor", task_queue="nobody")
            assert "<html" in fetched(server.ui_url)
            first = server.pids()
            server.kill()
            assert server.pids() == []
            seconds = server.start()
            print(f"Temporal is back {seconds:.2f} s after its restart")
            again = await Client.connect(server.address)
            assert await again.service_client.check_health()
            assert (await again.get_workflow_handle("survivor").describe()).id == "survivor"
            assert server.pids() != first
        assert server.pids() == []
