"""The way back, before it is taken: told as a preview or as a runbook, and accepted once, against ledger and cluster.

Nothing here changes anything. An accepted rollback becomes a `RevertOrder`, which carries all that the way back needs of the
ledger: from then on its steps go through while that is down.
"""

import asyncio

from temporalio import activity

from activities.claims import ensure_not_superseded, registered
from activities.heartbeat import heartbeating
from activities.looking import look_and_decide
from activities.ports.ports import Ports
from domain.contracts import ActivityName, AssessRequest, RevertOrder, RollbackAnswer, RollbackRequest
from domain.decisions import Revert
from domain.questions import PreviewRequest, RollbackPreview, Runbook
from domain.records import ClusterRecord, Command, CommandKind


class Previewing:
    """Activities that tell what the way back would be, and one that lets it begin."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    @activity.defn(name=ActivityName.PREVIEW)
    async def preview_rollback(self, request: PreviewRequest) -> RollbackPreview:
        """What a rollback would do, from a fresh look. For people."""
        async with heartbeating():
            cluster = await registered(request.cluster, self._ports)
            kind = self._ports.kinds[request.kind]
            return await kind.preview(cluster, self._ports, request.policy, for_people=True)

    @activity.defn(name=ActivityName.RUNBOOK)
    async def write_runbook(self, request: PreviewRequest) -> Runbook:
        """The manual steps from a fresh look. For people."""
        async with heartbeating():
            cluster = await registered(request.cluster, self._ports)
            return await self._ports.kinds[request.kind].runbook(cluster, self._ports, request.policy)

    @activity.defn(name=ActivityName.ACCEPT_ROLLBACK)
    async def accept_rollback(self, request: RollbackRequest) -> RollbackAnswer:
        """Verify a rollback, once. The same question has the same answer as long as nothing material changes."""
        async with heartbeating():
            claim = AssessRequest(
                kind=request.kind, migration_id=request.migration_id, cluster=request.cluster, generation=request.generation
            )
            await ensure_not_superseded(claim, self._ports)
            cluster = await registered(request.cluster, self._ports)
            if request.command_id is None:
                return await self._judge_ourselves(request, cluster)
            command = await self._ports.ledger.command(request.command_id)
            if command is None or not _is_rollback_of(command, request.migration_id):
                why = f"the ledger has no rollback of this migration under the id {request.command_id}"
                return RollbackAnswer(refused_because=why, is_known=False)
            return await self._judge(request, command, cluster)

    async def _judge_ourselves(self, request: RollbackRequest, cluster: ClusterRecord) -> RollbackAnswer:
        """Nobody asked, and there is no turning round again: only when several looks in a row say so as well."""
        look = AssessRequest(
            migration_id=request.migration_id,
            kind=request.kind,
            cluster=request.cluster,
            generation=request.generation,
            policy=request.policy,
        )
        for _ in range(request.policy.stable_samples):
            await asyncio.sleep(request.policy.poll_interval.total_seconds())
            assessment, _, _ = await look_and_decide(look, self._ports)
            if not isinstance(assessment.decision, Revert):
                return RollbackAnswer(refused_because="a further observation no longer asks for the rollback")
        return RollbackAnswer(order=RevertOrder(command_id=None, because=request.because, cluster=cluster))

    async def _judge(self, request: RollbackRequest, command: Command, cluster: ClusterRecord) -> RollbackAnswer:
        """Against what is seen now. Where nothing is left to undo the way back is at its end at once: that is no refusal."""
        kind = self._ports.kinds[request.kind]
        preview = await kind.preview(cluster, self._ports, request.policy, for_people=False)
        if not preview.is_possible:
            return RollbackAnswer(refused_because=preview.why_not)
        why_not = why_not_accepted(command, preview)
        if why_not:
            return RollbackAnswer(refused_because=why_not)
        losses = dict.fromkeys([*(loss.name for loss in preview.losses), *command.accept_loss])
        because = command.reason or request.because
        order = RevertOrder(command_id=command.id, because=because, accepted_losses=tuple(losses), cluster=cluster)
        return RollbackAnswer(order=order)


def _is_rollback_of(command: Command, migration_id: str) -> bool:
    return command.kind is CommandKind.ROLLBACK and command.migration_id == migration_id and command.refused_because is None


def why_not_accepted(command: Command, preview: RollbackPreview) -> str:
    """What the command lacks, and what to do; empty when it is bound to this very preview, or to none and names every loss.

    A hash that does not fit is no consent to what is seen now, even where nothing would be lost.
    """
    if command.preview_hash == preview.preview_hash:
        return ""
    unnamed = [loss.name for loss in preview.losses if loss.name not in command.accept_loss]
    if not unnamed and command.preview_hash is None:
        return ""
    now = f"the preview's hash is now {preview.preview_hash}"
    if unnamed:
        return f"it would lose what was not accepted: {', '.join(unnamed)}; {now}: read it, and ask again with it"
    return f"what the rollback would do has changed since the preview; {now}: read it, and ask again with it"
