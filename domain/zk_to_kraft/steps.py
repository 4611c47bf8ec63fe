"""What a migration from ZooKeeper to KRaft does: its steps, the stages of a node's file, and the gates."""

from enum import StrEnum

from domain import decisions

KIND = "zk-to-kraft"
"""The name of this kind of migration."""


class StepAction(StrEnum):
    """What a step does, to one node or, where it has none, to the cluster."""

    PROVISION_CONTROLLER = "provision-controller"
    """Write its properties, format its storage, start it."""
    ROLL_NODE = decisions.ROLL_NODE
    """Archive, write its properties for the wanted stage, restart, prove."""
    START_NODE = decisions.START_NODE
    """Start a controller that does not run, lifting its fence if there is one. Nothing is written to its file."""
    TRY_CANARIES = decisions.TRY_CANARIES
    """Do at a broker what clients do, under reserved names, see it in both stores, remove it. Touches nothing else."""
    REMOVE_CANARIES = decisions.REMOVE_CANARIES
    """At the end of either way: remove what such a step has left. What cannot be removed is told, and not waited for."""
    FAIL_OVER = "fail-over"
    """Restart the active controller as it is: another takes over, and writes what ZooKeeper lacks."""
    LEAVE_KRAFT = "leave-kraft"
    """The revert window, of no single node: fence and kill the controllers, give `/controller` back to ZooKeeper."""
    WIPE = "wipe"
    """Of no single node: remove what our controllers kept, and the brokers' copies of the quorum's log."""
    RELEASE_CONFIGURATION = decisions.RELEASE_CONFIGURATION
    """Of no single node: resume the configuration management that a migration has paused. The last step of both ways."""
    COMPARE_METADATA = "compare-metadata"
    """Of no single node, and without any effect: compare all that ZooKeeper and KRaft say, and publish the report."""
    CAPTURE_BASELINE = "capture-baseline"
    """Of no single node, and without any effect: keep what clients' data is before the first broker is rolled."""
    KEEP_METADATA = "keep-metadata"
    """Of no single node, and without any effect: keep what ZooKeeper has before the last broker is rolled."""
    COMPARE_COPY = "compare-copy"
    """Of no single node, and without any effect: compare Kafka's copy with that, and publish the report."""
    COMPARE_MESSAGES = "compare-messages"
    """Of no single node, and without any effect: compare clients' data with that, and publish the report."""
    COMPARE_END = decisions.COMPARE_END
    """Compare what KRaft has after the end with what ZooKeeper had at the gate, once. Cluster-wide, read-only."""


class ZkActivity(StrEnum):
    """The activities that carry out steps of this kind alone."""

    PROVISION_CONTROLLER = "provision_controller"
    START_NODE = "start_node"
    FAIL_OVER = "fail_over"
    LEAVE_KRAFT = "leave_kraft"
    WIPE = "wipe_kraft"


class NodeStage(StrEnum):
    """What one node's properties file contains. Where the cluster is, is another question: see `Phase`."""

    ZOOKEEPER = "zookeeper"
    """As it was before the migration."""
    MIGRATION = "migration"
    """A hybrid broker, or a controller with the migration flag."""
    KRAFT = "kraft"
    """No ZooKeeper any more."""


class GateName(StrEnum):
    """Where a person decides."""

    FINALIZE = "finalize"
    """Beyond it there is no way back to ZooKeeper."""
    FINALIZE_WITHOUT_RETURN = "finalize-without-return"
    """Break-glass: ZooKeeper is lost for good, so there is no way back to it any more."""
    FAIL_OVER = "fail-over"
    """Dual write has died: another controller takes over and writes what is missing."""


FINAL_GATES = frozenset({GateName.FINALIZE, GateName.FINALIZE_WITHOUT_RETURN})
"""Their section is the end of the migration: all controllers, step by step."""

LAST_RESORT = (
    "Use it only if ZooKeeper cannot be restored (its own entries say more): it gives up the rollback for good. If its "
    "servers can be fixed, fix them; the gate finalize then opens again. "
)
"""What is said at the gate `finalize-without-return`."""
