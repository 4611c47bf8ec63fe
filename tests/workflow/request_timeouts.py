"""A kind of migration that only tests have: it gives every broker another `request.timeout.ms`, one restart after another.

It shows what a kind consists of. Broker 1 is the canary; before every other broker a gate asks. A rollback restores the files.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import Any

from pydantic import ConfigDict

from activities.observing.observe import observe_for
from activities.ports.kinds import ActivityKind, ActivityKinds
from activities.ports.ports import Ports
from domain.cluster import ClusterSpec, NodeSpec, Role
from domain.configuration.properties import edit, parse
from domain.contracts import ActivityName, Assessment, TaskQueue
from domain.decisions import ROLL_NODE, Decision, Done, Execution, Finding, Gate, Step, Wait
from domain.diagnosis.blockers import Diagnosis, generic_causes
from domain.diagnosis.causes.case import Case, Cause, Facts
from domain.errors import Unsafe
from domain.evidence import hash_of
from domain.health.liveness import GONE, Liveness, broker_liveness
from domain.kinds import Kind, Kinds
from domain.observed.observation import Observation
from domain.of_kind import Wanted
from domain.plans import Asked, Basis, Estimate, Plan, PlannedNode, of_specification
from domain.policy import MigrationPolicy
from domain.questions import ClusterSight, Gauges, PreviewStep, RollbackPreview, Runbook
from domain.records import ClusterRecord, NodeStatus, OpenGate, PhaseStep
from domain.rolling.change import Files, Making, Missing, Restart, Rolls, Sources, WantedFile
from domain.rulings import Ruling
from domain.waits import WAITS, WaitReason

NAME, KEY = "request-timeouts", "request.timeout.ms"
AS_FOUND, RAISED = "as-found", "raised"
GATE = "go-on"


class TimeoutPolicy(MigrationPolicy):
    """`milliseconds`: what every broker gets."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    milliseconds: int = 45000


class NothingElse(Wanted):
    """The cluster stays what it is."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def stages(observation: Observation, spec: ClusterSpec, policy: MigrationPolicy) -> dict[int, str | None]:
    """By broker; `None`: its file could not be read."""
    raised = str(TimeoutPolicy.of(policy).milliseconds)
    files = {b.id: disk.file if (disk := observation.node(b.id).disk) is not None else None for b in spec.brokers}
    return {i: None if f is None else RAISED if f.properties.get(KEY) == raised else AS_FOUND for i, f in files.items()}


def is_well(observation: Observation, spec: ClusterSpec) -> bool:
    kafka = observation.kafka
    is_in_sync = kafka is not None and not kafka.under_replicated and not kafka.offline
    return is_in_sync and all(broker_liveness(observation.node(b.id)) is Liveness.SERVING for b in spec.brokers)


def decide(
    observation: Observation, spec: ClusterSpec, policy: MigrationPolicy, ruling: Ruling, evidence_hash: str
) -> Decision:
    """A few rules in order, as every kind has them."""
    at, is_back = stages(observation, spec, policy), ruling.accepted_losses is not None
    left = [i for i, stage in at.items() if stage == (RAISED if is_back else AS_FOUND)]
    if None in at.values():
        return Wait(reason=WaitReason.PART_UNKNOWN)
    if ruling.is_held:
        return Wait(reason=WaitReason.HELD)
    if not is_well(observation, spec):
        return Wait(reason=WaitReason.PARTITIONS_NOT_IN_SYNC)
    if not left:
        return Done(outcome="AS_FOUND" if is_back else "RAISED")
    given = ruling.approvals.get(GATE)
    if is_back or len(left) == len(at):
        return Step(action=ROLL_NODE, node_id=left[0], stage=AS_FOUND if is_back else RAISED)
    if given is None or not (given.is_consumed or given.evidence_hash == evidence_hash):
        return Gate(name=GATE, evidence_hash=evidence_hash)
    return Step(action=ROLL_NODE, node_id=left[0], stage=RAISED, gate=GATE)


def described(decision: Decision, policy: MigrationPolicy) -> Decision:
    if isinstance(decision, Wait):
        words = WAITS[WaitReason(decision.reason)]
        return decision.model_copy(update={"means": words.means, "for_people": words.for_people})
    if not isinstance(decision, Step):
        return decision
    how = Execution(
        activity=ActivityName.ROLL_NODE,
        queue=TaskQueue.CLUSTER,
        summary=f"Restart {{node}}, {KEY} {decision.stage}",
        limit=policy.stop_deadline + policy.restart_deadline + timedelta(minutes=1),
        proves=True,
    )
    return decision.model_copy(update={"execution": how})


def evidence_of(observation: Observation, spec: ClusterSpec, policy: MigrationPolicy) -> dict[str, Any]:
    """Which brokers have the new file. What else changes is no evidence."""
    at = {spec.node_name(broker_id): stage for broker_id, stage in stages(observation, spec, policy).items()}
    return {"cluster": spec.name, "at": at, "milliseconds": TimeoutPolicy.of(policy).milliseconds}


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
    evidence = evidence_of(observation, spec, policy)
    hash_ = hash_of(evidence)
    decision = described(decide(observation, spec, policy, ruling, hash_), policy)
    behind = decision if not ruling.is_held else decide(observation, spec, policy, _without_hold(ruling), hash_)
    is_open = isinstance(behind, Gate)
    nodes = node_statuses(observation, spec, policy)
    at = stages(observation, spec, policy)
    return Assessment(
        phase="ROLLING",
        decision=decision,
        digest=hash_of({"decision": decision.model_dump(mode="json"), "seen": [one.state for one in ruling.seen]}),
        observation=observation_name,
        observed_at=observation.ended_at,
        evidence_hash=hash_,
        approvals=ruling.seen,
        nodes=nodes,
        title=f"to {KEY}={TimeoutPolicy.of(policy).milliseconds}",
        phases=(PhaseStep(name="ROLLING", title="Restart brokers"),),
        gate=OpenGate(name=GATE, evidence_hash=hash_, since=observation.ended_at, evidence=evidence) if is_open else None,
        steps_done=sum(stage == RAISED for stage in at.values()),
        steps_total=len(at),
        memory=dict(memory),
    )


def _without_hold(ruling: Ruling) -> Ruling:
    return Ruling(approvals=ruling.approvals, accepted_losses=ruling.accepted_losses)


def node_statuses(observation: Observation, spec: ClusterSpec, policy: MigrationPolicy) -> tuple[NodeStatus, ...]:
    return tuple(
        NodeStatus(
            name=spec.node_name(broker_id),
            role="broker",
            mode=broker_liveness(observation.node(broker_id)),
            stage=stage or "unknown",
            is_ready=broker_liveness(observation.node(broker_id)) is Liveness.SERVING,
        )
        for broker_id, stage in stages(observation, spec, policy).items()
    )


def ensure_allowed(observation: Observation, spec: ClusterSpec, policy: MigrationPolicy, ruling: Ruling, step: Step) -> None:
    if not is_well(observation, spec):
        raise Unsafe(f"{spec.node_name(step.node)}: a broker does not serve, or a replica is out of sync. Nothing restarts.")


def sight_of(observation: Observation, spec: ClusterSpec, policy: MigrationPolicy) -> ClusterSight:
    return ClusterSight(
        cluster=spec.name,
        observed_at=observation.ended_at,
        phase="ROLLING",
        nodes=node_statuses(observation, spec, TimeoutPolicy()),
        gauges=Gauges(),
        unknown=tuple(part.what for part in observation.unanswered),
    )


def plan_of(observation: Observation, spec: ClusterSpec, files: Files, asked: Asked, observation_name: str) -> Plan:
    at = stages(observation, spec, asked.policy)
    found = () if is_well(observation, spec) else (NOT_WELL,)
    nodes = tuple(
        PlannedNode(name=spec.node_name(i), role="broker", path=spec.node(i).properties_file, restarts=1, files=())
        for i, stage in at.items()
        if stage == AS_FOUND
    )
    return Plan(
        id=asked.id,
        cluster=spec.name,
        cluster_id=spec.cluster_id,
        kind=asked.kind,
        policy=asked.policy,
        wanted=asked.wanted,
        spec_revision=observation.spec_revision,
        requested_by=asked.requested_by,
        requested_at=asked.requested_at,
        made_at=observation.ended_at,
        observation=observation_name,
        phase="ROLLING",
        is_blocked=bool(found or observation.unanswered),
        findings=found,
        rolls=(),
        nodes=nodes,
        restarts={node.name: node.restarts for node in nodes},
        irreversible=(),
        gates=(GATE,),
        controllerless_seconds=0.0,
        estimate=Estimate(seconds=30.0 * len(nodes), basis=next(iter(Basis)), parts=()),
        not_migrated=(),
        changes_for_people=(),
        basis=of_specification(observation.spec_revision),
        plan_hash=hash_of({"nodes": [node.name for node in nodes], "policy": asked.policy.model_dump(mode="json")}),
    )


NOT_WELL = Finding(
    code="RT01", object="cluster", observed="a broker is not well", expected="all serve, in sync", fix="Start what is down."
)


async def preview(cluster: ClusterRecord, ports: Ports, policy: MigrationPolicy, *, for_people: bool) -> RollbackPreview:
    observation = await observe_for(NAME, cluster, ports, policy)
    raised = [i for i, stage in stages(observation, cluster.spec, policy).items() if stage == RAISED]
    steps = tuple(PreviewStep(what="restore its file", node=cluster.spec.node_name(i), restarts=True) for i in raised)
    return RollbackPreview(
        cluster=cluster.spec.name,
        observed_at=observation.ended_at,
        phase="ROLLING",
        is_possible=True,
        steps=steps,
        preview_hash=hash_of({"raised": raised}),
    )


async def runbook(cluster: ClusterRecord, ports: Ports, policy: MigrationPolicy) -> Runbook:
    observation = await observe_for(NAME, cluster, ports, policy)
    return Runbook(cluster=cluster.spec.name, observed_at=observation.ended_at, phase="ROLLING", forward=(), back=())


async def _nothing_else(observation: Observation, *_: object) -> Observation:
    return observation


async def _no_lookups(*_: object) -> object:
    return None


# ---- what its restarts write and prove ----


def _edited(text: str, milliseconds: int) -> str:
    return edit(text, {KEY: str(milliseconds)})


def rolls(milliseconds: int) -> Rolls:
    def is_original(text: str, _: Role) -> bool:
        return parse(text).get(KEY) != str(milliseconds)

    def make(sources: Sources, spec: ClusterSpec, node: NodeSpec, stage: str) -> WantedFile:
        if stage == RAISED:
            return WantedFile(_edited(sources.current, milliseconds), Making.EDIT)
        return WantedFile(sources.original or sources.current, Making.ARCHIVE)

    def why_not_proven(
        observation: Observation, spec: ClusterSpec, policy: MigrationPolicy, node_id: int, stage: str
    ) -> Missing | None:
        if is_well(observation, spec):
            return None
        return Missing(WaitReason.PARTITIONS_NOT_IN_SYNC, f"{spec.node_name(node_id)} does not serve in sync yet")

    def dead_besides(
        observation: Observation, spec: ClusterSpec, policy: MigrationPolicy, node_ids: Collection[int], stage: str
    ) -> str:
        others = (b.id for b in spec.brokers if b.id not in node_ids)
        return ", ".join(spec.node_name(i) for i in others if broker_liveness(observation.node(i)) in GONE)

    return Rolls(
        restart=lambda stage: Restart(is_restored=stage == AS_FOUND, registers_in_zookeeper=True),
        is_original=is_original,
        needs_sibling=lambda *_: False,
        make=make,
        edit=lambda text, spec, node, stage: _edited(text, milliseconds) if stage == RAISED else text,
        is_staged=lambda key, role: key == KEY,
        why_not_proven=why_not_proven,
        dead_besides=dead_besides,
        returns_leadership=lambda *_: False,
    )


# ---- why nothing happens ----


def _of_wait(case: Case, wait: Any, explained: Collection[str]) -> Iterable[Cause]:
    return () if wait.reason in explained else (case.cause(wait.reason, "cluster", observed="", expected="", fix=""),)


def _case_of(observation: Observation, spec: ClusterSpec, policy: MigrationPolicy) -> Case:
    liveness = {broker.id: broker_liveness(observation.node(broker.id)) for broker in spec.brokers}
    return Case(observation=observation, spec=spec, policy=policy, facts=Facts(liveness=liveness))


DIAGNOSIS = Diagnosis[Case](
    case_of=_case_of,
    causes=generic_causes,
    of_wait=_of_wait,
    unproven=lambda case, explained: (),
    searches={},
    of_losses=frozenset(),
)


REQUEST_TIMEOUTS = Kind(
    name=NAME,
    finding_codes=("RT01",),
    loss_names=lambda spec: frozenset(),
    loss_forms=(),
    next_steps=lambda record, spec, end: (),
    gates=(GATE,),
    final_gates=frozenset(),
    policy=TimeoutPolicy,
    wanted=NothingElse,
    aimed=lambda spec, wanted: spec,
    achieved=lambda spec, wanted: spec,
)
KINDS = Kinds((REQUEST_TIMEOUTS,))

KINDS_AT_WORK = ActivityKinds(
    (
        ActivityKind(
            kind=REQUEST_TIMEOUTS,
            probe=_nothing_else,
            needs_survey=lambda *_: False,
            assess=assess,
            ensure_allowed=ensure_allowed,
            sight=sight_of,
            survey=_nothing_else,
            plan=plan_of,
            why_not_rehearsed=lambda *_: None,
            preview=preview,
            runbook=runbook,
            rolls=rolls(TimeoutPolicy().milliseconds),
            diagnosis=DIAGNOSIS,
            lookups=_no_lookups,
            checks={},
            effects=lambda ports, listeners: [],
            bounded_grace=timedelta(0),
        ),
    )
)
