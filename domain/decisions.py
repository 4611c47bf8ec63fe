"""What a kind of migration can decide to do next: `Step | Wait | Gate | Refuse | Done`. The same five for every kind."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class DecisionModel(BaseModel):
    """Frozen and comparable: a decision is compared with the last one to see whether anything changed."""

    model_config = ConfigDict(frozen=True)


class StepAction(StrEnum):
    """What a step does to one node."""

    PROVISION_CONTROLLER = "provision-controller"
    """Write its properties, format its storage, start it."""
    ROLL_NODE = "roll-node"
    """Archive, write its properties for the wanted stage, restart, prove."""


class GateName(StrEnum):
    """Where a person decides."""

    FINALIZE = "finalize"
    """Beyond it there is no way back to ZooKeeper."""


class WaitReason(StrEnum):
    """Why nothing happens. The same word in log, API, page and Temporal's UI; `WAIT_MEANS` says what to do."""

    HELD = "held"
    PART_UNKNOWN = "part-unknown"
    NODE_DOWN = "node-down"
    NODE_NOT_READY = "node-not-ready"
    FILE_CHANGED = "file-changed"
    CONTROLLERS_NOT_READY = "controllers-not-ready"
    BROKERS_NOT_REGISTERED = "brokers-not-registered"
    PARTITIONS_NOT_IN_SYNC = "partitions-not-in-sync"
    PARTITIONS_WOULD_STOP = "partitions-would-stop"
    QUORUM_TOO_THIN = "quorum-too-thin"
    COPY_LEFT_OVER = "copy-left-over"
    COPY_NOT_COMPLETE = "copy-not-complete"
    DUAL_WRITE_NOT_CURRENT = "dual-write-not-current"
    CONTROLLER_LOST_ITS_FLAG = "controller-lost-its-flag"
    FINALIZATION_NOT_SEEN = "finalization-not-seen"
    SOAK_NOT_OVER = "soak-not-over"
    STATE_NOT_UNDERSTOOD = "state-not-understood"


WAIT_MEANS: dict[WaitReason, str] = {
    WaitReason.HELD: "Held by a person. Resume it when ready.",
    WaitReason.PART_UNKNOWN: "Something did not answer, and unknown is never healthy. Make it reachable; it goes on by itself.",
    WaitReason.NODE_DOWN: "A node is not running. Nothing else is touched. Look at its log and start it.",
    WaitReason.NODE_NOT_READY: "A node runs and does not serve yet.",
    WaitReason.FILE_CHANGED: "Somebody changed a file that this migration wrote. It is not overwritten. "
    "Put it back, or start again from the new file.",
    WaitReason.CONTROLLERS_NOT_READY: "The controller quorum is not ready for the migration yet.",
    WaitReason.BROKERS_NOT_REGISTERED: "A hybrid broker has not registered with the controller quorum. "
    "A wrong inter.broker.protocol.version is the usual cause: the broker's log names it.",
    WaitReason.PARTITIONS_NOT_IN_SYNC: "Replicas are catching up. No node restarts before all are in sync.",
    WaitReason.PARTITIONS_WOULD_STOP: "A restart would take partitions below min.insync.replicas. "
    "Raise their replication factor, or lower min.insync.replicas.",
    WaitReason.QUORUM_TOO_THIN: "Without this controller no majority would be caught up.",
    WaitReason.COPY_LEFT_OVER: "/migration tells of a copy that this quorum has not made, or cannot be read: with the last "
    "broker's registration metadata would be deleted from ZooKeeper. Stop the controllers, delete it, start them again.",
    WaitReason.COPY_NOT_COMPLETE: "All brokers are hybrid; Kafka copies the metadata from ZooKeeper by itself. "
    "The active controller's log says what it waits for.",
    WaitReason.DUAL_WRITE_NOT_CURRENT: "The controller does not keep ZooKeeper up to date: the way back would lose changes. "
    "If this lasts longer than a minute, restart the active controller: another takes over and writes what is missing.",
    WaitReason.CONTROLLER_LOST_ITS_FLAG: "ALARM: a controller runs without zookeeper.metadata.migration.enable before "
    "finalize was approved. If it becomes active, the migration is final. Give it the flag back and restart it now.",
    WaitReason.FINALIZATION_NOT_SEEN: "The controllers run without the flag; the quorum does not report it yet.",
    WaitReason.SOAK_NOT_OVER: "All brokers run in KRaft mode, in dual write. The policy asks for a longer soak.",
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
    """Do this to that node. `gate`: the approval that the step needs, because it cannot be undone."""

    decision: Literal["step"] = "step"
    action: StepAction
    node_id: int
    stage: NodeStage
    gate: GateName | None = None


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


class Finding(DecisionModel):
    """A check's result: PF code, what it is about, what was seen, what was expected, and what to do."""

    code: str
    object: str
    observed: str
    expected: str
    fix: str


class Refuse(DecisionModel):
    """The migration does not start. Nothing has been touched."""

    decision: Literal["refuse"] = "refuse"
    findings: tuple[Finding, ...]


class Done(DecisionModel):
    """The end that was wanted has been observed."""

    decision: Literal["done"] = "done"
    outcome: str


Decision = Annotated[Step | Wait | Gate | Refuse | Done, Field(discriminator="decision")]
