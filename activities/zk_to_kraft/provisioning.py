"""`provision_controller`: a controller that did not exist: its file, its storage, its process.

    1. look again: the fence holds, and a fresh decision is this very step   (else: blocked, nothing touched)
    2. nobody serves in its place, and its storage is its own, or empty      (else: an error, nothing touched);
       empty only where it has never run
    3. archive the file, write the mark, then the file; one that is there stays only if our mark tells its bytes;
       before that its configuration management is paused (`configuration_management`)   (else: blocked, nothing written)
    4. format the storage, unless it is formatted for this cluster and this node
    5. start the process, unless it runs
    6. wait until it answers; the quorum's own readiness is the next decision's business
    7. note that it has run; set the mark to proven, if it holds the lock of its own log directory

Every line looks first, so a retry goes on where the last attempt died, and so does another migration after it. Storage that
holds anything else is never touched: the preflight refuses it, and step 2 looks once more. What is archived is the
controller's original: should somebody take its migration flag before the end, it comes back from there.
"""

import asyncio
import time
from datetime import UTC, datetime, timedelta

from temporalio import activity

from activities.claims import cluster_to_change, ensure_not_superseded
from activities.heartbeat import heartbeating
from activities.last_words import told_last, why_failed
from activities.looking import answer_or_silence, outcome, why_not_this_step
from activities.node_files import (
    archive_original,
    look_at_disk,
    look_at_log_dir,
    read_mark,
    read_original,
    sha256_of,
    storage_in,
    write_mark,
)
from activities.ports.nodes import FileContent, NodeDriver
from activities.ports.ports import Ports
from activities.rolling.configuration_management import pauses_of, why_not_paused
from activities.rolling.marking import Target
from activities.rolling.own_data import OwnData, own_data
from activities.rolling.processes import ensure_nobody_serves
from domain.checks.check import SUPPORTED_RELEASE
from domain.cluster import BrokerSpec, ControllerSpec, Role
from domain.configuration.properties import ENCODING, parse
from domain.contracts import StepOutcome, StepRequest
from domain.errors import Permanent, Transient, Unsafe
from domain.health.liveness import is_known_to_have_run
from domain.observed.observation import NodeDisk, RollMark, StorageState
from domain.records import ClusterRecord
from domain.zk_to_kraft.node_config import controller_file
from domain.zk_to_kraft.steps import ZkActivity
from domain.zk_to_kraft.wanted_file import is_in_first_stage

FORMAT_TIMEOUT = timedelta(minutes=2)
"""A JVM start and a few small files; minutes only on a starved machine."""


class Provisioning:
    """The activity that creates controllers."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    @activity.defn(name=ZkActivity.PROVISION_CONTROLLER)
    async def provision_controller(self, request: StepRequest) -> StepOutcome:
        """Bring one controller from nothing to a running process, as the module's docstring says."""
        async with heartbeating():
            begun = time.monotonic()
            await ensure_not_superseded(request, self._ports)
            cluster = await cluster_to_change(request, self._ports)
            controller = next(c for c in cluster.spec.controllers if c.id == request.step.node_id)
            driver = self._ports.drivers.driver(controller)
            mark, silent = await answer_or_silence(read_mark(driver, controller.properties_file))
            if silent:
                return outcome(silent)
            if mark is None or mark.step_id != request.step_id:
                blocked = await why_not_this_step(request, self._ports)
                if blocked is not None:
                    return outcome(blocked)
            await ensure_nobody_serves(controller, cluster.spec.node_name(controller.id), driver, self._ports.metrics)
            _ensure_not_lost(controller, mark, await self._storage(cluster, controller, driver))
            source = await self._source(cluster.spec.brokers[0])
            target = Target(cluster, controller, driver)
            blocked = await why_not_paused(request, target, source, self._ports, is_new=True)
            if blocked is not None:
                return outcome(blocked)
            mark = await self._write_file(request, cluster, controller, driver, source)
            await self._format(cluster, controller, driver, source)
            await ensure_not_superseded(request, self._ports)
            await driver.start()
            data = await self._proof(request, target)
            process = await driver.process()
            if process.is_running:
                await ensure_not_superseded(request, self._ports)
                proven = {"is_proven": True, "proven_identity": process.identity} if data.why_not is None else {}
                await write_mark(
                    driver, controller.properties_file, mark.model_copy(update={"has_run": True, **proven}), source
                )
            return outcome(data.why_not, begun, (*await pauses_of(request, target), *filter(None, [data.note])))

    async def _proof(self, request: StepRequest, target: Target) -> OwnData:
        """Wait until the new process answers, and holds the locks of its own log directories: why not, at the deadline.

        Its metrics agent answers before Kafka has opened anything.
        """
        begun = time.monotonic()
        why = f"{target.name} was started and does not answer: not observed yet"
        while time.monotonic() < begun + request.policy.restart_deadline.total_seconds():
            if not (await target.driver.process()).is_running:
                age = timedelta(seconds=time.monotonic() - begun)
                return OwnData(f"{target.name} does not run after its start. {await told_last(target.driver, age)}")
            try:
                await self._ports.metrics.read(target.node.metrics)
                data = await own_data(request, target)
                if data.why_not is None:
                    return data
                why = data.why_not
            except Transient as error:
                why = f"{target.name} was started and does not answer: {error}"
            await asyncio.sleep(request.policy.poll_interval.total_seconds())
        return OwnData(why)

    async def _write_file(
        self, request: StepRequest, cluster: ClusterRecord, controller: ControllerSpec, driver: NodeDriver, source: FileContent
    ) -> RollMark:
        """Write the controller's file, unless it is there; its mark."""
        path = controller.properties_file
        found, left = await driver.read_file(path), await read_mark(driver, path)
        if found is not None and left is not None and _is_as_made(found, left):
            if left.step_id == request.step_id:
                return left
            file = found
        else:
            text = await self._text(cluster, controller, driver, source.content.decode(ENCODING))
            file = FileContent(text.encode(ENCODING), source.mode, source.uid, source.gid)
        if found is not None and found.content != file.content:
            raise Unsafe(
                f"{path} exists with other content. It is not overwritten. Move it away, or name it as base_properties."
            )
        await self._ensure_own(cluster, controller, driver, file)
        await ensure_not_superseded(request, self._ports)
        # The mark before the file: a file without it is somebody else's, and the preflight would refuse what we had begun.
        original = await archive_original(driver, path, file)
        mark = _mark_of(request, (await driver.process()).last_identity, original)
        await write_mark(driver, path, mark, file)
        if found is None:
            await ensure_not_superseded(request, self._ports)
            await driver.write_file(path, file)
        return mark

    async def _ensure_own(
        self, cluster: ClusterRecord, controller: ControllerSpec, driver: NodeDriver, file: FileContent
    ) -> None:
        """A base file that was copied from a broker may name the broker's directories: the way back would wipe them."""
        paths = storage_in(file.content.decode(ENCODING), controller).log_dirs
        found = [await look_at_log_dir(driver, path, cluster.spec.cluster_id, controller.id) for path in paths]
        foreign = [log_dir.path for log_dir in found if log_dir.state is StorageState.FOREIGN]
        if foreign:
            raise Unsafe(
                f"controller-{controller.id}: its file would name {', '.join(foreign)}, which holds data that is not this "
                f"controller's. Nothing was written. Correct {controller.base_properties or 'log_dirs'}."
            )

    async def _text(self, cluster: ClusterRecord, controller: ControllerSpec, driver: NodeDriver, source: str) -> str:
        base = None
        if controller.base_properties is not None:
            file = await driver.read_file(controller.base_properties)
            if file is None:
                raise Permanent(f"base_properties {controller.base_properties} does not exist on controller {controller.id}")
            base = file.content.decode(ENCODING)
        return controller_file(cluster.spec, controller, base, source)

    async def _source(self, broker: BrokerSpec) -> FileContent:
        """A broker's file as it was before any migration: as it is, or as it is archived where the broker has gone on."""
        driver, path = self._ports.drivers.driver(broker), broker.properties_file
        file = await driver.read_file(path)
        if file is None:
            raise Unsafe(f"{path} of broker-{broker.id} does not exist. Restore it.")
        if is_in_first_stage(file.content.decode(ENCODING), Role.BROKER):
            return file
        return await read_original(driver, path, await read_mark(driver, path)) or file

    async def _storage(self, cluster: ClusterRecord, controller: ControllerSpec, driver: NodeDriver) -> NodeDisk:
        """What it has on disk, if that can be used."""
        path, cluster_id = controller.properties_file, cluster.spec.cluster_id
        disk = await look_at_disk(driver, path, controller.log_dirs, cluster_id, controller.id)
        fenced = [d.path for d in disk.log_dirs if d.is_fenced]
        if fenced:
            raise Unsafe(
                f"controller-{controller.id}: {', '.join(fenced)} was fenced by a rollback that has not ended, so that it "
                "cannot be started. Ask for a rollback: it completes the first one and removes this storage. Then begin "
                "again."
            )
        foreign = [d for d in disk.log_dirs if d.state is StorageState.FOREIGN]
        if foreign:
            told = (f"{d.path} (cluster {d.cluster_id}, node {d.node_id})" if d.is_anothers else d.path for d in foreign)
            raise Unsafe(
                f"controller-{controller.id}: {', '.join(told)} holds data that is not this controller's, of cluster "
                f"{cluster_id}"
            )
        return disk

    async def _format(
        self, cluster: ClusterRecord, controller: ControllerSpec, driver: NodeDriver, source: FileContent
    ) -> None:
        """Format empty storage for this cluster and node, at the brokers' protocol version, with Kafka's own tool."""
        disk = await self._storage(cluster, controller, driver)
        if all(d.state is StorageState.OURS for d in disk.log_dirs):
            return
        release = parse(source.content.decode(ENCODING)).get("inter.broker.protocol.version", SUPPORTED_RELEASE)
        for log_dir in controller.log_dirs:
            await driver.make_dir(log_dir)
        arguments = [
            controller.java,
            "-cp",
            controller.class_path,
            "kafka.tools.StorageTool",
            "format",
            "--ignore-formatted",
            f"--cluster-id={cluster.spec.cluster_id}",  # One word: an id may begin with a dash.
            "--config",
            controller.properties_file,
            "--release-version",
            release,
        ]
        done = await driver.run(arguments, controller.environment, FORMAT_TIMEOUT)
        if done.exit_code != 0:
            raise Unsafe(f"controller-{controller.id}: kafka-storage format failed: {why_failed(done)}")


def _ensure_not_lost(controller: ControllerSpec, mark: RollMark | None, disk: NodeDisk) -> None:
    """A voter's log that is not there was acknowledged by it: the quorum must not take an empty one for it. Where its file is
    gone as well, a way back has removed it, by hand perhaps, and left a mark at most."""
    lost = [log_dir.path for log_dir in disk.log_dirs if log_dir.state in {StorageState.ABSENT, StorageState.EMPTY}]
    if lost and disk.file is not None and is_known_to_have_run(mark):
        raise Unsafe(
            f"controller-{controller.id} has run before, and its storage is not there: {', '.join(lost)}. It is not "
            "formatted again. Mount its volume, and start it."
        )


def _is_as_made(found: FileContent, left: RollMark) -> bool:
    """Whether a file is what we made, or what gave the flag back: then it stays, whatever the brokers' files say by now."""
    return left.written_sha256 == sha256_of(found.content) and is_in_first_stage(
        found.content.decode(ENCODING), Role.CONTROLLER
    )


def _mark_of(request: StepRequest, last_identity: str | None, original: str) -> RollMark:
    """`last_identity`: of a controller that ran here before, and was wiped. What is not started since is ours to start."""
    return RollMark(
        step_id=request.step_id,
        generation=request.generation,
        stage=request.step.stage,
        before_identity=last_identity,
        before_sha256=original,
        written_sha256=original,
        original_sha256=original,
        marked_at=datetime.now(UTC),
    )
