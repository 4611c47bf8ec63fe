"""`leave_kraft`: the revert window. The KRaft controllers give way, and a broker becomes ZooKeeper controller.

     1. over already?                                     (then only 11)
     2. scan the partition states' epochs, read the logs up to the offset in /migration: what takes time, before the window
     3. look again: the fence holds, fresh decisions are this very step, no stranger answers   (else: blocked, nothing touched)
     4. drain: the offset in /migration is the log's end, seen at rest twice                   (else: 8 mends it)
     5. fence every controller                            (nobody can start one any more, whoever tries)
     6. SIGKILL: first those without the flag, then all   (from here on the cluster has no controller: 0.15 s in all)
     7. dead: no process, no stranger at their ports
     8. read the dead logs beyond the offset: what was acknowledged and is not in ZooKeeper? Remove the topics that the kill has
        left half written there, start the controllers again, let them flush, and once more from 5.
        Where a log says POST_MIGRATION there is no way back: all are started again
     9. one transaction: /controller_epoch raised to the largest known, /migration deleted, /controller deleted; and read back
    10. a broker is controller                            (within its deadline)
    11. watch: a claim that slips in all the same is seen, and everything is done once more from 5

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
from activities.epochs import Rule, largest_epoch_of_states, rule_of
from activities.fence import Member, each, fence, is_dead, is_fenced, kill, may_start, members_of, revive
from activities.half_written import remove_half_written
from activities.heartbeat import heartbeating
from activities.observe import Ports
from activities.ports import DeleteZnode, Listeners, SetZnode, ZnodeChange, ZooKeeperTree
from activities.quorum_log import Reading, open_log, read_on, read_tail
from activities.rolling import MAX_AGE_OF_A_LOOK, seconds_since_boot
from activities.storage import storage_of
from activities.zookeeper_view import CONTROLLER, CONTROLLER_EPOCH, MIGRATION
from domain.contracts import ActivityName, StepOutcome, StepRequest
from domain.decisions import WAIT_MEANS, WaitReason
from domain.errors import Transient, Unsafe
from domain.metadata_log import UNKNOWN_TO_ZOOKEEPER, LogFacts
from domain.observation import MigrationGauge
from domain.records import ClusterRecord
from domain.zk_to_kraft.losses import METADATA_CHANGES

WINDOWS = 8
"""How often the window is opened in all, flushes included. Each time something unforeseen has come between."""

FLUSHES = 3
"""How often the controllers are started again to write what ZooKeeper lacks."""


@dataclass(frozen=True)
class Pace:
    """In seconds: between two looks; until the sockets of a killed process count as somebody else's, for a busy kernel takes
    its time to close them; how long a controller that has claimed may write nothing to ZooKeeper, which it does twice a second;
    and how long `/controller` is watched after the window.
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
        self._epoch: int | None = None
        self._ahead: dict[int, Reading] = {}
        self._flagless: set[int] = set()
        self._state = MigrationGauge.NONE
        self._flushes = 0
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
            await self._stop_quorum()
            missing = await self._missing()
            if missing and await self._may_flush(missing):
                await self._flush()
            elif await self._hand_over() and await self._is_zookeepers_for_good():
                return
        raise Unsafe(f"{WINDOWS} times KRaft's claim or /migration came back. Find who starts a controller of this quorum.")

    async def _is_over(self) -> bool:
        rule = await rule_of(self._tree)
        if not rule.is_zookeepers or rule.migration is not None:
            return False
        return all(await each(is_dead(m) for m in self._members)) and all(await each(is_fenced(m) for m in self._members))

    # ---- before the window ----

    async def _prepare(self) -> None:
        """Lines 2 to 4. Where something is fenced already the window stands open, and nobody is asked.

        A quorum that has claimed and not copied may be about to delete what its log lacks: then the scan waits, not the kill.
        """
        rule = await rule_of(self._tree)
        if rule.offset is not None:
            await each(self._read_ahead(member, rule.offset) for member in self._members)
        if not rule.is_krafts or self._state_ahead is MigrationGauge.MIGRATION:
            self._epoch = await largest_epoch_of_states(self._tree)
        await each(self._note_flag(member) for member in self._members)
        if any(await each(is_fenced(member) for member in self._members)):
            return
        looked_at = seconds_since_boot()
        await self._look()
        await self._drain()
        if seconds_since_boot() - looked_at > MAX_AGE_OF_A_LOOK:
            await self._look()

    @property
    def _state_ahead(self) -> MigrationGauge:
        """What the logs said of the migration before the window."""
        return max((r.facts.state for r in self._ahead.values()), key=_how_far, default=MigrationGauge.NONE)

    async def _read_ahead(self, member: Member, offset: int) -> None:
        """What is committed and long past: only the rest has to be read while nobody leads."""
        reading = await open_log(member.driver, (await storage_of(member.driver, member.node)).metadata_log)
        if reading is not None:
            self._ahead[member.node.id] = await read_on(member.driver, reading, until=offset)

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
        strangers = [name for node_id, name in await self._answering() if node_id not in alive]
        if strangers:
            raise Blocked(_strangers(strangers))

    async def _answering(self) -> list[tuple[int, str]]:
        """Controllers at whose address somebody answers."""
        spec = self._cluster.spec
        answers = await each(self._listeners.is_answering(c.host, c.port) for c in spec.controllers)
        return [(c.id, spec.node_name(c.id)) for c, is_there in zip(spec.controllers, answers, strict=True) if is_there]

    async def _still_answering(self) -> list[str]:
        """Who answers although every process is gone. Their sockets can live a moment longer than they did."""
        end = time.monotonic() + self._pace.settle
        while True:
            found = [name for _, name in await self._answering()]
            if not found or time.monotonic() > end:
                return found
            await asyncio.sleep(self._pace.poll)

    async def _drain(self) -> None:
        """Wait until ZooKeeper has all that the quorum has. What is not there at the deadline is flushed afterwards."""
        if not (await rule_of(self._tree)).is_krafts or self._state_ahead is not MigrationGauge.MIGRATION:
            return
        if await self._comes_to_rest(self._request.policy.drain_deadline.total_seconds()):
            return
        self.story.append("ZooKeeper did not have everything in time: the controllers have to write the rest afterwards")
        stray = self._stray_configs()
        if stray and not self._is_loss_accepted:
            raise Blocked(
                f"ZooKeeper lacks changes, and no other controller could write them while there is {stray}: delete it"
            )

    async def _comes_to_rest(self, seconds: float) -> bool:
        """Two looks in a row at which the offset in /migration is the end of the leader's log."""
        deadline, times = time.monotonic() + seconds, 0
        while time.monotonic() < deadline:
            times = times + 1 if await self._is_at_rest() else 0
            if times == 2:
                return True
            await asyncio.sleep(self._pace.poll)
        return False

    async def _is_at_rest(self) -> bool:
        """The znode is read first: then the log's end, read later, was in ZooKeeper before."""
        rule = await rule_of(self._tree)
        leader = next((member for member in self._members if member.node.id == rule.leader), None)
        if leader is None or not rule.is_krafts or rule.offset is None:
            return False
        try:
            seen = await self._ports.metrics.read(leader.node.metrics)
        except Transient:
            return False
        is_leading = seen.active_controller_count == 1 and seen.raft_leader == leader.node.id
        is_writing = seen.migration_gauge is MigrationGauge.MIGRATION and seen.raft_log_end is not None
        return is_leading and is_writing and seen.raft_log_end == rule.offset + 1

    # ---- the window ----

    async def _stop_quorum(self) -> None:
        """Lines 5 to 7. Dead is: no process by its driver, and a fence that stands."""
        await ensure_not_superseded(self._request, self._ports)
        await each(fence(member) for member in self._members)
        self._without_controller_since = self._without_controller_since or time.monotonic()
        await each(kill(member) for member in self._members if member.node.id in self._flagless)
        await each(kill(member) for member in self._members)

    async def _missing(self) -> tuple[str, ...]:
        """Line 8: what was acknowledged and is not in ZooKeeper, in words. Empty where nothing is, or nothing can be done."""
        rule = await rule_of(self._tree)
        strangers = await self._still_answering()
        try:
            logs = await each(self._read_tail(member, rule.offset) for member in self._members)
        except Unsafe as error:
            return await self._unreadable(rule, error)
        facts = [log for log in logs if log is not None]
        self._state = max((log.state for log in facts), key=_how_far, default=MigrationGauge.NONE)
        if strangers:
            await self._give_back(rule)
            raise Blocked(_strangers(strangers))
        if self._state is MigrationGauge.POST_MIGRATION:
            await self._give_back(rule)
            raise Blocked("the quorum's log says that the migration is final: there is no way back to ZooKeeper any more")
        if rule.is_zookeepers or self._state is not MigrationGauge.MIGRATION:
            return ()
        return max((log.change_names for log in facts), key=len, default=())

    async def _read_tail(self, member: Member, offset: int | None) -> LogFacts | None:
        directory = (await storage_of(member.driver, member.node)).metadata_log
        return await read_tail(member.driver, directory, offset, self._ahead.get(member.node.id))

    async def _unreadable(self, rule: Rule, error: Unsafe) -> tuple[str, ...]:
        if self._is_loss_accepted:
            self.story.append(f"what ZooKeeper lacks is not known: {error}")
            return ()
        self._state = self._state_ahead
        await self._give_back(rule)
        raise error

    async def _may_flush(self, missing: tuple[str, ...]) -> bool:
        """True: start them again. False: it cannot help, and the loss was accepted. Else they are given back, and we stop."""
        rule = await rule_of(self._tree)
        why_not = await self._why_no_flush(rule)
        if why_not is None:
            self.story.append(f"flushed: {', '.join(missing)}")
            return True
        lost = f"ZooKeeper lacks {', '.join(missing)}, and {why_not}"
        if self._is_loss_accepted:
            self.story.append(f"accepted as lost: {lost}")
            return False
        await self._give_back(rule)
        raise Unsafe(f"{lost}. Mend that, or accept the loss {METADATA_CHANGES} by its name.")

    async def _why_no_flush(self, rule: Rule) -> str | None:
        if rule.offset is None:
            return "the quorum never began to write there"
        stray = self._stray_configs()
        if stray:
            return f"no controller can write it while there is {stray}"
        if self._flushes >= (1 if self._is_loss_accepted else FLUSHES):
            return f"{self._flushes} times the controllers did not write it"
        flagged = [member for member in self._members if await may_start(member)]
        if 2 * len(flagged) <= len(self._cluster.spec.controllers):
            return "too few controllers have the migration flag in their files to be started again"
        return None

    async def _flush(self) -> None:
        """Start them again and wait until ZooKeeper has everything; whether it has is read from the logs afterwards.

        What the kill cut in two goes first: they could not finish it, and would write nothing at all. Every write of a leader
        touches /migration: one that has claimed and writes no more has given up, which some of Kafka's errors make it do.
        """
        self._flushes += 1
        removed = await remove_half_written(self._tree)
        if removed:
            self.story.append(f"half written in ZooKeeper, and so written anew: {', '.join(removed)}")
        before = (await rule_of(self._tree)).known_epoch
        await self._revive()
        policy = self._request.policy
        end = time.monotonic() + (policy.restart_deadline + policy.drain_deadline).total_seconds()
        seen, changed_at = None, time.monotonic()
        while time.monotonic() < end:
            rule = await rule_of(self._tree)
            has_claimed = rule.is_krafts and rule.known_epoch > before
            if has_claimed:
                self._end_gap()
            if has_claimed and await self._comes_to_rest(self._pace.settle):
                return
            version = rule.migration.version if rule.migration is not None else None
            if version != seen or not has_claimed:
                seen, changed_at = version, time.monotonic()
            elif time.monotonic() - changed_at > self._pace.stall:
                return
            await asyncio.sleep(self._pace.poll)

    async def _give_back(self, rule: Rule) -> None:
        """A controller of either kind rather than none: KRaft's again, where ZooKeeper's does not rule already.

        Not before the copy: started again they would begin it, and with an earlier attempt's /migration delete metadata.
        """
        if rule.is_zookeepers or self._state not in {MigrationGauge.MIGRATION, MigrationGauge.POST_MIGRATION}:
            return
        await self._revive()

    async def _revive(self) -> None:
        """Start what may be started: without its flag a controller would make final what is not final yet."""
        is_final = self._state is MigrationGauge.POST_MIGRATION
        starting = [member for member in self._members if is_final or await may_start(member)]
        await each(revive(member) for member in starting)

    # ---- back to ZooKeeper ----

    async def _hand_over(self) -> bool:
        """Line 9. False: somebody was faster, or it does not read back: look again."""
        await ensure_not_superseded(self._request, self._ports)
        if self._epoch is None:
            self._epoch = await largest_epoch_of_states(self._tree)
        rule = await rule_of(self._tree)
        epoch = max(self._epoch, rule.known_epoch)
        changes = _changes(rule, epoch)
        if changes and not await self._tree.commit(changes):
            return False
        if any(isinstance(change, SetZnode) for change in changes):
            self.story.append(f"/controller_epoch is {epoch}, was {rule.zookeeper_epoch}")
        if rule.migration is not None:
            self.story.append(f"/migration deleted, its offset was {rule.offset or 'not set'}")
        found = await rule_of(self._tree)
        return not found.is_krafts and found.migration is None and found.zookeeper_epoch >= epoch

    async def _is_zookeepers_for_good(self) -> bool:
        """Lines 10 and 11. False: a claim of KRaft's slipped in, or /migration is back."""
        deadline = time.monotonic() + self._request.policy.election_deadline.total_seconds()
        while not (rule := await rule_of(self._tree)).is_zookeepers:
            if _is_krafts_again(rule):
                return False
            if time.monotonic() > deadline:
                raise Blocked(WAIT_MEANS[WaitReason.NO_CONTROLLER])
            await asyncio.sleep(self._pace.poll)
        self._end_gap()
        end = time.monotonic() + self._pace.watch
        while not _is_krafts_again(rule):
            if time.monotonic() > end:
                self.story.append(f"broker {rule.leader} is controller")
                return True
            await asyncio.sleep(self._pace.poll)
            rule = await rule_of(self._tree)
        return False

    def _end_gap(self) -> None:
        if self._without_controller_since is not None:
            seconds = time.monotonic() - self._without_controller_since
            self._seconds_without_controller = (self._seconds_without_controller or 0.0) + seconds
        self._without_controller_since = None

    @property
    def _is_loss_accepted(self) -> bool:
        return self._request.revert is not None and METADATA_CHANGES in self._request.revert.accepted_losses

    def _stray_configs(self) -> str:
        """Configs that would keep a new leader from writing to ZooKeeper, by name; empty: none."""
        found = {config for reading in self._ahead.values() for config in reading.facts.stray_configs}
        return ", ".join(f"{UNKNOWN_TO_ZOOKEEPER[kind]} config {key} of {name}" for kind, name, key in sorted(found))


def _changes(rule: Rule, epoch: int) -> list[ZnodeChange]:
    """The transaction. A ZooKeeper controller that rules already is left alone, unless partitions would not obey it."""
    is_deposed = rule.controller is not None and (rule.is_krafts or epoch > rule.zookeeper_epoch)
    changes: list[ZnodeChange] = []
    if rule.epoch is not None and (is_deposed or rule.controller is None):
        changes.append(SetZnode(CONTROLLER_EPOCH, str(epoch).encode(), rule.epoch.version))
    if rule.migration is not None:
        changes.append(DeleteZnode(MIGRATION, rule.migration.version))
    if rule.controller is not None and is_deposed:
        changes.append(DeleteZnode(CONTROLLER, rule.controller.version))
    return changes


def _is_krafts_again(rule: Rule) -> bool:
    return rule.is_krafts or rule.migration is not None


def _how_far(state: MigrationGauge) -> int:
    order = (MigrationGauge.NONE, MigrationGauge.PRE_MIGRATION, MigrationGauge.MIGRATION, MigrationGauge.POST_MIGRATION)
    return order.index(state)


def _strangers(names: list[str]) -> str:
    return (
        f"somebody answers at the address of {', '.join(names)}, and it is not the process of the pid file. "
        "A controller that was started another way could claim the cluster again: stop it."
    )
