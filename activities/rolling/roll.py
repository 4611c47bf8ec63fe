"""`roll_node`: one node, or the brokers of one wave, from the look before to the proof afterwards, in both directions. Safe to
run any number of times.

    1. make the file that is to be written; then, at the same time: have a JVM beside the node read it, look at what it needs to
       start again (`startable`), and whether the others get on, or are reached (`remaining_nodes`)
       look again: the fence holds, and a fresh decision is this very step    (else: blocked, nothing touched)
       then its configuration management is paused, and proven to be (`configuration_management`)
    2. if all is as it was for 1, archive the file, then write the mark: what ran, what the file is and will be
    3. consume the approval, if the step is irreversible: one transaction of the ledger, which asks for hold, rollback, expiry,
       evidence and generation too                                             (else: blocked, nothing written)
       and where the policy asks for it, begin to measure how long clients wait (`pauses`)
    4. write the file                                                         (only just before the restart)
    5. stop the process that the mark names, and no other
    6. start, if nothing has been started since
    7. prove: expected mode, registered, unfenced, in sync, k looks in a row, and with the locks of its own log directories
                                                                               (given up once another node is dead)
    8. set the mark to proven

A node that was restarted from this very file before and came up otherwise is not restarted again.

Two attempts may run at once: a worker that was paused goes on beside the one that replaced it. So the mark is looked for once
more after the process, a look that has grown old allows nothing, and only the process that the mark names is ever stopped:
whoever comes second finds the first's mark or the first's process, and restarts nothing. Every write and every signal asks for
the fence right before.

A retry finds the mark with its own step id and goes on where the files and the process say it stopped. Step 1 is repeated as
long as the node still runs as it was found: it can wait. Once it has been stopped it must be finished, whatever else has
happened. A death between two lines leaves: before 2, nothing; before 4, an unused mark, and perhaps a consumed approval,
under which the next attempt goes on as long as the evidence is the same; before 5, a new file under an old process; before 6, a
stopped node whose pid file still names the old process; before 8, a node that runs and proves itself again. A migration that
follows one whose workflow is gone finds the same: what it decides from there is a step of its own, with a mark that takes over
what the old one knew.

Brokers of a wave are taken through these lines together: one look allows all of them; no process is stopped before every mark
and every file is written; each is stopped and started beside the others; then all are proven at once. What fails at one of
them does not keep the others from being started. As long as none has been stopped, a retry begins with step 1. Afterwards it
finishes those that have been, and leaves the others alone: they are decided anew, one by one. So the age of the look is asked
for once more right before each stop: whoever was paused must not stop what others have been left to decide.

On the way back only the fence asks the ledger, and takes its silence for a yes.
"""

import asyncio
import time
from datetime import timedelta
from functools import partial

from temporalio import activity

from activities.claims import cluster_to_change, ensure_not_superseded
from activities.concurrently import all_of
from activities.heartbeat import heartbeating
from activities.looking import LastLook, answer_or_silence, last_look, outcome, outcome_of_all, why_not_approved
from activities.node_files import ensure_unchanged, read_mark, sha256_of
from activities.observing.member_trees import why_trees_differ
from activities.ports.kafka import Listeners
from activities.ports.ports import Ports
from activities.rolling.configuration_management import pauses_of, why_not_paused
from activities.rolling.marking import Marked, Prepared, Target, mark_roll, prepare_roll, resume_roll
from activities.rolling.pauses import PauseMeter
from activities.rolling.processes import does_not_stop
from activities.rolling.proving import Proof, Rolled, prove
from activities.rolling.remaining_nodes import Watched, why_no_quorum_would_stay, why_others_do_not_get_on
from activities.rolling.startable import why_not_startable, why_not_startable_as
from activities.survey.unapplied import why_not_in_force
from domain.cluster import NodeSpec, Role
from domain.contracts import ActivityName, CompanionOutcome, StepOutcome, StepRequest
from domain.decisions import Step
from domain.errors import Transient
from domain.observed.observation import RollMark
from domain.records import ClusterRecord
from domain.rolling.change import Restart

LEFT_OUT = "this wave was cut off before this node was stopped: the stopped nodes are finished, and this one is decided again"


class Rolling:
    """The activity that restarts nodes."""

    def __init__(self, ports: Ports, listeners: Listeners) -> None:
        self._ports, self._listeners = ports, listeners
        self._watched = Watched(ports)

    @activity.defn(name=ActivityName.ROLL_NODE)
    async def roll_node(self, request: StepRequest) -> StepOutcome:
        """Bring one node, or several together, to a stage, as the module's docstring says."""
        async with heartbeating(), PauseMeter(request, self._ports) as pause:
            begun = time.monotonic()
            await ensure_not_superseded(request, self._ports)
            cluster = await cluster_to_change(request, self._ports)
            nodes = [cluster.spec.node(node_id) for node_id in request.step.nodes]
            targets = [Target(cluster, node, self._ports.drivers.driver(node)) for node in nodes]
            marks = await all_of(*(answer_or_silence(read_mark(t.driver, t.node.properties_file)) for t in targets))
            known = [(target, mark) for target, (mark, _) in zip(targets, marks, strict=True) if mark is not None]
            left = [(target, mark) for target, mark in known if await has_left(request, target, mark)]
            if left:
                rolled, blocked = await self._finish_all(request, left)
            else:
                blocked = next((silent for _, silent in marks if silent), None)
                rolled, blocked = ([], blocked) if blocked else await self._roll(request, targets, pause)
            if blocked is not None:
                return outcome(blocked)
            proof = await prove(request, rolled, self._ports, self._watched)
            pauses = {one.target.node.id: await pauses_of(request, one.target) for one in rolled}
            rolling = _outcome(request.step, rolled, proof, pauses, time.monotonic() - begun)
            return rolling.model_copy(
                update={"client_pause_seconds": pause.measured(), "hold_because": proof.hold_because or pause.why_hold(targets)}
            )

    async def _roll(self, request: StepRequest, targets: list[Target], pause: PauseMeter) -> tuple[list[Rolled], str | None]:
        """From the look to the start; or why nothing was stopped. No process is stopped before every file is written."""
        made, silent = await answer_or_silence(all_of(*(prepare_roll(request, target, self._ports) for target in targets)))
        if made is None:
            return [], silent
        prepared = list(zip(targets, made, strict=True))
        blocked = await self._why_not_yet(request, prepared)
        if blocked is not None:
            return [], blocked
        look, looked_at = await look_again(request.model_copy(update={"looks": 1}), self._ports)
        blocked = look.why_not or await self._why_not_paused(request, targets)
        blocked = blocked or await self._why_not_by_others(request, targets)
        if blocked is not None:
            return [], blocked
        marks = await all_of(*(mark_roll(request, target, one, self._ports) for target, one in prepared))
        marked = [mark for mark in marks if mark is not None]
        if len(marked) < len(targets):
            return [], "a node was restarted, or its file was edited, right before it was to be stopped: observe again"
        unmeasured = await pause.begin(targets)
        if unmeasured is not None:
            return [], unmeasured
        rolls = list(zip(targets, marked, strict=True))
        unwritten = await all_of(*(self._write(request, target, made, look, looked_at) for target, made in rolls))
        blocked = next((why for why in unwritten if why is not None), OLD if is_old(looked_at) else None)
        if blocked is not None:
            return [], blocked
        until = looked_at if request.step.companions else None
        rolled = await all_of(*(self._restart(request, target, made, until) for target, made in rolls))
        begun = [one for one in rolled if one is not None]
        return begun, None if begun else OLD

    async def _why_not_yet(self, request: StepRequest, prepared: list[tuple[Target, Prepared]]) -> str | None:
        """All that no look tells, asked at the same time, with the earlier looks beside it. The look that allows the restart
        comes afterwards, because it must not grow old: on a busy machine a JVM takes its time.
        """
        targets = [target for target, _ in prepared]
        cluster, nodes, is_back = targets[0].cluster, [target.node for target in targets], request.revert is not None
        try_to_start = partial(why_not_startable_as, request, self._ports)
        whys = await all_of(
            self._why_trees_differ(request, cluster, nodes),
            *(try_to_start(target, one.process, one.text) for target, one in prepared),
            self._why_not_before(request),
            why_not_startable(cluster, nodes, self._into(request), request.policy, self._ports, is_back=is_back),
            self._why_not_in_force(request, targets),
            self._why_not_by_others(request, targets),
        )
        return next((why for why in whys if why is not None), None)

    async def _why_not_by_others(self, request: StepRequest, targets: list[Target]) -> str | None:
        """Asks about the nodes that stay. It is asked again after the last look, because a trial may take a minute. What was
        measured within the last seconds is not measured again (`Watched`).
        """
        whys = await all_of(self._why_no_quorum(request, targets), self._why_others_do_not_get_on(targets))
        return next((why for why in whys if why is not None), None)

    async def _why_not_before(self, request: StepRequest) -> str | None:
        """All looks but the last, and the pause after each."""
        if request.looks == 1:
            return None
        seen, _ = await look_again(request.model_copy(update={"looks": request.looks - 1}), self._ports)
        if seen.why_not is None:
            await asyncio.sleep(request.policy.poll_interval.total_seconds())
        return seen.why_not

    async def _finish_all(self, request: StepRequest, left: list[tuple[Target, RollMark]]) -> tuple[list[Rolled], str | None]:
        finished = await all_of(*(self._finish(request, target, mark) for target, mark in left))
        rolled = [one for one in finished if isinstance(one, Rolled)]
        return rolled, None if rolled else next((why for why in finished if isinstance(why, str)), None)

    async def _finish(self, request: StepRequest, target: Target, mark: RollMark) -> Rolled | str | None:
        """What an attempt has stopped is finished, by itself: it waits for no companion. Text: why it may not be, where its
        process has gone by itself, and the approval allows its file no more."""
        marked = await resume_roll(request, target, mark, self._ports)
        return await self._write(request, target, marked, LastLook(None), None) or await self._restart(
            request, target, marked, None
        )

    async def _why_not_in_force(self, request: StepRequest, targets: list[Target]) -> str | None:
        """What is edited on the way back, or before it, is named as a loss: nobody has to put it into force first."""
        if request.revert is not None:
            return None
        cluster, policy = targets[0].cluster, request.policy
        brokers = [target.node for target in targets if cluster.spec.role(target.node.id) is Role.BROKER]
        edit = self._ports.kinds[request.kind].rolls.edit
        return await why_not_in_force(cluster, brokers, request.step.stage, edit, policy, self._ports)

    async def _why_others_do_not_get_on(self, targets: list[Target]) -> str | None:
        """Of brokers that run: who is down can only win."""
        spec = targets[0].cluster.spec
        brokers = [t for t in targets if spec.role(t.node.id) is Role.BROKER and (await t.driver.process()).is_running]
        stopped = [target.node.id for target in brokers]
        return await why_others_do_not_get_on(spec, stopped, self._ports, self._watched) if stopped else None

    def _into(self, request: StepRequest) -> Restart:
        return self._ports.kinds[request.kind].rolls.restart(request.step.stage)

    async def _why_no_quorum(self, request: StepRequest, targets: list[Target]) -> str | None:
        """Of controllers that run. A flag comes back whatever becomes of the quorum: one election makes the migration final."""
        spec, urgent = targets[0].cluster.spec, self._into(request).urgent
        asked = [t for t in targets if spec.role(t.node.id) in {Role.CONTROLLER} - urgent]
        running = [t.node.id for t in asked if (await t.driver.process()).is_running]
        return await why_no_quorum_would_stay(spec, running, self._listeners) if running else None

    async def _why_not_paused(self, request: StepRequest, targets: list[Target]) -> str | None:
        """Why a node's configuration management would write its file back; nothing has been written yet."""
        whys = await all_of(*(self._why_one_not_paused(request, target) for target in targets))
        return next((why for why in whys if why is not None), None)

    async def _why_one_not_paused(self, request: StepRequest, target: Target) -> str | None:
        return await why_not_paused(request, target, await target.file(), self._ports)

    async def _why_trees_differ(self, request: StepRequest, cluster: ClusterRecord, nodes: list[NodeSpec]) -> str | None:
        """Half a way back is the worst place to rest: that one waits for nothing of ZooKeeper's but its quorum."""
        if request.revert is not None:
            return None
        return await why_trees_differ(cluster, nodes, self._into(request).urgent, self._ports.zookeepers, self._ports.metrics)

    async def _write(
        self, request: StepRequest, target: Target, marked: Marked, look: LastLook, looked_at: float | None
    ) -> str | None:
        """Write the wanted file unless it is there: why nothing was written, or `None`. Either the look that allows it is too
        old, or the approval does not allow it any more.

        A worker that was paused anywhere before finds the mark of whoever has gone on in its place.
        """
        path, mark = target.node.properties_file, marked.mark
        found = sha256_of((await target.file()).content)
        ensure_unchanged(path, found, {mark.before_sha256, mark.written_sha256})
        if found == mark.written_sha256:
            return None
        await ensure_not_superseded(request, self._ports)
        left = await read_mark(target.driver, path)
        if left is None or left.step_id != request.step_id:
            raise Transient(f"{target.name}: another roll continued while this one was paused; {path} was not written")
        if left.is_proven:
            return None
        if looked_at is not None and is_old(looked_at):
            return OLD
        unapproved = await why_not_approved(request, look.evidence_hash, self._ports)
        if unapproved is not None:
            return unapproved
        await target.driver.write_file(path, marked.wanted)
        return None

    async def _restart(self, request: StepRequest, target: Target, marked: Marked, looked_at: float | None) -> Rolled | None:
        """Stop the process that the mark names, start a new one. `None`: the look that allows it has grown old, and it runs on.

        That is asked of a wave, whose other nodes may have been stopped by then: an attempt that follows finishes those alone,
        and whoever goes on beside it must not stop what has been decided anew meanwhile.
        """
        mark = marked.mark
        await ensure_not_superseded(request, self._ports)
        process = await target.driver.process()
        if process.identity is not None and process.identity == mark.before_identity:
            if looked_at is not None and is_old(looked_at):
                return None
            await self._stop(request, target, process.identity)
            await self._ensure_not_superseded_for_sure(request)
            process = await target.driver.process()
        if not process.is_running and process.last_identity == mark.before_identity:
            started_at = time.monotonic()
            await target.driver.start()
            return Rolled(target, marked, did_restart=True, started_at=started_at)
        return Rolled(target, marked, did_restart=process.identity != mark.before_identity)

    async def _stop(self, request: StepRequest, target: Target, identity: str) -> None:
        """Stop it cleanly. A controller is killed if that takes long, a broker never.

        As long as a controller runs without its flag, one election makes the migration final. And where ZooKeeper is lost, the
        active one never ends by itself: closing, it waits for a write whose ZooKeeper client it has closed (3.9.2, seen:
        KRaftMigrationDriver.close, KafkaZkClient.retryRequestsUntilConnected). A kill costs it nothing: a member of the quorum
        flushes its log before a record counts, and raft is made for members that vanish. A broker's clean stop moves leaders
        away and closes its logs, without which partitions wait and recovery takes minutes.
        """
        is_controller = target.cluster.spec.role(target.node.id) is Role.CONTROLLER
        patience = URGENT_STOP_DEADLINE if Role.CONTROLLER in self._into(request).urgent else CONTROLLER_STOP_DEADLINE
        deadline = min(request.policy.stop_deadline, patience) if is_controller else request.policy.stop_deadline
        begun = time.monotonic()
        try:
            await target.driver.stop(identity, deadline)
        except Transient as error:
            if time.monotonic() - begun < deadline.total_seconds():
                raise
            if not is_controller:
                raise does_not_stop(target.name, request.policy, error) from error
            await ensure_not_superseded(request, self._ports)
            await target.driver.kill(identity, KILL_DEADLINE)

    async def _ensure_not_superseded_for_sure(self, request: StepRequest) -> None:
        """The fence again, but a ledger that is silent does not keep a node down that we have just stopped."""
        try:
            await ensure_not_superseded(request, self._ports)
        except Transient as error:
            activity.logger.warning("starting a stopped node although the ledger does not answer: %s", error)


def _outcome(step: Step, rolled: list[Rolled], proof: Proof, pauses: dict[int, tuple[str, ...]], seconds: float) -> StepOutcome:
    """What became of each. Who is not among the rolled was to go along, and has not been touched since."""
    found = {one.target.node.id: one for one in rolled}
    each = [
        CompanionOutcome(
            node_id=node_id,
            is_done=one is not None and proof.why_not[node_id] is None,
            blocked=proof.why_not[node_id] if one is not None else LEFT_OUT,
            did_restart=one is not None and one.did_restart,
            changes=(*one.marked.mark.changes, *pauses[node_id], *filter(None, [proof.notes.get(node_id)]))
            if one is not None
            else (),
        )
        for node_id in step.nodes
        for one in [found.get(node_id)]
    ]
    return outcome_of_all(each, seconds, proof.leadership)


async def look_again(request: StepRequest, ports: Ports) -> tuple[LastLook, float]:
    """Whether the step may still be taken, and when the look that says so began: what it saw was true then."""
    seen, looked_at = LastLook(None), seconds_since_boot()
    for look in range(request.looks):
        if look:
            await asyncio.sleep(request.policy.poll_interval.total_seconds())
            looked_at = seconds_since_boot()
        seen = await last_look(request.model_copy(update={"looks": 1}), ports)
        if seen.why_not is not None:
            break
    return seen, looked_at


async def has_left(request: StepRequest, target: Target, mark: RollMark) -> bool:
    """An attempt at this very step has stopped the node already: it must be finished, whatever else has happened since.

    A node that still runs as it was found can wait: it is looked at again, however much was written for it.
    """
    return mark.step_id == request.step_id and (await target.driver.process()).identity != mark.before_identity


def seconds_since_boot() -> float:
    """A clock that goes on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


MAX_AGE_OF_A_LOOK = 20.0
"""Seconds between a look and the write or the stop that it allows: as long as a worker may be silent before another takes over.
A worker that was paused in between must not act on what it saw before."""


OLD = f"the observation before the restart is older than {MAX_AGE_OF_A_LOOK:g} s: observe again"


def is_old(looked_at: float) -> bool:
    return seconds_since_boot() - looked_at > MAX_AGE_OF_A_LOOK


URGENT_STOP_DEADLINE = timedelta(seconds=10)
"""A controller's clean stop takes one second; ten are for a machine that is busy."""

CONTROLLER_STOP_DEADLINE = timedelta(seconds=30)
"""The same where nothing is urgent: the others rule meanwhile."""

KILL_DEADLINE = timedelta(seconds=10)
"""A killed process is gone at once, unless it hangs in the kernel."""
