"""Znodes as rows, all but topics and partitions: one function for each form, from path and data to keys and values.

What cannot be read is a `ValueError` that says why without any of the values: they may be secrets. Layouts: kafka.zk.ZkData
of Kafka 3.9. Empty data is no content where Kafka takes it so.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from domain.drift import normalise
from domain.drift.digests import Digester
from domain.drift.records import (
    ACL,
    BROKER_CONFIG,
    CLAIM,
    KINDS,
    PRODUCER_IDS,
    QUOTA,
    REGISTRATION,
    SCRAM,
    TOKEN,
    TOPIC_CONFIG,
)
from spark.codec.encoded_password import Undecodable, decoded, is_encoded

T = TypeVar("T")

INT_BITS, LONG_BITS = 32, 64
HALF = re.compile("[\ud800-\udfff]")

Row = tuple[str, tuple[object, ...]]
"""Name of the kind; its keys and values without the origin."""


@dataclass(frozen=True)
class Reading:
    """What a reader of znodes has to know. `segment`: the file's name, empty for a live tree. `is_before_dual_write`: a
    partition without a state has what Kafka's copy will give it.
    """

    digester: Digester
    encoder_secret: str | None = None
    kinds: frozenset[str] = frozenset(KINDS)
    segment: str = ""
    is_before_dual_write: bool = False

    def __repr__(self) -> str:
        return f"Reading({self.segment!r})"


def rows_of_znode(parts: list[str], data: bytes, reading: Reading) -> Iterable[Row]:
    """Nothing for a znode that says nothing of interest. `parts`: the path's, below the chroot."""
    match parts:
        case ["config", type_, *names]:
            return _configs_of(type_, names, data, reading)
        case ["kafka-acl", type_, *names] if names:
            return _acls(type_, "/".join(names), "LITERAL", data)
        case ["kafka-acl-extended", "prefixed", type_, *names] if names:
            return _acls(type_, "/".join(names), "PREFIXED", data)
        case ["latest_producer_id_block"]:
            return _producer_ids(data)
        case ["delegation_token", "tokens", _]:
            return _token(data, reading)
        case ["brokers", "ids", broker]:
            return _registration(broker, data)
        case ["cluster", "id"]:
            return [(CLAIM.name, ("cluster-id", _text(json_object(data), "id")))]
        case _:
            return ()


def _configs_of(type_: str, names: list[str], data: bytes, reading: Reading) -> Iterable[Row]:
    match type_, names:
        case "topics", [topic]:
            return _topic_configs(topic, data, reading)
        case "brokers", [broker]:
            return _broker_configs(broker, data, reading)
        case "users", [user]:
            return _user(user, data, reading)
        case "users", [user, "clients", client]:
            return _quotas(_entity((normalise.USER, user), (normalise.CLIENT_ID, client)), _configs(data))
        case "clients", [client]:
            return _quotas(_entity((normalise.CLIENT_ID, client)), _configs(data))
        case "ips", [ip]:
            return _quotas(_entity((normalise.IP, ip)), _configs(data))
        case _:
            return ()


def _topic_configs(topic: str, data: bytes, reading: Reading) -> Iterator[Row]:
    for name, value in _configs(data).items():
        yield TOPIC_CONFIG.name, (topic, name, normalise.topic_config(reading.digester, topic, name, value))


def _broker_configs(znode: str, data: bytes, reading: Reading) -> Iterator[Row]:
    broker = normalise.config_resource(znode)
    for name, value in _configs(data).items():
        plain = _plain(name, value, reading)
        yield BROKER_CONFIG.name, (broker, name, *normalise.broker_config(reading.digester, broker, name, plain))


def _plain(name: str, value: str, reading: Reading) -> str | None:
    """What KRaft has of a password: the password. `None` without the secret that it takes, or with a wrong one."""
    if not normalise.is_secret_config(name) or not is_encoded(value):
        return value
    if reading.encoder_secret is None:
        return None
    try:
        return decoded(value, reading.encoder_secret)
    except Undecodable:
        return None


def _user(znode: str, data: bytes, reading: Reading) -> Iterator[Row]:
    """His quotas, and beside them his SCRAM credentials."""
    configs = _configs(data)
    mechanisms = normalise.SCRAM_MECHANISMS.values()
    user = normalise.config_resource(znode)
    for mechanism in mechanisms:
        if mechanism in configs:
            yield _scram(user, mechanism, configs[mechanism], reading)
    quotas = {name: value for name, value in configs.items() if name not in mechanisms}
    yield from _quotas(_entity((normalise.USER, znode)), quotas)


def _scram(user: str, mechanism: str, value: str, reading: Reading) -> Row:
    parts = normalise.scram_parts(value)
    secret = (
        normalise.scram_digest(reading.digester, user, mechanism, name, parts[name])
        for name in ("salt", "stored_key", "server_key")
    )
    return SCRAM.name, (user, mechanism, *secret, _fitting(int(parts["iterations"]), INT_BITS, "iterations"))


def _entity(*parts: tuple[str, str]) -> str:
    return normalise.entity_text((type_, normalise.entity_name(znode)) for type_, znode in parts)


def _quotas(entity: str, configs: dict[str, str]) -> Iterator[Row]:
    """What is no number has no value, and so differs from any that KRaft has."""
    for name, value in configs.items():
        yield QUOTA.name, (entity, name, normalise.quota_value(value))


def _acls(type_: str, name: str, pattern: str, data: bytes) -> list[Row]:
    """Names may have slashes, so a znode may be a name, a part of a longer one, or both; without data it is no name."""
    if not data:
        return []
    if type_ not in normalise.RESOURCE_TYPES.values():
        raise ValueError("is of a resource type that is not known")
    entries = {(type_, name, pattern, *_acl(_mapping(entry, "an ACL"))) for entry in _list(json_object(data), "acls")}
    return [(ACL.name, entry) for entry in sorted(entries)]


def _acl(entry: dict[str, Any]) -> tuple[str, str, str, str]:
    operation = normalise.operation_name(_text(entry, "operation"))
    return _text(entry, "principal"), _text(entry, "host"), operation, normalise.permission_name(_text(entry, "permissionType"))


def _producer_ids(data: bytes) -> list[Row]:
    if not data:
        return []
    block = json_object(data)
    first, last = (_digits(block, key) for key in ("block_start", "block_end"))
    return [(PRODUCER_IDS.name, ("cluster", first, _fitting(last + 1, LONG_BITS, "the id after block_end")))]


def _token(data: bytes, reading: Reading) -> list[Row]:
    """Before version 3 nobody but its owner could ask for a token."""
    if not data:
        return []
    told = json_object(data)
    owner = _principal(told, "owner")
    requester = _principal(told, "tokenRequester") if "tokenRequester" in told else owner
    renewers = normalise.set_text(normalise.desanitised(_is_text(renewer, "a renewer")) for renewer in _list(told, "renewers"))
    times = (_long(told, key) for key in ("issueTimestamp", "maxTimestamp", "expiryTimestamp"))
    return [(TOKEN.name, (normalise.token_key(reading.digester, _text(told, "tokenId")), owner, requester, renewers, *times))]


def _registration(broker: str, data: bytes) -> list[Row]:
    told = json_object(data)
    older = f"PLAINTEXT://{told.get('host')}:{told.get('port')}"
    endpoints = _list(told, "endpoints") if told.get("endpoints") else [older]
    parts = (normalise.endpoint_parts(_is_text(endpoint, "an endpoint")) for endpoint in endpoints)
    rack = told.get("rack")
    return [(REGISTRATION.name, (broker, normalise.endpoints_text(parts), None if rack is None else _is_text(rack, "rack")))]


def _configs(data: bytes) -> dict[str, str]:
    """Empty where only children have configs."""
    if not data:
        return {}
    found = _mapping(json_object(data).get("config"), "config")
    return {_is_text(name, "the name of a config"): _is_text(value, name) for name, value in found.items()}


def json_object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("is no JSON") from None
    if not isinstance(value, dict):
        raise ValueError("is no JSON object")  # noqa: TRY004 - told as the znode's fault
    return value


def _mapping(value: object, what: str) -> dict[str, Any]:
    return _of(value, dict, what, "JSON object")


def _list(content: dict[str, Any], key: str) -> list[Any]:
    return _of(content.get(key), list, key, "list")


def _principal(content: dict[str, Any], key: str) -> str:
    return normalise.desanitised(_text(content, key))


def _text(content: dict[str, Any], key: str) -> str:
    return _is_text(content.get(key), key)


def _digits(content: dict[str, Any], key: str) -> int:
    text = _text(content, key)
    if re.fullmatch(r"-?[0-9]{1,19}", text) is None:
        raise ValueError(f"{key} is no number")
    return _fitting(int(text), LONG_BITS, key)


def _is_text(value: object, what: str) -> str:
    """JSON may have halves of characters, which nobody can write down."""
    text = _of(value, str, what, "text")
    if not text.isascii() and HALF.search(text):
        raise ValueError(f"{what} is no text: it has half of a character")
    return text


def _long(content: dict[str, Any], key: str) -> int:
    return _fitting(_of(content.get(key), int, key, "number"), LONG_BITS, key)


def _fitting(number: int, bits: int, what: str) -> int:
    """What Kafka, whose numbers have so many bits, could have written."""
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise ValueError(f"{what} does not fit into {bits} bits")
    return number


def _of(value: object, type_: type[T], what: str, name: str) -> T:
    if not isinstance(value, type_) or isinstance(value, bool):
        raise ValueError(f"{what} is no {name}")  # noqa: TRY004 - told as the znode's fault
    return value
