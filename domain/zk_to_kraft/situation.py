"""`Situation`: an observation reduced to a finite product of enums, which is all that `decide` looks at.

What one node is comes from `modes`; this is about the cluster: its quorum, its claim, its dual write, its copy. `reduction`
fills it.
"""

from dataclasses import dataclass
from enum import StrEnum

from domain.health.canary_debt import CanaryDebt
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.steps import NodeStage


class QuorumState(StrEnum):
    """The migration state in the quorum's log, as the active controller reports it."""

    ABSENT = "absent"
    """No controller is active."""
    NONE = "none"
    """The log was begun without the flag: no migration can ever start from it."""
    PRE_MIGRATION = "pre-migration"
    MIGRATION = "migration"
    POST_MIGRATION = "post-migration"
    """Final. One controller that says so is enough."""
    UNKNOWN = "unknown"


class Claim(StrEnum):
    """Who owns `/controller`: a ZooKeeper controller's is ephemeral, a KRaft controller's persistent."""

    ZOOKEEPER = "zookeeper"
    KRAFT = "kraft"
    NOBODY = "nobody"
    UNKNOWN = "unknown"


class DualWrite(StrEnum):
    """Whether ZooKeeper keeps up with the quorum, proven by the offset in `/migration` and the owner of `/controller`."""

    CURRENT = "current"
    NOT_CURRENT = "not-current"
    DEAD = "dead"
    """The offset is left behind, or `/controller` gone, while every gauge looks well: the active controller will not begin
    again by itself; the next one does."""
    UNKNOWN = "unknown"


class Registration(StrEnum):
    """Whether the quorum has registered, unfenced, just those brokers as migrating that run in hybrid mode."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNKNOWN = "unknown"


class Replication(StrEnum):
    """Whether all replicas are in sync, every partition has a leader, and all running brokers are listed."""

    IN_SYNC = "in-sync"
    CATCHING_UP = "catching-up"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class BrokerSituation:
    """One broker. `stage` is `None` when its file fits no stage or was changed by others since we wrote it.

    `is_needed`: stopping it now would take a partition below its `min.insync.replicas`.
    """

    id: int
    mode: BrokerMode
    stage: NodeStage | None
    is_needed: bool = False
    is_zookeeper_controller: bool = False
    has_metadata_log: bool = False
    """It keeps a copy of the quorum's log on disk."""
    is_file_ours: bool = False
    """The file is, byte for byte, what our last roll of this node wrote."""
    canaries: CanaryDebt = CanaryDebt.NONE


@dataclass(frozen=True)
class ControllerSituation:
    """One controller. `stage` is `None` also when there is no file yet.

    `is_caught_up`: it follows the leader and has its log; before the copy it is also registered, or the copy would not begin.
    `is_flag_in_file`: no restart of it could finalise. False also for a file that fits no stage: the flag is what matters.
    """

    id: int
    mode: ControllerMode
    stage: NodeStage | None
    is_leader: bool = False
    is_caught_up: bool = False
    is_flag_in_file: bool = True
    is_startable: bool = True
    """False: its storage is fenced, or was never formatted. One that still runs would not come back from its next restart."""
    is_file_ours: bool = False
    """As a broker's."""


@dataclass(frozen=True)
class Situation:
    """All that `decide` looks at."""

    brokers: tuple[BrokerSituation, ...]
    controllers: tuple[ControllerSituation, ...]
    quorum: QuorumState
    claim: Claim
    dual_write: DualWrite
    registration: Registration
    replication: Replication
    is_copy_left_over: bool = False
    """`/migration` tells of a copy though no quorum has claimed `/controller`: an earlier attempt's, or unreadable."""
    is_copy_stale: bool = False
    """A quorum that has not copied has claimed `/controller`, and takes the copy of an earlier attempt for its own: as soon as
    its log is as long as that one's was, it deletes from ZooKeeper what its log lacks."""
    is_copy_made: bool = False
    """Kafka's copy is complete, by the log that a controller has, or by ZooKeeper's own offset while nobody leads."""
    is_copy_failed: bool = False
    """KRaft has claimed `/controller`, the copy is not complete, and no controller lives to complete it."""
    has_migration_znode: bool = False
    is_failover_harmful: bool = False
    """A failover could not cure dual write now, or it is not known whether it could."""
    is_mended_by_window: bool = False
    """What makes a failover harmful is all known, and nothing that the revert window would not mend by itself."""
    is_release_due: bool = False
    """Once all else is done: a migration has remembered of a node that its configuration management is paused."""
    lacks_topic_ids: bool = False
    """A topic in ZooKeeper has no id: the next ZooKeeper controller makes up another than brokers have on disk."""
    running_again: tuple[int, ...] = ()
    """Nodes whose configuration management was proven to be paused, and is not seen to be so any more."""

    @property
    def nodes(self) -> tuple["BrokerSituation | ControllerSituation", ...]:
        return (*self.brokers, *self.controllers)

    @property
    def is_copy_gone(self) -> bool:
        """KRaft has `/controller`, and its quorum never had a copy: what an earlier one has not written there is lost."""
        return self.quorum is QuorumState.NONE and self.claim is Claim.KRAFT

    @property
    def is_nothing_known(self) -> bool:
        """No broker's process or file could be read: then not even the phase can be told."""
        return all(b.mode is BrokerMode.UNKNOWN and b.stage is None for b in self.brokers)
