"""What the quorum's log says, as rows of all kinds but partitions: replayed record by record, as Kafka's controllers do.

Sources of the rules: org.apache.kafka.image.*Delta of Kafka 3.9. A row is the values of its kind's fields, in their order.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from domain.drift import normalise, records
from domain.drift.digests import Digester
from domain.errors import Permanent
from domain.quorum_log.record_types import RecordType
from spark.codec.metadata_records import Origin, Record, Values

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
"""Types of config resources. ZooKeeper has no others (ConfigResource.java)."""

_OPERATIONS = {0: "UNKNOWN"} | normalise.OPERATIONS
_PERMISSIONS = {0: "UNKNOWN"} | normalise.PERMISSIONS
"""0 is what Kafka's copy makes of a word in ZooKeeper that it does not know."""

Key = tuple[Any, ...]


class Version(NamedTuple):
    """What a key is from some record on. `values`: none where it is gone."""

    key: Key
    values: tuple[Any, ...] | None
    origin: Origin


class Image:
    """Everything but partitions. `rows` are the present ones by kind and key; `journal` has all versions since `follow`.

    `name_of`: the name of a topic that this image was not told of, by its id.
    """

    def __init__(self, digester: Digester, name_of: Callable[[bytes], str | None]) -> None:
        self.rows: dict[str, dict[Key, Version]] = defaultdict(dict)
        self.at_cut: dict[str, dict[Key, Version]] | None = None
        self.journal: dict[str, list[Version]] = defaultdict(list)
        self._digester = digester
        self._name_of = name_of
        self._names: dict[bytes, str] = {}
        self._configs: dict[str, set[str]] = defaultdict(set)
        self._acls: dict[bytes, Key] = {}
        self._holders: Counter[Key] = Counter()

    def follow(self) -> None:
        """From here on all versions go into the journal; the rows of this moment stay in `at_cut`."""
        self.at_cut = {kind: dict(rows) for kind, rows in self.rows.items()}

    def replay(self, record: Record) -> None:
        """One record, of any kind in `REPLAYED`."""
        try:
            _HANDLERS[record.kind](self, record.values, record.origin)
        except KeyError as error:
            raise Permanent(f"{record.origin} has the code {error}, which means nothing in Kafka 3.9 to 4.3") from error

    def _put(self, kind: records.RowKind, key: Key, values: tuple[Any, ...] | None, origin: Origin) -> None:
        version = Version(key, values, origin)
        if values is None:
            if self.rows[kind.name].pop(key, None) is None:
                return
        else:
            self.rows[kind.name][key] = version
        if self.at_cut is not None:
            self.journal[kind.name].append(version)

    # ---- topics and configs ----

    def _topic(self, told: Values, origin: Origin) -> None:
        self._names[told["topicId"]] = told["name"]
        self._put(records.TOPIC, (told["name"],), (normalise.uuid_text(told["topicId"]),), origin)

    def _remove_topic(self, told: Values, origin: Origin) -> None:
        """Its configs go with it (ConfigurationsDelta.deleteTopic, by way of MetadataDelta)."""
        name = self._names.pop(told["topicId"], None)
        if name is not None:
            self._put(records.TOPIC, (name,), None, origin)
        else:
            name = self._name_of(told["topicId"])
        for config in sorted(self._configs.pop(name or "", ())):
            self._put(records.TOPIC_CONFIG, (name, config), None, origin)

    def _config(self, told: Values, origin: Origin) -> None:
        resource, name, value = told["resourceName"], told["name"], told["value"]
        if told["resourceType"] == TOPIC_RESOURCE:
            self._configs[resource].add(name)
            values = None if value is None else (normalise.topic_config(self._digester, resource, name, value),)
            self._put(records.TOPIC_CONFIG, (resource, name), values, origin)
        elif told["resourceType"] == BROKER_RESOURCE:
            both = None if value is None else normalise.broker_config(self._digester, resource, name, value)
            self._put(records.BROKER_CONFIG, (resource, name), both, origin)

    # ---- clients ----

    def _quota(self, told: Values, origin: Origin) -> None:
        entity = normalise.entity_text((part["entityType"], part["entityName"]) for part in told["entity"])
        self._put(records.QUOTA, (entity, told["key"]), None if told["remove"] else (told["value"],), origin)

    def _scram(self, told: Values, origin: Origin) -> None:
        user, mechanism = told["name"], normalise.SCRAM_MECHANISMS[told["mechanism"]]

        def digest(part: str, value: bytes) -> str:
            return normalise.scram_digest(self._digester, user, mechanism, part, value)

        digests = digest("salt", told["salt"]), digest("stored_key", told["storedKey"]), digest("server_key", told["serverKey"])
        self._put(records.SCRAM, (user, mechanism), (*digests, told["iterations"]), origin)

    def _remove_scram(self, told: Values, origin: Origin) -> None:
        self._put(records.SCRAM, (told["name"], normalise.SCRAM_MECHANISMS[told["mechanism"]]), None, origin)

    def _token(self, told: Values, origin: Origin) -> None:
        renewers = normalise.set_text(told["renewers"])
        times = (told["issueTimestamp"], told["maxTimestamp"], told["expirationTimestamp"])
        key = (normalise.token_key(self._digester, told["tokenId"]),)
        self._put(records.TOKEN, key, (told["owner"], told["requester"], renewers, *times), origin)

    def _remove_token(self, told: Values, origin: Origin) -> None:
        self._put(records.TOKEN, (normalise.token_key(self._digester, told["tokenId"]),), None, origin)

    def _acl(self, told: Values, origin: Origin) -> None:
        """Ids are random, and ZooKeeper has none: a row is there as long as any id says it."""
        key = (
            normalise.RESOURCE_TYPES[told["resourceType"]],
            told["resourceName"],
            normalise.PATTERNS[told["patternType"]],
            told["principal"],
            told["host"],
            _OPERATIONS[told["operation"]],
            _PERMISSIONS[told["permissionType"]],
        )
        self._forget_acl(told["id"], origin)
        self._acls[told["id"]] = key
        self._holders[key] += 1
        if self._holders[key] == 1:
            self._put(records.ACL, key, (), origin)

    def _remove_acl(self, told: Values, origin: Origin) -> None:
        self._forget_acl(told["id"], origin)

    def _forget_acl(self, id_: bytes, origin: Origin) -> None:
        key = self._acls.pop(id_, None)
        if key is None:
            return
        self._holders[key] -= 1
        if not self._holders[key]:
            self._put(records.ACL, key, None, origin)

    # ---- the cluster ----

    def _producer_ids(self, told: Values, origin: Origin) -> None:
        self._put(records.PRODUCER_IDS, ("cluster",), (told["nextProducerId"], told["nextProducerId"]), origin)

    def _register(self, told: Values, origin: Origin) -> None:
        """Of brokers that run in ZooKeeper mode: a broker in KRaft mode takes its registration's place."""
        listeners = normalise.endpoints_text((e["name"], e["host"], e["port"]) for e in told["endPoints"])
        values = (listeners, told["rack"]) if told.get("isMigratingZkBroker") else None
        self._put(records.REGISTRATION, (str(told["brokerId"]),), values, origin)

    def _unregister(self, told: Values, origin: Origin) -> None:
        self._put(records.REGISTRATION, (str(told["brokerId"]),), None, origin)


_HANDLERS: Mapping[int, Callable[[Image, Values, Origin], None]] = {
    RecordType.TOPIC: Image._topic,
    RecordType.REMOVE_TOPIC: Image._remove_topic,
    RecordType.CONFIG: Image._config,
    RecordType.CLIENT_QUOTA: Image._quota,
    RecordType.USER_SCRAM_CREDENTIAL: Image._scram,
    RecordType.REMOVE_USER_SCRAM_CREDENTIAL: Image._remove_scram,
    RecordType.DELEGATION_TOKEN: Image._token,
    RecordType.REMOVE_DELEGATION_TOKEN: Image._remove_token,
    RecordType.ACCESS_CONTROL_ENTRY: Image._acl,
    RecordType.REMOVE_ACCESS_CONTROL_ENTRY: Image._remove_acl,
    RecordType.PRODUCER_IDS: Image._producer_ids,
    RecordType.REGISTER_BROKER: Image._register,
    RecordType.UNREGISTER_BROKER: Image._unregister,
}
REPLAYED = tuple(int(kind) for kind in _HANDLERS)
"""Api keys. The others say nothing that ZooKeeper has too: fencing, features, heartbeats of the log itself."""
