"""What the preflight is told by real brokers that delete no topics, and let us change neither ACLs nor users."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from activities.adapters.kafka_admin import BrokerAdmin
from activities.adapters.secrets import EnvironmentAndFileSecrets
from activities.ports.ports import Ports
from activities.survey.canaries import refused_canaries
from domain.canaries import PREFIX
from domain.cluster import ClusterSpec
from domain.errors import Transient
from domain.records import ClusterRecord
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from playground.clients import admin_client
from playground.cluster import PlaygroundCluster

LITERAL, PREFIXED = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
TOPICS = (ResourceType.TOPIC, PREFIX, PREFIXED)
CLUSTER, US = (ResourceType.BROKER, "kafka-cluster", LITERAL), "User:ANONYMOUS"
RULES = [
    AclBinding(*CLUSTER, US, "*", AclOperation.ALL, AclPermissionType.ALLOW),
    AclBinding(*CLUSTER, US, "*", AclOperation.ALTER, AclPermissionType.DENY),
    AclBinding(*TOPICS, US, "*", AclOperation.ALL, AclPermissionType.ALLOW),
    AclBinding(*TOPICS, US, "*", AclOperation.WRITE, AclPermissionType.DENY),
]
RIGHTS = ("change ACLs", "change users' credentials", "write to topics", "delete topics")


@pytest.fixture
def refusing(tmp_path: Path) -> Iterator[PlaygroundCluster]:
    with PlaygroundCluster(tmp_path, broker_count=2) as cluster:
        cluster.await_in_sync()
        admin = admin_client(cluster.bootstrap_servers)
        for rule in admin.create_acls(RULES).values():
            rule.result(20)
        for broker in cluster.spec.brokers:
            file = Path(broker.properties_file)
            text = file.read_text(encoding="utf-8").replace(f"super.users={US}", "super.users=User:nobody")
            file.write_text(f"{text}\ndelete.topic.enable=false\n", encoding="utf-8")
            cluster.kill_node(broker.id, signal.SIGTERM)
            cluster.start_node(broker.id)
            cluster.await_in_sync()
        yield cluster


@pytest.mark.cluster
async def test_what_kafka_refuses_is_told_and_nothing_else(
    refusing: PlaygroundCluster, as_record: Callable[[ClusterSpec], ClusterRecord]
) -> None:
    nobody = cast("Any", None)
    ports = Ports(nobody, nobody, nobody, BrokerAdmin(EnvironmentAndFileSecrets()), nobody, nobody)
    told = await answered(lambda: refused_canaries(as_record(refusing.spec), ZkToKraftPolicy(canaries=True), ports))
    print(*told, sep="\n")
    undeletable = [f"delete.topic.enable is false at broker-{broker}" for broker in (1, 2)]
    assert [why.split(": ")[0] for why in told] == [*undeletable, *RIGHTS]


async def answered(ask: Callable[[], Awaitable[tuple[str, ...]]]) -> tuple[str, ...]:
    """Brokers register a moment before they listen."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await ask()
            except Transient:
                await asyncio.sleep(0.1)
