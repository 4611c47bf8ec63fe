"""`provision_controller`: controllers that did not exist: file, storage and process of each. Safe to run any number of times.

    1. look again: the fence holds, and fresh decisions are this very step  (else: blocked, nothing touched)
    2. nobody serves in its place; its storage is its own, or empty, empty only where it has never run; and what lies in the
       place of its file is the file                                        (else: an error, nothing touched)
    3. its configuration management is paused, and proven to be (`configuration_management`)    (else: blocked, nothing written)
    4. archive the file, write the mark, then the file; one that is there stays only if our mark tells its bytes
    5. format the storage, unless it is formatted for this cluster and this node
    6. start the process, unless it runs
    7. wait until it answers, and a while for the quorum's first records; the quorum's readiness is the next decision's business
    8. note that it has run; set the mark to proven, if it holds the lock of its own log directory

All controllers of a step are taken through these lines together: one look allows all of them; each line up to 4 is done for
every one before the next line begins for any, so one that is refused keeps all the others from being written; from 5 on each
goes on beside the others. What fails at one of them then does not keep the others from being started.

Every line looks first, so a retry goes on where the last attempt died, and so does another migration after it. A retry that
finds the mark of this very step finishes whoever has it, and leaves the others alone: they are decided again. If none has it,
nothing was written, and it begins with 1. Two attempts may run at once, where a worker was paused: so a look that has grown
old allows no mark, and whoever finishes finds its own mark once more before it writes.

Storage that holds anything else is never touched: the preflight refuses it, and step 2 looks once more. What is archived is the
controller's original: should somebody take its migration flag before the end, it comes back from there.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from temporalio import activity

from activities.claims import cluster_to_change, ensure_not_superseded
from activities.concurrently import all_of
from activities.heartbeat import heartbeating
from activities.last_words import told_last, why_failed
from activities.looking import LastLook, answer_or_silence, outcome, outcome_of_all
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
from activities.on_node.try_java import OWN
from activities.ports.nodes import FileContent
from activities.ports.ports import Ports
from activities.rolling.configuration_management import pauses_of, why_not_paused
from activities.rolling.marking import Target
from activities.rolling.own_data import OwnData, own_data
from activities.rolling.processes import ensure_nobody_serves
from activities.rolling.roll import OLD, is_old, look_again
from domain.checks.check import SUPPORTED_RELEASE
from domain.cluster import BrokerSpec, ControllerSpec, Role
from domain.configuration.properties import ENCODING, parse
from domain.contracts import CompanionOutcome, StepOutcome, StepRequest
from domain.decisions import Step
from domain.errors import Permanent, Transient, Unsafe
from domain.health.liveness import is_known_to_have_run
from domain.observed.observation import MigrationGauge, NodeDisk, RollMark, StorageState
from domain.records import ClusterRecord
from domain.zk_to_kraft.node_config import controller_file
from domain.zk_to_kraft.steps import ZkActivity
from domain.zk_to_kraft.wanted_file import is_in_first_stage

FORMAT_TIMEOUT = timedelta(minutes=2)
"""A JVM start and a few small files; minutes only on a starved machine."""
LOOK_SECONDS = 0.2
LOOKS_FOR_RECORDS = 75
"""How often a controller that answers is asked for the quorum's first records. Elections take a second or two."""
LOST_FIRST_ELECTION = "Should not have ZK migrations enabled on a cluster running metadata.version 3.0-IV1"
"""A controller ends with this if it loses the lead before its first records are committed, and is elected again: it takes the
log for that of an old cluster (3.9.2, seen: LogReplayTracker keeps what was never committed). A new process reads it again.
"""
STARTED_TWICE = "it ended after its first election, as Kafka 3.9 can when the lead changes then, and was started again"

LEFT_OUT = "this step was cut off before this controller was begun: those begun are finished, and this one is decided again"


@dataclass(frozen=True)
class _Made:
    """A controller that may be written. `file`: what it is to have. `source`: the broker's file that it was made of."""

    target: Target
    spec: ControllerSpec
    file: FileContent
    source: FileContent


@dataclass(frozen=True)
class _Created:
    """`why_not`: it is not proven to run on its own data."""

    why_not: str | None
    changes: tuple[str, ...]


class Provisioning:
    """The activity that creates controllers."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    @activity.defn(name=ZkActivity.PROVISION_CONTROLLER)
    async def provision_controller(self, request: StepRequest) -> StepOutcome:
        """Bring controllers from nothing to running processes, as the module's docstring says."""
        async with heartbeating():
            begun = time.monotonic()
            await ensure_not_superseded(request, self._ports)
            cluster = await cluster_to_change(request, self._ports)
            controllers = [next(c for c in cluster.spec.controllers if c.id == node_id) for node_id in request.step.nodes]
            targets = [Target(cluster, one, self._ports.drivers.driver(one)) for one in controllers]
            marks = await all_of(*(answer_or_silence(read_mark(t.driver, t.node.properties_file)) for t in targets))
            found = [(target, spec, mark) for target, spec, (mark, _) in zip(targets, controllers, marks, strict=True)]
            left = [one for one in found if one[2] is not None and one[2].step_id == request.step_id]
            looked_at = None
            if not left:
                look, looked_at = await self._look(request, marks)
                if look.why_not is not None:
                    return outcome(look.why_not)
            made, blocked = await self._prepare(request, cluster, left or found)
            if blocked is not None:
                return outcome(blocked)
            written = await all_of(*(self._write_file(request, one, looked_at) for one in made))
            ready = [(one, mark) for one, mark in zip(made, written, strict=True) if mark is not None]
            if not ready:
                return outcome(OLD)
            created = await all_of(*(self._create(request, one, mark) for one, mark in ready))
            of_each = {one.spec.id: what for (one, _), what in zip(ready, created, strict=True)}
            return _outcome(request.step, of_each, time.monotonic() - begun)

    async def _look(self, request: StepRequest, marks: Sequence[tuple[RollMark | None, str]]) -> tuple[LastLook, float]:
        """Whether the step may be taken. A controller whose mark is not known may have been begun already."""
        silent = next((why for _, why in marks if why), None)
        return (LastLook(silent), 0.0) if silent else await look_again(request, self._ports)

    async def _prepare(
        self, request: StepRequest, cluster: ClusterRecord, found: Sequence[tuple[Target, ControllerSpec, RollMark | None]]
    ) -> tuple[list[_Made], str | None]:
        """What would be written, and why it may not be. No file is written before all nodes have been asked."""
        await all_of(*(self._ensure_free(target, spec, mark) for target, spec, mark in found))
        source = await self._source(cluster.spec.brokers[0])
        made = await all_of(*(self._make(request, target, spec, source) for target, spec, _ in found))
        whys = await all_of(*(why_not_paused(request, target, source, self._ports, is_new=True) for target, _, _ in found))
        return made, next((why for why in whys if why is not None), None)

    async def _ensure_free(self, target: Target, controller: ControllerSpec, mark: RollMark | None) -> None:
        await ensure_nobody_serves(controller, target.name, target.driver, self._ports.metrics)
        _ensure_not_lost(controller, mark, await self._storage(target, controller))

    async def _create(self, request: StepRequest, made: _Made, mark: RollMark) -> _Created:
        """From the written file to the proof."""
        target, driver = made.target, made.target.driver
        await self._format(made)
        await ensure_not_superseded(request, self._ports)
        await driver.start()
        data = await self._proof(request, target)
        process = await driver.process()
        if process.is_running:
            await ensure_not_superseded(request, self._ports)
            proven = {"is_proven": True, "proven_identity": process.identity} if data.why_not is None else {}
            noted = mark.model_copy(update={"has_run": True, **proven})
            await write_mark(driver, target.node.properties_file, noted, made.source)
        return _Created(data.why_not, (*await pauses_of(request, target), *filter(None, [data.note])))

    async def _proof(self, request: StepRequest, target: Target) -> OwnData:
        """Wait until the new process answers, and holds the locks of its own log directories: why not, at the deadline.

        Its metrics agent answers before Kafka has opened anything.
        """
        begun, note, left = time.monotonic(), "", LOOKS_FOR_RECORDS
        why = f"{target.name} was started and does not answer: not observed yet"
        while (passed := time.monotonic() - begun) < request.policy.restart_deadline.total_seconds():
            if not (await target.driver.process()).is_running:
                words = await told_last(target.driver, timedelta(seconds=passed))
                if LOST_FIRST_ELECTION not in words or note:
                    return OwnData(f"{target.name} does not run after its start. {words}")
                await ensure_not_superseded(request, self._ports)
                await target.driver.start()
                note = STARTED_TWICE
            try:
                gauges = await self._ports.metrics.read(target.node.metrics)
                if left and gauges.migration_gauge in {None, MigrationGauge.BOOTING}:
                    left = left - 1 if passed < request.policy.restart_deadline.total_seconds() / 2 else 0
                    why = f"{target.name} answers, and the quorum has no records yet"
                else:
                    data = await own_data(request, target)
                    if data.why_not is None:
                        return replace(data, note="; ".join(filter(None, [data.note, note])))
                    why = data.why_not
            except Transient as error:
                why = f"{target.name} was started and does not answer: {error}"
            await asyncio.sleep(min(LOOK_SECONDS, request.policy.poll_interval.total_seconds()))
        return OwnData(why)

    async def _make(self, request: StepRequest, target: Target, controller: ControllerSpec, source: FileContent) -> _Made:
        """The file that a controller is to have: the one that is there, if it is ours. Changes nothing."""
        driver, path = target.driver, controller.properties_file
        found, left = await driver.read_file(path), await read_mark(driver, path)
        if found is not None and left is not None and _is_as_made(found, left):
            file = found
            if left.step_id == request.step_id:
                return _Made(target, controller, file, source)
        else:
            text = await self._text(target, controller, source.content.decode(ENCODING))
            file = FileContent(text.encode(ENCODING), source.mode, source.uid, source.gid)
        _ensure_no_other(path, found, file)
        await self._ensure_own(target, controller, file)
        return _Made(target, controller, file, source)

    async def _write_file(self, request: StepRequest, made: _Made, looked_at: float | None) -> RollMark | None:
        """Write the controller's file, unless it is there; its mark. `None`: the look that allows it has grown old.

        `looked_at`: as of `look_again`; `None`: another attempt at this step has written the mark.
        """
        driver, path = made.target.driver, made.spec.properties_file
        found, left = await driver.read_file(path), await read_mark(driver, path)
        is_begun = left is not None and left.step_id == request.step_id
        if found is not None and left is not None and is_begun and _is_as_made(found, left):
            return left
        if looked_at is None and not is_begun:
            raise Transient(f"{made.target.name}: another step continued while this one was paused; {path} was not written")
        _ensure_no_other(path, found, made.file)
        await ensure_not_superseded(request, self._ports)
        # The mark before the file: a file without it is somebody else's, and the preflight would refuse what we had begun.
        original = await archive_original(driver, path, made.file)
        mark = _mark_of(request, (await driver.process()).last_identity, original)
        if looked_at is not None and is_old(looked_at):
            return None
        await write_mark(driver, path, mark, made.file)
        if found is None:
            await ensure_not_superseded(request, self._ports)
            await driver.write_file(path, made.file)
        return mark

    async def _ensure_own(self, target: Target, controller: ControllerSpec, file: FileContent) -> None:
        """A base file that was copied from a broker may name the broker's directories: the way back would wipe them."""
        paths, cluster_id = storage_in(file.content.decode(ENCODING), controller).log_dirs, target.cluster.spec.cluster_id
        found = [await look_at_log_dir(target.driver, path, cluster_id, controller.id) for path in paths]
        foreign = [log_dir.path for log_dir in found if log_dir.state is StorageState.FOREIGN]
        if foreign:
            raise Unsafe(
                f"controller-{controller.id}: its file would name {', '.join(foreign)}, which holds data that is not this "
                f"controller's. Nothing was written. Correct {controller.base_properties or 'log_dirs'}."
            )

    async def _text(self, target: Target, controller: ControllerSpec, source: str) -> str:
        base = None
        if controller.base_properties is not None:
            file = await target.driver.read_file(controller.base_properties)
            if file is None:
                raise Permanent(f"base_properties {controller.base_properties} does not exist on controller {controller.id}")
            base = file.content.decode(ENCODING)
        return controller_file(target.cluster.spec, controller, base, source)

    async def _source(self, broker: BrokerSpec) -> FileContent:
        """A broker's file as it was before any migration: as it is, or as it is archived where the broker has gone on."""
        driver, path = self._ports.drivers.driver(broker), broker.properties_file
        file = await driver.read_file(path)
        if file is None:
            raise Unsafe(f"{path} of broker-{broker.id} does not exist. Restore it.")
        if is_in_first_stage(file.content.decode(ENCODING), Role.BROKER):
            return file
        return await read_original(driver, path, await read_mark(driver, path)) or file

    async def _storage(self, target: Target, controller: ControllerSpec) -> NodeDisk:
        """What it has on disk, if that can be used."""
        path, cluster_id = controller.properties_file, target.cluster.spec.cluster_id
        disk = await look_at_disk(target.driver, path, controller.log_dirs, cluster_id, controller.id)
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

    async def _format(self, made: _Made) -> None:
        """Format empty storage for this cluster and node, at the brokers' protocol version, with Kafka's own tool."""
        target, controller = made.target, made.spec
        disk = await self._storage(target, controller)
        if all(d.state is StorageState.OURS for d in disk.log_dirs):
            return
        release = parse(made.source.content.decode(ENCODING)).get("inter.broker.protocol.version", SUPPORTED_RELEASE)
        for log_dir in controller.log_dirs:
            await target.driver.make_dir(log_dir)
        arguments = [
            controller.java,
            *OWN,
            "-cp",
            controller.class_path,
            "kafka.tools.StorageTool",
            "format",
            "--ignore-formatted",
            f"--cluster-id={target.cluster.spec.cluster_id}",  # One word: an id may begin with a dash.
            "--config",
            controller.properties_file,
            "--release-version",
            release,
        ]
        done = await target.driver.run(arguments, controller.environment, FORMAT_TIMEOUT)
        if done.exit_code != 0:
            raise Unsafe(f"controller-{controller.id}: kafka-storage format failed: {why_failed(done)}")


def _outcome(step: Step, created: Mapping[int, _Created], seconds: float) -> StepOutcome:
    """What became of each. One that is not among the created was to go along, and has not been touched since."""
    each = [
        CompanionOutcome(
            node_id=node_id,
            is_done=one is not None and one.why_not is None,
            blocked=one.why_not if one is not None else LEFT_OUT,
            changes=one.changes if one is not None else (),
        )
        for node_id in step.nodes
        for one in [created.get(node_id)]
    ]
    return outcome_of_all(each, seconds)


def _ensure_no_other(path: str, found: FileContent | None, file: FileContent) -> None:
    if found is not None and found.content != file.content:
        raise Unsafe(f"{path} exists with other content. It is not overwritten. Move it away, or name it as base_properties.")


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
