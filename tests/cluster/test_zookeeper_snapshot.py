"""Real snapshots and a real tree: what ZooKeeper's own digest says of our reading, and what Kafka writes into znodes."""

import json
import re
import subprocess
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kazoo.client import KazooClient

from activities.adapters.zookeeper import KazooTree
from activities.comparison.capturing import crawl
from domain.drift import normalise
from domain.drift.digests import Digester
from domain.drift.records import KINDS
from domain.errors import Permanent
from playground import processes
from playground.cache import silent
from playground.clients import admin_client
from playground.cluster import CHROOT, PlaygroundCluster, prepared_runtime, stop_everything_in
from playground.ensemble import Ensemble, mode_of, plan_ensemble, write_configuration
from playground.ports import PortLease
from playground.seed import Topic, create_topics
from playground.wire_requests import Quota, alter_quotas, set_default_broker_configs
from playground.zookeeper_files import Trimmings, in_file_order, snapshot_bytes, state_json, topic_json
from spark.codec.octets import numbers_at
from spark.codec.zookeeper_snapshot import frame_of, nodes_from, opened
from spark.job import ZooKeeperSnapshot
from spark.sources.source import Rows
from spark.sources.zookeeper_rows import Notes, rows_of
from spark.sources.zookeeper_snapshot import ZooKeeperSnapshotSource

pytestmark = pytest.mark.cluster

DIGESTER = Digester(b"0123456789abcdef")
ENCODER = "of the encoder"
ALL = frozenset(KINDS)
ID = "AAAAAAAAAAAAAAAAAAAA{}Q"

ODD: dict[str, bytes | None] = {
    "/kafka-acl/Topic/東 京/é": b'{"version":1,"acls":[]}',
    "/kafka-acl/Topic/*": b'{"version":1,"acls":[]}',
    "/config/users/CN%3DA%20b%2COU%3D%2A": b'{"version":1,"config":{"request_percentage":"5"}}',
    "/looks/like": b"\0\0\0\x02/x\0\0\0\0" + bytes(68) + b"\0\0\0\x01/\0\0\0\0",
    "/looks/long": b"/" * 500_000,
    "/none": None,
}


# ---- one server ----


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Ensemble]:
    """One ZooKeeper server by itself, running."""
    with PortLease(3) as lease:
        ensemble = plan_ensemble(tmp_path, lease, prepared_runtime(tmp_path, silent), size=1)
        write_configuration(ensemble.servers[0], ())
        try:
            start(ensemble)
            yield ensemble
        finally:
            stop_everything_in(tmp_path)


def start(ensemble: Ensemble) -> None:
    (server,) = ensemble.servers
    processes.start(ensemble.launch(server))
    processes.wait_until(lambda: mode_of(server) == "standalone", f"{server.name} to serve", 60)


def restart(ensemble: Ensemble) -> None:
    """A server writes a snapshot when it starts."""
    processes.kill(ensemble.launch(ensemble.servers[0]))
    start(ensemble)


def files(ensemble: Ensemble, kind: str) -> list[Path]:
    """Newest last."""
    found = (ensemble.servers[0].directory / "data" / "version-2").glob(f"{kind}.*")
    return sorted(found, key=lambda path: int(path.name.split(".")[1], 16))


def test_a_server_takes_a_generated_snapshot_for_its_own(tmp_path: Path) -> None:
    """It loads it, and finds the digest in it equal to that of the tree: the generator writes what servers write."""
    with PortLease(3) as lease:
        ensemble = plan_ensemble(tmp_path, lease, prepared_runtime(tmp_path, silent), size=1)
        write_configuration(ensemble.servers[0], ())
        data = ensemble.servers[0].directory / "data" / "version-2"
        data.mkdir()
        content = snapshot_bytes(in_file_order(ODD), Trimmings(digest_zxid=0x4D, has_last_zxid=False))
        (data / "snapshot.4d").write_bytes(content)
        try:
            start(ensemble)
        finally:
            stop_everything_in(tmp_path)
    told = (ensemble.servers[0].directory / "zookeeper.log").read_text()
    (written,) = re.findall(r"zxid as 0x4d, and digest value as (-?\d+)", told)
    assert f"highest zxid is 0x4d, digest is {written} " in told


@pytest.fixture
def client(server: Ensemble) -> Iterator[KazooClient]:
    opened = KazooClient(server.connect(""), timeout=30)
    opened.start(timeout=30)
    yield opened
    opened.stop()
    opened.close()


def write_odd_tree(client: KazooClient) -> None:
    for path, data in ODD.items():
        client.create(path, data, makepath=True)
    for number in range(40):
        folder = f"/brokers/topics/topic-{number}"
        partitions = {n: [n % 3, 3 + n % 2] for n in range(number)}
        client.create(folder, topic_json(ID.format(chr(ord("A") + number % 26)), partitions), makepath=True)
        for partition, replicas in partitions.items():
            client.create(f"{folder}/partitions/{partition}/state", state_json(replicas[0], replicas), makepath=True)
    for number in range(0, 40, 3):
        client.set(f"/brokers/topics/topic-{number}", topic_json(ID.format("Z"), {}))
    client.create("/session", b"", ephemeral=True)
    client.create("/gone/deep", b"", makepath=True)
    client.delete("/gone", recursive=True)


def every_path(client: KazooClient, path: str = "") -> Iterator[str]:
    yield path
    for name in client.get_children(path or "/"):
        yield from every_path(client, f"{path}/{name}")


def test_the_digest_is_equal_and_the_nodes_are_the_trees(server: Ensemble, client: KazooClient) -> None:
    write_odd_tree(client)
    expected = {}
    for path in every_path(client):
        data, stat = client.get(path or "/")
        numbers = (
            stat.czxid,
            stat.mzxid,
            stat.ctime,
            stat.mtime,
            stat.version,
            stat.cversion,
            stat.aversion,
            stat.ephemeralOwner,
        )
        expected[path] = (data or b"", *numbers, stat.pzxid)
    restart(server)
    for snapshot in files(server, "snapshot")[1:]:
        source = ZooKeeperSnapshotSource(ZooKeeperSnapshot(path=snapshot), DIGESTER)
        assert source.not_read() == (), "its digest was compared, and is equal"
        frame = frame_of(opened(snapshot), "snapshot")
        print(f"{snapshot.name}: digest {frame.digest}, {len(source.splits(3))} splits")
    found = decoded(snapshot)
    own = [path for path in found.keys() | expected.keys() if path.startswith("/zookeeper")]  # counted otherwise in memory
    for path in own:
        found.pop(path, None), expected.pop(path, None)
    assert found == expected


def decoded(snapshot: Path) -> dict[str, tuple[bytes | int, ...]]:
    """Every znode with its data and its stat, through columns."""
    content = opened(snapshot)
    frame = frame_of(content, snapshot.name)
    found, at = {}, frame.begin
    while at < frame.end:
        nodes = nodes_from(content, snapshot.name, at, frame.end, 10_000)
        offsets = (
            (0, ">i8"),
            (8, ">i8"),
            (16, ">i8"),
            (24, ">i8"),
            (32, ">i4"),
            (36, ">i4"),
            (40, ">i4"),
            (44, ">i8"),
            (52, ">i8"),
        )
        stats = zip(*(numbers_at(nodes.window, nodes.stat + place, form).tolist() for place, form in offsets), strict=True)
        for path, data, stat in zip(nodes.paths(), nodes.contents(), stats, strict=True):
            found[path.decode()] = (data, *stat)
        at = nodes.stop
    return found


def test_a_snapshot_amid_writes_is_of_one_moment_or_refused(server: Ensemble, client: KazooClient) -> None:
    processes.kill(server.launch(server.servers[0]))
    launch = server.launch(server.servers[0])
    often = (*launch.command[:1], "-Dzookeeper.snapCount=20", *launch.command[1:])
    processes.start(replace(launch, command=often))
    processes.wait_until(lambda: client.connected, "the client to be back", 60)
    client.create("/many")
    for pending in [client.create_async(f"/many/{number:04d}", b"x" * 2000) for number in range(3000)]:
        pending.get(timeout=60)
    client.stop()
    processes.kill(launch)
    verdicts = [verdict(snapshot) for snapshot in files(server, "snapshot")]
    print({said: verdicts.count(said) for said in set(verdicts)})
    assert set(verdicts) <= {"equal", "no digest", "not one moment", "cut off by the kill"}
    assert "equal" in verdicts
    assert verdicts.count("cut off by the kill") <= 1


def verdict(snapshot: Path) -> str:
    try:
        not_read = ZooKeeperSnapshotSource(ZooKeeperSnapshot(path=snapshot), DIGESTER).not_read()
    except Permanent as error:
        return "not one moment" if "not the tree of one moment" in str(error) else "cut off by the kill"
    return "no digest" if not_read else "equal"


# ---- what Kafka writes ----

NAME = "listener.name.internal.ssl.key.password"
PASSWORD = "hunter2-é"
TRICKY = ["plain", "CN=A b,OU=*", "東~+%", "<default>"]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlaygroundCluster]:
    with PlaygroundCluster(tmp_path_factory.mktemp("kafka"), broker_count=1) as cluster:
        write_by_kafka(cluster)
        yield cluster


def write_by_kafka(cluster: PlaygroundCluster) -> None:
    admin, servers = admin_client(cluster.bootstrap_servers), cluster.bootstrap_servers
    topics = [Topic("a.b_c-d", 7, 1, {"retention.ms": "-1", "cleanup.policy": "compact,delete"}), Topic("state", 1, 1)]
    create_topics(admin, topics)
    set_default_broker_configs(servers, {"log.cleaner.backoff.ms": "20000"})
    entries = [ConfigEntry("log.retention.ms", "7", incremental_operation=AlterConfigOpType.SET)]
    asked = [ConfigResource(ResourceType.BROKER, "1", incremental_configs=entries)]
    scram = [
        UserScramCredentialUpsertion(user, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"pw") for user in TRICKY
    ]
    acls = [acl(*of) for of in ACLS]
    done = (admin.incremental_alter_configs(asked), admin.alter_user_scram_credentials(scram), admin.create_acls(acls))
    for future in [future for futures in done for future in futures.values()]:
        future.result(60)
    alter_quotas(servers, [Quota(dict(of), {"request_percentage": value}) for of, value in QUOTAS])
    by_tool(cluster, "brokers", "7", f"{NAME}={PASSWORD},password.encoder.secret={ENCODER}")


def by_tool(cluster: PlaygroundCluster, kind: str, name: str, config: str) -> None:
    """Kafka's own tool encrypts a password straight into ZooKeeper."""
    runtime = cluster.ensemble.runtime
    options = ("--zookeeper", cluster.ensemble.connect(CHROOT), "--alter", "--entity-type", kind, "--entity-name", name)
    command = (*runtime.java(128), "kafka.admin.ConfigCommand", *options, "--add-config", config)
    subprocess.run(command, check=True, timeout=120, capture_output=True)


LITERAL, PREFIXED = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
ACLS = [
    (ResourceType.TOPIC, "*", LITERAL, "User:CN=a,b", AclOperation.DESCRIBE_CONFIGS, AclPermissionType.DENY),
    (ResourceType.GROUP, "team-", PREFIXED, "User:*", AclOperation.READ, AclPermissionType.ALLOW),
    (ResourceType.GROUP, "team", LITERAL, "User:x", AclOperation.READ, AclPermissionType.ALLOW),
    (ResourceType.TRANSACTIONAL_ID, "東 京", LITERAL, "User:y", AclOperation.WRITE, AclPermissionType.ALLOW),
    (ResourceType.BROKER, "kafka-cluster", LITERAL, "User:z", AclOperation.IDEMPOTENT_WRITE, AclPermissionType.ALLOW),
]
TYPES = {
    ResourceType.TOPIC: "Topic",
    ResourceType.GROUP: "Group",
    ResourceType.TRANSACTIONAL_ID: "TransactionalId",
    ResourceType.BROKER: "Cluster",
}
QUOTAS = [
    *(((("user", user),), 1.5) for user in TRICKY),
    ((("client-id", None),), 2.0),
    ((("client-id", "東"), ("user", None)), 1e7),
    ((("client-id", None), ("user", "CN=A b,OU=*")), 0.001),
]


def acl(kind: Any, name: str, pattern: Any, principal: str, operation: Any, permission: Any) -> AclBinding:
    return AclBinding(kind, name, pattern, principal, "*", operation, permission)


@pytest.fixture
async def live(kafka: PlaygroundCluster) -> AsyncIterator[list[Rows]]:
    opened = KazooClient(kafka.ensemble.connect(CHROOT), timeout=30)
    opened.start(timeout=30)
    tree, notes = KazooTree(opened, "test", 30), Notes()
    found = [znode async for chunk in crawl(tree) for znode in chunk]
    yield list(rows_of(found, ALL, DIGESTER, ENCODER, notes))
    assert not notes.not_read
    await tree.close()


def listed(rows: Iterable[Rows], kind: str, *without: str) -> list[tuple[object, ...]]:
    hidden = {"segment", "batch", *without}
    found = [row for read in rows if read.kind == kind for row in read.batch.to_pylist()]
    return sorted((tuple(value for name, value in row.items() if name not in hidden) for row in found), key=repr)


async def test_what_kafka_wrote_is_read(kafka: PlaygroundCluster, live: list[Rows]) -> None:
    assert {(name, config, value) for name, config, value, _ in listed(live, "topic-config")} == {
        ("a.b_c-d", "retention.ms", "-1"),
        ("a.b_c-d", "cleanup.policy", "compact,delete"),
    }
    password = normalise.broker_config(DIGESTER, "7", NAME, PASSWORD)
    assert listed(live, "broker-config", "at") == sorted(
        [("", "log.cleaner.backoff.ms", "20000", ""), ("1", "log.retention.ms", "7", ""), ("7", NAME, *password)], key=repr
    )
    entities = {(normalise.entity_text(of), "request_percentage", value) for of, value in QUOTAS}
    assert set(listed(live, "quota", "at")) == entities
    names = {(TYPES[kind], name, pattern.name, who, "*", op.name, may.name) for kind, name, pattern, who, op, may in ACLS}
    assert set(listed(live, "acl", "at")) == names
    assert [(user, mechanism, count) for user, mechanism, *_, count, _ in listed(live, "scram")] == [
        (user, "SCRAM-SHA-512", 4096) for user in sorted(TRICKY)
    ]
    assert listed(live, "claim", "at") == [("cluster-id", kafka.spec.cluster_id)]
    (endpoint,) = kafka.bootstrap_servers
    assert [row[:2] for row in listed(live, "registration")] == [("1", json.dumps([f"PLAINTEXT://{endpoint}"]))]
    partitions = listed(live, "partition")
    assert len(partitions) == 8
    assert {row[2:8] for row in map(hashable, partitions)} == {((1,), (), (), 1, (1,), 0)}


def hashable(row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(tuple(value) if isinstance(value, list) else value for value in row)


async def test_a_snapshot_says_what_the_live_tree_says(kafka: PlaygroundCluster, live: list[Rows]) -> None:
    """A member writes one every few transactions, which are not Kafka's: that has changed nothing since it was read.

    One is judged only where nothing was written meanwhile, which a busy machine makes rare: so one is written at a time.
    """
    member = kafka.ensemble.servers[0]
    launch = kafka.ensemble.launch(member)
    processes.kill(launch)
    processes.start(replace(launch, command=(*launch.command[:1], "-Dzookeeper.snapCount=20", *launch.command[1:])))
    processes.wait_until(lambda: mode_of(member) in {"leader", "follower"}, "the member to be back", 60)
    others = KazooClient(member.address, timeout=30)
    others.start(timeout=30)
    data = member.directory / "data" / "version-2"
    snapshots: list[Path] = []

    def is_written() -> bool:
        others.create("/others-", sequence=True)
        snapshots.extend(path for path in data.glob("snapshot.*") if verdict(path) == "equal")
        return bool(snapshots)

    processes.wait_until(is_written, "a snapshot", 120)
    others.stop()
    others.close()
    source = ZooKeeperSnapshotSource(ZooKeeperSnapshot(path=snapshots[-1], chroot=CHROOT), DIGESTER, ENCODER.encode())
    rows = [found for split in source.splits(2) for found in source.read(split, ALL)]
    print(f"{snapshots[-1].name} of {len(snapshots)}: digest equal, {sum(found.batch.num_rows for found in rows)} rows")
    for kind in ALL - {"registration"}:
        assert listed(rows, kind) == listed(live, kind), kind
