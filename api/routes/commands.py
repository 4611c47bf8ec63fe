"""What people ask of a running migration: decide at a gate, hold, resume, go back; and what became of it."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request, Response

from api.answers.links import migration_url
from api.answers.problems import FieldError, Problem, ProblemKind, invalid_request
from api.answers.resources import CommandAnswer, CommandList
from api.people.access import forbidden, is_own_request, may, principal_of
from api.people.idempotency import IdempotentRoute
from api.requests import ApprovalRequest, GateDecision, HoldRequest, NamedMigration, ResumeRequest, RollbackRequest
from api.routes.migrations import existing
from api.running.audit import Call, call_of
from api.running.commands import CommandStatus, status_of
from api.wiring import UsableWiring, Wiring
from domain.approvals import in_state
from domain.principals import Permission, Via
from domain.records import ApprovalState, Command, CommandKind, MigrationRecord, MigrationState
from ledger.errors import MigrationHasEnded

WHAT_LEADS_BACK_FROM = {
    MigrationState.SUCCEEDED: "Once a migration has succeeded, a rollback is impossible.",
    MigrationState.REVERTED: "The cluster was rolled back: there is nothing left to do.",
    MigrationState.REFUSED: "It changed nothing, so there is nothing to undo.",
}
"""What can be done about a migration that ended like this. After the other ends the cluster may be half-way."""

router = APIRouter(prefix="/migrations/{migration_id}", tags=["commands"], route_class=IdempotentRoute)


@router.post(
    "/approvals",
    status_code=201,
    dependencies=[may(Permission.DECIDE)],
    responses={202: {"model": CommandAnswer, "description": "No worker answered in time. It is delivered later."}},
)
async def decide(
    migration_id: NamedMigration, asked: ApprovalRequest, request: Request, response: Response, wiring: UsableWiring
) -> CommandAnswer:
    """Approve or reject at an open gate, on the evidence with this hash. A rejection withdraws an approval that is armed: the
    approver's own, or any where an admin rejects. `break_glass`: an admin approves alone, whoever asked."""
    await _ensure_may_decide(migration_id, asked, request, wiring)
    command = _command(
        request,
        migration_id,
        asked.decision.command,
        asked.reason,
        gate=asked.gate,
        evidence_hash=asked.evidence_hash,
        break_glass=asked.break_glass,
    )
    answer = await _submit(command, request, wiring)
    if answer.status is CommandStatus.PENDING:
        response.status_code = 202
    return answer


async def _ensure_may_decide(migration_id: UUID, asked: ApprovalRequest, request: Request, wiring: Wiring) -> None:
    """Four eyes. The ledger checks the same when an approval is written and consumed; here a refusal becomes a 403."""
    principal, record = principal_of(request), await existing(wiring, migration_id)
    _about(call_of(request), record)
    if principal.via is Via.LOCAL or (principal.is_admin and (asked.break_glass or asked.decision is GateDecision.REJECT)):
        return
    if asked.break_glass:
        raise forbidden("Only an admin may break glass.")
    if asked.decision is GateDecision.APPROVE and is_own_request(record.requested_by, principal):
        raise Problem(
            ProblemKind.OWN_REQUEST,
            f"{principal.name} asked for this migration, so another person has to approve it. In an emergency an admin may "
            'approve it alone, with "break_glass": true and the reason, which the audit log keeps.',
        )
    opened = await wiring.ledger.open_approvals([record.id])
    approvers = [one.by for one in opened if one.gate == asked.gate and one.consumed_at is None]
    if asked.decision is GateDecision.REJECT and approvers and principal.name not in approvers:
        raise forbidden(f"Only {approvers[-1]} or an admin may withdraw this approval. To stop the migration, hold it.")


@router.post("/hold", status_code=202, dependencies=[may(Permission.STOP)])
async def hold(migration_id: NamedMigration, asked: HoldRequest, request: Request, wiring: UsableWiring) -> CommandAnswer:
    """Finish the node in hand, start no other. It voids every approval that is armed. Within an irreversible section it takes
    effect after that: then `takes_effect_after` names its gate."""
    return await _submit(_command(request, migration_id, CommandKind.HOLD, asked.reason), request, wiring)


@router.post("/resume", status_code=202, dependencies=[may(Permission.OPERATE)])
async def resume(migration_id: NamedMigration, asked: ResumeRequest, request: Request, wiring: UsableWiring) -> CommandAnswer:
    """Go on after a hold. Where an approval is armed, `begin` has to name its gate: the resume starts what cannot be undone."""
    return await _submit(_command(request, migration_id, CommandKind.RESUME, asked.reason, gate=asked.begin), request, wiring)


@router.post("/rollback", status_code=202, dependencies=[may(Permission.OPERATE)])
async def rollback(
    migration_id: NamedMigration, asked: RollbackRequest, request: Request, wiring: UsableWiring
) -> CommandAnswer:
    """Roll the cluster back. The migration looks at the cluster before it agrees, which may take longer than
    this call: then the command is `pending`, and `GET /migrations/{id}/commands` tells the answer when it is there."""
    await _ensure_named(asked, migration_id, wiring)
    bound_to = {"preview_hash": asked.preview_hash, "accept_loss": tuple(asked.accept_loss)}
    return await _submit(_command(request, migration_id, CommandKind.ROLLBACK, asked.reason, **bound_to), request, wiring)


async def _ensure_named(asked: RollbackRequest, migration_id: UUID, wiring: Wiring) -> None:
    """Who accepts what no preview could name has mistyped it, or not looked."""
    record = await existing(wiring, str(migration_id))
    cluster = await wiring.ledger.cluster(record.cluster) if asked.accept_loss and record.ended_at is None else None
    if cluster is None:
        return
    kind = wiring.kinds[record.kind]
    known = kind.loss_names(kind.seen_by(record, cluster.spec))
    wrong = [number for number, name in enumerate(asked.accept_loss) if name not in known]
    if wrong:
        forms = ", ".join(kind.loss_forms)
        message = f"No loss of this cluster has this name. GET /migrations/{{id}}/rollback-preview names them, out of {forms}"
        raise invalid_request([FieldError(where="body", field=f"accept_loss.{n}", message=message) for n in wrong])


@router.get("/commands")
async def list_commands(migration_id: NamedMigration, wiring: UsableWiring) -> CommandList:
    """What was asked of a migration, and what became of it, oldest first."""
    record = await existing(wiring, migration_id)
    return CommandList(items=[CommandAnswer.of(command) for command in await wiring.ledger.commands(record.id)])


async def _submit(command: Command, request: Request, wiring: UsableWiring) -> CommandAnswer:
    record = await existing(wiring, command.migration_id)
    call = call_of(request)
    _about(call, record)
    if record.ended_at is not None:
        if command.kind is CommandKind.ROLLBACK:
            raise _too_late(record)
        raise MigrationHasEnded(record.id, record.progress.state)
    call.command_id = command.id
    stored = await wiring.courier.submit(record, command, call.origin)
    if status_of(stored) is CommandStatus.REFUSED:
        call.is_told = True
        raise await _refusal(stored, wiring)
    return CommandAnswer.of(stored)


def _about(call: Call, record: MigrationRecord) -> None:
    call.cluster, call.migration_id = record.cluster, record.id


async def _refusal(refused: Command, wiring: Wiring) -> Problem:
    kind = ProblemKind.ROLLBACK_REFUSED if refused.kind is CommandKind.ROLLBACK else ProblemKind.COMMAND_REFUSED
    members: dict[str, Any] = {"command_id": refused.id, "links": {"migration": migration_url(refused.migration_id)}}
    if refused.kind is CommandKind.RESUME:
        opened = await wiring.ledger.open_approvals([refused.migration_id])
        armed = in_state(opened, ApprovalState.ARMED, datetime.now(UTC))
        if armed and armed[-1].gate is not refused.gate:
            kind, members = ProblemKind.BEGIN_NOT_NAMED, members | {"gate": armed[-1].gate}
    return Problem(kind, refused.refused_because or "", **members)


def _too_late(record: MigrationRecord) -> Problem:
    """A migration that has ended leads nowhere, and says what does."""
    what_to_do = WHAT_LEADS_BACK_FROM.get(record.progress.state) or (
        f'Its cluster is as it was left. To roll it back: POST /migrations with {{"cluster": "{record.cluster}", "kind": '
        f'"{record.kind}", "hold": true}}, read its rollback-preview, and POST to its rollback.'
    )
    return Problem(ProblemKind.MIGRATION_ENDED, f"It ended as {record.progress.state}. {what_to_do}")


def _command(request: Request, migration_id: UUID, kind: CommandKind, reason: str, **bound_to: Any) -> Command:  # noqa: ANN401 - of `Command`
    call = call_of(request)
    return Command(
        id=call.order_id,
        migration_id=str(migration_id),
        kind=kind,
        reason=reason,
        by=call.by,
        via=call.via,
        at=datetime.now(UTC),
        **bound_to,
    )
