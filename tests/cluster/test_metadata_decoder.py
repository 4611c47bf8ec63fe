"""Our reader of the quorum's log, held against Kafka's own dump tool and admin API, on what a real Kafka 3.9 has written."""

import base64
import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    UserScramCredentialUpsertion,
)
from kafka import KafkaAdminClient, TopicPartition

from domain.drift.digests import Digester
from domain.drift.normalise import uuid_text
from domain.drift.records import KINDS, ORIGIN
from domain.quorum_log.record_types import RecordType
from playground import metadata_files
from playground.clients import admin_client
from playground.cluster import prepared_runtime
from playground.jvm import Runtime
from playground.kraft_cluster import KraftCluster, dumped
from playground.processes import wait_until
from playground.seed import ACLS, DEFAULT_BROKER_CONFIGS, QUOTAS, SCRAM_USERS, Topic, create_topics
from playground.wire_requests import alter_quotas, set_default_broker_configs
from spark.codec.metadata_records import decoded, frames_of
from spark.codec.metadata_schema import SCHEMAS, SchemaField
from spark.codec.record_batch import pieces
from spark.job import KraftFiles
from spark.sources.kraft import KraftSource

pytestmark = pytest.mark.cluster

DIGESTER = Digester(b"a key for both sides")


# ---- what both say, in the dump tool's words ----


def ours(file: Path) -> list[tuple[int, dict[str, Any]]]:
    """Every record as the dump tool prints it: tagged fields only where they are told."""
    frames = [frames_of(piece) for piece in pieces(file)]
    versions = [version for frame in frames for version in frame.versions.tolist()]
    records = [record for frame in frames for record in decoded(frame)]
    return [
        (record.origin.at, {"type": RecordType(record.kind).name + "_RECORD", "version": version} | {"data": _data(record)})
        for record, version in zip(records, versions, strict=True)
    ]


def _data(record: Any) -> dict[str, Any]:
    fields = SCHEMAS[record.kind].fields
    told = {f.name: record.values[f.name] for f in fields if f.name in record.values}
    return {f.name: _json(f, told[f.name]) for f in fields if f.name in told and not _is_default(f, told[f.name])}


def _is_default(field: SchemaField, value: Any) -> bool:
    return field.tag is not None and value == field.default


def _json(field: SchemaField, value: Any) -> Any:
    kind = field.type.removeprefix("[]")
    if value is None:
        return None
    if field.type.startswith("[]"):
        return [_json(SchemaField("", kind, fields=field.fields), item) for item in value]
    if field.fields:
        return {f.name: _json(f, value[f.name]) for f in field.fields}
    if kind == "uuid":
        return uuid_text(value)
    return base64.b64encode(value).decode() if kind == "bytes" else value


# ---- a real cluster, and what people do to it ----


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KraftCluster]:
    with KraftCluster(tmp_path_factory.mktemp("quorum")) as cluster:
        yield cluster


MALLORYS = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, "User:mallory", None, AclOperation.ANY, AclPermissionType.ANY
)


def administer(cluster: KraftCluster) -> None:
    """Every kind of metadata, in an order of its own in every run."""
    luck = random.Random()  # noqa: S311 - no secret comes from it
    admin, servers = admin_client(cluster.bootstrap_servers), cluster.bootstrap_servers
    topics = [Topic(f"topic.{n}", luck.randint(1, 9), luck.randint(1, 2), {"retention.ms": str(n)}) for n in range(30)]
    create_topics(admin, topics)
    set_default_broker_configs(servers, DEFAULT_BROKER_CONFIGS)
    steps = [
        lambda: alter_quotas(servers, QUOTAS),
        lambda: finish(admin.create_acls(list(ACLS)).values()),
        lambda: give_credentials(admin),
        lambda: finish(admin.delete_topics([topic.name for topic in topics[:5]]).values()),
        lambda: finish(admin.create_partitions([NewPartitions(topic.name, 12) for topic in topics[5:10]]).values()),
        lambda: reassign(servers, topics[10:20], luck),
    ]
    luck.shuffle(steps)
    for step in steps:
        step()
    finish(admin.delete_acls([MALLORYS]).values())


def finish(futures: Any) -> None:
    for future in futures:
        future.result(60)


def give_credentials(admin: AdminClient) -> None:
    for user, mechanism, iterations in SCRAM_USERS:
        change = UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, iterations), b"of a test")
        finish(admin.alter_user_scram_credentials([change]).values())


def reassign(servers: Sequence[str], topics: Sequence[Topic], luck: random.Random) -> None:
    client = KafkaAdminClient(bootstrap_servers=list(servers), client_id="test")
    try:
        wanted = {TopicPartition(topic.name, 0): luck.sample([1, 2], luck.randint(1, 2)) for topic in topics}
        client.alter_partition_reassignments(wanted)
    finally:
        client.close()


def told_by_brokers(servers: Sequence[str]) -> dict[tuple[str, int], tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """Leader, replicas and ISR of every partition."""
    topics = admin_client(servers).list_topics(timeout=30).topics
    return {
        (name, number): (partition.leader, tuple(partition.replicas), tuple(sorted(partition.isrs)))
        for name, topic in topics.items()
        for number, partition in topic.partitions.items()
    }


def told_by(image: dict[str, list[dict[str, Any]]]) -> dict[tuple[str, int], tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """The same from our rows."""
    names = {row["topic_id"]: row["topic"] for row in image["topic"]}
    return {
        (names[uuid_text(row["topic_id"])], row["partition"]): (row["leader"], tuple(row["replicas"]), tuple(row["isr"]))
        for row in image["partition"]
    }


def rows(source: KraftSource) -> dict[str, list[dict[str, Any]]]:
    """All rows by kind, sorted, without where they were read."""
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for split in source.splits(4):
        for part in source.read(split, frozenset(KINDS)):
            assert not part.is_journal
            found[part.kind] += part.batch.drop_columns([field.name for field in ORIGIN]).to_pylist()
    return {kind: sorted(those, key=repr) for kind, those in found.items()}


def is_checkpointed(log: Path) -> bool:
    return any(not path.name.startswith("0" * 20) for path in log.glob("*.checkpoint"))


def test_what_a_real_kafka_has_written_is_read_as_it_reads_it(cluster: KraftCluster, tmp_path: Path) -> None:
    administer(cluster)
    wait_until(lambda: is_checkpointed(cluster.metadata_log), "a checkpoint", 30)
    image = {}

    def is_what_brokers_say() -> bool:
        image.update(rows(KraftSource(KraftFiles(directory=cluster.metadata_log), DIGESTER)))
        return told_by(image) == told_by_brokers(cluster.bootstrap_servers)

    wait_until(is_what_brokers_say, "brokers that say of every partition what the log says", 30)
    cluster.stop()
    runtime = prepared_runtime(tmp_path, print)
    files = sorted([*cluster.metadata_log.glob("*.log"), *cluster.metadata_log.glob("*.checkpoint")])
    for file in files:
        assert_read_alike(runtime, file)
    assert len(files) >= 2

    image = rows(KraftSource(KraftFiles(directory=cluster.metadata_log), DIGESTER))
    assert image == rows(KraftSource(KraftFiles(directory=without_checkpoints(cluster.metadata_log, tmp_path)), DIGESTER))
    for kind in ("topic", "partition", "topic-config", "broker-config", "quota", "scram", "acl"):
        assert image[kind], f"rows of {kind}"


def assert_read_alike(runtime: Runtime, file: Path) -> None:
    theirs, found = dumped(runtime, file), ours(file)
    assert found == theirs
    print(f"{file.name}: {len(found)} records alike, {len({record['type'] for _, record in found})} kinds")


def without_checkpoints(log: Path, directory: Path) -> Path:
    """The same log, to be read from its beginning."""
    target = directory / "without-checkpoints"
    shutil.copytree(log, target, ignore=shutil.ignore_patterns("*.checkpoint"))
    return target


# ---- every kind of record, also those that this small cluster never writes ----


def some(field: SchemaField, luck: random.Random) -> Any:
    """A value that the field may have."""
    kind = field.type.removeprefix("[]")
    if field.is_nullable and luck.random() < 0.3:
        return None
    if field.type.startswith("[]"):
        return tuple(some(SchemaField("", kind, fields=field.fields), luck) for _ in range(luck.randint(0, 3)))
    if field.fields:
        return {f.name: some(f, luck) for f in field.fields}
    if kind in ("uuid", "bytes"):
        return luck.randbytes(16)
    if kind == "string":
        return luck.choice(["", "a name", "ünïcode *@ %2A", "x" * 200])
    if kind == "bool":
        return luck.random() < 0.5
    if kind == "float64":
        return luck.uniform(-1e12, 1e12)
    bits = int(kind.lstrip("uint"))
    return luck.randint(0, 2**16 - 1) if kind == "uint16" else luck.randint(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


NEWEST_OF_3_9 = {RecordType.REGISTER_BROKER: 3, RecordType.BROKER_REGISTRATION_CHANGE: 2}
"""Where 4.x has more versions than the Kafka of the playground."""


def test_every_kind_and_version_is_read_as_kafka_reads_it(tmp_path: Path) -> None:
    luck = random.Random()  # noqa: S311 - no secret comes from it
    values = []
    for kind, schema in SCHEMAS.items():
        if kind == RecordType.CLEAR_ELR:
            continue
        for version in range(NEWEST_OF_3_9.get(RecordType(kind), schema.newest) + 1):
            told = [{f.name: some(f, luck) for f in schema.fields if f.since <= version} for _ in range(20)]
            values += [metadata_files.message(kind, version, each) for each in told]
    file = tmp_path / f"{0:020}.log"
    luck.shuffle(values)
    for begin in range(0, len(values), 100):
        metadata_files.append(file, begin, values[begin : begin + 100])
    assert_read_alike(prepared_runtime(tmp_path / "runtime", print), file)
    assert len(ours(file)) == len(values)
