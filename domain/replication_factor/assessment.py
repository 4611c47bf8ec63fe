"""From an observation to an `Assessment`: phase, decision, evidence, and the words for people."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from domain.cluster import ClusterSpec
from domain.contracts import Assessment, TaskQueue
from domain.decisions import Decision, Execution, Finding, Gate, Refuse, Step, Wait
from domain.errors import Unsafe
from domain.evidence import hash_of
from domain.observed.observation import Observation
from domain.observed.replicas import Layout
from domain.plans import moved_since, of_specification
from domain.policy import STEP_MARGIN, MigrationPolicy
from domain.questions import ClusterSight, Gauges
from domain.records import Measured, OpenGate, PhaseStep
from domain.replication_factor.change import Change
from domain.replication_factor.cost import cost_of
from domain.replication_factor.decide import MOVE, RESTORE_THROTTLES, START, Terms, decide, progress_to
from domain.replication_factor.judge import why_not
from domain.replication_factor.policy import ReplicationFactorPolicy
from domain.replication_factor.sight import ReplicaSight, changes_of, settled, sight
from domain.replication_factor.throttling import left_over
from domain.replication_factor.waits import WAITS
from domain.replication_factor.wanted import ReplicationFactorWanted, bytes_of
from domain.replication_factor.window import Progress, Standing, next_batch
from domain.rulings import Ruling
from domain.waits import WaitReason


class ReplicaActivity(StrEnum):
    """Activities that only this kind has."""

    MOVE_REPLICAS = "move_replicas"
    RESTORE_THROTTLES = "restore_throttles"


class Phase(StrEnum):
    PREFLIGHT = "PREFLIGHT"
    MOVING = "MOVING"
    VERIFYING = "VERIFYING"
    DONE = "DONE"


WAY = (
    PhaseStep(name=Phase.PREFLIGHT, title="Check the plan"),
    PhaseStep(name=Phase.MOVING, title="Move replicas"),
    PhaseStep(name=Phase.VERIFYING, title="All replicas in sync, throttles as before"),
    PhaseStep(name=Phase.DONE, title="Replication factors changed"),
)
NO_PLAN = Finding(
    code="RF00",
    object="plan",
    observed="the migration names no plan",
    expected="a plan, since it keeps the assignments of before",
    fix="Make one with POST /plans, read it, and start with its id (plan_id).",
)
STEPS = {
    MOVE: (ReplicaActivity.MOVE_REPLICAS, "Begin to move replicas to where they are {stage}"),
    RESTORE_THROTTLES: (ReplicaActivity.RESTORE_THROTTLES, "Give brokers and topics the throttles that they had before"),
}


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
    """Decide what to do next. Pure."""
    seen, is_back = sight(observation), ruling.accepted_losses is not None
    changes = planned_changes(seen)
    progress = None if seen.now is None else progress_to(changes, seen.now, is_back=is_back)
    evidence = evidence_of(seen, spec, changes)
    hash_ = hash_of(evidence)
    decision = _decide(observation, spec, policy, ruling, changes, hash_)
    behind = decision if not ruling.is_held else _decide(observation, spec, policy, _without_hold(ruling), changes, hash_)
    phase = _phase_of(progress, len(changes))
    return Assessment(
        phase=phase,
        decision=described(decision),
        digest=hash_of({"phase": phase, "decision": _digested(decision), "seen": [one.state for one in ruling.seen]}),
        observation=observation_name,
        observed_at=observation.ended_at,
        evidence_hash=hash_,
        approvals=ruling.seen,
        title="back to the replicas of before" if is_back else "to the planned replicas",
        readings=readings_of(progress),
        phases=WAY,
        numbers=numbers_of(progress),
        gate=_open(behind, hash_, observation, evidence),
        steps_done=0 if progress is None else len(progress[Standing.DONE]),
        steps_total=len(changes),
        unknown=tuple(part.what for part in observation.unanswered),
        memory=dict(memory),
    )


def planned_changes(seen: ReplicaSight) -> list[Change]:
    """The changes of the active migration; none without a plan."""
    return [] if seen.before is None or seen.wanted is None else changes_of(seen.before, seen.wanted)


def _decide(
    observation: Observation,
    spec: ClusterSpec,
    policy: MigrationPolicy,
    ruling: Ruling,
    changes: Sequence[Change],
    evidence_hash: str,
) -> Decision:
    seen, is_back = sight(observation), ruling.accepted_losses is not None
    if is_blind(observation):
        return Wait(reason=WaitReason.HELD if ruling.is_held else WaitReason.PART_UNKNOWN)
    if seen.before is None or seen.wanted is None or seen.now is None:
        return Refuse(findings=(NO_PLAN,))
    if ruling.plan_basis is not None and not ruling.has_begun and not is_back:
        moved = moved_since(ruling.plan_basis, basis_of(observation, seen.now, changes))
        if moved:
            return Refuse(findings=moved)
    given, wanted = ruling.approvals.get(START), ReplicationFactorWanted.of(seen.wanted)
    return decide(
        changes,
        seen.now,
        Terms(
            evidence_hash=evidence_hash,
            is_approved=given is not None and (given.is_consumed or given.evidence_hash == evidence_hash),
            is_held=ruling.is_held,
            is_back=is_back,
            in_flight=bytes_of(wanted.limits.bytes_in_flight),
            batch=ReplicationFactorPolicy.of(policy).batch,
            are_throttles_left=are_throttles_left(seen, changes),
        ),
    )


def is_blind(observation: Observation) -> bool:
    """Whether brokers did not tell what this kind has to know. Nodes' machines and files do not matter to it."""
    seen = sight(observation)
    return seen.now is None or seen.throttles is None or observation.kafka is None


def are_throttles_left(seen: ReplicaSight, changes: Sequence[Change]) -> bool:
    """Whether brokers and topics of the change have others than before."""
    if seen.throttles is None or seen.throttled_before is None or seen.now is None:
        return False
    left = left_over(seen.throttles, seen.throttled_before, *about(changes, seen.now))
    return bool(left.brokers or left.topics)


def about(changes: Sequence[Change], now: Layout) -> tuple[set[int], set[str]]:
    """Brokers that serve, and topics, that throttles are set for."""
    brokers = {i for change in changes for i in (*change.partition.replicas, *change.after)}
    return brokers & {broker.id for broker in now.brokers}, {change.partition.topic for change in changes}


def basis_of(observation: Observation, now: Layout, changes: Sequence[Change]) -> dict[str, str]:
    """What a plan rests on: specification, and replicas of the partitions that change."""
    own = {change.partition.name for change in changes}
    replicas = [repr(settled(one)) for one in now.partitions if one.name in own]
    return {**of_specification(observation.spec_revision), "replicas of these partitions": hash_of({"are": replicas})[:16]}


def evidence_of(seen: ReplicaSight, spec: ClusterSpec, changes: Sequence[Change]) -> dict[str, Any]:
    """What an approval of `start` is about: the plan. What moves since does not change it."""
    cost = cost_of(changes)
    return {
        "cluster": spec.name,
        "partitions": len(changes),
        "changes": hash_of({"are": [(change.partition.name, change.after) for change in changes]}),
        "throttle": None if seen.wanted is None else ReplicationFactorWanted.of(seen.wanted).throttle,
        "bytes_to_copy": cost.copied,
        "bytes_that_going_back_would_copy": cost.back,
    }


def _phase_of(progress: Progress | None, total: int) -> Phase:
    if progress is None or len(progress[Standing.WAITING]) == total:
        return Phase.PREFLIGHT
    return Phase.VERIFYING if len(progress[Standing.DONE]) == total else Phase.MOVING


def described(decision: Decision) -> Decision:
    """The same decision, with how it is carried out and what it means."""
    if isinstance(decision, Wait):
        words = WAITS[decision.reason]
        return decision.model_copy(update={"means": words.means, "for_people": words.for_people})
    if not isinstance(decision, Step):
        return decision
    activity, summary = STEPS[decision.action]
    how = Execution(
        activity=activity,
        queue=TaskQueue.CLUSTER,
        summary=summary.format(stage=decision.stage),
        limit=STEP_MARGIN + timedelta(minutes=10),
        proves=True,
    )
    return decision.model_copy(update={"execution": how})


def _digested(decision: Decision) -> dict[str, Any]:
    """Which partitions copy changes all the time, and is no news."""
    told = decision.model_dump(mode="json", exclude={"execution", "means", "for_people", "detail"})
    return {**told, "objects": []} if isinstance(decision, Wait) and not decision.for_people else told


def readings_of(progress: Progress | None) -> str:
    if progress is None:
        return "where replicas are is not known"
    return ", ".join(f"{len(progress[one])} {one}" for one in Standing if progress[one]) or "nothing to change"


def numbers_of(progress: Progress | None) -> tuple[Measured, ...]:
    if progress is None:
        return ()
    left = Measured(name="bytes_left", value=float(progress.bytes_left))
    return (left, *(Measured(name=f"partitions_{one}", value=float(len(progress[one]))) for one in Standing))


def _open(decision: Decision, hash_: str, observation: Observation, evidence: dict[str, Any]) -> OpenGate | None:
    if not isinstance(decision, Gate):
        return None
    return OpenGate(name=decision.name, evidence_hash=hash_, since=observation.ended_at, evidence=evidence)


def _without_hold(ruling: Ruling) -> Ruling:
    return Ruling(approvals=ruling.approvals, accepted_losses=ruling.accepted_losses)


def sight_of(observation: Observation, spec: ClusterSpec, policy: MigrationPolicy) -> ClusterSight:
    """What is seen now, for people, without any decision."""
    seen = sight(observation)
    changes = planned_changes(seen)
    progress = None if seen.now is None else progress_to(changes, seen.now, is_back=False)
    return ClusterSight(
        cluster=spec.name,
        observed_at=observation.ended_at,
        phase=_phase_of(progress, len(changes)),
        nodes=(),
        gauges=Gauges(under_replicated=None if observation.kafka is None else len(observation.kafka.under_replicated)),
        unknown=tuple(part.what for part in observation.unanswered),
    )


def ensure_allowed(observation: Observation, spec: ClusterSpec, policy: MigrationPolicy, ruling: Ruling, step: Step) -> None:
    """Every change that this step could begin is one that may be executed, whoever planned it."""
    if step.action == MOVE:
        next_of(sight(observation), policy, is_back=ruling.accepted_losses is not None)


def next_of(seen: ReplicaSight, policy: MigrationPolicy, *, is_back: bool) -> tuple[list[Change], Sequence[Change]]:
    """What may begin now, and what moves already. Raises `Unsafe` if a change that would begin may not be executed."""
    if seen.now is None or seen.wanted is None:
        return [], []
    limit = bytes_of(ReplicationFactorWanted.of(seen.wanted).limits.bytes_in_flight)
    progress = progress_to(planned_changes(seen), seen.now, is_back=is_back)
    batch = next_batch(progress, limit, ReplicationFactorPolicy.of(policy).batch)
    now = {(one.topic, one.number): one for one in seen.now.partitions}
    for change in batch:
        as_it_is = replace(change, partition=now[change.partition.topic, change.partition.number])
        if (why := why_not(as_it_is, None, seen.now.brokers)) is not None:
            raise Unsafe(f"{why}. Nothing was moved.")
    return batch, progress[Standing.MOVING]
