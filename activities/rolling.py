"""`roll_node`: one node, from its look before to its proof afterwards, in both directions. Safe to run any number of times.

    1. look again: the fence holds, and fresh decisions are this very step    (else: blocked, nothing touched)
    2. archive the file, then write the mark: what ran, what the file is and will be
    3. consume the approval, if the step is irreversible                      (just before the write that it allows)
       and where the policy asks for it, begin to measure how long clients wait (`pauses`)
    4. write the file                                                         (only just before the restart)
    5. stop the process that the mark names, and no other
    6. start, if nothing has been started since
    7. prove: expected mode, registered, unfenced, in sync, k looks in a row   (given up once another node is dead)
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
still names the old process; before 8, a node that runs and proves itself again. A migration that follows one whose workflow is
gone finds the same: what it decides from there is a step of its own, with a mark that takes over what the old one knew.

On the way back only the fence asks the ledger, and takes its silence for a yes.
"""

import asyncio
import time
from datetime import UTC, datetime, timedelta

from temporalio import activity

from activities.assessing import answer_or_silence, cluster_of, ensure_not_superseded, ensure_unchanged, why_not_this_step
from activities.heartbeat import heartbeating
from activities.marking import Marked, Target, mark_roll, resume_roll
from activities.node_files import read_mark, sha256_of, write_mark
from activities.observe import Ports, observe
from activities.pauses import PauseMeter
from domain.cluster import Role
from domain.contracts import ActivityName, StepOutcome, StepRequest
from domain.decisions import WAIT_MEANS, NodeStage, WaitReason
from domain.errors import Transient, Unsafe
from domain.observation import RollMark
from domain.zk_to_kraft.proof import dead_besides, why_not_proven


class Rolling:
    """The activity that restarts nodes."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    @activity.defn(name=ActivityName.ROLL_NODE)
    async def roll_node(self, request: StepRequest) -> StepOutcome:
        """Bring one node to a stage, as the module's docstring says."""
        async with heartbeating(), PauseMeter(request, self._ports) as pause:
            begun = time.monotonic()
            await ensure_not_superseded(request, self._ports)
            cluster = await cluster_of(request, self._ports)
            node = cluster.spec.node(request.step.node)
            target = Target(cluster, node, self._ports.drivers.driver(node))
            mark, silent = await answer_or_silence(read_mark(target.driver, node.properties_file))
            if silent:
                return StepOutcome(is_done=False, blocked=silent, attempt=activity.info().attempt)
            if mark is None or not await self._has_left(request, target, mark):
                blocked, looked_at = await self._look_again(request)
                if blocked is not None:
                    return StepOutcome(is_done=False, blocked=blocked, attempt=activity.info().attempt)
                marked = await mark_roll(request, target, self._ports)
                if (unmeasured := await pause.begin(target)) is not None:
                    return StepOutcome(is_done=False, blocked=unmeasured, attempt=activity.info().attempt)
                is_written = await self._write(request, target, marked, looked_at)
                if not is_written or is_old(looked_at):
                    old = f"the look before the restart is older than {MAX_AGE_OF_A_LOOK:g} s: look again"
                    return StepOutcome(is_done=False, blocked=old, attempt=activity.info().attempt)
            else:
                marked = await resume_roll(request, target, mark, self._ports)
                await self._write(request, target, marked, None)
            did_restart = await self._restart(request, target, marked.mark)
            blocked = await self._prove(request, target, marked.mark)
            return StepOutcome(
                is_done=blocked is None,
                blocked=blocked,
                did_restart=did_restart,
                seconds=time.monotonic() - begun,
                attempt=activity.info().attempt,
                changes=marked.mark.changes,
                client_pause_seconds=pause.measured(),
                hold_because=pause.why_hold(target.name),
            )

    async def _look_again(self, request: StepRequest) -> tuple[str | None, float]:
        """Why the step may not be taken any more, and when the look that says so began: what it saw was true then."""
        blocked, looked_at = None, seconds_since_boot()
        for look in range(request.looks):
            if look:
                await asyncio.sleep(request.policy.poll_interval.total_seconds())
                looked_at = seconds_since_boot()
            blocked = await why_not_this_step(request.model_copy(update={"looks": 1}), self._ports)
            if blocked is not None:
                break
        return blocked, looked_at

    async def _has_left(self, request: StepRequest, target: Target, mark: RollMark) -> bool:
        """An attempt at this very step has stopped the node already: it must be finished, whatever else has happened since.

        A node that still runs as it was found can wait: it is looked at again, however much was written for it.
        """
        return mark.step_id == request.step_id and (await target.driver.process()).identity != mark.before_identity

    async def _write(self, request: StepRequest, target: Target, marked: Marked, looked_at: float | None) -> bool:
        """Write the wanted file unless it is there. False: the look that allows it has grown old, nothing was written.

        A worker that was paused anywhere before finds the mark of whoever has gone on in its place.
        """
        path, mark = target.node.properties_file, marked.mark
        found = sha256_of((await target.file()).content)
        ensure_unchanged(path, found, {mark.before_sha256, mark.written_sha256})
        if found == mark.written_sha256:
            return True
        await ensure_not_superseded(request, self._ports)
        if request.step.gate is not None:
            await self._ports.ledger.consume_command(request.approvals[request.step.gate], datetime.now(UTC))
        left = await read_mark(target.driver, path)
        if left is None or left.step_id != request.step_id:
            raise Transient(f"{target.name}: another roll has gone on while this one was paused; {path} was not written")
        if left.is_proven:
            return True
        if looked_at is not None and is_old(looked_at):
            return False
        await target.driver.write_file(path, marked.wanted)
        return True

    async def _restart(self, request: StepRequest, target: Target, mark: RollMark) -> bool:
        """Stop the process that the mark names, start a new one. True when a new process runs because of this roll."""
        await ensure_not_superseded(request, self._ports)
        process = await target.driver.process()
        if process.identity is not None and process.identity == mark.before_identity:
            await self._stop(request, target, process.identity)
            await self._ensure_not_superseded_for_sure(request)
            process = await target.driver.process()
        if not process.is_running and process.last_identity == mark.before_identity:
            await target.driver.start()
            return True
        return process.identity != mark.before_identity

    async def _stop(self, request: StepRequest, target: Target, identity: str) -> None:
        """Stop it cleanly. A controller is killed if that takes long, a broker never.

        As long as a controller runs without its flag, one election makes the migration final. And where ZooKeeper is lost, the
        active one never ends by itself: closing, it waits for a write whose ZooKeeper client it has closed (3.9.2, seen:
        KRaftMigrationDriver.close, KafkaZkClient.retryRequestsUntilConnected). A kill costs it nothing: a member of the quorum
        flushes its log before a record counts, and raft is made for members that vanish. A broker's clean stop moves leaders
        away and closes its logs, without which partitions wait and recovery takes minutes.
        """
        is_controller = target.cluster.spec.role(target.node.id) is Role.CONTROLLER
        patience = FLAGLESS_STOP_DEADLINE if request.step.stage is NodeStage.MIGRATION else CONTROLLER_STOP_DEADLINE
        deadline = min(request.policy.stop_deadline, patience) if is_controller else request.policy.stop_deadline
        begun = time.monotonic()
        try:
            await target.driver.stop(identity, deadline)
        except Transient as error:
            if time.monotonic() - begun < deadline.total_seconds():
                raise
            if not is_controller:
                raise Unsafe(f"{target.name} does not stop, and is never killed: {error}. Stop it, then resume.") from error
            await ensure_not_superseded(request, self._ports)
            await target.driver.kill(identity, KILL_DEADLINE)

    async def _ensure_not_superseded_for_sure(self, request: StepRequest) -> None:
        """The fence again, but a ledger that is silent does not keep a node down that we have just stopped."""
        try:
            await ensure_not_superseded(request, self._ports)
        except Transient as error:
            activity.logger.warning("starting a stopped node although the ledger does not answer: %s", error)

    async def _prove(self, request: StepRequest, target: Target, mark: RollMark) -> str | None:
        """Look until the node is proven k times in a row, one has died, or the deadline is over: why it is not proven.

        Nothing is proven while another node is dead: that is the next decision's to tell, and an order may be waiting for it.
        """
        good, why = 0, ""
        deadline = time.monotonic() + request.policy.restart_deadline.total_seconds()
        while time.monotonic() < deadline:
            observation = await observe(target.cluster, self._ports)
            process = observation.node(target.node.id).process
            if process is not None and not process.is_running:
                return await self._epitaph(target)
            what = (observation, target.cluster.spec, request.policy, target.node.id, request.step.stage)
            if dead := dead_besides(*what):
                return f"{target.name} was restarted and cannot be proven well: {WAIT_MEANS[WaitReason.NODE_DOWN]} ({dead})"
            why = why_not_proven(*what)
            good = good + 1 if not why else 0
            if good >= request.policy.stable_samples:
                proven = mark.model_copy(update={"is_proven": True})
                await ensure_not_superseded(request, self._ports)
                await write_mark(target.driver, target.node.properties_file, proven, await target.file())
                return None
            await asyncio.sleep(request.policy.poll_interval.total_seconds())
        return f"{target.name} was restarted and is not proven well: {why}"

    async def _epitaph(self, target: Target) -> str:
        lines = await target.driver.output_tail(LOG_LINES)
        return f"{target.name} does not run after its restart. It printed last:\n" + "\n".join(lines)


def seconds_since_boot() -> float:
    """A clock that goes on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


MAX_AGE_OF_A_LOOK = 20.0
"""Seconds between a look and the write or the stop that it allows: as long as a worker may be silent before another takes over.
A worker that was paused in between must not act on what it saw before."""


def is_old(looked_at: float) -> bool:
    return seconds_since_boot() - looked_at > MAX_AGE_OF_A_LOOK


FLAGLESS_STOP_DEADLINE = timedelta(seconds=10)
"""A controller's clean stop takes one second; ten are for a machine that is busy."""

CONTROLLER_STOP_DEADLINE = timedelta(seconds=30)
"""The same where nothing is urgent: the others rule meanwhile."""

KILL_DEADLINE = timedelta(seconds=10)
"""A killed process is gone at once, unless it hangs in the kernel."""

LOG_LINES = 12
"""Lines of a dead node's output that are shown to people."""
