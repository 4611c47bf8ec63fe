"""`leave_kraft`: the revert window. The KRaft controllers give way, and a broker becomes ZooKeeper controller.

     1. over already?                                     (then only 11)
     2. read the logs up to the offset in /migration and the partition states, raise versions of states that lag behind what
        brokers know from the quorum (else they would not obey): what takes time, before the window
     3. look again: the fence holds, fresh decisions are this very step, no stranger answers, ZooKeeper would let us do 9, and
        whoever is elected can read what he has to
                                                          (else: blocked, nothing touched)
     4. drain: the offset in /migration is the log's end, seen at rest twice                   (else: 8 mends it)
        and no controller has said that ZooKeeper refused it a change, which goes by no offset (else: blocked, or accepted)
     5. fence every controller                            (nobody can start one any more, whoever tries)
        and read once more what they have said of refused changes
     6. SIGKILL: first those without the flag, then all   (from here on the cluster has no controller: 0.15 s in all)
     7. dead: no process, no stranger at their ports
     8. read the dead logs beyond the offset, and the last words of the dead: what was acknowledged and is not in ZooKeeper?
        Complete the topics that the kill has left half written there, start the controllers again, let them flush, and once
        more from 5. Where the logs say POST_MIGRATION there is no way back: all are started again
     9. raise what lags since; then one transaction: /controller_epoch raised to the largest known, /migration deleted,
        /controller deleted; and read back
    10. a broker is controller                            (within its deadline)
    11. watch: a claim that slips in all the same is seen, and everything is done once more from 5

What goes wrong for good between 5 and 9 gives the cluster back to its controllers, and so does ZooKeeper's silence once they
are dead: a controller of either kind rather than none.

Whoever dies between two lines leaves: before 5, nothing; before 6, some controllers fenced and all alive, which serve on and
cannot restart; before 9, dead controllers that nobody but us can start, and a cluster without a controller; in 8, a quorum that
serves; after 9, what was wanted. A retry does not ask again whether it may once something is fenced: half of it is the worst
place to rest. It scans and reads again what it needs, and comes to the same end. What does not answer an attempt that
has touched nothing yet is told, so that the next decision waits for it by its name; later it is tried again at once.

Why one transaction: KRaft's claim sets `/controller_epoch` (KafkaZkClient.tryRegisterKRaftControllerAsActiveController), so one
that slipped in makes ours fail whole; and a quorum that finds no `/migration` stays inactive for good (proven-facts, 5).
"""

import time
from collections.abc import Awaitable
from typing import TypeVar

from temporalio import activity

from activities.claims import cluster_to_change, ensure_not_superseded
from activities.concurrently import all_of
from activities.heartbeat import heartbeating
from activities.looking import outcome, why_not_this_step
from activities.observing.epochs import Rule
from activities.ports.kafka import Listeners
from activities.ports.ports import Ports
from activities.ports.zookeeper import ZooKeeperTree
from activities.rolling.marking import Target
from activities.rolling.roll import MAX_AGE_OF_A_LOOK, seconds_since_boot
from activities.zk_to_kraft.fence import fence, is_dead, is_fenced, kill, may_start, members_of, revive
from activities.zk_to_kraft.refused_writes import told
from activities.zk_to_kraft.window.flushing import Drain, Waiting, until_flushed
from activities.zk_to_kraft.window.half_written import complete_half_written
from activities.zk_to_kraft.window.last_refusals import LastRefusals
from activities.zk_to_kraft.window.member_logs import MemberLogs
from activities.zk_to_kraft.window.pace import USUAL, Gap, Pace
from activities.zk_to_kraft.window.strangers import answering, complaint, still_answering
from activities.zk_to_kraft.window.succession import Blocked, Succession
from domain.contracts import StepOutcome, StepRequest
from domain.errors import KeeperlessError, Permanent, Transient, Unsafe
from domain.observed.observation import MigrationGauge
from domain.records import ClusterRecord
from domain.zk_to_kraft.losses import METADATA_CHANGES, NEVER_WRITTEN
from domain.zk_to_kraft.policy import FLUSHES, ZkToKraftPolicy
from domain.zk_to_kraft.steps import ZkActivity

T = TypeVar("T")

WINDOWS = 8
"""How often the window is opened in all, flushes included. Each time something unforeseen has come between."""


class Leaving:
    """The activity that gives the cluster back to ZooKeeper."""

    def __init__(self, ports: Ports, listeners: Listeners, pace: Pace = USUAL) -> None:
        self._ports, self._listeners, self._pace = ports, listeners, pace

    @activity.defn(name=ZkActivity.LEAVE_KRAFT)
    async def leave_kraft(self, request: StepRequest) -> StepOutcome:
        """Bring the cluster under a ZooKeeper controller, every KRaft controller fenced, as the module's docstring says."""
        async with heartbeating():
            begun = time.monotonic()
            await ensure_not_superseded(request, self._ports)
            cluster = await cluster_to_change(request, self._ports)
            blocked: str | None = None
            changes: tuple[str, ...] = ()
            try:
                members = await untouched(members_of(cluster, self._ports.drivers))
                tree = await untouched(self._ports.zookeepers.connect(cluster))
                window = Window(request, self._ports, self._listeners, self._pace, cluster, members, tree)
                try:
                    await window.leave()
                finally:
                    changes = (*window.story, *window.gap.words)
                    await tree.close()
            except Blocked as reason:
                blocked = str(reason)
            return outcome(blocked, begun, changes)


async def untouched(asked: Awaitable[T]) -> T:
    """An answer from before this attempt's first effect. Silence is then told rather than retried unseen."""
    try:
        return await asked
    except Transient as error:
        raise Blocked(f"no node was touched in this attempt: {error}") from error


class Window:
    """One attempt. `story`: what it did, for people. `gap`: how long the cluster was without a controller meanwhile."""

    def __init__(
        self,
        request: StepRequest,
        ports: Ports,
        listeners: Listeners,
        pace: Pace,
        cluster: ClusterRecord,
        members: list[Target],
        tree: ZooKeeperTree,
    ) -> None:
        self._request, self._ports, self._listeners, self._pace = request, ports, listeners, pace
        self._policy = ZkToKraftPolicy.of(request.policy)
        self._cluster, self._members, self._tree = cluster, members, tree
        self._drain = Drain(members, tree, ports.metrics, pace.poll)
        self._logs = MemberLogs(members, len(cluster.spec.controllers))
        self.gap = Gap()
        self.story: list[str] = []
        self._succession = Succession(tree, members, pace, self.gap, self.story)
        self._flagless: set[int] = set()
        self._flushes = 0
        self._are_dead = False
        self._refusals = LastRefusals(self._logs, self.story)

    async def leave(self) -> None:
        """Lines 1 to 11. Raises `Blocked`, or `Unsafe` where trying again would only repeat the harm."""
        if await untouched(self._succession.is_over()) and await self._succession.is_zookeepers_for_good(self._policy):
            return
        await untouched(self._prepare())
        for _ in range(WINDOWS):
            if await self._has_handed_over() and await self._succession.is_zookeepers_for_good(self._policy):
                return
        raise Unsafe(f"KRaft's claim or /migration came back {WINDOWS} times. Find what starts a controller of this quorum.")

    # ---- before the window ----

    async def _prepare(self) -> None:
        """Lines 2 to 4. Where something is fenced already the window stands open, and nobody is asked.

        A quorum that has claimed and not copied may be about to delete what its log lacks: then the scan waits, not the kill.
        """
        rule = await self._succession.look()
        fenced = await all_of(*map(is_fenced, self._members))
        is_open = any(fenced)
        self._refusals.note_left([member for member, is_left in zip(self._members, fenced, strict=True) if is_left])
        if rule.offset is not None:
            await self._logs.read_ahead(rule.offset)
        if not rule.is_krafts or self._logs.state is MigrationGauge.MIGRATION:
            # Where the window stands open already, all is raised in it: what goes wrong there gives the cluster back.
            await ensure_not_superseded(self._request, self._ports)
            await self._succession.survey(() if is_open else self._logs.epochs)
        await all_of(*map(self._note_flag, self._members))
        if is_open:
            return
        looked_at = seconds_since_boot()
        await self._look()
        await self._succession.ensure_allowed()
        self._ensure_consent()
        await self._wait_for_rest()
        await self._ensure_written()
        if seconds_since_boot() - looked_at > MAX_AGE_OF_A_LOOK:
            await self._look()

    async def _note_flag(self, member: Target) -> None:
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

    async def _ensure_written(self) -> None:
        """What a controller could not write to ZooKeeper, no offset tells: it goes past it. Who leads after one that is dead
        has written it. Of what ZooKeeper cannot hold somebody has been asked already.
        """
        if self._logs.state is not MigrationGauge.MIGRATION:
            return
        for member in self._members:
            found = None if await is_dead(member) else await self._refusals.of(member)
            if found is not None and not self._is_loss_accepted:
                raise Blocked(f"{told(found, member.name)} Or ask for the rollback with the loss {METADATA_CHANGES} accepted.")

    async def _wait_for_rest(self) -> None:
        """Wait until ZooKeeper has all that the quorum has. What is not there at the deadline is flushed afterwards."""
        if not (await self._succession.look()).is_krafts or self._logs.state is not MigrationGauge.MIGRATION:
            return
        if await self._drain.comes_to_rest(self._policy.drain_deadline.total_seconds()):
            return
        self.story.append("ZooKeeper did not have everything in time: the controllers have to write the rest afterwards")
        stray = self._logs.strays
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
            await self._succession.raise_versions(self._logs.epochs)
            return await self._succession.hand_over()
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
        dead = await all_of(*map(is_dead, self._members))
        alive = [member for member, is_over in zip(self._members, dead, strict=True) if not is_over]
        await all_of(*map(fence, self._members))
        await self._refusals.read_before(alive)
        self.gap.begin()
        await all_of(*(kill(member) for member in self._members if member.node.id in self._flagless))
        await all_of(*map(kill, self._members))
        self._are_dead = True

    async def _missing(self) -> tuple[str, ...]:
        """Line 8: what was acknowledged and is not in ZooKeeper, in words. Empty where nothing is, or nothing can be done."""
        rule = await self._succession.look()
        strangers = await still_answering(self._cluster.spec, self._listeners, self._pace.settle, self._pace.poll)
        await self._logs.read_tails(rule.offset if rule.offset is not None else self._succession.offset)
        if strangers:
            raise Blocked(complaint(strangers))
        if self._logs.state is MigrationGauge.POST_MIGRATION:
            raise Blocked("the quorum's log says that the migration is final: a rollback to ZooKeeper is no longer possible")
        self._ensure_readable()
        if self._logs.state is not MigrationGauge.MIGRATION:
            return ()
        if not rule.is_zookeepers:
            self._ensure_consent()
            return (*self._logs.changes, *await self._refusals.read_after(self._members))
        if rule.offset is not None and self._logs.changes:
            self.story.append(f"ZooKeeper's controller was already active, without {', '.join(self._logs.changes)}")
        return ()

    def _ensure_consent(self) -> None:
        """Of what the logs have and ZooKeeper cannot hold no offset tells, and nothing can flush it."""
        lost = self._logs.never_written
        if lost and not self._accepts(NEVER_WRITTEN):
            raise Blocked(
                f"ZooKeeper never received {lost}: its name cannot be a znode's. Remove it (kafka-acls.sh --remove), or "
                f"accept the loss {NEVER_WRITTEN} by its name, in another rollback."
            )
        told = f"accepted as lost: ZooKeeper never received {lost}"
        if lost and told not in self.story:
            self.story.append(told)

    def _ensure_readable(self) -> None:
        for name, why in self._logs.unreadable.items():
            self.story.append(f"the log of {name} cannot be read: {why}")
        if not self._logs.has_majority and not self._is_loss_accepted:
            damaged = "; ".join(f"{name}: {why}" for name, why in self._logs.unreadable.items())
            raise Unsafe(
                f"what ZooKeeper lacks is unknown, because most of the logs cannot be read ({damaged}). Repair them, or "
                f"accept the loss {METADATA_CHANGES} by its name."
            )
        if not self._logs.has_majority:
            self.story.append("which states lag behind is unknown: if a partition has no leader, restart its brokers")

    async def _may_flush(self, missing: tuple[str, ...]) -> bool:
        """True: start them again. False: it cannot help, and the loss was accepted. Else we stop."""
        why_not = await self._why_no_flush(await self._succession.look())
        if why_not is None:
            self.story.append(f"flushed: {', '.join(missing)}")
            return True
        lost = f"ZooKeeper lacks {', '.join(missing)}, and {why_not}"
        if not self._is_loss_accepted:
            raise Unsafe(f"{lost}. Fix that, or accept the loss {METADATA_CHANGES} by its name.")
        self.story.append(f"accepted as lost: {lost}")
        return False

    async def _why_no_flush(self, rule: Rule) -> str | None:
        if rule.offset is None:
            return "the quorum never began to write there"
        stray = self._logs.strays
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
        rule = await self._succession.look()
        await self._complete(rule)
        await self._revive()
        waiting = Waiting(self._drain, self._pace.settle, self._pace.stall)
        is_written = await until_flushed(waiting, self._policy, rule.known_epoch, self.gap.end)
        self._refusals.note_flushed(is_written=is_written)

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
            if self._logs.state is not MigrationGauge.POST_MIGRATION and await self._succession.may_be_zookeepers():
                return
            if self._logs.state in {MigrationGauge.MIGRATION, MigrationGauge.POST_MIGRATION}:
                await self._revive()
        except KeeperlessError as error:
            activity.logger.warning("the controllers could not all be started again after %r: %s", because, error)

    async def _may_run(self, member: Target) -> bool:
        """Without its flag, or with a log that is final, a controller would make final what is not final yet."""
        return await may_start(member) and not self._logs.says_final(member)

    async def _revive(self) -> None:
        """Start what may be started."""
        is_final = self._logs.state is MigrationGauge.POST_MIGRATION
        starting = [member for member in self._members if is_final or await self._may_run(member)]
        await all_of(*map(revive, starting))

    @property
    def _is_loss_accepted(self) -> bool:
        return self._accepts(METADATA_CHANGES)

    def _accepts(self, loss: str) -> bool:
        return self._request.revert is not None and loss in self._request.revert.accepted_losses
