"""Which znodes a row comes from: where to look when a row differs."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from domain.drift.normalise import CLIENT_ID, DEFAULT_ENTITY, IP, USER, sanitised, uuid_text
from domain.drift.records import (
    ACL,
    BROKER_CONFIG,
    CLAIM,
    PARTITION,
    PRODUCER_IDS,
    QUOTA,
    REGISTRATION,
    SCRAM,
    TOKEN,
    TOPIC,
    TOPIC_CONFIG,
)

CLAIMS = {
    "cluster-id": "/cluster/id",
    "controller": "/controller",
    "controller-epoch": "/controller_epoch",
    "migration": "/migration",
}
ACL_FOLDERS = {"LITERAL": "/kafka-acl", "PREFIXED": "/kafka-acl-extended/prefixed"}


def paths_of(kind: str, key: Sequence[object], topics: Mapping[str, str]) -> tuple[str, ...]:
    """Paths below the chroot; one that ends with `/` means all znodes right below it.

    `key`: values in the order of the kind's keys. `topics`: name by id as text, for partitions, whose key has the id only;
    a topic without a name there has no path. Znodes of a row may be read with more than its own, such as all configs of a
    broker: rows of other keys come of them, too, and may be incomplete.
    """
    if kind == PARTITION.name:
        topic = topics.get(uuid_text(key[0]) if isinstance(key[0], bytes) else str(key[0]))
        return () if topic is None else (*_topic(topic), f"/brokers/topics/{topic}/partitions/{key[1]}/state")
    return tuple(_PATHS[kind](*map(str, key)))


def own_paths_of(kind: str, key: Sequence[object], topics: Mapping[str, str]) -> tuple[str, ...]:
    """Of the same the znode that is the row's own: more than one where a name may be spelt in two ways, Kafka's first."""
    paths = paths_of(kind, key, topics)
    return paths if kind in {QUOTA.name, SCRAM.name} else paths[-1:]


def _topic(name: str) -> tuple[str, ...]:
    return (f"/admin/delete_topics/{name}", f"/brokers/topics/{name}")


def _entity(parts: Mapping[str, str | None]) -> tuple[str, ...]:
    if IP in parts:
        return tuple(f"/config/ips/{name}" for name in _names(parts[IP]))
    clients = [f"/clients/{name}" for name in _names(parts[CLIENT_ID])] if CLIENT_ID in parts else [""]
    if USER not in parts:
        return tuple(f"/config{client}" for client in clients)
    return tuple(f"/config/users/{user}{client}" for user in _names(parts[USER]) for client in clients)


def _names(name: str | None) -> tuple[str, ...]:
    """As Kafka writes it, and as somebody may have written it by hand."""
    if name is None:
        return (DEFAULT_ENTITY,)
    return (sanitised(name),) if "/" in name or name == sanitised(name) else (sanitised(name), name)


def _acl(type_: str, name: str, pattern: str, *_: str) -> Iterable[str]:
    return (f"{ACL_FOLDERS[pattern]}/{type_}/{name}",)


_PATHS: dict[str, Callable[..., Iterable[str]]] = {
    TOPIC.name: _topic,
    TOPIC_CONFIG.name: lambda topic, _: (*_topic(topic), f"/config/topics/{topic}"),
    BROKER_CONFIG.name: lambda broker, _: (f"/config/brokers/{broker or DEFAULT_ENTITY}",),
    QUOTA.name: lambda entity, _: _entity(dict(json.loads(entity))),
    SCRAM.name: lambda user, _: [f"/config/users/{name}" for name in _names(user)],
    ACL.name: _acl,
    PRODUCER_IDS.name: lambda _: ("/latest_producer_id_block",),
    TOKEN.name: lambda _: ("/delegation_token/tokens/",),
    REGISTRATION.name: lambda broker: (f"/brokers/ids/{broker}",),
    CLAIM.name: lambda name: (CLAIMS[name],),
}
