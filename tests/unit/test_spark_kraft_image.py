"""Rows of every kind from records of every kind: names decoded, sets sorted, secrets digested, what is gone told once."""

import json
from pathlib import Path
from typing import Any

import pytest

from domain.drift.digests import Digester
from domain.drift.normalise import scram_digest, token_key
from domain.drift.records import KINDS, ORIGIN
from domain.errors import Permanent
from domain.quorum_log.record_types import RecordType as R
from playground.metadata_files import batch_of, message
from spark.job import KraftFiles
from spark.sources.kraft import KraftSource

DIGESTER = Digester(b"a key of sixteen bytes")
SECRET = "t0p-s3cret-value"
ACL = {
    "resourceType": 2, "resourceName": "orders", "patternType": 3, "principal": "User:alice", "host": "*",
    "operation": 10, "permissionType": 3,
}  # fmt: skip
TOKEN = {
    "owner": "User:alice", "requester": "User:bob", "renewers": ("User:z", "User:a", "User:z"), "issueTimestamp": 1,
    "maxTimestamp": 3, "expirationTimestamp": 2, "tokenId": SECRET,
}  # fmt: skip
CREDENTIAL = {
    "name": "alice",
    "mechanism": 2,
    "salt": SECRET.encode(),
    "storedKey": b"k",
    "serverKey": b"s",
    "iterations": 4096,
}
Told = tuple[int, dict[str, Any]]


def config(kind: int, resource: str, name: str, value: str | None) -> Told:
    return R.CONFIG, {"resourceType": kind, "resourceName": resource, "name": name, "value": value}


def quota(value: float, *, remove: bool = False, **entity: str | None) -> Told:
    parts = tuple({"entityType": kind.replace("_", "-"), "entityName": name} for kind, name in entity.items())
    return R.CLIENT_QUOTA, {"entity": parts, "key": "producer_byte_rate", "value": value, "remove": remove}


def broker(id_: int, *, is_migrating: bool = True, rack: str | None = None) -> Told:
    endpoints = tuple({"name": name, "host": host, "port": 9092, "securityProtocol": 0} for name, host in HOSTS)
    told = {"brokerId": id_, "isMigratingZkBroker": is_migrating, "incarnationId": b"i" * 16, "brokerEpoch": 5}
    rest = {"endPoints": endpoints, "features": (), "rack": rack, "fenced": False, "inControlledShutdown": False}
    return R.REGISTER_BROKER, told | rest


HOSTS = (("PLAINTEXT", "h"), ("EXTERNAL", "::1"))


def read(directory: Path, kind: str, *told: Told, cut: int | None = None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows and versions of one kind, without where they were read."""
    values = [message(key, 3 if key == R.REGISTER_BROKER else 0, fields) for key, fields in told]
    (directory / f"{0:020}.log").write_bytes(batch_of(0, values))
    source = KraftSource(KraftFiles(directory=directory, cut=cut, end=len(told)), DIGESTER)
    rows: list[dict[str, Any]] = []
    journal: list[dict[str, Any]] = []
    for split in source.splits(2):
        for part in source.read(split, frozenset({kind})):
            batch = part.batch.drop_columns([field.name for field in ORIGIN])
            (journal if part.is_journal else rows).extend(batch.to_pylist())
    return rows, journal


def test_configs_of_brokers_are_told_and_their_secrets_digested(tmp_path: Path) -> None:
    told = [config(4, "", "message.max.bytes", "1"), config(4, "7", "ssl.keystore.password", SECRET)]
    told += [config(4, "7", "gone", "1"), config(4, "7", "gone", None), config(16, "all", "interval.ms", "5")]
    rows, _ = read(tmp_path, "broker-config", *told)
    assert rows[0] == {"broker": "", "name": "message.max.bytes", "value": "1", "digest": ""}
    assert (rows[1]["broker"], rows[1]["name"], rows[1]["value"]) == ("7", "ssl.keystore.password", None)
    assert len(rows[1]["digest"]) == 32
    assert len(rows) == 2, "nothing of what is deleted, nothing of what ZooKeeper cannot hold"


def test_quotas_have_their_entity_as_zookeeper_would_say_it(tmp_path: Path) -> None:
    told = [quota(5.5, user="a", client_id=None), quota(7.0, ip="1.2.3.4"), quota(0.0, ip="1.2.3.4", remove=True)]
    rows, journal = read(tmp_path, "quota", *told, cut=2)
    assert rows == [
        {"entity": '[["client-id",null],["user","a"]]', "name": "producer_byte_rate", "value": 5.5},
        {"entity": '[["ip","1.2.3.4"]]', "name": "producer_byte_rate", "value": 7.0},
    ]
    gone = {"entity": '[["ip","1.2.3.4"]]', "name": "producer_byte_rate", "value": None, "is_deleted": True}
    assert journal == [gone]


def test_credentials_are_digests(tmp_path: Path) -> None:
    gone = R.REMOVE_USER_SCRAM_CREDENTIAL, {"name": "alice", "mechanism": 2}
    other = R.USER_SCRAM_CREDENTIAL, CREDENTIAL | {"mechanism": 1, "iterations": 8192}
    rows, journal = read(tmp_path, "scram", (R.USER_SCRAM_CREDENTIAL, CREDENTIAL), other, gone, cut=2)
    assert [(row["user"], row["mechanism"], row["iterations"]) for row in rows] == [
        ("alice", "SCRAM-SHA-512", 4096),
        ("alice", "SCRAM-SHA-256", 8192),
    ]
    assert rows[0]["salt"] == scram_digest(DIGESTER, "alice", "SCRAM-SHA-512", "salt", SECRET.encode())
    assert [(row["mechanism"], row["is_deleted"]) for row in journal] == [("SCRAM-SHA-512", True)]


def test_an_acl_is_there_as_long_as_any_id_says_it(tmp_path: Path) -> None:
    one, two = (R.ACCESS_CONTROL_ENTRY, ACL | {"id": b"1" * 16}), (R.ACCESS_CONTROL_ENTRY, ACL | {"id": b"2" * 16})
    without_one, without_two = ((R.REMOVE_ACCESS_CONTROL_ENTRY, {"id": id_ * 16}) for id_ in (b"1", b"2"))
    rows, journal = read(tmp_path, "acl", one, two, without_one, without_two, cut=2)
    told = {"resource_type": "Topic", "resource": "orders", "pattern": "LITERAL", "principal": "User:alice", "host": "*"}
    wanted = told | {"operation": "DESCRIBE_CONFIGS", "permission": "ALLOW"}
    assert rows == [wanted]
    assert journal == [wanted | {"is_deleted": True}], "once, when the last id is gone"
    assert read(tmp_path, "acl", one, two, without_one)[0] == [wanted]
    unknown = R.ACCESS_CONTROL_ENTRY, ACL | {"id": b"3" * 16, "operation": 0}
    assert read(tmp_path, "acl", unknown)[0][0]["operation"] == "UNKNOWN"


def test_a_code_that_kafka_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Permanent, match=r"offset 0, .* the code 77"):
        read(tmp_path, "acl", (R.ACCESS_CONTROL_ENTRY, ACL | {"id": b"1" * 16, "operation": 77}))


def test_producer_ids_are_one_row(tmp_path: Path) -> None:
    told = [(R.PRODUCER_IDS, {"brokerId": 1, "brokerEpoch": -1, "nextProducerId": n}) for n in (1000, 2000, 3000)]
    rows, journal = read(tmp_path, "producer-ids", *told, cut=2)
    assert rows == [{"scope": "cluster", "first": 2000, "next": 2000}]
    assert [row["next"] for row in journal] == [3000]


def test_tokens_have_a_digest_for_their_id(tmp_path: Path) -> None:
    rows, _ = read(tmp_path, "token", (R.DELEGATION_TOKEN, TOKEN))
    assert rows == [
        {
            "token": token_key(DIGESTER, SECRET), "owner": "User:alice", "requester": "User:bob",
            "renewers": json.dumps(["User:a", "User:z"], separators=(",", ":")), "issued": 1, "maximum": 3, "expires": 2,
        }
    ]  # fmt: skip
    assert read(tmp_path, "token", (R.DELEGATION_TOKEN, TOKEN), (R.REMOVE_DELEGATION_TOKEN, {"tokenId": SECRET}))[0] == []


def test_only_brokers_in_zookeeper_mode_have_a_registration_to_compare(tmp_path: Path) -> None:
    gone = R.UNREGISTER_BROKER, {"brokerId": 2, "brokerEpoch": 5}
    told = [broker(1, rack="r"), broker(2), gone, broker(3), broker(3, is_migrating=False), broker(4, is_migrating=False)]
    rows, _ = read(tmp_path, "registration", *told)
    assert rows == [{"broker": "1", "endpoints": '["EXTERNAL://[::1]:9092","PLAINTEXT://h:9092"]', "rack": "r"}]


def test_a_removed_topic_takes_its_configs_and_a_new_one_of_that_name_has_none(tmp_path: Path) -> None:
    def topic(id_: bytes) -> Told:
        return R.TOPIC, {"name": "t", "topicId": id_ * 16}

    told = [topic(b"1"), config(2, "t", "retention.ms", "1"), (R.REMOVE_TOPIC, {"topicId": b"1" * 16}), topic(b"2")]
    assert read(tmp_path, "topic-config", *told)[0] == []
    assert len(read(tmp_path, "topic", *told)[0]) == 1
    _, journal = read(tmp_path, "topic-config", *told, cut=2)
    assert [(row["name"], row["is_deleted"]) for row in journal] == [("retention.ms", True)]


def test_no_secret_is_in_any_row_or_error(tmp_path: Path) -> None:
    told = [config(4, "7", "sasl.jaas.config", SECRET), (R.USER_SCRAM_CREDENTIAL, CREDENTIAL), (R.DELEGATION_TOKEN, TOKEN)]
    told += [config(2, "t", "some.password", SECRET)]
    for kind in KINDS:
        assert SECRET not in repr(read(tmp_path, kind, *told, cut=0))
        assert SECRET not in repr(read(tmp_path, kind, *told))
    cut = message(R.CONFIG, 0, told[0][1])[:-4]
    (tmp_path / f"{0:020}.log").write_bytes(batch_of(0, [cut]))
    source = KraftSource(KraftFiles(directory=tmp_path), DIGESTER)
    with pytest.raises(Permanent, match="ConfigRecord") as refused:
        list(source.read(source.splits(1)[0], frozenset(KINDS)))
    assert SECRET[:8] not in str(refused.value)
    assert SECRET not in repr(source)


def test_every_row_says_where_it_was_read(tmp_path: Path) -> None:
    first = batch_of(0, [message(R.NO_OP, 0, {})] * 3)
    topic = {"name": "t", "topicId": b"1" * 16}
    state = {"leader": 1, "leaderRecoveryState": 0, "leaderEpoch": 0, "partitionEpoch": 0}
    lists = dict.fromkeys(("replicas", "isr", "removingReplicas", "addingReplicas"), (1,))
    partition = {"partitionId": 0, "topicId": b"1" * 16} | state | lists
    second = batch_of(3, [message(R.TOPIC, 0, topic), message(R.PARTITION, 0, partition)])
    third = batch_of(5, [message(R.PARTITION_CHANGE, 0, {"partitionId": 0, "topicId": b"1" * 16, "leader": 2})])
    (tmp_path / f"{0:020}.log").write_bytes(first + second + third)
    for cut, at, batch in ((5, 4, len(first)), (6, 5, len(first) + len(second))):
        source = KraftSource(KraftFiles(directory=tmp_path, cut=cut), DIGESTER)
        (part,) = (p for p in source.read(source.splits(1)[0], frozenset({"partition"})) if not p.is_journal)
        assert part.batch.select(["segment", "batch", "at"]).to_pylist() == [
            {"segment": f"{0:020}.log", "batch": batch, "at": at}
        ]
