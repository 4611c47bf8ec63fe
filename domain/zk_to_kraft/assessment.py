"""From an observation to an `Assessment`: phase, decision, evidence, and the words in which people are told."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from domain.blocker import Blocker
from domain.cluster import ClusterSpec, Role
from domain.contracts import CHECK_OF, Assessment, ClusterSight, Gauges, Loss, Silence, Standstill
from domain.decisions import (
    Decision,
    Finding,
    Gate,
    GateName,
    Intent,
    NodeStage,
    Refuse,
    Revert,
    Step,
    StepAction,
    Wait,
    WaitReason,
)
from domain.drift.report import DriftReport
from domain.observation import MigrationGauge, Observation
from domain.plans import moved_since
from domain.policy import MigrationPolicy
from domain.records import NodeStatus, OpenGate
from domain.zk_to_kraft.comparison import (
    CopyReports,
    claim_of,
    compared,
    compared_copy,
    compared_messages,
    evidence_of_report,
    is_copy_due,
    is_due,
    is_look_due,
    is_usable,
    newest_of,
    objects_of,
    told,
)
from domain.zk_to_kraft.configuration import how_to_pause, state_of
from domain.zk_to_kraft.decide import decide
from domain.zk_to_kraft.drift_watch import drifts
from domain.zk_to_kraft.guards import STAGE_OF_MODE, release
from domain.zk_to_kraft.losses import METADATA_CHANGES, losing_nodes, losses_of
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.node_config import MIGRATION_FLAG
from domain.zk_to_kraft.phases import Phase, phase_of
from domain.zk_to_kraft.plan_basis import basis_of
from domain.zk_to_kraft.preflight import blockers_in, preflight
from domain.zk_to_kraft.roll_waves import in_waves
from domain.zk_to_kraft.silence import zookeeper_silence
from domain.zk_to_kraft.situation import (
    DualWrite,
    QuorumState,
    Situation,
    offset_distance,
    partitions_needing,
    quorum_leader,
    situation_of,
    soaked_for,
)
from domain.zk_to_kraft.standstill import overdue, standstill
from domain.zk_to_kraft.terms import Approval, Check, Compared, Terms

MAX_OBJECTS = 20
"""How many objects a wait names; the observation has them all."""


@dataclass(frozen=True)
class GivenApproval:
    """An approval in the ledger: the evidence that it binds to, and whether an irreversible effect has used it."""

    evidence_hash: str | None
    is_consumed: bool = False


@dataclass(frozen=True)
class Ruling:
    """What people have ruled, as the ledger has it: approvals by gate, a hold, and a way back that was accepted.

    `accepted_losses` is `None` where nobody has asked for the way back. `reports`: the newest comparisons of ZooKeeper with
    KRaft, whoever asked for them, and `drifts`: how many of this cluster ever found one. `baseline`, `messages`: this
    migration's looks at clients' data; `inherited`: the baseline of an earlier one of this cluster, for who takes over.
    `unchecked_since`: when a check that was due was not taken by any worker. `plan_basis`: what the plan rests on that this
    migration names; `None` where it names none.
    """

    approvals: Mapping[GateName, GivenApproval] = field(default_factory=dict)
    is_held: bool = False
    accepted_losses: tuple[str, ...] | None = None
    reports: tuple[DriftReport, ...] = ()
    drifts: int = 0
    baseline: DriftReport | None = None
    messages: DriftReport | None = None
    inherited: DriftReport | None = None
    of_copy: CopyReports = field(default_factory=CopyReports)
    unchecked_since: datetime | None = None
    plan_basis: Mapping[str, str] | None = None

    @property
    def has_baseline(self) -> bool:
        """Whether there is something to compare clients' data with."""
        return is_usable(self.baseline) or is_usable(self.inherited)


NOTHING_RULED = Ruling()
NO_BASELINE = "nothing to compare with"
"""What evidence says of clients' data where it was not looked at before the first broker was restarted, and of Kafka's copy
where ZooKeeper's metadata was not kept before it."""


def assess(
    observation: Observation,
    spec: ClusterSpec,
    policy: MigrationPolicy,
    ruling: Ruling,
    observation_name: str,
    before: Silence | None = None,
    still: Standstill | None = None,
    *,
    needs_survey: bool = False,
) -> Assessment:
    """Decide what to do next. Pure: the observation's own end is the only clock. `before`, `still`: as the last look told
    it.

    `needs_survey`: without one nothing starts.
    """
    silence = zookeeper_silence(observation, before)
    situation = situation_of(observation, spec, policy)
    phase = phase_of(situation)
    evidence = evidence_of(observation, spec, policy, situation, ruling)
    terms = _terms(observation, situation, spec, policy, ruling, hash_of(evidence))
    terms = replace(terms, is_silence_long=silence is None or silence.seen_at - silence.since >= policy.min_zookeeper_silence)
    is_blind = needs_survey and observation.survey is None
    decision = _decide(observation, spec, policy, situation, terms, ruling) if not is_blind else NO_SURVEY
    stands = _standing(decision, observation, spec, policy, situation, terms, ruling)
    steps_done, steps_total = steps_of(situation, terms.intent)
    nodes = node_statuses(situation, spec, observation)
    opened = next((each for each in (decision, stands) if isinstance(each, Gate)), None)
    gate = OpenGate(
        name=opened.name, evidence_hash=terms.evidence_hash, since=observation.ended_at, evidence=evidence
    ) if opened is not None else None  # fmt: skip
    still = standstill(observation, spec, phase, steps_done, stands or decision, still)
    alerts = alerts_of(observation, spec, policy, terms.intent, still)
    return Assessment(
        phase=phase,
        decision=decision,
        digest=digest_of(phase, decision, situation.dual_write, nodes, alerts),
        observation=observation_name,
        observed_at=observation.ended_at,
        nodes=nodes,
        gauges=gauges_of(observation, spec),
        gate=gate,
        stands=stands,
        steps_done=steps_done,
        steps_total=steps_total,
        unknown=tuple(part.what for part in observation.unanswered),
        silence=silence,
        standstill=still,
        alerts=alerts,
    )


NO_SURVEY = Wait(
    reason=WaitReason.PART_UNKNOWN, objects=("survey",), detail="the cluster was not looked at as a start needs it"
)


def is_survey_needed(observation: Observation, spec: ClusterSpec, policy: MigrationPolicy, ruling: Ruling) -> bool:
    """Whether this look could let a migration start: then the whole catalogue is asked, which needs more than the look."""
    is_held_or_back = ruling.is_held or ruling.accepted_losses is not None
    if is_held_or_back or observation.unanswered:
        return False
    return phase_of(situation_of(observation, spec, policy)) is Phase.PREFLIGHT


def alerts_of(
    observation: Observation, spec: ClusterSpec, policy: MigrationPolicy, intent: Intent, still: Standstill | None
) -> tuple[Blocker, ...]:
    """What somebody should know though nothing waits for it. On the way back nodes change under us, and that is meant."""
    moved = drifts(observation, spec, observation.ended_at) if intent is Intent.FORWARD else ()
    return (*moved, *overdue(still, policy, observation.ended_at))


def sight_of(observation: Observation, spec: ClusterSpec, policy: MigrationPolicy) -> ClusterSight:
    """What is seen now, for people, without any decision."""
    situation = situation_of(observation, spec, policy)
    return ClusterSight(
        cluster=observation.cluster,
        observed_at=observation.ended_at,
        phase=phase_of(situation),
        nodes=node_statuses(situation, spec, observation),
        gauges=gauges_of(observation, spec),
        unknown=tuple(part.what for part in observation.unanswered),
    )


def digest_of(
    phase: Phase | None,
    decision: Decision,
    dual_write: DualWrite,
    nodes: tuple[NodeStatus, ...],
    alerts: tuple[Blocker, ...] = (),
) -> str:
    """The same for two decisions between which nothing changes but numbers: which partitions lag, what a socket said.

    That dual write has died is told at once, whatever is waited for. A hold hides every other wait, so there each node counts:
    who holds looks at them, and must not see for hours what they were when the hold began.
    """
    told = decision.model_dump(mode="json", exclude={"detail"})
    if isinstance(decision, Wait) and decision.reason is WaitReason.PARTITIONS_NOT_IN_SYNC:
        told["objects"] = []
    is_held = isinstance(decision, Wait) and decision.reason is WaitReason.HELD
    seen: dict[str, Any] = {"phase": phase, "is_dual_write_dead": dual_write is DualWrite.DEAD}
    seen |= {"alerts": [alert.model_dump(mode="json", exclude={"since"}) for alert in alerts]} if alerts else {}
    return hash_of(seen | {"decision": told, "nodes": [node.model_dump(mode="json") for node in nodes] if is_held else []})


def _terms(
    observation: Observation,
    situation: Situation,
    spec: ClusterSpec,
    policy: MigrationPolicy,
    ruling: Ruling,
    evidence_hash: str,
) -> Terms:
    losses = losses_of(observation, situation, spec, ruling.reports)
    report = newest_of(ruling.reports, observation.zookeeper)
    accepted = ruling.accepted_losses or ()
    now, missed_at = observation.ended_at, ruling.unchecked_since
    soaked = soaked_for(observation, spec, now)
    of_copy, claim = ruling.of_copy, observation.zookeeper.controller if observation.zookeeper is not None else None
    is_check_due = is_due(report, policy, now)
    is_missed_lately = missed_at is not None and now - missed_at < policy.recheck_interval

    def look(found: Compared, *, is_due_now: bool, is_wanted: bool) -> Check:
        if not is_wanted:
            return Check()
        return Check(found, is_due_now and not is_missed_lately, is_due_now and missed_at is not None)

    def messages(report: DriftReport | None, *, is_wanted: bool) -> Check:
        return look(compared_messages(report), is_due_now=is_look_due(report, policy, now), is_wanted=is_wanted)

    def approval(gate: GateName) -> Approval:
        return _approval(ruling.approvals.get(gate), situation, evidence_hash)

    return Terms(
        intent=Intent.FORWARD if ruling.accepted_losses is None else Intent.REVERT,
        approval=approval(GateName.FINALIZE),
        without_return=approval(GateName.FINALIZE_WITHOUT_RETURN),
        is_held=ruling.is_held,
        is_soak_over=soaked is not None and soaked >= policy.min_soak,
        may_fail_over=policy.cure_dual_write or approval(GateName.FAIL_OVER) is Approval.VALID,
        is_failed_copy_reverted=policy.revert_failed_copy,
        accepts_metadata_loss=METADATA_CHANGES in accepted,
        unaccepted=losing_nodes(losses, accepted, spec),
        compared=compared(report, policy),
        is_check_due=is_check_due and not is_missed_lately,
        is_checker_missing=is_check_due and missed_at is not None,
        baseline=messages(ruling.baseline, is_wanted=policy.compare_messages and not is_usable(ruling.baseline)),
        kept=look(compared_copy(of_copy.kept), is_due_now=is_due(of_copy.kept, policy, now), is_wanted=policy.compare_copy),
        copy=look(
            of_copy.found,
            is_due_now=is_copy_due(of_copy.own, policy, now),
            is_wanted=policy.compare_copy and (of_copy.own is not None or of_copy.baseline(claim, policy) is not None),
        ),
        messages=messages(ruling.messages, is_wanted=policy.compare_messages and ruling.has_baseline),
        evidence_hash=evidence_hash,
    )


def _approval(given: GivenApproval | None, situation: Situation, evidence_hash: str) -> Approval:
    """A consumed approval outlives its evidence only once a controller shows that its effect has begun."""
    if given is None:
        return Approval.NONE
    has_begun = any(c.mode is ControllerMode.FINAL or c.stage is NodeStage.KRAFT for c in situation.controllers)
    if given.is_consumed and has_begun:
        return Approval.CONSUMED
    return Approval.VALID if given.evidence_hash == evidence_hash else Approval.STALE


def _standing(
    decision: Decision,
    observation: Observation,
    spec: ClusterSpec,
    policy: MigrationPolicy,
    situation: Situation,
    terms: Terms,
    ruling: Ruling,
) -> Gate | Wait | None:
    """What a comparison that is made anew leaves as it is until it says otherwise: a gate that is open, or a wait."""
    if not isinstance(decision, Step) or decision.action not in CHECK_OF:
        return None
    looks = {name: replace(getattr(terms, name), is_due=False) for name in ("baseline", "kept", "copy", "messages")}
    without = replace(terms, is_check_due=False, **looks)
    stands = _decide(observation, spec, policy, situation, without, ruling)
    return stands if isinstance(stands, Gate | Wait) else None


def _decide(
    observation: Observation,
    spec: ClusterSpec,
    policy: MigrationPolicy,
    situation: Situation,
    terms: Terms,
    ruling: Ruling,
) -> Decision:
    is_forward = terms.intent is Intent.FORWARD
    is_preflight = is_forward and phase_of(situation) is Phase.PREFLIGHT and not terms.is_held
    findings = preflight(observation, spec, policy) if is_preflight else ()
    if blockers_in(findings, policy):
        return release(situation, NodeStage.ZOOKEEPER) or Refuse(findings=findings)
    moved = _moved(observation, spec, situation, ruling) if is_preflight else ()
    if moved:
        return release(situation, NodeStage.ZOOKEEPER) or Refuse(findings=moved)
    # A check that could not look has not passed: before anything is touched, every part has to answer.
    is_blind = is_preflight and observation.unanswered
    decision = Wait(reason=WaitReason.PART_UNKNOWN) if is_blind else decide(situation, terms)
    if is_forward and isinstance(decision, Step) and phase_of(situation) is Phase.CONTROLLERS_UP:
        decision = _unless_blocked(decision, observation, spec, policy)
    if not isinstance(decision, Wait | Revert):
        return in_waves(decision, situation, observation, spec, policy) if is_forward else decision
    explained = _explained(decision, observation, spec, policy)
    report = _report_behind(explained.reason, observation, situation, terms, ruling)
    if report is not None:
        explained = _with_report(explained, report)
    if not is_forward and explained.reason in {WaitReason.FILE_CHANGED, WaitReason.DUAL_WRITE_NOT_CURRENT}:
        explained = _with_losses(explained, losses_of(observation, situation, spec, ruling.reports))
    is_told = situation.dual_write is not DualWrite.DEAD or explained.reason is WaitReason.FAILOVER_WOULD_HURT
    return explained if is_told else _with_alarm(explained)


def _moved(observation: Observation, spec: ClusterSpec, situation: Situation, ruling: Ruling) -> tuple[Finding, ...]:
    """Where the cluster is not any more what the migration's plan rests on. A part that is silent is waited for."""
    if ruling.plan_basis is None or observation.unanswered:
        return ()
    return moved_since(ruling.plan_basis, basis_of(observation, spec, situation))


REPORTED = frozenset({WaitReason.DRIFT_FOUND, WaitReason.CHECK_INCONCLUSIVE, WaitReason.CHECKS_WORKER_MISSING})
"""Waits about a check: its newest report says more. Where its worker is missing too: a drift stays found."""


def _report_behind(
    reason: WaitReason, observation: Observation, situation: Situation, terms: Terms, ruling: Ruling
) -> DriftReport | None:
    """In the order in which they are taken: clients' data before the first restart, ZooKeeper's metadata before the copy, the
    copy before the first broker in KRaft mode, the metadata, and where that is the same, clients' data again.
    """
    if reason in {WaitReason.MESSAGES_DIFFER, WaitReason.COPY_DIFFERS}:
        return ruling.messages if reason is WaitReason.MESSAGES_DIFFER else ruling.of_copy.newest
    if reason not in REPORTED:
        return None
    if not claim_of(observation.zookeeper):
        is_begun = any(b.mode is BrokerMode.HYBRID for b in situation.brokers)
        return ruling.of_copy.kept if is_begun or terms.baseline == Check() else ruling.baseline
    if any(b.mode is not BrokerMode.KRAFT for b in situation.brokers):
        return ruling.of_copy.newest
    is_same = terms.compared is Compared.CLEAN and not terms.is_check_due and not terms.is_checker_missing
    return ruling.messages if is_same else newest_of(ruling.reports, observation.zookeeper)


def _with_report(wait: Wait | Revert, report: DriftReport) -> Wait | Revert:
    return wait.model_copy(update={"objects": objects_of(report)[:MAX_OBJECTS], "detail": told(report)[:1000]})


def _with_alarm(wait: Wait | Revert) -> Wait | Revert:
    """What is waited for may last for weeks, and hides that there is no way back without a loss."""
    return wait.model_copy(update={"detail": f"{DUAL_WRITE_DIED}{wait.detail}"[:1000]})


DUAL_WRITE_DIED = "ALARM: dual write has died. ZooKeeper gets nothing of what is changed now, and a way back would lose it. "


def _with_losses(wait: Wait | Revert, losses: tuple[Loss, ...]) -> Wait | Revert:
    """On the way back such a wait ends when the loss is mended, or accepted by its name."""
    detail = "; ".join(f"{loss.name}: {loss.what}" for loss in losses)
    return wait.model_copy(update={"detail": detail[:1000]})


def _unless_blocked(step: Step, observation: Observation, spec: ClusterSpec, policy: MigrationPolicy) -> Decision:
    """The last look before the first broker is touched, for whoever began with controllers that others had set up."""
    if step.action is not StepAction.ROLL_NODE or spec.role(step.node) is Role.CONTROLLER:
        return step
    if observation.unanswered:
        return Wait(reason=WaitReason.PART_UNKNOWN)
    blockers = blockers_in(preflight(observation, spec, policy), policy)
    found = [f for f in blockers if f.code not in MET_BY_CONTROLLERS]
    if not found:
        return step
    detail = "; ".join(f"{f.code} {f.object}: {f.observed}, expected {f.expected}. {f.fix}" for f in found)
    return Wait(reason=WaitReason.PREFLIGHT_BLOCKERS, objects=tuple(dict.fromkeys(f.code for f in found)), detail=detail)


MET_BY_CONTROLLERS = frozenset({"PF07", "PF10"})
"""Checks that controllers in migration mode fail by being there: their storage is used, and /migration exists."""


def _explained(wait: Wait | Revert, observation: Observation, spec: ClusterSpec, policy: MigrationPolicy) -> Wait | Revert:
    """Name what fails to hold: nodes by name, and what only the observation knows."""
    if wait.reason is WaitReason.PREFLIGHT_BLOCKERS:
        return wait.model_copy(update={"detail": wait.detail[:1000]})
    names = tuple(spec.node_name(int(node_id)) for node_id in wait.objects)
    detail = ""
    kafka = observation.kafka
    if wait.reason is WaitReason.PART_UNKNOWN:
        detail = "; ".join(f"{part.what}: {part.why}" for part in observation.unanswered)
        names = tuple(part.what for part in observation.unanswered) or names
    elif wait.reason is WaitReason.PARTITIONS_NOT_IN_SYNC and kafka is not None:
        names = (*kafka.offline, *(fault.partition for fault in kafka.under_replicated))
        names += tuple(spec.node_name(b.id) for b in spec.brokers if b.id not in kafka.broker_ids)
    elif wait.reason is WaitReason.PARTITIONS_WOULD_STOP and wait.objects:
        detail = ", ".join(partitions_needing(kafka, int(wait.objects[0]), policy)[:MAX_OBJECTS])
    elif wait.reason is WaitReason.CONFIGURATION_RUNS:
        detail = how_to_pause(observation, spec, [int(node_id) for node_id in wait.objects])
    elif wait.reason is WaitReason.NODE_DOWN:
        detail = "\n".join(line for node_id in wait.objects for line in observation.node(int(node_id)).last_output)[-1000:]
    elif wait.reason in {WaitReason.DUAL_WRITE_NOT_CURRENT, WaitReason.COPY_LEFT_OVER}:
        names = ("/migration",)
    elif wait.reason in SUSPECTED:
        suspects = getattr(observation, SUSPECTED[wait.reason]) or ()
        names = tuple(suspect.what for suspect in suspects) or names
        detail = "; ".join(f"{suspect.what}: {suspect.why}" for suspect in suspects)
    return wait.model_copy(update={"objects": names[:MAX_OBJECTS], "detail": detail[:1000]})


SUSPECTED = {WaitReason.FAILOVER_WOULD_HURT: "failover_hazards", WaitReason.COPY_CANNOT_FINISH: "poisoned_znodes"}
"""Where an observation names what stands behind a wait."""


def evidence_of(
    observation: Observation,
    spec: ClusterSpec,
    policy: MigrationPolicy,
    situation: Situation,
    ruling: Ruling = NOTHING_RULED,
) -> dict[str, Any]:
    """What an approval binds to: only what is material, so never offsets, times or counts.

    Controllers are told by their files and modes until finalisation; the approval is consumed before the first changes.
    How old the newest comparison in this dual write is, is no evidence, but a condition of the gate. `drifts`, which only
    grows: two clean reports say the same, and who approved the first knew nothing of a drift that was repaired between them.
    """
    claim = observation.zookeeper.controller if observation.zookeeper is not None else None
    return {
        "cluster": spec.name,
        "cluster_id": spec.cluster_id,
        "spec_revision": observation.spec_revision,
        "policy": policy.model_dump(mode="json"),
        "phase": phase_of(situation),
        "quorum": situation.quorum,
        "claim": {"by": situation.claim, "epoch": claim.kraft_epoch if claim is not None else None},
        "guards": {
            "dual_write": situation.dual_write,
            "registration": situation.registration,
            "replication": situation.replication,
        },
        "report": evidence_of_report(newest_of(ruling.reports, observation.zookeeper)),
        "drifts_found": ruling.drifts,
        "copy": evidence_of_report(ruling.of_copy.newest) if ruling.of_copy.newest is not None else NO_BASELINE,
        "messages": evidence_of_report(ruling.messages) if ruling.has_baseline else NO_BASELINE,
        "nodes": {
            spec.node_name(node.id): {
                "mode": node.mode,
                "stage": node.stage,
                "file": _file_hash(observation, node.id),
                "flag": _flag(observation, node.id),
            }
            for node in situation.nodes
        },
    }


def _file_hash(observation: Observation, node_id: int) -> str | None:
    disk = observation.node(node_id).disk
    return disk.file.sha256 if disk is not None and disk.file is not None else None


def _flag(observation: Observation, node_id: int) -> str | None:
    disk = observation.node(node_id).disk
    return disk.file.properties.get(MIGRATION_FLAG) if disk is not None and disk.file is not None else None


def hash_of(data: dict[str, Any]) -> str:
    """Sha256 (hex) of canonical JSON: the same for equal data, in whatever order it was built."""
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":"), default=str).encode()).hexdigest()


SERVING = frozenset({BrokerMode.ZOOKEEPER, BrokerMode.HYBRID, BrokerMode.KRAFT})


def node_statuses(situation: Situation, spec: ClusterSpec, observation: Observation) -> tuple[NodeStatus, ...]:
    """Every node in the words that people see."""
    brokers = tuple(
        NodeStatus(
            name=spec.node_name(b.id), role="broker", mode=b.mode, stage=b.stage or "unknown", is_ready=b.mode in SERVING
        )
        for b in situation.brokers
    )
    controllers = tuple(
        NodeStatus(
            name=spec.node_name(c.id),
            role="controller",
            mode=c.mode,
            stage=c.stage or ("absent" if c.mode is ControllerMode.ABSENT else "unknown"),
            is_ready=c.is_caught_up,
        )
        for c in situation.controllers
    )
    return tuple(
        status.model_copy(update={"configuration_management": state_of(observation.node(node.id), spec.node(node.id))})
        for status, node in zip(brokers + controllers, situation.nodes, strict=True)
    )


def gauges_of(observation: Observation, spec: ClusterSpec) -> Gauges:
    """The numbers of this moment, as the active controller reports them."""
    leader = quorum_leader(observation, spec)
    zookeeper, kafka = observation.zookeeper, observation.kafka
    controller = zookeeper.controller if zookeeper is not None else None
    gauges = leader.metrics if leader is not None else None
    return Gauges(
        migration_state=_migration_state(observation, spec),
        migrating_brokers=gauges.migrating_broker_count if gauges is not None else None,
        write_behind_lag=gauges.write_behind_lag if gauges is not None else None,
        offset_distance=offset_distance(zookeeper, leader),
        under_replicated=len(kafka.under_replicated) if kafka is not None else None,
        quorum_leader=spec.node_name(leader.id) if leader is not None else None,
        zookeeper_controller=str(controller.broker_id) if controller is not None else None,
    )


def _migration_state(observation: Observation, spec: ClusterSpec) -> str | None:
    leader = quorum_leader(observation, spec)
    if leader is not None and leader.metrics.migration_gauge is not None:
        return leader.metrics.migration_gauge.name
    brokers = [m.migration_gauge for b in spec.brokers if (m := observation.node(b.id).metrics) is not None]
    return MigrationGauge.ZK.name if MigrationGauge.ZK in brokers else None


def steps_of(situation: Situation, intent: Intent) -> tuple[int, int]:
    """How many steps are done, of how many, on the way that is being gone; it may have been begun anywhere."""
    is_back = intent is Intent.REVERT and situation.quorum is not QuorumState.POST_MIGRATION
    return _steps_back(situation) if is_back else _steps_forward(situation)


def _steps_forward(s: Situation) -> tuple[int, int]:
    stages = [STAGE_OF_MODE.get(b.mode) for b in s.brokers]
    provisioned = sum(c.mode is not ControllerMode.ABSENT for c in s.controllers)
    finalized = sum(c.mode is ControllerMode.FINAL for c in s.controllers)
    hybrid = sum(stage in {NodeStage.MIGRATION, NodeStage.KRAFT} for stage in stages)
    in_kraft = sum(stage is NodeStage.KRAFT for stage in stages)
    return provisioned + finalized + hybrid + in_kraft, 2 * len(s.brokers) + 2 * len(s.controllers)


def _steps_back(s: Situation) -> tuple[int, int]:
    """Roll A, the window, roll B, the wipe. Who never was in KRaft mode has its part of roll A behind it."""
    stages = [STAGE_OF_MODE.get(b.mode) for b in s.brokers]
    out_of_kraft = sum(stage in {NodeStage.ZOOKEEPER, NodeStage.MIGRATION} for stage in stages)
    back = sum(stage is NodeStage.ZOOKEEPER for stage in stages)
    has_window = (
        all(c.mode in {ControllerMode.FENCED, ControllerMode.ABSENT} for c in s.controllers) and not s.has_migration_znode
    )
    is_wiped = all(c.mode is ControllerMode.ABSENT for c in s.controllers) and not any(b.has_metadata_log for b in s.brokers)
    return out_of_kraft + has_window + back + is_wiped, 2 * len(s.brokers) + 2
