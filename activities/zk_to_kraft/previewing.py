"""The rollback to ZooKeeper, from a fresh look: told as a preview or as a runbook. Changes nothing."""

import asyncio
from collections.abc import Sequence

from temporalio import activity

from activities.observing.node_texts import read_files
from activities.observing.observe import observe_for
from activities.ports.ports import Ports
from activities.ports.zookeeper import session
from activities.zk_to_kraft.poison import unelectable
from activities.zk_to_kraft.refused_writes import told, writing_of_leader
from activities.zk_to_kraft.suspects import strays_in_log
from activities.zk_to_kraft.window.partition_states import PartitionStates
from domain.drift.report import CheckName, DriftReport
from domain.errors import KeeperlessError
from domain.health.quorum import quorum_leader
from domain.observed.observation import Observation, Suspect
from domain.policy import MigrationPolicy
from domain.questions import RollbackPreview, Runbook
from domain.records import ClusterRecord
from domain.zk_to_kraft.causes.failed_writes import offsets_of
from domain.zk_to_kraft.preview import preview_of
from domain.zk_to_kraft.runbook.whole import runbook_of
from domain.zk_to_kraft.steps import KIND

LOG_SECONDS = 8.0
"""For what the quorum's log has and ZooKeeper cannot hold. Some megabytes are read in a second."""
LOG = "the quorum's log"


async def preview(cluster: ClusterRecord, ports: Ports, policy: MigrationPolicy, *, for_people: bool) -> RollbackPreview:
    """What a rollback would do. Only people need to know which znodes would keep every broker from being the controller, and
    what a rollback would lose that is not possible."""
    observation = await observe_for(KIND, cluster, ports)
    if not for_people and not (refusal := preview_of(observation, cluster.spec, policy, {})).is_possible:
        return refusal
    files = await read_files(cluster, observation, ports)
    suspects = await _unelectable(cluster, ports) if for_people else ()
    strays, unread = await _strays(observation, cluster, ports)
    reports, (refused, untold) = await _newest_reports(cluster, ports), await _refused(observation, cluster, strays, ports)
    seen = preview_of(observation, cluster.spec, policy, files, reports, suspects, strays, refused)
    return seen.model_copy(update={"unknown": (*seen.unknown, *unread, *untold)})


async def runbook(cluster: ClusterRecord, ports: Ports, policy: MigrationPolicy) -> Runbook:
    """The manual steps, forward and back."""
    observation = await observe_for(KIND, cluster, ports)
    files = await read_files(cluster, observation, ports)
    epoch = await largest_partition_epoch(cluster, ports)
    return runbook_of(observation, cluster.spec, policy, files, epoch)


async def _unelectable(cluster: ClusterRecord, ports: Ports) -> Sequence[Suspect]:
    """Nothing where ZooKeeper does not answer: then there is no way back either, and the preview says so."""
    try:
        async with session(ports.zookeepers, cluster) as tree:
            return await unelectable(tree)
    except KeeperlessError as error:
        activity.logger.warning("what an election reads could not be read: %s", error)
        return ()


async def _strays(observation: Observation, cluster: ClusterRecord, ports: Ports) -> tuple[Sequence[Suspect], tuple[str, ...]]:
    """And what could not be read for it, or not in time. The way back is open then too: its window reads the logs, and
    blocks where they have what nobody has accepted as lost."""
    if quorum_leader(observation, cluster.spec) is None:
        return (), ()
    try:
        async with asyncio.timeout(LOG_SECONDS):
            return await strays_in_log(observation, cluster, ports.drivers), ()
    except (KeeperlessError, TimeoutError) as error:
        activity.logger.warning("the quorum's log could not be read: %r", error)
        return (), (LOG,)


async def _refused(
    observation: Observation, cluster: ClusterRecord, strays: Sequence[Suspect], ports: Ports
) -> tuple[str, tuple[str, ...]]:
    """What was not written to ZooKeeper; and what could not be read for it. The window asks once more."""
    leader = quorum_leader(observation, cluster.spec)
    name = cluster.spec.node_name(leader.id) if leader is not None else ""
    try:
        found = await writing_of_leader(observation, cluster, ports.drivers, offsets_of(strays))
    except KeeperlessError as error:
        activity.logger.warning("the log of %s could not be read: %r", name, error)
        return "", (f"the log of {name}",)
    unread = () if found.is_whole else (f"the log of {name} since it began to write to ZooKeeper",)
    return (told(found.refused, name) if found.refused is not None else ""), unread


async def _newest_reports(cluster: ClusterRecord, ports: Ports) -> list[DriftReport]:
    return await ports.ledger.newest_reports(cluster.spec.name, CheckName.METADATA)


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
