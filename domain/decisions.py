"""What a kind of migration can decide to do next: `Step | Wait | Gate | Revert | Refuse | Done`. The same for every kind."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, computed_field

from domain.pages import docs_of


class DecisionModel(BaseModel):
    """Frozen and comparable: a decision is compared with the last one to see whether anything changed."""

    model_config = ConfigDict(frozen=True)


class Intent(StrEnum):
    """Where a migration is going. It turns once, and never back: whoever wants forward again starts another migration."""

    FORWARD = "forward"
    REVERT = "revert"


class StepAction(StrEnum):
    """What a step does, to one node or, where it has none, to the cluster."""

    PROVISION_CONTROLLER = "provision-controller"
    """Write its properties, format its storage, start it."""
    ROLL_NODE = "roll-node"
    """Archive, write its properties for the wanted stage, restart, prove."""
    START_NODE = "start-node"
    """Start a controller that does not run, lifting its fence if there is one. Nothing is written to its file."""
    TRY_CANARIES = "try-canaries"
    """Do at a broker what clients do, under reserved names, see it in both stores, remove it. Touches nothing else."""
    REMOVE_CANARIES = "remove-canaries"
    """At the end of either way: remove what such a step has left. What cannot be removed is told, and not waited for."""
    FAIL_OVER = "fail-over"
    """Restart the active controller as it is: another takes over, and writes what ZooKeeper lacks."""
    LEAVE_KRAFT = "leave-kraft"
    """The revert window, of no single node: fence and kill the controllers, give `/controller` back to ZooKeeper."""
    WIPE = "wipe"
    """Of no single node: remove what our controllers kept, and the brokers' copies of the quorum's log."""
    RELEASE_CONFIGURATION = "release-configuration"
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
    COMPARE_END = "compare-end"
    """Compare what KRaft has after the end with what ZooKeeper had at the gate, once. Cluster-wide, read-only."""


class GateName(StrEnum):
    """Where a person decides."""

    FINALIZE = "finalize"
    """Beyond it there is no way back to ZooKeeper."""
    FINALIZE_WITHOUT_RETURN = "finalize-without-return"
    """Break-glass: ZooKeeper is lost for good, so there is no way back to it any more."""
    FAIL_OVER = "fail-over"
    """Dual write has died: another controller takes over and writes what is missing."""


class WaitReason(StrEnum):
    """Why nothing happens. The same word in log, API, page and Temporal's UI; `WAIT_MEANS` says what to do."""

    HELD = "held"
    PART_UNKNOWN = "part-unknown"
    NODE_DOWN = "node-down"
    NODE_NOT_READY = "node-not-ready"
    FILE_CHANGED = "file-changed"
    CONFIGURATION_RUNS = "configuration-runs"
    CONTROLLERS_NOT_READY = "controllers-not-ready"
    BROKERS_NOT_REGISTERED = "brokers-not-registered"
    PARTITIONS_NOT_IN_SYNC = "partitions-not-in-sync"
    PARTITIONS_WOULD_STOP = "partitions-would-stop"
    QUORUM_TOO_THIN = "quorum-too-thin"
    QUORUM_CANNOT_MIGRATE = "quorum-cannot-migrate"
    TOPIC_WITHOUT_ID = "topic-without-id"
    COPY_LEFT_OVER = "copy-left-over"
    COPY_NOT_COMPLETE = "copy-not-complete"
    DUAL_WRITE_NOT_CURRENT = "dual-write-not-current"
    FAILOVER_WOULD_HURT = "failover-would-hurt"
    COPY_CANNOT_FINISH = "copy-cannot-finish"
    HALF_REVERTED = "half-reverted"
    NO_CONTROLLER = "no-controller"
    PREFLIGHT_BLOCKERS = "preflight-blockers"
    CONTROLLER_LOST_ITS_FLAG = "controller-lost-its-flag"
    FINALIZATION_NOT_SEEN = "finalization-not-seen"
    ROLLBACK_NOT_VERIFIED = "rollback-not-verified"
    SOAK_NOT_OVER = "soak-not-over"
    DRIFT_FOUND = "drift-found"
    COPY_DIFFERS = "copy-differs"
    MESSAGES_DIFFER = "messages-differ"
    CHECK_INCONCLUSIVE = "check-inconclusive"
    CHECKS_WORKER_MISSING = "checks-worker-missing"
    STATE_NOT_UNDERSTOOD = "state-not-understood"


KEEPERLESS = "keeperless"
"""The name of the holder in events and in `Hold.by`, if the product itself holds."""


def means_of_hold(by: str) -> str:
    """What a hold means, by who holds."""
    if by == KEEPERLESS:
        return (
            "Keeperless holds the migration itself, for the reason in the detail. Fix what that names. Then resume the "
            "migration, or ask for a rollback."
        )
    return f"{by} holds the migration. Resume it when ready." if by else WAIT_MEANS[WaitReason.HELD]


WAIT_MEANS: dict[WaitReason, str] = {
    WaitReason.HELD: "The migration is held, by a person or by Keeperless itself: the detail says by whom and why. Fix what it "
    "names, if anything. Then resume the migration, or ask for a rollback.",
    WaitReason.PART_UNKNOWN: "Something did not answer, and unknown is never healthy. Make it reachable; it goes on by itself.",
    WaitReason.NODE_DOWN: "A node is not running. Nothing else is touched. Look in `blockers` and in its log for why, repair "
    "that, and start the node from its present file.",
    WaitReason.NODE_NOT_READY: "A node runs and does not serve yet.",
    WaitReason.FILE_CHANGED: "The file of a node is not what this migration left there, or not what its process runs with. It "
    "is not overwritten, and the node is not restarted from it. `blockers` shows what differs and how to put it back.",
    WaitReason.CONFIGURATION_RUNS: "Configuration management that was paused for this migration runs again, or does not say "
    "whether it does: it may write files back. Pause it there, and it goes on by itself; or ask for a rollback.",
    WaitReason.CONTROLLERS_NOT_READY: "The controller quorum is not ready for the migration yet.",
    WaitReason.BROKERS_NOT_REGISTERED: "A broker has not registered with the controller quorum, or a broker "
    "has that is not in the specification. If one is missing, look in its log: the usual cause is a wrong "
    "inter.broker.protocol.version. If one is too many and not needed: reassign its replicas, stop it, unregister it.",
    WaitReason.PARTITIONS_NOT_IN_SYNC: "Replicas are catching up. No node restarts before all are in sync.",
    WaitReason.PARTITIONS_WOULD_STOP: "A restart would take partitions below min.insync.replicas. "
    "Raise their replication factor, or lower min.insync.replicas where it is set: kafka-configs.sh --describe --all "
    "--entity-type topics --entity-name NAME tells whether that is the topic, all brokers, or a file.",
    WaitReason.QUORUM_TOO_THIN: "Without this controller no majority would be caught up.",
    WaitReason.QUORUM_CANNOT_MIGRATE: "The quorum's log says NONE: its first active controller ran without the migration flag, "
    "and no migration can ever start from this log. If KRaft has /controller or a broker runs in KRaft mode, the "
    "controllers' storage was emptied in the middle of a migration: stop the controllers and put their old metadata.log.dir "
    "back. Otherwise ask for a rollback, which wipes the controllers; then start another migration.",
    WaitReason.TOPIC_WITHOUT_ID: "A topic has no topic_id in ZooKeeper. The next ZooKeeper controller makes up another id, and "
    "brokers refuse the topic. Elect no controller and restart no broker: `blockers` says which id to put back, and how.",
    WaitReason.COPY_LEFT_OVER: "/migration describes a copy that this quorum has not made, or cannot be read. If /controller "
    "is KRaft's or the controllers' log says MIGRATION, it is this quorum's own: delete nothing. Otherwise stop the "
    "controllers, delete /migration, and start the controllers again. If it stays, metadata is deleted from ZooKeeper when the "
    "last broker registers.",
    WaitReason.COPY_NOT_COMPLETE: "All brokers are hybrid; Kafka copies the metadata from ZooKeeper by itself. "
    "The active controller's log says what it waits for.",
    WaitReason.DUAL_WRITE_NOT_CURRENT: "The controller does not keep ZooKeeper up to date: the way back would lose changes. "
    "It may be catching up after a burst of changes: look again in a moment.",
    WaitReason.FAILOVER_WOULD_HURT: "Dual write has died, and a failover, which would cure it, would make it worse now. "
    "Mend what is named first.",
    WaitReason.COPY_CANNOT_FINISH: "ALARM: the copy kills one controller after another, and the cluster has no controller. "
    "The policy says not to go back by itself: ask for a rollback now.",
    WaitReason.HALF_REVERTED: "A way back was begun here and not ended: its controllers are fenced. "
    "Ask for a rollback; forward again starts from plain ZooKeeper.",
    WaitReason.NO_CONTROLLER: "ALARM: no broker has become controller since the KRaft controllers gave way. "
    "`blockers` names the znode if one cannot be read: repair that first. Otherwise restart one hybrid broker by hand if this "
    "lasts, from the file that it has.",
    WaitReason.PREFLIGHT_BLOCKERS: "Somebody else has begun this migration, or has had a hand in it since, and what the "
    "preflight asks does not hold. No broker is touched before that is mended.",
    WaitReason.CONTROLLER_LOST_ITS_FLAG: "ALARM: a controller runs without zookeeper.metadata.migration.enable before "
    "finalize was approved. If it becomes active, the migration is final. Give it the flag back and restart it now.",
    WaitReason.FINALIZATION_NOT_SEEN: "The controllers run without the flag; the quorum does not report it yet.",
    WaitReason.ROLLBACK_NOT_VERIFIED: "Somebody has asked for a rollback, and it is not verified yet. No step that cannot be "
    "undone is taken before that. Verifying needs the ledger, ZooKeeper and every node: `blockers` says which does not answer.",
    WaitReason.SOAK_NOT_OVER: "All brokers run in KRaft mode, in dual write. The policy asks for a longer soak.",
    WaitReason.DRIFT_FOUND: "ZooKeeper and KRaft differ: the report names each object. Finalize cannot be approved, and an "
    "approval given before does not count. Repair what differs; it is compared again every recheck_interval.",
    WaitReason.COPY_DIFFERS: "Kafka's copy is not what ZooKeeper had right before it: the report names each object. Either the "
    "copy has lost it, or somebody has changed it in the minute between the two looks, and since, as a tool does that sets it "
    "again and again. Look what it is now, and ask who uses it. No broker goes on into KRaft mode meanwhile. What was changed "
    "or deleted on purpose, tolerate by name in the policy of a migration that takes over; for what is lost ask for a "
    "rollback, and repair ZooKeeper.",
    WaitReason.MESSAGES_DIFFER: "Clients' data is not what it was before the first restart, and no retention or compaction "
    "explains it: the report names each place. Finalize cannot be approved. It is compared again every recheck_interval; where "
    "it is meant, tolerate it by name in the policy of a migration that takes over.",
    WaitReason.CHECK_INCONCLUSIVE: "Whether both sides say the same could not be told, and unknown is never healthy. "
    "The report says what was not read; it is looked at again every recheck_interval. What answers keeperless-activities, and "
    "not keeperless-checks, lies with that one: its machine, its network, its environment (proxies), its rights.",
    WaitReason.CHECKS_WORKER_MISSING: "Nobody looks at what has to be compared: no worker takes what is asked on the task "
    "queue checks. Start keeperless-checks; it goes on once that has looked.",
    WaitReason.STATE_NOT_UNDERSTOOD: "What is seen fits no state of this migration. Nothing is touched.",
}


class NodeStage(StrEnum):
    """What one node's properties file contains. Where the cluster is, is another question: see `Phase`."""

    ZOOKEEPER = "zookeeper"
    """As it was before the migration."""
    MIGRATION = "migration"
    """A hybrid broker, or a controller with the migration flag."""
    KRAFT = "kraft"
    """No ZooKeeper any more."""


class Step(DecisionModel):
    """Do this to that node, or to the cluster. `gate`: the approval that the step needs, because it cannot be undone.

    `companions`: brokers to which the same is done at the same time.
    """

    decision: Literal["step"] = "step"
    action: StepAction
    node_id: int | None = None
    stage: NodeStage
    gate: GateName | None = None
    companions: tuple[int, ...] = ()

    @property
    def node(self) -> int:
        """The node that the step is about. Asking a step of the whole cluster is a mistake of the caller's."""
        if self.node_id is None:
            raise ValueError(f"step {self.action} is about no single node")
        return self.node_id

    @property
    def nodes(self) -> tuple[int, ...]:
        """The node with all that go along; none where the step is of the whole cluster."""
        return () if self.node_id is None else (self.node_id, *self.companions)


class Wait(DecisionModel):
    """Do nothing, for a reason. `objects` are what fails to hold, e.g. `broker-2`, `orders-3`; at most twenty are named."""

    decision: Literal["wait"] = "wait"
    reason: WaitReason
    objects: tuple[str, ...] = ()
    detail: str = ""


class Gate(DecisionModel):
    """Wait for a person to approve, on the evidence with this hash."""

    decision: Literal["gate"] = "gate"
    name: GateName
    evidence_hash: str


class Revert(DecisionModel):
    """Go back now, without being asked: waiting would hurt the cluster. `objects` and `detail` as in `Wait`."""

    decision: Literal["revert"] = "revert"
    reason: WaitReason
    objects: tuple[str, ...] = ()
    detail: str = ""


class Severity(StrEnum):
    """What a finding means for whoever wants to start."""

    BLOCKER = "blocker"
    """Nothing starts before it is mended, or accepted by name in the policy."""
    WARNING = "warning"
    """It starts, and somebody should have read this."""
    INFO = "info"
    """Worth knowing."""


class Acceptance(DecisionModel):
    """Who accepted a blocker, and why."""

    by: str
    reason: str


class Finding(DecisionModel):
    """A check's result: PF code, what it is about, what was seen, what was expected, and what to do.

    `is_unverifiable`: it could not be checked with the access that we have, which is never a pass; `observed` says what is
    missing. `accepted`: it is a blocker that the policy accepts, and stops nothing. `is_momentary`: it comes and goes by
    itself, with time or load; a plan's hash leaves it out.
    """

    code: str
    severity: Severity = Severity.BLOCKER
    is_unverifiable: bool = False
    is_momentary: bool = False
    object: str
    observed: str
    expected: str
    fix: str
    accepted: Acceptance | None = None

    @computed_field(description="Page and anchor that explain the code.")  # type: ignore[prop-decorator]
    @property
    def docs(self) -> str:
        return docs_of(self.code)


class Refuse(DecisionModel):
    """The migration does not start. Nothing has been touched."""

    decision: Literal["refuse"] = "refuse"
    findings: tuple[Finding, ...]


class Done(DecisionModel):
    """The end that was wanted has been observed."""

    decision: Literal["done"] = "done"
    outcome: str


Decision = Annotated[Step | Wait | Gate | Revert | Refuse | Done, Field(discriminator="decision")]
