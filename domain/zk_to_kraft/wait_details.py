"""What a wait is about: the objects by name, and what only the observation, or a report, knows of them."""

from domain.cluster import ClusterSpec
from domain.decisions import Revert, Wait
from domain.drift.report import DriftReport
from domain.drift.verdicts import objects_of, told
from domain.health.replication import partitions_needing
from domain.observed.observation import Observation
from domain.policy import MigrationPolicy
from domain.questions import Loss
from domain.rolling.configuration_management import how_to_pause
from domain.rulings import Ruling
from domain.waits import WaitReason
from domain.zk_to_kraft.comparison import CopyReports, claim_of, newest_of
from domain.zk_to_kraft.conditions import Check, Compared, Terms
from domain.zk_to_kraft.modes import BrokerMode
from domain.zk_to_kraft.pending_restart import edits_in_flight
from domain.zk_to_kraft.probed import probed
from domain.zk_to_kraft.reduction import missing_in_zookeeper, situation_of
from domain.zk_to_kraft.situation import Situation
from domain.zk_to_kraft.waits import ZkWait

MAX_OBJECTS = 20
"""How many objects a wait names; the observation has them all."""


REPORTED = frozenset({ZkWait.DRIFT_FOUND, WaitReason.CHECK_INCONCLUSIVE, WaitReason.CHECKS_WORKER_MISSING})
"""Waits about a check: its newest report says more. Where its worker is missing too: a drift stays found."""


def report_behind(
    reason: str, observation: Observation, situation: Situation, terms: Terms, ruling: Ruling
) -> DriftReport | None:
    """In the order in which they are taken: clients' data before the first restart, ZooKeeper's metadata before the copy, the
    copy before the first broker in KRaft mode, the metadata, and where that is the same, clients' data again.
    """
    if reason in {WaitReason.MESSAGES_DIFFER, ZkWait.COPY_DIFFERS}:
        return ruling.messages if reason == WaitReason.MESSAGES_DIFFER else CopyReports.of(ruling.of_copy).newest
    if reason not in REPORTED:
        return None
    if not claim_of(observation.zookeeper):
        is_begun = any(b.mode is BrokerMode.HYBRID for b in situation.brokers)
        return ruling.of_copy.kept if is_begun or terms.baseline == Check() else ruling.baseline
    if any(b.mode is not BrokerMode.KRAFT for b in situation.brokers):
        return CopyReports.of(ruling.of_copy).newest
    is_same = terms.compared is Compared.CLEAN and not terms.is_check_due and not terms.is_checker_missing
    return ruling.messages if is_same else newest_of(ruling.reports, observation.zookeeper)


def with_report(wait: Wait | Revert, report: DriftReport) -> Wait | Revert:
    return wait.model_copy(update={"objects": objects_of(report)[:MAX_OBJECTS], "detail": told(report)[:1000]})


def with_alarm(wait: Wait | Revert) -> Wait | Revert:
    """What is waited for may last for weeks, and hides that there is no way back without a loss."""
    return wait.model_copy(update={"detail": f"{DUAL_WRITE_DIED}{wait.detail}"[:1000]})


DUAL_WRITE_DIED = "ALARM: dual write has died. Changes no longer reach ZooKeeper, and a rollback would lose them. "


def with_losses(wait: Wait | Revert, losses: tuple[Loss, ...]) -> Wait | Revert:
    """On the way back such a wait ends when the loss is mended, or accepted by its name."""
    detail = "; ".join(f"{loss.name}: {loss.what}" for loss in losses)
    return wait.model_copy(update={"detail": detail[:1000]})


def explained(wait: Wait | Revert, observation: Observation, spec: ClusterSpec, policy: MigrationPolicy) -> Wait | Revert:
    """Name what fails to hold: nodes by name, and what only the observation knows."""
    if wait.reason == WaitReason.PREFLIGHT_BLOCKERS:
        return wait.model_copy(update={"detail": wait.detail[:1000]})
    names = tuple(spec.node_name(int(node_id)) for node_id in wait.objects)
    detail = ""
    kafka = observation.kafka
    if wait.reason == WaitReason.PART_UNKNOWN:
        detail = "; ".join(f"{part.what}: {part.why}" for part in observation.unanswered)
        names = tuple(part.what for part in observation.unanswered) or names
    elif wait.reason == WaitReason.PARTITIONS_NOT_IN_SYNC and kafka is not None:
        names = (*kafka.offline, *(fault.partition for fault in kafka.under_replicated))
        unregistered = missing_in_zookeeper(observation.zookeeper, situation_of(observation, spec, policy).brokers)
        names += tuple(spec.node_name(b.id) for b in spec.brokers if b.id not in kafka.broker_ids or b.id in unregistered)
    elif wait.reason == WaitReason.PARTITIONS_WOULD_STOP and wait.objects:
        detail = ", ".join(partitions_needing(kafka, int(wait.objects[0]), policy)[:MAX_OBJECTS])
    elif wait.reason == WaitReason.FILE_CHANGED:
        edits = edits_in_flight(situation_of(observation, spec, policy), observation, spec)
        detail = "; ".join(edit.observed for edit in edits)
    elif wait.reason == WaitReason.CONFIGURATION_RUNS:
        detail = how_to_pause(observation, spec, [int(node_id) for node_id in wait.objects])
    elif wait.reason == WaitReason.NODE_DOWN:
        detail = "\n".join(line for node_id in wait.objects for line in observation.node(int(node_id)).last_output)[-1000:]
    elif wait.reason in OF_ZNODES:
        names = _znodes(wait.reason, observation)
    elif wait.reason in SUSPECTED:
        suspects = getattr(probed(observation), SUSPECTED[wait.reason]) or ()
        names = tuple(suspect.what for suspect in suspects) or names
        detail = "; ".join(f"{suspect.what}: {suspect.why}" for suspect in suspects)
    return wait.model_copy(update={"objects": names[:MAX_OBJECTS], "detail": detail[:1000]})


def _znodes(reason: str, observation: Observation) -> tuple[str, ...]:
    if reason != ZkWait.TOPIC_WITHOUT_ID:
        return ("/migration",)
    return tuple(f"topic {name}" for name in (observation.zookeeper.topics_without_id if observation.zookeeper else ()))


OF_ZNODES = frozenset({ZkWait.DUAL_WRITE_NOT_CURRENT, ZkWait.COPY_LEFT_OVER, ZkWait.TOPIC_WITHOUT_ID})
SUSPECTED: dict[str, str] = {ZkWait.FAILOVER_WOULD_HURT: "failover_hazards", ZkWait.COPY_CANNOT_FINISH: "poisoned_znodes"}
"""Where an observation names what stands behind a wait."""
