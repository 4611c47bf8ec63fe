"""What the way back must know of the quorum's log, from the bytes of its segments and checkpoints. Pure.

A file is a row of record batches (magic 2, as everywhere in Kafka). A record's value is a frame version (1), an api key and a
version, all unsigned varints, then the message (MetadataRecordSerde.java; the schemas lie in Kafka's metadata jar). Control
batches hold raft's own records: they take offsets and change nothing.

Few kinds of records are decoded: `ZkMigrationStateRecord`, `ConfigRecord` for resources that a migration cannot carry, what
ACLs are for, which it cannot always carry either, and of `RegisterControllerRecord` the id, which comes first. Of the rest the
kind is enough. A kind that is not known here counts as a change: the careful side.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from domain.drift.normalise import OPERATIONS, PERMISSIONS, RESOURCE_TYPES
from domain.errors import Unsafe
from domain.observed.observation import MigrationGauge
from domain.quorum_log.record_batches import ID_BYTES, UNTOLD, Batch, Record, unsigned
from domain.quorum_log.record_types import RecordType

NEVER_IN_ZOOKEEPER = frozenset(
    {
        RecordType.REGISTER_BROKER,
        RecordType.UNREGISTER_BROKER,
        RecordType.FENCE_BROKER,
        RecordType.UNFENCE_BROKER,
        RecordType.FEATURE_LEVEL,
        RecordType.BROKER_REGISTRATION_CHANGE,
        RecordType.NO_OP,
        RecordType.ZK_MIGRATION_STATE,
        RecordType.BEGIN_TRANSACTION,
        RecordType.END_TRANSACTION,
        RecordType.ABORT_TRANSACTION,
        RecordType.REGISTER_CONTROLLER,
    }
)
"""The quorum's own housekeeping, which dual write does not carry (KRaftMigrationZkWriter.handleDelta): ZooKeeper has its own
registrations. What is lost with these is nothing."""

CLIENT_METRICS, GROUP = 16, 32
UNKNOWN_TO_ZOOKEEPER: Mapping[int, str] = {CLIENT_METRICS: "client metrics", GROUP: "group"}
"""Resource types that ZooKeeper cannot hold (ConfigResource.java). While one has a config, a new leader's comparison with
ZooKeeper throws, again and again, and dual write never begins (KRaftMigrationZkWriter.handleConfigsSnapshot)."""

NO_ZNODE = re.compile(r"[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]|^\.{0,2}$")
"""What the name of a znode cannot have, or be (PathUtils.java), in the characters of Java's strings. The authorizer of KRaft
takes an ACL for such a name, that of ZooKeeper does not (KAFKA-13983): it is never written there, and a new leader fails on it
again and again."""
ACL_FOR = {kind: re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower() for kind, name in RESOURCE_TYPES.items()}


@dataclass(frozen=True)
class EndOfCopy:
    """Of Kafka's copy in the quorum's log. `offset`: the one after its last record. `epoch`: the quorum's, of who made it."""

    offset: int
    epoch: int


class Stray(NamedTuple):
    """What ZooKeeper cannot hold, in words. `offset`: of an ACL's record in the log."""

    what: str
    is_acl: bool = False
    offset: int = -1


@dataclass(frozen=True)
class LogFacts:
    """What has been read so far. Read on with `after`.

    `end`: the offset that the next batch must have. `state`: the last migration state, written at offset `state_at` (in a
    checkpoint: before its end). `stray_configs`: resource type, resource and key of what ZooKeeper cannot hold; `stray_acls`:
    by their ids ACLs of which it cannot hold the name. `controllers`: ids of those that have registered, whether they
    run or not.
    `boundary`, `changes`: records beyond that offset which ZooKeeper should have, counted by kind; `configured`: those of
    configs, counted by resource.
    """

    end: int = 0
    state: MigrationGauge = MigrationGauge.NONE
    state_at: int = -1
    stray_configs: frozenset[tuple[int, str, str]] = frozenset()
    stray_acls: Mapping[bytes, Stray] = field(default_factory=dict)
    controllers: frozenset[int] = frozenset()
    boundary: int = -1
    changes: Mapping[int, int] = field(default_factory=dict)
    configured: Mapping[str, int] = field(default_factory=dict)

    def counting_beyond(self, offset: int) -> "LogFacts":
        """Begin to count. What has been read beyond `offset` already, in a checkpoint, counts as `UNTOLD`."""
        untold = self.end - 1 - offset
        return replace(self, boundary=offset, changes={UNTOLD: untold} if untold > 0 else {}, configured={})

    def after(self, batches: Iterable[Batch]) -> "LogFacts":
        """The facts with these batches of the log, which must follow without a gap. Those read before are passed over."""
        facts = self
        for batch in batches:
            if batch.last_offset < facts.end:
                continue
            if batch.base_offset > facts.end:
                raise Unsafe(f"metadata log: after offset {facts.end - 1} comes {batch.base_offset}, something is missing")
            facts = replace(facts._with_records(batch.records), end=batch.last_offset + 1)
        return facts

    def after_checkpoint(self, batches: Iterable[Batch], end: int) -> "LogFacts":
        """The facts with batches of a checkpoint, which stands for all of the log before offset `end`."""
        facts = self
        for batch in batches:
            facts = facts._with_records(tuple(replace(record, offset=end - 1) for record in batch.records))
        return replace(facts, end=end)

    @property
    def strays(self) -> tuple[Stray, ...]:
        configs = (f"{UNKNOWN_TO_ZOOKEEPER[kind]} config {key} of {name}" for kind, name, key in sorted(self.stray_configs))
        return (*map(Stray, configs), *sorted(self.stray_acls.values()))

    @property
    def change_names(self) -> tuple[str, ...]:
        """The counted changes for people, e.g. `300 topic`."""
        return tuple(f"{count} {_name(kind)}" for kind, count in sorted(self.changes.items()))

    @property
    def most_configured(self) -> tuple[str, ...]:
        """Whose configs are changed beyond the boundary, most often changed first, e.g. `topic orders`."""
        return tuple(sorted(self.configured, key=lambda name: (-self.configured[name], name)))

    def _with_records(self, records: tuple[Record, ...]) -> "LogFacts":
        facts = self
        changes, configured = Counter(self.changes), Counter(self.configured)
        for record in records:
            if record.api_key == RecordType.ZK_MIGRATION_STATE:
                facts = replace(facts, state=_migration_state(record), state_at=record.offset)
            if record.api_key == RecordType.REGISTER_CONTROLLER:
                facts = replace(facts, controllers=facts.controllers | {int.from_bytes(record.body[:4], "big")})
            stray = _stray_config(record) if record.api_key == RecordType.CONFIG else None
            if stray is not None:
                key, is_set = stray
                facts = replace(facts, stray_configs=facts.stray_configs | {key} if is_set else facts.stray_configs - {key})
            acls = _with_acl(facts.stray_acls, record)
            is_stray = stray is not None or acls is not facts.stray_acls
            facts = facts if acls is facts.stray_acls else replace(facts, stray_acls=acls)
            if record.offset > self.boundary and record.api_key not in NEVER_IN_ZOOKEEPER and not is_stray:
                changes[record.api_key] += 1
                configured.update([_configured(record)] if record.api_key == RecordType.CONFIG else [])
        return replace(facts, changes=dict(changes), configured=dict(configured))


def _name(kind: int) -> str:
    known = {UNTOLD: "untold"} | {int(t): t.name.lower().replace("_", " ") for t in RecordType}
    return known.get(kind, f"record of unknown kind {kind}")


def _migration_state(record: Record) -> MigrationGauge:
    value = record.body[0] if record.version == 0 and record.body else -1
    if value not in {s.value for s in (MigrationGauge.NONE, *WRITTEN_STATES)}:
        raise Unsafe(f"metadata log: the migration state at offset {record.offset} cannot be read (version {record.version})")
    return MigrationGauge(value)


WRITTEN_STATES = (MigrationGauge.MIGRATION, MigrationGauge.PRE_MIGRATION, MigrationGauge.POST_MIGRATION)


CONFIGURED: Mapping[int, str] = {2: "topic", 4: "broker"}
"""ConfigResource.java, of what ZooKeeper can hold."""


def _configured(record: Record) -> str:
    name, _ = _compact(record.body, 1)
    kind = CONFIGURED.get(record.body[0], f"resource of type {record.body[0]}")
    return f"{kind} {name or '<default>'}"


def _stray_config(record: Record) -> tuple[tuple[int, str, str], bool] | None:
    """A config of a resource that ZooKeeper cannot hold, and whether it is set or deleted. `None`: another resource's."""
    if record.version != 0:
        raise Unsafe(f"metadata log: the config at offset {record.offset} has version {record.version}; only 0 is understood")
    if record.body[0] not in UNKNOWN_TO_ZOOKEEPER:
        return None
    resource, at = _compact(record.body, 1)
    name, at = _compact(record.body, at)
    value, _ = _compact(record.body, at)
    return (record.body[0], resource or "", name or ""), value is not None


def _with_acl(strays: Mapping[bytes, Stray], record: Record) -> Mapping[bytes, Stray]:
    """Those that are there after this record. The id comes first in both kinds of records."""
    acl_id = record.body[:ID_BYTES]
    if record.api_key == RecordType.REMOVE_ACCESS_CONTROL_ENTRY and acl_id in strays:
        return {known: words for known, words in strays.items() if known != acl_id}
    if record.api_key != RecordType.ACCESS_CONTROL_ENTRY:
        return strays
    if record.version != 0:
        raise Unsafe(f"metadata log: the ACL at offset {record.offset} has version {record.version}; only 0 is understood")
    try:
        name, at = _compact(record.body, ID_BYTES + 1)
        principal, at = _compact(record.body, at + 1)
        _, at = _compact(record.body, at)
        kind, operation, permission = record.body[ID_BYTES], record.body[at], record.body[at + 1]
    except IndexError as error:
        raise Unsafe(f"metadata log: the ACL at offset {record.offset} is not whole") from error
    if not NO_ZNODE.search(name or ""):
        return strays
    what = f"{ACL_FOR.get(kind, f'resource of type {kind}')} {shown(name or '(no name)')}"
    rule = f"{PERMISSIONS.get(permission, 'ACL')} of {OPERATIONS.get(operation, f'operation {operation}')}"
    return {**strays, acl_id: Stray(f"{rule} to {shown(principal or '')} for {what}", is_acl=True, offset=record.offset)}


def shown(name: str) -> str:
    """Without what is a command to a terminal."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in name)


def _compact(data: bytes, at: int) -> tuple[str | None, int]:
    """A compact nullable string: its length plus one, 0 for null."""
    length, at = unsigned(data, at)
    if length == 0:
        return None, at
    end = at + length - 1
    return data[at:end].decode(errors="replace"), end
