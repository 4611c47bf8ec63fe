"""The way back, before it is taken: told as a preview or as a runbook, and accepted once, against ledger and cluster.

Nothing here changes anything. An accepted rollback becomes a `RevertOrder`, which carries all that the way back needs of the
ledger: from then on its steps go through while that is down.
"""

import asyncio
from collections.abc import Sequence

from temporalio import activity

from activities.claims import ensure_not_superseded, registered
from activities.heartbeat import heartbeating
from activities.looking import look_and_decide
from activities.node_files import sha256_of
from activities.observing.observe import observe
from activities.ports.ports import Ports
from activities.sessions import session
from activities.zk_to_kraft.poison import unelectable
from activities.zk_to_kraft.refused_writes import told, writing_of_leader
from activities.zk_to_kraft.suspects import strays_in_log
from activities.zk_to_kraft.window.partition_states import PartitionStates
from domain.cluster import ControllerSpec, NodeSpec, original_path
from domain.configuration.properties import ENCODING
from domain.contracts import ActivityName, AssessRequest, RevertOrder, RollbackAnswer, RollbackRequest
from domain.decisions import Revert
from domain.drift.report import CheckName, DriftReport
from domain.errors import KeeperlessError
from domain.health.quorum import quorum_leader
from domain.observed.observation import Observation, Suspect
from domain.questions import PreviewRequest, RollbackPreview, Runbook
from domain.records import ClusterRecord, Command, CommandKind
from domain.zk_to_kraft.causes.failed_writes import offsets_of
from domain.zk_to_kraft.preview import Files, NodeFile, preview_of, why_no_way_back
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.runbook.whole import runbook_of

LOG_SECONDS = 8.0
"""For what the quorum's log has and ZooKeeper cannot hold. Some megabytes are read in a second."""
LOG = "the quorum's log"


class Previewing:
    """Activities that tell what the way back would be, and one that lets it begin."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    @activity.defn(name=ActivityName.PREVIEW)
    async def preview_rollback(self, request: PreviewRequest) -> RollbackPreview:
        """What a rollback would do, from a fresh look. For people."""
        async with heartbeating():
            cluster = await registered(request.cluster, self._ports)
            observation = await observe(cluster, self._ports)
            files = await read_files(cluster, observation, self._ports)
            suspects, (strays, unread) = await self._unelectable(cluster), await self._strays(observation, cluster)
            reports, (refused, untold) = await self._newest_reports(cluster), await self._refused(observation, cluster, strays)
            seen = preview_of(observation, cluster.spec, request.policy, files, reports, suspects, strays, refused)
            return seen.model_copy(update={"unknown": (*seen.unknown, *unread, *untold)})

    @activity.defn(name=ActivityName.RUNBOOK)
    async def write_runbook(self, request: PreviewRequest) -> Runbook:
        """The manual steps from a fresh look. For people."""
        async with heartbeating():
            cluster = await registered(request.cluster, self._ports)
            observation = await observe(cluster, self._ports)
            files = await read_files(cluster, observation, self._ports)
            epoch = await largest_partition_epoch(cluster, self._ports)
            return runbook_of(observation, cluster.spec, request.policy, files, epoch)

    @activity.defn(name=ActivityName.ACCEPT_ROLLBACK)
    async def accept_rollback(self, request: RollbackRequest) -> RollbackAnswer:
        """Verify a rollback, once. The same question has the same answer as long as nothing material changes."""
        async with heartbeating():
            claim = AssessRequest(migration_id=request.migration_id, cluster=request.cluster, generation=request.generation)
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
            migration_id=request.migration_id, cluster=request.cluster, generation=request.generation, policy=request.policy
        )
        for _ in range(request.policy.stable_samples):
            await asyncio.sleep(request.policy.poll_interval.total_seconds())
            assessment, _, _ = await look_and_decide(look, self._ports)
            if not isinstance(assessment.decision, Revert):
                return RollbackAnswer(refused_because="a further look does not ask for the way back any more")
        return RollbackAnswer(order=RevertOrder(command_id=None, because=request.because, cluster=cluster))

    async def _judge(self, request: RollbackRequest, command: Command, cluster: ClusterRecord) -> RollbackAnswer:
        """Against what is seen now. Where nothing is left to undo the way back is at its end at once: that is no refusal."""
        observation = await observe(cluster, self._ports)
        situation = situation_of(observation, cluster.spec, request.policy)
        why_not = why_no_way_back(observation, situation, cluster.spec)
        if why_not:
            return RollbackAnswer(refused_because=why_not)
        files = await read_files(cluster, observation, self._ports)
        reports, (strays, _) = await self._newest_reports(cluster), await self._strays(observation, cluster)
        refused, _ = await self._refused(observation, cluster, strays)
        preview = preview_of(observation, cluster.spec, request.policy, files, reports, strays=strays, refused=refused)
        why_not = why_not_accepted(command, preview)
        if why_not:
            return RollbackAnswer(refused_because=why_not)
        losses = dict.fromkeys([*(loss.name for loss in preview.losses), *command.accept_loss])
        because = command.reason or request.because
        order = RevertOrder(command_id=command.id, because=because, accepted_losses=tuple(losses), cluster=cluster)
        return RollbackAnswer(order=order)

    async def _unelectable(self, cluster: ClusterRecord) -> Sequence[Suspect]:
        """Nothing where ZooKeeper does not answer: then there is no way back either, and the preview says so."""
        try:
            async with session(self._ports.zookeepers, cluster) as tree:
                return await unelectable(tree)
        except KeeperlessError as error:
            activity.logger.warning("what an election reads could not be read: %s", error)
            return ()

    async def _strays(self, observation: Observation, cluster: ClusterRecord) -> tuple[Sequence[Suspect], tuple[str, ...]]:
        """And what could not be read for it, or not in time. The way back is open then too: its window reads the logs, and
        blocks where they have what nobody has accepted as lost."""
        if quorum_leader(observation, cluster.spec) is None:
            return (), ()
        try:
            async with asyncio.timeout(LOG_SECONDS):
                return await strays_in_log(observation, cluster, self._ports.drivers), ()
        except (KeeperlessError, TimeoutError) as error:
            activity.logger.warning("the quorum's log could not be read: %r", error)
            return (), (LOG,)

    async def _refused(
        self, observation: Observation, cluster: ClusterRecord, strays: Sequence[Suspect]
    ) -> tuple[str, tuple[str, ...]]:
        """What was not written to ZooKeeper; and what could not be read for it. The window asks once more."""
        leader = quorum_leader(observation, cluster.spec)
        name = cluster.spec.node_name(leader.id) if leader is not None else ""
        try:
            found = await writing_of_leader(observation, cluster, self._ports.drivers, offsets_of(strays))
        except KeeperlessError as error:
            activity.logger.warning("the log of %s could not be read: %r", name, error)
            return "", (f"the log of {name}",)
        unread = () if found.is_whole else (f"the log of {name} since it began to write to ZooKeeper",)
        return (told(found.refused, name) if found.refused is not None else ""), unread

    async def _newest_reports(self, cluster: ClusterRecord) -> list[DriftReport]:
        return await self._ports.ledger.newest_reports(cluster.spec.name, CheckName.METADATA)


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
        return f"it would lose what was not accepted: {', '.join(unnamed)}; {now}: look at it, and ask again with it"
    return f"what the rollback would do has changed since it was looked at; {now}: look at it, and ask again with it"


async def read_files(cluster: ClusterRecord, observation: Observation, ports: Ports) -> Files:
    """Every node's file as it is, and what is archived of it. A node that does not answer is left out: it is unknown."""
    found: dict[int, NodeFile] = {}
    for node in cluster.spec.nodes:
        disk = observation.node(node.id).disk
        if disk is None:
            continue
        original = disk.file.original_sha256 if disk.file is not None else None
        try:
            found[node.id] = await _read_file(node, original, ports)
        except KeeperlessError as error:
            activity.logger.warning("the files of %s could not be read: %s", cluster.spec.node_name(node.id), error)
    return found


async def _read_file(node: NodeSpec, original: str | None, ports: Ports) -> NodeFile:
    driver = ports.drivers.driver(node)

    async def text(path: str | None) -> str | None:
        file = await driver.read_file(path) if path is not None else None
        return file.content.decode(ENCODING) if file is not None else None

    current = await text(node.properties_file)
    own = original or sha256_of((current or "").encode(ENCODING))
    archive = original_path(node.properties_file, own)
    base = node.base_properties if isinstance(node, ControllerSpec) else None
    return NodeFile(current, await text(archive) if original is not None else None, archive, await text(base))


async def largest_partition_epoch(cluster: ClusterRecord, ports: Ports) -> int | None:
    """The largest controller epoch in the states of all partitions. `None`: it could not be read."""
    try:
        tree = await ports.zookeepers.connect(cluster)
    except KeeperlessError:
        return None
    try:
        return await PartitionStates(tree).survey()
    except KeeperlessError as error:
        activity.logger.warning("the partitions' epochs could not be read: %s", error)
        return None
    finally:
        await tree.close()
