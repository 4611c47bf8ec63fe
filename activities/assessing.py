"""Looking and deciding: `assess` once, `watch` until the decision changes, `observe_cluster` for people."""

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from socket import gethostname
from typing import TypeVar

from temporalio import activity

from activities.heartbeat import heartbeating
from activities.node_files import sha256_of
from activities.notes.machines import MachineNotes
from activities.observing.observe import Ports, observe
from activities.observing.suspects import POISON_SECONDS
from activities.other_installations import ensure_sole_leader
from activities.ports.stores import Ledger
from activities.survey.surveying import with_survey
from domain.approvals import FINAL_GATES, Attempt, is_held, is_rollback_asked, state_of
from domain.approvals import seen as approval_seen
from domain.contracts import ActivityName, Assessment, AssessRequest, StepRequest
from domain.decisions import GateName, Revert, StepAction
from domain.drift.report import CheckName
from domain.errors import KeeperlessError, OtherLedger, Permanent, Superseded, Transient, Unsafe
from domain.observed.observation import Observation
from domain.policy import MigrationPolicy
from domain.questions import ClusterSight, ObserveRequest
from domain.records import ApprovalState, ClusterRecord, Command, CommandKind, EventDraft, Sample
from domain.set_back import KIND, why_set_back
from domain.zk_to_kraft.assessment import assess as assess_observation
from domain.zk_to_kraft.assessment import is_survey_needed, sight_of
from domain.zk_to_kraft.causes.elsewhere import SEES_NOTHING, WHERE_IT_BELONGS, is_elsewhere
from domain.zk_to_kraft.comparison import CopyReports
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.ruling import GivenApproval, Ruling

T = TypeVar("T")

SAMPLE_SECONDS = 10.0
"""Between two samples of the numbers while nothing changes: the ledger thins them out."""

SPARED = 9
"""For one second of looking before the start, those in which nobody looks."""


class Assessing:
    """Activities that only look. They may run as often as anybody likes."""

    def __init__(self, ports: Ports, notes: MachineNotes) -> None:
        self._ports, self._notes = ports, notes

    @activity.defn(name=ActivityName.ASSESS)
    async def assess(self, request: AssessRequest) -> Assessment:
        """Observe, store, classify, decide."""
        async with heartbeating():
            assessment, observation, content = await look_and_decide(request, self._ports, _seconds_for_names(request))
            await self._keep(request, assessment, content)
            if request.revert is None:
                self._notes.begin(request.migration_id, await cluster_of(request, self._ports), observation)
            return assessment

    @activity.defn(name=ActivityName.WATCH)
    async def watch(self, request: AssessRequest) -> Assessment:
        """Assess again and again until the decision's digest is not `request.seen` any more."""
        async with heartbeating():
            sampled = time.monotonic()  # what the wait began with was recorded with the progress
            while True:
                begun = time.monotonic()
                assessment, _, content = await look_and_decide(request, self._ports, _seconds_for_names(request))
                if assessment.digest != request.seen:
                    await self._keep(request, assessment, content)
                    return assessment
                request = request.model_copy(update={"silence": assessment.silence, "standstill": assessment.standstill})
                if begun - sampled >= SAMPLE_SECONDS:
                    await self._sample(request, assessment)
                    sampled = begun
                await asyncio.sleep(pause_after(assessment.phase, time.monotonic() - begun, request.policy))

    async def _sample(self, request: AssessRequest, assessment: Assessment) -> None:
        """No wait depends on it: a ledger that does not answer leaves a gap in the plot."""
        try:
            sample = Sample(at=assessment.observed_at, numbers=assessment.numbers)
            await self._ports.ledger.add_sample(request.migration_id, sample)
        except KeeperlessError as error:
            activity.logger.warning("a sample is not kept: %s", error)

    async def _keep(self, request: AssessRequest, assessment: Assessment, content: bytes) -> None:
        """Store what was seen; the way back needs no store, nor does what turns us round."""
        try:
            await self._ports.artefacts.put(content)
        except (KeeperlessError, OSError) as error:
            if request.revert is None and not isinstance(assessment.decision, Revert):
                raise
            activity.logger.warning("an observation of the way back is not kept: %s", error)

    @activity.defn(name=ActivityName.OBSERVE)
    async def observe_cluster(self, request: ObserveRequest) -> ClusterSight:
        """What is seen now, for people. Stores nothing."""
        cluster = await registered(request.cluster, self._ports)
        return sight_of(await observe(cluster, self._ports), cluster.spec, MigrationPolicy())


def pause_after(phase: str | None, seconds: float, policy: MigrationPolicy) -> float:
    """Seconds until the next look. `seconds`: what this one took.

    Before the start it reads all that the copy will read, of an ensemble that serves, while people mend what was found.
    """
    pause = policy.poll_interval.total_seconds()
    return max(pause, SPARED * seconds) if phase == Phase.PREFLIGHT else pause


def _seconds_for_names(request: AssessRequest) -> float:
    """People want to know which znode kills a copy, until the way back has begun. No effect waits for it."""
    return POISON_SECONDS if request.revert is None else 0.0


async def look_and_decide(
    request: AssessRequest | StepRequest, ports: Ports, poison_seconds: float = 0.0
) -> tuple[Assessment, Observation, bytes]:
    """One assessment, on a fresh observation and on what the ledger says of the approvals right now.

    With it the observation, also as JSON, to be kept under its sha256, which the assessment names: a watch looks once a
    second for weeks, and only a look that changed something is worth keeping.
    """
    await ensure_not_superseded(request, ports)
    await _ensure_not_set_back(request, ports)
    cluster = await cluster_of(request, ports)
    ruling = await ruling_of(request, ports)
    observation = await observe(cluster, ports, request.policy, poison_seconds)
    if is_elsewhere(observation, cluster.spec):
        raise _elsewhere()
    await ensure_sole_leader(request, observation, ports.ledger)
    is_start = _may_survey(request) and is_survey_needed(observation, cluster.spec, request.policy, ruling)
    if is_start:
        observation = await with_survey(observation, cluster, request.policy, ports)
    content = observation.model_dump_json().encode()
    before, still = (request.silence, request.standstill) if isinstance(request, AssessRequest) else (None, None)
    name = sha256_of(content)
    assessment = assess_observation(
        observation, cluster.spec, request.policy, ruling, name, before, still, needs_survey=is_start
    )
    return assessment, observation, content


def _may_survey(request: AssessRequest | StepRequest) -> bool:
    """Not right before an effect; but for the one that comes before a refusal, which only the survey may be the reason for."""
    return isinstance(request, AssessRequest) or request.step.action is StepAction.RELEASE_CONFIGURATION


async def ruling_of(request: AssessRequest | StepRequest, ports: Ports) -> Ruling:
    """What the ledger knows of the approvals that the workflow accepted, and the newest reports. A message alone moves nothing.

    Drifts are counted last: one that is published and repaired meanwhile is seen in their number, if not in the reports.

    An accepted way back was verified when it was accepted: its steps do not wait for a ledger that is down.
    """
    if request.revert is not None:
        return Ruling(is_held=await _is_way_back_held(request, ports), accepted_losses=request.revert.accepted_losses)
    now = datetime.now(UTC)
    commands = {gate: await _approval(request.migration_id, gate, id_, ports) for gate, id_ in request.approvals.items()}
    approvals = {gate: _given(command, request, now) for gate, command in commands.items() if command is not None}
    seen = [approval_seen(command, now) for command in commands.values() if command is not None]
    # A step may have been waiting for a worker since before a hold, and a rollback matters where an approval lets a step begin.
    needs_commands = isinstance(request, StepRequest) or bool(approvals)
    asked = await ports.ledger.commands(request.migration_id) if needs_commands else ()
    reports = await ports.ledger.newest_reports(request.cluster, CheckName.METADATA)
    return Ruling(
        approvals={gate: given for gate, given in approvals.items() if given is not None},
        seen=tuple(one for one in seen if one is not None),
        is_held=is_held(asked, request.applied_commands) if isinstance(request, StepRequest) else request.is_held,
        is_rollback_asked=is_rollback_asked(asked),
        reports=tuple(reports),
        drifts=await ports.ledger.drifts_found(request.cluster, CheckName.METADATA),
        baseline=await ports.ledger.baseline(request.cluster, request.migration_id),
        inherited=await ports.ledger.baseline(request.cluster),
        of_copy=await copy_reports(ports.ledger, request.cluster, request.migration_id),
        messages=await ports.ledger.newest_report(request.migration_id, CheckName.MESSAGES),
        end=await ports.ledger.newest_report(request.migration_id, CheckName.END),
        unchecked_since=request.unchecked_since if isinstance(request, AssessRequest) else None,
        plan_basis=await _plan_basis(request.plan_id, ports),
        has_begun=request.has_begun if isinstance(request, AssessRequest) else True,
    )


async def _plan_basis(plan_id: str | None, ports: Ports) -> dict[str, str] | None:
    if plan_id is None:
        return None
    plan = await ports.ledger.plan(plan_id)
    if plan is None:
        raise Permanent(f"the ledger has no plan {plan_id}: it was not restored with the rest. Make a new plan, and start anew")
    return plan.basis


async def copy_reports(ledger: Ledger, cluster: str, migration_id: str | None) -> CopyReports:
    """Without a migration: what others have kept and found."""
    others = CopyReports(
        others_kept=tuple(await ledger.newest_reports(cluster, CheckName.BEFORE_COPY)),
        others_copies=tuple(await ledger.newest_reports(cluster, CheckName.COPY)),
    )
    if migration_id is None:
        return others
    kept = await ledger.newest_report(migration_id, CheckName.BEFORE_COPY)
    return replace(others, kept=kept, copy=await ledger.newest_report(migration_id, CheckName.COPY))


async def _approval(migration_id: str, gate: GateName, command_id: str, ports: Ports) -> Command | None:
    """The command, if it is an approval of this gate of this migration."""
    command = await ports.ledger.command(command_id)
    if command is None or command.migration_id != migration_id or command.gate is not gate:
        return None
    return command if command.kind is CommandKind.APPROVE else None


def _given(command: Command, request: AssessRequest | StepRequest, now: datetime) -> GivenApproval | None:
    """The approval, as far as it counts. One that is consumed counts for its section: that of the end lasts, a failover's is
    the attempt that consumed it."""
    state = state_of(command, now)
    if state is ApprovalState.ARMED:
        return GivenApproval(evidence_hash=command.evidence_hash)
    is_ours = isinstance(request, StepRequest) and command.consumed_by == request.step_id
    is_of_section = is_ours if command.gate not in FINAL_GATES else state in {ApprovalState.CONSUMED, ApprovalState.DONE}
    if command.consumed_at is None or not is_of_section:
        return None
    return GivenApproval(evidence_hash=command.evidence_hash, is_consumed=True)


async def _is_way_back_held(request: AssessRequest | StepRequest, ports: Ports) -> bool:
    if isinstance(request, AssessRequest):
        return request.is_held
    try:
        return is_held(await ports.ledger.commands(request.migration_id), request.applied_commands)
    except Transient as error:
        activity.logger.warning("a step of the way back is taken although the ledger does not answer: %s", error)
        return False


def _elsewhere() -> Transient:
    """Another worker, which may take the task next, may be where the nodes are."""
    return Transient(f"keeperless-activities on {gethostname()}: {SEES_NOTHING}. {WHERE_IT_BELONGS}")


async def ensure_here(cluster: ClusterRecord, ports: Ports) -> None:
    """Before anything is done to nodes: whoever sees none would take their files for lost, and controllers for gone. What does
    not answer is not nothing."""
    for broker in cluster.spec.brokers:
        driver = ports.drivers.driver(broker)
        try:
            if await driver.read_file(broker.properties_file) is not None or (await driver.process()).is_running:
                return
        except KeeperlessError:
            return
    raise _elsewhere()


async def cluster_to_change(request: StepRequest, ports: Ports) -> ClusterRecord:
    """The cluster, for an effect on its nodes."""
    cluster = await cluster_of(request, ports)
    await ensure_here(cluster, ports)
    return cluster


async def cluster_of(request: AssessRequest | StepRequest, ports: Ports) -> ClusterRecord:
    """The cluster as it is registered; an accepted way back carries it along."""
    return request.revert.cluster if request.revert is not None else await registered(request.cluster, ports)


async def registered(name: str, ports: Ports) -> ClusterRecord:
    cluster = await ports.ledger.cluster(name)
    if cluster is None:
        raise OtherLedger(f"cluster {name}", ports.ledger.place)
    return cluster


async def ensure_not_superseded(request: AssessRequest | StepRequest, ports: Ports) -> None:
    """The fence: an effect of a run that has lost the cluster must not happen. On the way back a silent ledger is no reason
    to wait, nor is one that was restored from a backup: Temporal lets one run of the cluster live, and half a way back is the
    worst place to rest. Only a later generation stops it."""
    try:
        held = await ports.ledger.generation(request.cluster)
    except (Transient, Permanent) as error:
        if request.revert is None:
            raise
        activity.logger.warning("going on with the way back although the ledger does not know the cluster: %s", error)
        return
    if held > request.generation or (held != request.generation and request.revert is None):
        raise Superseded(
            f"cluster {request.cluster} is held by generation {held}, this run is generation {request.generation}: it stops"
        )


async def _ensure_not_set_back(request: AssessRequest | StepRequest, ports: Ports) -> None:
    """What the run decides, it decides without what it knew: asked before anything is touched, and not once a node is stopped.
    People find in the ledger why it has ended. On the way back nothing is asked: half of it is the worst place to rest.
    """
    position = request.position
    if position is None or request.revert is not None:
        return
    step = int(request.step_id.rpartition("/")[2]) if isinstance(request, StepRequest) else None
    why = why_set_back(position, await ports.ledger.told_by_runs(request.migration_id, position.at), step)
    if why is None:
        return
    said = EventDraft(
        key=f"{position.run_id}/{KIND}",
        kind=KIND,
        cluster=request.cluster,
        migration_id=request.migration_id,
        at=datetime.now(UTC),
        data={"why": why},
    )
    await ports.ledger.record(request.migration_id, [said], None)
    raise Superseded(f"{why}: it stops")


@dataclass(frozen=True)
class LastLook:
    """What the last look before an effect saw: why the step may not be taken, if so, and the hash of the evidence."""

    why_not: str | None
    evidence_hash: str = ""


async def why_not_this_step(request: StepRequest, ports: Ports) -> str | None:
    """Why the step may not be taken any more, as in `last_look`."""
    return (await last_look(request, ports)).why_not


async def last_look(request: StepRequest, ports: Ports) -> LastLook:
    """Whether the step may still be taken: when `request.looks` fresh looks in a row decide the very same one.

    Nothing has been touched yet: so silence is told, and the next decision waits for it by name, rather than retried unseen.
    """
    await ensure_not_superseded(request, ports)
    evidence_hash = ""
    for look in range(request.looks):
        if look:
            await asyncio.sleep(request.policy.poll_interval.total_seconds())
        looked, silent = await answer_or_silence(look_and_decide(request, ports))
        if looked is None:
            return LastLook(silent)
        assessment, _, _ = looked
        if assessment.decision != request.step:
            reason = getattr(assessment.decision, "reason", assessment.decision.decision)
            return LastLook(f"a fresh look right before the effect decides otherwise: {reason}")
        evidence_hash = assessment.evidence_hash
    return LastLook(None, evidence_hash)


async def why_not_approved(request: StepRequest, evidence_hash: str, ports: Ports) -> str | None:
    """Consume the approval of the step's gate: why it does not allow the write that comes next, or `None` where it does, and
    where the step needs none. Call it right before that write: without the ledger's answer there is none.

    `evidence_hash`: as the last look before the write saw it.
    """
    gate = request.step.gate
    if gate is None:
        return None
    return await ports.ledger.consume_approval(
        Attempt(
            id=request.step_id,
            migration_id=request.migration_id,
            cluster=request.cluster,
            generation=request.generation,
            gate=gate,
            command_id=request.approvals[gate],
            evidence_hash=evidence_hash,
            applied_commands=request.applied_commands,
        )
    )


async def answer_or_silence(asked: Awaitable[T]) -> tuple[T | None, str]:
    """The answer, or why there is none: for what is asked before a step has touched anything."""
    try:
        return await asked, ""
    except Transient as error:
        return None, f"the step has not begun: {error}"


def ensure_unchanged(path: str, sha256: str, expected: set[str]) -> None:
    """Raise when somebody else changed a file between our look and our write."""
    if sha256 not in expected:
        raise Unsafe(
            f"{path} was changed by somebody else while it was being rolled (sha256 {sha256[:12]}…). It is not overwritten. "
            "Put back what this migration wrote, or make your change before the migration starts."
        )
