"""Clients' data on real brokers: a restart changes nothing, and a byte that turned, a cut segment and a group that went back
are found and named.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from activities.adapters.artefacts import DirectoryArtefacts
from activities.adapters.kafka_admin import BrokerAdmin
from activities.adapters.message_runner import MessageEngine
from activities.adapters.nodes.drivers import SpecDrivers
from activities.adapters.secrets import EnvironmentAndFileSecrets
from activities.comparison.manifests import capture_messages, compare_messages, manifest_of
from activities.ports.checks import CheckAttempt
from activities.ports.ports import Ports
from activities.shipped_kinds import SHIPPED_KINDS
from domain.contracts import CheckRequest
from domain.drift.report import CheckName, DriftReport, FindingKind, Verdict
from domain.records import ClusterRecord
from playground.clients import admin_client, client_configuration
from playground.cluster import PlaygroundCluster
from playground.committing import commit_offsets

pytestmark = pytest.mark.cluster

ORDERS, TABLE, GROUP = "orders", "table", "billing"
SEGMENT_BYTES = 1 << 20


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[PlaygroundCluster]:
    with PlaygroundCluster(tmp_path / "cluster", announce=print) as cluster:
        topics = [
            NewTopic(ORDERS, 2, 3, config={"segment.bytes": str(SEGMENT_BYTES)}),
            NewTopic(TABLE, 1, 3, config={"cleanup.policy": "compact"}),
        ]
        admin = admin_client(cluster.bootstrap_servers)  # kept: a client that is collected never finishes its futures
        for created in admin.create_topics(topics).values():
            created.result(20)
        cluster.await_in_sync()
        yield cluster


def produce(cluster: PlaygroundCluster, count: int) -> None:
    producer = Producer({**client_configuration(cluster.bootstrap_servers), "acks": "all", "linger.ms": 5, "batch.size": 16384})
    for number in range(count):
        producer.produce(ORDERS, number.to_bytes(4, "big") * 250, partition=number % 2)
        if number % 10 == 0:
            producer.produce(TABLE, b"value", key=b"%d" % (number % 30))
    assert producer.flush(60) == 0


def commit(cluster: PlaygroundCluster, offset: int) -> None:
    commit_offsets(cluster.bootstrap_servers, GROUP, {(ORDERS, 0): offset})


class Checks:
    """Looks at a cluster and compares, with the product's own adapters."""

    def __init__(self, cluster: PlaygroundCluster, work: Path) -> None:
        self._cluster, self._work = cluster, work
        now = datetime.now(UTC)
        self._record = ClusterRecord(spec=cluster.spec, revision=1, generation=1, created_at=now, updated_at=now)
        self._runner = MessageEngine()
        self.ports = Ports(
            ledger=None,
            drivers=SpecDrivers(),
            zookeepers=None,
            kafka=BrokerAdmin(EnvironmentAndFileSecrets()),
            metrics=None,
            artefacts=DirectoryArtefacts(work / "artefacts"),
            kinds=SHIPPED_KINDS,
        )

    async def capture(self, since: str | None = None) -> str:
        return await capture_messages(self.ports, self._runner, self._record, since=since)

    async def report(self, before: str) -> DriftReport:
        after = await self.capture(before)
        directory = self._work / str(uuid4())
        directory.mkdir()
        request = CheckRequest(
            kind="zk-to-kraft", report_id="report", cluster=self._cluster.spec.name, check=CheckName.MESSAGES
        )
        check = CheckAttempt(request, self._record, str(uuid4()), directory, lambda *_: None)
        report = await compare_messages(self.ports, self._runner, check, before, after, datetime.now(UTC))
        print({kind: counts.model_dump(exclude_defaults=True) for kind, counts in report.counts.items()}, report.seconds)
        return report


def said(report: DriftReport) -> set[tuple[str, str, str]]:
    """Rule, key and severity of what is a drift."""
    kinds = {FindingKind.MISSING_LEFT, FindingKind.MISSING_RIGHT, FindingKind.DIFFERS}
    return {(one.rule, one.key, str(one.severity)) for one in report.first if one.finding in kinds}


def segments(cluster: PlaygroundCluster, broker: int, log: str) -> list[Path]:
    (data,) = cluster.spec.node(broker).log_dirs
    return sorted((Path(data) / log).glob("*.log"))


def turn(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 0x10]))


async def test_a_restart_is_no_finding_and_a_loss_is_named(cluster: PlaygroundCluster, tmp_path: Path) -> None:
    checks = Checks(cluster, tmp_path / "work")
    produce(cluster, 6000)
    commit(cluster, 1000)
    cluster.await_in_sync()
    before = await checks.capture()
    manifest = await manifest_of(checks.ports.artefacts, before)
    print([walk.model_dump() for walk in manifest.walks])
    assert (manifest.not_read, dict(manifest.sight.offsets_only)) == ((), {})
    assert all(walk.verified and not walk.not_verified and not walk.damaged for walk in manifest.walks)
    assert len(segments(cluster, 2, f"{ORDERS}-0")) > 1

    cluster.kill_node(2)
    cluster.start_node(2)
    cluster.await_in_sync()
    produce(cluster, 2000)
    commit(cluster, 1500)
    clean = await checks.report(before)
    assert said(clean) == set()
    assert clean.verdict is Verdict.CLEAN
    assert {one.key for one in clean.first} == {TABLE, "__consumer_offsets"}, "compacted topics are told as such"
    assert clean.counts["batch"].equal == clean.counts["batch"].left > 100
    assert clean.counts["partition-log"].left == 6

    turn(segments(cluster, 3, f"{ORDERS}-1")[0], 5000)
    commit(cluster, 10)
    cluster.kill_node(2)
    cluster.await_registered({1, 3})
    closed, *_, last = segments(cluster, 2, f"{ORDERS}-0")
    last.unlink()
    with closed.open("r+b") as file:
        file.truncate(closed.stat().st_size - 100)
    drift = await checks.report(before)
    assert drift.verdict is Verdict.DRIFT
    found = said(drift)
    assert ("committed", f"{GROUP} {ORDERS}-0", "block") in found
    assert {key.partition(" offset")[0] for rule, key, _ in found if rule == "checksum"} == {f"{ORDERS}-1 broker-3"}
    broken = {rule for rule, key, _ in found if key == f"{ORDERS}-0 broker-2"}
    assert "unreadable" in broken
    assert "end" in broken
    assert not [key for _, key, _ in found if "broker-1" in key], "the whole replica is not accused"
    (folder,) = {Path(node.properties_file).parent / ".keeperless" for node in cluster.spec.brokers if node.id == 1}
    assert not list(folder.glob("walk-*")), "nothing is left on a node"
