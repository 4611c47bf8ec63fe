"""What the way back cannot keep, by name, so that a person can accept it before it is taken."""

from collections.abc import Sequence

from domain.cluster import ClusterSpec
from domain.drift.report import DriftReport, Verdict
from domain.drift.verdicts import told
from domain.health.files import Restoration, restoration_of
from domain.observed.observation import NodeDisk, Observation, Suspect
from domain.questions import Loss
from domain.zk_to_kraft.comparison import newest_conclusive
from domain.zk_to_kraft.modes import ControllerMode
from domain.zk_to_kraft.situation import BrokerSituation, Claim, ControllerSituation, DualWrite, QuorumState, Situation
from domain.zk_to_kraft.steps import NodeStage

METADATA_CHANGES = "metadata-changes"
DRIFT = "drift"
NEVER_WRITTEN = "never-written"
TOPIC_IDS = "topic-ids"

OF_THE_CLUSTER = (DRIFT, NEVER_WRITTEN, METADATA_CHANGES, TOPIC_IDS)
OF_A_NODE = ("edits-of", "original-of", "storage-of")


def names_in(spec: ClusterSpec) -> frozenset[str]:
    """Of all losses that a way back of this cluster could ever have."""
    of_nodes = (f"{kind}-{spec.node_name(node.id)}" for kind in OF_A_NODE for node in spec.nodes)
    return frozenset({*OF_THE_CLUSTER, *of_nodes})


def losses_of(
    observation: Observation,
    situation: Situation,
    spec: ClusterSpec,
    reports: Sequence[DriftReport] = (),
    strays: Sequence[Suspect] = (),
    refused: str = "",
) -> tuple[Loss, ...]:
    """All losses that are seen now; empty: the way back restores everything. `reports`: the newest comparisons. `strays`: what
    the quorum's log has and ZooKeeper cannot hold. `refused`: what the active controller has said of a change that it could not
    write; empty for nothing."""
    drift = drift_of(observation, reports)
    losses = [Loss(name=DRIFT, what=f"{_DRIFT} {told(drift)[:MAX_TOLD]}")] if drift is not None else []
    lost = never_written(strays)
    losses += [Loss(name=NEVER_WRITTEN, what=f"{_NEVER_WRITTEN} {_first(lost)}")] if lost else []
    if _may_lose_metadata(situation) or refused:
        losses.append(Loss(name=METADATA_CHANGES, what=f"{_METADATA} {refused[:MAX_TOLD]}".strip()))
    if lacking := topics_losing_ids(observation, situation):
        losses.append(Loss(name=TOPIC_IDS, what=f"ZooKeeper has no topic_id of {_first(lacking)}. {_TOPIC_IDS}"))
    for broker in situation.brokers:
        losses += _of_broker(broker, observation.node(broker.id).disk, spec.node_name(broker.id))
    for controller in situation.controllers:
        losses += _of_controller(controller, observation.node(controller.id).disk, spec.node_name(controller.id))
    return tuple(losses)


def topics_losing_ids(observation: Observation, situation: Situation) -> tuple[str, ...]:
    """Topics whose id the next ZooKeeper controller makes up. None if a broker is controller, and none restarts."""
    is_elected = situation.claim is not Claim.ZOOKEEPER or any(b.stage is not NodeStage.ZOOKEEPER for b in situation.brokers)
    return observation.zookeeper.topics_without_id if observation.zookeeper is not None and is_elected else ()


def never_written(strays: Sequence[Suspect]) -> tuple[str, ...]:
    return tuple(sorted(stray.what for stray in strays if stray.is_lost_change))


def _first(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f", and {more} more" if more > 0 else "")


def drift_of(observation: Observation, reports: Sequence[DriftReport]) -> DriftReport | None:
    """The drift of the dual write that is seen now. A later comparison that came to nothing does not take it away."""
    ours = newest_conclusive(reports, observation.zookeeper)
    return ours if ours is not None and ours.verdict is Verdict.DRIFT else None


def losing_nodes(losses: tuple[Loss, ...], accepted: tuple[str, ...], spec: ClusterSpec) -> frozenset[int]:
    """Nodes that would lose something which nobody has accepted."""
    open_names = {loss.name for loss in losses} - set(accepted)
    return frozenset(node.id for node in spec.nodes if any(n.endswith(f"-of-{spec.node_name(node.id)}") for n in open_names))


MAX_TOLD = 800
MOST_NAMED = 10

_DRIFT = "ZooKeeper and KRaft were compared, and differ: a rollback keeps ZooKeeper's version, and what it lacks is lost."

_NEVER_WRITTEN = "ZooKeeper cannot hold these, denials of access among them, so a rollback loses them."

_TOPIC_IDS = (
    "A rollback elects a ZooKeeper controller, which makes up another id. Brokers refuse it, and for this topic obey no "
    "controller until the old id is put back. Put it back first: blockers (topic-without-id) has the command."
)

_METADATA = (
    "Dual write is not current, or was not for a while. Changes from that time may be missing in ZooKeeper: configurations, "
    "ACLs, and whole topics that were created then, with their messages."
)


def _may_lose_metadata(s: Situation) -> bool:
    return (s.quorum is QuorumState.MIGRATION and s.dual_write is not DualWrite.CURRENT) or s.is_copy_gone


def _of_broker(broker: BrokerSituation, disk: NodeDisk | None, name: str) -> list[Loss]:
    is_untouched = broker.stage is NodeStage.ZOOKEEPER
    restoration = restoration_of(disk)
    if is_untouched or restoration in {Restoration.ARCHIVE, Restoration.UNKNOWN}:
        return []
    if restoration is Restoration.EDITED:
        what = (
            f"The properties file of {name} was edited since this migration wrote it. The archived original does not have "
            "that edit."
        )
        return [Loss(name=f"edits-of-{name}", what=what)]
    what = (
        f"There is no archived original of the properties file of {name}. A rollback removes what a migration adds, key by key."
    )
    return [Loss(name=f"original-of-{name}", what=what)]


def _of_controller(controller: ControllerSituation, disk: NodeDisk | None, name: str) -> list[Loss]:
    """One without a file is being wiped: the file goes only where the loss was accepted, or the controller was ours."""
    if controller.mode in {ControllerMode.ABSENT, ControllerMode.UNKNOWN} or disk is None or disk.file is None:
        return []
    is_made_by_us = disk.file.mark is not None
    what = f"{name} was not made by Keeperless. A rollback archives its properties file and still removes its storage."
    return [] if is_made_by_us else [Loss(name=f"storage-of-{name}", what=what)]
