"""From an observation to an `Assessment`: phase, decision, evidence, and the words in which people are told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from domain.checks.acceptance import blockers_in
from domain.cluster import ClusterSpec, Role
from domain.contracts import Assessment
from domain.decisions import TOLD, Decision, Finding, Gate, Intent, Refuse, Revert, Step, Wait
from domain.diagnosis.blocker import Blocker
from domain.drift.report import DriftReport
from domain.drift.verdicts import is_usable
from domain.end_compared import lost_at_the_end
from domain.evidence import hash_of
from domain.observed.observation import Observation
from domain.plans import moved_since
from domain.policy import MigrationPolicy
from domain.questions import ClusterSight
from domain.records import ApprovalSeen, NodeStatus, OpenGate
from domain.rulings import GivenApproval, Ruling
from domain.waits import WaitReason
from domain.zk_to_kraft import guards
from domain.zk_to_kraft.comparison import (
    CopyReports,
    compared,
    compared_copy,
    compared_messages,
    is_copy_due,
    is_due,
    is_look_due,
    newest_of,
)
from domain.zk_to_kraft.conditions import GIVEN, Approval, Check, Compared, Terms
from domain.zk_to_kraft.decide import decide
from domain.zk_to_kraft.described import CHECKS, described, ended, withdrawn
from domain.zk_to_kraft.drift_watch import drifts
from domain.zk_to_kraft.evidence import evidence_of
from domain.zk_to_kraft.guards import release
from domain.zk_to_kraft.losses import METADATA_CHANGES, TOPIC_IDS, losing_nodes, losses_of
from domain.zk_to_kraft.modes import ControllerMode
from domain.zk_to_kraft.node_status import gauges_of, is_over, node_statuses, numbers_of, readings_of, steps_of, title_of
from domain.zk_to_kraft.other_clusters import foreign, foreign_cluster
from domain.zk_to_kraft.phases import WAY, Phase, phase_of
from domain.zk_to_kraft.planning.basis import basis_of
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.preflight import MET_BY_CONTROLLERS, preflight
from domain.zk_to_kraft.reduction import situation_of, soaked_for
from domain.zk_to_kraft.roll_waves import in_waves
from domain.zk_to_kraft.situation import DualWrite, Situation
from domain.zk_to_kraft.standstill import Silence, Standstill, overdue, standstill, zookeeper_silence
from domain.zk_to_kraft.steps import FINAL_GATES, LAST_RESORT, GateName, NodeStage, StepAction
from domain.zk_to_kraft.wait_details import explained, report_behind, with_alarm, with_losses, with_report
from domain.zk_to_kraft.waits import ZkWait


class Remembered(BaseModel):
    """What one look knows from the one before."""

    silence: Silence | None = None
    standstill: Standstill | None = None


@dataclass(frozen=True)
class Grounds:
    """All that one decision rests on."""

    observation: Observation
    spec: ClusterSpec
    policy: ZkToKraftPolicy
    situation: Situation
    terms: Terms
    ruling: Ruling


def assess(
    observation: Observation,
    spec: ClusterSpec,
    policy: MigrationPolicy,
    ruling: Ruling,
    observation_name: str,
    memory: Mapping[str, Any] = {},
    *,
    needs_survey: bool = False,
) -> Assessment:
    """Decide what to do next. Pure: the observation's own end is the only clock. `memory`: as the last look gave it.

    `needs_survey`: without one nothing starts.
    """
    policy = ZkToKraftPolicy.of(policy)
    known = Remembered.model_validate(memory)
    silence = zookeeper_silence(observation, known.silence)
    situation = situation_of(observation, spec, policy)
    phase = phase_of(situation)
    evidence = evidence_of(observation, spec, policy, situation, ruling)
    terms = _terms(observation, situation, spec, policy, ruling, hash_of(evidence))
    terms = replace(terms, is_silence_long=silence is None or silence.seen_at - silence.since >= policy.min_zookeeper_silence)
    grounds = Grounds(observation, spec, policy, situation, terms, ruling)
    is_blind = needs_survey and observation.survey is None
    decision = _decide(grounds) if not is_blind else NO_SURVEY
    stands = _standing(decision, grounds)
    steps_done, steps_total = steps_of(situation, terms.intent)
    gauges = gauges_of(observation, spec)
    nodes = node_statuses(situation, spec, observation)
    behind_hold = _behind_hold(decision, grounds)
    opened = next((each for each in (decision, stands, behind_hold) if isinstance(each, Gate)), None)
    gate = OpenGate(
        name=opened.name, evidence_hash=terms.evidence_hash, since=observation.ended_at, evidence=evidence,
        caution=LAST_RESORT if opened.name == GateName.FINALIZE_WITHOUT_RETURN else "",
    ) if opened is not None else None  # fmt: skip
    still = standstill(observation, spec, phase, steps_done, stands or decision, known.standstill)
    is_final = is_over(phase, gauges)
    alerts = (*alerts_of(observation, spec, policy, terms.intent, still), *lost_at_the_end(ruling.end))
    return Assessment(
        phase=phase,
        decision=described(decision, policy),
        digest=digest_of(phase, decision, situation.dual_write, nodes, alerts, behind_hold, ruling.seen),
        evidence_hash=terms.evidence_hash,
        approvals=ruling.seen,
        observation=observation_name,
        observed_at=observation.ended_at,
        nodes=nodes,
        title=title_of(Intent.FORWARD if is_final else terms.intent),
        readings=readings_of(gauges),
        is_final=is_final,
        withdraws=withdrawn(stands or decision, opened, phase, is_zookeeper_there=gauges.zookeeper_controller is not None),
        ends=ended(phase),
        phases=WAY,
        numbers=numbers_of(gauges),
        gate=gate,
        stands=described(stands, policy) if stands is not None else None,
        steps_done=steps_done,
        steps_total=steps_total,
        unknown=tuple(part.what for part in observation.unanswered),
        memory=Remembered(silence=silence, standstill=still).model_dump(mode="json"),
        alerts=alerts,
    )


NO_SURVEY = Wait(
    reason=WaitReason.PART_UNKNOWN, objects=("survey",), detail="the cluster was not observed in the detail that a start needs"
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
    behind_hold: Gate | None = None,
    approvals: tuple[ApprovalSeen, ...] = (),
) -> str:
    """The same for two decisions between which nothing changes but numbers: which partitions lag, what a socket said.

    The death of dual write is reported immediately, whatever is waited for. A hold hides every other wait, so during a hold
    each node, the gate behind it and each approval count: the operator looks at them, and must not see for hours what they were
    when the hold began.
    """
    told = decision.model_dump(mode="json", exclude={"detail", *TOLD})
    if isinstance(decision, Wait) and decision.reason == WaitReason.PARTITIONS_NOT_IN_SYNC:
        told["objects"] = []
    is_held = isinstance(decision, Wait) and decision.reason == WaitReason.HELD
    seen: dict[str, Any] = {"phase": phase, "is_dual_write_dead": dual_write is DualWrite.DEAD}
    seen |= {"alerts": [alert.model_dump(mode="json", exclude={"since"}) for alert in alerts]} if alerts else {}
    if is_held and (behind_hold is not None or approvals):
        seen |= {"behind_hold": behind_hold, "approvals": [f"{one.command_id} {one.state}" for one in approvals]}
    return hash_of(seen | {"decision": told, "nodes": [node.model_dump(mode="json") for node in nodes] if is_held else []})


def _terms(
    observation: Observation,
    situation: Situation,
    spec: ClusterSpec,
    policy: ZkToKraftPolicy,
    ruling: Ruling,
    evidence_hash: str,
) -> Terms:
    losses = losses_of(observation, situation, spec, ruling.reports)
    report = newest_of(ruling.reports, observation.zookeeper)
    accepted = ruling.accepted_losses or ()
    now, missed_at = observation.ended_at, ruling.unchecked_since
    soaked = soaked_for(observation, spec, now)
    of_copy, claim = (
        CopyReports.of(ruling.of_copy),
        observation.zookeeper.controller if observation.zookeeper is not None else None,
    )
    is_check_due = is_due(report, policy, now)
    is_missed_lately = missed_at is not None and now - missed_at < policy.recheck_interval

    def look(found: Compared, *, is_due_now: bool, is_wanted: bool) -> Check:
        if not is_wanted:
            return Check()
        return Check(found, is_due_now and not is_missed_lately, is_due_now and missed_at is not None)

    def messages(report: DriftReport | None, *, is_wanted: bool) -> Check:
        return look(compared_messages(report), is_due_now=is_look_due(report, policy, now), is_wanted=is_wanted)

    def approval(gate: str) -> Approval:
        return _approval(ruling.approvals.get(gate), situation, evidence_hash)

    return Terms(
        intent=Intent.FORWARD if ruling.accepted_losses is None else Intent.REVERT,
        approval=approval(GateName.FINALIZE),
        without_return=approval(GateName.FINALIZE_WITHOUT_RETURN),
        is_held=ruling.is_held,
        has_begun=ruling.has_begun,
        is_soak_over=soaked is not None and soaked >= policy.min_soak,
        failover=approval(GateName.FAIL_OVER),
        may_fail_over=policy.cure_dual_write,
        is_committed=any(
            approval(gate) in GIVEN and gate in FINAL_GATES and given.is_consumed for gate, given in ruling.approvals.items()
        ),
        is_failed_copy_reverted=policy.revert_failed_copy,
        accepts_metadata_loss=METADATA_CHANGES in accepted,
        accepts_new_topic_ids=TOPIC_IDS in accepted,
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
        end=_end(ruling),
        evidence_hash=evidence_hash,
    )


def _end(ruling: Ruling) -> Check:
    """Due once, and only for a migration that has taken a step: what ended long ago cannot be compared any more. One try that
    came to nothing is enough: the migration ends, and its summary says so.
    """
    is_wanted = ruling.has_begun and ruling.accepted_losses is None and ruling.end is None
    return Check(Compared.NONE, is_due=ruling.unchecked_since is None) if is_wanted else Check()


def _approval(given: GivenApproval | None, situation: Situation, evidence_hash: str) -> Approval:
    """A consumed approval outlives its evidence only once a controller shows that its section has begun."""
    if given is None:
        return Approval.NONE
    has_begun = any(c.mode is ControllerMode.FINAL or c.stage is NodeStage.KRAFT for c in situation.controllers)
    if given.is_consumed and has_begun:
        return Approval.CONSUMED
    return Approval.VALID if given.evidence_hash == evidence_hash else Approval.STALE


def _standing(decision: Decision, grounds: Grounds) -> Gate | Wait | None:
    """What a new comparison leaves as it is until it says otherwise: a gate that is open, or a wait."""
    if not isinstance(decision, Step) or decision.action not in CHECKS:
        return None
    stands = _decide(replace(grounds, terms=_with_nothing_due(grounds.terms)))
    return stands if isinstance(stands, Gate | Wait) else None


def _with_nothing_due(terms: Terms) -> Terms:
    looks = {name: replace(getattr(terms, name), is_due=False) for name in ("baseline", "kept", "copy", "messages")}
    return replace(terms, is_check_due=False, **looks)


def _behind_hold(decision: Decision, grounds: Grounds) -> Gate | None:
    """The gate that would be open without the hold: a person can decide there while the migration is held."""
    is_held = isinstance(decision, Wait) and decision.reason == WaitReason.HELD
    if not is_held or phase_of(grounds.situation) is Phase.PREFLIGHT:
        return None
    behind = _decide(replace(grounds, terms=replace(_with_nothing_due(grounds.terms), is_held=False)))
    return behind if isinstance(behind, Gate) else None


def _decide(grounds: Grounds) -> Decision:
    observation, spec, policy = grounds.observation, grounds.spec, grounds.policy
    situation, terms, ruling = grounds.situation, grounds.terms, grounds.ruling
    is_forward = terms.intent is Intent.FORWARD
    is_preflight = is_forward and phase_of(situation) is Phase.PREFLIGHT and not terms.is_held
    findings = preflight(observation, spec, policy) if is_preflight else ()
    blockers = blockers_in(findings, policy)
    moved = _moved(grounds) if is_preflight else ()
    if moved or blockers:  # What stops it comes first, and then all that is worth reading.
        rest = (finding for finding in findings if finding not in blockers) if blockers else ()
        return release(situation, NodeStage.ZOOKEEPER) or Refuse(findings=(*moved, *blockers, *rest))
    # A check that could not look has not passed: before anything is touched, every part has to answer.
    is_blind = is_preflight and observation.unanswered
    decision = Wait(reason=WaitReason.PART_UNKNOWN) if is_blind else decide(situation, terms)
    if is_forward and isinstance(decision, Step) and decision.gate is not None and ruling.is_rollback_asked:
        decision = Wait(reason=WaitReason.ROLLBACK_NOT_VERIFIED)
    if is_forward and isinstance(decision, Step) and phase_of(situation) is Phase.CONTROLLERS_UP:
        decision = _unless_blocked(decision, grounds)
    if is_forward and not is_preflight:
        decision = _unless_foreign(decision, grounds)
    if not isinstance(decision, Wait | Revert):
        return in_waves(decision, situation, observation, spec, policy) if is_forward else decision
    named = explained(decision, observation, spec, policy)
    report = report_behind(named.reason, observation, situation, terms, ruling)
    if report is not None:
        named = with_report(named, report)
    if not is_forward and named.reason in OF_LOSSES:
        named = with_losses(named, losses_of(observation, situation, spec, ruling.reports))
    is_told = situation.dual_write is not DualWrite.DEAD or named.reason == ZkWait.FAILOVER_WOULD_HURT
    return named if is_told else with_alarm(named)


OF_LOSSES = frozenset(
    {
        WaitReason.FILE_CHANGED,
        ZkWait.DUAL_WRITE_NOT_CURRENT,
        ZkWait.TOPIC_WITHOUT_ID,
        ZkWait.QUORUM_CANNOT_MIGRATE,
    }
)
"""Waits of a rollback that end when a loss is fixed, or accepted by its name."""


def _moved(grounds: Grounds) -> tuple[Finding, ...]:
    """Where the cluster is not any more what the migration's plan rests on. A part that is silent is waited for."""
    if grounds.ruling.plan_basis is None or grounds.observation.unanswered:
        return ()
    return moved_since(grounds.ruling.plan_basis, basis_of(grounds.observation, grounds.spec, grounds.situation))


def _unless_blocked(step: Step, grounds: Grounds) -> Decision:
    """The last look before the first broker is touched, for a migration that began with controllers that others had set up."""
    if step.action != StepAction.ROLL_NODE or grounds.spec.role(step.node) is Role.CONTROLLER:
        return step
    if grounds.observation.unanswered:
        return Wait(reason=WaitReason.PART_UNKNOWN)
    blockers = blockers_in(preflight(grounds.observation, grounds.spec, grounds.policy), grounds.policy)
    found = [f for f in blockers if f.code not in MET_BY_CONTROLLERS]
    return _wait_for(found) if found else step


def _unless_foreign(decision: Decision, grounds: Grounds) -> Decision:
    """Nothing is done to another cluster, or with a controller of one, and no other wait hides that. What cannot wait is done
    all the same, unless the cluster is another one. A migration that has done nothing yet ends there, so that its specification
    can be corrected.
    """
    if isinstance(decision, Wait) and decision.reason in {WaitReason.HELD, ZkWait.COPY_CANNOT_FINISH}:
        return decision
    observation, spec, quorum = grounds.observation, grounds.spec, grounds.situation.quorum
    is_urgent = isinstance(decision, Revert) or decision == guards.lost_flag(grounds.situation, grounds.terms)
    found = (foreign_cluster if is_urgent else foreign)(observation, spec, quorum)
    if not grounds.ruling.has_begun and (cluster := foreign_cluster(observation, spec, quorum)):
        return Refuse(findings=cluster)
    return _wait_for(found) if found else decision


def _wait_for(found: Sequence[Finding]) -> Wait:
    detail = "; ".join(f"{f.code} {f.object}: {f.observed}, expected {f.expected}. {f.fix}" for f in found)
    return Wait(reason=WaitReason.PREFLIGHT_BLOCKERS, objects=tuple(dict.fromkeys(f.code for f in found)), detail=detail)
