"""`Observation`: one frozen look at a cluster. A part that did not answer is `None` here and named in `unanswered`.

`None` inside a part that did answer means *absent*, which is knowledge: no `/migration` znode, no such MBean.
Property values are kept only for the keys in `OBSERVED_PROPERTIES`, none of which holds a secret, and as `domain.redaction`
shows them: a file may have a comment, or its next line, inside a value.
"""

from datetime import datetime
from enum import IntEnum, StrEnum

from pydantic import Field, SerializeAsAny

from domain.observed.parts import ObservedPart as ObservedPart
from domain.observed.parts import Suspect as Suspect
from domain.observed.parts import Unanswered as Unanswered
from domain.observed.survey import Survey

OBSERVED_PROPERTIES = frozenset(
    {
        "broker.id",
        "node.id",
        "process.roles",
        "zookeeper.connect",
        "zookeeper.metadata.migration.enable",
        "controller.quorum.voters",
        "controller.quorum.bootstrap.servers",
        "controller.listener.names",
        "listeners",
        "advertised.listeners",
        "listener.security.protocol.map",
        "inter.broker.listener.name",
        "control.plane.listener.name",
        "inter.broker.protocol.version",
        "authorizer.class.name",
        "broker.id.generation.enable",
        "log.dirs",
        "log.dir",
        "metadata.log.dir",
        "queued.max.request.bytes",
        "max.connections",
        "max.connections.per.ip",
        "max.connection.creation.rate",
        "zookeeper.connection.timeout.ms",
        "zookeeper.session.timeout.ms",
        "broker.session.timeout.ms",
        "initial.broker.registration.timeout.ms",
        "request.timeout.ms",
        "offsets.topic.num.partitions",
        "transaction.state.log.num.partitions",
    }
)


class ControllerZnode(ObservedPart):
    """`/controller`. KRaft's claim is persistent and has a `kraftControllerEpoch` of 0 or more; ZooKeeper's is ephemeral.

    `claimed_at`: by the clock of the ensemble.
    """

    broker_id: int
    kraft_epoch: int | None
    is_ephemeral: bool
    claimed_at: datetime | None = None


class MigrationZnode(ObservedPart):
    """`/migration`: -1 as offset until the copy is complete. `None` fields: the znode's content cannot be parsed."""

    controller_id: int | None
    controller_epoch: int | None
    offset: int | None


class ZooKeeperView(ObservedPart):
    """What the ensemble says. `broker_ids`: brokers in ZooKeeper or hybrid mode that have a live session."""

    cluster_id: str | None
    controller: ControllerZnode | None
    controller_epoch: int | None
    migration: MigrationZnode | None
    broker_ids: tuple[int, ...]
    pending_deletions: tuple[str, ...]
    reassignments: tuple[str, ...]
    is_preferred_election_pending: bool
    assigned_broker_ids: tuple[int, ...]
    topics_without_id: tuple[str, ...]


class PartitionFault(ObservedPart):
    """A partition that is not as it should be, e.g. `orders-3`, with the ids of its replicas that are out of sync.

    `leader`: whom they fetch from; `None` where it has none, or nobody looked.
    """

    partition: str
    missing: tuple[int, ...]
    leader: int | None = None


class SharedPartitions(ObservedPart):
    """Two brokers (ascending) that both have replicas of the same partitions: of how many, and one of them by name."""

    brokers: tuple[int, int]
    count: int
    example: str


class KafkaView(ObservedPart):
    """What brokers say through the Kafka protocol.

    `under_replicated`: partitions with replicas out of sync. `offline`: without a leader; `last_in_sync`: of these, the brokers
    of which one can lead again.
    `needs`: for each broker the partitions that would fall below `min.insync.replicas` if it stopped now.
    `shared`: every pair of brokers that share a partition; `None`: nobody looked. `racks`: of the brokers that have one.
    """

    cluster_id: str | None
    broker_ids: tuple[int, ...]
    topic_count: int
    partition_count: int
    under_replicated: tuple[PartitionFault, ...]
    offline: tuple[str, ...]
    needs: dict[int, tuple[str, ...]]
    shared: tuple[SharedPartitions, ...] | None = None
    racks: dict[int, str] = Field(default_factory=dict)
    last_in_sync: dict[str, tuple[int, ...]] = Field(default_factory=dict)


class MigrationGauge(IntEnum):
    """`ZkMigrationState` as Kafka numbers it (ZkMigrationState.java; -1 before the first publish of metadata)."""

    BOOTING = -1
    NONE = 0
    MIGRATION = 1
    PRE_MIGRATION = 2
    POST_MIGRATION = 3
    ZK = 4


class NodeMetrics(ObservedPart):
    """One node's gauges. `None`: the node answered, and has no such MBean. Offsets and epochs are the quorum's.

    The MBeans that exist tell the running mode: a ZooKeeper-mode broker has `broker_state` and gauge ZK, a hybrid one
    also has raft metrics, a KRaft broker has raft metrics and no gauge. `write_behind_lag` exists only in a controller
    whose process runs with the migration flag. `node_id`: whose gauges these are, where they say so.
    """

    broker_state: int | None = None
    migration_gauge: MigrationGauge | None = None
    active_controller_count: int | None = None
    migrating_broker_count: int | None = None
    active_broker_count: int | None = None
    fenced_broker_count: int | None = None
    write_behind_lag: int | None = None
    zookeeper_session: str | None = None
    raft_leader: int | None = None
    raft_epoch: int | None = None
    raft_log_end: int | None = None
    raft_high_watermark: int | None = None
    under_replicated_partitions: int | None = None
    metadata_error_count: int | None = None
    kafka_version: str | None = None
    node_id: int | None = None


class Process(ObservedPart):
    """A node's process. `identity` changes with every start; `last_identity` is the pid file's, alive or not, and `started_at`
    is of that one, where it is known and the machine has not been booted since.

    `is_paused`: it is there, and does not run on: stopped by a signal or a debugger.
    """

    is_running: bool
    identity: str | None
    last_identity: str | None
    started_at: datetime | None
    is_paused: bool = False

    @property
    def pid(self) -> str:
        """Of the process that runs; empty where none does."""
        return (self.identity or "").partition("@")[0]


class RollMark(ObservedPart):
    """What a roll of ours wrote beside the node's file before it touched anything; kept until the next roll.

    `before_identity`: the process that ran then. `before_sha256` and `written_sha256`: the file as we found and left it;
    `original_sha256`: the archived file as it was before this product first changed it. `changes`: what the roll changed in
    the file, key by key, for people.
    `has_edits`: the file holds edits of others that the original lacks. `was_stopped`: the roll found the node stopped by an
    earlier roll of ours, so that it is this one's to start even before the file is written. `proven_identity`: the process that
    was proven; `None` where it is not known, as after a start of ours that no roll made. `are_canaries_due`: clients' ways
    have not been tried since, or what was made for that may still be there. `marked_at`: when it was written, by the clock of
    whoever did; `None` in one that an older release has left. `has_run`: the node had run before, whatever becomes of its
    process; of a controller that is made it is not known.
    """

    step_id: str
    generation: int
    stage: str
    before_identity: str | None
    before_sha256: str
    written_sha256: str
    original_sha256: str | None = None
    changes: tuple[str, ...] = ()
    is_proven: bool = False
    has_edits: bool = False
    was_stopped: bool = False
    proven_identity: str | None = None
    are_canaries_due: bool = False
    marked_at: datetime | None = None
    has_run: bool = False

    @property
    def is_of_making(self) -> bool:
        """Whether it was left when the node was made, and nothing is known to have run from that file yet."""
        is_unchanged = self.original_sha256 == self.before_sha256 == self.written_sha256
        return is_unchanged and not self.is_proven and not self.has_run


def is_started_by_us(mark: RollMark | None, identity: str | None) -> bool:
    """Of a node's process, or its last: whether a step has started it, and nobody since."""
    return mark is not None and identity not in {None, mark.before_identity} and mark.proven_identity in {None, identity}


class PauseMark(ObservedPart):
    """What lies beside a node's file as long as a migration counts on its configuration management being paused.

    `step_id`: of the step that needed it. `is_ours`: it ran until then; where it did not, whoever paused it resumes it.
    `is_proven`: it was seen paused since the migration counts on that.
    """

    step_id: str
    generation: int
    is_ours: bool
    is_proven: bool = False


class PropertiesFile(ObservedPart):
    """A node's properties file: hash of its bytes, the observed keys, and what our last roll of the node left beside it.

    `original_sha256`: the archived original that lies beside the file and reads back as what its name says.
    `running`: what the running broker has of keys that a configuration provider gives; nothing where it may not be asked.
    """

    sha256: str
    properties: dict[str, str]
    mark: RollMark | None
    original_sha256: str | None = None
    running: dict[str, str] = Field(default_factory=dict)

    @property
    def known(self) -> dict[str, str]:
        """What the node runs with, as far as that is known; else what its file says, references included."""
        return {**self.properties, **self.running}


class StorageState(StrEnum):
    """One log directory. FOREIGN: it holds data, or was formatted for another cluster or node."""

    ABSENT = "absent"
    EMPTY = "empty"
    OURS = "ours"
    FOREIGN = "foreign"


class LogDir(ObservedPart):
    """A log directory and what its `meta.properties` says. `None`: there is no such file or key.

    `is_fenced`: the way back has put `meta.properties` aside, so that no controller can start on it.
    `has_metadata_log`: it holds a copy of the quorum's log, `__cluster_metadata-0`.
    """

    path: str
    state: StorageState
    cluster_id: str | None
    node_id: int | None
    is_fenced: bool = False
    has_metadata_log: bool = False

    @property
    def is_anothers(self) -> bool:
        """It was formatted for another node, or another cluster: a path was copied into the wrong file, or an id made up.

        What names nobody, as an empty fence does, is not another's.
        """
        return self.state is StorageState.FOREIGN and (self.cluster_id is not None or self.node_id is not None)


class NodeDisk(ObservedPart):
    """What the node's driver sees on disk. `file` is `None` when the node has no properties file yet."""

    file: PropertiesFile | None
    log_dirs: tuple[LogDir, ...]
    pause: PauseMark | None = None


class NodeView(ObservedPart):
    """One node. `None` parts did not answer. `last_output`: the last lines of a process that does not run any more.

    `is_configuration_paused`: whether its configuration management is; `None` also where its specification names none.
    `is_unowned`: no process of it is known, and its metrics endpoint answers as one of its role does: it is not down.
    """

    id: int
    process: Process | None = None
    disk: NodeDisk | None = None
    metrics: NodeMetrics | None = None
    last_output: tuple[str, ...] = ()
    is_configuration_paused: bool | None = None
    is_unowned: bool = False

    @property
    def mark(self) -> RollMark | None:
        """What a roll of ours has left beside its file, as far as that could be seen."""
        return self.disk.file.mark if self.disk is not None and self.disk.file is not None else None

    @property
    def is_unstarted(self) -> bool:
        """Whether this migration has made it, and nothing has started it since. Its pid file and its output, if it has any, are
        left over from a controller that was wiped before."""
        mark, process = self.mark, self.process
        if mark is None or process is None or process.is_running or self.is_unowned:
            return False
        return mark.is_of_making and mark.before_identity == process.last_identity


class Observation(ObservedPart):
    """Everything that one look saw, between `started_at` and `ended_at`.

    `survey`: taken only before the start. `part`: what only one kind of migration looks at, as its probe has filled it.
    """

    cluster: str
    spec_revision: int
    started_at: datetime
    ended_at: datetime
    zookeeper: ZooKeeperView | None
    kafka: KafkaView | None
    nodes: tuple[NodeView, ...]
    unanswered: tuple[Unanswered, ...]
    survey: Survey | None = None
    part: SerializeAsAny[ObservedPart] | None = None

    def node(self, node_id: int) -> NodeView:
        return next(node for node in self.nodes if node.id == node_id)
