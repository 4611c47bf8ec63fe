"""`adopt_message`: an order that reached Temporal without passing through the API."""

from datetime import UTC, datetime

from temporalio import activity

from activities.ports.ports import Ports
from domain.contracts import ActivityName, AdoptRequest
from domain.records import Command, CommandKind

COUNTING_ANYWAY = frozenset({CommandKind.HOLD, CommandKind.REJECT})
"""Stopping is always allowed."""


class Adopting:
    """Makes a command of a bare message, where the server's settings allow that, and says why not where they do not.

    Whether it makes sense by then, the workflow knows: where not, it says so with a second request.
    """

    def __init__(self, ports: Ports, are_signals_trusted: bool) -> None:
        self._ports = ports
        self._are_signals_trusted = are_signals_trusted

    @activity.defn(name=ActivityName.ADOPT)
    async def adopt_message(self, request: AdoptRequest) -> str | None:
        """Write the command; why it does not count, or `None` when it does. Same id, same command.

        It comes from the workflow, so nobody has to deliver it there.
        """
        at = datetime.now(UTC)
        is_counting = self._are_signals_trusted or request.kind in COUNTING_ANYWAY
        refused = None if is_counting else f"signal_approvals is off: {request.kind} through the API"
        stored = await self._ports.ledger.add_command(
            Command(
                id=request.command_id,
                migration_id=request.migration_id,
                kind=request.kind,
                gate=request.gate,
                evidence_hash=request.evidence_hash,
                preview_hash=request.preview_hash,
                accept_loss=request.accept_loss,
                reason=request.reason,
                by=request.by or "unknown (temporal signal)",
                via="temporal-signal",
                at=at,
                delivered_at=at if is_counting else None,
                refused_because=refused,
            )
        )
        if request.refused_because is not None:
            await self._ports.ledger.mark_refused(request.command_id, request.refused_because)
        return stored.refused_because or request.refused_because
