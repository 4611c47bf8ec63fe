"""`provision_controller`: a controller that did not exist: its file, its storage, its process.

    1. look again: the fence holds, and a fresh decision is this very step   (else: blocked, nothing touched)
    2. write the mark, then the file; it may already be there only if its bytes are just those
    3. format the storage, unless it is formatted for this cluster and this node
    4. start the process, unless it runs
    5. wait until it answers; the quorum's own readiness is the next decision's business

Every line looks first, so a retry goes on where the last attempt died. Storage that holds anything else is never
touched: the preflight refuses it, and step 3 looks once more.
"""

import asyncio
import time
from datetime import timedelta

from temporalio import activity

from activities.assessing import cluster_of, ensure_not_superseded, why_not_this_step
from activities.heartbeat import heartbeating
from activities.node_files import look_at_disk, read_mark, sha256_of, write_mark
from activities.observe import Ports
from activities.ports import FileContent, NodeDriver
from domain.cluster import BrokerSpec, ControllerSpec
from domain.contracts import ActivityName, StepOutcome, StepRequest
from domain.errors import Permanent, Transient, Unsafe
from domain.observation import RollMark, StorageState
from domain.properties import ENCODING, parse
from domain.records import ClusterRecord
from domain.zk_to_kraft.node_config import controller_file
from domain.zk_to_kraft.preflight import SUPPORTED_RELEASE

FORMAT_TIMEOUT = timedelta(minutes=2)
"""A JVM start and a few small files; minutes only on a starved machine."""

LOG_LINES = 12
"""Lines of a dead node's output that are shown to people."""


class Provisioning:
    """The activity that creates controllers."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    @activity.defn(name=ActivityName.PROVISION_CONTROLLER)
    async def provision_controller(self, request: StepRequest) -> StepOutcome:
        """Bring one controller from nothing to a running process, as the module's docstring says."""
        async with heartbeating():
            begun = time.monotonic()
            await ensure_not_superseded(request, self._ports)
            cluster = await cluster_of(request, self._ports)
            controller = next(c for c in cluster.spec.controllers if c.id == request.step.node_id)
            driver = self._ports.drivers.driver(controller)
            mark = await read_mark(driver, controller.properties_file)
            if mark is None or mark.step_id != request.step_id:
                blocked = await why_not_this_step(request, self._ports)
                if blocked is not None:
                    return StepOutcome(is_done=False, blocked=blocked, attempt=activity.info().attempt)
            release = await self._write_file(request, cluster, controller, driver)
            await self._format(cluster, controller, driver, release)
            await ensure_not_superseded(request, self._ports)
            await driver.start()
            blocked = await self._why_silent(request, controller, driver)
            return StepOutcome(
                is_done=blocked is None,
                blocked=blocked,
                seconds=time.monotonic() - begun,
                attempt=activity.info().attempt,
            )

    async def _why_silent(self, request: StepRequest, controller: ControllerSpec, driver: NodeDriver) -> str | None:
        """Wait until the new process answers: why it does not, or `None` when it does."""
        deadline = time.monotonic() + request.policy.restart_deadline.total_seconds()
        why = "no look yet"
        while time.monotonic() < deadline:
            if not (await driver.process()).is_running:
                lines = await driver.output_tail(LOG_LINES)
                return f"controller-{controller.id} does not run after its start. It printed last:\n" + "\n".join(lines)
            try:
                await self._ports.metrics.read(controller.metrics)
            except Transient as error:
                why = str(error)
                await asyncio.sleep(request.policy.poll_interval.total_seconds())
            else:
                return None
        return f"controller-{controller.id} was started and does not answer: {why}"

    async def _write_file(
        self, request: StepRequest, cluster: ClusterRecord, controller: ControllerSpec, driver: NodeDriver
    ) -> str:
        """Write the controller's file; the release to format for, which is the brokers' protocol version."""
        source = await self._broker_file(cluster.spec.brokers[0])
        text = await self._text(cluster, controller, driver, source)
        found = await driver.read_file(controller.properties_file)
        wanted = text.encode(ENCODING)
        if found is not None and found.content != wanted:
            raise Unsafe(
                f"{controller.properties_file} exists with other content (sha256 {sha256_of(found.content)[:12]}…). "
                "It is not overwritten. Move it away, or name it as base_properties."
            )
        file = FileContent(wanted, source.mode, source.uid, source.gid)
        sha256 = sha256_of(wanted)
        mark = RollMark(
            step_id=request.step_id,
            generation=request.generation,
            stage=request.step.stage,
            before_identity=None,
            before_sha256=sha256,
            written_sha256=sha256,
        )
        # The mark first: a file without it is somebody else's, and the preflight would refuse what we had begun.
        await ensure_not_superseded(request, self._ports)
        await write_mark(driver, controller.properties_file, mark, file)
        if found is None:
            await driver.write_file(controller.properties_file, file)
        return parse(source.content.decode(ENCODING)).get("inter.broker.protocol.version", SUPPORTED_RELEASE)

    async def _text(self, cluster: ClusterRecord, controller: ControllerSpec, driver: NodeDriver, source: FileContent) -> str:
        base = None
        if controller.base_properties is not None:
            file = await driver.read_file(controller.base_properties)
            if file is None:
                raise Permanent(f"base_properties {controller.base_properties} does not exist on controller {controller.id}")
            base = file.content.decode(ENCODING)
        return controller_file(cluster.spec, controller, base, source.content.decode(ENCODING))

    async def _broker_file(self, broker: BrokerSpec) -> FileContent:
        file = await self._ports.drivers.driver(broker).read_file(broker.properties_file)
        if file is None:
            raise Unsafe(f"{broker.properties_file} of broker-{broker.id} does not exist. Restore it.")
        return file

    async def _format(self, cluster: ClusterRecord, controller: ControllerSpec, driver: NodeDriver, release: str) -> None:
        """Format empty storage for this cluster and node with Kafka's own tool."""
        disk = await look_at_disk(
            driver, controller.properties_file, controller.log_dirs, cluster.spec.cluster_id, controller.id
        )
        foreign = [d.path for d in disk.log_dirs if d.state is StorageState.FOREIGN]
        if foreign:
            raise Unsafe(f"controller-{controller.id}: {', '.join(foreign)} holds data that is not this controller's")
        if all(d.state is StorageState.OURS for d in disk.log_dirs):
            return
        for log_dir in controller.log_dirs:
            await driver.make_dir(log_dir)
        arguments = [
            java(controller.environment),
            "-cp",
            f"{controller.kafka_home}/libs/*",
            "kafka.tools.StorageTool",
            "format",
            "--ignore-formatted",
            "--cluster-id",
            cluster.spec.cluster_id,
            "--config",
            controller.properties_file,
            "--release-version",
            release,
        ]
        done = await driver.run(arguments, controller.environment, FORMAT_TIMEOUT)
        if done.exit_code != 0:
            raise Unsafe(f"controller-{controller.id}: kafka-storage format failed: {done.errors[-500:] or done.output[-500:]}")


def java(environment: dict[str, str]) -> str:
    """The JVM that the node itself would use."""
    home = environment.get("JAVA_HOME")
    return f"{home}/bin/java" if home else "java"
