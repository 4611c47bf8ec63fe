"""`poisoned_znodes`: what Kafka 3.9 writes is well formed, and each poison is found, by its path and without its content."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from activities.ports.zookeeper import Znode
from activities.zk_to_kraft.poison import MOST_NAMED, poisoned_znodes
from domain.observed.observation import Suspect
from playground.fakes.tree import FakeTree

SCRAM = "salt=MWx2NHBkbnc0ZndxN25vdGN4bTB5Y3U=,stored_key=wQ8NNLXwpxcS3OgdAZwmDA==,server_key=EOsY3Ug0bB9ZnQ==,iterations=8192"
PASSWORD = (
    "keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,keyLength:128,salt:AbCd,iterations:4096,"
    "encryptedPassword:c2VjcmV0,passwordLength:6,initializationVector:AAAA"
)
TOPIC = {
    "version": 3,
    "topic_id": "RzS9cdZ8QFyaV6xGT_q1-w",
    "partitions": {"0": [1, 2, 3], "1": [2, 3, 1]},
    "adding_replicas": {},
    "removing_replicas": {"1": [1]},
}
ANOTHER = TOPIC | {"topic_id": "AAAAAAAAQACAAAAAAAAAAg"}
STATE = {"controller_epoch": 4, "leader": -1, "version": 1, "leader_epoch": 2, "isr": [1, 2, 3], "leader_recovery_state": 1}
ACL = {"principal": "User:alice", "permissionType": "Allow", "operation": "DescribeConfigs", "host": "*"}
TOKEN = {
    "version": 3,
    "owner": "User%3Aalice",
    "tokenRequester": "User:bob",
    "renewers": ["User%3Acarol"],
    "issueTimestamp": 1763755462000,
    "maxTimestamp": 1764360262000,
    "expiryTimestamp": 1763841862000,
    "tokenId": "Zk5lU4Y9R6m-Zv9E3tUZNw",
}
BLOCK = {"version": 1, "broker": 1, "block_start": "4000", "block_end": "4999"}


def config(values: Mapping[str, str]) -> dict[str, Any]:
    return {"version": 1, "config": dict(values)}


WELL_FORMED: dict[str, Any] = {
    "/brokers/ids/1": {"version": 5, "host": "localhost", "port": 9092},
    "/brokers/ids/2": {},
    "/brokers/ids/3": {},
    "/brokers/topics/orders": TOPIC,
    "/brokers/topics/orders/partitions/0/state": STATE,
    "/brokers/topics/young": TOPIC | {"topic_id": "AAAAAAAAQACAAAAAAAAAAQ"},
    "/brokers/topics/going": b"",
    "/admin/delete_topics/going": b"",
    "/config/topics/orders": config({"min.insync.replicas": "2"}),
    "/config/topics/orphan": b"{",
    "/config/brokers/1": config({"ssl.keystore.password": PASSWORD, "log.retention.ms": "1"}),
    "/config/brokers/<default>": config({}),
    "/config/users/alice%40example": {
        "version": 1,
        "config": {"SCRAM-SHA-256": SCRAM, "SCRAM-SHA-512": SCRAM, "producer_byte_rate": "1.048576E7"},
    },
    "/config/users/only-a-parent": b"",
    "/config/users/only-a-parent/clients/reports": config({"request_percentage": "50.0"}),
    "/config/users/<default>/clients/<default>": config({"consumer_byte_rate": "1024"}),
    "/config/clients/batch": config({"controller_mutation_rate": " -1.5e-3d "}),
    "/config/ips/10.0.0.7": config({"connection_creation_rate": "Infinity"}),
    "/latest_producer_id_block": BLOCK,
    "/kafka-acl/Topic/orders": {"version": 1, "acls": [ACL, ACL | {"operation": "All", "permissionType": "DENY"}]},
    "/kafka-acl/Group/a": b"",
    "/kafka-acl-extended/prefixed/TransactionalId/billing-": {"version": 1, "acls": [ACL]},
    "/delegation_token/tokens/Zk5lU4Y9R6m-Zv9E3tUZNw": TOKEN,
    "/delegation_token/tokens/older": {k: v for k, v in TOKEN.items() if k != "tokenRequester"} | {"version": 2},
    "/delegation_token/tokens/expired": b"",
}


def tree_of(content: Mapping[str, Any]) -> FakeTree:
    def znode(value: Any) -> Znode:
        return Znode(value if isinstance(value, bytes) else json.dumps(value).encode(), 0, 0)

    return FakeTree({path: znode(value) for path, value in content.items()})


async def suspects(**poison: Any) -> tuple[Suspect, ...]:
    return await poisoned_znodes(tree_of(WELL_FORMED | poison))


async def test_what_kafka_writes_is_well_formed() -> None:
    assert await poisoned_znodes(tree_of(WELL_FORMED)) == ()
    assert await suspects(**{"/latest_producer_id_block": b""}) == ()


POISONS: list[tuple[str, Any, str]] = [
    # The copy aborts, after it has taken /controller.
    ("/kafka-acl/Topic/orders", {"version": 1, "acls": [ACL, ACL | {"principal": "alice"}]}, "principal of ACL 2 has no type"),
    ("/kafka-acl-extended/prefixed/Group/g", {"version": 1, "acls": [ACL | {"principal": "x"}]}, "principal of ACL 1"),
    ("/kafka-acl/Topic/orders", {"version": 2, "acls": []}, "version is not 1"),
    ("/kafka-acl/Topic/orders", {"version": 1, "acls": [{"principal": "User:a"}]}, "operation is not text"),
    ("/config/users/bob", config({"producer_byte_rate": "much"}), "value of producer_byte_rate is not a number"),
    ("/config/users/bob", config({"producer_byte_rate": "1_000"}), "value of producer_byte_rate is not a number"),
    ("/config/clients/batch", config({"request_percentage": ""}), "value of request_percentage is not a number"),
    ("/config/ips/10.0.0.8", config({"connection_creation_rate": "x"}), "value of connection_creation_rate is not a number"),
    ("/config/users/bob/clients/reports", config({"consumer_byte_rate": "x"}), "value of consumer_byte_rate is not a number"),
    ("/config/users/bob/clients/reports", {"config": {"SCRAM-SHA-256": SCRAM}}, "value of SCRAM-SHA-256 is not a number"),
    ("/config/users/b%zz", config({}), "not URL-encoded"),
    ("/config/users/bob", {"config": {"SCRAM-SHA-256": "salt=MTIz"}}, "SCRAM-SHA-256 has not the four parts"),
    ("/config/users/bob", {"config": {"SCRAM-SHA-256": f"{SCRAM},more=1"}}, "SCRAM-SHA-256 has not the four parts"),
    ("/config/users/bob", {"config": {"SCRAM-SHA-512": SCRAM.replace("8192", "many")}}, "iterations of SCRAM-SHA-512"),
    ("/config/users/bob", {"config": {"SCRAM-SHA-512": SCRAM.replace("MWx2", "M*x2")}}, "salt of SCRAM-SHA-512 is not base 64"),
    (
        "/config/users/bob",
        {"config": {"SCRAM-SHA-512": SCRAM.replace("EOsY3", "EOsY")}},
        "server_key of SCRAM-SHA-512 is not base 64",
    ),
    ("/config/brokers/one", config({}), "neither a broker id nor"),
    ("/config/brokers/1", config({"ssl.keystore.password": "plain"}), "keyLength of ssl.keystore.password"),
    ("/config/brokers/1", config({"ssl.key.password": PASSWORD.replace("c2Vj", "?")}), "encryptedPassword of ssl.key.password"),
    ("/latest_producer_id_block", b"{", "is no JSON"),
    ("/latest_producer_id_block", BLOCK | {"block_end": 4999}, "block_end is not text"),
    ("/latest_producer_id_block", BLOCK | {"block_end": "1"}, "block_end does not follow"),
    ("/latest_producer_id_block", BLOCK | {"block_end": str(2**63)}, "block_end is not a long integer"),
    ("/brokers/topics/bad", TOPIC | {"topic_id": "short"}, "topic_id is no"),
    ("/brokers/topics/bad", ANOTHER | {"partitions": {"0": []}}, "partition '0' has no replicas"),
    ("/brokers/topics/bad", ANOTHER | {"partitions": {"x": [1]}}, "a name in partitions is not an integer"),
    ("/brokers/topics/bad", ANOTHER | {"partitions": {"0": [True]}}, "a replica in partitions is not an integer"),
    ("/brokers/topics/bad", ANOTHER | {"adding_replicas": {"0": 1}}, "adding_replicas of '0' is not a list"),
    ("/delegation_token/tokens/bad", TOKEN | {"version": 4}, "version is not 1, 2 or 3"),
    ("/delegation_token/tokens/bad", TOKEN | {"owner": "alice"}, "owner is not a principal"),
    ("/delegation_token/tokens/bad", TOKEN | {"renewers": [None]}, "renewer 1 is not a principal"),
    ("/delegation_token/tokens/bad", TOKEN | {"maxTimestamp": "soon"}, "maxTimestamp is not a long integer"),
    # The copy waits, before it takes /controller.
    ("/brokers/topics/bad", {k: v for k, v in TOPIC.items() if k != "topic_id"}, "has no topic_id"),
    # The copy drops it in silence, or stores something else.
    ("/config/topics/orders", b"{", "is no JSON"),
    ("/config/topics/orders", b"[" * 100_000, "is no JSON"),
    ("/config/topics/orders", {"version": 1}, "config is not a JSON object"),
    ("/config/topics/orders", {"config": {"retention.ms": 5}}, "retention.ms is not text"),
    ("/brokers/topics/bad", b"", "is no JSON"),
    ("/brokers/topics/orders/partitions/0/state", b"{", "is no JSON"),
    ("/brokers/topics/orders/partitions/0/state", STATE | {"isr": ["1"]}, "a replica in isr is not an integer"),
    ("/brokers/topics/orders/partitions/1/state", STATE | {"leader": None}, "leader is not an integer"),
    ("/brokers/topics/orders/partitions/1/state", STATE | {"leader_recovery_state": 2}, "leader_recovery_state"),
    ("/kafka-acl/Topic/orders", {"version": 1, "acls": [ACL | {"operation": "Juggle"}]}, "operation of ACL 1"),
    ("/kafka-acl/Topic/orders", {"version": 1, "acls": [ACL | {"permissionType": "Perhaps"}]}, "permissionType of ACL 1"),
    ("/kafka-acl/Planet/mars", {"version": 1, "acls": [ACL]}, "type that Kafka does not know"),
    ("/delegation_token/tokens/bad", b"{", "is no JSON"),
]


@pytest.mark.parametrize(("path", "content", "why"), POISONS)
async def test_each_poison_is_named_with_its_reason(path: str, content: Any, why: str) -> None:
    found = await suspects(**{path: content})
    assert [suspect.what for suspect in found] == [path]
    assert why in found[0].why


@pytest.mark.parametrize("path", ["/config/users/bob", "/config/brokers/1"])
async def test_no_secret_is_shown(path: str) -> None:
    secrets = {"SCRAM-SHA-256": "salt=hunter2", "ssl.key.password": "hunter2", "producer_byte_rate": "hunter2"}
    for key, value in secrets.items():
        for suspect in await suspects(**{path: {"config": {key: value}}}):
            assert "hunter2" not in suspect.model_dump_json()


async def test_a_dead_broker_in_assignments_is_named_once_and_last() -> None:
    dead = ANOTHER | {"partitions": {"0": [1, 9], "1": [9, 2]}}
    found = await suspects(**{"/brokers/topics/clicks": dead, "/config/topics/orders": b"{"})
    assert [suspect.what for suspect in found] == ["/config/topics/orders", "/brokers/ids/9"]
    assert "2 partitions, such as clicks-0" in found[1].why


async def test_without_any_registration_no_broker_is_known() -> None:
    found = await poisoned_znodes(tree_of({p: c for p, c in WELL_FORMED.items() if not p.startswith("/brokers/ids")}))
    assert [suspect.what for suspect in found] == ["/brokers/ids"]


async def test_a_registration_has_a_number_for_its_name() -> None:
    assert [suspect.what for suspect in await suspects(**{"/brokers/ids/x": {}})] == ["/brokers/ids/x"]


async def test_an_empty_ensemble_has_no_brokers_and_nothing_else_amiss() -> None:
    assert [suspect.what for suspect in await poisoned_znodes(tree_of({}))] == ["/brokers/ids"]


async def test_topics_with_one_id_are_named_by_the_second() -> None:
    """Kafka copies both, and one is gone: no error anywhere (3.9.2)."""
    tree = tree_of(WELL_FORMED | {"/brokers/topics/young": TOPIC})
    (found,) = await poisoned_znodes(tree)
    assert found.what == "/brokers/topics/young"
    assert found.why.startswith("has the topic_id of /brokers/topics/orders: ")


async def test_a_partition_has_a_number() -> None:
    below = TOPIC | {"partitions": {"0": [1], "-1": [1]}}
    (found,) = await poisoned_znodes(tree_of(WELL_FORMED | {"/brokers/topics/orders": below}))
    assert "'-1'" in found.why


async def test_many_are_counted_not_listed() -> None:
    broken = {f"/config/clients/c{number}": config({"request_percentage": "x"}) for number in range(MOST_NAMED + 7)}
    found = await suspects(**broken)
    assert len(found) == MOST_NAMED + 1
    assert found[-1].what == "7 further znodes"
