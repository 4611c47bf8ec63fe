"""Look and decide: what every assessment and the last look before each effect are made of."""

import asyncio
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from temporalio import activity

from activities.claims import cluster_of, elsewhere, ensure_not_set_back, ensure_not_superseded
from activities.node_files import sha256_of
from activities.observing.observe import observe_for
from activities.ports.ports import Ports
from activities.ports.stores import Ledger
from activities.rulings import ruling_of
from domain.approvals import Attempt
from domain.contracts import Assessment, AssessRequest, CompanionOutcome, StepOutcome, StepRequest
from domain.decisions import RELEASE_CONFIGURATION
from domain.errors import Transient, Unsafe
from domain.health.visibility import is_elsewhere
from domain.observed.observation import Observation, RollMark
from domain.records import CommandKind

T = TypeVar("T")

LED_TWICE = (
    "which this ledger does not know: another installation of Keeperless, with its own Temporal and ledger, migrates the "
    "same cluster, and the two restart each other's nodes. This one changes nothing more. Find the other (`ps -ef` on the "
    "nodes' machine: another keeperless-activities), end one of the two migrations for good, then resume the other: it "
    "continues from what it finds."
)


async def look_and_decide(
    request: AssessRequest | StepRequest, ports: Ports, names_seconds: float | None = 0.0
) -> tuple[Assessment, Observation, bytes]:
    """One assessment, on a fresh observation and on what the ledger says of the approvals right now.

    With it the observation, also as JSON, to be kept under its sha256, which the assessment names: a watch looks once a
    second for weeks, and only a look that changed something is worth keeping.
    """
    await ensure_not_superseded(request, ports)
    await ensure_not_set_back(request, ports)
    cluster = await cluster_of(request, ports)
    ruling = await ruling_of(request, ports)
    kind = ports.kinds[request.kind]
    observation = await observe_for(request.kind, cluster, ports, request.policy, names_seconds)
    if is_elsewhere(observation, cluster.spec):
        raise elsewhere()
    await ensure_sole_leader(request, observation, ports.ledger)
    is_start = _may_survey(request) and kind.needs_survey(observation, cluster.spec, request.policy, ruling)
    if is_start:
        observation = await kind.survey(observation, cluster, request.policy, ports)
    content = observation.model_dump_json().encode()
    memory = request.memory if isinstance(request, AssessRequest) else {}
    name = sha256_of(content)
    assessment = kind.assess(observation, cluster.spec, request.policy, ruling, name, memory, needs_survey=is_start)
    if isinstance(request, StepRequest) and assessment.decision == request.step:
        kind.ensure_allowed(observation, cluster.spec, request.policy, ruling, request.step)
    return assessment, observation, content


def _may_survey(request: AssessRequest | StepRequest) -> bool:
    """Not right before an effect; but for the one that comes before a refusal, which only the survey may be the reason for."""
    return isinstance(request, AssessRequest) or request.step.action == RELEASE_CONFIGURATION


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
            return LastLook(f"an observation right before the effect decides otherwise: {reason}")
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
            is_in_section=gate in ports.kinds[request.kind].kind.final_gates,
        )
    )


async def answer_or_silence(asked: Awaitable[T]) -> tuple[T | None, str]:
    """The answer, or why there is none: for what is asked before a step has touched anything."""
    try:
        return await asked, ""
    except Transient as error:
        return None, f"the step has not begun: {error}"


def outcome(
    blocked: str | None,
    begun: float | None = None,
    changes: tuple[str, ...] = (),
    did_restart: bool = False,
    hold_because: str | None = None,
) -> StepOutcome:
    """What a step has come to. `begun`: when, by the monotonic clock; without it no time counts. Others as in `StepOutcome`."""
    return StepOutcome(
        is_done=blocked is None,
        blocked=blocked,
        did_restart=did_restart,
        seconds=time.monotonic() - begun if begun is not None else 0.0,
        attempt=activity.info().attempt,
        changes=changes,
        hold_because=hold_because,
    )


def outcome_of_all(each: Sequence[CompanionOutcome], seconds: float, leadership: str = "") -> StepOutcome:
    """What a step of several nodes has come to. `each`: in the step's order, the first is the step's own node."""
    return StepOutcome(
        **each[0].model_dump(exclude={"node_id"}),
        seconds=seconds,
        attempt=activity.info().attempt,
        companions=tuple(each[1:]),
        leadership=leadership,
    )


async def ensure_sole_leader(request: AssessRequest | StepRequest, seen: Observation, ledger: Ledger) -> None:
    """Raise where another installation of Keeperless, with a Temporal and a ledger of its own, leads the same cluster. Inside
    one, Temporal's id of the workflow and the ledger's generation let one migration lead; between two only marks on nodes tell.

    It leads where a migration that this ledger does not know has marked a node since this one began, or was resumed last: who
    resumes has seen to it. On the way back nothing is asked: half of it is the worst place to rest.
    """
    others = {view.id: view.mark for view in seen.nodes if view.mark is not None and _is_anothers(view.mark, request)}
    record = await ledger.migration(request.migration_id) if others and request.revert is None else None
    if record is None:
        return
    since = record.started_at or record.created_at
    newer = {node_id: mark for node_id, mark in others.items() if mark.marked_at is not None and mark.marked_at > since}
    resumed_at = await _resumed_at(request.migration_id, ledger) if newer else None
    for node_id, mark in newer.items():
        is_known = resumed_at is not None and mark.marked_at is not None and mark.marked_at <= resumed_at
        if is_known or await ledger.migration(_owner_of(mark)) is not None:
            continue
        at, owner = mark.marked_at, _owner_of(mark)
        raise Unsafe(f"node {node_id} was marked at {at:%H:%M:%S} UTC by migration {owner}, {LED_TWICE}")


def _is_anothers(mark: RollMark, request: AssessRequest | StepRequest) -> bool:
    return mark.marked_at is not None and _owner_of(mark) != request.migration_id


def _owner_of(mark: RollMark) -> str:
    return mark.step_id.partition("/")[0]


async def _resumed_at(migration_id: str, ledger: Ledger) -> datetime | None:
    commands = await ledger.commands(migration_id)
    return max((c.at for c in commands if c.kind is CommandKind.RESUME and c.refused_because is None), default=None)
