"""What the ledger says right now: approvals, holds, rollbacks, reports."""

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime

from temporalio import activity

from activities.ports.ports import Ports
from activities.ports.stores import Ledger
from domain.approvals import is_held, is_rollback_asked, state_of
from domain.approvals import seen as approval_seen
from domain.contracts import AssessRequest, StepRequest
from domain.decisions import Label
from domain.drift.report import CheckName
from domain.errors import Permanent, Transient
from domain.records import ApprovalState, Command, CommandKind
from domain.rulings import GivenApproval, ReportsOnCopy, Ruling


async def ruling_of(request: AssessRequest | StepRequest, ports: Ports) -> Ruling:
    """What the ledger knows of the approvals that the workflow accepted, and the newest reports. A message alone moves nothing.

    Drifts are counted last: one that is published and repaired meanwhile is seen in their number, if not in the reports.

    An accepted way back was verified when it was accepted: its steps do not wait for a ledger that is down.
    """
    if request.revert is not None:
        return Ruling(is_held=await _is_way_back_held(request, ports), accepted_losses=request.revert.accepted_losses)
    now = datetime.now(UTC)
    commands = {gate: await _approval(request.migration_id, gate, id_, ports) for gate, id_ in request.approvals.items()}
    final = ports.kinds[request.kind].kind.final_gates
    approvals = {gate: _given(command, request, final, now) for gate, command in commands.items() if command is not None}
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
        raise Permanent(
            f"the ledger has no plan {plan_id}: it was not restored with the rest. Make a new plan, and start again"
        )
    return plan.basis


async def copy_reports(ledger: Ledger, cluster: str, migration_id: str | None) -> ReportsOnCopy:
    """Without a migration: what others have kept and found."""
    others = ReportsOnCopy(
        others_kept=tuple(await ledger.newest_reports(cluster, CheckName.BEFORE_COPY)),
        others_copies=tuple(await ledger.newest_reports(cluster, CheckName.COPY)),
    )
    if migration_id is None:
        return others
    kept = await ledger.newest_report(migration_id, CheckName.BEFORE_COPY)
    return replace(others, kept=kept, copy=await ledger.newest_report(migration_id, CheckName.COPY))


async def _approval(migration_id: str, gate: Label, command_id: str, ports: Ports) -> Command | None:
    """The command, if it is an approval of this gate of this migration."""
    command = await ports.ledger.command(command_id)
    if command is None or command.migration_id != migration_id or command.gate != gate:
        return None
    return command if command.kind is CommandKind.APPROVE else None


def _given(
    command: Command, request: AssessRequest | StepRequest, final: Collection[str], now: datetime
) -> GivenApproval | None:
    """The approval, as far as it counts. One that is consumed counts for its section: that of the end lasts, a failover's is
    the attempt that consumed it."""
    state = state_of(command, now)
    if state is ApprovalState.ARMED:
        return GivenApproval(evidence_hash=command.evidence_hash)
    is_ours = isinstance(request, StepRequest) and command.consumed_by == request.step_id
    is_of_section = is_ours if command.gate not in final else state in {ApprovalState.CONSUMED, ApprovalState.DONE}
    if command.consumed_at is None or not is_of_section:
        return None
    return GivenApproval(evidence_hash=command.evidence_hash, is_consumed=True)


async def _is_way_back_held(request: AssessRequest | StepRequest, ports: Ports) -> bool:
    if isinstance(request, AssessRequest):
        return request.is_held
    try:
        return is_held(await ports.ledger.commands(request.migration_id), request.applied_commands)
    except Transient as error:
        activity.logger.warning("a step of the rollback is taken although the ledger does not answer: %s", error)
        return False
