"""Builders of surveys: what the deep look sees of the healthy cluster that `conftest.observation` shows."""

import hashlib
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from domain.cluster import ClusterSpec
from domain.configuration.listener_security import principal_of
from domain.configuration.properties import parse
from domain.observed.observation import OBSERVED_PROPERTIES, Observation
from domain.observed.survey import (
    SURVEYED_PROPERTIES,
    BrokerLogDir,
    Certificate,
    ClientSession,
    Directory,
    EnsembleServer,
    ListenerSecurity,
    LoginTried,
    NodeLook,
    NodeSurvey,
    PlainLogin,
    Registration,
    Survey,
    ZooKeeperSurvey,
)
from domain.observed.topic_directories import DiskIds, TopicZnode
from tests.unit.conftest import NOW, broker_text

GIB = 1024**3
SERVERS = ("127.0.0.1:2181", "127.0.0.1:2182", "127.0.0.1:2183")
SESSIONS = {1: 0x101, 2: 0x102, 3: 0x103}
AUTHORIZERS_SESSION = ClientSession(id=0x201, client="10.0.0.1:40002")


def disk(path: str, **parts: Any) -> Directory:
    healthy = Directory(path=path, filesystem="ext4", free=500 * GIB, total=1000 * GIB, is_writable=True)
    return healthy.model_copy(update=parts)


def look_of(spec: ClusterSpec, node_id: int) -> NodeLook:
    is_broker = node_id in SESSIONS
    return NodeLook(
        kafka_versions=("3.9.2",),
        log_dirs=tuple(disk(path) for path in spec.node(node_id).log_dirs),
        archive=disk("/etc/kafka"),
        memory=16 * GIB,
        open_files=500 if is_broker else None,
        most_open_files=100_000 if is_broker else None,
        maps=1000 if is_broker else None,
        most_maps=262_144,
        sockets=tuple((f"10.0.0.{node_id}:{port}", "10.0.0.1:2181") for port in (40001, 40002)) if is_broker else None,
        topic_ids=DiskIds(),
        absent_classes=(),
        is_port_taken=None if is_broker else False,
        unit=None,
        reached=(),
    )


def settings_of(node_id: int, text: str) -> NodeSurvey:
    """As a survey keeps a file, with digests that anybody could compute."""
    properties = parse(text)
    hidden = properties.keys() - SURVEYED_PROPERTIES - OBSERVED_PROPERTIES
    return NodeSurvey(
        id=node_id,
        settings={key: value for key, value in properties.items() if key in SURVEYED_PROPERTIES},
        digests={key: hashlib.sha256(properties[key].encode()).hexdigest()[:16] for key in hidden},
        principal=principal_of(properties),
        unapplied=() if node_id in SESSIONS else None,
    )


def node_survey(spec: ClusterSpec, node_id: int) -> NodeSurvey:
    settings = settings_of(node_id, broker_text(node_id) if node_id in SESSIONS else "")
    return settings.model_copy(update={"look": look_of(spec, node_id)})


def server(index: int, mode: str) -> EnsembleServer:
    sessions = (ClientSession(id=SESSIONS[index], client=f"10.0.0.{index}:40001"),)
    return EnsembleServer(
        address=SERVERS[index - 1],
        mode=mode,
        outstanding=0,
        latency=0.5,
        sessions=(*sessions, AUTHORIZERS_SESSION) if index == 1 else sessions,
    )


def registration(broker_id: int) -> Registration:
    return Registration(
        broker_id=broker_id,
        session=SESSIONS[broker_id],
        addresses={"PLAINTEXT": f"127.0.0.1:{9092 + broker_id}"},
        protocols={"PLAINTEXT": "PLAINTEXT"},
    )


ZOOKEEPER = ZooKeeperSurvey(
    registrations=tuple(map(registration, SESSIONS)),
    protected=(),
    refused=None,
    suspects=(),
    single_replica_topics=(),
    broker_configs={"<default>": ("log.cleaner.threads",), "1": ("log.cleaner.threads",)},
    throttled_topics=(),
    orphan_configs=(),
    prefixed_wildcards=(),
    client_metrics=(),
    tokens=0,
    acls=3,
    largest="/brokers/topics/orders",
    largest_bytes=500,
    longest_list="/brokers/topics",
    longest_list_bytes=60,
)


def survey_of(spec: ClusterSpec) -> Survey:
    return Survey(
        nodes=tuple(node_survey(spec, node.id) for node in spec.nodes),
        zookeeper=ZOOKEEPER,
        servers=(server(1, "leader"), server(2, "follower"), server(3, "follower")),
        log_dirs=tuple(BrokerLogDir(broker_id=b.id, path=b.log_dirs[0], is_offline=False) for b in spec.brokers),
    )


def topic_znode(topic_id: str | None, name: str = "orders") -> TopicZnode:
    """One partition, on all brokers."""
    content = {"version": 3, "partitions": {"0": list(SESSIONS)}, "adding_replicas": {}, "removing_replicas": {}}
    return TopicZnode(name=name, content=json.dumps(content | ({"topic_id": topic_id} if topic_id else {})), version=4)


def with_topic(seen: Observation, topic_id: str | None, on_disk: dict[int, dict[str, str]]) -> Observation:
    """`orders` has this id in ZooKeeper, and others in directories, by broker."""
    for broker_id, ids in on_disk.items():
        seen = with_look(seen, (broker_id,), topic_ids=DiskIds(ids=ids))
    return with_survey_part(seen, topics=(topic_znode(topic_id),))


def surveyed(seen: Observation, spec: ClusterSpec) -> Observation:
    return seen.model_copy(update={"survey": survey_of(spec)})


def with_survey_part(seen: Observation, **parts: Any) -> Observation:
    assert seen.survey is not None
    return seen.model_copy(update={"survey": seen.survey.model_copy(update=parts)})


def with_tree(seen: Observation, **parts: Any) -> Observation:
    return with_survey_part(seen, zookeeper=ZOOKEEPER.model_copy(update=parts))


def with_servers(seen: Observation, change: Callable[[EnsembleServer], EnsembleServer]) -> Observation:
    """The second server changed."""
    assert seen.survey is not None
    first, second, third = seen.survey.servers
    return with_survey_part(seen, servers=(first, change(second), third))


def with_node_survey(seen: Observation, node_ids: tuple[int, ...], **parts: Any) -> Observation:
    assert seen.survey is not None
    nodes = (node.model_copy(update=parts) if node.id in node_ids else node for node in seen.survey.nodes)
    return with_survey_part(seen, nodes=tuple(nodes))


def with_look(seen: Observation, node_ids: tuple[int, ...], **parts: Any) -> Observation:
    assert seen.survey is not None
    for node_id in node_ids:
        look = seen.survey.node(node_id).look
        assert look is not None
        seen = with_node_survey(seen, (node_id,), look=look.model_copy(update=parts))
        assert seen.survey is not None
    return seen


def certificate(spec: ClusterSpec, node_id: int, **parts: Any) -> Certificate:
    return Certificate(
        subject=f"CN={spec.node_name(node_id)}",
        since=NOW - timedelta(days=1),
        until=NOW + timedelta(days=365),
        names=(spec.node(node_id).host,),
        can_serve=True,
        can_call=True,
    ).model_copy(update=parts)


def security(spec: ClusterSpec, node_id: int, **parts: Any) -> ListenerSecurity:
    return ListenerSecurity(
        certificate=certificate(spec, node_id),
        believed=tuple(node.id for node in spec.nodes),
        mechanism="PLAIN",
        enabled=("PLAIN",),
        login=PlainLogin(user="kafka", password="one", accepts={"kafka": "one"}),  # noqa: S106 - a digest
        principal="User:kafka",
    ).model_copy(update=parts)


def secured(seen: Observation, spec: ClusterSpec) -> Observation:
    """All that nodes have for a controllers' listener with TLS and PLAIN is in order."""
    for node in spec.nodes:
        seen = with_node_survey(seen, (node.id,), security=security(spec, node.id))
    let_in = (LoginTried(what="INTERNAL of broker-1"),)
    return with_node_survey(seen, tuple(c.id for c in spec.controllers), logins=let_in)


def with_security(seen: Observation, node_ids: tuple[int, ...], **parts: Any) -> Observation:
    assert seen.survey is not None
    for node_id in node_ids:
        found = seen.survey.node(node_id).security
        assert found is not None
        seen = with_node_survey(seen, (node_id,), security=found.model_copy(update=parts))
    return seen
