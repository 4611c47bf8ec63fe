"""`roll_node`: one node, from its look before to its proof afterwards. One activity, safe to run any number of times.

    1. look again: the fence holds, and fresh decisions are this very step    (else: blocked, nothing touched)
    2. archive the original, then write the mark: what ran, what the file is and will be
    3. consume the approval, if the step is irreversible                      (just before the write that it allows)
    4. write the file                                                         (only just before the restart)
    5. stop the process that the mark names, and no other
    6. start, if nothing has been started since
    7. prove: expected mode, registered, unfenced, in sync, k looks in a row
    8. set the mark to proven

A node that was restarted from this very file before and came up otherwise is not restarted again.

Two attempts may run at once: a worker that was paused goes on beside the one that replaced it. So the mark is looked for once
more after the process, a look that has grown old allows nothing, and only the process that the mark names is ever stopped:
whoever comes second finds the first's mark or the first's process, and restarts nothing. Every write and every signal asks for
the fence right before.

A retry finds the mark with its own step id and goes on where the files and the process say it stopped. Step 1 is repeated as
long as the node still runs as it was found: it can wait. Once it has been stopped it must be finished, whatever else has
happened. Whoever dies between two lines leaves: before 2, nothing; before 4, an unused mark, and perhaps an approval that is
marked as consumed and counts as before; before 5, a new file under an old process; before 6, a stopped node whose pid file
still names the old process; before 8, a node that runs and proves itself again.
"""

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from temporalio import activity

from activities.assessing import (
    cluster_of,
    ensure_not_superseded,
    ensure_unchanged,
    why_not_this_step,
)
from activities.heartbeat import heartbeating
from activities.node_files import archive_original, read_mark, sha256_of, write_mark
from activities.observe import Ports, observe
from activities.ports import FileContent, NodeDriver
from domain.cluster import NodeSpec, Role
from domain.contracts import ActivityName, StepOutcome, StepRequest
from domain.errors import Transient, Unsafe
from domain.observation import Process, RollMark
from domain.properties import ENCODING, changes
from domain.records import ClusterRecord
from domain.zk_to_kraft.node_config import node_file
from domain.zk_to_kraft.proof import why_not_proven


@dataclass(frozen=True)
class Target:
    """The node that a step rolls, and everything needed to reach it."""

    cluster: ClusterRecord
    node: NodeSpec
    driver: NodeDriver

    @property
    def name(self) -> str:
        return self.cluster.spec.node_name(self.node.id)


class Rolling:
    """The activity that restarts nodes."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    @activity.defn(name=ActivityName.ROLL_NODE)
    async def roll_node(self, request: StepRequest) -> StepOutcome:
        """Bring one node to a stage, as the module's docstring says."""
        async with heartbeating():
            begun = time.monotonic()
            await ensure_not_superseded(request, self._ports)
            cluster = await cluster_of(request, self._ports)
            node = cluster.spec.node(request.step.node)
            target = Target(cluster, node, self._ports.drivers.driver(node))
            mark = await read_mark(target.driver, node.properties_file)
            if mark is None or not await self._has_left(request, target, mark):
                blocked = await why_not_this_step(request, self._ports)
                if blocked is not None:
                    return StepOutcome(is_done=False, blocked=blocked, attempt=activity.info().attempt)
                looked_at = seconds_since_boot()
                mark = await self._begin(request, target)
                await self._write(request, target, mark)
                if seconds_since_boot() - looked_at > MAX_AGE_OF_A_LOOK:
                    old = f"the look before the restart is older than {MAX_AGE_OF_A_LOOK:g} s: look again"
                    return StepOutcome(is_done=False, blocked=old, attempt=activity.info().attempt)
            else:
                await self._write(request, target, mark)
            did_restart = await self._restart(request, target, mark)
            blocked = await self._prove(request, target, mark)
            return StepOutcome(
                is_done=blocked is None,
                blocked=blocked,
                did_restart=did_restart,
                seconds=time.monotonic() - begun,
                attempt=activity.info().attempt,
                changes=mark.changes,
            )

    async def _has_left(self, request: StepRequest, target: Target, mark: RollMark) -> bool:
        """An attempt at this very step has stopped the node already: it must be finished, whatever else has happened since.

        A node that still runs as it was found can wait: it is looked at again, however much was written for it.
        """
        return mark.step_id == request.step_id and (await target.driver.process()).identity != mark.before_identity

    async def _begin(self, request: StepRequest, target: Target) -> RollMark:
        """Consume the approval, archive, and mark. What is there may be the mark of an earlier roll, finished or not."""
        process = await target.driver.process()
        file = await self._file(target)
        left = await read_mark(target.driver, target.node.properties_file)
        if left is not None and left.step_id == request.step_id:
            return left
        _ensure_not_tried_before(target, left, request, process, file)
        is_ours_to_finish = (
            left is not None
            and not left.is_proven
            and left.stage == request.step.stage
            and left.before_identity == process.last_identity
        )
        await ensure_not_superseded(request, self._ports)
        before_sha256 = left.before_sha256 if left is not None and is_ours_to_finish else sha256_of(file.content)
        original = left.original_sha256 if left is not None else None
        is_theirs = target.cluster.spec.role(target.node.id) is Role.BROKER
        if original is None and is_theirs:
            original = await archive_original(target.driver, target.node.properties_file, file)
        wanted = self._wanted(request, target, file)
        mark = RollMark(
            step_id=request.step_id,
            generation=request.generation,
            stage=request.step.stage,
            before_identity=process.identity or process.last_identity,
            before_sha256=before_sha256,
            written_sha256=sha256_of(wanted),
            original_sha256=original,
            changes=changes(file.content.decode(ENCODING), wanted.decode(ENCODING)),
        )
        await write_mark(target.driver, target.node.properties_file, mark, file)
        return mark

    async def _write(self, request: StepRequest, target: Target, mark: RollMark) -> None:
        """Write the wanted file unless it is there."""
        file = await self._file(target)
        found = sha256_of(file.content)
        ensure_unchanged(target.node.properties_file, found, {mark.before_sha256, mark.written_sha256})
        if found == mark.written_sha256:
            return
        wanted = self._wanted(request, target, file)
        await ensure_not_superseded(request, self._ports)
        if request.step.gate is not None:
            await self._ports.ledger.consume_command(request.approvals[request.step.gate], datetime.now(UTC))
        await target.driver.write_file(target.node.properties_file, FileContent(wanted, file.mode, file.uid, file.gid))

    async def _restart(self, request: StepRequest, target: Target, mark: RollMark) -> bool:
        """Stop the process that the mark names, start a new one. True when a new process runs because of this roll."""
        await ensure_not_superseded(request, self._ports)
        process = await target.driver.process()
        if process.identity is not None and process.identity == mark.before_identity:
            await self._stop(target, process.identity, request.policy.stop_deadline)
            await self._ensure_not_superseded_for_sure(request)
            process = await target.driver.process()
        if not process.is_running and process.last_identity == mark.before_identity:
            await target.driver.start()
            return True
        return process.identity != mark.before_identity

    async def _stop(self, target: Target, identity: str, deadline: timedelta) -> None:
        begun = time.monotonic()
        try:
            await target.driver.stop(identity, deadline)
        except Transient as error:
            if time.monotonic() - begun < deadline.total_seconds():
                raise
            raise Unsafe(f"{target.name} does not stop, and is never killed: {error}. Stop it, then resume.") from error

    async def _ensure_not_superseded_for_sure(self, request: StepRequest) -> None:
        """The fence again, but a ledger that is silent does not keep a node down that we have just stopped."""
        try:
            await ensure_not_superseded(request, self._ports)
        except Transient as error:
            activity.logger.warning("starting a stopped node although the ledger does not answer: %s", error)

    async def _prove(self, request: StepRequest, target: Target, mark: RollMark) -> str | None:
        """Look until the node is proven k times in a row, it has died, or the deadline is over: why it is not proven."""
        good, why = 0, ""
        deadline = time.monotonic() + request.policy.restart_deadline.total_seconds()
        while time.monotonic() < deadline:
            observation = await observe(target.cluster, self._ports)
            process = observation.node(target.node.id).process
            if process is not None and not process.is_running:
                return await self._epitaph(target)
            why = why_not_proven(observation, target.cluster.spec, request.policy, target.node.id, request.step.stage)
            good = good + 1 if not why else 0
            if good >= request.policy.stable_samples:
                proven = mark.model_copy(update={"is_proven": True})
                await ensure_not_superseded(request, self._ports)
                await write_mark(target.driver, target.node.properties_file, proven, await self._file(target))
                return None
            await asyncio.sleep(request.policy.poll_interval.total_seconds())
        return f"{target.name} was restarted and is not proven well: {why}"

    async def _epitaph(self, target: Target) -> str:
        lines = await target.driver.output_tail(LOG_LINES)
        return f"{target.name} does not run after its restart. It printed last:\n" + "\n".join(lines)

    async def _file(self, target: Target) -> FileContent:
        file = await target.driver.read_file(target.node.properties_file)
        if file is None:
            raise Unsafe(f"{target.name}: {target.node.properties_file} does not exist any more. Restore it.")
        return file

    def _wanted(self, request: StepRequest, target: Target, file: FileContent) -> bytes:
        text = file.content.decode(ENCODING)
        return node_file(text, target.cluster.spec, target.node, request.step.stage).encode(ENCODING)


def _ensure_not_tried_before(
    target: Target, left: RollMark | None, request: StepRequest, process: Process, file: FileContent
) -> None:
    """Raise where a roll to this stage wrote this file, restarted the node, and the node still does not run in that stage."""
    if (
        left is not None
        and not left.is_proven
        and left.stage == request.step.stage
        and left.written_sha256 == sha256_of(file.content)
        and process.is_running
        and process.identity != left.before_identity
    ):
        raise Unsafe(
            f"{target.name} was restarted once from {target.node.properties_file}, which is in stage {left.stage}, and runs "
            "otherwise. It is not restarted again. Make sure that its start command reads this file, and restart it yourself."
        )


def seconds_since_boot() -> float:
    """A clock that goes on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


MAX_AGE_OF_A_LOOK = 20.0
"""Seconds between a look and the stop that it allows: as long as a worker may be silent before another takes over. A worker
that was paused in between must not act on what it saw before."""

LOG_LINES = 12
"""Lines of a dead node's output that are shown to people."""
