"""A rehearsal of a large cluster, of whose files only ZooKeeper's are there: figures, and that all of it is equal."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from activities.adapters.check_runner import EngineRunner
from activities.adapters.nodes.drivers import SpecDrivers
from activities.ports.zookeeper import Znode
from activities.zk_to_kraft.rehearsal.rehearsing import RehearsalPorts, rehearse
from activities.zk_to_kraft.rehearsal.room import UnsharedRooms
from domain.cluster import ClusterSpec, ZooKeeperMemberSpec
from domain.drift.report import Verdict
from domain.records import ClusterRecord
from playground.broker_properties import BrokerAddresses, render
from playground.example import example_cluster
from playground.jars import installed_kafka
from playground.java import java_home
from playground.zookeeper_files import FileZnode, Trimmings, many_topics, snapshot_bytes
from tests.cluster.test_rehearsal import record_of

pytestmark = [pytest.mark.cluster, pytest.mark.chaos, pytest.mark.timeout(900)]

DIGEST_KEY = "KEEPERLESS_TEST_REHEARSAL_KEY"
TOPICS, PARTITIONS, BROKERS = 2_000, 10, 6
LAST_ZXID = 0x4D
REGISTRATION = (
    b'{"version":5,"endpoints":["PLAINTEXT://127.0.0.1:9092"],"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"}}'
)


class RegisteredBrokers:
    """All that a rehearsal asks of the living ensemble."""

    async def connect(self, _cluster: ClusterRecord) -> "RegisteredBrokers":
        return self

    async def sync(self) -> None: ...

    async def close(self) -> None: ...

    async def children(self, _path: str) -> tuple[str, ...]:
        return tuple(str(id_) for id_ in range(BROKERS))

    async def ask(self, _server: str, _word: str) -> str:
        return f"Zxid: {LAST_ZXID:#x}\nMode: standalone\n"

    async def get_many(self, paths: Sequence[str]) -> tuple[Znode | None, ...]:
        return tuple(Znode(REGISTRATION, 0, 1, modified_zxid=5) if "/ids/" in path else None for path in paths)


def large_tree() -> Iterator[FileZnode]:
    """Topics with a config each, and what a cluster always has."""
    yield from many_topics(TOPICS, PARTITIONS, BROKERS)
    for path in (
        "/brokers/ids",
        "/config",
        "/config/topics",
        "/config/brokers",
        "/config/users",
        "/config/clients",
        "/config/ips",
    ):
        yield FileZnode(path)
    for path in (
        "/config/changes",
        "/admin",
        "/admin/delete_topics",
        "/isr_change_notification",
        "/log_dir_event_notification",
    ):
        yield FileZnode(path)
    yield FileZnode("/controller_epoch", b"1")
    for number in range(TOPICS):
        yield FileZnode(f"/config/topics/topic-{number:06d}", b'{"version":1,"config":{"retention.ms":"86400000"}}')


@pytest.fixture
def spec(tmp_path: Path) -> ClusterSpec:
    folder = tmp_path / "data" / "version-2"
    folder.mkdir(parents=True)
    (folder / "snapshot.4d").write_bytes(
        snapshot_bytes(large_tree(), Trimmings(sessions={}, digest_zxid=LAST_ZXID, last_zxid=LAST_ZXID))
    )
    (tmp_path / "server.properties").write_text(render(BrokerAddresses(1, "127.0.0.1", 9092, "r", tmp_path, "127.0.0.1:2181")))
    spec = example_cluster()
    here = {"kafka_home": str(installed_kafka().path), "environment": {"JAVA_HOME": str(java_home())}}
    broker = spec.brokers[0].model_copy(update={"properties_file": str(tmp_path / "server.properties")})
    member = ZooKeeperMemberSpec(host="127.0.0.1", data_dir=str(tmp_path / "data"))
    controllers = tuple(each.model_copy(update=here) for each in spec.controllers)
    return spec.with_quorum_changed(controllers=controllers).model_copy(
        update={
            "brokers": (broker, *spec.brokers[1:]),
            "zookeeper": spec.ensemble.model_copy(update={"connect": "127.0.0.1:2181", "members": (member,)}),
        }
    )


async def test_2000_topics_with_10_partitions_are_copied_and_equal(spec: ClusterSpec, tmp_path: Path) -> None:
    os.environ.setdefault(DIGEST_KEY, "0123456789abcdef0123456789abcdef")
    drivers = SpecDrivers()
    ports = RehearsalPorts(drivers, drivers, RegisteredBrokers(), UnsharedRooms(), EngineRunner(f"env:{DIGEST_KEY}"))
    report = await rehearse(record_of(spec), ports, tmp_path / "work", on_progress=print)
    print(
        f"{sum(report.records.values())} records in {report.copy_seconds} s, "
        f"{report.seconds_without_controller} s without controller; {report.controller}; {report.advice} {report.seconds}"
    )
    assert report.refused == ""
    assert report.records == {
        "TOPIC_RECORD": TOPICS,
        "PARTITION_RECORD": TOPICS * PARTITIONS,
        "CONFIG_RECORD": TOPICS,
    }
    assert report.equality is not None
    assert report.equality.verdict is Verdict.CLEAN, report.findings[:5]
    assert report.equality.counts["partition"].equal == TOPICS * PARTITIONS
    assert report.controller.heap_mib is not None
    assert 40 < report.controller.heap_mib < 400
    assert (report.copy_seconds or 0) < (report.seconds_without_controller or 0)
    assert list((tmp_path / "work").rglob("*")) == []
