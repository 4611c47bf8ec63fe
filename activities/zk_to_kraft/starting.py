"""Controllers that are started, and one that is started anew, each from its file as it is.

`start_node`: a controller of the quorum that does not run.

    1. look again: a fresh decision is this very step, and its file has the flag, or its log is final
                                                                                  (else: blocked, nothing touched)
    2. lift its fence, if there is one; start it
    3. wait until it answers; the quorum's own readiness is the next decision's business

`fail_over`: the active controller is restarted, so that another one takes over and writes what ZooKeeper lacks.

    1. look again: dual write is dead and no hazard is known: a failover would cure it; and where KRaft has its claim,
       the offset in /migration stands still; and a majority of the others is reached  (else: blocked, nothing touched)
    2. write the mark: which process ran; consume the approval, where a person was asked  (else: blocked, nothing stopped)
    3. stop the process that the mark names, and no other; start, if nothing has been started since
    4. prove: an active controller, the log in MIGRATION, dual write current, k looks in a row
    5. set the mark to proven

A retry finds the mark with its own step id: once the process that it names is gone, it is not asked again whether it may.
Whoever dies between 2 and 3 leaves an unused mark; in 3, a stopped controller, which a roll of ours would finish too.
"""

import asyncio
import time
from datetime import UTC, datetime, timedelta

from temporalio import activity

from activities.claims import cluster_to_change, ensure_not_superseded
from activities.heartbeat import heartbeating
from activities.last_words import told_last
from activities.looking import answer_or_silence, last_look, outcome, why_not_approved, why_not_this_step
from activities.node_files import read_mark, sha256_of, storage_of, write_mark
from activities.observing.epochs import rule_of
from activities.observing.observe import observe_for
from activities.ports.kafka import Listeners
from activities.ports.ports import Ports
from activities.ports.zookeeper import session
from activities.rolling.marking import Target
from activities.rolling.processes import does_not_stop
from activities.rolling.remaining_nodes import why_no_quorum_would_stay
from activities.rolling.roll import OLD, has_left, is_old, seconds_since_boot
from activities.rolling.startable import why_not_startable
from activities.zk_to_kraft.fence import is_fenced, may_start, revive
from activities.zk_to_kraft.quorum_log import open_log, read_on
from domain.contracts import StepOutcome, StepRequest
from domain.errors import Transient, Unsafe
from domain.observed.observation import MigrationGauge, Process, RollMark
from domain.policy import MigrationPolicy
from domain.records import ClusterRecord
from domain.zk_to_kraft.modes import ControllerMode
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.rolls import ROLLS
from domain.zk_to_kraft.situation import DualWrite, QuorumState
from domain.zk_to_kraft.steps import KIND, ZkActivity
from domain.zk_to_kraft.waits import WAITS, ZkWait


class Starting:
    """The activities that start controllers."""

    def __init__(self, ports: Ports, listeners: Listeners, standing_seconds: float = 2.0) -> None:
        """`standing_seconds`: how long dual write has to write nothing to count as dead. What lives writes twice a second."""
        self._ports, self._listeners, self._standing_seconds = ports, listeners, standing_seconds

    @activity.defn(name=ZkActivity.START_NODE)
    async def start_node(self, request: StepRequest) -> StepOutcome:
        """Start one controller, as the module's docstring says."""
        async with heartbeating():
            begun = time.monotonic()
            await ensure_not_superseded(request, self._ports)
            cluster = await cluster_to_change(request, self._ports)
            member = _member(cluster, request, self._ports)
            did_start = False
            found, silent = await answer_or_silence(member.driver.process())
            if found is None:
                return outcome(silent, begun)
            if not found.is_running or await is_fenced(member):
                blocked = await why_not_this_step(request, self._ports)
                if blocked is not None:
                    return outcome(blocked, begun)
                if await may_start(member) or not await self._is_final(cluster, member):
                    await _ensure_flag(member)
                await ensure_not_superseded(request, self._ports)
                await _forget_proven(member)
                await revive(member)
                did_start = True
            blocked = await self._why_silent(request, member)
            return outcome(blocked, begun, did_restart=did_start)

    @activity.defn(name=ZkActivity.FAIL_OVER)
    async def fail_over(self, request: StepRequest) -> StepOutcome:
        """Restart the active controller, as the module's docstring says."""
        async with heartbeating():
            begun = time.monotonic()
            await ensure_not_superseded(request, self._ports)
            cluster = await cluster_to_change(request, self._ports)
            member = _member(cluster, request, self._ports)
            mark, silent = await answer_or_silence(read_mark(member.driver, member.node.properties_file))
            if silent:
                return outcome(silent, begun)
            if mark is None or not await has_left(request, member, mark):
                looked_at = seconds_since_boot()
                look = await last_look(request, self._ports)
                into = ROLLS.restart(request.step.stage)
                blocked = (
                    look.why_not
                    or await why_not_startable(cluster, [member.node], into, request.policy, self._ports)
                    or await why_no_quorum_would_stay(cluster.spec, (member.node.id,), self._listeners)
                    or await self._why_not_standing(cluster)
                )
                if blocked is not None:
                    return outcome(blocked, begun)
                mark = await self._mark(request, member, mark)
                blocked = OLD if is_old(looked_at) else await why_not_approved(request, look.evidence_hash, self._ports)
                if blocked is not None:
                    return outcome(blocked, begun)
            await self._restart(request, member, mark)
            blocked = await self._why_not_cured(request, cluster, member)
            if blocked is None:
                await ensure_not_superseded(request, self._ports)
                proven = {"is_proven": True, "proven_identity": (await member.driver.process()).identity}
                await _write_mark(member, mark.model_copy(update=proven))
            return outcome(blocked, begun, did_restart=True)

    async def _why_not_standing(self, cluster: ClusterRecord) -> str | None:
        """Who writes is late, not dead. Without a claim dual write goes on, and needs the failover for another reason."""
        async with session(self._ports.zookeepers, cluster) as tree:
            before = await rule_of(tree)
            await asyncio.sleep(self._standing_seconds)
            after = await rule_of(tree)
        if not before.is_krafts or before.offset == after.offset:
            return None
        return f"the offset in /migration moves ({before.offset}, then {after.offset}): dual write is late, not dead"

    async def _mark(self, request: StepRequest, member: Target, left: RollMark | None) -> RollMark:
        """The mark of a roll that changes nothing in the file: what a roll of ours would finish, if this is never finished."""
        await _ensure_flag(member)
        process = await member.driver.process()
        sha256 = sha256_of((await member.file()).content)
        mark = RollMark(
            step_id=request.step_id,
            generation=request.generation,
            stage=request.step.stage,
            before_identity=process.identity or process.last_identity,
            before_sha256=sha256,
            written_sha256=sha256,
            original_sha256=left.original_sha256 if left is not None else None,
            has_edits=left.has_edits if left is not None else False,
            marked_at=datetime.now(UTC),
            has_run=True,
        )
        await ensure_not_superseded(request, self._ports)
        await _write_mark(member, mark)
        return mark

    async def _restart(self, request: StepRequest, member: Target, mark: RollMark) -> None:
        """Stop the process that the mark names, start a new one. A ledger that is silent keeps no node down."""
        await ensure_not_superseded(request, self._ports)
        process = await member.driver.process()
        if process.identity is not None and process.identity == mark.before_identity:
            await self._stop(request, member, process)
            process = await member.driver.process()
        if not process.is_running and process.last_identity == mark.before_identity:
            await member.driver.start()

    async def _stop(self, request: StepRequest, member: Target, process: Process) -> None:
        deadline, begun = request.policy.stop_deadline, time.monotonic()
        try:
            await member.driver.stop(process.identity or "", deadline)
        except Transient as error:
            if time.monotonic() - begun < deadline.total_seconds():
                raise
            raise does_not_stop(member.name, request.policy, error) from error

    async def _why_not_cured(self, request: StepRequest, cluster: ClusterRecord, member: Target) -> str | None:
        """Look until dual write is current k times in a row, or the deadlines of a restart and of a drain are over."""
        policy = ZkToKraftPolicy.of(request.policy)
        deadline = time.monotonic() + (policy.restart_deadline + policy.drain_deadline).total_seconds()
        good, why = 0, "no look yet"
        while time.monotonic() < deadline:
            why = await self._why_not_current(request, cluster, member)
            good = good + 1 if not why else 0
            if good >= policy.stable_samples:
                return None
            await asyncio.sleep(policy.poll_interval.total_seconds())
        return f"{member.name} was restarted, and dual write is not cured: {why}"

    async def _why_not_current(self, request: StepRequest, cluster: ClusterRecord, member: Target) -> str:
        observation = await observe_for(KIND, cluster, self._ports, request.policy)
        situation = situation_of(observation, cluster.spec, request.policy)
        restarted = next(c for c in situation.controllers if c.id == member.node.id)
        if restarted.mode is not ControllerMode.MIGRATING or not restarted.is_caught_up:
            return f"{member.name} is {restarted.mode}, and {'' if restarted.is_caught_up else 'not '}caught up"
        if situation.quorum is not QuorumState.MIGRATION:
            return f"the quorum's log says {situation.quorum}"
        return "" if situation.dual_write is DualWrite.CURRENT else WAITS[ZkWait.DUAL_WRITE_NOT_CURRENT].means

    async def _is_final(self, cluster: ClusterRecord, member: Target) -> bool:
        """Whether the migration is, by its own log or by those that run: a start without the flag could end nothing more."""
        reading = await open_log(member.driver, (await storage_of(member.driver, member.node)).metadata_log)
        if reading is not None and (await read_on(member.driver, reading)).facts.state is MigrationGauge.POST_MIGRATION:
            return True
        observation = await observe_for(KIND, cluster, self._ports)
        return situation_of(observation, cluster.spec, MigrationPolicy()).quorum is QuorumState.POST_MIGRATION

    async def _why_silent(self, request: StepRequest, member: Target) -> str | None:
        """Wait until the new process answers: why it does not, or `None` when it does."""
        begun = time.monotonic()
        deadline = begun + request.policy.restart_deadline.total_seconds()
        why = "no look yet"
        while time.monotonic() < deadline:
            if not (await member.driver.process()).is_running:
                age = timedelta(seconds=time.monotonic() - begun)
                return f"{member.name} does not run after its start. {await told_last(member.driver, age)}"
            try:
                await self._ports.metrics.read(member.node.metrics)
            except Transient as error:
                why = str(error)
                await asyncio.sleep(request.policy.poll_interval.total_seconds())
            else:
                return None
        return f"{member.name} was started and does not answer: {why}"


def _member(cluster: ClusterRecord, request: StepRequest, ports: Ports) -> Target:
    node = next(c for c in cluster.spec.controllers if c.id == request.step.node)
    return Target(cluster, node, ports.drivers.driver(node))


async def _ensure_flag(member: Target) -> None:
    if not await may_start(member):
        raise Unsafe(
            f"{member.name}: {member.node.properties_file} has no migration flag. Started from it and elected, this "
            "controller would make the migration final. Restore the flag."
        )


async def _write_mark(member: Target, mark: RollMark) -> None:
    await write_mark(member.driver, member.node.properties_file, mark, await member.file())


async def _forget_proven(member: Target) -> None:
    """The process that was proven is gone, and the one that we start is no stranger's."""
    mark = await read_mark(member.driver, member.node.properties_file)
    if mark is not None and mark.proven_identity is not None:
        await _write_mark(member, mark.model_copy(update={"proven_identity": None}))
