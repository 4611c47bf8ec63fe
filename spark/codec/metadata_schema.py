"""The records of the quorum's log, Kafka 3.9 to 4.3: what each kind has, field by field. Facts only; a test holds them against
the JSON schemas in Kafka's own jars.

All versions are flexible: strings and arrays are compact, and every structure ends with tagged fields. Names are those of
Kafka's dump tool.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from domain.quorum_log.record_types import RecordType

TRANSACTION_MARKERS = (RecordType.BEGIN_TRANSACTION, RecordType.END_TRANSACTION, RecordType.ABORT_TRANSACTION)


@dataclass(frozen=True)
class SchemaField:
    """`type`: in Kafka's words, `[]` before it for an array, a structure's name where it has `fields`.

    `since`: the first version that has it. `tag`: of a tagged field, which is absent where it has its `default`.
    """

    name: str
    type: str
    since: int = 0
    is_nullable: bool = False
    tag: int | None = None
    default: Any = None
    fields: tuple["SchemaField", ...] = ()


@dataclass(frozen=True)
class RecordSchema:
    """One kind of record. `newest`: its highest version; the lowest is 0 for all."""

    name: str
    newest: int
    fields: tuple[SchemaField, ...]


def _f(name: str, kind: str, since: int = 0, *fields: SchemaField, nullable: bool = False) -> SchemaField:
    return SchemaField(name, kind, since, nullable, fields=fields)


def _tagged(tag: int, name: str, kind: str, since: int = 0, default: Any = None, *, nullable: bool = False) -> SchemaField:  # noqa: ANN401
    return SchemaField(name, kind, since, nullable, tag, default)


def _changed(tag: int, name: str, since: int = 0, kind: str = "[]int32") -> SchemaField:
    return _tagged(tag, name, kind, since, nullable=True)


_ENDPOINT = (_f("name", "string"), _f("host", "string"), _f("port", "uint16"), _f("securityProtocol", "int16"))
_FEATURE = (_f("name", "string"), _f("minSupportedVersion", "int16"), _f("maxSupportedVersion", "int16"))
_BROKER = (_f("brokerId", "int32"), _f("brokerEpoch", "int64"))
_FENCED = (_f("id", "int32"), _f("epoch", "int64"))
_PARTITION_KEY = (_f("partitionId", "int32"), _f("topicId", "uuid"))

_SCHEMAS: Mapping[RecordType, tuple[int, tuple[SchemaField, ...]]] = {
    RecordType.REGISTER_BROKER: (
        4,
        (
            _f("brokerId", "int32"),
            _f("isMigratingZkBroker", "bool", 2),
            _f("incarnationId", "uuid"),
            _f("brokerEpoch", "int64"),
            _f("endPoints", "[]BrokerEndpoint", 0, *_ENDPOINT),
            _f("features", "[]BrokerFeature", 0, *_FEATURE),
            _f("rack", "string", nullable=True),
            _f("fenced", "bool"),
            _f("inControlledShutdown", "bool", 1),
            _tagged(0, "logDirs", "[]uuid", 3, ()),
            _changed(1, "cordonedLogDirs", 4, "[]uuid"),
        ),
    ),
    RecordType.UNREGISTER_BROKER: (0, _BROKER),
    RecordType.TOPIC: (0, (_f("name", "string"), _f("topicId", "uuid"))),
    RecordType.PARTITION: (
        2,
        (
            *_PARTITION_KEY,
            _f("replicas", "[]int32"),
            _f("isr", "[]int32"),
            _f("removingReplicas", "[]int32"),
            _f("addingReplicas", "[]int32"),
            _f("leader", "int32"),
            _tagged(0, "leaderRecoveryState", "int8", default=0),
            _f("leaderEpoch", "int32"),
            _f("partitionEpoch", "int32"),
            _f("directories", "[]uuid", 1),
            _changed(1, "eligibleLeaderReplicas", 2),
            _changed(2, "lastKnownElr", 2),
        ),
    ),
    RecordType.CONFIG: (
        0,
        (
            _f("resourceType", "int8"),
            _f("resourceName", "string"),
            _f("name", "string"),
            _f("value", "string", nullable=True),
        ),
    ),
    RecordType.PARTITION_CHANGE: (
        2,
        (
            *_PARTITION_KEY,
            _changed(0, "isr"),
            _tagged(1, "leader", "int32", default=-2),
            _changed(2, "replicas"),
            _changed(3, "removingReplicas"),
            _changed(4, "addingReplicas"),
            _tagged(5, "leaderRecoveryState", "int8", default=-1),
            _changed(8, "directories", 1, "[]uuid"),
            _changed(6, "eligibleLeaderReplicas", 2),
            _changed(7, "lastKnownElr", 2),
        ),
    ),
    RecordType.FENCE_BROKER: (0, _FENCED),
    RecordType.UNFENCE_BROKER: (0, _FENCED),
    RecordType.REMOVE_TOPIC: (0, (_f("topicId", "uuid"),)),
    RecordType.DELEGATION_TOKEN: (
        0,
        (
            _f("owner", "string"),
            _f("requester", "string"),
            _f("renewers", "[]string"),
            _f("issueTimestamp", "int64"),
            _f("maxTimestamp", "int64"),
            _f("expirationTimestamp", "int64"),
            _f("tokenId", "string"),
        ),
    ),
    RecordType.USER_SCRAM_CREDENTIAL: (
        0,
        (
            _f("name", "string"),
            _f("mechanism", "int8"),
            _f("salt", "bytes"),
            _f("storedKey", "bytes"),
            _f("serverKey", "bytes"),
            _f("iterations", "int32"),
        ),
    ),
    RecordType.FEATURE_LEVEL: (0, (_f("name", "string"), _f("featureLevel", "int16"))),
    RecordType.CLIENT_QUOTA: (
        0,
        (
            _f("entity", "[]EntityData", 0, _f("entityType", "string"), _f("entityName", "string", nullable=True)),
            _f("key", "string"),
            _f("value", "float64"),
            _f("remove", "bool"),
        ),
    ),
    RecordType.PRODUCER_IDS: (0, (*_BROKER, _f("nextProducerId", "int64"))),
    RecordType.BROKER_REGISTRATION_CHANGE: (
        3,
        (
            *_BROKER,
            _tagged(0, "fenced", "int8", default=0),
            _tagged(1, "inControlledShutdown", "int8", 1, 0),
            _tagged(2, "logDirs", "[]uuid", 2, ()),
            _changed(3, "cordonedLogDirs", 3, "[]uuid"),
        ),
    ),
    RecordType.ACCESS_CONTROL_ENTRY: (
        0,
        (
            _f("id", "uuid"),
            _f("resourceType", "int8"),
            _f("resourceName", "string"),
            _f("patternType", "int8"),
            _f("principal", "string"),
            _f("host", "string"),
            _f("operation", "int8"),
            _f("permissionType", "int8"),
        ),
    ),
    RecordType.REMOVE_ACCESS_CONTROL_ENTRY: (0, (_f("id", "uuid"),)),
    RecordType.NO_OP: (0, ()),
    RecordType.ZK_MIGRATION_STATE: (0, (_f("zkMigrationState", "int8"),)),
    RecordType.REMOVE_USER_SCRAM_CREDENTIAL: (0, (_f("name", "string"), _f("mechanism", "int8"))),
    RecordType.BEGIN_TRANSACTION: (0, (_tagged(0, "name", "string", nullable=True),)),
    RecordType.END_TRANSACTION: (0, ()),
    RecordType.ABORT_TRANSACTION: (0, (_tagged(0, "reason", "string", nullable=True),)),
    RecordType.REMOVE_DELEGATION_TOKEN: (0, (_f("tokenId", "string"),)),
    RecordType.REGISTER_CONTROLLER: (
        0,
        (
            _f("controllerId", "int32"),
            _f("incarnationId", "uuid"),
            _f("zkMigrationReady", "bool"),
            _f("endPoints", "[]ControllerEndpoint", 0, *_ENDPOINT),
            _f("features", "[]ControllerFeature", 0, *_FEATURE),
        ),
    ),
    RecordType.CLEAR_ELR: (0, (_f("topicName", "string"),)),
}


def _kafka_name(kind: RecordType) -> str:
    return "".join(word.capitalize() for word in kind.name.split("_")) + "Record"


SCHEMAS: dict[int, RecordSchema] = {int(k): RecordSchema(_kafka_name(k), newest, f) for k, (newest, f) in _SCHEMAS.items()}
"""By api key."""
