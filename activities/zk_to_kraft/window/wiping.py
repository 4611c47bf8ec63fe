"""`wipe_kraft`: what the quorum kept is removed, so that another migration can begin. The last step of the way back.

    1. look again: a fresh decision is this very step       (else: blocked, nothing touched)
    2. brokers: their copies of the quorum's log            (only where the broker is stopped, or runs in ZooKeeper mode)
    3. each controller: its file archived, its storage removed but for the fence, its file, the fence, our mark

A controller counts as fenced until it counts as never provisioned, whenever the worker dies: the fence goes after the file.
It is removed only if this product made it or the loss is accepted, and of its storage only what Kafka writes.
"""

import time
from collections.abc import Iterable

from temporalio import activity

from activities.claims import cluster_to_change, ensure_not_superseded
from activities.heartbeat import heartbeating
from activities.looking import answer_or_silence, outcome, why_not_this_step
from activities.node_files import (
    FENCED_META,
    META,
    METADATA_LOG,
    archive_before,
    look_at_log_dir,
    mark_path,
    read_mark,
    storage_of,
)
from activities.ports.nodes import NodeDriver
from activities.ports.ports import Ports
from activities.rolling.marking import Target
from activities.zk_to_kraft.fence import is_dead, members_of
from domain.cluster import BrokerSpec
from domain.contracts import StepOutcome, StepRequest
from domain.errors import Unsafe
from domain.records import ClusterRecord
from domain.zk_to_kraft.steps import ZkActivity

FILES_OF_A_CONTROLLER = ("bootstrap.checkpoint", "bootstrap.checkpoint.tmp", ".lock", META)
"""What Kafka writes into a controller's directory besides the log."""


class Wiping:
    """The activity that removes what a migration has left."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    @activity.defn(name=ZkActivity.WIPE)
    async def wipe_kraft(self, request: StepRequest) -> StepOutcome:
        """Remove controllers and copies of their log, as the module's docstring says."""
        async with heartbeating():
            begun = time.monotonic()
            await ensure_not_superseded(request, self._ports)
            cluster = await cluster_to_change(request, self._ports)
            found, silent = await answer_or_silence(self._remains(cluster))
            members, brokers = found or ([], [])
            if silent or members or brokers:
                blocked = silent or await why_not_this_step(request, self._ports)
                if blocked is not None:
                    return outcome(blocked)
            for broker in brokers:
                await self._wipe_broker(request, cluster, broker)
            for member in members:
                await self._wipe_controller(request, member)
            await self._remove_marks(request, cluster)
            wiped = (*_names(cluster, brokers), *(m.name for m in members))
            return outcome(None, begun, tuple(f"{name} wiped" for name in wiped))

    async def _remains(self, cluster: ClusterRecord) -> tuple[list[Target], list[BrokerSpec]]:
        """Controllers that are there, and brokers that keep a copy of the quorum's log."""
        members = await members_of(cluster, self._ports.drivers)
        return members, [broker for broker in cluster.spec.brokers if await self._logs_of(broker)]

    async def _logs_of(self, broker: BrokerSpec) -> list[str]:
        """The broker's copies of the quorum's log."""
        driver = self._ports.drivers.driver(broker)
        log_dirs = (await storage_of(driver, broker)).log_dirs
        return [f"{path}/{METADATA_LOG}" for path in log_dirs if METADATA_LOG in (await driver.list_dir(path) or ())]

    async def _wipe_broker(self, request: StepRequest, cluster: ClusterRecord, broker: BrokerSpec) -> None:
        driver = self._ports.drivers.driver(broker)
        for path in await self._logs_of(broker):
            await self._ensure_out_of_use(cluster, broker, driver)
            await ensure_not_superseded(request, self._ports)
            await driver.remove_tree(path)

    async def _ensure_out_of_use(self, cluster: ClusterRecord, broker: BrokerSpec, driver: NodeDriver) -> None:
        """A hybrid broker, and one in KRaft mode, reads and writes this log."""
        process = await driver.process()
        if not process.is_running:
            return
        metrics = await self._ports.metrics.read(broker.metrics)
        if metrics.raft_epoch is not None or metrics.broker_state is None:
            name = cluster.spec.node_name(broker.id)
            raise Unsafe(f"{name} does not run in ZooKeeper mode: its copy of the quorum's log is still in use")

    async def _wipe_controller(self, request: StepRequest, member: Target) -> None:
        """The order is the module's. A directory that only its file names goes first: without the file nobody finds it."""
        await self._ensure_may_go(request, member)
        driver, node = member.driver, member.node
        file = await driver.read_file(node.properties_file)
        for path in (await storage_of(driver, node)).log_dirs:
            await ensure_not_superseded(request, self._ports)
            await _remove_storage(driver, path)
            if path not in node.log_dirs:
                await _remove_fence(driver, path)
        if file is not None:
            await archive_before(driver, node.properties_file, file)
            await ensure_not_superseded(request, self._ports)
            await driver.remove_file(node.properties_file)
        for path in node.log_dirs:
            await _remove_fence(driver, path)

    async def _ensure_may_go(self, request: StepRequest, member: Target) -> None:
        if not await is_dead(member):
            raise Unsafe(f"{member.name} runs: it is not removed. Stop it, then resume.")
        for path in (await storage_of(member.driver, member.node)).log_dirs:
            found = await look_at_log_dir(member.driver, path, member.cluster.spec.cluster_id, member.node.id)
            if found.is_anothers:
                raise Unsafe(
                    f"{path} is named in {member.node.properties_file} of {member.name}, and belongs to node {found.node_id} "
                    f"of cluster {found.cluster_id}: nothing of it was removed. Take it out of the file, then resume."
                )
        accepted = request.revert.accepted_losses if request.revert is not None else ()
        is_ours = await read_mark(member.driver, member.node.properties_file) is not None
        loss = f"storage-of-{member.name}"
        if not is_ours and loss not in accepted:
            raise Unsafe(f"{member.name} was not made by Keeperless: it stays, unless you accept the loss {loss} by its name")

    async def _remove_marks(self, request: StepRequest, cluster: ClusterRecord) -> None:
        """Last: a mark says that a controller is ours, also to the attempt after this one."""
        for controller in cluster.spec.controllers:
            driver, mark = self._ports.drivers.driver(controller), mark_path(controller.properties_file)
            is_gone = await driver.read_file(controller.properties_file) is None
            if is_gone and await driver.read_file(mark) is not None:
                await ensure_not_superseded(request, self._ports)
                await driver.remove_file(mark)


async def _remove_storage(driver: NodeDriver, path: str) -> None:
    """All that Kafka wrote into a controller's directory, but the fence."""
    names = await driver.list_dir(path) or ()
    if METADATA_LOG in names:
        await driver.remove_tree(f"{path}/{METADATA_LOG}")
    for name in FILES_OF_A_CONTROLLER:
        if name in names:
            await driver.remove_file(f"{path}/{name}")


async def _remove_fence(driver: NodeDriver, path: str) -> None:
    if FENCED_META in (await driver.list_dir(path) or ()):
        await driver.remove_file(f"{path}/{FENCED_META}")


def _names(cluster: ClusterRecord, brokers: Iterable[BrokerSpec]) -> list[str]:
    return [f"the quorum's log on {cluster.spec.node_name(broker.id)}" for broker in brokers]
