"""`leave_kraft`: the revert window. The KRaft controllers give way, and a broker becomes ZooKeeper controller.

     1. over already?                                     (then only 11)
     2. scan the partition states' epochs, read the logs up to the offset in /migration: what takes time, before the window
     3. look again: the fence holds, fresh decisions are this very step, no stranger answers, ZooKeeper would let us do 9
                                                          (else: blocked, nothing touched)
     4. drain: the offset in /migration is the log's end, seen at rest twice                   (else: 8 mends it)
     5. fence every controller                            (nobody can start one any more, whoever tries)
     6. SIGKILL: first those without the flag, then all   (from here on the cluster has no controller: 0.15 s in all)
     7. dead: no process, no stranger at their ports
     8. read the dead logs beyond the offset: what was acknowledged and is not in ZooKeeper? Complete the topics that the kill
        has left half written there, start the controllers again, let them flush, and once more from 5.
        Where the logs say POST_MIGRATION there is no way back: all are started again
     9. one transaction: /controller_epoch raised to the largest known, /migration deleted, /controller deleted; and read back
    10. a broker is controller                            (within its deadline)
    11. watch: a claim that slips in all the same is seen, and everything is done once more from 5

What goes wrong for good between 5 and 9 gives the cluster back to its controllers, and so does ZooKeeper's silence once they
are dead: a controller of either kind rather than none.

Whoever dies between two lines leaves: before 5, nothing; before 6, some controllers fenced and all alive, which serve on and
cannot restart; before 9, dead controllers that nobody but us can start, and a cluster without a controller; in 8, a quorum that
serves; after 9, what was wanted. A retry does not ask again whether it may once something is fenced: half of it is the worst
place to rest. It scans and reads again what it needs, and comes to the same end.

Why one transaction: KRaft's claim sets `/controller_epoch` (KafkaZkClient.tryRegisterKRaftControllerAsActiveController), so one
that slipped in makes ours fail whole; and a quorum that finds no `/migration` stays inactive for good (proven-facts, 5).
"""

import asyncio
import time
from dataclasses import dataclass

from temporalio import activity

from activities.assessing import cluster_of, ensure_not_superseded, why_not_this_step
from activities.draining import Drain
from activities.epochs import Rule, largest_epoch_of_states, rule_of
from activities.fence import Member, each, fence, is_dead, is_fenced, kill, may_start, members_of, revive
from activities.flushing import Waiting, until_flushed
from activities.half_written import complete_half_written
from activities.heartbeat import heartbeating
from activities.member_logs import MemberLogs
from activities.observe import Ports
from activities.ports import DeleteZnode, Listeners, SetZnode, ZooKeeperTree
from activities.rolling import MAX_AGE_OF_A_LOOK, seconds_since_boot
from activities.strangers import answering, complaint, still_answering
from activities.zookeeper_view import CONTROLLER, CONTROLLER_EPOCH, MIGRATION
from domain.contracts import ActivityName, StepOutcome, StepRequest
from domain.decisions import WAIT_MEANS, WaitReason
from domain.errors import KeeperlessError, Permanent, Transient, Unsafe
from domain.observation import MigrationGauge
from domain.policy import FLUSHES
from domain.records import ClusterRecord
from domain.zk_to_kraft.losses import METADATA_CHANGES

WINDOWS = 8
"""How often the window is opened in all, flushes included. Each time something unforeseen has come between."""


@dataclass(frozen=True)
class Pace:
    """In seconds: between two looks; until the sockets of a killed process count as somebody else's, for a busy kernel takes
    its time to close them; how long a controller that has begun to write to ZooKeeper may write nothing, which it does twice a
    second; and how long `/controller` is watched after the window.
    """

    poll: float = 0.05
    settle: float = 5.0
    stall: float = 10.0
    watch: float = 2.0


class Blocked(Exception):
    """Why the window stays closed. Nothing has been touched, or what was has been put back."""


class Leaving:
    """The activity that gives the cluster back to ZooKeeper."""

    def __init__(self, ports: Ports, listeners: Listeners, pace: Pace = Pace()) -> None:
        self._ports, self._listeners, self._pace = ports, listeners, pace

    @activity.defn(name=ActivityName.LEAVE_KRAFT)
    async def leave_kraft(self, request: StepRequest) -> StepOutcome:
        """Bring the cluster under a ZooKeeper controller, every KRaft controller fenced, as the module's docstring says."""
        async with heartbeating():
            begun = time.monotonic()
            await ensure_not_superseded(request, self._ports)
            cluster = await cluster_of(request, self._ports)
            members = await members_of(cluster, self._ports.drivers)
            tree = await self._ports.zookeepers.connect(cluster)
            window = Window(request, self._ports, self._listeners, self._pace, cluster, members, tree)
            blocked = None
            try:
                await window.leave()
            except Blocked as reason:
                blocked = str(reason)
            finally:
                await tree.close()
            return StepOutcome(
                is_done=blocked is None,
                blocked=blocked,
                seconds=time.monotonic() - begun,
                attempt=activity.info().attempt,
                changes=(*window.story, *window.gap),
            )


class Window:
    """One attempt. `story`: what it did, for people."""

    def __init__(
        self,
        request: StepRequest,
        ports: Ports,
        listeners: Listeners,
        pace: Pace,
        cluster: ClusterRecord,
        members: list[Member],
        tree: ZooKeeperTree,
    ) -> None:
        self._request, self._ports, self._listeners, self._pace = request, ports, listeners, pace
        self._cluster, self._members, self._tree = cluster, members, tree
        self._drain = Drain(members, tree, ports.metrics, pace.poll)
        self._logs = MemberLogs(members, len(cluster.spec.controllers))
        self._rule = Rule(None, None, None)
        self._epoch: int | None = None
        self._flagless: set[int] = set()
        self._flushes = 0
        self._are_dead = False
        self._is_sent = False
        self._without_controller_since: float | None = None
        self._seconds_without_controller: float | None = None
        self.story: list[str] = []

    @property
    def gap(self) -> tuple[str, ...]:
        """How long the cluster was without a controller, where this attempt saw it all."""
        seconds = self._seconds_without_controller
        return (f"{seconds:.2f} s without a controller",) if seconds is not None else ()

    async def leave(self) -> None:
        """Lines 1 to 11. Raises `Blocked`, or `Unsafe` where trying again would only repeat the harm."""
        if await self._is_over() and await self._is_zookeepers_for_good():
            return
        await self._prepare()
        for _ in range(WINDOWS):
            if await self._has_handed_over() and await self._is_zookeepers_for_good():
                return
        raise Unsafe(f"{WINDOWS} times KRaft's claim or /migration came back. Find who starts a controller of this quorum.")

    async def _is_over(self) -> bool:
        """Where the znodes were deleted by hand, and no epoch was raised, a ZooKeeper controller that rules is no end."""
        rule = await self._look_at_rule()
        if not rule.is_zookeepers or rule.migration is not None or not await self._are_out():
            return False
        self._epoch = await largest_epoch_of_states(self._tree)
        return rule.zookeeper_epoch >= self._epoch

    async def _are_out(self) -> bool:
        """Every controller is dead, and fenced."""
        return all(await each(is_dead(m) for m in self._members)) and all(await each(is_fenced(m) for m in self._members))

    async def _look_at_rule(self) -> Rule:
        self._rule = await rule_of(self._tree)
        return self._rule

    # ---- before the window ----

    async def _prepare(self) -> None:
        """Lines 2 to 4. Where something is fenced already the window stands open, and nobody is asked.

        A quorum that has claimed and not copied may be about to delete what its log lacks: then the scan waits, not the kill.
        """
        rule = await self._look_at_rule()
        if rule.offset is not None:
            await self._logs.read_ahead(rule.offset)
        if self._epoch is None and (not rule.is_krafts or self._logs.state is MigrationGauge.MIGRATION):
            self._epoch = await largest_epoch_of_states(self._tree)
        await each(self._note_flag(member) for member in self._members)
        if any(await each(is_fenced(member) for member in self._members)):
            return
        looked_at = seconds_since_boot()
        await self._look()
        await self._ensure_allowed()
        await self._wait_for_rest()
        if seconds_since_boot() - looked_at > MAX_AGE_OF_A_LOOK:
            await self._look()

    async def _note_flag(self, member: Member) -> None:
        """One that runs without the flag, or may, dies first: as the last one left it would make the migration final."""
        if await is_dead(member):
            return
        try:
            has_flag = (await self._ports.metrics.read(member.node.metrics)).write_behind_lag is not None
        except Transient:
            has_flag = False
        self._flagless |= set() if has_flag else {member.node.id}

    async def _look(self) -> None:
        blocked = await why_not_this_step(self._request, self._ports)
        if blocked is not None:
            raise Blocked(blocked)
        dead = [member.node.id for member in self._members if await is_dead(member)]
        alive = {member.node.id for member in self._members} - set(dead)
        strangers = [name for node_id, name in await answering(self._cluster.spec, self._listeners) if node_id not in alive]
        if strangers:
            raise Blocked(complaint(strangers))

    async def _ensure_allowed(self) -> None:
        """A permission that is missing must not be learnt once the controllers are dead."""
        rule = await self._look_at_rule()
        try:
            await self._tree.rehearse(_changes(rule, rule.known_epoch))
        except Permanent as error:
            raise Blocked(f"ZooKeeper would refuse the hand-over, so nothing was touched: {error}") from error

    async def _wait_for_rest(self) -> None:
        """Wait until ZooKeeper has all that the quorum has. What is not there at the deadline is flushed afterwards."""
        if not (await self._look_at_rule()).is_krafts or self._logs.state is not MigrationGauge.MIGRATION:
            return
        if await self._drain.comes_to_rest(self._request.policy.drain_deadline.total_seconds()):
            return
        self.story.append("ZooKeeper did not have everything in time: the controllers have to write the rest afterwards")
        stray = self._logs.stray_configs
        if stray and not self._is_loss_accepted:
            raise Blocked(
                f"ZooKeeper lacks changes, and no other controller could write them while there is {stray}: delete it"
            )

    # ---- the window ----

    async def _has_handed_over(self) -> bool:
        """Lines 5 to 9. False: once more. What cannot go on gives the cluster back first."""
        try:
            await self._stop_quorum()
            missing = await self._missing()
            if missing and await self._may_flush(missing):
                await self._flush()
                return False
            return await self._hand_over()
        except (Blocked, Permanent, Unsafe) as error:
            await self._give_back(error)
            raise
        except Transient as error:
            # A process that outlives its kill is waited for; but nobody can tell for how long ZooKeeper is silent.
            if self._are_dead:
                await self._give_back(error)
            raise

    async def _stop_quorum(self) -> None:
        """Lines 5 to 7. Dead is: no process by its driver, and a fence that stands."""
        self._are_dead = False
        await ensure_not_superseded(self._request, self._ports)
        await each(fence(member) for member in self._members)
        self._without_controller_since = self._without_controller_since or time.monotonic()
        await each(kill(member) for member in self._members if member.node.id in self._flagless)
        await each(kill(member) for member in self._members)
        self._are_dead = True

    async def _missing(self) -> tuple[str, ...]:
        """Line 8: what was acknowledged and is not in ZooKeeper, in words. Empty where nothing is, or nothing can be done."""
        rule = await self._look_at_rule()
        strangers = await still_answering(self._cluster.spec, self._listeners, self._pace.settle, self._pace.poll)
        await self._logs.read_tails(rule.offset)
        if strangers:
            raise Blocked(complaint(strangers))
        if self._logs.state is MigrationGauge.POST_MIGRATION:
            raise Blocked("the quorum's log says that the migration is final: there is no way back to ZooKeeper any more")
        self._ensure_readable()
        if self._logs.state is not MigrationGauge.MIGRATION:
            return ()
        if not rule.is_zookeepers:
            return self._logs.changes
        if rule.offset is not None and self._logs.changes:
            self.story.append(f"ZooKeeper's controller ruled already, without {', '.join(self._logs.changes)}")
        return ()

    def _ensure_readable(self) -> None:
        for name, why in self._logs.unreadable.items():
            self.story.append(f"the log of {name} cannot be read: {why}")
        if not self._logs.has_majority and not self._is_loss_accepted:
            damaged = "; ".join(f"{name}: {why}" for name, why in self._logs.unreadable.items())
            raise Unsafe(
                f"what ZooKeeper lacks is not known, for most of the logs cannot be read ({damaged}). Mend them, or accept the "
                f"loss {METADATA_CHANGES} by its name."
            )

    async def _may_flush(self, missing: tuple[str, ...]) -> bool:
        """True: start them again. False: it cannot help, and the loss was accepted. Else we stop."""
        why_not = await self._why_no_flush(await self._look_at_rule())
        if why_not is None:
            self.story.append(f"flushed: {', '.join(missing)}")
            return True
        lost = f"ZooKeeper lacks {', '.join(missing)}, and {why_not}"
        if not self._is_loss_accepted:
            raise Unsafe(f"{lost}. Mend that, or accept the loss {METADATA_CHANGES} by its name.")
        self.story.append(f"accepted as lost: {lost}")
        return False

    async def _why_no_flush(self, rule: Rule) -> str | None:
        if rule.offset is None:
            return "the quorum never began to write there"
        stray = self._logs.stray_configs
        if stray:
            return f"no controller can write it while there is {stray}"
        if self._flushes >= (1 if self._is_loss_accepted else FLUSHES):
            return f"{self._flushes} times the controllers did not write it"
        flagged = [member for member in self._members if await self._may_run(member)]
        if 2 * len(flagged) <= len(self._cluster.spec.controllers):
            return "too few controllers have the migration flag in their files to be started again"
        return None

    async def _flush(self) -> None:
        """Start them again and wait until ZooKeeper has everything; whether it has is read from the logs afterwards."""
        self._flushes += 1
        rule = await self._look_at_rule()
        await self._complete(rule)
        await self._revive()
        waiting = Waiting(self._drain, self._pace.settle, self._pace.stall)
        await until_flushed(waiting, self._request.policy, rule.known_epoch, self._end_gap)

    async def _complete(self, rule: Rule) -> None:
        """What the kill cut in two they could not finish, and would write nothing at all."""
        try:
            completed = await complete_half_written(self._tree, rule)
        except Permanent as error:
            self.story.append(f"what is half written in ZooKeeper was not completed: {error}")
            return
        if completed:
            self.story.append(f"half written in ZooKeeper, and completed: {', '.join(completed)}")

    async def _give_back(self, because: Exception) -> None:
        """A controller of either kind rather than none: KRaft's again, where ZooKeeper's does not rule, nor may do so soon.

        Not before the copy: started again they would begin it, and with an earlier attempt's /migration delete metadata. A
        migration that is final has no other controllers, whoever rules.
        """
        try:
            if self._logs.state is not MigrationGauge.POST_MIGRATION and await self._may_be_zookeepers():
                return
            if self._logs.state in {MigrationGauge.MIGRATION, MigrationGauge.POST_MIGRATION}:
                await self._revive()
        except KeeperlessError as error:
            activity.logger.warning("the controllers could not all be started again after %r: %s", because, error)

    async def _may_be_zookeepers(self) -> bool:
        """Where ZooKeeper is silent, as it was last: nobody but us ends KRaft's claim, unless the transaction is on its way."""
        if self._is_sent:
            return True
        try:
            return (await self._look_at_rule()).is_zookeepers
        except Transient:
            return self._rule.is_zookeepers

    async def _may_run(self, member: Member) -> bool:
        """Without its flag, or with a log that is final, a controller would make final what is not final yet."""
        return await may_start(member) and not self._logs.says_final(member)

    async def _revive(self) -> None:
        """Start what may be started."""
        is_final = self._logs.state is MigrationGauge.POST_MIGRATION
        starting = [member for member in self._members if is_final or await self._may_run(member)]
        await each(revive(member) for member in starting)

    # ---- back to ZooKeeper ----

    async def _hand_over(self) -> bool:
        """Line 9. False: somebody was faster, or it does not read back: look again.

        The ledger is not asked any more: it was, right before the kill, and each change depends on what we have seen.
        """
        if self._epoch is None:
            self._epoch = await largest_epoch_of_states(self._tree)
        rule = await self._look_at_rule()
        epoch = max(self._epoch, rule.known_epoch)
        changes = _changes(rule, epoch)
        if not await self._are_out() or (changes and not await self._commit(changes)):
            return False
        if any(isinstance(change, SetZnode) for change in changes):
            self.story.append(f"/controller_epoch is {epoch}, was {rule.zookeeper_epoch}")
        if rule.migration is not None:
            self.story.append(f"/migration deleted, its offset was {rule.offset or 'not set'}")
        found = await self._look_at_rule()
        return not found.is_krafts and found.migration is None and found.zookeeper_epoch >= epoch

    async def _commit(self, changes: list[SetZnode | DeleteZnode]) -> bool:
        """`_is_sent` stays where it happened, and where nobody can tell whether it did."""
        was_sent, is_done = self._is_sent, False
        try:
            is_done = await self._tree.commit(changes)
        except Transient:
            was_sent = True
            raise
        finally:
            self._is_sent = was_sent or is_done
        return is_done

    async def _is_zookeepers_for_good(self) -> bool:
        """Lines 10 and 11. False: a claim of KRaft's slipped in, /migration is back, or somebody has lifted a fence."""
        deadline = time.monotonic() + self._request.policy.election_deadline.total_seconds()
        while not (rule := await self._look_at_rule()).is_zookeepers:
            if _is_krafts_again(rule):
                return False
            if time.monotonic() > deadline:
                raise Blocked(WAIT_MEANS[WaitReason.NO_CONTROLLER])
            await asyncio.sleep(self._pace.poll)
        self._end_gap()
        end = time.monotonic() + self._pace.watch
        while not _is_krafts_again(rule):
            if time.monotonic() > end:
                return await self._is_for_good(rule)
            await asyncio.sleep(self._pace.poll)
            rule = await self._look_at_rule()
        return False

    async def _is_for_good(self, rule: Rule) -> bool:
        """What was started behind its fence gets nowhere, and goes; what was started without one may have."""
        if not all(await each(is_fenced(member) for member in self._members)):
            return False
        await each(kill(member) for member in self._members)
        self.story.append(f"broker {rule.leader} is controller")
        return True

    def _end_gap(self) -> None:
        if self._without_controller_since is not None:
            seconds = time.monotonic() - self._without_controller_since
            self._seconds_without_controller = (self._seconds_without_controller or 0.0) + seconds
        self._without_controller_since = None

    @property
    def _is_loss_accepted(self) -> bool:
        return self._request.revert is not None and METADATA_CHANGES in self._request.revert.accepted_losses


def _changes(rule: Rule, epoch: int) -> list[SetZnode | DeleteZnode]:
    """The transaction. A ZooKeeper controller that rules already is left alone, unless partitions would not obey it."""
    is_deposed = rule.controller is not None and (rule.is_krafts or epoch > rule.zookeeper_epoch)
    changes: list[SetZnode | DeleteZnode] = []
    if rule.epoch is not None and (is_deposed or rule.controller is None):
        changes.append(SetZnode(CONTROLLER_EPOCH, str(epoch).encode(), rule.epoch.version))
    if rule.migration is not None:
        changes.append(DeleteZnode(MIGRATION, rule.migration.version))
    if rule.controller is not None and is_deposed:
        changes.append(DeleteZnode(CONTROLLER, rule.controller.version))
    return changes


def _is_krafts_again(rule: Rule) -> bool:
    return rule.is_krafts or rule.migration is not None
