"""What people ask of a running migration: decide at a gate, hold, resume."""

from datetime import UTC, datetime

import uuid_utils
from fastapi import APIRouter, Request, Response

from api.answers import CommandAnswer
from api.audit import PRINCIPAL, call_of
from api.commands import CommandStatus, status_of
from api.links import migration_url
from api.problems import Problem, ProblemKind
from api.requests import ApprovalRequest, HoldRequest, NamedMigration
from api.routes.migrations import existing
from api.wiring import UsableWiring
from domain.decisions import GateName
from domain.records import Command, CommandKind
from ledger.errors import MigrationHasEnded

VIA = "api"

router = APIRouter(prefix="/migrations/{migration_id}", tags=["commands"])


@router.post(
    "/approvals",
    status_code=201,
    responses={202: {"model": CommandAnswer, "description": "No worker answered in time. It is delivered later."}},
)
async def decide(
    migration_id: NamedMigration, asked: ApprovalRequest, request: Request, response: Response, wiring: UsableWiring
) -> CommandAnswer:
    """Approve or reject at an open gate, on the evidence with this hash."""
    command = _command(str(migration_id), asked.decision.command, asked.reason, asked.gate, asked.evidence_hash)
    answer = await _submit(command, request, wiring)
    if answer.status is CommandStatus.PENDING:
        response.status_code = 202
    return answer


@router.post("/hold", status_code=202)
async def hold(migration_id: NamedMigration, asked: HoldRequest, request: Request, wiring: UsableWiring) -> CommandAnswer:
    """Finish the node in hand, start no other."""
    return await _submit(_command(str(migration_id), CommandKind.HOLD, asked.reason), request, wiring)


@router.post("/resume", status_code=202)
async def resume(migration_id: NamedMigration, asked: HoldRequest, request: Request, wiring: UsableWiring) -> CommandAnswer:
    """Go on after a hold."""
    return await _submit(_command(str(migration_id), CommandKind.RESUME, asked.reason), request, wiring)


async def _submit(command: Command, request: Request, wiring: UsableWiring) -> CommandAnswer:
    record = await existing(wiring, command.migration_id)
    call = call_of(request)
    call.cluster, call.migration_id = record.cluster, record.id
    if record.ended_at is not None:
        raise MigrationHasEnded(record.id, record.progress.state)
    call.command_id = command.id
    stored = await wiring.courier.submit(command)
    if status_of(stored) is CommandStatus.REFUSED:
        raise Problem(
            ProblemKind.COMMAND_REFUSED,
            stored.refused_because or "",
            command_id=stored.id,
            links={"migration": migration_url(record.id)},
        )
    return CommandAnswer.of(stored)


def _command(
    migration_id: str, kind: CommandKind, reason: str, gate: GateName | None = None, evidence_hash: str | None = None
) -> Command:
    return Command(
        id=str(uuid_utils.uuid7()),
        migration_id=migration_id,
        kind=kind,
        gate=gate,
        evidence_hash=evidence_hash,
        reason=reason,
        by=PRINCIPAL,
        via=VIA,
        at=datetime.now(UTC),
    )
