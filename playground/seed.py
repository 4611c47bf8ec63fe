"""What real clusters hold besides messages: topics of several shapes, dynamic configs, quotas, SCRAM users, ACLs.

Every kind of metadata that ZooKeeper keeps and a migration copies occurs at least once. `seed` may run again: what is
there already stays as it is. No topic has a single replica: its partitions would be down in every restart.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from playground.clients import admin_client
from playground.processes import Launch
from playground.progress import LONGEST_SECONDS, wait_while_working
from playground.wire_requests import Quota, alter_quotas, set_default_broker_configs


@dataclass(frozen=True)
class Topic:
    name: str
    partitions: int
    replication_factor: int = 3
    config: dict[str, str] = field(default_factory=dict)


TOPICS = (
    Topic("orders", 12, config={"min.insync.replicas": "2", "compression.type": "zstd"}),
    Topic("payments", 1, config={"min.insync.replicas": "2", "retention.ms": "-1"}),
    Topic("customers", 3, config={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"}),
    Topic("clicks", 24, replication_factor=2, config={"min.insync.replicas": "1", "retention.ms": "3600000"}),
    Topic("audit.events", 6, config={"cleanup.policy": "compact,delete", "max.message.bytes": "2097152"}),
    Topic("defaults_only", 2),
)

DEFAULT_BROKER_CONFIGS = {"log.cleaner.backoff.ms": "20000", "message.max.bytes": "2097176"}
BROKER_CONFIGS: dict[str, dict[str, str]] = {
    "1": {"log.retention.ms": "86400000"},
    "2": {"num.replica.fetchers": "2"},
}

QUOTAS = (
    Quota({"user": "alice"}, {"producer_byte_rate": 10_485_760.0, "consumer_byte_rate": 20_971_520.0}),
    Quota({"client-id": "batch-loader"}, {"request_percentage": 50.0}),
    Quota({"user": "bob", "client-id": "reports"}, {"consumer_byte_rate": 5_242_880.0}),
    Quota({"user": None}, {"producer_byte_rate": 52_428_800.0}),
    Quota({"client-id": None}, {"consumer_byte_rate": 52_428_800.0}),
    Quota({"user": "alice", "client-id": None}, {"controller_mutation_rate": 5.0}),
)

SCRAM_USERS = (
    ("alice", ScramMechanism.SCRAM_SHA_256, 8192),
    ("alice", ScramMechanism.SCRAM_SHA_512, 4096),
    ("bob", ScramMechanism.SCRAM_SHA_512, 4096),
)

ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
LITERAL, PREFIXED = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED


def _acl(
    kind: ResourceType,
    name: str,
    pattern: ResourcePatternType,
    principal: str,
    operation: AclOperation,
    permission: AclPermissionType = ALLOW,
    host: str = "*",
) -> AclBinding:
    return AclBinding(kind, name, pattern, f"User:{principal}", host, operation, permission)


ACLS = (
    _acl(ResourceType.TOPIC, "orders", LITERAL, "alice", AclOperation.WRITE),
    _acl(ResourceType.TOPIC, "orders", LITERAL, "bob", AclOperation.READ, host="10.0.0.7"),
    _acl(ResourceType.TOPIC, "audit.", PREFIXED, "auditor", AclOperation.READ),
    _acl(ResourceType.TOPIC, "payments", LITERAL, "mallory", AclOperation.ALL, DENY),
    _acl(ResourceType.TOPIC, "*", LITERAL, "monitoring", AclOperation.DESCRIBE),
    _acl(ResourceType.GROUP, "reports-", PREFIXED, "bob", AclOperation.READ),
    _acl(ResourceType.BROKER, "kafka-cluster", LITERAL, "alice", AclOperation.IDEMPOTENT_WRITE),
    _acl(ResourceType.TRANSACTIONAL_ID, "billing-", PREFIXED, "alice", AclOperation.WRITE),
)


def seed(bootstrap_servers: Sequence[str], servers: Sequence[Launch] = ()) -> None:
    """Puts all of the above into the cluster. Raises KafkaException when a broker refuses something. `servers`: the brokers."""
    admin = admin_client(bootstrap_servers)
    create_topics(admin, TOPICS, servers)
    set_default_broker_configs(bootstrap_servers, DEFAULT_BROKER_CONFIGS)
    for broker, settings in BROKER_CONFIGS.items():
        _set_broker_configs(admin, broker, settings, servers)
    for user, mechanism, iterations in SCRAM_USERS:
        credential = ScramCredentialInfo(mechanism, iterations)
        change = UserScramCredentialUpsertion(user, credential, f"{user}-of-the-playground".encode())
        _finish(admin.alter_user_scram_credentials([change], request_timeout=LONGEST_SECONDS).values(), servers)
    _finish(admin.create_acls(list(ACLS), request_timeout=LONGEST_SECONDS).values(), servers)
    alter_quotas(bootstrap_servers, QUOTAS)


def create_topics(admin: AdminClient, topics: Sequence[Topic], servers: Sequence[Launch] = ()) -> None:
    """Those that exist already stay as they are."""
    wanted = [NewTopic(t.name, t.partitions, t.replication_factor, config=t.config) for t in topics]
    asked = admin.create_topics(wanted, operation_timeout=LONGEST_SECONDS, request_timeout=LONGEST_SECONDS)
    for future in _answered(asked.values(), servers):
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def _set_broker_configs(admin: AdminClient, broker: str, settings: dict[str, str], servers: Sequence[Launch]) -> None:
    """The request goes to that very broker."""
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()]
    resource = ConfigResource(ResourceType.BROKER, broker, incremental_configs=entries)
    _finish(admin.incremental_alter_configs([resource], request_timeout=LONGEST_SECONDS).values(), servers)


def _finish(futures: Iterable[Future[None]], servers: Sequence[Launch]) -> None:
    for future in _answered(futures, servers):
        future.result()


def _answered(futures: Iterable[Future[None]], servers: Sequence[Launch]) -> list[Future[None]]:
    """The same, once Kafka has answered all of them."""
    asked = list(futures)
    wait_while_working(lambda: all(future.done() for future in asked), "Kafka's answer", servers)
    return asked
