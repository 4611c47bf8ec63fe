"""Znodes as rows: every kind, in Kafka's spelling and in others."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.drift import normalise
from domain.drift.digests import Digester
from domain.drift.records import KINDS, PARTITION
from playground.passwords import encrypted
from playground.zookeeper_files import state_json, topic_json
from spark.codec.encoded_password import Undecodable, decoded, is_encoded
from spark.comparing.fields import Circumstances, compare_fields
from spark.rows import schema_of
from spark.sources import topic_znodes, zookeeper_rows
from spark.sources.zookeeper_rows import Notes, rows_of

DIGESTER = Digester(b"0123456789abcdef")
ID = "8PHy8_T19vf4-fr7_P3-_w"
OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
ALL = frozenset(KINDS)
ENCODER = "of the encoder"
ORIGIN = ("segment", "batch", "at")


@dataclass(frozen=True)
class Read:
    path: str
    data: bytes
    mzxid: int = 9


def rows(
    znodes: Iterable[Read], secret: str | None = None, notes: Notes | None = None, is_copy: bool = False
) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for read in rows_of(znodes, ALL, DIGESTER, secret, notes, is_copy):
        assert read.batch.schema == schema_of(read.kind)
        read.batch.validate(full=True)
        found.setdefault(read.kind, []).extend(read.batch.to_pylist())
    return {kind: listed for kind, listed in found.items() if listed}


def only(znode: Read, **more: Any) -> list[tuple[object, ...]]:
    """The rows of one znode, without their origin."""
    found = rows([znode], **more)
    assert len(found) <= 1
    return [tuple(value for name, value in row.items() if name not in ORIGIN) for row in next(iter(found.values()), [])]


def configs(of: Mapping[str, str]) -> bytes:
    return json.dumps({"version": 1, "config": of}).encode()


# ---- topics and partitions ----


def topic(name: str, partitions: Mapping[int, list[int]], id_: str = ID) -> Read:
    return Read(f"/brokers/topics/{name}", topic_json(id_, partitions), 5)


def state(name: str, partition: int, content: bytes, mzxid: int = 7) -> Read:
    return Read(f"/brokers/topics/{name}/partitions/{partition}/state", content, mzxid)


def partition_of(znodes: Iterable[Read], **more: Any) -> list[tuple[object, ...]]:
    return [tuple(row.values())[1:9] for row in rows(znodes, **more)["partition"]]


def test_a_topic_and_its_partitions() -> None:
    found = rows([topic("t", {1: [2, 3], 0: [3, 1]}), state("t", 0, state_json(1, [3, 1, 3], 4))], is_copy=True)
    at = {"segment": "", "batch": -1}
    assert found["topic"] == [{"topic": "t", "topic_id": ID, **at, "at": 5}]
    common = {"topic_id": bytes(range(240, 256)), "adding": [], "removing": [], "recovery": 0, **at}
    assert found["partition"] == [
        {**common, "partition": 1, "replicas": [2, 3], "leader": 2, "isr": [2, 3], "leader_epoch": 0, "at": 5},
        {**common, "partition": 0, "replicas": [3, 1], "leader": 1, "isr": [1, 3], "leader_epoch": 4, "at": 7},
    ]


@pytest.mark.parametrize("more", [[], [state("t", 0, b"")]])
def test_a_missing_state_is_what_kafkas_copy_makes_of_it_and_later_nothing(more: list[Read]) -> None:
    """In dual write Kafka keeps states: one that is gone was taken away behind its back, and must not look like the copy's."""
    znodes = [topic("t", {0: [3, 1], 1: [1, 3]}), *more, state("t", 1, state_json(1, [3, 1]))]
    there: tuple[object, ...] = (1, [1, 3], [], [], 1, [1, 3], 0, 0)
    assert partition_of(znodes, is_copy=True) == [(0, [3, 1], [], [], 3, [1, 3], 0, 0), there]
    assert partition_of(znodes) == [(0, [3, 1], [], [], None, None, None, None), there]


@pytest.mark.parametrize("is_copy", [True, False])
def test_what_kraft_says_of_a_partition_without_a_state(is_copy: bool) -> None:
    znodes = [topic("t", {0: [3, 1], 1: [1, 3]}), state("t", 1, state_json(1, [3, 1]))]
    (found,) = rows_of(znodes, frozenset({"partition"}), DIGESTER, is_before_dual_write=is_copy)
    left = pa.Table.from_batches([found.batch])
    right = pa.Table.from_pylist([*rows(znodes, is_copy=True)["partition"]], schema=left.schema)
    marks = compare_fields(PARTITION, left, right, Circumstances(is_before_dual_write=is_copy))
    told = {mark.field.name for mark in marks if mark.differs.tolist() != [False, False]}
    assert told == (set() if is_copy else {"leader", "isr", "leader_epoch", "recovery"})
    assert all(not mark.differs[1] for mark in marks)


def test_no_leader_and_recovery() -> None:
    content = b'{"controller_epoch":1,"leader":-1,"version":1,"leader_epoch":7,"isr":[],"leader_recovery_state":1}'
    assert partition_of([topic("t", {0: [3]}), state("t", 0, content)]) == [(0, [3], [], [], -1, [], 7, 1)]


def test_a_reassignment() -> None:
    content = {"version": 3, "topic_id": ID, "partitions": {"0": [1, 2, 3], "1": [1]}}
    moving = {"adding_replicas": {"0": [3, 2]}, "removing_replicas": {"0": [1]}}
    found = partition_of([Read("/brokers/topics/t", json.dumps(content | moving).encode())], is_copy=True)
    assert found == [(0, [1, 2, 3], [2, 3], [1], 1, [1, 2, 3], 0, 0), (1, [1], [], [], 1, [1], 0, 0)]


@pytest.mark.parametrize(
    "content",
    [
        b'{"version":2,"partitions":{"0":[1],"1":[2]},"topic_id":"%s","adding_replicas":{}}' % ID.encode(),
        b'{ "version": 1,\n "partitions": {"0": [1], "1": [2]}, "topic_id": "%s"}' % ID.encode(),
        b'{"version":3,"topic_id":"%s","partitions":{"0":[9],"1":[2],"0":[1]}}' % ID.encode(),
        b'{"version":3,"topic_id":"%s==","unknown":{"deep":[1]},"partitions":{"0":[1],"1":[2]}}' % ID.encode(),
    ],
)
def test_other_spellings_of_a_topic(content: bytes) -> None:
    beside = topic("u", {0: [1]}, OTHER_ID)
    found = rows([Read("/brokers/topics/t", content), beside])
    assert {row["topic"]: row["topic_id"] for row in found["topic"]} == {"t": ID, "u": OTHER_ID}
    assert sorted((row["partition"], *row["replicas"]) for row in found["partition"]) == [(0, 1), (0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no JSON"),
        (b"[]", "no JSON object"),
        (b'{"version":2,"partitions":{"0":[1]}}', "topic_id"),
        (b'{"version":3,"topic_id":"short","partitions":{}}', "UUID"),
        (b'{"version":3,"topic_id":"%s","partitions":{"0":[1,]}}' % ID.encode(), "no JSON"),
        (b'{"version":3,"topic_id":"%s","partitions":{"x":[1]}}' % ID.encode(), "lists of broker ids"),
        (b'{"version":3,"topic_id":"%s","partitions":{"0":[1e99]}}' % ID.encode(), "lists of broker ids"),
        (b'{"version":3,"topic_id":"%s","partitions":{"0":[null]}}' % ID.encode(), "lists of broker ids"),
        (b'{"version":3,"topic_id":"%s","partitions":{"-1":[1]}}' % ID.encode(), "lists of broker ids"),
        (b'{"version":3,"topic_id":"%s","partitions":{"0":[99999999999]}}' % ID.encode(), "lists of broker ids"),
        (b'{"version":3,"topic_id":"%s","partitions":{"3000000000":[1]}}' % ID.encode(), "lists of broker ids"),
        (b'{"version":3,"topic_id":"\\ud800","partitions":{}}', "UUID"),
        (b'{"version":3,"topic_id":"%s","partitions":7}' % ID.encode(), "no JSON object"),
    ],
)
def test_a_topic_that_cannot_be_read_is_named_and_the_others_are_read(content: bytes, why: str) -> None:
    notes = Notes()
    znodes = [topic("a", {0: [1]}), Read("/brokers/topics/t", content), state("t", 0, state_json(1, [1]))]
    found = rows([*znodes, topic("b", {0: [2]}, OTHER_ID)], notes=notes)
    assert [row["topic"] for row in found["topic"]] == ["a", "b"]
    assert [row["replicas"] for row in found["partition"]] == [[1], [2]]
    (told,) = notes.not_read
    assert told.startswith("/brokers/topics/t ")
    assert why in told


@pytest.mark.parametrize(
    "content",
    [
        b"x",
        b"{}",
        b" ",
        b"[1]",
        b"null",
        b"\nnull",
        b"null}",
        b"[" * 100_000,
        b'{"isr":' + b"[" * 100_000,
        state_json(1, [1]) * 2,
        b'{"controller_epoch":1,"leader":01,"version":1,"leader_epoch":0,"isr":[1]}',
        b'{"controller_epoch":1,"leader":NaN,"version":1,"leader_epoch":0,"isr":[1]}',
        b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":null}',
        b'{"leader":1}\n{"leader":2}',
        b'{"controller_epoch":1,"leader":1.5,"version":1,"leader_epoch":0,"isr":[1]}',
        b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[null]}',
        b'{"controller_epoch":1,"leader":99999999999,"version":1,"leader_epoch":0,"isr":[1]}',
    ],
)
def test_a_state_that_cannot_be_read_is_named_and_the_others_are_read(content: bytes) -> None:
    notes = Notes()
    znodes = [topic("t", {0: [1], 1: [2, 1]}), state("t", 0, content), state("t", 1, state_json(2, [2]))]
    found = rows(znodes, notes=notes)
    assert found["partition"][1]["isr"] == [2]
    (told,) = notes.not_read
    assert told.startswith("/brokers/topics/t/partitions/0/state ")


def test_states_that_only_pieces_of_json_make() -> None:
    """Arrow's reader, asked for `null` alone, takes the process down."""
    notes = Notes()
    assert len(rows([topic("t", {0: [1]}), state("t", 0, b"null")], notes=notes)["partition"]) == 1
    assert len(notes.not_read) == 1


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from([*b'{}[]",:0123456789-.eEn\\\n\r\x00\xff ']).map(lambda byte: bytes([byte]))
        | st.sampled_from(
            [b"null", b"NaN", b"true", b'"leader":1', b'"leader_epoch":2', b'"isr":[1]', b'"isr":[', state_json(1, [1])]
        ),
        max_size=9,
    ).map(b"".join)
)
def test_a_state_is_what_pythons_reader_makes_of_it(content: bytes) -> None:
    """Whatever stands there: alone or among others, of Kafka's own spelling or not."""
    notes, known = Notes(), state_json(1, [1], 6)
    znodes = [state("t", 0, content), state("t", 1, known)]
    found = partition_of([topic("t", {0: [1], 1: [1]}), *znodes], notes=notes)
    assert found[1] == (1, [1], [], [], 1, [1], 6, 0)
    try:
        told = json.loads(content)
        is_read = isinstance(told, dict) and {"leader", "leader_epoch", "isr"} <= told.keys()
    except ValueError:
        is_read = False
    if content and not is_read:
        assert len(notes.not_read) == 1


@settings(deadline=None)
@given(
    st.sampled_from([0, 7, 12345678, 123456789, 1234567890, 2**31 - 1, 2**31, 99999999999, -1, -(2**31), -(2**31) - 1]),
    st.lists(st.integers(-3, 2**31 + 1), max_size=5),
    st.integers(0, 90),
    st.sampled_from([b"", b"0", b"9", b"-", b",", b"]", b"}", b"1,", b" ", b"00000000000000000000"]),
    st.integers(0, 2),
)
def test_a_state_among_others_of_its_layout(number: int, isr: list[int], place: int, more: bytes, fewer: int) -> None:
    """Whatever is changed in it: read as Python's reader reads it, or named."""
    known = state_json(1, [1, 2, 3], 6)
    whole = json.dumps({**json.loads(known), "leader_epoch": number, "isr": isr}, separators=(",", ":")).encode()
    content = whole[:place] + more + whole[place + fewer :]
    notes = Notes()
    znodes = [topic("t", {0: [1], 1: [1], 2: [1]}), *(state("t", n, told) for n, told in enumerate((known, content, known)))]
    found = partition_of(znodes, notes=notes)
    assert found[0][1:] == found[2][1:] == ([1], [], [], 1, [1, 2, 3], 6, 0)
    try:
        told = topic_znodes._state(content)
    except ValueError:
        assert len(notes.not_read) == 1
    else:
        assert found[1][4:] == (told["leader"], sorted(set(told["isr"])), told["leader_epoch"], told["leader_recovery_state"])


def test_keys_that_come_twice() -> None:
    """The last one counts, as for Kafka."""
    twice = b'{"controller_epoch":1,"leader":1,"leader":2,"version":1,"leader_epoch":3,"isr":[1],"isr":[2]}'
    assert partition_of([topic("t", {0: [1]}), state("t", 0, twice)]) == [(0, [1], [], [], 2, [2], 3, 0)]


def test_kafkas_own_spelling_is_read_the_quick_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a real tree is never read one by one: any order of keys, no leader, a recovery."""
    monkeypatch.setattr(topic_znodes, "json_object", None)
    contents = [
        b'{"controller_epoch":71,"leader":-1,"version":1,"leader_epoch":0,"isr":[]}',
        b'{"isr":[100,7],"leader":7,"leader_epoch":123456789,"leader_recovery_state":1,"controller_epoch":0,"version":1}',
    ]
    moved = b'{"removing_replicas":{},"partitions":{"1":[],"0":[100,7]},"topic_id":"%s","adding_replicas":{},"version":3}'
    znodes = [Read("/brokers/topics/t", moved % ID.encode()), *(state("t", n, content) for n, content in enumerate(contents))]
    assert partition_of(znodes) == [(1, [], [], [], 7, [7, 100], 123456789, 1), (0, [100, 7], [], [], -1, [], 0, 0)]


def test_a_state_over_several_lines() -> None:
    content = b'{\n"leader":1,\n"leader_epoch":2,\n"isr":[1],"leader_recovery_state":0}'
    assert partition_of([topic("t", {0: [1]}), state("t", 0, content)]) == [(0, [1], [], [], 1, [1], 2, 0)]


def test_topics_being_deleted_and_orphans_are_no_rows() -> None:
    notes = Notes()
    gone, kept = topic("gone", {0: [1]}), topic("kept", {0: [1]}, OTHER_ID)
    found = rows(
        [
            Read("/admin/delete_topics/gone", b""),
            gone,
            state("gone", 0, state_json(1, [1])),
            kept,
            *(Read(f"/config/topics/{name}", configs({"retention.ms": "1"})) for name in ("gone", "kept", "orphan")),
        ],
        notes=notes,
    )
    assert [row["topic"] for row in found["topic"] + found["topic-config"]] == ["kept", "kept"]
    assert len(found["partition"]) == 1
    assert not notes.not_read


assignments = st.dictionaries(
    st.integers(0, 30), st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True), min_size=1, max_size=8
)


@settings(deadline=None)
@given(st.lists(st.tuples(assignments, st.randoms(use_true_random=False)), min_size=1, max_size=6), st.integers(1, 12))
def test_many_topics_are_what_each_is_by_itself(made: list[tuple[dict[int, list[int]], Any]], batch: int) -> None:
    """Against reading one by one, with states in any order, some missing, and batches that end anywhere."""
    znodes: list[Read] = []
    expected: dict[tuple[bytes, int], tuple[object, ...]] = {}
    for number, (assigned, chance) in enumerate(made):
        id_ = f"AAAAAAAAAAAAAAAAAAAA{number}Q"
        znodes.append(topic(f"t{number}", assigned, id_))
        for partition in chance.sample(sorted(assigned), len(assigned)):
            isr = chance.sample(assigned[partition], chance.randint(0, len(assigned[partition])))
            key = normalise.uuid_bytes(id_), partition
            if isr:
                znodes.append(state(f"t{number}", partition, state_json(isr[0], isr, partition)))
            leader, epoch = (isr[0], partition) if isr else (assigned[partition][0], 0)
            expected[key] = (assigned[partition], [], [], leader, sorted(isr or assigned[partition]), epoch, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zookeeper_rows, "BATCH", batch)
        found = rows(znodes, is_copy=True)
    listed = [tuple(row.values()) for row in found["partition"]]
    assert {(id_, partition): tuple(rest[:7]) for id_, partition, *rest in listed} == expected
    assert len(listed) == len(expected)


# ---- configs and quotas ----


def test_broker_configs() -> None:
    found = only(Read("/config/brokers/<default>", configs({"log.roll.ms": "7", "metric.reporters": ""})))
    assert found == [("", "log.roll.ms", "7", ""), ("", "metric.reporters", "", "")]
    assert only(Read("/config/brokers/1", configs({}))) == []
    assert only(Read("/config/brokers/1", b"")) == []


def test_a_broker_config_that_is_not_known_is_no_plain_text() -> None:
    """Plug-ins read configs of any name, and Kafka keeps them as they are, on both sides."""
    name = "our.reporter.api.key"
    ((_, _, value, digest),) = only(Read("/config/brokers/1", configs({name: "hunter2"})))
    assert (value, digest) == normalise.broker_config(DIGESTER, "1", name, "hunter2")
    assert value is None
    assert digest


def test_passwords() -> None:
    name = "listener.name.internal.ssl.key.password"
    znode = Read("/config/brokers/1", configs({name: encrypted("hunter2", ENCODER)}))
    in_kraft = normalise.broker_config(DIGESTER, "1", name, "hunter2")
    assert only(znode, secret=ENCODER) == [("1", name, *in_kraft)]
    assert only(znode, secret=ENCODER[1:]) == [("1", name, None, None)]
    assert only(znode) == [("1", name, None, None)]
    assert only(Read("/config/brokers/1", configs({name: "hunter2"}))) == [("1", name, *in_kraft)]
    assert "hunter2" not in str(rows([znode], "encoder"))


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.text("ab", min_size=1))
def test_a_password_is_had_with_its_secret_only(password: str, secret: str) -> None:
    """Lengths are counted as Java counts: in UTF-16."""
    text = encrypted(password, secret)
    assert is_encoded(text)
    assert decoded(text, secret) == password
    with pytest.raises(Undecodable):
        decoded(text, secret + "x")


@pytest.mark.parametrize("text", ["", "hunter2", "a:b,c:d", "salt:x"])
def test_what_is_not_encoded(text: str) -> None:
    assert not is_encoded(text)


def test_damaged_and_unknown_encodings() -> None:
    right = encrypted("hunter2", "s")
    for old, new in [
        ("AES/CBC/PKCS5Padding", "DES/CBC/PKCS5Padding"),
        ("PBKDF2WithHmacSHA512", "Home-made"),
        ("salt:", "salt:!"),
        ("keyLength:128", "keyLength:99999999999"),
        ("iterations:4096", "iterations:99999999999"),
        ("iterations:4096", "iterations:-1"),
    ]:
        with pytest.raises(Undecodable):
            decoded(right.replace(old, new), "s")


@pytest.mark.parametrize(
    ("path", "entity"),
    [
        ("/config/users/alice", '[["user","alice"]]'),
        ("/config/users/<default>", '[["user",null]]'),
        ("/config/users/%3Cdefault%3E", '[["user","<default>"]]'),
        ("/config/users/CN%3DA%20B%2COU%3D%2A", '[["user","CN=A B,OU=*"]]'),
        ("/config/users/al/clients/app", '[["client-id","app"],["user","al"]]'),
        ("/config/users/al/clients/<default>", '[["client-id",null],["user","al"]]'),
        ("/config/users/<default>/clients/<default>", '[["client-id",null],["user",null]]'),
        ("/config/clients/%E6%9D%B1", '[["client-id","東"]]'),
        ("/config/clients/<default>", '[["client-id",null]]'),
        ("/config/ips/10.0.0.1", '[["ip","10.0.0.1"]]'),
        ("/config/ips/<default>", '[["ip",null]]'),
    ],
)
def test_quotas(path: str, entity: str) -> None:
    found = only(Read(path, configs({"producer_byte_rate": "1024", "request_percentage": "0.5", "odd": "x"})))
    assert found == [(entity, "producer_byte_rate", 1024.0), (entity, "request_percentage", 0.5), (entity, "odd", None)]
    assert only(Read(path, configs({}))) == []
    assert only(Read(path, b"")) == []


def test_scram_lies_beside_quotas() -> None:
    secret = "salt=c2FsdA==,stored_key=a2V5,server_key=c2Vydg==,iterations=8192"
    znode = Read("/config/users/a%40b", configs({"SCRAM-SHA-512": secret, "consumer_byte_rate": "1"}))
    found = rows([znode])
    assert [row["name"] for row in found["quota"]] == ["consumer_byte_rate"]
    (row,) = found["scram"]
    assert (row["user"], row["mechanism"], row["iterations"]) == ("a@b", "SCRAM-SHA-512", 8192)
    assert row["salt"] == normalise.scram_digest(DIGESTER, "a@b", "SCRAM-SHA-512", "salt", b"salt")
    for told in ("c2FsdA", "a2V5", "c2Vydg"):
        assert told not in str(found)


# ---- ACLs, ids, tokens, brokers ----


def acl(*entries: tuple[str, str, str, str]) -> bytes:
    keys = ("principal", "permissionType", "operation", "host")
    return json.dumps({"version": 1, "acls": [dict(zip(keys, entry, strict=True)) for entry in entries]}).encode()


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("/kafka-acl/Topic/*", ("Topic", "*", "LITERAL")),
        ("/kafka-acl/Topic/a/b/c", ("Topic", "a/b/c", "LITERAL")),
        ("/kafka-acl/Cluster/kafka-cluster", ("Cluster", "kafka-cluster", "LITERAL")),
        ("/kafka-acl/TransactionalId/東 x", ("TransactionalId", "東 x", "LITERAL")),
        ("/kafka-acl-extended/prefixed/Group/team-", ("Group", "team-", "PREFIXED")),
    ],
)
def test_acls(path: str, resource: tuple[str, str, str]) -> None:
    entry = ("User:CN=a,b", "Deny", "DescribeConfigs", "*")
    found = only(Read(path, acl(entry, entry, ("User:*", "Allow", "Read", "10.0.0.1"))))
    assert found == [
        (*resource, "User:*", "10.0.0.1", "READ", "ALLOW"),
        (*resource, "User:CN=a,b", "*", "DESCRIBE_CONFIGS", "DENY"),
    ]
    assert only(Read(path, b"")) == []
    assert only(Read(path, acl())) == []


def test_producer_ids() -> None:
    block = b'{"version":1,"broker":1,"block_start":"1000","block_end":"1999"}'
    assert only(Read("/latest_producer_id_block", block)) == [("cluster", 1000, 2000)]
    assert only(Read("/latest_producer_id_block", b"")) == []


def test_tokens() -> None:
    times = {"issueTimestamp": 1, "maxTimestamp": 3, "expiryTimestamp": 2}
    told = {"version": 3, "owner": "User%3Aal%20ice", "tokenRequester": "User%3Abob", "renewers": ["User%3Az", "User%3Ac"]}
    content = json.dumps(told | times | {"tokenId": "abc"}).encode()
    key = normalise.token_key(DIGESTER, "abc")
    renewers = '["User:c","User:z"]'
    assert only(Read("/delegation_token/tokens/abc", content)) == [(key, "User:al ice", "User:bob", renewers, 1, 3, 2)]
    del told["tokenRequester"]
    older = json.dumps(told | times | {"tokenId": "abc", "version": 2}).encode()
    assert only(Read("/delegation_token/tokens/abc", older))[0][2] == "User:al ice"
    assert only(Read("/delegation_token/tokens/abc", b"")) == []


def test_registrations_and_the_cluster() -> None:
    told = {"version": 5, "host": "h", "port": 9092, "endpoints": ["SSL://[::1]:9093", "plaintext://h:9092"], "rack": "r1"}
    found = only(Read("/brokers/ids/7", json.dumps(told).encode()))
    assert found == [("7", '["PLAINTEXT://h:9092","SSL://[::1]:9093"]', "r1")]
    assert only(Read("/brokers/ids/7", b'{"version":1,"host":"h","port":1}')) == [("7", '["PLAINTEXT://h:1"]', None)]
    assert only(Read("/cluster/id", b'{"version":"1","id":"xyz"}')) == [("cluster-id", "xyz")]


@pytest.mark.parametrize(
    "path",
    [
        "/consumers/g",
        "/controller",
        "/brokers/seqid",
        "/config",
        "/config/users",
        "/config/changes/x",
        "/kafka-acl/Topic",
        "/",
        "",
    ],
)
def test_what_is_no_row(path: str) -> None:
    assert rows([Read(path, b"anything")]) == {}


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/config/brokers/1", b"broken"),
        ("/config/brokers/1", b'{"config":{"ssl.key.password":7}}'),
        ("/config/users/u", configs({"SCRAM-SHA-256": "salt=c2VjcmV0"})),
        ("/kafka-acl/Topic/t", b'{"version":1}'),
        ("/kafka-acl/Nonsense/t", acl()),
        ("/latest_producer_id_block", b'{"block_start":"c2VjcmV0","block_end":"2"}'),
        ("/delegation_token/tokens/t", b'{"version":3,"owner":"User%3Aa","renewers":[]}'),
        ("/brokers/ids/1", b'{"endpoints":["nowhere"]}'),
        ("/cluster/id", b"[]"),
        ("/cluster/id", b'{"id":"c2VjcmV0\xed\xa0\x80"}'),
        ("/config/brokers/1", b'{"config":{"x":"c2VjcmV0\\ud800"}}'),
        ("/config/users/u", b'{"config":{"c2VjcmV0\\ud800":"1"}}'),
        ("/config/users/u", configs({"SCRAM-SHA-256": "salt=YQ==,stored_key=YQ==,server_key=YQ==,iterations=99999999999"})),
        ("/config/users/u", configs({"SCRAM-SHA-256": "salt=YQ==,stored_key=YQ==,server_key=YQ==,iterations=٣"})),
        ("/config/users/u", configs({"SCRAM-SHA-256": "salt=é,stored_key=YQ==,server_key=YQ==,iterations=1"})),
        ("/kafka-acl/Topic/t", b'{"acls":[{"principal":"\\udfff","host":"*","operation":"Read","permissionType":"Allow"}]}'),
        ("/kafka-acl/Topic/t", b'{"acls":[7]}'),
        ("/latest_producer_id_block", b'{"block_start":"0","block_end":"9223372036854775807"}'),
        ("/latest_producer_id_block", b'{"block_start":"9999999999999999999","block_end":"9"}'),
        (
            "/delegation_token/tokens/t",
            b'{"owner":"User:a","renewers":[],"tokenId":"c2VjcmV0","issueTimestamp":1,"maxTimestamp":1,"expiryTimestamp":%d}'
            % 2**63,
        ),
        ("/brokers/ids/1", b'{"endpoints":5}'),
        ("/brokers/ids/1", b'{"endpoints":"PLAINTEXT://h:1"}'),
    ],
)
def test_what_cannot_be_read_is_named_without_its_values(path: str, data: bytes) -> None:
    notes = Notes()
    assert rows([Read(path, data)], notes=notes) == {}
    (told,) = notes.not_read
    assert told.startswith(f"{path.replace('tokens/t', 'tokens/…')} ")
    assert "c2VjcmV0" not in told


FORMS = {
    "/brokers/topics/t": topic_json(ID, {0: [1, 2]}),
    "/brokers/topics/t/partitions/0/state": state_json(1, [1, 2]),
    "/brokers/topics/t/partitions/99999999999999999999/state": state_json(1, [1, 2]),
    "/config/topics/u": configs({"retention.ms": "1"}),
    "/config/brokers/1": configs({"ssl.key.password": "a", "log.roll.ms": "1"}),
    "/config/users/u": configs({"SCRAM-SHA-256": "salt=YQ==,stored_key=YQ==,server_key=YQ==,iterations=9", "x": "1"}),
    "/config/clients/c": configs({"consumer_byte_rate": "1e3"}),
    "/kafka-acl/Topic/t": acl(("User:x", "Allow", "Read", "*")),
    "/latest_producer_id_block": b'{"version":1,"broker":1,"block_start":"1000","block_end":"1999"}',
    "/delegation_token/tokens/x": b'{"version":3,"owner":"User%3Aa","tokenRequester":"User%3Aa","renewers":["User%3Ab"],'
    b'"issueTimestamp":1,"maxTimestamp":3,"expiryTimestamp":2,"tokenId":"x"}',
    "/brokers/ids/7": b'{"version":5,"endpoints":["SSL://[::1]:9093"],"rack":"r1","host":"h","port":1}',
    "/cluster/id": b'{"version":"1","id":"xyz"}',
}
ODD = (
    *(b"null", b"true", b"NaN", b"-Infinity", b"1.5", b"1e999", b"9" * 30, b"9" * 5000, b"-1", b"[]", b"{}", b'""', b"[null]"),
    *(
        b'"\\ud800"',
        b'"\xed\xa0\x80"',
        b'"\xff"',
        b'"\\u0000"',
        b'{"a":{"a":5}}',
        b"[" * 3000,
        b"\n",
        b"}{",
        b"\xef\xbb\xbf",
        b'"99999999999"',
    ),
    *(b'{"\\ud800":"1"}', b'{"3000000000":[1]}', b'{"0":[1],"0":[2]}', b'["\\udfff"]', b'"\xd9\xa3"', b"\x00"),
)
VALUE = re.compile(rb'"[^"]*"(?!:)|-?[0-9]+|\[[^\[\]{}]*\]|\{[^{}]*\}')


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """One value or one piece of it is another, or it is all something else."""
    if draw(st.booleans()):
        found = draw(st.sampled_from(list(VALUE.finditer(content))))
        begin, end = found.span()
    else:
        begin, end = sorted((draw(st.integers(0, len(content))), draw(st.integers(0, len(content)))))
    return content[:begin] + draw(st.sampled_from(ODD) | st.binary(max_size=12)) + content[end:]


@settings(deadline=None, max_examples=400)
@given(st.data(), st.sampled_from(sorted(FORMS)))
def test_whatever_a_znode_says_it_is_rows_or_named(data: st.DataObject, path: str) -> None:
    content = data.draw(damaged(FORMS[path]))
    others = [Read("/brokers/topics/u", topic_json(OTHER_ID, {0: [1]})), state("u", 0, state_json(1, [1]))]
    above = [Read("/brokers/topics/t", FORMS["/brokers/topics/t"])] if path.startswith("/brokers/topics/t/") else []
    notes = Notes()
    found = rows([*others, *above, Read(path, content)], notes=notes)
    assert "u" in {row["topic"] for row in found["topic"]}
    json.dumps([*found.keys(), *notes.not_read], ensure_ascii=False).encode()
    assert len(notes.not_read) <= 1


def test_so_many_are_named_and_the_rest_is_counted() -> None:
    notes = Notes()
    rows([Read(f"/config/brokers/{number}", b"broken") for number in range(23)], notes=notes)
    assert notes.not_read[0].startswith("/config/brokers/0 ")
    assert notes.not_read[19].startswith("/config/brokers/19 ")
    assert notes.not_read[20:] == ["… and 3 more like these"]


def test_a_topic_of_more_partitions_than_a_batch_is_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its states are not taken before all of them are there, so nothing is to be taken with each of them."""
    monkeypatch.setattr(zookeeper_rows, "BATCH", 10)
    taken: list[int] = []
    monkeypatch.setattr(zookeeper_rows.Gathered, "taken", _counting(zookeeper_rows.Gathered.taken, taken))
    states = [state("t", number, state_json(1, [1])) for number in range(500)]
    found = rows([topic("before", {0: [1]}, OTHER_ID), topic("t", {n: [1] for n in range(500)}), *states])
    assert len(found["partition"]) == 501
    assert len(taken) == 1


def _counting(method: Callable[[Any], Iterator[Any]], calls: list[int]) -> Callable[[Any], Iterator[Any]]:
    def counted(self: object) -> Iterator[Any]:
        calls.append(1)
        return method(self)

    return counted


def test_only_the_kinds_that_are_asked_for() -> None:
    znodes = [topic("t", {0: [1]}), Read("/config/topics/t", configs({"a": "b"}))]
    for kinds in ({"topic"}, {"partition"}, {"topic-config"}, {"quota"}):
        assert {read.kind for read in rows_of(znodes, frozenset(kinds), DIGESTER)} == kinds - {"quota"}
