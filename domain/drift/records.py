"""One declaration for each kind of metadata. Schemas, keys, tolerances and the reference page all come from here.

A side is a set of rows for each kind: key fields, value fields, and where the row was read (`ORIGIN`). Both sides are
normalised by their readers (see `normalise`): names decoded, defaults applied, sets sorted, secrets digested. What is left
to a comparison is said by each field's `Rule`. `left` is ZooKeeper, or what was before; `right` is KRaft, or what is now.
"""

from dataclasses import dataclass
from enum import StrEnum


class FieldType(StrEnum):
    """How a field is stored, in the words of Arrow."""

    INT = "int32"
    LONG = "int64"
    DOUBLE = "double"
    TEXT = "string"
    FLAG = "bool"
    INTS = "list<int32>"
    UUID = "fixed_size_binary[16]"


class Severity(StrEnum):
    """What a finding does. `INFO` never stops anything."""

    BLOCK = "block"
    WARN = "warn"
    INFO = "info"


class Rule(StrEnum):
    """When two values of a field agree. Each has a name that people may tolerate a finding by."""

    EXACT = "exact"
    """Equal, null equal to null only, a list in its order."""
    SET = "set"
    """Equal without regard to order and repetition. Readers sort and deduplicate, so it costs nothing more than `EXACT`."""
    NUMBER = "number"
    """Equal to a relative difference of one millionth: ZooKeeper has quotas as text, KRaft as doubles."""
    DIGEST = "digest"
    """A secret's keyed digest; shown as redacted. Null: cannot be known on that side, so `unverifiable`."""
    PRODUCER_BLOCK = "producer-block"
    """After the copy KRaft's next id is the end of ZooKeeper's block plus one; from the next block that KRaft hands out on dual
    write makes it the block's start. Both are right in dual write, anything else blocks."""
    NOT_COMPARED = "not-compared"
    """Carried for the reader of a report: what has no counterpart."""


@dataclass(frozen=True)
class Field:
    """One column. `severity`: of a difference in it."""

    name: str
    type: FieldType
    rule: Rule
    means: str
    severity: Severity = Severity.BLOCK
    is_nullable: bool = False


@dataclass(frozen=True)
class RowKind:
    """One kind of row.

    `znode`, `record`: where each side has it. `missing`: severity of a row that one side lacks.
    """

    name: str
    keys: tuple[Field, ...]
    values: tuple[Field, ...]
    znode: str
    record: str
    missing: Severity = Severity.BLOCK

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.keys, *self.values)


def _key(name: str, means: str, kind: FieldType = FieldType.TEXT) -> Field:
    return Field(name, kind, Rule.EXACT, means)


def _value(name: str, type_: FieldType, rule: Rule, means: str, severity: Severity = Severity.BLOCK) -> Field:
    return Field(name, type_, rule, means, severity, is_nullable=True)


ORIGIN = (
    Field("segment", FieldType.TEXT, Rule.NOT_COMPARED, "File of the row; empty for a live ZooKeeper."),
    Field(
        "batch", FieldType.LONG, Rule.NOT_COMPARED, "Byte position of the record batch or znode in the file; -1 for a live one."
    ),
    Field("at", FieldType.LONG, Rule.NOT_COMPARED, "Offset of the record that said it last, or the znode's mzxid."),
)
"""Columns that every row has besides its kind's own: where it was read. A ZooKeeper row's path follows from its key."""

TOPIC = RowKind(
    "topic",
    (_key("topic", "Name."),),
    (_value("topic_id", FieldType.TEXT, Rule.EXACT, "Id, 22 characters of base 64 for URLs."),),
    "/brokers/topics/T",
    "TopicRecord",
)
PARTITION = RowKind(
    "partition",
    (
        _key("topic_id", "The topic's id: both sides have it, and it needs no join.", FieldType.UUID),
        _key("partition", "Number.", FieldType.INT),
    ),
    (
        _value("replicas", FieldType.INTS, Rule.EXACT, "Assigned brokers, the preferred leader first."),
        _value("adding", FieldType.INTS, Rule.SET, "Replicas that a reassignment adds."),
        _value("removing", FieldType.INTS, Rule.SET, "Replicas that a reassignment removes."),
        _value("leader", FieldType.INT, Rule.EXACT, "Leader, -1 for none.", Severity.WARN),
        _value("isr", FieldType.INTS, Rule.SET, "In-sync replicas.", Severity.WARN),
        _value("leader_epoch", FieldType.INT, Rule.EXACT, "Rises with each election.", Severity.WARN),
        _value("recovery", FieldType.INT, Rule.EXACT, "1 while an unclean leader recovers.", Severity.WARN),
    ),
    "/brokers/topics/T and /brokers/topics/T/partitions/P/state",
    "PartitionRecord, PartitionChangeRecord",
)
TOPIC_CONFIG = RowKind(
    "topic-config",
    (_key("topic", "Topic."), _key("name", "Config.")),
    (_value("value", FieldType.TEXT, Rule.EXACT, "Value."),),
    "/config/topics/T",
    "ConfigRecord",
)
BROKER_CONFIG = RowKind(
    "broker-config",
    (_key("broker", "Broker id; empty for the cluster-wide default."), _key("name", "Config.")),
    (
        _value("value", FieldType.TEXT, Rule.EXACT, "Value; null for a secret."),
        _value("digest", FieldType.TEXT, Rule.DIGEST, "A keyed digest of a secret; empty for what is none."),
    ),
    "/config/brokers/B",
    "ConfigRecord",
)
QUOTA = RowKind(
    "quota",
    (_key("entity", "JSON array of [type, name], sorted; name null for the default."), _key("name", "Quota.")),
    (_value("value", FieldType.DOUBLE, Rule.NUMBER, "Value."),),
    "/config/users, /config/clients, /config/users/U/clients, /config/ips",
    "ClientQuotaRecord",
)
SCRAM = RowKind(
    "scram",
    (_key("user", "User."), _key("mechanism", "SCRAM-SHA-256 or SCRAM-SHA-512.")),
    (
        _value("salt", FieldType.TEXT, Rule.DIGEST, "Salt."),
        _value("stored_key", FieldType.TEXT, Rule.DIGEST, "Stored key."),
        _value("server_key", FieldType.TEXT, Rule.DIGEST, "Server key."),
        _value("iterations", FieldType.INT, Rule.EXACT, "Iterations."),
    ),
    "/config/users/U",
    "UserScramCredentialRecord",
)
ACL = RowKind(
    "acl",
    (
        _key("resource_type", "Topic, Group, Cluster, TransactionalId, DelegationToken or User."),
        _key("resource", "Name, or its prefix."),
        _key("pattern", "LITERAL or PREFIXED."),
        _key("principal", "Type:name."),
        _key("host", "Address, or *."),
        _key("operation", "As Kafka's enumeration spells it, e.g. DESCRIBE_CONFIGS."),
        _key("permission", "ALLOW or DENY."),
    ),
    (),
    "/kafka-acl, /kafka-acl-extended/prefixed",
    "AccessControlEntryRecord",
)
PRODUCER_IDS = RowKind(
    "producer-ids",
    (_key("scope", "Always `cluster`."),),
    (
        _value("first", FieldType.LONG, Rule.PRODUCER_BLOCK, "First id of the newest block; in KRaft the next id."),
        _value("next", FieldType.LONG, Rule.NOT_COMPARED, "First id after the newest block; in KRaft the next id."),
    ),
    "/latest_producer_id_block",
    "ProducerIdsRecord",
)
TOKEN = RowKind(
    "token",
    (_key("token", "Keyed digest of the delegation token's id."),),
    (
        _value("owner", FieldType.TEXT, Rule.EXACT, "Type:name."),
        _value("requester", FieldType.TEXT, Rule.EXACT, "Type:name."),
        _value("renewers", FieldType.TEXT, Rule.SET, "JSON array, sorted."),
        _value("issued", FieldType.LONG, Rule.EXACT, "Milliseconds."),
        _value("maximum", FieldType.LONG, Rule.EXACT, "Milliseconds."),
        _value("expires", FieldType.LONG, Rule.EXACT, "Milliseconds."),
    ),
    "/delegation_token/tokens",
    "DelegationTokenRecord",
)
REGISTRATION = RowKind(
    "registration",
    (_key("broker", "Broker id, of brokers that run in ZooKeeper mode only: others are in KRaft alone."),),
    (
        _value("endpoints", FieldType.TEXT, Rule.SET, "JSON array of listener://host:port, sorted."),
        _value("rack", FieldType.TEXT, Rule.EXACT, "Rack."),
    ),
    "/brokers/ids",
    "RegisterBrokerRecord",
    missing=Severity.WARN,
)
CLAIM = RowKind(
    "claim",
    (_key("name", "cluster-id, controller, controller-epoch or migration."),),
    (_value("value", FieldType.TEXT, Rule.EXACT, "What each side says of it."),),
    "/cluster/id, /controller, /migration",
    "meta.properties, the quorum's leader and epoch, ZkMigrationStateRecord",
)

KINDS: dict[str, RowKind] = {
    kind.name: kind
    for kind in (TOPIC, PARTITION, TOPIC_CONFIG, BROKER_CONFIG, QUOTA, SCRAM, ACL, PRODUCER_IDS, TOKEN, REGISTRATION, CLAIM)
}

COPIED_KINDS = tuple(name for name in KINDS if name not in {CLAIM.name, REGISTRATION.name})
"""What Kafka's copy takes over. Brokers register with the quorum themselves."""

COMPARED_KINDS = tuple(name for name in KINDS if name != CLAIM.name)
"""All that both sides have rows of. The claim is no row of the quorum's log: who takes a look has judged it."""
