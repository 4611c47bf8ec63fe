"""The forms of the znodes that Kafka's copy reads, strictly: what a parser here refuses, the copy dies of or drops in silence.

Layouts: kafka.zk.ZkData (Kafka 3.9); how they are read: kafka.zk.migration. Where Kafka is lenient (broken JSON counts as no
configs, an unknown operation becomes UNKNOWN) these are not: the difference would only show after the migration. A message
names keys, never values: a value may hold a secret.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from domain.zk_to_kraft.checks.security import PASSWORDS

JavaType = tuple[int, str]
INT: JavaType = (2**31, "an integer")
LONG: JavaType = (2**63, "a long integer")

NUMBER = re.compile(r"\s*[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?)\s*", re.ASCII)
"""What `Double.valueOf` takes, its hexadecimal form left out."""
DECIMAL = re.compile(r"[+-]?\d{1,19}", re.ASCII)
BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")

BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}", re.ASCII)
BASE64_OF_URLS = re.compile(r"[A-Za-z0-9_-]*={0,2}", re.ASCII)

ON_TOPICS = {"READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBECONFIGS", "ALTERCONFIGS"}
OPERATIONS = frozenset({"ALL", "CLUSTERACTION", "IDEMPOTENTWRITE", "CREATETOKENS", "DESCRIBETOKENS"} | ON_TOPICS)
PERMISSIONS = frozenset({"ALLOW", "DENY"})
RESOURCE_TYPES = frozenset({"Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User"})
"""Spelt so in paths: Kafka knows other spellings, and then reads the path with this one."""

SCRAM_MECHANISMS = frozenset({"SCRAM-SHA-256", "SCRAM-SHA-512"})
SCRAM_KEYS = frozenset({"salt", "stored_key", "server_key", "iterations"})

QUOTAS = frozenset({"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"})
QUOTAS_OF_ADDRESSES = frozenset({"connection_creation_rate"})
"""QuotaConfig.java."""

PASSWORD_NUMBERS = ("keyLength", "iterations", "passwordLength")
PASSWORD_BYTES = ("salt", "encryptedPassword")

LATEST_TOKEN_VERSION = 3
UUID_BYTES = 16
RECOVERY_STATES = (0, 1)
FEATURE_VERSIONS, FEATURE_STATES = (1, 2), (0, 1)


class Unreadable(ValueError):
    """The znode is not of its form. The message says why, without any of its values."""


Form = Callable[[bytes], object]


def object_in(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Unreadable("is no JSON") from error
    return _mapping(value, "the content")


def topic(data: bytes) -> dict[int, list[int]]:
    """`/brokers/topics/T`, version 3: the replicas of each partition."""
    content = object_in(data)
    topic_id(data)
    for key in ("adding_replicas", "removing_replicas"):
        _assignment(content.get(key, {}), key)
    return _assignment(content.get("partitions"), "partitions")


def topic_id(data: bytes) -> bytes:
    """What KRaft will know the topic by."""
    content = object_in(data)
    if "topic_id" not in content:
        raise Unreadable("has no topic_id")
    found = _bytes(_text(content, "topic_id"), "topic_id", BASE64_OF_URLS)
    if len(found) != UUID_BYTES:
        raise Unreadable("topic_id is not a UUID")
    return found


def _assignment(value: object, key: str) -> dict[int, list[int]]:
    found = {}
    for partition, replicas in _mapping(value, key).items():
        ids = _list(replicas, f"{key} of {partition!r}")
        if not ids and key == "partitions":
            raise Unreadable(f"partition {partition!r} has no replicas")
        number = _decimal(partition, f"a name in {key}", INT)
        if number < 0:
            raise Unreadable(f"partition {partition!r} of {key} has a number below 0")
        found[number] = [_integer(i, f"a replica in {key}", INT) for i in ids]
    return found


def partition_state(data: bytes) -> None:
    """`/brokers/topics/T/partitions/P/state`. Kafka takes defaults for one that is no JSON: leader and ISR get lost."""
    content = object_in(data)
    for key in ("leader", "leader_epoch", "controller_epoch"):
        _integer(content.get(key), key, INT)
    for replica in _list(content.get("isr"), "isr"):
        _integer(replica, "a replica in isr", INT)
    if content.get("leader_recovery_state", 0) not in RECOVERY_STATES:
        raise Unreadable("leader_recovery_state is neither 0 nor 1")


def configs(data: bytes) -> dict[str, str]:
    """`/config/…`. Empty where only children have configs: users with quotas of single clients."""
    if not data:
        return {}
    found = _mapping(object_in(data).get("config"), "config")
    return {key: _text(found, key) for key in found}


def broker_configs(data: bytes) -> None:
    for key, value in configs(data).items():
        if key.endswith(PASSWORDS):
            _encrypted(key, value)


def quotas(data: bytes) -> None:
    """Of a user or a client. Beside a user's quotas lie his SCRAM credentials."""
    for key, value in configs(data).items():
        if key in SCRAM_MECHANISMS:
            _scram(key, value)
        else:
            _quota(key, value, QUOTAS)


def quotas_of_a_users_client(data: bytes) -> None:
    for key, value in configs(data).items():
        _quota(key, value, QUOTAS)


def quotas_of_an_address(data: bytes) -> None:
    for key, value in configs(data).items():
        _quota(key, value, QUOTAS_OF_ADDRESSES)


def acls(data: bytes) -> None:
    """`/kafka-acl/<Type>/<name>` and `/kafka-acl-extended/prefixed/<Type>/<name>`."""
    if not data:
        return
    content = object_in(data)
    if _integer(content.get("version"), "version", INT) != 1:
        raise Unreadable("version is not 1")
    for number, value in enumerate(_list(content.get("acls"), "acls"), start=1):
        entry = _mapping(value, f"ACL {number}")
        if ":" not in _text(entry, "principal"):
            raise Unreadable(f"the principal of ACL {number} has no type; expected Type:name, such as User:name")
        _one_of(entry, "operation", OPERATIONS, number)
        _one_of(entry, "permissionType", PERMISSIONS, number)
        _text(entry, "host")


def _one_of(entry: Mapping[str, Any], key: str, known: frozenset[str], number: int) -> None:
    if _text(entry, key).upper() not in known:
        raise Unreadable(f"the {key} of ACL {number} is not one that Kafka knows")


def token(data: bytes) -> None:
    """`/delegation_token/tokens/<id>`; none at all where it is empty."""
    if not data:
        return
    content = object_in(data)
    version = _integer(content.get("version"), "version", INT)
    if not 0 < version <= LATEST_TOKEN_VERSION:
        raise Unreadable("version is not 1, 2 or 3")
    renewers = enumerate(_list(content.get("renewers"), "renewers"), start=1)
    people = {"owner": content.get("owner")} | {f"renewer {number}": renewer for number, renewer in renewers}
    if version == LATEST_TOKEN_VERSION:
        people["tokenRequester"] = content.get("tokenRequester")
    for key, principal in people.items():
        if not isinstance(principal, str) or not re.search(":|%3A", principal) or BROKEN_ESCAPE.search(principal):
            raise Unreadable(f"{key} is not a principal; expected Type:name")
    for key in ("issueTimestamp", "maxTimestamp", "expiryTimestamp"):
        _integer(content.get(key), key, LONG)
    _text(content, "tokenId")


def producer_ids(data: bytes) -> None:
    """`/latest_producer_id_block`; empty until the first id was given out."""
    if not data:
        return
    content = object_in(data)
    _integer(content.get("broker"), "broker", INT)
    first, last = (_decimal(_text(content, key), key, LONG) for key in ("block_start", "block_end"))
    if not 0 <= last - first + 1 < INT[0]:
        raise Unreadable("block_end does not follow block_start")


def feature(data: bytes) -> None:
    """`/feature`, which the copy leaves out and every broker reads that is elected (kafka.zk.FeatureZNode)."""
    content = object_in(data)
    if content.get("version") not in FEATURE_VERSIONS or content.get("status") not in FEATURE_STATES:
        raise Unreadable("it needs a version, 1 or 2, and a status, 0 or 1")
    if not isinstance(content.get("features"), dict):
        raise Unreadable("features is not an object")


def is_name_escaped_well(name: str) -> bool:
    """Names of users and clients are URL-encoded in paths."""
    return BROKEN_ESCAPE.search(name) is None


def is_resource_type(name: str) -> bool:
    return name in RESOURCE_TYPES


def _scram(key: str, value: str) -> None:
    """`salt=…,stored_key=…,server_key=…,iterations=n` (ScramCredentialUtils)."""
    parts = [part.partition("=") for part in value.split(",")]
    found = {name: text for name, equals, text in parts if equals}
    if frozenset(found) != SCRAM_KEYS or len(parts) != len(SCRAM_KEYS):
        raise Unreadable(f"the credential {key} has not the four parts salt, stored_key, server_key and iterations")
    for name in ("salt", "stored_key", "server_key"):
        _bytes(found[name], f"{name} of {key}")
    _decimal(found["iterations"], f"iterations of {key}", INT)


def _encrypted(key: str, value: str) -> None:
    """`name:value` pairs (EncryptingPasswordEncoder). Whether the secret fits is not to be seen."""
    found = {name: text for name, _, text in (part.partition(":") for part in value.split(","))}
    for name in PASSWORD_NUMBERS:
        _decimal(found.get(name, ""), f"{name} of {key}", INT)
    for name in PASSWORD_BYTES:
        _bytes(found.get(name, "?"), f"{name} of {key}")


def _quota(key: str, value: str, known: frozenset[str]) -> None:
    """One that is not known is copied, and then the new controller fails to write it back to ZooKeeper, again and again."""
    _number(key, value)
    if key not in known:
        raise Unreadable(f"{key} is not a quota that Kafka knows there")


def _number(key: str, value: str) -> None:
    if NUMBER.fullmatch(value) is None:
        raise Unreadable(f"the value of {key} is not a number")


def _mapping(value: object, key: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unreadable(f"{key} is not a JSON object")
    return value


def _list(value: object, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise Unreadable(f"{key} is not a list")
    return value


def _text(content: Mapping[str, Any], key: str) -> str:
    value = content.get(key)
    if not isinstance(value, str):
        raise Unreadable(f"{key} is not text")
    return value


def _integer(value: object, key: str, java: JavaType) -> int:
    limit, name = java
    if not isinstance(value, int) or isinstance(value, bool) or not -limit <= value < limit:
        raise Unreadable(f"{key} is not {name}")
    return value


def _decimal(text: str, key: str, java: JavaType) -> int:
    return _integer(int(text) if DECIMAL.fullmatch(text) else None, key, java)


def _bytes(text: str, key: str, alphabet: re.Pattern[str] = BASE64) -> bytes:
    """Java takes base 64 with its padding or without."""
    digits = text.rstrip("=")
    if alphabet.fullmatch(text) is None or len(digits) % 4 == 1:
        raise Unreadable(f"{key} is not base 64")
    return base64.urlsafe_b64decode(digits + "=" * (-len(digits) % 4))
